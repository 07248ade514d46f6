//! What must not compile: each case has one error, of the kind its first line names.

#[test]
fn doors_that_stay_shut() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
