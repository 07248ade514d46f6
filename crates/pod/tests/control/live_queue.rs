//! A pod that stays, asked by two clients at random: what it says of itself is what its files fold to, and every accepted
//! input is consumed, withdrawn or waiting, once and in order.

use crate::fixtures::moved;
use crate::fixtures::{echo, live, pod, sound};
use crate::logged_queue::LoggedQueue;
use llm_worker::{Item, StopReason, ToolEffect};
use pod::control::{Client, Event, HostMode, NewInput, PodStatus, SubmitError};
use pod::record::{InputId, InputMode, Record};
use pod::session::fold::SessionState;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Latch, LivePod, Over, PodUnderTest, ScriptedAnswer};

/// What a client asks for; numbers choose among the inputs accepted so far.
#[derive(Clone, Debug)]
enum Op {
    Send {
        client: usize,
        mode: InputMode,
        key: Option<u8>,
    },
    Withdraw(usize),
    Edit(usize),
    Reorder(usize, Option<usize>),
    Cancel,
    Pause,
    Resume,
    /// The model gives one more answer.
    Answer,
    /// The process ends in good order, in mid-turn, and starts again.
    Restart,
}

fn any_op() -> impl Strategy<Value = Op> {
    let mode = prop_oneof![3 => Just(InputMode::Queue), 2 => Just(InputMode::Steer)];
    let send = (0..2_usize, mode, proptest::option::weighted(0.3, 0..3_u8));
    prop_oneof![
        6 => send.prop_map(|(client, mode, key)| Op::Send { client, mode, key }),
        1 => (0..9_usize).prop_map(Op::Withdraw),
        2 => (0..9_usize).prop_map(Op::Edit),
        2 => (0..9_usize, proptest::option::of(0..9_usize)).prop_map(|(input, before)| Op::Reorder(input, before)),
        1 => Just(Op::Cancel),
        1 => Just(Op::Pause),
        2 => Just(Op::Resume),
        6 => Just(Op::Answer),
        1 => Just(Op::Restart),
    ]
}

const ANSWERS: usize = 64;

/// The scene, and what its clients were promised.
struct Scene {
    live: Option<LivePod>,
    clients: [Client; 2],
    gates: std::vec::IntoIter<Latch>,
    /// By number: the text that was acknowledged last.
    texts: BTreeMap<InputId, String>,
    /// In the order of the answers.
    accepted: Vec<InputId>,
    keys: BTreeMap<u8, InputId>,
    withdrawn: BTreeSet<InputId>,
    lives: Vec<Vec<Event>>,
}

impl Scene {
    fn new() -> Self {
        let gates: Vec<_> = (0..ANSWERS)
            .map(|n| Latch::new(&format!("answer {n}")))
            .collect();
        let answer = |(n, gate): (usize, &Latch)| match n % 3 {
            0 => ScriptedAnswer::new()
                .wait_at(gate)
                .call(0, "Echo", "{}")
                .stop(StopReason::ToolUse),
            _ => ScriptedAnswer::new()
                .wait_at(gate)
                .say(&format!("answer {n}"))
                .stop(StopReason::EndTurn),
        };
        let mut pod = pod(
            gates.iter().enumerate().map(answer).collect(),
            vec![echo("Echo", ToolEffect::Effectful)],
        );
        pod.mode = HostMode::Stay { missing: None };
        let live = live(pod);
        let clients = [live.client(), live.client()];
        let texts = BTreeMap::new();
        let keys = BTreeMap::new();
        let accepted = Vec::new();
        let withdrawn = BTreeSet::new();
        let lives = Vec::new();
        Self {
            live: Some(live),
            clients,
            gates: gates.into_iter(),
            texts,
            accepted,
            keys,
            withdrawn,
            lives,
        }
    }

    fn live(&self) -> &LivePod {
        self.live.as_ref().unwrap()
    }

    /// One of the inputs so far.
    fn chosen(&self, n: usize) -> Option<InputId> {
        (!self.accepted.is_empty()).then(|| self.accepted[n % self.accepted.len()])
    }

    fn ask<T>(&self, answer: impl Future<Output = T>) -> T {
        self.live().ask(answer)
    }

    fn act(&mut self, op: &Op) {
        match op {
            Op::Send { client, mode, key } => self.send(*client, *mode, *key),
            Op::Withdraw(n) => {
                let Some(input) = self.chosen(*n) else { return };
                if done(self.ask(self.clients[0].withdraw(input, None))) {
                    assert!(self.withdrawn.insert(input), "{input} was withdrawn twice");
                }
            }
            Op::Edit(n) => {
                let Some(input) = self.chosen(*n) else { return };
                let text = format!("{}!", self.texts[&input]);
                if done(self.ask(self.clients[1].edit(input, text.clone(), None))) {
                    self.texts.insert(input, text);
                }
            }
            Op::Reorder(n, before) => {
                let Some(input) = self.chosen(*n) else { return };
                let before = before.and_then(|n| self.chosen(n));
                done(self.ask(self.clients[0].tell(moved(input, before), None)));
            }
            Op::Cancel => self.ask(self.clients[0].cancel(None)),
            Op::Pause => self.ask(self.clients[1].pause(None)).unwrap(),
            Op::Resume => self.ask(self.clients[0].resume(None)).unwrap(),
            Op::Answer => {
                self.gates.next().inspect(Latch::open);
            }
            Op::Restart => {
                self.ask(self.clients[0].leave("a restart"));
                let over = self.end();
                self.live = Some(live(over));
                self.clients = [self.live().client(), self.live().client()];
            }
        }
    }

    fn send(&mut self, client: usize, mode: InputMode, key: Option<u8>) {
        let text = format!("input {} of {client}", self.accepted.len());
        let named = key.map(|key| format!("key {key}"));
        let new = NewInput {
            text: text.clone(),
            mode,
            key: named,
            ..NewInput::default()
        };
        let input = match self.ask(self.clients[client].send(new)) {
            Ok(accepted) => accepted.input,
            Err(SubmitError::Busy) => return,
            Err(error) => panic!("{error}"),
        };
        if let Some(known) = key.and_then(|key| self.keys.insert(key, input)) {
            assert_eq!(known, input, "one key, two inputs");
            return;
        }
        assert_eq!(input, self.accepted.len() as u64 + 1, "numbers are dense");
        self.accepted.push(input);
        self.texts.insert(input, text);
    }

    /// What the pod says of itself is what its files say.
    fn look(&self) {
        let status = self.ask(self.clients[1].status()).unwrap();
        compare(&status, &self.live().folded(status.folded));
    }

    /// The pod ends; its last state is that of its files.
    fn end(&mut self) -> PodUnderTest {
        let over = self.live.take().unwrap().wait();
        assert_eq!(over.state(), &over.pod.state());
        let Over { pod, events, .. } = over;
        self.lives.push(events);
        pod
    }

    /// Everything is answered, and the pod is closed.
    fn finish(mut self) -> Self {
        self.gates.by_ref().for_each(|gate| gate.open());
        // A cancelled turn holds the pod again.
        while self.live().settled().held.is_some() {
            self.ask(self.clients[0].resume(None)).unwrap();
        }
        self.look();
        self.ask(self.clients[0].close("done"));
        let pod = self.end();
        told_at_every_prefix(&pod, &self.lives);
        self.accounts(&pod);
        sound(&pod, "random clients");
        self
    }

    /// Every acknowledged change happened, and every input came to one end, in order.
    fn accounts(&self, pod: &PodUnderTest) {
        let queue = LoggedQueue::of(pod);
        assert_eq!(queue.inputs, self.accepted.len() as u64);
        assert_eq!(queue.withdrawn, self.withdrawn);
        assert!(queue.waiting.is_empty(), "{:?}", queue.waiting);
        let ends: Vec<_> = queue
            .consumed
            .iter()
            .chain(&queue.withdrawn)
            .copied()
            .collect();
        assert_eq!(
            ends.iter().collect::<BTreeSet<_>>().len(),
            ends.len(),
            "two ends of one input"
        );
        assert_eq!(ends.len(), self.accepted.len());
        let users = |item: Item| match item {
            Item::User { text, .. } => Some(text),
            _ => None,
        };
        let said: Vec<_> = pod.restored().items.into_iter().filter_map(users).collect();
        let expected: Vec<_> = queue
            .consumed
            .iter()
            .map(|input| self.texts[input].clone())
            .collect();
        assert_eq!(said, expected);
    }
}

/// Whether the change was made; it may have come too late.
fn done(answer: Result<(), SubmitError>) -> bool {
    match answer {
        Ok(()) => true,
        Err(SubmitError::NotWaiting(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

fn compare(status: &PodStatus, state: &SessionState) {
    assert_eq!(
        status.queued,
        state.queued.iter().cloned().collect::<Vec<_>>()
    );
    assert_eq!(status.held, state.held);
    assert_eq!(
        (status.turns, status.requests, status.usage),
        (state.turns, state.requests, state.usage)
    );
    assert_eq!(
        (status.cost, status.notices),
        (state.cost, state.notices.len())
    );
    assert_eq!(status.last_outcome, state.last_outcome);
}

/// The watcher's records fold to the state of the files, behind each of them.
fn told_at_every_prefix(pod: &PodUnderTest, lives: &[Vec<Event>]) {
    let told: BTreeMap<_, _> = lives.iter().flatten().filter_map(record).collect();
    let mut state = SessionState::default();
    let mut seen = SessionState::default();
    for (seq, record) in pod.records() {
        state.apply(&record).unwrap();
        if !matches!(record, Record::Other { .. }) {
            seen.apply(&told[&seq]).unwrap();
        }
        assert_eq!(seen, state, "behind {seq}");
    }
}

fn record(event: &Event) -> Option<(u64, Record)> {
    match event {
        Event::Record { seq, record } => Some((*seq, (**record).clone())),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_clients_were_told_is_what_happened(ops in prop::collection::vec(any_op(), 1..40)) {
        let mut scene = Scene::new();
        for op in &ops {
            scene.act(op);
            scene.look();
        }
        scene.finish();
    }
}
