// E0599: a commit is acknowledged once
fn twice(request: llm_worker::CommitRequest) -> (llm_worker::CommitRequest, llm_worker::CommitRequest) {
    (request.clone(), request)
}

fn main() {}
