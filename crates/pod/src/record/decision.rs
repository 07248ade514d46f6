//! A decision about a call, an input, a request or the end of a turn, in its one durable form. It knows no decider.

/// A decision with its reason, which is for the model and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Permission or a gate refused it.
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
    /// A person should look before anything goes on.
    Pause {
        reason: String,
    },
}

impl Decision {
    /// The decision in a word, as it is journaled.
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

    /// Why; empty for an allowance.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow => "",
            Self::Refuse { reason } | Self::Invalid { reason } | Self::Abort { reason } | Self::Pause { reason } => {
                reason
            }
        }
    }

    /// Whether it goes on.
    #[must_use]
    pub fn allows(&self) -> bool {
        *self == Self::Allow
    }

    /// As it was journaled.
    pub(super) fn read(word: &str, reason: String) -> Result<Self, String> {
        Ok(match word {
            "allow" => Self::Allow,
            "refuse" => Self::Refuse { reason },
            "invalid" => Self::Invalid { reason },
            "abort" => Self::Abort { reason },
            "pause" => Self::Pause { reason },
            other => return Err(format!("`{other}` is no decision: expected allow, refuse, invalid, abort or pause")),
        })
    }
}
