//! What `docs/FEATURES.md` shows of services as JSON: a provider, and a tool that uses it.

use pod::feature::author::*;
use serde_json::{Value, json};
use testkit::{FeatureHost, conformance};

const COUNTER: ServiceKey<dyn JsonService> = ServiceKey::new("example.counter.v1");
const ITEMS: ServiceKey<dyn JsonService> =
    ServiceKey::new("yoi.work-items.v1").access(ServiceAccess::WorkItemRead);

struct Words;

impl JsonService for Words {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            match (call.method.as_str(), call.params["text"].as_str()) {
                ("count", Some(text)) => Ok(json!({ "words": text.split_whitespace().count() })),
                ("count", None) => Err(ServiceFault::new(
                    ErrorKind::FixInput,
                    "count: /text is not a text",
                )),
                _ => Err(ServiceFault::new(
                    ErrorKind::FixInput,
                    "the only method is count",
                )),
            }
        })
    }
}

struct Counter;

impl FeatureModule for Counter {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("counter"))
            .version("0.1.0")
            .provides(ServiceDeclaration::of(COUNTER, "1.0.0"))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.services()
            .provide_json(&COUNTER.id(), Arc::new(Words))?;
        Ok(())
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Counted {
    text: String,
}

const NEEDS_COUNTER: &[HostCapability] = &[COUNTER.admission()];
const COUNT: ToolKey<Counted> =
    ToolKey::new("Count", ToolEffect::ReadOnly, "Count the words of a text.").needs(NEEDS_COUNTER);

struct Counting;

impl FeatureModule for Counting {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("counting"))
            .version("0.1.0")
            .requires(ServiceRequirement::optional(COUNTER, "^1"))
            .tool(&COUNT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        if let Ok(counter) = ctx.services().require_json(&COUNTER.id()) {
            ctx.tools()
                .implement(&COUNT, &Arc::new(Asking { counter }), Asking::count)?;
        }
        Ok(())
    }
}

struct Asking {
    counter: ServiceHandle<dyn JsonService>,
}

impl Asking {
    async fn count(self: Arc<Self>, args: Counted, cx: ToolContext) -> ToolResult {
        let call = JsonCall::new("count", json!({ "text": args.text })).within(cx);
        let answer = self.counter.call(|counter| counter.call(call)).await??;
        Ok(ToolOutput {
            summary: format!("{} words", answer["words"]),
            ..ToolOutput::default()
        })
    }
}

#[test]
fn a_service_as_json_is_used_and_done_without() {
    let mut host = FeatureHost::new().with(Counter).install(Counting);
    assert_eq!(
        host.call("Count", json!({"text": "two words"})).summary,
        "2 words"
    );
    assert_eq!(
        FeatureHost::new()
            .install(Counting)
            .report()
            .skipped_contributions[0]
            .name,
        "Count"
    );
}

#[test]
fn a_side_of_a_service_has_its_own_grant() {
    assert_eq!(
        ITEMS.admission(),
        HostCapability::WorkItemStore {
            read: true,
            write: false
        }
    );
}

#[test]
fn a_fault_of_a_service_is_an_error_of_the_tool() {
    let fault = ServiceFault::new(ErrorKind::Exhausted, "enough was counted");
    let error = ToolError::from(fault);
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Exhausted, "enough was counted")
    );
}

#[test]
fn they_keep_the_contract() {
    conformance(|| Counter).assert();
    conformance(|| Counting)
        .on(|| FeatureHost::new().with(Counter))
        .assert();
}
