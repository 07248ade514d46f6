//! The contract: a good feature keeps it, and a feature that is bad in one way breaks exactly the check for it.
#![allow(clippy::unwrap_used, reason = "a rig that fails is a failed test")]

use llm_worker::tool::{ArgumentError, Prepared};
use llm_worker::{Tool, ToolDefinition};
use pod::feature::author::*;
use pod::feature::{ToolContribution, ToolDeclaration};
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::{Check, CheckOutcome, conformance};

const ID: FeatureId = FeatureId::user("rogue");
const ACT: ToolKey<ActArgs> = ToolKey::new("Act", ToolEffect::Effectful, "Do it.");
const MORE: ToolKey<ActArgs> = ToolKey::new("More", ToolEffect::Effectful, "Do more.");
const TASK: TaskKey = TaskKey::new("tidy", ToolEffect::Idempotent).on_request();
const GATE: HookKey<PreToolCall> = HookKey::new("gate");
const COUNT: StateKey<Count> = StateKey::new("count", 1);
const ODD: StateKey<u64> = StateKey::new("odd", 1);
const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 100,
    per_turn: 1,
};

#[derive(Serialize, Deserialize, JsonSchema)]
struct ActArgs {
    how: How,
    #[serde(default)]
    times: Option<u8>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum How {
    Well,
    Badly,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Count(u64);

/// Good, or bad in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    InNoWay,
    DescribesItselfAnewEachTime,
    ReadsWhileItDescribesItself,
    HasAnEscapeInItsName,
    RefersToNowhere,
    StagesLessThanItDeclares,
    WidensATool,
    WritesAFileBeforeItIsInstalled,
    CannotDoWithoutAlerts,
    AsksInVain,
    TakesAnyArguments,
    HoldsItsThread,
    NeverAnswers,
    AnswersTooMuch,
    PanicsInACall,
    ColoursItsSummary,
    PanicsInItsGate,
    DawdlesInItsGate,
    PanicsInItsTask,
    NeverEndsItsTask,
    CannotDoWithoutItsTask,
    CannotGoOnFromItsState,
    LeavesATask,
    LeavesAThread,
    LeavesAChild,
    NeedsAFileElsewhere,
    WritesAFileElsewhere,
}

struct Rogue(Bad);

/// A tool with a schema of its own.
struct Foreign {
    definition: ToolDefinition,
    lax: bool,
}

impl Tool for Foreign {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        if !self.lax {
            llm_worker::tool::parse_arguments::<ActArgs>(&self.definition.name, raw)?;
        }
        Ok(Prepared::new("{}".into(), Vec::new(), |_| {
            Box::pin(async { Ok(ToolOutput::default()) })
        }))
    }
}

fn foreign(bad: Bad) -> Option<Foreign> {
    let (schema, lax) = match bad {
        Bad::RefersToNowhere => (
            r##"{"additionalProperties":false,"properties":{"how":{"$ref":"#/$defs/How"}},"type":"object"}"##,
            false,
        ),
        Bad::TakesAnyArguments => (r#"{"type":"object"}"#, true),
        _ => return None,
    };
    let name = "Foreign".to_owned();
    let description = "From elsewhere.".to_owned();
    let definition = ToolDefinition {
        name,
        description,
        schema: schema.into(),
        effect: ToolEffect::ReadOnly,
    };
    Some(Foreign { definition, lax })
}

const WIDER: EnrichKey = EnrichKey::new("wider", &["*"]);

struct Wider;

impl ToolEnricher for Wider {
    fn enrich(&self, _: &str, schema: &mut ToolSchema) -> Result<(), String> {
        schema.arguments = serde_json::json!({ "type": "object" });
        Ok(())
    }
}

static TIMES: AtomicU64 = AtomicU64::new(0);

impl FeatureModule for Rogue {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .request(CapabilityRequest::required(
                HostCapability::WRITE_WORKSPACE,
                "to write",
            ))
            .request(CapabilityRequest::optional(
                HostCapability::EmitUserAlert,
                "to alert",
            ))
            .tool(&ACT)
            .gate(&GATE)
            .background_task(&TASK)
            .state(&COUNT);
        let builder = foreign(self.0).into_iter().fold(builder, |builder, tool| {
            builder.foreign_tool(ToolDeclaration::of(tool.definition))
        });
        match self.0 {
            Bad::DescribesItselfAnewEachTime => builder
                .version(format!("1.0.{}", TIMES.fetch_add(1, Ordering::Relaxed)))
                .build(),
            Bad::ReadsWhileItDescribesItself => {
                drop(std::fs::read("/proc/self/cmdline"));
                builder.build()
            }
            Bad::HasAnEscapeInItsName => builder.display_name("\u{1b}[31m").build(),
            Bad::StagesLessThanItDeclares => builder.tool(&MORE).build(),
            Bad::WidensATool => builder.enriches(&WIDER).build(),
            Bad::AsksInVain => builder
                .request(CapabilityRequest::required(NOTIFY, "just in case"))
                .build(),
            Bad::CannotGoOnFromItsState => builder.state(&ODD).build(),
            _ => builder.build(),
        }
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let files = ctx.services().fs(HostCapability::WORKSPACE)?;
        if self.0 == Bad::WritesAFileBeforeItIsInstalled {
            std::fs::write(files.project().join("rogue.lock"), "").unwrap();
        }
        match self.0 {
            Bad::CannotDoWithoutAlerts => drop(ctx.alerts()?),
            _ => drop(ctx.alerts()),
        }
        let odd = if self.0 == Bad::CannotGoOnFromItsState {
            Some(ctx.state(&ODD)?)
        } else {
            None
        };
        if odd.as_ref().is_some_and(|odd| *odd.read() > 0) {
            return Err(FeatureInstallError::failed("it only ever began anew"));
        }
        let live = Arc::new(Live {
            bad: self.0,
            count: ctx.state(&COUNT)?,
            odd,
        });
        ctx.tools().implement(&ACT, &live, Live::act)?;
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.background_tasks().run(&TASK, &live, Live::tidy)?;
        match self.0 {
            Bad::CannotDoWithoutItsTask => drop(ctx.background_tasks().handle(&TASK)?),
            _ => drop(ctx.background_tasks().handle(&TASK)),
        }
        if self.0 == Bad::WidensATool {
            ctx.tools().enrich(&WIDER, Arc::new(Wider))?;
        }
        if let Some(tool) = foreign(self.0) {
            ctx.tools()
                .register(ToolContribution::new(ID, Arc::new(tool), Vec::new()))?;
        }
        Ok(())
    }
}

/// A file that is not in the directory of a pod.
fn elsewhere(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("rogue-{}-{name}", std::process::id()))
}

fn failed(error: &std::io::Error) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, error.to_string())
}

struct Live {
    bad: Bad,
    count: DurableState<Count>,
    odd: Option<DurableState<u64>>,
}

impl Live {
    async fn act(self: Arc<Self>, _: ActArgs, _: ToolContext) -> ToolResult {
        self.count.update(|count| count.0 += 1).await?;
        if let Some(odd) = &self.odd {
            odd.update(|odd| *odd += 1).await?;
        }
        let mut summary = "done".to_owned();
        let mut content = String::new();
        match self.bad {
            Bad::HoldsItsThread => std::thread::sleep(Duration::from_secs(8)),
            Bad::NeverAnswers => pending().await,
            Bad::AnswersTooMuch => content = "x".repeat(2 * 1024 * 1024),
            Bad::PanicsInACall => panic_in_silence(),
            Bad::ColoursItsSummary => summary = "\u{1b}[32mdone".to_owned(),
            Bad::LeavesATask => drop(tokio::spawn(pending::<()>())),
            Bad::LeavesAThread => drop(std::thread::spawn(std::thread::park)),
            // It ends by itself.
            Bad::LeavesAChild => drop(std::process::Command::new("sleep").arg("60").spawn()),
            Bad::NeedsAFileElsewhere => {
                std::fs::write(elsewhere("needed"), "").map_err(|e| failed(&e))?
            }
            Bad::WritesAFileElsewhere => drop(std::fs::write(elsewhere("written"), "")),
            _ => {}
        }
        Ok(ToolOutput {
            summary,
            content,
            data: None,
        })
    }

    async fn tidy(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        match self.bad {
            Bad::PanicsInItsTask => panic_in_silence(),
            Bad::NeverEndsItsTask => pending().await,
            _ => {}
        }
        Ok(())
    }

    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let writes = call.touches.iter().any(|touch| touch.written().is_some());
        match self.bad {
            Bad::PanicsInItsGate if writes => panic_in_silence(),
            Bad::DawdlesInItsGate if writes => std::thread::sleep(Duration::from_secs(3)),
            _ => {}
        }
        Verdict::allow()
    }
}

/// The checks that a feature breaks.
fn broken(bad: Bad) -> Vec<Check> {
    let findings = conformance(move || Rogue(bad))
        .grace(Duration::from_secs(3))
        .findings();
    assert_eq!(findings.len(), Check::ALL.len());
    assert!(
        findings.iter().map(|finding| finding.check).eq(Check::ALL),
        "{findings:?}"
    );
    let broken: Vec<_> = findings
        .iter()
        .filter(|finding| matches!(finding.held, CheckOutcome::No(_)))
        .collect();
    println!("{bad:?}: {broken:?}");
    let tried = findings
        .iter()
        .all(|finding| matches!(finding.held, CheckOutcome::Yes | CheckOutcome::No(_)));
    assert!(tried || bad != Bad::InNoWay, "{findings:?}");
    broken.into_iter().map(|finding| finding.check).collect()
}

/// A panic without a backtrace: on a busy machine it takes seconds to find the names for one, longer than calls may end.
fn panic_in_silence() -> ! {
    std::panic::resume_unwind(Box::new("on purpose"))
}

#[test]
fn each_way_to_be_bad_breaks_its_check_and_no_other() {
    let ways = [
        (Bad::InNoWay, None),
        (Bad::DescribesItselfAnewEachTime, Some(Check::Descriptor)),
        (Bad::ReadsWhileItDescribesItself, Some(Check::Descriptor)),
        (Bad::HasAnEscapeInItsName, Some(Check::Bounds)),
        (Bad::RefersToNowhere, Some(Check::Schemas)),
        (Bad::StagesLessThanItDeclares, Some(Check::Install)),
        (Bad::WidensATool, Some(Check::Install)),
        (Bad::WritesAFileBeforeItIsInstalled, Some(Check::Atomic)),
        (Bad::CannotDoWithoutAlerts, Some(Check::Optional)),
        (Bad::AsksInVain, Some(Check::Required)),
        (Bad::TakesAnyArguments, Some(Check::Arguments)),
        (Bad::HoldsItsThread, Some(Check::Cancellation)),
        (Bad::NeverAnswers, Some(Check::Cancellation)),
        (Bad::AnswersTooMuch, Some(Check::Outputs)),
        (Bad::PanicsInACall, Some(Check::Outputs)),
        (Bad::ColoursItsSummary, Some(Check::Text)),
        (Bad::PanicsInItsGate, Some(Check::Hooks)),
        (Bad::DawdlesInItsGate, Some(Check::Hooks)),
        (Bad::PanicsInItsTask, Some(Check::Tasks)),
        (Bad::NeverEndsItsTask, Some(Check::Tasks)),
        (Bad::CannotDoWithoutItsTask, Some(Check::Optional)),
        (Bad::CannotGoOnFromItsState, Some(Check::State)),
        (Bad::LeavesATask, Some(Check::Leftovers)),
        (Bad::LeavesAThread, Some(Check::Threads)),
        (Bad::LeavesAChild, Some(Check::Children)),
    ];
    // Their files would show in the runs of the others.
    let alone =
        [Bad::NeedsAFileElsewhere, Bad::WritesAFileElsewhere].map(|bad| (bad, Some(Check::Files)));
    std::thread::scope(|scope| {
        let run = |(bad, check): (Bad, Option<Check>)| (bad, broken(bad), check);
        let started: Vec<_> = ways
            .into_iter()
            .map(|way| scope.spawn(move || run(way)))
            .collect();
        let mut ended: Vec<_> = started
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        ended.extend(alone.map(run));
        for name in ["needed", "written"] {
            drop(std::fs::remove_file(elsewhere(name)));
        }
        for (bad, broken, check) in &ended {
            assert_eq!(
                *broken,
                check.iter().copied().collect::<Vec<_>>(),
                "{bad:?}"
            );
        }
        let shown: std::collections::BTreeSet<Check> =
            ended.iter().filter_map(|(_, _, check)| *check).collect();
        assert!(
            Check::ALL.iter().all(|check| shown.contains(check)),
            "no feature breaks some check: {shown:?}"
        );
    });
}

#[test]
#[should_panic(expected = "✗ Outputs: Act")]
fn what_is_broken_is_said() {
    conformance(|| Rogue(Bad::PanicsInACall)).assert();
}

// A tool that is late on its cancellation is not called to its end.
#[test]
fn the_answer_of_a_tool_that_never_ends_is_not_tried() {
    let findings = conformance(|| Rogue(Bad::NeverAnswers))
        .grace(Duration::from_millis(50))
        .findings();
    let not_tried = findings
        .iter()
        .filter(|finding| matches!(finding.held, CheckOutcome::NotTried(_)));
    let not_tried: Vec<_> = not_tried.map(|finding| finding.check).collect();
    assert!(
        not_tried.starts_with(&[Check::Outputs, Check::Text]),
        "{findings:?}"
    );
}

#[test]
fn an_example_is_called_instead_of_what_the_schema_gives() {
    // An example that does not fit is not called at all, and what calls would have shown is not said to hold.
    let findings = conformance(|| Rogue(Bad::PanicsInACall))
        .example("Act", serde_json::json!({}))
        .findings();
    assert!(
        !findings
            .iter()
            .any(|finding| matches!(finding.held, CheckOutcome::No(_))),
        "{findings:?}"
    );
    let not_tried = findings.iter().filter_map(|finding| match &finding.held {
        CheckOutcome::NotTried(why) => Some((finding.check, why.as_str())),
        CheckOutcome::Yes | CheckOutcome::No(_) => None,
    });
    let why = "Act takes no {}; give an example";
    let not_tried: Vec<_> = not_tried
        .filter(|(check, _)| *check != Check::State)
        .collect();
    assert_eq!(
        not_tried,
        [
            (Check::Cancellation, why),
            (Check::Outputs, why),
            (Check::Text, why)
        ]
    );
}
