//! Who is written off for a thread that never comes back, and what the one who is loses.

use crate::fixtures::{pod, said};
use llm_worker::{ResultStatus, ToolContext, ToolEffect, ToolResult};
use pod::control::{AlertLevel, Event};
use pod::feature::*;
use pod::hook::EventView;
use pod::record::Record;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{Latch, PodRun, PodUnderTest, ScriptedAnswer, feature, within};

const SHORT: Duration = Duration::from_millis(20);
const OFF: &str = "did not return";

fn declaring(id: &str) -> FeatureDescriptorBuilder {
    FeatureDescriptor::builder(id.parse().unwrap()).version("1.0.0")
}

fn run(mut pod: PodUnderTest, what: &str) -> (PodUnderTest, PodRun) {
    (pod.grace, pod.paused) = (SHORT, false);
    within(what, move || {
        let ran = pod.run("go");
        assert_eq!(ran.end().answer.as_deref(), Some("went on"));
        (pod, ran)
    })
}

/// Who was said to be off.
fn off(ran: &PodRun) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Alert(alert) if alert.from.is_none() && alert.text.contains(OFF) => {
            Some(alert.text.clone())
        }
        _ => None,
    };
    let name = |text: String| text.split(": ").next().unwrap().to_owned();
    ran.events.iter().filter_map(text).map(name).collect()
}

fn statuses(pod: &PodUnderTest) -> Vec<ResultStatus> {
    let status = |(_, record)| {
        if let Record::ToolFinished(done) = record {
            Some(done.outcome.status)
        } else {
            None
        }
    };
    pod.records().into_iter().filter_map(status).collect()
}

trait Oracle: Send + Sync {
    fn ask(&self, how: String) -> ServiceFuture<'_, String>;
}

const ORACLE: ServiceKey<dyn Oracle> = ServiceKey::new("test.oracle.v1");

struct Slow(Latch);

impl Oracle for Slow {
    fn ask(&self, how: String) -> ServiceFuture<'_, String> {
        Box::pin(async move {
            match how.as_str() {
                "holds" => self.0.pass_blocking(),
                "waits" => self.0.pass().await,
                _ => {}
            }
            how
        })
    }
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Args {
    how: String,
}

const ASK: ToolKey<Args> = ToolKey::new("Ask", ToolEffect::ReadOnly, "Ask.").deadline(SHORT);

struct Asks(ServiceHandle<dyn Oracle>, Latch);

impl Asks {
    async fn ask(self: Arc<Self>, args: Args, _: ToolContext) -> ToolResult {
        if args.how == "alone" {
            self.1.pass_blocking();
        }
        match self.0.call(|oracle| oracle.ask(args.how)).await {
            Ok(answer) => said(&answer),
            Err(error) => said(&error.to_string()),
        }
    }
}

fn any() -> Vec<HostCapability> {
    let key = || std::borrow::Cow::Borrowed("*");
    let services = [
        HostCapability::ProvideService { key: key() },
        HostCapability::UseService { key: key() },
    ];
    [
        HostCapability::tool("*"),
        HostCapability::EmitUserAlert,
        HostCapability::WRITE_WORKSPACE,
    ]
    .into_iter()
    .chain([HostCapability::hook::<pod::hook::Event>()])
    .chain(services)
    .collect()
}

// Whoever has the thread in hand is who loses it: the service while it is being asked, else the one that asks.
#[test]
fn a_hanging_service_is_off_and_its_consumer_is_not() {
    for (how, who) in [
        ("holds", "builtin:oracle"),
        ("waits", "builtin:oracle"),
        ("alone", "builtin:asks"),
    ] {
        let gate = Latch::new(how);
        let held = gate.clone();
        let oracle = feature(
            declaring("builtin:oracle")
                .provides(ServiceDeclaration::of(ORACLE, "1.0.0"))
                .build(),
            {
                move |ctx| {
                    ctx.services()
                        .provide(ORACLE, Arc::new(Slow(held.clone())))
                        .map(drop)
                }
            },
        );
        let alone = gate.clone();
        let descriptor = declaring("builtin:asks")
            .requires(ServiceRequirement::required(ORACLE, "^1"))
            .tool(&ASK);
        let asks = feature(descriptor.build(), move |ctx| {
            let live = Arc::new(Asks(ctx.services().require(ORACLE)?, alone.clone()));
            ctx.tools().implement(&ASK, &live, Asks::ask).map(drop)
        });
        let ask = |how: &str| ScriptedAnswer::calls(&[("Ask", &format!("{{\"how\":\"{how}\"}}"))]);
        let mut pod = pod(
            vec![ask(how), ask("again"), ScriptedAnswer::text("went on")],
            Vec::new(),
        );
        pod.features = vec![(oracle, any()), (asks, any())];
        let (pod, ran) = run(pod, how);
        gate.open();
        assert_eq!(off(&ran), [who], "{how}");
        // The one that asked goes on, and is told that the service left.
        let goes_on = who == "builtin:oracle";
        assert_eq!(
            statuses(&pod).last() == Some(&ResultStatus::Ok),
            goes_on,
            "{how}: {:?}",
            statuses(&pod)
        );
        let left = pod.records().iter().any(|(_, record)| match record {
            Record::ToolFinished(done) => {
                done.outcome.summary.contains("builtin:oracle was removed")
            }
            _ => false,
        });
        assert_eq!(left, goes_on, "{how}");
        let noted = |record: &Record| matches!(record, Record::FeatureNote(n) if n.feature == who && n.text.contains(OFF));
        assert!(
            pod.records().iter().any(|(_, record)| noted(record)),
            "{how}"
        );
    }
}

const LATE: ToolKey<Args> = ToolKey::new("Late", ToolEffect::Effectful, "Be late.").deadline(SHORT);

struct Late {
    gate: Latch,
    tried: Latch,
    files: authority::Workspace,
    alerts: FeatureAlertSink,
    notes: RunningNotes,
    said: Mutex<Vec<String>>,
}

impl Late {
    async fn late(self: Arc<Self>, _: Args, _: ToolContext) -> ToolResult {
        self.gate.pass_blocking();
        let at = self.files.inside(&self.files.project().join("late.txt"));
        let told = [
            format!(
                "{:?}",
                at.and_then(|at| self.files.stage(&at, 7, b"late"))
                    .map_err(|error| error.kind())
                    .err()
            ),
            format!("{:?}", self.alerts.alert(AlertLevel::Info, "late").err()),
            format!("{:?}", self.notes.note("late").err()),
        ];
        self.said.lock().unwrap().extend(told);
        self.tried.open();
        said("late")
    }
}

#[test]
fn what_is_off_holds_nothing_any_more() {
    let gate = Latch::new("late");
    let tried = Latch::new("tried");
    let lives = Arc::new(Mutex::new(Vec::new()));
    let late = feature(
        declaring("builtin:late")
            .request(CapabilityRequest::required(
                HostCapability::WRITE_WORKSPACE,
                "to write",
            ))
            .request(CapabilityRequest::required(
                HostCapability::EmitUserAlert,
                "to alert",
            ))
            .tool(&LATE)
            .build(),
        {
            let gate = gate.clone();
            let tried = tried.clone();
            let lives = Arc::clone(&lives);
            move |ctx| {
                let files = ctx.services().fs(HostCapability::WORKSPACE)?;
                let alerts = ctx.alerts()?;
                let notes = ctx.diagnostics().later()?;
                let said = Mutex::default();
                let live = Arc::new(Late {
                    gate: gate.clone(),
                    tried: tried.clone(),
                    files,
                    alerts,
                    notes,
                    said,
                });
                lives.lock().unwrap().push(Arc::clone(&live));
                ctx.tools().implement(&LATE, &live, Late::late).map(drop)
            }
        },
    );
    let done = ScriptedAnswer::new()
        .wait_at(&tried)
        .say("went on")
        .stop(llm_worker::StopReason::EndTurn);
    let mut pod = pod(
        vec![ScriptedAnswer::calls(&[("Late", r#"{"how":""}"#)]), done],
        Vec::new(),
    );
    pod.features = vec![(late, any())];
    pod.points.at("tool:ended", 0, move || gate.open());
    let (pod, ran) = run(pod, "late");
    assert_eq!(off(&ran), ["builtin:late"]);
    let told = lives.lock().unwrap()[0].said.lock().unwrap().clone();
    assert_eq!(told, ["Some(Revoked)"; 3]);
    assert!(!pod.project.join("late.txt").exists());
}

const WATCHES: [HookKey<pod::hook::Event>; 9] = {
    const fn watch(name: &'static str) -> HookKey<pod::hook::Event> {
        HookKey::new(name).deadline(SHORT)
    }
    [
        watch("a"),
        watch("b"),
        watch("c"),
        watch("d"),
        watch("e"),
        watch("f"),
        watch("g"),
        watch("h"),
        watch("i"),
    ]
};

// One more than ends a pod.
#[test]
fn hanging_observers_of_one_feature_cost_one_thread() {
    let gate = Latch::new("observer");
    let held = gate.clone();
    let descriptor = WATCHES
        .iter()
        .fold(declaring("builtin:watches"), |builder, key| {
            builder.observe(key)
        })
        .build();
    let watches = feature(descriptor, move |ctx| {
        for key in &WATCHES {
            let live = Arc::new(held.clone());
            ctx.hooks()
                .observe(key, &live, |gate: &Latch, _: &EventView| {
                    gate.pass_blocking()
                })?;
        }
        Ok(())
    });
    let mut pod = pod(vec![ScriptedAnswer::text("went on")], Vec::new());
    pod.features = vec![(watches, any())];
    run(pod, "observers");
    assert_eq!(gate.came(), 1);
    gate.open();
}
