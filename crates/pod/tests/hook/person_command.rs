//! Hooks and a person's command: those of the call see it, those of requests and of a turn's end are not asked.

use crate::rig::*;
use llm_worker::{ToolEffect, ToolOutput};
use pod::control::NewInput;
use pod::feature::HookKey;
use pod::hook::{
    Change, PreRequest, PreToolCall, PromptSubmit, ToolArguments, ToolShape, TurnEnd, Verdict,
};
use std::sync::{Arc, Mutex};
use testkit::{FnTool, LivePod, PodUnderTest};

fn ran(features: Vec<Installed>) -> (PodUnderTest, FnTool) {
    let (mut pod, _) = pod(&[], features);
    let bash = FnTool::new("Bash", ToolEffect::Effectful, |_, _| async {
        Ok(ToolOutput {
            summary: "ran".to_owned(),
            content: String::new(),
            data: None,
        })
    });
    pod.tools = vec![bash.clone()];
    pod.script.clear();
    let Ok(live) = LivePod::open(pod) else {
        panic!("it does not open")
    };
    let command = NewInput {
        text: "make".to_owned(),
        run: true,
        ..NewInput::default()
    };
    let accepted = live.ask(live.client().begin(command)).unwrap();
    live.ask(accepted.end()).unwrap();
    (live.close().pod, bash)
}

#[test]
fn the_hooks_of_a_call_see_it_and_those_of_the_model_do_not() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let seen = Arc::clone(&seen);
        move |more: &str| seen.lock().unwrap().push(format!("{what}{more}"))
    };
    let prompt = note("prompt: ");
    let arguments = note("arguments: ");
    let call = note("call: ");
    let shape = note("shape: ");
    let request = note("request");
    let end = note("end");
    let features = vec![
        gate(
            "builtin:a",
            HookKey::<PromptSubmit>::new("a"),
            move |view| {
                prompt(&view.text);
                Verdict::allow()
            },
        ),
        transform(
            "builtin:b",
            HookKey::<ToolArguments>::new("b"),
            move |view| {
                arguments(&view.tool);
                Change::Unchanged
            },
        ),
        gate("builtin:c", HookKey::<PreToolCall>::new("c"), move |view| {
            call(&view.arguments);
            Verdict::allow()
        }),
        transform("builtin:d", HookKey::<ToolShape>::new("d"), move |view| {
            shape(&view.output.summary);
            Change::Replaced(ToolOutput {
                summary: "shaped".to_owned(),
                content: String::new(),
                data: None,
            })
        }),
        gate("builtin:e", HookKey::<PreRequest>::new("e"), move |_| {
            request("");
            Verdict::abort("no request")
        }),
        gate("builtin:f", HookKey::<TurnEnd>::new("f"), move |_| {
            end("");
            Verdict::again("more")
        }),
    ];
    let (pod, bash) = ran(features);
    let wanted = [
        "prompt: ! make",
        "arguments: Bash",
        r#"call: {"command":"make"}"#,
        "shape: ran",
    ];
    assert_eq!(*seen.lock().unwrap(), wanted);
    assert_eq!(
        (bash.ran().len(), pod.state().requests, pod.state().turns),
        (1, 0, 1)
    );
    assert_eq!(results(&pod)[0].outcome.summary, "shaped");
}

#[test]
fn a_gate_denies_it() {
    let denies = gate("builtin:a", HookKey::<PreToolCall>::new("a"), |_| {
        Verdict::deny("not on a Friday")
    });
    let (pod, bash) = ran(vec![denies]);
    assert!(bash.ran().is_empty() && results(&pod)[0].outcome.summary.contains("not on a Friday"));
}
