//! The decision of gates, as tests of features see it.

use pod::record::Decision;

/// The decision of the gates at one point; see [`FeatureUnderTest::ask`](crate::FeatureUnderTest::ask).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    Allow,
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
}

impl From<Decision> for Ruling {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Refuse { reason } | Decision::Invalid { reason } => Self::Deny { reason },
            Decision::Abort { reason } => Self::Abort { reason },
            Decision::Pause { reason } => Self::Pause { reason },
        }
    }
}
