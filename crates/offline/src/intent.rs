//! Parsing a prompt: one intent for each clause, or the part that is not understood.
//!
//! [`RULES`] is the whole language. Text that no pattern matches is not guessed at.

use crate::acts::{self, MANIFESTS, Part, Sought};
use crate::answer;
use crate::grammar::{Match, Matcher, Subject, is_filler, is_path};
use crate::lang::{ALL_DEFS, Lang, noun};
use crate::lex::{ENDS, Token, attached, is, is_identifier, regex_escape, tokens};
use crate::results::{Got, Results, Scope};
use crate::rules::{Ask, RULES, Topic};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The function that answers a clause from its results.
type Act = Box<dyn Fn(&mut Results<'_>, &Scope) -> Got<String>>;

/// One request of a prompt, and its scope.
pub(crate) struct Clause {
    /// It runs only if the clause before succeeded.
    pub(crate) waits: bool,
    pub(crate) scope: Scope,
    pub(crate) act: Act,
}

/// The reason why a prompt is not understood.
pub(crate) struct Misread {
    /// The words that fit nothing, as written.
    pub(crate) part: String,
    /// Another reason, if the words are not the problem.
    pub(crate) why: &'static str,
}

/// Words of a prompt that are looked at; a longer one is no request that fits a rule.
const MAX_TOKENS: usize = 400;
/// Words that are left out together to find a prompt that is understood.
const MAX_ODD: usize = 12;
/// Words that join two clauses, and the ones of them that make the second wait for the first.
const JOINS: &str = "and then afterwards finally also";
const WAITS: &str = "then afterwards finally";

const OF_PIPED: &str = "`offline` can only count and search lines of piped text; a review or an explanation needs a language model";

/// Whether all of a prompt can be done.
pub(crate) fn is_understood(prompt: &str) -> bool {
    parse(prompt).is_ok()
}

/// The clauses of a prompt, and how each depends on the one before.
pub(crate) fn parse(prompt: &str) -> Result<Vec<Clause>, Misread> {
    let (head, piped) = attached(prompt);
    let misread = |part: &str, why| Misread {
        part: part.to_owned(),
        why,
    };
    let all = tokens(head)
        .map_err(|at| misread(head.get(at..).unwrap_or(head), "the quote is not closed"))?;
    if all.iter().all(is_filler) {
        return Err(misread(head.trim(), ""));
    }
    if all.len() > MAX_TOKENS {
        return Err(misread(
            head.trim(),
            "it is longer than anything that is understood",
        ));
    }
    let (loose, strict) = if piped.is_some() {
        (Subject::Piped, Subject::Piped)
    } else {
        (Subject::Guessed, Subject::Files)
    };
    let read = read(head, &all, loose).or_else(|_strict_is_told| read(head, &all, strict));
    let has = |words| all.iter().any(|token| is(&token.low, words));
    let unquoted = has(CREATES)
        && has("with containing saying")
        && all.iter().all(|token| token.quote.is_none());
    let why = match piped {
        Some(_) => OF_PIPED,
        None if unquoted => "the text of a file must be in quotes",
        None => "",
    };
    read.map_err(|at| Misread {
        why,
        ..odd(head, &all, strict, at)
    })
}

/// The intents of these tokens; else where the clause that is not understood begins, and the token that does not fit.
fn read<'a>(
    prompt: &'a str,
    tokens: &'a [Token<'a>],
    subject: Subject,
) -> Result<Vec<Clause>, (usize, usize)> {
    let matcher = Matcher {
        tokens,
        subject,
        farthest: 0,
    };
    let mut reader = Reader {
        prompt,
        matcher,
        failed: BTreeSet::new(),
        out: Vec::new(),
    };
    if reader.clauses(0, false, None) {
        return Ok(reader.out);
    }
    Err((
        reader.failed.last().copied().unwrap_or(0),
        reader.matcher.farthest,
    ))
}

/// The part that is not understood: the fewest words, from the first mismatch on, without which the rest is understood;
/// else the rest of the clause. If only the first word of a clause matches, the whole clause.
fn odd(
    prompt: &str,
    tokens: &[Token<'_>],
    subject: Subject,
    (start, at): (usize, usize),
) -> Misread {
    let at = at.min(tokens.len().saturating_sub(1));
    let begin = |at: usize| tokens.get(at).map_or(prompt.len(), |token| token.span.0);
    let end = |at: usize| tokens.get(at).map_or(prompt.len(), |token| token.span.1);
    let part = |from: usize, to: usize| {
        prompt
            .get(begin(from)..end(to))
            .unwrap_or_default()
            .to_owned()
    };
    let to = tokens.len().min(at + MAX_ODD);
    for (from, last) in [at, start]
        .into_iter()
        .flat_map(|from| (at..to).map(move |last| (from, last)))
    {
        let left = [prompt.get(..begin(from)), prompt.get(end(last)..)]
            .map(Option::unwrap_or_default)
            .concat();
        if self::tokens(&left).is_ok_and(|tokens| read(&left, &tokens, subject).is_ok()) {
            return Misread {
                part: part(from, last),
                why: "",
            };
        }
    }
    let fits = tokens
        .iter()
        .take(at)
        .skip(start)
        .filter(|token| !is_filler(token))
        .count();
    let from = if fits < 2 { start } else { at };
    let ends = |at: &usize| ends_clause(tokens, at + 1);
    Misread {
        part: part(from, (at..tokens.len()).find(ends).unwrap_or(at)),
        why: "",
    }
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
    matcher: Matcher<'a>,
    /// The tokens at which no clause begins.
    failed: BTreeSet<usize>,
    out: Vec<Clause>,
}

impl<'a> Reader<'a> {
    /// Reads clauses from a token to the end, the longest first. `last` is the path named last.
    fn clauses(&mut self, from: usize, waits: bool, last: Option<&str>) -> bool {
        let tokens = self.matcher.tokens;
        for (ask, found) in self.clause(from) {
            let filled = Filled {
                prompt: self.prompt,
                matcher: &self.matcher,
                from,
                found: &found,
            };
            let Some(clauses) = filled.clauses(ask, waits, last) else {
                continue;
            };
            let path = clauses.last().and_then(|clause| clause.scope.path.clone());
            let joined = tokens
                .iter()
                .skip(found.at)
                .take_while(|token| joins(token))
                .count();
            let next = found.at + joined;
            let next_waits = tokens
                .iter()
                .skip(found.at)
                .take(joined)
                .any(|token| is(&token.low, WAITS));
            let length = self.out.len();
            self.out.extend(clauses);
            let ended = found.at == tokens.len();
            if ended
                || !self.failed.contains(&next)
                    && self.clauses(next, next_waits, path.as_deref().or(last))
            {
                return true;
            }
            self.out.truncate(length);
        }
        self.failed.insert(from);
        false
    }

    /// The ways in which a clause can be understood that begins here: the longest first, then in the order of the
    /// rules.
    fn clause(&mut self, from: usize) -> Vec<(Ask, Match)> {
        let starts = self.matcher.starts(from);
        let mut all = Vec::new();
        let files = self.matcher.subject != Subject::Piped;
        let rules = RULES.iter().filter(|(ask, _)| files || ask.of_text());
        for (ask, pattern) in
            rules.flat_map(|(ask, patterns)| patterns.split("; ").map(|pattern| (*ask, pattern)))
        {
            for found in self.matcher.matches(pattern, starts.clone()) {
                if ends_clause(self.matcher.tokens, found.at) {
                    all.push((ask, found));
                } else {
                    self.matcher.farthest = self.matcher.farthest.max(found.at);
                }
            }
        }
        all.sort_by_key(|(_, found)| Reverse(found.at));
        all
    }
}

/// A clause that a pattern matched completely.
struct Filled<'a, 'm> {
    prompt: &'a str,
    matcher: &'m Matcher<'a>,
    from: usize,
    found: &'m Match,
}

impl<'a> Filled<'a, '_> {
    /// The words of the clause that fill no slot.
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let clause = self
            .matcher
            .tokens
            .iter()
            .enumerate()
            .take(self.found.at)
            .skip(self.from);
        let words = clause.filter(|(at, token)| token.quote.is_none() && !self.found.fills(*at));
        words.map(|(_, token)| token.low.as_str())
    }

    fn has(&self, words: &str) -> bool {
        self.words().any(|word| is(word, words))
    }

    /// The tokens in these slots.
    fn all(&self, slots: &'static [&'static str]) -> impl Iterator<Item = &'a Token<'a>> {
        slots
            .iter()
            .flat_map(|slot| self.found.slot(slot))
            .filter_map(|at| self.matcher.tokens.get(at))
    }

    fn token(&self, slot: &'static str) -> Option<&'a Token<'a>> {
        self.found
            .slot(slot)
            .find_map(|at| self.matcher.tokens.get(at))
    }

    /// The intended text: quoted text unchanged, other text with the punctuation that belongs to it. A question mark at
    /// the end of a question is none.
    fn literal(&self) -> Option<String> {
        let token = self.all(TEXTS).next()?;
        let behind = self
            .prompt
            .get(token.span.1..)
            .filter(|_| token.quote.is_none())
            .unwrap_or_default();
        let marks = behind
            .get(..behind.find(|c| !"!?".contains(c)).unwrap_or(behind.len()))
            .unwrap_or_default();
        let asks = self.words().next().is_some_and(|word| is(word, QUESTIONS));
        let marks = if asks {
            marks.strip_suffix('?').unwrap_or(marks)
        } else {
            marks
        };
        Some(format!("{}{marks}", token.text))
    }

    /// `None` when more than one place, or more than one sort of file, is named. "It" is the path named `last`.
    fn scope(&self, last: Option<&str>) -> Option<Scope> {
        let text = |token: &Token<'_>| token.text.to_owned();
        let ending = |token: &Token<'_>| match token.text {
            glob if glob.contains(['*', '{']) => glob.to_owned(),
            ending => format!("*.{}", ending.trim_start_matches('.')),
        };
        let part = |token: &Token<'_>| {
            if token.text.contains('.') {
                text(token)
            } else {
                format!("*{}*", token.text)
            }
        };
        let it = self.token("it").and(last).map(str::to_owned);
        let path = at_most_one(self.all(PLACES).map(text).chain(it))?.filter(|path| path != ".");
        let langs = self
            .all(&["lang"])
            .filter_map(|token| Some(Lang::named(&token.low)?.glob()));
        let manifests = self
            .token("key")
            .filter(|_| path.is_none())
            .map(|_| MANIFESTS.to_owned());
        let files = self
            .all(&["glob", "ext"])
            .map(ending)
            .chain(self.all(&["part"]).map(part));
        let files = files
            .chain(self.all(&["whole"]).map(text))
            .chain(langs)
            .chain(manifests);
        Some(Scope {
            path,
            glob: at_most_one(files)?,
        })
    }

    fn clauses(&self, ask: Ask, waits: bool, last: Option<&str>) -> Option<Vec<Clause>> {
        if ask != Ask::Read {
            let scope = self.scope(last)?;
            let act = self.act(ask, &scope)?;
            return Some(vec![Clause { waits, scope, act }]);
        }
        let part = self.part()?;
        let read = |token: &Token<'_>| Clause {
            waits,
            scope: Scope::of(token.text),
            act: Box::new(move |results, scope| acts::read(results, scope, part)),
        };
        Some(self.all(&["file"]).map(read).collect())
    }

    /// `None` if the slots contradict each other.
    fn act(&self, ask: Ask, scope: &Scope) -> Option<Act> {
        let wide = scope.glob.is_none();
        Some(match ask {
            Ask::Help => Box::new(|results, _| acts::help(results, is_understood)),
            Ask::Entries if wide => Box::new(|results, scope| acts::list(results, scope, 1)),
            Ask::Tree if wide => Box::new(|results, scope| acts::list(results, scope, 4)),
            Ask::Largest if wide => {
                let most = self
                    .numbers()
                    .next()
                    .unwrap_or(if self.has("file") { 1 } else { 10 });
                let most = usize::try_from(most).ok()?;
                Box::new(move |results, scope| acts::largest(results, scope, most))
            }
            Ask::Find | Ask::Entries => Box::new(acts::find),
            Ask::Lines | Ask::Show(_) | Ask::Count(_) if self.matcher.subject == Subject::Piped => {
                let texts = if ask == Ask::Lines {
                    None
                } else {
                    Some(self.texts()?)
                };
                let count = !matches!(ask, Ask::Show(_));
                Box::new(move |results, _| answer::piped(results.piped, texts.as_deref(), count))
            }
            Ask::Lines => Box::new(|results, scope| acts::count(results, scope, true)),
            Ask::NumberOfFiles => Box::new(|results, scope| acts::count(results, scope, false)),
            Ask::Outline => Box::new(acts::summarise_file),
            Ask::Summary if wide => Box::new(acts::summarise_dir),
            Ask::Show(topic) => self.search(topic, false, false)?,
            Ask::Files(topic) => self.search(topic, true, false)?,
            Ask::Count(topic) => self.search(topic, false, true)?,
            Ask::CountFiles(topic) => self.search(topic, true, true)?,
            Ask::ReplaceAny | Ask::ReplaceWord | Ask::ReplaceText => self.replace(ask)?,
            Ask::Create | Ask::Overwrite => {
                let body = self.token("body").map_or("", |token| token.text);
                let end = if body.is_empty() || body.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                let content = format!("{body}{end}");
                Box::new(move |results, scope| {
                    acts::create(results, scope, &content, ask == Ask::Overwrite)
                })
            }
            Ask::Command => {
                let command = self.command()?;
                Box::new(move |results, _| acts::run(results, &command, false, None))
            }
            Ask::Script if scope.path.is_some() => Box::new(acts::script),
            Ask::Tests if wide => Box::new(|results, scope| acts::project(results, scope, true)),
            Ask::Build if wide => Box::new(|results, scope| acts::project(results, scope, false)),
            _ => return None,
        })
    }

    /// The quoted text, or a command's words as written.
    fn command(&self) -> Option<String> {
        let first = self.token("command")?;
        let last = self.all(&["command"]).last()?;
        let written = self.prompt.get(first.span.0..last.span.1)?;
        Some(
            if first.quote.is_some() {
                first.text
            } else {
                written
            }
            .to_owned(),
        )
    }

    /// Marks such as `TODO`, for "todos" too; else the text named.
    fn texts(&self) -> Option<Vec<String>> {
        let mark = |token: &Token<'_>| token.low.trim_end_matches('s').to_uppercase();
        let mut marks: Vec<String> = self.all(&["todo"]).map(mark).collect();
        marks.dedup();
        if marks.is_empty() {
            Some(vec![self.literal()?])
        } else {
            Some(marks)
        }
    }

    fn search(&self, topic: Topic, files: bool, count: bool) -> Option<Act> {
        let text = self.literal();
        let what = match topic {
            Topic::Text => Sought::Text {
                regex: regex_escape(text.as_deref()?),
                shown: text?,
            },
            Topic::Uses => {
                let whole = is_identifier(text.as_deref()?) && !self.all(TEXTS).next()?.is_text();
                let literal = regex_escape(text.as_deref()?);
                Sought::Text {
                    regex: if whole {
                        format!(r"\b{literal}\b")
                    } else {
                        literal
                    },
                    shown: text?,
                }
            }
            Topic::Imports => Sought::Defined {
                kinds: "import",
                noun: "import",
                name: Some(text?),
            },
            Topic::Defined => {
                let named = self
                    .all(&["noun"])
                    .map(|token| token.low.as_str())
                    .chain(self.words())
                    .find_map(noun);
                let (kinds, noun) = match text.as_deref() {
                    Some(name) if name.ends_with("()") => ("fn", "function"),
                    Some(name) if name.ends_with('!') => ("macro", "macro"),
                    _ => named.unwrap_or((ALL_DEFS, "definition")),
                };
                let name =
                    text.map(|name| name.trim_end_matches("()").trim_end_matches('!').to_owned());
                Sought::Defined { kinds, noun, name }
            }
            Topic::Todo => {
                let marks = self.texts()?;
                Sought::Text {
                    regex: format!(r"\b(?:{})\b", marks.join("|")),
                    shown: marks.join("` or `"),
                }
            }
            Topic::Key => {
                let key = self.all(&["key", "anykey"]).next()?;
                let key = if key.quote.is_some() {
                    key.text.to_owned()
                } else {
                    key.low.clone()
                };
                Sought::Text {
                    regex: format!(r#"^\s*["']?{}["']?\s*[.:=]"#, regex_escape(&key)),
                    shown: key,
                }
            }
        };
        Some(Box::new(move |results, scope| {
            acts::search(results, scope, &what, files, count)
        }))
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.all(&["num", "range"])
            .flat_map(|token| token.text.split('-'))
            .filter_map(|number| number.parse().ok())
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

    fn replace(&self, ask: Ask) -> Option<Act> {
        let old = self.all(&["code", "word"]).next()?;
        let new = self.token("to")?;
        let call = old.text.ends_with("()") && new.text.ends_with("()");
        let name = |text: &str| {
            if call {
                text.trim_end_matches("()")
            } else {
                text
            }
            .to_owned()
        };
        let from = name(old.text);
        let to = name(new.text);
        let path = old.quote.is_none() && is_path(old.text);
        if path || from.is_empty() || from.contains('\n') || from == to {
            return None;
        }
        // Names match as whole words; quoted text matches exactly.
        let literal = ask == Ask::ReplaceText || ask == Ask::ReplaceAny && old.is_text();
        let whole_word = is_identifier(&from) && !literal;
        Some(Box::new(move |results, scope| {
            acts::replace(results, scope, &from, &to, whole_word)
        }))
    }
}

/// Words that begin a request to create a file.
const CREATES: &str = "create make write add";
/// Slots of what is searched for.
const TEXTS: &[&str] = &["text", "quoted", "name", "code"];
/// Slots of where it is searched for, or what it is done to.
const PLACES: &[&str] = &["dir", "path", "folder", "manifest", "file", "script", "new"];
const QUESTIONS: &str = "what which who where how is are does do can could would";

/// `None` when there are more.
fn at_most_one<T>(mut all: impl Iterator<Item = T>) -> Option<Option<T>> {
    let first = all.next();
    all.next().is_none().then_some(first)
}
