// E0624: history grows by acknowledged facts only
fn push<P: llm_worker::Payload>(history: &llm_worker::History, facts: &[llm_worker::Fact<P>]) {
    history.stage(facts);
}

fn main() {}
