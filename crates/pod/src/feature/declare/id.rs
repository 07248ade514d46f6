//! Names of features and services. Depends on no other module.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Where a feature comes from; orders installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Compiled in by the project.
    Builtin,
    /// The user's own.
    User,
    /// From an installed package.
    Plugin,
    /// Found in a project directory.
    Project,
}

impl Tier {
    const ALL: [Self; 4] = [Self::Builtin, Self::User, Self::Plugin, Self::Project];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::Project => "project",
        }
    }
}

/// A feature's id: a tier and a name of 1 to [`FeatureId::MAX`] bytes of `[a-z0-9-]` (plugins: `package/name`).
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FeatureId {
    tier: Tier,
    name: Cow<'static, str>,
}

impl FeatureId {
    /// Longest name, in bytes, without the tier.
    pub const MAX: usize = 64;

    /// A built-in's id. Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of `[a-z0-9-]`.
    #[must_use]
    pub const fn builtin(name: &'static str) -> Self {
        assert!(
            part_fits(name.as_bytes()),
            "a built-in's name is 1 to 64 bytes of [a-z0-9-]"
        );
        Self {
            tier: Tier::Builtin,
            name: Cow::Borrowed(name),
        }
    }

    /// The id of a user's own feature. Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of `[a-z0-9-]`.
    #[must_use]
    pub const fn user(name: &'static str) -> Self {
        assert!(
            part_fits(name.as_bytes()),
            "a feature's name is 1 to 64 bytes of [a-z0-9-]"
        );
        Self {
            tier: Tier::User,
            name: Cow::Borrowed(name),
        }
    }

    /// Where the feature comes from.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// The name without its tier.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

const fn part_fits(name: &[u8]) -> bool {
    let mut rest = name;
    while let [first, tail @ ..] = rest {
        if !(first.is_ascii_lowercase() || first.is_ascii_digit() || *first == b'-') {
            return false;
        }
        rest = tail;
    }
    !name.is_empty() && name.len() <= FeatureId::MAX
}

/// Whether a text is a feature id; for names in a `const`.
pub(crate) const fn feature_id_fits(id: &str) -> bool {
    let mut rest = id.as_bytes();
    let mut tier = 0;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte == b':' {
            break;
        }
        tier += 1;
    }
    let (prefix, _) = id.as_bytes().split_at(tier);
    match prefix {
        b"builtin" | b"user" | b"project" => part_fits(rest),
        b"plugin" => {
            let mut at = 0;
            while at < rest.len() {
                let (package, name) = rest.split_at(at);
                if let [b'/', name @ ..] = name {
                    return rest.len() <= FeatureId::MAX && part_fits(package) && part_fits(name);
                }
                at += 1;
            }
            false
        }
        _ => false,
    }
}

impl fmt::Display for FeatureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tier.prefix(), self.name)
    }
}

/// Text that is not a feature id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a feature id; expected builtin:NAME, user:NAME, plugin:PACKAGE/NAME or project:NAME, with names of a-z, 0-9 and -", authority::text::escape_line(.0))]
pub struct BadFeatureId(pub String);

impl TryFrom<String> for FeatureId {
    type Error = BadFeatureId;
    fn try_from(text: String) -> Result<Self, BadFeatureId> {
        let parsed = text.split_once(':').and_then(|(prefix, name)| {
            let tier = Tier::ALL.into_iter().find(|t| t.prefix() == prefix)?;
            let fits = match (tier, name.split_once('/')) {
                (Tier::Plugin, Some((package, name))) => {
                    part_fits(package.as_bytes()) && part_fits(name.as_bytes())
                }
                (Tier::Plugin, None) => false,
                (Tier::Builtin | Tier::User | Tier::Project, _) => part_fits(name.as_bytes()),
            };
            (fits && name.len() <= Self::MAX).then(|| Self {
                tier,
                name: Cow::Owned(name.to_owned()),
            })
        });
        parsed.ok_or(BadFeatureId(text))
    }
}

impl std::str::FromStr for FeatureId {
    type Err = BadFeatureId;
    fn from_str(text: &str) -> Result<Self, BadFeatureId> {
        Self::try_from(text.to_owned())
    }
}

impl From<FeatureId> for String {
    fn from(id: FeatureId) -> Self {
        id.to_string()
    }
}

/// Longest name of a service, in bytes.
const MAX_SERVICE_NAME: usize = 64;

/// `part.part.vN` in lower case.
pub(crate) const fn service_name_fits(name: &str) -> bool {
    let mut rest = name.as_bytes();
    let mut parts = 0_usize;
    let mut part = 0_usize;
    let mut versioned = false;
    let mut numbered = true;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte == b'.' {
            if part == 0 {
                return false;
            }
            (parts, part) = (parts + 1, 0);
            (versioned, numbered) = (false, true);
            continue;
        }
        if !(byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-') {
            return false;
        }
        if part == 0 {
            versioned = *byte == b'v';
        } else {
            numbered = numbered && byte.is_ascii_digit() && !(part == 1 && *byte == b'0');
        }
        part += 1;
    }
    parts >= 2 && part >= 2 && versioned && numbered && name.len() <= MAX_SERVICE_NAME
}

/// The problem of a service's name, if any.
pub(crate) fn service_problem(name: &str) -> Option<String> {
    let shown = || super::text::escape_line(name, MAX_SERVICE_NAME);
    (!service_name_fits(name)).then(|| {
        format!("`{}` is not a valid service name: use a name such as yoi.memory.v1, of at most 64 bytes", shown())
    })
}
