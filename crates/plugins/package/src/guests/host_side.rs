//! What a guest may ask of the host while it handles a request. Each is a handle that its feature was granted.

use super::CONTRACT;
use super::reach::Reach;
use super::wire::Refused;
use super::within::{Within, granted, read};
use llm_worker::ErrorKind;
use pod::feature::author::{AlertLevel, FeatureAlertSink, FeatureNotifySink, RunningNotes};
use pod::feature::{DurableState, FeatureId, FeatureInstallContext, FeatureInstallError};
use pod::feature::{FeatureDescriptor, HostCapability, SinkError, StateError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The longest text of a log line, in bytes.
const MAX_LOG: usize = 4096;

const OUTSIDE: &str = "an output outside of a call";

pub(crate) struct HostSide {
    feature: FeatureId,
    states: BTreeMap<String, DurableState<Value>>,
    notifications: Option<FeatureNotifySink>,
    alerts: Option<FeatureAlertSink>,
    pub(super) notes: Option<RunningNotes>,
    reach: Reach,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notify {
    text: String,
    key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said<L> {
    #[serde(default)]
    level: L,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replace {
    name: String,
    revision: u64,
    value: Value,
}

impl HostSide {
    /// The handles that a feature declares and was granted.
    pub(crate) fn of(
        ctx: &mut FeatureInstallContext<'_>,
        descriptor: &FeatureDescriptor,
        package: PathBuf,
    ) -> Result<Self, FeatureInstallError> {
        let states = descriptor.states.iter();
        let states = states.map(|state| Ok((state.name.clone(), ctx.foreign_state(state)?)));
        let states = states.collect::<Result<_, FeatureInstallError>>()?;
        let granted = ctx.grants().granted().to_vec();
        let notifies = |granted: &HostCapability| {
            matches!(granted, HostCapability::EmitModelNotification { .. })
        };
        let notifies = granted.iter().any(notifies);
        let alerts = granted.contains(&HostCapability::EmitUserAlert);
        Ok(Self {
            feature: descriptor.id.clone(),
            states,
            notifications: notifies.then(|| ctx.notifications()).transpose()?,
            alerts: alerts.then(|| ctx.alerts()).transpose()?,
            // There is no pod where a plan is tried.
            notes: ctx
                .pod_name()
                .is_some()
                .then(|| ctx.diagnostics().later())
                .transpose()?,
            reach: Reach::of(ctx, descriptor, package)?,
        })
    }

    /// The parameters of `initialize`.
    pub(crate) fn hello(&self, settings: Map<String, Value>) -> Value {
        json!({
            "contract": CONTRACT,
            "feature": self.feature,
            "settings": settings,
            "states": self.states.keys().collect::<Vec<_>>(),
            "secrets": self.reach.secrets().collect::<Vec<_>>(),
            "services": self.reach.services().collect::<Vec<_>>(),
        })
    }

    /// Does what a guest asks for.
    pub(super) async fn answer(
        &self,
        method: &str,
        params: Value,
        within: Option<&Within>,
    ) -> Result<Value, Refused> {
        match method {
            "log" => {
                let Said::<Option<String>> { level, text } = read(params)?;
                let text = pod_text(&text);
                tracing::debug!(feature = %self.feature, level, "{text}");
                Ok(Value::Null)
            }
            "notify" => {
                let Notify { text, key } = read(params)?;
                let sink = granted(self.notifications.as_ref(), "emit_model_notification")?;
                let sent = match key {
                    Some(key) => sink.notify_model_once(&key, text),
                    None => sink.notify_model(text),
                };
                let receipt = sent.await.map_err(|error| not_sent(&error))?;
                Ok(json!({ "number": receipt.number }))
            }
            "alert" => {
                let Said::<Option<AlertLevel>> { level, text } = read(params)?;
                let sink = granted(self.alerts.as_ref(), "emit_user_alert")?;
                let sent = sink.alert(level.unwrap_or(AlertLevel::Warning), &text);
                sent.map(|()| Value::Null).map_err(|error| not_sent(&error))
            }
            "note" => {
                let Said::<()> { text, .. } = read(params)?;
                let sent = granted(self.notes.as_ref(), "a pod")?.note(&text);
                sent.map(|()| Value::Null).map_err(|error| not_sent(&error))
            }
            "state.get" => {
                let Get { name } = read(params)?;
                let state = self.state(&name)?;
                // In this order, so that a change in between is a conflict.
                let revision = state.revision();
                Ok(json!({ "revision": revision, "value": *state.newest() }))
            }
            "state.replace" => {
                let Replace {
                    name,
                    revision,
                    value,
                } = read(params)?;
                let replaced = self.state(&name)?.replace(revision, value).await;
                let kept = |error: StateError| Refused::new(error.kind(), error.to_string());
                replaced.map_err(kept)?;
                Ok(json!({ "revision": revision + 1 }))
            }
            "output.write" => granted(within, OUTSIDE)?.write(params),
            "output.read" => granted(within, OUTSIDE)?.page(params),
            "fs.read" => self.reach.read_file(params),
            "fs.list" => self.reach.list(params),
            "fs.write" => self.reach.write_file(params, within).await,
            "http.request" => self.reach.exchange(params).await,
            "process.run" => self.reach.run(params).await,
            "service.call" => self.reach.serve(params, within).await,
            _ => Err(Refused {
                kind: None,
                message: "the host has no such method".to_owned(),
            }),
        }
    }

    fn state(&self, name: &str) -> Result<&DurableState<Value>, Refused> {
        self.states
            .get(name)
            .ok_or_else(|| Refused::new(ErrorKind::Denied, "the manifest declares no such state"))
    }
}

fn not_sent(error: &SinkError) -> Refused {
    Refused::new(error.kind(), error.to_string())
}

/// A text for a log.
pub(super) fn pod_text(text: &str) -> String {
    authority::text::escape_within(text, authority::text::Lines::Many, MAX_LOG)
}
