//! Records of a turn: the surface, inputs, items, requests and responses. They know no call's judgement and no file.

use super::Output;
use llm_worker::effect::Outcome;
use llm_worker::projection::Surface;
use llm_worker::{Cost, Item, Shortfall, StopReason, Usage};
use serde::{Deserialize, Serialize};

/// A queued input's number, dense within a session from 1.
pub type InputId = u64;

/// Body of `surface`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceSet {
    pub surface: Surface,
    pub encoder: Encoder,
}

/// Which encoder made a request's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoder {
    /// As in `openai-chat`.
    pub id: String,
    /// Raised when the bytes for the same items change.
    pub version: u16,
}

/// Body of `input_queued`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputQueued {
    pub input: InputId,
    /// The exact model-visible text.
    pub text: String,
    /// For an input too long to stand inline: its whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Output>,
}

/// Body of `input_consumed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputConsumed {
    pub input: InputId,
}

/// Body of `turn_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// Its number, dense from 1.
    pub turn: u64,
}

/// Body of `system_item`: words of the host, or of a feature, that the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "topic", rename_all = "snake_case")]
pub enum SystemItem {
    /// When and where: date, working directory, git state.
    Environment {
        /// The generation of the surface it was made under.
        generation: u64,
        /// The exact model-visible words.
        text: String,
    },
    /// What an interruption left behind, or an answer that was dropped because it went over a limit.
    Recovery {
        /// The generation of the surface it was made under.
        generation: u64,
        /// The exact model-visible words.
        text: String,
    },
    /// A queued notification, delivered.
    Notification {
        number: u64,
        feature: String,
        /// The generation of the registry that accepted it.
        #[serde(rename = "generation")]
        registry_generation: u64,
        /// The exact model-visible words.
        text: String,
    },
}

impl SystemItem {
    /// Who says it: `host` or a feature id.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Environment { .. } | Self::Recovery { .. } => "host",
            Self::Notification { feature, .. } => feature,
        }
    }

    /// The exact model-visible words.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Environment { text, .. } | Self::Recovery { text, .. } | Self::Notification { text, .. } => text,
        }
    }

    /// What the history gets.
    #[must_use]
    pub fn item(&self) -> Item {
        Item::System { source: self.source().to_owned(), text: self.text().to_owned() }
    }
}

/// Body of `item`: assistant text, reasoning or a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemAdded {
    pub item: Item,
}

/// Body of `request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number, dense from 1.
    pub number: u64,
    /// The surface it stands on.
    pub generation: u64,
    /// It carries the first `items` items of the history.
    pub items: u64,
    /// The version of this project's own terms, in which `neutral_digest` is counted.
    pub projection: u16,
    /// Digest of the request in this project's own terms, hex.
    pub neutral_digest: String,
    pub encoder: Encoder,
    /// Digest of the body's bytes, hex.
    pub body_digest: String,
    pub bytes: u64,
}

/// Body of `response`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub stop: StopReason,
    /// Tokens counted by the vendor.
    pub usage: Usage,
    /// What they cost, in billionths of a US dollar; none where no price was known, or where nothing was counted for a
    /// model that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Why this answer is not what was asked for; only the embedded planner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Shortfall>,
}

/// Body of `turn_finished`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFinished {
    pub turn: u64,
    pub outcome: Outcome,
    /// What attempts cost that brought no answer before it ended: cut, cancelled or overlong. Not in any `response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
}

/// Tokens that were counted for no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// Tokens counted by the vendor.
    pub usage: Usage,
    /// What they cost, as for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}
