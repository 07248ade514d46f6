//! The options that make a pod: those of a command line over those of its last start. Opens nothing.

use crate::agent::{Agent, AgentMessage};
use crate::allow;
use crate::attachment::{self, FeatureAttachment, attachment};
use crate::config::file::Mode;
use crate::config::{
    AttachedFeature, Attaching, Config, Detacher, FileRules, Sourced, WrittenRule, set,
};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::limits::LIMITS;
use pod::permission::Rule;
use pod::record::{HostStarted, Launch};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where an option of the last start is said to stand.
const EARLIER: &str = "the pod's last start";

/// Options of one origin, as they stand in the journal and go to another process. What is absent is left to the
/// configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Options {
    launch: Launch,
    add_dirs: Vec<PathBuf>,
    add_write_dirs: Vec<PathBuf>,
}

type OptionValues = dyn Fn(&Options) -> Vec<String>;
type OptionCopy = dyn Fn(&mut Options, &Options);

/// An option of a command line.
struct Field {
    flag: &'static str,
    /// Its values, as they are written behind the flag; none if it is not set.
    values: Box<OptionValues>,
    /// Sets it as it is in the second.
    copy: Box<OptionCopy>,
}

macro_rules! field {
    ($flag:literal, $($name:ident).+, $value:expr) => {
        Field {
            flag: $flag,
            values: Box::new(|options| options.$($name).+.iter().map($value).collect()),
            copy: Box::new(|to, from| to.$($name).+.clone_from(&from.$($name).+)),
        }
    };
}

const MODEL: &str = "--model";
const SANDBOX: &str = "--sandbox";

/// The options that a start keeps.
fn fields() -> impl Iterator<Item = Field> {
    let first = [
        field!("--model", launch.model, String::clone),
        field!("--effort", launch.effort, |effort| effort.word().to_owned()),
        field!("--sandbox", launch.sandbox, String::clone),
        field!("--add-dir", add_dirs, |dir| authority::escape(dir)),
        field!("--add-write-dir", add_write_dirs, |dir| authority::escape(
            dir
        )),
        field!("--allow", launch.allow, |rule| format!("'{rule}'")),
    ];
    let last = [
        field!("--no-instructions", launch.instructions, |_| String::new()),
        field!("--with", launch.with, |feature| format!("'{feature}'")),
        field!("--without", launch.without, String::clone),
        field!("--profile", launch.profile, String::clone),
        field!("--plugin-dir", launch.plugin_dirs, |dir| {
            authority::text::escape_line(dir).into_owned()
        }),
        field!("--strict-plugins", launch.strict_plugins, |_| String::new()),
    ];
    let limits = LIMITS.iter().map(|limit| Field {
        flag: limit.flag,
        values: Box::new(|options| {
            let amount = (limit.launched)(&options.launch);
            amount.iter().map(ToString::to_string).collect()
        }),
        copy: Box::new(|to, from| (limit.launch)(&mut to.launch, (limit.launched)(&from.launch))),
    });
    first.into_iter().chain(limits).chain(last)
}

/// The options of a start, on their way to the process that hosts the pod.
#[derive(Debug, Serialize, Deserialize)]
pub struct LaunchMessage {
    flags: Options,
    earlier: Options,
    agent: Option<AgentMessage>,
    adopt: bool,
}

/// The options of a start.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    flags: Options,
    /// Of the pod's last start, where the flags have no value of their own.
    earlier: Options,
    agent: Option<Arc<Agent>>,
    /// Whether the pod goes on although a gate or a required feature changed.
    adopt: bool,
}

impl LaunchOptions {
    /// What a command line says; `adopt`: the person accepts what changed since the pod's last start.
    pub fn new(
        launch: Launch,
        add_dirs: Vec<PathBuf>,
        add_write_dirs: Vec<PathBuf>,
        adopt: bool,
    ) -> Self {
        Self {
            flags: Options {
                launch,
                add_dirs,
                add_write_dirs,
            },
            adopt,
            ..Self::default()
        }
    }

    /// The same for a start of this agent.
    pub fn with_agent(self, agent: Option<Agent>) -> Self {
        Self {
            agent: agent.map(Arc::new),
            ..self
        }
    }

    /// The agent of this start.
    pub fn agent(&self) -> Option<&Agent> {
        self.agent.as_deref()
    }

    /// Whether the person accepts what changed since the pod's last start.
    pub fn adopts(&self) -> bool {
        self.adopt
    }

    /// The same over what a pod was started with before.
    ///
    /// # Errors
    /// A recorded option that this version does not know.
    pub fn after(self, started: &HostStarted, env: &Env) -> Result<Self, Failure> {
        let HostStarted {
            add_dirs,
            add_write_dirs,
            launch,
            ..
        } = started.clone();
        let dirs = |dirs: Vec<String>| dirs.into_iter().map(PathBuf::from).collect();
        let launch = launch.unwrap_or_default();
        let mut earlier = if launch.run {
            let launch = Launch {
                model: launch.model,
                effort: launch.effort,
                ..Launch::default()
            };
            Options {
                launch,
                ..Options::default()
            }
        } else {
            // An agent is not one of the flags: `with_agent_of`.
            let launch = Launch {
                agent: None,
                ..launch
            };
            Options {
                launch,
                add_dirs: dirs(add_dirs),
                add_write_dirs: dirs(add_write_dirs),
            }
        };
        earlier.check(env)?;
        // An effort is one of its model.
        let model = self.flags.launch.model.as_ref();
        if model.is_some_and(|model| earlier.launch.model.as_ref() != Some(model)) {
            earlier.launch.effort = None;
        }
        earlier.remove(&self.flags);
        Ok(Self { earlier, ..self })
    }

    /// The same as the agent that the last start of the pod stayed as, if these name none.
    ///
    /// # Errors
    /// Its file cannot be read, and the person does not accept that.
    pub fn with_agent_of(
        self,
        started: &HostStarted,
        pod: &str,
        env: &Env,
    ) -> Result<Self, Failure> {
        let launch = started.launch.as_ref().filter(|launch| !launch.run);
        let before = launch.and_then(|launch| launch.agent.as_ref());
        let Some(before) = before.filter(|_| self.agent.is_none()) else {
            return Ok(self);
        };
        match Agent::recorded(before, env) {
            Ok(agent) => Ok(self.with_agent(Some(agent))),
            Err(_) if self.adopt => Ok(self),
            Err(failure) => {
                let what = format!("{pod} does not go on as its agent: {}", failure.message);
                Err(Failure::new(Exit::Config, what).help(Help::AdoptDrift(pod.to_owned())))
            }
        }
    }

    /// For the process that hosts the pod.
    pub fn message(&self) -> LaunchMessage {
        LaunchMessage {
            flags: self.flags.clone(),
            earlier: self.earlier.clone(),
            agent: self.agent.as_deref().map(Agent::message),
            adopt: self.adopt,
        }
    }

    /// From the process that starts the pod.
    ///
    /// # Errors
    /// As [`Self::after`], or the agent's file changed meanwhile.
    pub fn of_message(
        LaunchMessage {
            flags,
            earlier,
            agent,
            adopt,
        }: LaunchMessage,
        env: &Env,
    ) -> Result<Self, Failure> {
        flags.check(env)?;
        earlier.check(env)?;
        let agent = agent.map(|agent| Agent::of_message(&agent, env));
        Ok(Self {
            flags,
            earlier,
            agent: agent.transpose()?.map(Arc::new),
            adopt,
        })
    }

    /// The flags of this command line that make a pod.
    pub fn flags(&self) -> Vec<&'static str> {
        let named = |field: &Field| {
            if field.flag == SANDBOX {
                self.flags.mode_flag()
            } else {
                field.flag
            }
        };
        fields()
            .filter(|field| self.flags.has(field))
            .map(|field| named(&field))
            .chain(self.agent.iter().map(|_| "--agent"))
            .collect()
    }

    /// The options of the last start that apply again, as they are written on a command line; the model is told elsewhere.
    pub fn recorded(&self) -> Option<String> {
        let written = |flag: &str, value: String| {
            if value.is_empty() {
                flag.to_owned()
            } else {
                format!("{flag} {value}")
            }
        };
        let mut all = Vec::new();
        for field in fields().filter(|field| field.flag != MODEL) {
            let values = (field.values)(&self.earlier).into_iter();
            all.extend(values.map(|value| written(field.flag, value)));
        }
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// A configuration with these options over it. Rules of the command line stand inside of all others.
    ///
    /// # Errors
    /// A feature that cannot be attached, or an agent file that asks for too much.
    pub fn over(&self, mut config: Config, env: &Env) -> Result<Config, Failure> {
        let dirs = either(
            &self.flags.launch.plugin_dirs,
            &self.earlier.launch.plugin_dirs,
        );
        config.add_plugin_dirs(dirs.iter().map(Path::new), env)?;
        self.attach(&mut config, env)?;
        self.earlier.set(&mut config, env, |_| EARLIER.to_owned())?;
        self.flags.set(&mut config, env, str::to_owned)?;
        Ok(config)
    }

    /// The features of this start: those of the profile, of the agent and of the command line.
    fn attach(&self, config: &mut Config, env: &Env) -> Result<(), Failure> {
        let all = self.all();
        let with = all.attachments()?;
        let Launch {
            without,
            profile,
            model,
            ..
        } = all.launch;
        if with.is_empty() && without.is_empty() && profile.is_none() && self.agent.is_none() {
            return Ok(());
        }
        let source = |flag: &str, given: bool| {
            if given {
                flag.to_owned()
            } else {
                format!("{flag} ({EARLIER})")
            }
        };
        let mut attaching = Attaching::new(config, env);
        if let Some(name) = profile {
            let source = source("--profile", self.flags.launch.profile.is_some());
            attaching.profile(&Sourced::new(name, source))?;
        }
        if let Some(agent) = &self.agent {
            let ids: Vec<&str> = with.iter().map(|attached| attached.id.as_str()).collect();
            agent.over(&mut attaching, &ids, model.as_deref())?;
        }
        for attached in with {
            let source = source("--with", self.flags.launch.with.contains(&attached.text));
            let settings = attached.settings.into_iter();
            let settings = settings
                .map(|(key, value)| (key, Sourced::new(value, source.clone())))
                .collect();
            attaching.on(
                &attached.id,
                &source,
                AttachedFeature {
                    settings,
                    ..AttachedFeature::default()
                },
            )?;
        }
        for id in without {
            let source = source("--without", self.flags.launch.without.contains(&id));
            attaching.off(&id, &source, Detacher::Person)?;
        }
        Ok(())
    }

    /// Further directories for reading.
    pub fn add_dirs(&self) -> &[PathBuf] {
        either(&self.flags.add_dirs, &self.earlier.add_dirs)
    }

    /// Further directories for reading and writing.
    pub fn add_write_dirs(&self) -> &[PathBuf] {
        either(&self.flags.add_write_dirs, &self.earlier.add_write_dirs)
    }

    /// For the journal; `model` is the one that answers. A directory is kept by its whole path.
    pub fn record(&self, model: &str, env: &Env) -> Launch {
        let mut launch = self.all().launch;
        for dir in &mut launch.plugin_dirs {
            *dir = env.cwd.join(&*dir).display().to_string();
        }
        let agent = self.agent.as_deref().map(|agent| agent.launched().clone());
        Launch {
            model: Some(model.to_owned()),
            agent,
            ..launch
        }
    }

    /// Of both origins.
    fn all(&self) -> Options {
        let mut all = self.earlier.clone();
        all.add(&self.flags);
        all
    }
}

fn either<'a, T>(first: &'a [T], second: &'a [T]) -> &'a [T] {
    if first.is_empty() { second } else { first }
}

/// An option of the last start that this version does not know.
fn unknown(what: &str, value: &str) -> Failure {
    Failure::new(
        Exit::Data,
        format!("the pod's last start has an unknown {what}: {value}"),
    )
    .help("use the version of yoi that started the pod, or set the option on the command line")
}

impl Options {
    fn has(&self, field: &Field) -> bool {
        !(field.values)(self).is_empty()
    }

    fn check(&self, env: &Env) -> Result<(), Failure> {
        self.mode()?;
        self.rules(env)?;
        self.attachments().map(drop)
    }

    fn mode(&self) -> Result<Option<Mode>, Failure> {
        let mode = |text: &String| Mode::named(text).ok_or_else(|| unknown("sandbox mode", text));
        self.launch.sandbox.as_ref().map(mode).transpose()
    }

    fn rules(&self, env: &Env) -> Result<Vec<Rule>, Failure> {
        let rule = |text: &String| {
            allow::rule(text, &env.added.declared()).map_err(|_| unknown("rule", text))
        };
        self.launch.allow.iter().map(rule).collect()
    }

    fn attachments(&self) -> Result<Vec<FeatureAttachment>, Failure> {
        let attached = |text: &String| attachment(text).map_err(|_| unknown("feature", text));
        self.launch.with.iter().map(attached).collect()
    }

    /// Whether these switch a feature on or off.
    fn names(&self, id: &str) -> bool {
        self.launch.without.iter().any(|named| named == id)
            || self
                .launch
                .with
                .iter()
                .any(|with| attachment::id(with) == id)
    }

    /// Takes over what is set in the others.
    fn add(&mut self, others: &Self) {
        self.remove(others);
        let mut with = std::mem::take(&mut self.launch.with);
        with.extend_from_slice(&others.launch.with);
        let mut without = others.launch.without.clone();
        without.append(&mut self.launch.without);
        for field in fields().filter(|field| others.has(field)) {
            (field.copy)(self, others);
        }
        (self.launch.with, self.launch.without) = (with, without);
    }

    /// Leaves out what is set in the others; of features, those that they name.
    fn remove(&mut self, others: &Self) {
        let mut with = self.launch.with.clone();
        let mut without = self.launch.without.clone();
        with.retain(|text| !others.names(attachment::id(text)));
        without.retain(|id| !others.names(id));
        for field in fields().filter(|field| others.has(field)) {
            (field.copy)(self, &Self::default());
        }
        (self.launch.with, self.launch.without) = (with, without);
    }

    /// The flag of the sandbox mode.
    fn mode_flag(&self) -> &'static str {
        if self.launch.sandbox.as_deref() == Some(Mode::ReadOnly.text()) {
            "--read-only"
        } else {
            SANDBOX
        }
    }

    /// `source` names the origin of the value of a flag.
    fn set(
        &self,
        config: &mut Config,
        env: &Env,
        source: impl Fn(&str) -> String,
    ) -> Result<(), Failure> {
        let launch = &self.launch;
        set(&mut config.model, launch.model.clone(), || source("-m"));
        set(&mut config.effort, launch.effort, || source("--effort"));
        config
            .limits
            .set(|limit| (limit.launched)(launch), |limit| source(limit.flag));
        config
            .sandbox
            .set(self.mode()?, || source(self.mode_flag()));
        let place = |_: &[&str]| source(allow::SOURCE);
        let rules = self.rules(env)?.into_iter().enumerate();
        let rules = rules.map(|(index, rule)| WrittenRule::new(rule, index, &place));
        config
            .rules
            .extend(FileRules::of(source(allow::SOURCE), rules));
        config
            .instructions
            .set(launch.instructions, || source("--no-instructions"));
        config
            .strict_plugins
            .set(launch.strict_plugins, || source("--strict-plugins"));
        Ok(())
    }
}
