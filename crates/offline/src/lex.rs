//! A prompt as words with a role in the grammar, and what is known of programming languages.

/// Makes [`Word`] and the table of the words that have each role.
macro_rules! vocabulary {
    ($($role:ident: $words:literal,)*) => {
        /// What a word is for: verbs, questions, then the rest.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
        pub(super) enum Word { $(#[doc = $words] $role,)* Path, Doc, Dir, Glob, Number, Lang, Def, Name, Quoted, Code }
        const VOCABULARY: &[(Word, &str)] = &[$((Word::$role, $words),)*];
    };
}

vocabulary! {
    List: "list ls",
    Show: "show print cat open display view read give tell get",
    Find: "find locate exist exists",
    Search: "search grep look",
    Count: "count",
    Summarise: "summarise summarize describe explain outline overview summary about entry entrypoints language languages",
    Replace: "replace substitute rename change",
    Create: "create write make add generate put save",
    Overwrite: "overwrite",
    Run: "run execute rerun",
    Build: "build compile builds compiles",
    What: "what what's which who",
    Where: "where where's",
    How: "how",
    Is: "is are does do did was were has have",
    Many: "many much number",
    Long: "long",
    Times: "times time occurrences occurrence matches instances appear appears occur occurs",
    File: "file files",
    Line: "line lines loc",
    Folder: "directory folder dir directories folders dirs",
    Tree: "tree structure layout",
    Largest: "largest biggest longest most",
    Contents: "contents content everything entries",
    Todo: "todo todos fixme fixmes",
    Key: "version name license licence edition description author authors",
    First: "first top head beginning",
    Last: "last tail end",
    Defined: "defined defines define definition definitions declared declares declaration implemented implementation",
    Used: "used use uses using usage usages reference references referenced calls call callers",
    Called: "called",
    Import: "import imports imported include includes require requires",
    Contain: "contain contains containing mention mentions mentioning",
    Named: "named matching ending extension",
    Pass: "pass passes passing green succeed",
    In: "in under inside within below across throughout",
    With: "with by",
    To: "to into",
    Place: "project repo repository codebase workspace crate package code program library app application module",
    It: "it them",
    And: "and",
    Then: "then afterwards finally",
    Glue: "a an the this that these there here my our its your all any every each some me us please now can could would \
           will you i we want need like just kindly also hey hi hello yoi let's lets of from on at total whole entire everywhere \
           source sources written current exactly text string word phrase symbol variable identifier points unit suite \
           for after",
}

impl Word {
    /// A verb or a question: it can begin a clause after "and", a comma or a full stop.
    pub(super) fn asks(self) -> bool {
        self <= Word::Is
    }
}

/// One word or quoted string of a prompt.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    /// As written, without quotes and the punctuation around it.
    pub(super) text: &'a str,
    pub(super) word: Word,
    /// The opening quote. What is quoted is never a word of the grammar.
    pub(super) quote: Option<char>,
    /// Where it begins and ends in the prompt, quotes included.
    pub(super) span: (usize, usize),
    /// The punctuation or line end that follows; a space when there is none.
    tail: char,
}

impl Token<'_> {
    pub(super) fn low(&self) -> String {
        self.text.to_lowercase()
    }

    /// A name in a program: `()` and `!` taken off its end.
    pub(super) fn symbol(&self) -> &str {
        self.text.trim_end_matches("()").trim_end_matches('!')
    }
}

/// One of the words of a list.
pub(super) fn is(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|w| w == word)
}

/// Letters, digits and underscores, and not a number.
pub(super) fn is_identifier(text: &str) -> bool {
    text.chars().all(is_word) && text.chars().any(|c| !c.is_ascii_digit())
}

/// What `\w` matches, near enough.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The part of a file's name after its last dot.
pub(super) fn extension(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.rsplit_once('.').map(|(_, ext)| ext).filter(|ext| ext.chars().all(is_word))
}

/// Endings of files in no language of [`LANGS`].
const ENDINGS: &str = "txt lock cfg conf ini log csv html css xml svg sql proto env rst adoc mk nix gradle mod sum";

/// Looks like a file or a directory.
pub(super) fn is_path(text: &str) -> bool {
    let odd = text.contains("://") || text.contains(|c: char| c.is_whitespace() || "(\"=<>;*{".contains(c));
    let known = extension(text).is_some_and(|ext| Lang::of(ext).is_some() || is(ext, ENDINGS));
    let plain = is(&text.to_lowercase(), ". makefile dockerfile readme license changelog");
    !odd && (plain || known || text.contains('/') && text.len() > 1 || text.starts_with(".git"))
}

fn role(text: &str, opening: bool) -> Word {
    let low = text.to_lowercase().replace('’', "'");
    let known = VOCABULARY.iter().find(|(_, words)| is(&low, words)).map(|(word, _)| *word);
    if text.chars().all(|c| c.is_ascii_digit() || c == '-') {
        Word::Number
    } else if text.strip_prefix('.').is_some_and(|ext| Lang::of(ext).is_some()) || text.contains(['*', '{']) {
        Word::Glob
    } else if is_path(text) {
        Word::Path
    } else if Lang::named(&low).is_some() {
        Word::Lang
    } else if !opening && known != Some(Word::Todo) && text.starts_with(char::is_uppercase) {
        // "where is List defined" asks for a name
        Word::Name
    } else {
        known.unwrap_or(if noun(&low).is_some() { Word::Def } else { Word::Name })
    }
}

fn tokens(prompt: &str) -> Vec<Token<'_>> {
    let mut out: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some((rest, first)) = prompt.get(at..).and_then(|rest| Some((rest, rest.chars().next()?))) {
        let found = quoted(rest, first).unwrap_or_else(|| word(rest));
        let (start, text, end) = found;
        if first.is_whitespace() || end == 0 {
            if let Some(last) = out.last_mut().filter(|_| first == '\n') {
                last.tail = '\n';
            }
            at += first.len_utf8();
            continue;
        }
        let quote = (start > 0 && first != '(').then_some(first);
        let opening = out.last().is_none_or(|t| ".;:!?\n".contains(t.tail));
        let word = if quote.is_some() { Word::Name } else { role(text, opening) };
        let tail = rest.get(end..).and_then(|r| r.chars().next()).filter(|c| ",.;:!?)".contains(*c)).unwrap_or(' ');
        let begins = if quote.is_some() { at } else { at + start };
        out.push(Token { text, word, quote, span: (begins, at + end), tail });
        at += end;
    }
    out
}

/// A string in quotes, back-quotes or a fence, with where it begins and what it takes in all.
fn quoted(rest: &str, open: char) -> Option<(usize, &str, usize)> {
    let (start, close) = match open {
        '\'' | '"' | '`' => (1, rest.get(..1)?),
        '“' => (open.len_utf8(), "”"),
        '‘' => (open.len_utf8(), "’"),
        _other => return None,
    };
    let body = rest.get(start..)?;
    // A `'` inside of a word does not close.
    let closes = |(at, _): &(usize, &str)| {
        open != '\'' || body.get(at + 1..).and_then(|r| r.chars().next()).is_none_or(|c| !is_word(c))
    };
    let (length, _) = body.match_indices(close).find(closes)?;
    let text = body.get(..length)?;
    Some((start, text, start + length + close.len()))
}

fn word(rest: &str) -> (usize, &str, usize) {
    let whole = rest.split(char::is_whitespace).next().unwrap_or_default();
    let closing = |c: char| ",.;:!?".contains(c) || c == ')' && !whole.contains('(');
    let text = if whole.chars().all(|c| c == '.') { whole } else { whole.trim_end_matches(closing) };
    let inner = text.trim_start_matches('(');
    (text.len() - inner.len(), inner, text.len())
}

/// How a clause hangs on the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// Done whatever became of the one before.
    And,
    /// Not done when the one before failed.
    Then,
}

/// A piece of the prompt that asks for one thing.
#[derive(Debug)]
pub(super) struct Clause<'a> {
    pub(super) joint: Joint,
    /// The prompt up to where the next clause begins.
    pub(super) prompt: &'a str,
    /// At least one; neither the first nor the last is glue.
    pub(super) tokens: Vec<Token<'a>>,
}

/// The clauses of a prompt, in order.
pub(super) fn clauses<'a>(prompt: &'a str) -> Vec<Clause<'a>> {
    let empty = |w: Word| matches!(w, Word::Glue | Word::And | Word::Then);
    let mut groups: Vec<(Joint, Vec<Token<'a>>)> = vec![(Joint::And, Vec::new())];
    for token in tokens(prompt) {
        let Some((_, group)) = groups.last_mut() else { break };
        let after = group.last().is_some_and(|t| t.word == Word::And || ",.;!?\n:".contains(t.tail));
        // "in src, how many …" says where first
        let place = group.first().is_some_and(|t| t.word == Word::In);
        let then = token.word == Word::Then;
        if (then || after && !place && token.word.asks()) && group.iter().any(|t| !empty(t.word)) {
            groups.push((if then { Joint::Then } else { Joint::And }, Vec::new()));
        }
        groups.last_mut().into_iter().for_each(|(_, group)| group.push(token.clone()));
    }
    let ends: Vec<usize> = groups.iter().skip(1).filter_map(|(_, next)| Some(next.first()?.span.0)).collect();
    let clause = |((joint, mut tokens), end): ((Joint, Vec<Token<'a>>), usize)| {
        tokens.drain(..tokens.iter().take_while(|t| empty(t.word)).count());
        tokens.truncate(tokens.len() - tokens.iter().rev().take_while(|t| empty(t.word)).count());
        let prompt = prompt.get(..end).unwrap_or(prompt).trim_end_matches([',', ';', ' ', '\n']);
        let prompt = prompt.strip_suffix(" and").unwrap_or(prompt);
        (!tokens.is_empty()).then_some(Clause { joint, prompt, tokens })
    };
    groups.into_iter().zip(ends.into_iter().chain([prompt.len()])).filter_map(clause).collect()
}

/// Everything that gives something a name: kinds of definition, as in the tables of [`LANGS`].
pub(super) const ALL_DEFS: &str = "fn struct enum trait alias class const mod macro";

/// Nouns, the kinds of definition they stand for, and how an answer calls these.
const NOUNS: &[(&str, &str, &str)] = &[
    ("function functions fn fns method methods func funcs", "fn", "functions"),
    ("struct structs", "struct", "structs"),
    ("enum enums", "enum", "enums"),
    ("trait traits interface interfaces", "trait", "traits and interfaces"),
    ("class classes", "class", "classes"),
    ("type types", "struct enum trait alias class", "types"),
    ("constant constants consts statics", "const", "constants"),
    ("modules", "mod", "modules"),
    ("macro macros", "macro", "macros"),
    ("test tests", "test", "tests"),
];

/// The kinds of definition a word stands for, and their plural.
pub(super) fn noun(word: &str) -> Option<(&'static str, &'static str)> {
    NOUNS.iter().find(|(words, ..)| is(word, words)).map(|(_, kinds, plural)| (*kinds, *plural))
}

/// A language: enough to find its definitions line by line. In a pattern `@` stands for the name, `~` for what may
/// stand before a Rust item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lang {
    pub(super) name: &'static str,
    words: &'static str,
    exts: &'static str,
    defs: &'static [(&'static str, &'static str)],
}

const fn lang(
    name: &'static str,
    words: &'static str,
    exts: &'static str,
    defs: &'static [(&'static str, &'static str)],
) -> Lang {
    Lang { name, words, exts, defs }
}

const LANGS: &[Lang] = &[
    lang("Rust", "rust", "rs", RUST),
    lang("Python", "python py", "py pyi", PYTHON),
    lang("JavaScript", "javascript js node", "js mjs cjs jsx", SCRIPT),
    lang("TypeScript", "typescript ts", "ts tsx", SCRIPT),
    lang("Go", "go golang", "go", GO),
    lang("C", "c", "c h", NATIVE),
    lang("C++", "c++ cpp", "cc cpp cxx hh hpp", NATIVE),
    lang("Shell", "shell bash", "sh bash", &[("fn", r"^\s*(?:function\s+)?@\s*\(\)")]),
    lang("Markdown", "markdown md", "md", &[]),
    lang("TOML", "toml", "toml", &[]),
    lang("JSON", "json", "json", &[]),
    lang("YAML", "yaml yml", "yml yaml", &[]),
];

const ITEM: &str = r#"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|safe|extern(?:\s+"[^"]*")?)\s+)*"#;
const RUST: &[(&str, &str)] = &[
    ("fn", r"~fn\s+@"),
    ("struct", r"~(?:struct|union)\s+@"),
    ("enum", r"~enum\s+@"),
    ("trait", r"~(?:auto\s+)?trait\s+@"),
    ("alias", r"~type\s+@"),
    ("const", r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?@\s*:"),
    ("mod", r"~mod\s+@"),
    ("macro", r"^\s*macro_rules!\s*@"),
    ("test", r"^\s*#\[(?:\w+::)*test\b"),
    ("import", r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|extern\s+crate)\s+(?:.*\b)?@"),
];
const PYTHON: &[(&str, &str)] = &[
    ("fn", r"^\s*(?:async\s+)?def\s+@"),
    ("class", r"^\s*class\s+@"),
    ("const", r"^@\s*(?::[^=]+)?=[^=]"),
    ("test", r"^\s*(?:async\s+)?def\s+test"),
    ("import", r"^\s*(?:import\s+(?:.*[\s,.])?@|from\s+(?:\S*\.)?@|from\s.*\bimport\s+(?:.*[\s,(])?@)"),
];
const SCRIPT: &[(&str, &str)] = &[
    ("fn", r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*@"),
    ("fn", r"^\s*(?:export\s+)?(?:const|let|var)\s+@\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>|\w+\s*=>)"),
    ("class", r"^\s*(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+@"),
    ("trait", r"^\s*(?:export\s+)?interface\s+@"),
    ("alias", r"^\s*(?:export\s+)?type\s+@"),
    ("enum", r"^\s*(?:export\s+)?(?:const\s+)?enum\s+@"),
    ("const", r"^(?:export\s+)?(?:const|let|var)\s+@"),
    ("test", r"^\s*(?:it|test)(?:\.\w+)?\s*\("),
    ("import", r#"^\s*(?:import\b.*["'](?:[^"']*/)?@|.*\brequire\(\s*["'](?:[^"']*/)?@)"#),
];
const GO: &[(&str, &str)] = &[
    ("fn", r"^func\s+(?:\([^)]*\)\s*)?@"),
    ("struct", r"^type\s+@\s+struct\b"),
    ("trait", r"^type\s+@\s+interface\b"),
    ("const", r"^(?:const|var)\s+@"),
    ("test", r"^func\s+Test"),
    ("import", r#"^\s*(?:import\s+)?(?:\w+\s+)?"(?:[^"]*/)?@"#),
];
const NATIVE: &[(&str, &str)] = &[
    ("fn", r"^[A-Za-z_][\w\s*&:<>,]*[\s*&](?:\w+::)*@\s*\([^;]*$"),
    ("struct", r"^\s*(?:typedef\s+)?struct\s+@[^;]*$"),
    ("class", r"^\s*(?:template\s*<[^>]*>\s*)?class\s+@[^;]*$"),
    ("enum", r"^\s*(?:typedef\s+)?enum\s+(?:class\s+)?@"),
    ("macro", r"^\s*#\s*define\s+@"),
    ("import", r#"^\s*#\s*include\s*[<"](?:[^>"]*/)?@"#),
];
impl Lang {
    /// The language a word names.
    pub(super) fn named(word: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|lang| is(word, lang.words))
    }

    /// The language of a file extension.
    pub(super) fn of(ext: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|lang| is(ext, lang.exts))
    }

    pub(super) fn has_definitions(&self) -> bool {
        !self.defs.is_empty()
    }

    /// A glob of its files.
    pub(super) fn glob(&self) -> String {
        if self.exts.contains(' ') {
            format!("*.{{{}}}", self.exts.replace(' ', ","))
        } else {
            format!("*.{}", self.exts)
        }
    }

    /// A regex of the lines that define one of `kinds` under `name`, or under any.
    pub(super) fn pattern(&self, kinds: &str, name: Option<&str>) -> Option<String> {
        let name = name.map_or_else(|| r"[A-Za-z_$][\w$]*".to_owned(), |name| format!(r"{}\b", regex_escape(name)));
        let wanted = self.defs.iter().filter(|(kind, _)| is(kind, kinds));
        let parts: Vec<String> = wanted.map(|(_, regex)| regex.replacen('~', ITEM, 1).replace('@', &name)).collect();
        (!parts.is_empty()).then(|| parts.join("|"))
    }
}

/// Text as a regex that matches exactly it.
pub(super) fn regex_escape(text: &str) -> String {
    text.chars().flat_map(|c| r"\.+*?()|[]{}^$".contains(c).then_some('\\').into_iter().chain([c])).collect()
}
