//! Finding the programs that the words of a simple command start.

use crate::command_line::{Assignment, Part, words_text};
use crate::names::{base_name, is_system_path};
use crate::opaque::OpaqueReason;
use crate::word::Word;
use crate::wrappers::{self, Wrapped};
use crate::{code, find, variables};

impl Part {
    /// What it runs where its program is a link to one of this name.
    #[must_use]
    pub fn through_link(&self, name: &str) -> Vec<Self> {
        let words: Vec<Word> = std::iter::once(Word::plain(name))
            .chain(self.arguments.iter().cloned())
            .collect();
        started(&words).into_iter().map(Self::from).collect()
    }
}

/// Most programs that start one another in one command.
const MAX_WRAPPERS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Invocation {
    pub(crate) program: Option<Word>,
    pub(crate) arguments: Vec<Word>,
    pub(crate) wrappers: Vec<String>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) opaque: Option<OpaqueReason>,
    /// Files that it runs by name.
    pub(crate) also: Vec<Part>,
}

impl From<Invocation> for Part {
    fn from(started: Invocation) -> Self {
        let Invocation {
            program,
            arguments,
            wrappers,
            assignments,
            opaque,
            also,
        } = started;
        let text = words_text(program.iter().chain(&arguments).map(Word::raw));
        Self {
            text,
            program,
            arguments,
            wrappers,
            assignments,
            opaque,
            also,
            ..Self::default()
        }
    }
}

/// The files that a call runs by their names, and those that these run, as they are judged.
fn files(name: &str, arguments: &[Word]) -> Vec<Part> {
    let mut found = Vec::new();
    let mut next = code::files(name, arguments);
    for _ in 0..MAX_WRAPPERS {
        let run = std::mem::take(&mut next);
        for (program, arguments) in run.iter().filter_map(|words| words.split_first()) {
            let name = program.literal().map(base_name).unwrap_or_default();
            next.extend(code::files(name, arguments));
            found.push(Part {
                program: Some(program.clone()),
                arguments: arguments.to_vec(),
                ..Part::default()
            });
        }
    }
    found.extend(next.first().map(|_| Part {
        opaque: Some(OpaqueReason::TooDeep),
        ..Part::default()
    }));
    found
}

/// All programs that a command starts: the program itself, and the programs that it starts in turn, if they are
/// literal.
pub(crate) fn started(words: &[Word]) -> Vec<Invocation> {
    let mut found = Vec::new();
    start(words, Invocation::default(), 0, &mut found);
    found
}

fn start(words: &[Word], mut so_far: Invocation, depth: usize, found: &mut Vec<Invocation>) {
    let Some((program, arguments)) = words.split_first() else {
        return;
    };
    so_far.program = Some(program.clone());
    so_far.arguments = arguments.to_vec();
    let Some(path) = program.literal().filter(|path| !base_name(path).is_empty()) else {
        so_far.opaque = Some(OpaqueReason::Program);
        found.push(so_far);
        return;
    };
    let name = base_name(path);
    if depth == MAX_WRAPPERS {
        so_far.opaque = Some(OpaqueReason::TooDeep);
        found.push(so_far);
        return;
    }
    match wrappers::unwrap(name, arguments) {
        Wrapped::Nothing => found.push(so_far),
        Wrapped::Odd => {
            so_far.opaque = Some(OpaqueReason::Wrapper(name.to_owned()));
            found.push(so_far);
        }
        Wrapped::From {
            at,
            plain,
            assignments,
        } => {
            let mut inner: Vec<Word> = arguments.iter().skip(at).cloned().collect();
            if name == "xargs" {
                inner = inner.iter().map(find::filled).collect();
                inner.push(Word::hidden("…"));
            }
            let mut next = Invocation::default();
            if plain && (path == name || is_system_path(path)) {
                next.wrappers = std::mem::take(&mut so_far.wrappers);
                next.wrappers.push(name.to_owned());
                next.assignments = std::mem::take(&mut so_far.assignments);
            } else {
                found.push(so_far);
            }
            if let Some(bad) = assignments.iter().find(|a| variables::dangerous(a)) {
                next.opaque = Some(OpaqueReason::Variable(bad.name.clone()));
            }
            next.assignments.extend(assignments);
            start(&inner, next, depth + 1, found);
        }
        Wrapped::No => {
            if name == "find" && find::unknown(arguments) {
                so_far.opaque = so_far
                    .opaque
                    .or(Some(OpaqueReason::Wrapper(name.to_owned())));
            }
            let bare = so_far.wrappers.is_empty() && program.raw() == name;
            so_far.opaque = so_far.opaque.or_else(|| code::runs(name, bare, arguments));
            so_far.also = files(name, arguments);
            found.push(so_far);
            if name == "find" {
                for inner in find::commands(arguments) {
                    start(&inner, Invocation::default(), depth + 1, found);
                }
            }
        }
    }
}
