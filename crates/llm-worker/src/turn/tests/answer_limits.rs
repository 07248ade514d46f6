//! Answers that overflow or contradict themselves: nothing of them is kept, the stream is dropped. Of an overflow the model
//! is told; three in a row, or a contradiction, end the turn.

use super::rig::{EarlyEnd, Owed, Rig, user};
use crate::effect::Input;
use crate::history::{Counters, History};
use crate::item::CallId;
use crate::model::{ModelEvent, StopReason};
use crate::turn::TurnLimits;
use std::sync::Arc;

const SMALL: TurnLimits = TurnLimits {
    steps: 9,
    calls: 3,
    argument_bytes: 10,
    all_argument_bytes: 16,
    text_bytes: 20,
    parts: 6,
};

#[test]
fn an_overflow_is_exhausted_and_what_just_fits_is_fine() {
    let text = "x".repeat(20);
    let fits = format!("t:{text}");
    let over = format!("t:{text}x");
    let thought = format!("r:{text}");
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
        (
            "calls over",
            &["c:ok", "c:ok", "c:ok", "c:ok", "tools"],
            false,
        ),
        (
            "arguments that fit together",
            &["c:ok:{\"a\":1}", "n:okokoko", "tools"],
            true,
        ),
        (
            "arguments over together",
            &["c:ok:{\"a\":1}", "c:ok:{\"a\":1}", "tools"],
            false,
        ),
        (
            "names over together",
            &["c:ok:{\"a\":1}", "n:okokokok", "tools"],
            false,
        ),
        (
            "parts that fit",
            &["s:", "t:a", "r:b", "t:c", "r:d", "t:e", "end"],
            true,
        ),
        (
            "parts over",
            &["s:", "t:a", "r:b", "t:c", "r:d", "t:e", "r:f", "end"],
            false,
        ),
        (
            "parts that are put together",
            &["t:a", "r:b", "t:c", "r:d", "t:e", "r:f", "t:g", "end"],
            true,
        ),
        ("arguments that fit", &["c:ok:{\"a\":10}", "tools"], true),
        ("arguments over", &["c:ok:{\"a\":100}", "tools"], false),
        ("a name over", &["c:okokokokoko:", "tools"], false),
        (
            "a name over, and nothing else",
            &["n:okokokokoko", "tools"],
            false,
        ),
        (
            "a retry makes room",
            &[
                &fits,
                "c:ok",
                "c:ok:{\"a\":1}",
                "retry",
                &fits,
                "c:ok:{\"a\":1}",
                "tools",
            ],
            true,
        ),
    ];
    for (name, events, fits) in cases {
        let rig = Rig::with(vec![user("go")], &[events, &["t:less", "end"]], SMALL).run();
        let told = rig
            .transcript()
            .contains("| system:Your last answer was dropped, because ");
        let went_on = rig
            .transcript()
            .ends_with(" request2 | says:less stop:EndTurn/0 end:Done");
        assert_eq!(
            (told, told && went_on),
            (!fits, !fits),
            "{name}: {}",
            rig.transcript()
        );
        assert_eq!(
            rig.seen.contains(&"cancel model".to_owned()),
            !fits,
            "{name}"
        );
    }
}

#[test]
fn three_overflows_in_a_row_end_the_turn() {
    let over: &[&str] = &["u", "t:123456789012345678901", "end"];
    let rig = Rig::with(vec![user("go")], &[over, over, over], SMALL).run();
    let told = "system:Your last answer was dropped";
    assert_eq!(
        rig.transcript().matches(told).count(),
        2,
        "{}",
        rig.transcript()
    );
    assert!(
        rig.transcript()
            .ends_with("request3 | end:ModelFailed/Exhausted"),
        "{}",
        rig.transcript()
    );
    let calls: &[&str] = &["u", "c:ok", "tools"];
    let rig = Rig::with(
        vec![user("go")],
        &[over, over, calls, over, over, &["t:x", "u", "end"]],
        SMALL,
    )
    .run();
    assert_eq!(
        rig.transcript().matches(told).count(),
        4,
        "{}",
        rig.transcript()
    );
    assert!(
        rig.transcript().contains("stop:ToolUse/6"),
        "what the dropped ones cost: {}",
        rig.transcript()
    );
    assert!(
        rig.transcript().ends_with("says:x stop:EndTurn/6 end:Done"),
        "{}",
        rig.transcript()
    );
    let steps = TurnLimits { steps: 2, ..SMALL };
    let rig = Rig::with(vec![user("go")], &[over, over], steps).run();
    assert!(
        rig.transcript().contains(told) && rig.transcript().ends_with("end:StepLimit"),
        "{}",
        rig.transcript()
    );
}

/// An early end while the words for the model wait for their request: they are kept with the end.
#[test]
fn an_early_end_behind_an_overflow_ends_the_turn() {
    let over: &[&str] = &["t:123456789012345678901", "end"];
    for ((first, second), paid) in EarlyEnd::BOTH
        .into_iter()
        .flat_map(|both| (0..12).map(move |paid| (both, paid)))
    {
        let mut rig = Rig::with(vec![user("go")], &[over, over, &["t:x", "end"]], SMALL);
        rig.go(paid);
        rig.end_early(first);
        rig.end_early(second);
        let rig = rig.run();
        assert_eq!(rig.outcome, Some(first.outcome()), "{paid}");
        // Each dropped answer takes a gate, a commit and two events; the first of these drops it.
        assert_eq!(
            rig.transcript().matches("was dropped").count(),
            ((paid + 1) / 4).min(2),
            "{paid}: {}",
            rig.transcript()
        );
    }
}

#[test]
fn events_that_contradict_each_other_are_a_fault_of_the_model() {
    let start = |index| ModelEvent::CallStarted {
        index,
        name: "ok".into(),
    };
    let more = |index| ModelEvent::CallArguments {
        index,
        fragment: "{".into(),
    };
    for events in [
        vec![start(1)],
        vec![start(0), start(0)],
        vec![more(0)],
        vec![start(0), more(1)],
    ] {
        let mut rig = Rig::new(&[&["end"]]);
        rig.go(2);
        rig.drain();
        assert!(matches!(rig.owed.pop(), Some(Owed::Stream(_))));
        for event in events {
            rig.turn().handle(Input::Model(event)).unwrap();
        }
        rig.turn()
            .handle(Input::Model(ModelEvent::Stop(StopReason::EndTurn)))
            .unwrap();
        let rig = rig.run();
        assert_eq!(
            rig.transcript(),
            "turn user:go request1 | end:ModelFailed/Bug"
        );
    }
}

#[test]
fn a_session_can_run_out_of_call_numbers() {
    let counters = Counters {
        calls: CallId::MAX - 1,
        requests: 7,
    };
    for (calls, end) in [
        (
            1,
            "| result99999999:Ok request9 | says:fine stop:EndTurn/0 end:Done",
        ),
        (2, "| end:ModelFailed/Exhausted"),
    ] {
        let history = History::restore(
            super::rig::surface(1),
            Arc::new(super::rig::Grouped),
            Vec::<crate::Item>::new(),
            counters,
        );
        let mut words = vec!["c:ok"; calls];
        words.push("tools");
        let answers = [
            super::rig::answer(&words),
            super::rig::answer(&["t:fine", "end"]),
        ]
        .into();
        let rig = Rig::over(
            history.unwrap(),
            Vec::new(),
            vec![user("go")],
            answers,
            SMALL,
        )
        .run();
        assert!(rig.transcript().ends_with(end), "{}", rig.transcript());
    }
}
