//! Tasks that run when files of the project change: what each run is told, and when none runs.

use crate::fixtures::{live, pod, sound};
use authority::FileChanges;
use llm_worker::ToolEffect;
use pod::control::{Event, HostMode};
use pod::feature::*;
use pod::record::Record;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::{LivePod, PATIENCE, PodUnderTest};

const LOOK: TaskKey = TaskKey::new("look", ToolEffect::ReadOnly).on_file_change();
const TICK: Duration = Duration::from_millis(500);

/// A feature that notes what its runs are told; while `fails` is set, they fail.
#[derive(Clone, Default)]
struct Looker {
    began: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<FileChanges>>>,
    fails: Arc<Mutex<bool>>,
}

impl Looker {
    async fn look(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        self.began.store(true, Ordering::SeqCst);
        let mut changes = cx.changes;
        if changes.paths.remove(Path::new(BEGIN)) && changes.is_empty() {
            return Ok(());
        }
        // Before the test sees that this run began, and changes it.
        let fails = *self.fails.lock().unwrap();
        self.told.lock().unwrap().push(changes);
        if fails {
            Err(TaskError::new("on purpose"))
        } else {
            Ok(())
        }
    }

    fn told(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        told.iter()
            .map(|changes| format!("{:?} {}", changes.paths, changes.incomplete))
            .collect()
    }

    /// Lets time pass until this many runs began.
    fn until(&self, live: &LivePod, runs: usize) {
        let began = Instant::now();
        while self.told().len() < runs {
            assert!(began.elapsed() < PATIENCE, "{runs} runs: {:?}", self.told());
            live.advance(TICK);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl FeatureModule for Looker {
    fn descriptor(&self) -> FeatureDescriptor {
        let reads = CapabilityRequest::optional(HostCapability::READ_WORKSPACE, "to look");
        FeatureDescriptor::builder(FeatureId::builtin("looker"))
            .version("1.0.0")
            .request(reads)
            .background_task(&LOOK)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.background_tasks()
            .run(&LOOK, &Arc::new(self.clone()), Looker::look)
            .map(drop)
    }
}

fn watching(looker: &Looker) -> PodUnderTest {
    let mut pod = pod(Vec::new(), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let grants = vec![
        HostCapability::READ_WORKSPACE,
        HostCapability::background_task("*"),
    ];
    pod.features = vec![(Arc::new(looker.clone()) as _, grants)];
    pod
}

/// The file that is changed until the watch is seen to have begun.
const BEGIN: &str = "begin";

/// Changes a file until the watch, which begins with the host, notices it. Later changes of it that are still to be
/// reported are not counted as runs.
fn begun(live: &LivePod, looker: &Looker) {
    let file = live.pod.project.join(BEGIN);
    let began = Instant::now();
    let mut passes = 0;
    while !looker.began.load(Ordering::SeqCst) {
        assert!(began.elapsed() < PATIENCE, "the watch does not begin");
        // Fewer than the changes that are merged, so that a pause comes.
        if passes % 10 == 0 {
            std::fs::write(&file, "").unwrap();
        }
        passes += 1;
        live.advance(TICK);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_is_told_what_changed_since_the_one_that_completed() {
    let looker = Looker::default();
    let live = live(watching(&looker));
    begun(&live, &looker);
    let file = |name: &str| live.pod.project.join(name);
    std::fs::create_dir(file("src")).unwrap();
    std::fs::write(file("src/a"), "").unwrap();
    std::fs::write(file(".env"), "").unwrap();
    looker.until(&live, 1);
    assert_eq!(looker.told(), [r#"{"src/a"} false"#]);
    *looker.fails.lock().unwrap() = true;
    std::fs::write(file("b"), "").unwrap();
    looker.until(&live, 2);
    *looker.fails.lock().unwrap() = false;
    std::fs::write(file("c"), "").unwrap();
    looker.until(&live, 3);
    assert_eq!(
        looker.told()[1..],
        [r#"{"b"} false"#, r#"{"b", "c"} false"#]
    );
    // Nothing changes: no run, no record.
    live.run_due();
    let before = live.pod.records().len();
    for _ in 0..50 {
        live.advance(Duration::from_secs(3600));
    }
    assert_eq!((looker.told().len(), live.pod.records().len()), (3, before));
    // What is reported after it shows that it was passed over.
    std::fs::write(file(".env"), "x").unwrap();
    std::fs::write(file("d"), "").unwrap();
    looker.until(&live, 4);
    assert_eq!(looker.told()[3..], [r#"{"d"} false"#]);
    sound(&live.close().pod, "a watch of files");
}

#[test]
fn people_are_told_that_files_are_not_watched_until_they_are_again() {
    let looker = Looker::default();
    let live = live(watching(&looker));
    begun(&live, &looker);
    let runs = looker.told().len();
    let elsewhere = live.pod.project.with_extension("moved");
    std::fs::rename(&live.pod.project, &elsewhere).unwrap();
    let notes = |pod: &PodUnderTest| {
        let records = pod.records();
        let notes = records
            .iter()
            .filter(|(_, record)| matches!(record, Record::FeatureNote(note) if note.text.contains("moved")));
        notes.count()
    };
    let began = Instant::now();
    while notes(&live.pod) == 0 {
        assert!(began.elapsed() < PATIENCE, "{:?}", live.pod.records());
        live.advance(TICK);
        std::thread::sleep(Duration::from_millis(10));
    }
    // It is tried again, and told once.
    for _ in 0..3 {
        live.advance(Duration::from_secs(3600));
        std::thread::sleep(Duration::from_millis(10));
    }
    std::fs::rename(&elsewhere, &live.pod.project).unwrap();
    let began = Instant::now();
    while looker.told().len() == runs {
        assert!(began.elapsed() < PATIENCE, "nothing is watched");
        live.advance(Duration::from_secs(600));
        std::fs::write(live.pod.project.join("again"), "").unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let over = live.close();
    let told = over
        .events
        .iter()
        .filter(|event| matches!(event, Event::Alert(alert) if alert.text.contains("files")));
    assert_eq!(told.count(), 1, "{:?}", over.events);
    assert_eq!(notes(&over.pod), 1);
}
