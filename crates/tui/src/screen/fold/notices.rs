//! What records say that are no inputs, answers or calls, in one text each.

use crate::count::{duration, left_context};
use crate::screen::status::count;
use crate::style::Tone;
use protocol::record::{
    ApprovalResolved, BackgroundTask, ChildProcess, Outcome, RecordBody, Recovery, Who,
};
use std::time::Duration;

/// A person or a program.
pub(super) fn who(by: &Who) -> String {
    match &by.name {
        Some(name) => format!("{name} ({})", by.client),
        None => by.client.clone(),
    }
}

fn by(who_did: Option<&Who>) -> String {
    who_did.map_or_else(String::new, |by| format!(" by {}", who(by)))
}

/// What came of a question.
pub(super) fn answered_text(answer: &ApprovalResolved) -> String {
    let what = match (answer.decision.as_str(), answer.scope.as_deref()) {
        ("allow", Some("pod")) => "allowed for this pod",
        ("allow", Some("rule")) => "allowed for this pod and by a rule",
        ("allow", _) => "allowed once",
        ("deny", _) => "denied",
        (other, _) => other,
    };
    let reason = answer
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{what}{}{reason}", by(answer.by.as_ref()))
}

/// How a turn ended.
pub(in crate::screen) fn outcome_text(outcome: &Outcome) -> String {
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    match outcome.outcome.as_str() {
        "max_tokens" => "the answer reached the model's output limit".to_owned(),
        "refused" => "refused by the model".to_owned(),
        "empty" => "empty answer".to_owned(),
        "model_failed" => {
            let help = outcome
                .help
                .as_ref()
                .map_or_else(String::new, |help| format!("\nhelp: {help}"));
            format!("failed: {}{help}", said(&outcome.message))
        }
        "step_limit" | "cost_limit" | "token_limit" | "time_limit" => {
            format!("{} reached", outcome.outcome.replace('_', " "))
        }
        "context_limit" => "the context is full".to_owned(),
        "aborted" => format!("ended: {}", said(&outcome.reason)),
        "waiting" => "waiting for approval".to_owned(),
        other => other.replace('_', " "),
    }
}

pub(super) fn outcome_tone(outcome: &str) -> Tone {
    match outcome {
        "done" | "answered" | "interrupted" => Tone::Dim,
        "model_failed" | "aborted" => Tone::Failed,
        "waiting" => Tone::Waiting,
        _ => Tone::Refused,
    }
}

/// The sign, the tone and the text of a record; none if it says nothing to a person.
pub(super) fn notice(body: &RecordBody) -> Option<(&'static str, Tone, String)> {
    let dim = |text: String| Some(("  ", Tone::Dim, text));
    match body {
        RecordBody::HostStarted(host) => Some((
            "── ",
            Tone::Dim,
            format!(
                "started in {} · yoi {} · sandbox {}",
                host.cwd, host.version, host.sandbox
            ),
        )),
        RecordBody::SurfaceSet(set) => dim(format!(
            "model {} with {}",
            set.surface.model,
            count(set.surface.tools.len() as u64, "tool")
        )),
        RecordBody::Recovery(recovery) => Some(("! ", Tone::Refused, restored(recovery))),
        RecordBody::SystemItem(said) => {
            let from = said.feature.as_deref().unwrap_or("yoi");
            dim(format!("to the model, from {from}: {}", said.text))
        }
        RecordBody::FeatureNote(note) => dim(format!("note of {}: {}", note.feature, note.text)),
        RecordBody::BackgroundTask(run) => task_run(run),
        RecordBody::ChildProcess(process) => Some(job(process)),
        RecordBody::ClientCall(call) => dim(format!(
            "{} calls {} {}",
            who_or(call.by.as_ref()),
            call.tool,
            call.arguments
        )),
        RecordBody::RulesForgotten(gone) => {
            let rules = gone
                .rules
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ");
            Some((
                "? ",
                Tone::Waiting,
                format!(
                    "no longer allowed for this pod{}: {rules}",
                    by(gone.by.as_ref())
                ),
            ))
        }
        RecordBody::Pruned(pruned) => {
            let left = &pruned.left;
            let mut parts: Vec<_> = left
                .bytes
                .iter()
                .map(|(tool, bytes)| (tool.clone(), *bytes))
                .collect();
            let others = [
                ("calls", left.calls),
                ("reasoning", left.reasoning),
                ("inputs", left.inputs),
                ("answers", left.answers),
            ];
            parts.extend(others.map(|(part, bytes)| (part.to_owned(), bytes.unwrap_or_default())));
            dim(left_context(
                pruned.level.as_deref().unwrap_or_default(),
                left.results,
                &parts,
            ))
        }
        RecordBody::Pinned(pinned) => dim(format!(
            "pin {}{}: {}",
            pinned.pin,
            by(pinned.by.as_ref()),
            pinned.text
        )),
        RecordBody::Unpinned(unpinned) => dim(format!(
            "pin {} removed{}",
            unpinned.pin,
            by(unpinned.by.as_ref())
        )),
        RecordBody::CompactRequested(wish) => {
            let what = if wish.drop_turns == Some(true) {
                "old steps and the oldest turns"
            } else {
                "old steps"
            };
            dim(format!(
                "{what} leave the next request{}",
                by(wish.by.as_ref())
            ))
        }
        RecordBody::Suspended(held) => {
            let disk = matches!(held.cause.as_deref(), None | Some("disk"));
            let what = if disk { "suspended" } else { "held" };
            let answer = match (held.cause.as_deref(), held.budget.as_deref()) {
                (Some("budget"), Some("pod")) => {
                    "; /more allows as much again, and continues the pod"
                }
                (Some("budget"), _) => "; /resume continues the pod",
                (_, _) => "",
            };
            Some((
                "! ",
                Tone::Refused,
                format!("{what}{}: {}{answer}", by(held.by.as_ref()), held.reason),
            ))
        }
        RecordBody::Resumed(ended) => {
            let more = match ended.more.as_deref().unwrap_or_default() {
                [] => String::new(),
                more => format!(
                    ", and the pod may use its limit of {} again",
                    more.join(" and ")
                ),
            };
            Some((
                "! ",
                Tone::Dim,
                format!("resumed{}{more}", by(ended.by.as_ref())),
            ))
        }
        RecordBody::Gap(gap) if gap.reason.is_some() => Some((
            "! ",
            Tone::Refused,
            format!("records {} to {} are lost", gap.first, gap.last),
        )),
        _ => None,
    }
}

fn who_or(by: Option<&Who>) -> String {
    by.map_or_else(|| "a client".to_owned(), who)
}

fn restored(recovery: &Recovery) -> String {
    let tasks = recovery.open_tasks.unwrap_or(0);
    let open = [(recovery.open_calls, "call"), (tasks, "background task")];
    let open: Vec<String> = open
        .iter()
        .filter(|(open, _)| *open > 0)
        .map(|(open, what)| count(*open, what))
        .collect();
    let open = if open.is_empty() {
        "nothing".to_owned()
    } else {
        open.join(" and ")
    };
    let down = duration(Duration::from_secs(recovery.down_us / 1_000_000));
    format!("restored after {down}; interrupted: {open}")
}

/// The end of a run that did not go well; others are in the panel of tasks.
fn task_run(run: &BackgroundTask) -> Option<(&'static str, Tone, String)> {
    if !matches!(run.state.as_str(), "failed" | "timed_out") {
        return None;
    }
    let reason = run
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    let (task, feature, state) = (&run.task, &run.feature, run.state.replace('_', " "));
    Some((
        "✗ ",
        Tone::Removed,
        format!(
            "background task {task} of {feature}, run {}: {state}{reason}",
            run.run
        ),
    ))
}

fn job(process: &ChildProcess) -> (&'static str, Tone, String) {
    let Some(end) = &process.ended else {
        return (
            "  ",
            Tone::Dim,
            format!("job {} started: {}", process.job, process.command),
        );
    };
    let is_good = end.how == "exited" && end.code == Some(0);
    let code = end.code.map_or_else(String::new, |code| format!(" {code}"));
    let took = end.ms.map_or_else(String::new, |ms| {
        format!(" · {}", duration(Duration::from_millis(ms)))
    });
    let reason = end
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    let text = format!(
        "job {}: {}{code}{reason}{took}",
        process.job,
        end.how.replace('_', " ")
    );
    if is_good {
        ("  ", Tone::Dim, text)
    } else {
        ("✗ ", Tone::Removed, text)
    }
}
