//! Bodies as clients read them: any word, and only the fields that are declared for clients. The others are kept in `other`,
//! except in a body that is the host's type, too.

pub use super::approval::shown::*;
pub use super::call::shown::*;
pub use super::client::shown::*;
pub use super::file::shown::*;
pub use super::host::shown::*;
pub use super::process::shown::*;
pub use super::state::shown::*;
pub use super::task::shown::*;
pub use super::turn::shown::*;
pub use super::view::shown::*;
pub use super::{
    ApprovalExpiry, AskingGate, CommandEnd, FeatureNote, Gap, HookName, HostStopped, InputConsumed,
    InputMoved, InputWithdrawn, Pinned, TurnStarted, Unpinned, Who,
};
pub use crate::answer::Usage;
pub use crate::item::shown::*;
pub use crate::tool::shown::*;

use crate::declare::ForClients;
use crate::{item, outcome};

/// Declares how clients read a type that is one of several forms.
macro_rules! flat {
    ($(#[$doc:meta] $name:ident of $of:path { $($fields:tt)* })*) => {$(
        shown!(@of #[$doc] $name [] $($fields)*);

        impl ForClients for $of {
            type Type = $name;
        }
    )*};
}

flat! {
    /// Assistant text, reasoning or a tool call; part of [`ItemAdded`].
    Item of item::Item {
        r#type: String,
        text ?: String,
        /// The id of a tool call.
        id ?: String,
        name ?: String,
        arguments ?: String,
    }
    /// How a turn ended.
    Outcome of outcome::Outcome {
        /// In one word, such as `done` or `model_failed`.
        outcome: String,
        kind ?: String,
        message ?: String,
        help ?: String,
        reason ?: String,
    }
    /// A text of the host or of a feature that the model reads.
    SystemItem of super::SystemItem {
        topic: String,
        text: String,
        /// The feature that sent it, if one did.
        feature ?: String,
        number ?: u64,
    }
    /// A decision of permission or of a gate.
    VerdictGiven of super::VerdictGiven {
        call ?: String,
        decision: String,
        rule: String,
        reason ?: String,
        hook ?: String,
        feature ?: String,
    }
    /// A tool that the model may call; part of [`Surface`].
    SurfaceTool of crate::tool::ToolDefinition {
        name: String,
    }
}

impl From<&outcome::Outcome> for Outcome {
    fn from(ended: &outcome::Outcome) -> Self {
        let mut outcome = Self {
            outcome: ended.word().to_owned(),
            ..Self::default()
        };
        match ended {
            outcome::Outcome::ModelFailed {
                kind,
                message,
                help,
            } => {
                outcome.kind = Some(kind.word().to_owned());
                outcome.message = Some(message.clone());
                outcome.help.clone_from(help);
            }
            outcome::Outcome::Aborted { reason } => outcome.reason = Some(reason.clone()),
            _ => {}
        }
        outcome
    }
}
