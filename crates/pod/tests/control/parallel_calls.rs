//! Calls of one answer run together, under a cap, unless they touch the same, and cost few flushes.

use crate::fixtures::{as_written_by, echo, pod, said, sound, verified};
use llm_worker::tool::{Escalation, Touch};
use llm_worker::{Item, Projection, ToolEffect};
use std::sync::{Arc, Barrier};
use testkit::{FnTool, Latch, ModelScript, PodUnderTest, ScriptedAnswer, within};

/// Calls that all wait for each other.
fn meeting(many: usize) -> FnTool {
    let barrier = Arc::new(Barrier::new(many));
    FnTool::new("Meet", ToolEffect::ReadOnly, move |_, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait();
            said("met")
        }
    })
}

#[test]
fn eight_calls_overlap() {
    let pod = pod(
        vec![
            ScriptedAnswer::calls(&[("Meet", "{}"); 8]),
            ScriptedAnswer::text("done"),
        ],
        vec![meeting(8)],
    );
    let pod = within("eight calls that wait for each other", move || {
        pod.run("first").end();
        pod
    });
    sound(&pod, "parallel");
    assert_eq!(sent_results(&pod).len(), 8, "each once");
}

/// The results in the newest request, by the number of their call.
fn sent_results(pod: &PodUnderTest) -> Vec<u64> {
    let request = pod.script.requests().pop().unwrap();
    let number = |item: &Item| {
        if let Item::ToolResult { id, .. } = item {
            Some(id.number())
        } else {
            None
        }
    };
    request.items.iter().filter_map(number).collect()
}

/// The most calls that ran at once, as the control thread counts them, which starts as many as it may.
fn most_at_once(pod: &PodUnderTest) -> isize {
    let step = |point: String| match point.as_str() {
        "tool:running" => 1_isize,
        "tool:ended" => -1,
        _ => 0,
    };
    let running = pod.points.came().into_iter().scan(0, |now, point| {
        *now += step(point);
        Some(*now)
    });
    running.max().unwrap_or_default()
}

// A real session: two edits of one file in one answer raced, the second failed, and the model saw its result first.
#[test]
fn calls_that_touch_the_same_run_in_their_order() {
    use Touch::{Escalate, Host, Read, RemoteWrite, Session, Shell, Write};
    let write = |path: &str| vec![Write(path.into())];
    let read = |path: &str| vec![Read(path.into())];
    let file = write("f");
    let shell = vec![Shell("make".to_owned())];
    let escalated = vec![
        Escalate(Escalation::Network, "why".to_owned()),
        Shell("curl x".to_owned()),
    ];
    let remote = vec![RemoteWrite("tracker".to_owned())];
    let host = vec![Host("example.org".to_owned())];
    let none = Vec::new;
    let table: Vec<(&str, Vec<Touch>, Vec<Touch>, isize)> = vec![
        ("one file", file.clone(), file.clone(), 1),
        ("a dot", write("./f"), file.clone(), 1),
        ("a way around", file.clone(), write("d/../f"), 1),
        ("a link", write("link"), file.clone(), 1),
        ("a second name", file.clone(), write("hard"), 1),
        ("below a link", write("d/g"), write("dirlink/g"), 1),
        ("from above", write("/PROJECT/f"), file.clone(), 1),
        ("a new file", write("new"), write("d/../new"), 1),
        ("read, then written", read("f"), file.clone(), 1),
        ("written, then read", file.clone(), read("link"), 1),
        ("searched", read("."), write("d/g"), 1),
        (
            "one of several",
            [read("x"), write("f")].concat(),
            [write("y"), file.clone()].concat(),
            1,
        ),
        ("a command", shell.clone(), read("f"), 1),
        ("a command behind", file.clone(), shell, 1),
        ("a command with the network", escalated, host.clone(), 1),
        ("nothing named", none(), read("f"), 1),
        ("elsewhere", remote, read("f"), 1),
        ("the session", vec![Session], vec![Session], 1),
        ("two files", file.clone(), write("d/f"), 2),
        ("names that begin alike", write("f"), write("fg"), 2),
        ("two readers", read("f"), read("./f"), 2),
        ("a reader of another", read("d/g"), file.clone(), 2),
        ("the session and a file", vec![Session], file.clone(), 2),
        ("a host", host, file, 2),
    ];
    for (what, one, two, most) in table {
        // A call that writes nothing reads.
        let effect = |touches: &[Touch]| match touches
            .iter()
            .all(|touch| matches!(touch, Read(_) | Host(_)))
        {
            true if !touches.is_empty() => ToolEffect::ReadOnly,
            _ => ToolEffect::Effectful,
        };
        let mut pod = pod(Vec::new(), Vec::new());
        let at = |touch: Touch| match touch {
            Write(path) => match path.strip_prefix("/PROJECT") {
                Ok(below) => Write(pod.project.join(below)),
                Err(_) => Write(path),
            },
            other => other,
        };
        let tools: Vec<FnTool> = [("One", one), ("Two", two)]
            .map(|(name, touches)| {
                echo(name, effect(&touches)).touching(touches.into_iter().map(at).collect())
            })
            .to_vec();
        pod.tools = tools.clone();
        pod.script = ModelScript::new(vec![
            ScriptedAnswer::calls(&[("One", "{}"), ("Two", "{}")]),
            ScriptedAnswer::text("done"),
        ]);
        let in_project = |name: &str| pod.project.join(name);
        std::fs::create_dir(in_project("d")).unwrap();
        for file in ["f", "fg", "d/f", "d/g"] {
            std::fs::write(in_project(file), file).unwrap();
        }
        std::fs::hard_link(in_project("f"), in_project("hard")).unwrap();
        for (to, link) in [("f", "link"), ("d", "dirlink")] {
            std::os::unix::fs::symlink(to, in_project(link)).unwrap();
        }
        let pod = within(what, move || {
            pod.run("first").end();
            pod
        });
        assert_eq!(
            (most_at_once(&pod), sent_results(&pod)),
            (most, vec![1, 2]),
            "{what}"
        );
        assert_eq!(tools.iter().flat_map(FnTool::ran).count(), 2, "{what}");
        sound(&pod, what);
    }
}

/// A pod with an answer whose calls end in the reverse order: each waits until the next one has a result.
fn ends_in_reverse(many: usize) -> PodUnderTest {
    let latches: Vec<Latch> = (0..many)
        .map(|n| Latch::new(&format!("call {n}")))
        .collect();
    let tool = |n: usize| {
        let latch = latches[n].clone();
        FnTool::new(&format!("T{n}"), ToolEffect::ReadOnly, move |_, _| {
            let latch = latch.clone();
            async move {
                latch.pass().await;
                said("ended")
            }
        })
    };
    let names: Vec<String> = (0..many).map(|n| format!("T{n}")).collect();
    let calls: Vec<_> = names.iter().map(|name| (name.as_str(), "{}")).collect();
    let answers = vec![ScriptedAnswer::calls(&calls), ScriptedAnswer::text("done")];
    let pod = pod(answers, (0..many).map(tool).collect());
    latches[many - 1].open();
    for (nth, latch) in latches.into_iter().rev().skip(1).enumerate() {
        pod.points.at("tool:ended", nth, move || latch.open());
    }
    pod
}

#[test]
fn results_go_back_in_the_order_of_the_calls() {
    let pod = ends_in_reverse(4);
    let pod = within("calls that end in reverse", move || {
        pod.run("first").end();
        pod
    });
    assert_eq!(sent_results(&pod), [1, 2, 3, 4]);
    sound(&pod, "reversed");
}

// Version 1 of the projection had results as they arrived: its requests are still rebuilt, and those that follow.
#[test]
fn requests_of_an_older_yoi_are_verified_in_their_order() {
    let pod = ends_in_reverse(3);
    let pod = within("the older run", move || {
        pod.run("first").end();
        pod
    });
    let number = |item: &Item| match item {
        Item::ToolResult { id, .. } => Some(id.number()),
        _ => None,
    };
    let arrived: Vec<_> = pod.restored().items.iter().filter_map(number).collect();
    assert_eq!(arrived, [3, 2, 1]);
    let old = as_written_by(Projection::BY_ARRIVAL, &pod, ScriptedAnswer::text("again"));
    let before = verified(&old);
    assert_eq!((before.wrong, before.requests, before.bodies), (None, 2, 2));
    let old = within("the newer run", move || {
        old.run("second").end();
        old
    });
    assert_eq!(sent_results(&old), [1, 2, 3]);
    let after = verified(&old);
    assert_eq!((after.wrong, after.requests, after.bodies), (None, 3, 3));
}

#[test]
fn no_more_run_at_once_than_the_cap() {
    for cap in [0, 1, 2, 3] {
        let real = usize::max(cap, 1);
        let tool = echo("Count", ToolEffect::ReadOnly);
        let mut pod = pod(
            vec![
                ScriptedAnswer::calls(&[("Count", "{}"); 6]),
                ScriptedAnswer::text("done"),
            ],
            vec![tool.clone()],
        );
        pod.limits.tool_concurrency = cap;
        let pod = within("six calls under a cap", move || {
            pod.run("first").end();
            pod
        });
        assert_eq!(
            (Ok(most_at_once(&pod)), tool.ran().len()),
            (isize::try_from(real), 6),
            "cap {cap}"
        );
        sound(&pod, "capped");
    }
}

/// Flushes of a run with these answers before the last.
fn flushes(steps: &[&[(&str, &str)]]) -> u64 {
    let mut answers: Vec<ScriptedAnswer> = steps
        .iter()
        .map(|calls| ScriptedAnswer::calls(calls))
        .collect();
    answers.push(ScriptedAnswer::text("done"));
    let pod = pod(answers, vec![echo("Echo", ToolEffect::Effectful)]);
    let ran = pod.run("first");
    assert_eq!(ran.end().steps, steps.len() as u64 + 1);
    ran.flushes
}

/// Two flushes for a step with one call; at most k + 1 for k calls; none for what runs not at all but the two.
#[test]
fn a_step_costs_the_flushes_the_format_promises() {
    let one: &[(&str, &str)] = &[("Echo", "{}")];
    let none = flushes(&[]);
    assert_eq!(flushes(&[one]) - none, 2);
    assert_eq!(flushes(&[one, one, one]) - none, 6);
    assert_eq!(flushes(&[&[("None", "{}"), ("None", "{}")]]) - none, 2);
    for calls in [2_usize, 5, 8] {
        let many = vec![("Echo", "{}"); calls];
        let cost = flushes(&[&many]) - none;
        assert!(
            (2..=calls as u64 + 1).contains(&cost),
            "{cost} flushes for {calls} calls"
        );
    }
}
