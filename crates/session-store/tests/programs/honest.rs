fn proved(journal: &session_store::Journal, batch: impl session_store::Records) -> bool {
    let done: Result<session_store::Committed<_>, _> = journal.append(batch).wait();
    done.is_ok_and(|done| !done.seqs().is_empty())
}

fn main() {
    let parsed: Result<u8, _> = serde_json::from_str("1");
    assert!(parsed.is_ok());
    let _: fn(&session_store::Journal, Nothing) -> bool = proved;
}

struct Nothing;

impl session_store::Records for Nothing {
    fn encode(&self, _: &mut session_store::Frames<'_>) -> Result<(), session_store::EncodeError> {
        Err(session_store::EncodeError::Empty)
    }
}
