//! The agents of a start by their names: of the person, of granted packages, and of the project. Runs nothing.
//!
//! The first of a name counts: the person's, then those of packages, which are `PACKAGE:NAME`, then those of the project, so
//! that no repository replaces an agent that a person wrote.

use crate::agent::{Agent, MAX_FILE, OWN, is_name};
use crate::config::{Attaching, Config};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::nearest::nearest;
use crate::plain_file::{self, Links};
use crate::plugins::{AgentForm, Standing};
use crate::skills::{Within, listed, resolved};
use authority::{Ambient, SecretNames};
use builtins::skills::Origin;
use std::path::{Path, PathBuf};

/// Directories of agents in a project.
const PROJECT: [&str; 2] = [".yoi/agents", ".claude/agents"];

/// Most agents of the person, of the project and of all packages.
const MAX_OF_ONE: usize = 48;
const MAX_OF_PACKAGES: usize = 128;

/// Most names of the person's files that are kept from others.
const MAX_NAMES: usize = 512;

/// All agents that were found.
#[derive(Clone, Debug, Default)]
pub struct AgentRegistry {
    pub agents: Vec<FoundAgent>,
    /// What belongs to no agent.
    pub problems: Vec<String>,
}

/// An agent that was found, or a file that is none.
#[derive(Clone, Debug)]
pub struct FoundAgent {
    /// What `--agent` takes.
    pub name: String,
    pub origin: Origin,
    pub path: PathBuf,
    /// Without arguments; or why it is none.
    pub agent: Result<Agent, String>,
    /// Why a start without other options would refuse it, where that was tried.
    pub obstacle: Option<String>,
}

impl FoundAgent {
    /// Why it cannot be used, if it cannot.
    pub fn unusable(&self) -> Option<&str> {
        self.agent
            .as_ref()
            .err()
            .or(self.obstacle.as_ref())
            .map(String::as_str)
    }
}

impl AgentRegistry {
    /// The agent of this name, or of this file; `given` are the arguments of the command line. A name has neither `/` nor `.`.
    ///
    /// # Errors
    /// There is no such agent, it cannot be used, or an argument is missing or unknown.
    pub fn named_or_file(
        wanted: &Path,
        given: &[(String, String)],
        config: impl FnOnce() -> Result<Config, Failure>,
        env: &Env,
    ) -> Result<Agent, Failure> {
        let name = wanted.to_str().filter(|name| !name.contains(['/', '.']));
        let agent = match name {
            Some(name) => {
                let registry = Self::find(&config()?, env);
                // Files without an ending were read before agents had names.
                match registry.get(name) {
                    Err(_)
                        if !name.contains(':')
                            && !registry.has(name)
                            && env.cwd.join(wanted).is_file() =>
                    {
                        Agent::read(wanted, env)?
                    }
                    found => found?,
                }
            }
            None => Agent::read(wanted, env)?,
        };
        agent.with_arguments(given)
    }

    /// Looks in all places.
    pub fn find(config: &Config, env: &Env) -> Self {
        let ambient = ambient::claim();
        let mut found = Self::default();
        if let Ok(dir) = env.config_dir() {
            found.directory(&ambient, &dir.join(OWN), &Origin::Person, None, env);
        }
        found.of_packages(config, env);
        let project = &config.project;
        let secrets: Option<SecretNames> = config.secret_names().ok();
        // A home directory is no project.
        if let Some(secrets) = secrets.filter(|_| project.too_wide.is_none()) {
            let within = Some((project.root.as_path(), &secrets));
            for below in PROJECT {
                let dir = project.root.join(below);
                found.directory(&ambient, &dir, &Origin::Project, within, env);
            }
        }
        found
    }

    /// The same, where each is tried with this configuration.
    pub fn tried(config: &Config, env: &Env) -> Self {
        let mut found = Self::find(config, env);
        for agent in &mut found.agents {
            agent.obstacle = match &agent.agent {
                Ok(is) => is.obstacle(config, env),
                Err(_) => None,
            };
        }
        found
    }

    /// Whether some file has this name, usable or not.
    pub fn has(&self, name: &str) -> bool {
        self.agents.iter().any(|agent| agent.name == name)
    }

    /// The agent of this name.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub fn get(&self, name: &str) -> Result<Agent, Failure> {
        let Some(found) = self.agents.iter().find(|agent| agent.name == name) else {
            let usable = self
                .agents
                .iter()
                .filter(|agent| agent.unusable().is_none());
            let names: Vec<&str> = usable.map(|agent| agent.name.as_str()).collect();
            let meant = nearest(name, &names).map(str::to_owned);
            let name = authority::text::escape_line(name);
            let failure = Failure::new(Exit::Usage, format!("there is no agent `{name}`"));
            return Err(failure.help(Help::ListAgents(meant)));
        };
        found.agent.clone().map_err(|why| {
            let what = format!("the agent {name} cannot be used: {why}");
            Failure::new(Exit::Config, what).help(Help::ListAgents(None))
        })
    }

    fn of_packages(&mut self, config: &Config, env: &Env) {
        for package in &config.plugins(env).found {
            // Most have none, and their files are not read once more.
            if !package.dir.join(OWN).is_dir() {
                continue;
            }
            let origin = Origin::Package(package.name.clone());
            let shown = env.shown(&package.dir);
            if let Err(why) = &package.manifest {
                self.problems.push(format!("{shown}: {why}"));
                continue;
            }
            let digest = match package.standing(env) {
                Standing::Granted { digest } => digest,
                other => {
                    let why = other.obstacle().unwrap_or_default();
                    self.problems.push(format!("{shown}: {origin}: {why}"));
                    continue;
                }
            };
            match package.parts() {
                Ok(parts) if parts.digest == *digest => {
                    for agent in &parts.agents {
                        let read = Agent::of_package(&agent.path, &agent.bytes, &package.name);
                        let name = match &read {
                            Ok(agent) => agent.name().to_owned(),
                            Err(_) => format!("{}:{}", package.name, stem(&agent.path)),
                        };
                        self.add(name, &origin, agent.path.clone(), read);
                    }
                }
                Ok(_) => self
                    .problems
                    .push(format!("{shown}: it changed while it was read")),
                Err(why) => self.problems.push(format!("{shown}: {why}")),
            }
        }
    }

    /// The agents of a directory; nothing where there is none.
    fn directory(
        &mut self,
        ambient: &Ambient,
        dir: &Path,
        origin: &Origin,
        within: Option<Within<'_>>,
        env: &Env,
    ) {
        if dir.symlink_metadata().is_err() {
            return;
        }
        let dir = match resolved(ambient, dir, within) {
            Ok(dir) => dir,
            Err(why) => {
                let shown = env.shown(dir);
                self.problems
                    .push(format!("{shown}: {why}; it is not read"));
                return;
            }
        };
        for path in listed(&dir) {
            if AgentForm::of(&path).is_none() {
                continue;
            }
            let read = resolved(ambient, &path, within).and_then(|whole| {
                let links = match within {
                    Some(_) => Links::Refused,
                    None => Links::Followed,
                };
                let file = plain_file::open(&whole, links)?.ok_or("it is not there any more")?;
                let bytes = plain_file::whole(file, MAX_FILE)?;
                let own = *origin == Origin::Person && whole.starts_with(&dir);
                Agent::of_file(&whole, &bytes, own)
            });
            let name = match &read {
                Ok(agent) => agent.name().to_owned(),
                Err(_) => stem(&path),
            };
            let read = match is_name(&name) {
                true => read,
                false => Err("its name has other signs than letters, digits, - and _".to_owned()),
            };
            self.add(name, origin, path, read);
        }
    }

    fn add(&mut self, name: String, origin: &Origin, path: PathBuf, agent: Result<Agent, String>) {
        let like = self
            .agents
            .iter()
            .filter(|other| other.origin.is_like(origin))
            .count();
        let most = match origin {
            Origin::Package(_) => MAX_OF_PACKAGES,
            Origin::Person | Origin::Project => MAX_OF_ONE,
        };
        if like >= most {
            let what = format!("some agents of {origin} are left out: at most {most} are used");
            if !self.problems.contains(&what) {
                self.problems.push(what);
            }
            // Its name stays the person's own: a project's file of this name is not started instead.
            if *origin != Origin::Person || like >= MAX_NAMES {
                return;
            }
        }
        let first = self.agents.iter().find(|other| other.name == name);
        let agent = match first {
            None if like >= most => Err(format!("at most {most} agents of {origin} are used")),
            Some(first) => Err(format!(
                "{} has an agent {name}, too, which is used",
                first.origin
            )),
            None => agent,
        };
        self.agents.push(FoundAgent {
            name,
            origin: origin.clone(),
            path,
            agent,
            obstacle: None,
        });
    }
}

impl Agent {
    /// Why a start as this agent would not begin with this configuration.
    fn obstacle(&self, config: &Config, env: &Env) -> Option<String> {
        let mut config = config.clone();
        let mut attaching = Attaching::new(&mut config, env);
        let source = format!("{}: ", self.source());
        let failure = self.over(&mut attaching, &[], None).err()?;
        let why = failure.message;
        Some(why.strip_prefix(&source).unwrap_or(&why).to_owned())
    }
}

/// What a file that cannot be read is listed as.
fn stem(path: &Path) -> String {
    authority::escape(Path::new(path.file_stem().unwrap_or_default()))
}
