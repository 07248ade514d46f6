//! Answers of models, in any pieces.

use llm_worker::{ModelEvent, Usage};
use provider::fuzzing;

/// The first byte says how the rest is cut.
pub(crate) fn anthropic(input: &[u8]) {
    agree(input, fuzzing::anthropic);
}

pub(crate) fn openai(input: &[u8]) {
    agree(input, fuzzing::openai);
}

pub(crate) fn responses(input: &[u8]) {
    agree(input, fuzzing::responses);
}

pub(crate) fn gemini(input: &[u8]) {
    agree(input, fuzzing::gemini);
}

type Read = fn(&[&[u8]]) -> (Vec<ModelEvent>, Result<(), String>);

fn agree(input: &[u8], read: Read) {
    let Some((cut, bytes)) = input.split_first() else {
        return;
    };
    let whole = joined(read(&[bytes]));
    let pieces = joined(read(
        &bytes.chunks(usize::from(*cut % 32) + 1).collect::<Vec<_>>(),
    ));
    // Which error comes first may differ: a piece may end where a limit or a fault is not yet seen.
    assert_eq!(
        whole.1.is_ok(),
        pieces.1.is_ok(),
        "whole {:?}, in pieces {:?}",
        whole.1,
        pieces.1
    );
    if whole.1.is_ok() {
        assert_eq!(
            whole.0,
            pieces.0,
            "cut in pieces of {}",
            usize::from(*cut % 32) + 1
        );
    }
}

/// What history would hold of it.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    words: String,
    calls: Vec<(String, String)>,
    seals: Vec<String>,
    usage: Usage,
    stop: Option<String>,
}

fn joined((events, end): (Vec<ModelEvent>, Result<(), String>)) -> (Answer, Result<(), String>) {
    let mut answer = Answer::default();
    for event in events {
        assert!(answer.stop.is_none(), "nothing comes behind the stop");
        match event {
            ModelEvent::Text(more) | ModelEvent::Reasoning(more) => answer.words.push_str(&more),
            ModelEvent::Sealed(wax) => answer.seals.push(format!("{} {}", wax.kind, wax.data)),
            ModelEvent::CallStarted { index, name } => {
                assert_eq!(index, answer.calls.len(), "calls are numbered as they come");
                assert!(!name.is_empty(), "a call has a name");
                answer.calls.push((name, String::new()));
            }
            ModelEvent::CallArguments { index, fragment } => match answer.calls.get_mut(index) {
                Some((_, arguments)) => arguments.push_str(&fragment),
                None => panic!("arguments of call {index}, which never began"),
            },
            ModelEvent::Usage(usage) => answer.usage = usage,
            ModelEvent::Notice(_) => {}
            ModelEvent::Shortfall(_) => panic!("no vendor's words are judged"),
            ModelEvent::Retrying { .. } => panic!("a decoder does not retry"),
            ModelEvent::Stop(reason) => answer.stop = Some(format!("{reason:?}")),
        }
    }
    assert_eq!(
        answer.stop.is_some(),
        end.is_ok(),
        "an answer has a stop, and only an answer"
    );
    (answer, end)
}
