//! Background tasks: what is declared, planned and staged, and what a run and a handle can do.

use super::rig::*;
use crate::feature::*;
use crate::foreign::Callbacks;
use crate::mailbox::requests::{Mailbox, RunTime, mailbox};
use llm_worker::ToolEffect;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const REFRESH: TaskKey = TaskKey::new("refresh", ToolEffect::ReadOnly).every(SECOND);
const WAKE: TaskKey = TaskKey::new("wake", ToolEffect::Effectful)
    .at_start()
    .on_request();
const ME: &str = "user:me";

async fn nothing(_: Arc<Live>, _: BackgroundTaskContext) -> TaskResult {
    Ok(())
}

fn declares(keys: &[TaskKey]) -> FeatureDescriptorBuilder {
    keys.iter().fold(declaring(ME, &[]), |builder, key| {
        builder.background_task(key)
    })
}

fn any_task() -> CapabilityPolicy {
    CapabilityPolicy::nothing().grant(id(ME), HostCapability::background_task("*"), "test")
}

fn install(
    keys: &[TaskKey],
    install: impl Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>
    + Send
    + Sync
    + 'static,
) -> FeatureRegistry {
    build(any_task(), vec![with(declares(keys).build(), install)]).install(&HostServices::none())
}

fn mine(registry: &FeatureRegistry) -> &FeatureInstallReport {
    registry.report().feature(&id(ME)).unwrap()
}

#[test]
fn a_declaration_is_bounded() {
    let task = |key: TaskKey| declares(&[key]);
    let bare = || TaskKey::new("t", ToolEffect::ReadOnly);
    let failing = |max, within, backoff| {
        task(bare().at_start().restart(Restart::OnFailure {
            max,
            within,
            backoff,
        }))
    };
    let many = |n: usize| {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let keys: Vec<_> = names[..n]
            .iter()
            .map(|name| TaskKey::new(name, ToolEffect::ReadOnly).at_start())
            .collect();
        declares(&keys)
    };
    let four = || {
        bare()
            .at_start()
            .on_request()
            .every(SECOND)
            .cron("0 9 * * 1-5", "Europe/Berlin")
    };
    const NEED: &[HostCapability] = &[HostCapability::EmitUserAlert];
    // what the problem says; none when it fits
    let cases: Vec<(FeatureDescriptorBuilder, &str)> = vec![
        (task(four()), ""),
        (task(bare()), "background task `t` has 0 triggers"),
        (task(four().every(DAY)), "has 5 triggers; expected 1 to 4"),
        (task(four().every(DAY).every(2 * DAY)), "has 5 triggers"),
        (
            task(bare().at_start().at_start()),
            "declares a trigger twice",
        ),
        (task(bare().every(366 * DAY)), ""),
        (
            task(bare().every(Duration::from_millis(999))),
            "interval of background task `t` is 999 ms; expected 1000",
        ),
        (
            task(bare().every(366 * DAY + Duration::from_millis(1))),
            "interval of background task `t`",
        ),
        (
            task(bare().cron("0 9 * *", "UTC")),
            "background task `t`: the expression has 4 fields",
        ),
        (
            task(bare().cron("0 9 * * *", "Mars/Base")),
            "`Mars/Base` is not a time zone",
        ),
        (task(bare().at_start().deadline(3600 * SECOND)), ""),
        (
            task(bare().at_start().deadline(3601 * SECOND)),
            "deadline of background task `t` is 3601000 ms",
        ),
        (
            task(bare().at_start().deadline(Duration::ZERO)),
            "deadline of background task `t` is 0 ms",
        ),
        (failing(1, SECOND, SECOND), ""),
        (failing(0, SECOND, SECOND), "may restart 0 times"),
        (failing(17, SECOND, SECOND), "may restart 17 times"),
        (
            failing(1, Duration::ZERO, SECOND),
            "restart window of background task `t`",
        ),
        (
            failing(1, SECOND, Duration::ZERO),
            "backoff of background task `t`",
        ),
        (
            task(bare().at_start().restart(Restart::Always {
                backoff: Duration::ZERO,
            })),
            "backoff of background task `t`",
        ),
        (
            task(bare().at_start().needs(NEED)),
            "needs EmitUserAlert, which the feature does not request",
        ),
        (
            declares(&[
                REFRESH,
                TaskKey::new("Refresh", ToolEffect::ReadOnly).at_start(),
            ]),
            "declared twice",
        ),
        (many(8), ""),
        (many(9), "9 background tasks; at most 8 are allowed"),
    ];
    for (builder, wanted) in cases {
        let problems = builder.build().problems().join("; ");
        assert!(
            if wanted.is_empty() {
                problems.is_empty()
            } else {
                problems.contains(wanted)
            },
            "{wanted}: {problems}"
        );
    }
    // A key with such a name does not compile.
    for (name, wanted) in [
        (" ", "a background task's name is empty"),
        ("a\nb", "name contains \\u{a}"),
    ] {
        let mut descriptor = declares(&[REFRESH]).build();
        descriptor.declared_background_tasks[0].name = name.to_owned();
        assert!(descriptor.problems().join("; ").contains(wanted), "{name}");
    }
}

#[test]
fn a_declaration_reads_back() {
    let within = Restart::OnFailure {
        max: 3,
        within: DAY,
        backoff: SECOND,
    };
    let key = TaskKey::new("t", ToolEffect::ReadOnly)
        .at_start()
        .cron("0 9 * * *", "UTC")
        .every(SECOND)
        .restart(within);
    let descriptor = declares(&[key]).build();
    let json = serde_json::to_string(&descriptor.declared_background_tasks).unwrap();
    let expected = concat!(
        r#"[{"name":"t","effect":"read_only","triggers":[{"trigger":"start"},"#,
        r#"{"trigger":"cron","expression":"0 9 * * *","time_zone":"UTC"},{"trigger":"interval","every_ms":1000}],"#,
        r#""restart":{"restart":"on_failure","max":3,"within_ms":86400000,"backoff_ms":1000},"#,
        r#""deadline_ms":60000,"needs":[]}]"#,
    );
    assert_eq!(json, expected);
    assert_eq!(
        serde_json::from_str::<Vec<BackgroundTaskDeclaration>>(&json).unwrap(),
        descriptor.declared_background_tasks
    );
}

#[test]
fn tasks_are_granted_one_by_one() {
    let two = || with(declares(&[REFRESH, WAKE]).build(), |_| Ok(()));
    let planned = |policy| {
        let planned = build(policy, vec![two()]).plan().features[0].clone();
        let skipped: Vec<_> = planned
            .skipped_contributions
            .iter()
            .map(|s| (s.kind, s.name.clone()))
            .collect();
        (
            planned
                .background_tasks
                .iter()
                .map(|task| task.name.clone())
                .collect::<Vec<_>>(),
            skipped,
            planned.outcome,
        )
    };
    let skipped = |name: &str| (ContributionKind::Task, name.to_owned());
    let refresh = "refresh".to_owned();
    let wake = "wake".to_owned();
    assert_eq!(
        planned(any_task()),
        (
            vec![refresh.clone(), wake.clone()],
            vec![],
            InstallOutcome::Installed
        )
    );
    let none = planned(CapabilityPolicy::nothing());
    assert_eq!(
        none,
        (
            vec![],
            vec![skipped("refresh"), skipped("wake")],
            InstallOutcome::Degraded
        )
    );
    let refused = any_task().refuse(id(ME), HostCapability::background_task("wake"), "managed");
    assert_eq!(
        planned(refused),
        (
            vec![refresh],
            vec![skipped("wake")],
            InstallOutcome::Degraded
        )
    );
    let table: GrantTable = serde_json::from_str(r#"{"background_tasks":["wake"]}"#).unwrap();
    let configured = any_task().configured(&id(ME), &table, "user.toml").unwrap();
    assert_eq!(
        planned(configured),
        (
            vec![wake],
            vec![skipped("refresh")],
            InstallOutcome::Degraded
        )
    );
}

#[test]
fn a_task_that_needs_what_is_denied_is_left_out() {
    const NEED: &[HostCapability] = &[HostCapability::EmitUserAlert];
    const NEEDY: TaskKey = WAKE.needs(NEED);
    let descriptor = declares(&[REFRESH, NEEDY]).request(CapabilityRequest::optional(
        HostCapability::EmitUserAlert,
        "to warn",
    ));
    let module = with(descriptor.build(), |ctx| {
        let live = Arc::new(Live);
        assert_eq!(
            ctx.background_tasks().run(&REFRESH, &live, nothing)?,
            Staging::Staged
        );
        assert_eq!(
            ctx.background_tasks().run(&NEEDY, &live, nothing)?,
            Staging::Skipped
        );
        let handle = ctx.background_tasks().handle(&NEEDY).unwrap_err();
        assert!(
            matches!(handle, FeatureInstallError::Unavailable { .. }),
            "{handle}"
        );
        Ok(())
    });
    let registry = build(any_task(), vec![module]).install(&HostServices::none());
    assert_eq!(
        mine(&registry).outcome,
        InstallOutcome::Degraded,
        "{:?}",
        mine(&registry).diagnostics
    );
    assert_eq!(
        registry
            .tasks()
            .iter()
            .map(|task| task.name.as_str())
            .collect::<Vec<_>>(),
        ["refresh"]
    );
    assert_eq!(mine(&registry).background_tasks.len(), 1);
}

#[test]
fn what_is_staged_is_what_was_declared() {
    type Install = fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>;
    fn stage(
        ctx: &mut FeatureInstallContext<'_>,
        key: &TaskKey,
    ) -> Result<(), FeatureInstallError> {
        ctx.background_tasks()
            .run(key, &Arc::new(Live), nothing)
            .map(drop)
    }
    let cases: Vec<(Install, &str)> = vec![
        (
            |ctx| stage(ctx, &REFRESH).and_then(|()| stage(ctx, &WAKE)),
            "",
        ),
        (
            |ctx| stage(ctx, &REFRESH),
            "background task `wake` of user:me is declared but was not staged",
        ),
        (
            |ctx| stage(ctx, &TaskKey::new("other", ToolEffect::ReadOnly).at_start()),
            "`other` was staged by user:me but",
        ),
        (
            |ctx| stage(ctx, &REFRESH).and_then(|()| stage(ctx, &REFRESH)),
            "`refresh` was staged twice",
        ),
        (
            |ctx| stage(ctx, &REFRESH.deadline(SECOND)),
            "differs from its declaration in its effect, triggers",
        ),
        (
            |ctx| stage(ctx, &REFRESH.at_start()),
            "differs from its declaration",
        ),
        (
            |ctx| {
                let task = BackgroundTaskContribution::new(id("user:other"), &REFRESH, |_| async {
                    Ok(())
                });
                ctx.background_tasks().register(task).map(drop)
            },
            "differs from its declaration in its feature id",
        ),
        (
            |ctx| {
                // A refusal counts, even if the feature ignores it.
                drop(ctx.background_tasks().handle(&REFRESH));
                stage(ctx, &REFRESH).and_then(|()| stage(ctx, &WAKE))
            },
            "background task `refresh` of user:me has no trigger `on_request`",
        ),
    ];
    for (body, wanted) in cases {
        let registry = install(&[REFRESH, WAKE], body);
        let report = mine(&registry);
        let words = format!("{:?}", mine(&registry).diagnostics);
        let staged: Vec<_> = registry
            .tasks()
            .iter()
            .map(|task| task.name.as_str())
            .collect();
        if wanted.is_empty() {
            assert_eq!(
                (report.outcome, staged),
                (InstallOutcome::Installed, vec!["refresh", "wake"]),
                "{words}"
            );
        } else {
            assert_eq!(
                (report.outcome, staged.is_empty()),
                (InstallOutcome::Skipped, true),
                "{wanted}"
            );
            assert!(words.contains(wanted), "{wanted}: {words}");
        }
    }
}

#[test]
fn the_digest_follows_the_tasks() {
    let digest = |key: TaskKey| {
        let stage = move |ctx: &mut FeatureInstallContext<'_>| {
            ctx.background_tasks()
                .run(&key, &Arc::new(Live), nothing)
                .map(drop)
        };
        mine(&install(&[key], stage)).content_digest.clone()
    };
    assert_eq!(digest(REFRESH), digest(REFRESH));
    assert_ne!(digest(REFRESH), digest(REFRESH.every(DAY)));
}

/// A handle on `wake`, as its feature gets it, and the mailbox that its requests go to.
fn handle() -> (TaskHandle, FeatureRegistry, Mailbox) {
    let (receiver, sender) = mailbox();
    let slot = Arc::new(Mutex::new(None));
    let taken = Arc::clone(&slot);
    let module = with(declares(&[WAKE]).build(), move |ctx| {
        let handle = ctx.background_tasks().handle(&WAKE)?;
        assert_eq!(handle.run_now(), Err(SinkError::Early));
        *taken.lock().unwrap() = Some(handle);
        ctx.background_tasks()
            .run(&WAKE, &Arc::new(Live), nothing)
            .map(drop)
    });
    let link = PodLink::new(
        sender,
        Keeper::default(),
        &std::collections::BTreeMap::new(),
    );
    let registry = build(any_task(), vec![module]).install(&HostServices::none().link(link));
    assert_eq!(
        mine(&registry).outcome,
        InstallOutcome::Installed,
        "{:?}",
        mine(&registry).diagnostics
    );
    let handle = slot.lock().unwrap().take().unwrap();
    (handle, registry, receiver)
}

#[test]
fn a_handle_requests_runs_until_its_grant_is_revoked() {
    let (handle, registry, mut mailbox) = handle();
    let time = SystemTime::UNIX_EPOCH + DAY;
    let mut requested = || {
        mailbox
            .next_run()
            .map(|run| (run.feature.to_string(), run.task, run.time))
    };
    let wake = |time| Some((ME.to_owned(), "wake".to_owned(), time));
    handle.run_now().unwrap();
    handle.run_at(time).unwrap();
    assert_eq!(requested(), wake(RunTime::Now));
    assert_eq!(requested(), wake(RunTime::At(Some(time))));
    handle.clear().unwrap();
    assert_eq!(requested(), wake(RunTime::At(None)));
    drop(registry.revoke(
        &id(ME),
        &HostCapability::background_task("wake"),
        Revoke::Now,
    ));
    assert_eq!(handle.run_now(), Err(SinkError::Revoked));
    assert_eq!(requested(), None);
    assert!(
        registry.tasks()[0].door.is_shut(),
        "a run does not start either"
    );
}

#[test]
fn a_handle_of_a_pod_that_ended_says_so() {
    let (handle, registry, mailbox) = handle();
    drop(mailbox);
    assert_eq!(handle.run_now(), Err(SinkError::Closed));
    drop(registry.leave(&id(ME)));
    assert_eq!(handle.run_now(), Err(SinkError::Revoked));
}

/// Runs a body once, with this deadline.
fn ends<F, R>(
    deadline: Duration,
    act: impl FnOnce(&FeatureRegistry, &CancellationToken),
    body: F,
) -> (Result<(), TaskFailure>, bool)
where
    F: Fn(BackgroundTaskContext) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = TaskResult> + Send + 'static,
{
    let registry = install(&[REFRESH], move |ctx| {
        let task = BackgroundTaskContribution::new(id(ME), &REFRESH, body.clone());
        ctx.background_tasks().register(task).map(drop)
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let callbacks = Callbacks::with_grace(runtime.handle().clone(), Duration::from_millis(50));
    let cancel = CancellationToken::new();
    let start = (TriggerKind::Interval, 1);
    let due = SystemTime::UNIX_EPOCH;
    let cx = BackgroundTaskContext::new(7, start, due, deadline, cancel.clone());
    act(&registry, &cancel);
    let ended = runtime.block_on(async { registry.tasks()[0].run(&callbacks, cx).await });
    (ended, cancel.is_cancelled())
}

#[test]
fn every_end_of_a_run_is_a_value() {
    let hour = Duration::from_secs(3600);
    let soon = Duration::from_millis(1);
    let plain = |_: &FeatureRegistry, _: &CancellationToken| ();
    assert_eq!(
        ends(hour, plain, |cx| async move {
            assert_eq!((cx.run, cx.attempt), (7, 1));
            Ok(())
        }),
        (Ok(()), false)
    );
    let failed = ends(hour, plain, |_| async {
        Err("x".parse::<u8>().unwrap_err())?
    });
    assert_eq!(
        failed.0,
        Err(TaskFailure::Failed(TaskError::new(
            "invalid digit found in string"
        )))
    );
    let panicked = ends(hour, plain, |_| async {
        std::panic::resume_unwind(Box::new("ink"))
    });
    assert_eq!(
        panicked,
        (Err(TaskFailure::Panicked("ink".to_owned())), false)
    );
    let heeds = |cx: BackgroundTaskContext| async move {
        cx.cancel.cancelled().await;
        Err(TaskError::new("stopped"))
    };
    let stopped = Err(TaskFailure::Failed(TaskError::new("stopped")));
    let (late, cancelled) = ends(soon, plain, heeds);
    // On a busy machine the deadline is over before there is a thread.
    assert!(
        cancelled && (late == stopped || late == Err(TaskFailure::NotStarted)),
        "{late:?}"
    );
    let during = move |cx: BackgroundTaskContext| async move {
        cx.cancel.cancel();
        heeds(cx).await
    };
    assert_eq!(ends(hour, plain, during), (stopped, true));
    let deaf = |cx: BackgroundTaskContext| async move {
        cx.cancel.cancel();
        pending().await
    };
    assert_eq!(
        ends(hour, plain, deaf),
        (Err(TaskFailure::Stuck(Duration::from_millis(50))), true)
    );
    let early = ends(hour, |_, cancel| cancel.cancel(), |_| async { Ok(()) });
    assert_eq!(early.0, Err(TaskFailure::NotStarted));
    let revoke = |registry: &FeatureRegistry, _: &CancellationToken| {
        drop(registry.revoke(&id(ME), &HostCapability::background_task("*"), Revoke::Now));
    };
    assert_eq!(
        ends(hour, revoke, |_| pending()),
        (Err(TaskFailure::Revoked), true)
    );
}

#[test]
fn a_task_watches_files_only_with_a_grant_to_read_them() {
    const LOOK: TaskKey = TaskKey::new("look", ToolEffect::ReadOnly).on_file_change();
    let asking = declaring("user:a", &[]).background_task(&LOOK);
    let asking = asking
        .request(CapabilityRequest::optional(
            HostCapability::READ_WORKSPACE,
            "to look",
        ))
        .build();
    let silent = declaring("user:a", &[]).background_task(&LOOK).build();
    let runs = CapabilityPolicy::nothing().grant(
        id("user:a"),
        HostCapability::background_task("*"),
        "test",
    );
    let reads = runs
        .clone()
        .grant(id("user:a"), HostCapability::READ_WORKSPACE, "test");
    let planned = |policy: &CapabilityPolicy, of: &FeatureDescriptor| {
        let plan = build(policy.clone(), vec![with(of.clone(), |_| Ok(()))]).plan();
        let skipped = plan.features[0]
            .skipped_contributions
            .iter()
            .map(|skipped| skipped.reason.clone());
        let told = plan.features[0]
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic.message.clone())
            .chain(skipped);
        (
            plan.features[0].background_tasks.len(),
            told.collect::<Vec<_>>().join(", "),
        )
    };
    assert_eq!(planned(&reads, &asking), (1, String::new()));
    let (left, why) = planned(&runs, &asking);
    assert!(
        left == 0 && why.contains("it needs ScopedFs"),
        "{left} {why}"
    );
    let (left, why) = planned(&reads, &silent);
    assert!(
        left == 0
            && why.contains("`look` runs when files change, and the feature does not request"),
        "{left} {why}"
    );
}
