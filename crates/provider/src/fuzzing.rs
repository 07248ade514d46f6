//! The decoders without a network, for fuzz tests.

use crate::decode::Decode;
use crate::endpoint::Wire;
use crate::{anthropic, gemini, openai_chat, openai_responses};
use llm_worker::ModelEvent;

/// The result of decoding one answer: its events, and the error that ended it.
pub type Read = (Vec<ModelEvent>, Result<(), String>);

/// Decodes an answer of the Messages API, in pieces.
pub fn anthropic(pieces: &[&[u8]]) -> Read {
    read::<<anthropic::MessagesWire as Wire>::Decoder>(pieces)
}

/// Decodes an answer of chat completions, in pieces.
pub fn openai(pieces: &[&[u8]]) -> Read {
    read::<<openai_chat::ChatWire as Wire>::Decoder>(pieces)
}

/// Decodes an answer of Responses, in pieces.
pub fn responses(pieces: &[&[u8]]) -> Read {
    read::<<openai_responses::ResponsesWire as Wire>::Decoder>(pieces)
}

/// Decodes an answer of Gemini's own API, in pieces.
pub fn gemini(pieces: &[&[u8]]) -> Read {
    read::<<gemini::GeminiWire as Wire>::Decoder>(pieces)
}

fn read<D: Decode>(pieces: &[&[u8]]) -> Read {
    let mut decoder = D::default();
    let mut out = Vec::new();
    let read = pieces
        .iter()
        .try_for_each(|piece| decoder.push(piece, &mut out));
    let end = read.and_then(|()| decoder.finish(&mut out));
    (out, end.map_err(|error| format!("{error:?}")))
}
