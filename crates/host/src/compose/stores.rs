//! The directories of features that keep records of their own: offered where the feature is on, and nowhere else.

use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::project::Project;
use authority::{Access, Ambient, Workspace};
use builtins::{memory, step_tracer, work_item};
use pod::feature::{FeatureId, HostServices};
use session_store::Digest;
use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// How much of a project's own name stands in the name of its directory of notes, in bytes.
const NAME: usize = 40;
/// How much of the digest of its path, in hexadecimal digits.
const DIGITS: usize = 16;

/// Adds the roots of the features that are on.
pub(super) fn offer(
    mut services: HostServices,
    on: &BTreeSet<FeatureId>,
    ambient: &Ambient,
    env: &Env,
    project: &Project,
    access: Access,
    session: &Path,
) -> Result<HostServices, Failure> {
    let open_with = |dir: &Path, access: Access| {
        Workspace::open(ambient, dir, dir, access)
            .map_err(|e| Failure::new(Exit::Unavailable, e.to_string()))
    };
    let open = |dir: &Path| open_with(dir, access);
    let records = project.root.join(work_item::ROOT);
    // A link would lead the feature to where the project is not.
    if on.contains(&work_item::ID) && records.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        services = services.root(work_item::ROOT, open(&records)?);
    }
    if on.contains(&memory::ID) {
        let notes = env.state_dir()?.join("memory").join(key(&project.root));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&notes);
        made.map_err(|e| {
            Failure::new(Exit::Unavailable, format!("{}: {e}", env.shown(&notes)))
                .help("notes are stored there; make it writable, or disable builtin:memory")
        })?;
        services = services.root(memory::ROOT, open(&notes)?);
    }
    if on.contains(&step_tracer::ID) {
        let traces = session.join(step_tracer::ROOT);
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&traces);
        made.map_err(|e| Failure::new(Exit::Unavailable, format!("{}: {e}", env.shown(&traces))))?;
        // Beside the journal, which a run that may only read writes, too.
        services = services.root(step_tracer::ROOT, open_with(&traces, Access::ReadWrite)?);
    }
    Ok(services)
}

/// A name for a project that says which one it is and that no other one has.
pub(super) fn key(root: &Path) -> String {
    let name = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().take(NAME).map(plain).collect();
    let digest = Digest::of(root.as_os_str().as_bytes()).to_string();
    format!("{name}-{}", digest.get(..DIGITS).unwrap_or(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_of_one_name_have_notes_of_their_own() {
        let one = key(Path::new("/a/my app"));
        let other = key(Path::new("/b/my app"));
        assert!(
            one.starts_with("my-app-") && other.starts_with("my-app-") && one != other,
            "{one} {other}"
        );
        assert_eq!(one, key(Path::new("/a/my app")));
        assert_eq!(key(Path::new("/")).len(), 1 + DIGITS);
    }
}
