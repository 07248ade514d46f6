//! `yoi run --agent FILE`: a description of an agent. It adds a prompt and features, and narrows tools and limits. A file that
//! is not among the person's own agents may only narrow.

use crate::compose::model;
use crate::config::file;
use crate::config::{AttachedFeature, Attaching, Detacher, Source, Sourced};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::limits::LimitsConfig;
use crate::plain_file::{self, Links};
use authority::text::{Lines, escape_within};
use llm_worker::Effort;
use pod::record::LaunchedAgent;
use schemars::JsonSchema;
use serde::Deserialize;
use session_store::Digest;
use std::collections::BTreeMap;
use std::path::Path;

/// The directory of the person's own agents, in the directory of their configuration.
pub const OWN: &str = "agents";

/// Bytes of a file, of its prompt with all arguments, and of a description as it is shown.
const MAX_FILE: u64 = 256 * 1024;
const MAX_PROMPT: usize = 64 * 1024;
const MAX_DESCRIPTION: usize = 200;

/// Agents of other programs are Markdown.
const CONVERT: &str = "write a file such as reviewer.toml with description = \"TEXT\" and prompt = \"\"\"TEXT\"\"\"; of a Markdown file, \
     `prompt` is the text below the front matter";

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
#[derive(Debug, Deserialize, JsonSchema)]
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
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Argument")]
struct AgentArgument {
    /// What it means.
    description: String,
    /// Its value where the command line gives none.
    default: Option<String>,
}

/// An agent that was read, with its arguments.
#[derive(Debug)]
pub struct Agent {
    name: String,
    /// What the journal says about it.
    launched: LaunchedAgent,
    /// Whether the file is one of the person's own.
    own: bool,
    /// With the arguments.
    prompt: String,
    file: AgentFile,
}

impl Agent {
    /// Reads a file; `given` are the arguments of the command line.
    pub fn load(path: &Path, given: &[(String, String)], env: &Env) -> Result<Self, Failure> {
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
        let digest = Digest::of(&bytes).to_string();
        let launched = LaunchedAgent {
            file: whole.display().to_string(),
            digest,
        };
        let text = plain_file::text(&bytes).map_err(|why| fail(format!("the file {why}")))?;
        let is_toml = path.extension().is_some_and(|ending| ending == "toml");
        let file: AgentFile = file::parse_as(&text.replace("\r\n", "\n")).map_err(|problem| {
            let fail = |what: &str| {
                Failure::new(Exit::Config, format!("{shown}:{}: {what}", problem.line))
            };
            if is_toml {
                fail(&problem.what).help(problem.help)
            } else {
                fail("an agent file must be TOML").help(CONVERT)
            }
        })?;
        let name = path
            .file_stem()
            .map(|stem| authority::escape(Path::new(stem)))
            .unwrap_or_default();
        let prompt = completed(&file, given).map_err(fail)?;
        if prompt.len() > MAX_PROMPT {
            return Err(fail(format!(
                "the prompt has over {MAX_PROMPT} bytes with its arguments"
            )));
        }
        Ok(Self {
            name,
            launched,
            own: is_own(&path, env),
            prompt,
            file,
        })
    }

    /// For the journal.
    pub fn launched(&self) -> &LaunchedAgent {
        &self.launched
    }

    /// For people.
    pub fn line(&self) -> String {
        let description = escape_within(&self.file.description, Lines::One, MAX_DESCRIPTION);
        format!("agent: {} ({description})", self.name)
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
        match self.file.tools.clone() {
            Some(tools) => attaching.only_tools(Sourced::new(tools, source.clone())),
            None => Ok(()),
        }
    }

    fn source(&self) -> Source {
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
