//! Words, quoted strings and clauses of a prompt, and what is known of programming languages.

/// One word or quoted string of a prompt.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    /// As written, without quotes and trailing punctuation.
    pub(super) text: &'a str,
    /// Lower case; empty for a quoted string, which is never a word of the grammar.
    pub(super) low: String,
    /// The opening quote.
    pub(super) quote: Option<char>,
    /// Where it begins and ends in the prompt, quotes included.
    pub(super) span: (usize, usize),
    /// The punctuation or line end that follows it; a space when there is none.
    pub(super) tail: char,
}

impl Token<'_> {
    /// Looks like a file, a directory or a glob.
    pub(super) fn is_path(&self) -> bool {
        let t = self.text;
        if t.is_empty() || t.contains(char::is_whitespace) || t.contains("://") || t.contains(['(', '"', '=', '<']) {
            return false;
        }
        let plain_name = is(&self.low, "makefile dockerfile readme license changelog");
        t == "." || t.contains('/') && t.len() > 1 || is_glob(t) || plain_name || extension(t).is_some()
    }

    /// A name in a program: letters, digits and underscores, with `()` and `!` taken off its end.
    pub(super) fn symbol(&self) -> &str {
        self.text.trim_end_matches("()").trim_end_matches('!')
    }
}

/// `*`, `?` or braces make a glob.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '{']) || text.contains('?') && text.len() > 1
}

/// The extension of a file name, when it has one that starts with a letter.
pub(super) fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (stem, ext) = name.rsplit_once('.')?;
    let fits = ext.len() <= 10 && ext.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = ext.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (fits && plain && !stem.ends_with('.') && !(stem.is_empty() && ext.is_empty())).then_some(ext)
}

/// A name of letters, digits and underscores.
pub(super) fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word) && !text.chars().all(|c| c.is_ascii_digit())
}

/// What `\w` matches, near enough.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// One of the words of a list.
pub(super) fn is(word: &str, list: &str) -> bool {
    !word.is_empty() && list.split_ascii_whitespace().any(|w| w == word)
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
    pub(super) tokens: Vec<Token<'a>>,
    /// The prompt from the clause's first word to its last.
    pub(super) text: &'a str,
    /// The same with the punctuation that follows it.
    pub(super) loose: &'a str,
}

/// Words that can begin a clause after "and", a comma or a full stop.
const STARTERS: &str = "\
    list ls find locate search grep look count how read show print cat open display view summarise summarize \
    describe explain outline replace rename change substitute create write make add run execute test build compile \
    check what what's where which who tell give please is does overwrite do use delete remove fix commit";

/// Words that carry nothing at the start of a clause.
const FILLERS: &str = "\
    please can could would you i want to need i'd like now also just kindly hey hi hello let's lets us first then \
    finally next and afterwards yoi after that";

/// The clauses of a prompt, in order, without the words that join them.
pub(super) fn clauses(prompt: &str) -> Vec<Clause<'_>> {
    let tokens = tokens(prompt);
    let mut groups: Vec<(Joint, Vec<Token<'_>>)> = Vec::new();
    let mut joint = Joint::And;
    let mut group: Vec<Token<'_>> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let then = token.quote.is_none() && is(&token.low, "then afterwards finally");
        let before = group.last().map_or(' ', |t: &Token<'_>| t.tail);
        let after_and = group.last().is_some_and(|t| t.low == "and");
        let starter = is(&token.low, STARTERS) || token.low == "after" && next_is(&tokens, i, "that");
        let fresh = starter && (after_and || matches!(before, ',' | '.' | ';' | '!' | '?' | '\n' | ':'));
        // "in src, how many …" says where first
        let place = group.first().is_some_and(|t| is(&t.low, "in under within inside"));
        if (then || fresh && !place) && group.iter().any(|t| !is(&t.low, FILLERS)) {
            groups.push((joint, std::mem::take(&mut group)));
            joint = if then || token.low == "after" { Joint::Then } else { Joint::And };
        }
        group.push(token.clone());
    }
    groups.push((joint, group));
    groups.into_iter().filter_map(|(joint, tokens)| clause(prompt, joint, tokens)).collect()
}

fn next_is(tokens: &[Token<'_>], i: usize, word: &str) -> bool {
    tokens.get(i + 1).is_some_and(|t| t.low == word)
}

/// Takes the fillers off a clause's start and a dangling "and" off its end.
fn clause<'a>(prompt: &'a str, joint: Joint, mut tokens: Vec<Token<'a>>) -> Option<Clause<'a>> {
    let lead = tokens.iter().take_while(|t| is(&t.low, FILLERS)).count();
    tokens.drain(..lead);
    while tokens.last().is_some_and(|t| is(&t.low, "and please thanks")) {
        tokens.pop();
    }
    let (start, end) = (tokens.first()?.span.0, tokens.last()?.span.1);
    let text = prompt.get(start..end)?;
    let after = prompt.get(end..)?.find(char::is_whitespace).map_or(prompt.len(), |n| end + n);
    Some(Clause { joint, tokens, text, loose: prompt.get(start..after)? })
}

fn tokens(prompt: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(rest) = prompt.get(at..).filter(|r| !r.is_empty()) {
        let skipped = rest.len() - rest.trim_start().len();
        if skipped > 0 {
            let broke = rest.get(..skipped).is_some_and(|s| s.contains('\n'));
            if let Some(last) = out.last_mut().filter(|t: &&mut Token<'_>| broke && t.tail == ' ') {
                last.tail = '\n';
            }
            at += skipped;
            continue;
        }
        let token = quoted(rest, at).unwrap_or_else(|| word(rest, at));
        at = token.span.1.max(at + 1) + if token.tail == ' ' { 0 } else { token.tail.len_utf8() };
        while !prompt.is_char_boundary(at) {
            at += 1;
        }
        if !token.text.is_empty() || token.quote.is_some() {
            out.push(token);
        }
    }
    out
}

/// A string in quotes, back-quotes or a fence. `'` closes only where a word could end, so that `what's` is a word.
fn quoted(rest: &str, at: usize) -> Option<Token<'_>> {
    let open = rest.chars().next()?;
    let fence = rest.starts_with("```");
    let close = match open {
        '`' if fence => "```",
        '\'' | '"' | '`' => rest.get(..1)?,
        '“' => "”",
        '‘' => "’",
        _other => return None,
    };
    let start = if fence { 3 } else { open.len_utf8() };
    let body = rest.get(start..)?;
    let ends = |(i, _): &(usize, &str)| {
        let next = body.get(i + close.len()..).and_then(|r| r.chars().next());
        fence || open != '\'' || next.is_none_or(|c| !is_word(c))
    };
    let (length, _) = body.match_indices(close).find(ends)?;
    let mut text = body.get(..length)?;
    if fence && let Some((first, code)) = text.split_once('\n') {
        // the first line of a fence names the language
        text = if first.contains(' ') { text } else { code };
    }
    let end = start + length + close.len();
    let after = rest.get(end..)?.chars().next();
    let tail = after.filter(|c| ",.;:!?".contains(*c)).unwrap_or(' ');
    Some(Token { text, low: String::new(), quote: Some(open), span: (at, at + end), tail })
}

fn word(rest: &str, at: usize) -> Token<'_> {
    let whole = rest.split(char::is_whitespace).next().unwrap_or(rest);
    let dots = whole.chars().all(|c| c == '.');
    let closing = |c: char| ",.;:!?".contains(c) || c == ')' && !whole.contains('(');
    let text = if dots { whole } else { whole.trim_end_matches(closing).trim_start_matches('(') };
    let start = at + whole.find(text).unwrap_or(0);
    let end = start + text.len();
    let tail = rest.get(end - at..).and_then(|r| r.chars().next()).filter(|c| ",.;:!?)".contains(*c)).unwrap_or(' ');
    Token { text, low: text.to_lowercase().replace('’', "'"), quote: None, span: (start, end), tail }
}

/// A kind of definition that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Struct,
    Enum,
    Trait,
    Alias,
    Class,
    Constant,
    Module,
    Macro,
    Test,
    Import,
}

/// What is known of a language: enough to find definitions line by line. `@` stands for the name.
#[derive(Debug)]
pub(super) struct Lang {
    pub(super) name: &'static str,
    pub(super) words: &'static [&'static str],
    pub(super) exts: &'static [&'static str],
    pub(super) defs: &'static [(Kind, &'static str)],
}

const RUST: &str = r#"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern(?:\s+"[^"]*")?)\s+)*"#;
const SCRIPT: &[(Kind, &str)] = &[
    (Kind::Function, r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*@"),
    (
        Kind::Function,
        r"^\s*(?:export\s+)?(?:const|let|var)\s+@\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>|\w+\s*=>)",
    ),
    (Kind::Class, r"^\s*(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+@"),
    (Kind::Trait, r"^\s*(?:export\s+)?interface\s+@"),
    (Kind::Alias, r"^\s*(?:export\s+)?type\s+@"),
    (Kind::Enum, r"^\s*(?:export\s+)?(?:const\s+)?enum\s+@"),
    (Kind::Constant, r"^(?:export\s+)?(?:const|let|var)\s+@"),
    (Kind::Test, r"^\s*(?:it|test)(?:\.\w+)?\s*\("),
    (Kind::Import, r#"^\s*(?:import\b.*["'](?:[^"']*/)?@|.*\brequire\(\s*["'](?:[^"']*/)?@)"#),
];
const NATIVE: &[(Kind, &str)] = &[
    (Kind::Function, r"^[A-Za-z_][\w\s*&:<>,]*[\s*&](?:\w+::)*@\s*\([^;]*$"),
    (Kind::Struct, r"^\s*(?:typedef\s+)?struct\s+@[^;]*$"),
    (Kind::Class, r"^\s*(?:template\s*<[^>]*>\s*)?class\s+@[^;]*$"),
    (Kind::Enum, r"^\s*(?:typedef\s+)?enum\s+(?:class\s+)?@"),
    (Kind::Macro, r"^\s*#\s*define\s+@"),
    (Kind::Import, r#"^\s*#\s*include\s*[<"](?:[^>"]*/)?@"#),
];

/// The languages whose definitions are understood, then the formats that only have a name.
pub(super) const LANGS: &[Lang] = &[
    Lang {
        name: "Rust",
        words: &["rust"],
        exts: &["rs"],
        defs: &[
            (Kind::Function, r"~fn\s+@"),
            (Kind::Struct, r"~(?:struct|union)\s+@"),
            (Kind::Enum, r"~enum\s+@"),
            (Kind::Trait, r"~(?:auto\s+)?trait\s+@"),
            (Kind::Alias, r"~type\s+@"),
            (Kind::Constant, r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?@\s*:"),
            (Kind::Module, r"~mod\s+@"),
            (Kind::Macro, r"^\s*macro_rules!\s*@"),
            (Kind::Test, r"^\s*#\[(?:\w+::)*test\b"),
            (Kind::Import, r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|extern\s+crate)\s+(?:.*\b)?@"),
        ],
    },
    Lang {
        name: "Python",
        words: &["python", "py"],
        exts: &["py", "pyi"],
        defs: &[
            (Kind::Function, r"^\s*(?:async\s+)?def\s+@"),
            (Kind::Class, r"^\s*class\s+@"),
            (Kind::Constant, r"^@\s*(?::[^=]+)?=[^=]"),
            (Kind::Test, r"^\s*(?:async\s+)?def\s+test"),
            (Kind::Import, r"^\s*(?:import\s+(?:.*[\s,.])?@|from\s+(?:\S*\.)?@|from\s.*\bimport\s+(?:.*[\s,(])?@)"),
        ],
    },
    Lang { name: "JavaScript", words: &["javascript", "js", "node"], exts: &["js", "mjs", "cjs", "jsx"], defs: SCRIPT },
    Lang { name: "TypeScript", words: &["typescript", "ts"], exts: &["ts", "tsx"], defs: SCRIPT },
    Lang {
        name: "Go",
        words: &["go", "golang"],
        exts: &["go"],
        defs: &[
            (Kind::Function, r"^func\s+(?:\([^)]*\)\s*)?@"),
            (Kind::Struct, r"^type\s+@\s+struct\b"),
            (Kind::Trait, r"^type\s+@\s+interface\b"),
            (Kind::Constant, r"^(?:const|var)\s+@"),
            (Kind::Test, r"^func\s+Test"),
            (Kind::Import, r#"^\s*(?:import\s+)?(?:\w+\s+)?"(?:[^"]*/)?@"#),
        ],
    },
    Lang { name: "C", words: &["c"], exts: &["c", "h"], defs: NATIVE },
    Lang { name: "C++", words: &["c++", "cpp"], exts: &["cc", "cpp", "cxx", "hh", "hpp"], defs: NATIVE },
    Lang {
        name: "Java",
        words: &["java"],
        exts: &["java"],
        defs: &[
            (Kind::Class, r"^\s*(?:\w+\s+)*(?:class|record)\s+@"),
            (Kind::Trait, r"^\s*(?:\w+\s+)*interface\s+@"),
            (Kind::Enum, r"^\s*(?:\w+\s+)*enum\s+@"),
            (Kind::Function, r"^\s+(?:(?:public|private|protected|static|final)\s+)+[\w<>\[\], ?]+\s+@\s*\("),
            (Kind::Test, r"^\s*\x40Test\b"),
            (Kind::Import, r"^\s*import\s+(?:.*\b)?@"),
        ],
    },
    Lang {
        name: "Ruby",
        words: &["ruby"],
        exts: &["rb"],
        defs: &[
            (Kind::Function, r"^\s*def\s+(?:self\.)?@"),
            (Kind::Class, r"^\s*class\s+@"),
            (Kind::Module, r"^\s*module\s+@"),
        ],
    },
    Lang {
        name: "Shell",
        words: &["shell", "bash"],
        exts: &["sh", "bash"],
        defs: &[(Kind::Function, r"^\s*(?:function\s+)?@\s*\(\)")],
    },
    Lang { name: "Markdown", words: &["markdown", "md"], exts: &["md"], defs: &[] },
    Lang { name: "TOML", words: &["toml"], exts: &["toml"], defs: &[] },
    Lang { name: "JSON", words: &["json"], exts: &["json"], defs: &[] },
    Lang { name: "YAML", words: &["yaml", "yml"], exts: &["yml", "yaml"], defs: &[] },
];

impl Lang {
    /// The language a word names.
    pub(super) fn named(word: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|l| l.words.contains(&word))
    }

    /// The language of a file extension.
    pub(super) fn of(ext: &str) -> Option<&'static Lang> {
        LANGS.iter().find(|l| l.exts.contains(&ext))
    }

    /// A glob of its files.
    pub(super) fn glob(&self) -> String {
        match self.exts {
            [only] => format!("*.{only}"),
            many => format!("*.{{{}}}", many.join(",")),
        }
    }

    /// A regex of the lines that define one of `kinds` under `name`; any name when `None`.
    pub(super) fn pattern(&self, kinds: &[Kind], name: Option<&str>) -> Option<String> {
        let name = name.map_or_else(|| r"[A-Za-z_$][\w$]*".to_owned(), |n| format!(r"{}\b", regex_escape(n)));
        let parts: Vec<String> = self
            .defs
            .iter()
            .filter(|(kind, _)| kinds.contains(kind))
            .map(|(_, regex)| regex.replacen('~', RUST, 1).replace('@', &name))
            .collect();
        (!parts.is_empty()).then(|| parts.join("|"))
    }
}

/// Text as a regex that matches exactly it.
pub(super) fn regex_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
