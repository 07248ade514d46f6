//! What a feature must be unable to write. Each case has one error, and its code is part of the pinned message.

// covers: INV-14
#[test]
fn these_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/feature_compile_fail/*.rs");
}
