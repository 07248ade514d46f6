//! The values of an item, as types that exclude every value that `tickets.sh doctor` would refuse.

use crate::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// One line of a listing, in bytes.
const MAX_TITLE: usize = 200;
/// Leaves room for the rest of a path, in bytes.
pub(super) const MAX_SLUG: usize = 60;
/// Names of people, in bytes.
pub(super) const MAX_AUTHOR: usize = 120;
/// One label, in bytes.
const MAX_LABEL: usize = 64;
/// An id: its time, its slug, and a number behind it.
const MAX_ID: usize = 96;
/// `20260131-120000-`.
const STAMP: usize = 16;

/// The name of an item and of its directory: `20260131-120000-a-slug`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct ItemId(String);

/// An id, the beginning of one, or a slug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ItemRef(String);

/// One line of at most 200 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Title(String);

/// A word of `a-z`, `0-9`, `:`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WorkItemLabel(String);

/// One line of at most 120 bytes, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Assignee(String);

/// A second: `2026-01-31T12:00:00Z`. It sorts as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct Time(String);

/// The folder an item is in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum WorkItemStatus {
    Open,
    Pending,
    Closed,
}

/// What sort of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkItemKind {
    Bug,
    Chore,
    Design,
    Docs,
    Feature,
    Task,
}

/// How soon it is wanted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Low,
    Normal,
    High,
    Urgent,
}

impl WorkItemStatus {
    /// All of them, as the script lists them.
    pub const ALL: [Self; 3] = [Self::Open, Self::Pending, Self::Closed];
    /// The default filter of a list.
    pub(super) const LIVE: [Self; 2] = [Self::Open, Self::Pending];
}

impl ItemId {
    /// Parses a directory name as an id; `None` if it is not one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        const FORM: &[u8] = b"dddd1d3d-2d5d6d-";
        let stamp = name.get(..STAMP)?;
        let slug = name.get(STAMP..)?;
        (plain::has_form(stamp, FORM) && plain::is_slug(slug, MAX_ID - STAMP))
            .then(|| Self(name.to_owned()))
    }

    pub(super) fn new(at: &Time, slug: &str) -> Option<Self> {
        Self::parse(&format!("{}-{slug}", at.stamp()))
    }

    /// The part behind the time.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.0.get(STAMP..).unwrap_or_default()
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ItemRef {
    /// Whether the reference matches this item.
    pub(super) fn means(&self, id: &ItemId) -> bool {
        id.as_str().starts_with(&self.0) || id.slug() == self.0
    }

    /// Whether it is exactly this id.
    pub(super) fn is(&self, id: &ItemId) -> bool {
        id.as_str() == self.0
    }
}

impl Time {
    /// The second of `now`.
    #[must_use]
    pub fn of(now: SystemTime) -> Self {
        Self(humantime::format_rfc3339_seconds(authority::dated(now)).to_string())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        const FORM: &[u8] = b"dddd-1d-3dT2d:5d:6dZ";
        plain::has_form(text, FORM).then(|| Self(text.to_owned()))
    }

    /// `20260131-120000`, as it is in an id.
    pub(super) fn stamp(&self) -> String {
        self.0
            .chars()
            .filter(|c| !matches!(c, '-' | ':' | 'Z'))
            .map(|c| if c == 'T' { '-' } else { c })
            .collect()
    }
}

impl TryFrom<String> for ItemRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if text.is_empty() || text.len() > MAX_ID || text.starts_with('-') || !plain {
            return Err("no id; ids look like 20260131-120000-a-slug".to_owned());
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for Title {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        plain::line("title", &text, MAX_TITLE).map(|()| Self(text))
    }
}

impl TryFrom<String> for WorkItemLabel {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b":_-".contains(&b));
        if text.is_empty() || text.len() > MAX_LABEL || !plain {
            return Err(format!(
                "labels are words of a-z, 0-9, `:`, `_` and `-`, at most {MAX_LABEL} bytes each"
            ));
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for Assignee {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            Ok(Self(text))
        } else {
            plain::line("assignee", &text, MAX_AUTHOR).map(|()| Self(text))
        }
    }
}

impl Assignee {
    /// The empty assignee.
    pub(super) fn nobody() -> Self {
        Self(String::new())
    }
}

plain::texts!(ItemId, ItemRef, Title, WorkItemLabel, Assignee, Time);
plain::names!(WorkItemStatus, WorkItemKind, Priority);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_script() {
        let cases = [
            ("20260131-120000-a-slug", true),
            ("20260131-120000-1", true),
            ("20260131-120000-", false),
            ("20260131-120000", false),
            ("20262131-120000-a", false),
            ("20260141-120000-a", false),
            ("20260131-320000-a", false),
            ("20260131-126000-a", false),
            ("20260131-120070-a", false),
            ("20260131-120000-a--b", false),
            ("20260131-120000-a-", false),
            ("20260131-120000-A", false),
            ("20260131-120000-../x", false),
        ];
        for (name, good) in cases {
            assert_eq!(ItemId::parse(name).is_some(), good, "{name}");
        }
        for bad in ["", "-a", "../x", "a/b", "A", "a.b", "*"] {
            assert!(ItemRef::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_whole_seconds() {
        let time =
            Time::of(std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_769_860_800_999));
        assert_eq!(
            (time.to_string().as_str(), time.stamp().as_str()),
            ("2026-01-31T12:00:00Z", "20260131-120000")
        );
        assert_eq!(Time::parse("2026-01-31T12:00:00Z"), Some(time));
        for bad in [
            "2026-01-31T12:00:00",
            "2026-01-31 12:00:00Z",
            "2026-01-31T12:00:00+0",
            "2026-21-31T12:00:00Z",
        ] {
            assert_eq!(Time::parse(bad), None, "{bad}");
        }
    }
}
