//! Patterns over the tokens of a clause. A clause is understood when a pattern takes every token of it that is no filler.
//!
//! A pattern is a row of elements: words with `|` between alternatives, `@set` for a list of [`SETS`], `{slot}` for what
//! is asked about, `<part>` for a row of [`PARTS`]; with `?` an element may be missing. The same matcher, allowed to skip
//! words at a price, says which words a clause has too many.

use crate::lang::{Lang, noun};
use crate::lex::{Token, extension, is, is_identifier, is_word, nearly};
use std::cmp::Reverse;

/// Words that change nothing of what is asked.
const FILLERS: &str = "please kindly the a an me us my our this these also all every each any";

#[rustfmt::skip]
const SETS: &[(&str, &str)] = &[
    ("list", "list|show|print|display|give|get|see|ls|enumerate|find"),
    ("show", "show|print|display|give|get|see|read|view|open|cat|output"),
    ("find", "find|locate|list|show|get|see|give|search"),
    ("what", "what|which"),
    ("is", "is|are"),
    ("in", "in|inside|within|under|below|across|throughout|of|from"),
    ("into", "to|into|in"),
    ("place", "project|repo|repository|codebase|code|workspace|crate|package|program|app|application|library|source|sources"),
    ("dirword", "directory|folder|dir"),
    ("file", "file|files"),
    ("contents", "files|contents|content|everything|entries"),
    ("largest", "largest|biggest|longest"),
    ("many", "many"),
    ("defined", "defined|declared|implemented"),
    ("definition", "definition|definitions|declaration|declarations|implementation"),
    ("used", "used|called|referenced"),
    ("uses", "uses|usages|usage|references|callers|calls"),
    ("contain", "contain|contains|mention|mentions|containing|mentioning"),
    ("times", "occurrences|occurrence|instances|mentions|matches"),
    ("appear", "appear|appears|occur|occurs|mentioned"),
    ("import", "import|imports|imported|require|requires|include|includes|importing"),
    ("summarise", "summarise|summarize|describe|explain|outline|summary|overview|about"),
    ("with", "with|by"),
    ("run", "run|execute|rerun"),
    ("pass", "pass|passing|green|succeed"),
    ("build", "build|compile"),
    ("sym", "function|fn|method|struct|enum|trait|interface|class|type|constant|const|module|macro|variable|identifier|symbol|name|word"),
    ("lit", "text|string|phrase"),
];

/// Rows that stand in other patterns.
#[rustfmt::skip]
const PARTS: &[(&str, &[&str])] = &[
    (
        "in",
        &[
            "@in current|whole|entire? @place|@dirword|tree",
            "@in {lang} files|code|sources?",
            "@in {glob} files?",
            "@in @file|@dirword? {dir} @dirword|file|module|files?",
            "here|everywhere|anywhere",
        ],
    ),
    ("todo", &["{todo} comments|notes|items?", "{todo} and|or|and/or {todo} comments|notes?"]),
    ("howmany", &["how @many", "count|number", "what|what's is? number of", "total? number of"]),
    ("are", &["@is there", "@is defined", "@is", "exist", "do|does we|it|@place|@dirword have|contain", "@is found"]),
    ("lead", &["print|show|give|display|read|cat|view|see|get|output|open", "what @is|'s", "what's"]),
];

/// A state of a match: what was taken so far, in the cheapest way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Match {
    at: usize,
    /// Tokens no element took, fillers apart.
    pub(crate) skipped: Vec<usize>,
    /// Tokens taken for another word: its right spelling.
    pub(crate) respelt: Vec<(usize, &'static str)>,
    /// Slots with the tokens that fill them.
    pub(crate) slots: Vec<(&'static str, usize)>,
    taken: usize,
    /// Behind the last token that was taken.
    until: usize,
}

impl Match {
    fn cost(&self) -> usize {
        self.skipped.len() + self.respelt.len()
    }

    /// The cheapest first; of these, the one that understands the beginning.
    pub(crate) fn rank(&self) -> (usize, Reverse<Option<usize>>) {
        let headless = if self.skipped.first() == Some(&0) { 2 } else { 0 };
        (self.cost() + headless, Reverse(self.skipped.first().copied()))
    }

    /// Whether enough was understood to say that the rest was not.
    pub(crate) fn tells(&self) -> bool {
        let ends = self.skipped.first().is_none_or(|first| self.until <= *first);
        self.taken >= 2 && (self.cost() <= self.taken || ends)
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.cost() == 0
    }

    /// The tokens that fill a slot.
    pub(crate) fn slot(&self, name: &str) -> impl Iterator<Item = usize> {
        self.slots.iter().filter(move |(slot, _)| *slot == name).map(|(_, at)| *at)
    }
}

/// The best match of a pattern with all tokens; with `exact` none may be skipped.
pub(crate) fn matched(pattern: &'static str, tokens: &[Token<'_>], exact: bool) -> Option<Match> {
    if exact && !possible(pattern, tokens) {
        return None;
    }
    let states = match pattern.strip_prefix('~') {
        Some(bare) => {
            let inner = bare.split_ascii_whitespace();
            let all = std::iter::once("<in>?").chain(inner).chain(["<in>?", "<in>?"]);
            row(all, vec![Match::default()], tokens, exact)
        }
        None => row(pattern.split_ascii_whitespace(), vec![Match::default()], tokens, exact),
    };
    let ended = states.into_iter().filter_map(|state| skip_to(state, tokens.len(), tokens, exact));
    ended.min_by_key(Match::rank)
}

/// Whether each word that must be there is: most patterns fail here, at once.
fn possible(pattern: &'static str, tokens: &[Token<'_>]) -> bool {
    let needed = pattern.trim_start_matches('~').split(' ').filter(|word| !word.ends_with(['?', '}', '>']));
    let there = |word: &str| tokens.iter().any(|token| token.quote.is_none() && token.low == word);
    needed.into_iter().all(|element| element.split('|').flat_map(expanded).any(there))
}

fn row(
    elements: impl Iterator<Item = &'static str>,
    mut states: Vec<Match>,
    tokens: &[Token<'_>],
    exact: bool,
) -> Vec<Match> {
    for element in elements {
        let (element, optional) = element.strip_suffix('?').map_or((element, false), |bare| (bare, true));
        let mut next = if optional { states.clone() } else { Vec::new() };
        if let Some(part) = element.strip_prefix('<').and_then(|part| part.strip_suffix('>')) {
            let rows = PARTS.iter().filter(|(name, _)| *name == part).flat_map(|(_, rows)| rows.iter());
            next.extend(rows.flat_map(|part| row(part.split_ascii_whitespace(), states.clone(), tokens, exact)));
        } else {
            next.extend(states.iter().flat_map(|state| step(state, element, tokens, exact)));
        }
        states = cheapest(next);
        if states.is_empty() {
            break;
        }
    }
    states
}

/// One state for each place, the cheapest.
fn cheapest(mut states: Vec<Match>) -> Vec<Match> {
    states.sort_by_key(|state| (state.at, state.rank()));
    states.dedup_by_key(|state| state.at);
    states
}

/// The ways one element goes on from a state.
fn step(state: &Match, element: &'static str, tokens: &[Token<'_>], exact: bool) -> Vec<Match> {
    let mut out = Vec::new();
    for at in state.at..tokens.len() {
        let Some(before) = skip_to(state.clone(), at, tokens, exact) else { break };
        out.extend(took(before, element, tokens, exact));
    }
    out
}

fn skip_to(mut state: Match, to: usize, tokens: &[Token<'_>], exact: bool) -> Option<Match> {
    let passed = tokens.iter().enumerate().take(to).skip(state.at);
    state.skipped.extend(passed.filter(|(_, token)| !is_filler(token)).map(|(at, _)| at));
    state.at = to;
    (!exact || state.skipped.is_empty()).then_some(state)
}

pub(crate) fn is_filler(token: &Token<'_>) -> bool {
    token.quote.is_none() && is(&token.low, FILLERS)
}

fn took(mut state: Match, element: &'static str, tokens: &[Token<'_>], exact: bool) -> Option<Match> {
    let token = tokens.get(state.at)?;
    if let Some(slot) = element.strip_prefix('{').and_then(|slot| slot.strip_suffix('}')) {
        let length = filled(slot, tokens.get(state.at..)?, exact)?;
        state.slots.extend((state.at..state.at + length).map(|at| (slot, at)));
        state.at += length;
        state.taken += length;
        state.until = state.at;
        return Some(state);
    }
    if token.quote.is_some() {
        return None;
    }
    let words = || element.split('|').flat_map(expanded);
    if !words().any(|word| word == token.low) {
        let word = words().find(|word| !exact && noun(&token.low).is_none() && nearly(&token.low, word))?;
        state.respelt.push((state.at, word));
    }
    state.at += 1;
    state.taken += 1;
    state.until = state.at;
    Some(state)
}

fn expanded(word: &'static str) -> impl Iterator<Item = &'static str> {
    let set = word.strip_prefix('@').and_then(|set| SETS.iter().find(|(name, _)| *name == set));
    set.map_or(word, |(_, words)| words).split('|')
}

/// Words that are never a bare name: what they ask for is another thing than their letters. Quoted they are.
const NO_NAMES: &str = "not don't dont no never none nothing without except but only if unless when while until because or and \
    than that which who whom whose what where why how it them they he she something anything everything someone better \
    worse wrong right good bad new old other same such more less most least many much few some both either neither long \
    short slow fast large big small unused empty failing broken dead recent recently changed modified is are was were be \
    been do does did have has had will would should can could may might must for with by to from of in on at as the a an";

/// Words behind "in" that are never a bare directory.
const NO_DIRS: &str = "total general order case particular detail short comments strings words which that what there it them \
    parallel french german english spanish";

/// How many tokens the slot takes here.
fn filled(slot: &str, tokens: &[Token<'_>], exact: bool) -> Option<usize> {
    let token = tokens.first()?;
    let (text, low, bare) = (token.text, token.low.as_str(), token.quote.is_none());
    let plain = bare && !is(low, NO_NAMES) && !text.contains(['"', '`', '“', '”']);
    let lang = || Lang::named(low).is_some() && bare;
    let fits = match slot {
        "quoted" => !bare && !text.is_empty(),
        "tick" => token.quote == Some('`') && !text.is_empty(),
        "text" => !text.is_empty() && (!bare || plain && noun(low).is_none() && !is_todo(low)),
        "name" => !text.is_empty() && (!bare || plain && text.chars().all(|c| is_word(c) || "$:.()!-/@".contains(c))),
        "code" => !text.is_empty() && (!bare || plain && is_code(text)),
        "body" => !bare || text.contains('(') && text.ends_with(')'),
        "path" => (is_path(text) || !bare) && !text.is_empty(),
        "new" => is_path(text) || extension(text).is_some(),
        "dir" => !text.is_empty() && (!bare || is_path(text) || plain && is_dir(text) && !is(low, NO_DIRS)),
        "folder" => {
            let path = is_path(text) && extension(text).is_none();
            !text.is_empty() && (!bare || path || exact && plain && is_dir(text) && !text.contains('.'))
        }
        "manifest" => {
            is_path(text) && extension(text).is_some_and(|ext| is(ext, "toml json yaml yml ini cfg lock mod"))
        }
        "first" => bare && is(low, "first top"),
        "last" => bare && low == "last",
        "old" => !bare && !text.is_empty() || plain && is_code(text),
        "word" => !bare && !text.is_empty() || plain && is_dir(text) && !is_path(text),
        "to" => !bare || plain && !is(low, NO_DIRS),
        "glob" => bare && (text.contains(['*', '{']) && !text.contains('(') || is_ending(text)),
        "ext" => bare && (is_ending(text) || extension(&format!("x.{low}")).is_some() && low.len() < 6 && plain),
        "lang" => lang(),
        "noun" => bare && noun(low).is_some(),
        "todo" => bare && is_todo(low),
        "key" => !text.is_empty() && (!bare || is(low, KEYS)),
        "anykey" => !bare && !text.is_empty() || plain && is_identifier(&text.replace(['-', '.'], "_")),
        "num" => bare && text.parse::<u64>().is_ok_and(|n| n > 0),
        "range" => {
            bare && text.split_once('-').is_some_and(|(a, b)| a.parse::<u64>().is_ok() && b.parse::<u64>().is_ok())
        }
        "it" => bare && is(low, "it that"),
        "script" => (is_path(text) || !bare) && extension(text).is_some(),
        "command" => return command(tokens),
        _other => false,
    };
    fits.then_some(1)
}

const KEYS: &str = "version name license licence edition description author authors";

fn is_todo(low: &str) -> bool {
    is(low, "todo todos fixme fixmes")
}

fn is_ending(text: &str) -> bool {
    text.strip_prefix('.').is_some_and(|ext| ext.len() < 6 && ext.chars().all(char::is_alphanumeric) && !ext.is_empty())
}

/// Written as programs write names, not as people write words.
fn is_code(text: &str) -> bool {
    let inside = text.chars().skip(1).any(char::is_uppercase);
    inside
        || text.starts_with(char::is_uppercase)
        || text.contains(['_', '(', '$'])
        || text.contains("::")
        || text.ends_with('!')
}

fn is_dir(text: &str) -> bool {
    text.chars().all(|c| is_word(c) || "-./@+".contains(c))
}

/// Endings of files in no language that is known.
const ENDINGS: &str = "txt lock cfg conf ini log csv html css xml svg sql proto env rst adoc mk nix gradle mod sum";

/// Looks like a file or a directory.
pub(crate) fn is_path(text: &str) -> bool {
    let odd = text.contains("://") || text.contains(|c: char| c.is_whitespace() || "(\"=<>;*{".contains(c));
    let known = extension(text).is_some_and(|ext| Lang::of(ext).is_some() || is(ext, ENDINGS));
    let plain = is(&text.to_lowercase(), ". makefile dockerfile readme license changelog");
    !odd && (plain || known || text.contains('/') && text.len() > 1 || text.starts_with(".git"))
}

/// Programs that "run" may be followed by without quotes; any other command is quoted.
const PROGRAMS: &str = "cargo git npm npx node python python3 pytest go rustc ls make echo cat wc date pwd true false uname \
                        which whoami df du";
/// Their usual first arguments; other plain words could be meant for the planner.
const ARGUMENTS: &str =
    "test tests build check run clippy fmt doc bench status log diff branch version install vet tidy start lint";

/// A command without quotes: a program, then what can only be meant for it.
fn command(tokens: &[Token<'_>]) -> Option<usize> {
    let (first, rest) = tokens.split_first()?;
    if first.quote.is_some() || !(is(first.text, PROGRAMS) || first.text.starts_with("./")) {
        return None;
    }
    let more = |token: &&Token<'_>| {
        let path = is_path(token.text) && !token.text.contains(['\'', '$', '&', '|']);
        token.quote.is_some() || token.text.starts_with('-') || path || is(token.text, ARGUMENTS)
    };
    let ended = first.tail != ' ';
    Some(1 + if ended { 0 } else { rest.iter().take_while(more).count() })
}
