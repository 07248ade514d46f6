//! Commands of a person: the text of one as an input, and the call that its turn makes. Pure: depends on no turn.

use super::limits::MAX_ARGUMENTS;
use super::submit_error::SubmitError;
use crate::permission::{HostTerms, Remedy};
use crate::record::{command_of, command_text};
use crate::session::queue::QueuedInput;
use llm_worker::effect::NewCall;

/// The text of an input for this command.
///
/// # Errors
/// There is no command, or the tool cannot take it.
pub(super) fn text(terms: &HostTerms, command: &str) -> Result<String, SubmitError> {
    if command.trim().is_empty() {
        return Err(SubmitError::Arguments("the command is empty".to_owned()));
    }
    let bytes = (terms.run)(command).len();
    if bytes > MAX_ARGUMENTS {
        let why = format!(
            "the command has {bytes} bytes as JSON; at most {MAX_ARGUMENTS} are allowed; run a script"
        );
        return Err(SubmitError::TooLong(why));
    }
    Ok(command_text(command))
}

/// Why a pod without the tool for commands takes none.
pub(super) fn no_tool(terms: &HostTerms) -> SubmitError {
    let tool = terms.shell;
    let way_out = (terms.remedy)(&Remedy::HaveShell);
    SubmitError::NoShell(format!(
        "this pod has no tool {tool}, so it runs no commands; {way_out}"
    ))
}

/// The call of an input that is a command.
pub(super) fn call(terms: &HostTerms, input: &QueuedInput) -> Option<NewCall> {
    let command = command_of(&input.text).unwrap_or(&input.text);
    input.run.then(|| NewCall {
        name: terms.shell.to_owned(),
        arguments: (terms.run)(command),
    })
}
