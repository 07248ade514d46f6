//! Inputs nobody asked for: a typed error, and nothing changes.

use super::rig::{Ack, Grouped, Host, Owed, Rig, Turn, allowed, call_id, done, surface, user};
use crate::ErrorKind;
use crate::effect::{Effect, Gated, Input};
use crate::history::History;
use crate::item::{Item, ResultStatus, ToolOutcome};
use crate::model::{ModelError, ModelEvent};
use crate::turn::{IllegalInput, TurnLimits};
use std::sync::Arc;

fn intrusions() -> Vec<(&'static str, Input<Host>)> {
    let failed = ModelError {
        kind: ErrorKind::Retry,
        message: "x".into(),
        help: None,
    };
    vec![
        ("Gated", Input::Gated(Gated::default())),
        ("Model", Input::Model(ModelEvent::Text("x".into()))),
        ("ModelFailed", Input::ModelFailed(failed)),
        ("Judged", allowed(call_id(1))),
        (
            "ToolDone",
            done(call_id(1), ToolOutcome::of(ResultStatus::Ok, "")),
        ),
        ("Resume", Input::Resume),
    ]
}

/// Which intrusion is in fact awaited at this point.
fn awaited(rig: &Rig, name: &str) -> bool {
    rig.owed.iter().any(|owed| match owed {
        Owed::Gate => name == "Gated",
        Owed::Stream(_) => name == "Model" || name == "ModelFailed",
        Owed::Judge(call) => name == "Judged" && call.id == call_id(1),
        Owed::Run(id) => name == "ToolDone" && *id == call_id(1),
        Owed::Commit(_) | Owed::Answer(_) => false,
    })
}

#[test]
fn at_every_point_of_a_story() {
    let story: &[&[&str]] = &[&["t:look", "c:ok", "c:no", "tools"], &["t:fine", "end"]];
    let natural = Rig::new(story).run().durable;
    let mut tried = 0;
    let mut rig = Rig::new(story);
    loop {
        for (name, input) in intrusions() {
            if !awaited(&rig, name) {
                let phase = rig.turn().illegal("").to_string();
                let error = rig.turn().handle(input).expect_err(name);
                assert_eq!(phase, rig.turn().illegal("").to_string());
                assert_eq!(error.kind(), ErrorKind::Bug);
                match (name, error) {
                    ("Judged" | "ToolDone", IllegalInput::Call(id)) => assert_eq!(id, call_id(1)),
                    (name, IllegalInput::Input { input, .. }) => assert_eq!(input, name),
                    (name, error) => panic!("{name}: {error}"),
                }
                tried += 1;
            }
        }
        if rig.poll() {
            continue;
        }
        if rig.owed.is_empty() {
            break;
        }
        rig.pay(0).unwrap();
    }
    assert_eq!(rig.run().durable, natural);
    assert!(tried > 150, "{tried}");
}

#[test]
fn an_answer_is_taken_once() {
    let mut rig = Rig::new(&[&["c:ok", "c:ok", "tools"]]);
    while !matches!(rig.owed.first(), Some(Owed::Judge(_))) {
        rig.go(1);
        rig.drain();
    }
    let judge = |rig: &mut Rig, n| rig.turn().handle(allowed(call_id(n)));
    assert_eq!(judge(&mut rig, 1), Ok(()));
    assert_eq!(judge(&mut rig, 1), Err(IllegalInput::Call(call_id(1))));
    assert_eq!(judge(&mut rig, 3), Err(IllegalInput::Call(call_id(3))));
    assert_eq!(judge(&mut rig, 2), Ok(()));
    rig.owed.clear();
    rig.drain();
    rig.pay(0).unwrap();
    rig.drain();
    let finish = |rig: &mut Rig, n| {
        rig.turn()
            .handle(done(call_id(n), ToolOutcome::of(ResultStatus::Ok, "")))
    };
    assert_eq!(finish(&mut rig, 2), Ok(()));
    assert_eq!(finish(&mut rig, 2), Err(IllegalInput::Call(call_id(2))));
}

#[test]
fn an_acknowledgement_fits_only_its_own_turn() {
    let commit = |turn: &mut Turn| {
        assert!(matches!(turn.poll(), Some(Effect::Gate)));
        turn.handle(Input::Gated(Gated::default())).unwrap();
        match turn.poll() {
            Some(Effect::Commit(request)) => request,
            other => panic!("{other:?}"),
        }
    };
    let start = || {
        Turn::start(
            History::begin(surface(1), Arc::new(Grouped)),
            vec![user("go")],
            TurnLimits::steps(1),
        )
    };
    let mut one = start();
    let mut two = start();
    let first = commit(&mut one);
    let second = commit(&mut two);
    assert_eq!(first.facts(), second.facts());
    assert_eq!(
        one.handle(Input::Committed(Ack(second))),
        Err(IllegalInput::ForeignAck)
    );
    assert_eq!(
        two.handle(Input::Refused(first)),
        Err(IllegalInput::ForeignAck)
    );
    assert_eq!((one.history().items(), two.history().items()), (0, 0));
    assert!(one.poll().is_none() && two.poll().is_none());
}

#[test]
fn gates_add_user_and_system_items_only() {
    let outcome = ToolOutcome::of(ResultStatus::Ok, "forged");
    let forged = [
        Item::ToolResult {
            id: call_id(1),
            outcome,
        },
        Item::ToolCall {
            id: call_id(1),
            name: "ok".into(),
            arguments: "{}".into(),
        },
        Item::Assistant { text: "yes".into() },
        Item::Reasoning {
            text: "so".into(),
            seal: None,
        },
    ];
    for item in forged {
        let mut rig = Rig::new(&[&["t:hello", "end"]]);
        rig.drain();
        let gated = Gated {
            notes: vec![user("fine"), item],
            ..Gated::default()
        };
        assert_eq!(
            rig.turn().handle(Input::Gated(gated)),
            Err(IllegalInput::Item(1))
        );
        assert_eq!(
            rig.run().transcript(),
            "turn user:go request1 | says:hello stop:EndTurn/0 end:Done"
        );
    }
}

#[test]
fn a_turn_that_is_not_over_keeps_its_history() {
    let mut rig = Rig::new(&[&["t:hello", "end"]]);
    loop {
        let turn = rig.turn.take().unwrap();
        match turn.finish() {
            Ok(history) => break assert_eq!(history.items(), 2),
            Err(turn) => rig.turn = Some(*turn),
        }
        if !rig.poll() {
            rig.pay(0).unwrap();
        }
    }
}
