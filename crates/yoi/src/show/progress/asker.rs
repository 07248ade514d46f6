//! Questions about calls on the terminal of a run. The thread of the screen asks: it owns what the terminal shows, and
//! holds back what comes meanwhile.

use crate::show::question::{self, TypedAnswer};
use crate::show::terminal::{Terminal, TypedLine};
use pod::control::{ApprovalAnswer, Event};
use pod::record::{ApprovalRequested, ApprovalScope, Record, Who};
use protocol::method::AllowScope;
use std::collections::VecDeque;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Events that are held while a question is on the screen; the rest waits in the pod.
const MAX_HELD: usize = 4096;

/// How a question ended.
#[derive(Debug)]
pub(crate) enum QuestionOutcome {
    Answer(ApprovalAnswer),
    /// Another client answered, or the call has ended.
    Over,
    /// The person left it: nothing more is asked.
    Left,
}

/// Asks the person of a run.
pub(crate) struct Asker {
    terminal: Terminal,
    /// At most one for each question.
    outcomes: mpsc::UnboundedSender<QuestionOutcome>,
    /// The run is to end.
    cancel: CancellationToken,
}

impl Asker {
    pub(crate) fn new(
        terminal: Terminal,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<QuestionOutcome>) {
        let (outcomes, asked) = mpsc::unbounded_channel();
        (Self { terminal, outcomes, cancel }, asked)
    }

    /// Asks about a call; `show` prints a part of the question. Returns whether to ask about the next one.
    pub(super) fn ask(
        &mut self,
        asked: &ApprovalRequested,
        show: &mut dyn FnMut(&str),
        events: &mut mpsc::Receiver<Event>,
        held: &mut VecDeque<Event>,
    ) -> bool {
        let Some(mirror) = question::mirror(asked) else { return self.tell(QuestionOutcome::Left) };
        let ApprovalRequested { approval, tool, sandbox, .. } = asked;
        show(&format!("? approval {approval}: {tool} (sandbox {sandbox})\n"));
        let also = question::also_allows(&mirror, "`p`");
        question::lines(&mirror).iter().chain(&also).for_each(|line| show(&format!("{line}\n")));
        let Self { terminal, cancel, .. } = self;
        let mut stands = || {
            while held.len() < MAX_HELD
                && let Ok(event) = events.try_recv()
            {
                held.push_back(event);
            }
            !cancel.is_cancelled() && !held.iter().any(|event| ends(event, asked))
        };
        let leave = "Ctrl-D: leave it waiting";
        let typed = question::ask(terminal, &mirror, leave, &mut stands, show);
        let (allow, scope, words) = match typed {
            Ok(TypedAnswer::Allow(AllowScope::Once)) => (true, ApprovalScope::Once, None),
            Ok(TypedAnswer::Allow(AllowScope::Pod)) => (true, ApprovalScope::Pod, None),
            Ok(TypedAnswer::Allow(AllowScope::Rule)) => (true, ApprovalScope::Rule, None),
            Ok(TypedAnswer::Deny(words)) => (false, ApprovalScope::Once, words),
            none => {
                show("\n");
                let over = none == Err(TypedLine::Over) && !self.cancel.is_cancelled();
                return self.tell(if over { QuestionOutcome::Over } else { QuestionOutcome::Left });
            }
        };
        let arguments_digest = asked.arguments_digest.clone();
        let uid = rustix::process::getuid().as_raw();
        let (client, role) = ("yoi run".to_owned(), "approver".to_owned());
        let by = Some(Who { client, role, uid, name: None });
        self.tell(QuestionOutcome::Answer(ApprovalAnswer {
            approval: *approval,
            allow,
            scope,
            arguments_digest,
            words,
            by,
        }))
    }

    fn tell(&self, outcome: QuestionOutcome) -> bool {
        let goes_on = !matches!(outcome, QuestionOutcome::Left);
        // A run that has ended asks nothing.
        self.outcomes.send(outcome).is_ok() && goes_on
    }
}

/// Whether the call does not wait any more.
fn ends(event: &Event, asked: &ApprovalRequested) -> bool {
    let Event::Record { record, .. } = event else { return false };
    match &**record {
        Record::ApprovalResolved(answer) => answer.approval == asked.approval,
        Record::ToolFinished(finished) => finished.call == asked.call,
        _ => false,
    }
}
