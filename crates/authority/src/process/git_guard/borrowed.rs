//! The directories of other repositories whose objects a repository uses: `objects/info/alternates`, after `git clone --shared`
//! or `--reference`.
//!
//! A command or an archive can write that file with any path in it. Therefore a directory counts only if it is the `objects` of
//! a repository of this user, and if a branch, a tag or the history of one is the same commit here and there: who does not
//! know a repository cannot name a commit of it.

use super::linked::{is_repository, path_of, start};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file that names them, in a repository. Git reads it in each of those, too.
pub(super) const ALTERNATES: &str = "objects/info/alternates";

/// The most directories; and of one repository the most files that name commits, and the most bytes of one.
const MAX_DIRS: usize = 16;
const MAX_FILES: usize = 256;
const MAX_BYTES: u64 = 128 * 1024;

/// Digits of the name of a commit.
const NAME: [usize; 2] = [40, 64];

/// The directories of objects that this repository uses beside its own, and those that they use. Names only: no handle.
pub fn borrowed_objects(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![git.to_owned()];
    while let Some(git) = todo.pop() {
        let Some(bytes) = start(&git.join(ALTERNATES), MAX_BYTES) else {
            continue;
        };
        let own = commits(&git);
        for line in lines(&bytes) {
            let Ok(dir) = git.join("objects").join(line).canonicalize() else {
                continue;
            };
            let Some(whole) = dir.parent().filter(|_| dir.ends_with("objects")) else {
                continue;
            };
            let is_new = found.len() < MAX_DIRS && !found.contains(&dir) && whole != git;
            if is_new && is_repository(whole) && !own.is_disjoint(&commits(whole)) {
                todo.push(whole.to_owned());
                found.push(dir);
            }
        }
    }
    found
}

/// The paths in a file of alternates. Quoted ones are left out.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !matches!(line.first(), None | Some(b'#' | b'"')))
        .map(path_of)
}

/// What the references of a repository name, and named before.
fn commits(git: &Path) -> BTreeSet<Vec<u8>> {
    let mut todo = ["logs", "refs", "packed-refs", "HEAD"]
        .map(|name| git.join(name))
        .to_vec();
    let mut found = BTreeSet::new();
    let mut seen = 0;
    while let Some(path) = todo.pop().filter(|_| seen < MAX_FILES) {
        seen += 1;
        match start(&path, MAX_BYTES) {
            Some(bytes) => {
                // A line of a history begins with two names, and goes on with words.
                let words = bytes
                    .split(|byte| *byte == b'\n')
                    .flat_map(|line| line.split(|byte| *byte == b' ').take(2));
                let is_name = |word: &&[u8]| {
                    NAME.contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit)
                };
                found.extend(
                    words
                        .filter(is_name)
                        .filter(|word| word.iter().any(|byte| *byte != b'0'))
                        .map(<[u8]>::to_owned),
                );
            }
            None => todo.extend(
                std::fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            ),
        }
    }
    found
}
