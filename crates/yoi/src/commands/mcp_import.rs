//! `yoi mcp import`: the MCP servers that other programs are configured with, each with the command that adds it. Reads
//! files, starts nothing and adds nothing: a file of a repository is no consent.

use crate::show::out;
use authority::text::escape_line;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::plain_file::{self, Links};
use host::project::Project;
use mcp::{MAX_SERVER_NAME, is_header, is_server_name};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes, and most servers that are listed.
const MAX_FILE: u64 = 16 * 1024 * 1024;
const MAX_SERVERS: usize = 128;

/// Files below the project: the tables in which they have servers, as JSON pointers.
const OF_PROJECT: &[(&str, &str)] = &[
    (".mcp.json", "/mcpServers"),
    (".cursor/mcp.json", "/mcpServers"),
    (".vscode/mcp.json", "/servers"),
];

/// The same below the home directory.
const OF_HOME: &[(&str, &str)] = &[
    (".claude.json", "/mcpServers"),
    (".codex/config.toml", "/mcp_servers"),
    (".cursor/mcp.json", "/mcpServers"),
    (".config/Code/User/mcp.json", "/servers"),
];

/// Parts of names of variables, options and headers whose values are not shown.
const SECRET: [&str; 7] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "CREDENTIAL",
    "AUTH",
    "HEADER",
];

/// Parts of paths that are no keys.
const PATH_WORDS: [&str; 12] = [
    "mcp", "sse", "api", "v1", "v2", "v3", "http", "stream", "server", "servers", "message",
    "messages",
];

/// A server that a file names.
struct Named {
    name: String,
    /// The file, for people.
    source: String,
    /// The command that adds it, or why there is none.
    add: Result<String, String>,
}

pub(super) fn run(files: &[PathBuf], env: &Env) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for (path, tables) in places(files, env) {
        match read(&path) {
            Ok(Some(value)) => found.extend(servers(&value, &tables, &env.shown(&path))),
            Ok(None) if files.is_empty() => {}
            Ok(None) => problems.push(format!("{} does not exist", env.shown(&path))),
            Err(why) => problems.push(format!("{}: {why}", env.shown(&path))),
        }
    }
    let more = found.len().saturating_sub(MAX_SERVERS);
    found.truncate(MAX_SERVERS);
    for Named { name, source, add } in &found {
        out::line(&format!("{}  ({source})", escape_line(name)));
        match add {
            Ok(command) => out::line(&format!("  {command}")),
            Err(why) => out::line(&format!("  ! {why}")),
        }
    }
    if more > 0 {
        out::line(&format!("and {more} more"));
    }
    problems
        .iter()
        .for_each(|problem| out::line(&format!("! {problem}")));
    if found.is_empty() {
        out::line("no MCP servers of other programs were found");
    } else {
        out::line(
            "nothing was added: run the commands of the servers that you want, with what each may have",
        );
    }
    Ok(match problems.is_empty() || files.is_empty() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// Servers of the project's `.mcp.json`, which wait until the person adds them.
pub(super) fn pending(env: &Env) -> Vec<String> {
    let path = Project::around(env).root.join(".mcp.json");
    let read = read(&path).ok().flatten();
    let found = read.map(|value| servers(&value, &["/mcpServers".to_owned()], ""));
    found
        .into_iter()
        .flatten()
        .map(|of| of.name)
        .take(MAX_SERVERS)
        .collect()
}

/// The files, and where each has servers.
fn places(files: &[PathBuf], env: &Env) -> Vec<(PathBuf, Vec<String>)> {
    let all = || {
        ["/mcpServers", "/servers", "/mcp_servers"]
            .map(str::to_owned)
            .to_vec()
    };
    if !files.is_empty() {
        return files
            .iter()
            .map(|file| (env.cwd.join(file), all()))
            .collect();
    }
    let root = Project::around(env).root;
    let below = |dir: &Path, of: &[(&str, &str)]| -> Vec<(PathBuf, Vec<String>)> {
        of.iter()
            .map(|(file, table)| (dir.join(file), vec![(*table).to_owned()]))
            .collect()
    };
    let mut places = below(&root, OF_PROJECT);
    if let Ok(home) = env.home() {
        places.extend(below(&home, OF_HOME));
        // Claude Code keeps servers of one project there, too.
        let project = root
            .display()
            .to_string()
            .replace('~', "~0")
            .replace('/', "~1");
        let of_project = format!("/projects/{project}/mcpServers");
        for (path, tables) in &mut places {
            if path.ends_with(".claude.json") {
                tables.push(of_project.clone());
            }
        }
    }
    places
}

/// A file of JSON, or of TOML by its name.
fn read(path: &Path) -> Result<Option<Value>, String> {
    let Some(file) = plain_file::open(path, Links::Followed)? else {
        return Ok(None);
    };
    let bytes = plain_file::whole(file, MAX_FILE)?;
    let text = plain_file::text(&bytes)?;
    // Neither error quotes the file, which may have keys.
    let value = match path.extension().is_some_and(|end| end == "toml") {
        true => toml::from_str(text).map_err(|_| "is not TOML".to_owned()),
        false => serde_json::from_str(text)
            .map_err(|error| format!("is not JSON (line {})", error.line())),
    };
    value.map(Some)
}

fn servers(value: &Value, tables: &[String], source: &str) -> Vec<Named> {
    let tables = tables
        .iter()
        .filter_map(|table| value.pointer(table)?.as_object());
    let named = tables.flatten().map(|(name, server)| Named {
        name: name.clone(),
        source: source.to_owned(),
        add: add(name, server),
    });
    named.collect()
}

/// The command that adds a server.
fn add(name: &str, server: &Value) -> Result<String, String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    let Some(command) = text("command") else {
        let url = text("url").ok_or("it has neither a command nor an address")?;
        return match text("type") {
            Some("sse") => Err(
                "it is reached over the older form of HTTP, which yoi does not speak".to_owned(),
            ),
            Some(_) | None => Ok(add_url(name, url, server)),
        };
    };
    let mut words = vec!["yoi mcp add".to_owned(), own_name(name)];
    for (variable, value) in server
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        words.push(variable_option(variable, value));
    }
    words.extend(["--".to_owned(), quoted(command)]);
    let arguments = server.get("args").and_then(Value::as_array);
    let mut is_of_secret = false;
    for argument in arguments.into_iter().flatten() {
        let argument = argument.as_str().ok_or("an argument is no text")?;
        let is_option = argument.starts_with('-');
        words.push(quoted(&match is_of_secret && !is_option {
            true => "…".to_owned(),
            false => shown_argument(argument),
        }));
        is_of_secret = is_option && (argument == "-H" || is_secret(argument));
    }
    Ok(escape_line(&words.join(" ")).into_owned())
}

/// The command that adds a server on the network. What its headers have is not shown.
fn add_url(name: &str, url: &str, server: &Value) -> String {
    let mut words = vec![
        "yoi mcp add".to_owned(),
        own_name(name),
        "--url".to_owned(),
        quoted(&without_keys(url)),
    ];
    let headers = server.get("headers").and_then(Value::as_object);
    let headers = headers.into_iter().flatten();
    words.extend(headers.filter_map(|(name, value)| header_option(name, value)));
    escape_line(&words.join(" ")).into_owned()
}

/// A header of a server; none for one that yoi sets by itself.
fn header_option(name: &str, value: &Value) -> Option<String> {
    let scheme = value.as_str().and_then(|value| value.split_once(' '));
    let is_bearer = scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match name.eq_ignore_ascii_case("authorization") && is_bearer {
        true => Some("--bearer SECRET".to_owned()),
        false => is_header(name).then(|| format!("--header-secret {}=SECRET", quoted(name))),
    }
}

/// Whether what has this name may be a key.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_token = name.split(['_', '-']).any(|word| word == "PAT");
    is_token || SECRET.iter().any(|part| name.contains(part))
}

/// An argument, without what may be a key in it.
fn shown_argument(argument: &str) -> String {
    for between in ['=', ':'] {
        if let Some((name, _)) = argument.split_once(between)
            && !name.contains("://")
            && is_secret(name)
        {
            return format!("{name}{between}…");
        }
    }
    without_keys(argument)
}

/// A text of which, where it has an address, only that is shown which no key can be: scheme, host, and a path of common words.
fn without_keys(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    // A user and a password may stand before the host.
    let host = host
        .rsplit_once('@')
        .map_or(host.to_owned(), |(_, host)| format!("…@{host}"));
    let mut shown = format!("{before}://{host}");
    for (at, c) in behind.match_indices(['/', '?', '#']) {
        let after = behind.get(at + 1..).unwrap_or_default();
        let word = after.split(['/', '?', '#']).next().unwrap_or_default();
        shown.push_str(c);
        if !(word.is_empty() || c == "/" && PATH_WORDS.contains(&word)) {
            shown.push('…');
            return shown;
        }
        shown.push_str(word);
    }
    shown
}

/// A name that yoi takes.
fn own_name(name: &str) -> String {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let own: String = name.chars().take(MAX_SERVER_NAME).map(fits).collect();
    // It is no option.
    let own = own.trim_start_matches('-');
    match is_server_name(own) {
        true => own.to_owned(),
        false => "NAME".to_owned(),
    }
}

/// A variable of a server. The value of one that may be a key is not shown, and one that names another variable is that
/// name: it is for the person to say which secret that is.
fn variable_option(name: &str, value: &Value) -> String {
    let value = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    match is_secret(name) || value.contains("${") {
        true => format!("--secret {}=SECRET", quoted(name)),
        false => format!(
            "--env {}",
            quoted(&format!("{name}={}", without_keys(&value)))
        ),
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn headers_become_options_that_add_takes() {
        for (name, value, option) in [
            ("Authorization", "Bearer key", Some("--bearer SECRET")),
            ("authorization", "bearer ${KEY}", Some("--bearer SECRET")),
            (
                "Authorization",
                "Basic key",
                Some("--header-secret Authorization=SECRET"),
            ),
            ("X-Key", "key", Some("--header-secret X-Key=SECRET")),
            ("Accept", "text/event-stream", None),
            ("Mcp-Session-Id", "1", None),
        ] {
            let got = header_option(name, &json!(value));
            assert_eq!(got.as_deref(), option, "{name}: {value}");
        }
    }

    #[test]
    fn what_may_be_a_key_in_an_address_is_not_shown() {
        for (text, shown) in [
            ("https://example.org/v1/mcp/", "https://example.org/v1/mcp/"),
            ("https://example.org:8443", "https://example.org:8443"),
            ("https://example.org/k3y/mcp", "https://example.org/…"),
            (
                "https://example.org/mcp/k3y?a=b",
                "https://example.org/mcp/…",
            ),
            ("https://example.org?k3y", "https://example.org?…"),
            ("https://example.org/mcp#k3y", "https://example.org/mcp#…"),
            (
                "--to=https://me:k3y@example.org/mcp",
                "--to=https://…@example.org/mcp",
            ),
            ("https://example.org/mcp?", "https://example.org/mcp?"),
            ("/no/address?x", "/no/address?x"),
        ] {
            assert_eq!(without_keys(text), shown);
        }
        let server = json!({
            "command": "npx",
            "args": ["mcp-remote", "https://example.org/mcp", "--header", "X-A: k3y", "--api-key=k3y", "-H",
                "Authorization: Bearer k3y", "--token", "k3y", "--verbose", "plain", "X-Api-Key: k3y"],
            "env": { "GITHUB_PAT": "k3y", "PATH_OF": "x" },
        });
        assert_eq!(
            add("far", &server).unwrap(),
            "yoi mcp add far --secret GITHUB_PAT=SECRET --env PATH_OF=x -- npx mcp-remote https://example.org/mcp --header '…' \
             '--api-key=…' -H '…' --token '…' --verbose plain 'X-Api-Key:…'"
        );
        let server = json!({ "headers": { "Accept": "x", "Authorization": "Bearer key" } });
        assert_eq!(
            add_url("far", "https://example.org/mcp?of=key", &server),
            "yoi mcp add far --url 'https://example.org/mcp?…' --bearer SECRET"
        );
    }
}
