//! The options that make a pod: those of a command line over those of its last start. Opens nothing.

use crate::agent::Agent;
use crate::allow::{self, AllowRule};
use crate::attachment::{self, Attachment, attachment};
use crate::cli::{AttachFlags, PodFlags};
use crate::config::file::Mode;
use crate::config::{Attached, Attaching, Config, Detacher, FileRules, Sourced, WrittenRule, set};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use clap::ValueEnum;
use pod::record::{HostStarted, Launch};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where an option of the last start is said to stand.
const EARLIER: &str = "the pod's last start";

/// Options of one origin. What is absent is left to the configuration.
#[derive(Clone, Debug, Default)]
struct Options {
    model: Option<String>,
    sandbox: Option<Mode>,
    add_dirs: Vec<PathBuf>,
    add_write_dirs: Vec<PathBuf>,
    allow: Vec<AllowRule>,
    max_steps: Option<u32>,
    max_cost: Option<f64>,
    max_tokens: Option<u64>,
    max_wall: Option<u64>,
    instructions: Option<bool>,
    with: Vec<Attachment>,
    without: Vec<String>,
    profile: Option<String>,
    plugin_dirs: Vec<String>,
    strict_plugins: Option<bool>,
}

/// The same on its way to another process, and in the journal.
#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    launch: Launch,
    add_dirs: Vec<PathBuf>,
    add_write_dirs: Vec<PathBuf>,
}

/// The options of a start, on their way to the process that hosts the pod.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchMessage {
    flags: Wire,
    earlier: Wire,
    adopt: bool,
}

/// The options of a start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaunchOptions {
    flags: Options,
    /// Of the pod's last start, where the flags have no value of their own.
    earlier: Options,
    /// Of one run.
    agent: Option<Arc<Agent>>,
    /// Whether the pod goes on although a gate or a required feature changed.
    adopt: bool,
}

impl LaunchOptions {
    /// What a command line says.
    pub(crate) fn new(flags: &PodFlags) -> Self {
        let PodFlags {
            model,
            sandbox,
            read_only,
            add_dir,
            add_write_dir,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            no_instructions,
            plugin_dir,
            strict_plugins,
            attached,
            adopt,
        } = flags;
        let flags = Options {
            model: model.clone(),
            sandbox: sandbox.or(read_only.then_some(Mode::ReadOnly)),
            add_dirs: add_dir.clone(),
            add_write_dirs: add_write_dir.clone(),
            allow: allow.clone(),
            max_steps: *max_steps,
            max_cost: *max_cost,
            max_tokens: *max_tokens,
            max_wall: *max_wall,
            instructions: no_instructions.then_some(false),
            plugin_dirs: plugin_dir.clone(),
            strict_plugins: strict_plugins.then_some(true),
            ..Options::attaching(attached)
        };
        Self { flags, adopt: *adopt, ..Self::default() }
    }

    /// What a command line says about features alone.
    pub(crate) fn attaching(attached: &AttachFlags) -> Self {
        Self { flags: Options::attaching(attached), ..Self::default() }
    }

    /// The same for a run of this agent.
    pub(crate) fn with_agent(self, agent: Option<Agent>) -> Self {
        Self { agent: agent.map(Arc::new), ..self }
    }

    /// The agent of this run.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        self.agent.as_deref()
    }

    /// Whether the person accepts what changed since the pod's last start.
    pub(crate) fn adopts(&self) -> bool {
        self.adopt
    }

    /// The same over what a pod was started with before.
    ///
    /// # Errors
    /// A recorded option that this version does not know.
    pub(crate) fn after(self, started: &HostStarted) -> Result<Self, Failure> {
        let HostStarted { add_dirs, add_write_dirs, launch, .. } = started.clone();
        let dirs = |dirs: Vec<String>| dirs.into_iter().map(PathBuf::from).collect();
        let (add_dirs, add_write_dirs) = (dirs(add_dirs), dirs(add_write_dirs));
        let launch = launch.unwrap_or_default();
        let wire = if launch.run {
            let launch = Launch { model: launch.model, ..Launch::default() };
            Wire { launch, add_dirs: Vec::new(), add_write_dirs: Vec::new() }
        } else {
            Wire { launch, add_dirs, add_write_dirs }
        };
        Ok(Self { earlier: Options::recorded(wire)?.without(&self.flags), ..self })
    }

    /// For the process that hosts the pod.
    pub(crate) fn message(&self) -> LaunchMessage {
        LaunchMessage { flags: self.flags.wire(), earlier: self.earlier.wire(), adopt: self.adopt }
    }

    /// From the process that starts the pod.
    ///
    /// # Errors
    /// As [`Self::after`].
    pub(crate) fn of_message(LaunchMessage { flags, earlier, adopt }: LaunchMessage) -> Result<Self, Failure> {
        let (flags, earlier) = (Options::recorded(flags)?, Options::recorded(earlier)?);
        Ok(Self { flags, earlier, agent: None, adopt })
    }

    /// The flags of this command line that make a pod.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let Options {
            model,
            sandbox,
            add_dirs,
            add_write_dirs,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            instructions,
            with,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
        } = &self.flags;
        let set = [
            ("--model", model.is_some()),
            (self.flags.mode_flag(), sandbox.is_some()),
            ("--add-dir", !add_dirs.is_empty()),
            ("--add-write-dir", !add_write_dirs.is_empty()),
            ("--allow", !allow.is_empty()),
            ("--max-steps", max_steps.is_some()),
            ("--max-cost", max_cost.is_some()),
            ("--max-tokens", max_tokens.is_some()),
            ("--max-wall", max_wall.is_some()),
            ("--no-instructions", instructions.is_some()),
            ("--with", !with.is_empty()),
            ("--without", !without.is_empty()),
            ("--profile", profile.is_some()),
            ("--plugin-dir", !plugin_dirs.is_empty()),
            ("--strict-plugins", strict_plugins.is_some()),
        ];
        set.into_iter().filter_map(|(name, set)| set.then_some(name)).collect()
    }

    /// The options of the last start that apply again, as they are written on a command line; the model is told elsewhere.
    pub(crate) fn recorded(&self) -> Option<String> {
        let Options {
            model: _,
            sandbox,
            add_dirs,
            add_write_dirs,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            instructions,
            with,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
        } = &self.earlier;
        let dirs = |flag: &'static str, dirs: &[PathBuf]| {
            dirs.iter().map(|dir| format!("{flag} {}", authority::escape(dir))).collect::<Vec<_>>()
        };
        let mut all: Vec<String> = sandbox.map(|mode| format!("--sandbox {}", mode.text())).into_iter().collect();
        all.extend(dirs("--add-dir", add_dirs));
        all.extend(dirs("--add-write-dir", add_write_dirs));
        all.extend(allow.iter().map(|rule| format!("--allow '{}'", rule.text)));
        all.extend(max_steps.map(|steps| format!("--max-steps {steps}")));
        all.extend(max_cost.map(|cost| format!("--max-cost {cost}")));
        all.extend(max_tokens.map(|tokens| format!("--max-tokens {tokens}")));
        all.extend(max_wall.map(|seconds| format!("--max-wall {seconds}")));
        all.extend(instructions.filter(|read| !read).map(|_| "--no-instructions".to_owned()));
        all.extend(with.iter().map(|attached| format!("--with '{}'", attached.text)));
        all.extend(without.iter().map(|id| format!("--without {id}")));
        all.extend(profile.iter().map(|name| format!("--profile {name}")));
        all.extend(plugin_dirs.iter().map(|dir| format!("--plugin-dir {}", authority::text::escape_line(dir))));
        all.extend(strict_plugins.filter(|strict| *strict).map(|_| "--strict-plugins".to_owned()));
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// A configuration with these options over it. Rules of the command line stand inside of all others.
    ///
    /// # Errors
    /// A feature that cannot be attached, or an agent file that asks for too much.
    pub(crate) fn over(&self, mut config: Config, env: &Env) -> Result<Config, Failure> {
        let dirs = if self.flags.plugin_dirs.is_empty() { &self.earlier.plugin_dirs } else { &self.flags.plugin_dirs };
        config.add_plugin_dirs(dirs.iter().map(Path::new), env)?;
        self.attach(&mut config, env)?;
        self.earlier.set(&mut config, |_| EARLIER.to_owned());
        self.flags.set(&mut config, str::to_owned);
        Ok(config)
    }

    /// The features of this start: those of the profile, of the agent and of the command line.
    fn attach(&self, config: &mut Config, env: &Env) -> Result<(), Failure> {
        let all = self.earlier.clone().with(&self.flags);
        let Options { with, without, profile, .. } = all;
        if with.is_empty() && without.is_empty() && profile.is_none() && self.agent.is_none() {
            return Ok(());
        }
        let source = |flag: &str, given: bool| if given { flag.to_owned() } else { format!("{flag} ({EARLIER})") };
        let mut attaching = Attaching::new(config, env);
        if let Some(name) = profile {
            let source = source("--profile", self.flags.profile.is_some());
            attaching.profile(&Sourced::new(name, source))?;
        }
        if let Some(agent) = &self.agent {
            let ids: Vec<&str> = with.iter().map(|attached| attached.id.as_str()).collect();
            agent.over(&mut attaching, &ids)?;
        }
        for attached in with {
            let source = source("--with", self.flags.with.contains(&attached));
            let settings = attached.settings.into_iter();
            let settings = settings.map(|(key, value)| (key, Sourced::new(value, source.clone()))).collect();
            attaching.on(&attached.id, &source, Attached { settings, ..Attached::default() })?;
        }
        for id in without {
            let source = source("--without", self.flags.without.contains(&id));
            attaching.off(&id, &source, Detacher::Person)?;
        }
        Ok(())
    }

    pub(crate) fn add_dirs(&self) -> &[PathBuf] {
        either(&self.flags.add_dirs, &self.earlier.add_dirs)
    }

    pub(crate) fn add_write_dirs(&self) -> &[PathBuf] {
        either(&self.flags.add_write_dirs, &self.earlier.add_write_dirs)
    }

    /// For the journal; `model` is the one that answers. A directory is kept by its whole path.
    pub(crate) fn record(&self, model: &str, env: &Env) -> Launch {
        let mut all = self.earlier.clone().with(&self.flags);
        for dir in &mut all.plugin_dirs {
            *dir = env.cwd.join(&*dir).display().to_string();
        }
        let agent = self.agent.as_deref().map(|agent| agent.launched().clone());
        Launch { model: Some(model.to_owned()), agent, ..all.wire().launch }
    }
}

fn either<'a, T>(first: &'a [T], second: &'a [T]) -> &'a [T] {
    if first.is_empty() { second } else { first }
}

/// The features that these options name.
fn ids_of(options: &Options) -> Vec<String> {
    options.with.iter().map(|attached| attached.id.clone()).chain(options.without.iter().cloned()).collect()
}

/// Those that are switched off now, and those of before that are not switched on now.
fn either_of(newer: &[String], earlier: Vec<String>, with: &[Attachment]) -> Vec<String> {
    let named = |id: &String| newer.contains(id) || with.iter().any(|attached| attached.id == *id);
    newer.iter().cloned().chain(earlier.into_iter().filter(|id| !named(id))).collect()
}

impl Options {
    fn attaching(AttachFlags { with, without, profile }: &AttachFlags) -> Self {
        let (with, without, profile) = (with.clone(), without.clone(), profile.clone());
        Self { with, without, profile, ..Self::default() }
    }

    fn recorded(wire: Wire) -> Result<Self, Failure> {
        let unknown = |what: &str, value: &str| {
            Failure::new(Exit::Data, format!("the pod's last start has an unknown {what}: {value}"))
                .help("use the version of yoi that started the pod, or set the option on the command line")
        };
        let Wire { launch, add_dirs, add_write_dirs } = wire;
        let Launch {
            model,
            sandbox,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall_s,
            instructions,
            with,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
            // The start that goes on with its pod names it again.
            agent: _,
            run: _,
        } = launch;
        let mode = |text: String| Mode::from_str(&text, false).map_err(|_| unknown("sandbox mode", &text));
        let attached = |text: &String| attachment(text).map_err(|_| unknown("feature", text));
        let rule = |text: &String| allow::rule(text).map_err(|_| unknown("rule", text));
        Ok(Self {
            model,
            sandbox: sandbox.map(mode).transpose()?,
            add_dirs,
            add_write_dirs,
            allow: allow.iter().map(rule).collect::<Result<_, _>>()?,
            max_steps,
            max_cost,
            max_tokens,
            max_wall: max_wall_s,
            instructions,
            with: with.iter().map(attached).collect::<Result<_, _>>()?,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
        })
    }

    fn wire(&self) -> Wire {
        let Self {
            model,
            sandbox,
            add_dirs,
            add_write_dirs,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            instructions,
            with,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
        } = self.clone();
        let sandbox = sandbox.map(|mode| mode.text().to_owned());
        let allow = allow.into_iter().map(|rule| rule.text).collect();
        let max_wall_s = max_wall;
        let with = with.into_iter().map(|attached| attached.text).collect();
        let launch = Launch {
            model,
            sandbox,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall_s,
            instructions,
            with,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
            agent: None,
            run: false,
        };
        Wire { launch, add_dirs, add_write_dirs }
    }

    /// These, where the others have no value.
    fn with(self, others: &Self) -> Self {
        let Self {
            model,
            sandbox,
            add_dirs,
            add_write_dirs,
            allow,
            max_steps,
            max_cost,
            max_tokens,
            max_wall,
            instructions,
            with,
            without,
            profile,
            plugin_dirs,
            strict_plugins,
        } = others.clone();
        Self {
            model: model.or(self.model),
            sandbox: sandbox.or(self.sandbox),
            add_dirs: either(&add_dirs, &self.add_dirs).to_vec(),
            add_write_dirs: either(&add_write_dirs, &self.add_write_dirs).to_vec(),
            allow: either(&allow, &self.allow).to_vec(),
            max_steps: max_steps.or(self.max_steps),
            max_cost: max_cost.or(self.max_cost),
            max_tokens: max_tokens.or(self.max_tokens),
            max_wall: max_wall.or(self.max_wall),
            instructions: instructions.or(self.instructions),
            with: attachment::over(&with, &without, self.with),
            without: either_of(&without, self.without, &with),
            profile: profile.or(self.profile),
            plugin_dirs: if plugin_dirs.is_empty() { self.plugin_dirs } else { plugin_dirs },
            strict_plugins: strict_plugins.or(self.strict_plugins),
        }
    }

    /// What of this is not set there.
    fn without(self, other: &Self) -> Self {
        Self {
            model: self.model.filter(|_| other.model.is_none()),
            sandbox: self.sandbox.filter(|_| other.sandbox.is_none()),
            add_dirs: if other.add_dirs.is_empty() { self.add_dirs } else { Vec::new() },
            add_write_dirs: if other.add_write_dirs.is_empty() { self.add_write_dirs } else { Vec::new() },
            allow: if other.allow.is_empty() { self.allow } else { Vec::new() },
            max_steps: self.max_steps.filter(|_| other.max_steps.is_none()),
            max_cost: self.max_cost.filter(|_| other.max_cost.is_none()),
            max_tokens: self.max_tokens.filter(|_| other.max_tokens.is_none()),
            max_wall: self.max_wall.filter(|_| other.max_wall.is_none()),
            instructions: self.instructions.filter(|_| other.instructions.is_none()),
            with: attachment::over(&[], &ids_of(other), self.with),
            without: self.without.into_iter().filter(|id| !ids_of(other).contains(id)).collect(),
            profile: self.profile.filter(|_| other.profile.is_none()),
            plugin_dirs: if other.plugin_dirs.is_empty() { self.plugin_dirs } else { Vec::new() },
            strict_plugins: self.strict_plugins.filter(|_| other.strict_plugins.is_none()),
        }
    }

    /// The flag of the sandbox mode.
    fn mode_flag(&self) -> &'static str {
        if self.sandbox == Some(Mode::ReadOnly) { "--read-only" } else { "--sandbox" }
    }

    /// `source` names the origin of the value of a flag.
    fn set(&self, config: &mut Config, source: impl Fn(&str) -> String) {
        set(&mut config.model, self.model.clone(), || source("-m"));
        config.max_steps.set(self.max_steps, || source("--max-steps"));
        set(&mut config.max_cost, self.max_cost, || source("--max-cost"));
        set(&mut config.max_tokens, self.max_tokens, || source("--max-tokens"));
        set(&mut config.max_wall_s, self.max_wall, || source("--max-wall"));
        config.sandbox.set(self.sandbox, || source(self.mode_flag()));
        let place = |_: &[&str]| source(allow::SOURCE);
        let rules =
            self.allow.iter().enumerate().map(|(index, rule)| WrittenRule::new(rule.rule.clone(), index, &place));
        config.rules.extend(FileRules::of(source(allow::SOURCE), rules));
        config.instructions.set(self.instructions, || source("--no-instructions"));
        config.strict_plugins.set(self.strict_plugins, || source("--strict-plugins"));
    }
}
