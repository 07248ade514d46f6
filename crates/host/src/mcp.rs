//! The MCP servers that a person added: a file for each in the person's own state, with what it may have and its definitions.
//!
//! A file counts only if this user alone can have written it. Reading it starts nothing.

use crate::env::{Env, settled};
use crate::exit::{Exit, Failure, Help};
use crate::plain_file;
use crate::pods::{disk, make_private};
use mcp::{McpFeature, ServerPin, is_server_name};
use session_store::Digest;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The largest file of a server, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// Most servers, and most names that are read to find them.
const MAX_SERVERS: usize = 64;
const MAX_NAMES: usize = 1024;

/// Why a call is refused, for the model.
const CHANGED: &str =
    "a person removed or changed this MCP server; it works again after a new start of the pod";

/// The servers of a person.
#[derive(Default)]
pub struct Servers {
    /// By name.
    pub all: Vec<FoundServer>,
    /// Files that do not count, and why.
    pub problems: Vec<String>,
}

/// A server, and the feature that is made of it.
pub struct FoundServer {
    pub pin: ServerPin,
    pub feature: Arc<McpFeature>,
    /// What is different than the server says.
    pub odd: Vec<String>,
}

impl FoundServer {
    /// The server of a pin as it is kept.
    fn of(env: &Env, pin: ServerPin, digest: String) -> Self {
        let own = env.clone();
        let name = pin.name.clone();
        let granted = digest.clone();
        let unchanged = move || match bytes(&own, &name) {
            Ok(Some(now)) if digest_of(&now) == granted => Ok(()),
            Ok(_) | Err(_) => Err(CHANGED.to_owned()),
        };
        let source = path(env, &pin.name).map_or_else(|_| String::new(), |path| env.shown(&path));
        // Relative, it starts nothing.
        let cwd = start_dir(env).unwrap_or_default();
        let (feature, odd) = McpFeature::new(pin.clone(), (source, digest), cwd, unchanged);
        Self {
            pin,
            feature: Arc::new(feature),
            odd,
        }
    }
}

fn digest_of(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// Servers that are read when something asks. No part of what is configured: the report of a start has the digest of each.
#[derive(Clone, Default)]
pub struct ServersOnDemand(OnceLock<Arc<Servers>>);

impl ServersOnDemand {
    pub(crate) fn get(&self, env: &Env) -> &Servers {
        self.0.get_or_init(|| Arc::new(all(env)))
    }
}

impl fmt::Debug for ServersOnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServersOnDemand")
    }
}

/// All of them.
fn all(env: &Env) -> Servers {
    let mut servers = Servers::default();
    let entries = dir(env).and_then(|dir| match fs::read_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(disk(&dir, &error)),
        Ok(entries) => Ok(Some(entries)),
    });
    let entries = match entries {
        Ok(entries) => entries.into_iter().flatten().flatten().take(MAX_NAMES),
        Err(failure) => {
            servers.problems.push(failure.message);
            return servers;
        }
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .filter(|name| is_server_name(name))
        .collect();
    names.sort();
    if names.len() > MAX_SERVERS {
        let text = format!("{} MCP servers; only {MAX_SERVERS} are used", names.len());
        servers.problems.push(text);
        names.truncate(MAX_SERVERS);
    }
    for name in names {
        match load(env, &name) {
            Ok(found) => servers.all.extend(found),
            Err(failure) => servers.problems.push(failure.message),
        }
    }
    servers
}

/// The server of this name, if there is one.
pub fn load(env: &Env, name: &str) -> Result<Option<FoundServer>, Failure> {
    let Some(bytes) = bytes(env, name)? else {
        return Ok(None);
    };
    let at = path(env, name)?;
    let pin: ServerPin =
        serde_json::from_slice(&bytes).map_err(|error| unfit(env, &at, &error.to_string()))?;
    pin.check().map_err(|what| unfit(env, &at, what))?;
    match pin.name == name {
        true => Ok(Some(FoundServer::of(env, pin, digest_of(&bytes)))),
        false => Err(unfit(env, &at, "belongs to another server")),
    }
}

/// The same, where its definitions are those of its digest.
pub fn load_whole(env: &Env, name: &str) -> Result<Option<FoundServer>, Failure> {
    let found = load(env, name)?;
    if let Some(Err(what)) = found.as_ref().map(|found| found.pin.check_definitions()) {
        return Err(unfit(env, &path(env, name)?, what));
    }
    Ok(found)
}

fn bytes(env: &Env, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    plain_file::of_user_alone(&dir(env)?, &path(env, name)?, MAX_FILE)
        .map_err(|(path, what)| unfit(env, path, &what))
}

fn unfit(env: &Env, path: &Path, what: &str) -> Failure {
    let message = format!("{}: {what}; the MCP server is ignored", env.shown(path));
    Failure::new(Exit::Config, message).help(Help::AddServerAgain)
}

/// Writes it, in one step and durably. The caller holds the lock of the grants.
pub fn save(env: &Env, pin: ServerPin) -> Result<FoundServer, Failure> {
    make_private(&dir(env)?)?;
    let path = path(env, &pin.name)?;
    let text = serde_json::to_vec_pretty(&pin)
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        let message = format!("the definitions of {} have over 8 MiB", pin.name);
        return Err(Failure::new(Exit::Data, message));
    }
    plain_file::replace(&path, &text, 0o600).map_err(|error| disk(&path, &error))?;
    Ok(FoundServer::of(env, pin, digest_of(&text)))
}

/// Removes it; whether there was one. The caller holds the lock of the grants.
pub fn remove(env: &Env, name: &str) -> Result<bool, Failure> {
    let path = path(env, name)?;
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(disk(&path, &error)),
    }
}

/// The empty directory in which servers start: files of a project are no part of a server. No child reads the one of the state.
pub fn start_dir(env: &Env) -> Result<PathBuf, Failure> {
    Ok(settled(&env.cache_dir()?.join("mcp")))
}

fn dir(env: &Env) -> Result<PathBuf, Failure> {
    Ok(env.state_dir()?.join("mcp"))
}

fn path(env: &Env, name: &str) -> Result<PathBuf, Failure> {
    Ok(dir(env)?.join(format!("{name}.json")))
}
