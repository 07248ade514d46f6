//! `yoi config`: what is in force, from where, and a file to begin with.

use crate::cli::{ConfigAction, JsonArgs};
use crate::commands::features::source_text;
use crate::report::Report;
use crate::show::out;
use host::compose::keys::describe;
use host::compose::model::{self, patience, waits};
use host::compose::switches::switched;
use host::config::file::{File, ProviderConfig, TimeoutsConfig};
use host::config::{Attaching, Config, ModelSettings, PendingGrant, Source, Sourced, Switches};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::limits::LIMITS;
use host::pods::{disk, make_private};
use host::project::Project;
use provider::{Timeouts, catalog};
use schemars::schema_for;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

/// A file that changes nothing until a line is uncommented.
const EXAMPLE: &str = r#"# yoi's configuration. Every key is optional; `yoi config show` prints the values in force and their sources.

# model = "openai/gpt-4.1"              # or anthropic/…, openrouter/…, gemini/…, ollama/…, a provider named below, offline

# ca_file = "~/corp.pem"                # certificates in PEM form for providers, besides the system's; not in a project's file

# instructions = true                   # false: yoi does not read AGENTS.md and CLAUDE.md

# [providers.local]                     # a provider: a server with one of four APIs
# api = "openai-chat"                   # Chat Completions; or "openai-responses", "anthropic" (Messages) or "gemini"
# base_url = "http://127.0.0.1:8080/v1"
# key = { env = "LOCAL_KEY" }           # or { file = "~/.keys/local" } or { command = ["pass", "show", "local"] }
# timeouts = { connect_s = 10, first_byte_s = 300, between_bytes_s = 120 }
# attempts = 20                         # maximum number of attempts for one request, 1 to 20; they end after about 3 minutes

# [models."local/x"]                    # a model, by its full name
# price = { input = 0.5, output = 1.5, cached_input = 0.05, cache_write = 0.6 }  # US dollars per million tokens
# max_output = 32000                    # maximum number of tokens in one answer
# effort = "high"                       # how much it thinks: none, minimal, low, medium, high or max; `yoi models` shows which it has
# thinking = true                       # ask for the text of its thinking; `yoi log --full` and the screen show it
# context = 128000                      # maximum number of tokens in a request and its answer together
# timeouts = { first_byte_s = 900 }     # as those of its provider, for this model alone

# [secrets]                             # for features with grant = { secrets = ["tracker"] }
# tracker = { env = "TRACKER_TOKEN" }   # or { file = "~/.keys/tracker" } or { command = ["pass", "show", "tracker"] }

# [limits]
# max_steps = 500                       # maximum number of steps (requests to the model) in one run
# max_cost_usd = 5.0                    # maximum cost of one run in US dollars; the model must have a price
# max_tokens = 2000000                  # maximum number of tokens of one run, read and written
# max_wall_s = 3600                     # maximum time of one run in seconds, without what it waits for a person
# tool_concurrency = 8                  # maximum number of calls that run at the same time, 1 to 32

# [limits.pod]                          # limits of a pod, over all its runs and starts
# max_steps = 5000
# max_cost_usd = 50.0
# max_tokens = 20000000
# max_wall_s = 86400

# [context]
# prune_at = 75                         # percent of the model's context window that a request needs before old results leave it, 10 to 95
# compact_at = 85                       # percent of it that a request needs before old steps leave it, 10 to 95; words stay
# protect_tokens = 40000                # the newest tokens, in which results stay whole; at most a quarter of the window

# [[permissions.rules]]                 # the last matching rule decides; a denial in an earlier file is final
# tool = "Write"                        # the name of a tool, or * for every tool
# path = "**/.env*"                     # relative to the project, or absolute
# decision = "deny"                     # allow, ask (the call needs your approval) or deny

# [[permissions.rules]]                 # each program that a command line runs needs a rule of its own
# tool = "Bash"
# program = "git"                       # a name, or the path by which it is called
# subcommand = ["status", "diff"]       # the first argument that is not an option; without this key: any
# decision = "allow"

# [permissions]
# secrets = ["*.key", "deploy/vault/**"]  # files that may hold secrets, in addition to .env*, *.pem and others

# [features."builtin:shell"]
# enabled = true
# required = false                      # true: no pod starts without this feature
# grant = { process = ["git"] }         # replaces the default grant of that kind; an empty list grants nothing

# [profiles.careful.features."builtin:loop-detect"]   # enabled by --profile careful
# window = 4

# [mcp]
# defer = 5                             # percent of the model's context window that tools of MCP servers take before the model has to search for them
# always = ["mcp__files__read_file"]    # tools that it never has to search for

# [sandbox]
# mode = "workspace-write"              # read-only, workspace-write or off
# network = "loopback"                  # of commands: none, loopback, hosts or on
# hosts = ["preset:rust"]               # with network = "hosts"; names, or preset:rust, node, python, debian, go, maven

# [state]
# any_file_system = false               # true: pods may be stored on network and FUSE file systems

# [terminal]
# vi_keys = false                       # true: inputs are written with the keys of vi; not in a project's file

# [embeddings]                          # vectors of documents for `yoi context`; not in a project's file
# kind = "static"                       # none, static, openai or ollama
# dir = "/path"                         # with model.safetensors and tokenizer.json
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
            switched(&config, env).map(drop)?;
            for (name, features) in &config.profiles {
                let place = features
                    .values()
                    .next()
                    .map_or("", |switches| switches.at.as_str());
                let mut attached = config.clone();
                Attaching::new(&mut attached, env)
                    .profile(&Sourced::new(name.clone(), place.to_owned()))?;
                switched(&attached, env).map(drop)?;
            }
            if let Some(warning) = config.warning() {
                out::line(&warning);
            }
            for (path, there) in &config.files {
                let state = if *there {
                    "valid"
                } else {
                    "this file does not exist; it is optional"
                };
                out::line(&format!("{}: {state}", env.shown(path)));
            }
            for asked in &config.pending {
                out::line(&format!(
                    "{}: {} is pending; `yoi grant` lists it",
                    asked.source, asked.key
                ));
            }
            unread(&config);
            Ok(Exit::Done)
        }
        // Answered before the environment is read.
        ConfigAction::Help(_) => Ok(Exit::Done),
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
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(
                Failure::new(Exit::Usage, format!("{} already exists", env.shown(&path)))
                    .help("edit the file, then run `yoi config check`"),
            );
        }
        Err(error) => return Err(disk(&path, &error)),
    };
    file.write_all(EXAMPLE.as_bytes())
        .map_err(|e| disk(&path, &e))?;
    out::line(&format!("wrote {}", env.shown(&path)));
    Ok(Exit::Done)
}

fn show(args: &JsonArgs, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load(env)?;
    let rows = rows(&config);
    if args.json {
        let row =
            |(key, value, source): &_| json!({ "key": key, "value": value, "source": source });
        let asked = |asked: &PendingGrant| json!({ "key": asked.key, "value": asked.value, "source": asked.source, "pending": true });
        let values = rows.iter().map(row).chain(config.pending.iter().map(asked));
        out::json(&values.collect());
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    for (key, value, source) in rows {
        out::line(&format!(
            "{key:width$}  {value}  ({})",
            source_text(&source)
        ));
    }
    if !config.pending.is_empty() {
        out::line("pending, without effect until you grant the entry with `yoi grant`:");
    }
    for asked in &config.pending {
        out::line(&format!(
            "{}  {}  ({})",
            asked.key, asked.value, asked.source
        ));
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

/// Key, value, source.
type SettingRow = (String, String, Source);

fn row<T: ToString>(key: impl Into<String>, set: &Sourced<T>) -> SettingRow {
    (key.into(), set.value.to_string(), set.source.clone())
}

/// What need not be set, and what stands for it where it is not.
fn optional<T: ToString>(key: &str, set: Option<&Sourced<T>>, without: &str) -> SettingRow {
    set.map_or_else(
        || (key.to_owned(), without.to_owned(), "built-in".to_owned()),
        |set| row(key, set),
    )
}

/// What is set of one feature; `key` is its key.
fn feature_rows(key: &str, switches: &Switches) -> Vec<SettingRow> {
    let required = switches.expected.as_ref().or(switches.required.as_ref());
    let mut rows: Vec<SettingRow> = switches
        .enabled
        .iter()
        .map(|flag| row(format!("{key}.enabled"), flag))
        .collect();
    rows.extend(required.map(|flag| row(format!("{key}.required"), flag)));
    for granted in &switches.grants {
        let table = serde_json::to_string(&granted.table).unwrap_or_default();
        rows.push((format!("{key}.grant"), table, granted.at.clone()));
    }
    rows.extend(
        switches
            .settings
            .iter()
            .map(|(name, setting)| row(format!("{key}.{name}"), setting)),
    );
    rows
}

fn shown(waits: &Timeouts) -> String {
    let [connect, first, between] =
        [waits.connect, waits.first_byte, waits.between_bytes].map(|wait| wait.as_secs_f64());
    format!("connect_s = {connect}, first_byte_s = {first}, between_bytes_s = {between}")
}

/// Every value in force.
fn rows(config: &Config) -> Vec<SettingRow> {
    let mut rows = vec![optional(
        "model",
        config.model.as_ref(),
        "chosen at each run",
    )];
    for (name, endpoint) in &config.providers {
        let ProviderConfig {
            api,
            base_url,
            key,
            timeouts,
            attempts,
            ..
        } = &endpoint.value;
        let key = key.as_ref().map_or_else(
            || "no key".to_owned(),
            |key| format!("key from {}", describe(key)),
        );
        let value = format!("{} at {base_url}, {key}", api.text());
        rows.push((format!("providers.{name}"), value, endpoint.source.clone()));
        let (timeouts_in_force, retry) = patience(&endpoint.value);
        let value = shown(&timeouts_in_force);
        let source = |key: &str, set: bool| {
            if set {
                endpoint.place(key).clone()
            } else {
                "built-in".to_owned()
            }
        };
        let set = *timeouts != TimeoutsConfig::default();
        rows.push((
            format!("providers.{name}.timeouts"),
            value,
            source("timeouts", set),
        ));
        let source = source("attempts", attempts.is_some());
        rows.push((
            format!("providers.{name}.attempts"),
            retry.attempts.to_string(),
            source,
        ));
    }
    for (
        name,
        ModelSettings {
            price,
            max_output,
            effort,
            thinking,
            images,
            context,
            timeouts,
        },
    ) in &config.models
    {
        let price = price
            .as_ref()
            .and_then(|price| Some((model::amounts(price.value.counted()?), &price.source)));
        rows.extend(
            price.map(|(text, source)| (format!("models.\"{name}\".price"), text, source.clone())),
        );
        rows.extend(
            max_output
                .as_ref()
                .map(|most| row(format!("models.\"{name}\".max_output"), most)),
        );
        rows.extend(effort.as_ref().map(|Sourced { value, source }| {
            let key = format!("models.\"{name}\".effort");
            (key, value.word().to_owned(), source.clone())
        }));
        rows.extend(
            thinking
                .as_ref()
                .map(|shown| row(format!("models.\"{name}\".thinking"), shown)),
        );
        rows.extend(
            images
                .as_ref()
                .map(|seen| row(format!("models.\"{name}\".images"), seen)),
        );
        rows.extend(
            context
                .as_ref()
                .map(|most| row(format!("models.\"{name}\".context"), most)),
        );
        rows.extend(timeouts.as_ref().map(|Sourced { value, source }| {
            let provider =
                catalog::split(name).and_then(|(provider, _)| config.providers.get(provider));
            let usual = provider.map_or(Timeouts::USUAL, |provider| patience(&provider.value).0);
            (
                format!("models.\"{name}\".timeouts"),
                shown(&waits(*value, usual)),
                source.clone(),
            )
        }));
    }
    for (name, Sourced { value, source }) in &config.named_secrets {
        rows.push((
            format!("secrets.{name}"),
            format!("from {}", describe(value)),
            source.clone(),
        ));
    }
    rows.push(row("context.compact_at", &config.compact_at));
    rows.push(row("context.protect_tokens", &config.protect_tokens));
    rows.push(row("context.prune_at", &config.prune_at));
    let mut limits: Vec<_> = LIMITS.iter().collect();
    limits.sort_by_key(|limit| limit.key);
    for (of, set) in [
        ("limits", &config.limits),
        ("limits.pod", &config.pod_limits),
    ] {
        rows.extend(
            limits
                .iter()
                .map(|limit| optional(&format!("{of}.{}", limit.key), set.get(limit.kind), "none")),
        );
    }
    rows.push(row("limits.tool_concurrency", &config.tool_concurrency));
    if config.mcp_defer.source != "built-in" {
        rows.push(row("mcp.defer", &config.mcp_defer));
    }
    let always = &config.mcp_always;
    if !always.value.is_empty() {
        rows.push((
            "mcp.always".to_owned(),
            always.value.join(", "),
            always.source.clone(),
        ));
    }
    let rules = config.rules.iter().flat_map(|layer| &layer.rules);
    rows.extend(rules.map(|written| {
        (
            written.key(),
            written.rule.to_string(),
            written.source.clone(),
        )
    }));
    rows.extend(
        config
            .secrets
            .iter()
            .map(|name| row("permissions.secrets", name)),
    );
    rows.extend(
        config
            .features
            .iter()
            .flat_map(|(id, switches)| feature_rows(&format!("features.\"{id}\""), switches)),
    );
    for (name, features) in &config.profiles {
        let key = |id: &str| format!("profiles.{name}.features.\"{id}\"");
        rows.extend(
            features
                .iter()
                .flat_map(|(id, switches)| feature_rows(&key(id), switches)),
        );
    }
    rows.push((
        "sandbox.mode".to_owned(),
        config.sandbox.value.text().to_owned(),
        config.sandbox.source.clone(),
    ));
    rows.push((
        "sandbox.network".to_owned(),
        config.network.value.text().to_owned(),
        config.network.source.clone(),
    ));
    rows.push((
        "sandbox.hosts".to_owned(),
        config.hosts.value.join(", "),
        config.hosts.source.clone(),
    ));
    rows.push(row("state.any_file_system", &config.any_file_system));
    rows.push(row("terminal.vi_keys", &config.vi_keys));
    if let Some(file) = &config.ca_file {
        let path = authority::escape(&file.value);
        rows.push(("ca_file".to_owned(), path, file.source.clone()));
    }
    rows.extend(config.embeddings.iter().map(|embeddings| {
        let kind = embeddings.value.text().to_owned();
        (
            "embeddings.kind".to_owned(),
            kind,
            embeddings.source.clone(),
        )
    }));
    rows.push(row("instructions", &config.instructions));
    rows
}
