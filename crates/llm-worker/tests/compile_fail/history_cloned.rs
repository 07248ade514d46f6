// E0599: two turns cannot grow one history
fn twice(history: llm_worker::History) -> (llm_worker::History, llm_worker::History) {
    (history.clone(), history)
}

fn main() {}
