//! Packages in the layouts of others: added, shown and granted under one digest; each part works, or is named as what does not.

use crate::scene::{Scene, finish};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const AGENT: &str =
    r#"{"$schema": "https://example.org/s.json", "name": "kit", "version": "1.0.0"}"#;
const SKILL: &str = "---\nname: deploy\ndescription: How to deploy.\n---\nThe body of deploy.\n";

/// A package beside the project.
fn package(scene: &Scene, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = scene.path(name);
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn whole(
    manifest: (&'static str, &'static str),
    servers: &'static str,
) -> Vec<(&'static str, &'static str)> {
    vec![
        manifest,
        ("skills/deploy/SKILL.md", SKILL),
        ("skills/deploy/steps.md", "one step\n"),
        ("skills/bad/SKILL.md", "---\nname: bad\n---\n"),
        (
            "commands/review.md",
            "---\ndescription: Review it\n---\nReview $1.\n",
        ),
        (
            "agents/helper.md",
            "---\nname: helper\ndescription: Helps.\n---\nYou help.\n",
        ),
        ("hooks/hooks.json", "{}"),
        (
            servers,
            r#"{"mcpServers": {"far": {"type": "http", "url": "https://a.org"}, "bad": {"command": "a b"}}}"#,
        ),
    ]
}

#[test]
fn both_layouts_are_shown_granted_and_used() {
    for (manifest, servers) in [
        (("plugin.json", AGENT), "mcp.json"),
        (
            (
                ".claude-plugin/plugin.json",
                r#"{"name": "kit", "version": "1.0.0"}"#,
            ),
            ".mcp.json",
        ),
    ] {
        let scene = Scene::new();
        let dir = package(&scene, "kit", &whole(manifest, servers));
        scene.yoi(&["plugin", "add", dir.to_str().unwrap()]).ends(0);
        let parts = [
            "skill deploy: the model reads it",
            "command /kit:review: its text becomes your input",
            "agent helper.md: the system prompt has its text when you start a pod as this agent",
            "MCP server far: https://a.org: listed, not started",
            "hooks of Claude Code: not supported",
        ];
        let shown = scene.yoi(&["plugin", "show", "kit"]).ends(0).prints(&parts);
        shown.prints(&[
            "server `bad`: `command` is not one word",
            "skills/bad/SKILL.md: it has no description",
        ]);
        scene.yoi(&["grant"]).ends(0).prints(&parts);
        let about = "the system prompt has: How to deploy.";
        scene.yoi(&["grant"]).ends(0).prints(&[about]);
        let model = scene.script(
            "script.jsonl",
            &[
                json!({ "calls": [{ "name": "Skill", "arguments": { "name": "deploy", "file": "steps.md" } }] }),
                json!({ "text": "done" }),
            ],
        );
        let args = [
            "run",
            "--sandbox",
            "off",
            "--pod",
            "p",
            "-m",
            &model,
            "/kit:review a.rs",
        ];
        let refused = scene.yoi(&args).ends(2);
        refused.says(&["there is no command `/kit:review`"]);
        let mut as_text = args;
        as_text[7] = " /kit:review a.rs";
        scene.yoi(&as_text).ends(0);
        let before = scene.records("p");
        assert!(
            !before
                .iter()
                .any(|record| record.to_string().contains("How to deploy")),
            "nothing before a grant"
        );
        scene.yoi(&["rm", "--purge", "p"]).ends(0);
        scene.yoi(&["grant", "plugin:kit"]).ends(0);
        scene.yoi(&args).ends(0);
        let records = scene.records("p");
        let of = |kind: &str| {
            records
                .iter()
                .find(|record| record["k"] == kind)
                .unwrap()
                .clone()
        };
        let system = of("surface")["surface"]["system"].to_string();
        assert!(
            system.contains("Of plugin kit:\\n- deploy: How to deploy."),
            "{system}"
        );
        assert_eq!(of("input_queued")["text"], "Review a.rs.");
        assert_eq!(of("input_queued")["command"]["source"], "plugin kit");
        assert!(of("tool_finished").to_string().contains("one step"));
        scene.yoi(&["rm", "--purge", "p"]).ends(0);
        // One digest over all: another word of a skill is another package.
        let added = scene.path("config/yoi/plugins/kit/skills/deploy/SKILL.md");
        fs::write(&added, SKILL.replace("deploy.", "deploy, changed.")).unwrap();
        scene.yoi(&as_text).ends(0);
        let changed = scene
            .records("p")
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        assert!(
            !changed.contains("changed.") && !changed.contains("Review a.rs"),
            "{changed}"
        );
    }
}

/// Layouts that are published, by their files, and what each comes to.
#[test]
fn published_layouts_come_to_their_parts() {
    let claude = |rest: &'static str| vec![(".claude-plugin/plugin.json", rest)];
    let with = |mut files: Vec<(&'static str, &'static str)>,
                more: &[(&'static str, &'static str)]| {
        files.extend(more);
        files
    };
    let agent = vec![("plugin.json", AGENT)];
    let named = claude(r#"{"name": "kit"}"#);
    let cases = [
        (agent.clone(), vec!["kit 1.0.0"]),
        (named.clone(), vec!["kit 0.0.0"]),
        (
            with(agent.clone(), &[("README.md", "x"), ("LICENSE", "x")]),
            vec!["kit 1.0.0"],
        ),
        (
            with(agent.clone(), &[("skills/deploy/SKILL.md", SKILL)]),
            vec!["skill deploy"],
        ),
        (
            with(agent.clone(), &[("skills/other/SKILL.md", SKILL)]),
            vec![
                "its name is deploy, not that of its directory",
                "skill deploy",
            ],
        ),
        (
            with(
                agent.clone(),
                &[("skills/SKILL.md", SKILL), ("skills/a/b/SKILL.md", SKILL)],
            ),
            vec!["kit 1.0.0"],
        ),
        (
            with(agent.clone(), &[("skills/x/SKILL.md", "no front matter")]),
            vec!["it has no description"],
        ),
        (
            with(
                agent.clone(),
                &[("skills/x/SKILL.md", "---\ndescription: a: b\n---\n")],
            ),
            vec!["skill x"],
        ),
        (
            with(
                agent.clone(),
                &[("skills/x/SKILL.md", "---\ndescription: &a b\n---\n")],
            ),
            vec!["has an anchor"],
        ),
        (
            with(agent.clone(), &[("mcp.json", "{}")]),
            vec!["`mcpServers` is not an object"],
        ),
        (with(agent.clone(), &[("mcp.json", "[")]), vec!["mcp.json:"]),
        (
            with(
                agent.clone(),
                &[(
                    "mcp.json",
                    r#"{"mcpServers": {"a": {"command": "uvx", "args": ["x"]}}}"#,
                )],
            ),
            vec!["MCP server a: `uvx x`"],
        ),
        (
            with(
                agent.clone(),
                &[(".mcp.json", r#"{"mcpServers": {"a": {"command": "uvx"}}}"#)],
            ),
            vec!["kit 1.0.0"],
        ),
        (
            with(
                named.clone(),
                &[(".mcp.json", r#"{"a": {"command": "uvx"}}"#)],
            ),
            vec!["MCP server a: `uvx`"],
        ),
        (
            with(named.clone(), &[("commands/a.md", "Do it.")]),
            vec!["command /kit:a"],
        ),
        (
            with(named.clone(), &[("commands/sub/a.md", "Do it.")]),
            vec!["command /kit:sub:a"],
        ),
        (
            with(named.clone(), &[("commands/a b.md", "Do it.")]),
            vec!["its name is not"],
        ),
        (
            with(named.clone(), &[("commands/a.md", "---\nx: y\n---\n")]),
            vec!["it has no text"],
        ),
        (
            with(
                named.clone(),
                &[("commands/a.txt", "x"), ("commands/README", "x")],
            ),
            vec!["kit 0.0.0"],
        ),
        (
            with(named.clone(), &[("agents/a.md", "You are.")]),
            vec!["agents/a.md: it has no description in front matter; it is left out"],
        ),
        (
            with(named.clone(), &[("hooks/hooks.json", "{}")]),
            vec!["hooks of Claude Code: not supported"],
        ),
        (
            claude(r#"{"name": "kit", "hooks": "./h.json"}"#),
            vec!["`hooks` is not read"],
        ),
        (
            claude(r#"{"name": "kit", "skills": "./s"}"#),
            vec!["`skills` is not read"],
        ),
        (
            claude(r#"{"name": "kit", "author": "Me"}"#),
            vec!["authors: Me"],
        ),
        (
            claude(r#"{"name": "kit", "displayName": "Kit"}"#),
            vec!["`displayName` is not known"],
        ),
        (
            with(
                agent.clone(),
                &[(".claude-plugin/plugin.json", r#"{"name": "other"}"#)],
            ),
            vec!["kit 1.0.0"],
        ),
    ];
    for (files, words) in &cases {
        let scene = Scene::new();
        let dir = package(&scene, "kit", files);
        scene
            .yoi(&["plugin", "check", dir.to_str().unwrap()])
            .ends(0)
            .prints(words);
    }
    for (files, why) in [
        (
            vec![("plugin.json", r#"{"name": "kit"}"#)],
            "`$schema` is missing",
        ),
        (vec![("plugin.json", "{")], "plugin.json"),
        (claude("{}"), "`name` is missing"),
        (claude(r#"{"name": "Kit"}"#), "1 to 64 bytes"),
        (
            vec![("skills/deploy/SKILL.md", SKILL)],
            "there is no plugin.toml",
        ),
    ] {
        let scene = Scene::new();
        let dir = package(&scene, "kit", &files);
        scene
            .yoi(&["plugin", "check", dir.to_str().unwrap()])
            .ends(65)
            .prints(&[why]);
    }
}

#[test]
fn a_revoked_package_has_no_command_in_a_running_pod() {
    let scene = Scene::new();
    let files = [("plugin.json", AGENT), ("commands/review.md", "Review $1.")];
    let dir = package(&scene, "kit", &files);
    scene.yoi(&["plugin", "add", dir.to_str().unwrap()]).ends(0);
    scene.yoi(&["grant", "plugin:kit"]).ends(0);
    let answers: Vec<_> = ["one", "two"].map(|text| json!({ "text": text })).into();
    let model = scene.script("script.jsonl", &answers);
    let args = ["start", "p", "--foreground", "--quiet", "-m", &model];
    let host = scene.command(&args).spawn().unwrap();
    while !scene.pod("p").join("sock").exists() {
        std::thread::yield_now();
    }
    let sent = || scene.yoi(&["send", "p", "/kit:review a.rs"]);
    sent().ends(0);
    scene.yoi(&["revoke", "plugin:kit"]).ends(0);
    let refused = sent();
    scene.yoi(&["stop", "p"]).ends(0);
    finish(host).ends(0);
    let words = "the grant of this plugin was revoked or replaced";
    assert!(
        refused.code() != Some(0) && refused.err.contains(words),
        "{refused:?}"
    );
    let texts = scene.records("p");
    let inputs = texts.iter().filter(|record| record["k"] == "input_queued");
    assert_eq!(inputs.count(), 1);
}

#[test]
fn skills_of_a_package_are_not_read_where_commands_write() {
    let scene = Scene::new();
    let files = [("plugin.json", AGENT), ("skills/deploy/SKILL.md", SKILL)];
    let dir = package(&scene, "kit", &files);
    scene.yoi(&["plugin", "add", dir.to_str().unwrap()]).ends(0);
    scene.yoi(&["grant", "plugin:kit"]).ends(0);
    let cache = scene.file("cache");
    let model = scene.script("script.jsonl", &[json!({ "text": "done" })]);
    let args = ["run", "--sandbox", "off", "--pod", "p", "-m", &model, "go"];
    let mut command = scene.command(&args);
    command.env("XDG_CACHE_HOME", &cache);
    finish(command.spawn().unwrap()).ends(0);
    let surface = scene.records("p");
    let surface = surface.iter().find(|record| record["k"] == "surface");
    assert!(!surface.unwrap().to_string().contains("How to deploy"));
}
