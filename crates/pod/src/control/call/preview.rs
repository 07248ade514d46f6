//! What a call that waits for a person would change in a file, as the file is now. Changes nothing.

use super::authorize::Authorizer;
use super::parse::DEADLINE;
use crate::control::core::Core;
use crate::control::submit_error::SubmitError;
use crate::record::{ApprovalId, ApprovalRequested};
use llm_worker::tool::ShownChange;
use protocol::method::PreviewedCall;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The preview of the call that one question is about.
pub(in crate::control) struct CallPreview {
    authorizer: Authorizer,
    asked: Arc<ApprovalRequested>,
}

impl CallPreview {
    /// For a question that waits.
    pub(in crate::control) fn new(core: &Core, approval: ApprovalId) -> Result<Self, SubmitError> {
        let open = &core.state.approvals.open;
        let asked = open
            .get(&approval)
            .ok_or(SubmitError::NoApproval(approval))?;
        Ok(Self {
            authorizer: Authorizer::new(core, core.state.surface_generation),
            asked: asked.clone(),
        })
    }

    pub(in crate::control) async fn run(self) -> PreviewedCall {
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let callbacks = self.authorizer.callbacks.clone();
        let work = async move { self.show(&stop) };
        let shown = callbacks.run(DEADLINE, cancel, work).await;
        shown.unwrap_or_else(|lost| PreviewedCall::unknown(lost.to_string()))
    }

    /// As the call would run: by the same tool, with the same judgement.
    fn show(&self, cancel: &CancellationToken) -> PreviewedCall {
        let ready = match self.authorizer.as_shown(&self.asked) {
            Ok(ready) => ready,
            Err(why) => return PreviewedCall::unknown(why),
        };
        let Some(preview) = ready.prepared.preview() else {
            return PreviewedCall::default();
        };
        let redactor = self.authorizer.registry.redactor();
        match preview(cancel) {
            Ok(ShownChange { diff, more, whole }) => {
                let text = redactor.text(&diff).into_owned();
                let is_redacted = text != diff;
                PreviewedCall {
                    diff: Some(text),
                    more,
                    whole: whole && !is_redacted,
                    why: None,
                }
            }
            Err(error) => PreviewedCall::unknown(redactor.text(&error.message).into_owned()),
        }
    }
}
