//! What these features do while nobody takes what they want to remember: a disk that stands still, an inbox that is full.

use crate::rig::{BEGAN, Call, clock, same, settings, turn, with};
use builtins::{policies, task};
use llm_worker::{CallId, ToolEffect};
use pod::feature::{
    CapabilityPolicy, FeatureId, FeatureModule, FeatureRegistry, FeatureRegistryBuilder,
    HostCapability, HostServices,
};
use pod::foreign::{Callbacks, MAX_THREADS};
use pod::hook::{PreRequest, PreToolCall, RequestView, ToolCallView, ToolOutcome};
use pod::host::Opening;
use pod::record::Decision;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use testkit::{ModelScript, PodUnderTest};
use tokio::runtime::{Builder, Runtime};

/// A feature beside a pod that takes nothing up.
pub(crate) struct Unheard {
    pub(crate) registry: FeatureRegistry,
    pub(crate) runtime: Runtime,
    pub(crate) callbacks: Callbacks,
    _pod: (PodUnderTest, Opening),
}

pub(crate) fn unheard(module: Arc<dyn FeatureModule>, pod: PodUnderTest) -> Unheard {
    let opening = pod.opening(pod.resume().unwrap()).unwrap();
    let id = module.descriptor().id;
    let grants = [
        HostCapability::tool("*"),
        HostCapability::hook::<PreRequest>(),
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::ANY_RESULT,
        HostCapability::SESSION_STATE,
        task::NOTIFY,
    ];
    let grant = |policy: CapabilityPolicy, grant| policy.grant(id.clone(), grant, "test");
    let policy = grants.into_iter().fold(CapabilityPolicy::nothing(), grant);
    let services = HostServices::none().link(opening.link());
    let registry = FeatureRegistryBuilder::new(policy)
        .with(module)
        .install(&services);
    assert!(registry.report().feature(&id).unwrap().outcome.is_live());
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_THREADS)
        .build()
        .unwrap();
    let callbacks = Callbacks::new(runtime.handle().clone());
    Unheard {
        registry,
        runtime,
        callbacks,
        _pod: (pod, opening),
    }
}

// The inbox takes so many; the first call that cannot be counted is refused.
#[test]
fn a_call_that_cannot_be_counted_is_refused() {
    const INBOX: u64 = 256;
    let id = builtins::loop_detect::ID;
    let all = BTreeMap::from([(id.clone(), settings(json!({"window": 3})))]);
    let clock = clock(&Arc::new(AtomicU64::new(BEGAN)));
    let module = policies::with_settings(&all, |other| *other == id, &clock)
        .unwrap()
        .remove(0);
    let Unheard {
        registry,
        runtime,
        callbacks,
        _pod,
    } = unheard(
        module,
        PodUnderTest::new(&ambient::claim(), ModelScript::new([]), Vec::new()),
    );
    let ask = |n: u64| {
        let view = ToolCallView {
            call: CallId::new(n + 1).unwrap(),
            tool: "Other".to_owned(),
            feature: FeatureId::builtin("other"),
            effect: ToolEffect::ReadOnly,
            arguments: format!("{{\"n\":{n}}}").into(),
            touches: Vec::new(),
            input: None,
            turn: 1,
            by_person: false,
        };
        runtime
            .block_on(registry.hooks().decide::<PreToolCall>(&callbacks, || view))
            .decision
    };
    for n in 0..INBOX {
        assert_eq!(ask(n), Decision::Allow, "{n}");
    }
    let Decision::Refuse { reason } = ask(INBOX) else {
        panic!("it was allowed")
    };
    assert!(reason.contains("rule `memory`"), "{reason}");
}

// A reminder that is not durable soon ends no turn.
#[test]
fn a_reminder_that_nobody_takes_up_refuses_nothing() {
    let pod = with(Arc::new(task::TaskList), vec![same("Look")]);
    let calls: [Call; 2] = [("TaskCreate", r#"{"title":"Read"}"#), ("Look", "{}")];
    turn(&pod, &calls);
    let Unheard {
        registry,
        runtime,
        callbacks,
        _pod,
    } = unheard(Arc::new(task::TaskList), pod);
    let view = || RequestView {
        turn: 2,
        number: task::QUIET + 100,
        items: 9,
    };
    let began = Instant::now();
    let passed = runtime.block_on(registry.hooks().decide::<PreRequest>(&callbacks, view));
    assert_eq!((passed.decision, passed.runs.len()), (Decision::Allow, 1));
    assert!(
        began.elapsed() >= Duration::from_millis(900),
        "it never was stale"
    );
}
