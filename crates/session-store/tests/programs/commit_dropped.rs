#![deny(unused_must_use)]

fn careless(journal: &session_store::Journal, batch: impl session_store::Records) {
    journal.append(batch);
}

fn main() {}
