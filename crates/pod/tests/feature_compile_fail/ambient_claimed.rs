//! Only a composition root can claim authority: the crate that makes the token is not reached through that of the handles.
fn main() {
    let _ = authority::Ambient::claim();
}
