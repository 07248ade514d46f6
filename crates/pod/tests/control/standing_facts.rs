//! What is told anew after each change of the view: pins in force, the task that runs, the input that is worked on. What was
//! taken back or has ended is never told as current.

use crate::approval_scene::{allow, scene, waits};
use crate::compaction::host;
use crate::fixtures::{live, sound, verified};
use crate::views::prunes;
use llm_worker::projection::neutral::NeutralRequest;
use llm_worker::{Item, ToolEffect};
use pod::control::{HostMode, NewInput};
use pod::feature::*;
use pod::record::ViewLevel;
use protocol::method::{Compact, Pin, Unpin};
use std::sync::Arc;
use testkit::{FnTool, LivePod, ModelScript, ScriptedAnswer};

const WINDOW: u64 = 14_000;
const ROUNDS: usize = 24;
const STEPS: usize = 14;
/// Changes of the view that what was said in the first round must survive.
const CHANGES: usize = 10;

const KEEPS: TaskKey = TaskKey::new("keeps", ToolEffect::Effectful).at_start();

/// A feature with a task that runs until the pod ends.
struct Keeper;

impl Keeper {
    async fn work(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        cx.cancel.cancelled().await;
        Ok(())
    }
}

impl FeatureModule for Keeper {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::builtin("keeper"))
            .version("1.0.0")
            .background_task(&KEEPS)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.background_tasks()
            .run(&KEEPS, &Arc::new(Self), Self::work)
            .map(drop)
    }
}

fn value(kind: &str, round: usize) -> String {
    format!(
        "{kind} {round} {}",
        blake3::hash(format!("{kind} {round}").as_bytes()).to_hex()
    )
}

fn new(text: String) -> NewInput {
    NewInput {
        text,
        ..NewInput::default()
    }
}

fn notes(request: &NeutralRequest) -> Vec<&str> {
    request.items.iter().filter_map(host).collect()
}

/// A turn that asks a person before its first step. Meanwhile an input comes and is withdrawn.
fn round(live: &LivePod, number: usize) -> Vec<NeutralRequest> {
    let client = live.client();
    let before = live.pod.script.requests().len();
    let arguments = format!("{{\"text\":\"{}\"}}", "w".repeat(2_000));
    live.pod
        .script
        .add(ScriptedAnswer::calls(&[("Deploy", &arguments)]));
    (0..STEPS).for_each(|_| {
        live.pod
            .script
            .add(ScriptedAnswer::calls(&[("Echo", &arguments)]))
    });
    live.pod
        .script
        .add(ScriptedAnswer::text(&value("answer", number)));
    let accepted = live.ask(client.send(new(value("input", number)))).unwrap();
    let asked = waits(live).approvals;
    let withdrawn = live
        .ask(client.send(new(value("withdrawn", number))))
        .unwrap();
    live.ask(client.withdraw(withdrawn.input, None)).unwrap();
    if number.is_multiple_of(2) {
        live.ask(client.tell(Compact::default(), None)).unwrap();
    }
    live.ask(client.approve(allow(&asked[0]))).unwrap();
    let end = live.ask(accepted.end()).unwrap();
    assert_eq!(
        end.answer.as_deref(),
        Some(&*value("answer", number)),
        "{end:?}"
    );
    live.pod.script.requests().split_off(before)
}

#[test]
fn pins_tasks_and_the_active_input_survive_ten_changes() {
    let (mut pod, tools): (_, [FnTool; 2]) = scene(Vec::new());
    pod.tools = tools.to_vec();
    pod.mode = HostMode::Stay { missing: None };
    pod.script = ModelScript::new(Vec::new()).windowed(WINDOW);
    pod.features.push((
        Arc::new(Keeper),
        vec![HostCapability::ContributeBackgroundTask { name: "*".into() }],
    ));
    let live = live(pod);
    live.until(|status| live.folded(status.folded).open_tasks().next().is_some());
    let client = live.client();
    let mut changes = 0;
    for number in 1..=ROUNDS {
        if number % 3 == 1 {
            live.ask(client.tell(
                Pin {
                    text: value("pin", number),
                    cmd_id: String::new(),
                },
                None,
            ))
            .unwrap();
        }
        if number == ROUNDS / 2 {
            live.ask(client.tell(
                Unpin {
                    pin: 2,
                    cmd_id: String::new(),
                },
                None,
            ))
            .unwrap();
        }
        let requests = round(&live, number);
        let made = prunes(&live.pod)
            .iter()
            .filter(|change| change.level == ViewLevel::Steps)
            .count();
        for (at, request) in requests.iter().enumerate() {
            let what = format!("round {number}, request {at}");
            let newest = request.items.iter().rev().find_map(|item| match item {
                Item::User { text, .. } => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(newest, Some(&*value("input", number)), "{what}");
            let text = serde_json::to_string(&request.items).unwrap();
            assert!(!text.contains("withdrawn"), "{what}");
            let told = notes(request);
            for pinned in (1..=number).filter(|number| number % 3 == 1) {
                let text = value("pin", pinned);
                let is_taken_back = pinned == 4 && number >= ROUNDS / 2;
                let told = told
                    .iter()
                    .rev()
                    .find(|note| note.contains("Pinned by a person"))
                    .copied();
                assert_eq!(
                    told.is_some_and(|note| note.contains(&text)),
                    !is_taken_back,
                    "{what}: pin {pinned}, {told:?}"
                );
            }
        }
        // The newest note of a turn with a change.
        if made > changes {
            let told = notes(requests.last().unwrap());
            let state = told
                .iter()
                .rev()
                .find(|note| note.starts_with("State of this pod"))
                .unwrap();
            assert!(
                state.contains(&value("input", number)),
                "round {number}: {state}"
            );
            assert!(
                state.contains("Background tasks that run: keeps of builtin:keeper"),
                "round {number}: {state}"
            );
            assert_eq!(
                state.matches("Working on input").count(),
                1,
                "round {number}: {state}"
            );
        }
        changes = made;
    }
    assert!(changes >= CHANGES, "{changes} changes of the view");
    let pod = live.close().pod;
    assert_eq!(verified(&pod).wrong, None);
    sound(&pod, "facts that are told anew");
}
