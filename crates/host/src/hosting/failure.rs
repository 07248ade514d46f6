//! What went wrong below the command line, as an exit code and a next step.

use crate::exit::{Exit, Failure, Help};
use crate::pods::damaged;
use crate::words::Words;
use llm_worker::ErrorKind;
use pod::control::Fatal;
use pod::host::HostError;
use pod::session::restore::RestoreError;
use protocol::method::{self, Undone};
use session_store::ReadError;

/// A pod that was not opened, or that ended because it could not continue.
pub fn host_failure(error: &HostError, name: Option<&str>) -> Failure {
    if let (
        HostError::Read(ReadError::Damaged(damage))
        | HostError::Restore(RestoreError::Read(ReadError::Damaged(damage))),
        Some(name),
    ) = (error, name)
    {
        return damaged(name, damage);
    }
    let exit = match error {
        HostError::Fatal(fatal) => fatal_failure(fatal).exit,
        error => exit(error.kind()),
    };
    let failure = Failure::new(exit, error.to_string());
    match (exit, name) {
        (Exit::Journal, Some(name)) => {
            let first = remedy(&failure.message).to_owned();
            failure.help(Help::Continue(first, name.to_owned()))
        }
        (Exit::Data, Some(name)) => failure.help(Help::Salvage(name.to_owned())),
        (Exit::Failed, Some(name)) => failure.help(Help::AskForLess(name.to_owned())),
        _ => failure,
    }
}

/// A pod that ended because it could not continue, without a next step.
pub(super) fn fatal_failure(fatal: &Fatal) -> Failure {
    let exit = if matches!(fatal, Fatal::Stuck) {
        Exit::Internal
    } else {
        exit(fatal.kind())
    };
    Failure::new(exit, fatal.to_string())
}

/// The setting or limit that lets the journal be written again, by the error of the disk.
fn remedy(error: &str) -> &'static str {
    const REMEDIES: [(&str, &str); 7] = [
        ("`ulimit -f`", "raise the limit with `ulimit -f`"),
        ("`ulimit -n`", "raise the limit with `ulimit -n`"),
        ("disk is full", "free space on that disk"),
        ("no storage space", "free space on that disk"),
        ("quota", "free space, or raise your disk quota"),
        (
            "permission denied",
            "make that path writable for your user, or set XDG_STATE_HOME to another directory",
        ),
        (
            "read-only",
            "make that file system writable, or set XDG_STATE_HOME to another directory",
        ),
    ];
    let error = error.to_lowercase();
    let known = REMEDIES.iter().find(|(cause, _)| error.contains(cause));
    known.map_or("remove the cause", |(_, remedy)| remedy)
}

fn exit(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corrupt => Exit::Data,
        ErrorKind::Bug => Exit::Internal,
        // An answer that fits no record: no disk is to blame.
        ErrorKind::FixInput => Exit::Failed,
        ErrorKind::Retry
        | ErrorKind::Denied
        | ErrorKind::Unavailable
        | ErrorKind::Exhausted
        | ErrorKind::Cancelled => Exit::Journal,
    }
}

/// Something that needs the pod came before it was open.
pub(super) fn not_open() -> Failure {
    Failure::new(Exit::Internal, "the pod is not open yet")
}

/// What an undo did, for the client that asked for it.
pub(super) fn undone(lines: Vec<String>, done: Result<(), Failure>, words: Words) -> Undone {
    Undone {
        lines,
        failure: done.err().map(|failure| to_wire(failure, words)),
    }
}

/// A failure of the pod's process, for its clients.
pub(super) fn to_wire(failure: Failure, words: Words) -> method::Failure {
    let Failure {
        exit,
        message,
        help,
    } = failure;
    method::Failure {
        exit: exit.number(),
        message,
        help: help.as_ref().map(words.help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pod::control::Fatal;

    #[test]
    fn an_error_of_the_journal_names_the_limit_to_raise() {
        let help = |error: &str| {
            host_failure(
                &HostError::Fatal(Fatal::Journal(error.to_owned())),
                Some("p"),
            )
            .help
        };
        for (error, first) in [
            (
                "writing x: the file would exceed the file size limit (`ulimit -f`)",
                "raise the limit with `ulimit -f`",
            ),
            ("writing x: no storage space", "free space on that disk"),
            (
                "writing x: quota exceeded",
                "free space, or raise your disk quota",
            ),
            ("writing x: something else", "remove the cause"),
        ] {
            assert_eq!(
                help(error),
                Some(Help::Continue(first.to_owned(), "p".to_owned())),
                "{error}"
            );
        }
    }

    #[test]
    fn errors_of_the_program_and_of_the_disk_have_exit_codes_of_their_own() {
        let exit = |fatal: Fatal| {
            host_failure(&HostError::Fatal(fatal), Some("p"))
                .exit
                .number()
        };
        let ends = [
            Fatal::Panicked("a panic".to_owned()),
            Fatal::Stuck,
            Fatal::Journal("no room".to_owned()),
        ];
        assert_eq!(ends.map(exit), [70, 70, 74]);
    }
}
