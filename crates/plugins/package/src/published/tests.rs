//! What the two layouts allow and refuse, a row for each rule.

use super::*;

const SCHEMA: &str = r#""$schema": "https://example.org/plugin.json""#;

fn agent(rest: &str) -> Result<Manifest, String> {
    let text = format!("{{{SCHEMA}, {rest}}}");
    Layout::AgentPlugin
        .read(&text)
        .map_err(|why| why.to_string())
}

fn claude(fields: &str) -> Result<Manifest, String> {
    let text = format!("{{{fields}}}");
    Layout::ClaudeCode
        .read(&text)
        .map_err(|why| why.to_string())
}

#[test]
fn a_manifest_is_read() {
    let all = r#""name": "a-1", "version": "1.2.3", "description": "d", "author": {"name": "A", "email": "a@b"},
        "homepage": "h", "repository": "r", "license": "MIT", "keywords": ["k"], "extensions": {"x": 1}"#;
    let read = agent(all).unwrap();
    let Package {
        name,
        version,
        authors,
        license,
        homepage,
        ..
    } = &read.package;
    assert_eq!(
        (
            name.as_str(),
            version.to_string().as_str(),
            authors.as_slice(),
            license.as_deref(),
            homepage.as_deref()
        ),
        (
            "a-1",
            "1.2.3",
            &["A".to_owned()][..],
            Some("MIT"),
            Some("h")
        )
    );
    assert_eq!(
        (read.notices.len(), read.layout),
        (0, Some(Layout::AgentPlugin))
    );
    let least = claude(r#""name": "b""#).unwrap();
    assert_eq!(
        (
            least.package.version.to_string().as_str(),
            least.notices.len()
        ),
        ("0.0.0", 0)
    );
}

#[test]
fn an_unknown_field_is_noted_and_any_other_violation_refuses() {
    let read = agent(r#""name": "a", "hooks": {}, "colour": "red""#).unwrap();
    assert_eq!(read.notices.len(), 2, "{:?}", read.notices);
    assert!(read.notices.concat().contains("`colour` is not known"));
    for (fields, why) in [
        (r#""version": "1.0.0""#, "`name` is missing"),
        (r#""name": """#, "`name` is not a text"),
        (r#""name": 1"#, "`name` is not a text"),
        (r#""name": "A b""#, "1 to 64 bytes"),
        (r#""name": "../a""#, "1 to 64 bytes"),
        (r#""name": "strict""#, "strict"),
        (r#""name": "a", "version": 1"#, "`version` is not a text"),
        (
            r#""name": "a", "author": "A", "keywords": "k""#,
            "`keywords` is not a list",
        ),
        (
            r#""name": "a", "author": {"email": "x"}"#,
            "`author` is not",
        ),
        (
            r#""name": "a", "extensions": []"#,
            "`extensions` is not an object",
        ),
        (r#""name": "a""b""#, "is not valid"),
    ] {
        let read = agent(fields).map(|read| read.notices);
        assert!(
            read.as_ref().is_err_and(|is| is.contains(why)),
            "{fields}: {read:?}"
        );
    }
    let missing = Layout::AgentPlugin
        .read(r#"{"name": "a"}"#)
        .map(|read| read.notices);
    assert!(missing.is_err_and(|why| why.to_string().contains("`$schema` is missing")));
    assert!(Layout::AgentPlugin.read("[]").is_err());
    let long = format!("{{\"name\": \"{}\"}}", "a".repeat(MAX_MANIFEST));
    assert!(matches!(
        Layout::ClaudeCode.read(&long),
        Err(BadManifest::TooLong(_))
    ));
}

#[test]
fn the_other_layout_is_read_leniently() {
    let read = claude(
        r#""name": "b", "version": "latest", "author": {"email": "x"}, "keywords": "k", "hooks": "./h.json", "commands": ["./c"], "new": 1"#,
    )
    .unwrap();
    let notices = read.notices.join("\n");
    for words in [
        "`latest`",
        "`author` is not",
        "`keywords` is not",
        "`hooks` is not read",
        "`commands` is not read",
        "`new` is not known",
    ] {
        assert!(notices.contains(words), "{words}: {notices}");
    }
    assert!(claude(r#""version": "1.0.0""#).is_err());
}

fn servers(layout: Layout, server: &str) -> Result<String, String> {
    let text =
        format!("{{\"mcpServers\": {{\"s\": {server}, \"good\": {{\"command\": \"fine\"}}}}}}");
    let (read, problems) = layout.read_servers(&text).unwrap();
    assert!(
        read.iter().any(|server| server.name == "good"),
        "the other one stays: {problems:?}"
    );
    match problems.first() {
        Some(why) => Err(why.clone()),
        None => Ok(read
            .iter()
            .find(|server| server.name == "s")
            .unwrap()
            .to_string()),
    }
}

#[test]
fn servers_keep_the_rules_and_a_bad_one_costs_no_other() {
    use Layout::{AgentPlugin, ClaudeCode};
    for (layout, server, expected) in [
        (
            AgentPlugin,
            r#"{"command": "npx", "args": ["-y", "a"], "env": {"K": "v"}}"#,
            "MCP server s: `npx -y a` with K",
        ),
        (
            AgentPlugin,
            r#"{"type": "stdio", "command": "./bin/s", "cwd": "${PLUGIN_ROOT}"}"#,
            "MCP server s: `./bin/s`",
        ),
        (
            AgentPlugin,
            r#"{"command": "a", "cwd": "sub/dir", "args": ["${PLUGIN_DATA}/x"]}"#,
            "MCP server s: `a ${PLUGIN_DATA}/x`",
        ),
        (
            AgentPlugin,
            r#"{"type": "streamable-http", "url": "https://a.org/mcp"}"#,
            "MCP server s: https://a.org/mcp",
        ),
        (
            AgentPlugin,
            r#"{"type": "sse", "url": "http://127.0.0.1:9/x"}"#,
            "MCP server s: http://127.0.0.1:9/x",
        ),
        (
            AgentPlugin,
            r#"{"type": "sse", "url": "http://[::1]:9"}"#,
            "MCP server s: http://[::1]:9",
        ),
        (
            ClaudeCode,
            r#"{"command": "${CLAUDE_PLUGIN_ROOT}/run"}"#,
            "MCP server s: `${CLAUDE_PLUGIN_ROOT}/run`",
        ),
        (
            ClaudeCode,
            r#"{"command": "a", "env": {"K": "${TOKEN}"}}"#,
            "MCP server s: `a` with K",
        ),
        (
            ClaudeCode,
            r#"{"url": "https://a.org"}"#,
            "MCP server s: https://a.org",
        ),
    ] {
        assert_eq!(servers(layout, server).as_deref(), Ok(expected), "{server}");
    }
    for (server, why) in [
        (r#"{"command": "npx -y a"}"#, "not one word"),
        (r#"{"command": ""}"#, "not one word"),
        (r#"{"command": "/usr/bin/a"}"#, "neither a bare name"),
        (r#"{"command": "../a"}"#, "neither a bare name"),
        (r#"{"command": "./../a"}"#, "neither a bare name"),
        (r#"{"command": "${PLUGIN_ROOT}/a"}"#, "neither a bare name"),
        (r#"{"command": "./${PLUGIN_ROOT}"}"#, "neither a bare name"),
        (r#"{"command": "a", "args": "b"}"#, "`args`"),
        (r#"{"command": "a", "args": [1]}"#, "`args`"),
        (r#"{"command": "a", "env": {"K": 1}}"#, "`env`"),
        (
            r#"{"command": "a", "env": {"K": "${HOME}"}}"#,
            "`HOME` is not one",
        ),
        (
            r#"{"command": "a", "args": ["${PLUGIN_ROOT"]}"#,
            "is not one",
        ),
        (r#"{"command": "a", "cwd": "/tmp"}"#, "`cwd` leads out"),
        (
            r#"{"command": "a", "cwd": "${PLUGIN_ROOT}/../.."}"#,
            "`cwd` leads out",
        ),
        (r#"{"command": "a", "cwd": "${HOME}"}"#, "is not one"),
        (r#"{"command": "a", "cwd": 1}"#, "`cwd` is not a text"),
        (
            r#"{"command": "a", "url": "https://a.org"}"#,
            "neither a program nor",
        ),
        (r#"{"url": "https://a.org"}"#, "neither a program nor"),
        (
            r#"{"type": "ws", "url": "https://a.org"}"#,
            "neither a program nor",
        ),
        (
            r#"{"type": "http", "url": "http://a.org"}"#,
            "neither https",
        ),
        (
            r#"{"type": "http", "url": "http://localhost.evil.org"}"#,
            "neither https",
        ),
        (
            r#"{"type": "http", "url": "https://user@a.org"}"#,
            "neither https",
        ),
        (
            r#"{"type": "http", "url": "https://${HOST}/"}"#,
            "neither https",
        ),
        (r#"{"type": "http", "url": "file:///a"}"#, "neither https"),
        ("1", "neither a program nor"),
    ] {
        let read = servers(Layout::AgentPlugin, server);
        assert!(
            read.as_ref().is_err_and(|is| is.contains(why)),
            "{server}: {read:?}"
        );
    }
    assert!(
        AgentPlugin
            .read_servers("{\"s\": {\"command\": \"a\"}}")
            .is_err()
    );
    assert_eq!(
        ClaudeCode
            .read_servers("{\"s\": {\"command\": \"a\"}}")
            .unwrap()
            .0
            .len(),
        1
    );
    let many: Vec<String> = (0..=MAX_SERVERS)
        .map(|n| format!("\"s{n:03}\": {{\"command\": \"a\"}}"))
        .collect();
    let (read, problems) = ClaudeCode
        .read_servers(&format!("{{{}}}", many.join(",")))
        .unwrap();
    assert_eq!((read.len(), problems.len()), (MAX_SERVERS, 1));
}
