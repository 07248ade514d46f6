//! MCP servers from `yoi mcp add` to calls of a scripted model, with a server that does what real ones do wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

#[allow(dead_code, reason = "the scene is that of the command line's tests")]
#[path = "../cli/scene.rs"]
mod scene;

#[allow(dead_code, reason = "the person is that of the command line's tests")]
#[path = "../cli/person.rs"]
mod person;

mod bounds;
mod calls;
mod deferred;
mod ends;
mod http;
mod prompts;
mod questions;
mod serving;
mod serving_http;

use person::AtTerminal;
use scene::{Done, Scene, finish};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Programs of the machine: those of a home directory are not there for children of a scene.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A scene with the server in its project; none on a machine without Python.
fn scene() -> Option<Scene> {
    let has = std::env::split_paths(SYSTEM_PATH).any(|dir| dir.join("python3").is_file());
    if !has {
        eprintln!("left out: there is no python3 in {SYSTEM_PATH}");
        return None;
    }
    let scene = Scene::new();
    scene.write("server.py", include_str!("server.py"));
    Some(scene)
}

fn yoi(scene: &Scene, args: &[&str]) -> Done {
    finish(
        scene
            .command(args)
            .env("PATH", SYSTEM_PATH)
            .spawn()
            .unwrap(),
    )
}

/// Adds the server with these words.
fn add(scene: &Scene, name: &str, words: &str) -> Done {
    let server = server(scene);
    let mut args = vec!["mcp", "add", name, "--", "python3", &server];
    args.extend(words.split(' '));
    yoi(scene, &args).ends(0)
}

/// The path of the server.
fn server(scene: &Scene) -> String {
    scene.file("server.py").to_str().unwrap().to_owned()
}

/// A directory outside of the project, and the path of the server in it.
fn outside(scene: &Scene) -> (String, String) {
    let dir = scene.path("servers");
    std::fs::create_dir_all(&dir).unwrap();
    let server = dir.join("server.py");
    std::fs::copy(scene.file("server.py"), &server).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    (text(&dir), text(&server))
}

/// How often the server was started in a scene.
fn starts(scene: &Scene) -> usize {
    lines(&scene.file("starts")).len()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_server_is_asked_once_and_then_described_without_it() {
    let Some(scene) = scene() else { return };
    for (name, words, protocol, started) in [
        ("old", "legacy", "2025-06-18", 1),
        ("new", "modern", "2026-07-28", 1),
        // It dies at a request that it does not know.
        ("fussy", "legacy fussy", "2025-06-18", 2),
    ] {
        let before = starts(&scene);
        let added = add(&scene, name, words);
        added.prints(&[
            &format!("added {name}: 13 tools, 2 left out, protocol {protocol}"),
            "tool `a_b` is left out",
            "tool `tasks` is left out",
            "has a schema that cannot be used",
            "comes back to an earlier page",
            "a tool without a name is left out",
            "need your approval",
        ]);
        assert_eq!(starts(&scene), before + started, "{name}");
    }
    let before = starts(&scene);
    yoi(&scene, &["mcp", "list"])
        .ends(0)
        .prints(&["new  13 tools", "old  13 tools"]);
    let shown = yoi(&scene, &["mcp", "show", "old"]).ends(0);
    shown.prints(&[
        "bin/python3 ",
        "/server.py legacy",
        "says that it is: fake 1.2.3",
        "mcp__old__show_log_gr__e  asks",
        "mcp__old__untyped  asks",
        "mcp__old__any  asks",
    ]);
    let listed = yoi(&scene, &["mcp", "list", "--json"]).ends(0).json();
    assert_eq!(listed["servers"].as_array().map(Vec::len), Some(3));
    let features = yoi(&scene, &["features"]).ends(0);
    features.prints(&["plugin:mcp/old", "plugin:mcp/new"]);
    let model = scene.script("none.jsonl", &[json!({ "text": "done" })]);
    yoi(&scene, &["run", "-m", &model, "go"]).ends(0);
    assert_eq!(starts(&scene), before, "nothing was called");
    yoi(&scene, &["mcp", "remove", "old"]).ends(0);
    yoi(&scene, &["mcp", "show", "old"])
        .ends(2)
        .says(&["no MCP server `old`"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &scene
            .path("state/yoi/mcp/new.json")
            .metadata()
            .unwrap()
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_a_server_changed_is_shown_and_taken_by_pin_alone() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern");
    let path = scene.path("state/yoi/mcp/fake.json");
    let digest = || {
        yoi(&scene, &["mcp", "show", "fake", "--json"])
            .ends(0)
            .json()["digest"]
            .clone()
    };
    let first = digest();
    yoi(&scene, &["mcp", "pin", "fake"])
        .ends(0)
        .prints(&["its definitions are as they were"]);
    assert_eq!(digest(), first);
    // The server of today.
    let text = std::fs::read_to_string(scene.file("server.py")).unwrap();
    scene.write("server.py", text.replace("\"changed\" in words", "True"));
    let differences = [
        "- any",
        "~ echo: description",
        "    - description: Say it again.",
        "    + description: Say it twice.",
    ];
    yoi(&scene, &["mcp", "pin", "fake", "--dry-run"])
        .ends(0)
        .prints(&differences);
    assert_eq!(digest(), first);
    // What the model has stays, and the person learns it.
    let call = json!({ "calls": [{ "name": "mcp__fake__echo", "arguments": { "text": "x" } }] });
    let model = scene.script("call.jsonl", &[call, json!({ "text": "done" })]);
    allow(&scene, &["mcp__fake__echo"]);
    let run = yoi(&scene, &["run", "--pod", "p", "-m", &model, "go"]).ends(0);
    run.says(&[
        "2 of its definitions are not as they were pinned",
        "yoi mcp pin fake",
    ]);
    let request = yoi(&scene, &["features", "p", "--json"]).ends(0).out;
    assert!(!request.contains("Say it twice"), "{request}");
    let pin = ["mcp", "pin", "fake", "--trust", "--rename", "a_b=ab"];
    yoi(&scene, &pin).ends(3).prints(&differences).says(&[
        "nobody can be asked whether to take what changed",
        "help: `--yes` takes it without a question",
    ]);
    for answer in ["n\n", "\n", "always\n"] {
        let mut person = AtTerminal::start(&scene, "y\n", &pin);
        person.sees("take these definitions? y or n: ");
        person.types(answer);
        person.sees("fake stays as it was pinned");
        person.ends(3);
    }
    assert_eq!(digest(), first, "only a person takes what changed");
    let mut person = AtTerminal::start(&scene, "", &pin);
    person.sees("take these definitions? y or n: ");
    person.types("y\n");
    person.sees("pinned fake: 13 tools");
    person.ends(0);
    assert_ne!(digest(), first);
    yoi(&scene, &["mcp", "show", "fake"])
        .ends(0)
        .prints(&["mcp__fake__echo  reads  Say it twice.", "  ab  asks"]);
    // A file that another program wrote does not count.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("Say it twice.", "Say it thrice.")).unwrap();
    yoi(&scene, &["mcp", "show", "fake"])
        .ends(78)
        .says(&["other definitions than its digest says"]);
}

/// Allows calls of these tools by rules of the person.
fn allow(scene: &Scene, tools: &[&str]) {
    let rule =
        |tool: &&str| format!("[[permissions.rules]]\ntool = \"{tool}\"\ndecision = \"allow\"\n");
    let rules: Vec<String> = tools.iter().map(rule).collect();
    scene.config(&rules.concat());
}

/// A run in which the model makes each of these calls in a request of its own; gives their results in order, as the model
/// gets them, and how the run ended.
fn run_calls(scene: &Scene, pod: &str, calls: &[(&str, Value)]) -> (Vec<(String, String)>, Done) {
    let call = |(name, arguments): &(&str, Value)| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let mut script: Vec<Value> = calls.iter().map(call).collect();
    script.push(json!({ "text": "done" }));
    let model = scene.script("calls.jsonl", &script);
    let run = yoi(scene, &["run", "--pod", pod, "-m", &model, "go"]);
    let records = scene.records(pod);
    let finished = records
        .iter()
        .filter(|record| record["k"] == "tool_finished");
    let text = |record: &Value| {
        let status = record["outcome"]["status"].as_str().unwrap_or_default();
        let all = record.to_string();
        (status.to_owned(), all)
    };
    (finished.map(text).collect(), run)
}

#[test]
fn what_a_pod_could_have_written_is_no_server() {
    let Some(scene) = scene() else { return };
    scene.write("run.sh", "#!/bin/sh\nexec python3 server.py modern\n");
    let path = scene.file("run.sh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    yoi(&scene, &["mcp", "add", "fake", "--", "./run.sh"])
        .ends(69)
        .says(&["commands of pods may write", "outside of the project"]);
    // With no more than commands have, a script may be theirs.
    scene.config("[secrets]\ntracker = { env = \"TRACKER\" }\n");
    for more in [&["--network"][..], &["--secret", "KEY=tracker"]] {
        let script = ["--", "python3", &server(&scene), "modern"];
        let args = [&["mcp", "add", "fake"], more, &script].concat();
        let mut command = scene.command(&args);
        command
            .env("PATH", SYSTEM_PATH)
            .env("TRACKER", "a key of a tracker");
        finish(command.spawn().unwrap())
            .ends(69)
            .says(&["commands of pods may write", "server.py"]);
    }
    assert_eq!(starts(&scene), 0);
    let home = scene.path("home");
    let lent = ["mcp", "add", "fake", "--read-dir", home.to_str().unwrap()];
    yoi(
        &scene,
        &[&lent[..], &["--", "python3", &server(&scene)]].concat(),
    )
    .ends(2)
    .says(&["would give access to the home directory"]);
    scene.config("[sandbox]\nmode = \"off\"\n");
    let plain = [
        "mcp",
        "add",
        "fake",
        "--",
        "python3",
        &server(&scene),
        "modern",
    ];
    yoi(&scene, &plain)
        .ends(69)
        .says(&["without a sandbox nothing confines"]);
    assert_eq!(starts(&scene), 0);
}

#[test]
fn a_server_is_not_called_fine_whose_script_is_gone() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern");
    let doctor = |scene: &Scene| yoi(scene, &["doctor"]);
    let tokens = yoi(&scene, &["mcp", "list", "--json"]).ends(0).json();
    let tokens = tokens["servers"][0]["estimated_tokens"].as_u64().unwrap();
    assert!((100..1_000).contains(&tokens), "{tokens}");
    let words = format!("about {tokens} tokens");
    yoi(&scene, &["mcp", "list"]).ends(0).prints(&[&words]);
    doctor(&scene).prints(&[&format!("fake (13 tools, {words})")]);
    std::fs::remove_file(scene.file("server.py")).unwrap();
    let found =
        doctor(&scene).prints(&["fake: ", "/server.py does not exist", "yoi mcp remove fake"]);
    assert!(!found.out.contains("fake (13 tools"), "{}", found.out);
}

#[test]
fn a_person_is_told_what_a_silent_server_is_waited_for() {
    let Some(scene) = scene() else { return };
    scene.write(
        "silent.py",
        "import sys\nsys.stdin.readline()\nopen('/dev/stdin').read()\n",
    );
    let silent = scene.file("silent.py");
    let mut child = scene
        .command(&[
            "mcp",
            "add",
            "mute",
            "--",
            "python3",
            silent.to_str().unwrap(),
        ])
        .env("PATH", SYSTEM_PATH)
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut told)
        .unwrap();
    assert_eq!(
        told,
        "waiting for mute to answer a greeting and to list its tools, up to 120 s\n"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn servers_of_other_programs_are_shown_and_not_added() {
    let Some(scene) = scene() else { return };
    let project = json!({ "mcpServers": {
        "My Server": {
            "command": "python3",
            "args": ["server.py", "two words"],
            "env": { "API_KEY": "value-of-the-key", "OTHER": "${HOME}", "MODE": "a b" },
        },
        "-odd": { "command": "odd" },
        "far": { "type": "http", "url": "https://example.org/mcp?key=value-of-the-key", "headers": { "X-Key": "value-of-the-key" } },
        "old": { "type": "sse", "url": "https://example.org/sse" },
    } });
    scene.write(".mcp.json", project.to_string());
    let codex = "[mcp_servers.docs]\ncommand = \"docs-server\"\nargs = [\"--stdio\"]\n";
    std::fs::create_dir_all(scene.path("home/.codex")).unwrap();
    std::fs::write(scene.path("home/.codex/config.toml"), codex).unwrap();
    let shown = yoi(&scene, &["mcp", "import"]).ends(0);
    let shown = shown.prints(&[
        "My Server  (",
        "yoi mcp add my-server --secret API_KEY=SECRET --env 'MODE=a b' --secret OTHER=SECRET -- python3 server.py 'two words'",
        "yoi mcp add odd -- odd",
        "yoi mcp add far --url 'https://example.org/mcp?…' --header-secret X-Key=SECRET",
        "the older form of HTTP",
        "yoi mcp add docs -- docs-server --stdio",
    ]);
    assert!(!shown.out.contains("value-of-the-key"), "{}", shown.out);
    let listed = yoi(&scene, &["mcp", "list"]).ends(0);
    listed.prints(&["My Server", "there are no MCP servers"]);
    let model = scene.script("none.jsonl", &[json!({ "text": "done" })]);
    yoi(&scene, &["run", "-m", &model, "go"]).ends(0);
    assert_eq!(starts(&scene), 0);
    scene.write("broken.json", "{ \"key\": \"value-of-the-key\"");
    let broken = yoi(&scene, &["mcp", "import", "broken.json"]).ends(1);
    let broken = broken.prints(&["broken.json: is not JSON"]);
    assert!(!broken.out.contains("value-of-the-key"), "{}", broken.out);
}
