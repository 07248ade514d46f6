//! What a session is asked for, by its client.

use crate::content::Prompt;
use crate::message::Id;
use serde::Deserialize;

/// What a client understands beside the basic messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientKnows {
    /// Texts for people that are part of no answer.
    pub(crate) notices: bool,
}

/// What a session is asked for.
pub(crate) enum Command {
    Prompt {
        id: Id,
        prompt: Prompt,
    },
    Cancel,
    SetMode {
        id: Id,
        mode: String,
    },
    /// None: the client could not ask.
    Answered {
        approval: u64,
        outcome: Option<PermissionOutcome>,
    },
}

/// The answer of a client to a question.
#[derive(Debug, Deserialize)]
pub(crate) struct PermissionOutcome {
    pub(crate) outcome: Chosen,
}

#[derive(Debug, Deserialize)]
#[serde(
    tag = "outcome",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Chosen {
    Cancelled,
    Selected { option_id: String },
}

/// A request that opens a session.
pub(crate) struct Opening {
    pub(crate) id: Id,
    /// Everything that was recorded is told before the answer.
    pub(crate) is_load: bool,
    /// For people, once it is open.
    pub(crate) note: Option<String>,
}
