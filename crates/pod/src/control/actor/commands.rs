//! What the actor does for its clients. Does not depend on commits in flight.

use super::closing::Closing;
use super::{Actor, At};
use crate::control::call::approvals::ApprovalAnswer;
use crate::control::call::past_calls::PastSearch;
use crate::control::call::preview::CallPreview;
use crate::control::client::between_turns::Opened;
use crate::control::client::{Command, QueueCommand, Reload, Reply, TurnCancel};
use crate::control::core::Fatal;
use crate::control::pipeline::ActorCommit;
use crate::control::status::{Activity, PodStatus};
use crate::control::submit_error::SubmitError;
use crate::control::turn::frees_any;
use crate::mailbox::requests::{Declined, DriverRequest, Wakeup};
use crate::record::{
    ApprovalResolved, CompactRequested, HoldCause, InputId, Pinned, Record, Resumed,
    RulesForgotten, Suspended, Unpinned, Who,
};
use protocol::method::{
    Cancel, Compact, ForgetRules, MoveInput, Pause, Pin, Resume, StopRun, Unpin, Verb, Withdraw,
};
use std::collections::BTreeSet;

impl Actor {
    /// Does what a client asks for.
    pub(super) fn asked(&mut self, command: Command) -> Result<(), Fatal> {
        let Self {
            core,
            at,
            submissions,
            ..
        } = self;
        match (command, at) {
            (Command::Do(verb, by, reply), _) => self.perform(verb, by, reply)?,
            (Command::Queue(new), _) => self.change_queue(QueueCommand::Text(new)),
            (Command::Wait(input, end), _) => submissions.wait(core, input, end),
            (Command::Approve(answer, reply), _) => self.approve(answer, reply),
            // The client may have ended.
            (Command::PastCalls(id, reply), _) => {
                drop(reply.send(PastSearch::new(core, id).map(Box::new)))
            }
            (Command::PreviewCall(id, reply), _) => {
                drop(reply.send(CallPreview::new(core, id).map(Box::new)))
            }
            (Command::Notify(notification, reply), at) => {
                match (&self.closing, core.pipeline.trouble()) {
                    (Closing::Open, None) => {
                        let request = Wakeup::Request(DriverRequest::Notify {
                            notification,
                            reply,
                        });
                        match at {
                            At::Turn(turn) => turn.wake(core, request),
                            At::Idle(_) | At::Between => core.wake(request, &|_| false),
                        }
                    }
                    (Closing::Open, Some(trouble)) => {
                        drop(reply.send(Err(Declined::Refused(trouble.to_owned()))))
                    }
                    // Without an answer the client knows that the pod has closed.
                    (_, _) => drop(reply),
                }
            }
            (Command::Call(call, reply), _) => self.commit_for_client(call.into(), reply),
            (Command::BetweenTurns(reply), _) => self.between_turns(reply),
            (Command::Append(records, reply), _) => {
                self.replies.push_back(reply);
                self.core.append_actor_commit(ActorCommit::Client, records);
            }
            // The client may have ended.
            (Command::Status(reply), _) => drop(reply.send(self.status())),
            (Command::Reload(reload), _) => {
                let Reload {
                    limits,
                    pod_limits,
                    permission,
                    price,
                    context_window,
                    context_policy,
                } = *reload;
                (self.limits, core.pod_limits, core.permission) = (limits, pod_limits, permission);
                (core.price, core.context_window, core.context_policy) =
                    (price, context_window, context_policy);
            }
            (Command::Close { reason, leave }, at) => {
                self.closing.ask(reason);
                core.is_ending = true;
                core.pipeline.hurry();
                if let (true, At::Turn(turn)) = (leave, at) {
                    turn.leave()?;
                }
            }
        }
        Ok(())
    }

    /// Does what a person asks for.
    fn perform(&mut self, verb: Verb, by: Option<Who>, reply: Reply<()>) -> Result<(), Fatal> {
        match verb {
            Verb::ForgetRules(ForgetRules { rules, .. }) => self.forget_rules(&rules, by, reply),
            Verb::Withdraw(Withdraw { input, .. }) => {
                self.change_queue(QueueCommand::Withdraw { input, by, reply });
            }
            Verb::MoveInput(MoveInput { input, before, .. }) => {
                self.change_queue(QueueCommand::Reorder {
                    input,
                    before,
                    by,
                    reply,
                });
            }
            Verb::Pin(Pin { text, .. }) => self.pin(text, by, reply),
            Verb::Unpin(Unpin { pin, .. }) => self.unpin(pin, by, reply),
            Verb::Compact(Compact { drop_turns, .. }) => {
                self.compact(CompactRequested { drop_turns, by }, reply);
            }
            Verb::Cancel(Cancel { input, .. }) => {
                self.cancel(input, by)?;
                // The client may have ended.
                drop(reply.send(Ok(())));
            }
            Verb::StopRun(StopRun { run, .. }) => self.stop_run(run, reply),
            Verb::Pause(Pause { .. }) => self.hold(by, reply),
            Verb::Resume(Resume { more, .. }) => self.resume(more, by, reply)?,
        }
        Ok(())
    }

    fn change_queue(&mut self, change: QueueCommand) {
        match self.closing {
            Closing::Open => self.submissions.take(change, self.core.state.queued.len()),
            Closing::Asked(_)
            | Closing::FlushingObservers(_)
            | Closing::Stopping
            | Closing::Stopped => change.refuse(SubmitError::Closed),
        }
    }

    /// Ends the running turn; with an input, only if that turn took it.
    fn cancel(&mut self, input: Option<InputId>, by: Option<Who>) -> Result<(), Fatal> {
        match &mut self.at {
            At::Turn(turn) => {
                if input.is_none_or(|input| turn.taking().contains(&input)) {
                    turn.cancel(by)?;
                }
            }
            At::Idle(_) | At::Between if input.is_none() => {
                self.submissions.cancel(TurnCancel { by });
            }
            At::Idle(_) | At::Between => {}
        }
        Ok(())
    }

    fn stop_run(&mut self, run: u64, reply: Reply<()>) {
        let stopped = if self.tasks.stop(&self.core, run) {
            Ok(())
        } else {
            Err(SubmitError::NoRun(run))
        };
        // The client may have ended.
        drop(reply.send(stopped));
    }

    fn between_turns(&mut self, reply: Reply<Opened>) {
        let idle = matches!(self.at, At::Idle(_)) && self.submissions.is_idle();
        let answer = match self.closing {
            Closing::Open if idle && !self.starts() => self
                .turn_block
                .open(self.core.store.blobs.clone())
                .ok_or(SubmitError::Working),
            Closing::Open => Err(SubmitError::Working),
            Closing::Asked(_)
            | Closing::FlushingObservers(_)
            | Closing::Stopping
            | Closing::Stopped => Err(SubmitError::Closed),
        };
        // The client may have ended.
        drop(reply.send(answer));
    }

    fn approve(&mut self, answer: ApprovalAnswer, reply: Reply<ApprovalResolved>) {
        let Self {
            core,
            at,
            answers,
            closing,
            ..
        } = self;
        let idle = matches!(at, At::Idle(_) | At::Between);
        let stuck = core
            .state
            .held
            .as_ref()
            .filter(|hold| idle && hold.cause == HoldCause::Bug);
        let error = match (closing, core.pipeline.trouble(), stuck) {
            (Closing::Open, None, None) => {
                return answers.take(&core.state.approvals, answer, reply);
            }
            (Closing::Open, Some(trouble), _) => SubmitError::Disk(trouble.to_owned()),
            (Closing::Open, None, Some(hold)) => {
                SubmitError::Required(format!("the pod is held: {}", hold.reason))
            }
            (_, _, _) => SubmitError::Closed,
        };
        drop(reply.send(Err(error)));
    }

    fn forget_rules(&mut self, numbers: &[u64], by: Option<Who>, reply: Reply<()>) {
        let known = &self.core.state.approvals.rules;
        let of_number = |number: &u64| {
            let allowed = known.iter().find(|allowed| allowed.number == *number);
            allowed
                .map(|allowed| allowed.rule.clone())
                .ok_or(SubmitError::NoRuleNumber(*number))
        };
        let numbers: BTreeSet<u64> = numbers.iter().copied().collect();
        match numbers.iter().map(of_number).collect::<Result<Vec<_>, _>>() {
            Ok(rules) if rules.is_empty() => drop(reply.send(Ok(()))),
            Ok(rules) => self.commit_for_client(RulesForgotten { rules, by }.into(), reply),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn pin(&mut self, text: String, by: Option<Who>, reply: Reply<()>) {
        let core = &mut self.core;
        if let Some(why) = core.state.standing.refusal(&text) {
            return drop(reply.send(Err(SubmitError::NotPinned(why))));
        }
        core.pins += 1;
        let pin = core.pins;
        self.commit_for_client(Pinned { pin, text, by }.into(), reply);
    }

    fn unpin(&mut self, pin: u64, by: Option<Who>, reply: Reply<()>) {
        if self.core.state.standing.pins.contains_key(&pin) {
            self.commit_for_client(Unpinned { pin, by }.into(), reply);
        } else {
            drop(reply.send(Err(SubmitError::NoPin(pin))));
        }
    }

    /// Nothing is recorded if nothing can leave. Of a running turn nobody knows what its next request contains.
    fn compact(&mut self, wish: CompactRequested, reply: Reply<()>) {
        if matches!(self.at, At::Idle(_)) && !frees_any(&self.core, &wish) {
            let all = if wish.drop_turns {
                ""
            } else {
                " but whole turns"
            };
            let why = format!("nothing{all} can leave the context");
            return drop(reply.send(Err(SubmitError::Unchanged(why))));
        }
        self.commit_for_client(wish.into(), reply);
    }

    fn hold(&mut self, by: Option<Who>, reply: Reply<()>) {
        let reason = by.as_ref().map_or_else(
            || "paused".to_owned(),
            |who| format!("paused by `{}`", who.client),
        );
        self.commit_for_client(
            Suspended {
                reason,
                cause: Some(HoldCause::Person),
                budget: None,
                by,
            }
            .into(),
            reply,
        );
    }

    fn resume(&mut self, more: bool, by: Option<Who>, reply: Reply<()>) -> Result<(), Fatal> {
        if let At::Turn(turn) = &mut self.at {
            turn.try_now()?;
        }
        let used_up = self.core.used_up();
        let answer = match (&self.core.state.held, used_up) {
            (Some(hold), _) if hold.cause == HoldCause::Required => {
                Err(SubmitError::Required(hold.reason.clone()))
            }
            (Some(hold), Some(used_up)) if hold.cause == HoldCause::Budget && !more => {
                Err(SubmitError::Budget(used_up.reason))
            }
            (Some(hold), _) => {
                let more = if more {
                    self.core.kinds_used_up()
                } else {
                    Vec::new()
                };
                self.commit_for_client(
                    Resumed {
                        cause: Some(hold.cause),
                        more,
                        by,
                    }
                    .into(),
                    reply,
                );
                return Ok(());
            }
            (None, _) => Ok(()),
        };
        drop(reply.send(answer));
        Ok(())
    }

    fn commit_for_client(&mut self, record: Record, reply: Reply<()>) {
        if !matches!(self.closing, Closing::Open) {
            return drop(reply.send(Err(SubmitError::Closed)));
        }
        self.replies.push_back(reply);
        let mut records = std::mem::take(&mut self.preamble.records);
        records.push(record);
        self.core.append_actor_commit(ActorCommit::Client, records);
    }

    fn status(&self) -> PodStatus {
        let activity = match (&self.at, &self.closing) {
            (At::Turn(turn), _) => turn.activity(&self.core),
            (At::Idle(_) | At::Between, Closing::Open) if self.owes_end_gates => {
                Activity::Working {
                    turn: self.core.state.turns,
                    requests: 0,
                }
            }
            (At::Idle(_) | At::Between, Closing::Open) => Activity::Idle,
            (At::Idle(_) | At::Between, _) => Activity::Closing,
        };
        let core = &self.core;
        let state = &core.state;
        PodStatus {
            activity,
            held: state.held.clone(),
            model_wait: if let At::Turn(turn) = &self.at {
                turn.model_wait()
            } else {
                None
            },
            disk: core.pipeline.trouble().map(str::to_owned),
            queued: state.queued.iter().cloned().collect(),
            approvals: state.approvals.open.values().cloned().collect(),
            rules: state.approvals.rules.clone(),
            notices: state.notices.len(),
            turns: state.turns,
            requests: state.requests,
            usage: state.usage,
            cost: state.cost,
            context: state.context_under(core.context_window, core.context_policy),
            pins: state.standing.pins.clone(),
            compact_due: state.compact_due.is_some(),
            last_outcome: state.last_outcome.clone(),
            end_verdict: state.end_verdict,
            model: core.model.name().to_owned(),
            folded: *core.outbox.following().borrow(),
            stuck: core.callbacks.stuck(),
            tasks: self.tasks.views(core),
            jobs: state.open_jobs().cloned().collect(),
        }
    }
}
