//! What a prompt asks for: one intent for each clause, or what of a clause is not understood.
//!
//! [`RULES`] is the whole language. What a rule's pattern does not take is not guessed at.

use crate::grammar::{Match, is_filler, is_path, matched};
use crate::lang::{ALL_DEFS, Lang, noun};
use crate::lex::{ENDS, Token, attached, extension, is, is_identifier, tokens};
use crate::rules::{Ask, PIPED, RULES};
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
    pub(crate) parts: Vec<String>,
    /// The same prompt without them, where that is understood.
    pub(crate) nearest: Option<String>,
    /// Another reason than words too many.
    pub(crate) why: &'static str,
}

/// Words before a request that change nothing of it, and behind it.
const BEFORE: &str = "can you|could you|would you|will you|can i|i want to|i want you to|i would like to|i'd like to|\
    i'd like you to|i need to|i need you to|we need to|let's|lets|let us|just|go ahead and|tell me|do you know|let me see|\
    let me know|i want to know|i want to see|thanks|thank you|hey|hi|hello|yoi|ok|okay";
const AFTER: &str = "for me|thanks|thank you|right now|now|in total|altogether|in all|exactly";

/// Words of a prompt, and of a clause, that are looked at; a longer one is no request that fits a rule.
const MAX_TOKENS: usize = 400;
const MAX_CLAUSE: usize = 40;
/// Places inside of a clause where it could have ended: "a, b and c".
const MAX_ENDS: usize = 4;

/// The intents of a prompt with how each hangs on the one before.
pub(crate) fn parse(prompt: &str) -> Result<Vec<(Joint, Intent)>, Misread> {
    let (head, piped) = attached(prompt);
    let misread = |part: &str, why| Misread { parts: vec![part.to_owned()], nearest: None, why };
    let all = tokens(head).map_err(|at| misread(head.get(at..).unwrap_or(head), "the quote is not closed"))?;
    if all.iter().all(is_filler) {
        return Err(misread(head.trim(), ""));
    }
    if all.len() > MAX_TOKENS {
        return Err(misread(head.trim(), "it is longer than anything that is understood"));
    }
    let reader = Reader { prompt: head, tokens: &all, rules: if piped.is_some() { PIPED } else { RULES } };
    let mut failed = BTreeSet::new();
    let mut out = Vec::new();
    if reader.clauses(0, Joint::And, None, &mut out, &mut failed) {
        return Ok(out);
    }
    let start = failed.last().copied().unwrap_or(0);
    let mut misread = reader.misread(start, start == 0 && piped.is_none());
    if piped.is_some() {
        misread.why =
            "of piped text, lines can be counted and searched; to review or explain it needs a language model";
    }
    Err(misread)
}

struct Reader<'a> {
    prompt: &'a str,
    tokens: &'a [Token<'a>],
    rules: &'static [(Ask, &'static str)],
}

impl<'a> Reader<'a> {
    /// Reads clauses from a token to the end, the longest first; notes where none begins. `last` is the path named last.
    fn clauses(
        &self,
        from: usize,
        joint: Joint,
        last: Option<&'a str>,
        out: &mut Vec<(Joint, Intent)>,
        failed: &mut BTreeSet<usize>,
    ) -> bool {
        if from >= self.tokens.len() {
            return true;
        }
        if failed.contains(&from) {
            return false;
        }
        for end in self.ends(from) {
            let clause = self.tokens.get(from..end).unwrap_or_default();
            let Some((intents, path)) = self.exact(clause, last) else { continue };
            let (next, joint_next) = self.joined(end);
            let length = out.len();
            out.extend(intents.into_iter().map(|intent| (joint, intent)));
            if self.clauses(next, joint_next, path.or(last), out, failed) {
                return true;
            }
            out.truncate(length);
        }
        failed.insert(from);
        false
    }

    /// Where a clause may end, the farthest first.
    fn ends(&self, from: usize) -> Vec<usize> {
        let ends = |at: &usize| {
            let joins = |token: &Token<'_>| token.quote.is_none() && is(&token.low, "and then afterwards finally also");
            let stop = |token: &Token<'_>| ENDS.contains(token.tail);
            self.tokens.get(*at).is_none_or(joins) || self.tokens.get(at.saturating_sub(1)).is_some_and(stop)
        };
        let far = self.tokens.len().min(from + MAX_CLAUSE);
        let mut ends: Vec<usize> = (from + 1..=far).filter(ends).take(MAX_ENDS).collect();
        ends.reverse();
        ends
    }

    /// Behind the words that join two clauses, and how they join.
    fn joined(&self, end: usize) -> (usize, Joint) {
        let joins = |token: &&Token<'_>| token.quote.is_none() && is(&token.low, "and then afterwards finally also");
        let words: Vec<_> = self.tokens.iter().skip(end).take_while(joins).collect();
        let then = words.iter().any(|token| is(&token.low, "then afterwards finally"));
        (end + words.len(), if then { Joint::Then } else { Joint::And })
    }

    fn exact(&self, clause: &'a [Token<'a>], last: Option<&'a str>) -> Option<(Vec<Intent>, Option<&'a str>)> {
        let asks =
            clause.first().is_some_and(|t| is(&t.low, "what which who where how is are does do can could would"));
        let clause = polite(clause);
        let read = |(ask, pattern): &(Ask, &'static str)| {
            let found = matched(pattern, clause, true).filter(Match::is_exact)?;
            let filled = Filled { prompt: self.prompt, clause, found: &found, last, asks };
            Some((filled.intents(*ask)?, filled.path()))
        };
        self.rules.iter().find_map(read)
    }

    /// What of the clause that begins here is not understood.
    fn misread(&self, from: usize, whole: bool) -> Misread {
        let text = |from: usize, to: usize| {
            let start = self.tokens.get(from).map_or(0, |t| t.span.0);
            let end = self.tokens.get(to.saturating_sub(1)).map_or(0, |t| t.span.1);
            self.prompt.get(start..end).unwrap_or_default()
        };
        let ends = self.ends(from);
        for end in ends.iter().rev().copied() {
            let clause = self.tokens.get(from..end).unwrap_or_default();
            let bare = polite(clause);
            let offset = from + clause.iter().position(|t| bare.first().is_some_and(|b| b.span == t.span)).unwrap_or(0);
            let found = self.rules.iter().filter_map(|(_, pattern)| matched(pattern, bare, false));
            let Some(found) = found.filter(|found| found.tells()).min_by_key(Match::rank) else {
                continue;
            };
            let mut odd: Vec<usize> =
                found.skipped.iter().copied().chain(found.respelt.iter().map(|(at, _)| *at)).collect();
            odd.sort_unstable();
            let near = |a: &usize, b: &usize| bare.get(a + 1..*b).is_some_and(|between| between.iter().all(is_filler));
            let runs = odd.chunk_by(near);
            let ends = runs.filter_map(|run| Some((offset + run.first()?, offset + run.last()? + 1)));
            let parts: Vec<String> =
                ends.map(|(from, to)| text(from, to).to_owned()).filter(|p| !p.is_empty()).collect();
            if parts.is_empty() {
                continue;
            }
            let kept = bare.iter().enumerate().filter(|(at, _)| !found.skipped.contains(at));
            let words = kept.map(|(at, token)| {
                let right = found.respelt.iter().find(|(wrong, _)| *wrong == at).map(|(_, right)| *right);
                right.unwrap_or_else(|| self.prompt.get(token.span.0..token.span.1).unwrap_or_default())
            });
            let nearest = words.collect::<Vec<_>>().join(" ");
            let against = found.skipped.iter().any(|at| bare.get(*at).is_some_and(|t| is(&t.low, REVERSE)));
            let nearest = Some(nearest).filter(|n| whole && !against && parse(n).is_ok());
            return Misread { parts, nearest, why: "" };
        }
        let end = ends.last().copied().unwrap_or(self.tokens.len());
        Misread { parts: vec![text(from, end).to_owned()], nearest: None, why: "" }
    }
}

/// Words whose absence turns a request round.
const REVERSE: &str = "not don't dont no never without except but neither nor stop avoid undo instead";

/// A clause without the words around it that change nothing.
fn polite<'a>(clause: &'a [Token<'a>]) -> &'a [Token<'a>] {
    let mut rest = clause;
    let same = |tokens: &[Token<'_>], words: &str| {
        words.split(' ').count() == tokens.len()
            && tokens.iter().zip(words.split(' ')).all(|(token, word)| token.quote.is_none() && token.low == word)
    };
    loop {
        let fillers = rest.iter().take_while(|token| is_filler(token)).count();
        let bare = rest.get(fillers..).unwrap_or_default();
        let words = |phrase: &&str| bare.get(..phrase.split(' ').count()).is_some_and(|t| same(t, phrase));
        // Its own "all" belongs to the clause.
        match BEFORE.split('|').filter(words).max_by_key(|phrase| phrase.len()) {
            Some(phrase) => rest = bare.get(phrase.split(' ').count()..).unwrap_or_default(),
            None => break,
        }
    }
    while let Some(phrase) = AFTER.split('|').find(|phrase| {
        let length = phrase.split(' ').count();
        rest.len() > length && rest.get(rest.len() - length..).is_some_and(|t| same(t, phrase))
    }) {
        rest = rest.get(..rest.len() - phrase.split(' ').count()).unwrap_or_default();
    }
    rest
}

/// A clause that a pattern took whole.
struct Filled<'a, 'm> {
    prompt: &'a str,
    clause: &'a [Token<'a>],
    found: &'m Match,
    last: Option<&'a str>,
    /// It is a question: a question mark at its end is no part of a name.
    asks: bool,
}

impl<'a> Filled<'a, '_> {
    fn token(&self, slot: &str) -> Option<&'a Token<'a>> {
        self.clause.get(self.found.slot(slot).next()?)
    }

    fn has(&self, word: &str) -> bool {
        self.clause.iter().any(|token| token.quote.is_none() && token.low == word)
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
        let marks = if self.asks { marks.strip_suffix('?').unwrap_or(marks) } else { marks };
        Some(format!("{}{marks}", token.text))
    }

    /// `None` when more than one place, or more than one sort of file, is named.
    fn scope(&self) -> Option<Scope> {
        let all = |slot: &'static str| self.found.slot(slot).filter_map(|at| self.clause.get(at));
        let mut paths = all("dir").chain(all("path")).chain(all("folder"));
        let path = paths.next().map(|token| token.text.to_owned()).filter(|path| path != ".");
        let mut globs = all("glob").chain(all("ext")).map(|t| {
            let ext = t.text.trim_start_matches('.');
            if t.text.contains(['*', '{']) { t.text.to_owned() } else { format!("*.{ext}") }
        });
        let glob = globs.next();
        let mut langs = all("lang").filter_map(|token| Lang::named(&token.low));
        let lang = langs.next();
        let one = paths.next().is_none() && globs.next().is_none() && langs.next().is_none();
        (one && (glob.is_none() || lang.is_none())).then_some(Scope { path, glob, lang })
    }

    fn number(&self, at: usize) -> Option<u64> {
        self.clause.get(self.found.slot("num").nth(at)?)?.text.parse().ok()
    }

    fn intents(&self, ask: Ask) -> Option<Vec<Intent>> {
        let paths = || self.found.slot("path").filter_map(|at| self.clause.get(at));
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
            Ask::Largest if !narrow => Intent::Largest { most: self.number(0).unwrap_or(10), path },
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
        let todos = self.found.slot("todo").filter_map(|at| self.clause.get(at));
        let mut marks: Vec<String> = todos.map(|token| token.low.trim_end_matches('s').to_uppercase()).collect();
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
        let asked = |at: &usize| !self.found.slots.iter().any(|(_, slot)| slot == at);
        let words = self.clause.iter().enumerate().filter(|(at, token)| asked(at) && token.quote.is_none());
        words.into_iter().find_map(|(_, token)| noun(&token.low))
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
            (None, _) if self.clause.first().is_some_and(|t| t.low == "head") => Some(Part::Lines(1, 10)),
            (None, _) if self.clause.first().is_some_and(|t| t.low == "tail") => Some(Part::Last(10)),
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
                        let mut words = self.found.slot("command").filter_map(|at| self.clause.get(at));
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

/// Text as a regex that matches exactly it.
pub(crate) fn regex_escape(text: &str) -> String {
    text.chars().flat_map(|c| r"\.+*?()|[]{}^$".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// One word for the shell.
pub(crate) fn shell_quote(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+=".contains(c));
    if plain && !text.is_empty() { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// "README" and "a/b.rs" are files, "src" and "a/b" are not.
fn is_file(path: &str) -> bool {
    extension(path).is_some() || is_path(path) && !path.contains('/') && path != "."
}
