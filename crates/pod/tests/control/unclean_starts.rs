//! What a pod does after things ended badly: stuck features, records no disk takes, hosts that left without a word,
//! inputs nobody took, and a HEAD that is older than the log.

use crate::fixtures::{echo, pod, said, sound};
use llm_worker::ToolEffect;
use pod::record::{Record, SystemItem};
use std::fs;
use std::time::Duration;
use testkit::{EIO, Fault, FnTool, Latch, RunEnd, ScriptedAnswer, within};

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_feature_with_a_stuck_thread_is_off_until_restart() {
    let gate = Latch::new("never");
    let held = gate.clone();
    let stuck = FnTool::new("Stuck", ToolEffect::ReadOnly, move |_, _| {
        let held = held.clone();
        async move {
            held.pass_blocking();
            said("never said")
        }
    });
    let tools = vec![stuck.deadline(SHORT), echo("Echo", ToolEffect::ReadOnly)];
    let answers = vec![
        ScriptedAnswer::calls(&[("Stuck", "{}")]),
        ScriptedAnswer::calls(&[("Echo", "{}")]),
        ScriptedAnswer::text("went on"),
    ];
    let mut pod = pod(answers, tools);
    (pod.grace, pod.paused) = (SHORT, false);
    let pod = within("a stuck feature", move || {
        assert_eq!(pod.run("first").end().answer.as_deref(), Some("went on"));
        pod.script.add(ScriptedAnswer::calls(&[("Echo", "{}")]));
        pod.script.add(ScriptedAnswer::text("again"));
        assert_eq!(pod.run("second").end().refused, None);
        pod
    });
    gate.open();
    let verdicts: Vec<(&str, String)> = pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::VerdictGiven(verdict) => Some((verdict.decision.word(), verdict.rule)),
            _ => None,
        })
        .collect();
    assert_eq!(
        verdicts.iter().map(|v| v.0).collect::<Vec<_>>(),
        ["allow", "invalid", "allow"]
    );
    assert_eq!(verdicts[1].1, "host:stuck-feature");
    sound(&pod, "stuck feature");
}

#[test]
fn survivors_are_looked_for_after_every_stop_without_a_word() {
    let pod = pod(
        vec![
            ScriptedAnswer::text("one"),
            ScriptedAnswer::text("two"),
            ScriptedAnswer::text("three"),
        ],
        vec![],
    );
    *pod.survivors.lock().unwrap() = Ok(2);
    let ended = |pod: &testkit::PodUnderTest| {
        let found = |(_, record): &(u64, Record)| match record {
            Record::Recovery(recovery) => Some(recovery.ended_processes),
            _ => None,
        };
        pod.records().iter().filter_map(found).collect::<Vec<_>>()
    };
    // The turn is over, the farewell is not said: a child may have outlived the host.
    pod.points.kill("commit:host_stopped", 0);
    assert!(matches!(pod.run("first").how, RunEnd::Killed));
    pod.revive();
    pod.run("second").end();
    assert_eq!(ended(&pod), [2]);
    pod.run("third").end();
    assert_eq!(
        ended(&pod),
        [2],
        "after a stop in good order nobody is looked for"
    );
    sound(&pod, "survivors");
}

#[test]
fn processes_that_may_still_run_are_told_of() {
    for (killed_at, open) in [
        ("commit:host_stopped", false),
        ("commit:turn_finished", true),
    ] {
        let pod = pod(
            vec![ScriptedAnswer::text("one"), ScriptedAnswer::text("two")],
            vec![],
        );
        pod.points.kill(killed_at, 0);
        assert!(matches!(pod.run("first").how, RunEnd::Killed));
        pod.revive();
        *pod.survivors.lock().unwrap() = Err("they do not end".to_owned());
        let ran = pod.run("second");
        let found = ran.found.as_ref().unwrap();
        assert_eq!(
            (found.crashed, found.survivors.as_deref()),
            (open, Some("they do not end"))
        );
        ran.end();
        let told = |(_, record): &(u64, Record)| match record {
            Record::SystemItem(item @ SystemItem::Recovery { .. }) => {
                item.text().contains("they do not end")
            }
            _ => false,
        };
        assert_eq!(
            pod.records().iter().filter(|record| told(record)).count(),
            1,
            "{killed_at}: the model is told once"
        );
        let noted = |(_, record): &(u64, Record)| match record {
            Record::Recovery(recovery) => recovery.survivors.is_some(),
            _ => false,
        };
        assert_eq!(
            pod.records().iter().filter(|record| noted(record)).count(),
            1,
            "{killed_at}"
        );
        sound(&pod, "still running");
    }
}

/// Also where both are the same words: only a key says that two inputs are one.
#[test]
fn an_input_nobody_took_goes_first() {
    for (again, users) in [
        ("first", vec!["first", "first"]),
        ("other", vec!["first", "other"]),
    ] {
        let pod = pod(vec![ScriptedAnswer::text("done")], vec![]);
        pod.points.kill("input_queued", 0);
        assert!(matches!(pod.run("first").how, RunEnd::Killed));
        pod.revive();
        let ran = pod.run(again);
        assert_eq!(
            ran.found.as_ref().map(|found| found.waiting),
            Some(1),
            "{again}"
        );
        ran.end();
        let seen: Vec<String> = pod
            .restored()
            .items
            .into_iter()
            .filter_map(|item| match item {
                llm_worker::Item::User { text, .. } => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(seen, users, "{again}");
        sound(&pod, again);
    }
}

#[test]
fn an_outdated_head_hides_no_record() {
    // Opening writes HEAD anew and goes on when that fails, whichever operation it is.
    let mut went_on = 0;
    for n in 0..40 {
        let pod = pod(
            vec![
                ScriptedAnswer::text("one"),
                ScriptedAnswer::text("two"),
                ScriptedAnswer::text("three"),
            ],
            vec![],
        );
        pod.run("first").end();
        let head = fs::read(pod.dir.join("HEAD")).unwrap();
        pod.run("second").end();
        fs::write(pod.dir.join("HEAD"), head).unwrap();
        pod.disk.fail_at(n, Fault::Once(EIO));
        if matches!(pod.run("third").how, RunEnd::Ended(_)) {
            went_on += 1;
            pod.disk.repair();
            assert_eq!(pod.state().turns, 3, "operation {n}");
            sound(&pod, &format!("operation {n}"));
        }
    }
    assert!(went_on > 0);
}
