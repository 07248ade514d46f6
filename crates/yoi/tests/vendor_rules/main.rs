//! Requests of a pod whose view changes, at the boundary of a turn and in the middle of one, in each dialect: every one keeps
//! the recorded rules of its vendor, and the log proves every one.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a request of another form is a failed test"
)]

#[path = "../../../provider/tests/rules/judge.rs"]
mod judge;
use judge::{Rules, sign};
use llm_worker::effect::Outcome;
use llm_worker::projection::{Dialect, Surface};
use llm_worker::{ModelEvent, ProviderSignature, StopReason, ToolEffect, ToolOutput};
use pod::control::{NewInput, Outbox};
use pod::record::Record;
use pod::session::replay::verify;
use provider::anthropic::Messages;
use provider::openai_chat::{Chat, Flavour};
use serde_json::Value;
use session_store::Reader;
use std::collections::BTreeSet;
use std::sync::Arc;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// A window in which the results of a few steps have room.
const WINDOW: u64 = 8_000;
/// Bytes of a result.
const RESULT: usize = 2_500;

/// What one answer has.
#[derive(Clone, Copy)]
struct Shape {
    /// Parts of thinking, the second of which is redacted.
    thoughts: usize,
    says: bool,
    calls: usize,
}

const THINKS: Shape = Shape {
    thoughts: 1,
    says: false,
    calls: 1,
};
const BARE: Shape = Shape {
    thoughts: 0,
    says: false,
    calls: 1,
};
const ALL: Shape = Shape {
    thoughts: 3,
    says: true,
    calls: 2,
};
const ENDS: Shape = Shape {
    thoughts: 1,
    says: true,
    calls: 0,
};

/// A turn: bytes of its input, its answers, whether the pod has another tool from this turn on, and whether it runs a command
/// of a person.
#[derive(Default)]
struct Turn {
    input: usize,
    answers: Vec<Shape>,
    another_tool: bool,
    is_command: bool,
}

fn turn(input: usize, answers: &[Shape], times: usize) -> Turn {
    Turn {
        input,
        answers: [&answers.repeat(times)[..], &[ENDS]].concat(),
        ..Turn::default()
    }
}

fn command() -> Turn {
    Turn {
        input: 10,
        is_command: true,
        ..Turn::default()
    }
}

/// When views change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// Before the first request of a turn.
    Boundary,
    MidTurn,
}

/// A name, its turns, and the moments at which its view must have changed.
type Story = (&'static str, Vec<Turn>, &'static [Moment]);

fn stories() -> Vec<Story> {
    use Moment::{Boundary, MidTurn};
    let another_tool = |turn| Turn {
        another_tool: true,
        ..turn
    };
    vec![
        (
            "every answer thinks, in the middle of its turn",
            vec![turn(10, &[THINKS], 14)],
            &[MidTurn],
        ),
        (
            "several changes in one turn",
            vec![turn(10, &[THINKS], 40)],
            &[MidTurn],
        ),
        (
            "parts of thinking between text, and parallel calls",
            vec![turn(10, &[ALL], 10)],
            &[MidTurn],
        ),
        (
            "few answers think",
            vec![turn(10, &[BARE, BARE, THINKS], 6)],
            &[MidTurn],
        ),
        (
            "the first does not think",
            vec![turn(10, &[BARE, THINKS], 8)],
            &[MidTurn],
        ),
        (
            "at the boundary",
            vec![turn(10, &[THINKS], 7), turn(6_000, &[THINKS], 2)],
            &[Boundary],
        ),
        (
            "at several boundaries and in between",
            vec![
                turn(10, &[THINKS], 7),
                turn(6_000, &[ALL], 8),
                turn(10, &[THINKS], 4),
                turn(10, &[BARE, THINKS], 9),
            ],
            &[Boundary, MidTurn],
        ),
        (
            "commands of a person",
            vec![
                command(),
                turn(10, &[THINKS], 6),
                command(),
                turn(10, &[THINKS, BARE], 6),
                command(),
                command(),
                turn(6_000, &[ALL], 8),
            ],
            &[MidTurn],
        ),
        (
            "another surface",
            vec![
                turn(10, &[THINKS], 6),
                another_tool(turn(10, &[THINKS], 12)),
                turn(10, &[ALL], 6),
            ],
            &[MidTurn],
        ),
    ]
}

/// The answer to a request of this number.
fn answer(request: usize, shape: Shape) -> ScriptedAnswer {
    let mut answer = ScriptedAnswer::new();
    for part in 0..shape.thoughts {
        let (kind, text) = match part {
            1 => ("redacted_thinking", String::new()),
            _ => ("signature", format!("thought {request}.{part}")),
        };
        if !text.is_empty() {
            answer = answer.event(ModelEvent::Reasoning(text.clone()));
        }
        let data = sign(request, part, shape.thoughts, &text);
        answer = answer.event(ModelEvent::Sealed(ProviderSignature {
            kind: kind.to_owned(),
            data,
        }));
        if part == 1 && shape.says {
            answer = answer.say("So far.");
        }
    }
    if shape.says && shape.thoughts < 2 {
        answer = answer.say("Done.");
    }
    let arguments = if shape.thoughts > 0 {
        r#"{"thought":true}"#
    } else {
        "{}"
    };
    let answer = (0..shape.calls).fold(answer, |answer, index| {
        answer.call(index, "Tell", arguments)
    });
    answer.stop(if shape.calls > 0 {
        StopReason::ToolUse
    } else {
        StopReason::EndTurn
    })
}

fn tool(name: &str) -> FnTool {
    FnTool::new(name, ToolEffect::ReadOnly, |cx, _| async move {
        let content = format!("{} ", cx.call).repeat(RESULT / 10);
        Ok(ToolOutput {
            summary: "told".to_owned(),
            content,
            data: None,
        })
    })
}

/// The pod of a story after its last turn, and all its requests.
fn told(turns: &[Turn], dialect: &Arc<dyn Dialect>) -> (PodUnderTest, Vec<Value>) {
    let tools = vec![tool("Tell"), tool("Bash")];
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new([]), tools);
    let mut requests = Vec::new();
    for turn in turns {
        if turn.another_tool {
            pod.tools.push(tool("Other"));
        }
        let answers = turn
            .answers
            .iter()
            .enumerate()
            .map(|(at, shape)| answer(requests.len() + at, *shape));
        pod.script = ModelScript::in_dialect(Arc::clone(dialect), answers.collect::<Vec<_>>())
            .windowed(WINDOW);
        let text = "word ".repeat(turn.input.div_ceil(5));
        if turn.is_command {
            let command = NewInput {
                text,
                run: true,
                ..NewInput::default()
            };
            let (ended, _) = pod.serve(Outbox::unwatched(), async |client| {
                let ended = client.submit_input(command).await;
                client.close("done").await;
                ended
            });
            assert_eq!(ended.unwrap().outcome, Outcome::Done);
        } else {
            pod.run(&text).end();
        }
        requests.extend(
            pod.script
                .bodies()
                .iter()
                .map(|body| serde_json::from_slice::<Value>(body).unwrap()),
        );
    }
    (pod, requests)
}

/// When the view changed.
fn moments(pod: &PodUnderTest) -> BTreeSet<Moment> {
    let mut moments = BTreeSet::new();
    let mut is_answered = false;
    for (_, record) in pod.records() {
        match record {
            Record::TurnStarted(_) => is_answered = false,
            Record::Response(_) => is_answered = true,
            Record::Pruned(_) => drop(moments.insert(if is_answered {
                Moment::MidTurn
            } else {
                Moment::Boundary
            })),
            _ => {}
        }
    }
    moments
}

fn dialect(id: &str, _: &Surface) -> Option<Arc<dyn Dialect>> {
    if id == Messages::ID {
        Some(Arc::new(Messages))
    } else {
        Chat::by_id(id)
    }
}

fn keeps(rules: &Rules, dialect_of_story: &Arc<dyn Dialect>) {
    for (name, turns, wanted) in stories() {
        let what = format!("{name}, in {}", dialect_of_story.id());
        let (pod, requests) = told(&turns, dialect_of_story);
        assert_eq!(
            requests.len(),
            turns.iter().map(|turn| turn.answers.len()).sum::<usize>(),
            "{what}"
        );
        assert!(
            moments(&pod).is_superset(&wanted.iter().copied().collect()),
            "{what}: {:?}",
            moments(&pod)
        );
        for upto in 1..=requests.len() {
            let broken = rules
                .broken(&requests[..upto])
                .first()
                .map(|id| rules.explained(id));
            assert_eq!(broken, None, "{what}: request {upto} of {}", requests.len());
        }
        let opened = pod.store().unwrap();
        let found = verify(
            || Reader::open(&pod.dir).unwrap().frames(),
            opened.blobs.view(),
            &dialect,
            pod.blob_bytes,
        );
        assert_eq!(
            (found.wrong, found.bodies),
            (None, requests.len() as u64),
            "{what}"
        );
    }
}

#[test]
fn changes_of_the_view_keep_the_rules_of_anthropic() {
    keeps(
        &Rules::anthropic(),
        &(Arc::new(Messages) as Arc<dyn Dialect>),
    );
}

#[test]
fn changes_of_the_view_keep_the_rules_of_openai() {
    for flavour in Flavour::ALL {
        keeps(
            &Rules::openai(),
            &(Arc::new(Chat(flavour)) as Arc<dyn Dialect>),
        );
    }
}
