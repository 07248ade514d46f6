//! Hooks around a call that may run: an answer in its place, and calls that run again.

use crate::rig::*;
use llm_worker::{ErrorKind, ToolEffect, ToolError, ToolOutput};
use pod::feature::{FeatureInstallContext, HookKey, HostCapability, WrapKey};
use pod::hook::{
    Change, ToolCallView, ToolRepeat, ToolRepeatView, ToolRun, ToolRunView, ToolShape, ToolWrap,
};
use pod::record::{Record, ToolRepeated};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::{FnTool, PodUnderTest, ScriptedAnswer};

fn output(summary: &str) -> ToolOutput {
    ToolOutput {
        summary: summary.to_owned(),
        content: String::new(),
        data: None,
    }
}

/// A tool that cannot be reached the first times.
fn flaky(failures: u32, effect: ToolEffect, deadline: Duration) -> FnTool {
    let runs = Arc::new(AtomicU32::new(0));
    FnTool::new("Flaky", effect, move |cx, _| {
        let run = runs.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            cx.host.write_output(format!("run {run}\n").as_bytes())?;
            match run > failures {
                true => Ok(output("reached")),
                false => Err(ToolError::new(
                    ErrorKind::Unavailable,
                    format!("not reached, run {run}"),
                )),
            }
        }
    })
    .deadline(deadline)
}

fn called(tool: FnTool, features: Vec<Installed>) -> PodUnderTest {
    let (mut pod, _) = pod(&[], features);
    pod.tools = vec![tool];
    pod.script.clear();
    pod.script.add(ScriptedAnswer::calls(&[("Flaky", "{}")]));
    pod.script.add(ScriptedAnswer::text("done"));
    pod.run("go").end();
    pod
}

fn repeats(pod: &PodUnderTest) -> Vec<ToolRepeated> {
    let repeated = |(_, record)| match record {
        Record::ToolRepeated(repeated) => Some(repeated),
        _ => None,
    };
    pod.records().into_iter().filter_map(repeated).collect()
}

#[test]
fn an_answer_in_its_place_and_the_tool_never_runs() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let cache = |id: &'static str, answer: Option<&'static str>| {
        let asked = Arc::clone(&asked);
        transform(
            id,
            HookKey::<ToolRun>::new("cache"),
            move |view: &ToolRunView| {
                asked
                    .lock()
                    .unwrap()
                    .push(format!("{id} {}", view.call.tool));
                answer.map_or(Change::Unchanged, |answer| Change::Replaced(output(answer)))
            },
        )
    };
    let features = vec![
        cache("builtin:a", Some("a")),
        cache("builtin:b", Some("b")),
        cache("builtin:c", None),
    ];
    let tool = flaky(0, ToolEffect::Effectful, Duration::from_secs(60));
    let pod = called(tool, features);
    assert!(pod.tools[0].ran().is_empty());
    assert_eq!(
        *asked.lock().unwrap(),
        ["builtin:c Flaky", "builtin:b Flaky"],
        "installed last, asked first"
    );
    let result = &results(&pod)[0];
    assert_eq!(result.outcome.text(), "b");
    let by = result.answered_by.as_ref().unwrap();
    assert_eq!(
        (by.hook.as_str(), by.feature.as_str()),
        ("cache", "builtin:b")
    );
    let kinds: Vec<_> = pod
        .records()
        .iter()
        .map(|(_, record)| record.kind().to_owned())
        .collect();
    assert!(
        kinds.contains(&"tool_started".to_owned()),
        "it was permitted like any call"
    );
}

#[test]
fn a_hook_that_fails_to_answer_lets_the_tool_run() {
    let fails = transform("builtin:a", HookKey::<ToolRun>::new("cache"), |_| {
        panic!("no cache")
    });
    let pod = called(
        flaky(0, ToolEffect::Effectful, Duration::from_secs(60)),
        vec![fails],
    );
    let result = &results(&pod)[0];
    assert_eq!(
        (result.outcome.text().as_str(), pod.tools[0].ran().len()),
        ("reached\nrun 1\n", 1)
    );
    assert!(
        result.answered_by.is_none()
            && result.transforms[0]
                .problem
                .as_ref()
                .unwrap()
                .contains("no cache")
    );
}

fn always(after: Duration) -> Installed {
    transform(
        "builtin:r",
        HookKey::<ToolRepeat>::new("again"),
        move |view: &ToolRepeatView| match view.error {
            Some(_) => Change::Replaced(after),
            None => Change::Unchanged,
        },
    )
}

#[test]
fn a_call_that_is_safe_to_repeat_runs_again_with_a_record_each_time() {
    let pod = called(
        flaky(2, ToolEffect::Idempotent, Duration::from_secs(60)),
        vec![always(Duration::ZERO)],
    );
    let ran = pod.tools[0].ran();
    assert!(
        ran.len() == 3 && ran.iter().all(|call| *call == ran[0]),
        "the same call each time: {ran:?}"
    );
    assert_eq!(
        results(&pod)[0].outcome.text(),
        "reached\nrun 3\n",
        "of the last run alone"
    );
    let repeats = repeats(&pod);
    assert_eq!(
        repeats.iter().map(|again| again.run).collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!(
        (repeats[0].error, repeats[0].feature.as_str()),
        (Some(ErrorKind::Unavailable), "builtin:r")
    );
    let started = pod
        .records()
        .into_iter()
        .filter(|(_, record)| record.kind() == "tool_started")
        .count();
    assert_eq!(started, 1, "one start, one idempotency key");
}

#[test]
fn repeats_have_bounds() {
    let long = Duration::from_secs(60);
    let cases = [
        ("five times", ToolEffect::ReadOnly, long, Duration::ZERO, 6),
        (
            "never with effects",
            ToolEffect::Effectful,
            long,
            Duration::ZERO,
            1,
        ),
        (
            "after any time at all",
            ToolEffect::ReadOnly,
            long,
            Duration::MAX,
            1,
        ),
        (
            "within the deadline",
            ToolEffect::ReadOnly,
            Duration::from_secs(2),
            Duration::from_secs(5),
            1,
        ),
    ];
    for (what, effect, deadline, after, runs) in cases {
        let began = Instant::now();
        let pod = called(flaky(100, effect, deadline), vec![always(after)]);
        assert_eq!(
            (pod.tools[0].ran().len(), repeats(&pod).len()),
            (runs, runs - 1),
            "{what}"
        );
        let expected = format!("not reached, run {runs}");
        assert_eq!(results(&pod)[0].outcome.summary, expected, "{what}");
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
    }
}

/// Counts, and answers once it knows.
#[derive(Default)]
struct Cache(Mutex<Option<ToolOutput>>);

impl ToolWrap for Cache {
    fn before(&self, _: &ToolCallView) -> Option<ToolOutput> {
        self.0.lock().unwrap().clone()
    }

    fn again(
        &self,
        _: &ToolCallView,
        outcome: &llm_worker::ToolOutcome,
        tries: u32,
    ) -> Option<Duration> {
        (outcome.summary.starts_with("not reached") && tries < 3).then_some(Duration::ZERO)
    }

    fn after(&self, _: &ToolCallView, found: &ToolOutput) -> Option<ToolOutput> {
        *self.0.lock().unwrap() = Some(found.clone());
        Some(output(&format!("{}!", found.summary)))
    }
}

const WRAP: WrapKey = WrapKey::new("cache").tools(&["Flaky"]);

#[test]
fn one_impl_stands_around_a_call() {
    let descriptor = builder("builtin:w").wrap(&WRAP).build();
    let install = |ctx: &mut FeatureInstallContext<'_>| {
        ctx.hooks()
            .wrap(&WRAP, &Arc::new(Cache::default()))
            .map(drop)
    };
    let mut grants = all::<ToolRun>();
    grants.extend([
        HostCapability::hook::<ToolRepeat>(),
        HostCapability::hook::<ToolShape>(),
    ]);
    let (mut pod, _) = pod(&[], vec![(feature(descriptor, install), grants)]);
    pod.tools = vec![flaky(1, ToolEffect::ReadOnly, Duration::from_secs(60))];
    pod.script.clear();
    pod.script.add(ScriptedAnswer::calls(&[("Flaky", "{}")]));
    pod.script.add(ScriptedAnswer::calls(&[("Flaky", "{}")]));
    pod.script.add(ScriptedAnswer::text("done"));
    pod.run("go").end();
    let results = results(&pod);
    assert_eq!(pod.tools[0].ran().len(), 2, "once again, and then never");
    assert_eq!(
        results
            .iter()
            .map(|one| one.outcome.text())
            .collect::<Vec<_>>(),
        ["reached!", "reached!"]
    );
    assert_eq!(
        results[1].answered_by.as_ref().unwrap().hook,
        "cache-before"
    );
}

// A cache that was installed between two shapers answered with what the inner one had shaped: it shaped that once more.
#[test]
fn an_answer_is_shaped_by_what_stands_behind_the_feature_that_gave_it() {
    const MARK: HookKey<ToolShape> = HookKey::new("mark");
    const KEEP: HookKey<ToolShape> = HookKey::new("keep").withhold_on_failure();
    const AFTER: HookKey<ToolShape> = HookKey::new("mark").after(&["user:c"]);
    const ANSWER: HookKey<ToolRun> = HookKey::new("answer").tools(&["Flaky"]);
    let shaper = |id: &str, key: HookKey<ToolShape>| {
        let mark = id.to_owned();
        transform::<ToolShape>(id, key, move |view| {
            Change::Replaced(output(&format!("{}>{mark}", view.output.summary)))
        })
    };
    let answers = |id: &str| transform::<ToolRun>(id, ANSWER, |_| Change::Replaced(output("kept")));
    // The feature that answers has the id `user:b`.
    type Row = (&'static str, Vec<Installed>, &'static str);
    let table: Vec<Row> = vec![
        (
            "innermost",
            vec![
                answers("user:b"),
                shaper("user:c", MARK),
                shaper("user:d", MARK),
            ],
            "kept>user:c>user:d",
        ),
        (
            "between",
            vec![
                shaper("user:a", MARK),
                answers("user:b"),
                shaper("user:c", MARK),
            ],
            "kept>user:c",
        ),
        (
            "outermost",
            vec![shaper("user:a", MARK), answers("user:b")],
            "kept",
        ),
        (
            "what withholds sees it",
            vec![
                shaper("user:a", KEEP),
                answers("user:b"),
                shaper("user:c", MARK),
            ],
            "kept>user:a>user:c",
        ),
        (
            "moved behind",
            vec![
                shaper("user:a", AFTER),
                answers("user:b"),
                shaper("user:c", MARK),
            ],
            "kept>user:c>user:a",
        ),
        (
            "nobody answers",
            vec![shaper("user:a", MARK), shaper("user:c", MARK)],
            "reached>user:a>user:c",
        ),
    ];
    for (what, features, shaped) in table {
        let pod = called(
            flaky(0, ToolEffect::ReadOnly, Duration::from_secs(60)),
            features,
        );
        assert_eq!(results(&pod)[0].outcome.summary, shaped, "{what}");
    }
}
