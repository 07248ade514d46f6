//! Inputs whose turn makes one call and asks no model: commands of a person, and calls that clients ask for. Pure:
//! depends on no turn.

use super::limits::MAX_ARGUMENTS;
use super::submit_error::SubmitError;
use crate::feature::FeatureRegistry;
use crate::permission::{HostTerms, Remedy};
use crate::record::{self, RequestedCall, command_of, command_text};
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

/// The text of an input for a call that a client asks for.
///
/// # Errors
/// There is no such tool, or the arguments are too long.
pub(super) fn call_text(
    registry: &FeatureRegistry,
    call: &RequestedCall,
) -> Result<String, SubmitError> {
    if registry.tools().get(&call.tool).is_none() {
        let why = format!("there is no tool called `{}`", call.tool);
        return Err(SubmitError::NoTool(why));
    }
    let bytes = call.arguments.len();
    if bytes > MAX_ARGUMENTS {
        let why = format!("the arguments have {bytes} bytes; at most {MAX_ARGUMENTS} are allowed");
        return Err(SubmitError::TooLong(why));
    }
    Ok(record::call_text(call))
}

/// The call of an input that is one.
pub(super) fn call(terms: &HostTerms, input: &QueuedInput) -> Option<NewCall> {
    if let Some(RequestedCall { tool, arguments }) = &input.call {
        return Some(NewCall {
            name: tool.clone(),
            arguments: arguments.clone(),
        });
    }
    let command = command_of(&input.text).unwrap_or(&input.text);
    input.run.then(|| NewCall {
        name: terms.shell.to_owned(),
        arguments: (terms.run)(command),
    })
}
