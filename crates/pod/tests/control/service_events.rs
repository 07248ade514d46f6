//! Events of services: a provider emits them in a live pod, and the task of a consumer runs.

use crate::fixtures::{live, pod, sound};
use llm_worker::ToolEffect;
use pod::control::HostMode;
use pod::feature::*;
use pod::record::{BackgroundTask, Record, TaskRunState};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::LivePod;

trait Bell: Send + Sync {}

struct Bronze;

impl Bell for Bronze {}

const BELL: ServiceKey<dyn Bell> = ServiceKey::new("test.bell.v1");
const RANG: ServiceEventKey = BELL.event("rang");
const HEAR: TaskKey = TaskKey::new("hear", ToolEffect::Effectful).on_event(RANG);

struct Tower(Arc<Mutex<Option<ServiceEventSink>>>);

impl FeatureModule for Tower {
    fn descriptor(&self) -> FeatureDescriptor {
        let provided = ServiceDeclaration::of(BELL, "1.0.0").emits(RANG);
        FeatureDescriptor::builder(FeatureId::builtin("tower"))
            .version("1.0.0")
            .provides(provided)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.services()
            .provide(BELL, Arc::new(Bronze) as Arc<dyn Bell>)?;
        *self.0.lock().unwrap() = Some(ctx.services().event(RANG)?);
        Ok(())
    }
}

struct Ear;

impl Ear {
    async fn hear(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        Ok(())
    }
}

impl FeatureModule for Ear {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(FeatureId::builtin("ear")).version("1.0.0");
        builder
            .requires(ServiceRequirement::optional(BELL, "^1"))
            .background_task(&HEAR)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.background_tasks()
            .run(&HEAR, &Arc::new(Ear), Ear::hear)
            .map(drop)
    }
}

/// The runs that have ended, as feature and trigger.
fn heard(live: &LivePod, upto: u64) -> Vec<(String, TriggerKind)> {
    let records = live
        .pod
        .records()
        .into_iter()
        .filter(|(seq, _)| *seq <= upto);
    let ended = |(_, record)| match record {
        Record::BackgroundTask(BackgroundTask {
            feature,
            trigger,
            state: TaskRunState::Completed,
            ..
        }) => Some((feature, trigger)),
        _ => None,
    };
    records.filter_map(ended).collect()
}

#[test]
fn events_run_the_task_of_a_consumer_once_for_several() {
    let sink = Arc::default();
    let mut pod = pod(Vec::new(), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    pod.features = vec![
        (
            Arc::new(Tower(Arc::clone(&sink))) as _,
            vec![HostCapability::ProvideService { key: "*".into() }],
        ),
        (
            Arc::new(Ear) as _,
            vec![
                HostCapability::background_task("*"),
                HostCapability::UseService { key: "*".into() },
            ],
        ),
    ];
    let live = live(pod);
    let bell = sink.lock().unwrap().clone().unwrap();
    let ear = || ("builtin:ear".to_owned(), TriggerKind::ServiceEvent);
    bell.emit().unwrap();
    live.until(|status| heard(&live, status.folded) == [ear()]);
    // No time passes: the next run is due in a second.
    (0..5).for_each(|_| bell.emit().unwrap());
    live.ask(live.client().status());
    for _ in 0..9 {
        live.advance(Duration::from_secs(1));
    }
    let status = live.until(|status| heard(&live, status.folded).len() > 1);
    let all = heard(&live, status.folded);
    assert!(
        all.len() <= 3 && all.iter().all(|run| *run == ear()),
        "6 events: {all:?}"
    );
    sound(&live.close().pod, "events of services");
}
