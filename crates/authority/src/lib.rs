//! Handles that carry authority: directories, child processes and their confinement, network, secrets.
//!
//! No handle, no operation. A handle is created from [`Ambient`] at the composition root and can be narrowed but not
//! widened. Each has a [`Door`]: every operation enters it, is counted, and fails with [`ErrorKind::Revoked`] once the
//! door is shut.
//!
//! This crate does not depend on pods, sessions, tools, models or permissions: the pod and `yoi` decide which code gets
//! which handle. It does not protect against other code in this process, which can call the operating system directly.
#![deny(clippy::wildcard_enum_match_arm)]

mod clock;
mod door;
mod error;
mod fs;
mod net;
mod process;
mod redact;
mod remove;
mod scratch;
mod screen;
mod secret;
pub mod text;
mod withheld;

pub use ambient::Ambient;
pub use clock::dated;
pub use door::{Door, LongUse, OwnedUseGuard, Shut, UseGuard};
pub use error::{Error, ErrorKind, explain, explain_at};
pub use fs::{
    Access, FileChanges, FileKind, FileWatch, Located, Location, LockDir, MAX_CHANGED_PATHS,
    MAX_DIR_ENTRIES, MAX_IGNORE_FILE, MAX_LINKS, MAX_PATH, MAX_WALK_DEPTH, MAX_WATCHED_DIRS, Meta,
    Place, SecretNames, Staged, Stamp, Walk, WalkEntry, WalkOptions, Workspace, escape,
};
pub use net::{
    HostPattern, HostPort, HostProxy, HostRefusal, HostTraffic, Lent, MAX_ADDRESSES, NOT_CONNECTED,
    Net, Resolver, Traffic, is_public,
};
pub use process::{
    Beyond, ChildExit, ChildMemory, ChildResult, Confinement, DRAIN, EnvPolicy, GRACE, GitFinding,
    GitGuard, Handled, HelperProgram, HostChild, Job, KILL_WAIT, LinkedRepository, MAX_LINE,
    Network, OnlyLooks, Peer, Permit, PodProcess, ProcessOwner, QUIET, SandboxMode, SpawnedChild,
    Spawner, StaleHost, Support, Talk, TalkEnv, become_subreaper, borrowed_objects,
    end_descendants, end_stale, end_survivors, is_running, label_descendants, peer_of,
    processes_of, resident_memory, seal_inherited, serve_helper, stale_hosts, started_by_pod,
    support,
};
pub use redact::{MAX_REDACTED, MIN_REDACTED, REDACTED, RedactedStream, Redactor};
pub use remove::remove_dir;
pub use scratch::Scratch;
pub use screen::{OutputScreen, shown};
pub use secret::Secret;
pub use withheld::{Conflict, Withheld, WithheldReason};
