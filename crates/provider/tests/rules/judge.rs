//! The rules of a vendor's API as data, and a judge of encoded requests by them.
//!
//! The judge needs to know what a signature covers. In these tests it says so itself: see [`sign`].

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ANTHROPIC: &str = include_str!("anthropic-messages.json");
const OPENAI: &str = include_str!("openai-chat.json");

/// All rules of one API.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    pub(crate) api: String,
    pub(crate) rules: Vec<VendorRule>,
}

/// What a request must satisfy, in our words, and who says so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VendorRule {
    pub(crate) id: String,
    pub(crate) says: String,
    pub(crate) source: Source,
    check: Check,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) title: String,
    pub(crate) address: String,
    /// When it was read.
    pub(crate) read: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Check {
    PrefixUnchanged,
    AnswersWhole,
    LoopWhole,
    ThinkingFirst,
    ThinkingNotLast,
    CallsAnswered,
    ResultsAskedFor,
    ResultsFirst,
    CallsUnique,
    CallIdAtMost { characters: usize },
    Roles { first: String, all: Vec<String> },
    RolesAlternate,
    LastRole { any: Vec<String> },
    TextNotEmpty,
    ContentOrCalls,
    AtMost { key: String, times: usize },
    NotEmpty { key: String },
    Never { keys: Vec<String> },
}

impl Rules {
    pub(crate) fn anthropic() -> Self {
        serde_json::from_str(ANTHROPIC).unwrap()
    }

    pub(crate) fn openai() -> Self {
        serde_json::from_str(OPENAI).unwrap()
    }

    /// A rule with its source.
    pub(crate) fn explained(&self, id: &str) -> String {
        let rule = self.rules.iter().find(|rule| rule.id == id).unwrap();
        let Source {
            title,
            address,
            read,
        } = &rule.source;
        format!(
            "{} {id}: {} ({title}, {address}, read {read})",
            self.api, rule.says
        )
    }

    /// The rules that the last of these requests breaks. They are the requests of one session, oldest first.
    pub(crate) fn broken(&self, requests: &[Value]) -> Vec<&str> {
        let conversation = Conversation::of(requests);
        self.rules
            .iter()
            .filter(|rule| !rule.check.holds(&conversation))
            .map(|rule| rule.id.as_str())
            .collect()
    }
}

/// The signature of one part of an answer's thinking: which request it answers, which part of how many it is, and its text.
pub(crate) fn sign(request: usize, part: usize, of: usize, text: &str) -> String {
    format!("{request}.{part}/{of}:{text}")
}

/// What a signature says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signed<'a> {
    request: usize,
    part: usize,
    of: usize,
    text: &'a str,
}

fn signed(signature: &str) -> Option<Signed<'_>> {
    let (numbers, text) = signature.split_once(':')?;
    let (request, rest) = numbers.split_once('.')?;
    let (part, of) = rest.split_once('/')?;
    Some(Signed {
        request: request.parse().ok()?,
        part: part.parse().ok()?,
        of: of.parse().ok()?,
        text,
    })
}

/// A block of a message, as far as a rule needs it.
#[derive(Debug)]
enum Block<'a> {
    Text(&'a str),
    /// With its text, which redacted thinking does not have, and its signature.
    Thinking(Option<&'a str>, &'a str),
    /// With its id, and whether the model thought before it, which the calls of these tests say.
    Call(&'a str, bool),
    Result(&'a str),
}

#[derive(Debug)]
struct Message<'a> {
    role: &'a str,
    blocks: Vec<Block<'a>>,
}

struct Conversation<'a> {
    requests: &'a [Value],
    request: &'a Value,
    raw: &'a [Value],
    /// Each with the number of its first raw message: results in messages of their own are one.
    messages: Vec<(usize, Message<'a>)>,
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().map_or(&[], Vec::as_slice)
}

impl<'a> Conversation<'a> {
    fn of(requests: &'a [Value]) -> Self {
        let request = requests.last().unwrap();
        let raw = messages(request);
        let mut messages: Vec<(usize, Message<'a>)> = Vec::new();
        for (at, one) in raw.iter().enumerate() {
            let mut message = Message {
                role: text(one, "role"),
                blocks: blocks(one),
            };
            match messages.last_mut() {
                Some((_, last)) if message.role == "tool" && last.role == "tool" => {
                    last.blocks.append(&mut message.blocks);
                }
                _ => messages.push((at, message)),
            }
        }
        Self {
            requests,
            request,
            raw,
            messages,
        }
    }

    fn each(&self) -> impl Iterator<Item = &Message<'a>> {
        self.messages.iter().map(|(_, message)| message)
    }

    fn pairs(&self) -> impl Iterator<Item = (&Message<'a>, Option<&Message<'a>>)> {
        self.each().zip(self.each().skip(1).map(Some).chain([None]))
    }

    /// What a signature covers: everything before this message.
    fn prefix(request: &Value, upto: usize) -> Value {
        let before = messages(request).get(..upto);
        let mut prefix =
            json!({ "system": request["system"], "tools": request["tools"], "messages": before });
        remove(&mut prefix, "cache_control");
        prefix
    }

    fn is_unchanged(&self, at: usize, signature: &str) -> bool {
        let answered = signed(signature).and_then(|signed| self.requests.get(signed.request));
        answered.is_some_and(|sent| {
            Self::prefix(self.request, at) == Self::prefix(sent, messages(sent).len())
        })
    }

    /// The answers behind the last message of the user that returns no result.
    fn running_loop(&self) -> impl Iterator<Item = &Message<'a>> {
        let is_input =
            |message: &Message<'_>| message.role == "user" && message.results().next().is_none();
        let from = self
            .messages
            .iter()
            .rposition(|(_, message)| is_input(message))
            .unwrap_or_default();
        self.each()
            .skip(from)
            .filter(|message| message.role == "assistant")
    }
}

fn blocks(message: &Value) -> Vec<Block<'_>> {
    if message["role"] == "tool" {
        return vec![Block::Result(text(message, "tool_call_id"))];
    }
    let mut blocks: Vec<Block<'_>> = message["content"]
        .as_str()
        .map(Block::Text)
        .into_iter()
        .collect();
    for block in message["content"].as_array().into_iter().flatten() {
        blocks.push(match text(block, "type") {
            "text" => Block::Text(text(block, "text")),
            "thinking" => Block::Thinking(block["thinking"].as_str(), text(block, "signature")),
            "redacted_thinking" => Block::Thinking(None, text(block, "data")),
            "tool_use" => Block::Call(text(block, "id"), block["input"]["thought"] == true),
            "tool_result" => Block::Result(text(block, "tool_use_id")),
            other => panic!("a block of the type {other}"),
        });
    }
    blocks.extend(
        message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| Block::Call(text(call, "id"), false)),
    );
    blocks
}

/// Removes a key wherever it is.
fn remove(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            fields.remove(key);
            fields.values_mut().for_each(|value| remove(value, key));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| remove(value, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl<'a> Message<'a> {
    fn calls(&self) -> impl Iterator<Item = &'a str> {
        self.blocks.iter().filter_map(|block| {
            if let Block::Call(id, _) = block {
                Some(*id)
            } else {
                None
            }
        })
    }

    fn results(&self) -> impl Iterator<Item = &'a str> {
        self.blocks.iter().filter_map(|block| {
            if let Block::Result(id) = block {
                Some(*id)
            } else {
                None
            }
        })
    }

    fn thinking(&self) -> impl Iterator<Item = (Option<&'a str>, &'a str)> {
        let thinking = |block: &Block<'a>| match block {
            Block::Thinking(text, signature) => Some((*text, *signature)),
            Block::Text(_) | Block::Call(..) | Block::Result(_) => None,
        };
        self.blocks.iter().filter_map(thinking)
    }

    fn has_thinking(&self) -> bool {
        self.thinking().next().is_some()
    }

    /// Whether the answer had thinking when it was given.
    fn had_thinking(&self) -> bool {
        self.has_thinking()
            || self
                .blocks
                .iter()
                .any(|block| matches!(block, Block::Call(_, true)))
    }

    /// Whether the thinking is that of one answer, all of it.
    fn is_whole(&self) -> bool {
        let parts: Option<Vec<Signed<'a>>> = self
            .thinking()
            .map(|(_, signature)| signed(signature))
            .collect();
        let Some(parts) = parts else { return false };
        let Some(first) = parts.first() else {
            return true;
        };
        let in_order = parts
            .iter()
            .enumerate()
            .all(|(at, part)| part.part == at && part.request == first.request);
        let unmodified = self
            .thinking()
            .zip(&parts)
            .all(|((text, _), part)| text.is_none_or(|text| text == part.text));
        in_order && unmodified && parts.len() == first.of
    }
}

impl Check {
    fn holds(&self, all: &Conversation<'_>) -> bool {
        match self {
            Self::PrefixUnchanged => all
                .messages
                .iter()
                .all(|(at, message)| message.thinking().all(|(_, signature)| all.is_unchanged(*at, signature))),
            Self::AnswersWhole => all.each().all(Message::is_whole),
            Self::LoopWhole => {
                let behind = all.running_loop().skip_while(|answer| !answer.has_thinking());
                behind.filter(|answer| answer.had_thinking()).all(Message::has_thinking)
            }
            Self::ThinkingFirst => all
                .each()
                .filter(|message| message.has_thinking())
                .all(|message| matches!(message.blocks.first(), Some(Block::Thinking(..)))),
            Self::ThinkingNotLast => {
                !all.each().any(|message| matches!(message.blocks.last(), Some(Block::Thinking(..))))
            }
            Self::CallsAnswered => all.pairs().all(|(message, next)| {
                let results: BTreeSet<&str> = next.into_iter().flat_map(Message::results).collect();
                message.calls().all(|id| results.contains(id))
            }),
            Self::ResultsAskedFor => {
                let first = all.each().next().into_iter().flat_map(Message::results).next();
                first.is_none()
                    && all.pairs().all(|(message, next)| {
                        let calls: BTreeSet<&str> = message.calls().collect();
                        next.into_iter().flat_map(Message::results).all(|id| calls.contains(id))
                    })
            }
            Self::ResultsFirst => all.each().all(|message| {
                let mut behind = message.blocks.iter().skip_while(|block| matches!(block, Block::Result(_)));
                !behind.any(|block| matches!(block, Block::Result(_)))
            }),
            Self::CallsUnique => {
                let unique = |ids: Vec<&str>| ids.iter().collect::<BTreeSet<_>>().len() == ids.len();
                unique(all.each().flat_map(Message::calls).collect())
                    && unique(all.each().flat_map(Message::results).collect())
            }
            Self::CallIdAtMost { characters } => {
                all.each().flat_map(Message::calls).all(|id| !id.is_empty() && id.chars().count() <= *characters)
            }
            Self::Roles { first, all: roles } => {
                all.each().next().is_some_and(|message| message.role == first)
                    && all.each().all(|message| roles.iter().any(|role| role == message.role))
            }
            Self::RolesAlternate => {
                all.pairs().all(|(message, next)| next.is_none_or(|next| next.role != message.role))
            }
            Self::LastRole { any } => all.each().last().is_some_and(|last| any.iter().any(|role| role == last.role)),
            Self::TextNotEmpty => all.each().all(|message| {
                let empty = |block: &Block<'_>| matches!(block, Block::Text(text) if text.trim().is_empty());
                !message.blocks.is_empty() && !message.blocks.iter().any(empty)
            }),
            Self::ContentOrCalls => all.raw.iter().all(|message| {
                message["content"].is_string() || message["content"].is_null() && message["tool_calls"].is_array()
            }),
            Self::AtMost { key, times } => count(all.request, key) <= *times,
            Self::NotEmpty { key } => {
                all.raw.iter().all(|message| message[key].as_array().is_none_or(|list| !list.is_empty()))
            }
            Self::Never { keys } => !all.raw.iter().any(|message| keys.iter().any(|key| count(message, key) > 0)),
        }
    }
}

/// How often a key occurs, at any depth.
fn count(value: &Value, key: &str) -> usize {
    match value {
        Value::Object(fields) => {
            usize::from(fields.contains_key(key))
                + fields
                    .values()
                    .map(|value| count(value, key))
                    .sum::<usize>()
        }
        Value::Array(values) => values.iter().map(|value| count(value, key)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
