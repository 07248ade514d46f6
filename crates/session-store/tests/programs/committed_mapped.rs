fn other(done: session_store::Committed<u8>) -> session_store::Committed<u16> {
    done.map(u16::from)
}

fn main() {}
