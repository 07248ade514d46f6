//! A decision about a call, an input, a request or the end of a turn, in its one durable form. Independent of
//! permission and hooks, which make the decisions.

/// The decision of permission or of a gate. The reason is for the model and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// A person is asked; the call waits.
    Ask {
        question: String,
        /// The call is denied when nobody has answered for this time.
        expires_after_ms: Option<u64>,
    },
    /// Refused by permission or by a gate.
    Refuse {
        reason: String,
    },
    /// There is no such tool, or its arguments do not fit.
    Invalid {
        reason: String,
    },
    Abort {
        reason: String,
    },
    /// The turn ends, and a person should look before another one starts.
    Pause {
        reason: String,
    },
    /// A request that brought no answer is sent again.
    Retry {
        after_ms: u64,
    },
    /// Another turn begins with these words.
    Again {
        words: String,
    },
}

impl Decision {
    /// The word for the decision in the journal.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask { .. } => "ask",
            Self::Refuse { .. } => "refuse",
            Self::Invalid { .. } => "invalid",
            Self::Abort { .. } => "abort",
            Self::Pause { .. } => "pause",
            Self::Retry { .. } => "retry",
            Self::Again { .. } => "again",
        }
    }

    /// The reason, the question, or the words of another turn; empty for `Allow` and `Retry`.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow | Self::Retry { .. } => "",
            Self::Again { words: reason }
            | Self::Ask {
                question: reason, ..
            }
            | Self::Refuse { reason }
            | Self::Invalid { reason }
            | Self::Abort { reason }
            | Self::Pause { reason } => reason,
        }
    }

    /// The time before a request is sent again, or after which a call that waits for a person is denied.
    #[must_use]
    pub fn after_ms(&self) -> Option<u64> {
        match self {
            Self::Retry { after_ms } => Some(*after_ms),
            Self::Ask {
                expires_after_ms, ..
            } => *expires_after_ms,
            Self::Allow
            | Self::Refuse { .. }
            | Self::Invalid { .. }
            | Self::Abort { .. }
            | Self::Pause { .. }
            | Self::Again { .. } => None,
        }
    }

    /// Whether it is a refusal, after which no other gate is asked.
    #[must_use]
    pub fn refuses(&self) -> bool {
        match self {
            Self::Allow | Self::Ask { .. } | Self::Retry { .. } | Self::Again { .. } => false,
            Self::Refuse { .. }
            | Self::Invalid { .. }
            | Self::Abort { .. }
            | Self::Pause { .. } => true,
        }
    }

    /// Whether the decision is `Allow`.
    #[must_use]
    pub fn allows(&self) -> bool {
        *self == Self::Allow
    }

    /// Whether a person is asked.
    #[must_use]
    pub fn asks(&self) -> bool {
        matches!(self, Self::Ask { .. })
    }

    /// Reads the journaled form.
    pub(super) fn read(word: &str, reason: String, after_ms: Option<u64>) -> Result<Self, String> {
        Ok(match word {
            "allow" => Self::Allow,
            "ask" => Self::Ask {
                question: reason,
                expires_after_ms: after_ms,
            },
            "refuse" => Self::Refuse { reason },
            "invalid" => Self::Invalid { reason },
            "abort" => Self::Abort { reason },
            "pause" => Self::Pause { reason },
            "retry" => Self::Retry {
                after_ms: after_ms.unwrap_or_default(),
            },
            "again" => Self::Again { words: reason },
            other => {
                let words = "allow, ask, refuse, invalid, abort, pause, retry or again";
                return Err(format!("`{other}` is not a decision; expected {words}"));
            }
        })
    }
}
