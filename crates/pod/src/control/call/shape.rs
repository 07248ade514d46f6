//! Hooks that see a call's whole result before it is bounded and kept. Where one of them may withhold, nothing of the
//! result is on disk or on a screen before it answered. Does not depend on how a call runs.

use super::output::{EndedCall, HELD, INLINE, KeptResult, WholeResult};
use super::started::{StartedCall, Traces};
use crate::control::commit::CallEnd;
use crate::control::gates;
use crate::feature::{FeatureRegistry, sanitize_lines};
use crate::foreign::{CallbackFailure, Callbacks};
use crate::hook::{self, Recheck, Shaping, ToolOutcomeView, ToolShapeView, Transformed};
use crate::record::{CommandEnd, HookName, TransformNote};
use llm_worker::tool::data;
use llm_worker::{ResultStatus, ToolOutcome, ToolOutput};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bytes of the problem of a call that panicked or did not return.
const MAX_LAST_WORDS: usize = 2 * 1024;

/// How long storing a result may take.
const KEEPING: Duration = Duration::from_secs(60);

impl StartedCall {
    /// The result that the model reads, and what the log keeps beside it: what hooks left of the whole result, bounded, then
    /// what hooks left of that.
    pub(super) async fn result(&self, ended: EndedCall) -> (ToolOutcome, CallEnd) {
        let Traces { notes, answered_by } = self.take_traces();
        let (outcome, end) = self.shape(ended, answered_by.as_ref()).await;
        let (outcome, last) = self.outcome(outcome).await;
        let end = CallEnd {
            transforms: [notes, end.transforms, last].concat(),
            answered_by,
            ..end
        };
        (outcome, end)
    }

    /// The result of a call whose tool did not end: its words are a result like any other.
    pub(super) fn lost(&self, lost: &CallbackFailure) -> EndedCall {
        let text = format!("the tool failed: {lost}");
        let text = sanitize_lines(&text, MAX_LAST_WORDS, self.registry.redactor());
        let outcome = ToolOutcome::of(ResultStatus::Error, &text);
        self.output.drop_held();
        if self.shaping == Shaping::None {
            return EndedCall::Kept(Box::new(outcome.into()));
        }
        EndedCall::Whole(WholeResult {
            status: outcome.status,
            summary: outcome.summary,
            content: Some(outcome.content.into()),
            data: None,
        })
    }

    /// Calls the hooks with the result, then bounds and keeps what they left. `answered_by` answered in place of the tool.
    async fn shape(
        &self,
        ended: EndedCall,
        answered_by: Option<&HookName>,
    ) -> (ToolOutcome, CallEnd) {
        let mut warnings = self.output.warnings();
        let mut command = self.output.command();
        if self.shaping == Shaping::MayWithhold
            && let Some(CommandEnd { path, hosts, .. }) = &mut command
        {
            // No hook sees these.
            (*path, *hosts) = (None, None);
        }
        let whole = match ended {
            EndedCall::Kept(kept) => {
                if self.shaping != Shaping::None && kept.output.is_some() {
                    warnings.push(format!(
                        "the output has over {HELD} bytes; hooks did not see it whole"
                    ));
                }
                return end(*kept, command, Vec::new(), warnings);
            }
            EndedCall::Whole(whole) => whole,
        };
        let status = whole.status;
        let by = answered_by.map(|hook| hook.feature.as_str());
        let Some(raw) = whole.content else {
            let why = format!(
                "its output has over {HELD} bytes, which are too many for a hook to see whole"
            );
            return self.withheld(status, &why, Vec::new(), "; ask for less at a time");
        };
        let text = raw.shown(self.registry.redactor());
        let (last, mut done) = self
            .ask(
                status,
                ToolOutput {
                    summary: whole.summary.clone(),
                    content: text,
                    data: whole.data,
                },
                by,
            )
            .await;
        if let Some(why) = reason(&done) {
            return self.withheld(status, &why, done, "");
        }
        let changed = done.iter().any(|note| note.after.is_ok());
        let ToolOutput {
            summary,
            content,
            data,
        } = last;
        // What a hook did not see, such as what was written over, is not kept where it could have withheld it.
        let is_kept = !changed && self.shaping != Shaping::MayWithhold;
        let shorter = self
            .shorter(status, &summary, &content, data.as_ref(), &mut done)
            .await;
        let content = if is_kept { raw } else { content.into() };
        if self.shaping == Shaping::MayWithhold && !warnings.is_empty() {
            let (told, more) = self.ask(status, lines(&warnings), by).await;
            if let Some(why) = reason(&more) {
                done.extend(more);
                return self.withheld(status, &why, done, "");
            }
            warnings = told.content.lines().map(str::to_owned).collect();
        }
        let whole = WholeResult {
            status,
            summary,
            content: Some(content),
            data,
        };
        let kept = self.keep(whole, shorter).await;
        warnings.extend(self.output.warnings());
        end(kept, command, done, warnings)
    }

    async fn ask(
        &self,
        status: ResultStatus,
        output: ToolOutput,
        answered_by: Option<&str>,
    ) -> (ToolOutput, Vec<Transformed>) {
        let view = ToolShapeView {
            call: Arc::clone(&self.view),
            status,
            output,
        };
        shaped(&self.registry, &self.callbacks, view, answered_by).await
    }

    /// What hooks that only shorten have the model read in place of a result, if one does.
    async fn shorter(
        &self,
        status: ResultStatus,
        summary: &str,
        content: &str,
        data: Option<&serde_json::Value>,
        done: &mut Vec<Transformed>,
    ) -> Option<ToolOutput> {
        let hooks = self.registry.hooks();
        if !hooks.shortens(&self.view.tool) {
            return None;
        }
        let output = ToolOutput {
            summary: summary.to_owned(),
            content: content.to_owned(),
            data: data.cloned(),
        };
        let view = ToolShapeView {
            call: Arc::clone(&self.view),
            status,
            output,
        };
        let bounds = recheck();
        let redactor = self.registry.redactor().clone();
        // Decoding may have put together what is redacted.
        let clean: Recheck<ToolShapeView> = Arc::new(move |view| {
            let view = bounds(view)?;
            let is_clean = |text: &str| matches!(redactor.text(text), Cow::Borrowed(_));
            match is_clean(&view.output.summary) && is_clean(&view.output.content) {
                true => Ok(view),
                false => Err("it contains what is redacted".to_owned()),
            }
        });
        let (last, more) = hooks.shorten(&self.callbacks, view, clean).await;
        let is_shorter = more.iter().any(|note| note.after.is_ok());
        done.extend(more);
        is_shorter.then(|| last.output.clone())
    }

    /// Stores the result on a callback thread.
    async fn keep(&self, whole: WholeResult, shorter: Option<ToolOutput>) -> KeptResult {
        let output = Arc::clone(&self.output);
        let work = async move {
            match shorter {
                Some(shorter) => output.keep_behind(whole, shorter),
                None => output.keep(whole),
            }
        };
        let kept = self
            .callbacks
            .run(KEEPING, CancellationToken::new(), work)
            .await;
        kept.unwrap_or_else(|lost| {
            ToolOutcome::of(ResultStatus::Error, &format!("its output was lost: {lost}")).into()
        })
    }

    /// The model is told that the result was withheld, the person why.
    fn withheld(
        &self,
        status: ResultStatus,
        why: &str,
        done: Vec<Transformed>,
        then: &str,
    ) -> (ToolOutcome, CallEnd) {
        let ended = match status {
            ResultStatus::Ok => "the call succeeded",
            ResultStatus::Error => "the call failed",
            ResultStatus::Refused => "the call was refused",
            ResultStatus::Cancelled => "the call was cancelled",
            ResultStatus::Interrupted => "the call was interrupted",
        };
        let text = format!(
            "{ended}, but its result was withheld, and a repeated call gives no other one{then}"
        );
        let outcome = ToolOutcome {
            status,
            summary: text,
            content: String::new(),
            attachments: Vec::new(),
        };
        let warnings = vec![format!(
            "the result of {} was withheld: {why}",
            self.view.tool
        )];
        end(outcome.into(), None, done, warnings)
    }

    /// Calls the hooks that see what the model reads.
    async fn outcome(&self, outcome: ToolOutcome) -> (ToolOutcome, Vec<TransformNote>) {
        let hooks = self.registry.hooks();
        if !hooks.any::<hook::ToolOutcome>(&self.view.tool) {
            return (outcome, Vec::new());
        }
        let recheck = Arc::new(|view: ToolOutcomeView| fits(&view.outcome).map(|()| view));
        let view = ToolOutcomeView {
            call: Arc::clone(&self.view),
            outcome,
        };
        let (last, done) = hooks
            .transform::<hook::ToolOutcome>(&self.callbacks, &self.view.tool, view, recheck)
            .await;
        (last.outcome.clone(), gates::notes(done))
    }
}

/// A result, and what the log keeps beside it.
fn end(
    kept: KeptResult,
    command: Option<CommandEnd>,
    done: Vec<Transformed>,
    warnings: Vec<String>,
) -> (ToolOutcome, CallEnd) {
    let end = CallEnd {
        output: kept.output,
        data: kept.data,
        transforms: gates::notes(done),
        warnings,
        command,
        ..CallEnd::default()
    };
    (kept.outcome, end)
}

/// Calls the hooks with a whole result, which the tool or this feature in its place gave. Returns what they left, and what they did.
pub(crate) async fn shaped(
    registry: &FeatureRegistry,
    callbacks: &Callbacks,
    view: ToolShapeView,
    answered_by: Option<&str>,
) -> (ToolOutput, Vec<Transformed>) {
    let (last, done) = registry
        .hooks()
        .shape(callbacks, view, recheck(), answered_by)
        .await;
    (last.output.clone(), done)
}

/// Checks the bounds of what a hook made of a whole result.
fn recheck() -> Recheck<ToolShapeView> {
    Arc::new(|view: ToolShapeView| {
        let data = view.output.data.as_ref().map(data::bytes).transpose();
        data.map_err(|why| format!("its data is too large: {why}"))?;
        match view.output.content.len() + view.output.summary.len() {
            0..=HELD => Ok(view),
            bytes => Err(format!("it has {bytes} bytes; at most {HELD} are allowed")),
        }
    })
}

/// Why the value is withheld, if a hook that may do so failed.
pub(crate) fn reason(done: &[Transformed]) -> Option<String> {
    let failed = done.iter().find(|note| note.withheld)?;
    let problem = failed
        .after
        .as_ref()
        .err()
        .map(String::as_str)
        .unwrap_or_default();
    Some(format!(
        "hook `{}` of {}: {problem}",
        failed.hook, failed.feature
    ))
}

/// Warnings as the hooks see them: a result without a summary.
fn lines(warnings: &[String]) -> ToolOutput {
    ToolOutput {
        summary: String::new(),
        content: warnings.join("\n"),
        data: None,
    }
}

/// The bounds of a result as the model sees it.
fn fits(outcome: &ToolOutcome) -> Result<(), String> {
    const SUMMARY: usize = ToolOutcome::SUMMARY_MAX;
    let ToolOutcome {
        summary, content, ..
    } = outcome;
    if summary.len() > SUMMARY || summary.contains('\n') {
        return Err(format!(
            "its summary is not one line of at most {SUMMARY} bytes"
        ));
    }
    if content.len() > INLINE {
        return Err(format!(
            "its content has {} bytes; at most {INLINE} are allowed",
            content.len()
        ));
    }
    Ok(())
}
