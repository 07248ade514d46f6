//! Agents: each a file that adds a prompt and features, and narrows tools and limits. A file that is not among the person's
//! own agents may only narrow.

mod markdown;

pub(crate) use markdown::is_name;

use crate::compose::model;
use crate::config::file;
use crate::config::{AttachedFeature, Attaching, Config, Detacher, Source, Sourced};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::limits::LimitsConfig;
use crate::plain_file::{self, Links};
use crate::plugins::AgentForm;
use authority::text::{Lines, escape_within};
use llm_worker::Effort;
use pod::feature::FeatureDescriptor;
use pod::record::LaunchedAgent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session_store::Digest;
use std::collections::BTreeMap;
use std::path::Path;

/// The directory of the person's own agents, in the directory of their configuration.
pub const OWN: &str = "agents";

/// Bytes of a file, of its prompt with all arguments, and of a description as it is shown.
pub(crate) const MAX_FILE: u64 = 256 * 1024;
const MAX_PROMPT: usize = 64 * 1024;
const MAX_DESCRIPTION: usize = 200;

/// What an agent file looks like.
const FORMS: &str = "write a file such as reviewer.toml with description = \"TEXT\" and prompt = \"\"\"TEXT\"\"\", or reviewer.md \
     with a line `description: TEXT` between two lines `---` and the prompt below them";

/// The tool that reads skills.
const SKILL_TOOL: &str = "Skill";

/// Features that any agent file may switch on: they refuse, ask or hide, and do nothing else.
const GUARDS: [&str; 6] = [
    "builtin:circuit-breaker",
    "builtin:command-blocklist",
    "builtin:confirm-gate",
    "builtin:loop-detect",
    "builtin:redact",
    "builtin:write-policy",
];

/// An agent file. Only `description` and `prompt` are needed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentFile {
    /// What the agent is for, in one line.
    description: String,
    /// What the model is told before the instructions of files. `{NAME}` stands for the argument NAME.
    prompt: String,
    /// What the prompt is completed with, by name.
    #[serde(default)]
    arguments: BTreeMap<String, AgentArgument>,
    /// The model, unless the command line names another one.
    model: Option<String>,
    /// How much its model thinks.
    effort: Option<Effort>,
    /// The only tools of the agent; without this key, all that are on.
    tools: Option<Vec<String>>,
    /// The only skills of the agent; without this key, all. They put `Skill` into `tools`.
    skills: Option<Vec<String>>,
    /// Features to switch on, with their settings.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>")]
    with: BTreeMap<String, toml::Table>,
    /// Features to switch off.
    #[serde(default)]
    without: Vec<String>,
    /// Limits, where they are lower than those in force.
    #[serde(default)]
    limits: LimitsConfig,
}

/// One argument of an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Argument")]
struct AgentArgument {
    /// What it means.
    description: String,
    /// Its value where the command line gives none.
    default: Option<String>,
}

/// An agent that was read.
#[derive(Clone, Debug)]
pub struct Agent {
    name: String,
    /// What the journal says about it.
    launched: LaunchedAgent,
    /// Whether the file is one of the person's own.
    own: bool,
    /// With the arguments, once they are given.
    prompt: String,
    file: AgentFile,
    /// Of Markdown, which other programs read, too; none of TOML, where what is unknown is an error.
    foreign: Option<ForeignKeys>,
}

/// What a Markdown file has beside the keys of an agent file.
#[derive(Clone, Debug, Default)]
struct ForeignKeys {
    /// Tools that the agent must not have.
    without_tools: Vec<String>,
    /// Keys that nothing here means.
    ignored: Vec<String>,
}

/// An agent on its way to the process that hosts its pod, which reads the file again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentMessage {
    name: String,
    launched: LaunchedAgent,
}

impl Agent {
    /// The agent of a pod's last start, with the arguments that it had then.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn recorded(launched: &LaunchedAgent, env: &Env) -> Result<Self, Failure> {
        let agent = Self::read(Path::new(&launched.file), env)?;
        let name = launched.name.clone().unwrap_or(agent.name);
        let given: Vec<(String, String)> = launched
            .arguments
            .iter()
            .filter_map(|given| given.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Self { name, ..agent }.with_arguments(&given)
    }

    /// For the process that hosts the pod.
    pub fn message(&self) -> AgentMessage {
        AgentMessage {
            name: self.name.clone(),
            launched: self.launched.clone(),
        }
    }

    /// From the process that starts the pod.
    ///
    /// # Errors
    /// The file cannot be read, or is another one by now.
    pub fn of_message(message: &AgentMessage, env: &Env) -> Result<Self, Failure> {
        let AgentMessage { name, launched } = message;
        let agent = Self::recorded(launched, env)?;
        if agent.launched.digest != launched.digest {
            let file = authority::escape(Path::new(&launched.file));
            let what = format!("{file} changed while its agent was started; try again");
            return Err(Failure::new(Exit::Config, what));
        }
        Ok(Self {
            name: name.clone(),
            ..agent
        })
    }

    /// Reads a file, without arguments.
    pub(crate) fn read(path: &Path, env: &Env) -> Result<Self, Failure> {
        let path = env.cwd.join(path);
        let shown = env.shown(&path);
        let fail = |what: String| Failure::new(Exit::Config, format!("{shown}: {what}"));
        let opened = plain_file::open(&path, Links::Followed).map_err(fail)?;
        let Some(opened) = opened else {
            return Err(Failure::new(
                Exit::Usage,
                format!("--agent: {shown} does not exist"),
            ));
        };
        let bytes = plain_file::whole(opened, MAX_FILE).map_err(fail)?;
        let whole = path
            .canonicalize()
            .map_err(|error| fail(authority::explain(&error)))?;
        Self::of_bytes(&whole, &bytes, is_own(&path, env)).map_err(|problem| {
            let line = problem
                .line
                .map_or_else(String::new, |line| format!("{line}:"));
            let what = format!("{shown}:{line} {}", problem.what);
            let failure = Failure::new(Exit::Config, what);
            match problem.help {
                Some(help) => failure.help(help),
                None => failure,
            }
        })
    }

    /// Reads the bytes of the file at a path without links.
    fn of_bytes(path: &Path, bytes: &[u8], own: bool) -> Result<Self, Unread> {
        let text = plain_file::text(bytes).map_err(|why| Unread::new(format!("the file {why}")))?;
        let text = text.replace("\r\n", "\n");
        let form = AgentForm::of(path);
        let (name, file, foreign) = if form == Some(AgentForm::Markdown) {
            let read = markdown::read(&text).map_err(Unread::new)?;
            (read.name, read.file, Some(read.foreign))
        } else {
            let file = file::parse_as(&text).map_err(|problem| Unread {
                line: Some(problem.line),
                what: match form {
                    Some(_) => problem.what,
                    None => "an agent file must be TOML or Markdown".to_owned(),
                },
                help: Some(match form {
                    Some(_) => problem.help,
                    None => FORMS.to_owned(),
                }),
            })?;
            (None, file, None)
        };
        let stem = path
            .file_stem()
            .map(|stem| authority::escape(Path::new(stem)))
            .unwrap_or_default();
        Ok(Self {
            name: name.unwrap_or(stem),
            launched: LaunchedAgent {
                file: path.display().to_string(),
                digest: Digest::of(bytes).to_string(),
                ..LaunchedAgent::default()
            },
            own,
            prompt: String::new(),
            file,
            foreign,
        })
    }

    /// The agent of a file that was read; an error has one line.
    pub(crate) fn of_file(path: &Path, bytes: &[u8], own: bool) -> Result<Self, String> {
        Self::of_bytes(path, bytes, own).map_err(|problem| problem.in_one())
    }

    /// An agent of a package, called `PACKAGE:NAME`.
    pub(crate) fn of_package(path: &Path, bytes: &[u8], package: &str) -> Result<Self, String> {
        let agent = Self::of_file(path, bytes, false)?;
        let name = format!("{package}:{}", agent.name);
        Ok(Self { name, ..agent })
    }

    /// What `--agent` takes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same with its arguments.
    pub(crate) fn with_arguments(mut self, given: &[(String, String)]) -> Result<Self, Failure> {
        let source = self.source();
        let fail = |what: String| Failure::new(Exit::Config, format!("{source}: {what}"));
        let prompt = completed(&self.file, given).map_err(fail)?;
        if prompt.len() > MAX_PROMPT {
            return Err(fail(format!(
                "the prompt has over {MAX_PROMPT} bytes with its arguments"
            )));
        }
        self.prompt = prompt;
        self.launched.name = Some(self.name.clone());
        let given = given.iter().map(|(name, value)| format!("{name}={value}"));
        self.launched.arguments = given.collect();
        Ok(self)
    }

    /// What it is for, in one line.
    pub fn description(&self) -> String {
        escape_within(&self.file.description, Lines::One, MAX_DESCRIPTION)
    }

    /// The arguments that a start must give.
    pub fn needed(&self) -> Vec<&str> {
        let all = self.file.arguments.iter();
        all.filter(|(_, argument)| argument.default.is_none())
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// What of its file nothing here means, in one line; none if all of it counts.
    pub fn ignored(&self, config: &Config, env: &Env) -> Option<String> {
        let foreign = self.foreign.as_ref()?;
        let declared = config.declared(env);
        let known: Vec<&str> = tool_names(&declared);
        let named = self.file.tools.iter().flatten();
        let named = named.filter(|tool| !known.contains(&tool.as_str()));
        let left_out = foreign.without_tools.iter();
        let left_out = left_out.filter(|name| !known.iter().any(|tool| is_of(tool, name)));
        let unknown = named.chain(left_out);
        let found = &config.skills(env).skills;
        let is_lacking = |name: &&String| !found.iter().any(|skill| skill.name == **name);
        let skills = self.file.skills.iter().flatten().filter(is_lacking);
        let skills = skills.map(|name| format!("the skill {name}"));
        let unknown = unknown.map(|tool| format!("the tool {tool}"));
        let all: Vec<String> = foreign
            .ignored
            .iter()
            .cloned()
            .chain(unknown)
            .chain(skills)
            .collect();
        (!all.is_empty()).then(|| escape_within(&all.join(", "), Lines::One, MAX_DESCRIPTION))
    }

    /// For the journal.
    pub fn launched(&self) -> &LaunchedAgent {
        &self.launched
    }

    /// For people.
    pub fn line(&self) -> String {
        format!("agent: {} ({})", self.name, self.description())
    }

    /// What the model is told.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Applies the file over a configuration. `attached` are the features that the command line attaches besides; `chosen`
    /// is the model that it names.
    pub fn over(
        &self,
        attaching: &mut Attaching<'_>,
        attached: &[&str],
        chosen: Option<&str>,
    ) -> Result<(), Failure> {
        let source = &self.source();
        if let Some(name) = &self.file.model {
            let config = attaching.config();
            let runs = name.starts_with(model::SCRIPTED) || name.starts_with(model::RECORD);
            if runs && !self.own {
                return Err(self.foreign(&format!("choose the model {name}"), Help::ChooseModel));
            }
            model::named(name, config).map_err(|failure| Failure {
                message: format!("{source}: {}", failure.message),
                ..failure
            })?;
            config.model = Some(Sourced::new(name.clone(), source.clone()));
        }
        // An effort is one of its model.
        let is_other = chosen
            .zip(self.file.model.as_deref())
            .is_some_and(|names| model::bare(names.0) != model::bare(names.1));
        if let Some(effort) = self.file.effort.filter(|_| !is_other) {
            attaching.config().effort = Some(Sourced::new(effort, source.clone()));
        }
        let limits = &self.file.limits;
        attaching.config().lower_limits(limits, |_| source.clone());
        for (id, settings) in &self.file.with {
            if !self.own && !GUARDS.contains(&id.as_str()) {
                let is_on = attaching.is_on(id) || attached.contains(&id.as_str());
                if is_on && settings.is_empty() {
                    continue;
                }
                return Err(
                    self.foreign(&format!("switch on {id}"), Help::AttachFeature(id.clone()))
                );
            }
            let place = |(key, value): (&String, &toml::Value)| {
                (key.clone(), Sourced::new(value.clone(), source.clone()))
            };
            let settings = settings.iter().map(place).collect();
            attaching.on(
                id,
                source,
                AttachedFeature {
                    settings,
                    ..AttachedFeature::default()
                },
            )?;
        }
        for id in &self.file.without {
            attaching.off(id, source, Detacher::AgentFile)?;
        }
        if let Some(skills) = &self.file.skills {
            let known = attaching.skills();
            let is_kept = |name: &&String| self.foreign.is_none() || known.contains(name);
            let skills = skills.iter().filter(is_kept).cloned().collect();
            attaching.only_skills(Sourced::new(skills, source.clone()))?;
        }
        match self.tools(attaching) {
            Some(tools) => attaching.only_tools(Sourced::new(tools, source.clone())),
            None => Ok(()),
        }
    }

    /// The only tools of the agent. Other programs have other tools: of Markdown, those that are known here.
    fn tools(&self, attaching: &Attaching<'_>) -> Option<Vec<String>> {
        let has_skills = self
            .file
            .skills
            .as_ref()
            .is_some_and(|skills| !skills.is_empty());
        let skill = has_skills.then(|| SKILL_TOOL.to_owned());
        let Some(foreign) = &self.foreign else {
            let named = self.file.tools.clone()?;
            return Some(named.into_iter().chain(skill).collect());
        };
        let ForeignKeys { without_tools, .. } = foreign;
        if self.file.tools.is_none() && without_tools.is_empty() {
            return None;
        }
        let is_kept = |tool: &&str| {
            let named = self.file.tools.as_ref();
            named.is_none_or(|named| named.iter().any(|name| name == tool))
                && !without_tools.iter().any(|name| is_of(tool, name))
        };
        let tools = attaching.tools();
        let kept = tools.into_iter().filter(is_kept).map(str::to_owned);
        let skill = skill.filter(|skill| !without_tools.contains(skill));
        Some(kept.chain(skill).collect())
    }

    pub(crate) fn source(&self) -> Source {
        format!("agent {}", self.name)
    }

    fn foreign(&self, what: &str, instead: Help) -> Failure {
        let what = format!(
            "{}: only an agent file of your own may {what}",
            self.source()
        );
        Failure::new(Exit::Config, what).help(instead)
    }
}

/// Why a file is no agent.
struct Unread {
    line: Option<usize>,
    what: String,
    help: Option<String>,
}

impl Unread {
    fn new(what: String) -> Self {
        Self {
            line: None,
            what,
            help: None,
        }
    }

    /// In one line.
    fn in_one(&self) -> String {
        let line = self
            .line
            .map_or_else(String::new, |line| format!("line {line}: "));
        format!("{line}{}", self.what)
    }
}

/// The names of the tools that features declare.
fn tool_names(declared: &[FeatureDescriptor]) -> Vec<&str> {
    let tools = declared.iter().flat_map(|feature| &feature.declared_tools);
    tools.map(|tool| tool.name.as_str()).collect()
}

/// Whether the file itself, not a link to it, is among the person's own agents.
fn is_own(path: &Path, env: &Env) -> bool {
    let own = env
        .config_dir()
        .ok()
        .and_then(|dir| dir.join(OWN).canonicalize().ok());
    own.zip(path.canonicalize().ok())
        .is_some_and(|(own, path)| path.starts_with(own))
}

/// The prompt with its arguments.
fn completed(file: &AgentFile, given: &[(String, String)]) -> Result<String, String> {
    if let Some((unknown, _)) = given
        .iter()
        .find(|(name, _)| !file.arguments.contains_key(name))
    {
        let known: Vec<&str> = file.arguments.keys().map(String::as_str).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        return Err(format!(
            "there is no argument `{unknown}` (its arguments: {known})"
        ));
    }
    let mut values = BTreeMap::new();
    for (
        name,
        AgentArgument {
            description,
            default,
        },
    ) in &file.arguments
    {
        let given = given
            .iter()
            .rev()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str());
        let Some(value) = given.or(default.as_deref()) else {
            let description = escape_within(description, Lines::One, MAX_DESCRIPTION);
            return Err(format!(
                "the argument `{name}` is missing ({description}); give it with --arg {name}=VALUE"
            ));
        };
        values.insert(name.as_str(), value);
    }
    // In one pass: a value is no template.
    let mut prompt = String::new();
    let mut rest = file.prompt.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        prompt.push_str(before);
        let argument = after
            .split_once('}')
            .and_then(|(name, after)| Some((*values.get(name)?, after)));
        rest = match argument {
            Some((value, after)) => {
                prompt.push_str(value);
                after
            }
            None => {
                prompt.push('{');
                after
            }
        };
    }
    prompt.push_str(rest);
    Ok(prompt)
}

/// Whether a tool is the one that a list names, or one of the server that it names as `mcp__SERVER`.
fn is_of(tool: &str, named: &str) -> bool {
    let rest = tool.strip_prefix(named);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_complete_the_prompt_in_one_pass() {
        let file: AgentFile = file::parse_as(
            "description = \"d\"\nprompt = \"Look at {path}, {lang}; {other} { {path}\"\n\
             [arguments.path]\ndescription = \"where\"\n[arguments.lang]\ndescription = \"l\"\ndefault = \"Rust\"",
        )
        .unwrap();
        let given = |pairs: &[(&str, &str)]| {
            completed(
                &file,
                &pairs
                    .iter()
                    .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            given(&[("path", "{lang}")]).as_deref(),
            Ok("Look at {lang}, Rust; {other} { {lang}")
        );
        let both = given(&[("path", "src"), ("lang", "C"), ("lang", "Zig")]);
        assert_eq!(both.as_deref(), Ok("Look at src, Zig; {other} { src"));
        assert!(given(&[]).is_err_and(|why| why.contains("`path` is missing (where)")));
        assert!(
            given(&[("path", "x"), ("paht", "y")])
                .is_err_and(|why| why.contains("no argument `paht`"))
        );
    }
}
