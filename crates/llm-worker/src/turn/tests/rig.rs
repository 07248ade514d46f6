//! A host in memory: performs each effect when told to, and fails at the first broken promise.

use crate::ErrorKind;
use crate::effect::{CallVerdict, CallView, Effect, Fact, Gated, Input, NewCall, Outcome};
use crate::history::{Counters, History};
use crate::item::{CallId, Item, ProviderSignature, ResultStatus, ToolOutcome};
use crate::model::{ModelError, ModelEvent, StopReason, Usage};
use crate::projection::{Dialect, Open, Projection, Surface};
use crate::tool::parse_arguments;
use crate::turn::unstorable::UNSTORED;
use crate::turn::{Acknowledged, CommitRequest, IllegalInput, Payload, TurnLimits};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Ack(pub(super) CommitRequest<Host>);

impl Acknowledged<Host> for Ack {
    fn into_request(self) -> CommitRequest<Host> {
        self.0
    }
}

/// Every word it attaches names the call it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start(u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) call: u64,
    pub(super) ran: bool,
}

impl From<Start> for Ending {
    fn from(Start(call): Start) -> Self {
        Self { call, ran: false }
    }
}

impl Payload for Host {
    type Proof = Ack;
    type Note = Item;
    type AuthorizationRecord = String;
    type Question = u64;
    type Resolution = u64;
    type Start = Start;
    type Ending = Ending;

    fn item(note: &Item) -> Item {
        note.clone()
    }
}

pub(super) fn judged(id: CallId, verdict: CallVerdict<Host>) -> Input<Host> {
    let word = match &verdict {
        CallVerdict::Allow(_) => "allow",
        CallVerdict::Ask(_) => "ask",
        CallVerdict::Refuse { .. } => "refuse",
        CallVerdict::Invalid { .. } => "invalid",
        CallVerdict::Abort { .. } => "abort",
    };
    Input::Judged {
        id,
        verdict,
        authorization: format!("judged{}:{word}", id.number()),
    }
}

pub(super) fn allowed(id: CallId) -> Input<Host> {
    judged(id, CallVerdict::Allow(Start(id.number())))
}

pub(super) fn done(id: CallId, outcome: ToolOutcome) -> Input<Host> {
    Input::ToolDone {
        id,
        outcome,
        ending: Ending {
            call: id.number(),
            ran: true,
        },
    }
}

pub(super) type Turn = crate::turn::Turn<Host>;

/// Groups neighbours of one role, so that what is open matters.
pub(super) struct Grouped;

impl Dialect for Grouped {
    fn id(&self) -> &'static str {
        "grouped"
    }
    fn version(&self) -> u16 {
        3
    }
    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("<{} {}>", surface.generation, surface.system).as_bytes());
    }
    fn append(&self, open: Open, _first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        let role = match item {
            Item::User { .. } | Item::Command { .. } | Item::System { .. } => b'u',
            Item::Assistant { .. } | Item::Reasoning { .. } | Item::ToolCall { .. } => b'a',
            Item::ToolResult { .. } => b't',
        };
        if role != open {
            self.close(open, out);
            out.extend_from_slice(&[role, b'[']);
        }
        out.extend_from_slice(serde_json::to_string(item).unwrap().as_bytes());
        role
    }
    fn close(&self, open: Open, out: &mut Vec<u8>) {
        if open != 0 {
            out.push(b']');
        }
    }
}

pub(super) fn surface(generation: u64) -> Surface {
    Surface {
        generation,
        model: "test/m".into(),
        system: "be brief".into(),
        tools: Vec::new(),
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    }
}

pub(super) fn user(text: &str) -> Item {
    Item::user(text)
}

pub(super) fn call_id(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

pub(super) enum Reply {
    Event(ModelEvent),
    Fail(ModelError),
}

/// `t:text r:reasoning s:seal c:name:arguments n:name u retry end tools max pause refusal other fail:what`
pub(super) fn answer(words: &[&str]) -> VecDeque<Reply> {
    let mut replies = VecDeque::new();
    let mut calls = 0;
    let mut say = |event| replies.push_back(Reply::Event(event));
    for word in words {
        let (verb, rest) = word.split_once(':').unwrap_or((word, ""));
        match verb {
            "t" => say(ModelEvent::Text(rest.into())),
            "r" => say(ModelEvent::Reasoning(rest.into())),
            "c" => {
                let (name, arguments) = rest.split_once(':').unwrap_or((rest, "{}"));
                let (left, right) = arguments.split_at(arguments.len() / 2);
                say(ModelEvent::CallStarted {
                    index: calls,
                    name: name.into(),
                });
                say(ModelEvent::CallArguments {
                    index: calls,
                    fragment: left.into(),
                });
                say(ModelEvent::CallArguments {
                    index: calls,
                    fragment: right.into(),
                });
                calls += 1;
            }
            "n" => {
                say(ModelEvent::CallStarted {
                    index: calls,
                    name: rest.into(),
                });
                calls += 1;
            }
            "u" => say(ModelEvent::Usage(Usage {
                input: 10,
                output: 2,
                cached: 5,
                cache_write: 0,
                reasoning: 0,
            })),
            "retry" => {
                calls = 0;
                say(ModelEvent::Retrying {
                    attempt: 1,
                    delay: Duration::from_secs(1),
                    why: "reset".into(),
                });
            }
            "end" => say(ModelEvent::Stop(StopReason::EndTurn)),
            "tools" => say(ModelEvent::Stop(StopReason::ToolUse)),
            "max" => say(ModelEvent::Stop(StopReason::MaxTokens)),
            "s" => say(ModelEvent::Sealed(ProviderSignature {
                kind: "signature".into(),
                data: rest.into(),
            })),
            "pause" => say(ModelEvent::Stop(StopReason::Paused)),
            "refusal" => say(ModelEvent::Stop(StopReason::Refusal)),
            "other" => say(ModelEvent::Stop(StopReason::Other("odd".into()))),
            "fail" => {
                let error = ModelError {
                    kind: ErrorKind::Unavailable,
                    message: rest.into(),
                    help: None,
                };
                replies.push_back(Reply::Fail(error));
                return replies;
            }
            other => panic!("no such word: {other}"),
        }
    }
    replies
}

/// A debt: an effect that was handed out and waits for its answer.
pub(super) enum Owed {
    Gate,
    Commit(CommitRequest<Host>),
    Stream(VecDeque<Reply>),
    Judge(CallView),
    Run(CallId),
    /// A person's answer for a parked call.
    Answer(CallId),
}

/// How a host ends a turn early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    Cancel,
    Leave,
}

impl EarlyEnd {
    /// Each, and the other one, which changes nothing after it.
    pub(super) const BOTH: [(Self, Self); 2] =
        [(Self::Cancel, Self::Leave), (Self::Leave, Self::Cancel)];

    pub(super) fn input(self) -> Input<Host> {
        match self {
            Self::Cancel => Input::Cancel,
            Self::Leave => Input::Leave,
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Cancel => Outcome::Cancelled,
            Self::Leave => Outcome::Interrupted,
        }
    }
}

pub(super) struct Rig {
    pub(super) turn: Option<Turn>,
    pub(super) owed: Vec<Owed>,
    pub(super) durable: Vec<Fact<Host>>,
    pub(super) commits: Vec<String>,
    pub(super) seen: Vec<String>,
    pub(super) outcome: Option<Outcome>,
    pub(super) gates: VecDeque<Gated<Host>>,
    /// The first early end that was asked for.
    pub(super) early_end: Option<EarlyEnd>,
    /// A hold was asked for and not released.
    pub(super) hold_wanted: bool,
    pub(super) unstorable: bool,
    pub(super) check_all: bool,
    answers: VecDeque<VecDeque<Reply>>,
    before: (Vec<Item>, Counters),
    sent: BTreeSet<u64>,
    run: BTreeSet<CallId>,
    stopped: BTreeSet<CallId>,
    refused: Option<String>,
}

impl Rig {
    pub(super) fn new(answers: &[&[&str]]) -> Self {
        Self::with(vec![user("go")], answers, TurnLimits::steps(20))
    }

    pub(super) fn with(inputs: Vec<Item>, answers: &[&[&str]], limits: TurnLimits) -> Self {
        let answers = answers.iter().map(|words| answer(words)).collect();
        Self::over(
            History::begin(surface(1), Arc::new(Grouped)),
            Vec::new(),
            inputs,
            answers,
            limits,
        )
    }

    pub(super) fn over(
        history: History,
        items: Vec<Item>,
        inputs: Vec<Item>,
        answers: VecDeque<VecDeque<Reply>>,
        limits: TurnLimits,
    ) -> Self {
        let before = (items, history.counters());
        Self {
            turn: Some(Turn::start(history, inputs, limits)),
            owed: Vec::new(),
            durable: Vec::new(),
            commits: Vec::new(),
            seen: Vec::new(),
            outcome: None,
            gates: VecDeque::new(),
            early_end: None,
            hold_wanted: false,
            unstorable: false,
            check_all: true,
            answers,
            before,
            sent: BTreeSet::new(),
            run: BTreeSet::new(),
            stopped: BTreeSet::new(),
            refused: None,
        }
    }

    /// A turn that makes this call in place of a request.
    pub(super) fn calling(self, name: &str) -> Self {
        let history = History::begin(surface(1), Arc::new(Grouped));
        let call = NewCall {
            name: name.to_owned(),
            arguments: "{}".to_owned(),
        };
        let turn = Turn::start_call(history, vec![user("go")], call, TurnLimits::steps(20));
        Self {
            turn: Some(turn),
            ..self
        }
    }

    pub(super) fn turn(&mut self) -> &mut Turn {
        self.turn.as_mut().unwrap()
    }

    /// Polls once and checks what came. `false` when there was nothing.
    pub(super) fn poll(&mut self) -> bool {
        let suspended = self.turn().suspended();
        let held = self.turn().is_held();
        let Some(effect) = self.turn().poll() else {
            return false;
        };
        let start_of_work = matches!(
            effect,
            Effect::Gate | Effect::Commit(_) | Effect::Send(_) | Effect::Judge(_) | Effect::Run(_)
        );
        assert!(
            !(suspended && start_of_work),
            "began {effect:?} while suspended"
        );
        assert!(!(held && start_of_work), "began {effect:?} while held");
        match effect {
            Effect::Gate => {
                assert!(!self.hold_wanted, "went for a request in spite of the hold");
                assert!(
                    !self.owed.iter().any(|owed| matches!(owed, Owed::Gate)),
                    "two gates at once"
                );
                self.owe("gate", Owed::Gate);
            }
            Effect::Commit(request) => {
                assert!(
                    !self.owed.iter().any(|owed| matches!(owed, Owed::Commit(_))),
                    "two commits in flight"
                );
                assert!(!request.facts().is_empty(), "an empty commit");
                if let Some(refused) = self.refused.take() {
                    assert_eq!(
                        refused,
                        format!("{:?}", request.facts()),
                        "another commit after a refusal"
                    );
                }
                self.check_requests(&request);
                self.owe("commit", Owed::Commit(request));
            }
            Effect::Send(request) => {
                assert!(
                    self.early_end.is_none() && !self.unstorable,
                    "sent after the turn was to end"
                );
                assert!(self.sent.insert(request.number()), "sent twice");
                let body = request.body();
                let recorded = self.durable.iter().any(|fact| match fact {
                    Fact::Request(r) => {
                        (r.number, r.generation) == (request.number(), request.generation())
                            && (&r.body_digest, r.body_len) == (&body.digest, body.len)
                            && r.body_digest == blake3::hash(&body.to_vec()).to_hex().to_string()
                    }
                    _ => false,
                });
                assert!(recorded, "sent before its record");
                // A stream that was dropped says nothing once another one is there.
                self.owed.retain(|owed| !matches!(owed, Owed::Stream(_)));
                let replies = self
                    .answers
                    .pop_front()
                    .unwrap_or_else(|| answer(&["t:enough", "end"]));
                self.owe(&format!("send {}", request.number()), Owed::Stream(replies));
            }
            Effect::Delta(delta) => {
                let last = |what: &str| self.seen.iter().rposition(|seen| seen.starts_with(what));
                assert!(
                    last("cancel model") <= last("send"),
                    "showed {delta:?} of an answer that is void"
                );
                self.seen.push(format!("{delta:?}"));
            }
            Effect::Judge(call) => {
                assert!(
                    self.early_end.is_none() && !self.unstorable,
                    "judged after the turn was to end"
                );
                self.owe(&format!("judge {}", call.id.number()), Owed::Judge(call));
            }
            Effect::Run(run) => {
                let id = run.id();
                assert!(
                    self.early_end.is_none() && !self.unstorable,
                    "run after the turn was to end"
                );
                assert!(self.run.insert(id), "run twice");
                let start = run.into_start();
                assert_eq!(start, Start(id.number()), "another call's start");
                assert!(
                    self.durable.contains(&Fact::Started { call: id, start }),
                    "run before its record"
                );
                let asked = self.durable.contains(&Fact::Parked {
                    call: id,
                    question: id.number(),
                });
                assert!(
                    !asked || self.durable.contains(&Fact::Resolved(id.number())),
                    "run before the answer"
                );
                assert!(!(asked && self.denies(id)), "run although it was denied");
                assert!(!self.is_finished(id), "run although it has a result");
                self.owe(&format!("run {}", id.number()), Owed::Run(id));
            }
            Effect::CancelModel => self.seen.push("cancel model".into()),
            Effect::CancelTool(id) => {
                assert!(self.run.contains(&id), "cancelled what never ran");
                self.stopped.insert(id);
                self.seen.push(format!("cancel {}", id.number()));
            }
            Effect::Finished(outcome) => {
                assert_eq!(
                    self.durable.last(),
                    Some(&Fact::TurnFinished(outcome.clone()))
                );
                self.seen.push("finished".into());
                self.outcome = Some(outcome);
            }
        }
        true
    }

    fn owe(&mut self, what: &str, owed: Owed) {
        self.seen.push(what.into());
        self.owed.push(owed);
    }

    pub(super) fn drain(&mut self) {
        while self.poll() {}
    }

    /// Pays one debt, or one event of a stream.
    pub(super) fn pay(&mut self, index: usize) -> Result<(), IllegalInput> {
        let input = match self.owed.remove(index) {
            Owed::Gate => Input::Gated(self.gates.pop_front().unwrap_or_default()),
            Owed::Commit(request) => return self.commit(request),
            Owed::Stream(mut replies) => {
                let reply = replies
                    .pop_front()
                    .expect("a stream ends with a stop or a failure");
                if !replies.is_empty() {
                    self.owed.insert(index, Owed::Stream(replies));
                }
                match reply {
                    Reply::Event(event) => Input::Model(event),
                    Reply::Fail(error) => Input::ModelFailed(error),
                }
            }
            Owed::Judge(call) => judged(call.id, verdict(&call)),
            Owed::Run(id) => done(id, self.result(id)),
            Owed::Answer(id) if self.turn().is_parked(id) => {
                let run = if self.denies(id) {
                    Err("no".to_owned())
                } else {
                    Ok(Start(id.number()))
                };
                Input::Resolved {
                    id,
                    resolution: id.number(),
                    run,
                }
            }
            // The turn was ended, or is on its way to the log.
            Owed::Answer(_) => return Ok(()),
        };
        let before = (
            self.turn().history().items(),
            self.turn().history().counters(),
        );
        let handled = self.turn().handle(input);
        let after = (
            self.turn().history().items(),
            self.turn().history().counters(),
        );
        assert_eq!(before, after, "history grew without an acknowledgement");
        handled
    }

    fn commit(&mut self, request: CommitRequest<Host>) -> Result<(), IllegalInput> {
        let facts = request.facts().to_vec();
        self.turn().handle(Input::Committed(Ack(request)))?;
        self.commits
            .push(facts.iter().map(brief).collect::<Vec<_>>().join(" "));
        self.owed.extend(facts.iter().filter_map(|fact| match fact {
            Fact::Parked { call, .. } => Some(Owed::Answer(*call)),
            _ => None,
        }));
        self.durable.extend(facts);
        if self.check_all {
            self.check_history();
        }
        Ok(())
    }

    /// Refuses the commit in flight, which must be at this place.
    pub(super) fn refuse(&mut self, index: usize) {
        let Owed::Commit(request) = self.owed.remove(index) else {
            panic!("not a commit")
        };
        self.refused = Some(format!("{:?}", request.facts()));
        let digest = self.turn().history().neutral_digest();
        self.turn().handle(Input::Refused(request)).unwrap();
        assert!(self.turn().suspended());
        assert_eq!(
            digest,
            self.turn().history().neutral_digest(),
            "history grew by a refused commit"
        );
    }

    /// Says that the commit in flight, which must be at this place, can never be stored.
    pub(super) fn cannot_store(&mut self, index: usize) -> Result<(), IllegalInput> {
        let Owed::Commit(request) = self.owed.remove(index) else {
            panic!("not a commit")
        };
        let digest = self.turn().history().neutral_digest();
        let handled = self.turn().handle(Input::Unstorable {
            request,
            reason: "too large".into(),
        });
        assert_eq!(
            digest,
            self.turn().history().neutral_digest(),
            "history grew by an unstorable commit"
        );
        self.unstorable |= handled.is_ok();
        handled
    }

    pub(super) fn hold(&mut self) {
        self.hold_wanted = true;
        self.turn().handle(Input::Hold).unwrap();
    }

    pub(super) fn release(&mut self) {
        self.hold_wanted = false;
        self.turn().handle(Input::Release).unwrap();
    }

    pub(super) fn end_early(&mut self, how: EarlyEnd) {
        self.early_end.get_or_insert(how);
        self.turn().handle(how.input()).unwrap();
    }

    /// First come, first served, until nothing is left to do.
    pub(super) fn run(mut self) -> Self {
        assert!(
            self.go(10_000) < 10_000,
            "the turn goes round in circles: {:?}",
            self.owed.len()
        );
        self.check_end();
        self
    }

    /// At most this many payments; answers how many were made.
    pub(super) fn go(&mut self, most: usize) -> usize {
        for paid in 0..most {
            self.drain();
            if self.owed.is_empty() {
                return paid;
            }
            self.pay(0).unwrap();
        }
        most
    }

    pub(super) fn transcript(&self) -> String {
        self.commits.join(" | ")
    }

    fn result(&self, id: CallId) -> ToolOutcome {
        if self.stopped.contains(&id) {
            ToolOutcome::of(ResultStatus::Cancelled, "stopped")
        } else {
            ToolOutcome::of(ResultStatus::Ok, "did it\nwell")
        }
    }

    fn denies(&self, id: CallId) -> bool {
        let named = |fact: &Fact<Host>| matches!(fact, Fact::Item(Item::ToolCall { id: call, name, .. }) if *call == id && name == "ask-no");
        self.durable.iter().any(named)
    }

    fn is_finished(&self, id: CallId) -> bool {
        self.durable
            .iter()
            .any(|fact| matches!(fact, Fact::Finished { call, .. } if *call == id))
    }

    pub(super) fn items(&self) -> Vec<Item> {
        let mut items = self.before.0.clone();
        items.extend(self.durable.iter().filter_map(item));
        items
    }

    /// What a request says of itself is what its items encode to from nothing, and no call in it is open.
    fn check_requests(&self, request: &CommitRequest<Host>) {
        let mut items = self.items();
        for fact in request.facts() {
            items.extend(item(fact));
            if let Fact::Request(fact) = fact {
                let whole = fold(&items);
                let body = whole.body();
                assert_eq!((&fact.body_digest, fact.body_len), (&body.digest, body.len));
                assert_eq!(fact.neutral_digest, whole.neutral_digest());
                assert_eq!(
                    (fact.items, &*fact.dialect, fact.dialect_version),
                    (items.len() as u64, "grouped", 3)
                );
                if self.check_all {
                    self.restore(&items)
                        .expect("every call has one result before a request");
                }
            }
        }
    }

    fn check_history(&mut self) {
        let whole = fold(&self.items());
        let history = self.turn().history();
        assert_eq!(
            history.body().digest,
            whole.body().digest,
            "history is not what was committed"
        );
        assert_eq!(history.neutral_digest(), whole.neutral_digest());
        assert_eq!(history.items(), whole.items());
    }

    fn restore(&self, items: &[Item]) -> Result<History, crate::HistoryError> {
        let counters = Counters {
            calls: CallId::MAX,
            requests: 0,
        };
        let waits = self.outcome == Some(Outcome::Waiting);
        let asked = self.durable.iter().filter_map(|fact| match fact {
            Fact::Parked { call, .. } if waits && !self.is_finished(*call) => Some(*call),
            _ => None,
        });
        let parked = asked
            .filter(|call| {
                !self
                    .durable
                    .iter()
                    .filter_map(started)
                    .any(|started| started == *call)
            })
            .collect();
        History::restore_parked(surface(1), Arc::new(Grouped), items, counters, &parked)
    }

    /// The turn is over, and nothing is left open.
    pub(super) fn check_end(&mut self) {
        self.check_history();
        let Some(outcome) = &self.outcome else {
            panic!(
                "the turn never ended: {} / {:?}",
                self.transcript(),
                self.seen
            )
        };
        if *outcome == Outcome::Waiting {
            assert_eq!(self.early_end, Some(EarlyEnd::Leave));
            let open = |fact: &Fact<Host>| matches!(fact, Fact::Parked { call, .. } if !self.is_finished(*call));
            assert!(self.durable.iter().any(open), "nothing waits");
        }
        if let Outcome::Cancelled | Outcome::Interrupted = outcome {
            assert_eq!(
                self.early_end.map(EarlyEnd::outcome).as_ref(),
                Some(outcome),
                "the first early end decides"
            );
        }
        assert_eq!(self.durable.first(), Some(&Fact::TurnStarted));
        let ends = self
            .durable
            .iter()
            .filter(|fact| matches!(fact, Fact::TurnFinished(_)))
            .count();
        assert_eq!(ends, 1);
        assert!(matches!(self.durable.last(), Some(Fact::TurnFinished(_))));
        let items = self.items();
        self.restore(&items)
            .expect("every call has exactly one result");
        let calls: Vec<u64> = items[self.before.0.len()..]
            .iter()
            .filter_map(call_number)
            .collect();
        let expected: Vec<u64> = (self.before.1.calls + 1..).take(calls.len()).collect();
        assert_eq!(calls, expected, "call numbers are dense");
        let started: BTreeSet<CallId> = self.durable.iter().filter_map(started).collect();
        assert!(self.run.is_subset(&started));
        for fact in &self.durable {
            if let Fact::Finished {
                call,
                ending,
                outcome,
            } = fact
            {
                if outcome.summary == UNSTORED {
                    let parked = self.durable.contains(&Fact::Parked {
                        call: *call,
                        question: call.number(),
                    });
                    let once = started.contains(call) || parked;
                    assert!(
                        self.unstorable && once && ending.is_none(),
                        "a result that was stored"
                    );
                    continue;
                }
                let ran = Ending {
                    call: call.number(),
                    ran: self.run.contains(call),
                };
                assert_eq!(
                    *ending,
                    started.contains(call).then_some(ran),
                    "another call's ending"
                );
            }
        }
        let history = self.turn.take().unwrap().finish().ok().expect("over");
        assert_eq!(history.items(), items.len() as u64);
        assert_eq!(
            history.counters().calls,
            self.before.1.calls + calls.len() as u64
        );
    }
}

fn fold(items: &[Item]) -> Projection {
    let mut whole = Projection::new(&surface(1), Arc::new(Grouped));
    items.iter().for_each(|item| whole.push(item));
    whole
}

fn item(fact: &Fact<Host>) -> Option<Item> {
    match fact {
        Fact::Item(item) | Fact::Note(item) => Some(item.clone()),
        Fact::Finished { call, outcome, .. } => Some(Item::ToolResult {
            id: *call,
            outcome: outcome.clone(),
        }),
        _ => None,
    }
}

fn started(fact: &Fact<Host>) -> Option<CallId> {
    match fact {
        Fact::Started { call, .. } => Some(*call),
        _ => None,
    }
}

fn call_number(item: &Item) -> Option<u64> {
    match item {
        Item::ToolCall { id, .. } => Some(id.number()),
        _ => None,
    }
}

/// `ok…` runs with any object for arguments, `no` is refused, `halt` aborts, no other tool exists.
fn verdict(call: &CallView) -> CallVerdict<Host> {
    match &*call.name {
        "no" => CallVerdict::Refuse {
            reason: "not here".into(),
        },
        "ask" | "ask-no" => CallVerdict::Ask(call.id.number()),
        "halt" => CallVerdict::Abort {
            reason: "enough".into(),
        },
        name if name.starts_with("ok") => {
            match parse_arguments::<BTreeMap<String, serde_json::Value>>(name, &call.arguments) {
                Ok(_) => CallVerdict::Allow(Start(call.id.number())),
                Err(error) => CallVerdict::Invalid {
                    problem: error.to_string(),
                },
            }
        }
        name => CallVerdict::Invalid {
            problem: format!("there is no tool called {name}"),
        },
    }
}

pub(super) fn brief(fact: &Fact<Host>) -> String {
    match fact {
        Fact::TurnStarted => "turn".into(),
        Fact::Note(Item::User { text, .. }) => format!("user:{text}"),
        Fact::Note(Item::System { text, .. }) | Fact::Item(Item::System { text, .. }) => {
            format!("system:{text}")
        }
        Fact::Note(_) | Fact::Item(Item::User { .. } | Item::Command { .. }) => "forged".into(),
        Fact::Item(Item::Assistant { text }) => format!("says:{text}"),
        Fact::Item(Item::Reasoning { text, seal: None }) => format!("thinks:{text}"),
        Fact::Item(Item::Reasoning {
            text,
            seal: Some(seal),
        }) => format!("thinks:{text}/{}", seal.signature.data),
        Fact::Item(Item::ToolCall { id, name, .. }) => format!("call{}:{name}", id.number()),
        Fact::Item(Item::ToolResult { .. }) => "a result as an item".into(),
        Fact::Response { stop, usage, .. } => format!("stop:{stop:?}/{}", usage.output),
        Fact::Judged(words) => words.clone(),
        Fact::Parked { call, .. } => format!("parked{}", call.number()),
        Fact::Resolved(call) => format!("answer{call}"),
        Fact::Started { call, .. } => format!("start{}", call.number()),
        Fact::Finished { call, outcome, .. } => {
            format!("result{}:{:?}", call.number(), outcome.status)
        }
        Fact::Request(request) => format!("request{}", request.number),
        Fact::TurnFinished(Outcome::ModelFailed { kind, .. }) => {
            format!("end:ModelFailed/{kind:?}")
        }
        Fact::TurnFinished(Outcome::Aborted { .. }) => "end:Aborted".into(),
        Fact::TurnFinished(outcome) => format!("end:{outcome:?}"),
    }
}
