//! Plugins: packages of features that are read, never compiled in. A package is a directory with a manifest; what the
//! manifest declares goes through the same registry as every feature.
//!
//! ```text
//! plugin.toml ─▶ Manifest (data alone) ─▶ DeclarativeFeature ─▶ plan, install, calls: a program for each tool, or guests
//! all files   ─▶ Content (digests)      ─▶ what a grant is for
//! archive     ─▶ Archive (checked)      ─▶ all files
//! ```
//!
//! Nothing here opens a file: the host reads packages and hands in what it read. What an archive comes from is asked over a
//! network that the host gives.

mod archive;
mod content;
mod declarative;
mod fetch;
mod guests;
mod manifest;
mod program;
mod published;
mod signature;

pub use archive::{Archive, ArchivedFile, BadArchive, MAX_ARCHIVE, sha256};
pub use content::{BadContent, Content, MAX_BYTES, MAX_DEPTH, MAX_FILES};
pub use declarative::DeclarativeFeature;
pub use fetch::{ArchiveUrl, Fetched, fetch};
pub use manifest::{
    BadManifest, DeclaredFeature, Layout, MANIFEST, MAX_MANIFEST, Manifest, Package, Renames,
    Requires, manifests,
};
pub use program::ToolProgram;
pub use published::{PackageServer, ServerKind};
pub use signature::{MAX_SIGNATURE, SigningKey};
