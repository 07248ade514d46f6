//! Which programs a handle starts. What a started program starts itself is bounded by the sandbox only.

use super::run::Job;
use crate::{Error, ErrorKind, Workspace};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limit on the programs of one handle.
const MAX_PROGRAMS: usize = 64;

/// The programs that a handle starts.
#[derive(Clone, Debug)]
pub(super) enum Programs {
    Any,
    /// Bare names, looked up in `PATH`, and absolute paths.
    Named(Arc<[OsString]>),
    /// Files below the roots of a grant, after links were followed.
    Below(Workspace),
}

impl Programs {
    /// Only these of them.
    ///
    /// # Errors
    /// As for [`Self::named`]; `Denied` for one that this does not include.
    pub(super) fn narrowed(&self, programs: &[OsString]) -> Result<Self, Error> {
        let named = Self::named(programs)?;
        match self {
            Self::Any => Ok(named),
            Self::Named(own) if programs.iter().all(|program| own.contains(program)) => Ok(named),
            Self::Named(_) | Self::Below(_) => Err(Error::new(
                ErrorKind::Denied,
                "this grant starts other programs only",
            )),
        }
    }

    /// # Errors
    /// `FixInput` for no program, more than 64, or a path that is not absolute.
    fn named(programs: &[OsString]) -> Result<Self, Error> {
        let unfit = |why: String| {
            Err(Error::new(
                ErrorKind::FixInput,
                format!("programs of a handle: {why}"),
            ))
        };
        if programs.is_empty() || programs.len() > MAX_PROGRAMS {
            return unfit(format!(
                "{} are named; expected 1 to {MAX_PROGRAMS}",
                programs.len()
            ));
        }
        let relative = |name: &&OsString| {
            name.is_empty()
                || name.as_encoded_bytes().contains(&b'/') && !Path::new(name).is_absolute()
        };
        match programs.iter().find(relative) {
            Some(name) => unfit(format!(
                "`{}` is neither a name nor an absolute path",
                crate::escape(name.as_ref())
            )),
            None => Ok(Self::Named(programs.into())),
        }
    }

    /// The file that is started for a job whose program was found here.
    ///
    /// # Errors
    /// `Denied` for another program; `Revoked` and what resolving the path fails with.
    pub(super) fn admit(&self, job: &Job, found: PathBuf) -> Result<PathBuf, Error> {
        let denied = |named: String| {
            let program = crate::escape(job.program.as_ref());
            let text = format!("run {program}: this grant starts only {named}");
            Error::new(ErrorKind::Denied, text)
        };
        match self {
            Self::Any => Ok(found),
            Self::Named(names) if names.contains(&job.program) => Ok(found),
            Self::Named(names) => {
                let names: Vec<_> = names
                    .iter()
                    .map(|name| crate::escape(name.as_ref()))
                    .collect();
                Err(denied(names.join(", ")))
            }
            // Links are followed here, so that the file that is checked is the one that is started.
            Self::Below(files) => match files.locate(&found)? {
                crate::Location::Inside(at) => Ok(at.path().to_owned()),
                crate::Location::Outside(_) => {
                    let roots: Vec<_> =
                        files.roots().map(|(root, _)| crate::escape(root)).collect();
                    Err(denied(format!("programs below {}", roots.join(", "))))
                }
            },
        }
    }
}
