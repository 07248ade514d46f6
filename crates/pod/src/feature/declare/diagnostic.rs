//! Problems between a descriptor and a live feature: one code per cause, with both sides named. Does not depend on the
//! plan or the stage.

use super::contribution::ContributionKind;
use super::id::FeatureId;
use authority::Redactor;
use llm_worker::ErrorKind;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Most notes one feature may leave while it installs.
pub const MAX_NOTES: usize = 32;
/// Longest message of a diagnostic, in bytes.
pub(crate) const MAX_MESSAGE: usize = 512;

/// The cause of a diagnostic.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticCode {
    /// `descriptor()` panicked.
    DescriptorPanicked,
    /// `descriptor()` did not return in time.
    DescriptorTimedOut,
    /// The descriptor is out of bounds or contradicts itself.
    InvalidDescriptor,
    /// The settings do not fit the schema that the feature declares.
    InvalidSettings,
    /// Two modules claim one id; both are skipped.
    DuplicateId,
    /// No adapter for the runtime kind in this build.
    NoAdapter,
    /// A tool name that another feature has.
    ToolNameTaken,
    /// A tool name that belongs to a built-in, installed or not.
    ToolNameReserved,
    /// A required capability was denied.
    RequiredCapabilityDenied,
    /// An optional capability was denied.
    OptionalCapabilityDenied,
    /// A required service is missing; `cause` may name the feature that is the reason.
    RequiredServiceMissing,
    /// An optional service is missing.
    OptionalServiceMissing,
    /// A required service has another version.
    ServiceVersionUnmet,
    /// Features need each other's services in a circle; none of them is installed.
    ServiceCycle,
    /// Another feature provides this service.
    ServiceTaken,
    /// The feature exceeds a limit for all features together.
    TooManyFeatures,
    /// The configuration requires a feature that is not installed.
    RequiredFeatureUnmet,
    /// `install()` answered with an error, or a registrar refused a call.
    InstallFailed,
    /// `install()` panicked.
    InstallPanicked,
    /// `install()` did not return in time; its thread was abandoned.
    InstallTimedOut,
    /// A planned contribution was not staged.
    PlannedNotStaged,
    /// Too many earlier callbacks hang; this one was not called.
    TooManyStuck,
    /// The transforms of some features each have to be asked before those of the others.
    HookCycle,
    /// An enricher panicked, did not return in time or answered with an error; its tools stay as they are declared.
    EnricherFailed,
    /// An enricher changed what it may not change; the tool stays as it was.
    EnrichmentRefused,
    /// Rules of a granted package do not hold in this start.
    RulesLost,
    /// A text of the feature itself.
    Note,
}

/// A message about a plan or an installation.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct FeatureDiagnostic {
    pub code: DiagnosticCode,
    /// The feature, if its id is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_id: Option<FeatureId>,
    /// The feature that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FeatureId>,
    /// What failed and why; at most 512 bytes.
    pub message: String,
    /// What a person can do: the end of the message.
    #[serde(skip)]
    pub remedy: Option<String>,
}

impl FeatureDiagnostic {
    pub(crate) fn new(code: DiagnosticCode, feature: &FeatureId, message: impl AsRef<str>) -> Self {
        Self {
            feature_id: Some(feature.clone()),
            ..Self::general(code, message)
        }
    }

    /// A diagnostic that quotes a feature's text, redacted.
    pub(crate) fn quoting(
        code: DiagnosticCode,
        feature: &FeatureId,
        message: &str,
        redactor: &Redactor,
    ) -> Self {
        Self::new(code, feature, redactor.text(crate::feature::clamp(message)))
    }

    pub(crate) fn general(code: DiagnosticCode, message: impl AsRef<str>) -> Self {
        let message = crate::feature::escape_line(message.as_ref(), MAX_MESSAGE);
        Self {
            code,
            feature_id: None,
            cause: None,
            message,
            remedy: None,
        }
    }

    /// Ends the message with what a person can do, and `or` what else.
    pub(crate) fn remedied(mut self, remedy: &str, or: &str) -> Self {
        let whole = format!("{}; {remedy}{or}", self.message);
        self.message = crate::feature::escape_line(&whole, MAX_MESSAGE);
        self.remedy = Some(remedy.to_owned());
        self
    }

    /// The message without the remedy.
    #[must_use]
    pub fn problem(&self) -> &str {
        let remedy = self.remedy.as_ref().map(|text| format!("; {text}"));
        let parts = remedy.and_then(|remedy| self.message.rsplit_once(&remedy));
        parts.map_or(&self.message, |(problem, _)| problem)
    }

    pub(crate) fn caused_by(mut self, cause: Option<FeatureId>) -> Self {
        self.cause = cause;
        self
    }
}

/// The reason why an install failed. A registrar's refusal is final even if the feature ignores it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureInstallError {
    #[error(
        "{kind} `{name}` was staged by {feature} but is not declared; add it to the descriptor"
    )]
    NotDeclared {
        /// `tool`, `hook` or `instruction`.
        kind: &'static str,
        name: String,
        feature: FeatureId,
    },
    #[error("{kind} `{name}` was staged twice by {feature}")]
    StagedTwice {
        /// `tool`, `hook` or `instruction`.
        kind: &'static str,
        name: String,
        feature: FeatureId,
    },
    /// The staged contribution differs from the one declared under this name.
    #[error("{kind} `{name}` of {feature} differs from its declaration in {what}")]
    Differs {
        /// `tool`, `hook` or `instruction`.
        kind: &'static str,
        name: String,
        feature: FeatureId,
        what: &'static str,
    },
    #[error("{feature} was not granted {asked}")]
    Denied { feature: FeatureId, asked: String },
    /// Granted, but this host offers no such handle.
    #[error("{feature} was granted {asked}, but {why}")]
    Unavailable {
        feature: FeatureId,
        asked: String,
        /// The host's reason.
        why: String,
    },
    #[error("{0}")]
    Exhausted(String),
    /// With what a person can do.
    #[error("{0}")]
    Failed(String, Option<&'static str>),
}

impl FeatureInstallError {
    pub(crate) fn undeclared(kind: ContributionKind, name: impl Display, of: &FeatureId) -> Self {
        Self::NotDeclared {
            kind: kind.noun(),
            name: name.to_string(),
            feature: of.clone(),
        }
    }

    pub(crate) fn twice(kind: ContributionKind, name: impl Display, of: &FeatureId) -> Self {
        Self::StagedTwice {
            kind: kind.noun(),
            name: name.to_string(),
            feature: of.clone(),
        }
    }

    pub(crate) fn differs(
        kind: ContributionKind,
        name: impl Display,
        of: &FeatureId,
        what: &'static str,
    ) -> Self {
        Self::Differs {
            kind: kind.noun(),
            name: name.to_string(),
            feature: of.clone(),
            what,
        }
    }

    /// An error with the feature's own reason.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into(), None)
    }

    /// What a person can do; in reports a failed install ends with it, or disabling the feature.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        if let Self::Failed(_, remedy) = self {
            *remedy
        } else {
            None
        }
    }

    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotDeclared { .. } | Self::StagedTwice { .. } | Self::Differs { .. } => {
                ErrorKind::Bug
            }
            Self::Denied { .. } => ErrorKind::Denied,
            Self::Unavailable { .. } | Self::Failed(..) => ErrorKind::Unavailable,
            Self::Exhausted(_) => ErrorKind::Exhausted,
        }
    }
}
