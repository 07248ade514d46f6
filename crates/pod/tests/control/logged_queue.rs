//! The queue of inputs as a log has it, and the rules of its order: written without the fold.

use pod::record::{HoldCause, InputId, InputMode, Record};
use std::collections::{BTreeMap, BTreeSet};
use testkit::PodUnderTest;

/// The queue as the log has it, and the rules of its order.
#[derive(Default)]
pub(crate) struct LoggedQueue {
    pub(crate) inputs: InputId,
    pub(crate) waiting: Vec<(InputId, InputMode)>,
    pub(crate) consumed: Vec<InputId>,
    pub(crate) withdrawn: BTreeSet<InputId>,
    /// By number, as last edited.
    pub(crate) texts: BTreeMap<InputId, String>,
    /// Inputs in queue mode that the open turn took.
    own: usize,
    /// Requests since a person paused the pod.
    requests: Option<usize>,
}

impl LoggedQueue {
    /// Panics if the log breaks a rule.
    pub(crate) fn of(pod: &PodUnderTest) -> Self {
        let mut queue = Self::default();
        pod.records()
            .iter()
            .for_each(|(_, record)| queue.take(record));
        queue
    }

    fn remove(&mut self, input: InputId) -> (InputId, InputMode) {
        let at = self
            .waiting
            .iter()
            .position(|(waiting, _)| *waiting == input);
        self.waiting
            .remove(at.unwrap_or_else(|| panic!("{input} does not wait")))
    }

    fn take(&mut self, record: &Record) {
        match record {
            Record::InputQueued(queued) => {
                self.inputs += 1;
                self.waiting.push((queued.input, queued.mode));
                self.texts.insert(queued.input, queued.text.clone());
            }
            Record::InputEdited(edited) => {
                assert!(self.waiting.iter().any(|(input, _)| *input == edited.input));
                self.texts.insert(edited.input, edited.text.clone());
            }
            Record::InputWithdrawn(withdrawn) => {
                self.remove(withdrawn.input);
                assert!(self.withdrawn.insert(withdrawn.input));
            }
            Record::InputMoved(moved) => {
                let entry = self.remove(moved.input);
                let before = |next: InputId| {
                    self.waiting
                        .iter()
                        .position(|(waiting, _)| *waiting == next)
                        .unwrap()
                };
                let at = moved.before.map_or(self.waiting.len(), before);
                self.waiting.insert(at, entry);
            }
            Record::TurnStarted(_) => self.own = 0,
            Record::InputConsumed(consumed) => {
                let (_, mode) = *self
                    .waiting
                    .iter()
                    .find(|(input, _)| *input == consumed.input)
                    .unwrap();
                let first = self
                    .waiting
                    .iter()
                    .find(|(_, other)| *other == mode)
                    .unwrap()
                    .0;
                assert_eq!(consumed.input, first, "out of order: {:?}", self.waiting);
                self.own += usize::from(mode == InputMode::Queue);
                assert!(self.own <= 1, "one input, one turn");
                self.remove(consumed.input);
                self.consumed.push(consumed.input);
            }
            Record::Suspended(held) if held.cause == Some(HoldCause::Person) => {
                self.requests = Some(0)
            }
            Record::Resumed(resumed) if resumed.cause == Some(HoldCause::Person) => {
                self.requests = None
            }
            Record::Request(_) => {
                if let Some(requests) = &mut self.requests {
                    *requests += 1;
                    assert!(
                        *requests <= 1,
                        "only the request on its way is sent by a pod that is paused"
                    );
                }
            }
            _ => {}
        }
    }
}
