//! More updates than any batch, any queue and any disk takes at once.
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolOutput, ToolResult};
use pod::feature::*;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use testkit::{KillPoints, Latch, ModelScript, PodUnderTest, ScriptedAnswer, within};

const ID: FeatureId = FeatureId::builtin("flood");
const KEPT: StateKey<(u64, String)> = StateKey::new("kept", 1);
// They touch different things, so that both run at once.
const FLOOD: ToolKey<Args> =
    ToolKey::new("Flood", ToolEffect::Effectful, "Flood.").touching(|_| vec![Touch::Session]);
const QUICK: ToolKey<Args> = ToolKey::new("Quick", ToolEffect::Effectful, "Be quick.")
    .touching(|_| vec![Touch::Write("quick".into())]);

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Args {}

/// Hands in updates of so many bytes until none was taken for a long time.
struct Flood {
    bytes: usize,
    points: KillPoints,
    /// Opened when it is through.
    through: Latch,
    /// Whether the journal stops meanwhile.
    stops: bool,
    taken: Mutex<u64>,
}

impl FeatureModule for Module {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .tool(&FLOOD)
            .tool(&QUICK)
            .state(&KEPT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live(Arc::clone(&self.0), ctx.state(&KEPT)?));
        ctx.tools().implement(&FLOOD, &live, Live::flood)?;
        ctx.tools().implement(&QUICK, &live, Live::quick).map(drop)
    }
}

struct Module(Arc<Flood>);

struct Live(Arc<Flood>, DurableState<(u64, String)>);

impl Live {
    async fn quick(self: Arc<Self>, _: Args, _: ToolContext) -> ToolResult {
        Ok(ToolOutput::default())
    }

    async fn flood(self: Arc<Self>, _: Args, _: ToolContext) -> ToolResult {
        let Self(flood, state) = &*self;
        let held = flood
            .stops
            .then(|| flood.points.hold_next("journal:encoded"));
        let mut taken = 0;
        let mut refused = 0;
        while refused < 2_000 && taken < 60_000 {
            let update = state.update(|(n, text)| {
                *n += 1;
                *text = "x".repeat(flood.bytes);
            });
            match update.refused().map(StateError::kind) {
                None => (taken, refused) = (taken + 1, 0),
                Some(llm_worker::ErrorKind::Retry) => refused += 1,
                Some(other) => panic!("{other:?}"),
            }
            drop(update);
            std::thread::yield_now();
        }
        *flood.taken.lock().unwrap() = taken;
        flood.through.open();
        held.inspect(Latch::open);
        Ok(ToolOutput::default())
    }
}

fn pod(bytes: usize, stops: bool) -> (PodUnderTest, Arc<Flood>) {
    let both = ScriptedAnswer::calls(&[("Quick", "{}"), ("Flood", "{}")]);
    let script = ModelScript::new([both, ScriptedAnswer::text("went on")]);
    let mut pod = PodUnderTest::new(&ambient::claim(), script, Vec::new());
    let points = pod.points.clone();
    let through = Latch::new("through");
    let flood = Arc::new(Flood {
        bytes,
        points,
        through,
        stops,
        taken: Mutex::default(),
    });
    let grants = vec![HostCapability::tool("*"), HostCapability::SESSION_STATE];
    pod.features = vec![(Arc::new(Module(Arc::clone(&flood))), grants)];
    pod.paused = false;
    (pod, flood)
}

fn ends(pod: PodUnderTest) -> PodUnderTest {
    let pod = within("a flood", move || {
        assert_eq!(pod.run("go").end().answer.as_deref(), Some("went on"));
        pod
    });
    assert_eq!(pod.restored().state.turns, 1);
    pod
}

// The control thread is held until the mailbox is full of the largest values: together they are more than one batch.
#[test]
fn what_is_too_much_for_one_batch_comes_in_several() {
    let (pod, flood) = pod(MAX_STATE - 1024, false);
    let through = flood.through.clone();
    pod.points
        .at("tool:ended", 0, move || through.pass_blocking());
    let pod = ends(pod);
    let taken = *flood.taken.lock().unwrap();
    assert!(taken >= 256, "{taken}");
    let left = pod.state().features.into_values().next().unwrap();
    assert_eq!(left.value[0], taken);
}

// The journal stands still: features are told to wait long before the turn's own commits find no room.
#[test]
fn updates_do_not_crowd_out_the_turn() {
    let (pod, flood) = pod(8, true);
    let pod = ends(pod);
    let taken = *flood.taken.lock().unwrap();
    assert!((256..4096).contains(&taken), "{taken}");
    assert_eq!(
        pod.state().features.into_values().next().unwrap().value[0],
        taken
    );
}
