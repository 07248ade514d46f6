//! Runs of background tasks are told what the pod does and whether a driver is attached.

use crate::rig::{Raw, Scene, answers};
use llm_worker::ToolEffect;
use pod::control::HostMode;
use pod::feature::*;
use pod::record::HoldCause;
use serde_json::json;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::{ModelScript, PATIENCE, PodUnderTest};

const LOOK: TaskKey = TaskKey::new("look", ToolEffect::ReadOnly).on_request();

/// Sends what each run is told.
struct Looks(
    Mutex<mpsc::Sender<PodAtRun>>,
    Arc<Mutex<Option<(TaskHandle, String)>>>,
);

struct Live(Mutex<mpsc::Sender<PodAtRun>>);

impl Live {
    async fn look(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        self.0.lock().unwrap().send(cx.pod).unwrap();
        Ok(())
    }
}

impl FeatureModule for Looks {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::builtin("looks"))
            .version("1.0.0")
            .background_task(&LOOK)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live(Mutex::new(self.0.lock().unwrap().clone())));
        ctx.background_tasks().run(&LOOK, &live, Live::look)?;
        let name = ctx.pod_name().unwrap().to_owned();
        *self.1.lock().unwrap() = Some((ctx.background_tasks().handle(&LOOK)?, name));
        Ok(())
    }
}

fn attached(scene: &Scene, role: &str) -> Raw {
    let mut raw = scene.stranger();
    raw.ask(
        "hello",
        json!({ "versions": [1], "client": "test", "role": role }),
    )
    .unwrap();
    raw.ask("attach", json!({})).unwrap();
    raw
}

#[test]
fn a_run_is_told_of_the_pod_and_of_attached_drivers() {
    let (sender, told) = mpsc::channel();
    let given = Arc::default();
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers(1)), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let looks: Arc<dyn FeatureModule> = Arc::new(Looks(Mutex::new(sender), Arc::clone(&given)));
    pod.features = vec![(
        looks,
        vec![HostCapability::ContributeBackgroundTask { name: "*".into() }],
    )];
    let dir = pod.dir.file_name().unwrap().to_string_lossy().into_owned();
    let scene = Scene::of(pod);
    let (handle, name) = given.lock().unwrap().clone().unwrap();
    assert_eq!(name, dir);
    let look = || {
        handle.run_now().unwrap();
        told.recv_timeout(PATIENCE).unwrap()
    };
    let now = || Some(at(scene.live.pod.clock.now()));
    assert_eq!(look(), PodAtRun::new(0, PodActivity::Idle, None));
    // A driver that is not attached sees no message of the pod, and a viewer cannot act on one.
    let mut driver = scene.driver();
    driver
        .ask("input", json!({ "text": "one", "cmd_id": "one" }))
        .unwrap();
    scene.settled();
    let viewer = attached(&scene, "viewer");
    assert_eq!(look(), PodAtRun::new(1, PodActivity::Idle, None));
    drop(viewer);
    let mut watching = attached(&scene, "driver");
    scene.live.advance(Duration::from_secs(5));
    assert_eq!(look(), PodAtRun::new(1, PodActivity::Idle, now()));
    watching.ask("pause", json!({ "cmd_id": "pause" })).unwrap();
    let held = look();
    assert!(
        matches!(&held.activity, PodActivity::Held { cause: HoldCause::Person, reason } if !reason.is_empty()),
        "{held:?}"
    );
    drop(watching);
    let left = now();
    let mut seen = None;
    // Until the server has noticed, it counts as attached.
    for _ in 0..1000 {
        scene.live.advance(Duration::from_secs(1));
        seen = look().driver_until;
        if seen != now() {
            break;
        }
    }
    assert!(seen >= left && seen < now(), "{seen:?}");
    scene.close();
}

fn at(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}
