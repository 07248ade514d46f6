//! The decision of gates, as tests of features see it.

use pod::record::Decision;
use std::time::Duration;

/// The decision of the gates at one point; see [`FeatureUnderTest::ask`](crate::FeatureUnderTest::ask).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ruling {
    Allow,
    /// A person is asked, and the call waits.
    Ask {
        question: String,
        /// The time for an answer, if it ends.
        expires_after: Option<Duration>,
    },
    /// This call does not run.
    Deny {
        /// For the model and for people.
        reason: String,
    },
    /// The turn ends.
    Abort {
        reason: String,
    },
    /// Nothing starts by itself until a person continues.
    Pause {
        reason: String,
    },
    /// The request is sent again.
    Retry {
        after: Duration,
    },
    /// Another turn begins with these words.
    Again {
        words: String,
    },
}

impl From<Decision> for Ruling {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Ask {
                question,
                expires_after_ms,
            } => Self::Ask {
                question,
                expires_after: expires_after_ms.map(Duration::from_millis),
            },
            Decision::Refuse { reason } | Decision::Invalid { reason } => Self::Deny { reason },
            Decision::Abort { reason } => Self::Abort { reason },
            Decision::Pause { reason } => Self::Pause { reason },
            Decision::Retry { after_ms } => Self::Retry {
                after: Duration::from_millis(after_ms),
            },
            Decision::Again { words } => Self::Again { words },
        }
    }
}
