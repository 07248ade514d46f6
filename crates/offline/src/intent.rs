//! What a prompt asks for: one intent for each clause, or what of a clause is not understood.
//!
//! [`RULES`] is the whole language. What a rule's pattern does not take is not guessed at.

use crate::grammar::{Match, Matcher, is_filler, is_path};
use crate::lang::{ALL_DEFS, Lang, noun};
use crate::lex::{ENDS, Token, attached, extension, is, is_identifier, regex_escape, tokens};
use crate::rules::{Ask, PIPED, RULES, Topic};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Something asked for. Of piped text: how many lines, or which lines have one of these texts.
#[derive(Clone, Debug)]
pub(crate) enum Intent {
    Help,
    List { depth: u64, path: Option<String> },
    Largest { most: usize, path: Option<String> },
    Find { glob: String, path: Option<String> },
    Search { what: Sought, files: bool, count: bool, scope: Scope },
    Count { lines: bool, scope: Scope },
    Read { path: String, part: Part },
    SummariseFile { path: String },
    SummariseDir { path: Option<String> },
    Replace { old: String, new: String, whole_word: bool, scope: Scope },
    Create { path: String, content: String, overwrite: bool },
    Command(String),
    Script(String),
    Project { tests: bool, path: Option<String> },
    Piped { texts: Option<Vec<String>>, count: bool },
}

/// Files that say what a project is.
pub(crate) const MANIFESTS: &str = "{Cargo.toml,package.json,pyproject.toml,setup.py,go.mod}";

/// Which files; everything under the working directory when empty. With a language `glob` is that of its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) path: Option<String>,
    pub(crate) glob: Option<String>,
    pub(crate) lang: Option<&'static Lang>,
}

/// Lines that match, or definitions of these kinds, under a name or any.
#[derive(Clone, Debug)]
pub(crate) enum Sought {
    Text { regex: String, shown: String },
    Defined { kinds: &'static str, noun: &'static str, name: Option<String> },
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    All,
    Lines(u64, u64),
    Last(u64),
}

/// An intent, and whether it is done only when the one before was.
pub(crate) type Clause = (bool, Intent);

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
pub(crate) fn parse(prompt: &str) -> Result<Vec<Clause>, Misread> {
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
fn read<'a>(prompt: &'a str, tokens: &'a [Token<'a>], rules: Rules, bare: bool) -> Result<Vec<Clause>, (usize, usize)> {
    let matcher = Matcher { tokens, bare, farthest: 0 };
    let mut reader = Reader { prompt, rules, matcher, failed: BTreeSet::new(), out: Vec::new() };
    if reader.clauses(0, false, None) {
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
    out: Vec<Clause>,
}

impl<'a> Reader<'a> {
    /// Reads clauses from a token to the end, the longest first. `last` is the path named last.
    fn clauses(&mut self, from: usize, waits: bool, last: Option<&'a str>) -> bool {
        let tokens = self.matcher.tokens;
        for (ask, found) in self.clause(from) {
            let filled = Filled { prompt: self.prompt, tokens, from, found: &found, last };
            let Some(intents) = filled.intents(ask) else { continue };
            let path = filled.path().or(last);
            let joined = tokens.iter().skip(found.at).take_while(|token| joins(token)).count();
            let next = found.at + joined;
            let next_waits = tokens.iter().skip(found.at).take(joined).any(|token| is(&token.low, WAITS));
            let length = self.out.len();
            self.out.extend(intents.into_iter().map(|intent| (waits, intent)));
            let ended = found.at == tokens.len();
            let more = !ended && !self.failed.contains(&next);
            if ended || more && self.clauses(next, next_waits, path) {
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
        let words = clause.filter(|(at, token)| token.quote.is_none() && !self.found.fills(*at));
        words.map(|(_, token)| token.low.as_str())
    }

    fn has(&self, words: &str) -> bool {
        self.words().any(|word| is(word, words))
    }

    /// The tokens in these slots.
    fn all(&self, slots: &'static [&'static str]) -> impl Iterator<Item = &'a Token<'a>> {
        slots.iter().flat_map(|slot| self.found.slot(slot)).filter_map(|at| self.tokens.get(at))
    }

    fn token(&self, slots: &'static [&'static str]) -> Option<&'a Token<'a>> {
        self.all(slots).next()
    }

    /// The path named, for "it" in what follows.
    fn path(&self) -> Option<&'a str> {
        self.token(&["path", "new", "script", "dir", "folder"]).map(|token| token.text)
    }

    /// Text as it is meant: what is quoted as it stands, else with the marks that are a part of it. A question mark at
    /// the end of a question is none.
    fn literal(&self) -> Option<String> {
        let token = self.token(TEXTS)?;
        let behind = self.prompt.get(token.span.1..).filter(|_| token.quote.is_none()).unwrap_or_default();
        let marks = behind.get(..behind.find(|c| !"!?".contains(c)).unwrap_or(behind.len())).unwrap_or_default();
        let asks = self.words().next().is_some_and(|word| is(word, QUESTIONS));
        let marks = if asks { marks.strip_suffix('?').unwrap_or(marks) } else { marks };
        Some(format!("{}{marks}", token.text))
    }

    /// `None` when more than one place, or more than one sort of file, is named.
    fn scope(&self) -> Option<Scope> {
        let mut paths = self.all(&["dir", "path", "folder", "manifest"]);
        let path = paths.next().map(|token| token.text.to_owned()).filter(|path| path != ".");
        let mut langs = self.all(&["lang"]).filter_map(|token| Lang::named(&token.low));
        let lang = langs.next();
        let ending = |t: &Token<'_>| format!("*.{}", t.text.trim_start_matches('.'));
        let globs = self.all(&["glob", "ext"]);
        let globs = globs.map(|t| if t.text.contains(['*', '{']) { t.text.to_owned() } else { ending(t) });
        let mut globs = globs.chain(lang.map(Lang::glob));
        let glob = globs.next();
        let one = paths.next().is_none() && globs.next().is_none() && langs.next().is_none();
        one.then_some(Scope { path, glob, lang })
    }

    fn intents(&self, ask: Ask) -> Option<Vec<Intent>> {
        if ask != Ask::Read {
            return Some(vec![self.intent(ask)?]);
        }
        let part = self.part()?;
        let read = |token: &Token<'_>| match part {
            Part::All if !is_file(token) => Intent::List { depth: 1, path: Some(token.text.to_owned()) },
            _ => Intent::Read { path: token.text.to_owned(), part: part.clone() },
        };
        Some(self.all(&["path"]).map(read).collect())
    }

    fn intent(&self, ask: Ask) -> Option<Intent> {
        let scope = self.scope()?;
        let path = scope.path.clone();
        let wide = scope.glob.is_none();
        Some(match ask {
            Ask::Help => Intent::Help,
            Ask::Entries if wide => Intent::List { depth: 1, path },
            Ask::Tree if wide => Intent::List { depth: 4, path },
            Ask::Largest if wide => {
                let most = self.numbers().next().unwrap_or(if self.has("file") { 1 } else { 10 });
                Intent::Largest { most: usize::try_from(most).ok()?, path }
            }
            Ask::AllFiles | Ask::Entries => Intent::Find { glob: scope.glob.unwrap_or_else(|| "*".to_owned()), path },
            Ask::Named if wide => {
                let name = self.literal()?;
                Intent::Find { glob: if name.contains('.') { name } else { format!("*{name}*") }, path }
            }
            Ask::Glob => Intent::Find { glob: scope.glob?, path },
            Ask::File => Intent::Find { glob: path?, path: None },
            Ask::Lines | Ask::NumberOfFiles => Intent::Count { lines: ask == Ask::Lines, scope },
            Ask::Outline if is_file(self.token(&["path"])?) => Intent::SummariseFile { path: path? },
            Ask::Outline | Ask::Summary if wide => Intent::SummariseDir { path },
            Ask::Show(topic) => self.search(topic, false, false, scope)?,
            Ask::Files(topic) => self.search(topic, true, false, scope)?,
            Ask::Count(topic) => self.search(topic, false, true, scope)?,
            Ask::CountFiles(topic) => self.search(topic, true, true, scope)?,
            Ask::ReplaceAny | Ask::ReplaceWord | Ask::ReplaceText => self.replace(ask, scope)?,
            Ask::Create | Ask::Overwrite => {
                let (path, body) =
                    (self.token(&["new"])?.text.to_owned(), self.token(&["body"]).map_or("", |t| t.text));
                let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
                Intent::Create { path, content: format!("{body}{end}"), overwrite: ask == Ask::Overwrite }
            }
            Ask::Command => Intent::Command(match self.token(&["quoted"]) {
                Some(token) => token.text.to_owned(),
                None => {
                    let (first, last) = (self.token(&["command"])?, self.all(&["command"]).last()?);
                    self.prompt.get(first.span.0..last.span.1)?.to_owned()
                }
            }),
            Ask::Script => Intent::Script(self.path().or(self.last)?.to_owned()),
            Ask::Tests | Ask::Build if wide => Intent::Project { tests: ask == Ask::Tests, path },
            Ask::PipedLines => Intent::Piped { texts: None, count: true },
            Ask::PipedText | Ask::PipedCount => {
                let marks = self.marks();
                let texts = if marks.is_empty() { vec![self.literal()?] } else { marks };
                Intent::Piped { texts: Some(texts), count: ask == Ask::PipedCount }
            }
            _ => return None,
        })
    }

    /// "TODO" for "todos".
    fn marks(&self) -> Vec<String> {
        let mut marks: Vec<String> =
            self.all(&["todo"]).map(|token| token.low.trim_end_matches('s').to_uppercase()).collect();
        marks.dedup();
        marks
    }

    fn search(&self, topic: Topic, files: bool, count: bool, mut scope: Scope) -> Option<Intent> {
        let text = self.literal();
        let what = match topic {
            Topic::Text => Sought::Text { regex: regex_escape(text.as_deref()?), shown: text? },
            Topic::Uses => {
                let whole = is_identifier(text.as_deref()?) && !self.token(TEXTS)?.is_text();
                let literal = regex_escape(text.as_deref()?);
                Sought::Text { regex: if whole { format!(r"\b{literal}\b") } else { literal }, shown: text? }
            }
            Topic::Imports => Sought::Defined { kinds: "import", noun: "import", name: Some(text?) },
            Topic::Defined => {
                let named = self.all(&["noun"]).map(|token| token.low.as_str()).chain(self.words()).find_map(noun);
                let (kinds, noun) = match text.as_deref() {
                    Some(name) if name.ends_with("()") => ("fn", "function"),
                    Some(name) if name.ends_with('!') => ("macro", "macro"),
                    _ => named.unwrap_or((ALL_DEFS, "definition")),
                };
                let name = text.map(|name| name.trim_end_matches("()").trim_end_matches('!').to_owned());
                Sought::Defined { kinds, noun, name }
            }
            Topic::Todo => {
                let marks = self.marks();
                Sought::Text { regex: format!(r"\b(?:{})\b", marks.join("|")), shown: marks.join("` or `") }
            }
            Topic::Key => {
                let key = self.token(&["key", "anykey"])?;
                let key = if key.quote.is_some() { key.text.to_owned() } else { key.low.clone() };
                scope.glob = scope.path.is_none().then(|| MANIFESTS.to_owned());
                Sought::Text { regex: format!(r#"^\s*["']?{}["']?\s*[.:=]"#, regex_escape(&key)), shown: key }
            }
        };
        Some(Intent::Search { what, files, count, scope })
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.all(&["num", "range"]).flat_map(|token| token.text.split('-')).filter_map(|number| number.parse().ok())
    }

    fn part(&self) -> Option<Part> {
        let mut numbers = self.numbers();
        match (numbers.next(), numbers.next()) {
            (Some(from), Some(to)) => (0 < from && from <= to).then_some(Part::Lines(from, to)),
            (Some(n), None) if self.has("last") => Some(Part::Last(n)),
            (Some(n), None) => Some(Part::Lines(if self.has("first top") { 1 } else { n }, n)),
            (None, _) if self.has("head") => Some(Part::Lines(1, 10)),
            (None, _) if self.has("tail") => Some(Part::Last(10)),
            (None, _) => Some(Part::All),
        }
    }

    fn replace(&self, ask: Ask, scope: Scope) -> Option<Intent> {
        let (old, new) = (self.token(&["code", "word"])?, self.token(&["to"])?);
        let call = old.text.ends_with("()") && new.text.ends_with("()");
        let name = |text: &str| if call { text.trim_end_matches("()") } else { text }.to_owned();
        let (from, to) = (name(old.text), name(new.text));
        let path = old.quote.is_none() && is_path(old.text);
        if path || from.is_empty() || from.contains('\n') || from == to {
            return None;
        }
        // Names are meant whole; what is quoted as text is meant exactly.
        let literal = ask == Ask::ReplaceText || ask == Ask::ReplaceAny && old.is_text();
        Some(Intent::Replace { whole_word: is_identifier(&from) && !literal, old: from, new: to, scope })
    }
}

/// Slots of what is searched for.
const TEXTS: &[&str] = &["text", "quoted", "name", "code"];
const QUESTIONS: &str = "what which who where how is are does do can could would";

/// "README" and "a/b.rs" are files, "src" and "a/b" are not.
fn is_file(token: &Token<'_>) -> bool {
    let path = token.text;
    token.quote.is_some() || extension(path).is_some() || is_path(path) && !path.contains('/') && path != "."
}
