//! What a hook can make durable: a request through a sink it was granted, and nothing else.

use crate::rig::NOTIFY;
use async_trait::async_trait;
use llm_worker::effect::Outcome;
use pod::feature::*;
use pod::hook::{Hook, HookFailure, PreRequest, PromptSubmit, PromptView, RequestView, Verdict};
use pod::record::{Record, SystemItem};
use std::sync::Arc;
use testkit::{ModelScript, PodUnderTest, ScriptedAnswer};

const TELL: HookKey<PreRequest> = HookKey::new("tell");
const TELL_EARLY: HookKey<PromptSubmit> = HookKey::new("tell-early");
const STOP: HookKey<PreRequest> = HookKey::new("stop");

/// Tells the model something from its gates, and waits for the receipt.
struct Teller;

struct Telling(FeatureNotifySink);

#[async_trait]
impl Hook<PreRequest> for Telling {
    async fn call(&self, view: &RequestView) -> Result<Verdict<PreRequest>, HookFailure> {
        self.0
            .notify_model(format!("before request {}", view.number))
            .await
            .unwrap();
        Ok(Verdict::allow())
    }
}

#[async_trait]
impl Hook<PromptSubmit> for Telling {
    async fn call(&self, _: &PromptView) -> Result<Verdict<PromptSubmit>, HookFailure> {
        self.0.notify_model("before the turn").await.unwrap();
        Ok(Verdict::allow())
    }
}

impl FeatureModule for Teller {
    fn descriptor(&self) -> FeatureDescriptor {
        let asks = CapabilityRequest::required(NOTIFY, "to tell");
        FeatureDescriptor::builder(FeatureId::builtin("a-teller"))
            .version("1.0.0")
            .request(asks)
            .gate(&TELL)
            .gate(&TELL_EARLY)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let sink = ctx.notifications()?;
        let id = ctx.feature_id().clone();
        ctx.hooks().register(HookContribution::new(
            id.clone(),
            &TELL,
            Arc::new(Telling(sink.clone())),
        ))?;
        ctx.hooks()
            .register(HookContribution::new(
                id,
                &TELL_EARLY,
                Arc::new(Telling(sink)),
            ))
            .map(drop)
    }
}

/// Refuses every request, after the teller was asked.
struct Stopper;

impl FeatureModule for Stopper {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::builtin("b-stopper"))
            .version("1.0.0")
            .gate(&STOP)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let refuse = |_: &(), _: &RequestView| Verdict::<PreRequest>::abort("no");
        ctx.hooks().gate(&STOP, &Arc::new(()), refuse).map(drop)
    }
}

// covers: INV-08
#[test]
fn what_a_hook_made_durable_is_kept_when_a_later_one_refuses() {
    for refused in [true, false] {
        let script = ModelScript::new([ScriptedAnswer::text("done")]);
        let mut pod = PodUnderTest::new(&ambient::claim(), script, Vec::new());
        let gates = vec![
            NOTIFY,
            HostCapability::hook::<PreRequest>(),
            HostCapability::hook::<PromptSubmit>(),
        ];
        pod.features = vec![(Arc::new(Teller), gates.clone())];
        if refused {
            pod.features.push((Arc::new(Stopper), gates));
        }
        pod.paused = false;
        let outcome = pod.run("go").end().outcome.clone();
        assert_eq!(
            matches!(outcome, Outcome::Aborted { .. }),
            refused,
            "{outcome:?}"
        );
        let said: Vec<String> = pod
            .records()
            .into_iter()
            .filter_map(|(_, record)| match record {
                Record::SystemItem(SystemItem::Notification { text, .. }) => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(said, ["before the turn", "before request 1"]);
        assert!(pod.state().notices.is_empty());
        // Without a refusal the request carries them.
        assert_eq!(pod.script.requests().len(), usize::from(!refused));
    }
}
