//! What a feature does while it installs leaves nothing behind: it may still fail.

use authority::{Access, Workspace};
use pod::control::AlertLevel;
use pod::feature::*;
use std::future::Future;
use std::sync::{Arc, Mutex};
use testkit::{ModelScript, PodUnderTest};

const ID: FeatureId = FeatureId::builtin("eager");
const JOURNALED: StateKey<u64> = StateKey::new("journaled", 1);
const FILED: StateKey<u64> = StateKey::new("filed", 1).scope(StateScope::User);
const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 40,
    per_turn: 2,
};

/// Everything a feature holds that has an effect.
#[derive(Clone)]
struct Holds {
    states: [DurableState<u64>; 2],
    alerts: FeatureAlertSink,
    notify: FeatureNotifySink,
    notes: RunningNotes,
}

/// The answer to something, if it is there already.
fn now<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    match work
        .as_mut()
        .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

impl Holds {
    /// What each way of having an effect is refused with.
    fn tried(&self) -> Vec<String> {
        let state =
            |state: &DurableState<u64>| now(state.update(|n| *n += 1)).and_then(Result::err);
        let mut told: Vec<_> = self
            .states
            .iter()
            .map(|kept| format!("{:?}", state(kept)))
            .collect();
        told.push(format!(
            "{:?}",
            self.alerts.alert(AlertLevel::Info, "hello").err()
        ));
        told.push(format!(
            "{:?}",
            now(self.notify.notify_model("hello")).and_then(Result::err)
        ));
        told.push(format!("{:?}", self.notes.note("hello").err()));
        told
    }
}

/// Does everything while it installs, and then comes out as it is told.
struct Eager(Result<(), &'static str>, Arc<Mutex<Option<Tried>>>);

/// What it holds, and what it was told meanwhile.
type Tried = (Holds, Vec<String>);

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

const NEVER: ToolKey<Nothing> =
    ToolKey::new("Never", llm_worker::ToolEffect::ReadOnly, "Never staged.");

impl FeatureModule for Eager {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .request(CapabilityRequest::required(NOTIFY, "to tell"))
            .request(CapabilityRequest::required(
                HostCapability::EmitUserAlert,
                "to alert",
            ))
            .state(&JOURNALED)
            .state(&FILED);
        if self.0 == Err("unstaged") {
            builder.tool(&NEVER).build()
        } else {
            builder.build()
        }
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let states = [ctx.state(&JOURNALED)?, ctx.state(&FILED)?];
        let alerts = ctx.alerts()?;
        let notify = ctx.notifications()?;
        let notes = ctx.diagnostics().later()?;
        let holds = Holds {
            states,
            alerts,
            notify,
            notes,
        };
        let told = holds.tried();
        *self.1.lock().unwrap() = Some((holds, told));
        match self.0 {
            Ok(()) | Err("unstaged") => Ok(()),
            Err("panics") => std::panic::resume_unwind(Box::new("on purpose")),
            Err(why) => Err(FeatureInstallError::failed(why)),
        }
    }
}

#[test]
fn an_install_has_no_effect_before_it_succeeds() {
    let early = vec!["Some(Early)"; 5];
    let gone = vec![
        "Some(Closed)",
        "Some(Closed)",
        "Some(Revoked)",
        "Some(Revoked)",
        "Some(Revoked)",
    ];
    let done = vec!["None"; 5];
    for (outcome, after) in [
        (Ok(()), &done),
        (Err("fails"), &gone),
        (Err("panics"), &gone),
        (Err("unstaged"), &gone),
    ] {
        let ambient = ambient::claim();
        let dir = tempfile::tempdir().unwrap();
        let rig = PodUnderTest::new(&ambient, ModelScript::new([]), Vec::new());
        let opening = rig.opening(rig.resume().unwrap()).unwrap();
        let files = Workspace::open(&ambient, dir.path(), dir.path(), Access::ReadWrite).unwrap();
        let services = HostServices::none().link(opening.link().files(StateScope::User, files));
        let user = HostCapability::StateStore {
            scope: StateScope::User,
        };
        let grants = [
            NOTIFY,
            HostCapability::EmitUserAlert,
            HostCapability::SESSION_STATE,
            user,
            HostCapability::tool("*"),
        ];
        let policy = grants
            .into_iter()
            .fold(CapabilityPolicy::nothing(), |policy, grant| {
                policy.grant(ID, grant, "test")
            });
        let slot = Arc::new(Mutex::new(None));
        let registry = FeatureRegistryBuilder::new(policy)
            .with(Arc::new(Eager(outcome, Arc::clone(&slot))))
            .install(&services);
        let live = registry.report().feature(&ID).unwrap().outcome.is_live();
        assert_eq!(
            live,
            outcome.is_ok(),
            "{outcome:?}: {:?}",
            registry.report()
        );
        let (holds, told) = slot.lock().unwrap().take().unwrap();
        assert_eq!(told, early, "{outcome:?}");
        assert!(
            std::fs::read_dir(dir.path()).unwrap().next().is_none(),
            "{outcome:?}"
        );
        // An update of a file is answered by its own thread, soon.
        let told = holds.tried();
        let soon = |at: usize, told: &str| told == after[at] || (at == 1 && told == "None");
        assert!(
            told.iter().enumerate().all(|(at, told)| soon(at, told)),
            "{outcome:?}: {told:?}"
        );
        // It is there no longer, and so is all it says.
        drop(registry.leave(&ID));
        if outcome.is_ok() {
            assert_eq!(holds.tried(), gone, "{outcome:?}");
        }
    }
}
