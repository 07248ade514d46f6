//! A fold stored beside the log: opening a session reads it and then only newer records. Independent of records, except
//! for the folded state.
//!
//! A checkpoint is written at the end of a segment, and when a host stops after enough new records: one line of
//! JSON with the state, then the items, each field behind its length. Like everything in `idx/` it is derived. An
//! unreadable one is rebuilt from the log.

use super::fold::SessionState;
use super::restore::Restored;
use super::view::{ShownItems, project};
use crate::record::Record;
use llm_worker::{
    Attachment, CallId, Item, ProviderSignature, ResultStatus, SealedReasoning, ToolOutcome,
};
use serde::{Deserialize, Serialize};
use session_store::MAX_CHECKPOINT_BYTES;

/// The version of the bytes and of the fold's result: raised when either changes.
pub const VERSION: u32 = 30;

/// The parts of a checkpoint besides the state, collected during the fold: items and clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointBuilder {
    /// Encoded items, oldest first; none once they exceed the limit of a checkpoint.
    items: Option<Vec<u8>>,
    times: Times,
    /// Records since the last checkpoint.
    behind: u64,
}

/// A stopping host writes a checkpoint if at least this part of the log is newer than the last one. So all checkpoints
/// of a session together take at most this many times the bytes of its fold, and a listing folds at most this part.
const DUE: u64 = 16;

/// Clocks of records, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    newest: u64,
    started: Option<u64>,
}

/// The first line; `S` is a state, or borrows one to be written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head<S> {
    times: Times,
    state: S,
}

impl CheckpointBuilder {
    /// A builder for a fold with these records.
    #[must_use]
    pub fn of(restored: &Restored) -> Self {
        let times = Times {
            newest: restored.last_time,
            started: restored.started_at,
        };
        let mut draft = Self {
            items: Some(Vec::new()),
            times,
            behind: 0,
        };
        draft.add(&restored.items);
        draft
    }

    /// Adds the items of one more record, and its clock. `started` means that the record started a call.
    pub fn take(&mut self, items: &[Item], time: u64, started: bool) {
        self.behind += 1;
        self.times.newest = self.times.newest.max(time);
        if started {
            self.times.started = Some(time);
        }
        self.add(items);
    }

    /// Changes the items with the view, if this record, which was just folded, changed it from `before`.
    pub fn change_view(&mut self, record: &Record, before: &ShownItems, state: &SessionState) {
        if let Record::Pruned(_) = record
            && let Some(mut items) = self.items()
        {
            project(record, before, state, &mut items);
            self.items = Some(Vec::new());
            self.add(&items);
        }
    }

    /// The items of the view; none once they exceed the limit of a checkpoint.
    pub(crate) fn items(&self) -> Option<Vec<Item>> {
        decoded(self.items.as_ref()?)
    }

    fn add(&mut self, items: &[Item]) {
        if let Some(bytes) = &mut self.items {
            items.iter().for_each(|item| put(item, bytes));
            if bytes.len() > MAX_CHECKPOINT_BYTES {
                self.items = None;
            }
        }
    }

    /// Whether a host that stops with this record should write a checkpoint.
    #[must_use]
    pub fn due(&self, seq: u64) -> bool {
        self.behind.saturating_mul(DUE) >= seq
    }

    /// The bytes of a checkpoint of this state; none if there are too many items.
    #[must_use]
    pub fn bytes(&mut self, state: &SessionState) -> Option<Vec<u8>> {
        self.behind = 0;
        let items = self.items.as_ref()?;
        let mut bytes = serde_json::to_vec(&Head {
            times: self.times,
            state,
        })
        .ok()?;
        bytes.push(b'\n');
        bytes.extend_from_slice(items);
        Some(bytes)
    }

    /// Reads a checkpoint; none if it has another version.
    #[must_use]
    pub fn read(version: u32, bytes: &[u8]) -> Option<(Restored, Self)> {
        let (Head { times, state }, encoded) = read(version, bytes)?;
        let items = decoded(encoded)?;
        let draft = Self {
            items: Some(encoded.to_vec()),
            times,
            behind: 0,
        };
        let last_time = times.newest;
        let started_at = times.started;
        let whole = state.shown.count(state.items) == items.len() as u64;
        whole.then_some((
            Restored {
                state,
                items,
                last_time,
                started_at,
            },
            draft,
        ))
    }
}

/// The state of a checkpoint and the newest record's clock, for readers that need no items.
#[must_use]
pub fn state(version: u32, bytes: &[u8]) -> Option<(SessionState, u64)> {
    read(version, bytes).map(|(head, _)| (head.state, head.times.newest))
}

/// The first line, and the items as bytes.
fn read(version: u32, bytes: &[u8]) -> Option<(Head<SessionState>, &[u8])> {
    if version != VERSION {
        return None;
    }
    let (head, items) = bytes.split_at_checked(memchr::memchr(b'\n', bytes)?)?;
    Some((serde_json::from_slice(head).ok()?, items.get(1..)?))
}

/// The first byte of an item.
mod tag {
    pub(super) const USER: u8 = b'u';
    /// An input with files, as JSON.
    pub(super) const ATTACHED: u8 = b'U';
    pub(super) const COMMAND: u8 = b'!';
    pub(super) const SYSTEM: u8 = b's';
    pub(super) const ASSISTANT: u8 = b'a';
    pub(super) const REASONING: u8 = b'r';
    pub(super) const SEALED: u8 = b'R';
    pub(super) const CALL: u8 = b'c';
    pub(super) const RESULT: u8 = b't';
    /// A result with files, as JSON.
    pub(super) const SHOWN: u8 = b'T';
}

fn put(item: &Item, out: &mut Vec<u8>) {
    match item {
        Item::User { text, attachments } => match attachments.as_slice() {
            [] => fields(out, tag::USER, &[text]),
            files => fields(out, tag::ATTACHED, &[text, &listed(files)]),
        },
        Item::Command { text } => fields(out, tag::COMMAND, &[text]),
        Item::System { source, text } => fields(out, tag::SYSTEM, &[source, text]),
        Item::Assistant { text } => fields(out, tag::ASSISTANT, &[text]),
        Item::Reasoning { text, seal: None } => fields(out, tag::REASONING, &[text]),
        Item::Reasoning {
            text,
            seal:
                Some(SealedReasoning {
                    model,
                    generation,
                    signature: ProviderSignature { kind, data },
                }),
        } => {
            fields(out, tag::SEALED, &[text, model, kind, data]);
            out.extend_from_slice(&generation.to_le_bytes());
        }
        Item::ToolCall {
            id,
            name,
            arguments,
        } => {
            fields(out, tag::CALL, &[name, arguments]);
            out.extend_from_slice(&id.number().to_le_bytes());
        }
        Item::ToolResult {
            id,
            outcome:
                ToolOutcome {
                    status,
                    summary,
                    content,
                    attachments,
                },
        } => {
            match attachments.as_slice() {
                [] => fields(out, tag::RESULT, &[summary, content]),
                files => fields(out, tag::SHOWN, &[summary, content, &listed(files)]),
            }
            out.extend_from_slice(&id.number().to_le_bytes());
            out.push(letter(*status));
        }
    }
}

/// Files as JSON; a list of such fields always has one.
fn listed(files: &[Attachment]) -> String {
    serde_json::to_string(files).unwrap_or_default()
}

fn fields(out: &mut Vec<u8>, tag: u8, texts: &[&str]) {
    out.push(tag);
    for text in texts {
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

fn letter(status: ResultStatus) -> u8 {
    match status {
        ResultStatus::Ok => b'o',
        ResultStatus::Error => b'e',
        ResultStatus::Refused => b'r',
        ResultStatus::Cancelled => b'c',
        ResultStatus::Interrupted => b'i',
    }
}

fn decoded(mut rest: &[u8]) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    while !rest.is_empty() {
        items.push(get(&mut rest)?);
    }
    Some(items)
}

fn get(rest: &mut &[u8]) -> Option<Item> {
    Some(match byte(rest)? {
        tag::USER => Item::user(text(rest)?),
        tag::ATTACHED => Item::User {
            text: text(rest)?,
            attachments: serde_json::from_str(&text(rest)?).ok()?,
        },
        tag::COMMAND => Item::Command { text: text(rest)? },
        tag::SYSTEM => Item::System {
            source: text(rest)?,
            text: text(rest)?,
        },
        tag::ASSISTANT => Item::Assistant { text: text(rest)? },
        tag::REASONING => Item::Reasoning {
            text: text(rest)?,
            seal: None,
        },
        tag::SEALED => {
            let (text, model, kind, data) = (
                text(rest)?,
                self::text(rest)?,
                self::text(rest)?,
                self::text(rest)?,
            );
            let seal = Some(SealedReasoning {
                model,
                generation: number(rest)?,
                signature: ProviderSignature { kind, data },
            });
            Item::Reasoning { text, seal }
        }
        tag::CALL => {
            let name = text(rest)?;
            let arguments = text(rest)?;
            Item::ToolCall {
                id: CallId::new(number(rest)?)?,
                name,
                arguments,
            }
        }
        kind @ (tag::RESULT | tag::SHOWN) => {
            let summary = text(rest)?;
            let content = text(rest)?;
            let attachments = match kind {
                tag::SHOWN => serde_json::from_str(&text(rest)?).ok()?,
                _ => Vec::new(),
            };
            let id = CallId::new(number(rest)?)?;
            let status = status(byte(rest)?)?;
            Item::ToolResult {
                id,
                outcome: ToolOutcome {
                    status,
                    summary,
                    content,
                    attachments,
                },
            }
        }
        _ => return None,
    })
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, more) = rest.split_first()?;
    *rest = more;
    Some(*first)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (first, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(u64::from_le_bytes(*first))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (text, more) = rest.split_at_checked(length)?;
    *rest = more;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

fn status(letter: u8) -> Option<ResultStatus> {
    let all = [
        ResultStatus::Ok,
        ResultStatus::Error,
        ResultStatus::Refused,
        ResultStatus::Cancelled,
        ResultStatus::Interrupted,
    ];
    all.into_iter()
        .find(|status| self::letter(*status) == letter)
}

/// Features' states as a list: JSON has no keys of two parts.
pub(super) mod values {
    use crate::record::FeatureState;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    type States = BTreeMap<(String, String), FeatureState>;

    pub(crate) fn serialize<S: Serializer>(states: &States, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(states.values())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<States, D::Error> {
        let states = Vec::<FeatureState>::deserialize(from)?;
        Ok(states
            .into_iter()
            .map(|state| ((state.feature.clone(), state.name.clone()), state))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use llm_worker::attachment::attachment;

    #[test]
    fn items_with_files_are_read_as_they_were_put() {
        let files = vec![
            attachment("a.gif", b"GIF89a\x05\0\x06\0").unwrap(),
            attachment("", b"%PDF-1.7\n").unwrap(),
        ];
        let id = CallId::new(7).unwrap();
        let result = |attachments| Item::ToolResult {
            id,
            outcome: ToolOutcome {
                attachments,
                ..ToolOutcome::of(ResultStatus::Ok, "s")
            },
        };
        let items = vec![
            Item::User {
                text: "look".to_owned(),
                attachments: files.clone(),
            },
            result(files),
            Item::user("u"),
            result(Vec::new()),
        ];
        let mut bytes = Vec::new();
        items.iter().for_each(|item| put(item, &mut bytes));
        assert_eq!(decoded(&bytes), Some(items));
        // Cut anywhere, it is no panic.
        for end in 0..bytes.len() {
            decoded(&bytes[..end]);
        }
    }
}
