//! State that outlives its session: in a file, shared by whoever opens it, and never overwritten unread.

use authority::{Access, Ambient, Workspace};
use llm_worker::ErrorKind;
use pod::feature::*;
use std::path::Path;
use std::sync::{Arc, Mutex};
use testkit::{PodUnderTest, Script};

const ID: FeatureId = FeatureId::builtin("tally");
const TALLY: StateKey<u64> = StateKey::new("tally", 1).scope(StateScope::User);

#[derive(Default)]
struct Tally(Mutex<Option<DurableState<u64>>>);

impl FeatureModule for Tally {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID).version("1.0.0").state(&TALLY).build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        *self.0.lock().unwrap() = Some(ctx.state(&TALLY)?);
        Ok(())
    }
}

/// One pod over the directory, as far as its features are concerned.
fn pod(dir: &Path) -> (FeatureRegistry, Option<DurableState<u64>>, PodUnderTest) {
    let rig = PodUnderTest::new(&Ambient::claim(), Script::new([]), Vec::new());
    let opening = rig.opening(rig.resume().unwrap()).unwrap();
    let files = Workspace::open(&Ambient::claim(), dir, dir, Access::ReadWrite).unwrap();
    let services = HostServices::none().link(opening.link().files(StateScope::User, files));
    let grant = HostCapability::StateStore { scope: StateScope::User };
    let policy = CapabilityPolicy::nothing().grant(ID, grant, "test");
    let tally = Arc::new(Tally::default());
    let registry = FeatureRegistryBuilder::new(policy).with(tally.clone()).install(&services);
    let state = tally.0.lock().unwrap().take();
    (registry, state, rig)
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn it_outlives_the_session_and_two_pods_lose_nothing_to_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let (_one, first, _rig) = pod(dir.path());
    let first = first.unwrap();
    assert_eq!(*first.read(), 0);
    // Three updates, awaited backwards: each is written, in the order of the program.
    let updates: Vec<_> = (1..=3).map(|n| first.update(move |tally| *tally += n)).collect();
    updates.into_iter().rev().for_each(|update| wait(update).unwrap());
    assert_eq!(*first.read(), 6);
    let (_two, second, _rig) = pod(dir.path());
    let second = second.unwrap();
    assert_eq!(*second.read(), 6);
    wait(second.update(|tally| *tally += 10)).unwrap();
    // The first one's next update stands on what is no longer there.
    assert_eq!(wait(first.update(|tally| *tally += 100)).unwrap_err().kind(), ErrorKind::Retry);
    assert_eq!(*first.read(), 16);
    wait(first.update(|tally| *tally += 100)).unwrap();
    assert_eq!(*pod(dir.path()).1.unwrap().read(), 116);
    let file = std::fs::read_to_string(dir.path().join("builtin.tally/tally.json")).unwrap();
    assert_eq!(file, "{\"feature\":\"builtin:tally\",\"name\":\"tally\",\"version\":1,\"value\":116}\n");
}

#[test]
fn a_file_that_does_not_read_keeps_the_feature_out_and_is_left_alone() {
    for content in ["", "{", "{\"feature\":\"x\",\"name\":\"y\",\"version\":9,\"value\":1}\n"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("builtin.tally")).unwrap();
        let file = dir.path().join("builtin.tally/tally.json");
        std::fs::write(&file, content).unwrap();
        let (registry, state, _rig) = pod(dir.path());
        assert!(state.is_none());
        let report = registry.report().feature(&ID).unwrap();
        assert_eq!((report.outcome, report.diagnostics.len()), (Outcome::Skipped, 1), "{content}");
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
