//! Who made a feature, for people and other programs. Depends on nothing that runs.

use super::text::{Lines, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest text about a feature, its most authors, and its longest metadata as JSON, in bytes.
const MAX_TEXT: usize = 256;
const MAX_AUTHORS: usize = 16;
const MAX_METADATA: usize = 4 * 1024;

/// Authors, license and metadata of a feature. They decide nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// At most 16, each of at most 256 bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// At most 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// At most 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// For other programs; at most 4 KiB as JSON.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl About {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The first violation of its bounds, if there is one.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Self {
            authors,
            license,
            homepage,
            metadata,
        } = self;
        if authors.len() > MAX_AUTHORS {
            return Some(format!("at most {MAX_AUTHORS} authors are allowed"));
        }
        let texts = authors.iter().map(|author| ("an author", author));
        let texts = texts.chain(license.iter().map(|text| ("the license", text)));
        let mut texts = texts.chain(homepage.iter().map(|text| ("the homepage", text)));
        texts
            .find_map(|(what, text)| check(what, text, MAX_TEXT, Lines::One).err())
            .or_else(|| {
                let bytes = serde_json::to_string(metadata).unwrap_or_default().len();
                (bytes > MAX_METADATA).then(|| format!("`metadata` has over {MAX_METADATA} bytes"))
            })
    }
}
