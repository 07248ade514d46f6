//! Categories of tools: what a tool is for, in one word. Do not depend on features.

use super::text::escape_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Longest category, in bytes.
const MAX_CATEGORY: usize = 32;

/// What a tool is for, such as `issue-tracker`: 1 to 32 bytes of `[a-z0-9-]`. A tool with a category is installed only
/// where a feature serves the category.
///
/// ```
/// use pod::feature::ToolCategory;
/// const TRACKER: ToolCategory = ToolCategory::new("issue-tracker");
/// assert_eq!(TRACKER.as_str(), "issue-tracker");
/// assert!("Issue tracker".parse::<ToolCategory>().is_err());
/// ```
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ToolCategory(Cow<'static, str>);

impl ToolCategory {
    /// A category that is known at compile time. Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 32 bytes of `[a-z0-9-]`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            category_fits(name),
            "a category is 1 to 32 bytes of [a-z0-9-]"
        );
        Self(Cow::Borrowed(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) const fn category_fits(name: &str) -> bool {
    name.len() <= MAX_CATEGORY && super::text::plain_name_fits(name)
}

impl TryFrom<String> for ToolCategory {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if category_fits(&name) {
            return Ok(Self(Cow::Owned(name)));
        }
        Err(format!(
            "`{}` is not 1 to {MAX_CATEGORY} bytes of [a-z0-9-]",
            escape_line(&name, MAX_CATEGORY)
        ))
    }
}

impl std::str::FromStr for ToolCategory {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::try_from(name.to_owned())
    }
}

impl From<ToolCategory> for String {
    fn from(category: ToolCategory) -> Self {
        category.0.into_owned()
    }
}

impl fmt::Display for ToolCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
