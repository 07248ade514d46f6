// E0451: leave to run a call comes into being on an acknowledgement
fn forge<P: llm_worker::Payload>(id: llm_worker::CallId, start: P::Start) -> llm_worker::ToolRun<P> {
    llm_worker::ToolRun { id, start }
}

fn main() {}
