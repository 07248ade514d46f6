//! `yoi mcp`: servers that are asked once, and kept with what they said then.

use super::mcp_import;
use super::person::{agreed, only_a_person};
use crate::cli::{McpAction, McpAddArgs, McpPinArgs};
use crate::show::out;
use authority::text::{Lines, escape_line, escape_within};
use authority::{Redactor, Secret};
use host::compose::roots::Added;
use host::compose::{self, compose, packages, secrets};
use host::config::{Config, grants};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::mcp::{self as servers, FoundServer};
use host::pods::make_private;
use llm_worker::ToolEffect;
use mcp::{
    Definitions, Fitted, Launch, Once, Own, PinnedTool, ServerPin, ask_once, is_header,
    is_server_name,
};
use pod::feature::{FeatureModule, ToolDeclaration, estimated_tokens};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// How long a server may take to start and to list its tools: one that is installed by its start takes long.
const WAIT: Duration = Duration::from_secs(120);

/// After how long a person is told what is waited for.
const SILENT: Duration = Duration::from_secs(3);

/// The option that opens a directory for reading.
const READ_DIR: &str = "--read-dir";

/// Most differences that are listed.
const MAX_LISTED: usize = 64;

/// The longest description in a list, in bytes.
const MAX_ABOUT: usize = 96;

pub(crate) fn run(action: &McpAction, env: &Env) -> Result<Exit, Failure> {
    match action {
        McpAction::Add(args) => add(args, env),
        McpAction::List(args) => list(args.json, env),
        McpAction::Show(args) => show(&args.name, args.json, env),
        McpAction::Pin(args) => pin(args, env),
        McpAction::Import(args) => mcp_import::run(&args.files, env),
        McpAction::Remove(args) => remove(&args.name, env),
        // Answered before the environment is read, or by a file of its own.
        McpAction::Help(_) | McpAction::Serve(_) => Ok(Exit::Done),
    }
}

fn add(args: &McpAddArgs, env: &Env) -> Result<Exit, Failure> {
    only_a_person("add an MCP server")?;
    if !is_server_name(&args.name) {
        let message = format!(
            "`{}` is not a valid name of a server",
            escape_line(&args.name)
        );
        return Err(
            Failure::new(Exit::Usage, message).help("use 1 to 24 characters of a-z, 0-9 and -")
        );
    }
    if !args.replace && servers::load(env, &args.name)?.is_some() {
        let message = format!("there is an MCP server {} already", args.name);
        return Err(Failure::new(Exit::Usage, message).help("`--replace` replaces it"));
    }
    if let Some((name, _)) = args.header_secret.iter().find(|(name, _)| !is_header(name)) {
        let message = format!(
            "`{}` is not a header that can have a secret",
            escape_line(name)
        );
        return Err(
            Failure::new(Exit::Usage, message).help("use `--bearer SECRET`, or another header")
        );
    }
    let launch = Launch {
        command: command(&args.command, env)?,
        url: args.url.clone(),
        bearer: args.bearer.clone(),
        headers: args.header_secret.iter().cloned().collect(),
        env: args.env.iter().cloned().collect(),
        secrets: args.secret.iter().cloned().collect(),
        network: args.network,
        read: args
            .read_dir
            .iter()
            .map(|dir| compose::lent(&ambient::claim(), env, READ_DIR, dir))
            .collect::<Result<_, _>>()?,
    };
    let (mut pin, problems) = asked(&args.name, launch, env)?;
    (pin.trusted, pin.allowed) = (args.view.trust, args.view.allow_calls);
    pin.rename = renames(&pin, &args.view.rename)?;
    let _lock = grants::lock(env)?;
    let found = servers::save(env, pin)?;
    out::line(&format!("added {}: {}", found.pin.name, told(&found)));
    problems
        .iter()
        .chain(&found.odd)
        .for_each(|what| out::line(&format!("! {what}")));
    if !found.pin.allowed {
        out::line(
            "calls of its tools need your approval, unless a rule of yours or --allow-calls allows them",
        );
    }
    Ok(Exit::Done)
}

/// The command with the path of its program: a later `PATH` may lead elsewhere.
fn command(words: &[String], env: &Env) -> Result<Vec<String>, Failure> {
    let mut words = words.to_vec();
    if let Some(program) = words.first_mut() {
        let path = match program.contains('/') {
            true => env.cwd.join(&*program),
            false => in_path(program, env)?,
        };
        *program = path.into_os_string().into_string().map_err(|path| {
            Failure::new(
                Exit::Usage,
                format!("{} is not UTF-8", authority::escape(path.as_ref())),
            )
        })?;
    }
    Ok(words)
}

/// The file of this name that `PATH` leads to.
fn in_path(program: &str, env: &Env) -> Result<PathBuf, Failure> {
    let path = env.var("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(|path| is_program(path))
        .ok_or_else(|| {
            let message = format!("run {}: no such program in PATH", escape_line(program));
            Failure::new(Exit::Unavailable, message).help("install it or name its path")
        })
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Refuses a path at which there is no program: no option of a server changes that.
fn there(path: &Path) -> Result<(), Failure> {
    match is_program(path) {
        true => Ok(()),
        false => {
            let message = format!("run {}: there is no such program", authority::escape(path));
            Err(Failure::new(Exit::Unavailable, message).help("install it or name its path"))
        }
    }
}

/// The names that a person gave to tools; each is the name of a tool.
fn renames(
    pin: &ServerPin,
    given: &[(String, String)],
) -> Result<BTreeMap<String, String>, Failure> {
    for (tool, _) in given {
        if !pin.tools.iter().any(|of| of.name == *tool) {
            let message = format!("{} has no tool `{}`", pin.name, escape_line(tool));
            return Err(Failure::new(Exit::Usage, message)
                .help("name a tool as its server does; `yoi mcp show` lists the names"));
        }
    }
    Ok(given.iter().cloned().collect())
}

/// Starts a server once, confined as in a run in this directory, or asks the one at its address.
fn asked(name: &str, launch: Launch, env: &Env) -> Result<(ServerPin, Vec<String>), Failure> {
    let ambient = ambient::claim();
    let config = Config::load(env)?;
    // It may be gone since the server was added.
    launch
        .command
        .first()
        .map_or(Ok(()), |program| there(program.as_ref()))?;
    let unavailable =
        |why: String| Failure::new(Exit::Unavailable, format!("MCP server {name}: {why}"));
    if let Some(why) = compose::servers::withheld(packages::mode(&config), &launch) {
        return Err(unavailable(why.to_owned()));
    }
    let redactor = Redactor::default();
    let mut known = BTreeMap::new();
    for id in launch.secret_names() {
        let value = secrets::named(&ambient, &config, env, id)?;
        let secret = Secret::new(&ambient, id, value);
        redactor
            .add(&secret)
            .map_err(|why| Failure::new(Exit::Config, why.to_string()))?;
        known.insert(id.clone(), secret);
    }
    let once = match &launch.url {
        Some(url) => Once::Http {
            net: compose::servers::net(&ambient, url)
                .map_err(|why| Failure::new(Exit::Usage, why))?,
            secrets: known,
        },
        None => child(&launch, &config, env, &known, &unavailable)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    let asked = runtime.block_on(async {
        let mut asking = pin!(ask_once(name, &launch, once, WAIT));
        if let Ok(asked) = timeout(SILENT, &mut asking).await {
            return asked;
        }
        let most = WAIT.as_secs();
        let text = format!(
            "waiting for {name} to answer a greeting and to list its tools, up to {most} s\n"
        );
        // Nobody may read it.
        drop(std::io::stderr().write_all(text.as_bytes()));
        asking.await
    });
    let (greeted, mut defined, problems) = asked.map_err(|gone| {
        let failed = unavailable(redactor.text(&gone.0).into_owned());
        match (&launch.url, launch.network) {
            (Some(_), _) => failed.help("check the address; `--bearer SECRET` and `--header-secret HEADER=SECRET` give it a key"),
            (None, true) => failed.help("`--read-dir DIR` lets it read more; with YOI_LOG=debug, more of its output is in the log"),
            (None, false) => failed.help("`--network` gives it the network, `--read-dir DIR` lets it read more"),
        }
    })?;
    let clean = |text: &mut String| *text = redactor.text(text).into_owned();
    let Definitions { tools, prompts, .. } = &mut defined;
    tools.iter_mut().for_each(|tool| without(tool, &clean));
    for prompt in prompts {
        clean(&mut prompt.name);
        prompt.title.iter_mut().for_each(clean);
        prompt.description.iter_mut().for_each(clean);
        let arguments = prompt.arguments.iter_mut();
        arguments.for_each(|of| clean(&mut of.name));
    }
    let mut server = greeted.server;
    let mut problems = problems;
    [&mut server.name, &mut server.version]
        .into_iter()
        .chain(&mut problems)
        .for_each(clean);
    let pin = ServerPin::new(
        name.to_owned(),
        launch,
        (greeted.era, greeted.protocol, server),
        defined,
    );
    Ok((pin, problems))
}

/// What a server is started with once.
fn child(
    launch: &Launch,
    config: &Config,
    env: &Env,
    known: &BTreeMap<String, Secret>,
    unavailable: &dyn Fn(String) -> Failure,
) -> Result<Once, Failure> {
    let ambient = ambient::claim();
    let mut composed = compose(&ambient, config, env, Added::default())?;
    let cwd = servers::start_dir(env)?;
    make_private(&cwd)?;
    composed = composed.reading(cwd.clone());
    // A pin may be older than what is withheld now.
    for dir in &launch.read {
        composed = composed.reading(compose::lent(&ambient, env, READ_DIR, dir)?);
    }
    let given = launch.secrets.iter().map(|(variable, id)| {
        let value = known.get(id).map(Secret::expose).transpose();
        let value = value.map_err(|error| unavailable(error.to_string()))?;
        Ok((
            OsString::from(variable),
            OsString::from(value.unwrap_or_default()),
        ))
    });
    let secrets = given.collect::<Result<Vec<_>, Failure>>()?;
    authority::become_subreaper(&ambient).map_err(|error| unavailable(error.to_string()))?;
    let tag = format!("mcp-add-{}", std::process::id());
    let spawner = composed
        .spawner(&ambient, env, &tag)?
        .map_err(unavailable)?;
    Ok(Once::Child {
        spawner,
        secrets,
        cwd,
    })
}

/// Has `clean` keep secrets out of a definition.
fn without(tool: &mut PinnedTool, clean: &impl Fn(&mut String)) {
    clean(&mut tool.name);
    tool.title.iter_mut().for_each(clean);
    tool.description.iter_mut().for_each(clean);
    clean_value(&mut tool.input_schema, clean);
    if let Some(schema) = &mut tool.output_schema {
        clean_value(schema, clean);
    }
}

fn clean_value(value: &mut Value, clean: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => clean(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| clean_value(value, clean)),
        Value::Object(fields) => {
            let all = std::mem::take(fields).into_iter();
            fields.extend(all.map(|(mut name, mut value)| {
                clean(&mut name);
                clean_value(&mut value, clean);
                (name, value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn list(json: bool, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load(env)?;
    let found = config.servers(env);
    let is_new = |name: &String| !found.all.iter().any(|server| server.pin.name == *name);
    let pending: Vec<String> = mcp_import::pending(env)
        .into_iter()
        .filter(is_new)
        .collect();
    if json {
        let all: Vec<Value> = found.all.iter().map(described).collect();
        out::json(&json!({ "servers": all, "pending": pending, "problems": found.problems }));
        return Ok(Exit::Done);
    }
    for server in &found.all {
        out::line(&format!(
            "{}  {}  ({})",
            server.pin.name,
            told(server),
            shown(&server.pin.launch)
        ));
    }
    found
        .problems
        .iter()
        .for_each(|problem| out::line(&format!("! {problem}")));
    if !pending.is_empty() {
        let names = escape_line(&pending.join(", ")).into_owned();
        out::line(&format!(
            "the project's .mcp.json names {names}, not added; `yoi mcp import` shows them"
        ));
    }
    if found.all.is_empty() {
        out::line("there are no MCP servers; `yoi mcp add NAME -- COMMAND` adds one");
    }
    Ok(Exit::Done)
}

fn show(name: &str, json: bool, env: &Env) -> Result<Exit, Failure> {
    let server = known(name, env)?;
    if json {
        out::json(&described(&server));
        return Ok(Exit::Done);
    }
    let ServerPin {
        launch, server: of, ..
    } = &server.pin;
    out::line(&format!("{name}: {}", told(&server)));
    let how = if launch.url.is_some() {
        "is at"
    } else {
        "starts"
    };
    out::line(&format!("{how}: {}", shown(launch)));
    out::line(&format!(
        "says that it is: {} {}",
        line(&of.name),
        line(&of.version)
    ));
    let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<Vec<_>>().join(", ");
    let read: Vec<String> = launch.read.iter().map(|dir| env.shown(dir)).collect();
    for (what, has) in [
        (
            "network",
            if launch.network {
                "yes".to_owned()
            } else {
                String::new()
            },
        ),
        ("variables", names(&launch.env)),
        ("secrets", names(&launch.secrets)),
        ("bearer", launch.bearer.clone().unwrap_or_default()),
        ("headers with secrets", names(&launch.headers)),
        ("reads", read.join(", ")),
    ] {
        if !has.is_empty() {
            out::line(&format!("{what}: {has}"));
        }
    }
    for tool in &server.feature.descriptor().declared_tools {
        out::line(&format!(
            "  {}  {}  {}",
            tool.name,
            effect(tool.effect),
            line(&tool.about)
        ));
    }
    for command in &server.feature.descriptor().commands {
        let hint = command.argument_hint.as_deref().unwrap_or_default();
        let about = line(&command.about);
        out::line(&format!("  /{} {hint}  {about}", command.name));
    }
    server
        .odd
        .iter()
        .for_each(|what| out::line(&format!("! {what}")));
    Ok(Exit::Done)
}

fn pin(args: &McpPinArgs, env: &Env) -> Result<Exit, Failure> {
    only_a_person("pin an MCP server")?;
    let McpPinArgs {
        name,
        dry_run,
        yes,
        view,
        no_trust,
        no_allow_calls,
    } = args;
    let old = known(name, env)?.pin;
    let (mut pin, problems) = asked(name, old.launch.clone(), env)?;
    let is_same = show_changes(&old, &pin);
    if *dry_run {
        return Ok(Exit::Done);
    }
    let unasked = || {
        let message =
            format!("{name} was not pinned: nobody can be asked whether to take what changed");
        Failure::new(Exit::Refused, message).help("`--yes` takes it without a question")
    };
    if !is_same && !*yes && !agreed("take these definitions? y or n: ", unasked, env)? {
        out::line(&format!("{name} stays as it was pinned"));
        return Ok(Exit::Refused);
    }
    pin.trusted = (old.trusted || view.trust) && !no_trust;
    pin.allowed = (old.allowed || view.allow_calls) && !no_allow_calls;
    let mut kept = old.rename;
    kept.retain(|tool, _| pin.tools.iter().any(|of| of.name == *tool));
    kept.extend(renames(&pin, &view.rename)?);
    pin.rename = kept;
    let _lock = grants::lock(env)?;
    let found = servers::save(env, pin)?;
    out::line(&format!("pinned {name}: {}", told(&found)));
    problems
        .iter()
        .chain(&found.odd)
        .for_each(|what| out::line(&format!("! {what}")));
    Ok(Exit::Done)
}

/// Shows in what the definitions differ from those of a pin; says whether they do not.
fn show_changes(old: &ServerPin, now: &ServerPin) -> bool {
    let changed = old.differences(&Definitions {
        tools: now.tools.clone(),
        prompts: now.prompts.clone(),
        resources: now.resources,
    });
    changed
        .iter()
        .take(MAX_LISTED)
        .for_each(|what| out::line(what));
    if let Some(more) = changed
        .len()
        .checked_sub(MAX_LISTED)
        .filter(|more| *more > 0)
    {
        out::line(&format!("and {more} more"));
    }
    for name in old.new_or_changed(&now.tools).take(MAX_LISTED) {
        out::line(&format!("{}:", escape_line(name)));
        let reworded = old.reworded(name, &now.tools);
        reworded.iter().for_each(|what| out::line(what));
    }
    if changed.is_empty() {
        out::line("its definitions are as they were");
    }
    changed.is_empty()
}

fn remove(name: &str, env: &Env) -> Result<Exit, Failure> {
    only_a_person("remove an MCP server")?;
    let _lock = grants::lock(env)?;
    if !is_server_name(name) || !servers::remove(env, name)? {
        return Err(unknown(name));
    }
    out::line(&format!("removed {name}"));
    Ok(Exit::Done)
}

fn known(name: &str, env: &Env) -> Result<FoundServer, Failure> {
    let found = is_server_name(name)
        .then(|| servers::load_whole(env, name))
        .transpose()?;
    found.flatten().ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        format!("there is no MCP server `{}`", escape_line(name)),
    )
    .help("`yoi mcp list` lists the servers")
}

/// What a person reads of a server in one line.
fn told(server: &FoundServer) -> String {
    let ServerPin {
        tools,
        protocol,
        trusted,
        allowed,
        ..
    } = &server.pin;
    let offered = Fitted::of(&server.pin).tools;
    let is_tool = |(_, own): &&(ToolDeclaration, Own)| matches!(own, Own::Tool(_));
    let count = offered.iter().filter(is_tool).count();
    let resources = match offered.len() - count {
        0 => "",
        _ => ", resources",
    };
    let prompts = match server.feature.descriptor().commands.len() {
        0 => String::new(),
        1 => ", 1 prompt".to_owned(),
        many => format!(", {many} prompts"),
    };
    let left_out = match tools.len().saturating_sub(count) {
        0 => String::new(),
        more => format!(", {more} left out"),
    };
    let tools = if count == 1 {
        "1 tool"
    } else {
        &format!("{count} tools")
    };
    let trusted = if *trusted { ", trusted" } else { "" };
    let allowed = if *allowed { ", allowed" } else { "" };
    let bytes = offered.iter().map(|(tool, _)| tool.bytes() as u64).sum();
    let tokens = match estimated_tokens(bytes) {
        0 => String::new(),
        tokens => format!(", about {tokens} tokens"),
    };
    format!("{tools}{left_out}{prompts}{resources}, protocol {protocol}{trusted}{allowed}{tokens}")
}

/// Whether calls of a tool need approval.
fn effect(effect: ToolEffect) -> &'static str {
    match effect {
        ToolEffect::ReadOnly => "reads",
        ToolEffect::Idempotent | ToolEffect::Effectful => "asks",
    }
}

fn shown(launch: &Launch) -> String {
    let command = launch.command.join(" ");
    escape_line(launch.url.as_ref().unwrap_or(&command)).into_owned()
}

fn line(text: &str) -> String {
    escape_within(
        text.lines().next().unwrap_or_default(),
        Lines::One,
        MAX_ABOUT,
    )
}

/// Without the values of variables: some people write keys there.
fn described(server: &FoundServer) -> Value {
    let FoundServer { pin, feature, odd } = server;
    let Launch {
        command,
        url,
        bearer,
        headers,
        env,
        secrets,
        network,
        read,
    } = &pin.launch;
    let tools: Vec<Value> = feature
        .descriptor()
        .declared_tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "effect": tool.effect, "bytes": tool.bytes() }))
        .collect();
    let declared = feature.descriptor().declared_tools;
    let bytes = declared.iter().map(|tool| tool.bytes() as u64).sum();
    let commands = feature.descriptor().commands;
    let prompts: Vec<&str> = commands.iter().map(|of| of.name.as_str()).collect();
    json!({
        "name": pin.name,
        "command": command,
        "url": url,
        "bearer": bearer,
        "headers": headers,
        "env": env.keys().collect::<Vec<_>>(),
        "secrets": secrets,
        "network": network,
        "read": read,
        "protocol": pin.protocol,
        "era": pin.era,
        "server": pin.server,
        "trusted": pin.trusted,
        "allowed": pin.allowed,
        "digest": pin.digest,
        "tools": tools,
        "estimated_tokens": estimated_tokens(bytes),
        "prompts": prompts,
        "problems": odd,
    })
}
