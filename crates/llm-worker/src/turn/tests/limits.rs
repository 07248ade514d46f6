//! Answers that overflow or contradict themselves: the turn ends, nothing of them is kept, the stream is dropped.

use super::rig::{Owed, Rig, user};
use crate::effect::Input;
use crate::history::{Counters, History};
use crate::item::CallId;
use crate::model::{ModelEvent, StopReason};
use crate::turn::Limits;
use std::sync::Arc;

const SMALL: Limits =
    Limits { steps: 9, calls: 3, argument_bytes: 10, all_argument_bytes: 16, text_bytes: 20, parts: 6 };

#[test]
fn an_overflow_is_exhausted_and_what_just_fits_is_fine() {
    let text = "x".repeat(20);
    let (fits, over, thought) = (format!("t:{text}"), format!("t:{text}x"), format!("r:{text}"));
    let cases: &[(&str, &[&str], bool)] = &[
        ("text that fits", &[&fits, "end"], true),
        ("text over", &[&over, "end"], false),
        ("text in pieces over", &[&fits, "t:y", "end"], false),
        ("text and reasoning over", &[&fits, "r:y", "end"], false),
        ("reasoning over", &[&thought, "r:y", "end"], false),
        ("reasoning and text over", &[&thought, "t:y", "end"], false),
        ("a seal that fits", &["r:0123456789", "s:", "end"], true),
        ("a seal over", &["r:0123456789", "s:x", "end"], false),
        ("seals of nothing over", &["s:", "s:", "s:", "end"], false),
        ("calls that fit", &["c:ok", "c:ok", "c:ok", "tools"], true),
        ("calls over", &["c:ok", "c:ok", "c:ok", "c:ok", "tools"], false),
        ("arguments that fit together", &["c:ok:{\"a\":1}", "n:okokoko", "tools"], true),
        ("arguments over together", &["c:ok:{\"a\":1}", "c:ok:{\"a\":1}", "tools"], false),
        ("names over together", &["c:ok:{\"a\":1}", "n:okokokok", "tools"], false),
        ("parts that fit", &["s:", "t:a", "r:b", "t:c", "r:d", "t:e", "end"], true),
        ("parts over", &["s:", "t:a", "r:b", "t:c", "r:d", "t:e", "r:f", "end"], false),
        ("parts that are put together", &["t:a", "r:b", "t:c", "r:d", "t:e", "r:f", "t:g", "end"], true),
        ("arguments that fit", &["c:ok:{\"a\":10}", "tools"], true),
        ("arguments over", &["c:ok:{\"a\":100}", "tools"], false),
        ("a name over", &["c:okokokokoko:", "tools"], false),
        ("a name over, and nothing else", &["n:okokokokoko", "tools"], false),
        ("a retry makes room", &[&fits, "c:ok", "c:ok:{\"a\":1}", "retry", &fits, "c:ok:{\"a\":1}", "tools"], true),
    ];
    for (name, events, fits) in cases {
        let rig = Rig::with(vec![user("go")], &[events], SMALL).run();
        let overflowed = rig.transcript() == "turn user:go request1 | end:ModelFailed/Exhausted";
        assert_eq!(overflowed, !fits, "{name}: {}", rig.transcript());
        assert_eq!(rig.seen.contains(&"cancel model".to_owned()), !fits, "{name}");
    }
}

#[test]
fn events_that_contradict_each_other_are_a_fault_of_the_model() {
    let start = |index| ModelEvent::CallStarted { index, name: "ok".into() };
    let more = |index| ModelEvent::CallArguments { index, fragment: "{".into() };
    for events in [vec![start(1)], vec![start(0), start(0)], vec![more(0)], vec![start(0), more(1)]] {
        let mut rig = Rig::new(&[&["end"]]);
        rig.go(2);
        rig.drain();
        assert!(matches!(rig.owed.pop(), Some(Owed::Stream(_))));
        for event in events {
            rig.turn().handle(Input::Model(event)).unwrap();
        }
        rig.turn().handle(Input::Model(ModelEvent::Stop(StopReason::EndTurn))).unwrap();
        let rig = rig.run();
        assert_eq!(rig.transcript(), "turn user:go request1 | end:ModelFailed/Bug");
    }
}

#[test]
fn a_session_can_run_out_of_call_numbers() {
    let counters = Counters { calls: CallId::MAX - 1, requests: 7 };
    for (calls, end) in
        [(1, "| result99999999:Ok request9 | says:fine stop:EndTurn/0 end:Done"), (2, "| end:ModelFailed/Exhausted")]
    {
        let history = History::restore(
            super::rig::surface(1),
            Arc::new(super::rig::Grouped),
            Vec::<crate::Item>::new(),
            counters,
        );
        let mut words = vec!["c:ok"; calls];
        words.push("tools");
        let answers = [super::rig::answer(&words), super::rig::answer(&["t:fine", "end"])].into();
        let rig = Rig::over(history.unwrap(), Vec::new(), vec![user("go")], answers, SMALL).run();
        assert!(rig.transcript().ends_with(end), "{}", rig.transcript());
    }
}
