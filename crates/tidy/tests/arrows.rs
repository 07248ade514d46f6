//! The arrow table: which crate of ours may depend on which, and what would show that it knows too much.
//!
//! A new arrow fails the build until this table, and so a reader, agrees.

#![allow(
    clippy::unwrap_used,
    reason = "tests: a scratch directory that fails is a failed test"
)]

use std::path::Path;

use tidy::arrows::{Row, check};

#[rustfmt::skip]
const ARROWS: &[Row] = &[
    // the token that all handles are made from; what depends on it is a composition root, or tests
    Row { name: "ambient",       ours: &[],                                                     never: &[] },
    // handles that are authority; knows no pods, tools, models
    Row { name: "authority",     ours: &["ambient"],                                            never: &["clap", "hyper", "serde_json", "toml"] },
    // the words: items, records, messages between a pod and its clients; no files, sockets, runtimes, terminals
    Row { name: "protocol",      ours: &[],                                                     never: &["cap-std", "clap", "crossterm", "hyper", "ratatui", "rustix", "tokio", "toml"] },
    // appends framed records; knows not what a record means
    Row { name: "session-store", ours: &["protocol"],                                           never: &["clap", "hyper", "schemars", "toml"] },
    // one turn over committed history; no files, processes, sockets, clocks, pods
    Row { name: "llm-worker",    ours: &["protocol"],                                           never: &["cap-std", "clap", "hyper", "landlock", "rustix", "toml", "uuid"] },
    // HTTP exchanges over a grant of the network; no vendor, no tool, no policy
    Row { name: "http-client",   ours: &["authority"],                                          never: &["cap-std", "clap", "landlock", "schemars", "serde_json", "toml"] },
    // one vendor's bytes to model events and back; no history policy, no meaning of tools
    Row { name: "provider",      ours: &["authority", "http-client", "llm-worker"],             never: &["cap-std", "clap", "hyper", "ignore", "landlock", "toml"] },
    // the embedded planner: history in, events out; no vendors, sockets, files, pods
    Row { name: "offline",       ours: &["llm-worker"],                                         never: &["cap-std", "clap", "hyper", "landlock", "rustix", "tokio", "toml"] },
    // tools a second host would reuse; no pods, features, policy, configuration
    Row { name: "tools",         ours: &["authority", "llm-worker"],                            never: &["cap-std", "clap", "hyper", "landlock", "rustix", "toml"] },
    // a connection to a pod and one model of it; draws nothing, no pod, no store
    Row { name: "client",        ours: &["protocol"],                                           never: &["clap", "crossterm", "hyper", "ratatui", "rustix", "toml"] },
    // cells and the screen as lines: data in, spans out; no terminal, no clock, no connection, no pod
    Row { name: "tui",           ours: &["authority", "client", "protocol"],                    never: &["clap", "crossterm", "hyper", "ratatui", "rustix", "tokio", "toml"] },
    // an agent for editors: a client of pods on two streams; no files, processes, configuration, terminals
    Row { name: "acp",           ours: &["client", "protocol", "tui"],                          never: &["cap-std", "clap", "crossterm", "hyper", "ratatui", "rustix", "toml"] },
    // what a command line would run; no policy, pods, tools, files
    Row { name: "shell",         ours: &[],                                                     never: &["clap", "hyper", "rustix", "serde_json", "tokio", "toml"] },
    // the named process; no concrete tools, vendors, terminals, argv
    Row { name: "pod",           ours: &["authority", "llm-worker", "protocol", "session-store", "shell"], never: &["clap", "crossterm", "grep-searcher", "hyper", "ratatui", "rustls", "toml"] },
    // the built-in features, through the public door; no sockets, store files, pod internals
    Row { name: "builtins",      ours: &["api-clickup", "api-core", "api-fireflies", "api-github", "api-gitlab", "api-jira", "api-slack", "authority", "format-pipeline", "http-client", "knowledge", "llm-worker", "pod", "shell", "tools"], never: &["cap-std", "clap", "hyper", "landlock", "rusqlite", "rustix"] },
    // documents of sources, found by their words; no pod, tool, configuration, clock, terminal
    Row { name: "knowledge",     ours: &["authority"],                                          never: &["cap-std", "clap", "hyper", "landlock", "rustix", "tokio", "toml"] },
    // packages that are read, not compiled in: manifests, digests, programs of tools; opens nothing, knows no pod's inside
    Row { name: "plugin",        ours: &["authority", "http-client", "llm-worker", "pod", "tools"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    // scripts in Lua that answer requests, inside a guest; streams, files and time are handed in
    Row { name: "lua",           ours: &[],                                                     never: &["cap-std", "clap", "hyper", "landlock", "rustix", "tokio", "toml"] },
    // MCP servers as features: the protocol, pins, results; opens nothing, knows no pod's inside
    Row { name: "mcp",           ours: &["authority", "http-client", "llm-worker", "pod"],      never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    // what providers have in common: traits, tools, HTTP with a token; no vendor, no configuration
    Row { name: "api-core",      ours: &["authority", "http-client", "llm-worker", "pod"],      never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    // one vendor each: its bytes to the words of api-core and back
    Row { name: "api-fireflies", ours: &["api-core", "authority", "llm-worker", "pod"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    Row { name: "api-clickup",   ours: &["api-core", "authority", "llm-worker", "pod"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    Row { name: "api-github",    ours: &["api-core", "authority", "llm-worker", "pod"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    Row { name: "api-gitlab",    ours: &["api-core", "authority", "llm-worker", "pod"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    Row { name: "api-jira",      ours: &["api-core", "authority", "llm-worker", "pod"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    Row { name: "api-slack",     ours: &["api-core", "authority", "llm-worker", "pod"], never: &["cap-std", "clap", "hyper", "landlock", "rustix"] },
    // results as texts that cost fewer tokens; no tool, no pod, no file, no clock
    Row { name: "format-pipeline", ours: &[],                                                   never: &["cap-std", "clap", "hyper", "landlock", "rustix", "tokio", "toml"] },
    // what hosts pods: environment, configuration, composition, the process of a pod; no command line, no terminal, no connection to a pod
    Row { name: "host",          ours: &["ambient", "api-core", "authority", "builtins", "knowledge", "llm-worker", "mcp", "offline", "plugin", "pod", "protocol", "provider", "session-store"], never: &["clap", "crossterm", "ratatui", "rusqlite"] },
    // doors for programs that speak other protocols, as clients of a pod; no feature, no configuration, no pod's inside
    Row { name: "serve",         ours: &["client", "protocol"],                                 never: &["cap-std", "clap", "crossterm", "landlock", "ratatui", "rustix", "rustls", "toml"] },
    // the binary: command line and terminal
    Row { name: "yoi",           ours: &["acp", "ambient", "authority", "builtins", "client", "host", "knowledge", "llm-worker", "lua", "mcp", "plugin", "pod", "protocol", "provider", "serve", "session-store", "tui"], never: &["rusqlite"] },
    // scripted model, failing store, wait points: for authors of features
    Row { name: "testkit",       ours: &["ambient", "authority", "llm-worker", "pod", "session-store"], never: &["clap", "hyper"] },
    // the budget table
    Row { name: "bench",         ours: &["authority", "builtins", "llm-worker", "pod", "provider", "session-store", "testkit", "tools", "yoi"], never: &[] },
    // this crate: reads the others as text
    Row { name: "tidy",          ours: &[],                                                     never: &[] },
];

#[test]
fn every_arrow_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bad: Vec<String> = check(&root, ARROWS)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(bad.is_empty(), "\n{}\n", bad.join("\n"));
}

/// The one that matters most: a host that imports its features grows with each of them.
#[test]
fn the_pod_does_not_know_its_features() {
    let pod = ARROWS.iter().find(|row| row.name == "pod").unwrap();
    assert!(
        !pod.ours.contains(&"builtins")
            && !pod.ours.contains(&"tools")
            && !pod.ours.contains(&"provider")
    );
}

/// No feature can make a handle: what makes them is in a crate that only composition roots and the test kit depend on.
#[test]
fn only_composition_roots_can_claim_authority() {
    let claiming: Vec<&str> = ARROWS
        .iter()
        .filter(|row| row.ours.contains(&"ambient"))
        .map(|row| row.name)
        .collect();
    assert_eq!(claiming, ["authority", "host", "yoi", "testkit"]);
}

#[test]
fn the_table_has_no_cycle() {
    let mut left: Vec<&Row> = ARROWS.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        let names: Vec<&str> = left.iter().map(|row| row.name).collect();
        left.retain(|row| row.ours.iter().any(|name| names.contains(name)));
        assert!(left.len() < before, "a cycle among {names:?}");
    }
}

mod seen_to_fail {
    use super::*;

    const TABLE: &[Row] = &[
        Row {
            name: "low",
            ours: &[],
            never: &["hyper"],
        },
        Row {
            name: "high",
            ours: &["low"],
            never: &[],
        },
        Row {
            name: "testkit",
            ours: &["high"],
            never: &[],
        },
        Row {
            name: "mcp",
            ours: &["low"],
            never: &[],
        },
    ];

    fn found(low: &str, more: &[(&str, &str)]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut manifests = vec![
            ("low", low),
            ("high", "[dependencies]\nlow = { path = \"../low\" }"),
        ];
        manifests.push(("testkit", "[dependencies]\nhigh.workspace = true"));
        manifests.push(("plugins/mcp", "[dependencies]\nlow.workspace = true"));
        manifests.extend(more);
        for (place, rest) in manifests {
            let crate_dir = dir.path().join("crates").join(place);
            let name = place.rsplit('/').next().unwrap_or_default();
            std::fs::create_dir_all(&crate_dir).unwrap();
            let text = format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}\n");
            std::fs::write(crate_dir.join("Cargo.toml"), text).unwrap();
        }
        check(dir.path(), TABLE)
            .iter()
            .map(|f| format!("{f}\n"))
            .collect()
    }

    #[test]
    fn each_wrong_manifest() {
        assert_eq!(
            found(
                "[dependencies]\nserde = \"1\"\n[dev-dependencies]\ntestkit.workspace = true\nhyper = \"1\"",
                &[]
            ),
            ""
        );
        for (low, wanted) in [
            (
                "[dependencies]\nhigh.workspace = true",
                "`low` must not depend on `high`",
            ),
            (
                "[build-dependencies]\nhigh.workspace = true",
                "`low` must not depend on `high`",
            ),
            (
                "[dev-dependencies]\nhigh.workspace = true",
                "`low` must not depend on `high`",
            ),
            (
                "[target.'cfg(unix)'.dependencies]\nhigh.workspace = true",
                "`low` must not depend on `high`",
            ),
            (
                "[dependencies]\nx = { package = \"high\", path = \"../high\" }",
                "`low` must not depend on `high`",
            ),
            (
                "[dependencies]\ntestkit.workspace = true",
                "`low` must not depend on `testkit`",
            ),
            (
                "[dependencies]\nhyper.workspace = true",
                "`low` must not know what `hyper` is for",
            ),
            ("[dependencies", "is no TOML"),
        ] {
            let bad = found(low, &[]);
            assert!(bad.contains(wanted), "{low:?} gave {bad:?}");
        }
        assert!(found("", &[("extra", "")]).contains("`extra` has no row"));
        // Crates in the folders of a group.
        let upward = [("plugins/mcp", "[dependencies]\nhigh.workspace = true")];
        assert!(found("", &upward).contains("`mcp` must not depend on `high`"));
        let deeper = [("plugins/api/core", "")];
        assert!(found("", &deeper).contains("`core` has no row"));
    }

    #[test]
    fn a_row_without_a_crate_and_a_crate_without_lints() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("crates/low")).unwrap();
        std::fs::write(
            dir.path().join("crates/low/Cargo.toml"),
            "[package]\nname = \"low\"\n",
        )
        .unwrap();
        let bad: String = check(dir.path(), TABLE)
            .iter()
            .map(|f| format!("{f}\n"))
            .collect();
        assert!(bad.contains("needs `[lints] workspace = true`"), "{bad}");
        assert!(bad.contains("has `high`, the workspace has not"), "{bad}");
    }
}
