fn main() {
    let forged: Result<session_store::Committed<u8>, _> = serde_json::from_str("1");
    drop(forged);
}
