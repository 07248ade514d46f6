//! The configuration in force: built-in values, files, environment and flags, each value with where it comes from.

pub(crate) mod file;
mod lines;
mod switches;

pub(crate) use switches::{Granted, Switches};

use crate::cli::{RunArgs, Sandbox};
use crate::compose::model;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use file::{File, Key, Mode, Model, Provider, Waits};
use lines::Lines;
use pod::permission::{Layer, Rule};
use provider::BaseUrl;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The machine's file.
const SYSTEM_FILE: &str = "/etc/yoi/config.toml";

/// The largest configuration file that is read, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// The variables that are read.
const VARIABLES: [&str; 5] = ["YOI_MODEL", "YOI_MAX_STEPS", "YOI_MAX_COST", "YOI_TOOL_CONCURRENCY", "YOI_SANDBOX"];

/// The highest limit of a run's cost, in dollars: above it, somebody forgot a point.
const MAX_COST: f64 = 1e6;

/// How far a name may be from one of them and still be taken for a slip of the hand.
const TYPO: usize = 2;

/// What the children of a run carry.
const INHERITED: &str = "YOI_CALL";

/// Where a value comes from: `built-in`, a file, a variable or a flag.
pub(crate) type Source = String;

/// A value and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    /// In force.
    pub(crate) value: T,
    /// Because of this.
    pub(crate) source: Source,
}

impl<T> Sourced<T> {
    fn new(value: T, source: &str) -> Self {
        Self { value, source: source.to_owned() }
    }

    fn set(&mut self, value: Option<T>, source: &str) {
        if let Some(value) = value {
            *self = Self::new(value, source);
        }
    }
}

/// Everything that can be set.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The model, if one was chosen.
    pub(crate) model: Option<Sourced<String>>,
    /// Endpoints by name.
    pub(crate) providers: BTreeMap<String, Sourced<Provider>>,
    /// What is known of models, by their whole names.
    pub(crate) models: BTreeMap<String, Sourced<Model>>,
    /// Model requests in one run.
    pub(crate) max_steps: Sourced<u32>,
    /// Dollars in one run, if there is a limit.
    pub(crate) max_cost: Option<Sourced<f64>>,
    /// Calls at once.
    pub(crate) tool_concurrency: Sourced<usize>,
    /// Rules, a layer for each file that has some, outermost first.
    pub(crate) rules: Vec<Sourced<Vec<Rule>>>,
    /// Features by id.
    pub(crate) features: BTreeMap<String, Switches>,
    /// How the shell is confined.
    pub(crate) sandbox: Sourced<Mode>,
    /// Whether sessions may be on any file system.
    pub(crate) any_file_system: Sourced<bool>,
    /// Files that were looked for, and whether they are there.
    pub(crate) files: Vec<(PathBuf, bool)>,
    /// Variables that look like ours and are not.
    pub(crate) unknown: Vec<String>,
}

impl Config {
    /// Files and environment.
    pub(crate) fn load(env: &Env) -> Result<Self, Failure> {
        let mut config = Self {
            model: None,
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            max_steps: Sourced::new(500, "built-in"),
            max_cost: None,
            tool_concurrency: Sourced::new(8, "built-in"),
            rules: Vec::new(),
            features: BTreeMap::new(),
            sandbox: Sourced::new(Mode::WorkspaceWrite, "built-in"),
            any_file_system: Sourced::new(false, "built-in"),
            files: Vec::new(),
            unknown: Vec::new(),
        };
        for path in Self::paths(env)? {
            let text = read(&path)?;
            config.files.push((path.clone(), text.is_some()));
            if let Some(text) = text {
                config.layer(parse(&path, &text)?, &env.shown(&path), &Lines::of(&text));
            }
        }
        config.environment(env)?;
        config.check()?;
        Ok(config)
    }

    /// The files that are read, outermost first.
    pub(crate) fn paths(env: &Env) -> Result<Vec<PathBuf>, Failure> {
        Ok(vec![PathBuf::from(SYSTEM_FILE), env.config_dir()?.join("config.toml")])
    }

    /// The command line's part.
    pub(crate) fn with_flags(mut self, args: &RunArgs) -> Self {
        if let Some(model) = &args.model {
            self.model = Some(Sourced::new(model.clone(), "-m"));
        }
        self.max_steps.set(args.max_steps, "--max-steps");
        if let Some(dollars) = args.max_cost {
            self.max_cost = Some(Sourced::new(dollars, "--max-cost"));
        }
        let mode = args.sandbox.map(|sandbox| match sandbox {
            Sandbox::ReadOnly => Mode::ReadOnly,
            Sandbox::WorkspaceWrite => Mode::WorkspaceWrite,
            Sandbox::Off => Mode::Off,
        });
        self.sandbox.set(mode, "--sandbox");
        self.sandbox.set(args.read_only.then_some(Mode::ReadOnly), "--read-only");
        self
    }

    /// One line about variables that nothing reads.
    pub(crate) fn warning(&self) -> Option<String> {
        let names = (!self.unknown.is_empty()).then(|| self.unknown.join(", "))?;
        Some(format!("warning: not read: {names}; the variables are {}", VARIABLES.join(", ")))
    }

    /// BLAKE3 of everything in force, hex. Keys stand in it by name.
    pub(crate) fn digest(&self) -> String {
        session_store::Digest::of(format!("{self:?}").as_bytes()).to_string()
    }

    /// The permission rules as the policy takes them.
    pub(crate) fn layers(&self) -> Result<Vec<Layer>, Failure> {
        let layer = |rules: &Sourced<Vec<Rule>>| {
            Layer::new(rules.source.clone(), rules.value.clone())
                .map_err(|error| Failure::new(Exit::Config, error.to_string()).help("correct that rule"))
        };
        self.rules.iter().map(layer).collect()
    }

    fn layer(&mut self, file: File, source: &str, lines: &Lines) {
        if let Some(model) = file.model {
            self.model = Some(Sourced::new(model, source));
        }
        let providers = file.providers.into_iter();
        self.providers.extend(providers.map(|(name, provider)| (name, Sourced::new(provider, source))));
        self.models.extend(file.models.into_iter().map(|(name, model)| (name, Sourced::new(model, source))));
        self.max_steps.set(file.limits.max_steps, source);
        if let Some(dollars) = file.limits.max_cost_usd {
            self.max_cost = Some(Sourced::new(dollars, source));
        }
        self.tool_concurrency.set(file.limits.tool_concurrency, source);
        if !file.permissions.rules.is_empty() {
            self.rules.push(Sourced::new(file.permissions.rules, source));
        }
        for (id, feature) in file.features {
            let place = |below: &[&str]| {
                let path: Vec<&str> = ["features", &id].into_iter().chain(below.iter().copied()).collect();
                lines.at(&path).map_or_else(|| source.to_owned(), |line| format!("{source}:{line}"))
            };
            self.features.entry(id.clone()).or_insert_with(Switches::none).layer(feature, place);
        }
        self.sandbox.set(file.sandbox.mode, source);
        self.any_file_system.set(file.state.any_file_system, source);
    }

    fn environment(&mut self, env: &Env) -> Result<(), Failure> {
        for (name, value) in env.vars() {
            let name = name.to_string_lossy();
            if !variable(&name, value)? && !self.names_a_key(&name) {
                self.unknown.push(name.into_owned());
            }
        }
        if let Some(model) = env.text("YOI_MODEL") {
            self.model = Some(Sourced::new(model.to_owned(), "YOI_MODEL"));
        }
        if let Some(steps) = env.text("YOI_MAX_STEPS") {
            let steps = steps.parse().map_err(|_| bad_variable("YOI_MAX_STEPS", steps, "a number from 1"))?;
            self.max_steps = Sourced::new(steps, "YOI_MAX_STEPS");
        }
        if let Some(cost) = env.text("YOI_MAX_COST") {
            let dollars = cost.parse().map_err(|_| bad_variable("YOI_MAX_COST", cost, "dollars, as in 0.50"))?;
            self.max_cost = Some(Sourced::new(dollars, "YOI_MAX_COST"));
        }
        if let Some(calls) = env.text("YOI_TOOL_CONCURRENCY") {
            let calls = calls.parse().map_err(|_| bad_variable("YOI_TOOL_CONCURRENCY", calls, "a number from 1"))?;
            self.tool_concurrency = Sourced::new(calls, "YOI_TOOL_CONCURRENCY");
        }
        if let Some(mode) = env.text("YOI_SANDBOX") {
            let known = [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::Off];
            let mode = known
                .into_iter()
                .find(|known| known.text() == mode)
                .ok_or_else(|| bad_variable("YOI_SANDBOX", mode, "read-only, workspace-write or off"))?;
            self.sandbox = Sourced::new(mode, "YOI_SANDBOX");
        }
        Ok(())
    }

    fn names_a_key(&self, variable: &str) -> bool {
        let key =
            |provider: &Sourced<Provider>| matches!(&provider.value.key, Some(Key::Env(name)) if name == variable);
        self.providers.values().any(key)
    }

    fn check(&self) -> Result<(), Failure> {
        if let Some(Sourced { value, source }) = &self.model {
            model::named(value, self)
                .map_err(|failure| Failure { message: format!("{source}: `model`: {}", failure.message), ..failure })?;
        }
        let range = |name: &str, ok: bool, source: &str, range: &str| {
            if ok { Ok(()) } else { Err(Failure::new(Exit::Config, format!("{source}: `{name}` must be {range}"))) }
        };
        range("max_steps", self.max_steps.value >= 1, &self.max_steps.source, "at least 1")?;
        if let Some(Sourced { value, source }) = &self.max_cost {
            range(
                "max_cost_usd",
                *value > 0.0 && *value <= MAX_COST,
                source,
                "more than 0 dollars, a million at most",
            )?;
        }
        for (name, Sourced { value, source }) in &self.models {
            let at = format!("models.\"{name}\"");
            let remote = !(name == model::OFFLINE || name.starts_with(model::SCRIPTED));
            model::named(name, self)
                .map_err(|failure| Failure { message: format!("{source}: {at}: {}", failure.message), ..failure })?;
            let price = value.price.is_none_or(|price| price.counted().is_some());
            range(&format!("{at}.price"), price, source, "dollars for a million tokens, from 0")?;
            range(&format!("{at}.max_output"), value.max_output != Some(0), source, "at least 1")?;
            let fits = remote || value.max_output.is_none();
            range(&format!("{at}.max_output"), fits, source, "left out: this model has no such limit")?;
        }
        for (name, Sourced { value, source }) in &self.providers {
            let at = format!("providers.{name}");
            BaseUrl::parse(&value.base_url).map_err(|e| {
                Failure::new(Exit::Config, format!("{source}: {at}.base_url: {e}"))
                    .help("write it as in http://127.0.0.1:8080/v1")
            })?;
            range(&format!("{at}.attempts"), value.attempts.is_none_or(|n| (1..=20).contains(&n)), source, "1 to 20")?;
            let Waits { connect_s, first_byte_s, between_bytes_s } = value.timeouts;
            let mut waits = [connect_s, first_byte_s, between_bytes_s].into_iter().flatten();
            let ok = waits.all(|seconds| (0.001..=86_400.0).contains(&seconds));
            range(&format!("{at}.timeouts"), ok, source, "0.001 to 86400 seconds each")?;
        }
        let threads = 1..=pod::control::callbacks::MAX_THREADS / 2;
        let calls = &self.tool_concurrency;
        range("tool_concurrency", threads.contains(&calls.value), &calls.source, "1 to 32")
    }
}

/// Refuses a variable that is ours and not text, or that was probably meant to be ours. `false` for another one that
/// has our prefix.
fn variable(name: &str, value: &OsStr) -> Result<bool, Failure> {
    if VARIABLES.contains(&name) {
        return match value.to_str() {
            Some(_) => Ok(true),
            None => Err(Failure::new(Exit::Config, format!("{name} is not UTF-8"))),
        };
    }
    match VARIABLES.iter().find(|known| strsim::damerau_levenshtein(known, name) <= TYPO) {
        Some(meant) => {
            Err(Failure::new(Exit::Config, format!("there is no variable {name}"))
                .help(format!("did you mean {meant}?")))
        }
        None => Ok(name == INHERITED || !name.starts_with("YOI_")),
    }
}

fn bad_variable(name: &str, value: &str, expected: &str) -> Failure {
    Failure::new(Exit::Config, format!("{name}={value}: expected {expected}"))
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    let fail = |error: &io::Error| Failure::new(Exit::Config, format!("{}: {error}", path.display()));
    match fs::metadata(path) {
        Ok(meta) if meta.len() > MAX_FILE => {
            Err(Failure::new(Exit::Config, format!("{}: larger than 1 MiB", path.display())))
        }
        Ok(_) => fs::read_to_string(path).map(Some).map_err(|e| fail(&e)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(fail(&error)),
    }
}

fn parse(path: &Path, text: &str) -> Result<File, Failure> {
    file::parse(text).map_err(|problem| {
        let message = format!("{}:{}: {}", path.display(), problem.line, problem.what);
        let failure = Failure::new(Exit::Config, message);
        match problem.help {
            Some(help) => failure.help(help),
            None => failure.help("`yoi config init` writes an example"),
        }
    })
}
