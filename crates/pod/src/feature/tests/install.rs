//! Installed as planned, or nothing left behind.

use super::rig::*;
use crate::feature::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for a callback that does nothing, on a busy machine; short enough to wait for one that hangs.
const SOON: Duration = Duration::from_millis(500);

const IDS: &[&str] = &["builtin:a", "builtin:m", "builtin:z"];

/// Every registrar: two tools, an instruction, a note, a foreign tool.
fn busy() -> FeatureDescriptor {
    declaring("builtin:m", &["One", "Two"])
        .instruction("how", "Say it.")
        .foreign_tool(ToolDeclaration::of(foreign("Far")))
        .build()
}

fn busy_install(ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
    let live = Arc::new(Live);
    ctx.diagnostics().note("hello")?;
    ctx.tools().implement(&key("One"), &live, Live::say)?;
    ctx.instructions().set("how", "Say it twice.")?;
    ctx.tools().implement(&key("Two"), &live, Live::say)?;
    let far = ToolContribution::new(
        ctx.feature_id().clone(),
        Arc::new(Foreign(foreign("Far"))),
        Vec::new(),
    );
    ctx.tools().register(far)?;
    Ok(())
}

/// Registrar calls in [`busy_install`].
const CALLS: usize = 5;

fn neighbours() -> Vec<Arc<dyn FeatureModule>> {
    vec![
        feature("builtin:a", &["Alpha"]),
        feature("builtin:z", &["Zeta"]),
    ]
}

fn install(
    middle: Option<Arc<dyn FeatureModule>>,
    probe: Option<RegistrarProbe>,
) -> FeatureRegistry {
    install_within(CALLBACK_LIMIT, middle, probe)
}

fn install_within(
    limit: Duration,
    middle: Option<Arc<dyn FeatureModule>>,
    probe: Option<RegistrarProbe>,
) -> FeatureRegistry {
    let modules = neighbours().into_iter().chain(middle).collect();
    let builder = build(tools_for(IDS), modules).callback_limit(limit);
    let builder = match probe {
        Some(probe) => builder.probe(probe),
        None => builder,
    };
    builder.install(&HostServices::none())
}

fn middle(registry: &FeatureRegistry) -> &FeatureInstallReport {
    registry.report().feature(&id("builtin:m")).unwrap()
}

/// A wait that ends when the test does.
fn hang() -> (Sender<()>, impl Fn() + Send + Sync) {
    let (release, wait): (Sender<()>, Receiver<()>) = channel();
    let wait = Mutex::new(wait);
    (release, move || {
        assert!(wait.lock().unwrap().recv().is_err(), "nothing is ever sent");
    })
}

#[test]
fn a_feature_that_keeps_its_word_is_installed_whole() {
    let registry = install(Some(with(busy(), busy_install)), None);
    let report = middle(&registry);
    assert_eq!(report.outcome, InstallOutcome::Installed);
    assert_eq!(report.installed_tools, ["Far", "One", "Two"]);
    assert_eq!(codes(&report.diagnostics), [DiagnosticCode::Note]);
    let names: Vec<_> = registry
        .tools()
        .definitions()
        .into_iter()
        .map(|d| d.name)
        .collect();
    assert_eq!(names, ["Alpha", "Far", "One", "Two", "Zeta"]);
    let [how] = registry.instructions() else {
        panic!("{:?}", registry.instructions())
    };
    assert_eq!(
        (how.feature.to_string().as_str(), how.text.as_str()),
        ("builtin:m", "Say it twice.")
    );
    assert_eq!(registry.generation(), 1);
    assert_eq!(registry.timings().len(), 3);
}

// covers: INV-06
#[test]
fn a_failure_at_any_registrar_call_leaves_no_trace() {
    let without = surface(&install(None, None));
    for fail_at in 1..=CALLS {
        for way in ["error", "error ignored", "panic", "hang"] {
            let (release, wait) = hang();
            let seen = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&seen);
            let probe: RegistrarProbe = Arc::new(move |call: RegistrarCall<'_>| {
                if *call.feature != id("builtin:m") {
                    return Ok(());
                }
                count.fetch_max(call.number, Ordering::Relaxed);
                match way {
                    _ if call.number != fail_at => Ok(()),
                    "panic" => panic!("at call {}", call.number),
                    "hang" => {
                        wait();
                        Ok(())
                    }
                    _ => Err(FeatureInstallError::failed("injected")),
                }
            });
            let module = match way {
                "error ignored" => with(busy(), |ctx| {
                    let live = Arc::new(Live);
                    let mut results = vec![ctx.diagnostics().note("hello").is_ok()];
                    results.push(ctx.tools().implement(&key("One"), &live, Live::say).is_ok());
                    results.push(ctx.instructions().set("how", "x").is_ok());
                    results.push(ctx.tools().implement(&key("Two"), &live, Live::say).is_ok());
                    let far = ToolContribution::new(
                        ctx.feature_id().clone(),
                        Arc::new(Foreign(foreign("Far"))),
                        vec![],
                    );
                    results.push(ctx.tools().register(far).is_ok());
                    assert_eq!(results.iter().filter(|ok| !**ok).count(), 1);
                    Ok(())
                }),
                _ => with(busy(), busy_install),
            };
            // A panic that prints its backtrace takes its time.
            let limit = if way == "hang" { SOON } else { CALLBACK_LIMIT };
            let registry = install_within(limit, Some(module), Some(probe));
            assert_eq!(surface(&registry), without, "{way} at {fail_at}");
            let report = middle(&registry);
            let expected = match way {
                "panic" => DiagnosticCode::InstallPanicked,
                "hang" => DiagnosticCode::InstallTimedOut,
                _ => DiagnosticCode::InstallFailed,
            };
            assert_eq!(
                report.outcome,
                InstallOutcome::Skipped,
                "{way} at {fail_at}"
            );
            assert_eq!(codes(&report.diagnostics), [expected], "{way} at {fail_at}");
            assert!(report.installed_tools.is_empty() && report.instructions.is_empty());
            let reached = if way == "error ignored" {
                CALLS
            } else {
                fail_at
            };
            assert_eq!(
                seen.load(Ordering::Relaxed),
                reached,
                "{way} at {fail_at}: the install has {CALLS} calls"
            );
            drop(release);
        }
    }
}

#[test]
fn a_stage_that_is_not_the_plan_is_dropped() {
    type Case = (
        &'static str,
        fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>,
        DiagnosticCode,
        &'static str,
    );
    let cases: [Case; 8] = [
        (
            "nothing staged",
            |_| Ok(()),
            DiagnosticCode::PlannedNotStaged,
            "tool `One` of builtin:m",
        ),
        (
            "its own reason",
            |_| Err(FeatureInstallError::failed("no disk")),
            DiagnosticCode::InstallFailed,
            "no disk",
        ),
        (
            "not declared",
            |ctx| stage_all(ctx, &["One", "Three"]),
            DiagnosticCode::InstallFailed,
            "tool `Three` was staged by builtin:m but is not declared",
        ),
        (
            "twice",
            |ctx| stage_all(ctx, &["One", "One"]),
            DiagnosticCode::InstallFailed,
            "staged twice by builtin:m",
        ),
        (
            "another effect",
            |ctx| {
                let drifted: ToolKey<Args> =
                    ToolKey::new("One", llm_worker::ToolEffect::Effectful, "Say a word.");
                ctx.tools()
                    .implement(&drifted, &Arc::new(Live), Live::say)
                    .map(drop)
            },
            DiagnosticCode::InstallFailed,
            "its effect",
        ),
        (
            "for somebody else",
            |ctx| {
                let definition = declaring("builtin:m", &["One"])
                    .build()
                    .declared_tools
                    .remove(0)
                    .definition();
                let other = ToolContribution::new(
                    id("builtin:a"),
                    Arc::new(Foreign(definition)),
                    Vec::new(),
                );
                ctx.tools().register(other).map(drop)
            },
            DiagnosticCode::InstallFailed,
            "its feature id",
        ),
        (
            "an undeclared instruction",
            |ctx| {
                stage_all(ctx, &["One"])?;
                ctx.instructions().set("more", "text")
            },
            DiagnosticCode::InstallFailed,
            "instruction `more`",
        ),
        (
            "a flood of notes",
            |ctx| {
                stage_all(ctx, &["One"])?;
                (0..=MAX_NOTES).try_for_each(|n| ctx.diagnostics().note(&n.to_string()))
            },
            DiagnosticCode::InstallFailed,
            "has already added",
        ),
    ];
    let without = surface(&install(None, None));
    for (name, install_fn, code, words) in cases {
        let registry = install(
            Some(with(declaring("builtin:m", &["One"]).build(), install_fn)),
            None,
        );
        let [diagnostic] = middle(&registry).diagnostics.as_slice() else {
            panic!("{name}: {:?}", middle(&registry))
        };
        assert_eq!(diagnostic.code, code, "{name}");
        assert!(
            diagnostic.message.contains(words),
            "{name}: {}",
            diagnostic.message
        );
        assert_eq!(surface(&registry), without, "{name}");
    }
}

#[test]
fn an_install_that_ends_too_late_reaches_nobody() {
    let (release, wait) = hang();
    let late = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&late);
    let (finished, after) = channel();
    let finished = Mutex::new(finished);
    let module = with(busy(), move |ctx| {
        wait();
        let result = busy_install(ctx);
        done.store(result.is_ok(), Ordering::SeqCst);
        finished.lock().unwrap().send(()).unwrap();
        result
    });
    let registry = install_within(SOON, Some(module), None);
    let before = surface(&registry);
    drop(release);
    after.recv().unwrap();
    assert!(
        late.load(Ordering::SeqCst),
        "the late install itself succeeded"
    );
    assert_eq!(surface(&registry), before);
    assert_eq!(before, surface(&install(None, None)));
}

#[test]
fn after_eight_that_hang_nothing_more_is_called() {
    let mut releases = Vec::new();
    let mut modules = Vec::new();
    for n in 0..10 {
        let (release, wait) = hang();
        releases.push(release);
        let descriptor = FeatureDescriptor::builder(id(&format!("builtin:h{n}")))
            .version("1.0.0")
            .build();
        modules.push(with(descriptor, move |_| {
            wait();
            Ok(())
        }));
    }
    let builder =
        build(CapabilityPolicy::nothing(), modules).callback_limit(Duration::from_millis(40));
    let registry = builder.install(&HostServices::none());
    let codes: Vec<_> = registry
        .report()
        .features
        .iter()
        .flat_map(|f| codes(&f.diagnostics))
        .collect();
    assert_eq!(codes[..8], [DiagnosticCode::InstallTimedOut; 8]);
    assert_eq!(codes[8..], [DiagnosticCode::TooManyStuck; 2]);
}

#[test]
fn handles_are_what_was_granted() {
    use authority::{Access, Workspace};
    let dir = tempfile::tempdir().unwrap();
    let open =
        || Workspace::open(&ambient::claim(), dir.path(), dir.path(), Access::ReadWrite).unwrap();
    let roots = HostServices::none().root(HostCapability::WORKSPACE, open());
    let m = || id("builtin:m");
    let read = || CapabilityPolicy::nothing().grant(m(), HostCapability::READ_WORKSPACE, "t");
    let cases = [
        (
            "nothing granted",
            CapabilityPolicy::nothing(),
            roots.clone(),
            Err(llm_worker::ErrorKind::Denied),
        ),
        ("reading", read(), roots.clone(), Ok(Access::Read)),
        (
            "writing",
            read().grant(m(), HostCapability::WRITE_WORKSPACE, "t"),
            roots.clone(),
            Ok(Access::ReadWrite),
        ),
        (
            "no such root here",
            read(),
            HostServices::none(),
            Err(llm_worker::ErrorKind::Unavailable),
        ),
    ];
    for (name, policy, services, expected) in cases {
        let got = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&got);
        let descriptor = FeatureDescriptor::builder(m())
            .version("1.0.0")
            .request(CapabilityRequest::optional(
                HostCapability::READ_WORKSPACE,
                "look",
            ))
            .request(CapabilityRequest::optional(
                HostCapability::WRITE_WORKSPACE,
                "change",
            ))
            .build();
        let module = with(descriptor, move |ctx| {
            let fs = ctx.services().fs(HostCapability::WORKSPACE);
            let process = ctx.services().process().map(drop).map_err(|e| e.kind());
            assert_eq!(process, Err(llm_worker::ErrorKind::Denied));
            let access = fs
                .map(|w| w.roots().map(|(_, access)| access).next().unwrap())
                .map_err(|e| e.kind());
            *slot.lock().unwrap() = Some(access);
            Ok(())
        });
        let registry = build(policy, vec![module]).install(&services);
        assert_eq!(*got.lock().unwrap(), Some(expected), "{name}");
        // A refused handle is an answer, not a failure of the install.
        assert!(middle(&registry).outcome.is_live(), "{name}");
    }
}

#[test]
fn a_typed_tool_parses_strictly_and_runs_what_was_parsed() {
    let registry = build(
        tools_for(&["builtin:a"]),
        vec![feature("builtin:a", &["Say"])],
    )
    .install(&HostServices::none());
    let say = registry.tools().get("Say").unwrap();
    assert_eq!(
        (say.feature.to_string().as_str(), say.deadline),
        ("builtin:a", DEFAULT_DEADLINE)
    );
    for bad in [
        "",
        "[]",
        "[\"x\",1]",
        "{}",
        r#"{"word":1}"#,
        r#"{"word":"x","more":1}"#,
        r#"{"word":"x","word":"y"}"#,
    ] {
        assert!(say.tool.prepare(bad).is_err(), "{bad}");
    }
    let prepared = say.tool.prepare(r#"{ "word": "x" }"#).unwrap();
    assert_eq!(&*prepared.canonical, r#"{"times":0,"word":"x"}"#);
    assert!(registry.tools().get("say").is_none());
}
