//! Removes staged files that a killed process left beside their targets.

use crate::session::changes::staged;
use crate::session::fold::FileChangeIntent;
use authority::{Located, Workspace};
use std::path::Path;

/// Removes what an announced change of this session left: what is staged for its file, under the number of just this
/// change, or directories that were made for a move that did not happen, as long as nothing is in them. Answers how much
/// went. What cannot be removed stays: it is only space.
pub fn sweep(files: &Workspace, session: &str, left: &FileChangeIntent) -> u64 {
    // Reached through a link, it is not the place that was recorded.
    let itself = |path: &Path| files.inside(path).ok().filter(|at: &Located| at.path() == path);
    let path = Path::new(&left.path);
    let Some(made) = &left.made else {
        let number = staged(session, left.call, &left.path);
        return itself(path).and_then(|at| files.unstage(&at, number).ok()).map_or(0, u64::from);
    };
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(made));
    above.map_while(|above| files.remove_dir(&itself(above)?).ok()).count() as u64
}
