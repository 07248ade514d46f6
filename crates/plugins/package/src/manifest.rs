//! The manifest of a package: who made it, and what its features declare. Data alone: parsing opens and runs nothing.

mod feature;

pub use feature::DeclaredFeature;

use pod::feature::About;
use semver::{Version, VersionReq};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The manifest's name in its package.
pub const MANIFEST: &str = "plugin.toml";
/// The paths of manifests in a package, yoi's own first.
pub fn manifests() -> impl Iterator<Item = &'static str> {
    let published = Layout::ALL.into_iter().map(Layout::manifest);
    std::iter::once(MANIFEST).chain(published)
}

/// Longest manifest, in bytes.
pub const MAX_MANIFEST: usize = 256 * 1024;
/// Longest text about what is wrong with a manifest, in bytes.
const MAX_PROBLEM: usize = 400;
/// Most features of a package.
const MAX_FEATURES: usize = 32;

/// Other names of tools, by package and then by the name in the manifest.
pub type Renames = BTreeMap<String, BTreeMap<String, String>>;

/// Whose layout a package has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    AgentPlugin,
    ClaudeCode,
}

/// A manifest that was read. Each feature stands for itself: one that cannot be read costs no other.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub package: Package,
    /// By their names in the package.
    pub features: BTreeMap<String, Result<DeclaredFeature, String>>,
    /// Whose layout the package has, where it is not yoi's own.
    pub layout: Option<Layout>,
    /// What was ignored.
    pub notices: Vec<String>,
}

/// The package as its manifest describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// 1 to 32 bytes of `[a-z0-9-]`.
    pub name: String,
    pub version: Version,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    #[serde(default)]
    pub requires: Requires,
    /// For other programs; at most 4 KiB of JSON.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What a package needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// Versions of yoi, such as `>=0.2, <1`; without one, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yoi: Option<VersionReq>,
}

/// Why a package has no features at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    #[error("the manifest has {0} bytes; at most {MAX_MANIFEST} are allowed")]
    TooLong(usize),
    #[error("the manifest is not valid: {0}")]
    Invalid(String),
    #[error("the package needs yoi {needs}; this is {is}")]
    Version { needs: VersionReq, is: Version },
}

impl Manifest {
    /// Reads a manifest for a host of version `yoi`. `renames` gives tools of packages other names: by package, then by tool.
    /// `runtimes` are those of scripts that this program has.
    ///
    /// # Errors
    /// It is too long or not valid, or needs another version of yoi. What is wrong with one feature stands in its place.
    pub fn read(
        text: &str,
        yoi: &Version,
        renames: &Renames,
        runtimes: &[&str],
    ) -> Result<Self, BadManifest> {
        let lines = Lines(text);
        let invalid =
            |why: String| BadManifest::Invalid(authority::text::escape_line(&why).into_owned());
        if text.len() > MAX_MANIFEST {
            return Err(BadManifest::TooLong(text.len()));
        }
        let mut table = DeTable::parse(text)
            .map_err(|error| invalid(lines.problem(&error)))?
            .into_inner();
        let package = table
            .remove("package")
            .ok_or_else(|| invalid("[package] is missing".to_owned()))?;
        let package: Package = lines
            .read(package)
            .map_err(|why| invalid(format!("[package]: {why}")))?;
        package
            .problem()
            .map_or(Ok(()), |why| Err(invalid(format!("[package]: {why}"))))?;
        if let Some(needs) = package
            .requires
            .yoi
            .clone()
            .filter(|needs| !needs.matches(yoi))
        {
            return Err(BadManifest::Version {
                needs,
                is: yoi.clone(),
            });
        }
        let features = match table.remove("features").map(Spanned::into_inner) {
            Some(DeValue::Table(features)) if features.len() <= MAX_FEATURES => features,
            Some(DeValue::Table(_)) => {
                return Err(invalid(format!("over {MAX_FEATURES} features")));
            }
            Some(_) => return Err(invalid("`features` is not a table".to_owned())),
            // It has skills or commands alone.
            None => DeTable::new(),
        };
        if let Some(key) = table.keys().next() {
            let key = key.get_ref();
            return Err(invalid(format!(
                "`{key}` is not known; [package] and [features.NAME] are"
            )));
        }
        let none = BTreeMap::new();
        let rename = renames.get(&package.name).unwrap_or(&none);
        let read = |(name, table): (Spanned<_>, Spanned<DeValue<'_>>)| {
            let name = String::from(name.into_inner());
            let feature = lines.read(table).and_then(|table| {
                let id = format!("plugin:{}/{name}", package.name)
                    .parse()
                    .map_err(|error| format!("{error}"))?;
                let version = &package.version;
                let about = package.about();
                DeclaredFeature::of(id, version, about, table, (rename, runtimes), |at| {
                    lines.number(at)
                })
            });
            (
                name,
                feature.map_err(|why| authority::text::escape_line(&why).into_owned()),
            )
        };
        let features = features.into_iter().map(read).collect();
        let layout = None;
        let notices = Vec::new();
        Ok(Self {
            package,
            features,
            layout,
            notices,
        })
    }
}

/// The text of a manifest, for the lines of what is wrong with it.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn read<T: DeserializeOwned>(&self, value: Spanned<DeValue<'_>>) -> Result<T, String> {
        T::deserialize(value.into_deserializer()).map_err(|error| self.problem(&error))
    }

    /// What is wrong, in a few words: a message can repeat a value that is as long as the manifest.
    fn problem(&self, error: &toml::de::Error) -> String {
        let what = authority::text::escape_within(
            error.message(),
            authority::text::Lines::One,
            MAX_PROBLEM,
        );
        match error.span() {
            Some(span) => format!("line {}: {what}", self.number(span.start)),
            None => what,
        }
    }

    fn number(&self, at: usize) -> usize {
        self.0
            .bytes()
            .take(at)
            .filter(|byte| *byte == b'\n')
            .count()
            + 1
    }
}

impl Package {
    fn problem(&self) -> Option<String> {
        let Self { name, .. } = self;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > 32 || !name.bytes().all(fits) {
            return Some("`name` is 1 to 32 bytes of [a-z0-9-]".to_owned());
        }
        if name == "strict" {
            return Some("`strict` is a key of [plugins], so no package has this name".to_owned());
        }
        self.about().and_then(|about| about.problem())
    }

    /// For reports; nothing where the package says nothing.
    fn about(&self) -> Option<About> {
        let Self {
            authors,
            license,
            homepage,
            metadata,
            ..
        } = self.clone();
        Some(About {
            authors,
            license,
            homepage,
            metadata,
        })
        .filter(|about| !about.is_empty())
    }
}

#[cfg(test)]
mod tests;
