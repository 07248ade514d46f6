//! The host for one feature: everything a feature does is seen, and a kill anywhere loses nothing it was promised.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use llm_worker::ResultStatus;
use pod::feature::author::*;
use pod::feature::{DiagnosticCode, InstallOutcome, Revoke};
use pod::permission::{Rule, RuleDecision};
use pod::record::Record;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::{
    FeatureHost, FnTool, ManualClock, Ruling, ScriptedAnswer, killed_anywhere, shell_call,
};

const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 200,
    per_turn: 4,
};
const DO: ToolKey<DoArgs> = ToolKey::new("Do", ToolEffect::Effectful, "Do something.");
const NO_RM: HookKey<PreToolCall> = HookKey::new("no-rm");
const LOUD: HookKey<ToolOutcome> = HookKey::new("loud");
const HEARS: HookKey<Event> = HookKey::new("hears");
const COUNT: StateKey<u64> = StateKey::new("count", 1);
const EVER: StateKey<u64> = StateKey::new("ever", 1).scope(StateScope::User);

#[derive(Serialize, Deserialize, JsonSchema)]
struct DoArgs {
    what: String,
}

/// One of everything a feature can contribute.
struct Busy(ManualClock);

impl FeatureModule for Busy {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("busy"))
            .version("1.0.0")
            .request(CapabilityRequest::required(NOTIFY, "to tell"))
            .request(CapabilityRequest::optional(
                HostCapability::EmitUserAlert,
                "to alert",
            ))
            .request(CapabilityRequest::required(
                HostCapability::WRITE_WORKSPACE,
                "to write",
            ))
            .tool(&DO)
            .gate(&NO_RM)
            .transform(&LOUD)
            .observe(&HEARS)
            .state(&COUNT)
            .state(&EVER)
            .instruction("busy", "Be busy.")
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.diagnostics().note("installed")?;
        let live = Arc::new(Live {
            count: ctx.state(&COUNT)?,
            ever: ctx.state(&EVER)?,
            notify: ctx.notifications()?,
            alerts: ctx.alerts().ok(),
            notes: ctx.diagnostics().later()?,
            files: ctx.services().fs(HostCapability::WORKSPACE)?,
            clock: self.0.clone(),
            heard: AtomicU64::new(0),
        });
        ctx.tools().implement(&DO, &live, Live::act)?;
        ctx.hooks().gate(&NO_RM, &live, Live::no_rm)?;
        ctx.hooks().transform(&LOUD, &live, Live::loud)?;
        ctx.hooks().observe(&HEARS, &live, Live::hears)?;
        Ok(())
    }
}

struct Live {
    count: DurableState<u64>,
    ever: DurableState<u64>,
    notify: FeatureNotifySink,
    alerts: Option<FeatureAlertSink>,
    notes: RunningNotes,
    files: Workspace,
    clock: ManualClock,
    heard: AtomicU64,
}

impl Live {
    async fn act(self: Arc<Self>, args: DoArgs, _: ToolContext) -> ToolResult {
        let up = |count: &mut u64| {
            *count += 1;
            *count
        };
        let summary = match args.what.as_str() {
            "count" => self.count.update(up).await?.to_string(),
            "ever" => self.ever.update(up).await?.to_string(),
            "tell" => self
                .notify
                .notify_model("look here")
                .await?
                .number
                .to_string(),
            "alert" => {
                if let Some(alerts) = &self.alerts {
                    alerts.alert(AlertLevel::Warning, "mind the gap")?;
                }
                String::new()
            }
            "note" => self.notes.note("running").map(|()| String::new())?,
            "look" => self.files.project().join("a.txt").exists().to_string(),
            "time" => self.clock.now().to_string(),
            "heard" => self.heard.load(Ordering::Relaxed).to_string(),
            other => {
                return Err(ToolError::new(
                    ErrorKind::FixInput,
                    format!("what is {other}?"),
                ));
            }
        };
        Ok(ToolOutput {
            summary,
            content: String::new(),
            data: None,
        })
    }

    fn no_rm(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        match call.touches.iter().find_map(Touch::command) {
            Some(command) if command.starts_with("rm") => Verdict::deny("nothing is removed here"),
            Some(_) | None => Verdict::allow(),
        }
    }

    fn loud(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let summary = format!("{}!", view.outcome.summary);
        Change::Replaced(ToolOutput {
            summary,
            content: view.outcome.content.clone(),
            data: None,
        })
    }

    fn hears(&self, _: &EventView) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
}

fn busy() -> (FeatureHost, Busy) {
    let host = FeatureHost::new();
    let feature = Busy(host.clock());
    (host, feature)
}

fn what(what: &str) -> Value {
    json!({ "what": what })
}

#[test]
fn a_call_takes_the_whole_way() {
    let (host, feature) = busy();
    std::fs::write(host.project().join("a.txt"), "a").unwrap();
    let mut host = host.install(feature);
    assert_eq!(
        (
            host.report().outcome,
            host.report().installed_tools.as_slice()
        ),
        (InstallOutcome::Installed, &["Do".into()][..])
    );
    assert_eq!(host.call("Do", what("look")).text(), "true!");
    let bad = host.call_raw("Do", r#"{"waht":1}"#);
    assert!(
        bad.status == ResultStatus::Error && bad.summary.contains("waht"),
        "{bad:?}"
    );
    assert_eq!(host.call("Do", what("x")).status, ResultStatus::Error);
    let both = host.calls(&[("Do", r#"{"what":"count"}"#), ("Nobody", "{}")]);
    assert_eq!(
        (both[0].text().as_str(), both[1].status),
        ("1!", ResultStatus::Error)
    );
    let kinds: Vec<String> = host
        .records()
        .iter()
        .map(|(_, record)| record.kind().to_owned())
        .collect();
    for kind in [
        "tool_started",
        "tool_finished",
        "feature_state",
        "verdict",
        "features",
    ] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
    }
    assert!(host.requests()[0].system.contains("Be busy."));
    let before: u64 = host
        .call("Do", what("time"))
        .summary
        .trim_end_matches('!')
        .parse()
        .unwrap();
    host.advance(Duration::from_secs(2));
    let after: u64 = host
        .call("Do", what("time"))
        .summary
        .trim_end_matches('!')
        .parse()
        .unwrap();
    assert_eq!(after - before, 2_000_000);
    assert_ne!(host.call("Do", what("heard")).summary, "0!");
}

#[test]
fn gates_run_by_view_and_in_a_call_after_the_hosts_rules() {
    let (host, feature) = busy();
    let rm = Touch::Shell("rm x".to_owned());
    let stand_in = |name: &str| {
        let tool = FnTool::new(name, ToolEffect::Effectful, |_, _| async {
            Ok(ToolOutput::default())
        });
        tool.touching(vec![rm.clone()])
    };
    let rule = |tool: &str, decision| Rule::new(tool, decision);
    let rules = vec![
        rule("*", RuleDecision::Allow),
        rule("Denied", RuleDecision::Deny),
    ];
    let mut host = host
        .tool(stand_in("Sh"))
        .tool(stand_in("Denied"))
        .judge_by(rules)
        .install(feature);
    assert_eq!(host.ask::<PreToolCall>(shell_call("ls")), Ruling::Allow);
    assert!(
        matches!(host.ask::<PreToolCall>(shell_call("rm x")), Ruling::Deny { reason } if reason.contains("user:busy"))
    );
    let refused = host.call("Sh", json!({}));
    assert!(
        refused.status == ResultStatus::Refused && refused.summary.contains("nothing is removed"),
        "{refused:?}"
    );
    let denied = host.call("Denied", json!({}));
    assert!(
        denied.status == ResultStatus::Refused && !denied.summary.contains("user:busy"),
        "{denied:?}"
    );
}

#[test]
fn what_it_says_is_read_where_it_was_said() {
    let (host, feature) = busy();
    let mut host = host.install(feature);
    assert_eq!(
        (host.notifications(), host.alerts(), host.notes()),
        (vec![], vec![], vec!["installed".to_owned()])
    );
    for word in ["tell", "alert", "note"] {
        assert_eq!(host.call("Do", what(word)).status, ResultStatus::Ok);
    }
    let [told] = host.notifications().try_into().unwrap();
    assert!(told.text == "look here" && told.delivered, "{told:?}");
    let [alert] = host.alerts().try_into().unwrap();
    assert_eq!(
        (alert.level, alert.text.as_str()),
        (AlertLevel::Warning, "mind the gap")
    );
    host.restart();
    assert_eq!(host.notes(), ["installed", "running"]);
}

#[test]
fn state_of_every_scope_is_read_and_survives() {
    let (host, feature) = busy();
    let mut host = host.install(feature);
    assert_eq!((host.state(&COUNT), host.state(&EVER)), (0, 0));
    for word in ["count", "count", "ever"] {
        host.call("Do", what(word));
    }
    assert_eq!((host.state(&COUNT), host.state(&EVER)), (2, 1));
    host.restart();
    assert_eq!(host.call("Do", what("count")).text(), "3!");
    host.kill();
    assert_eq!(
        (
            host.call("Do", what("count")).text().as_str(),
            host.call("Do", what("ever")).text().as_str()
        ),
        ("4!", "2!")
    );
}

#[test]
fn requests_are_granted_unless_named_and_denials_win() {
    let all = || {
        [
            NOTIFY,
            HostCapability::EmitUserAlert,
            HostCapability::WRITE_WORKSPACE,
        ]
    };
    let with = |granted: Vec<HostCapability>, denied: Vec<HostCapability>| {
        let (host, feature) = busy();
        let host = granted.into_iter().fold(host, FeatureHost::grant);
        let host = denied
            .into_iter()
            .fold(host, FeatureHost::deny)
            .try_install(feature);
        (
            host.report().outcome,
            host.report().diagnostics.first().map(|d| d.code),
        )
    };
    let note = Some(DiagnosticCode::Note);
    assert_eq!(with(vec![], vec![]), (InstallOutcome::Installed, note));
    assert_eq!(
        with(all().to_vec(), vec![]),
        (InstallOutcome::Installed, note)
    );
    let (outcome, code) = with(vec![NOTIFY, HostCapability::WRITE_WORKSPACE], vec![]);
    assert_eq!(
        (outcome, code),
        (
            InstallOutcome::Degraded,
            Some(DiagnosticCode::OptionalCapabilityDenied)
        )
    );
    let skipped = (
        InstallOutcome::Skipped,
        Some(DiagnosticCode::RequiredCapabilityDenied),
    );
    assert_eq!(with(vec![], vec![NOTIFY]), skipped);
    assert_eq!(
        with(all().to_vec(), vec![HostCapability::SESSION_STATE]),
        skipped
    );
    let (outcome, _) = with(vec![], vec![HostCapability::tool("Do")]);
    assert_eq!(outcome, InstallOutcome::Degraded);
}

#[test]
fn killed_at_any_point_what_was_promised_is_there() {
    let make = || {
        let (host, feature) = busy();
        host.install(feature)
    };
    let promised = std::cell::Cell::new(0);
    let act = |host: &mut testkit::FeatureUnderTest| {
        promised.set(0);
        for n in 1..=2 {
            if host.call("Do", what("count")).status == ResultStatus::Ok {
                promised.set(n);
            }
        }
        host.call("Do", what("tell"));
    };
    let kills = killed_anywhere(make, act, |host, place| {
        assert!(
            host.state(&COUNT) >= promised.get(),
            "{place}: {} of {}",
            host.state(&COUNT),
            promised.get()
        );
        host.turn("again", [ScriptedAnswer::text("done")]);
        assert!(
            host.notifications().iter().all(|told| told.delivered),
            "{place}: {:?}",
            host.notifications()
        );
        let delivered = |(_, record): &(u64, Record)| {
            record.kind() == "system_item" && format!("{record:?}").contains("look here")
        };
        assert!(
            host.records()
                .iter()
                .filter(|record| delivered(record))
                .count()
                <= 1,
            "{place}"
        );
    });
    println!("{kills} kills");
    assert!(kills > 40, "{kills}");
}

#[test]
#[should_panic(expected = "do what may kill it within `dies`")]
fn a_kill_that_nobody_expects_says_what_to_do() {
    let (host, feature) = busy();
    let mut host = host.install(feature);
    host.kill_at("tool_started", 0);
    host.call("Do", what("count"));
}

#[test]
#[should_panic(expected = "user:busy was not installed")]
fn a_feature_that_is_skipped_says_why() {
    let (host, feature) = busy();
    let _host = host.deny(NOTIFY).install(feature);
}

// A grant of a tool or a hook is taken back like any other: what stood under it is not called any more, and a gate that
// may not be asked refuses.
#[test]
fn tools_and_hooks_go_with_their_grants() {
    let other = FnTool::new("Other", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput {
            summary: "other".to_owned(),
            content: String::new(),
            data: None,
        })
    });
    let host = FeatureHost::new().tool(other);
    let clock = host.clock();
    let mut host = host.install(Busy(clock));
    let plain = |host: &mut testkit::FeatureUnderTest| host.call("Other", json!({})).summary;
    let loud = plain(&mut host);
    assert_ne!(loud, "other", "the transform is there");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let id = FeatureId::user("busy");
    let revoke = |host: &testkit::FeatureUnderTest, capability: HostCapability| {
        runtime.block_on(host.registry().revoke(&id, &capability, Revoke::Now))
    };
    assert_eq!(revoke(&host, HostCapability::tool("Else")), 0);
    assert_eq!(
        host.call("Do", json!({"what": "alert"})).status,
        ResultStatus::Ok
    );
    assert_eq!(revoke(&host, HostCapability::tool("Do")), 1);
    let refused = host.call("Do", json!({"what": "alert"}));
    let words = "Do was revoked: user:busy is no longer allowed to offer it";
    assert!(
        refused.status == ResultStatus::Refused && refused.text().contains(words),
        "{refused:?}"
    );
    assert_eq!(
        plain(&mut host),
        loud,
        "what stands under other grants stays"
    );
    assert_eq!(revoke(&host, HostCapability::ANY_RESULT), 1);
    assert_eq!(plain(&mut host), "other");
    assert_eq!(revoke(&host, HostCapability::hook::<PreToolCall>()), 1);
    let refused = host.call("Other", json!({}));
    let words = "user:busy (gate `no-rm`): its grant was revoked";
    assert!(
        refused.status == ResultStatus::Refused && refused.text().contains(words),
        "{refused:?}"
    );
}

// A test is no kinder than a new installation of yoi.
#[test]
fn calls_are_judged_by_the_default_table() {
    let stand_in = |name: &str, touch: Touch| {
        let tool = FnTool::new(name, ToolEffect::Effectful, |_, _| async {
            Ok(ToolOutput::default())
        });
        tool.touching(vec![touch])
    };
    let tools = |host: FeatureHost| {
        host.tool(stand_in("Inside", Touch::Write("a.txt".into())))
            .tool(stand_in("Outside", Touch::Write("/etc/hostname".into())))
            .tool(stand_in("Far", Touch::RemoteWrite("tracker".to_owned())))
    };
    let statuses = |host: FeatureHost| {
        let (_, feature) = busy();
        let mut host = tools(host).install(feature);
        ["Inside", "Outside", "Far"].map(|tool| host.call(tool, json!({})).status)
    };
    let ok = ResultStatus::Ok;
    let refused = ResultStatus::Refused;
    assert_eq!(statuses(FeatureHost::new()), [ok, refused, refused]);
    assert_eq!(
        statuses(FeatureHost::new().permit_all()),
        [ok, refused, ok],
        "no rule opens all of the disk"
    );
}
