// E0599: one record, one request
fn twice(request: llm_worker::ModelRequest) -> (llm_worker::ModelRequest, llm_worker::ModelRequest) {
    (request.clone(), request)
}

fn main() {}
