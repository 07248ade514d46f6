//! Tools as the model is told of them: definitions, and the surface that has them. Does not depend on what runs them.

use crate::item::MediaType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

words! {
    /// What repeating a call would do; decides what recovery says of a call whose outcome is unknown.
    ToolEffect: JsonSchema {
        /// Changes nothing.
        ReadOnly = "read_only",
        /// A repeated call has the same result as one call.
        Idempotent = "idempotent",
        /// Each call can have an effect.
        Effectful = "effectful",
    }
    /// How far a command goes beyond the sandbox: it uses the network, also that of this machine, or it is not confined at all.
    // A comment on a variant would make the schema three times as long.
    #[schemars(description = "")]
    Escalation: PartialOrd Ord JsonSchema {
        Network = "network",
        Unconfined = "unconfined",
    }
    /// How much a model thinks before it answers, in the words of no vendor; a dialect has those of its own.
    Effort: PartialOrd Ord JsonSchema {
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        /// The most that the model has, whatever it is called there.
        Max = "max",
    }
}

/// The definition of a tool for the model. `schema` is canonical JSON: sorted keys, no spaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// 1 to 64 bytes of `[A-Za-z0-9_-]`.
    pub name: String,
    /// At most 8 KiB.
    pub description: String,
    /// Canonical JSON Schema of the arguments object, at most 64 KiB.
    pub schema: Arc<str>,
    pub effect: ToolEffect,
}

bodies! {
    /// Model, instructions and tools; part of [`SurfaceSet`].
    ///
    /// The part of a request that is fixed within one generation of the tool surface.
    Surface: Eq {
        // The generation's number, from 1.
        generation: u64,
        // `provider/name` of the model.
        model: String,
        /// The system prompt with the instructions, frozen.
        - system: String,
        // Sorted by name.
        tools: Vec<ToolDefinition>,
        /// The most tokens one answer may have; the provider's limit when `None`.
        - max_output: Option<u32>,
        /// The vendor's default when absent.
        effort ?: Effort,
        /// Whether the text of the model's thinking is asked for, where the vendor sends it on request only.
        - thinking =: bool,
        /// The types of files that the model reads.
        media =: Vec<MediaType>,
    }
}

impl Effort {
    /// All efforts, least first.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Max,
    ];

    /// The effort of this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.word() == word)
    }
}
