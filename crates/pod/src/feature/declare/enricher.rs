//! Enrichers as declared: which tools they change, and the key that declares and stages one. Do not depend on running
//! code.

use super::capability::HostCapability;
use super::category::{ToolCategory, category_fits};
use super::contribution::{Contribution, ContributionKind};
use super::text::{self, Lines, MAX_NAME};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An enricher's name and its tools, as a `const`.
///
/// ```
/// use pod::feature::EnrichKey;
/// const CHOICES: EnrichKey = EnrichKey::new("choices", &["WorkItemCreate"]);
/// assert_eq!(CHOICES.name(), "choices");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EnrichKey {
    name: &'static str,
    tools: &'static [&'static str],
    category: Option<&'static str>,
    needs: &'static [HostCapability],
}

impl EnrichKey {
    /// An enricher of these tools; `*` is any. Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of printable ASCII.
    #[must_use]
    pub const fn new(name: &'static str, tools: &'static [&'static str]) -> Self {
        assert!(
            text::name_fits(name, MAX_NAME),
            "an enricher's name is 1 to 64 bytes of printable ASCII"
        );
        Self {
            name,
            tools,
            category: None,
            needs: &[],
        }
    }

    /// Of these tools, only those of this category.
    ///
    /// # Panics
    /// On a name that is not 1 to 32 bytes of `[a-z0-9-]`.
    #[must_use]
    pub const fn category(mut self, category: &'static str) -> Self {
        assert!(
            category_fits(category),
            "a category is 1 to 32 bytes of [a-z0-9-]"
        );
        self.category = Some(category);
        self
    }

    /// Requests of the feature without which this enricher is left out.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [HostCapability]) -> Self {
        self.needs = needs;
        self
    }

    /// The enricher's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// An enricher as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnricherDeclaration {
    /// Unique within the feature; at most 64 bytes.
    pub name: String,
    /// The tools whose schemas it changes; `*` is any.
    pub tools: Vec<String>,
    /// Of these tools, only those of this category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<ToolCategory>,
    /// Requests of this feature without which this enricher is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<HostCapability>,
}

impl EnricherDeclaration {
    /// The request to change the schemas of its tools, which every enricher makes by itself.
    #[must_use]
    pub fn implied(&self) -> HostCapability {
        HostCapability::EnrichTools {
            tools: self
                .tools
                .iter()
                .map(|tool| Cow::Owned(tool.clone()))
                .collect(),
        }
    }

    /// Whether it is asked about this tool.
    pub(crate) fn means(&self, tool: &str, category: Option<&ToolCategory>) -> bool {
        self.tools.iter().any(|name| name == "*" || name == tool)
            && self.category.as_ref().is_none_or(|of| Some(of) == category)
    }
}

impl Contribution for EnricherDeclaration {
    const KIND: ContributionKind = ContributionKind::Enricher;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn requests(&self) -> Vec<HostCapability> {
        vec![self.implied()]
    }

    fn needs(&self) -> Vec<HostCapability> {
        self.needs.clone()
    }

    fn problem(&self, _requested: &[HostCapability]) -> Option<String> {
        text::check("an enricher's name", &self.name, MAX_NAME, Lines::One).err()
    }
}

impl From<&EnrichKey> for EnricherDeclaration {
    fn from(key: &EnrichKey) -> Self {
        Self {
            name: key.name.to_owned(),
            tools: key.tools.iter().map(|&tool| tool.to_owned()).collect(),
            category: key.category.map(ToolCategory::new),
            needs: key.needs.to_vec(),
        }
    }
}

impl From<&Self> for EnricherDeclaration {
    fn from(declared: &Self) -> Self {
        declared.clone()
    }
}
