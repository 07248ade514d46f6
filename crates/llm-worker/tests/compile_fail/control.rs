// compiles: the same names used as they are meant to be
use llm_worker::{Acknowledged, CommitRequest, Effect, Fact, History, Input, Item, Limits, Turn};

struct Ack(CommitRequest);

impl Acknowledged for Ack {
    fn into_request(self) -> CommitRequest {
        self.0
    }
}

fn host(history: History) -> Option<History> {
    let mut turn: Turn<Ack> = Turn::start(history, vec![Item::User { text: "go".into() }], Limits::steps(1));
    while let Some(effect) = turn.poll() {
        match effect {
            Effect::Commit(request) => {
                let _facts: &[Fact] = request.facts();
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
