//! Files below the directories of a grant: a [`Workspace`].
//!
//! [`Workspace::locate`] resolves a path once, with `..` and every symbolic link. The result is a [`Located`]: a root
//! and a path below it without links. Every operation then opens the path from the root's directory handle name by name
//! and refuses links, so a link created in between is an error and leads nowhere.

mod dirs;
mod locate;
mod open;
mod place;
mod secrets;
mod show;
mod stage;
mod walk;
mod watch;
mod workspace;

pub use dirs::LockDir;
pub(crate) use locate::resolve;
pub use locate::{Located, Location, MAX_LINKS, MAX_PATH};
pub use open::{FileKind, MAX_DIR_ENTRIES, Meta, Stamp};
pub(crate) use open::{Name, looked_at, meta_at, names, relink, target};
pub use place::Place;
pub use secrets::SecretNames;
pub use show::escape;
pub use stage::Staged;
pub use walk::{MAX_IGNORE_FILE, MAX_WALK_DEPTH, Walk, WalkEntry, WalkOptions};
pub use watch::{FileChanges, FileWatch, MAX_CHANGED_PATHS, MAX_WATCHED_DIRS};
pub use workspace::{Access, Workspace};
