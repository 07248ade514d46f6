//! Configuration that is wrong is said with its place, ends with 78, and never shows a key.

use crate::scene::{Scene, finish};

/// Stands for a key; it may appear nowhere.
const CANARY: &str = "sk-canary-0123456789";

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_line() {
    let scene = Scene::new();
    let provider = "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let wrong: [(String, &[&str]); 17] = [
        (
            "[limits]\nmax_stepps = 3\n".into(),
            &[
                "config.toml:2:",
                "max_stepps",
                "help: did you mean `max_steps`?",
            ],
        ),
        (
            "modle = \"x\"\n".into(),
            &["config.toml:1:", "did you mean `model`?"],
        ),
        (
            "[limits]\nmax_steps = \"three\"\n".into(),
            &["config.toml:2:", "must be a whole number"],
        ),
        (
            "[limits]\nmax_steps = 0\n".into(),
            &["config.toml", "`max_steps` must be at least 1"],
        ),
        (
            "[limits]\ntool_concurrency = 99\n".into(),
            &["`tool_concurrency` must be 1 to 32"],
        ),
        (
            "[context]\nprune_at = 99\n".into(),
            &["`prune_at` must be 10 to 95 percent"],
        ),
        ("model = \n".into(), &["config.toml:1:"]),
        (
            "[sandbox]\nmode = \"offf\"\n".into(),
            &["config.toml:2:", "did you mean `off`?"],
        ),
        (
            "[providers.x]\napi = \"openai-chat\"\n".into(),
            &["config.toml:1:", "base_url", "add base_url"],
        ),
        (
            provider.replace("openai-chat", "openai"),
            &["config.toml:2:", "openai-chat"],
        ),
        (
            format!("{provider}key = \"{CANARY}\"\n"),
            &["config.toml:4:", "an API key must not be written", "env = "],
        ),
        (format!("{provider}key = {CANARY}\n"), &["config.toml:4:"]),
        (
            format!("{provider}api_key = \"{CANARY}\"\n"),
            &["config.toml:4:", "api_key", "write key = {"],
        ),
        (
            format!("{provider}key = {{ value = \"{CANARY}\" }}\n"),
            &["config.toml:4:", "value"],
        ),
        (
            format!("{provider}key = {{}}\n"),
            &["config.toml:4:", "`key` names no source"],
        ),
        (
            format!("{provider}attempts = 0\n"),
            &["providers.x.attempts", "1 to 20"],
        ),
        (
            format!("{provider}timeouts = {{ connect_s = -1 }}\n"),
            &["providers.x.timeouts", "seconds"],
        ),
    ];
    for (text, says) in wrong {
        scene.config(&text);
        for args in [
            &["config", "check"][..],
            &["run", "x"],
            &["config", "show"],
            &["models"],
        ] {
            let done = scene.yoi(args).ends(78).says(says).says(&["error: "]);
            assert!(
                !done.err.contains(CANARY) && done.out.is_empty(),
                "{text}\n{}",
                done.err
            );
        }
        let doctor = scene.yoi(&["doctor"]).ends(1).prints(&["✗ configuration"]);
        assert!(!doctor.out.contains(CANARY), "{text}");
    }
    scene.config(&format!(
        "{}user:{CANARY}@h/v1\"\n",
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://"
    ));
    let done = scene
        .yoi(&["run", "-m", "x/y", "hi"])
        .ends(78)
        .says(&["it must not contain a user name or password"]);
    assert!(!done.err.contains(CANARY));
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn variables_that_are_wrong_are_said() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    let wrong: [(&str, &[u8], &str); 7] = [
        (
            "YOI_MAX_STEPS",
            b"many",
            "YOI_MAX_STEPS=many: the value must be a whole number",
        ),
        ("YOI_MAX_STEPS", b"0", "must be at least 1"),
        ("YOI_MAX_STEPS", b"-1", "must be a whole number"),
        ("YOI_SANDBOX", b"none", "read-only, workspace-write or off"),
        ("YOI_MODEL", b"nonsense", "`nonsense` is not a model"),
        ("YOI_MODEL", b"\xff", "YOI_MODEL is not UTF-8"),
        ("YOI_MODLE", b"offline", "did you mean YOI_MODEL?"),
    ];
    for (name, value, says) in wrong {
        let value = std::ffi::OsStr::from_bytes(value);
        let child = scene
            .command(&["run", "x"])
            .env(name, value)
            .spawn()
            .unwrap();
        finish(child).ends(78).says(&[says]);
    }
    let others = [
        ("YOI_CALL", "a/1/c1"),
        ("YOI_KEY_OF_MINE", "x"),
        ("YOI_HOME", "x"),
        ("YOI_MODEL", ""),
        ("YOI_MODEL", "offline"),
    ];
    for (name, value) in others {
        finish(
            scene
                .command(&["run", "list the files"])
                .env(name, value)
                .spawn()
                .unwrap(),
        )
        .ends(0);
    }
}

#[test]
fn a_model_that_is_not_there_is_said() {
    let scene = Scene::new();
    let wrong: [(&str, i32, &[&str]); 7] = [
        ("nope", 78, &["`nope` is not a model", "yoi models"]),
        ("", 78, &["is not a model"]),
        (
            "nowhere/x",
            78,
            &[
                "there is no provider called `nowhere`",
                "a known provider: openai",
                "[providers.nowhere]",
            ],
        ),
        (
            "openai/x",
            78,
            &[
                "no API key for openai: OPENAI_API_KEY is not set",
                "set OPENAI_API_KEY",
            ],
        ),
        (
            "anthropic/x",
            78,
            &["no API key for anthropic", "set ANTHROPIC_API_KEY"],
        ),
        ("scripted:none.jsonl", 65, &["none.jsonl", "does not exist"]),
        (
            "scripted:bad.jsonl",
            65,
            &["bad.jsonl:2:7: unknown key `txet`", "did you mean `text`?"],
        ),
    ];
    scene.write("bad.jsonl", "{\"text\":\"x\"}\n{\"txet\":1}\n");
    for (model, code, says) in wrong {
        scene.yoi(&["run", "-m", model, "x"]).ends(code).says(says);
    }
    let key = |value: &str| {
        let child = scene
            .command(&["run", "-m", "openai/x", "x"])
            .env("OPENAI_API_KEY", value)
            .spawn()
            .unwrap();
        finish(child).ends(78)
    };
    key(" ").says(&["OPENAI_API_KEY is empty"]);
    let provider =
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey = ";
    let places: [(&str, &[&str]); 5] = [
        (
            "{ env = \"X_KEY\" }",
            &["no API key for x: X_KEY is not set", "export X_KEY=…"],
        ),
        (
            "{ file = \"~/none\" }",
            &["no API key for x: ~/none", "does not exist"],
        ),
        (
            "{ command = [\"false\"] }",
            &["no API key for x: `false`", "exit code 1"],
        ),
        ("{ command = [\"true\"] }", &["printed no key"]),
        ("{ command = [] }", &["key.command` is empty"]),
    ];
    for (place, says) in places {
        scene.config(&format!("{provider}{place}\n"));
        scene.yoi(&["run", "-m", "x/y", "hi"]).ends(78).says(says);
    }
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn the_sources_of_values_are_shown() {
    let scene = Scene::new();
    scene.config("[limits]\nmax_steps = 7\n[sandbox]\nmode = \"read-only\"\n");
    let child = scene
        .command(&["config", "show"])
        .env("YOI_MAX_STEPS", "9")
        .spawn()
        .unwrap();
    let shown = finish(child).ends(0);
    assert!(
        shown
            .out
            .lines()
            .any(|l| l.starts_with("limits.max_steps") && l.ends_with("9  (YOI_MAX_STEPS)"))
    );
    assert!(shown.out.lines().any(|l| l.starts_with("sandbox.mode")
        && l.contains("read-only")
        && l.contains("config.toml")));
}

#[test]
fn the_switches_of_features_and_rules_act() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:shell\"]\nenabled = false\n");
    scene
        .yoi(&["features"])
        .ends(0)
        .prints(&["- builtin:shell"]);
    scene.config("[features.\"builtin:shell\"]\nenabled = false\nrequired = true\n");
    scene
        .yoi(&["run", "x"])
        .ends(78)
        .says(&["builtin:shell is required"]);
    scene.config("[features.\"builtin:nothing\"]\nrequired = true\n");
    scene
        .yoi(&["run", "x"])
        .ends(78)
        .says(&["there is no feature `builtin:nothing`"]);
    scene.config("[features.\"no id\"]\nenabled = true\n");
    scene
        .yoi(&["run", "x"])
        .ends(78)
        .says(&["no id", "yoi features"]);
    scene.config(
        "[[permissions.rules]]\ntool = \"Write\"\npath = \"**/*.lock\"\ndecision = \"deny\"\n",
    );
    let write = serde_json::json!({ "calls": [{ "name": "Write", "arguments": { "path": "a.lock", "content": "x" } }] });
    let model = scene.script(
        "script.jsonl",
        &[write, serde_json::json!({ "text": "it is denied" })],
    );
    let done = scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(3)
        .says(&["⊘"]);
    assert_eq!(done.out, "it is denied\n");
    assert!(!scene.file("a.lock").exists());
    scene.config("[[permissions.rules]]\ntool = \"Write\"\npath = \"[\"\ndecision = \"deny\"\n");
    scene
        .yoi(&["config", "check"])
        .ends(78)
        .says(&["config.toml"]);
}
