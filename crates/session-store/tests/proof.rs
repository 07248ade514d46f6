//! A proof of durability cannot be made up: each of these programs fails to compile, for its own reason.

#[test]
fn a_commit_cannot_be_forged() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/refused/*.rs");
}
