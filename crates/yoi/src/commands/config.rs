//! `yoi config`: what is in force, from where, and a file to begin with.

use crate::cli::{ConfigAction, JsonArgs};
use crate::compose::model::{self, describe, patience};
use crate::compose::switches::switched;
use crate::config::file::{File, Waits};
use crate::config::{Config, Known, Pending, Source};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::{disk, make_private};
use crate::project::Project;
use crate::show::out;
use schemars::schema_for;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

/// A file that changes nothing until a line is uncommented.
const EXAMPLE: &str = r#"# yoi's configuration. Every key is optional; `yoi config show` prints what is in force and from where.

# model = "openai/gpt-4.1"              # or anthropic/…, openrouter/…, gemini/…, ollama/…, a provider named below, offline

# instructions = true                   # false: AGENTS.md and CLAUDE.md are not read

# [providers.local]                     # any endpoint that speaks one of two languages
# api = "openai-chat"                   # chat completions; or anthropic: Messages
# base_url = "http://127.0.0.1:8080/v1"
# key = { env = "LOCAL_KEY" }           # or { file = "~/.keys/local" } or { command = ["pass", "show", "local"] }
# timeouts = { connect_s = 10, first_byte_s = 120, between_bytes_s = 60 }
# attempts = 5                          # how often a request that fails in passing is sent, 1 to 20

# [models."local/x"]                    # any model, by its whole name
# price = { input = 0.5, output = 1.5, cached_input = 0.05, cache_write = 0.6 }  # dollars for a million tokens
# max_output = 32000                    # tokens of one answer

# [limits]
# max_steps = 500                       # model requests in one run
# max_cost_usd = 5.0                    # dollars in one run; the model must have a price
# tool_concurrency = 8                  # calls at once, 1 to 32

# [[permissions.rules]]                 # the last rule that matches decides; a denial of an outer file stands
# tool = "Write"                        # a tool's name, or *
# path = "**/.env*"                     # relative to the project, or absolute
# decision = "deny"                     # allow, ask or deny; ask is a refusal while nobody can be asked

# [[permissions.rules]]                 # commands are judged part by part; what cannot be known is allowed by no such rule
# tool = "Bash"
# program = "git"                       # a name, or a path where that is how it is called
# subcommand = ["status", "diff"]       # the first argument that is no option; without it any
# decision = "allow"

# [permissions]
# secrets = ["*.key", "deploy/vault/**"]  # more files that may hold secrets, besides .env*, *.pem and the like

# [features."builtin:shell"]
# enabled = true
# required = false                      # true: nothing starts without it
# grant = { process = ["git"] }         # in the place of the defaults of that kind; an empty list leaves nothing

# [sandbox]
# mode = "workspace-write"              # read-only, workspace-write or off

# [state]
# any_file_system = false               # true: keep sessions on network and FUSE file systems too
"#;

pub(crate) fn run(action: &ConfigAction, env: &Env) -> Result<Exit, Failure> {
    match action {
        ConfigAction::Show(args) => show(args, env),
        ConfigAction::Path => {
            let files = Project::around(env).files;
            for path in Config::paths(env)?.into_iter().chain(files) {
                out::line(&path.display().to_string());
            }
            Ok(Exit::Done)
        }
        ConfigAction::Check => {
            let config = Config::load(env)?;
            config.layers()?;
            switched(&config).map(drop)?;
            if let Some(warning) = config.warning() {
                out::line(&warning);
            }
            for (path, there) in &config.files {
                out::line(&format!("{}: {}", authority::escape(path), if *there { "good" } else { "not there" }));
            }
            for asked in &config.pending {
                out::line(&format!("{}: {} is not granted (yoi grant)", asked.source, asked.key));
            }
            unread(&config);
            Ok(Exit::Done)
        }
        ConfigAction::Init => init(env),
        ConfigAction::Schema => {
            let schema = serde_json::to_value(schema_for!(File));
            out::json(&schema.map_err(|e| Failure::new(Exit::Internal, e.to_string()))?);
            Ok(Exit::Done)
        }
    }
}

fn init(env: &Env) -> Result<Exit, Failure> {
    let dir = env.config_dir()?;
    make_private(&dir)?;
    let path = dir.join("config.toml");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::new(Exit::Usage, format!("{} exists already", authority::escape(&path)))
                .help("edit it; `yoi config check` reads it"));
        }
        Err(error) => return Err(disk(&path, &error)),
    };
    file.write_all(EXAMPLE.as_bytes()).map_err(|e| disk(&path, &e))?;
    out::line(&format!("wrote {}", authority::escape(&path)));
    Ok(Exit::Done)
}

fn show(args: &JsonArgs, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load(env)?;
    let rows = rows(&config);
    if args.json {
        let row = |(key, value, source): &_| json!({ "key": key, "value": value, "source": source });
        let asked = |asked: &Pending| json!({ "key": asked.key, "value": asked.value, "source": asked.source, "pending": true });
        let values = rows.iter().map(row).chain(config.pending.iter().map(asked));
        out::json(&values.collect());
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    for (key, value, source) in rows {
        out::line(&format!("{key:width$}  {value}  ({source})"));
    }
    if !config.pending.is_empty() {
        out::line("pending, of no effect until granted (yoi grant):");
    }
    for asked in &config.pending {
        out::line(&format!("{}  {}  ({})", asked.key, asked.value, asked.source));
    }
    unread(&config);
    Ok(Exit::Done)
}

/// Says why grants do not count that there are.
fn unread(config: &Config) {
    if let Some(failure) = &config.grants_unread {
        failure.say();
    }
}

/// Rules, and names of files that may hold secrets.
fn permissions(config: &Config) -> impl Iterator<Item = (String, String, Source)> {
    let rules = config.rules.iter().flat_map(|layer| &layer.rules);
    let rules = rules.map(|written| (written.key(), written.rule.to_string(), written.source.clone()));
    let names = config.secrets.iter();
    rules.chain(names.map(|name| ("permissions.secrets".to_owned(), name.value.clone(), name.source.clone())))
}

/// Every value in force: key, value, source.
fn rows(config: &Config) -> Vec<(String, String, Source)> {
    let mut rows = vec![match &config.model {
        Some(model) => ("model".to_owned(), model.value.clone(), model.source.clone()),
        None => ("model".to_owned(), "chosen at each run".to_owned(), "built-in".to_owned()),
    }];
    for (name, provider) in &config.providers {
        let key = provider
            .value
            .key
            .as_ref()
            .map_or_else(|| "no key".to_owned(), |key| format!("key from {}", describe(key)));
        let value = format!("{} at {}, {key}", provider.value.api.text(), provider.value.base_url);
        rows.push((format!("providers.{name}"), value, provider.source.clone()));
        let (waits, retry) = patience(&provider.value);
        let set = provider.value.timeouts != Waits::default();
        let value = format!(
            "connect_s = {}, first_byte_s = {}, between_bytes_s = {}",
            waits.connect.as_secs_f64(),
            waits.first_byte.as_secs_f64(),
            waits.between_bytes.as_secs_f64()
        );
        let source = |key: &str, set: bool| if set { provider.place(key).clone() } else { "built-in".to_owned() };
        rows.push((format!("providers.{name}.timeouts"), value, source("timeouts", set)));
        let attempts = retry.attempts.to_string();
        rows.push((
            format!("providers.{name}.attempts"),
            attempts,
            source("attempts", provider.value.attempts.is_some()),
        ));
    }
    for (name, Known { price, max_output }) in &config.models {
        let price = price.as_ref().and_then(|price| Some((model::amounts(price.value.counted()?), &price.source)));
        rows.extend(price.map(|(text, source)| (format!("models.\"{name}\".price"), text, source.clone())));
        let limit = max_output.as_ref().map(|most| (most.value.to_string(), most.source.clone()));
        rows.extend(limit.map(|(text, source)| (format!("models.\"{name}\".max_output"), text, source)));
    }
    rows.push(match &config.max_cost {
        Some(cost) => ("limits.max_cost_usd".to_owned(), cost.value.to_string(), cost.source.clone()),
        None => ("limits.max_cost_usd".to_owned(), "none".to_owned(), "built-in".to_owned()),
    });
    rows.push(("limits.max_steps".to_owned(), config.max_steps.value.to_string(), config.max_steps.source.clone()));
    let calls = &config.tool_concurrency;
    rows.push(("limits.tool_concurrency".to_owned(), calls.value.to_string(), calls.source.clone()));
    rows.extend(permissions(config));
    for (id, switches) in &config.features {
        let required = if switches.expected.is_some() { &switches.expected } else { &switches.required };
        let flags = [("enabled", &switches.enabled), ("required", required)];
        let set = flags.into_iter().filter_map(|(key, flag)| flag.as_ref().map(|flag| (key, flag)));
        for (key, flag) in set {
            rows.push((format!("features.\"{id}\".{key}"), flag.value.to_string(), flag.source.clone()));
        }
        for granted in &switches.grants {
            let table = serde_json::to_string(&granted.table).unwrap_or_default();
            rows.push((format!("features.\"{id}\".grant"), table, granted.at.clone()));
        }
        for (key, setting) in &switches.settings {
            rows.push((format!("features.\"{id}\".{key}"), setting.value.to_string(), setting.source.clone()));
        }
    }
    rows.push(("sandbox.mode".to_owned(), config.sandbox.value.text().to_owned(), config.sandbox.source.clone()));
    let any = &config.any_file_system;
    rows.push(("state.any_file_system".to_owned(), any.value.to_string(), any.source.clone()));
    let instructions = &config.instructions;
    rows.push(("instructions".to_owned(), instructions.value.to_string(), instructions.source.clone()));
    rows
}
