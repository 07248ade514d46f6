// E0599: a commit is acknowledged once
use llm_worker::{CommitRequest, Payload};

fn twice<P: Payload>(request: CommitRequest<P>) -> (CommitRequest<P>, CommitRequest<P>) {
    (request.clone(), request)
}

fn main() {}
