//! Patterns over the tokens of a clause. A clause is understood when a pattern takes every token of it that is no
//! filler.
//!
//! A pattern is a row of elements: words with `|` between alternatives, `@set` for a list of [`SETS`], `{slot}` for the
//! subject of the request, `<part>` for the patterns of one of [`PARTS`]; with `?` an element may be missing. The
//! farthest token that fits no pattern is where a clause is not understood.

use crate::lang::{Lang, noun};
use crate::lex::{Token, extension, is, is_identifier, is_word};

/// Words that do not change the meaning of a request.
const FILLERS: &str = "please kindly the a an me us my our this these also all every each any";

#[rustfmt::skip]
const SETS: &[(&str, &str)] = &[
    ("list", "list|show|print|display|give|get|see|ls|enumerate|find"),
    ("show", "show|print|display|give|get|see|read|view|open|cat|output"),
    ("find", "find|locate|list|show|get|see|give|search"),
    ("what", "what|which"),
    ("is", "is|are"),
    ("in", "in|inside|within|under|below|across|throughout|of|from"),
    ("place", "project|repo|repository|codebase|code|workspace|crate|package|program|app|application|library|source|sources"),
    ("dirword", "directory|folder|dir"),
    ("file", "file|files"),
    ("contents", "files|contents|content|everything|entries"),
    ("largest", "largest|biggest|longest"),
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

/// Named parts of patterns; `;` separates alternatives.
#[rustfmt::skip]
const PARTS: &[(&str, &str)] = &[
    ("in", "@in current|whole|entire? @place|@dirword|tree; @in {lang} files|code|sources?; @in {glob} files?; \
        @in @file|@dirword? {dir} @dirword|file|module|files?; here|everywhere|anywhere"),
    ("in it", "@in? input|text|diff|stdin|output|log|it|this|here"),
    ("todo", "{todo} comments|notes|items?; {todo} and|or|and/or {todo} comments|notes?"),
    ("seek", "@find|@what; @is there; where|what @is; search|grep|look for?"),
    ("howmany", "how many; count|number; what|what's is? number of; total? number of"),
    ("are", "@is there; @is defined|found?; exist; do|does we|it|@place|@dirword have|contain; \
        do|does {path} define|have|contain; do|does {dir} @dirword? define|have|contain"),
    ("of", "@in @place; @in {path}"),
    ("occurrences", "@times of"),
    ("part", "line|lines {range}; line|lines {num} to|through|and|- {num}; line {num}; first|top|last {num} lines"),
    ("polite", "can|could|would|will you|i; i|we want|need you? to; i|i'd would? like to; \
        let's|lets|just|tell|hey|hi|hello|yoi|ok|okay|thanks; do you know; thank you"),
    ("after", "for me; thanks|now|altogether|exactly; thank you; right now; in total|all"),
    ("lead", "print|show|give|display|read|cat|view|see|get|output|open; what @is|'s; what's"),
];

/// A partial match of a pattern: its position, and the slots with the tokens that fill them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Match {
    pub(crate) at: usize,
    slots: Vec<(&'static str, usize)>,
}

impl Match {
    /// The tokens that fill a slot.
    pub(crate) fn slot(&self, name: &str) -> impl Iterator<Item = usize> {
        self.slots
            .iter()
            .filter(move |(slot, _)| *slot == name)
            .map(|(_, at)| *at)
    }

    pub(crate) fn fills(&self, token: usize) -> bool {
        self.slots.iter().any(|(_, at)| *at == token)
    }
}

/// The subject of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Files,
    /// Files, and a word without any mark may be a directory.
    Guessed,
    /// The text that was piped in: no file is named, and "in it" is the text.
    Piped,
}

/// Matches patterns, and records the farthest token that matched none.
pub(crate) struct Matcher<'a> {
    pub(crate) tokens: &'a [Token<'a>],
    pub(crate) subject: Subject,
    pub(crate) farthest: usize,
}

impl Matcher<'_> {
    /// The clause that begins at a token, without the polite words before it.
    pub(crate) fn starts(&mut self, from: usize) -> Vec<Match> {
        let bare = vec![Match {
            at: from,
            slots: Vec::new(),
        }];
        self.row("<polite>? <polite>?", bare)
    }

    /// Every way in which a pattern fits from one of these places on.
    pub(crate) fn matches(&mut self, pattern: &'static str, starts: Vec<Match>) -> Vec<Match> {
        let states = match pattern.strip_prefix('~') {
            Some(bare) => {
                let before = self.row("<in>?", starts);
                let inner = self.row(bare, before);
                self.row("<in>? <in>?", inner)
            }
            None => self.row(pattern, starts),
        };
        let states = self.row("<after>? <after>?", states);
        states
            .into_iter()
            .map(|state| Match {
                at: self.past_fillers(state.at),
                ..state
            })
            .collect()
    }

    fn row(&mut self, pattern: &'static str, mut states: Vec<Match>) -> Vec<Match> {
        for element in pattern.split_ascii_whitespace() {
            let (element, optional) = element
                .strip_suffix('?')
                .map_or((element, false), |bare| (bare, true));
            let mut next = if optional { states.clone() } else { Vec::new() };
            if let Some(part) = element
                .strip_prefix('<')
                .and_then(|part| part.strip_suffix('>'))
            {
                let part = if part == "in" && self.subject == Subject::Piped {
                    "in it"
                } else {
                    part
                };
                let rows = PARTS
                    .iter()
                    .filter(|(name, _)| *name == part)
                    .flat_map(|(_, rows)| rows.split("; "));
                next.extend(rows.flat_map(|part| self.row(part, states.clone())));
            } else {
                next.extend(states.iter().flat_map(|state| self.step(state, element)));
            }
            // One state for each place.
            next.sort_by_key(|state| state.at);
            next.dedup_by_key(|state| state.at);
            states = next;
        }
        states
    }

    /// The matches after one more element: at the next token, or behind fillers.
    fn step(&mut self, state: &Match, element: &'static str) -> Vec<Match> {
        let last = self.past_fillers(state.at);
        let took: Vec<Match> = (state.at..=last)
            .filter_map(|at| self.took(state, at, element))
            .collect();
        if took.is_empty() {
            self.farthest = self.farthest.max(last);
        }
        took
    }

    fn past_fillers(&self, from: usize) -> usize {
        let fillers = self
            .tokens
            .iter()
            .skip(from)
            .take_while(|token| is_filler(token))
            .count();
        from + fillers
    }

    fn took(&self, state: &Match, at: usize, element: &'static str) -> Option<Match> {
        let token = self.tokens.get(at)?;
        let mut slots = state.slots.clone();
        if let Some(slot) = element
            .strip_prefix('{')
            .and_then(|slot| slot.strip_suffix('}'))
        {
            let length = filled(slot, self.tokens.get(at..)?, self.subject)?;
            slots.extend((at..at + length).map(|at| (slot, at)));
            return Some(Match {
                at: at + length,
                slots,
            });
        }
        let fits = token.quote.is_none()
            && element
                .split('|')
                .flat_map(expanded)
                .any(|word| word == token.low);
        fits.then_some(Match { at: at + 1, slots })
    }
}

pub(crate) fn is_filler(token: &Token<'_>) -> bool {
    token.quote.is_none() && is(&token.low, FILLERS)
}

fn expanded(word: &'static str) -> impl Iterator<Item = &'static str> {
    let set = word
        .strip_prefix('@')
        .and_then(|set| SETS.iter().find(|(name, _)| *name == set));
    set.map_or(word, |(_, words)| words).split('|')
}

/// Words that are never a name unless they are quoted.
const NO_NAMES: &str = "not don't dont no never none nothing without except but only if unless when while until because or and \
    than that which who whom whose what where why how it them they he she something anything everything someone better \
    worse wrong right good bad new old other same such more less most least many much few some both either neither long \
    short slow fast large big small unused empty failing broken dead recent recently changed modified is are was were be \
    been do does did have has had will would should can could may might must for with by to from of in on at as the a an";

/// Words behind "in" that are never a bare directory.
const NO_DIRS: &str = "total general order case particular detail short comments strings words which that what there it them \
    files parallel release debug french german english spanish";

/// Slots for files.
const FILES: &str = "path new dir folder manifest file script whole part glob ext lang";

/// Slots that take whatever is quoted, and the ones of them that take an empty text.
const QUOTED: &str =
    "quoted text name part code path whole file dir folder word key anykey body to";
const EMPTY: &str = "body to";

/// The number of tokens that the slot takes here.
fn filled(slot: &str, tokens: &[Token<'_>], subject: Subject) -> Option<usize> {
    let token = tokens.first()?;
    let text = token.text;
    let low = token.low.as_str();
    let plain = !is(low, NO_NAMES) && !text.contains(['"', '`', '“', '”']);
    let ending = extension(text);
    let fits = match slot {
        _ if subject == Subject::Piped && is(slot, FILES) => false,
        "command" => return command(tokens),
        "new" => is_path(text) || ending.is_some(),
        "manifest" => {
            is_path(text)
                && ending.is_some_and(|ext| is(ext, "toml json yaml yml ini cfg lock mod"))
        }
        "script" => (is_path(text) || token.quote.is_some()) && ending.is_some(),
        _ if token.quote.is_some() => is(slot, QUOTED) && (!text.is_empty() || is(slot, EMPTY)),
        "text" => plain && noun(low).is_none() && !is_todo(low),
        "name" | "part" => plain && text.chars().all(|c| is_word(c) || "$:.()!-/@".contains(c)),
        "code" => plain && is_code(text),
        "body" => text.contains('(') && text.ends_with(')'),
        "path" | "whole" => is_path(text),
        "file" => is_file(text),
        "dir" => is_path(text) || plain && is_dir(text) && !is(low, NO_DIRS),
        "folder" if is_path(text) => ending.is_none(),
        "folder" => subject == Subject::Guessed && plain && is_dir(text) && !text.contains('.'),
        "word" => plain && is_dir(text) && !is_path(text),
        "to" => plain && !is(low, NO_DIRS),
        "glob" => text.contains(['*', '{']) && !text.contains('(') || is_ending(text),
        "ext" => is_ending(text) || plain && is_ending(&format!(".{low}")),
        "lang" => Lang::named(low).is_some(),
        "noun" => noun(low).is_some(),
        "todo" => is_todo(low),
        "key" => is(low, KEYS),
        "anykey" => plain && is_identifier(&text.replace(['-', '.'], "_")),
        "num" => text.parse::<u64>().is_ok_and(|n| n > 0),
        "range" => text
            .split_once('-')
            .is_some_and(|(a, b)| a.parse::<u64>().is_ok() && b.parse::<u64>().is_ok()),
        "it" => is(low, "it that"),
        _other => false,
    };
    fits.then_some(1)
}

const KEYS: &str = "version name license licence edition description author authors";

fn is_todo(low: &str) -> bool {
    is(low, "todo todos fixme fixmes")
}

fn is_ending(text: &str) -> bool {
    // The name of a file.
    text != ".env"
        && text.strip_prefix('.').is_some_and(|ext| {
            ext.len() < 6 && ext.chars().all(char::is_alphanumeric) && !ext.is_empty()
        })
}

/// Written as programs write names, not as people write words.
fn is_code(text: &str) -> bool {
    text.contains(|c: char| c.is_uppercase() || "_($".contains(c))
        || text.contains("::")
        || text.ends_with('!')
}

fn is_dir(text: &str) -> bool {
    text.chars().all(|c| is_word(c) || "-./@+".contains(c))
}

/// Endings of files in no language that is known.
const ENDINGS: &str =
    "txt lock cfg conf ini log csv html css xml svg sql proto env rst adoc mk nix gradle mod sum";

/// Files that are named without their ending, in any case.
pub(crate) fn is_known(text: &str) -> bool {
    is(&text.to_lowercase(), "readme license changelog")
}

/// Looks like a file or a directory.
pub(crate) fn is_path(text: &str) -> bool {
    let odd = text.contains("://")
        || text.contains(|c: char| c.is_whitespace() || "(\"=<>;*{".contains(c));
    let known = extension(text).is_some_and(|ext| Lang::of(ext).is_some() || is(ext, ENDINGS));
    let plain = is_known(text) || text == "." || is(&text.to_lowercase(), "makefile dockerfile");
    !odd && (plain
        || known
        || text.contains('/') && text.len() > 1
        || text.starts_with(".git")
        || text.starts_with(".env"))
}

/// Looks like a file: "README" and "a/b.rs" do, "src" and "a/b" do not.
pub(crate) fn is_file(text: &str) -> bool {
    is_path(text) && text != "." && (extension(text).is_some() || !text.contains('/'))
}

/// Programs that "run" may be followed by without quotes; any other command is quoted.
const PROGRAMS: &str = "cargo git npm npx node python python3 pytest go rustc ls make echo cat wc date pwd true false uname \
                        which whoami df du";
/// Their usual first arguments; other plain words could be meant for the planner.
const ARGUMENTS: &str = "test tests build check run clippy fmt doc bench status log diff branch version install vet tidy start lint";

/// A command: quoted text, or a program and words that can only be its arguments.
fn command(tokens: &[Token<'_>]) -> Option<usize> {
    let (first, rest) = tokens.split_first()?;
    if first.quote.is_some() {
        return (!first.text.is_empty()).then_some(1);
    }
    if !(is(first.text, PROGRAMS) || first.text.starts_with("./")) {
        return None;
    }
    let more = |token: &&Token<'_>| {
        let path = is_path(token.text) && !token.text.contains(['\'', '$', '&', '|']);
        token.quote.is_some() || token.text.starts_with('-') || path || is(token.text, ARGUMENTS)
    };
    let ended = first.tail != ' ';
    Some(
        1 + if ended {
            0
        } else {
            rest.iter().take_while(more).count()
        },
    )
}
