//! What a record says to a person: each kind's words, once. A log, a run and a screen add their own margins, widths, signs of
//! what went well, and what only they know, such as a time.

use crate::arguments::brief;
use crate::call::CallState;
use crate::count::{count, duration, left_context};
use crate::style::Tone;
use authority::text::{escape_line, first_line};
use protocol::journal::{JobEnd, ProposedRule};
use protocol::record::{
    ApprovalResolved, BackgroundTask, ChildProcess, Outcome, Pruned, RecordBody, Recovery,
    Suspended, ToolFinished, ToolStarted, TurnFinished, VerdictGiven, Who, known,
};
use protocol::status::State;
use std::path::Path;
use std::time::Duration;

/// Characters of the arguments of a client's call.
const ARGUMENTS: usize = 100;

/// The state of a pod that waits for a person.
pub const WAITING: &str = "waiting for you";

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What stands before it; two spaces for what is by the way.
    pub sign: &'static str,
    pub tone: Tone,
    /// The call that it is about.
    pub call: Option<String>,
    pub text: String,
}

impl Said {
    fn of(sign: &'static str, tone: Tone, text: String) -> Option<Self> {
        Some(Self {
            sign,
            tone,
            call: None,
            text,
        })
    }

    fn dim(text: String) -> Option<Self> {
        Self::of("  ", Tone::Dim, text)
    }

    fn of_call(mut self, call: &str) -> Self {
        self.call = Some(call.to_owned());
        self
    }
}

/// What a record says by itself; none of what is an input, an answer, a call or its result.
#[must_use]
pub fn said(body: &RecordBody) -> Option<Said> {
    match body {
        RecordBody::HostStarted(host) => Said::of(
            "── ",
            Tone::Dim,
            format!(
                "started in {} · yoi {} · sandbox {}",
                escape_line(&host.cwd),
                host.version,
                host.sandbox
            ),
        ),
        RecordBody::SurfaceSet(set) => Said::dim(format!(
            "model {} with {}",
            escape_line(&set.surface.model),
            count(set.surface.tools.len() as u64, "tool")
        )),
        RecordBody::Recovery(recovery) => Said::of("! ", Tone::Refused, restored(recovery)),
        RecordBody::SystemItem(said) => {
            let from = said.feature.as_deref().filter(|from| *from != "host");
            let from = from.unwrap_or("yoi");
            Said::dim(format!("to the model, from {from}: {}", said.text))
        }
        RecordBody::FeatureNote(note) => {
            Said::dim(format!("note of {}: {}", note.feature, note.text))
        }
        RecordBody::BackgroundTask(run) => task_run(run),
        RecordBody::ChildProcess(process) => job(process),
        RecordBody::ClientCall(call) => Said::dim(format!(
            "{} calls {} {}",
            call.by.as_ref().map_or_else(|| "a client".to_owned(), who),
            escape_line(&call.tool),
            first_line(&brief(&call.arguments), ARGUMENTS)
        )),
        RecordBody::ApprovalRequested(asked) => Said::of(
            "? ",
            Tone::Waiting,
            format!("approval {}: {}", asked.approval, asked.question),
        )
        .map(|said| said.of_call(&asked.call)),
        RecordBody::ApprovalResolved(answer) => Said::of(
            "? ",
            Tone::Waiting,
            format!("approval {}: {}", answer.approval, answered(answer)),
        ),
        RecordBody::RulesForgotten(gone) => {
            let rule = |rule| known::<ProposedRule>(rule).map(|rule| rule.to_string());
            let rules: Vec<String> = gone
                .rules
                .iter()
                .map(|shown| rule(shown).unwrap_or_else(|| shown.to_string()))
                .map(|rule| escape_line(&rule).into_owned())
                .collect();
            let by = by(gone.by.as_ref());
            Said::of(
                "? ",
                Tone::Waiting,
                format!("no longer allowed for this pod{by}: {}", rules.join("; ")),
            )
        }
        RecordBody::VerdictGiven(verdict) => judged(verdict),
        RecordBody::ToolStarted(started) => beyond(started),
        RecordBody::ToolRepeated(again) => {
            let hook = &again.hook;
            let feature = &again.feature;
            Said::dim(format!(
                "run {}: the hook {hook} of {feature} repeats it",
                again.run
            ))
            .map(|said| said.of_call(&again.call))
        }
        RecordBody::FileChanged(change) => changed(
            change.call.as_deref(),
            &format!("changes {}", path(&change.path)),
        ),
        RecordBody::DirectoryMoved(moved) => changed(
            moved.call.as_deref(),
            &format!("moves {} to {}", path(&moved.from), path(&moved.to)),
        ),
        RecordBody::TurnFinished(finished) => {
            Said::of("── ", outcome_tone(finished), turn_end(finished, None))
        }
        body => of_pod(body),
    }
}

/// What is about the pod as a whole: its context and its holds.
fn of_pod(body: &RecordBody) -> Option<Said> {
    match body {
        RecordBody::Pruned(pruned) => Said::dim(left(pruned)),
        RecordBody::Pinned(pinned) => {
            let by = by(pinned.by.as_ref());
            Said::dim(format!("pin {}{by}: {}", pinned.pin, pinned.text))
        }
        RecordBody::Unpinned(unpinned) => {
            let by = by(unpinned.by.as_ref());
            Said::dim(format!("pin {} removed{by}", unpinned.pin))
        }
        RecordBody::CompactRequested(wish) => {
            let what = match wish.drop_turns {
                Some(true) => "old steps and the oldest turns",
                _ => "old steps",
            };
            Said::dim(format!(
                "{what} leave the next request{}",
                by(wish.by.as_ref())
            ))
        }
        RecordBody::Suspended(held) => {
            let disk = matches!(held.cause.as_deref(), None | Some("disk"));
            let what = if disk { "suspended" } else { "held" };
            // The reason has the program, as in "paused by `yoi attach`".
            let by = by(held.by.as_ref().filter(|by| by.name.is_some()));
            Said::of("! ", Tone::Refused, format!("{what}{by}: {}", held.reason))
        }
        RecordBody::Resumed(ended) => {
            let more = match ended.more.as_deref().unwrap_or_default() {
                [] => String::new(),
                more => format!(
                    ", and the pod may use its limit of {} again",
                    more.join(" and ")
                ),
            };
            Said::of(
                "! ",
                Tone::Dim,
                format!("resumed{}{more}", by(ended.by.as_ref())),
            )
        }
        RecordBody::Gap(gap) if gap.reason.is_some() => Said::of(
            "! ",
            Tone::Refused,
            format!("records {} to {} are lost", gap.first, gap.last),
        ),
        _ => None,
    }
}

/// A person or a program.
#[must_use]
pub fn who(by: &Who) -> String {
    let who = match &by.name {
        Some(name) => format!("{name} ({})", by.client),
        None => by.client.clone(),
    };
    escape_line(&who).into_owned()
}

fn by(who_did: Option<&Who>) -> String {
    who_did.map_or_else(String::new, |by| format!(" by {}", who(by)))
}

fn behind(reason: Option<&String>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

fn path(path: &str) -> String {
    authority::escape(Path::new(path)).to_string()
}

/// What a call does to files, or an undo.
fn changed(call: Option<&str>, does: &str) -> Option<Said> {
    match call {
        Some(call) => Said::dim(does.to_owned()).map(|said| said.of_call(call)),
        None => Said::dim(format!("undo: {does}")),
    }
}

/// The answer to a question.
#[must_use]
pub fn answered(answer: &ApprovalResolved) -> String {
    let what = match (answer.decision.as_str(), answer.scope.as_deref()) {
        ("allow", Some("pod")) => "allowed for this pod",
        ("allow", Some("rule")) => "allowed for this pod and by a rule",
        ("allow", _) => "allowed once",
        ("deny", _) => "denied",
        (other, _) => other,
    };
    let reason = behind(answer.reason.as_ref());
    format!("{what}{}{reason}", by(answer.by.as_ref()))
}

fn judged(verdict: &VerdictGiven) -> Option<Said> {
    let by = match (&verdict.hook, &verdict.feature) {
        (Some(hook), Some(feature)) => format!("the hook {hook} of {feature}"),
        _ => verdict.rule.clone(),
    };
    let decision = match verdict.decision.as_str() {
        "again" => "the answer is not accepted",
        "allow" => "allowed",
        "refuse" | "invalid" => "refused",
        "ask" => "asked",
        "abort" => "ended",
        "pause" => "paused",
        other => other,
    };
    // The input that follows an answer that is not accepted has all of its words.
    let reason = verdict
        .reason
        .as_ref()
        .filter(|_| verdict.decision != "again");
    let text = format!("{decision} by {by}{}", behind(reason));
    let said = Said::of("⊘ ", Tone::Refused, text)?;
    match &verdict.call {
        Some(call) => Some(said.of_call(call)),
        None if matches!(verdict.decision.as_str(), "allow" | "retry") => None,
        None => Some(said),
    }
}

/// That a call runs beyond the sandbox; the start of another one says nothing.
fn beyond(started: &ToolStarted) -> Option<Said> {
    let how = match (started.escalation.as_deref()?, &started.hosts) {
        ("network", Some(hosts)) => {
            format!(
                "runs in the sandbox, with a way to {}",
                escape_line(&hosts.join(", "))
            )
        }
        ("network", None) => "runs in the sandbox, with the network".to_owned(),
        _ => "runs outside the sandbox".to_owned(),
    };
    Said::of("! ", Tone::Refused, how).map(|said| said.of_call(&started.call))
}

/// How a turn ended.
#[must_use]
pub fn outcome(outcome: &Outcome) -> String {
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    match outcome.outcome.as_str() {
        "max_tokens" => "the answer reached the model's output limit".to_owned(),
        "refused" => "refused by the model".to_owned(),
        "empty" => "empty answer".to_owned(),
        "model_failed" => format!("failed: {}", said(&outcome.message)),
        "step_limit" | "cost_limit" | "token_limit" | "time_limit" => {
            format!("{} reached", outcome.outcome.replace('_', " "))
        }
        "context_limit" => "the context is full".to_owned(),
        "aborted" => format!("ended: {}", said(&outcome.reason)),
        "waiting" => "waiting for approval".to_owned(),
        "not_accepted" => "answer not accepted".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The end of a turn, of which the time may be known, and below it what helps.
#[must_use]
pub fn turn_end(finished: &TurnFinished, took: Option<Duration>) -> String {
    let ended = finished.before_verdict();
    let took = took.map_or_else(String::new, |took| format!(" · {}", duration(took)));
    let text = outcome(&ended);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let by = by(finished.by.as_ref());
    let mut text = format!("turn {}: {first}{by}{took}", finished.turn);
    let help = ended.help.map(|help| format!("help: {help}"));
    for more in rest.lines().map(str::to_owned).chain(help) {
        text.push('\n');
        text.push_str(&more);
    }
    text
}

/// The tone of the end of a turn.
#[must_use]
pub fn outcome_tone(finished: &TurnFinished) -> Tone {
    match finished.outcome.outcome.as_str() {
        "done" | "answered" | "interrupted" => Tone::Dim,
        "model_failed" | "aborted" => Tone::Failed,
        "waiting" => Tone::Waiting,
        _ => Tone::Refused,
    }
}

/// How a call ended.
#[must_use]
pub fn call_state(status: &str) -> CallState {
    match status {
        "ok" => CallState::Ok,
        "error" => CallState::Failed,
        "refused" => CallState::Refused,
        _ => CallState::Cancelled,
    }
}

/// Where the whole output of a call is.
#[must_use]
pub fn full_output(handle: &str, bytes: u64) -> String {
    format!("full output: {handle} ({})", count(bytes, "byte"))
}

/// The hook that answered in place of the tool.
#[must_use]
pub fn answered_by(done: &ToolFinished) -> Option<String> {
    let by = done.answered_by.as_ref()?;
    Some(format!(
        "answered by the hook {} of {}; the tool did not run",
        by.hook, by.feature
    ))
}

/// That a request is sent again.
#[must_use]
pub fn retrying(why: &str, attempt: u32, delay_ms: u64) -> String {
    let next = attempt.saturating_add(1);
    let seconds = delay_ms as f64 / 1e3;
    format!("{why}; attempt {next} in {seconds:.1} s")
}

/// A text of a feature, or of the host, for the people who watch.
#[must_use]
pub fn alert(from: Option<&str>, text: &str) -> String {
    from.map_or_else(|| text.to_owned(), |feature| format!("{feature}: {text}"))
}

/// What a model does of which nothing is seen.
#[must_use]
pub fn model_does(model: &str, call: Option<&str>, thinks: bool) -> String {
    match call {
        Some(tool) => format!("{model} is preparing a call of {tool}"),
        None if thinks => format!("{model} is thinking"),
        None => format!("waiting for {model}"),
    }
}

/// What a pod does, in a word.
#[must_use]
pub fn state(state: State) -> &'static str {
    match state {
        State::Idle => "idle",
        State::Working => "working",
        State::Waiting => WAITING,
        State::Held => "held",
        State::Stopping => "stopping",
        State::Unknown => "running",
    }
}

/// What a hold asks of a person who is attached.
#[must_use]
pub fn way_on(held: &Suspended) -> &'static str {
    match (held.cause.as_deref(), held.budget.as_deref()) {
        (Some("budget"), Some("pod")) => "; /more allows as much again, and continues the pod",
        (Some("budget"), _) => "; /resume continues the pod",
        (_, _) => "",
    }
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
    let cut = match recovery.cut_bytes {
        0 => String::new(),
        cut => format!(
            "; moved to quarantine: {} ({})",
            count(cut, "byte"),
            recovery.class
        ),
    };
    let down = duration(Duration::from_micros(recovery.down_us));
    format!("restored after {down}; interrupted: {open}{cut}")
}

fn left(pruned: &Pruned) -> String {
    let left = &pruned.left;
    let others = [
        ("calls", left.calls),
        ("reasoning", left.reasoning),
        ("inputs", left.inputs),
        ("answers", left.answers),
    ];
    let others = others.map(|(part, bytes)| (part.to_owned(), bytes.unwrap_or_default()));
    let parts: Vec<_> = left.bytes.clone().into_iter().chain(others).collect();
    let level = pruned.level.as_deref().unwrap_or_default();
    left_context(level, left.results, &parts)
}

/// The end of a run of a background task; its beginning says nothing.
fn task_run(run: &BackgroundTask) -> Option<Said> {
    let (sign, tone) = match run.state.as_str() {
        "running" => return None,
        "completed" => ("  ", Tone::Dim),
        "failed" | "timed_out" => ("✗ ", Tone::Removed),
        _ => ("… ", Tone::Dim),
    };
    let state = match run.state.as_str() {
        "orphaned" => "interrupted".to_owned(),
        state => state.replace('_', " "),
    };
    let task = &run.task;
    let feature = &run.feature;
    let took = after(run.ms);
    let reason = behind(run.reason.as_ref());
    Said::of(
        sign,
        tone,
        format!(
            "background task {task} of {feature}, run {}: {state}{took}{reason}",
            run.run
        ),
    )
}

fn after(ms: Option<u64>) -> String {
    ms.map_or_else(String::new, |ms| match ms {
        0..1000 => format!(" after {ms} ms"),
        _ => format!(" after {}", duration(Duration::from_millis(ms))),
    })
}

fn job(process: &ChildProcess) -> Option<Said> {
    let job = process.job;
    let Some(end) = &process.ended else {
        return Said::dim(format!("job {job} started: {}", process.command));
    };
    let how = known::<JobEnd>(end).map_or_else(|| end.how.replace('_', " "), |end| end.to_string());
    let text = format!("job {job}{}: {how}", after(end.ms));
    match (end.how.as_str(), end.code) {
        ("exited", Some(0)) => Said::dim(text),
        _ => Said::of("✗ ", Tone::Removed, text),
    }
}
