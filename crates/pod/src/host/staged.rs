//! Removes staged files that a killed process left beside their targets.

use crate::session::changes::staged;
use crate::session::fold::FileChangeIntent;
use authority::{Located, Workspace};
use std::path::Path;

/// Removes the remains of an unfinished file change of this session: the staged content with the number of this change,
/// or empty directories that were created for a move. Returns how many were removed. Files that cannot be removed only
/// waste space.
pub fn sweep(files: &Workspace, session: &str, left: &FileChangeIntent) -> u64 {
    // A path through a symlink is not the recorded one.
    let itself = |path: &Path| {
        files
            .inside(path)
            .ok()
            .filter(|at: &Located| at.path() == path)
    };
    let path = Path::new(&left.path);
    let Some(made) = &left.made else {
        let number = staged(session, left.call, &left.path);
        return itself(path)
            .and_then(|at| files.unstage(&at, number).ok())
            .map_or(0, u64::from);
    };
    let above = path
        .ancestors()
        .skip(1)
        .take_while(|above| above.starts_with(made));
    above
        .map_while(|above| files.remove_dir(&itself(above)?).ok())
        .count() as u64
}
