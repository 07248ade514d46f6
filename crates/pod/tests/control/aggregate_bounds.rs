//! What each may do alone, done by many at once: calls of one answer that all hang, and answers that come to more
//! records or bytes than a batch of the log takes.

use crate::fixtures::{echo, pod, said, sound};
use llm_worker::tool::{ArgumentError, Prepared};
use llm_worker::turn::TurnLimits;
use llm_worker::{ResultStatus, Tool, ToolDefinition, ToolEffect};
use pod::feature::*;
use pod::foreign::MAX_STUCK;
use pod::hook::{PreToolCall, Verdict};
use pod::record::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::{FnTool, Latch, PodUnderTest, ScriptedAnswer, within};

const SHORT: Duration = Duration::from_millis(20);
/// Long enough for many threads to start on a busy machine: a call whose deadline comes before it began hangs nothing.
pub(crate) const ENOUGH_TO_BEGIN: Duration = Duration::from_millis(400);

/// A feature of these tools, each with the same deadline.
pub(crate) struct Of(
    pub(crate) FeatureId,
    pub(crate) Vec<Arc<dyn Tool>>,
    pub(crate) Duration,
);

impl FeatureModule for Of {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(self.0.clone()).version("1.0.0");
        let declared = self.1.iter().map(|tool| ToolDeclaration {
            deadline_ms: u64::try_from(self.2.as_millis()).unwrap(),
            ..ToolDeclaration::of(tool.definition().clone())
        });
        declared
            .fold(builder, FeatureDescriptorBuilder::foreign_tool)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        for tool in &self.1 {
            ctx.tools().register(ToolContribution::new(
                self.0.clone(),
                Arc::clone(tool),
                Vec::new(),
            ))?;
        }
        Ok(())
    }
}

fn outcomes(pod: &PodUnderTest) -> Vec<(ResultStatus, String)> {
    let finished = |(_, record)| match record {
        Record::ToolFinished(finished) => Some((finished.outcome.status, finished.outcome.text())),
        _ => None,
    };
    pod.records().into_iter().filter_map(finished).collect()
}

// Eight calls of one answer that hung were eight threads, and at eight the pod ended.
#[test]
fn calls_that_all_hang_cost_their_feature_and_not_the_pod() {
    for (how, cap, begun) in [
        ("holds", 8, 8),
        ("waits", 8, 8),
        ("holds", 32, MAX_STUCK - 1),
    ] {
        let gate = Latch::new(how);
        let held = gate.clone();
        let hangs = FnTool::new("Hang", ToolEffect::ReadOnly, move |_, _| {
            let held = held.clone();
            async move {
                if how == "holds" {
                    held.pass_blocking()
                } else {
                    held.pass().await
                }
                said("never said")
            }
        });
        let many = vec![("Hang", "{}"); TurnLimits::CALLS];
        let answers = vec![
            ScriptedAnswer::calls(&many),
            ScriptedAnswer::calls(&[("Echo", "{}")]),
            ScriptedAnswer::text("went on"),
        ];
        let mut pod = pod(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
        let feature = Of(
            FeatureId::user("hangs"),
            vec![Arc::new(hangs.clone())],
            ENOUGH_TO_BEGIN,
        );
        pod.features = vec![(Arc::new(feature), vec![HostCapability::tool("*")])];
        (pod.grace, pod.paused, pod.limits.tool_concurrency) = (SHORT, false, cap);
        let (pod, ran) = within(how, move || {
            let ran = pod.run("first");
            (pod, ran)
        });
        gate.open();
        assert_eq!(ran.end().answer.as_deref(), Some("went on"), "{how} {cap}");
        let outcomes = outcomes(&pod);
        let told = |words: &str| {
            outcomes
                .iter()
                .filter(|(_, text)| text.contains(words))
                .count()
        };
        let off = "not run: Hang is disabled: code of user:hangs did not return";
        let counts = (hangs.ran().len(), told("it did not stop within"), told(off));
        assert_eq!(
            counts,
            (begun, begun, TurnLimits::CALLS - begun),
            "{how} {cap}"
        );
        assert_eq!(
            outcomes.last().map(|(status, _)| *status),
            Some(ResultStatus::Ok),
            "{how} {cap}"
        );
        sound(&pod, "hung");
    }
}

/// Parses as it is told to.
struct Parses(ToolDefinition, Box<dyn Fn(&str) -> String + Send + Sync>);

impl Parses {
    fn tool(parse: impl Fn(&str) -> String + Send + Sync + 'static) -> Arc<dyn Tool> {
        let name = "Parse".to_owned();
        let description = "Parse.".to_owned();
        let schema = r#"{"type":"object"}"#.into();
        Arc::new(Self(
            ToolDefinition {
                name,
                description,
                schema,
                effect: ToolEffect::ReadOnly,
            },
            Box::new(parse),
        ))
    }
}

impl Tool for Parses {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        Ok(Prepared::new((self.1)(raw).into(), Vec::new(), |_| {
            Box::pin(async { said("ran") })
        }))
    }
}

fn parsing(tool: Arc<dyn Tool>, calls: usize) -> PodUnderTest {
    let answers = vec![
        ScriptedAnswer::calls(&vec![("Parse", "{}"); calls]),
        ScriptedAnswer::text("went on"),
    ];
    let mut pod = pod(answers, Vec::new());
    let feature = Of(
        FeatureId::user("parses"),
        vec![tool],
        Duration::from_secs(60),
    );
    pod.features = vec![(Arc::new(feature), vec![HostCapability::tool("*")])];
    pod
}

// A tool may hang while it parses, and all calls of an answer are judged at once.
#[test]
fn few_calls_are_parsed_at_once() {
    const AT_ONCE: usize = 8;
    let gate = Latch::new("parsed");
    let inside = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let parse = {
        let gate = gate.clone();
        let inside = Arc::clone(&inside);
        let most = Arc::clone(&most);
        move |raw: &str| {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.pass_blocking();
            inside.fetch_sub(1, Ordering::SeqCst);
            raw.to_owned()
        }
    };
    let pod = parsing(Parses::tool(parse), TurnLimits::CALLS);
    let opener = {
        let inside = Arc::clone(&inside);
        std::thread::spawn(move || {
            while inside.load(Ordering::SeqCst) < AT_ONCE {
                std::thread::yield_now();
            }
            (0..10_000).for_each(|_| std::thread::yield_now());
            gate.open();
        })
    };
    let pod = within("64 calls that are judged", move || {
        pod.run("first").end();
        pod
    });
    opener.join().unwrap();
    assert_eq!(
        (most.load(Ordering::SeqCst), outcomes(&pod).len()),
        (AT_ONCE, TurnLimits::CALLS)
    );
}

// Each call within its bound, together more than a batch takes.
#[test]
fn what_the_calls_of_an_answer_would_run_on_is_bounded_together() {
    let long = |_: &str| format!("{{\"text\":\"{}\"}}", "x".repeat(150 * 1024));
    let pod = parsing(Parses::tool(long), TurnLimits::CALLS);
    pod.run("first").end();
    let outcomes = outcomes(&pod);
    let ran = outcomes
        .iter()
        .filter(|(status, _)| *status == ResultStatus::Ok)
        .count();
    assert_eq!((ran, outcomes.len()), (6, TurnLimits::CALLS));
    let told = |text: &String| {
        text.contains("bytes of arguments together") && text.contains("again by itself")
    };
    assert!(
        outcomes
            .iter()
            .all(|(status, text)| *status == ResultStatus::Ok || told(text)),
        "{outcomes:?}"
    );
    sound(&pod, "long");
}

#[test]
fn what_a_model_calls_at_once_is_bounded_together() {
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(150 * 1024));
    for (calls, fits) in [(6, true), (7, false)] {
        let answers = vec![
            ScriptedAnswer::calls(&vec![("Echo", long.as_str()); calls]),
            ScriptedAnswer::text("went on"),
        ];
        let pod = pod(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
        let ran = pod.run("first");
        assert_eq!(ran.end().answer.as_deref(), Some("went on"), "{calls}");
        let told = |(_, record): &(u64, Record)| matches!(record, Record::SystemItem(said) if said.text().contains("was dropped"));
        assert_eq!(pod.records().iter().any(told), !fits, "{calls}");
        sound(&pod, "what was dropped");
    }
}

/// A feature with gates that allow, and count.
struct Gates(FeatureId, Vec<HookKey<PreToolCall>>, Arc<AtomicUsize>);

impl FeatureModule for Gates {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(self.0.clone()).version("1.0.0");
        self.1
            .iter()
            .fold(builder, |builder, key| builder.gate(key))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        for key in &self.1 {
            ctx.hooks().gate(
                key,
                &self.2,
                |asked: &AtomicUsize, _: &pod::hook::ToolCallView| {
                    asked.fetch_add(1, Ordering::Relaxed);
                    Verdict::<PreToolCall>::allow()
                },
            )?;
        }
        Ok(())
    }
}

const KEYS: [HookKey<PreToolCall>; 16] = {
    const fn key(name: &'static str) -> HookKey<PreToolCall> {
        HookKey::new(name)
    }
    [
        key("a"),
        key("b"),
        key("c"),
        key("d"),
        key("e"),
        key("f"),
        key("g"),
        key("h"),
        key("i"),
        key("j"),
        key("k"),
        key("l"),
        key("m"),
        key("n"),
        key("o"),
        key("p"),
    ]
};

// What every gate says of every call is one batch with the answer: 64 calls before 64 gates were more than it takes.
#[test]
fn as_many_gates_as_may_stand_judge_as_many_calls_as_may_come() {
    let asked = Arc::new(AtomicUsize::new(0));
    let gates = |name: &'static str, many: usize| -> Arc<dyn FeatureModule> {
        Arc::new(Gates(
            FeatureId::user(name),
            KEYS.into_iter().take(many).collect(),
            Arc::clone(&asked),
        ))
    };
    let granted = || vec![HostCapability::hook::<PreToolCall>()];
    let answers = vec![
        ScriptedAnswer::calls(&vec![("Echo", "{}"); TurnLimits::CALLS]),
        ScriptedAnswer::text("went on"),
    ];
    let mut pod = pod(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
    pod.features = vec![(gates("one", 16), granted()), (gates("two", 16), granted())];
    let pod = within("gates times calls", move || {
        assert_eq!(pod.run("first").end().answer.as_deref(), Some("went on"));
        pod
    });
    assert_eq!(asked.load(Ordering::Relaxed), 32 * TurnLimits::CALLS);
    sound(&pod, "gates");

    let ids = ["one", "two", "three"].map(FeatureId::user);
    let policy = ids.iter().fold(CapabilityPolicy::nothing(), |policy, id| {
        policy.grant(id.clone(), HostCapability::hook::<PreToolCall>(), "test")
    });
    let modules = vec![gates("one", 16), gates("two", 16), gates("three", 1)];
    let plan = FeatureRegistryBuilder::new(policy).with_all(modules).plan();
    let left_out: Vec<_> = plan
        .features
        .iter()
        .filter(|feature| !feature.outcome.is_live())
        .collect();
    let [left_out] = left_out.as_slice() else {
        panic!("{left_out:?}")
    };
    let words: Vec<_> = left_out
        .diagnostics
        .iter()
        .map(|why| (why.code, why.message.as_str()))
        .collect();
    let over = "user:two has gates at PreToolCall, where the limit is 32 for all features together; disable a feature that \
                is not needed";
    assert_eq!(words, [(DiagnosticCode::TooManyFeatures, over)]);
}
