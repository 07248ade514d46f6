// E0451: a commit request is made by the turn machine alone
fn forge<P: llm_worker::Payload>() -> llm_worker::CommitRequest<P> {
    llm_worker::CommitRequest { turn: 0, number: 1, facts: Vec::new() }
}

fn main() {}
