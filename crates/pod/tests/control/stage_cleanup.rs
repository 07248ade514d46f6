//! What a killed call had put beside a file goes when its session is opened again, and nothing else.

use crate::fixtures::{echo, pod, said, sound};
use authority::Workspace;
use llm_worker::tool::FileChange;
use llm_worker::{ErrorKind, ToolEffect, ToolError};
use pod::record::Record;
use std::fs;
use std::path::Path;
use testkit::{FnTool, ModelScript, PodUnderTest, RunEnd, ScriptedAnswer};

/// Announces a change of a file, stages it, and is killed, or fails, before it takes its place.
fn left(path: &'static str, killed: bool) -> PodUnderTest {
    let mut pod = pod(
        vec![
            ScriptedAnswer::calls(&[("Change", "{}")]),
            ScriptedAnswer::text("failed"),
        ],
        Vec::new(),
    );
    let project = pod.project.clone();
    let change = FnTool::new("Change", ToolEffect::Effectful, move |cx, _| {
        let path = project.join(path);
        let after = Some("00".repeat(32));
        let change = FileChange {
            path: path.clone(),
            before: None,
            mode: None,
            after,
            made: None,
        };
        let files = Workspace::open(
            &ambient::claim(),
            &project,
            &project,
            authority::Access::ReadWrite,
        )
        .unwrap();
        async move {
            let number = cx.host.file_changing(change).await?;
            std::mem::forget(
                files
                    .stage(&files.inside(&path).unwrap(), number, b"next")
                    .unwrap(),
            );
            if killed {
                said("changed")
            } else {
                Err(ToolError::new(ErrorKind::Unavailable, "it hangs"))
            }
        }
    });
    pod.tools = vec![change, echo("Echo", ToolEffect::ReadOnly)];
    if killed {
        pod.points.kill("commit:tool_finished", 0);
    }
    assert_eq!(matches!(pod.run("go").how, RunEnd::Killed), killed);
    pod.revive();
    pod
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn swept(pod: &PodUnderTest) -> Option<u64> {
    let swept = |(_, record): &(u64, Record)| match record {
        Record::Recovery(recovery) => Some(recovery.swept),
        _ => None,
    };
    pod.records().iter().find_map(swept)
}

// A call that failed may have a thread that never came back: what that left goes, too, whatever ended the process.
#[test]
fn what_a_call_left_goes_and_nothing_else() {
    for path in ["f", "made/for/it/f"] {
        for killed in [true, false] {
            let what = format!("{path} {killed}");
            let mut pod = left(path, killed);
            let mut kept = names(&pod.project);
            let at = kept
                .iter()
                .position(|name| name.starts_with(".yoi-"))
                .unwrap_or_else(|| panic!("{kept:?}"));
            kept.remove(at);
            for others in [".yoi-0123456789abcdef.tmp", "mine.tmp"] {
                fs::write(pod.project.join(others), "next").unwrap();
                kept.push(others.to_owned());
            }
            kept.sort();
            pod.script = ModelScript::new(vec![ScriptedAnswer::text("went on")]);
            pod.run("go on").end();
            assert_eq!(names(&pod.project), kept, "{what}");
            assert_eq!(swept(&pod), killed.then_some(1), "{what}");
            sound(&pod, &what);
        }
    }
}
