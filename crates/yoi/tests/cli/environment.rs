//! What is said of the place, the configuration and the keys a run finds, and what it does without.

use crate::scene::{Done, Scene, finish};
use serde_json::json;
use std::fs;

/// The program started in the home directory, which holds the state directory as a person's does.
fn at_home(scene: &Scene, args: &[&str]) -> Done {
    let mut command = scene.command(args);
    command
        .current_dir(scene.path("home"))
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME");
    finish(command.spawn().unwrap())
}

#[test]
fn in_the_home_directory_there_is_no_shell_and_the_rest_works() {
    let scene = Scene::new();
    fs::write(scene.path("home/notes.txt"), "one\n").unwrap();
    fs::create_dir_all(scene.path("home/.local/state/yoi/pods")).unwrap();
    let done = at_home(&scene, &["run", "--pod", "p", "how many files are here?"]).ends(0);
    let told = done
        .err
        .lines()
        .filter(|line| line.contains("commands cannot run here"))
        .count();
    assert_eq!(told, 1, "{}", done.err);
    assert!(done.err.contains("~/.local/state/yoi"), "{}", done.err);
    let home = scene.path("home").canonicalize().unwrap();
    let report = at_home(&scene, &["features", "p", "--json"]).ends(0);
    assert!(
        !report.out.contains(home.to_str().unwrap()),
        "a report names no home: {}",
        report.out
    );
    let report = report.json();
    let shell = report["features"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["feature_id"] == "builtin:shell")
        .unwrap();
    assert_eq!(shell["outcome"], "skipped");
    assert!(
        shell["diagnostics"][0]["message"]
            .as_str()
            .unwrap()
            .contains("~/.local/state/yoi"),
        "{shell}"
    );
    at_home(&scene, &["doctor"]).prints(&["- commands", "cannot run here", "~/.local/state/yoi"]);
    at_home(&scene, &["run", "-q", "how many files are here?"]).ends(0);
}

#[test]
fn a_project_that_holds_the_state_is_only_read() {
    let scene = Scene::new();
    let call =
        json!({ "calls": [{ "name": "Write", "arguments": { "path": "a.txt", "content": "x" } }] });
    let model = scene.script("answers.jsonl", &[call, json!({ "text": "tried" })]);
    let mut command = scene.command(&["run", "--pod", "p", "-m", &model, "write"]);
    command.env("XDG_STATE_HOME", scene.file("state"));
    let done = finish(command.spawn().unwrap());
    assert_eq!(done.out, "tried\n");
    assert!(!scene.file("a.txt").exists());
    done.says(&[
        "because it contains yoi's own files",
        "commands cannot run here",
    ]);
}

#[test]
fn names_this_build_does_not_have_are_refused_with_the_nearest() {
    let scene = Scene::new();
    let provider = "[providers.local]\napi = \"openai-chat\"\nbase_url = ";
    let rule =
        |tool: &str| format!("[[permissions.rules]]\ntool = \"{tool}\"\ndecision = \"deny\"\n");
    let wrong: [(String, &[&str]); 7] = [
        (
            "[features.\"builtin:shel\"]\nenabled = false\n".into(),
            &[
                "config.toml:1: there is no feature `builtin:shel`",
                "did you mean `builtin:shell`?",
            ],
        ),
        (
            "[features.\"builtin:weather\"]\nenabled = false\n".into(),
            &["no feature `builtin:weather`", "builtin:files"],
        ),
        (
            rule("Wriet"),
            &[
                "config.toml:2: permissions.rules[0].tool: there is no tool `Wriet`",
                "did you mean `Write`?",
            ],
        ),
        (
            format!("{provider}\"nonsense\"\n"),
            &[
                "config.toml:3: providers.local.base_url",
                "http://127.0.0.1",
            ],
        ),
        (
            format!("{provider}\"ftp://h/v1\"\n"),
            &["providers.local.base_url"],
        ),
        (
            "model = \"olama/x\"\n".into(),
            &[
                "config.toml:1: `model`",
                "no provider called `olama`",
                "did you mean `ollama`?",
            ],
        ),
        (
            "model = \"x\"\n".into(),
            &["config.toml:1: `model`", "`x` is not a model"],
        ),
    ];
    for (text, says) in wrong {
        scene.config(&text);
        scene.yoi(&["config", "check"]).ends(78).says(says);
        scene.yoi(&["run", "list the files"]).ends(78).says(says);
    }
    scene.config(&format!(
        "[features.\"builtin:shell\"]\nenabled = false\n{}{}",
        rule("Bash"),
        rule("*")
    ));
    scene.yoi(&["config", "check"]).ends(0);
}

#[test]
fn values_in_force_are_all_shown_with_sources_that_name_no_home() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("home/.config/yoi")).unwrap();
    let text = "[providers.local]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nattempts = 2\n\
                timeouts = { first_byte_s = 7.5 }\n[state]\nany_file_system = true\n";
    fs::write(scene.path("home/.config/yoi/config.toml"), text).unwrap();
    let shown = at_home(&scene, &["config", "show"]).ends(0);
    let row = |key: &str| {
        shown
            .out
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_default()
            .to_owned()
    };
    let file = "(~/.config/yoi/config.toml";
    assert!(
        row("providers.local.timeouts").ends_with(&format!(
            "first_byte_s = 7.5, between_bytes_s = 120  {file}:5)"
        )),
        "{}",
        shown.out
    );
    assert!(
        row("providers.local.attempts").ends_with(&format!("2  {file}:4)")),
        "{}",
        shown.out
    );
    assert!(
        row("state.any_file_system").ends_with(&format!("true  {file}:7)")),
        "{}",
        shown.out
    );
    scene
        .yoi(&["config", "show"])
        .ends(0)
        .prints(&["state.any_file_system    false  (default)"]);
}

#[test]
fn variables_are_documented_and_strange_ones_named_once() {
    let scene = Scene::new();
    scene.yoi(&["config", "--help"]).ends(0).prints(&[
        "YOI_MODEL",
        "YOI_MAX_STEPS",
        "YOI_TOOL_CONCURRENCY",
        "YOI_SANDBOX",
    ]);
    scene.yoi(&["run", "--help"]).ends(0).prints(&[
        "Exit codes:",
        "65        a journal, a plugin or an input is damaged",
    ]);
    let with = |args: &[&str], name: &str, value: &str| {
        finish(scene.command(args).env(name, value).spawn().unwrap())
    };
    with(&["config", "show"], "YOI_TOOL_CONCURRENCY", "3")
        .ends(0)
        .prints(&["3  (YOI_TOOL_CONCURRENCY)"]);
    with(&["config", "show"], "YOI_TOOL_CONCURRENCY", "33")
        .ends(78)
        .says(&["1 to 32"]);
    with(&["config", "show"], "YOI_TOOL_CONCURRENCY", "few")
        .ends(78)
        .says(&["a whole number from 1"]);
    let strange = with(&["run", "list the files"], "YOI_COLOUR_SCHEME", "x").ends(0);
    assert_eq!(
        strange
            .err
            .matches("warning: unknown variables: YOI_COLOUR_SCHEME")
            .count(),
        1,
        "{}",
        strange.err
    );
    let child = with(&["run", "list the files"], "YOI_CALL", "a/1/c1").ends(0);
    assert!(!child.err.contains("warning"), "{}", child.err);
}

#[test]
fn the_planner_says_what_it_is_and_a_key_chooses_another() {
    let scene = Scene::new();
    scene
        .yoi(&["models"])
        .ends(0)
        .prints(&["a rule-based planner that is built into yoi, not a language model"]);
    scene
        .yoi(&["run", "-m", "offline", "list the files"])
        .ends(0)
        .says(&["model: offline (a rule-based planner, from -m)"]);
    scene
        .yoi(&["run", "list the files"])
        .ends(0)
        .says(&["model: offline (a rule-based planner; no language model is configured)"]);
    let mut command = scene.command(&["models"]);
    command.env("ANTHROPIC_API_KEY", "sk-canary-0123456789");
    let done = finish(command.spawn().unwrap()).ends(0);
    assert!(!done.out.contains("canary"));
    done.prints(&[
        "default: anthropic/claude-",
        "ANTHROPIC_API_KEY is set",
        "price: $",
    ]);
}

#[test]
fn an_open_sandbox_is_said_even_to_those_who_want_no_progress() {
    let scene = Scene::new();
    let done = scene
        .yoi(&["run", "-q", "--sandbox", "off", "list the files"])
        .ends(0);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    done.says(&["warning: the sandbox is off"]);
}

#[test]
fn a_chosen_model_whose_server_is_silent_is_broken() {
    let scene = Scene::new();
    // Nobody listens at a port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/v1");
    scene.config(&format!(
        "model = \"local/x\"\n[providers.local]\napi = \"openai-chat\"\nbase_url = \"{url}\"\n"
    ));
    let doctor = scene
        .yoi(&["doctor"])
        .ends(1)
        .prints(&["✗ model", &url, "start that provider"]);
    assert!(!doctor.out.contains("✓ model"), "{}", doctor.out);
}

#[test]
fn the_features_report_fits_eighty_columns() {
    let scene = Scene::new();
    scene.config(
        "[[permissions.rules]]\ntool = \"Write\"\npath = \"generated/protocol/**/*.lock\"\ndecision = \"deny\"\n",
    );
    let shown = scene.yoi(&["features"]).ends(0).prints(&[
        "may    read and write the project\n",
        "start any program",
        "permission rules (`ask`: ",
        "deny Write on generated/protocol/**/*.lock",
    ]);
    let wide: Vec<&str> = shown
        .out
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:?}");
    let plan = scene.yoi(&["features", "--plan", "--json"]).ends(0).json();
    assert!(
        plan["host"]["rules"].as_array().unwrap().len() > 3,
        "{plan}"
    );
    let model = scene.script("answers.jsonl", &[json!({ "text": "done" })]);
    scene.yoi(&["run", "--pod", "p", "-m", &model, "x"]).ends(0);
    scene
        .yoi(&["features", "p"])
        .ends(0)
        .prints(&["start any program", "permission rules (`ask`: "]);
}

#[test]
fn inherited_descriptors_do_not_reach_commands() {
    let scene = Scene::new();
    fs::write(scene.path("secret"), "inherited-secret\n").unwrap();
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "cat <&3 > got; cat got" } }] });
    let model = scene.script("answers.jsonl", &[call, json!({ "text": "tried" })]);
    let yoi = scene.command(&["run", "--pod", "p", "-m", &model, "read"]);
    let started = |program: &std::ffi::OsStr, args: &[&std::ffi::OsStr]| {
        let mut command = scene.command(&[]);
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "exec 3<\"$0\"; exec \"$@\""])
            .arg(scene.path("secret"))
            .arg(program)
            .args(args);
        shell.env_clear().envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell
            .current_dir(scene.path("project"))
            .stdin(std::process::Stdio::null());
        shell
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command = shell;
        finish(command.spawn().unwrap())
    };
    let control = started("sh".as_ref(), &["-c".as_ref(), "cat <&3".as_ref()]).ends(0);
    assert_eq!(control.out, "inherited-secret\n");
    let args: Vec<_> = yoi.get_args().collect();
    let done = started(yoi.get_program(), &args).ends(0);
    assert_eq!(done.out, "tried\n");
    assert!(
        scene
            .yoi(&["log", "p", "--json"])
            .ends(0)
            .out
            .contains("cat <&3"),
        "the command was called"
    );
    assert!(
        !fs::read_to_string(scene.file("got"))
            .unwrap_or_default()
            .contains("inherited-secret")
    );
}
