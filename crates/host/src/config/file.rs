//! One configuration file, as it is written. Every key is optional; an unknown one is an error.

use super::parser_text::{KEY_PLACES, MORE_SOURCES, NO_SOURCE, PLAIN_KEY, explain};
use crate::limits::LimitsConfig;
use authority::{Network, SandboxMode};
use llm_worker::{Cost, Effort};
use pod::feature::GrantTable;
use pod::permission::Rule;
use schemars::JsonSchema;
use serde::de::{self, DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A configuration file of yoi. Every key is optional.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The default model: `PROVIDER/MODEL`, `offline` or `scripted:FILE`.
    pub model: Option<String>,
    /// Providers by name.
    #[serde(default)]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Prices and limits of models, by their full names.
    #[serde(default)]
    pub models: BTreeMap<String, ModelConfig>,
    /// Secrets by name, for features that are granted them.
    #[serde(default)]
    pub secrets: BTreeMap<String, KeySource>,
    /// Limits of a run.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// What leaves the context of a model, and when.
    #[serde(default)]
    pub context: ContextConfig,
    /// What makes the vectors by which documents are also found; only in the files of the machine and of the user.
    pub embeddings: Option<EmbeddingsConfig>,
    /// Which calls run, need approval or are refused.
    #[serde(default)]
    pub permissions: Permissions,
    /// Features by id.
    #[serde(default)]
    pub features: BTreeMap<String, Feature>,
    /// Profiles by name: features that a start with `--profile NAME` attaches.
    #[serde(default)]
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// Plugins by name.
    #[serde(default)]
    pub plugins: PluginsConfig,
    /// Tools of MCP servers.
    #[serde(default)]
    pub mcp: McpConfig,
    /// The sandbox of commands.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The storage of sessions.
    #[serde(default)]
    pub state: StateConfig,
    /// The screen of `yoi attach`.
    #[serde(default)]
    pub terminal: TerminalConfig,
    /// A file of certificates in PEM form that providers' certificates may be signed by, besides those of the system: absolute, with
    /// `~/`, or below the directory of this file. Only the files of the machine and of the user may have it.
    pub ca_file: Option<PathBuf>,
    /// Whether instructions are read: the user's own `AGENTS.md`, and `AGENTS.md` or `CLAUDE.md` of the project.
    pub instructions: Option<bool>,
}

/// `[providers.NAME]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Provider")]
pub struct ProviderConfig {
    /// The API of the provider.
    pub api: ApiKind,
    /// The address of the API, such as `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// The source of the API key; without it, no key is sent.
    pub key: Option<KeySource>,
    /// Time limits of a request.
    #[serde(default)]
    pub timeouts: TimeoutsConfig,
    /// The maximum number of attempts for a request, the first one included.
    pub attempts: Option<u32>,
}

/// Time limits in seconds; a key that is not set keeps its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Waits")]
pub struct TimeoutsConfig {
    /// For the name lookup, the connection and the TLS handshake.
    pub connect_s: Option<f64>,
    /// From the request to the first byte of the answer.
    pub first_byte_s: Option<f64>,
    /// Between two parts of the answer.
    pub between_bytes_s: Option<f64>,
}

/// An API that this build supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(rename = "Api")]
pub enum ApiKind {
    /// OpenAI Chat Completions, streamed.
    OpenaiChat,
    /// OpenAI Responses, streamed.
    OpenaiResponses,
    /// Anthropic Messages, streamed.
    Anthropic,
    /// Gemini's own API, streamed.
    Gemini,
}

impl ApiKind {
    /// As written.
    pub fn text(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// `[models."NAME"]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Model")]
pub struct ModelConfig {
    /// The price of its tokens.
    pub price: Option<PriceConfig>,
    /// The maximum number of tokens in one answer.
    pub max_output: Option<u32>,
    /// How much it thinks; `yoi models` shows which efforts a model has.
    pub effort: Option<Effort>,
    /// Whether the text of its thinking is asked for, where its vendor sends it on request only.
    pub thinking: Option<bool>,
    /// Whether it reads images, where the list of models does not say so, or is wrong.
    pub images: Option<bool>,
    /// The context window: the maximum number of tokens in a request and its answer together.
    pub context: Option<u64>,
    /// Time limits of a request to this model; a key that is not set is the provider's.
    pub timeouts: Option<TimeoutsConfig>,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Price")]
pub struct PriceConfig {
    /// The price of input tokens.
    pub input: f64,
    /// The price of output tokens.
    pub output: f64,
    /// Of input tokens that are read from the provider's cache; default: `input`.
    pub cached_input: Option<f64>,
    /// Of input tokens that are written to the provider's cache; default: 1.25 times `input`.
    pub cache_write: Option<f64>,
}

impl PriceConfig {
    /// As it is counted with; `None` when an amount is no price.
    pub fn counted(&self) -> Option<llm_worker::Price> {
        Some(llm_worker::Price {
            input: Cost::of_dollars(self.input)?,
            output: Cost::of_dollars(self.output)?,
            cached_input: Cost::of_dollars(self.cached_input.unwrap_or(self.input))?,
            cache_write: Cost::of_dollars(self.cache_write.unwrap_or(self.input * 1.25))?,
        })
    }
}

/// The source of an API key or of a secret; never the key itself.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[schemars(rename = "Key")]
pub enum KeySource {
    /// The name of an environment variable.
    Env(String),
    /// A file; its first line is the key.
    File(PathBuf),
    /// A program with its arguments, which prints the key.
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
                    KeyTable {
                        env: Some(name),
                        file: None,
                        command: None,
                    } => Ok(KeySource::Env(name)),
                    KeyTable {
                        env: None,
                        file: Some(path),
                        command: None,
                    } => Ok(KeySource::File(path)),
                    KeyTable {
                        env: None,
                        file: None,
                        command: Some(words),
                    } => Ok(KeySource::Command(words)),
                    KeyTable {
                        env: None,
                        file: None,
                        command: None,
                    } => Err(de::Error::custom(NO_SOURCE)),
                    KeyTable { .. } => Err(de::Error::custom(MORE_SOURCES)),
                }
            }
        }
        from.deserialize_any(WrittenRule)
    }
}

/// `[context]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Context")]
pub struct ContextConfig {
    /// The newest part of the conversation, in tokens, whose results stay whole; at most a quarter of the window.
    pub protect_tokens: Option<u64>,
    /// How much of the model's window a request may need before old results leave it, in percent.
    pub prune_at: Option<u64>,
    /// How much of the model's window a request may need before old steps leave it, in percent; words stay.
    pub compact_at: Option<u64>,
}

/// `[mcp]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Mcp")]
pub struct McpConfig {
    /// How much of the model's window the definitions of all tools of MCP servers may take, in percent; where they take more,
    /// requests leave them out, and the model searches for them. 0 leaves all out, 100 none.
    pub defer: Option<u64>,
    /// Tools that requests define all the same.
    pub always: Option<Vec<String>>,
}

/// `[permissions]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// `[[permissions.rules]]`.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Globs of more files that may hold secrets, besides `.env*`, `*.pem` and similar: names at any depth, or with a `/` paths
    /// in the project. Reading such a file, or naming it in a command, needs approval; searches skip its content.
    #[serde(default)]
    pub secrets: Vec<String>,
}

/// `[features."ID"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Feature {
    /// Whether the feature is enabled.
    pub enabled: Option<bool>,
    /// Whether a start fails without the feature.
    pub required: Option<bool>,
    /// What the feature may do, instead of the defaults.
    pub grant: Option<GrantTable>,
    /// The feature's own keys; it refuses keys that it does not know.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

/// `[profiles.NAME]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Profile")]
pub struct ProfileConfig {
    /// Features by id; one that is named is enabled, unless `enabled = false`.
    #[serde(default)]
    pub features: BTreeMap<String, Feature>,
}

/// `[plugins]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename = "Plugins")]
pub struct PluginsConfig {
    /// Whether a start fails when a plugin is found and not installed. So no plugin is called `strict`.
    pub strict: Option<bool>,
    /// Plugins by name.
    #[serde(flatten)]
    pub by_name: BTreeMap<String, PluginConfig>,
}

/// `[plugins.NAME]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Plugin")]
pub struct PluginConfig {
    /// The directory of the plugin: absolute, with `~/`, or below the directory of this file.
    pub path: Option<PathBuf>,
    /// Other names for its tools: `rename = { read = "acme_read" }`.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
}

/// `[sandbox]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What commands may write.
    pub mode: Option<Mode>,
    /// Which network commands use.
    pub network: Option<NetworkMode>,
    /// The hosts that commands reach with `network = "hosts"`: names such as `crates.io` or `example.org:8443`, and presets
    /// such as `preset:rust`.
    pub hosts: Option<Vec<String>>,
}

/// The network of commands.
// From what lets commands do least to what lets them do most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// None.
    None,
    /// One that all commands of a pod share, with nothing else in it.
    Loopback,
    /// The same, with a proxy to the hosts of `hosts`.
    Hosts,
    /// That of this machine.
    On,
}

impl NetworkMode {
    /// As written.
    pub fn text(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loopback => "loopback",
            Self::Hosts => "hosts",
            Self::On => "on",
        }
    }
}

impl From<NetworkMode> for Network {
    fn from(mode: NetworkMode) -> Self {
        match mode {
            NetworkMode::None => Self::None,
            NetworkMode::Loopback | NetworkMode::Hosts => Self::Loopback,
            NetworkMode::On => Self::On,
        }
    }
}

/// `[state]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "State")]
pub struct StateConfig {
    /// Whether sessions may be stored on network and FUSE file systems, where a crash can lose records.
    pub any_file_system: Option<bool>,
}

/// `[embeddings]`. Only the files of the machine and of the user may have it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[serde(rename = "Embeddings")]
pub enum EmbeddingsConfig {
    /// None: documents are found by their words.
    None,
    /// A static model, read from files.
    Static {
        /// The directory with `model.safetensors` and `tokenizer.json`.
        dir: PathBuf,
    },
    /// A server with the API of OpenAI. The texts of the index are sent to it.
    Openai {
        /// The address of the API, such as `https://api.openai.com/v1`.
        base_url: String,
        model: String,
        /// The name of a secret below `[secrets]`.
        key: Option<String>,
    },
    /// A server of Ollama. The texts of the index are sent to it.
    Ollama {
        /// The address of the server, such as `http://127.0.0.1:11434`.
        base_url: String,
        model: String,
    },
}

impl EmbeddingsConfig {
    /// The kind, as written.
    #[must_use]
    pub fn text(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Static { .. } => "static",
            Self::Openai { .. } => "openai",
            Self::Ollama { .. } => "ollama",
        }
    }
}

/// `[terminal]`. Only the files of the machine and of the user may have it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Terminal")]
pub struct TerminalConfig {
    /// Whether inputs are written with the keys of `vi`.
    pub vi_keys: Option<bool>,
}

/// A sandbox mode, as in files and on the command line.
// From what lets commands do least to what lets them do most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Commands can write only their temporary and cache directories.
    ReadOnly,
    /// Commands can write in the project, in added directories and in temporary directories.
    WorkspaceWrite,
    /// Commands run without a sandbox; each needs a rule that allows it.
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
    /// From what lets commands do least to what lets them do most.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::WorkspaceWrite, Self::Off];

    /// The mode that is written so.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.text() == text)
    }

    /// As written.
    pub fn text(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Off => "off",
        }
    }
}

/// A file that does not read.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseProblem {
    /// From 1.
    pub line: usize,
    pub what: String,
    pub help: String,
}

/// Reads a file's text.
pub fn parse(text: &str) -> Result<File, ParseProblem> {
    parse_as(text)
}

/// Reads the text of a file of this form.
pub fn parse_as<T: DeserializeOwned>(text: &str) -> Result<T, ParseProblem> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = text
            .get(start..)
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default();
        let message = error.message().lines().next().unwrap_or_default();
        let (what, help) = explain(message, line, before.get(start..).unwrap_or_default());
        ParseProblem {
            line: before.matches('\n').count() + 1,
            what,
            help,
        }
    })
}

#[cfg(test)]
mod tests;
