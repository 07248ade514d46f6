//! Grants that are taken back while what is under them runs.
#![allow(clippy::unwrap_used, reason = "a rig that fails is a failed test")]

use async_trait::async_trait;
use llm_worker::ResultStatus;
use pod::feature::author::*;
use pod::feature::{HookContribution, Revoke};
use pod::hook::{Hook, HookFailure};
use serde_json::json;
use std::pin::pin;
use std::time::Duration;
use testkit::{FeatureHost, Latch, within};

const ID: FeatureId = FeatureId::user("parks");
/// Soon enough for a call that is not cut off to fail the test.
const SOON: Duration = Duration::from_secs(2);
const LOOK: ToolKey<Park> = ToolKey::new("Look", ToolEffect::ReadOnly, "Look.").deadline(SOON);
const AGAIN: ToolKey<Park> = ToolKey::new("Again", ToolEffect::Idempotent, "Again.").deadline(SOON);
const SEND: ToolKey<Park> = ToolKey::new("Send", ToolEffect::Effectful, "Send.").deadline(SOON);
const GATE: HookKey<PreToolCall> = HookKey::new("gate").deadline(SOON);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Park {}

/// Its tools or its gate wait.
#[derive(Clone)]
struct Parks {
    at: Latch,
    tools: bool,
}

impl FeatureModule for Parks {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(ID).version("1.0.0");
        builder
            .tool(&LOOK)
            .tool(&AGAIN)
            .tool(&SEND)
            .gate(&GATE)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(self.clone());
        for tool in [&LOOK, &AGAIN, &SEND] {
            ctx.tools().implement(tool, &live, Self::act)?;
        }
        ctx.hooks()
            .register(HookContribution::new(ID, &GATE, live))?;
        Ok(())
    }
}

impl Parks {
    async fn act(self: Arc<Self>, _: Park, cx: ToolContext) -> ToolResult {
        cx.host.write_output(b"so far")?;
        if self.tools {
            self.at.pass().await;
        }
        Ok(ToolOutput {
            summary: "done".to_owned(),
            content: String::new(),
            data: None,
        })
    }
}

#[async_trait]
impl Hook<PreToolCall> for Parks {
    async fn call(&self, _: &ToolCallView) -> Result<Verdict<PreToolCall>, HookFailure> {
        if !self.tools {
            self.at.pass().await;
        }
        Ok(Verdict::allow())
    }
}

/// Takes the grant back while a call of `tool` waits, and lets the call go on where `opens`: what came of the call, and
/// whether the grant was gone at once.
fn revoked(
    tools: bool,
    tool: &'static str,
    how: Revoke,
    opens: bool,
) -> (ResultStatus, String, bool) {
    let at = Latch::new("parked");
    let mut host = FeatureHost::new()
        .grace(Duration::from_millis(20))
        .install(Parks {
            at: at.clone(),
            tools,
        });
    let registry = Arc::clone(host.registry());
    let capability = if tools {
        HostCapability::tool(tool)
    } else {
        HostCapability::hook::<PreToolCall>()
    };
    let revoker = std::thread::spawn(move || {
        at.wait_for(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut revoking = pin!(registry.revoke(&ID, &capability, how));
            let at_once = tokio::select! {
                biased;
                doors = &mut revoking => Some(doors),
                () = std::future::ready(()) => None,
            };
            if opens {
                at.open();
            }
            let doors = match at_once {
                Some(doors) => doors,
                None => revoking.await,
            };
            assert_eq!(doors, 1);
            at_once.is_some()
        })
    });
    let outcome = within(tool, move || host.call(tool, json!({})));
    (outcome.status, outcome.text(), revoker.join().unwrap())
}

#[test]
fn a_call_that_runs_ends_with_its_grant_or_is_waited_for() {
    let unknown = "Send was revoked while it ran: outcome unknown; verify before retrying\nso far";
    let now = Revoke::Now;
    let soon = Revoke::Drain(Duration::from_millis(20));
    let later = Revoke::Drain(Duration::from_secs(60));
    let cases = [
        ("Send", now, unknown),
        ("Send", soon, unknown),
        (
            "Look",
            now,
            "Look was revoked while it ran: interrupted; safe to run again\nso far",
        ),
        (
            "Again",
            now,
            "Again was revoked while it ran: interrupted; repeating is safe\nso far",
        ),
    ];
    for (tool, how, words) in cases {
        let (status, text, _) = revoked(true, tool, how, false);
        assert_eq!(
            (status, text.as_str()),
            (ResultStatus::Interrupted, words),
            "{tool} {how:?}"
        );
    }
    let whole = (ResultStatus::Ok, "done\nso far".to_owned(), false);
    assert_eq!(
        revoked(true, "Send", later, true),
        whole,
        "a drain waits for it"
    );
}

#[test]
fn a_gate_that_thinks_ends_with_its_grant_or_is_waited_for() {
    let now = Revoke::Now;
    let soon = Revoke::Drain(Duration::from_millis(20));
    let later = Revoke::Drain(Duration::from_secs(60));
    for how in [now, soon] {
        let (status, text, _) = revoked(false, "Send", how, false);
        let words = "user:parks (gate `gate`): its grant was revoked";
        assert!(
            status == ResultStatus::Refused && text.contains(words),
            "{how:?}: {text}"
        );
    }
    let whole = (ResultStatus::Ok, "done\nso far".to_owned(), false);
    assert_eq!(
        revoked(false, "Send", later, true),
        whole,
        "a drain waits for it"
    );
}
