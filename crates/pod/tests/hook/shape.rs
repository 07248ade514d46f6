//! The whole result of a call before it is bounded and kept: what a transform replaces is nowhere, and what one that may
//! withhold did not pass is nowhere, either.

use crate::rig::*;
use llm_worker::tool::data::map_texts;
use llm_worker::{
    ErrorKind, ResultStatus, ToolContext, ToolEffect, ToolError, ToolOutput, ToolResult,
};
use pod::feature::HookKey;
use pod::hook::{Change, Hook, HookFailure, ToolShape, ToolShapeView};
use pod::record::ToolFinished;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{FnTool, PodRun, PodUnderTest, ScriptedAnswer};

const CANARY: &str = "canary-7f3a9";

/// What the tool does with the canary.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leak {
    Content,
    Summary,
    /// At the place where a summary is cut.
    Cut,
    /// More than stays in the history.
    Written,
    /// More than hooks can see whole.
    Flood,
    Failed,
    Panicked,
    Warned,
    /// In a value for programs.
    Data,
}

const LEAKS: [Leak; 8] = [
    Leak::Content,
    Leak::Summary,
    Leak::Cut,
    Leak::Written,
    Leak::Failed,
    Leak::Panicked,
    Leak::Warned,
    Leak::Data,
];

async fn leaks(leak: Leak, cx: ToolContext) -> ToolResult {
    let said = |summary: String, content: String| {
        Ok(ToolOutput {
            summary,
            content,
            data: None,
        })
    };
    match leak {
        Leak::Content => said("ok".into(), format!("a {CANARY} b")),
        Leak::Summary => said(format!("a {CANARY} b"), String::new()),
        Leak::Cut => said(format!("{}{CANARY}", "x".repeat(506)), "more".into()),
        Leak::Written => {
            for n in 0..2_000 {
                cx.host
                    .write_output(format!("{n:>40} {CANARY}\n").as_bytes())?;
            }
            said("ok".into(), String::new())
        }
        Leak::Flood => {
            let line = format!("{:>1000} {CANARY}\n", "");
            for _ in 0..9_000 {
                cx.host.write_output(line.as_bytes())?;
            }
            said("ok".into(), String::new())
        }
        Leak::Failed => Err(ToolError::new(
            ErrorKind::Unavailable,
            format!("it said\n{CANARY}"),
        )),
        Leak::Panicked => panic!("on {CANARY}"),
        Leak::Warned => {
            cx.host.warn(&format!("found {CANARY}"));
            said("ok".into(), String::new())
        }
        Leak::Data => Ok(ToolOutput {
            summary: "ok".into(),
            content: String::new(),
            data: Some(json!({ "found": [CANARY] })),
        }),
    }
}

/// The pod's result of one call that leaks, under this hook.
fn shaped(leak: Leak, features: Vec<Installed>, calls: usize) -> (PodUnderTest, PodRun) {
    let (mut pod, _) = pod(&[], features);
    let tool = FnTool::new("Leak", ToolEffect::ReadOnly, move |cx, _| leaks(leak, cx));
    pod.tools = vec![tool];
    pod.script.clear();
    for _ in 0..calls {
        pod.script.add(ScriptedAnswer::calls(&[("Leak", "{}")]));
    }
    pod.script.add(ScriptedAnswer::text("done"));
    let ran = pod.run("go");
    ran.end();
    (pod, ran)
}

/// Whether the canary is in a byte of any file of the session.
fn leaked(dir: &Path) -> Option<PathBuf> {
    found(dir, CANARY)
}

/// A file of the session that has these bytes.
pub(crate) fn found(dir: &Path, canary: &str) -> Option<PathBuf> {
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes
                .windows(canary.len())
                .any(|part| part == canary.as_bytes())
            {
                return Some(path);
            }
        }
    }
    None
}

fn key() -> HookKey<ToolShape> {
    HookKey::new("shape").withhold_on_failure()
}

fn clean(view: &ToolShapeView) -> Change<ToolOutput> {
    let ToolOutput {
        summary, content, ..
    } = &view.output;
    let gone = |text: &str| text.replace(CANARY, "[gone]");
    let data = view.output.data.clone();
    let data = data.map(|data| map_texts(data, &|text| Some(gone(text))));
    let [summary, content] = [summary, content].map(|text| gone(text));
    Change::Replaced(ToolOutput {
        summary,
        content,
        data,
    })
}

fn nowhere(what: &str, pod: &PodUnderTest, ran: &PodRun) -> ToolFinished {
    assert_eq!(leaked(&pod.dir), None, "{what}: in a file");
    assert!(
        !format!("{:?}", ran.events).contains(CANARY),
        "{what}: an event has it"
    );
    assert!(
        !format!("{:?}", pod.script.requests()).contains(CANARY),
        "{what}: the model got it"
    );
    results(pod).remove(0)
}

#[test]
fn what_is_replaced_is_in_no_byte_of_the_session() {
    for leak in LEAKS {
        let seen = Arc::new(Mutex::new(None));
        let dir: Arc<Mutex<PathBuf>> = Arc::default();
        let sees = Arc::clone(&seen);
        let at = Arc::clone(&dir);
        let says = move |view: &ToolShapeView| {
            *sees.lock().unwrap() = leaked(&at.lock().unwrap());
            clean(view)
        };
        let (mut pod, _) = pod(&[], vec![transform("builtin:t", key(), says)]);
        *dir.lock().unwrap() = pod.dir.clone();
        pod.tools = vec![FnTool::new("Leak", ToolEffect::ReadOnly, move |cx, _| {
            leaks(leak, cx)
        })];
        pod.script.clear();
        pod.script.add(ScriptedAnswer::calls(&[("Leak", "{}")]));
        pod.script.add(ScriptedAnswer::text("done"));
        let ran = pod.run("go");
        ran.end();
        let result = nowhere(&format!("{leak:?}"), &pod, &ran);
        assert_eq!(
            *seen.lock().unwrap(),
            None,
            "{leak:?}: it was kept before the hook answered"
        );
        let told = format!("{:?}", (&result.outcome, &result.warnings, &result.data));
        assert!(told.contains("[gone]"), "{leak:?}: {told}");
        assert_eq!(result.output.is_some(), leak == Leak::Written, "{leak:?}");
    }
}

#[test]
fn a_hook_that_fails_withholds_each_time_and_quotes_nothing() {
    let late = |_: &ToolShapeView| {
        std::thread::sleep(Duration::from_millis(240));
        Change::Unchanged
    };
    type Fails = Box<dyn Fn(&ToolShapeView) -> Change<ToolOutput> + Send + Sync>;
    let cases: [(&str, Fails, &str); 3] = [
        (
            "panics",
            Box::new(|view| panic!("on {:?}", view.output)),
            "it panicked after",
        ),
        ("is late", Box::new(late), "later than its deadline"),
        (
            "is too long",
            Box::new(|_| {
                Change::Replaced(ToolOutput {
                    summary: String::new(),
                    content: "x".repeat(9 << 20),
                    data: None,
                })
            }),
            "at most 8388608 are allowed",
        ),
    ];
    for (what, fails, why) in cases {
        let late = what == "is late";
        let key = key().deadline(Duration::from_millis(if late { 200 } else { 10_000 }));
        let (pod, ran) = shaped(Leak::Content, vec![transform("builtin:t", key, fails)], 5);
        nowhere(what, &pod, &ran);
        let all = results(&pod);
        assert_eq!(all.len(), 5);
        for result in all {
            assert_eq!(
                result.outcome.status,
                ResultStatus::Ok,
                "{what}: the call did what it did"
            );
            assert!(
                result.outcome.summary.contains("its result was withheld"),
                "{what}: {result:?}"
            );
            assert!(
                result.outcome.content.is_empty() && result.output.is_none(),
                "{what}: {result:?}"
            );
            let told = result.warnings.concat();
            assert!(
                told.contains("hook `shape` of builtin:t") && told.contains(why),
                "{what}: {told}"
            );
        }
    }
}

/// A hook that has no answer.
struct Fails(Arc<AtomicUsize>);

#[async_trait::async_trait]
impl Hook<ToolShape> for Fails {
    async fn call(&self, _: &ToolShapeView) -> Result<Change<ToolOutput>, HookFailure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(HookFailure::new("its process died"))
    }
}

#[test]
fn a_failure_is_a_value_and_ends_the_chain_where_it_withholds() {
    for withholds in [true, false] {
        let asked = Arc::new(AtomicUsize::new(0));
        let behind = Arc::new(AtomicUsize::new(0));
        let key = if withholds {
            key()
        } else {
            HookKey::new("shape")
        };
        let first = hook(
            "builtin:a",
            builder("builtin:a").transform(&key).build(),
            key,
            Arc::new(Fails(asked.clone())),
        );
        let counts = Arc::clone(&behind);
        let second = transform(
            "builtin:b",
            HookKey::<ToolShape>::new("second"),
            move |_| {
                counts.fetch_add(1, Ordering::Relaxed);
                Change::Unchanged
            },
        );
        let (pod, _) = shaped(Leak::Content, vec![first, second], 4);
        let counted = (
            asked.load(Ordering::Relaxed),
            behind.load(Ordering::Relaxed),
        );
        assert_eq!(
            counted,
            if withholds { (4, 0) } else { (3, 4) },
            "{withholds}"
        );
        let result = results(&pod).remove(0);
        assert_eq!(
            result.outcome.text().contains(CANARY),
            !withholds,
            "{result:?}"
        );
        let problem = result.transforms[0].problem.clone().unwrap_or_default();
        assert!(problem.contains("its process died"), "{problem}");
    }
}

#[test]
fn what_a_hook_before_it_says_as_it_dies_is_nowhere() {
    let quotes = transform(
        "builtin:a",
        HookKey::<ToolShape>::new("quotes"),
        |view: &ToolShapeView| panic!("on {:?}", view.output),
    );
    let (pod, ran) = shaped(
        Leak::Content,
        vec![quotes, transform("builtin:b", key(), clean)],
        1,
    );
    let result = nowhere("quoted", &pod, &ran);
    assert!(result.outcome.text().contains("[gone]"), "{result:?}");
    assert!(
        result.transforms[0]
            .problem
            .as_ref()
            .is_some_and(|why| why.contains("it panicked")),
        "{result:?}"
    );
}

#[test]
fn an_output_that_cannot_be_held_is_withheld_or_not_shaped() {
    for withholds in [true, false] {
        let key = if withholds {
            key()
        } else {
            HookKey::new("shape")
        };
        let (pod, _) = shaped(Leak::Flood, vec![transform("builtin:t", key, clean)], 1);
        let result = results(&pod).remove(0);
        assert_eq!(leaked(&pod.dir).is_some(), !withholds, "{result:?}");
        assert_eq!(
            (result.output.is_some(), result.warnings.len()),
            (!withholds, 1),
            "{result:?}"
        );
        assert!(result.warnings[0].contains("8388608 bytes"), "{result:?}");
    }
}

#[test]
fn a_hook_for_other_tools_holds_nothing() {
    // More than can be held: it would be withheld.
    let (pod, _) = shaped(
        Leak::Flood,
        vec![transform("builtin:t", key().tools(&["Other"]), clean)],
        1,
    );
    let result = results(&pod).remove(0);
    assert!(
        result.output.is_some() && result.transforms.is_empty() && result.warnings.is_empty(),
        "{result:?}"
    );
    assert!(result.outcome.text().contains(CANARY), "{result:?}");
}
