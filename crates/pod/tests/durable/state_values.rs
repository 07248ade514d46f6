//! What a state may hold: what reads back as it was written, is no secret, and is not nested without end.

use authority::{Access, Redactor, Secret, Workspace};
use llm_worker::ErrorKind;
use pod::feature::*;
use pod::host::Opening;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use testkit::{ModelScript, PodUnderTest};

const ID: FeatureId = FeatureId::builtin("keeps");

/// A feature with one state.
struct Keeps<T: 'static>(StateKey<T>, Arc<Mutex<Option<DurableState<T>>>>);

impl<T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static> FeatureModule
    for Keeps<T>
{
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .state(&self.0)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        *self.1.lock().unwrap() = Some(ctx.state(&self.0)?);
        Ok(())
    }
}

/// The state of a feature installed beside a pod that has not begun.
fn state<T>(
    key: StateKey<T>,
    scope: StateScope,
    dir: &Path,
    secret: &str,
) -> (DurableState<T>, (PodUnderTest, Opening))
where
    T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
{
    let ambient = ambient::claim();
    let rig = PodUnderTest::new(&ambient, ModelScript::new([]), Vec::new());
    let opening = rig.opening(rig.resume().unwrap()).unwrap();
    let files = Workspace::open(&ambient, dir, dir, Access::ReadWrite).unwrap();
    let redactor = Redactor::new([&Secret::new(&ambient, "bird", secret.to_owned())]).unwrap();
    let services = HostServices::none()
        .link(opening.link().files(StateScope::User, files))
        .redact(redactor);
    let policy =
        CapabilityPolicy::nothing().grant(ID, HostCapability::StateStore { scope }, "test");
    let slot = Arc::new(Mutex::new(None));
    let module = Arc::new(Keeps(key.scope(scope), Arc::clone(&slot)));
    FeatureRegistryBuilder::new(policy)
        .with(module)
        .install(&services);
    let state = slot.lock().unwrap().take();
    (state.unwrap(), (rig, opening))
}

/// What an update is refused with, before anything is queued.
fn refused<T>(state: &DurableState<T>, value: T) -> Option<StateError>
where
    T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
{
    let mut update = std::pin::pin!(state.update(|state| *state = value));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match update.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(done) => done.err(),
        std::task::Poll::Pending => None,
    }
}

/// Writes what it cannot read.
#[derive(Clone, Default, Deserialize)]
struct OneWay(u64);

impl Serialize for OneWay {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({ "a": inner })
        }
    })
}

const SCOPES: [StateScope; 2] = [StateScope::Session, StateScope::User];

#[test]
fn what_would_not_read_at_the_next_start_is_refused_now() {
    for scope in SCOPES {
        let dir = tempfile::tempdir().unwrap();
        let bug = |error: Option<StateError>| error.map(|error| (error.kind(), error.to_string()));
        let (number, _rig) = state(
            StateKey::<f64>::new("n", 1),
            scope,
            dir.path(),
            "no such words",
        );
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (kind, words) = bug(refused(&number, value)).unwrap();
            assert!(
                kind == ErrorKind::Bug && words.contains("read"),
                "{scope} {value}: {words}"
            );
            assert_eq!(*number.newest(), 0.0);
        }
        let (odd, _rig) = state(
            StateKey::<OneWay>::new("odd", 1),
            scope,
            dir.path(),
            "no such words",
        );
        assert_eq!(bug(refused(&odd, OneWay(7))).unwrap().0, ErrorKind::Bug);
        let (deep, _rig) = state(
            StateKey::<Value>::new("deep", 1),
            scope,
            dir.path(),
            "no such words",
        );
        for (levels, fits) in [
            (64, true),
            (65, false),
            (127, false),
            (128, false),
            (2000, false),
        ] {
            let told = bug(refused(&deep, nested(levels)));
            assert_eq!(
                told.as_ref().map(|told| told.0),
                (!fits).then_some(ErrorKind::Bug),
                "{levels}: {told:?}"
            );
            assert_eq!(*deep.newest(), nested(64), "{levels}");
        }
    }
}

#[test]
fn what_is_in_memory_is_what_reads_back() {
    #[derive(Clone, Default, Serialize, Deserialize)]
    struct Half {
        kept: u64,
        #[serde(skip)]
        lost: u64,
    }
    let dir = tempfile::tempdir().unwrap();
    let (half, _rig) = state(
        StateKey::<Half>::new("half", 1),
        StateScope::Session,
        dir.path(),
        "no such words",
    );
    assert_eq!(refused(&half, Half { kept: 1, lost: 2 }), None);
    assert_eq!((half.newest().kept, half.newest().lost), (1, 0));
}

// Wherever the words stand, and whatever their JSON makes of them.
#[test]
fn a_secret_is_kept_in_no_state_of_any_scope() {
    let cases = [
        ("plain-secret", json!("plain-secret"), true),
        (
            "line\nand \"quote\"",
            json!({"a": ["x line\nand \"quote\" y"]}),
            true,
        ),
        ("named-secret", json!({"named-secret": 1}), true),
        ("1234567890", json!([1_234_567_890_u64]), true),
        ("other-secret", json!({"an other": ["secret"]}), false),
    ];
    for scope in SCOPES {
        for (words, value, found) in cases.clone() {
            let dir = tempfile::tempdir().unwrap();
            let (kept, _rig) = state(StateKey::<Value>::new("kept", 1), scope, dir.path(), words);
            let told = refused(&kept, value);
            assert_eq!(
                matches!(told, Some(StateError::Refused(_))),
                found,
                "{scope} {words}: {told:?}"
            );
            let told = told.map_or_else(String::new, |told| told.to_string());
            assert!(
                !told.contains(words) && told.contains("bird") == found,
                "{told}"
            );
        }
    }
}

// Compare and set, for owners of a value that no closure reaches.
#[test]
fn a_value_is_replaced_only_at_its_revision() {
    const ITEMS: StateKey<Value> = StateKey::new("items", 1);
    let dir = tempfile::tempdir().unwrap();
    let (state, pod) = state(ITEMS, StateScope::User, dir.path(), "magpie");
    let first = state.revision();
    assert!(state.replace(first, json!([1])).refused().is_none());
    let second = state.revision();
    assert!(second > first);
    assert_eq!(
        state.replace(first, json!([2])).refused(),
        Some(&StateError::Conflict(second))
    );
    assert_eq!(*state.newest(), json!([1]));
    drop(state.update(|value| *value = json!([3])));
    assert!(matches!(
        state.replace(second, json!([4])).refused(),
        Some(StateError::Conflict(_))
    ));
    assert!(
        state
            .replace(state.revision(), json!([5]))
            .refused()
            .is_none()
    );
    assert_eq!(*state.newest(), json!([5]));
    drop(pod);
}
