fn twice(done: session_store::Committed<u8>) -> (session_store::Committed<u8>, session_store::Committed<u8>) {
    (done.clone(), done)
}

fn main() {}
