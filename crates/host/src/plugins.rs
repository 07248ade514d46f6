//! Packages of plugins on this machine: found, read, granted by the person, copied for their programs. Runs nothing.
//!
//! Finding a package opens its manifest and no other file. Only the files of a granted package are read: at a start and before
//! each call they must have the granted digest. What programs see is a copy with that digest, which no child can change.

mod content;
mod find;
mod grants;
mod origin;
mod package;
mod parts;

pub use content::{CopyPlace, of as content_of, unpack};
pub use find::{NamedPackage, OnDemand, Places, Plugins, at, is_package};
pub use grants::PackageGrant;
pub(crate) use grants::gates;
pub use origin::{PluginOrigin, PluginSource};
pub use package::{FoundPackage, GrantCheck, Standing};
pub(crate) use parts::MarkdownParts;
pub use parts::{AgentForm, PackageParts};
