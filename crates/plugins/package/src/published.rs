//! Packages that others publish: Agent Plugins 1.0 (`plugin.json`) and Claude Code's layout (`.claude-plugin/plugin.json`).
//! Data alone: parsing opens, fetches and runs nothing. What is wrong with one part costs no other.

use crate::manifest::{BadManifest, Layout, MAX_MANIFEST, Manifest, Package, Requires};
use authority::text::{Lines, escape_within};
use semver::Version;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};

/// Longest name of a package, and most bytes of a message.
const MAX_NAME: usize = 64;
const MAX_PROBLEM: usize = 200;
/// Most servers of a package.
const MAX_SERVERS: usize = 64;

impl Layout {
    /// The first that a package has counts.
    pub const ALL: [Self; 2] = [Self::AgentPlugin, Self::ClaudeCode];

    /// The manifest's path in its package.
    #[must_use]
    pub const fn manifest(self) -> &'static str {
        match self {
            Self::AgentPlugin => "plugin.json",
            Self::ClaudeCode => ".claude-plugin/plugin.json",
        }
    }

    /// The file with its MCP servers.
    #[must_use]
    pub const fn servers(self) -> &'static str {
        match self {
            Self::AgentPlugin => "mcp.json",
            Self::ClaudeCode => ".mcp.json",
        }
    }

    /// Names of the variables that a server may have in its arguments, environment and directory.
    const fn variables(self) -> &'static [&'static str] {
        match self {
            Self::AgentPlugin => &["PLUGIN_ROOT", "PLUGIN_DATA"],
            Self::ClaudeCode => &["CLAUDE_PLUGIN_ROOT"],
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// It is no JSON object, has no valid name, or breaks a rule of its layout. An unknown field is only noted.
    pub fn read(self, text: &str) -> Result<Manifest, BadManifest> {
        if text.len() > MAX_MANIFEST {
            return Err(BadManifest::TooLong(text.len()));
        }
        let invalid = |why: String| BadManifest::Invalid(shown(&why));
        let Fields {
            name,
            version,
            authors,
            license,
            homepage,
            notices,
        } = self.fields(text).map_err(invalid)?;
        let package = Package {
            name,
            version,
            authors,
            license,
            homepage,
            requires: Requires::default(),
            metadata: Map::new(),
        };
        Ok(Manifest {
            package,
            features: BTreeMap::new(),
            layout: Some(self),
            notices: notices.iter().map(|notice| shown(notice)).collect(),
        })
    }

    fn fields(self, text: &str) -> Result<Fields, String> {
        let fields = object(text)?;
        let mut notices = Vec::new();
        let is_closed = self == Self::AgentPlugin;
        for (key, value) in &fields {
            let Some(expected) = expected(key, self) else {
                notices.push(format!("the field `{key}` is not known, and ignored"));
                continue;
            };
            if !expected.is_met(value) {
                let what = format!("`{key}` is not {}", expected.text());
                // Claude Code's own loader takes more forms than it documents.
                if is_closed || key == "name" {
                    return Err(what);
                }
                notices.push(format!("{what}, and ignored"));
            } else if UNREAD.contains(&key.as_str()) && !is_closed {
                notices.push(format!(
                    "`{key}` is not read: only the places that need no field are"
                ));
            }
        }
        let of = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        if is_closed && of("$schema").is_none() {
            return Err("`$schema` is missing".to_owned());
        }
        let name = of("name").ok_or("`name` is missing")?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) || name == "strict" {
            return Err(format!(
                "`name` is 1 to {MAX_NAME} bytes of [a-z0-9-], and not `strict`"
            ));
        }
        let version = of("version").map_or(Ok(Version::new(0, 0, 0)), |text| {
            Version::parse(&text).map_err(|_| text)
        });
        let version = version.unwrap_or_else(|text| {
            notices.push(format!("the version `{text}` is not MAJOR.MINOR.PATCH"));
            Version::new(0, 0, 0)
        });
        let author = fields.get("author").and_then(|author| match author {
            Value::Object(of) => of.get("name").and_then(Value::as_str),
            author => author.as_str(),
        });
        Ok(Fields {
            name,
            version,
            authors: author.map(shown).into_iter().collect(),
            license: of("license").map(|text| shown(&text)),
            homepage: of("homepage").map(|text| shown(&text)),
            notices,
        })
    }

    /// Reads the file of the servers: those that are valid, and what is wrong with others.
    ///
    /// # Errors
    /// The file is no JSON object with `mcpServers`.
    pub fn read_servers(self, text: &str) -> Result<(Vec<PackageServer>, Vec<String>), String> {
        let mut all = object(text).map_err(|why| shown(&why))?;
        let servers = match (all.remove("mcpServers"), self) {
            (Some(Value::Object(servers)), _) => servers,
            // Claude Code also takes the servers alone.
            (None, Self::ClaudeCode) => all,
            _ => return Err("`mcpServers` is not an object".to_owned()),
        };
        let mut read = Vec::new();
        let mut problems = Vec::new();
        for (name, server) in servers {
            let server = if read.len() < MAX_SERVERS {
                self.server(&name, &server)
            } else {
                Err(format!("only {MAX_SERVERS} servers are read"))
            };
            match server {
                Ok(server) => read.push(server),
                Err(why) => problems.push(shown(&format!("server `{name}`: {why}"))),
            }
        }
        Ok((read, problems))
    }

    fn server(self, name: &str, server: &Value) -> Result<PackageServer, String> {
        let text = |key: &str| server.get(key).and_then(Value::as_str);
        let kind = match (text("type"), text("command"), text("url")) {
            (Some("stdio") | None, Some(command), None) => self.program(server, command)?,
            (Some("streamable-http" | "http" | "sse"), None, Some(url)) => {
                ServerKind::Remote(remote(url)?.to_owned())
            }
            (None, None, Some(url)) if self == Self::ClaudeCode => {
                ServerKind::Remote(remote(url)?.to_owned())
            }
            _ => return Err("it is neither a program nor an address".to_owned()),
        };
        Ok(PackageServer {
            name: shown(name),
            kind,
        })
    }

    fn program(self, server: &Value, command: &str) -> Result<ServerKind, String> {
        let of_root = command.strip_prefix("${CLAUDE_PLUGIN_ROOT}/");
        let of_root = of_root.filter(|_| self == Self::ClaudeCode);
        let path = of_root.or(command.strip_prefix("./"));
        if command.is_empty() || command.contains(char::is_whitespace) {
            return Err("`command` is not one word".to_owned());
        }
        match path {
            Some(path) if stays_inside(path) && !path.contains("${") => {}
            None if !command.contains(['/', '$', '\\']) => {}
            _ => return Err("`command` is neither a bare name nor a path inside".to_owned()),
        }
        let args = match server.get("args") {
            None => Vec::new(),
            Some(Value::Array(args)) => {
                let text = |arg: &Value| arg.as_str().map(str::to_owned);
                args.iter().map(text).collect::<Option<_>>().ok_or(ARGS)?
            }
            Some(_) => return Err(ARGS.to_owned()),
        };
        let env = match server.get("env") {
            None => Map::new(),
            Some(Value::Object(env)) if env.values().all(Value::is_string) => env.clone(),
            Some(_) => return Err("`env` is not an object of texts".to_owned()),
        };
        let cwd = match server.get("cwd") {
            None => None,
            Some(Value::String(cwd)) => Some(cwd.as_str()),
            Some(_) => return Err("`cwd` is not a text".to_owned()),
        };
        let root = |dir: &str| {
            self.variables()
                .iter()
                .any(|of| *dir == format!("${{{of}}}"))
        };
        if cwd.is_some_and(|cwd| {
            let (first, rest) = cwd.split_once('/').unwrap_or((cwd, ""));
            !(root(first) && (rest.is_empty() || stays_inside(rest)) || stays_inside(cwd))
        }) {
            return Err("`cwd` leads out of the package".to_owned());
        }
        let values = env.values().filter_map(Value::as_str);
        for text in args.iter().map(String::as_str).chain(values).chain(cwd) {
            if let Some(unknown) = self.unknown_variable(text) {
                return Err(format!("the variable `{unknown}` is not one of a package"));
            }
        }
        Ok(ServerKind::Program {
            command: command.to_owned(),
            args,
            env: env.keys().cloned().collect(),
        })
    }

    /// A `${NAME}` that a package may not use. Claude Code takes any variable of its process; the person names those later.
    fn unknown_variable(self, text: &str) -> Option<&str> {
        let names = text.split("${").skip(1);
        let mut names = names.map(|rest| rest.split_once('}').map_or("${", |(name, _)| name));
        let known = |name: &&str| self.variables().contains(name);
        names.find(|name| self == Self::AgentPlugin && !known(name))
    }
}

const ARGS: &str = "`args` is not a list of texts";

/// Fields of Claude Code's manifest that name further places.
const UNREAD: [&str; 7] = [
    "commands",
    "agents",
    "skills",
    "hooks",
    "mcpServers",
    "lspServers",
    "outputStyles",
];

/// A server of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageServer {
    pub name: String,
    pub kind: ServerKind,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// With the names of its variables.
    Program {
        command: String,
        args: Vec<String>,
        env: Vec<String>,
    },
    Remote(String),
}

impl fmt::Display for PackageServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server {}: ", self.name)?;
        match &self.kind {
            ServerKind::Remote(url) => f.write_str(&shown(url)),
            ServerKind::Program { command, args, env } => {
                let words: Vec<&str> = [command.as_str()]
                    .into_iter()
                    .chain(args.iter().map(String::as_str))
                    .collect();
                write!(f, "`{}`", shown(&words.join(" ")))?;
                match env.is_empty() {
                    true => Ok(()),
                    false => write!(f, " with {}", shown(&env.join(", "))),
                }
            }
        }
    }
}

struct Fields {
    name: String,
    version: Version,
    authors: Vec<String>,
    license: Option<String>,
    homepage: Option<String>,
    notices: Vec<String>,
}

/// What a field must be.
#[derive(Clone, Copy)]
enum Expected {
    Text,
    Texts,
    Object,
    Author,
    Anything,
}

impl Expected {
    fn is_met(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text | Self::Author, Value::String(text)) => !text.is_empty(),
            (Self::Texts, Value::Array(all)) => all.iter().all(Value::is_string),
            (Self::Object, Value::Object(_)) | (Self::Anything, _) => true,
            (Self::Author, Value::Object(of)) => of.get("name").is_some_and(Value::is_string),
            (Self::Text | Self::Texts | Self::Object | Self::Author, _) => false,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Texts => "a list of texts",
            Self::Object => "an object",
            Self::Author => "an object with `name`",
            Self::Anything => "anything",
        }
    }
}

fn expected(key: &str, layout: Layout) -> Option<Expected> {
    Some(match key {
        "$schema" | "name" | "version" | "description" | "homepage" | "repository" | "license" => {
            Expected::Text
        }
        "author" => Expected::Author,
        "keywords" => Expected::Texts,
        "extensions" if layout == Layout::AgentPlugin => Expected::Object,
        key if layout == Layout::ClaudeCode && UNREAD.contains(&key) => Expected::Anything,
        _ => return None,
    })
}

/// Whether a relative path stays below where it begins.
fn stays_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// An address of a server: https, or this machine.
fn remote(url: &str) -> Result<&str, String> {
    let host = |rest: &str| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let bare = match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        (!authority.contains('@')).then(|| bare.to_owned())
    };
    let is_fine = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => host(rest).is_some_and(|host| !host.is_empty()),
        (None, Some(rest)) => host(rest)
            .is_some_and(|host| ["localhost", "127.0.0.1", "::1"].contains(&host.as_str())),
        (None, None) => false,
    };
    let is_fine = is_fine && !url.contains(char::is_whitespace) && !url.contains("${");
    is_fine
        .then_some(url)
        .ok_or_else(|| "`url` is neither https nor of this machine".to_owned())
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn shown(text: &str) -> String {
    escape_within(text, Lines::One, MAX_PROBLEM)
}

#[cfg(test)]
mod tests;
