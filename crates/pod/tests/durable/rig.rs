//! A feature that counts in its state and tells the model, driven by a tool of its own.
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolOutput, ToolResult};
use pod::control::AlertLevel;
use pod::feature::*;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use testkit::{ModelScript, PodUnderTest, ScriptedAnswer};

pub(crate) const ID: FeatureId = FeatureId::builtin("counter");
pub(crate) const COUNT: StateKey<Count> =
    StateKey::new("count", 2).migrating(|version, old| match version {
        1 => old
            .as_u64()
            .map(|n| Count {
                n,
                words: Vec::new(),
            })
            .ok_or_else(|| "not a number".to_owned()),
        other => Err(format!("version {other} is unknown")),
    });
pub(crate) const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 40,
    per_turn: 2,
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) n: u64,
    pub(crate) words: Vec<String>,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct DoArgs {
    #[serde(default)]
    what: String,
}

const DO: ToolKey<DoArgs> = ToolKey::new("Do", ToolEffect::Effectful, "Do something.");

/// What the feature can do, and what it was answered.
pub(crate) struct Live {
    pub(crate) state: DurableState<Count>,
    pub(crate) notify: FeatureNotifySink,
    alerts: FeatureAlertSink,
    pub(crate) notes: RunningNotes,
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
}

impl Live {
    /// `add` waits, `piggyback` does not; `tell WORDS`, `once KEY WORDS`, `alert N`, `note N`, `grow BYTES`, `panic`, `read`.
    async fn act(self: Arc<Self>, args: DoArgs, _: ToolContext) -> ToolResult {
        let (verb, rest) = args.what.split_once(' ').unwrap_or((&args.what, ""));
        let many = || rest.parse::<usize>().unwrap();
        let said = match verb {
            "add" => self
                .state
                .update(|count| {
                    count.n += 1;
                    count.n
                })
                .await
                .map(|n| n.to_string())
                .map_err(|e| e.to_string()),
            "piggyback" => {
                drop(self.state.update(|count| count.n += 1));
                Ok("done".to_owned())
            }
            "both" => {
                let first = self.state.update(|count| count.n += 1);
                let second = self.state.update(|count| count.n += 10);
                let second = second.await;
                let first = first.await;
                Ok(format!("{first:?} {second:?}"))
            }
            "grow" => self
                .state
                .update(|count| count.words.push("x".repeat(many())))
                .await
                .map(|()| String::new())
                .map_err(|e| e.to_string()),
            "panic" => self
                .state
                .update(|_| panic!("on purpose"))
                .await
                .map(|()| String::new())
                .map_err(|e| e.to_string()),
            "read" => Ok(self.state.read().n.to_string()),
            "tell" => self
                .notify
                .notify_model(rest)
                .await
                .map(|receipt| receipt.number.to_string())
                .map_err(|e| format!("{:?}", e.kind())),
            "once" => {
                let (key, words) = rest.split_once(' ').unwrap();
                let both = async {
                    tokio::join!(
                        self.notify.notify_model_once(key, words),
                        self.notify.notify_model_once(key, "other")
                    )
                };
                let (one, two) = both.await;
                // What the feature keeps of it: a kill in between makes it send again.
                let kept = self.state.update(|count| count.n += 1).await;
                match (one, two, kept) {
                    (Ok(one), Ok(two), Ok(())) if one == two => Ok(one.number.to_string()),
                    other => Err(format!("{other:?}")),
                }
            }
            "alert" => Ok(format!(
                "{:?}",
                (0..many())
                    .map(|n| self.alerts.alert(AlertLevel::Info, &format!("alert {n}")))
                    .find_map(Result::err)
            )),
            "note" => Ok(format!(
                "{:?}",
                (0..many())
                    .map(|n| self.notes.note(&format!("note {n}")))
                    .find_map(Result::err)
            )),
            _ => {
                return Err(ToolError::new(
                    llm_worker::ErrorKind::FixInput,
                    "no such verb",
                ));
            }
        };
        let said = said.unwrap_or_else(|error| error);
        self.heard
            .lock()
            .unwrap()
            .push(format!("{}: {said}", args.what));
        Ok(ToolOutput {
            summary: said,
            content: String::new(),
            data: None,
        })
    }
}

/// The feature; every install puts its live part where the test finds it.
#[derive(Clone, Default)]
pub(crate) struct Counter {
    pub(crate) live: Arc<Mutex<Option<Arc<Live>>>>,
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
}

impl FeatureModule for Counter {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .request(CapabilityRequest::required(NOTIFY, "to tell"))
            .request(CapabilityRequest::required(
                HostCapability::EmitUserAlert,
                "to alert",
            ))
            .tool(&DO)
            .state(&COUNT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let notify = ctx.notifications()?;
        let alerts = ctx.alerts()?;
        let notes = ctx.diagnostics().later()?;
        let live = Arc::new(Live {
            state: ctx.state(&COUNT)?,
            notify,
            alerts,
            notes,
            heard: Arc::clone(&self.heard),
        });
        *self.live.lock().unwrap() = Some(Arc::clone(&live));
        ctx.tools().implement(&DO, &live, Live::act).map(drop)
    }
}

/// Everything the counter asks for.
pub(crate) fn grants() -> Vec<HostCapability> {
    vec![
        HostCapability::tool("*"),
        HostCapability::SESSION_STATE,
        NOTIFY,
        HostCapability::EmitUserAlert,
    ]
}

/// One answer that calls `Do` with each of these.
pub(crate) fn calls(whats: &[&str]) -> ScriptedAnswer {
    let arguments: Vec<String> = whats
        .iter()
        .map(|what| serde_json::json!({ "what": what }).to_string())
        .collect();
    let calls: Vec<(&str, &str)> = arguments
        .iter()
        .map(|arguments| ("Do", arguments.as_str()))
        .collect();
    ScriptedAnswer::calls(&calls)
}

/// A pod whose model does these things, one step each, and then stops.
pub(crate) fn pod(steps: &[&[&str]]) -> (PodUnderTest, Counter) {
    let answers = steps.iter().map(|whats| calls(whats));
    let mut pod = PodUnderTest::new(
        &ambient::claim(),
        ModelScript::new(answers.chain([ScriptedAnswer::text("done")])),
        Vec::new(),
    );
    let counter = Counter::default();
    pod.features = vec![(Arc::new(counter.clone()), grants())];
    (pod, counter)
}

impl Counter {
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// What the newest install read.
    pub(crate) fn state(&self) -> DurableState<Count> {
        self.live.lock().unwrap().as_ref().unwrap().state.clone()
    }
}
