//! Records of a turn: the surface, inputs, items, requests and responses. Do not depend on permission or on files.

use super::{Output, View, Who};
use llm_worker::effect::Outcome;
use llm_worker::projection::Surface;
use llm_worker::{Cost, Item, Shortfall, StopReason, Usage};
use serde::{Deserialize, Serialize};

/// A queued input's number, dense within a session from 1.
pub type InputId = u64;

/// Body of `surface`: the fixed part of the requests that follow. Written when a start cannot use the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceSet {
    pub surface: Surface,
    pub encoder: Encoder,
    #[serde(default, skip_serializing_if = "SurfaceSources::is_empty")]
    pub sources: SurfaceSources,
}

/// Who contributed the parts of a surface; part of [`SurfaceSet`]. Older programs did not write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceSources {
    /// The parts of the system prompt, in order. Blank lines between them are not counted.
    pub system: Vec<SystemSource>,
    /// The feature of each tool, in the order of the tools.
    pub tools: Vec<String>,
}

impl SurfaceSources {
    /// The source of the host's own part of the system prompt.
    pub const HOST: &'static str = "host";
    /// The source of files of instructions.
    pub const INSTRUCTIONS: &'static str = "instructions";

    fn is_empty(&self) -> bool {
        self.system.is_empty() && self.tools.is_empty()
    }
}

/// A part of the system prompt; part of [`SurfaceSources`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemSource {
    /// [`SurfaceSources::HOST`], [`SurfaceSources::INSTRUCTIONS`] or a feature id.
    pub source: String,
    pub bytes: u64,
}

/// The dialect that encoded the bytes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoder {
    /// The name of the dialect, as in `openai-chat`.
    pub id: String,
    /// Raised whenever the bytes for the same items change.
    pub version: u16,
}

/// When an input is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputMode {
    /// By a turn of its own, after the inputs before it.
    #[default]
    Queue,
    /// At the next step of the running turn; by the next turn if the running one has no further step.
    Steer,
    /// As [`Self::Steer`]; until it is taken, each call that waits for a person is denied.
    DenyParked,
}

impl InputMode {
    /// Whether the running turn takes it.
    #[must_use]
    pub fn steers(self) -> bool {
        match self {
            Self::Queue => false,
            Self::Steer | Self::DenyParked => true,
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Limits that an input sets to its turn; the others are the pod's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputLimits {
    /// The maximum number of model requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Cost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Seconds, without what the turn waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_s: Option<u64>,
}

/// Body of `input_queued`: an accepted input that waits for a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputQueued {
    pub input: InputId,
    /// The exact model-visible text, except with `run`.
    pub text: String,
    /// A person's command: the turn runs it and asks no model. The text is `! ` and the command; what the model reads is
    /// [`command_item`](super::command_item).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// The full text of an input that is too long for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Output>,
    #[serde(default, skip_serializing_if = "InputMode::is_default")]
    pub mode: InputMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<InputLimits>,
    /// The JSON Schema, as text, that the answer has to fit; the text of the input asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
    /// The name that the client gave to the input. A second input with the same key is not accepted: it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// The gate at the end of a turn that had the model go on; none for an input of a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// Who had the model go on after a turn, and how often that happened; part of [`InputQueued`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    pub feature: String,
    pub hook: String,
    /// The input of a client that this goes on with; 0 for a turn that began without one.
    pub of: InputId,
    /// Which turn that was added to it, from 1.
    pub nth: u32,
}

/// Body of `input_withdrawn`: no turn takes this input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputWithdrawn {
    pub input: InputId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `input_edited`: a waiting input has another text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEdited {
    pub input: InputId,
    /// As in [`InputQueued`].
    pub text: String,
    /// The full text of an input that is too long for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Output>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `input_moved`: a waiting input has another place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputMoved {
    pub input: InputId,
    /// The waiting input that comes directly after it; none if it is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<InputId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `input_consumed`: a turn took a queued input, which is now an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputConsumed {
    pub input: InputId,
}

/// Body of `turn_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// Dense from 1.
    pub turn: u64,
}

/// Body of `system_item`: a text of the host or of a feature that the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "topic", rename_all = "snake_case")]
pub enum SystemItem {
    /// Date, working directory and git state.
    Environment {
        /// The generation of the surface it was made under.
        generation: u64,
        /// The exact model-visible text.
        text: String,
    },
    /// The consequences of an interruption, of an answer that was dropped because it exceeded a limit, or of a start whose
    /// features offer less than those of the start before.
    Recovery {
        /// The generation of the surface it was made under.
        generation: u64,
        /// The exact model-visible text.
        text: String,
    },
    /// The state of the pod, after old steps left the context or a pin changed.
    Context {
        /// The generation of the surface it was made under.
        generation: u64,
        /// The exact model-visible text.
        text: String,
    },
    /// A queued notification, delivered.
    Notification {
        number: u64,
        feature: String,
        /// The generation of the registry that accepted it.
        #[serde(rename = "generation")]
        registry_generation: u64,
        /// The exact model-visible text.
        text: String,
    },
}

impl SystemItem {
    /// The author: `host` or a feature id.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Environment { .. } | Self::Recovery { .. } | Self::Context { .. } => "host",
            Self::Notification { feature, .. } => feature,
        }
    }

    /// The exact model-visible text.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Environment { text, .. }
            | Self::Recovery { text, .. }
            | Self::Context { text, .. }
            | Self::Notification { text, .. } => text,
        }
    }

    /// The item for the history.
    #[must_use]
    pub fn item(&self) -> Item {
        Item::System {
            source: self.source().to_owned(),
            text: self.text().to_owned(),
        }
    }
}

/// Body of `item`: assistant text, reasoning or a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemAdded {
    pub item: Item,
}

/// Body of `request`: durable before the request is sent. The digests prove that a replay builds the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Dense from 1.
    pub number: u64,
    /// The generation of the surface that it uses.
    pub generation: u64,
    /// The request has the first `items` items of the history.
    pub items: u64,
    /// What it shows of them; none for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// The version of the neutral form, for `neutral_digest`.
    pub projection: u16,
    /// Digest of the request in the neutral form, which is independent of dialects; hex.
    pub neutral_digest: String,
    pub encoder: Encoder,
    /// Digest of the body's bytes, hex.
    pub body_digest: String,
    pub bytes: u64,
}

/// Body of `response`: a complete answer. Its parts are `item` records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub stop: StopReason,
    /// Tokens counted by the provider.
    pub usage: Usage,
    /// Cost of these tokens, in billionths of a US dollar; none if no price was known, or if the model has a price and
    /// nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The reason why this answer does not do what was asked; only the embedded planner sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Shortfall>,
}

/// Body of `turn_finished`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFinished {
    pub turn: u64,
    pub outcome: Outcome,
    /// Usage of attempts that ended without an answer: cut, cancelled or too long. Not in any `response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
    /// Who cancelled the turn, if a client did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// Gates at the end of the turn are asked behind this record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_gates: bool,
}

/// Usage of attempts without an answer; part of [`TurnFinished`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// Tokens counted by the provider.
    pub usage: Usage,
    /// Cost of these tokens, in the unit of [`Response`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}
