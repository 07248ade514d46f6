//! Finds files in a shell command that may hold secrets, as far as its text shows them. A command can read a file that
//! it does not name; the sandbox bounds that. This check keeps an honest command from reading secrets without consent.
//! Does not depend on rules.

use authority::{ErrorKind, FileKind, Location, Workspace};
use shell::{CommandLine, Part, Word};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Limits on the different words of a command that are looked up, on the directory entries that its patterns are
/// compared with, on the names in one path, and on the directories that names may start from.
const MAX_WORDS: usize = 4096;
const MAX_ENTRIES: usize = 4096;
const MAX_NAMES: usize = 64;
const MAX_BASES: usize = 8;

/// Characters that end a name inside a word: `HEAD:.env`, `--file=.env`, `x=@.env`, `open('.env')`.
const SEPARATORS: &[char] = &[
    '=', ':', ',', '@', ';', '(', ')', '{', '}', '<', '>', '!', '\'', '"', '`', '|', '&',
];

/// Placeholder for a variable or a substitution.
const EXPANSION: char = '\u{1a}';

/// Names that a pattern in an unknown directory is compared with.
const SAMPLES: [&str; 9] = [
    ".env",
    ".env.local",
    ".netrc",
    ".npmrc",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ed25519_sk",
    "key.pem",
];

/// A file that a command names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// At this path.
    At(PathBuf),
    /// By this name, in a directory that the text does not show.
    Somewhere(String),
}

/// The files that may hold secrets among those that a command names.
pub(super) fn named(text: &str, script: &CommandLine, workspace: &Workspace) -> BTreeSet<Named> {
    let mut search = Search::new(Wanted::Secrets, text, script, workspace);
    for part in &script.parts {
        words(part).for_each(|word| search.word(word));
    }
    // Names in code for an interpreter, in a loop's list or behind a wrapper's option are in no word.
    if script.parts.iter().any(shows_less) {
        search.text(text);
    }
    search.found
}

/// Programs that change the files that they are given.
const WRITERS: [&str; 18] = [
    "chgrp", "chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mv", "rm", "rmdir", "rsync",
    "setfattr", "shred", "tee", "touch", "truncate", "unlink",
];

/// The paths in directories of plugins that a command may change, as far as its text shows them.
pub(super) fn plugins(text: &str, script: &CommandLine, workspace: &Workspace) -> BTreeSet<Named> {
    let mut search = Search::new(Wanted::Plugins, text, script, workspace);
    for part in &script.parts {
        let in_place =
            |word: &Word| word.bare().starts_with("-i") || word.bare().contains("in-place");
        let writes = match part.program_name() {
            Some("sed") => part.arguments.iter().any(in_place),
            name => name.is_some_and(|name| WRITERS.contains(&name)),
        };
        if writes {
            words(part).for_each(|word| search.word(word));
        }
        let files = part
            .redirections
            .iter()
            .filter(|redirection| redirection.writes());
        files.for_each(|redirection| search.word(&redirection.target));
    }
    if script.parts.iter().any(|part| part.opaque.is_some()) {
        search.text(text);
    }
    search.found
}

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Files that may hold secrets.
    Secrets,
    /// Directories of plugins, and what is in them.
    Plugins,
}

fn words(part: &Part) -> impl Iterator<Item = &Word> {
    let set = part.assignments.iter().map(|assignment| &assignment.value);
    let files = part
        .redirections
        .iter()
        .map(|redirection| &redirection.target);
    part.program
        .iter()
        .chain(&part.arguments)
        .chain(set)
        .chain(files)
}

/// Whether a part may use words that are not among its own.
fn shows_less(part: &Part) -> bool {
    part.opaque.is_some()
        || !part.wrappers.is_empty()
        || words(part).any(|word| word.bare().contains(['$', '`']))
}

/// The directories that names may start from: the working directory, and those that the command goes to.
pub(super) fn bases(script: &CommandLine, workspace: &Workspace) -> Vec<PathBuf> {
    let mut bases = vec![workspace.cwd().to_owned()];
    let moves = script.parts.iter().flat_map(|part| {
        let cd = matches!(part.program_name(), Some("cd" | "pushd"));
        let options = part
            .arguments
            .windows(2)
            .filter(|pair| pair.first().and_then(Word::literal) == Some("-C"));
        let after = options.filter_map(|pair| pair.last());
        part.arguments
            .iter()
            .filter(move |_| cd)
            .chain(after)
            .filter_map(Word::literal)
    });
    for dir in moves.take(MAX_BASES) {
        // One after the other, and each by itself.
        let below: Vec<_> = bases.iter().map(|base| base.join(dir)).collect();
        bases.extend(below);
        bases.truncate(MAX_BASES);
    }
    bases
}

struct Search<'a> {
    wanted: Wanted,
    workspace: &'a Workspace,
    bases: Vec<PathBuf>,
    /// Whether wildcards may match a dot at the beginning of a name.
    dotted: bool,
    seen: BTreeSet<String>,
    found: BTreeSet<Named>,
    listed: BTreeMap<PathBuf, Vec<(String, FileKind)>>,
    entries: usize,
}

impl<'a> Search<'a> {
    fn new(wanted: Wanted, text: &str, script: &CommandLine, workspace: &'a Workspace) -> Self {
        let dotted = ["dotglob", "GLOBIGNORE"]
            .iter()
            .any(|option| text.contains(option));
        let seen = BTreeSet::new();
        let found = BTreeSet::new();
        let listed = BTreeMap::new();
        Self {
            wanted,
            workspace,
            bases: bases(script, workspace),
            dotted,
            seen,
            found,
            listed,
            entries: 0,
        }
    }

    /// All names in a text.
    fn text(&mut self, text: &str) {
        let bare: String = text
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .collect();
        for text in [text, &bare] {
            text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c))
                .for_each(|token| self.pattern(token));
        }
    }

    fn word(&mut self, word: &Word) {
        match word.literal() {
            Some(text) => pieces(text).into_iter().for_each(|piece| self.name(piece)),
            None => {
                let text = without_expansions(word.bare());
                pieces(&text)
                    .into_iter()
                    .for_each(|piece| self.pattern(piece));
            }
        }
    }

    fn by_letters(&self, name: impl AsRef<Path>) -> bool {
        self.wanted == Wanted::Secrets && self.workspace.secret_names().matches(name.as_ref())
    }

    /// Checks a name without wildcards: where it exists, else where it would be.
    fn name(&mut self, text: &str) {
        if !self.seen.insert(text.to_owned()) {
            return;
        }
        if self.seen.len() > MAX_WORDS {
            self.found.insert(Named::Somewhere(format!(
                "one of more than {MAX_WORDS} words"
            )));
            return;
        }
        let mut at: Vec<(PathBuf, bool)> = Vec::new();
        for base in self.bases.clone() {
            let path = base.join(text);
            match self.workspace.locate(&path) {
                Ok(Location::Inside(found)) => {
                    let below = self
                        .workspace
                        .roots()
                        .find_map(|(root, _)| path.strip_prefix(root).ok());
                    let written =
                        below.is_some_and(|below| self.by_letters(super::place::plain(below)));
                    let is_wanted = match self.wanted {
                        Wanted::Secrets => written || self.workspace.may_hold_secrets(&found),
                        Wanted::Plugins => super::place::leads_to_plugins(found.relative()),
                    };
                    if is_wanted {
                        let exists = self.workspace.metadata(&found).is_ok();
                        at.push((path, exists));
                    }
                }
                Ok(Location::Outside(_)) => {}
                // A path that cannot be resolved now may exist when the command runs.
                Err(_) => self.by_name(text),
            }
        }
        let known = at.iter().any(|(_, exists)| *exists);
        let at = at.into_iter().filter(|(_, exists)| *exists == known);
        self.found
            .extend(
                at.map(|(path, _)| Named::At(path))
                    .take(if known { MAX_BASES } else { 1 }),
            );
    }

    fn by_name(&mut self, text: &str) {
        // Of an absolute path only the file name is checked: which of its directories is a root is not known here.
        let path = Path::new(text);
        let name = if path.is_absolute() {
            path.file_name().map(Path::new)
        } else {
            Some(path)
        };
        if name.is_some_and(|name| self.by_letters(name)) {
            self.found.insert(Named::Somewhere(text.to_owned()));
        }
    }

    /// Checks a name with wildcards and expansions.
    fn pattern(&mut self, text: &str) {
        if !wild(text) {
            return if text.starts_with('~') {
                self.somewhere(text)
            } else {
                self.name(text)
            };
        }
        let (dir, last) = text.rsplit_once('/').unwrap_or(("", text));
        let parts: Vec<&str> = text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if dir.contains(EXPANSION) || dir.starts_with('~') || parts.len() > MAX_NAMES {
            return self.somewhere(text);
        }
        // A variable alone does not show a name.
        if last.starts_with(EXPANSION) && !last.contains(char::is_alphanumeric) {
            return;
        }
        let bases = if text.starts_with('/') {
            vec![PathBuf::from("/")]
        } else {
            self.bases.clone()
        };
        bases
            .into_iter()
            .for_each(|base| self.expand(base, &parts, text));
    }

    /// Checks a pattern in an unknown directory, by each of its names.
    fn somewhere(&mut self, text: &str) {
        for part in text
            .split('/')
            .filter(|part| part.contains(char::is_alphanumeric))
        {
            let samples = SAMPLES.iter().filter(|_| self.wanted == Wanted::Secrets);
            if self.by_letters(part) || samples.copied().any(|name| self.fits(part, name)) {
                self.found
                    .insert(Named::Somewhere(part.replace(EXPANSION, "*")));
            }
        }
    }

    /// Expands a pattern below a directory, name by name.
    fn expand(&mut self, at: PathBuf, parts: &[&str], text: &str) {
        let Some((part, rest)) = parts.split_first() else {
            return match at.to_str() {
                Some(path) => self.name(path),
                None => self.by_name(&at.to_string_lossy()),
            };
        };
        if !wild(part) {
            return self.expand(at.join(part), rest, text);
        }
        let Some(entries) = self.entries(&at) else {
            return self.somewhere(text);
        };
        for (name, kind) in entries {
            let goes_on = rest.is_empty() || matches!(kind, FileKind::Dir | FileKind::Symlink);
            if goes_on && self.fits(part, &name) {
                self.expand(at.join(&name), rest, text);
            }
        }
    }

    /// The names in a directory; `None` if there are too many.
    fn entries(&mut self, dir: &Path) -> Option<Vec<(String, FileKind)>> {
        if let Some(known) = self.listed.get(dir) {
            return Some(known.clone());
        }
        let found = match self.workspace.locate(dir) {
            Ok(Location::Inside(at)) => match self.workspace.read_dir(&at) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::Exhausted => return None,
                Err(_) => Vec::new(),
            },
            Ok(Location::Outside(_)) | Err(_) => Vec::new(),
        };
        self.entries += found.len();
        if self.entries > MAX_ENTRIES {
            return None;
        }
        let found: Vec<_> = found
            .into_iter()
            .map(|(name, meta)| (name.to_string_lossy().into_owned(), meta.kind))
            .collect();
        self.listed.insert(dir.to_owned(), found.clone());
        Some(found)
    }

    /// Whether a pattern may match a name.
    fn fits(&self, part: &str, name: &str) -> bool {
        let hidden =
            name.starts_with('.') && !self.dotted && !part.starts_with(['.', '{', EXPANSION]);
        let mut pattern: Vec<char> = part.to_lowercase().chars().collect();
        // Brackets and braces match anything.
        for (open, close) in [('[', ']'), ('{', '}')] {
            let ends = (
                pattern.iter().position(|c| *c == open),
                pattern.iter().rposition(|c| *c == close),
            );
            if let (Some(from), Some(to)) = ends
                && from < to
            {
                pattern.splice(from..=to, ['*']);
            }
        }
        let name: Vec<char> = name.to_lowercase().chars().collect();
        !hidden && matches(&pattern, &name)
    }
}

fn wild(text: &str) -> bool {
    let braces = text.contains('{') && (text.contains(',') || text.contains(".."));
    braces || text.contains(['*', '?', '[', EXPANSION])
}

/// `*` and expansions match any characters, `?` one.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let many = |c: &char| matches!(*c, '*' | EXPANSION);
    let mut p = 0;
    let mut n = 0;
    let mut back = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(c) if many(c) => {
                back = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == '?' || Some(c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            Some(_) | None => match back {
                Some((after, from)) => {
                    back = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(many)
}

/// The word, its pieces between separators, and what follows an option's letter.
fn pieces(text: &str) -> Vec<&str> {
    let mut all = vec![text];
    if text.contains(SEPARATORS) {
        all.extend(text.split(SEPARATORS));
    }
    let attached: Vec<&str> = all
        .iter()
        .filter_map(|piece| piece.strip_prefix('-')?.get(1..))
        .collect();
    all.extend(attached);
    all.retain(|piece| !piece.is_empty());
    all
}

/// A word with [`EXPANSION`] instead of variables and substitutions, and without backslashes.
fn without_expansions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {}
            '$' => {
                out.push(EXPANSION);
                match chars.peek().copied() {
                    Some(open @ ('{' | '(')) => {
                        skip(&mut chars, open, if open == '{' { '}' } else { ')' })
                    }
                    Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                        while chars
                            .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
                            .is_some()
                        {}
                    }
                    Some(_) | None => drop(chars.next()),
                }
            }
            '`' => {
                out.push(EXPANSION);
                while chars.next().is_some_and(|c| c != '`') {}
            }
            c => out.push(c),
        }
    }
    out
}

/// Skips to the bracket that closes the next one.
fn skip(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, open: char, close: char) {
    let mut depth = 0_usize;
    for c in chars.by_ref() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return;
            }
        }
    }
}
