//! Providers behind a proxy and behind certificates of a private authority, as the environment and the configuration name them.

use crate::endpoint::{Endpoint, Reply, Request, calls, text};
use crate::scene::{Done, Scene, finish, holding};
use serde_json::json;

/// As in a URL, and as it is.
const WRITTEN: &str = "pass%40word7";
const PASSWORD: &str = "pass@word7";

/// A name that no resolver knows: only a proxy can reach it.
const CONFIG: &str =
    "model = \"x/y\"\n[providers.x]\napi = \"openai-chat\"\nattempts = 1\nbase_url = ";

fn run(scene: &Scene, args: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = scene.command(args);
    command.envs(variables.iter().copied());
    finish(command.spawn().unwrap())
}

const GO: &[&str] = &["run", "--pod", "p", "go"];

#[test]
fn a_provider_is_reached_through_the_proxy_of_the_environment() {
    let proxy = Endpoint::start(|number, _| match number {
        0 => calls(&[("Read", json!({ "path": "notes" }).to_string())]),
        _ => text("hello"),
    });
    let scene = Scene::new();
    scene.write(
        "notes",
        format!("{PASSWORD} {WRITTEN} dXM6cGFzc0B3b3JkNw=="),
    );
    scene.config(&format!("{CONFIG}\"http://api.invalid/v1\"\n"));
    let url = format!("http://us:{WRITTEN}@127.0.0.1:{}", proxy.port);
    let through = [("http_proxy", url.as_str()), ("NO_PROXY", "other.invalid")];
    let done = run(&scene, GO, &through).ends(0);
    assert_eq!(done.out, "hello\n");
    let Request { head, .. } = proxy.requests()[0].clone();
    let told = proxy.requests()[1].body.to_string();
    assert!(told.contains("‹secret http_proxy›"), "{told}");
    let target = "POST http://api.invalid/v1/chat/completions HTTP/1.1\r\n";
    assert!(head.starts_with(target), "{head}");
    // `us:pass@word7`
    let login = "proxy-authorization: Basic dXM6cGFzc0B3b3JkNw==\r\n";
    assert!(head.contains(login), "{head}");
    scene.sound("p");
    for secret in [PASSWORD, WRITTEN, "dXM6cGFzc0B3b3JkNw=="] {
        assert!(!told.contains(secret), "{told}");
        assert_eq!(holding(&scene.path("state"), secret), [""; 0], "{secret}");
    }
    // A variable in capitals counts, too, and the more special one first.
    let other = [("ALL_PROXY", "http://127.0.0.1:9"), ("HTTP_PROXY", &url)];
    run(&scene, &["run", "--ephemeral", "go"], &other).ends(0);
    assert_eq!(proxy.requests().len(), 3);
    let direct = [("http_proxy", url.as_str()), ("no_proxy", "invalid")];
    run(&scene, &["run", "--ephemeral", "go"], &direct)
        .ends(5)
        .says(&["api.invalid"]);
    assert_eq!(proxy.requests().len(), 3);
}

#[test]
fn a_proxy_that_fails_is_named_without_its_password() {
    let wants = Endpoint::start(|_, _| {
        Reply::Status("407 Proxy Authentication Required", "", String::new())
    });
    let refuses = format!("http://us:{WRITTEN}@127.0.0.1:{}", wants.port);
    let gone = format!("http://us:{WRITTEN}@127.0.0.1:9");
    let socks = format!("socks5://us:{WRITTEN}@127.0.0.1:9");
    let scene = Scene::new();
    for (base, variable, value, code, says) in [
        (
            "http://api.invalid/v1",
            "http_proxy",
            &refuses,
            78,
            &[
                "refuses the user and password",
                "check the proxy in http_proxy",
            ][..],
        ),
        (
            "https://api.invalid/v1",
            "HTTPS_PROXY",
            &gone,
            5,
            &["the proxy 127.0.0.1:9: ", "HTTPS_PROXY names a proxy"],
        ),
        (
            "https://api.invalid/v1",
            "ALL_PROXY",
            &socks,
            78,
            &[
                "ALL_PROXY: not the URL of an HTTP proxy",
                "api.invalid to NO_PROXY",
            ],
        ),
    ] {
        scene.config(&format!("{CONFIG}\"{base}\"\n"));
        let done = run(&scene, &["run", "--ephemeral", "go"], &[(variable, value)]);
        let done = done.ends(code).says(says);
        assert!(!done.err.contains("word7"), "{}", done.err);
        let listed = run(&scene, &["models"], &[(variable, value)]);
        assert!(!listed.out.contains("word7"), "{}", listed.out);
    }
}

#[test]
fn a_file_of_certificates_is_checked_before_a_run() {
    let scene = Scene::new();
    let base = "\"https://127.0.0.1:9/v1\"\n";
    let file = scene.file("ca.pem");
    for (text, says) in [
        (None, "ca.pem: does not exist"),
        (Some("hello"), "ca.pem: there is no certificate in PEM form"),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "ca.pem: certificate 1 is not valid",
        ),
    ] {
        text.map(|text| scene.write("ca.pem", text));
        scene.config(&format!("ca_file = \"{}\"\n{CONFIG}{base}", file.display()));
        scene
            .yoi(&["run", "--ephemeral", "go"])
            .ends(78)
            .says(&["config.toml:1: ca_file: ", says]);
    }
    let shown = scene.yoi(&["config", "show"]).ends(0);
    assert!(shown.out.contains("ca_file"), "{}", shown.out);
    // Not for an endpoint without TLS.
    scene.config(&format!(
        "ca_file = \"gone.pem\"\n{CONFIG}\"http://127.0.0.1:9/v1\"\n"
    ));
    scene.yoi(&["run", "--ephemeral", "go"]).ends(5);
}
