//! Files under directories that were handed over: a [`Workspace`].
//!
//! A path is judged once, by [`Workspace::locate`], which settles `..` and every symbolic link. What comes out is a
//! [`Located`]: a root and a path below it without links. Every operation then goes from the root's directory handle
//! name by name and refuses links, so a link that was put there in between is an error, not a way out.

mod dirs;
mod locate;
mod open;
mod secrets;
mod show;
mod stage;
mod walk;
mod workspace;

pub use dirs::LockDir;
pub(crate) use locate::resolve;
pub use locate::{Located, Location, MAX_LINKS, MAX_PATH};
pub use open::{FileKind, MAX_DIR_ENTRIES, Meta, Stamp};
pub(crate) use open::{Name, looked_at, meta_at, names, relink, target};
pub use secrets::SecretNames;
pub use show::escape;
pub use stage::Staged;
pub use walk::{MAX_IGNORE_FILE, MAX_WALK_DEPTH, Walk, WalkEntry, WalkOptions};
pub use workspace::{Access, Workspace};
