//! What went wrong below the command line, as an exit code and a next step.

use crate::exit::{Exit, Failure};
use crate::pods::{damaged, salvage};
use llm_worker::ErrorKind;
use pod::control::Fatal;
use pod::host::HostError;
use pod::session::restore::RestoreError;
use session_store::ReadError;

/// A pod that was not opened, or that ended because it could not continue.
pub(crate) fn host_failure(error: &HostError, name: Option<&str>) -> Failure {
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
            failure.help(format!("fix that, then run `yoi run --pod {name} \"continue\"`; what was recorded is kept"))
        }
        (Exit::Data, Some(name)) => failure.help(salvage(name)),
        (Exit::Failed, Some(name)) => failure.help(format!("ask for less at a time, then continue with --pod {name}")),
        _ => failure,
    }
}

/// A pod that ended because it could not continue, without a next step.
pub(super) fn fatal_failure(fatal: &Fatal) -> Failure {
    let exit = if matches!(fatal, Fatal::Stuck) { Exit::Internal } else { exit(fatal.kind()) };
    Failure::new(exit, fatal.to_string())
}

fn exit(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corrupt => Exit::Data,
        ErrorKind::Bug => Exit::Internal,
        // An answer that fits no record: no disk is to blame.
        ErrorKind::FixInput => Exit::Failed,
        ErrorKind::Retry | ErrorKind::Denied | ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Cancelled => {
            Exit::Journal
        }
    }
}

/// Something that needs the pod came before it was open.
pub(super) fn not_open() -> Failure {
    Failure::new(Exit::Internal, "the pod is not open yet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pod::control::Fatal;

    #[test]
    fn errors_of_the_program_and_of_the_disk_have_exit_codes_of_their_own() {
        let exit = |fatal: Fatal| host_failure(&HostError::Fatal(fatal), Some("p")).exit.number();
        let ends = [Fatal::Panicked("a panic".to_owned()), Fatal::Stuck, Fatal::Journal("no room".to_owned())];
        assert_eq!(ends.map(exit), [70, 70, 74]);
    }
}
