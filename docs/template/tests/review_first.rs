use pod::feature::author::*;
use review_first::ReviewFirst;
use serde_json::json;
use testkit::{FeatureHost, Ruling, conformance, shell_call};

#[test]
fn a_push_waits_for_a_review_that_no_kill_forgets() {
    let mut host = FeatureHost::new().install(ReviewFirst);
    let push = || shell_call("git push origin fix");
    assert!(matches!(
        host.ask::<PreToolCall>(push()),
        Ruling::Deny { .. }
    ));
    assert_eq!(
        host.call("Reviewed", json!({"branch": "fix"})).text(),
        "1 reviewed"
    );
    host.kill();
    assert_eq!(host.ask::<PreToolCall>(push()), Ruling::Allow);
}

#[test]
fn it_keeps_the_contract() {
    conformance(|| ReviewFirst).assert();
}
