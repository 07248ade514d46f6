// E0616: a running turn lends its history, it does not give it
fn take<A: llm_worker::Acknowledged>(turn: llm_worker::Turn<A>) -> llm_worker::History {
    turn.history
}

fn main() {}
