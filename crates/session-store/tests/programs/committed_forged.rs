fn main() {
    let forged = session_store::Committed { batch: 1, seqs: 1..=1, time: 1, seal: None };
    drop(forged);
}
