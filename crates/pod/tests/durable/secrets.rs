//! A canary: a feature that spreads a secret by every way it has, and where it must not turn up.

use authority::{Redactor, Secret};
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolOutput, ToolResult};
use pod::control::AlertLevel;
use pod::feature::*;
use pod::hook::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use testkit::{ModelScript, PodUnderTest, ScriptedAnswer};

/// With a line end and a quote: every escape of them hides it from whoever looks too late.
const CANARY: &str = "canary-9f8e\n7d\"6c5b4a";
/// What no place may show of it, whatever became of the characters between.
const PARTS: [&str; 2] = ["canary-9f", "c5b4a"];
const NAME: &str = "‹secret bird›";
const ID: FeatureId = FeatureId::builtin("leak");
const LEAK: ToolKey<Leak> =
    ToolKey::new("Leak", ToolEffect::Effectful, "Leak.").touching(|args: &Leak| {
        if args.how == "prepare" {
            panic!("{CANARY}")
        }
        Vec::new()
    });
const GATE: HookKey<PreToolCall> = HookKey::new("leak");
const WORDS: HookKey<hook::ToolOutcome> = HookKey::new("leak-words");
const ARGUMENTS: HookKey<hook::ToolArguments> = HookKey::new("leak-arguments");
const STATE: StateKey<String> = StateKey::new("leak", 1);
const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 400,
    per_turn: 20,
};

use pod::hook;

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Leak {
    how: String,
}

/// The secret across every cut that is made anywhere.
fn edges() -> String {
    let mut text = String::new();
    for cut in [512, 2048, 4096] {
        text.push_str(&"x".repeat(cut - text.len() - CANARY.len() / 2));
        text.push_str(CANARY);
    }
    text
}

struct Live {
    notify: FeatureNotifySink,
    alerts: FeatureAlertSink,
    notes: RunningNotes,
    state: DurableState<String>,
}

impl Live {
    async fn leak(self: Arc<Self>, args: Leak, cx: ToolContext) -> ToolResult {
        let long = || format!("{}\n{CANARY}{CANARY}\n", "x".repeat(40)).repeat(2000);
        match args.how.as_str() {
            "summary" => Ok(ToolOutput {
                summary: CANARY.to_owned(),
                content: String::new(),
                data: None,
            }),
            "content" => Ok(ToolOutput {
                summary: "ok".to_owned(),
                content: format!("a {CANARY} b"),
                data: None,
            }),
            "data" => Ok(ToolOutput {
                summary: NAME.to_owned(),
                data: Some(serde_json::json!({ CANARY: [CANARY, long()] })),
                ..ToolOutput::default()
            }),
            "long" => Ok(ToolOutput {
                summary: "ok".to_owned(),
                content: long(),
                data: None,
            }),
            "pieces" => {
                for byte in long().as_bytes().chunks(7) {
                    cx.host.write_output(byte)?;
                }
                Ok(ToolOutput::default())
            }
            "edge" => Err(ToolError::new(ErrorKind::FixInput, edges())),
            "panic-edge" => panic!("{}", edges()),
            "error" => Err(ToolError::new(ErrorKind::FixInput, format!("no: {CANARY}"))),
            "panic" => panic!("{CANARY}"),
            "notify" => match self.notify.notify_model(format!("look: {CANARY}")).await {
                Ok(_) => Ok(ToolOutput::default()),
                Err(error) => Err(ToolError::new(error.kind(), error.to_string())),
            },
            "alert" => {
                for text in [CANARY.to_owned(), edges()] {
                    self.alerts.alert(AlertLevel::Error, &text).unwrap();
                    self.notes.note(&text).unwrap();
                }
                Ok(ToolOutput::default())
            }
            "state" => {
                let told = self
                    .state
                    .update(|state| CANARY.clone_into(state))
                    .await
                    .unwrap_err();
                Ok(ToolOutput {
                    summary: format!("{:?}", told.kind()),
                    content: told.to_string(),
                    data: None,
                })
            }
            _ => Ok(ToolOutput {
                summary: "fine".to_owned(),
                content: String::new(),
                data: None,
            }),
        }
    }

    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        if call.arguments.contains("deny") {
            Verdict::deny(format!("because of {CANARY}"))
        } else if call.arguments.contains("gate") {
            panic!("{CANARY}")
        } else {
            Verdict::allow()
        }
    }

    fn arguments(&self, view: &ToolCallView) -> Change<serde_json::Value> {
        match view.arguments.contains("rewrite") {
            true => Change::Replaced(serde_json::json!({ "how": format!("fine {CANARY}") })),
            false => Change::Unchanged,
        }
    }

    fn words(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        match view.call.arguments.contains("words") {
            true => Change::Replaced(ToolOutput {
                summary: "new".to_owned(),
                content: CANARY.to_owned(),
                data: None,
            }),
            false => Change::Unchanged,
        }
    }
}

struct Leaks;

impl FeatureModule for Leaks {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .request(CapabilityRequest::required(NOTIFY, "to leak"))
            .request(CapabilityRequest::required(
                HostCapability::EmitUserAlert,
                "to leak",
            ))
            .tool(&LEAK)
            .gate(&GATE)
            .transform(&WORDS)
            .transform(&ARGUMENTS)
            .state(&STATE)
            .instruction("leak", "Leak.")
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let notify = ctx.notifications()?;
        let alerts = ctx.alerts()?;
        let notes = ctx.diagnostics().later()?;
        ctx.diagnostics().note(CANARY)?;
        ctx.diagnostics().note(&edges())?;
        ctx.instructions().set("leak", format!("Say {CANARY}."))?;
        let live = Arc::new(Live {
            notify,
            alerts,
            notes,
            state: ctx.state(&STATE)?,
        });
        ctx.tools().implement(&LEAK, &live, Live::leak)?;
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.hooks().transform(&WORDS, &live, Live::words)?;
        ctx.hooks().transform(&ARGUMENTS, &live, Live::arguments)?;
        Ok(())
    }
}

/// Every file below a directory.
fn files(dir: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![(path.display().to_string(), std::fs::read(&path).unwrap())]
            }
        })
        .collect()
}

#[test]
fn a_secret_is_in_no_record_no_blob_no_request_and_on_no_screen() {
    let ways = [
        "summary",
        "content",
        "data",
        "long",
        "pieces",
        "error",
        "edge",
        "panic",
        "panic-edge",
        "prepare",
        "notify",
        "alert",
        "state",
        "deny",
        "gate",
        "words",
        "rewrite",
        "fine",
    ];
    let answers = ways
        .iter()
        .map(|how| ScriptedAnswer::calls(&[("Leak", &format!("{{\"how\":\"{how}\"}}"))]));
    let ambient = ambient::claim();
    let mut pod = PodUnderTest::new(
        &ambient,
        ModelScript::new(answers.chain([ScriptedAnswer::text("done")])),
        Vec::new(),
    );
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::SESSION_STATE,
        NOTIFY,
        HostCapability::EmitUserAlert,
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<hook::ToolOutcome>(),
        HostCapability::hook::<hook::ToolArguments>(),
        HostCapability::ANY_RESULT,
        HostCapability::ANY_ARGUMENTS,
    ];
    pod.features = vec![(Arc::new(Leaks), grants)];
    pod.paused = false;
    pod.redactor = Redactor::new([&Secret::new(&ambient, "bird", CANARY.to_owned())]).unwrap();
    let ran = pod.run("go");
    ran.end();
    let shown = format!("{:?}", ran.events);
    let requests = pod
        .script
        .bodies()
        .iter()
        .map(|body| String::from_utf8_lossy(body).into_owned())
        .collect::<String>();
    let mut places = vec![
        ("the screen".to_owned(), shown.into_bytes()),
        ("the requests".to_owned(), requests.into_bytes()),
    ];
    places.extend(files(&pod.dir));
    let found = |bytes: &[u8], what: &str| {
        bytes
            .windows(what.len())
            .any(|window| window == what.as_bytes())
    };
    for (place, bytes) in &places {
        for part in PARTS {
            assert!(!found(bytes, part), "{place}: {part}");
        }
    }
    // It was there: its name stands in its place, once for each way that shows words.
    assert!(found(&places[0].1, NAME) && found(&places[1].1, NAME));
    let results: Vec<String> = pod
        .records()
        .iter()
        .filter_map(|(_, record)| match record {
            pod::record::Record::ToolFinished(finished) => Some(finished.outcome.text()),
            _ => None,
        })
        .collect();
    for (how, result) in ways.iter().zip(&results) {
        let named = !matches!(*how, "notify" | "alert" | "words" | "rewrite" | "fine");
        assert_eq!(result.contains(NAME), named, "{how}: {result:.200}");
    }
}
