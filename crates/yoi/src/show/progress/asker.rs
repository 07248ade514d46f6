//! Questions about calls on the terminal of a run. The thread of the screen asks: it owns what the terminal shows, and
//! holds back what comes meanwhile.

use crate::remedy;
use crate::show::question::{self, Shown, TypedAnswer};
use crate::show::terminal::{Terminal, TypedLine};
use host::exit::Failure;
use pod::control::{ApprovalAnswer, Event};
use pod::record::{
    ApprovalDecision, ApprovalId, ApprovalRequested, ApprovalResolved, ApprovalScope, Record, Who,
};
use protocol::method::{MatchedCalls, PreviewedCall};
use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Events that are held while a question is on the screen; the rest waits in the pod.
const MAX_HELD: usize = 4096;

/// How a question ended.
#[derive(Debug)]
pub(crate) enum QuestionOutcome {
    /// With the channel for the answer that counts.
    Answer(ApprovalAnswer, SyncSender<ApprovalResolved>),
    /// The past calls that the rules of this question would have matched are to be shown.
    PastCalls(ApprovalId, SyncSender<Result<MatchedCalls, String>>),
    /// What the call of this question would change in a file is to be shown.
    PreviewCall(ApprovalId, SyncSender<PreviewedCall>),
    /// Another client answered, or the call has ended.
    Over,
    /// The person left it: nothing more is asked.
    Left,
}

/// The user's configuration, into which an answer may write rules.
pub(crate) trait RuleFile: Send {
    /// The text about the rules of a question, or why they cannot be written.
    fn preview(
        &mut self,
        asked: &protocol::record::ApprovalRequested,
        past: &Result<MatchedCalls, String>,
    ) -> Result<String, String>;

    /// Has the answer recorded by `record`, which says whether it counts, and then writes the rules that were shown last.
    /// Returns what was written, in lines.
    fn write(&mut self, record: &mut dyn FnMut() -> bool) -> Result<Vec<String>, Failure>;
}

/// Asks the person of a run.
pub(crate) struct Asker {
    terminal: Terminal,
    /// At most one for each question.
    outcomes: mpsc::UnboundedSender<QuestionOutcome>,
    /// The run is to end.
    cancel: CancellationToken,
    rules: Box<dyn RuleFile>,
}

impl Asker {
    pub(crate) fn new(
        terminal: Terminal,
        cancel: CancellationToken,
        rules: Box<dyn RuleFile>,
    ) -> (Self, mpsc::UnboundedReceiver<QuestionOutcome>) {
        let (outcomes, asked) = mpsc::unbounded_channel();
        (
            Self {
                terminal,
                outcomes,
                cancel,
                rules,
            },
            asked,
        )
    }

    /// Shows a question, and what its call would change.
    fn put(
        &self,
        asked: &ApprovalRequested,
        mirror: &protocol::record::ApprovalRequested,
        show: &mut dyn FnMut(Shown<'_>),
    ) {
        let ApprovalRequested {
            approval,
            tool,
            sandbox,
            ..
        } = asked;
        show(Shown::Text(&format!(
            "? approval {approval}: {tool} (sandbox {sandbox})\n"
        )));
        let file = tui::asked_file(mirror);
        let change = file.as_ref().and_then(|_| {
            reply(&self.outcomes, |reply| {
                QuestionOutcome::PreviewCall(*approval, reply)
            })
        });
        question::lines(mirror, None)
            .iter()
            .chain(&question::change(
                file.as_deref().unwrap_or_default(),
                &change.unwrap_or_default(),
            ))
            .for_each(|line| show(Shown::Line(line)));
    }

    /// Asks about a call; `show` prints a part of the question. Returns whether to ask about the next one.
    pub(super) fn ask(
        &mut self,
        asked: &ApprovalRequested,
        show: &mut dyn FnMut(Shown<'_>),
        events: &mut mpsc::Receiver<Event>,
        held: &mut VecDeque<Event>,
    ) -> bool {
        let Some(mirror) = question::mirror(asked) else {
            return self.tell(QuestionOutcome::Left);
        };
        self.put(asked, &mirror, show);
        let approval = &asked.approval;
        let show = &mut |text: &str| show(Shown::Text(text));
        question::also_allows(&mirror, "`p`")
            .iter()
            .for_each(|line| show(&format!("{line}\n")));
        let Self {
            terminal,
            cancel,
            outcomes,
            rules,
        } = self;
        let mut stands = || {
            while held.len() < MAX_HELD
                && let Ok(event) = events.try_recv()
            {
                held.push_back(event);
            }
            !cancel.is_cancelled() && !held.iter().any(|event| ends(event, asked))
        };
        let leave = "Ctrl-D: leave it waiting";
        let mut preview = || {
            let past = reply(outcomes, |reply| {
                QuestionOutcome::PastCalls(*approval, reply)
            });
            let past = past.unwrap_or_else(|| Err("the run is ending".to_owned()));
            rules.preview(&mirror, &past)
        };
        let typed = question::ask(terminal, &mirror, leave, &mut stands, show, &mut preview);
        let (allow, scope, words) = match typed {
            Ok(TypedAnswer::Allow(scope)) => (true, scope, None),
            Ok(TypedAnswer::Deny(words)) => (false, ApprovalScope::Once, words),
            none => {
                show("\n");
                let over = none == Err(TypedLine::Over) && !self.cancel.is_cancelled();
                return self.tell(if over {
                    QuestionOutcome::Over
                } else {
                    QuestionOutcome::Left
                });
            }
        };
        let arguments_digest = asked.arguments_digest.clone();
        let uid = rustix::process::getuid().as_raw();
        let client = "yoi run".to_owned();
        let role = "approver".to_owned();
        let by = Some(Who {
            client,
            role,
            uid,
            name: None,
        });
        let answer = ApprovalAnswer {
            approval: *approval,
            allow,
            scope,
            arguments_digest,
            words,
            by,
        };
        match scope {
            ApprovalScope::Rule => self.allow_by_rule(answer, show),
            ApprovalScope::Once | ApprovalScope::Pod => {
                // Which answer counts is in the records.
                let (reply, _) = sync_channel(1);
                self.tell(QuestionOutcome::Answer(answer, reply))
            }
        }
    }

    /// Hands the answer over, and writes the rules once it is recorded.
    fn allow_by_rule(&mut self, answer: ApprovalAnswer, show: &mut dyn FnMut(&str)) -> bool {
        let Self {
            outcomes, rules, ..
        } = self;
        let mut answer = Some(answer);
        let mut ended = false;
        let mut record = || {
            let recorded = answer
                .take()
                .and_then(|answer| reply(outcomes, |reply| QuestionOutcome::Answer(answer, reply)));
            ended = recorded.is_none();
            let counts = |answer: ApprovalResolved| {
                answer.decision == ApprovalDecision::Allow && answer.scope == ApprovalScope::Rule
            };
            recorded.is_some_and(counts)
        };
        match rules.write(&mut record) {
            Ok(lines) => lines.iter().for_each(|line| show(&format!("{line}\n"))),
            Err(failure) => failure_lines(&failure).iter().for_each(|line| show(line)),
        }
        // Without the lock of the file, nothing was answered.
        !ended && answer.is_none() || self.tell(QuestionOutcome::Left)
    }

    fn tell(&self, outcome: QuestionOutcome) -> bool {
        let goes_on = !matches!(outcome, QuestionOutcome::Left);
        // A run that has ended asks nothing.
        self.outcomes.send(outcome).is_ok() && goes_on
    }
}

/// A failure in lines of a question: the further ones of a text stand below it as they are.
fn failure_lines(Failure { message, help, .. }: &Failure) -> Vec<String> {
    let help = help
        .iter()
        .map(|help| format!("help: {}", remedy::help(help)));
    let texts = std::iter::once(format!("error: {message}")).chain(help);
    let texts: String = texts
        .map(|text| text.trim_end().replace('\n', "\n    ") + "\n")
        .collect();
    texts.split_inclusive('\n').map(str::to_owned).collect()
}

/// Sends something that is replied to, and waits for the reply; none if the run is ending.
fn reply<T>(
    outcomes: &mpsc::UnboundedSender<QuestionOutcome>,
    outcome: impl FnOnce(SyncSender<T>) -> QuestionOutcome,
) -> Option<T> {
    let (sender, replies) = sync_channel(1);
    outcomes.send(outcome(sender)).ok()?;
    replies.recv().ok()
}

/// Whether the call does not wait any more.
fn ends(event: &Event, asked: &ApprovalRequested) -> bool {
    let Event::Record { record, .. } = event else {
        return false;
    };
    match &**record {
        Record::ApprovalResolved(answer) => answer.approval == asked.approval,
        Record::ToolFinished(finished) => finished.call == asked.call,
        _ => false,
    }
}
