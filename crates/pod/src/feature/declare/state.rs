//! A state's name and shape: one `const` key both declares and opens it. Does not depend on the journal or on files.

use super::capability::HostCapability;
use super::contribution::{Contribution, ContributionKind};
use super::text::{MAX_NAME, escape_line, plain_name_fits};
use crate::record::FeatureState;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// How long a state lives, and who shares it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StateScope {
    /// In the session's journal: restore, fork and rewind are right by construction.
    Session,
    /// A file of the pod: sessions come and go, it stays.
    Pod,
    /// A file of the person: all their pods share it.
    User,
}

impl fmt::Display for StateScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Pod => "pod",
            Self::User => "user",
        })
    }
}

/// Reads a value of an older version.
pub(crate) type Migration<T> = fn(version: u16, value: &Value) -> Result<T, String>;

fn without_migration<T>(version: u16, _: &Value) -> Result<T, String> {
    Err(format!("version {version} has no migration"))
}

/// A state's name, version and scope, as a `const`.
///
/// ```
/// use pod::feature::StateKey;
/// const SEEN: StateKey<Vec<String>> = StateKey::new("seen", 1);
/// assert_eq!(SEEN.name(), "seen");
/// ```
pub struct StateKey<T> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) version: u16,
    pub(crate) scope: StateScope,
    pub(crate) migrate: Migration<T>,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> StateKey<T> {
    /// A state in session scope; values of older versions do not read. Meant for a `const`, where a bad name or version
    /// does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of `[a-z0-9-]`, and on version 0.
    #[must_use]
    pub const fn new(name: &'static str, version: u16) -> Self {
        assert!(
            plain_name_fits(name),
            "a state's name is 1 to 64 bytes of [a-z0-9-]"
        );
        assert!(version > 0, "the versions of a state start at 1");
        Self {
            name: Cow::Borrowed(name),
            version,
            scope: StateScope::Session,
            migrate: without_migration,
            value: PhantomData,
        }
    }

    /// Sets the scope.
    #[must_use]
    pub const fn scope(mut self, scope: StateScope) -> Self {
        self.scope = scope;
        self
    }

    /// Reads values that were written under older versions; pure.
    #[must_use]
    pub const fn migrating(mut self, migrate: Migration<T>) -> Self {
        self.migrate = migrate;
        self
    }

    /// The state's name.
    #[must_use]
    pub const fn name(&self) -> &str {
        match &self.name {
            Cow::Borrowed(name) => name,
            Cow::Owned(name) => name.as_str(),
        }
    }

    /// The key of a state that is known only at run time; values of older versions do not read.
    pub(crate) fn declared(declared: &StateDeclaration) -> Self {
        let StateDeclaration {
            name,
            version,
            scope,
        } = declared.clone();
        Self {
            name: Cow::Owned(name),
            version,
            scope,
            migrate: without_migration,
            value: PhantomData,
        }
    }

    /// The value of a stored version.
    pub(crate) fn read(&self, version: u16, value: &Value) -> Result<T, String> {
        match version.cmp(&self.version) {
            std::cmp::Ordering::Equal => T::deserialize(value).map_err(|e| e.to_string()),
            std::cmp::Ordering::Less => (self.migrate)(version, value),
            std::cmp::Ordering::Greater => {
                let Self {
                    name, version: own, ..
                } = self;
                Err(format!(
                    "`{name}` was written as version {version}, this build reads up to {own}; use a newer one"
                ))
            }
        }
    }
}

impl<T: DeserializeOwned + Default> StateKey<T> {
    /// The stored value, or the default if there is none.
    pub(crate) fn left(&self, left: Option<&FeatureState>) -> Result<T, String> {
        left.map_or_else(
            || Ok(T::default()),
            |left| self.read(left.version, &left.value),
        )
    }
}

impl<T> StateKey<T> {
    pub(crate) fn copy(&self) -> Self {
        let Self {
            name,
            version,
            scope,
            migrate,
            value: _,
        } = self;
        let version = *version;
        let scope = *scope;
        let migrate = *migrate;
        Self {
            name: name.clone(),
            version,
            scope,
            migrate,
            value: PhantomData,
        }
    }

    pub(crate) fn declaration(&self) -> StateDeclaration {
        StateDeclaration {
            name: self.name.to_string(),
            version: self.version,
            scope: self.scope,
        }
    }
}

/// A state as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateDeclaration {
    /// Unique within the feature: 1 to 64 bytes of `[a-z0-9-]`.
    pub name: String,
    /// The version of its shape, from 1.
    pub version: u16,
    pub scope: StateScope,
}

impl Contribution for StateDeclaration {
    const KIND: ContributionKind = ContributionKind::State;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn requests(&self) -> Vec<HostCapability> {
        vec![HostCapability::StateStore { scope: self.scope }]
    }

    fn needs(&self) -> Vec<HostCapability> {
        Vec::new()
    }

    fn problem(&self, _requested: &[HostCapability]) -> Option<String> {
        let Self {
            name,
            version,
            scope: _,
        } = self;
        if !plain_name_fits(name) {
            let shown = escape_line(name, MAX_NAME);
            return Some(format!(
                "state name `{shown}` is not 1 to {MAX_NAME} bytes of [a-z0-9-]"
            ));
        }
        (*version == 0).then(|| format!("state `{name}` has version 0; versions start at 1"))
    }
}
