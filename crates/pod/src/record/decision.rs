//! A decision about a call, an input, a request or the end of a turn, in its one durable form. Independent of
//! permission and hooks, which make the decisions.

/// The decision of permission or of a gate. The reason is for the model and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
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
}

impl Decision {
    /// The word for the decision in the journal.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Refuse { .. } => "refuse",
            Self::Invalid { .. } => "invalid",
            Self::Abort { .. } => "abort",
            Self::Pause { .. } => "pause",
        }
    }

    /// The reason; empty for `Allow`.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow => "",
            Self::Refuse { reason } | Self::Invalid { reason } | Self::Abort { reason } | Self::Pause { reason } => {
                reason
            }
        }
    }

    /// Whether the decision is `Allow`.
    #[must_use]
    pub fn allows(&self) -> bool {
        *self == Self::Allow
    }

    /// Reads the journaled form.
    pub(super) fn read(word: &str, reason: String) -> Result<Self, String> {
        Ok(match word {
            "allow" => Self::Allow,
            "refuse" => Self::Refuse { reason },
            "invalid" => Self::Invalid { reason },
            "abort" => Self::Abort { reason },
            "pause" => Self::Pause { reason },
            other => {
                return Err(format!("`{other}` is not a decision; expected allow, refuse, invalid, abort or pause"));
            }
        })
    }
}
