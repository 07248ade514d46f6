//! Keys that a command prints, and whom a key is shown to.

use crate::endpoint::{Endpoint, text};
use crate::scene::{Done, Scene, finish};
use serde_json::Value;

/// A run with this key at an endpoint; what the endpoint got as authorization, and how the run went.
fn asked(scene: &Scene, key: &str) -> (Vec<String>, Done) {
    let endpoint = Endpoint::start(|_, _| text("hello"));
    let url = format!("http://127.0.0.1:{}/v1", endpoint.port);
    scene.config(&format!(
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"{url}\"\nkey = {key}\n"
    ));
    let done = scene.yoi(&["run", "--ephemeral", "-m", "x/y", "hi"]);
    let bearer = |head: &str| {
        let line = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("authorization: bearer ")
                .map(str::to_owned)
        });
        line.unwrap_or_default()
    };
    (
        endpoint
            .requests()
            .iter()
            .map(|request| bearer(&request.head))
            .collect(),
        done,
    )
}

#[test]
fn a_key_command_runs_outside_of_the_project_and_is_bounded() {
    let scene = Scene::new();
    scene.write("evil", "#!/bin/sh\necho from-the-project\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scene.file("evil"), mode).unwrap();
    let (keys, _) = asked(
        &scene,
        "{ command = [\"sh\", \"-c\", \"echo $PWD:$(pwd)\"] }",
    );
    assert_eq!(keys, ["/:/"]);
    let (keys, _) = asked(
        &scene,
        "{ command = [\"sh\", \"-c\", \"head -c 60000 /dev/zero | tr '\\\\0' x | fold -w 64\"] }",
    );
    assert_eq!(keys, ["x".repeat(64)], "the first line");
    let table = [
        ("[\"sh\", \"-c\", \"yes\"]", "prints more than 64 KiB"),
        (
            "[\"sh\", \"-c\", \"yes | tr -d '\\\\n'\"]",
            "prints more than 64 KiB",
        ),
        (
            "[\"./evil\"]",
            "is a relative path, but the command runs in /",
        ),
        ("[\"../project/evil\"]", "is a relative path"),
        ("[\"evil\"]", "there is no program `evil`"),
        ("[\"cat\", \"evil\"]", "use absolute paths for files"),
    ];
    for (command, says) in table {
        let (keys, done) = asked(&scene, &format!("{{ command = {command} }}"));
        done.ends(78).says(&["no API key for x: ", says]);
        assert_eq!(keys, Vec::<String>::new());
    }
    scene.config(
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey = { command = [\"evil\"] }\n",
    );
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    let relative = scene
        .command(&["run", "-m", "x/y", "hi"])
        .env("PATH", path)
        .spawn()
        .unwrap();
    finish(relative).ends(78).says(&[
        "there is no program `evil` in the directories of PATH (relative ones are not searched)",
    ]);
    let home = scene.path("home/key");
    std::fs::write(&home, "#!/bin/sh\necho from-home\n").unwrap();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(asked(&scene, "{ command = [\"~/key\"] }").0, ["from-home"]);
}

// open-agent-spec#91, aispace-client#6: what an editor or a shell of Windows puts around a key is no part of it.
#[test]
fn a_mark_and_line_ends_around_a_key_are_not_sent() {
    let scene = Scene::new();
    for text in [
        "sk-right\r\nother\r\n",
        "\u{feff}sk-right\n",
        "\u{feff}sk-right\r\n",
        "sk-right",
    ] {
        let file = scene.path("key");
        std::fs::write(&file, text).unwrap();
        let (keys, _) = asked(&scene, &format!("{{ file = \"{}\" }}", file.display()));
        assert_eq!(keys, ["sk-right"], "{text:?}");
        let (keys, _) = asked(
            &scene,
            &format!("{{ command = [\"cat\", \"{}\"] }}", file.display()),
        );
        assert_eq!(keys, ["sk-right"], "{text:?}");
    }
}

#[test]
fn a_key_that_goes_unencrypted_to_a_public_host_is_told() {
    let scene = Scene::new();
    let warning = "the API key of x (FAKE_KEY) and all messages are sent unencrypted to ";
    let table = [
        ("http://public.invalid/v1", true),
        ("http://10.0.0.1.nip.invalid:8080/v1", true),
        ("https://public.invalid/v1", false),
        ("http://127.0.0.1:9/v1", false),
        ("http://localhost:9/v1", false),
        ("http://box.local:9/v1", false),
    ];
    for (url, told) in table {
        let provider = format!(
            "[providers.x]\napi = \"openai-chat\"\nbase_url = \"{url}\"\nattempts = 1\ntimeouts = {{ connect_s = 0.1 }}\n"
        );
        scene.config(&format!("{provider}key = {{ env = \"FAKE_KEY\" }}\n"));
        for args in [
            &["run", "--quiet", "--ephemeral", "-m", "x/y", "hi"][..],
            &["run", "--json", "--ephemeral", "-m", "x/y", "hi"],
        ] {
            let done = finish(
                scene
                    .command(args)
                    .env("FAKE_KEY", "k-1234567")
                    .spawn()
                    .unwrap(),
            );
            assert_eq!(done.err.contains(warning), told, "{url}: {}", done.err);
        }
        let doctor = finish(
            scene
                .command(&["doctor"])
                .env("FAKE_KEY", "k-1234567")
                .spawn()
                .unwrap(),
        );
        assert_eq!(doctor.out.contains(warning), told, "{url}: {}", doctor.out);
        scene.config(&provider);
        let keyless = scene.yoi(&["run", "--ephemeral", "-m", "x/y", "hi"]);
        assert!(
            !keyless.err.contains("unencrypted"),
            "without a key: {}",
            keyless.err
        );
    }
}

/// As the vendor's own clients take it, with the version or without, behind a proxy's path, and pasted whole.
#[test]
fn an_anthropic_base_url_works_with_and_without_version() {
    let table = [
        ("", "/v1/messages"),
        ("/", "/v1/messages"),
        ("/v1", "/v1/messages"),
        ("/v1/", "/v1/messages"),
        ("/v1/messages", "/v1/messages"),
        ("/anthropic", "/anthropic/v1/messages"),
        ("/anthropic/v1", "/anthropic/v1/messages"),
        ("/v1/anthropic", "/v1/anthropic/v1/messages"),
    ];
    for (path, asked) in table {
        let scene = Scene::new();
        let endpoint = Endpoint::start(|_, _| {
            crate::endpoint::Reply::Status("400 Bad Request", "", String::new())
        });
        let url = format!("http://127.0.0.1:{}{path}", endpoint.port);
        scene.config(&format!(
            "[providers.x]\napi = \"anthropic\"\nbase_url = \"{url}\"\n"
        ));
        scene.yoi(&["run", "--ephemeral", "-m", "x/y", "hi"]);
        scene.yoi(&["models"]);
        let lines: Vec<String> = endpoint
            .requests()
            .iter()
            .map(|r| r.head.lines().next().unwrap().to_owned())
            .collect();
        let models = asked.replace("/messages", "/models");
        assert_eq!(
            lines,
            [
                format!("POST {asked} HTTP/1.1"),
                format!("GET {models} HTTP/1.1")
            ],
            "{path}"
        );
        assert!(endpoint.requests()[1].body == Value::Null);
    }
}
