//! Decodes only the fields of a record that a fold needs; opening a session spends most of its time here. Does not
//! depend on the state.
//!
//! The result folds to the same state as the full record; `yoi verify` decodes every field.

use super::restore::{RestoreError, decode};
use crate::record::{ItemAdded, Record};
use llm_worker::{CallId, Item, SealedReasoning};
use serde::Deserialize;
use session_store::OwnedFrame;

/// The only version of each kind below.
const VERSION: u16 = 1;

/// # Errors
/// As [`decode`], for the fields that are read.
pub(super) fn decode_lite(frame: &OwnedFrame) -> Result<Record, RestoreError> {
    match (frame.kind.as_str(), frame.v) {
        // These kinds do not change the state.
        ("feature_note" | "grants_used" | "tool_repeated" | "client_call", VERSION) => {
            Ok(Record::Other {
                kind: String::new(),
            })
        }
        // Only those do that name the tool of a call, and those of gates that end a turn, or have a person look behind it. In a
        // string, a quote has a backslash.
        ("verdict", VERSION)
            if ![r#""turn":"#, r#":"pause""#, r#""tool":"#]
                .iter()
                .any(|part| frame.line.contains(part)) =>
        {
            Ok(Record::Other {
                kind: String::new(),
            })
        }
        ("item", VERSION) => {
            match serde_json::from_str::<ItemLine<'_>>(&frame.line)
                .ok()
                .and_then(|line| line.item.whole())
            {
                Some(item) => Ok(ItemAdded { item }.into()),
                None => decode(frame),
            }
        }
        _ => decode(frame),
    }
}

#[derive(Deserialize)]
struct ItemLine<'a> {
    #[serde(borrow)]
    item: Fields<'a>,
}

/// Every field that an item of such a record may have, so that its tag need not come first.
#[derive(Deserialize)]
struct Fields<'a> {
    r#type: &'a str,
    text: Option<String>,
    seal: Option<SealedReasoning>,
    id: Option<CallId>,
    name: Option<String>,
    arguments: Option<String>,
}

impl Fields<'_> {
    fn whole(self) -> Option<Item> {
        let Fields {
            r#type,
            text,
            seal,
            id,
            name,
            arguments,
        } = self;
        Some(match r#type {
            "assistant" => Item::Assistant { text: text? },
            "reasoning" => Item::Reasoning { text: text?, seal },
            "tool_call" => Item::ToolCall {
                id: id?,
                name: name?,
                arguments: arguments?,
            },
            _ => return None,
        })
    }
}
