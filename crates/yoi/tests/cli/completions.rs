//! What shells complete. Bash is asked as at a press of Tab; of others, the syntax is checked where they are.

use crate::scene::{Scene, finish};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What bash offers at the end of this line.
fn offered(scene: &Scene, line: &[&str]) -> Vec<String> {
    let ask = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _clap_complete_yoi yoi \"${!#}\" x; \
               printf '%s\\n' \"${COMPREPLY[@]}\"";
    let plain = scene.command(&[]);
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ask])
        .arg(scene.path("completions"))
        .arg("yoi")
        .args(line);
    bash.env_clear().envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let beside = Path::new(plain.get_program()).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    bash.env("PATH", format!("{}:{path}", beside.display()))
        .current_dir(scene.path("project"));
    bash.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(bash.spawn().unwrap()).ends(0);
    assert_eq!(done.err, "");
    done.out
        .lines()
        .map(|word| word.trim_end().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn bash_completes_commands_flags_pods_and_models() {
    let scene = Scene::new();
    let script = scene.yoi(&["completions", "bash"]).ends(0).out;
    fs::write(scene.path("completions"), script).unwrap();
    let model = scene.script("s.jsonl", &[json!({ "text": "x" })]);
    for pod in ["blue", "blond"] {
        scene.yoi(&["run", "--pod", pod, "-m", &model, "x"]).ends(0);
    }
    scene.write("notes.txt", "");
    scene.config("[providers.local]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[models.\"local/mine\"]\nmax_output = 9\n");
    fs::create_dir_all(scene.path("state/yoi/mcp")).unwrap();
    let server = json!({
        "format": 1, "name": "tracker", "launch": { "url": "https://example.org/mcp" }, "era": "modern",
        "protocol": "2026-07-28", "digest": "", "tools": [],
    });
    fs::write(scene.path("state/yoi/mcp/tracker.json"), server.to_string()).unwrap();
    for private in ["state/yoi/mcp", "state/yoi", "state/yoi/mcp/tracker.json"] {
        let mode = if private.ends_with("json") {
            0o600
        } else {
            0o700
        };
        fs::set_permissions(scene.path(private), fs::Permissions::from_mode(mode)).unwrap();
    }
    let cases: &[(&[&str], &[&str])] = &[
        (&["lo"], &["log"]),
        (&["__"], &[]),
        (&["run", "--out"], &["--output-schema"]),
        (&["run", "--sandbox", "w"], &["workspace-write"]),
        (&["log", "bl"], &["blond", "blue"]),
        (&["log", "--follow", "blu"], &["blue"]),
        (&["verify", "blo"], &["blond"]),
        (&["diff", "blo"], &["blond"]),
        (&["undo", "blo"], &["blond"]),
        (&["send", "blo"], &["blond"]),
        (&["send", "blo", "--st"], &["--steer"]),
        (&["attach", "blo"], &["blond"]),
        (&["notify", "blo"], &["blond"]),
        (&["status", "blo"], &["blond"]),
        (&["stop", "blo"], &["blond"]),
        (&["pause", "blo"], &["blond"]),
        (&["resume", "blo"], &["blond"]),
        (&["cancel", "blo"], &["blond"]),
        (&["ps", "blo"], &["blond"]),
        (&["rm", "--purge", "blo"], &["blond"]),
        (&["features", "blo"], &["blond"]),
        (&["mcp", "pin", "tr"], &["tracker"]),
        (&["mcp", "show", "tr"], &["tracker"]),
        (&["mcp", "remove", "tr"], &["tracker"]),
        (&["run", "--pod", "blu"], &["blue"]),
        (&["run", "-m", "off"], &["offline"]),
        (&["run", "-m", "local/"], &["local/mine"]),
        (&["completions", "z"], &["zsh"]),
        (&["log", "nobody"], &[]),
        (&["run", "--output-schema", "no"], &["notes.txt"]),
    ];
    for (line, expected) in cases {
        assert_eq!(offered(&scene, line), *expected, "{line:?}");
    }
    scene.yoi(&["rm", "blond"]).ends(0);
    assert_eq!(offered(&scene, &["log", "bl"]), ["blue"]);
}

#[test]
fn every_shell_has_a_script() {
    let scene = Scene::new();
    for shell in ["bash", "zsh", "fish", "elvish"] {
        let script = scene.yoi(&["completions", shell]).ends(0).out;
        assert!(script.contains("YOI_COMPLETE"), "{shell}: {script}");
        let file = scene.path(shell);
        fs::write(&file, script).unwrap();
        let checked = Command::new(shell)
            .arg("-n")
            .arg(&file)
            .stdin(Stdio::null())
            .output();
        match checked {
            Ok(done) if shell != "elvish" => assert!(done.status.success(), "{shell}: {done:?}"),
            Ok(_) | Err(_) => println!("skipped: {shell} is not here, or checks nothing"),
        }
    }
    scene.yoi(&["completions", "tcsh"]).ends(2).says(&["bash"]);
    // Whoever only has the variable set is not asking.
    let mut plain = scene.command(&["ls"]);
    plain.env("YOI_COMPLETE", "");
    finish(plain.spawn().unwrap()).ends(0);
}
