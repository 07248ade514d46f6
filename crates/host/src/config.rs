//! The configuration in force: built-in values, files and environment, each value with its source. Knows no flag.
//!
//! Files go from the machine's over the user's to the project's. The project's can only narrow what the others give
//! (`project`); the rest of it is pending until the user accepts it (`grants`).

mod attach;
mod check;
mod feature_switch;
pub mod file;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod grants;
pub mod hosts;
mod layer;
mod limits;
mod lines;
mod next_start;
mod packages;
pub mod parser_text;
pub mod pending;
pub mod project;
mod read;
pub mod rules;
mod source;
mod switches;
mod user_rules;
pub mod variables;

pub use attach::{AttachedFeature, Attaching, Detacher};
pub use feature_switch::SwitchChange;
pub use limits::LimitSettings;
pub use pending::PendingGrant;
pub use rules::{FileRules, WrittenRule};
pub use source::{Source, Sourced, set};
pub use switches::{Granted, Switches};
pub use user_rules::{Addition, UserRules, as_toml};
pub use variables::INHERITED;

use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::plain_file::Links;
use crate::plugins::{OnDemand, Places};
use crate::project::Project;
use crate::skills::{self, FoundSkills};
use file::{
    EmbeddingsConfig, KeySource, Mode, NetworkMode, PriceConfig, ProviderConfig, TimeoutsConfig,
};
use grants::Grants;
use llm_worker::Effort;
use pod::session::view::ContextPolicy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SYSTEM_FILE: &str = "/etc/yoi/config.toml";

/// In the user's configuration directory.
const USER_FILE: &str = "config.toml";

/// `[providers.NAME]` of the innermost file that has it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub value: ProviderConfig,
    pub source: Source,
    pub keys: BTreeMap<&'static str, Source>,
}

impl Endpoint {
    /// Where a key stands, or else the whole.
    pub fn place(&self, key: &str) -> &Source {
        self.keys.get(key).unwrap_or(&self.source)
    }
}

/// What the files say of one model.
#[derive(Clone, Debug, Default)]
pub struct ModelSettings {
    pub price: Option<Sourced<PriceConfig>>,
    pub max_output: Option<Sourced<u32>>,
    pub effort: Option<Sourced<Effort>>,
    pub thinking: Option<Sourced<bool>>,
    pub images: Option<Sourced<bool>>,
    pub context: Option<Sourced<u64>>,
    pub timeouts: Option<Sourced<TimeoutsConfig>>,
}

/// The configuration that applies: all layers, and where each value comes from.
#[derive(Clone, Debug)]
pub struct Config {
    pub project: Project,
    pub model: Option<Sourced<String>>,
    /// Of the model of this start, over what its table has.
    pub effort: Option<Sourced<Effort>>,
    pub providers: BTreeMap<String, Endpoint>,
    /// What is known of models, by their whole names.
    pub models: BTreeMap<String, ModelSettings>,
    /// Where secrets are that features may be granted, by name.
    pub named_secrets: BTreeMap<String, Sourced<KeySource>>,
    /// Of one run.
    pub limits: LimitSettings,
    /// Of all runs of a pod together.
    pub pod_limits: LimitSettings,
    pub tool_concurrency: Sourced<usize>,
    /// Tokens of the newest items that stay whole.
    pub protect_tokens: Sourced<u64>,
    /// Percent of the window.
    pub prune_at: Sourced<u64>,
    /// Percent of the window.
    pub compact_at: Sourced<u64>,
    /// Percent of the window that tools of MCP servers may take before requests leave them out.
    pub mcp_defer: Sourced<u64>,
    /// Those that no request leaves out.
    pub mcp_always: Sourced<Vec<String>>,
    /// Rules, a layer for each file that has some, outermost first.
    pub rules: Vec<FileRules>,
    /// Names of files that may hold secrets, besides the built-in ones; those of all files add up.
    pub secrets: Vec<Sourced<String>>,
    pub features: BTreeMap<String, Switches>,
    /// Features by id, by the name of the profile that attaches them.
    pub profiles: BTreeMap<String, BTreeMap<String, Switches>>,
    /// Where plugins are looked for.
    pub plugin_places: Places,
    plugins: OnDemand,
    servers: crate::mcp::ServersOnDemand,
    skills: skills::SkillsOnDemand,
    /// Whether every plugin that is found must be installed.
    pub strict_plugins: Sourced<bool>,
    /// The only skills of this start.
    only_skills: Option<Sourced<Vec<String>>>,
    /// The only tools of this start.
    pub only_tools: Option<Sourced<Vec<String>>>,
    pub sandbox: Sourced<Mode>,
    pub network: Sourced<NetworkMode>,
    pub hosts: Sourced<Vec<String>>,
    pub any_file_system: Sourced<bool>,
    pub vi_keys: Sourced<bool>,
    /// Certificates besides the system's, for providers.
    pub ca_file: Option<Sourced<PathBuf>>,
    /// What makes the vectors of documents.
    pub embeddings: Option<Sourced<EmbeddingsConfig>>,
    pub instructions: Sourced<bool>,
    /// Files that were looked for, and whether they are there.
    pub files: Vec<(PathBuf, bool)>,
    /// What project files ask for and nobody granted.
    pub pending: Vec<PendingGrant>,
    /// Why all grants are ignored although something was.
    pub grants_unread: Option<Failure>,
    /// Variables that look like ours and are not.
    pub unknown: Vec<String>,
}

impl Config {
    /// Files and environment.
    pub fn load(env: &Env) -> Result<Self, Failure> {
        Self::load_for(Project::around(env), env)
    }

    /// The same for a project that is known.
    pub fn load_for(project: Project, env: &Env) -> Result<Self, Failure> {
        let mut config = Self::built_in(project);
        for path in Self::paths(env)? {
            let text = read::read(&path, Links::Followed, env)?;
            let base = path.parent().map(Path::to_path_buf);
            config.files.push((path, text.is_some()));
            if let Some(mut text) = text {
                text.file.plugins.resolve(base.as_deref(), env)?;
                if let Some(path) = &mut text.file.ca_file {
                    env.resolve(path, base.as_deref())?;
                }
                if let Some(EmbeddingsConfig::Static { dir }) = &mut text.file.embeddings {
                    env.resolve(dir, base.as_deref())?;
                }
                config.layer(std::mem::take(&mut text.file), &|key| text.place(key));
            }
        }
        let mut grants = None;
        let Project { above, files, .. } = &config.project;
        let found: Vec<_> = above
            .iter()
            .map(|path| (path.clone(), true))
            .chain(files.iter().map(|path| (path.clone(), false)))
            .collect();
        for (path, is_above) in found {
            let text = read::read(&path, Links::Refused, env)?;
            let base = path.parent().map(Path::to_path_buf);
            config.files.push((path, text.is_some()));
            let Some(mut text) = text else { continue };
            own_alone(&text)?;
            text.file.plugins.resolve(base.as_deref(), env)?;
            if is_above {
                config.narrow_from_above(text);
                continue;
            }
            if grants.is_none() {
                let read = Grants::load(env, &config.project.root);
                grants = Some(read.unwrap_or_else(|failure| {
                    config.grants_unread = Some(failure);
                    Grants::none()
                }));
            }
            config.narrow(text, grants.as_ref().unwrap_or(&Grants::none()));
        }
        config.environment(env)?;
        config.check()?;
        config.place_plugins(env)?;
        Ok(config)
    }

    /// Whether the person writes with the keys of `vi`: the value of their own files alone, which no project has a part in.
    pub fn vi_keys(env: &Env) -> Result<bool, Failure> {
        let mut vi_keys = false;
        for path in Self::paths(env)? {
            let text = read::read(&path, Links::Followed, env)?;
            vi_keys = text
                .and_then(|text| text.file.terminal.vi_keys)
                .unwrap_or(vi_keys);
        }
        Ok(vi_keys)
    }

    /// The files that are read wherever one stands, outermost first.
    pub fn paths(env: &Env) -> Result<Vec<PathBuf>, Failure> {
        Ok(vec![
            PathBuf::from(SYSTEM_FILE),
            env.config_dir()?.join(USER_FILE),
        ])
    }

    /// The skills of all places. Looks for them when it is first asked.
    pub fn skills(&self, env: &Env) -> &FoundSkills {
        let is_read_only =
            self.project.too_wide.is_some() || self.sandbox.value == file::Mode::ReadOnly;
        let sought = skills::Sought {
            project: &self.project,
            plugins: self.plugins(env),
            secrets: self.secret_names().ok(),
            is_read_only,
            only: self.only_skills.as_ref().map(|only| only.value.as_slice()),
        };
        self.skills.get(&sought, env)
    }

    /// When old results leave the context.
    pub fn context_policy(&self) -> ContextPolicy {
        ContextPolicy {
            protect_tokens: self.protect_tokens.value,
            prune_at: self.prune_at.value,
            compact_at: self.compact_at.value,
        }
    }

    /// BLAKE3 of everything in force, hex. Keys stand in it by name.
    pub fn digest(&self) -> String {
        session_store::Digest::of(format!("{self:?}").as_bytes()).to_string()
    }

    fn built_in(project: Project) -> Self {
        Self {
            project,
            model: None,
            effort: None,
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            named_secrets: BTreeMap::new(),
            limits: LimitSettings::built_in(),
            pod_limits: LimitSettings::default(),
            tool_concurrency: Sourced::built_in(8),
            protect_tokens: Sourced::built_in(ContextPolicy::default().protect_tokens),
            prune_at: Sourced::built_in(ContextPolicy::default().prune_at),
            compact_at: Sourced::built_in(ContextPolicy::default().compact_at),
            mcp_defer: Sourced::built_in(5),
            mcp_always: Sourced::built_in(Vec::new()),
            rules: Vec::new(),
            secrets: Vec::new(),
            features: BTreeMap::new(),
            profiles: BTreeMap::new(),
            plugin_places: Places::default(),
            plugins: OnDemand::default(),
            servers: crate::mcp::ServersOnDemand::default(),
            skills: skills::SkillsOnDemand::default(),
            strict_plugins: Sourced::built_in(false),
            only_skills: None,
            only_tools: None,
            sandbox: Sourced::built_in(Mode::WorkspaceWrite),
            network: Sourced::built_in(NetworkMode::Loopback),
            hosts: Sourced::built_in(Vec::new()),
            any_file_system: Sourced::built_in(false),
            vi_keys: Sourced::built_in(false),
            ca_file: None,
            embeddings: None,
            instructions: Sourced::built_in(true),
            files: Vec::new(),
            pending: Vec::new(),
            grants_unread: None,
            unknown: Vec::new(),
        }
    }
}

/// Refuses a project's file that has what is its reader's alone.
fn own_alone(text: &read::Text) -> Result<(), Failure> {
    let key: &[&str] = match &text.file {
        file if file.terminal.vi_keys.is_some() => &["terminal", "vi_keys"],
        // Whom providers are believed to be.
        file if file.ca_file.is_some() => &["ca_file"],
        // Where texts are sent.
        file if file.embeddings.is_some() => &["embeddings"],
        _ => return Ok(()),
    };
    let place = text.place(key);
    let what = format!("{place}: a project cannot set `{}`", key.join("."));
    Err(Failure::new(Exit::Config, what).help(Help::OwnConfigFile))
}
