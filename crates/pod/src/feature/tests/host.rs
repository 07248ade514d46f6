//! What the host says of itself: its rules, already in the plan, and why it starts no children.

use super::rig::{build, declaring, feature, id, tools_for, with};
use crate::feature::*;

#[test]
fn a_plan_says_what_the_host_enforces() {
    let rules = vec![HostRule { source: "user.toml".into(), text: "deny Write".into() }];
    let host = HostReport { rules, ..HostReport::default() };
    let mut builder = build(tools_for(&["builtin:a"]), vec![feature("builtin:a", &["Say"])]).host(host.clone());
    assert_eq!(builder.plan().host, host);
    assert_eq!(builder.install(&HostServices::none()).report().host, host);
}

#[test]
fn why_there_are_no_children_is_in_the_report() {
    let wants = CapabilityRequest::required(HostCapability::ANY_PROGRAM, "run");
    let module =
        || with(declaring("builtin:a", &[]).request(wants.clone()).build(), |ctx| ctx.services().process().map(drop));
    let policy = || CapabilityPolicy::nothing().grant(id("builtin:a"), HostCapability::ANY_PROGRAM, "default");
    let cases = [
        (HostServices::none(), "this host does not offer it"),
        (HostServices::none().no_spawner("keys lie below ~"), "keys lie below ~"),
    ];
    for (services, why) in cases {
        let registry = build(policy(), vec![module()]).install(&services);
        let report = registry.report().feature(&id("builtin:a")).unwrap();
        assert_eq!(report.outcome, InstallOutcome::Skipped);
        assert_eq!(report.diagnostics[0].code, DiagnosticCode::InstallFailed);
        assert!(report.diagnostics[0].message.ends_with(why), "{report:?}");
    }
}
