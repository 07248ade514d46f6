//! What `docs/FEATURES.md` shows around a call and around a turn, each as a feature of its own with its test.

use pod::feature::author::*;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testkit::{FeatureHost, FnTool, Ruling, ScriptedAnswer, conformance, shell_call};

const HIDE: HookKey<ToolShape> = HookKey::new("hide").withhold_on_failure();

struct Hider;

impl FeatureModule for Hider {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("hider"))
            .version("0.1.0")
            .transform(&HIDE)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .transform(&HIDE, &Arc::new(Hiding), Hiding::hide)
            .map(drop)
    }
}

struct Hiding;

impl Hiding {
    fn hide(&self, view: &ToolShapeView) -> Change<ToolOutput> {
        let hidden = |text: &str| text.replace("hunter2", "[hidden]");
        Change::Replaced(ToolOutput {
            summary: hidden(&view.output.summary),
            content: hidden(&view.output.content),
            data: None,
        })
    }
}

#[test]
fn the_redactor_of_the_document_hides() {
    let show = FnTool::new("Show", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput {
            summary: "it is hunter2".into(),
            ..ToolOutput::default()
        })
    });
    let mut host = FeatureHost::new().tool(show).install(Hider);
    assert_eq!(host.call("Show", json!({})).text(), "it is [hidden]");
    conformance(|| Hider).assert();
}

const COUNT: HookKey<ToolShape> = HookKey::new("count").after(&["user:hider"]);

/// Counts the letters of a result; its id comes before that of the redactor.
struct Counter;

impl FeatureModule for Counter {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("counter"))
            .version("0.1.0")
            .transform(&COUNT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let count = |_: &(), view: &ToolShapeView| {
            let summary = format!("{} letters", view.output.summary.len());
            Change::Replaced(ToolOutput {
                summary,
                ..view.output.clone()
            })
        };
        ctx.hooks()
            .transform(&COUNT, &Arc::new(()), count)
            .map(drop)
    }
}

#[test]
fn a_transform_is_asked_after_the_one_it_names() {
    let show = FnTool::new("Show", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput {
            summary: "it is hunter2".into(),
            ..ToolOutput::default()
        })
    });
    let mut host = FeatureHost::new().tool(show).with(Hider).install(Counter);
    assert_eq!(
        host.call("Show", json!({})).text(),
        "14 letters",
        "of the text without the secret"
    );
}

const CONFIRM: HookKey<PreToolCall> = HookKey::new("confirm");

struct Confirm;

impl FeatureModule for Confirm {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("confirm"))
            .version("0.1.0")
            .gate(&CONFIRM)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .gate(&CONFIRM, &Arc::new(Confirming), Confirming::confirm)
            .map(drop)
    }
}

struct Confirming;

impl Confirming {
    fn confirm(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        match call.touches.iter().find_map(Touch::command) {
            Some(command) if command.contains("git push") => {
                Verdict::ask("Is this branch ready for others?")
                    .expires_after(Duration::from_secs(600))
            }
            _ => Verdict::allow(),
        }
    }
}

#[test]
fn the_gate_of_the_document_asks_a_person() {
    let mut host = FeatureHost::new().install(Confirm);
    let asked = host.ask::<PreToolCall>(shell_call("git push"));
    let Ruling::Ask {
        question,
        expires_after,
    } = asked
    else {
        panic!("{asked:?}")
    };
    assert!(
        question.contains("ready for others?") && expires_after == Some(Duration::from_secs(600)),
        "{question}"
    );
    assert_eq!(
        host.ask::<PreToolCall>(shell_call("git status")),
        Ruling::Allow
    );
    conformance(|| Confirm).assert();
}

const PATIENT: WrapKey = WrapKey::new("patient").tools(&["Fetch"]);

struct Patient;

impl FeatureModule for Patient {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("patient"))
            .display_name("Patience with what cannot be reached at once")
            .version("0.1.0")
            .wrap(&PATIENT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live);
        ctx.hooks().wrap(&PATIENT, &live)?;
        Ok(())
    }
}

struct Live;

impl ToolWrap for Live {
    fn again(&self, _: &ToolCallView, outcome: &CallOutcome, tries: u32) -> Option<Duration> {
        (outcome.status == ResultStatus::Error && tries < 3).then_some(Duration::from_secs(1))
    }
}

#[test]
fn the_wrapper_of_the_document_tries_again() {
    let runs = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&runs);
    let fetch = FnTool::new("Fetch", ToolEffect::ReadOnly, move |_, _| {
        let run = counts.fetch_add(1, Ordering::Relaxed);
        async move {
            match run {
                0 => Err(ToolError::new(ErrorKind::Unavailable, "not reached")),
                _ => Ok(ToolOutput {
                    summary: "reached".into(),
                    ..ToolOutput::default()
                }),
            }
        }
    });
    let mut host = FeatureHost::new().tool(fetch).install(Patient);
    assert_eq!(host.call("Fetch", json!({})).text(), "reached");
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    conformance(|| Patient).assert();
}

const CHECK: HookKey<TurnEnd> = HookKey::new("check");

struct Tested;

impl FeatureModule for Tested {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("tested"))
            .version("0.1.0")
            .gate(&CHECK)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .gate(&CHECK, &Arc::new(Checking), Checking::check)
            .map(drop)
    }
}

struct Checking;

impl Checking {
    fn check(&self, end: &TurnEndView) -> Verdict<TurnEnd> {
        match end.answer.as_deref() {
            Some(answer) if !answer.contains("Tested:") => {
                Verdict::again("Add a line `Tested:` that says what you ran.")
            }
            _ => Verdict::finish(),
        }
    }
}

#[test]
fn the_validator_of_the_document_has_the_model_go_on() {
    let mut host = FeatureHost::new().install(Tested);
    let end = host.turn(
        "Mend it.",
        [
            ScriptedAnswer::text("Done."),
            ScriptedAnswer::text("Done.\nTested: all."),
        ],
    );
    assert_eq!(
        (end.answer.as_deref(), end.steps),
        (Some("Done.\nTested: all."), 2)
    );
    conformance(|| Tested).assert();
}
