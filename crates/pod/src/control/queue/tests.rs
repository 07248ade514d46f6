//! The queue and the decisions about it, against a plain list.

use super::*;
use crate::record::InputMode;
use crate::record::{
    HoldCause, InputConsumed, InputEdited, InputMoved, InputQueued, InputWithdrawn,
    NotificationQueued, Record, Resumed, Suspended, TurnFinished, TurnStarted,
};
use llm_worker::effect::Outcome;
use proptest::prelude::*;

/// One thing that happens to the queue.
#[derive(Clone, Debug)]
enum Step {
    Queue,
    Steer,
    DenyParked,
    Withdraw(usize),
    Edit(usize),
    Move(usize, Option<usize>),
    Pause,
    Resume,
    Wake,
    /// A turn takes what it is to take, is joined by what was steered, and ends.
    Turn(Outcome),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Cancelled),
        Just(Outcome::StepLimit)
    ];
    prop_oneof![
        3 => Just(Step::Queue),
        2 => Just(Step::Steer),
        1 => Just(Step::DenyParked),
        1 => any::<usize>().prop_map(Step::Withdraw),
        1 => any::<usize>().prop_map(Step::Edit),
        1 => (any::<usize>(), any::<Option<usize>>()).prop_map(|(which, before)| Step::Move(which, before)),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        1 => Just(Step::Wake),
        4 => outcome.prop_map(Step::Turn),
    ]
}

/// The inputs that wait, as a plain list.
#[derive(Default)]
struct Expected {
    state: SessionState,
    waiting: Vec<(InputId, InputMode)>,
    /// Inputs in the order in which turns took them.
    taken: Vec<InputId>,
    withdrawn: Vec<InputId>,
}

impl Expected {
    fn fold(&mut self, record: impl Into<Record>) {
        self.state.apply(&record.into()).expect("a legal record");
    }

    fn accept(&mut self, mode: InputMode) {
        let input = self.state.inputs + 1;
        self.fold(InputQueued {
            input,
            text: format!("{input}"),
            mode,
            ..InputQueued::default()
        });
        self.waiting.push((input, mode));
    }

    fn pick(&self, which: usize) -> Option<(usize, InputId)> {
        let at = which.checked_rem(self.waiting.len())?;
        self.waiting.get(at).map(|(input, _)| (at, *input))
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Queue => self.accept(InputMode::Queue),
            Step::Steer => self.accept(InputMode::Steer),
            Step::DenyParked => self.accept(InputMode::DenyParked),
            Step::Withdraw(which) => {
                let Some((at, input)) = self.pick(which) else {
                    return;
                };
                self.fold(InputWithdrawn { input, by: None });
                self.withdrawn.push(self.waiting.remove(at).0);
            }
            Step::Edit(which) => {
                let Some((_, input)) = self.pick(which) else {
                    return;
                };
                self.fold(InputEdited {
                    input,
                    text: "edited".to_owned(),
                    whole: None,
                    by: None,
                });
                assert_eq!(
                    self.state.queued.get(input).map(|waiting| &*waiting.text),
                    Some("edited")
                );
            }
            Step::Move(which, before) => self.reorder(which, before),
            Step::Pause => {
                self.fold(Suspended {
                    reason: "paused".to_owned(),
                    cause: Some(HoldCause::Person),
                    budget: None,
                    by: None,
                });
                assert_eq!(next_turn(&self.state, TakeRule::Stay), None);
            }
            Step::Resume => {
                let cause = self.state.held.as_ref().map(|hold| hold.cause);
                self.fold(Resumed {
                    cause,
                    more: Vec::new(),
                    by: None,
                });
                assert_eq!(self.state.held, None);
            }
            Step::Wake => {
                let number = self.state.notified + 1;
                let feature = "builtin:t".to_owned();
                let text = "wake".to_owned();
                self.fold(NotificationQueued {
                    number,
                    feature,
                    registry_generation: 1,
                    text,
                    wake: true,
                    key: None,
                    by: None,
                });
            }
            Step::Turn(outcome) => self.turn(outcome),
        }
    }

    fn reorder(&mut self, which: usize, before: Option<usize>) {
        let Some((at, input)) = self.pick(which) else {
            return;
        };
        let before = before
            .and_then(|before| self.pick(before))
            .map(|(_, input)| input);
        if before == Some(input) {
            return;
        }
        self.fold(InputMoved {
            input,
            before,
            by: None,
        });
        let entry = self.waiting.remove(at);
        let to = self
            .waiting
            .iter()
            .position(|(other, _)| Some(*other) == before)
            .unwrap_or(self.waiting.len());
        self.waiting.insert(to, entry);
    }

    fn turn(&mut self, outcome: Outcome) {
        let Some(inputs) = next_turn(&self.state, TakeRule::Stay) else {
            let owed =
                !self.waiting.is_empty() || self.state.notices.values().any(|notice| notice.wake);
            assert!(
                self.state.held.is_some() || !owed,
                "nothing begins although something is owed"
            );
            return;
        };
        assert!(self.state.held.is_none(), "a held pod begins no turn");
        assert!(inputs.len() <= 1, "one input, one turn");
        let first = self
            .waiting
            .iter()
            .find(|(_, mode)| *mode != InputMode::Queue)
            .or(self.waiting.first());
        // A turn that a limit ended goes on before anything else.
        let first = first.filter(|_| !self.state.is_resumed_at_limit());
        assert_eq!(
            inputs.first(),
            first.map(|(input, _)| input),
            "what was steered first, then the oldest"
        );
        self.fold(TurnStarted {
            turn: self.state.turns + 1,
        });
        let joined: Vec<_> = joining(&self.state.queued)
            .map(|waiting| waiting.input)
            .collect();
        let mut takes = inputs;
        takes.extend(
            joined
                .into_iter()
                .filter(|input| !takes.contains(input))
                .collect::<Vec<_>>(),
        );
        for input in takes {
            self.fold(InputConsumed { input });
            self.waiting.retain(|(waiting, _)| *waiting != input);
            self.taken.push(input);
        }
        // Its first step delivers them.
        self.state.notices.clear();
        self.fold(TurnFinished {
            turn: self.state.turns,
            outcome,
            unanswered: None,
            by: None,
            end_gates: false,
        });
    }
}

proptest! {
    /// Every accepted input is taken once, withdrawn, or waits, in the order that clients gave it.
    #[test]
    fn no_input_is_lost_taken_twice_or_out_of_order(steps in prop::collection::vec(step(), 0..60)) {
        let mut expected = Expected::default();
        for step in steps {
            expected.take(step);
            let waiting: Vec<_> = expected.state.queued.iter().map(|waiting| (waiting.input, waiting.mode)).collect();
            prop_assert_eq!(&waiting, &expected.waiting);
            let all = expected.taken.iter().chain(&expected.withdrawn).copied();
            let mut all: Vec<_> = all.chain(waiting.iter().map(|(input, _)| *input)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (1..=expected.state.inputs).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_first_turn_of_a_run_takes_what_an_earlier_start_accepted() {
    let mut expected = Expected::default();
    (0..3).for_each(|_| expected.accept(InputMode::Queue));
    let run = |opened_at| TakeRule::Run {
        opened_at,
        goes_on: false,
    };
    for (opened_at, takes) in [
        (0, Some(vec![1])),
        (1, Some(vec![1, 2, 3])),
        (2, Some(vec![1, 2, 3])),
        (3, None),
    ] {
        assert_eq!(
            next_turn(&expected.state, run(opened_at)),
            takes,
            "opened at {opened_at}"
        );
    }
    // Interrupted work goes on in the turn of the next input, not in one of its own.
    expected.turn(Outcome::Interrupted);
    assert_eq!(next_turn(&expected.state, run(1)), Some(vec![2]));
    assert_eq!(next_turn(&SessionState::default(), run(0)), None);
}

#[test]
fn interrupted_work_of_a_pod_that_stays_comes_first() {
    let mut expected = Expected::default();
    (0..2).for_each(|_| expected.accept(InputMode::Queue));
    expected.turn(Outcome::Interrupted);
    assert_eq!(next_turn(&expected.state, TakeRule::Stay), Some(Vec::new()));
    expected.fold(TurnStarted { turn: 2 });
    assert_eq!(
        next_turn(&expected.state, TakeRule::Stay),
        None,
        "a turn is open"
    );
    expected.fold(TurnFinished {
        turn: 2,
        outcome: Outcome::Done,
        unanswered: None,
        by: None,
        end_gates: false,
    });
    assert_eq!(next_turn(&expected.state, TakeRule::Stay), Some(vec![2]));
}

#[test]
fn a_command_of_a_person_has_a_turn_of_its_own() {
    let mut expected = Expected::default();
    for run in [false, false, true, false] {
        let input = expected.state.inputs + 1;
        expected.fold(InputQueued {
            input,
            text: "! x".to_owned(),
            run,
            ..InputQueued::default()
        });
    }
    for takes in [vec![1, 2], vec![3], vec![4]] {
        let rule = TakeRule::Run {
            opened_at: 3,
            goes_on: false,
        };
        assert_eq!(next_turn(&expected.state, rule), Some(takes.clone()));
        expected.fold(TurnStarted {
            turn: expected.state.turns + 1,
        });
        takes
            .into_iter()
            .for_each(|input| expected.fold(InputConsumed { input }));
        let turn = expected.state.turns;
        expected.fold(TurnFinished {
            turn,
            outcome: Outcome::Done,
            unanswered: None,
            by: None,
            end_gates: false,
        });
    }
    assert_eq!(expected.state.queued.len(), 0);
}

#[test]
fn a_command_that_was_cut_off_is_not_gone_on_with() {
    let mut expected = Expected::default();
    expected.fold(InputQueued {
        input: 1,
        text: "! x".to_owned(),
        run: true,
        ..InputQueued::default()
    });
    expected.fold(TurnStarted { turn: 1 });
    expected.fold(InputConsumed { input: 1 });
    let outcome = Outcome::Interrupted;
    expected.fold(TurnFinished {
        turn: 1,
        outcome,
        unanswered: None,
        by: None,
        end_gates: false,
    });
    assert_eq!(
        (
            next_turn(&expected.state, TakeRule::Stay),
            expected.state.continued()
        ),
        (None, None)
    );
}
