//! What a prompt asks for: one intent for each clause, or what of a clause is not understood.
//!
//! [`RULES`] is the whole language. What a rule's pattern does not take is not guessed at.

use crate::grammar::{Match, Matcher, is_filler, is_path};
use crate::lang::{ALL_DEFS, Lang, noun};
use crate::lex::{ENDS, Token, attached, extension, is, is_identifier, regex_escape, tokens};
use crate::rules::{Ask, PIPED, RULES};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Something asked for.
#[derive(Clone, Debug)]
pub(crate) enum Intent {
    Help,
    List {
        depth: u64,
        path: Option<String>,
    },
    Largest {
        most: u64,
        path: Option<String>,
    },
    Find {
        glob: String,
        path: Option<String>,
    },
    Search {
        what: Sought,
        files: bool,
        scope: Scope,
    },
    Count {
        what: Counted,
        scope: Scope,
    },
    Read {
        path: String,
        part: Part,
    },
    SummariseFile {
        path: String,
    },
    SummariseDir {
        path: Option<String>,
    },
    Replace {
        old: String,
        new: String,
        whole_word: bool,
        scope: Scope,
    },
    Create {
        path: String,
        content: String,
        overwrite: bool,
    },
    Run(Task),
    /// Of the text that was piped in: how many lines, or which lines have one of these texts.
    Piped {
        texts: Option<Vec<String>>,
        count: bool,
    },
}

/// Files that say what a project is.
pub(crate) const MANIFESTS: &str = "{Cargo.toml,package.json,pyproject.toml,setup.py,go.mod}";

/// Which files; everything under the working directory when empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) path: Option<String>,
    pub(crate) glob: Option<String>,
    pub(crate) lang: Option<&'static Lang>,
}

#[derive(Clone, Debug)]
pub(crate) enum Sought {
    /// Lines that match.
    Text { regex: String, shown: String },
    /// Definitions of these kinds, under a name or any.
    Defined { kinds: &'static str, plural: &'static str, name: Option<String> },
}

#[derive(Clone, Debug)]
pub(crate) enum Counted {
    Lines,
    Files,
    Found { what: Sought, files: bool },
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    All,
    Lines(u64, u64),
    Last(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Task {
    Command(String),
    Script(String),
    /// The project's own tests, or its build.
    Project {
        tests: bool,
        path: Option<String>,
    },
}

/// How a clause hangs on the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    /// Done whatever became of the one before.
    And,
    /// Not done when the one before failed.
    Then,
}

/// Why a prompt is not understood.
#[derive(Clone, Debug)]
pub(crate) struct Misread {
    /// The words that fit nothing, as written.
    pub(crate) part: String,
    /// The same prompt without them, where that is understood.
    pub(crate) nearest: Option<String>,
    /// Another reason than words too many.
    pub(crate) why: &'static str,
}

/// Words of a prompt that are looked at; a longer one is no request that fits a rule.
const MAX_TOKENS: usize = 400;
/// Words that are left out together to find a prompt that is understood.
const MAX_ODD: usize = 12;
/// Words that join two clauses, and the ones of them that make the second wait for the first.
const JOINS: &str = "and then afterwards finally also";
const WAITS: &str = "then afterwards finally";
/// Words whose absence turns a request round.
const REVERSE: &str = "not don't dont no never without except but neither nor stop avoid undo instead";

/// The intents of a prompt with how each hangs on the one before.
pub(crate) fn parse(prompt: &str) -> Result<Vec<(Joint, Intent)>, Misread> {
    let (head, piped) = attached(prompt);
    let misread = |part: &str, why| Misread { part: part.to_owned(), nearest: None, why };
    let all = tokens(head).map_err(|at| misread(head.get(at..).unwrap_or(head), "the quote is not closed"))?;
    if all.iter().all(is_filler) {
        return Err(misread(head.trim(), ""));
    }
    if all.len() > MAX_TOKENS {
        return Err(misread(head.trim(), "it is longer than anything that is understood"));
    }
    let rules = if piped.is_some() { PIPED } else { RULES };
    if let Ok(intents) = read(head, &all, rules, true) {
        return Ok(intents);
    }
    read(head, &all, rules, false).map_err(|at| Misread {
        why: piped.map_or(
            "",
            |_| "of piped text, lines can be counted and searched; to review or explain it needs a language model",
        ),
        ..odd(head, &all, rules, at)
    })
}

type Rules = &'static [(Ask, &'static str)];

/// The intents of these tokens; else where the clause that is not understood begins, and the token that does not fit.
/// With `bare` a word without any mark may be a directory.
fn read<'a>(
    prompt: &'a str,
    tokens: &'a [Token<'a>],
    rules: Rules,
    bare: bool,
) -> Result<Vec<(Joint, Intent)>, (usize, usize)> {
    let matcher = Matcher { tokens, bare, farthest: 0 };
    let mut reader = Reader { prompt, rules, matcher, failed: BTreeSet::new(), out: Vec::new() };
    if reader.clauses(0, Joint::And, None) {
        return Ok(reader.out);
    }
    Err((reader.failed.last().copied().unwrap_or(0), reader.matcher.farthest))
}

/// What is not understood: the fewest words from the one that does not fit on without which the rest is understood, else
/// the rest of the clause. Where no more than the first word of a clause fits, the clause.
fn odd(prompt: &str, tokens: &[Token<'_>], rules: Rules, (start, at): (usize, usize)) -> Misread {
    let at = at.min(tokens.len().saturating_sub(1));
    let begin = |at: usize| tokens.get(at).map_or(prompt.len(), |token| token.span.0);
    let end = |at: usize| tokens.get(at).map_or(prompt.len(), |token| token.span.1);
    let part = |from: usize, to: usize| prompt.get(begin(from)..end(to)).unwrap_or_default().to_owned();
    let to = tokens.len().min(at + MAX_ODD);
    for (from, last) in [at, start].into_iter().flat_map(|from| (at..to).map(move |last| (from, last))) {
        let left = [prompt.get(..begin(from)), prompt.get(end(last)..)].map(Option::unwrap_or_default).concat();
        if self::tokens(&left).is_ok_and(|tokens| read(&left, &tokens, rules, false).is_ok()) {
            let turned = tokens.get(from..=last).is_some_and(|odd| odd.iter().any(|token| is(&token.low, REVERSE)));
            let nearest = (!turned).then(|| left.split_whitespace().collect::<Vec<_>>().join(" "));
            return Misread { part: part(from, last), nearest, why: "" };
        }
    }
    let fits = tokens.iter().take(at).skip(start).filter(|token| !is_filler(token)).count();
    let from = if fits < 2 { start } else { at };
    let ends = |at: &usize| ends_clause(tokens, at + 1);
    Misread { part: part(from, (at..tokens.len()).find(ends).unwrap_or(at)), nearest: None, why: "" }
}

fn joins(token: &Token<'_>) -> bool {
    token.quote.is_none() && is(&token.low, JOINS)
}

/// Whether a clause may end before this token.
fn ends_clause(tokens: &[Token<'_>], at: usize) -> bool {
    let stop = |token: &Token<'_>| ENDS.contains(token.tail);
    tokens.get(at).is_none_or(joins) || tokens.get(at.saturating_sub(1)).is_some_and(stop)
}

struct Reader<'a> {
    prompt: &'a str,
    rules: Rules,
    matcher: Matcher<'a>,
    /// Where no clause begins.
    failed: BTreeSet<usize>,
    out: Vec<(Joint, Intent)>,
}

impl<'a> Reader<'a> {
    /// Reads clauses from a token to the end, the longest first. `last` is the path named last.
    fn clauses(&mut self, from: usize, joint: Joint, last: Option<&'a str>) -> bool {
        let tokens = self.matcher.tokens;
        for (ask, found) in self.clause(from) {
            let filled = Filled { prompt: self.prompt, tokens, from, found: &found, last };
            let Some(intents) = filled.intents(ask) else { continue };
            let path = filled.path().or(last);
            let joined = tokens.iter().skip(found.at).take_while(|token| joins(token)).count();
            let next = found.at + joined;
            let waits = tokens.iter().skip(found.at).take(joined).any(|token| is(&token.low, WAITS));
            let length = self.out.len();
            self.out.extend(intents.into_iter().map(|intent| (joint, intent)));
            let ended = found.at == tokens.len();
            let more = !ended && !self.failed.contains(&next);
            if ended || more && self.clauses(next, if waits { Joint::Then } else { Joint::And }, path) {
                return true;
            }
            self.out.truncate(length);
        }
        self.failed.insert(from);
        false
    }

    /// The ways in which a clause can be understood that begins here: the longest first, then in the order of the rules.
    fn clause(&mut self, from: usize) -> Vec<(Ask, Match)> {
        let starts = self.matcher.starts(from);
        let mut all = Vec::new();
        for (ask, pattern) in self.rules {
            for found in self.matcher.matches(pattern, starts.clone()) {
                if ends_clause(self.matcher.tokens, found.at) {
                    all.push((*ask, found));
                } else {
                    self.matcher.farthest = self.matcher.farthest.max(found.at);
                }
            }
        }
        all.sort_by_key(|(_, found)| Reverse(found.at));
        all
    }
}

/// A clause that a pattern took whole.
struct Filled<'a, 'm> {
    prompt: &'a str,
    tokens: &'a [Token<'a>],
    from: usize,
    found: &'m Match,
    last: Option<&'a str>,
}

impl<'a> Filled<'a, '_> {
    /// The words of the clause that fill no slot.
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let clause = self.tokens.iter().enumerate().take(self.found.at).skip(self.from);
        clause
            .filter(|(at, token)| token.quote.is_none() && !self.found.fills(*at))
            .map(|(_, token)| token.low.as_str())
    }

    fn has(&self, word: &str) -> bool {
        self.words().any(|w| w == word)
    }

    /// It is a question: a question mark at its end is no part of a name.
    fn asks(&self) -> bool {
        self.words().next().is_some_and(|word| is(word, "what which who where how is are does do can could would"))
    }

    fn all(&self, slot: &'static str) -> impl Iterator<Item = &'a Token<'a>> {
        self.found.slot(slot).filter_map(|at| self.tokens.get(at))
    }

    fn token(&self, slot: &str) -> Option<&'a Token<'a>> {
        self.tokens.get(self.found.slot(slot).next()?)
    }

    /// The path named, for "it" in what follows.
    fn path(&self) -> Option<&'a str> {
        ["path", "new", "script", "dir", "folder"].iter().find_map(|slot| self.token(slot)).map(|token| token.text)
    }

    /// Text as it is meant: what is quoted as it stands, else with the marks that are a part of it.
    fn literal(&self, slot: &str) -> Option<String> {
        let token = self.token(slot)?;
        let behind = self.prompt.get(token.span.1..).filter(|_| token.quote.is_none()).unwrap_or_default();
        let marks = behind.get(..behind.find(|c| !"!?".contains(c)).unwrap_or(behind.len())).unwrap_or_default();
        let marks = if self.asks() { marks.strip_suffix('?').unwrap_or(marks) } else { marks };
        Some(format!("{}{marks}", token.text))
    }

    /// `None` when more than one place, or more than one sort of file, is named.
    fn scope(&self) -> Option<Scope> {
        let mut paths = self.all("dir").chain(self.all("path")).chain(self.all("folder"));
        let path = paths.next().map(|token| token.text.to_owned()).filter(|path| path != ".");
        let mut globs = self.all("glob").chain(self.all("ext")).map(|t| {
            let ext = t.text.trim_start_matches('.');
            if t.text.contains(['*', '{']) { t.text.to_owned() } else { format!("*.{ext}") }
        });
        let glob = globs.next();
        let mut langs = self.all("lang").filter_map(|token| Lang::named(&token.low));
        let lang = langs.next();
        let one = paths.next().is_none() && globs.next().is_none() && langs.next().is_none();
        (one && (glob.is_none() || lang.is_none())).then_some(Scope { path, glob, lang })
    }

    fn number(&self, at: usize) -> Option<u64> {
        self.all("num").nth(at)?.text.parse().ok()
    }

    fn intents(&self, ask: Ask) -> Option<Vec<Intent>> {
        let paths = || self.all("path");
        let file = |token: &Token<'_>| token.quote.is_some() || is_file(token.text);
        let read = |token: &Token<'_>, part: &Part| match part {
            Part::All if !file(token) => Intent::List { depth: 1, path: Some(token.text.to_owned()) },
            _part => Intent::Read { path: token.text.to_owned(), part: part.clone() },
        };
        match ask {
            Ask::Read => {
                let part = self.part()?;
                return Some(paths().map(|token| read(token, &part)).collect());
            }
            Ask::Outline => {
                let (file, path) = paths().next().map(|token| (file(token), token.text.to_owned()))?;
                let whole = Intent::SummariseDir { path: Some(path.clone()) };
                return Some(vec![if file { Intent::SummariseFile { path } } else { whole }]);
            }
            _other => {}
        }
        let act = self.acts(ask).or_else(|| self.looks(ask));
        act.or_else(|| self.sought(ask)).map(|intent| vec![intent])
    }

    /// What only looks at names and sizes, and what is asked of piped text.
    fn looks(&self, ask: Ask) -> Option<Intent> {
        let scope = self.scope()?;
        let path = scope.path.clone();
        let narrow = scope.glob.is_some() || scope.lang.is_some();
        let folder = self.token("folder").map(|token| token.text.to_owned());
        let glob = scope.glob.clone().or_else(|| scope.lang.map(Lang::glob));
        Some(match ask {
            Ask::Help => Intent::Help,
            Ask::Entries if !narrow => Intent::List { depth: 1, path: folder.or(path) },
            Ask::Tree if !narrow => Intent::List { depth: 4, path },
            Ask::Largest if !narrow => {
                Intent::Largest { most: self.number(0).unwrap_or(if self.has("file") { 1 } else { 10 }), path }
            }
            Ask::AllFiles | Ask::Entries => Intent::Find { glob: glob.unwrap_or_else(|| "*".to_owned()), path },
            Ask::Named if !narrow => {
                let name = self.literal("name")?;
                Intent::Find { glob: if name.contains('.') { name } else { format!("*{name}*") }, path }
            }
            Ask::Glob => Intent::Find { glob: glob?, path },
            Ask::File => Intent::Find { glob: path?, path: None },
            Ask::Lines => Intent::Count { what: Counted::Lines, scope },
            Ask::Files => Intent::Count { what: Counted::Files, scope },
            Ask::Summary if !narrow => Intent::SummariseDir { path: folder.or(path) },
            Ask::PipedLines => Intent::Piped { texts: None, count: true },
            Ask::PipedText => Intent::Piped { texts: Some(self.wanted()?), count: false },
            Ask::PipedCount => Intent::Piped { texts: Some(self.wanted()?), count: true },
            _other => return None,
        })
    }

    /// The texts that are looked for: one, or marks such as TODO.
    fn wanted(&self) -> Option<Vec<String>> {
        let marks = self.marks();
        if marks.is_empty() {
            Some(vec![self.literal("text").or_else(|| self.literal("quoted"))?])
        } else {
            Some(marks)
        }
    }

    fn marks(&self) -> Vec<String> {
        let mut marks: Vec<String> =
            self.all("todo").map(|token| token.low.trim_end_matches('s').to_uppercase()).collect();
        marks.dedup();
        marks
    }

    /// What searches the content of files.
    fn sought(&self, ask: Ask) -> Option<Intent> {
        let mut scope = self.scope()?;
        let exact = |text: String| Sought::Text { regex: regex_escape(&text), shown: text };
        let (kinds, plural) = self.kinds().unwrap_or((ALL_DEFS, "definitions"));
        let name = || self.literal("name").or_else(|| self.literal("code"));
        let text = || self.literal("text").or_else(|| self.literal("quoted")).or_else(name).map(exact);
        let what = match ask {
            Ask::Text | Ask::FilesWith | Ask::CountText | Ask::CountFilesWith => text()?,
            Ask::Uses | Ask::FilesUsing => {
                let (name, quoted) =
                    (name()?, self.token("name").is_some_and(|token| token.quote.is_some_and(|q| q != '`')));
                let whole = is_identifier(&name) && !quoted;
                let regex = if whole { format!(r"\b{name}\b") } else { regex_escape(&name) };
                Sought::Text { regex, shown: name }
            }
            Ask::Imports | Ask::CountImports => {
                Sought::Defined { kinds: "import", plural: "imports", name: Some(name()?) }
            }
            Ask::Defined | Ask::FilesDefining | Ask::CountDefined => {
                let name = name();
                let (kinds, plural) = match name.as_deref() {
                    Some(name) if name.ends_with("()") => ("fn", "functions"),
                    Some(name) if name.ends_with('!') => ("macro", "macros"),
                    _other => (kinds, plural),
                };
                let name = name.map(|name| name.trim_end_matches("()").trim_end_matches('!').to_owned());
                Sought::Defined { kinds, plural, name }
            }
            Ask::Todo | Ask::CountTodo | Ask::FilesTodo => {
                let marks = self.marks();
                Sought::Text { regex: format!(r"\b(?:{})\b", marks.join("|")), shown: marks.join("` or `") }
            }
            Ask::Key => {
                let key = self.token("key").or_else(|| self.token("anykey"))?;
                let key = if key.quote.is_some() { key.text.to_owned() } else { key.low.clone() };
                if scope.path.is_none() {
                    scope.path = self.token("manifest").map(|token| token.text.to_owned());
                }
                if scope.path.is_none() {
                    scope.glob = Some(MANIFESTS.to_owned());
                }
                Sought::Text { regex: format!(r#"^\s*["']?{}["']?\s*[.:=]"#, regex_escape(&key)), shown: key }
            }
            _other => return None,
        };
        let files =
            matches!(ask, Ask::FilesWith | Ask::FilesUsing | Ask::FilesDefining | Ask::FilesTodo | Ask::Imports)
                && (ask != Ask::Imports || self.has("files") || self.has("file"))
                || matches!(ask, Ask::CountFilesWith | Ask::CountImports);
        let count = [Ask::CountText, Ask::CountFilesWith, Ask::CountDefined, Ask::CountImports, Ask::CountTodo];
        Some(if count.contains(&ask) {
            Intent::Count { what: Counted::Found { what, files }, scope }
        } else {
            Intent::Search { what, files, scope }
        })
    }

    /// The kinds of definition that a noun in front of a name, or alone, stands for.
    fn kinds(&self) -> Option<(&'static str, &'static str)> {
        if let Some(token) = self.token("noun") {
            return noun(&token.low);
        }
        self.words().find_map(noun)
    }

    fn part(&self) -> Option<Part> {
        if let Some(range) = self.token("range") {
            let (from, to) = range.text.split_once('-')?;
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            return (0 < from && from <= to).then_some(Part::Lines(from, to));
        }
        match (self.number(0), self.number(1)) {
            (Some(from), Some(to)) => (from <= to).then_some(Part::Lines(from, to)),
            (Some(n), None) if self.token("last").is_some() => Some(Part::Last(n)),
            (Some(n), None) if self.token("first").is_some() => Some(Part::Lines(1, n)),
            (Some(n), None) => Some(Part::Lines(n, n)),
            (None, _) if self.has("head") => Some(Part::Lines(1, 10)),
            (None, _) if self.has("tail") => Some(Part::Last(10)),
            (None, _) => Some(Part::All),
        }
    }

    /// What changes files or runs something.
    fn acts(&self, ask: Ask) -> Option<Intent> {
        Some(match ask {
            Ask::ReplaceAny | Ask::ReplaceWord | Ask::ReplaceText => return self.replace(ask),
            Ask::Create | Ask::Overwrite => {
                let (path, body) = (self.token("new")?, self.token("body").map_or("", |body| body.text));
                let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
                let (path, content) = (path.text.to_owned(), format!("{body}{end}"));
                Intent::Create { path, content, overwrite: ask == Ask::Overwrite }
            }
            Ask::Command => {
                let token = self.token("tick").or_else(|| self.token("quoted"));
                Intent::Run(Task::Command(match token {
                    Some(token) => token.text.to_owned(),
                    None => {
                        let mut words = self.all("command");
                        let first = words.next()?;
                        self.prompt.get(first.span.0..words.last().unwrap_or(first).span.1)?.to_owned()
                    }
                }))
            }
            Ask::Script => {
                let path =
                    self.token("script").map(|token| token.text).or(self.last.filter(|_| self.token("it").is_some()));
                Intent::Run(Task::Script(path?.to_owned()))
            }
            Ask::Tests | Ask::Build => {
                let scope = self.scope().filter(|scope| scope.glob.is_none() && scope.lang.is_none())?;
                Intent::Run(Task::Project { tests: ask == Ask::Tests, path: scope.path })
            }
            _other => return None,
        })
    }

    fn replace(&self, ask: Ask) -> Option<Intent> {
        let (old, new) = (self.token("old").or_else(|| self.token("word"))?, self.token("to")?);
        let (from, to) = if old.text.ends_with("()") && new.text.ends_with("()") {
            (old.text.trim_end_matches("()"), new.text.trim_end_matches("()"))
        } else {
            (old.text, new.text)
        };
        // Names are meant whole; what is quoted as text is meant exactly.
        let literal = match ask {
            Ask::ReplaceText => true,
            Ask::ReplaceWord => false,
            _other => old.quote.is_some_and(|quote| quote != '`'),
        };
        let path = old.quote.is_none() && is_path(old.text);
        if path || from.is_empty() || from.contains('\n') || from == to {
            return None;
        }
        let whole_word = is_identifier(from) && !literal;
        Some(Intent::Replace { old: from.to_owned(), new: to.to_owned(), whole_word, scope: self.scope()? })
    }
}

/// "README" and "a/b.rs" are files, "src" and "a/b" are not.
fn is_file(path: &str) -> bool {
    extension(path).is_some() || is_path(path) && !path.contains('/') && path != "."
}
