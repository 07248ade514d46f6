//! `yoi doctor`: what works here, what does not, and the next step.

mod background;

use crate::cli::JsonArgs;
use crate::commands::context;
use crate::commands::left_running::{HELP, LeftRunning};
use crate::commands::models;
use crate::remedy;
use crate::show::{checklist, out};
use authority::text::escape_line;
use authority::{Access, support};
use host::compose::compose;
use host::compose::context_index;
use host::compose::model::{affordable, build, choose, in_the_clear};
use host::compose::roots::Added;
use host::compose::source_check::{self, SourceCheck};
use host::config::Config;
use host::config::file::{Mode, NetworkMode};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::mcp::FoundServer;
use host::pods::{NEWER, Pods};
use knowledge::IndexedSource;
use pod::feature::{FeatureModule, InstallOutcome, estimated_tokens};
use provider::catalog;
use serde_json::json;
use session_store::{ReadError, Reader, Session, Tail};
use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use tui::count;

/// Columns of what a check is about.
const NAMES: usize = 14;

/// How many of the newest sessions are looked at.
const SESSIONS: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Works,
    Note,
    Broken,
}

struct Check {
    about: &'static str,
    state: CheckState,
    text: String,
    help: Option<String>,
}

impl Check {
    fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }
}

/// What programs read; people are told of a server.
const ENDPOINT: &str = "endpoint";

/// What allows namespaces, by who forbids them.
const NAMESPACES_HELP: &str = "allow user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, `sysctl \
    user.max_user_namespaces=10000` elsewhere; in a container, start it with SYS_ADMIN";

/// Checks everything and leaves with 1 if something is broken.
pub(crate) fn run(args: &JsonArgs, env: &Env) -> Result<Exit, Failure> {
    let mut checks = vec![sandbox()];
    checks.push(state(env));
    match Config::load(env) {
        Ok(config) => {
            checks.push(works("configuration", files(&config, env)));
            checks.extend(config.warning().map(|text| note("variables", text)));
            checks.extend(project(&config));
            let found = models::find(&config, env).unwrap_or_default();
            checks.push(model(&config, env, &found));
            let exposed = config
                .providers
                .keys()
                .filter_map(|name| in_the_clear(name, &config));
            checks.extend(
                exposed.map(|text| note("key", text).help("write https:// in its base_url")),
            );
            checks.extend(endpoints(found));
            checks.extend(features(&config, env));
            checks.extend(servers(&config, env));
            checks.extend(sources(&config, env));
            checks.extend(skills(&config, env));
            checks.push(secrets(&config));
            checks.extend(index(&config, env));
        }
        Err(failure) => checks.push(failed("configuration", failure)),
    }
    checks.extend(journals(env));
    checks.extend(background::checks(env));
    let left = LeftRunning::find(env).into_iter();
    checks.extend(
        left.map(|left| note("processes", format!("of a killed run, {}", left.text())).help(HELP)),
    );
    let broken = checks.iter().any(|check| check.state == CheckState::Broken);
    if args.json {
        let row = |c: Check| json!({ "about": c.about, "state": symbol_and_name(c.state).1, "text": c.text, "help": c.help });
        out::json(&checks.into_iter().map(row).collect());
    } else {
        for check in &checks {
            let about = if check.about == ENDPOINT {
                "server"
            } else {
                check.about
            };
            checklist::item(symbol_and_name(check.state).0, about, NAMES, &check.text);
            check
                .help
                .iter()
                .for_each(|help| checklist::below("help:", help));
        }
    }
    Ok(if broken { Exit::Failed } else { Exit::Done })
}

/// The mark for people, and the word for programs.
fn symbol_and_name(state: CheckState) -> (&'static str, &'static str) {
    match state {
        CheckState::Works => ("✓", "works"),
        CheckState::Note => ("-", "note"),
        CheckState::Broken => ("✗", "broken"),
    }
}

fn works(about: &'static str, text: impl Into<String>) -> Check {
    Check {
        about,
        state: CheckState::Works,
        text: text.into(),
        help: None,
    }
}

fn note(about: &'static str, text: impl Into<String>) -> Check {
    Check {
        state: CheckState::Note,
        ..works(about, text)
    }
}

fn broken(about: &'static str, text: impl Into<String>) -> Check {
    Check {
        state: CheckState::Broken,
        ..works(about, text)
    }
}

fn failed(about: &'static str, failure: Failure) -> Check {
    Check {
        help: failure.help.as_ref().map(remedy::help),
        ..broken(about, failure.message)
    }
}

fn sandbox() -> Check {
    let support = support();
    let confined = format!(
        "Landlock ABI {}{} and seccomp: commands can write to the project, directories that --add-write-dir names, private directories for temporary files and caches, and /dev/shm; in read-only mode, only to the private directories",
        support.landlock_abi,
        // Later versions are not told apart.
        if support.landlock_abi >= 6 {
            " or later"
        } else {
            ""
        },
    );
    match support.missing() {
        None if support.landlock_abi >= 6 => works("sandbox", confined),
        None => note(
            "sandbox",
            format!("{confined}; they can signal your other processes"),
        )
        .help("use Linux 6.12 or later"),
        Some(missing) => broken(
            "sandbox",
            format!(
                "this kernel has no {missing}, so commands cannot be confined and are not available"
            ),
        )
        .help("use Linux 5.13 or later with both enabled, or --sandbox off"),
    }
}

fn state(env: &Env) -> Check {
    let tried = Pods::of(env).and_then(|pods| {
        pods.prepare()?;
        let probe = pods.root().join(format!(".doctor-{}", std::process::id()));
        let written = fs::write(&probe, b"yoi").and_then(|()| fs::remove_file(&probe));
        written.map_err(|e| host::pods::disk(&probe, &e))?;
        Ok(pods.root())
    });
    tried.map_or_else(
        |failure| failed("state", failure),
        |root| works("state", format!("{} can be written", env.shown(&root))),
    )
}

fn files(config: &Config, env: &Env) -> String {
    let read: Vec<String> = config
        .files
        .iter()
        .filter(|(_, there)| *there)
        .map(|(path, _)| env.shown(path))
        .collect();
    if read.is_empty() {
        "no file; all settings have their defaults (`yoi config init` creates a file)".to_owned()
    } else {
        read.join(", ")
    }
}

/// What the project's file asks for, and whether what was granted counts.
fn project(config: &Config) -> Vec<Check> {
    let asks = |text: String| {
        let keys: Vec<String> = config
            .pending
            .iter()
            .map(|asked| format!("{} ({})", asked.key, asked.source))
            .collect();
        note("project", text).help(format!(
            "`yoi grant` lists and grants these entries: {}",
            keys.join(", ")
        ))
    };
    let unread = config
        .grants_unread
        .clone()
        .map(|failure| failed("grants", failure));
    config.asks().into_iter().map(asks).chain(unread).collect()
}

/// The model that would answer; one at an endpoint that was asked must be there.
fn model(config: &Config, env: &Env, found: &[models::EndpointModels]) -> Check {
    let choice = choose(config, env);
    let provider = catalog::split(&choice.name).map(|(provider, _)| provider);
    let silent = found
        .iter()
        .find(|endpoint| !endpoint.ready && Some(endpoint.provider.as_str()) == provider);
    if let Some(endpoint) = silent.filter(|endpoint| endpoint.asked) {
        let text = format!(
            "{} ({}) does not answer: {}",
            choice.name, choice.why, endpoint.state
        );
        return broken("model", text)
            .help("start that provider, fix its base_url, or choose another model (`yoi models`)");
    }
    let built = build(&ambient::claim(), &choice.name, config, env);
    match built.and_then(|built| affordable(built.model.name(), built.model.price(), config, env)) {
        Ok(()) => works("model", format!("{} ({})", choice.name, choice.why)),
        Err(failure) => failed("model", failure),
    }
}

/// Endpoints that answer, with the line that uses them, and those that were asked in vain.
fn endpoints(found: Vec<models::EndpointModels>) -> Vec<Check> {
    let silent: Vec<_> = found
        .iter()
        .filter(|found| found.asked && !found.ready)
        .map(|found| found.provider.as_str())
        .collect();
    let silent = (!silent.is_empty()).then(|| {
        note(
            ENDPOINT,
            format!("asked, but not running: {}", silent.join(", ")),
        )
    });
    let ready = found.into_iter().filter(|endpoint| endpoint.ready);
    let check = |endpoint: models::EndpointModels| {
        let line = endpoint
            .models
            .first()
            .map(|model| format!("model = \"{model}\" in the configuration uses it"));
        let text = format!(
            "{}: {}, {}",
            endpoint.provider,
            endpoint.state,
            count(endpoint.models.len() as u64, "model")
        );
        Check {
            help: line,
            ..works(ENDPOINT, text)
        }
    };
    ready.map(check).chain(silent).collect()
}

/// The plan, and whether commands could run: the same check that a run makes.
fn features(config: &Config, env: &Env) -> Vec<Check> {
    let ambient = ambient::claim();
    let mut composed = match compose(&ambient, config, env, Added::default()) {
        Err(failure) => return vec![failed("features", failure)],
        Ok(composed) => composed,
    };
    let plan = composed.plan();
    let live = plan.features.iter().filter(|f| f.outcome.is_live()).count();
    let off = plan
        .features
        .iter()
        .filter(|f| f.outcome == InstallOutcome::Disabled)
        .count();
    let text = format!("{live} enabled, {off} disabled (in the plan for this directory)");
    let whole = plan.features.iter().all(|f| {
        matches!(
            f.outcome,
            InstallOutcome::Installed | InstallOutcome::Disabled
        )
    });
    let mut checks = vec![match plan.unmet.first() {
        Some(unmet) => broken(
            "features",
            format!("{} is required: {}", unmet.feature_id, unmet.reason),
        ),
        None if whole => works("features", text),
        None => note("features", text).help("`yoi features` shows why"),
    }];
    checks.extend(match composed.spawner(&ambient, env, "doctor") {
        Err(failure) => Some(failed("commands", failure)),
        Ok(Err(why)) => Some(note("commands", format!("cannot run here: {why}"))),
        Ok(Ok(_)) if composed.mode == Mode::Off => Some(
            note("commands", "the sandbox is off: commands have all of your permissions")
                .help("set mode = \"workspace-write\" under [sandbox] to confine commands"),
        ),
        Ok(Ok(_)) if config.network.value == NetworkMode::On => {
            Some(note("commands", "the network of this machine, also its own servers; without namespaces of their own"))
        }
        Ok(Ok(spawner)) => Some(match spawner.try_confinement() {
            Ok(None) if config.network.value == NetworkMode::Hosts => {
                let hosts = host::config::hosts::all(&config.hosts.value).len();
                works("commands", format!("namespaces of their own, and a proxy to {hosts} hosts of `hosts`"))
            }
            Ok(None) => works("commands", "namespaces of their own: they reach servers of each other, and no other sockets"),
            Err(error) => broken("commands", format!("cannot run here: {error}")),
            Ok(Some(why)) => note(
                "commands",
                format!("no namespaces of their own ({why}): they can open no sockets, what they are refused is not counted, and a process may outlive a kill of yoi"),
            )
            .help(NAMESPACES_HELP),
        }),
    });
    checks
}

/// The providers of issues and the like, each asked about its token and its project.
fn sources(config: &Config, env: &Env) -> Vec<Check> {
    let checks = source_check::check(&ambient::claim(), config, env).into_iter();
    let check = |SourceCheck { name, found }| match found {
        Ok(lines) => works("provider", format!("{name}: {}", lines.join("; "))),
        Err(why) => broken("provider", format!("{name}: {why}")),
    };
    checks.map(check).collect()
}

/// The MCP servers of the person, of which none is started; about so much text each adds to a request.
fn servers(config: &Config, env: &Env) -> Vec<Check> {
    let found = config.servers(env);
    let problems = found.problems.iter();
    let mut checks: Vec<Check> = problems
        .map(|what| note("MCP", what.clone()).help("`yoi mcp list` lists the servers"))
        .collect();
    for FoundServer { pin, .. } in &found.all {
        if let Some(gone) = missing(&pin.launch.command) {
            let text = format!("{}: {} does not exist", pin.name, escape_line(gone));
            let again = format!(
                "install it again, or add the server with another path; `yoi mcp remove {}` removes it",
                pin.name
            );
            checks.push(note("MCP", text).help(again));
        }
    }
    let whole = found.all.iter();
    let whole = whole.filter(|server| missing(&server.pin.launch.command).is_none());
    let named = whole.map(|server| {
        let tools = server.feature.descriptor().declared_tools;
        let bytes = tools.iter().map(|tool| tool.bytes() as u64).sum();
        let tools = count(tools.len() as u64, "tool");
        let tokens = estimated_tokens(bytes);
        format!("{} ({tools}, about {tokens} tokens)", server.pin.name)
    });
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        checks.push(works("MCP", named.join(", ")));
    }
    checks
}

/// The program of a server, or a file among its words, that is gone. A word without an extension may be one that the server
/// creates.
fn missing(command: &[String]) -> Option<&str> {
    let mut words = command.iter().map(String::as_str);
    let program = words.next();
    let files = words.filter(|word| Path::new(word).extension().is_some());
    let mut all = program.into_iter().chain(files);
    all.find(|word| Path::new(word).is_absolute() && !Path::new(word).exists())
}

/// The skills and commands, where there are some, and what is wrong with others.
fn skills(config: &Config, env: &Env) -> Vec<Check> {
    let found = config.skills(env);
    let check = |about, noun, there: usize, problems: &[String]| {
        let all = count(there as u64, noun);
        match problems.first() {
            Some(first) => Some(
                note(about, format!("{all}; {first}")).help("`yoi features` shows all problems"),
            ),
            None => (there > 0).then(|| works(about, all)),
        }
    };
    let skills = check("skills", "skill", found.skills.len(), &found.problems);
    let own = check(
        "slash",
        "command",
        found.commands.len(),
        &found.command_problems,
    );
    skills.into_iter().chain(own).collect()
}

/// What is kept from being read unasked, and how far that goes.
fn secrets(config: &Config) -> Check {
    let added = match config.secrets.len() {
        0 => String::new(),
        1 => ", and 1 name of the configuration".to_owned(),
        more => format!(", and {more} names of the configuration"),
    };
    let text = format!(
        "reading .env*, *.pem and similar files{added} needs a rule, and searches skip them; a command that does not name such a file can still read it"
    );
    note("secrets", text)
        .help("keep secrets outside of the project; list further file names in `secrets` under [permissions]")
}

/// The index of the project's documents, if there is one: all of it is checked.
fn index(config: &Config, env: &Env) -> Vec<Check> {
    let there = context_index::dir(env, config).is_ok_and(|dir| dir.is_dir());
    if !there {
        return Vec::new();
    }
    let index = match context::index(config, env, Access::ReadWrite) {
        Ok(index) => index,
        Err(failure) => return vec![failed("context", failure)],
    };
    let sources = index.check().and_then(|()| index.read()?.sources());
    let checked = match sources {
        Ok(sources) => sources,
        Err(error) => {
            let Failure { message, help, .. } = context::failure(error);
            let help = help.as_ref().map(remedy::help);
            return vec![Check {
                help,
                ..note("context", message)
            }];
        }
    };
    let row = |source: &IndexedSource| {
        let text = context::health(source);
        match source.error {
            None => works("context", text),
            Some(_) => note("context", text).help("`yoi context sync` tries again"),
        }
    };
    checked.iter().map(row).collect()
}

/// The newest sessions: those that do not read, and those a crash left open.
fn journals(env: &Env) -> Vec<Check> {
    let Ok(pods) = Pods::of(env) else {
        return Vec::new();
    };
    let mut names = pods.names().unwrap_or_default();
    names.sort_by_cached_key(|name| Reverse(pods.touched(name)));
    let mut intact = 0;
    let mut checks = Vec::new();
    for name in names.iter().take(SESSIONS) {
        let dir = pods.dir(name);
        match Reader::open(&dir).and_then(|reader| reader.tail()) {
            Ok(Tail::Cut(_, bytes)) if !matches!(Session::owner(&dir), Ok(Some(_))) => checks.push(
                note("journal", format!("{name}: {} after the last complete record", count(bytes, "byte"))).help(
                    format!(
                        "`yoi run --pod {name} \"PROMPT\"` moves these bytes to the quarantine directory of the pod"
                    ),
                ),
            ),
            Ok(_) => intact += 1,
            Err(ReadError::NoSuch(_)) => checks.push(
                note("journal", format!("{name} is empty: its run ended before the first record")).help(format!(
                    "`yoi run --pod {name} \"PROMPT\"` runs a prompt in it; `yoi rm {name}` moves it to the trash"
                )),
            ),
            Err(error @ ReadError::Format { .. }) => {
                checks.push(note("journal", format!("{name}: {error}")).help(NEWER));
            }
            Err(error) => {
                checks.push(
                    broken("journal", format!("{name}: {error}")).help(format!("`yoi verify {name}` lists the damage")),
                );
            }
        }
    }
    let looked = match names.len() {
        0 => "there is no pod yet".to_owned(),
        all if all > SESSIONS => {
            format!("{intact} of the {SESSIONS} newest of {all} journals are intact")
        }
        all => format!("{intact} of {} intact", count(all as u64, "journal")),
    };
    checks.insert(0, works("journals", looked));
    checks
}
