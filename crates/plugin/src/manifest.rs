//! The manifest of a package: who made it, and what its features declare. Data alone: parsing opens and runs nothing.

use crate::program::{ProgramTable, ToolProgram};
use pod::feature::{
    About, CapabilityRequest, DEFAULT_DEADLINE, FeatureDescriptor, FeatureId, FeatureRuntimeKind, HostCapability,
    ToolDeclaration, TouchKind,
};
use pod::permission::{Layer, Rule, RuleDecision};
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The manifest's name in its package.
pub const MANIFEST: &str = "plugin.toml";
/// Longest manifest, in bytes.
pub const MAX_MANIFEST: usize = 256 * 1024;
/// Most features of a package.
const MAX_FEATURES: usize = 32;
/// Most rules of permission of a feature.
const MAX_RULES: usize = 32;

/// Other names of tools, by package and then by the name in the manifest.
pub type Renames = BTreeMap<String, BTreeMap<String, String>>;

/// A manifest that was read. Each feature stands for itself: one that cannot be read costs no other.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub package: Package,
    /// By their names in the package.
    pub features: BTreeMap<String, Result<DeclaredFeature, String>>,
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

/// A feature as the manifest declares it, and the programs of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredFeature {
    pub descriptor: FeatureDescriptor,
    /// By the names of tools.
    pub programs: BTreeMap<String, ToolProgram>,
    /// Rules of permission that ask or deny, for any tools.
    pub rules: Vec<Rule>,
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
    ///
    /// # Errors
    /// It is too long or not valid, or needs another version of yoi. What is wrong with one feature stands in its place.
    pub fn read(text: &str, yoi: &Version, renames: &Renames) -> Result<Self, BadManifest> {
        let invalid = |why: String| BadManifest::Invalid(authority::text::escape_line(&why).into_owned());
        if text.len() > MAX_MANIFEST {
            return Err(BadManifest::TooLong(text.len()));
        }
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| invalid(error.message().to_owned()))?;
        let package = table.remove("package").ok_or_else(|| invalid("[package] is missing".to_owned()))?;
        let package: Package = read(package).map_err(|why| invalid(format!("[package]: {why}")))?;
        package.problem().map_or(Ok(()), |why| Err(invalid(format!("[package]: {why}"))))?;
        if let Some(needs) = package.requires.yoi.clone().filter(|needs| !needs.matches(yoi)) {
            return Err(BadManifest::Version { needs, is: yoi.clone() });
        }
        let features = match table.remove("features") {
            Some(toml::Value::Table(features)) if features.len() <= MAX_FEATURES => features,
            Some(toml::Value::Table(_)) => return Err(invalid(format!("over {MAX_FEATURES} features"))),
            Some(_) | None => return Err(invalid("[features.NAME] is missing".to_owned())),
        };
        if let Some(key) = table.keys().next() {
            return Err(invalid(format!("`{key}` is not known; [package] and [features.NAME] are")));
        }
        let none = BTreeMap::new();
        let rename = renames.get(&package.name).unwrap_or(&none);
        let read = |(name, feature): (String, toml::Value)| {
            let feature = DeclaredFeature::read(&package, &name, feature, rename);
            (name, feature.map_err(|why| authority::text::escape_line(&why).into_owned()))
        };
        let features = features.into_iter().map(read).collect();
        Ok(Self { package, features })
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
        let Self { authors, license, homepage, metadata, .. } = self.clone();
        Some(About { authors, license, homepage, metadata }).filter(|about| !about.is_empty())
    }
}

/// A value of TOML as the type that JSON is read into.
fn read<T: serde::de::DeserializeOwned>(value: toml::Value) -> Result<T, String> {
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

impl DeclaredFeature {
    fn read(
        package: &Package,
        name: &str,
        table: toml::Value,
        rename: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let id: FeatureId = format!("plugin:{}/{name}", package.name).parse().map_err(|error| format!("{error}"))?;
        let mut table: Map<String, Value> = read(table)?;
        for key in ["id", "runtime", "about"] {
            if table.contains_key(key) {
                return Err(format!("`{key}` is set by yoi"));
            }
        }
        let rules = table.remove("rules").unwrap_or_else(|| json!([]));
        let rules = narrowing(rules, &id, rename).map_err(|why| format!("rules: {why}"))?;
        let programs = table.remove("run").unwrap_or_else(|| json!({}));
        let programs: BTreeMap<String, ProgramTable> =
            serde_json::from_value(programs).map_err(|error| format!("run: {error}"))?;
        for key in ["tools", "declared_tools"] {
            for tool in table.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                complete(tool);
            }
        }
        table.entry("display_name").or_insert_with(|| name.into());
        table.entry("version").or_insert_with(|| package.version.to_string().into());
        for (key, other) in
            [("declared_tools", "tools"), ("requested_capabilities", "requests"), ("instructions", "instructions")]
        {
            if !table.contains_key(other) {
                table.entry(key).or_insert_with(|| json!([]));
            }
        }
        table.insert("id".to_owned(), id.to_string().into());
        table.insert("runtime".to_owned(), json!(FeatureRuntimeKind::Declarative));
        let mut descriptor: FeatureDescriptor =
            serde_json::from_value(Value::Object(table)).map_err(|error| error.to_string())?;
        only_tools(&descriptor)?;
        descriptor.declared_tools.iter().try_for_each(only_for_models)?;
        let programs = bound(&descriptor, programs)?;
        request(&mut descriptor, &programs);
        descriptor.about = package.about();
        let programs = renamed(&mut descriptor, programs, rename);
        // A schema is compiled where the feature is planned: nothing of a package costs much before it is granted.
        let problems = descriptor.problems_but_schemas();
        if problems.is_empty() { Ok(Self { descriptor, programs, rules }) } else { Err(problems.join("; ")) }
    }
}

/// Fills in what a tool of a manifest need not say, and writes its schema as text.
fn complete(tool: &mut Value) {
    let Some(tool) = tool.as_object_mut() else { return };
    if let Some(schema @ Value::Object(_)) = tool.get_mut("schema") {
        schema.sort_all_objects();
        *schema = schema.to_string().into();
    }
    tool.entry("deadline_ms").or_insert_with(|| u64::try_from(DEFAULT_DEADLINE.as_millis()).unwrap_or(u64::MAX).into());
    tool.insert("foreign".to_owned(), true.into());
}

/// Rules that narrow: what a package may forbid, but never allow. Its own tools have the names that a person chose.
fn narrowing(rules: Value, id: &FeatureId, rename: &BTreeMap<String, String>) -> Result<Vec<Rule>, String> {
    let mut rules: Vec<Rule> = serde_json::from_value(rules).map_err(|error| error.to_string())?;
    if rules.len() > MAX_RULES {
        return Err(format!("{} rules; at most {MAX_RULES} are allowed", rules.len()));
    }
    if rules.iter().any(|rule| rule.decision == RuleDecision::Allow) {
        return Err("a plugin can `ask` and `deny`, not `allow`".to_owned());
    }
    for rule in &mut rules {
        if let Some(other) = rename.get(&rule.tool) {
            rule.tool.clone_from(other);
        }
    }
    Layer::new(id.to_string(), rules.clone()).map_err(|error| error.problem)?;
    Ok(rules)
}

/// A feature without code contributes nothing that only code can do.
fn only_tools(descriptor: &FeatureDescriptor) -> Result<(), String> {
    let others = [
        ("hooks", descriptor.declared_hooks.len()),
        ("background tasks", descriptor.declared_background_tasks.len()),
        ("states", descriptor.states.len()),
        ("services", descriptor.provides.len() + descriptor.requires.len()),
        ("enrichers", descriptor.enriches.len()),
        ("requests", descriptor.requested_capabilities.len()),
        ("settings", usize::from(descriptor.settings.is_some())),
    ];
    match others.iter().find(|(_, count)| *count > 0) {
        Some((what, _)) => Err(format!("a declarative feature has tools, instructions and categories, no {what}")),
        None => Ok(()),
    }
}

/// A program has effects of its own: neither rules of permission nor gates judge calls of clients, and the state of the pod is
/// out of its reach.
fn only_for_models(tool: &ToolDeclaration) -> Result<(), String> {
    if tool.for_clients {
        return Err(format!("tool `{}`: `for_clients` is for tools that come with yoi", tool.name));
    }
    match tool.touches.iter().any(|rule| rule.is == TouchKind::Session) {
        true => Err(format!("tool `{}` touches `session`, which no program can", tool.name)),
        false => Ok(()),
    }
}

/// The program of each tool.
fn bound(
    descriptor: &FeatureDescriptor,
    mut programs: BTreeMap<String, ProgramTable>,
) -> Result<BTreeMap<String, ToolProgram>, String> {
    let mut bound = BTreeMap::new();
    for tool in &descriptor.declared_tools {
        let name = &tool.name;
        let feature = descriptor.id.to_string().rsplit('/').next().unwrap_or_default().to_owned();
        let missing = || format!("tool `{name}` has no program; write [features.{feature}.run.{name}]");
        let table = programs.remove(name).ok_or_else(missing)?;
        let schema: Value = serde_json::from_str(&tool.schema).map_err(|error| format!("tool `{name}`: {error}"))?;
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let program = ToolProgram::of(table, &properties).map_err(|why| format!("run.{name}: {why}"))?;
        bound.insert(name.clone(), program);
    }
    match programs.keys().next() {
        Some(name) => Err(format!("run.{name}: there is no tool `{name}`")),
        None => Ok(bound),
    }
}

/// Requests what the programs need: to start them, in the working directory.
fn request(descriptor: &mut FeatureDescriptor, programs: &BTreeMap<String, ToolProgram>) {
    let requests = &mut descriptor.requested_capabilities;
    if !programs.is_empty() {
        let reason = "start the programs of its tools in the working directory";
        requests.push(CapabilityRequest::required(HostCapability::READ_WORKSPACE, reason));
    }
    for network in [false, true] {
        let of = programs.values().filter(|program| program.network == network);
        let names: BTreeSet<Cow<'static, str>> = of.map(|program| program.program.clone().into()).collect();
        if !names.is_empty() {
            let programs = names.into_iter().collect();
            let reason = "run the programs of its tools";
            requests.push(CapabilityRequest::required(HostCapability::Process { programs, network }, reason));
        }
    }
}

/// Gives tools the names that a person chose.
fn renamed(
    descriptor: &mut FeatureDescriptor,
    programs: BTreeMap<String, ToolProgram>,
    rename: &BTreeMap<String, String>,
) -> BTreeMap<String, ToolProgram> {
    let other = |name: String| rename.get(&name).cloned().unwrap_or(name);
    for tool in &mut descriptor.declared_tools {
        tool.name = other(std::mem::take(&mut tool.name));
    }
    programs.into_iter().map(|(name, program)| (other(name), program)).collect()
}

#[cfg(test)]
mod tests;
