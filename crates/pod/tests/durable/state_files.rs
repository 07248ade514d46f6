//! State that outlives its session: in a file, shared by whoever opens it, and never overwritten unread.

use authority::{Access, Workspace};
use llm_worker::ErrorKind;
use pod::feature::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use testkit::{Latch, ModelScript, PodUnderTest, within};

const ID: FeatureId = FeatureId::builtin("tally");
const TALLY: StateKey<u64> = StateKey::new("tally", 1).scope(StateScope::User);

struct Tally(StateKey<u64>, Mutex<Vec<DurableState<u64>>>);

/// A second state beside the tally, on the same thread.
const OTHER: StateKey<u64> = StateKey::new("other", 1).scope(StateScope::User);

impl FeatureModule for Tally {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .state(&self.0)
            .state(&OTHER)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        *self.1.lock().unwrap() = vec![ctx.state(&self.0)?, ctx.state(&OTHER)?];
        Ok(())
    }
}

/// One pod over the directory, as far as its features are concerned.
fn pod(dir: &Path) -> (FeatureRegistry, Option<DurableState<u64>>, PodUnderTest) {
    let (registry, states, rig) = pod_with(TALLY, dir);
    (registry, states.into_iter().next(), rig)
}

fn pod_with(
    key: StateKey<u64>,
    dir: &Path,
) -> (FeatureRegistry, Vec<DurableState<u64>>, PodUnderTest) {
    let rig = PodUnderTest::new(&ambient::claim(), ModelScript::new([]), Vec::new());
    let opening = rig.opening(rig.resume().unwrap()).unwrap();
    let files = Workspace::open(&ambient::claim(), dir, dir, Access::ReadWrite).unwrap();
    let services = HostServices::none().link(opening.link().files(StateScope::User, files));
    let grant = HostCapability::StateStore {
        scope: StateScope::User,
    };
    let policy = CapabilityPolicy::nothing().grant(ID, grant, "test");
    let tally = Arc::new(Tally(key, Mutex::default()));
    let registry = FeatureRegistryBuilder::new(policy)
        .with(tally.clone())
        .install(&services);
    let states = std::mem::take(&mut *tally.1.lock().unwrap());
    (registry, states, rig)
}

/// What somebody else writes.
fn written(dir: &Path, version: u16, value: u64) -> String {
    let content = format!(
        "{{\"feature\":\"builtin:tally\",\"name\":\"tally\",\"version\":{version},\"value\":{value}}}\n"
    );
    std::fs::create_dir_all(dir.join("builtin.tally")).unwrap();
    std::fs::write(file(dir), &content).unwrap();
    content
}

fn file(dir: &Path) -> PathBuf {
    dir.join("builtin.tally/tally.json")
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work)
}

#[test]
fn pod_state_outlives_sessions_and_concurrent_pods() {
    let dir = tempfile::tempdir().unwrap();
    let (_one, first, _rig) = pod(dir.path());
    let first = first.unwrap();
    assert_eq!(*first.read(), 0);
    // Three updates, awaited backwards: each is written, in the order of the program.
    let updates: Vec<_> = (1..=3)
        .map(|n| first.update(move |tally| *tally += n))
        .collect();
    updates
        .into_iter()
        .rev()
        .for_each(|update| wait(update).unwrap());
    assert_eq!(*first.read(), 6);
    let (_two, second, _rig) = pod(dir.path());
    let second = second.unwrap();
    assert_eq!(*second.read(), 6);
    wait(second.update(|tally| *tally += 10)).unwrap();
    // The first one's next update stands on what is no longer there.
    assert_eq!(
        wait(first.update(|tally| *tally += 100))
            .unwrap_err()
            .kind(),
        ErrorKind::Retry
    );
    assert_eq!(*first.read(), 16);
    wait(first.update(|tally| *tally += 100)).unwrap();
    assert_eq!(*pod(dir.path()).1.unwrap().read(), 116);
    let file = std::fs::read_to_string(dir.path().join("builtin.tally/tally.json")).unwrap();
    assert_eq!(
        file,
        "{\"feature\":\"builtin:tally\",\"name\":\"tally\",\"version\":1,\"value\":116}\n"
    );
}

#[test]
fn an_unreadable_file_skips_the_feature_and_stays() {
    for content in [
        "",
        "{",
        "{\"feature\":\"x\",\"name\":\"y\",\"version\":9,\"value\":1}\n",
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("builtin.tally")).unwrap();
        let file = dir.path().join("builtin.tally/tally.json");
        std::fs::write(&file, content).unwrap();
        let (registry, state, _rig) = pod(dir.path());
        assert!(state.is_none());
        let report = registry.report().feature(&ID).unwrap();
        assert_eq!(
            (report.outcome, report.diagnostics.len()),
            (InstallOutcome::Skipped, 1),
            "{content}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn what_the_disk_refuses_is_not_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (_one, state, _rig) = pod(dir.path());
    let state = state.unwrap();
    wait(state.update(|tally| *tally = 1)).unwrap();
    // Its directory is gone, and a file stands in its place.
    std::fs::remove_dir_all(dir.path().join("builtin.tally")).unwrap();
    std::fs::write(dir.path().join("builtin.tally"), "").unwrap();
    assert!(wait(state.update(|tally| *tally = 2)).is_err());
    assert_eq!(*state.read(), 1);
}

// What a newer program, or an older one whose value makes the migration panic, wrote meanwhile is never overwritten,
// however often it is tried.
#[test]
fn an_unreadable_foreign_write_is_not_overwritten() {
    let migrating = |_: u16, _: &serde_json::Value| -> Result<u64, String> { panic!("on purpose") };
    let older = StateKey::new("tally", 2)
        .scope(StateScope::User)
        .migrating(migrating);
    for (key, theirs, words) in [(TALLY, 9, "use a newer one"), (older, 1, "on purpose")] {
        let dir = tempfile::tempdir().unwrap();
        let (_one, states, _rig) = pod_with(key, dir.path());
        wait(states[0].update(|tally| *tally = 1)).unwrap();
        let content = written(dir.path(), theirs, 77);
        assert_eq!(
            wait(states[0].update(|tally| *tally += 1)),
            Err(StateError::Superseded)
        );
        for _ in 0..3 {
            let told = wait(states[0].update(|tally| *tally += 1)).unwrap_err();
            assert!(
                told.kind() == ErrorKind::Unavailable && told.to_string().contains(words),
                "{told}"
            );
        }
        assert_eq!(
            (
                *states[0].read(),
                std::fs::read_to_string(file(dir.path())).unwrap()
            ),
            (1, content)
        );
    }
}

#[test]
fn a_file_that_is_removed_is_a_state_that_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (_one, state, _rig) = pod(dir.path());
    let state = state.unwrap();
    wait(state.update(|tally| *tally = 5)).unwrap();
    std::fs::remove_file(file(dir.path())).unwrap();
    assert_eq!(
        wait(state.update(|tally| *tally += 1)),
        Err(StateError::Superseded)
    );
    assert_eq!(*state.read(), 0);
    wait(state.update(|tally| *tally += 1)).unwrap();
    assert_eq!(*pod(dir.path()).1.unwrap().read(), 1);
}

// Reading what somebody else wrote is the feature's own code: it runs on the feature's thread and holds up nobody.
#[test]
fn a_migration_that_hangs_holds_up_no_other_state() {
    static HELD: std::sync::OnceLock<Latch> = std::sync::OnceLock::new();
    let gate = HELD.get_or_init(|| Latch::new("migration"));
    let hangs = |_: u16, _: &serde_json::Value| {
        HELD.get().unwrap().pass_blocking();
        Ok(7)
    };
    let key = StateKey::new("tally", 2)
        .scope(StateScope::User)
        .migrating(hangs);
    let dir = tempfile::tempdir().unwrap();
    let (_one, states, _rig) = pod_with(key, dir.path());
    wait(states[0].update(|tally| *tally = 1)).unwrap();
    written(dir.path(), 1, 77);
    assert_eq!(
        wait(states[0].update(|tally| *tally += 1)),
        Err(StateError::Superseded)
    );
    let reader = std::thread::spawn({
        let state = states[0].clone();
        move || *state.read()
    });
    gate.wait_for(1);
    let other = states[1].clone();
    within("another state", move || {
        wait(other.update(|tally| *tally = 3)).unwrap()
    });
    gate.open();
    assert_eq!(reader.join().unwrap(), 7);
}
