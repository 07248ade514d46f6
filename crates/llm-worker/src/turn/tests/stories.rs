//! One row per way a turn can go: what the model does, and every commit that must come of it, in order.

use super::rig::{Owed, Rig, user};
use crate::effect::{Fact, Gated, TurnStop};
use crate::item::{Item, ResultStatus};
use crate::turn::TurnLimits;

/// What the model answers, request by request, and the commits: facts by name, ` | ` between commits.
const STORIES: &[(&str, &[&[&str]], &str)] = &[
    (
        "an answer",
        &[&["r:hm", "t:hel", "t:lo", "u", "end"]],
        "turn user:go request1 | thinks:hm says:hello stop:EndTurn/2 end:Done",
    ),
    (
        "one call",
        &[&["t:look", "c:ok", "tools"], &["t:fine", "end"]],
        "turn user:go request1 | says:look call1:ok stop:ToolUse/0 judged1:allow start1 | result1:Ok request2 | \
         says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "a call that stops as if it ended",
        &[&["c:ok", "end"], &["t:fine", "end"]],
        "turn user:go request1 | call1:ok stop:EndTurn/0 judged1:allow start1 | result1:Ok request2 | \
         says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "two steps of calls are numbered on",
        &[
            &["c:ok", "tools"],
            &["c:ok", "c:ok2", "other"],
            &["t:fine", "other"],
        ],
        "turn user:go request1 | call1:ok stop:ToolUse/0 judged1:allow start1 | result1:Ok request2 | \
         call2:ok call3:ok2 stop:Other(\"odd\")/0 judged2:allow judged3:allow start2 start3 | result2:Ok | \
         result3:Ok request3 | says:fine stop:Other(\"odd\")/0 end:Done",
    ),
    (
        "invalid JSON is a result, not a run",
        &[&["c:ok:{\"a\":", "tools"], &["t:sorry", "end"]],
        "turn user:go request1 | call1:ok stop:ToolUse/0 judged1:invalid result1:Error | request2 | \
         says:sorry stop:EndTurn/0 end:Done",
    ),
    (
        "no argument text is not an empty object",
        &[&["n:ok", "tools"], &["t:sorry", "end"]],
        "turn user:go request1 | call1:ok stop:ToolUse/0 judged1:invalid result1:Error | request2 | \
         says:sorry stop:EndTurn/0 end:Done",
    ),
    (
        "an unknown tool is a result",
        &[&["c:fly", "tools"], &["t:sorry", "end"]],
        "turn user:go request1 | call1:fly stop:ToolUse/0 judged1:invalid result1:Error | request2 | \
         says:sorry stop:EndTurn/0 end:Done",
    ),
    (
        "a refused call beside an allowed one",
        &[&["c:no", "c:ok", "tools"], &["t:fine", "end"]],
        "turn user:go request1 | call1:no call2:ok stop:ToolUse/0 judged1:refuse judged2:allow start2 \
         result1:Refused | result2:Ok request2 | says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "a verdict that ends the turn starts nothing",
        &[&["c:ok", "c:halt", "c:no", "c:fly", "tools"]],
        "turn user:go request1 | call1:ok call2:halt call3:no call4:fly stop:ToolUse/0 judged1:allow judged2:abort \
         judged3:refuse judged4:invalid result1:Cancelled result2:Refused result3:Refused result4:Error end:Aborted",
    ),
    (
        "a cut answer runs none of its calls",
        &[&["t:a", "c:ok", "c:ok:{\"x\"", "max"], &["t:less", "end"]],
        "turn user:go request1 | says:a call1:ok call2:ok stop:MaxTokens/0 result1:Error result2:Error | request2 | \
         says:less stop:EndTurn/0 end:Done",
    ),
    (
        "a cut text ends the turn",
        &[&["t:and then", "max"]],
        "turn user:go request1 | says:and then stop:MaxTokens/0 end:MaxTokens",
    ),
    (
        "cut before the first word",
        &[&["r:hm", "max"]],
        "turn user:go request1 | thinks:hm stop:MaxTokens/0 end:MaxTokens",
    ),
    (
        "a refusal",
        &[&["t:I will not", "refusal"]],
        "turn user:go request1 | says:I will not stop:Refusal/0 end:Refused",
    ),
    (
        "a refusal without words",
        &[&["refusal"]],
        "turn user:go request1 | stop:Refusal/0 end:Refused",
    ),
    (
        "a refusal with a call",
        &[&["c:ok", "refusal"]],
        "turn user:go request1 | call1:ok stop:Refusal/0 result1:Refused end:Refused",
    ),
    (
        "without seals an answer is gathered",
        &[
            &["t:a", "r:x", "c:ok", "t:b", "r:y", "tools"],
            &["t:fine", "end"],
        ],
        "turn user:go request1 | thinks:xy says:ab call1:ok stop:ToolUse/0 judged1:allow start1 | \
         result1:Ok request2 | says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "seals keep the order of an answer",
        &[
            &[
                "r:x", "s:1", "s:2", "t:a", "r:y", "s:3", "t:b", "c:ok", "r:", "s:4", "c:ok",
                "tools",
            ],
            &["t:fine", "end"],
        ],
        "turn user:go request1 | thinks:x/1 thinks:/2 says:a thinks:y/3 says:b call1:ok thinks:/4 call2:ok \
         stop:ToolUse/0 judged1:allow judged2:allow start1 start2 | result1:Ok | result2:Ok request2 | \
         says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "a retry takes the seals along",
        &[&["r:x", "s:1", "retry", "t:a", "r:y", "t:b", "end"]],
        "turn user:go request1 | thinks:y says:ab stop:EndTurn/0 end:Done",
    ),
    (
        "a pause is gone on with",
        &[&["t:so", "pause"], &["t:fine", "end"]],
        "turn user:go request1 | says:so stop:Paused/0 | request2 | says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "a pause with a call is a call",
        &[&["c:ok", "pause"], &["t:fine", "end"]],
        "turn user:go request1 | call1:ok stop:Paused/0 judged1:allow start1 | result1:Ok request2 | \
         says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "a pause before the first word",
        &[&["pause"]],
        "turn user:go request1 | stop:Paused/0 end:Empty",
    ),
    (
        "nothing",
        &[&["end"]],
        "turn user:go request1 | stop:EndTurn/0 end:Empty",
    ),
    (
        "white space is nothing",
        &[&["t: \n", "tools"]],
        "turn user:go request1 | stop:ToolUse/0 end:Empty",
    ),
    (
        "thoughts are not an answer",
        &[&["r:hm", "end"]],
        "turn user:go request1 | thinks:hm stop:EndTurn/0 end:Empty",
    ),
    (
        "white space beside a call is no item",
        &[&["t:\n\n", "r: ", "c:ok", "tools"], &["t:fine", "end"]],
        "turn user:go request1 | call1:ok stop:ToolUse/0 judged1:allow start1 | result1:Ok request2 | \
         says:fine stop:EndTurn/0 end:Done",
    ),
    (
        "a cut stream leaves nothing",
        &[&["t:hel", "c:ok", "fail:the stream was cut"]],
        "turn user:go request1 | end:ModelFailed/Unavailable",
    ),
    (
        "a failure after a step keeps the step",
        &[&["c:ok", "tools"], &["fail:no route"]],
        "turn user:go request1 | call1:ok stop:ToolUse/0 judged1:allow start1 | result1:Ok request2 | \
         end:ModelFailed/Unavailable",
    ),
    (
        "a retry voids what came before, but not what it cost",
        &[
            &[
                "t:hel", "r:x", "c:ok", "u", "retry", "t:hello", "c:ok2", "tools",
            ],
            &["t:x", "end"],
        ],
        "turn user:go request1 | says:hello call1:ok2 stop:ToolUse/2 judged1:allow start1 | result1:Ok request2 | \
         says:x stop:EndTurn/0 end:Done",
    ),
];

#[test]
fn every_story_has_its_commits() {
    for (name, answers, commits) in STORIES {
        let rig = Rig::new(answers).run();
        assert_eq!(rig.transcript(), *commits, "{name}");
    }
}

#[test]
fn effects_come_in_order_and_the_commit_last() {
    let rig = Rig::new(&[&["t:look", "c:ok", "c:ok", "tools"], &["t:fine", "end"]]).run();
    let seen: Vec<_> = rig
        .seen
        .iter()
        .map(|what| what.split('(').next().unwrap())
        .map(|what| what.split(" { text").next().unwrap())
        .collect();
    let call = "CallStarted { index: 0, name: \"ok\" }";
    let next = "CallStarted { index: 1, name: \"ok\" }";
    assert_eq!(
        seen,
        [
            "gate", "commit", "send 1", "Text", call, next, "judge 1", "judge 2", "commit",
            "run 1", "run 2", "commit", "gate", "commit", "send 2", "Text", "commit", "finished"
        ]
    );
}

#[test]
fn parallel_calls_may_end_in_any_order() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut rig = Rig::new(&[&["c:ok1", "c:ok2", "c:ok3", "tools"], &["t:fine", "end"]]);
        while !rig.owed.iter().any(|owed| matches!(owed, Owed::Run(_))) {
            rig.go(1);
            rig.drain();
        }
        for number in order {
            let at = |owed: &Owed| matches!(owed, Owed::Run(id) if id.number() == number + 1);
            let place = rig
                .owed
                .iter()
                .position(at)
                .expect("runs beside the others");
            rig.pay(place).unwrap();
            rig.drain();
            while let Some(commit) = rig
                .owed
                .iter()
                .position(|owed| matches!(owed, Owed::Commit(_)))
            {
                rig.pay(commit).unwrap();
                rig.drain();
            }
        }
        let rig = rig.run();
        let results = order
            .map(|number| format!("result{}:Ok", number + 1))
            .join(" | ");
        assert!(
            rig.transcript()
                .contains(&format!(" start3 | {results} request2 | ")),
            "{}",
            rig.transcript()
        );
    }
}

#[test]
fn what_gates_add_rides_with_the_request() {
    let note = |text: &str| Item::System {
        source: "host".into(),
        text: text.into(),
    };
    let mut rig = Rig::new(&[&["c:ok", "tools"], &["t:fine", "end"]]);
    rig.gates = [vec![note("one")], vec![note("two"), user("three")]]
        .map(|notes| Gated {
            notes,
            ..Gated::default()
        })
        .into();
    let rig = rig.run();
    assert_eq!(
        rig.transcript(),
        "turn user:go system:one request1 | call1:ok stop:ToolUse/0 judged1:allow start1 | \
         result1:Ok system:two user:three request2 | says:fine stop:EndTurn/0 end:Done"
    );
}

#[test]
fn a_gate_can_end_the_turn() {
    for (stop, end) in [
        (TurnStop::CostLimit, "CostLimit"),
        (
            TurnStop::Aborted {
                reason: "no".into(),
            },
            "Aborted",
        ),
    ] {
        let mut rig = Rig::new(&[&["c:ok", "tools"]]);
        rig.gates = [
            Gated::default(),
            Gated {
                notes: vec![user("late")],
                stop: Some(stop),
                ..Gated::default()
            },
        ]
        .into();
        let rig = rig.run();
        assert!(
            rig.transcript()
                .ends_with(&format!("start1 | result1:Ok user:late end:{end}")),
            "{}",
            rig.transcript()
        );
    }
}

#[test]
fn steps_are_counted() {
    let calls: &[&str] = &["c:ok", "tools"];
    for steps in 0..4_u32 {
        let rig = Rig::with(vec![user("go")], &[calls; 9], TurnLimits::steps(steps)).run();
        let requests = rig
            .durable
            .iter()
            .filter(|fact| matches!(fact, Fact::Request(_)))
            .count();
        assert_eq!(requests, steps as usize);
        let last = if steps == 0 {
            "turn user:go end:StepLimit".to_owned()
        } else {
            format!("result{steps}:Ok end:StepLimit")
        };
        assert!(rig.transcript().ends_with(&last), "{}", rig.transcript());
    }
}

#[test]
fn only_user_and_system_items_begin_a_turn() {
    let rig = Rig::with(
        vec![
            user("go"),
            Item::Assistant {
                text: "I am you".into(),
            },
        ],
        &[],
        TurnLimits::steps(9),
    )
    .run();
    assert_eq!(rig.transcript(), "turn end:Aborted");
    let rig = Rig::with(Vec::new(), &[&["t:hello", "end"]], TurnLimits::steps(9)).run();
    assert_eq!(
        rig.transcript(),
        "turn request1 | says:hello stop:EndTurn/0 end:Done"
    );
}

#[test]
fn a_model_reads_why_its_call_did_not_run() {
    let rig = Rig::new(&[
        &["c:no", "c:fly", "c:ok:[1]", "tools"],
        &["c:ok", "max"],
        &["t:x", "end"],
    ])
    .run();
    let words: Vec<_> = rig
        .durable
        .iter()
        .filter_map(|fact| match fact {
            Fact::Finished { outcome, .. } => Some((outcome.status, outcome.text())),
            _ => None,
        })
        .collect();
    let wanted = [
        (ResultStatus::Refused, "not here"),
        (ResultStatus::Error, "there is no tool called fly"),
        (
            ResultStatus::Error,
            "arguments do not fit ok: expected an object, found an array",
        ),
        (
            ResultStatus::Error,
            "not run: the answer reached the output limit",
        ),
    ];
    assert_eq!(words.len(), wanted.len());
    for ((status, text), (wanted_status, wanted_text)) in words.iter().zip(wanted) {
        assert!(
            *status == wanted_status && text.starts_with(wanted_text),
            "{status:?} {text}"
        );
    }
}

// Arguments that no parser takes were sent back as they were: a strict server then refused every later request, and the
// pod was stuck.
#[test]
fn the_history_holds_only_what_can_be_sent_again() {
    let calls = [
        (r#"{"a":"\ud800"}"#, false),
        (r#"{"a":1e999}"#, false),
        (r#"{"a":1,"a":2}"#, false),
        ("[1]", false),
        ("{\"a\":", false),
        (r#"{"a":"\u0000"}"#, false),
        (r#"{ "a" : 1.50 }"#, true),
    ];
    let words: Vec<String> = calls
        .iter()
        .map(|(raw, _)| format!("c:o.k:{raw}"))
        .chain(["tools".to_owned()])
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rig = Rig::new(&[&words, &["t:x\u{0}y", "end"]]).run();
    let items = rig.items();
    let sent: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::ToolCall {
                name, arguments, ..
            } => Some((name.as_str(), arguments.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(sent.len(), calls.len());
    for ((name, arguments), (raw, as_written)) in sent.iter().zip(calls) {
        assert_eq!((*name, *arguments == raw), ("o_k", as_written), "{raw}");
        let read: serde_json::Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(
            read["invalid_json"].as_str(),
            (!as_written).then_some(raw),
            "{raw}"
        );
    }
    assert!(items.contains(&Item::Assistant {
        text: "x\u{fffd}y".to_owned()
    }));
    // The call itself is judged by the words of the model.
    assert!(rig.durable.iter().any(
        |fact| matches!(fact, Fact::Finished { outcome, .. } if outcome.text().contains("o.k"))
    ));
}
