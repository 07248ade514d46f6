//! Records of a turn: the surface, inputs, items, requests and responses. Do not depend on permission or on files.

use super::{HoldCause, Output, View, Who};
use crate::answer::{Cost, Shortfall, StopReason, Usage};
use crate::item::{Attachment, Item};
use crate::outcome::{ErrorKind, Outcome};
use crate::tool::Surface;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A queued input's number, dense within a session from 1.
pub type InputId = u64;

bodies! {
    /// The fixed part of the requests that follow.
    ///
    /// Body of `surface`. Written when a start cannot use the recorded one.
    SurfaceSet: Eq {
        surface: Surface,
        - encoder: Encoder,
        - sources =: SurfaceSources,
    }
    /// An accepted input.
    ///
    /// Body of `input_queued`: it waits for a turn.
    InputQueued: Default Eq {
        input: InputId,
        // The exact model-visible text, except with `run` and `call`.
        text: String,
        /// A shell command of a person, which is the text behind its `!`.
        // A person's command: the turn runs it and asks no model. The text is `! ` and the command; what the model reads is
        // [`command_item`](super::command_item).
        run =: bool,
        /// The full text of an input that is too long for the record.
        - whole ?: Output,
        /// `queue` if absent.
        mode =: InputMode,
        - limits ?: InputLimits,
        /// The JSON Schema, as text, that the answer has to fit; the text of the input asks for it.
        - output_schema ?: String,
        /// The `cmd_id` that the client gave.
        // The name that the client gave to the input. A second input with the same key is not accepted: it is the same.
        key ?: String,
        by ?: Who,
        /// The gate at the end of a turn that had the model go on.
        again ?: Again,
        /// The command that the text was made from, where a person typed one.
        command ?: ExpandedCommand,
        /// The files beside the text; an edit keeps them.
        attachments =: Vec<Attachment>,
        /// The call that its turn makes in place of asking a model, for the client in `by`.
        // The text is for people: the tool and the beginning of the arguments. What the model reads is
        // [`call_item`](super::call_item).
        call ?: RequestedCall,
    }
    /// A call of a tool that a client asked for; part of [`InputQueued`].
    #[serde(deny_unknown_fields)]
    RequestedCall: Eq {
        tool: String,
        /// A JSON object, as text.
        arguments: String,
    }
    /// A command of a person that became an input; part of [`InputQueued`].
    #[serde(deny_unknown_fields)]
    ExpandedCommand: Eq {
        name: String,
        /// Whose words the text is.
        source: String,
        /// BLAKE3 of the command's text, hex.
        digest: String,
        /// What the person typed.
        typed: String,
    }
    /// Who had the model go on after a turn; part of [`InputQueued`].
    #[serde(deny_unknown_fields)]
    Again: Eq {
        feature: String,
        hook: String,
        /// The input of a client that this goes on with.
        // 0 for a turn that began without one.
        of: InputId,
        // Which turn that was added to it, from 1.
        nth: u64,
    }
    /// A queued input has another text.
    ///
    /// Body of `input_edited`.
    InputEdited: Eq {
        input: InputId,
        // As in [`InputQueued`].
        text: String,
        /// The full text of an input that is too long for the record.
        - whole ?: Output,
        by ?: Who,
    }
    /// A part of an answer.
    ///
    /// Body of `item`: assistant text, reasoning or a tool call.
    ItemAdded: Eq {
        item: Item,
    }
    /// A request was about to be sent.
    ///
    /// Body of `request`: durable before the request is sent. The digests prove that a replay builds the same bytes.
    Request: Eq {
        // Dense from 1.
        number: u64,
        // The generation of the surface that it uses.
        generation: u64,
        // The request has the first `items` items of the history.
        items: u64,
        /// What it shows of them; none for everything.
        - view ?: View,
        /// The version of the neutral form, for `neutral_digest`.
        - projection: u16,
        /// Digest of the request in the neutral form, which is independent of dialects; hex.
        - neutral_digest: String,
        - encoder: Encoder,
        /// Digest of the body's bytes, hex.
        - body_digest: String,
        bytes: u64,
    }
    /// An answer arrived completely.
    ///
    /// Body of `response`. Its parts are `item` records.
    Response: Eq {
        /// Text, or an object with `other`.
        stop: StopReason,
        // Tokens counted by the provider.
        usage: Usage,
        /// Billionths of a US dollar.
        // Cost of these tokens, in billionths of a US dollar; none if no price was known, or if the model has a price and
        // nothing was counted.
        cost ?: Cost,
        /// The reason why this answer does not do what was asked; only the embedded planner sets it.
        - shortfall ?: Shortfall,
    }
    /// A turn ended.
    TurnFinished: Eq {
        turn: u64,
        outcome: Outcome,
        // Usage of attempts that ended without an answer: cut, cancelled or too long. Not in any `response`.
        unanswered ?: Unanswered,
        /// Who cancelled it, if a client did.
        by ?: Who,
        /// Gates at the end of the turn are asked behind this record.
        - end_gates =: bool,
    }
    /// What attempts without an answer cost: in no `response`; part of [`TurnFinished`].
    ///
    /// Usage of attempts without an answer; part of [`TurnFinished`].
    Unanswered: Eq {
        // Tokens counted by the provider.
        usage: Usage,
        /// Billionths of a US dollar.
        // Cost of these tokens, in the unit of [`Response`].
        cost ?: Cost,
    }
}

plain_bodies! {
    /// A queued input was withdrawn.
    // Body of `input_withdrawn`: no turn takes this input.
    InputWithdrawn {
        input: InputId,
        by ?: Who,
    }
    /// A queued input has another place.
    // Body of `input_moved`.
    InputMoved {
        input: InputId,
        /// The waiting input directly after it; absent if it is the last.
        before ?: InputId,
        by ?: Who,
    }
    /// A turn took a queued input, which became an item.
    // Body of `input_consumed`.
    InputConsumed {
        input: InputId,
    }
    /// A turn began.
    TurnStarted {
        // Dense from 1.
        turn: u64,
    }
}

host_parts! {
    /// Who contributed the parts of a surface; part of [`SurfaceSet`]. Older programs did not write it.
    SurfaceSources: Default Eq {
        /// The parts of the system prompt, in order. Blank lines between them are not counted.
        system: Vec<SystemSource>,
        /// The feature of each tool, in the order of the tools.
        tools: Vec<String>,
    }
    /// A part of the system prompt; part of [`SurfaceSources`].
    SystemSource: Eq {
        /// [`SurfaceSources::HOST`], [`SurfaceSources::INSTRUCTIONS`] or a feature id.
        source: String,
        bytes: u64,
    }
    /// The dialect that encoded the bytes of a request.
    Encoder: Eq {
        /// The name of the dialect, as in `openai-chat`.
        id: String,
        /// Raised whenever the bytes for the same items change.
        version: u16,
    }
    /// Limits that an input sets to its turn; the others are the pod's.
    InputLimits: Copy Default Eq {
        /// The maximum number of model requests.
        max_steps ?: u32,
        max_cost ?: Cost,
        max_tokens ?: u64,
        /// Seconds, without what the turn waits for a person.
        max_wall_s ?: u64,
    }
}

impl SurfaceSources {
    /// The source of the host's own part of the system prompt.
    pub const HOST: &'static str = "host";
    /// The source of files of instructions.
    pub const INSTRUCTIONS: &'static str = "instructions";
}

words! {
    /// When an input is taken.
    InputMode: Default {
        /// By a turn of its own, after the inputs before it.
        #[default]
        Queue = "queue",
        /// At the next step of the running turn; by the next turn if the running one has no further step.
        Steer = "steer",
        /// As [`Self::Steer`]; until it is taken, each call that waits for a person is denied.
        DenyParked = "deny_parked",
    }
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

/// How many turns in a row may end with the process before a pod is held.
pub const MAX_CRASHES: u32 = 3;

impl Outcome {
    /// Why a pod is held behind a turn with this end; `crashes` turns in a row ended with the process.
    #[must_use]
    pub fn hold(&self, crashes: u32) -> Option<(HoldCause, Cow<'_, str>)> {
        let (cause, reason) = match self {
            Self::Interrupted | Self::Waiting if crashes >= MAX_CRASHES => {
                let reason = format!("the process died in {MAX_CRASHES} turns in a row");
                return Some((HoldCause::Bug, reason.into()));
            }
            Self::Cancelled => (HoldCause::Cancel, "the turn was cancelled"),
            Self::StepLimit => (HoldCause::Budget, "the turn reached its step limit"),
            Self::CostLimit => (HoldCause::Budget, "the turn reached its cost limit"),
            Self::TokenLimit => (HoldCause::Budget, "the turn reached its token limit"),
            Self::TimeLimit => (HoldCause::Budget, "the turn reached its time limit"),
            Self::ContextLimit => (
                HoldCause::Budget,
                "the next request does not fit the model's context",
            ),
            // The model would refuse the inputs that wait in the same way.
            Self::ModelFailed { kind, message, .. } => match kind {
                ErrorKind::Denied => (HoldCause::Required, message.as_str()),
                ErrorKind::Exhausted => (HoldCause::Budget, message.as_str()),
                _ => return None,
            },
            Self::Interrupted
            | Self::Waiting
            | Self::Done
            | Self::MaxTokens
            | Self::Refused
            | Self::Empty
            | Self::Aborted { .. } => return None,
        };
        Some((cause, reason.into()))
    }
}
