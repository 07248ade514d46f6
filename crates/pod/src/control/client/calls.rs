//! Calls of tools by clients of the pod, which are people and their programs. Only of tools that their feature opens to clients,
//! and only calls that touch nothing but the feature's own state. Not a part of turns: permission, gates and transforms
//! judge what a model does, and the model does not see these calls. Only hooks at `ToolShape` see the results: what must
//! not be shown is not shown here, either.

use super::Client;
use crate::control::call::parse::{DEADLINE, given_up_on, prepare, view};
use crate::control::call::shape;
use crate::control::submit_error::SubmitError;
use crate::feature::{FeatureRegistry, RegisteredTool, escape_line, sanitize_lines};
use crate::foreign::{Broke, CallbackFailure, Callbacks, contained};
use crate::hook::ToolShapeView;
use crate::record::{ClientCall, Who};
use async_trait::async_trait;
use llm_worker::tool::{CallHost, DirectoryMove, Excerpt, FileChange, LineRange, Prepared, Touch};
use llm_worker::{CallId, ErrorKind, ResultStatus, ToolContext, ToolEffect, ToolError, ToolOutput};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Calls of clients that run at once: each holds a thread.
const MAX_RUNNING: usize = 4;

/// Bytes of a summary, and of a content or an error.
const MAX_SUMMARY: usize = 512;
const MAX_CONTENT: usize = 32 * 1024;

/// Longest name of a tool that an error repeats, in bytes.
const MAX_NAME: usize = 64;

/// What a call has where one of a turn has its id: it is in no record.
const NO_CALL: CallId = match CallId::new(CallId::MAX) {
    Some(call) => call,
    None => unreachable!(),
};

/// A call of a tool by a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewClientCall {
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
    /// Whether the client may change the pod.
    pub may_change: bool,
    pub by: Option<Who>,
}

/// The tools as clients call them. Clones share the limit.
#[derive(Clone)]
pub(crate) struct ClientTools {
    registry: Arc<FeatureRegistry>,
    callbacks: Callbacks,
    running: Arc<Semaphore>,
}

impl ClientTools {
    pub(crate) fn new(registry: Arc<FeatureRegistry>, callbacks: Callbacks) -> Self {
        Self {
            registry,
            callbacks,
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
        }
    }

    /// Parses the arguments, and refuses a call that is not for this client.
    async fn prepare(
        &self,
        call: &NewClientCall,
    ) -> Result<(RegisteredTool, Prepared), SubmitError> {
        let NewClientCall {
            tool: name,
            arguments,
            may_change,
            ..
        } = call;
        let shown = escape_line(name, MAX_NAME);
        let Some(tool) = self
            .registry
            .tools()
            .get(name)
            .filter(|tool| tool.for_clients)
            .cloned()
        else {
            return Err(SubmitError::NoTool(format!(
                "this pod has no tool `{shown}` for clients"
            )));
        };
        if !may_change && tool.definition.effect != ToolEffect::ReadOnly {
            return Err(SubmitError::ReadOnly(format!(
                "{shown} changes the pod; give a `cmd_id`"
            )));
        }
        if self.callbacks.is_disabled(&tool.feature) {
            return Err(SubmitError::ToolFailed(given_up_on(name, &tool.feature)));
        }
        let parsed = tool.clone();
        let arguments = arguments.clone();
        let work = async move { prepare(&parsed, &arguments).map_err(|unfit| unfit.said(&parsed)) };
        let prepared = self
            .callbacks
            .run(DEADLINE, CancellationToken::new(), work)
            .await;
        let prepared = prepared.map_err(|lost| self.failed(&lost))?;
        let prepared =
            prepared.map_err(|why| SubmitError::Arguments(self.clean(&why, MAX_CONTENT)))?;
        // A tool that names nothing and is not read-only may do anything.
        let names_state =
            tool.definition.effect == ToolEffect::ReadOnly || !prepared.touches.is_empty();
        if !names_state
            || prepared
                .touches
                .iter()
                .any(|touch| *touch != Touch::Session)
        {
            return Err(SubmitError::NoTool(format!(
                "{shown} touches more than the pod, so clients cannot call it"
            )));
        }
        Ok((tool, prepared))
    }

    async fn run(
        &self,
        tool: RegisteredTool,
        prepared: Prepared,
    ) -> Result<ToolOutput, SubmitError> {
        let cancel = CancellationToken::new();
        let deadline = tool.deadline;
        let cx = ToolContext {
            call: NO_CALL,
            cancel: cancel.clone(),
            deadline,
            host: Arc::new(NoHost),
        };
        let call = Arc::new(view(NO_CALL, &tool, &prepared, None, 0));
        let work = async move {
            match contained(
                &tool.feature,
                std::slice::from_ref(&tool.door),
                prepared.run(cx),
            )
            .await
            {
                Ok(result) => Ok(result),
                Err(Broke::Panicked(words)) => Err(CallbackFailure::Panicked(words)),
                Err(Broke::Revoked) => Ok(Err(ToolError::new(
                    ErrorKind::Denied,
                    format!("{} was revoked", tool.definition.name),
                ))),
            }
        };
        let ended = self.callbacks.run(deadline, cancel, work).await.flatten();
        let failed = |content| {
            let output = ToolOutput {
                content,
                ..ToolOutput::default()
            };
            (ResultStatus::Error, output)
        };
        let (status, output) = match ended {
            Ok(Ok(output)) => (ResultStatus::Ok, output),
            Ok(Err(error)) => failed(error.message),
            Err(lost) => failed(failure(&lost)),
        };
        let whole = ToolShapeView {
            call,
            status,
            output,
        };
        let (
            ToolOutput {
                summary, content, ..
            },
            done,
        ) = shape::shaped(&self.registry, &self.callbacks, whole, None).await;
        if let Some(why) = shape::reason(&done) {
            return Err(SubmitError::ToolFailed(
                self.clean(&format!("the result was withheld: {why}"), MAX_CONTENT),
            ));
        }
        let summary = self.clean(&summary, MAX_SUMMARY);
        let content = self.clean(&content, MAX_CONTENT);
        match status == ResultStatus::Ok {
            true => Ok(ToolOutput {
                summary,
                content,
                data: None,
            }),
            false => Err(SubmitError::ToolFailed(content)),
        }
    }

    fn failed(&self, lost: &CallbackFailure) -> SubmitError {
        SubmitError::ToolFailed(self.clean(&failure(lost), MAX_CONTENT))
    }

    fn clean(&self, text: &str, bytes: usize) -> String {
        sanitize_lines(text, bytes, self.registry.redactor())
    }
}

fn failure(lost: &CallbackFailure) -> String {
    format!("the tool failed: {lost}")
}

impl Client {
    /// Calls a tool that its feature opens to clients. A call that changes something is in the journal before it begins.
    ///
    /// # Errors
    /// There is no such tool, or this client may not call it; the arguments do not fit; the tool failed; too many of these
    /// calls run; the disk refused, or the pod has ended.
    pub async fn call_tool(&self, call: NewClientCall) -> Result<ToolOutput, SubmitError> {
        let tools = self.tools();
        let _place = tools.running.try_acquire().map_err(|_full| {
            SubmitError::TooMany(format!(
                "{MAX_RUNNING} calls of clients are already running"
            ))
        })?;
        let (tool, prepared) = tools.prepare(&call).await?;
        if tool.definition.effect != ToolEffect::ReadOnly {
            let arguments = tools.registry.redactor().text(&prepared.canonical).into();
            let name = tool.definition.name.clone();
            let feature = tool.feature.to_string();
            self.commit_call(ClientCall {
                tool: name,
                feature,
                arguments,
                by: call.by,
            })
            .await?;
        }
        tools.run(tool, prepared).await
    }
}

/// The host's side of a call that is no part of a turn: it has no output beside its result, and changes no files.
struct NoHost;

#[async_trait]
impl CallHost for NoHost {
    fn write_output(&self, _: &[u8]) -> Result<(), ToolError> {
        Err(none())
    }

    fn read_output(&self, _: &str, _: LineRange) -> Result<Excerpt, ToolError> {
        Err(none())
    }

    async fn file_changing(&self, _: FileChange) -> Result<u64, ToolError> {
        Err(none())
    }

    async fn directory_moving(&self, _: DirectoryMove) -> Result<(), ToolError> {
        Err(none())
    }
}

fn none() -> ToolError {
    ToolError::new(
        ErrorKind::Denied,
        "a call of a client has no output and changes no files",
    )
}
