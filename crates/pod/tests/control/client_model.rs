//! The model that a client folds from lines is what the pod folds from records, at every record.

use crate::record_strategy::{WAYS, record};
use client::model::{PodModel, digest};
use llm_worker::effect::Outcome;
use llm_worker::{Cost, StopReason, Usage};
use pod::record::{
    HoldCause, HostStarted, HostStopped, InputMode, Record, Recovery, Suspended, TurnFinished,
    Unanswered,
};
use pod::session::fold::SessionState;
use pod::session::queue::QueuedInput;
use proptest::prelude::*;
use protocol::event::Event;
use protocol::method::{Attached, Draft};
use protocol::record::RecordLine;
use protocol::status::{DeliveryMode, Host, PinStatus, Queued, ReloadReport, State, Status};
use serde_json::json;

/// Records that `record_strategy` does not make, or not with all that counts.
fn more(kind: u64, n: u64, state: &SessionState) -> Record {
    match kind {
        0 => {
            let bare = json!({ "version": "1", "pid": 1, "project": "/p", "cwd": "/p", "sandbox": "on", "config_digest": "" });
            mirror::<HostStarted>(bare).into()
        }
        1..=3 => {
            let Record::Recovery(recovery) = crate::record_strategy::recovered(0) else {
                panic!()
            };
            Recovery {
                open_turn: true,
                ..recovery
            }
            .into()
        }
        4 | 5 => {
            let outcome = match n % 5 {
                0 => Outcome::CostLimit,
                1 => Outcome::Aborted {
                    reason: "r".to_owned(),
                },
                _ => Outcome::Interrupted,
            };
            let usage = Usage {
                input: n % 97,
                output: 1,
                cached: 2,
                cache_write: n % 3,
                reasoning: 0,
            };
            let unanswered = Some(Unanswered {
                usage,
                cost: n.is_multiple_of(2).then(|| Cost::billionths(n % 1000)),
            });
            TurnFinished {
                turn: state.turns,
                outcome,
                unanswered,
                by: None,
                end_gates: false,
            }
            .into()
        }
        6 => HostStopped {
            reason: "done".to_owned(),
        }
        .into(),
        7 => {
            let causes = [
                HoldCause::Required,
                HoldCause::Bug,
                HoldCause::Disk,
                HoldCause::Gate,
                HoldCause::Budget,
            ];
            let cause = causes.get(n as usize / 10 % 6).copied();
            Suspended {
                reason: format!("because {n}"),
                cause,
                budget: None,
                by: None,
            }
            .into()
        }
        _ => {
            let Record::Response(mut response) = record(10, n, Some(state)) else {
                panic!()
            };
            response.stop = StopReason::Paused;
            response.usage.cache_write = n % 5;
            response.into()
        }
    }
}

/// What may come next; a live pod writes no gap.
fn next(way: u8, n: u64, state: &SessionState) -> Vec<Record> {
    let of = |way| record(way, n, Some(state));
    match way {
        // An answer that goes on behind a pause of its provider.
        WAYS => vec![more(9, n, state), of(9), of(5)],
        way if way < WAYS => vec![of(way)]
            .into_iter()
            .filter(|record| !matches!(record, Record::Gap(_)))
            .collect(),
        _ => vec![more(n % 10, n, state)],
    }
}

fn line(seq: u64, record: &Record) -> RecordLine {
    RecordLine::new(crate::record_strategy::line(seq, seq, record)).unwrap()
}

/// A value as clients read it.
fn mirror<T: serde::de::DeserializeOwned>(value: impl serde::Serialize) -> T {
    serde_json::from_value(serde_json::to_value(value).unwrap()).unwrap()
}

/// The status of a live pod with this state.
fn status(state: &SessionState, seq: u64, known: &Known) -> Status {
    let turn = state.turn_open.then_some(state.turns);
    let queued = |waiting: &QueuedInput| {
        let mode = match waiting.mode {
            InputMode::Queue => DeliveryMode::Queue,
            InputMode::Steer => DeliveryMode::Steer,
            InputMode::DenyParked => DeliveryMode::DenyParked,
        };
        Queued {
            input: waiting.input,
            mode,
            text: waiting.text.chars().take(200).collect(),
            run: waiting.run,
        }
    };
    Status {
        pod: "p".to_owned(),
        state: match (known.stopping, turn) {
            (true, _) => State::Stopping,
            (false, Some(_)) if !state.approvals.open.is_empty() => State::Waiting,
            (false, Some(_)) => State::Working,
            (false, None) if state.held.is_some() => State::Held,
            (false, None) if !state.approvals.open.is_empty() => State::Waiting,
            (false, None) => State::Idle,
        },
        turn,
        step: turn.map(|_| state.requests - known.requests_before),
        held: state.held.as_ref().map(mirror),
        disk: None,
        model_wait: None,
        approvals: state
            .approvals
            .open
            .values()
            .map(|open| pod::ipc::approval(open))
            .collect(),
        queued: state.queued.iter().map(queued).collect(),
        notices: state.notices.len() as u64,
        turns: state.turns,
        requests: state.requests,
        usage: mirror(state.usage),
        cost: state.cost.map(Cost::count),
        context: None,
        clients: 0,
        pins: state
            .standing
            .pins
            .iter()
            .map(|(pin, text)| PinStatus {
                pin: *pin,
                text: text.clone(),
            })
            .collect(),
        compact_due: state.compact_due.is_some(),
        last_outcome: state
            .last_outcome
            .as_ref()
            .map(|last| pod::ipc::outcome(last, state.end_verdict)),
        model: state
            .surface
            .as_ref()
            .map(|(surface, _)| surface.model.clone())
            .unwrap_or_default(),
        stuck: 0,
        tasks: Vec::new(),
        more_tasks: 0,
        jobs: Vec::new(),
        seq,
        host: Host {
            pid: 0,
            since_us: 0,
            version: String::new(),
            sandbox: String::new(),
            cwd: String::new(),
            branch: None,
            reload: ReloadReport::default(),
        },
    }
}

/// What the pod knows of its turn and its end besides the folded state.
#[derive(Clone, Default)]
struct Known {
    /// Requests before the open turn.
    requests_before: u64,
    stopping: bool,
    /// The newest `turn_started`.
    turn_began: u64,
}

impl Known {
    fn take(&mut self, record: &Record, seq: u64, state: &SessionState) {
        match record {
            Record::TurnStarted(_) => {
                (self.requests_before, self.turn_began) = (state.requests, seq)
            }
            Record::HostStarted(_) => self.stopping = false,
            Record::HostStopped(_) => self.stopping = true,
            _ => {}
        }
    }
}

/// What both have, and no status has: the calls without a result and the newest answer.
fn assert_progress(model: &PodModel, state: &SessionState) -> Result<(), TestCaseError> {
    let open = model.unfinished_calls().map(|call| {
        (
            call.id.clone(),
            call.name.clone(),
            call.started_us.is_some(),
        )
    });
    let wanted = state
        .open_calls
        .iter()
        .map(|(id, call)| (id.to_string(), call.name.clone(), call.started.is_some()));
    prop_assert_eq!(open.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    prop_assert_eq!(model.last_answer(), state.last_answer.as_deref());
    Ok(())
}

/// A session and the clients that follow it.
#[derive(Default)]
struct Session {
    state: SessionState,
    known: Known,
    seq: u64,
    clients: Vec<Client>,
}

/// A client's model. It knows calls and answers of the turns that began after this record.
struct Client {
    model: PodModel,
    since: u64,
    /// It gets statuses before the records that they know.
    ahead: bool,
}

impl Session {
    fn begun() -> Self {
        let of = |ahead| Client {
            model: PodModel::before_any_record("p"),
            since: 0,
            ahead,
        };
        Self {
            clients: vec![of(false), of(true), of(false)],
            ..Self::default()
        }
    }

    fn status(&self) -> Status {
        status(&self.state, self.seq, &self.known)
    }

    /// Appends a record, if it can stand here, and tells it to the clients.
    fn append(&mut self, record: &Record, status_first: bool) -> Result<(), TestCaseError> {
        if self.state.apply(record).is_err() {
            return Ok(());
        }
        self.seq += 1;
        self.known.take(record, self.seq, &self.state);
        let status = self.status();
        let event = Event::Record(line(self.seq, record));
        for Client {
            model,
            since,
            ahead,
        } in &mut self.clients
        {
            if *ahead && status_first {
                model.apply(&Event::Status(Box::new(status.clone())));
            }
            if !matches!(record, Record::FeatureState(_)) {
                model.apply(&event);
            }
            let shown = Status {
                seq: self.seq,
                host: status.host.clone(),
                ..model.status().clone()
            };
            prop_assert_eq!(&shown, &status);
            prop_assert_eq!(digest(model.status()), digest(&status));
            if *since == 0 || self.known.turn_began > *since {
                assert_progress(model, &self.state)?;
            }
        }
        Ok(())
    }

    /// One client is new, and one has lost its connection.
    fn attach(&mut self) {
        let attached = Attached {
            status: self.status(),
            draft: Draft::default(),
            page: None,
        };
        self.clients[2].model.resume(&attached);
        self.clients.push(Client {
            model: PodModel::new(&attached),
            since: self.seq,
            ahead: false,
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_client_counts_as_the_pod(
        ways in prop::collection::vec((0..WAYS + 5, prop_oneof![0..9_u64, 0..90_u64, any::<u64>()]), 0..160),
        attaches in 0..160_u64,
    ) {
        let mut session = Session::begun();
        for (way, n) in ways {
            for record in next(way, n, &session.state) {
                session.append(&record, n.is_multiple_of(3))?;
            }
            // A status does not tell how often a crash interrupted turns.
            if session.seq >= attaches && session.clients.len() == 3 && session.state.crashes == 0 {
                session.attach();
            }
        }
    }
}

// Three starts of a pod that only waited for a person: its clients showed it as held, because its process had died.
#[test]
fn starts_of_a_pod_that_waits_are_no_crashes() {
    let ways = [
        (3, 0),
        (7, 0),
        (27, 21),
        (7, 0),
        (24, 9_320_941_827_994_716_064),
        (13, 15_353_577_956_021_169_701),
        (28, 1),
        (28, 1),
        (15, 1_997_936_773_504_732_302),
    ];
    let mut session = Session::begun();
    for (way, n) in ways {
        for record in next(way, n, &session.state) {
            session.append(&record, n.is_multiple_of(3)).unwrap();
        }
    }
    assert!(session.state.crashes < 3 && session.state.held.is_none());
}
