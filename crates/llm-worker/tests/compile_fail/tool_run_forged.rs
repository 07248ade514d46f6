// E0451: leave to run a call comes into being on an acknowledgement
fn forge(id: llm_worker::CallId) -> llm_worker::ToolRun {
    llm_worker::ToolRun { id }
}

fn main() {}
