//! Events of services: who may declare, emit and hear them.

use super::rig::*;
use super::services::{Greeter, Plain, anything};
use crate::feature::*;
use crate::mailbox::requests::{DriverRequest, Mailbox, mailbox};
use llm_worker::ToolEffect;
use std::sync::{Arc, Mutex};

const BELL: ServiceKey<dyn Greeter> = ServiceKey::new("test.bell.v1");
const RANG: ServiceEventKey = BELL.event("rang");
const HEAR: TaskKey = TaskKey::new("hear", ToolEffect::ReadOnly).on_event(RANG);
const TOWER: &str = "builtin:a";
const EAR: &str = "user:a";

fn tower() -> FeatureDescriptorBuilder {
    declaring(TOWER, &[]).provides(ServiceDeclaration::of(BELL, "1.0.0").emits(RANG))
}

fn ear() -> FeatureDescriptorBuilder {
    declaring(EAR, &[])
        .background_task(&HEAR)
        .requires(ServiceRequirement::optional(BELL, "^1"))
}

/// Grants everything but, to the consumer, the service.
fn without_the_service() -> CapabilityPolicy {
    let any = HostCapability::ProvideService { key: "*".into() };
    let policy = CapabilityPolicy::nothing().grant(id(TOWER), any, "test");
    policy.grant(id(EAR), HostCapability::background_task("*"), "test")
}

fn all() -> CapabilityPolicy {
    anything(&[TOWER, EAR]).grant(id(EAR), HostCapability::background_task("*"), "test")
}

/// How the consumer is planned: its tasks, and what is said of it.
fn planned(
    policy: CapabilityPolicy,
    tower: FeatureDescriptorBuilder,
    ear: FeatureDescriptorBuilder,
) -> (usize, String) {
    let modules = [tower, ear].map(|builder| with(builder.build(), |_| Ok(())));
    let plan = build(policy, modules.to_vec()).plan();
    let ear = plan
        .features
        .iter()
        .find(|planned| planned.feature_id == id(EAR))
        .unwrap();
    let skipped = ear
        .skipped_contributions
        .iter()
        .map(|skipped| format!("{}: {}", skipped.name, skipped.reason));
    let told = ear
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.message.clone())
        .chain(skipped);
    (
        ear.background_tasks.len(),
        told.collect::<Vec<_>>().join("\n"),
    )
}

#[test]
fn a_task_runs_by_events_of_granted_services_only() {
    let bare = || declaring(TOWER, &[]).provides(ServiceDeclaration::of(BELL, "1.0.0"));
    let unasked = || declaring(EAR, &[]).background_task(&HEAR);
    let nobody = || declaring(TOWER, &[]);
    let named = |name: &'static str| {
        declaring(TOWER, &[])
            .provides(ServiceDeclaration::of(BELL, "1.0.0").emits(BELL.event(name)))
    };
    // A key with such a name does not compile.
    let odd = ServiceDeclaration {
        events: vec!["a\nb".to_owned()],
        ..ServiceDeclaration::of(BELL, "1.0.0")
    };
    assert_eq!(planned(all(), tower(), ear()), (1, String::new()));
    for (policy, tower, ear, words) in [
        (
            without_the_service(),
            tower(),
            ear(),
            "hear: it needs UseService(test.bell.v1)",
        ),
        (all(), nobody(), ear(), "no feature provides it"),
        (
            all(),
            bare(),
            ear(),
            "builtin:a declares no event `rang` of it",
        ),
        (
            all(),
            named("tolled"),
            ear(),
            "builtin:a declares no event `rang` of it",
        ),
        (
            all(),
            tower(),
            unasked(),
            "`hear` runs by event `rang` of service test.bell.v1, which the feature does not require",
        ),
        (
            all(),
            declaring(TOWER, &[]).provides(odd),
            ear(),
            "its provider builtin:a is skipped",
        ),
    ] {
        let (tasks, told) = planned(policy, tower, ear);
        assert!(
            tasks == 0 && told.contains(words),
            "{words}: {tasks} {told}"
        );
    }
}

#[test]
fn a_service_declares_few_events() {
    let eight = (0..8).fold(ServiceDeclaration::of(BELL, "1.0.0"), |service, _| {
        service.emits(RANG)
    });
    let problems = |service| {
        let declaring = FeatureDescriptor::builder(id("user:bell")).version("1.0.0");
        declaring.provides(service).build().problems()
    };
    assert!(problems(eight.clone()).is_empty());
    assert_eq!(
        problems(eight.emits(RANG))[0],
        "service test.bell.v1 declares 9 events; expected at most 8"
    );
}

/// Both features installed, with the sink of the provider.
fn installed() -> (FeatureRegistry, ServiceEventSink, Mailbox) {
    let (receiver, sender) = mailbox();
    let slot = Arc::new(Mutex::new(None));
    let taken = Arc::clone(&slot);
    let provider = with(tower().build(), move |ctx| {
        ctx.services()
            .provide(BELL, Arc::new(Plain) as Arc<dyn Greeter>)?;
        let sink = ctx.services().event(RANG)?;
        assert_eq!(sink.emit(), Err(SinkError::Early));
        *taken.lock().unwrap() = Some(sink);
        Ok(())
    });
    let consumer = with(ear().build(), |ctx| {
        let undeclared = ctx.services().event(RANG).unwrap_err();
        assert!(matches!(
            undeclared,
            FeatureInstallError::Denied { .. } | FeatureInstallError::NotDeclared { .. }
        ));
        let task = BackgroundTaskContribution::new(id(EAR), &HEAR, |_| async { Ok(()) });
        ctx.background_tasks().register(task).map(drop)
    });
    let link = PodLink::new(
        sender,
        Keeper::default(),
        &std::collections::BTreeMap::new(),
    );
    // The consumer may provide nothing: what it tried is no fault of its install.
    let policy = without_the_service().grant(
        id(EAR),
        HostCapability::UseService { key: "*".into() },
        "test",
    );
    let registry =
        build(policy, vec![provider, consumer]).install(&HostServices::none().link(link));
    let outcome = |of: &str| registry.report().feature(&id(of)).unwrap().outcome;
    assert_eq!(
        (outcome(TOWER), outcome(EAR)),
        (InstallOutcome::Installed, InstallOutcome::Installed)
    );
    let sink = slot.lock().unwrap().take().unwrap();
    (registry, sink, receiver)
}

#[test]
fn an_event_passes_the_doors_of_both_grants() {
    let (registry, sink, mut mailbox) = installed();
    sink.emit().unwrap();
    let Some(DriverRequest::ServiceEvent(event)) = mailbox.now() else {
        panic!("no event")
    };
    assert!(registry.tasks()[0].runs_by(&event));
    let other = ServiceEvent {
        event: "tolled".to_owned(),
        ..event.clone()
    };
    assert!(!registry.tasks()[0].runs_by(&other));
    drop(registry.revoke(
        &id(EAR),
        &HostCapability::UseService {
            key: "test.bell.v1".into(),
        },
        Revoke::Now,
    ));
    assert!(!registry.tasks()[0].runs_by(&event));
    // The provider stays, without this grant.
    drop(registry.revoke(
        &id(TOWER),
        &HostCapability::ProvideService {
            key: "test.bell.v1".into(),
        },
        Revoke::Now,
    ));
    assert_eq!(sink.emit(), Err(SinkError::Revoked));
}

#[test]
fn a_provider_that_left_has_no_consumers() {
    let (registry, sink, mut mailbox) = installed();
    sink.emit().unwrap();
    let Some(DriverRequest::ServiceEvent(event)) = mailbox.now() else {
        panic!("no event")
    };
    drop(registry.leave(&id(TOWER)));
    assert!(
        !registry.tasks()[0].runs_by(&event),
        "its door is derived from the provider's"
    );
}
