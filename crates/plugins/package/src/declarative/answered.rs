//! A feature whose tools, hooks, background tasks and services guests answer.

use super::DeclarativeFeature;
use crate::guests::{Asking, Fault, Guests, HostSide, Within};
use crate::program::ToolProgram;
use async_trait::async_trait;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolOutput, ToolResult};
use pod::feature::{
    BackgroundTaskContext, BackgroundTaskContribution, FeatureId, FeatureInstallContext,
    FeatureInstallError, HookContribution, HookDeclaration, JsonCall, JsonService, ServiceFault,
    ServiceFuture, TaskError, TaskResult, ToolContribution,
};
use pod::hook::{AtPoint, Hook, HookClass, HookFailure, Point};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time before the host's deadline at which a guest is killed, so that the host learns why; at most a tenth of it.
const MARGIN: Duration = Duration::from_millis(500);

/// How long a call of a service may take that is made outside of any call of a tool.
const SERVICE_TIME: Duration = Duration::from_secs(30);

/// The longest summary, in bytes.
const MAX_SUMMARY: usize = 512;

impl DeclarativeFeature {
    pub(super) fn install_guests(
        &self,
        program: &ToolProgram,
        ctx: &mut FeatureInstallContext<'_>,
    ) -> Result<(), FeatureInstallError> {
        let descriptor = &self.declared.descriptor;
        let host = HostSide::of(ctx, descriptor, self.package.clone())?;
        let settings: Map<String, Value> = match &descriptor.settings {
            Some(_) => ctx.settings()?,
            None => Map::new(),
        };
        let hello = host.hello(settings);
        let spawner = ctx.services().programs(program.network)?;
        let guests = Arc::new(Guests::new(
            descriptor.id.clone(),
            program.clone(),
            self.package.clone(),
            spawner.with_guarded_path(),
            Arc::clone(&self.unchanged),
            (hello, host),
        ));
        for tool in &descriptor.declared_tools {
            let answered = Arc::new(AnsweredTool {
                guests: Arc::clone(&guests),
                name: self.declared.own_name(&tool.name).to_owned(),
                effect: tool.effect,
            });
            let run = move |arguments, cx| Arc::clone(&answered).call(arguments, cx);
            ctx.tools()
                .register(ToolContribution::of_text(descriptor.id.clone(), tool, run))?;
        }
        for declared in &descriptor.declared_hooks {
            let guests = Arc::clone(&guests);
            let hook = declared.point.call(Contribute {
                feature: &descriptor.id,
                declared,
                guests,
            });
            ctx.hooks().register(hook)?;
        }
        for declared in &descriptor.declared_background_tasks {
            let guests = Arc::clone(&guests);
            let name = declared.name.clone();
            let run = move |cx| run_task(Arc::clone(&guests), name.clone(), cx);
            let feature = descriptor.id.clone();
            let task = BackgroundTaskContribution::declared(feature, declared, run);
            ctx.background_tasks().register(task)?;
        }
        for provided in &descriptor.provides {
            let service = AnsweredService {
                guests: Arc::clone(&guests),
                name: provided.service.name.clone(),
            };
            let service = Arc::new(service);
            ctx.services().provide_json(&provided.service, service)?;
        }
        Ok(())
    }
}

/// One run of a background task.
async fn run_task(guests: Arc<Guests>, name: String, cx: BackgroundTaskContext) -> TaskResult {
    let ms = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    };
    let params = json!({
        "task": name,
        "run": cx.run,
        "trigger": cx.trigger,
        "due_ms": ms(cx.due),
        "attempt": cx.attempt,
    });
    let asked = guests.ask(
        &guests.tasks,
        params,
        Asking {
            method: "task.run",
            limit: cx.deadline.saturating_sub(MARGIN.min(cx.deadline / 10)),
            is_private: false,
            within: None,
        },
    );
    let answer = tokio::select! {
        answer = asked => answer,
        () = cx.cancel.cancelled() => return Err(TaskError::new("cancelled; its guest was ended")),
    };
    match answer {
        Ok(_) => Ok(()),
        Err(fault) => Err(TaskError::new(fault.reason())),
    }
}

/// A service that guests answer.
struct AnsweredService {
    guests: Arc<Guests>,
    name: String,
}

impl JsonService for AnsweredService {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            let within = call.within.as_ref();
            let limit = within.map_or(SERVICE_TIME, |cx| cx.deadline);
            let asked = self.guests.ask(
                &self.guests.services,
                json!({ "service": self.name, "method": call.method, "params": call.params }),
                Asking {
                    method: "service.call",
                    limit: limit.saturating_sub(MARGIN.min(limit / 10)),
                    is_private: false,
                    // What the caller's call may change is not for the provider to change.
                    within: None,
                },
            );
            let fault = |fault: Fault| ServiceFault::new(fault.kind(), fault.reason());
            asked.await.map_err(fault)
        })
    }
}

/// A tool that guests answer.
struct AnsweredTool {
    guests: Arc<Guests>,
    /// As the manifest has it, also where a person chose another name.
    name: String,
    effect: ToolEffect,
}

#[derive(Serialize)]
struct CallParams<'a> {
    call: String,
    tool: &'a str,
    arguments: &'a RawValue,
    deadline_ms: u64,
}

/// The result of a call: an output, or an error that the guest expects.
#[derive(Deserialize)]
#[serde(untagged)]
enum CallAnswer {
    Output(ToolOutput),
    Error { error: Expected },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: ErrorKind,
    message: String,
}

impl AnsweredTool {
    async fn call(self: Arc<Self>, arguments: Arc<str>, cx: ToolContext) -> ToolResult {
        let limit = cx.deadline.saturating_sub(MARGIN.min(cx.deadline / 10));
        let may_write = self.effect != ToolEffect::ReadOnly;
        let within = Within::new(cx.clone(), may_write, &arguments);
        let arguments = RawValue::from_string(arguments.to_string());
        let arguments =
            arguments.map_err(|error| ToolError::new(ErrorKind::Bug, error.to_string()))?;
        let params = CallParams {
            call: cx.call.to_string(),
            tool: &self.name,
            arguments: &arguments,
            deadline_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        };
        let asked = self.guests.ask(
            &self.guests.tools,
            params,
            Asking {
                method: "tool.call",
                limit,
                is_private: false,
                within: Some(within.clone()),
            },
        );
        let answer = tokio::select! {
            answer = asked => answer,
            () = cx.cancel.cancelled() => {
                return Err(ToolError::new(ErrorKind::Cancelled, "cancelled; its guest was ended"));
            }
        };
        let answer = answer.map_err(|fault| self.failed(&fault))?;
        match CallAnswer::deserialize(answer) {
            Ok(CallAnswer::Output(output)) => {
                let written = within.data();
                let written = written.map_err(|error| {
                    let text = format!("the data that its guest wrote is not JSON: {error}");
                    self.unknown(ErrorKind::Bug, &text)
                })?;
                Ok(ToolOutput {
                    summary: line(&output.summary, MAX_SUMMARY),
                    data: output.data.or(written),
                    ..output
                })
            }
            Ok(CallAnswer::Error { error }) => Err(ToolError::new(
                error.kind,
                line(&error.message, MAX_MESSAGE),
            )),
            Err(_) => {
                let text = "its guest answered neither `summary` and `content` nor `error`";
                Err(self.unknown(ErrorKind::Bug, text))
            }
        }
    }

    fn failed(&self, fault: &Fault) -> ToolError {
        match fault {
            Fault::Late(_) | Fault::Crashed(_) => self.unknown(fault.kind(), &fault.reason()),
            _ => ToolError::new(fault.kind(), fault.reason()),
        }
    }

    /// A call whose end is not known.
    fn unknown(&self, kind: ErrorKind, why: &str) -> ToolError {
        let effect = match self.effect {
            ToolEffect::ReadOnly => "",
            _ => "; whether the call took effect is not known",
        };
        ToolError::new(
            kind,
            format!("the guest of this tool failed: {why}{effect}"),
        )
    }
}

/// The longest message of an error, in bytes.
const MAX_MESSAGE: usize = 8 << 10;

fn line(text: &str, max: usize) -> String {
    authority::text::escape_within(text, authority::text::Lines::One, max)
}

/// Makes the contribution of a hook at any point.
struct Contribute<'a> {
    feature: &'a FeatureId,
    declared: &'a HookDeclaration,
    guests: Arc<Guests>,
}

impl AtPoint for Contribute<'_> {
    type Out = HookContribution;

    fn at<P: Point>(self) -> HookContribution {
        let hook = AnsweredHook {
            guests: self.guests,
            name: self.declared.name.clone(),
            limit: Duration::from_millis(self.declared.deadline_ms),
        };
        HookContribution::declared::<P>(self.feature.clone(), self.declared, Arc::new(hook))
    }
}

/// A hook that guests answer.
struct AnsweredHook {
    guests: Arc<Guests>,
    name: String,
    limit: Duration,
}

#[derive(Serialize)]
struct HookParams<'a> {
    hook: &'a str,
    point: pod::hook::HookPoint,
    view: Value,
}

#[async_trait]
impl<P: Point> Hook<P> for AnsweredHook {
    async fn call(&self, input: &P::Input) -> Result<P::Answer, HookFailure> {
        let params = HookParams {
            hook: &self.name,
            point: P::POINT,
            view: P::shown(input),
        };
        let method = match P::CLASS {
            HookClass::Gate | HookClass::Transform => "hook.ask",
            HookClass::Observe => "hook.tell",
        };
        let limit = self.limit.saturating_sub(MARGIN.min(self.limit / 10));
        let answer = self.guests.ask(
            &self.guests.hooks,
            params,
            Asking {
                method,
                limit,
                is_private: P::PRIVATE,
                within: None,
            },
        );
        let answer = answer.await.map_err(|fault| match &fault {
            // Its words may quote a result that another hook withholds.
            Fault::Failed(_) if P::PRIVATE => HookFailure::new("its guest answered with an error"),
            _ => HookFailure::new(fault.reason()),
        })?;
        P::heard(&answer).map_err(|why| match P::PRIVATE {
            true => HookFailure::new("its guest answered what this point does not take"),
            false => HookFailure::new(why),
        })
    }
}
