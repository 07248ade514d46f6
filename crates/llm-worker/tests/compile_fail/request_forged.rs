// E0451: a commit request is made by the turn machine alone
fn main() {
    let _request = llm_worker::CommitRequest { turn: 0, number: 1, facts: Vec::new() };
}
