//! One configuration file, as it is written. Every key is optional; an unknown one is an error.

use super::parser_text::{KEY_PLACES, MORE_SOURCES, NO_SOURCE, PLAIN_KEY, explain};
use authority::SandboxMode;
use clap::ValueEnum;
use llm_worker::Cost;
use pod::feature::GrantTable;
use pod::permission::Rule;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A configuration file of yoi. Every key is optional.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// `provider/name`, `offline` or `scripted:FILE`.
    pub(crate) model: Option<String>,
    /// Model endpoints by name.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// What is known of models, by their whole names.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, ModelConfig>,
    /// What a run may use.
    #[serde(default)]
    pub(crate) limits: LimitsConfig,
    /// What may run.
    #[serde(default)]
    pub(crate) permissions: Permissions,
    /// Features by id.
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Feature>,
    /// How the shell is confined.
    #[serde(default)]
    pub(crate) sandbox: Sandbox,
    /// Where sessions are kept.
    #[serde(default)]
    pub(crate) state: StateConfig,
    /// Whether files of instructions are read: the user's own, and `AGENTS.md` or `CLAUDE.md` of the project.
    pub(crate) instructions: Option<bool>,
}

/// `[providers.NAME]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Provider")]
pub(crate) struct ProviderConfig {
    /// The wire format.
    pub(crate) api: ApiKind,
    /// As in `http://127.0.0.1:8080/v1`.
    pub(crate) base_url: String,
    /// Where the key is; none is sent without one.
    pub(crate) key: Option<KeySource>,
    /// How long each wait may last.
    #[serde(default)]
    pub(crate) timeouts: TimeoutsConfig,
    /// How many times a request is sent that fails in passing, the first included.
    pub(crate) attempts: Option<u32>,
}

/// Seconds; what is not set is as for every other endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Waits")]
pub(crate) struct TimeoutsConfig {
    /// Resolving, connecting and shaking hands.
    pub(crate) connect_s: Option<f64>,
    /// From the request to the first byte of the answer.
    pub(crate) first_byte_s: Option<f64>,
    /// Between two pieces of the answer.
    pub(crate) between_bytes_s: Option<f64>,
}

/// A wire format this build speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(rename = "Api")]
pub(crate) enum ApiKind {
    /// Chat completions, streamed.
    OpenaiChat,
    /// Anthropic's Messages, streamed.
    Anthropic,
}

impl ApiKind {
    /// As written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::Anthropic => "anthropic",
        }
    }
}

/// `[models."NAME"]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Model")]
pub(crate) struct ModelConfig {
    /// What its tokens cost.
    pub(crate) price: Option<PriceConfig>,
    /// The most tokens of one answer.
    pub(crate) max_output: Option<u32>,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Price")]
pub(crate) struct PriceConfig {
    /// Read.
    pub(crate) input: f64,
    /// Written.
    pub(crate) output: f64,
    /// Read from the vendor's cache; as `input` when it is not said.
    pub(crate) cached_input: Option<f64>,
    /// Put into the vendor's cache; a quarter more than `input` when it is not said, as vendors do that charge it.
    pub(crate) cache_write: Option<f64>,
}

impl PriceConfig {
    /// As it is counted with; `None` when an amount is no price.
    pub(crate) fn counted(&self) -> Option<llm_worker::Price> {
        Some(llm_worker::Price {
            input: Cost::of_dollars(self.input)?,
            output: Cost::of_dollars(self.output)?,
            cached_input: Cost::of_dollars(self.cached_input.unwrap_or(self.input))?,
            cache_write: Cost::of_dollars(self.cache_write.unwrap_or(self.input * 1.25))?,
        })
    }
}

/// Where a key is. Never the key itself.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[schemars(rename = "Key")]
pub(crate) enum KeySource {
    /// In this variable.
    Env(String),
    /// In this file; the first line counts.
    File(PathBuf),
    /// Printed by this program and its arguments.
    Command(Vec<String>),
}

/// A key's place as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyTable {
    env: Option<String>,
    file: Option<PathBuf>,
    command: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for KeySource {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WrittenRule;
        impl<'de> Visitor<'de> for WrittenRule {
            type Value = KeySource;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(KEY_PLACES)
            }
            fn visit_str<E: de::Error>(self, _key: &str) -> Result<KeySource, E> {
                Err(E::custom(PLAIN_KEY))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KeySource, A::Error> {
                match KeyTable::deserialize(de::value::MapAccessDeserializer::new(map))? {
                    KeyTable { env: Some(name), file: None, command: None } => Ok(KeySource::Env(name)),
                    KeyTable { env: None, file: Some(path), command: None } => Ok(KeySource::File(path)),
                    KeyTable { env: None, file: None, command: Some(words) } => Ok(KeySource::Command(words)),
                    KeyTable { env: None, file: None, command: None } => Err(de::Error::custom(NO_SOURCE)),
                    KeyTable { .. } => Err(de::Error::custom(MORE_SOURCES)),
                }
            }
        }
        from.deserialize_any(WrittenRule)
    }
}

/// `[limits]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Limits")]
pub(crate) struct LimitsConfig {
    /// Model requests in one run.
    pub(crate) max_steps: Option<u32>,
    /// Calls at once.
    pub(crate) tool_concurrency: Option<usize>,
    /// Dollars in one run.
    pub(crate) max_cost_usd: Option<f64>,
}

/// `[permissions]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Permissions {
    /// `[[permissions.rules]]`.
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// Globs of files that may hold secrets, besides `.env*`, `*.pem` and the like: names at any depth, or, with a `/`, paths
    /// in the project. Reading them and naming them in a command is asked about; searches skip what they hold.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
}

/// `[features."ID"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Feature {
    /// Whether it is installed.
    pub(crate) enabled: Option<bool>,
    /// Whether nothing starts without it.
    pub(crate) required: Option<bool>,
    /// What it may do, in the place of what the defaults grant.
    pub(crate) grant: Option<GrantTable>,
    /// The feature's own keys; it refuses those it does not know.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(crate) settings: toml::Table,
}

/// `[sandbox]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sandbox {
    /// How far.
    pub(crate) mode: Option<Mode>,
}

/// `[state]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "State")]
pub(crate) struct StateConfig {
    /// Also on network and FUSE file systems, which may lose what they say they have flushed.
    pub(crate) any_file_system: Option<bool>,
}

/// As written in files and on the command line.
// From what lets commands do least to what lets them do most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Nothing is written.
    #[value(help = "Commands can write only their temporary and cache directories")]
    ReadOnly,
    /// The project is written.
    #[value(help = "Commands can write in the project, in directories of --add-write-dir and in temporary directories")]
    WorkspaceWrite,
    /// No confinement.
    #[value(help = "Commands run without a sandbox; each needs an allow rule")]
    Off,
}

impl From<Mode> for SandboxMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::ReadOnly => Self::ReadOnly,
            Mode::WorkspaceWrite => Self::WorkspaceWrite,
            Mode::Off => Self::Off,
        }
    }
}

impl Mode {
    /// As written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Off => "off",
        }
    }
}

/// A file that does not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParseProblem {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) help: String,
}

/// Reads a file's text.
pub(crate) fn parse(text: &str) -> Result<File, ParseProblem> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        let message = error.message().lines().next().unwrap_or_default();
        let (what, help) = explain(message, line, before.get(start..).unwrap_or_default());
        ParseProblem { line: before.matches('\n').count() + 1, what, help }
    })
}

#[cfg(test)]
mod tests;
