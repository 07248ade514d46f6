//! The helper of the pods of these tests: what yoi does under a hidden argument.
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

fn main() {
    drop(authority::serve_helper(&ambient::claim()));
}
