//! What languages look like to a scanner that knows no grammar: comments, quotes, numbers, reserved words.

use crate::style::Tone;

/// A piece of code between two signs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Enclosed {
    pub(super) open: &'static str,
    /// Empty: the end of the line.
    pub(super) close: &'static str,
    pub(super) tone: Tone,
    /// A backslash takes the next character's meaning.
    pub(super) escapes: bool,
    /// It goes on in the next line.
    pub(super) is_long: bool,
    pub(super) begins: Begins,
}

/// Where a piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    Anywhere,
    /// At the beginning of a line and behind white space.
    Apart,
    /// Where it ends behind one character: other quotes of this kind are lifetimes and labels.
    AsCharacter,
}

#[derive(Debug)]
pub(super) struct Language {
    /// What stands behind the fence, in lower case.
    pub(super) tags: &'static [&'static str],
    /// The first that fits counts.
    pub(super) enclosed: &'static [Enclosed],
    /// Apart by spaces.
    pub(super) keywords: &'static str,
    /// Keywords are the same in upper case.
    pub(super) any_case: bool,
    /// Characters within words beside letters, digits and the underscore.
    pub(super) inner: &'static str,
    /// A word that begins with one of these is a keyword.
    pub(super) marks: &'static str,
    /// What stands before this is a key, and looks like a keyword.
    pub(super) key: Option<char>,
}

const PLAIN: Language = Language {
    tags: &[],
    enclosed: &[],
    keywords: "",
    any_case: false,
    inner: "",
    marks: "",
    key: None,
};

const fn comment(open: &'static str, close: &'static str) -> Enclosed {
    let is_long = !close.is_empty();
    Enclosed {
        open,
        close,
        tone: Tone::Comment,
        escapes: false,
        is_long,
        begins: Begins::Anywhere,
    }
}

/// A text of one line with escapes.
const fn quoted(quote: &'static str) -> Enclosed {
    Enclosed {
        open: quote,
        close: quote,
        tone: Tone::Quoted,
        escapes: true,
        is_long: false,
        begins: Begins::Anywhere,
    }
}

/// A text of several lines with escapes.
const fn long(quote: &'static str) -> Enclosed {
    Enclosed {
        is_long: true,
        ..quoted(quote)
    }
}

/// A text of several lines without escapes.
const fn raw(open: &'static str, close: &'static str) -> Enclosed {
    Enclosed {
        open,
        close,
        escapes: false,
        is_long: true,
        ..quoted("")
    }
}

const HASH: Enclosed = comment("#", "");
const HASH_APART: Enclosed = Enclosed {
    begins: Begins::Apart,
    ..HASH
};
const SLASHES: Enclosed = comment("//", "");
const STARS: Enclosed = comment("/*", "*/");
const CHARACTER: Enclosed = Enclosed {
    begins: Begins::AsCharacter,
    ..quoted("'")
};

pub(super) const LANGUAGES: &[Language] = &[
    Language {
        tags: &["rust", "rs"],
        enclosed: &[
            SLASHES,
            STARS,
            raw("r##\"", "\"##"),
            raw("r#\"", "\"#"),
            raw("r\"", "\""),
            long("\""),
            CHARACTER,
        ],
        keywords: "\
            as async await break const continue crate dyn else enum extern false fn for if impl in let loop match \
            mod move mut pub ref return self Self static struct super trait true type union unsafe use where while",
        ..PLAIN
    },
    Language {
        tags: &["python", "py", "python3"],
        enclosed: &[HASH, long("\"\"\""), long("'''"), quoted("\""), quoted("'")],
        keywords: "\
            and as assert async await break case class continue def del elif else except False finally for from \
            global if import in is lambda match None nonlocal not or pass raise return self True try while with \
            yield",
        marks: "@",
        ..PLAIN
    },
    Language {
        tags: &["sh", "bash", "zsh", "shell"],
        enclosed: &[HASH_APART, long("\""), raw("'", "'")],
        keywords: "\
            alias break case continue do done elif else esac eval exec exit export fi for function if in local \
            readonly return set shift source then trap unset until while",
        inner: "-./",
        ..PLAIN
    },
    Language {
        tags: &["js", "javascript", "jsx", "mjs", "ts", "typescript", "tsx"],
        enclosed: &[SLASHES, STARS, long("`"), quoted("\""), quoted("'")],
        keywords: "\
            abstract any as async await boolean break case catch class const continue debugger declare default \
            delete do else enum export extends false finally for from function if implements import in instanceof \
            interface keyof let namespace never new null number of private protected public readonly return static \
            string super switch this throw true try type typeof undefined unknown var void while yield",
        inner: "$",
        marks: "@",
        ..PLAIN
    },
    Language {
        tags: &["go", "golang"],
        enclosed: &[SLASHES, STARS, raw("`", "`"), quoted("\""), CHARACTER],
        keywords: "\
            any bool break byte case chan const continue default defer else error fallthrough false float64 for func \
            go goto if import int int64 interface iota map nil package range return rune select string struct switch \
            true type uint64 var",
        ..PLAIN
    },
    Language {
        tags: &["c", "h", "cpp", "c++", "cc", "cxx", "hpp"],
        enclosed: &[SLASHES, STARS, quoted("\""), CHARACTER],
        keywords: "\
            alignas auto bool break case catch char class const constexpr continue default delete do double else \
            enum explicit extern false final float for friend goto if inline int long namespace new noexcept NULL \
            nullptr operator override private protected public register return short signed sizeof static struct \
            switch template this throw true try typedef typename union unsigned using virtual void volatile while",
        marks: "#",
        ..PLAIN
    },
    Language {
        tags: &["java"],
        enclosed: &[SLASHES, STARS, long("\"\"\""), quoted("\""), CHARACTER],
        keywords: "\
            abstract assert boolean break byte case catch char class continue default do double else enum extends \
            false final finally float for if implements import instanceof int interface long native new null package \
            private protected public record return sealed short static super switch synchronized this throw throws \
            transient true try var void volatile while yield",
        marks: "@",
        ..PLAIN
    },
    Language {
        tags: &["json", "jsonc", "json5", "jsonl"],
        enclosed: &[SLASHES, STARS, quoted("\"")],
        keywords: "false null true",
        key: Some(':'),
        ..PLAIN
    },
    Language {
        tags: &["toml", "ini"],
        enclosed: &[
            HASH,
            long("\"\"\""),
            raw("'''", "'''"),
            quoted("\""),
            Enclosed {
                is_long: false,
                ..raw("'", "'")
            },
        ],
        keywords: "false true",
        inner: "-.",
        key: Some('='),
        ..PLAIN
    },
    Language {
        tags: &["yaml", "yml"],
        enclosed: &[
            HASH_APART,
            quoted("\""),
            Enclosed {
                is_long: false,
                ..raw("'", "'")
            },
        ],
        keywords: "false no null true yes",
        inner: "-./'",
        key: Some(':'),
        ..PLAIN
    },
    Language {
        tags: &["sql", "sqlite", "postgres", "postgresql", "mysql"],
        enclosed: &[comment("--", ""), STARS, raw("'", "'"), raw("\"", "\"")],
        keywords: "\
            add all alter and as asc begin between by cascade case check column commit constraint create cross \
            database default delete desc distinct drop else end except exists explain foreign from full group having \
            if in index inner insert into is join key left like limit not null offset on or order outer over \
            partition primary references returning right rollback select set table then union unique update using \
            values view when where with",
        any_case: true,
        ..PLAIN
    },
    Language {
        tags: &["html", "htm", "xml", "svg"],
        enclosed: &[
            comment("<!--", "-->"),
            Enclosed {
                is_long: false,
                ..raw("\"", "\"")
            },
            Enclosed {
                is_long: false,
                ..raw("'", "'")
            },
        ],
        inner: "/-:'",
        marks: "<",
        ..PLAIN
    },
    Language {
        tags: &["css", "scss", "less"],
        enclosed: &[STARS, quoted("\""), quoted("'")],
        inner: "-",
        marks: "@",
        key: Some(':'),
        ..PLAIN
    },
];
