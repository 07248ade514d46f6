//! A table of programming languages: their files, and the lines that define something.

use crate::lex::{extension, is, regex_escape};

/// All kinds of definition, as in the tables of [`LANGS`].
pub(crate) const ALL_DEFS: &str = "fn struct enum trait alias class const mod macro";

/// Nouns, other words for them, and the kinds of definition they stand for.
const NOUNS: &[(&str, &str, &str)] = &[
    ("function", "functions fn fns func funcs", "fn"),
    ("struct", "structs", "struct"),
    ("enum", "enums", "enum"),
    ("trait", "traits", "trait"),
    ("interface", "interfaces", "trait"),
    ("class", "classes", "class"),
    ("type", "types", "struct enum trait alias class"),
    ("constant", "constants consts statics", "const"),
    ("module", "modules", "mod"),
    ("macro", "macros", "macro"),
    ("test", "tests", "test"),
];

/// The kinds of definition a word stands for, and the noun for one of them.
pub(crate) fn noun(word: &str) -> Option<(&'static str, &'static str)> {
    NOUNS
        .iter()
        .find(|(noun, others, _)| word == *noun || is(word, others))
        .map(|(noun, _, kinds)| (*kinds, *noun))
}

/// A kind of definition and a regex of the lines that contain one. `@` stands for the name, `~` for text that may
/// precede a Rust item.
type Defs = &'static [(&'static str, &'static str)];

/// A language, with what is needed to find its definitions line by line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lang {
    pub(crate) name: &'static str,
    words: &'static str,
    exts: &'static str,
    defs: Defs,
}

const fn lang(name: &'static str, words: &'static str, exts: &'static str, defs: Defs) -> Lang {
    Lang {
        name,
        words,
        exts,
        defs,
    }
}

pub(crate) const LANGS: &[Lang] = &[
    lang("Rust", "rust", "rs", RUST),
    lang("Python", "python py", "py pyi", PYTHON),
    lang("JavaScript", "javascript js node", "js mjs cjs jsx", SCRIPT),
    lang("TypeScript", "typescript ts", "ts tsx", SCRIPT),
    lang("Go", "go golang", "go", GO),
    lang("C", "c", "c h", &[]),
    lang("C++", "c++ cpp", "cc cpp cxx hh hpp", &[]),
    lang(
        "Shell",
        "shell bash",
        "sh bash",
        &[("fn", r"^\s*(?:function\s+)?@\s*\(\)")],
    ),
    lang("Markdown", "markdown md", "md", &[]),
    lang("TOML", "toml", "toml", &[]),
    lang("JSON", "json", "json", &[]),
    lang("YAML", "yaml yml", "yml yaml", &[]),
];

const ITEM: &str = r#"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|safe|extern(?:\s+"[^"]*")?)\s+)*"#;
const RUST: Defs = &[
    ("fn", r"~fn\s+@"),
    ("struct", r"~(?:struct|union)\s+@"),
    ("enum", r"~enum\s+@"),
    ("trait", r"~(?:auto\s+)?trait\s+@"),
    ("alias", r"~type\s+@"),
    (
        "const",
        r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?@\s*:",
    ),
    ("mod", r"~mod\s+@"),
    ("macro", r"^\s*macro_rules!\s*@"),
    ("test", r"^\s*#\[(?:\w+::)*test\b"),
    (
        "import",
        r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|extern\s+crate)\s+(?:.*\b)?@",
    ),
];
const PYTHON: Defs = &[
    ("fn", r"^\s*(?:async\s+)?def\s+@"),
    ("class", r"^\s*class\s+@"),
    ("const", r"^@\s*(?::[^=]+)?=[^=]"),
    ("test", r"^\s*(?:async\s+)?def\s+test"),
    (
        "import",
        r"^\s*(?:import\s+(?:.*[\s,.])?@|from\s+(?:\S*\.)?@|from\s.*\bimport\s+(?:.*[\s,(])?@)",
    ),
];
const SCRIPT: Defs = &[
    (
        "fn",
        r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*@",
    ),
    (
        "fn",
        r"^\s*(?:export\s+)?(?:const|let|var)\s+@\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>|\w+\s*=>)",
    ),
    (
        "class",
        r"^\s*(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+@",
    ),
    ("trait", r"^\s*(?:export\s+)?interface\s+@"),
    ("alias", r"^\s*(?:export\s+)?type\s+@"),
    ("enum", r"^\s*(?:export\s+)?(?:const\s+)?enum\s+@"),
    ("const", r"^(?:export\s+)?(?:const|let|var)\s+@"),
    ("test", r"^\s*(?:it|test)(?:\.\w+)?\s*\("),
    (
        "import",
        r#"^\s*(?:import\b.*["'](?:[^"']*/)?@|.*\brequire\(\s*["'](?:[^"']*/)?@)"#,
    ),
];
const GO: Defs = &[
    ("fn", r"^func\s+(?:\([^)]*\)\s*)?@"),
    ("struct", r"^type\s+@\s+struct\b"),
    ("trait", r"^type\s+@\s+interface\b"),
    ("const", r"^(?:const|var)\s+@"),
    ("test", r"^func\s+Test"),
    ("import", r#"^\s*(?:import\s+)?(?:\w+\s+)?"(?:[^"]*/)?@"#),
];
impl Lang {
    /// The language a word names.
    pub(crate) fn named(word: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|lang| is(word, lang.words))
    }

    /// The language of a file extension.
    pub(crate) fn of(ext: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|lang| is(ext, lang.exts))
    }

    /// The language of a file, or of a glob of files.
    pub(crate) fn of_files(path: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|lang| {
            extension(path).is_some_and(|ext| is(ext, lang.exts)) || lang.glob() == path
        })
    }

    /// A glob of its files.
    pub(crate) fn glob(&self) -> String {
        if self.exts.contains(' ') {
            format!("*.{{{}}}", self.exts.replace(' ', ","))
        } else {
            format!("*.{}", self.exts)
        }
    }

    /// A regex of the lines that define one of `kinds` under `name`, or under any.
    pub(crate) fn pattern(&self, kinds: &str, name: Option<&str>) -> Option<String> {
        let name = name.map_or_else(
            || r"[A-Za-z_$][\w$]*".to_owned(),
            |name| format!(r"{}\b", regex_escape(name)),
        );
        let wanted = self.defs.iter().filter(|(kind, _)| is(kind, kinds));
        let parts: Vec<String> = wanted
            .map(|(_, regex)| regex.replacen('~', ITEM, 1).replace('@', &name))
            .collect();
        (!parts.is_empty()).then(|| parts.join("|"))
    }
}
