// E0616: a running turn lends its history, it does not give it
fn take<P: llm_worker::Payload>(turn: llm_worker::Turn<P>) -> llm_worker::History {
    turn.history
}

fn main() {}
