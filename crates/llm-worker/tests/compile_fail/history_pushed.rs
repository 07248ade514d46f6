// E0624: history grows by acknowledged facts only
fn push(history: &llm_worker::History, facts: &[llm_worker::Fact]) {
    history.stage(facts);
}

fn main() {}
