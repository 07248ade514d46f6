fn main() {
    let forged = session_store::Committed { batch: 1, ..unreachable!() };
    drop(forged);
}
