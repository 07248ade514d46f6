//! What the host says of itself: its rules, already in the plan, and why it starts no children.

use super::rig::{build, declaring, feature, id, tools_for, with};
use crate::feature::*;
use authority::{Access, Confinement, EnvPolicy, SandboxMode, Spawner, Workspace};

#[test]
fn a_plan_says_what_the_host_enforces() {
    let rules = vec![HostRule {
        source: "user.toml".into(),
        text: "deny Write".into(),
    }];
    let host = HostReport {
        rules,
        ..HostReport::default()
    };
    let mut builder = build(
        tools_for(&["builtin:a"]),
        vec![feature("builtin:a", &["Say"])],
    )
    .host(host.clone());
    assert_eq!(builder.plan().host, host);
    assert_eq!(builder.install(&HostServices::none()).report().host, host);
}

#[test]
fn why_there_are_no_children_is_in_the_report() {
    let wants = CapabilityRequest::required(HostCapability::ANY_PROGRAM, "run");
    let module = || {
        with(
            declaring("builtin:a", &[]).request(wants.clone()).build(),
            |ctx| ctx.services().process().map(drop),
        )
    };
    let policy = || {
        CapabilityPolicy::nothing().grant(id("builtin:a"), HostCapability::ANY_PROGRAM, "default")
    };
    let cases = [
        (HostServices::none(), "this host does not offer it"),
        (
            HostServices::none().no_spawner("keys lie below ~"),
            "keys lie below ~",
        ),
    ];
    for (services, why) in cases {
        let registry = build(policy(), vec![module()]).install(&services);
        let report = registry.report().feature(&id("builtin:a")).unwrap();
        assert_eq!(report.outcome, InstallOutcome::Skipped);
        assert_eq!(report.diagnostics[0].code, DiagnosticCode::InstallFailed);
        assert!(report.diagnostics[0].message.ends_with(why), "{report:?}");
    }
}

fn spawner() -> Spawner {
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    Spawner::new(&ambient::claim(), confinement, env, "test/1".to_owned()).unwrap()
}

// A handle that is limited starts no other program, so it cannot be narrowed to one.
#[test]
fn programs_are_handed_out_by_name_and_by_root() {
    let dir = tempfile::tempdir().unwrap();
    let files = Workspace::open(&ambient::claim(), dir.path(), dir.path(), Access::Read).unwrap();
    let run = |network| HostCapability::Process {
        programs: vec!["true".into()].into(),
        network,
    };
    let start = HostCapability::ScopedFs {
        root: "tools".into(),
        read: true,
        write: false,
        execute: true,
    };
    let read = HostCapability::ScopedFs {
        root: "tools".into(),
        read: true,
        write: false,
        execute: false,
    };
    type Takes = fn(&mut FeatureInstallContext<'_>) -> Result<Spawner, FeatureInstallError>;
    let named: Takes = |ctx| ctx.services().programs(true);
    let without: Takes = |ctx| ctx.services().programs(false);
    let below: Takes = |ctx| ctx.services().programs_below("tools");
    let any: Takes = |ctx| ctx.services().process();
    let cases = [
        (
            run(true),
            named,
            "",
            "this grant starts other programs only",
        ),
        (run(true), without, "was not granted", ""),
        (run(false), named, "was not granted", ""),
        // No sandbox withholds the network here.
        (run(false), without, "without a sandbox", ""),
        (run(true), any, "was not granted", ""),
        (
            start.clone(),
            below,
            "",
            "this grant starts other programs only",
        ),
        (read, below, "was not granted", ""),
        (HostCapability::ANY_PROGRAM, any, "", ""),
        (HostCapability::ANY_PROGRAM, named, "was not granted", ""),
    ];
    for (capability, takes, refused, limits) in cases {
        let request = CapabilityRequest::required(capability.clone(), "to start it");
        let module = with(
            declaring("builtin:m", &[]).request(request).build(),
            move |ctx| {
                match takes(ctx) {
                    Ok(spawner) => {
                        let other = spawner
                            .limited(&["ls".into()], true)
                            .map_or_else(|why| why.to_string(), |_| String::new());
                        assert!(
                            refused.is_empty()
                                && (other.contains("no network") || other.contains(limits)),
                            "{other}"
                        );
                    }
                    Err(why) => assert!(
                        !refused.is_empty() && why.to_string().contains(refused),
                        "{why}"
                    ),
                }
                Ok(())
            },
        );
        let policy = CapabilityPolicy::nothing().grant(id("builtin:m"), capability.clone(), "test");
        let services = HostServices::none()
            .root("tools", files.derive())
            .spawner(spawner());
        let registry = build(policy, vec![module]).install(&services);
        let report = registry.report().feature(&id("builtin:m")).unwrap();
        assert_eq!(
            report.outcome,
            InstallOutcome::Installed,
            "{capability}: {:?}",
            report.diagnostics
        );
    }
    let all = HostCapability::Process {
        programs: vec!["*".into()].into(),
        network: true,
    };
    let request = CapabilityRequest::required(all, "all");
    assert!(
        declaring("builtin:m", &[])
            .request(request)
            .build()
            .problems()
            .join("")
            .contains("names its programs")
    );
}
