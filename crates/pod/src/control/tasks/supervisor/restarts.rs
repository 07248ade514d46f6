//! Whether a task runs again after a run ended, and after which pause. Does not depend on triggers.

use crate::feature::{Restart, millis};
use crate::record::TaskRunState;
use crate::session::tasks::{MAX_TASK_FAILURES, TaskState};
use llm_worker::ToolEffect;
use std::collections::VecDeque;

/// The shortest pause, and the longest to which pauses double.
const MIN_PAUSE_MS: u64 = 1000;
const MAX_DOUBLED_MS: u64 = 60 * 60 * 1000;

/// The failures of a task so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    /// When they were, newest last.
    times: VecDeque<u64>,
    /// Since a run completed.
    in_a_row: u32,
}

impl Failures {
    /// The failures that the journal remembers. A task that was switched off by its limit has a new budget at each start,
    /// unless the host itself ended during its newest run: then `Err` says how many failures there were, and the task
    /// stays off, so that it cannot end each new host.
    pub(super) fn recover(state: &TaskState, rule: Restart, now: u64) -> Result<Self, usize> {
        let mut known = Self {
            times: state.failures.clone(),
            in_a_row: 0,
        };
        let over = known.over_limit(rule, now);
        let orphaned = state
            .last
            .as_ref()
            .is_some_and(|last| last.state == TaskRunState::Orphaned);
        match over {
            Some(count) if orphaned => Err(count),
            Some(_) => Ok(Self::default()),
            None => Ok(known),
        }
    }

    /// Counts the end of a run. Returns the pause before its restart, if there is one; `Err` if the failures exceed the
    /// limit, with their number.
    pub(super) fn after(
        &mut self,
        state: TaskRunState,
        rule: Restart,
        now: u64,
    ) -> Result<Option<u64>, usize> {
        if state == TaskRunState::Completed {
            self.in_a_row = 0;
        }
        if state.is_failure() {
            self.in_a_row = self.in_a_row.saturating_add(1);
            self.times.push_back(now);
            if self.times.len() > MAX_TASK_FAILURES {
                self.times.pop_front();
            }
            if let Some(count) = self.over_limit(rule, now) {
                return Err(count);
            }
        }
        Ok(self.pause(state, rule))
    }

    /// The pause before the restart that follows this end.
    pub(super) fn pause(&self, state: TaskRunState, rule: Restart) -> Option<u64> {
        let backoff = match rule {
            Restart::Never => return None,
            Restart::OnFailure { .. } if !state.is_failure() => return None,
            Restart::OnFailure { backoff, .. } | Restart::Always { backoff } => {
                millis(backoff).max(MIN_PAUSE_MS)
            }
        };
        // The limit ends what fails again and again; without a limit the pauses grow.
        let doubled = if let Restart::Always { .. } = rule {
            self.in_a_row.saturating_sub(1).min(32)
        } else {
            0
        };
        Some(
            backoff
                .saturating_mul(1 << doubled)
                .min(MAX_DOUBLED_MS.max(backoff)),
        )
    }

    /// The number of failures within the window, if they are more than the rule has restarts for.
    fn over_limit(&mut self, rule: Restart, now: u64) -> Option<usize> {
        let Restart::OnFailure { max, within, .. } = rule else {
            return None;
        };
        // A clock that was set back leaves failures in the future: they count for as long as if it had not been.
        self.times.retain(|at| at.abs_diff(now) < millis(within));
        let most = usize::try_from(max)
            .unwrap_or(usize::MAX)
            .min(MAX_TASK_FAILURES - 1);
        (self.times.len() > most).then_some(self.times.len())
    }
}

/// Whether the journal's newest end is one that is followed by a restart. An effectful run that the host's end interrupted
/// may have had its effect: it is repeated only by a rule that repeats always.
pub(super) fn is_repeated(state: TaskRunState, effect: ToolEffect, rule: Restart) -> bool {
    match rule {
        Restart::Never => false,
        Restart::Always { .. } => true,
        Restart::OnFailure { .. } => {
            state.is_failure()
                && !(state == TaskRunState::Orphaned && effect == ToolEffect::Effectful)
        }
    }
}

/// A limit that was exceeded, for people.
pub(super) fn limit_text(count: usize, rule: Restart) -> String {
    let within = match rule {
        Restart::OnFailure { within, .. } => {
            format!(" within {}", humantime::format_duration(within))
        }
        Restart::Never | Restart::Always { .. } => String::new(),
    };
    format!("failed {count} times{within}")
}
