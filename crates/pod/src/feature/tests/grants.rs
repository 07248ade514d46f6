//! Grants: what a configuration makes of requests, and what revocation makes of the handles.

use super::rig::*;
use crate::feature::*;
use authority::{Access, ErrorKind, HostPattern, HostPort, Net, Secret, Workspace};
use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ASKS: &str = "builtin:asks";

fn fs(write: bool) -> HostCapability {
    HostCapability::ScopedFs {
        root: "workspace".into(),
        read: true,
        write,
        execute: false,
    }
}

fn endpoint(at: &[&'static str]) -> HostCapability {
    let at = at
        .iter()
        .map(|at| Cow::Borrowed(*at))
        .collect::<Vec<_>>()
        .into();
    HostCapability::Endpoint {
        purpose: "db".into(),
        at,
    }
}

fn network(hosts: &[&'static str]) -> HostCapability {
    let hosts = hosts
        .iter()
        .map(|host| (*host).into())
        .collect::<Vec<_>>()
        .into();
    HostCapability::Network {
        purpose: "fetch".into(),
        hosts,
    }
}

fn notes(max_bytes: u32, per_turn: u32) -> HostCapability {
    HostCapability::EmitModelNotification {
        max_bytes,
        per_turn,
    }
}

fn store(read: bool, write: bool) -> HostCapability {
    HostCapability::MemoryStore { read, write }
}

fn run(names: &[&'static str]) -> HostCapability {
    HostCapability::Process {
        programs: names.iter().map(|n| (*n).into()).collect::<Vec<_>>().into(),
        network: false,
    }
}

fn table(json: &str) -> GrantTable {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn defaults() -> CapabilityPolicy {
    [
        fs(true),
        HostCapability::ANY_PROGRAM,
        notes(512, 4),
        store(true, true),
        HostCapability::SESSION_STATE,
    ]
    .into_iter()
    .fold(CapabilityPolicy::nothing(), |policy, held| {
        policy.grant(id(ASKS), held, "default")
    })
}

fn planned(policy: CapabilityPolicy, request: CapabilityRequest) -> PlannedFeature {
    let descriptor = declaring(ASKS, &[]).request(request).build();
    build(policy, vec![with(descriptor, |_| Ok(()))])
        .plan()
        .features[0]
        .clone()
}

#[test]
fn what_a_person_grants_stands_in_the_place_of_the_defaults() {
    const AT: &str = "user.toml:3: features.\"builtin:asks\".grant";
    let required = Need::Required;
    let optional = Need::Optional;
    // The table, the request, what is granted of it, and why not more.
    type Case = (
        &'static str,
        HostCapability,
        Need,
        Option<HostCapability>,
        Option<&'static str>,
    );
    let cases: Vec<Case> = vec![
        ("{}", fs(true), required, Some(fs(true)), None),
        (
            r#"{"fs":{"workspace":"write"}}"#,
            fs(true),
            required,
            Some(fs(true)),
            None,
        ),
        (
            r#"{"fs":{"workspace":"read"}}"#,
            fs(false),
            required,
            Some(fs(false)),
            None,
        ),
        (
            r#"{"fs":{"workspace":"read"}}"#,
            fs(true),
            required,
            None,
            Some("limited to ScopedFs(workspace:r) by "),
        ),
        (
            r#"{"fs":{"workspace":"read"}}"#,
            fs(true),
            optional,
            Some(fs(false)),
            Some("limited to ScopedFs(w"),
        ),
        (
            r#"{"fs":{"workspace":"none"}}"#,
            fs(false),
            optional,
            None,
            Some("does not grant it"),
        ),
        (
            r#"{"fs":{"other":"none"}}"#,
            fs(true),
            required,
            Some(fs(true)),
            None,
        ),
        (
            r#"{"process":[]}"#,
            run(&["*"]),
            required,
            None,
            Some("does not grant it"),
        ),
        (
            r#"{"process":["git","cargo"]}"#,
            run(&["git", "cargo"]),
            required,
            Some(run(&["git", "cargo"])),
            None,
        ),
        (
            r#"{"process":["git"]}"#,
            run(&["*"]),
            optional,
            None,
            Some("limited to Process(git) by "),
        ),
        (
            "{}",
            network(&["*"]),
            required,
            None,
            Some("no rule grants it"),
        ),
        (
            r#"{"network":["docs.example.org"]}"#,
            network(&["*"]),
            required,
            Some(network(&["docs.example.org"])),
            None,
        ),
        (
            r#"{"network":["*.b.org","c.org"]}"#,
            network(&["a.b.org", "*.c.org", "c.org"]),
            required,
            Some(network(&["a.b.org", "c.org"])),
            None,
        ),
        (
            r#"{"network":["*"]}"#,
            network(&["a.org"]),
            required,
            Some(network(&["a.org"])),
            None,
        ),
        (
            r#"{"network":["b.org"]}"#,
            network(&["a.org"]),
            optional,
            None,
            Some("limited to Network(*: b.org) by "),
        ),
        (
            r#"{"network":[]}"#,
            network(&["a.org"]),
            optional,
            None,
            Some("does not grant it"),
        ),
        ("{}", notes(512, 4), required, Some(notes(512, 4)), None),
        ("{}", notes(1024, 2), required, Some(notes(512, 2)), None),
        (
            r#"{"notifications":{"max_bytes":2048,"per_turn":1}}"#,
            notes(1024, 9),
            required,
            Some(notes(1024, 1)),
            None,
        ),
        (
            r#"{"notifications":{"max_bytes":0,"per_turn":1}}"#,
            notes(1, 1),
            optional,
            None,
            Some("does not grant it"),
        ),
        (
            "{}",
            HostCapability::EmitUserAlert,
            optional,
            None,
            Some("no rule grants it"),
        ),
        (
            r#"{"alerts":true}"#,
            HostCapability::EmitUserAlert,
            required,
            Some(HostCapability::EmitUserAlert),
            None,
        ),
        (
            r#"{"alerts":false}"#,
            HostCapability::EmitUserAlert,
            optional,
            None,
            Some("does not grant it"),
        ),
        (
            r#"{"secrets":["key"]}"#,
            HostCapability::secret("key"),
            required,
            Some(HostCapability::secret("key")),
            None,
        ),
        (
            r#"{"secrets":["key"]}"#,
            HostCapability::secret("other"),
            optional,
            None,
            Some("limited to SecretRef(key) by "),
        ),
        (
            r#"{"services":["a.b.v1"]}"#,
            HostCapability::using("a.b.v1"),
            required,
            Some(HostCapability::using("a.b.v1")),
            None,
        ),
        (
            r#"{"provides":["*"]}"#,
            HostCapability::provide("a.b.v1"),
            required,
            Some(HostCapability::provide("a.b.v1")),
            None,
        ),
        (
            r#"{"memory":"read"}"#,
            store(true, false),
            required,
            Some(store(true, false)),
            None,
        ),
        (
            r#"{"memory":"read"}"#,
            store(true, true),
            optional,
            Some(store(true, false)),
            Some("limited to MemoryS"),
        ),
        (
            r#"{"memory":"none"}"#,
            store(true, false),
            optional,
            None,
            Some("does not grant it"),
        ),
        (
            r#"{"work_items":"write"}"#,
            store(true, true),
            required,
            Some(store(true, true)),
            None,
        ),
        (
            r#"{"state":["session","user"]}"#,
            HostCapability::StateStore {
                scope: StateScope::User,
            },
            required,
            Some(HostCapability::StateStore {
                scope: StateScope::User,
            }),
            None,
        ),
        (
            r#"{"state":[]}"#,
            HostCapability::SESSION_STATE,
            optional,
            None,
            Some("does not grant it"),
        ),
        (
            "{}",
            HostCapability::endpoints("db"),
            required,
            None,
            Some("no rule grants it; set grant = { endpoints = ["),
        ),
        (
            r#"{"endpoints":["[::1]:9"]}"#,
            HostCapability::endpoints("db"),
            required,
            Some(endpoint(&["[::1]:9"])),
            None,
        ),
        (
            r#"{"endpoints":["127.0.0.1:9000"]}"#,
            endpoint(&["127.0.0.1:9001"]),
            optional,
            None,
            Some("limited to Endpoint(*: 127.0.0.1:9000) by "),
        ),
    ];
    for (n, (json, asked, need, granted, denied)) in cases.into_iter().enumerate() {
        let policy = defaults().configured(&id(ASKS), &table(json), AT).unwrap();
        let request = match need {
            Need::Required => CapabilityRequest::required(asked, "why"),
            Need::Optional => CapabilityRequest::optional(asked, "why"),
        };
        let found = planned(policy, request);
        assert_eq!(
            found.grants.granted().first(),
            granted.as_ref(),
            "case {n}: {found:#?}"
        );
        let reason = found.grants.denied().first().map(|d| d.reason.as_str());
        assert_eq!(reason.is_some(), denied.is_some(), "case {n}: {found:#?}");
        if let (Some(reason), Some(words)) = (reason, denied) {
            assert!(reason.contains(words), "case {n}: {reason}");
            assert!(
                json == "{}" || reason.contains(AT),
                "case {n}: it says where that is written: {reason}"
            );
        }
    }
}

#[test]
fn what_hooks_may_do_to_calls_is_granted_by_tool() {
    type About = fn(&[&'static str]) -> HostCapability;
    fn names(
        tools: &[&'static str],
    ) -> std::borrow::Cow<'static, [std::borrow::Cow<'static, str>]> {
        tools
            .iter()
            .map(|tool| (*tool).into())
            .collect::<Vec<_>>()
            .into()
    }
    let keys: [(&str, About); 4] = [
        ("arguments", |tools| HostCapability::RewriteArguments {
            tools: names(tools),
        }),
        ("answers", |tools| HostCapability::AnswerCalls {
            tools: names(tools),
        }),
        ("repeats", |tools| HostCapability::RepeatCalls {
            tools: names(tools),
        }),
        ("results", |tools| HostCapability::TransformResults {
            tools: names(tools),
        }),
    ];
    for (key, about) in keys {
        let granted = |json: &str, asked: &[&'static str]| {
            let default = CapabilityPolicy::nothing().grant(id(ASKS), about(&["*"]), "default");
            let policy = default
                .configured(&id(ASKS), &table(json), "user.toml")
                .unwrap();
            planned(policy, CapabilityRequest::optional(about(asked), "why"))
                .grants
                .granted()
                .first()
                .cloned()
        };
        assert_eq!(granted("{}", &["Read"]), Some(about(&["Read"])), "{key}");
        assert_eq!(
            granted(&format!(r#"{{"{key}":["Read"]}}"#), &["Read"]),
            Some(about(&["Read"])),
            "{key}"
        );
        assert_eq!(
            granted(&format!(r#"{{"{key}":["Read"]}}"#), &["Read", "Bash"]),
            None,
            "{key}: all of them or none"
        );
        assert_eq!(
            granted(&format!(r#"{{"{key}":["*"]}}"#), &["Bash"]),
            Some(about(&["Bash"])),
            "{key}"
        );
        assert_eq!(
            granted(&format!(r#"{{"{key}":[]}}"#), &["Read"]),
            None,
            "{key}"
        );
    }
}

#[test]
fn hooks_and_tools_are_granted_one_by_one_and_refusals_stay() {
    let tools = |policy: CapabilityPolicy| {
        let plan = build(policy, vec![feature(ASKS, &["One", "Two"])]).plan();
        plan.features[0]
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect::<Vec<_>>()
    };
    let one = table(r#"{"tools":["One"],"hooks":["turn_end"]}"#);
    assert_eq!(tools(tools_for(&[ASKS])), ["One", "Two"]);
    assert_eq!(
        tools(
            tools_for(&[ASKS])
                .configured(&id(ASKS), &one, "user.toml")
                .unwrap()
        ),
        ["One"]
    );
    let refused = tools_for(&[ASKS]).refuse(id(ASKS), HostCapability::tool("One"), "managed");
    assert!(tools(refused.configured(&id(ASKS), &one, "user.toml").unwrap()).is_empty());
    let other = tools_for(&[ASKS])
        .configured(&id("builtin:other"), &one, "user.toml")
        .unwrap();
    assert_eq!(
        tools(other),
        ["One", "Two"],
        "another feature's grants are no business of this one"
    );
}

#[test]
fn a_grant_that_cannot_be_meant_is_refused_by_its_key() {
    let cases = [
        (
            r#"{"network":["https://x.org"]}"#,
            "grant.network: host `https://x.org`",
        ),
        (
            r#"{"endpoints":["127.0.0.1"]}"#,
            "grant.endpoints: endpoint `127.0.0.1`: write a host and a port",
        ),
        (r#"{"endpoints":["*:80"]}"#, "grant.endpoints: "),
        (
            r#"{"endpoints":["*:*"]}"#,
            "grant.endpoints: an endpoint is a host and a port",
        ),
        (
            r#"{"services":["memory"]}"#,
            "grant.services: `memory` is not a valid service name",
        ),
        (r#"{"tools":["\u0007"]}"#, "grant.tools: "),
        (
            r#"{"notifications":{"max_bytes":99999999,"per_turn":1}}"#,
            "grant.notifications: ",
        ),
        (r#"{"fs":{"":"read"}}"#, "grant.fs: "),
    ];
    for (json, words) in cases {
        let bad = defaults()
            .configured(&id(ASKS), &table(json), "user.toml")
            .unwrap_err();
        assert!(bad.to_string().starts_with(words), "{bad}");
    }
    let many: Vec<_> = (0..65).map(|n| format!("t{n}")).collect();
    let bad = GrantTable {
        tools: Some(many),
        ..GrantTable::default()
    };
    let bad = defaults()
        .configured(&id(ASKS), &bad, "user.toml")
        .unwrap_err();
    assert_eq!(
        bad.to_string(),
        "grant.tools: 65 entries; at most 64 are allowed"
    );
    for json in [
        r#"{"netwrok":[]}"#,
        r#"{"fs":{"workspace":"all"}}"#,
        r#"{"alerts":"yes"}"#,
    ] {
        assert!(serde_json::from_str::<GrantTable>(json).is_err(), "{json}");
    }
}

/// What a feature can hold of its host.
#[derive(Clone)]
struct Handles {
    files: Workspace,
    net: Net,
    secret: Secret,
}

/// A host with a directory, the whole public internet, two secrets and nothing else.
fn host(dir: &Path) -> HostServices {
    let ambient = ambient::claim();
    let secret = |id: &str| Secret::new(&ambient, id, format!("the value of {id}"));
    HostServices::none()
        .root(
            "workspace",
            Workspace::open(&ambient, dir, dir, Access::ReadWrite).unwrap(),
        )
        .net(Net::public(&ambient, [HostPattern::any()]))
        .secret(secret("key"))
        .secret(secret("other"))
}

fn policy() -> CapabilityPolicy {
    let json = r#"{"fs":{"workspace":"write"},"network":["*.example.org"],"secrets":["key"]}"#;
    CapabilityPolicy::nothing()
        .configured(&id(ASKS), &table(json), "user.toml")
        .unwrap()
}

fn asking() -> FeatureDescriptor {
    let requests = [
        fs(true),
        HostCapability::network("fetch"),
        HostCapability::secret("key"),
    ];
    let request = |b: FeatureDescriptorBuilder, asked| {
        b.request(CapabilityRequest::required(asked, "to be tested"))
    };
    requests
        .into_iter()
        .fold(declaring(ASKS, &[]), request)
        .build()
}

fn take(ctx: &mut FeatureInstallContext<'_>) -> Result<Handles, FeatureInstallError> {
    let mut services = ctx.services();
    Ok(Handles {
        files: services.fs("workspace")?,
        net: services.network()?,
        secret: services.secret("key")?,
    })
}

fn held(dir: &Path) -> (FeatureRegistry, Handles) {
    let slot = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&slot);
    let module = with(asking(), move |ctx| {
        *kept.lock().unwrap() = Some(take(ctx)?);
        Ok(())
    });
    let registry = build(policy(), vec![module]).install(&host(dir));
    let handles = slot.lock().unwrap().clone();
    (registry, handles.unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// What using each of them comes to: the file, the network, the secret.
async fn used(handles: &Handles, dir: &Path) -> [Option<ErrorKind>; 3] {
    let file = handles
        .files
        .inside(&dir.join("a"))
        .and_then(|at| handles.files.metadata(&at));
    // A host that no grant names: refused without a connection, but behind the door.
    let net = handles
        .net
        .connect("elsewhere.net", 443, Duration::from_secs(1))
        .await;
    [
        file.err().map(|e| e.kind()),
        net.err()
            .map(|e| e.kind())
            .filter(|kind| *kind != ErrorKind::Denied),
        handles.secret.expose().err().map(|e| e.kind()),
    ]
}

#[test]
fn handles_reach_what_was_granted_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (_, handles) = held(&root);
    assert_eq!(handles.net.hosts(), ["*.example.org"]);
    assert_eq!(handles.secret.expose().unwrap(), "the value of key");
    let module = with(asking(), |ctx| {
        let mut services = ctx.services();
        let beyond = [
            services.secret("other").unwrap_err(),
            services.fs("elsewhere").unwrap_err(),
        ];
        assert!(
            beyond
                .iter()
                .all(|e| e.kind() == llm_worker::ErrorKind::Denied),
            "{beyond:?}"
        );
        take(ctx).map(drop)
    });
    let install = |services: &HostServices| {
        let registry = build(policy(), vec![Arc::clone(&module)]).install(services);
        registry.report().feature(&id(ASKS)).unwrap().clone()
    };
    assert_eq!(install(&host(&root)).outcome, InstallOutcome::Installed);
    let ambient = ambient::claim();
    let narrow = host(&root).net(Net::public(&ambient, ["other.org".parse().unwrap()]));
    for (services, words) in [
        (narrow, "*.example.org: this grant allows only other.org"),
        (HostServices::none(), "offer"),
    ] {
        let report = install(&services);
        assert_eq!(report.outcome, InstallOutcome::Skipped);
        assert!(report.diagnostics[0].message.contains(words), "{report:#?}");
    }
}

// A private endpoint that a person named is reached; the next port is not, and nothing on the public internet.
#[test]
fn an_endpoint_is_reached_exactly() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = format!("127.0.0.1:{port}");
    let policy = CapabilityPolicy::nothing()
        .configured(
            &id(ASKS),
            &table(&format!(r#"{{"endpoints":["{at}"]}}"#)),
            "user.toml",
        )
        .unwrap();
    let slot = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&slot);
    let asking = declaring(ASKS, &[])
        .request(CapabilityRequest::required(
            HostCapability::endpoints("db"),
            "to be tested",
        ))
        .build();
    let module = with(asking, move |ctx| {
        *kept.lock().unwrap() = Some(ctx.services().endpoints()?);
        assert!(
            ctx.services().network().is_err(),
            "an endpoint is no grant of the internet"
        );
        Ok(())
    });
    let offered = [
        HostPort::new("127.0.0.1", port),
        HostPort::new("127.0.0.1", 1),
    ];
    let services = HostServices::none().endpoints(Net::to(&ambient::claim(), offered));
    let registry = build(policy, vec![module]).install(&services);
    let net = slot.lock().unwrap().clone().unwrap();
    assert_eq!(net.hosts(), [at]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connect = |port| runtime.block_on(net.connect("127.0.0.1", port, Duration::from_secs(5)));
    assert!(connect(port).is_ok());
    assert_eq!(connect(1).unwrap_err().kind(), ErrorKind::Denied);
    let revoked = registry.revoke(&id(ASKS), &HostCapability::endpoints("db"), Revoke::Now);
    runtime.block_on(revoked);
    assert_eq!(connect(port).unwrap_err().kind(), ErrorKind::Revoked);
}

#[test]
fn each_handle_dies_with_its_own_grant() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::write(root.join("a"), "text").unwrap();
    let revoked = Some(ErrorKind::Revoked);
    let cases = [
        (fs(false), [revoked, None, None]),
        (fs(true), [revoked, None, None]),
        (network(&["a.example.org"]), [None, revoked, None]),
        (network(&["elsewhere.net"]), [None, None, None]),
        (HostCapability::secret("*"), [None, None, revoked]),
        (HostCapability::secret("other"), [None, None, None]),
    ];
    for how in [Revoke::Now, Revoke::Drain(Duration::from_secs(5))] {
        for (capability, expected) in cases.clone() {
            let (registry, handles) = held(&root);
            runtime().block_on(async {
                assert_eq!(used(&handles, &root).await, [None; 3]);
                let doors = registry.revoke(&id(ASKS), &capability, how).await;
                assert_eq!(doors, expected.iter().flatten().count(), "{capability}");
                assert_eq!(used(&handles, &root).await, expected, "{capability}");
                let derived = Handles {
                    files: handles.files.derive(),
                    ..handles.clone()
                };
                assert_eq!(
                    used(&derived, &root).await[0],
                    expected[0],
                    "{capability}: what is derived dies along"
                );
                let rows = registry.grants();
                assert_eq!(rows.len(), 3, "{rows:#?}");
                for (row, refused) in rows.iter().zip(expected) {
                    assert_eq!(
                        (row.held, row.revoked),
                        (true, refused.is_some()),
                        "{row:?}"
                    );
                    assert!(
                        row.uses > 0 && (row.refused > 0) == refused.is_some(),
                        "{row:?}"
                    );
                }
                assert_eq!(registry.leave(&id(ASKS)).await, 3);
                assert_eq!(used(&handles, &root).await, [revoked; 3]);
            });
        }
    }
}

// Taking back a writable workspace left what only reads open.
#[test]
fn what_takes_back_writing_takes_back_what_only_reads() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::write(root.join("a"), "text").unwrap();
    let write_only = HostCapability::ScopedFs {
        root: "workspace".into(),
        read: false,
        write: true,
        execute: false,
    };
    let elsewhere = HostCapability::ScopedFs {
        root: "elsewhere".into(),
        read: true,
        write: true,
        execute: true,
    };
    for (revoked, goes) in [
        (fs(true), true),
        (fs(false), true),
        (write_only, false),
        (elsewhere, false),
    ] {
        let slot = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&slot);
        let descriptor =
            declaring(ASKS, &[]).request(CapabilityRequest::required(fs(false), "to be tested"));
        let module = with(descriptor.build(), move |ctx| {
            *kept.lock().unwrap() = Some(ctx.services().fs("workspace")?);
            Ok(())
        });
        let registry = build(policy(), vec![module]).install(&host(&root));
        let files = slot.lock().unwrap().clone().unwrap();
        let doors = runtime().block_on(registry.revoke(&id(ASKS), &revoked, Revoke::Now));
        let looked = files
            .inside(&root.join("a"))
            .and_then(|at| files.metadata(&at));
        assert_eq!(
            (doors, looked.is_err()),
            (usize::from(goes), goes),
            "{revoked}"
        );
    }
}

#[test]
fn a_grant_that_nobody_took_up_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let registry = build(policy(), vec![with(asking(), |_| Ok(()))])
        .install(&host(&dir.path().canonicalize().unwrap()));
    let rows = registry.grants();
    assert_eq!(rows.len(), 3);
    assert!(
        rows.iter()
            .all(|row| !row.held && row.uses == 0 && row.last_use_ms.is_none() && !row.revoked),
        "{rows:?}"
    );
    let shown = serde_json::to_value(&rows[2]).unwrap();
    assert_eq!(shown["capability"], "secret_ref");
    assert_eq!(shown["feature_id"], ASKS);
}

#[test]
fn an_abandoned_install_holds_no_grant() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::write(root.join("a"), "text").unwrap();
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (seen, see) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let at = root.clone();
    let module = with(asking(), move |ctx| {
        let early = take(ctx)?;
        assert!(wait.lock().unwrap().recv().is_err(), "nothing is ever sent");
        let late = take(ctx)?;
        for handles in [early, late] {
            seen.send(runtime().block_on(used(&handles, &at))).unwrap();
        }
        Ok(())
    });
    let builder = build(policy(), vec![module]).callback_limit(Duration::from_millis(300));
    let registry = builder.install(&host(&root));
    assert_eq!(
        codes(&registry.report().features[0].diagnostics),
        [DiagnosticCode::InstallTimedOut]
    );
    drop(release);
    for _ in 0..2 {
        assert_eq!(see.recv().unwrap(), [Some(ErrorKind::Revoked); 3]);
    }
}

#[test]
fn an_install_makes_a_bounded_number_of_calls() {
    let dir = tempfile::tempdir().unwrap();
    let module = with(asking(), |ctx| {
        let mut calls = 0;
        while ctx.services().fs("workspace").is_ok() {
            calls += 1;
        }
        assert_eq!(calls, 1_024);
        Ok(())
    });
    let registry =
        build(policy(), vec![module]).install(&host(&dir.path().canonicalize().unwrap()));
    let report = registry.report().feature(&id(ASKS)).unwrap();
    assert!(
        report.diagnostics[0]
            .message
            .ends_with("made more than 1024 calls"),
        "{report:#?}"
    );
}

#[test]
fn no_file_is_looked_at_after_the_revocation_returned() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::write(root.join("a"), "text").unwrap();
    for round in 0..20 {
        let (registry, handles) = held(&root);
        let looks = Arc::new(AtomicUsize::new(0));
        let at = Arc::new(handles.files.inside(&root.join("a")).unwrap());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let files = handles.files.clone();
                let at = Arc::clone(&at);
                let looks = Arc::clone(&looks);
                std::thread::spawn(move || {
                    while files.metadata(&at).is_ok() {
                        looks.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        while looks.load(Ordering::SeqCst) < 6 {
            std::thread::yield_now();
        }
        runtime().block_on(registry.revoke(&id(ASKS), &fs(true), Revoke::Now));
        // One that was inside may not have counted yet; it is out, so it does before its next look, which fails.
        let before = looks.load(Ordering::SeqCst);
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        assert!(looks.load(Ordering::SeqCst) <= before + 3, "round {round}");
    }
}
