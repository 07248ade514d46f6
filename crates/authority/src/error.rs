//! The error of every operation on a handle: a kind that says what the caller does next, and a message for people.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// What the caller of an operation on a handle can do about its error; see [`Error::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request itself is wrong: a path that does not exist, a directory where a file was wanted.
    FixInput,
    /// The grant does not reach that far, or the operating system refused.
    Denied,
    /// The grant was revoked; no operation under it will succeed again.
    Revoked,
    /// The kernel, the disk or the peer does not offer this now.
    Unavailable,
    /// A bound was reached: disk space, open files, entries.
    Exhausted,
    Cancelled,
    Bug,
}

/// A failed operation; its text names the path, host or program and the next step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
}

impl Error {
    /// What the caller does next.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operating system's error, if there was one: tells "not found" from "not a directory".
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.source.as_ref().map(io::Error::kind)
    }

    /// Whether the file, directory or host does not exist.
    pub fn is_not_found(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::NotFound)
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn revoked(what: &str) -> Self {
        Self::new(
            ErrorKind::Revoked,
            format!("{what}: the grant was revoked; ask for it again"),
        )
    }

    /// Wraps an I/O error with the operation and its path.
    pub(crate) fn io(doing: &str, path: &Path, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let shown = crate::fs::escape(path);
        let explained = explain_at(&shown, &error);
        let message = if error.kind() == io::ErrorKind::NotFound {
            explained
        } else {
            format!("{doing} {explained}")
        };
        Self {
            kind: kind_of(&error),
            message,
            source: Some(error),
        }
    }

    pub(crate) fn system(doing: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        Self {
            kind: kind_of(&error),
            message: format!("{doing}: {}", explain(&error)),
            source: Some(error),
        }
    }

    /// Changes the kind to `Unavailable`: for errors of the peer or the network, whatever kind the system's error
    /// suggests.
    pub(crate) fn unavailable(self) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            ..self
        }
    }

    /// Says that what was asked for does not exist, where the system's error has no kind for that.
    pub(crate) fn not_found(self) -> Self {
        let source = self
            .source
            .map(|error| io::Error::new(io::ErrorKind::NotFound, error));
        Self { source, ..self }
    }
}

/// Errors that only another request can fix.
const FIX_INPUT: &[io::ErrorKind] = &[
    io::ErrorKind::NotFound,
    io::ErrorKind::NotADirectory,
    io::ErrorKind::IsADirectory,
    io::ErrorKind::AlreadyExists,
    io::ErrorKind::InvalidInput,
    io::ErrorKind::InvalidFilename,
    io::ErrorKind::DirectoryNotEmpty,
    io::ErrorKind::CrossesDevices,
    io::ErrorKind::ArgumentListTooLong,
];
const DENIED: &[io::ErrorKind] = &[
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::ReadOnlyFilesystem,
];
const EXHAUSTED: &[io::ErrorKind] = &[
    io::ErrorKind::StorageFull,
    io::ErrorKind::QuotaExceeded,
    io::ErrorKind::OutOfMemory,
    io::ErrorKind::TooManyLinks,
];

/// Classifies an error; errors in no list count as failures of the system, not of the caller.
fn kind_of(error: &io::Error) -> ErrorKind {
    if CODES
        .iter()
        .any(|(code, _)| error.raw_os_error() == Some(code.raw_os_error()))
    {
        return ErrorKind::Exhausted;
    }
    let io = error.kind();
    let lists = [
        (FIX_INPUT, ErrorKind::FixInput),
        (DENIED, ErrorKind::Denied),
        (EXHAUSTED, ErrorKind::Exhausted),
    ];
    lists
        .iter()
        .find(|(list, _)| list.contains(&io))
        .map_or(ErrorKind::Unavailable, |(_, kind)| *kind)
}

/// Messages for errors about limits of the process or the machine, where the standard library has no text or a vaguer
/// one.
const CODES: &[(Errno, &str)] = &[
    (
        Errno::MFILE,
        "this process has reached its limit of open files; raise `ulimit -n`",
    ),
    (
        Errno::NFILE,
        "the system has reached its limit of open files; close other programs",
    ),
    (
        Errno::FBIG,
        "a file would exceed the file size limit of this process (`ulimit -f`)",
    ),
    (
        Errno::NOMEM,
        "the system has no memory left; close other programs",
    ),
    (
        Errno::AGAIN,
        "the system has no more processes or threads for this user; raise `ulimit -u`, or close other programs",
    ),
    (Errno::MLINK, "a directory has reached its limit of entries"),
];

const NEXT: &[(io::ErrorKind, &str)] = &[
    (io::ErrorKind::NotFound, "does not exist"),
    (
        io::ErrorKind::NotADirectory,
        "the path or one of its parents is not a directory",
    ),
    (io::ErrorKind::IsADirectory, "is a directory; name a file"),
    (
        io::ErrorKind::PermissionDenied,
        "permission denied by the operating system; check the owner and the mode",
    ),
    (
        io::ErrorKind::ReadOnlyFilesystem,
        "the file system is read-only",
    ),
    (
        io::ErrorKind::StorageFull,
        "no space left; free some and try again",
    ),
    (
        io::ErrorKind::QuotaExceeded,
        "the disk quota is used up; free some space and try again",
    ),
    (io::ErrorKind::InvalidFilename, "a name in it is too long"),
    (
        io::ErrorKind::ConnectionRefused,
        "the connection was refused",
    ),
    (
        io::ErrorKind::ConnectionReset,
        "the other end closed the connection",
    ),
    (
        io::ErrorKind::CrossesDevices,
        "the other end is on another file system; copy it instead",
    ),
];

/// The message for an error of the operating system, with a remedy where there is one.
pub fn explain(error: &io::Error) -> String {
    if let Some((_, text)) = CODES
        .iter()
        .find(|(code, _)| error.raw_os_error() == Some(code.raw_os_error()))
    {
        return (*text).to_owned();
    }
    if error.raw_os_error() == Some(Errno::IO.raw_os_error()) {
        return "the disk reported an error; check the system log and the disk".to_owned();
    }
    let next = NEXT.iter().find(|(kind, _)| *kind == error.kind());
    next.map_or_else(|| error.to_string(), |(_, text)| (*text).to_owned())
}

/// The message for an error of the operating system at a path.
pub fn explain_at(path: &str, error: &io::Error) -> String {
    let colon = if error.kind() == io::ErrorKind::NotFound {
        ""
    } else {
        ":"
    };
    format!("{path}{colon} {}", explain(error))
}

pub(crate) fn too_many_links(path: &Path) -> Error {
    let shown = crate::fs::escape(path);
    Error::new(
        ErrorKind::FixInput,
        format!("{shown}: too many symbolic links; check for a loop"),
    )
}

pub(crate) fn outside(path: &Path, roots: &[PathBuf]) -> Error {
    let roots: Vec<_> = roots.iter().map(|root| crate::fs::escape(root)).collect();
    let shown = crate::fs::escape(path);
    Error::new(
        ErrorKind::Denied,
        format!(
            "{shown}: outside {}; add its directory to reach it",
            roots.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_words_and_a_next_step() {
        let table = [
            (Errno::MFILE, ErrorKind::Exhausted, "ulimit -n"),
            (Errno::NFILE, ErrorKind::Exhausted, "close other programs"),
            (Errno::FBIG, ErrorKind::Exhausted, "ulimit -f"),
            (Errno::NOMEM, ErrorKind::Exhausted, "memory"),
            (Errno::AGAIN, ErrorKind::Exhausted, "ulimit -u"),
            (Errno::NOSPC, ErrorKind::Exhausted, "free some"),
            (Errno::DQUOT, ErrorKind::Exhausted, "quota"),
            (Errno::MLINK, ErrorKind::Exhausted, "entries"),
            (Errno::IO, ErrorKind::Unavailable, "disk reported an error"),
            (Errno::ROFS, ErrorKind::Denied, "read-only"),
            (Errno::ACCESS, ErrorKind::Denied, "check the owner"),
            (Errno::PERM, ErrorKind::Denied, "check the owner"),
            (Errno::NOENT, ErrorKind::FixInput, "does not exist"),
            (Errno::NOTDIR, ErrorKind::FixInput, "not a directory"),
            (Errno::ISDIR, ErrorKind::FixInput, "name a file"),
            (Errno::NAMETOOLONG, ErrorKind::FixInput, "too long"),
            (Errno::XDEV, ErrorKind::FixInput, "copy it"),
        ];
        for (code, kind, words) in table {
            let error = Error::io("open", Path::new("/x"), code);
            assert!(
                error.kind() == kind && error.to_string().contains(words),
                "{code:?}: {error}"
            );
        }
    }
}
