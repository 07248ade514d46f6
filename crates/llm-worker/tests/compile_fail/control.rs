// compiles: the same names used as they are meant to be
use llm_worker::{Acknowledged, CommitRequest, Effect, Fact, History, Input, Item, TurnLimits, Payload, Turn};

#[derive(Debug)]
struct Host;

#[derive(Debug)]
struct Ack(CommitRequest<Host>);

impl Acknowledged<Host> for Ack {
    fn into_request(self) -> CommitRequest<Host> {
        self.0
    }
}

impl Payload for Host {
    type Proof = Ack;
    type Note = String;
    type AuthorizationRecord = ();
    type Question = ();
    type Resolution = ();
    type Start = ();
    type Ending = ();

    fn item(note: &String) -> Item {
        Item::user(note.clone())
    }
}

fn host(history: History) -> Option<History> {
    let mut turn: Turn<Host> = Turn::start(history, vec!["go".into()], TurnLimits::steps(1));
    while let Some(effect) = turn.poll() {
        match effect {
            Effect::Commit(request) => {
                let _facts: &[Fact<Host>] = request.facts();
                turn.handle(Input::Committed(Ack(request))).ok()?;
            }
            Effect::Send(request) => drop((request.body().to_vec(), request.number(), request.generation())),
            Effect::Run(run) => drop(run.id()),
            _ => {}
        }
    }
    turn.finish().ok()
}

fn main() {
    let _ = host;
}
