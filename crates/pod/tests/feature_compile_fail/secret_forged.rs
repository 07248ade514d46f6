//! Without ambient authority there is no secret, no network and no directory but through a grant.
fn main() {
    let _ = authority::Secret::new(&authority::Ambient, "key", String::new());
}
