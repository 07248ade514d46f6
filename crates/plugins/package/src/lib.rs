//! Plugins: packages of features that are read, never compiled in. A package is a directory with a manifest; what the
//! manifest declares goes through the same registry as every feature.
//!
//! ```text
//! plugin.toml ─▶ Manifest (data alone) ─▶ DeclarativeFeature ─▶ plan, install, calls: a program for each tool, or guests
//! all files   ─▶ Content (digests)      ─▶ what a grant is for
//! ```
//!
//! Nothing here opens a file or a socket: the host reads packages and hands in what it read.

mod content;
mod declarative;
mod guests;
mod manifest;
mod program;
mod published;

pub use content::{BadContent, Content, MAX_BYTES, MAX_FILES};
pub use declarative::DeclarativeFeature;
pub use manifest::{
    BadManifest, DeclaredFeature, Layout, MANIFEST, MAX_MANIFEST, Manifest, Package, Renames,
    Requires,
};
pub use program::ToolProgram;
pub use published::{PackageServer, ServerKind};
