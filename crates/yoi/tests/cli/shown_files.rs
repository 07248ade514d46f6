//! Images and documents beside inputs and results: from the file to the request, the journal and its proof.

use crate::endpoint::{Endpoint, Reply, calls, text};
use crate::scene::{Done, Scene, finish};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const TEXT: &str = include_str!("../../../provider/tests/fixtures/anthropic_text.sse");

/// An image of 640 by 480 pixels for all that its head says, with this many bytes behind it.
pub(crate) fn png(more: usize) -> Vec<u8> {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";
    let rest = (0..more).map(|at| at.to_le_bytes()[at % 3]);
    head.iter().copied().chain(rest).collect()
}

fn command(scene: &Scene, args: &[&str]) -> Command {
    let mut command = scene.command(args);
    command.env("FAKE_KEY", "k");
    command
}

fn run(scene: &Scene, args: &[&str]) -> Done {
    finish(command(scene, args).spawn().unwrap())
}

/// What a user message has, with each file as `[TYPE]`, once its bytes are those of one of these.
fn parts(message: &Value, files: &[Vec<u8>]) -> Vec<String> {
    let known: Vec<_> = files.iter().map(|bytes| STANDARD.encode(bytes)).collect();
    let part = |part: &Value| match &part["source"]["data"] {
        Value::String(data) if known.contains(data) => {
            format!("[{}]", part["source"]["media_type"].as_str().unwrap())
        }
        _ => part["text"].as_str().unwrap().to_owned(),
    };
    message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(part)
        .collect()
}

#[test]
fn files_of_an_input_are_sent_from_their_blobs() {
    let endpoint = Endpoint::start(|_, _| Reply::Stream(TEXT.to_owned()));
    let scene = Scene::new();
    let config = endpoint.speaking("anthropic", "");
    scene.config(&config.replace("fake/one", "fake/claude-sonnet-5"));
    let files = [
        png(2_000),
        b"GIF89a\x05\0\x06\0;".to_vec(),
        b"%PDF-1.7\n".to_vec(),
    ];
    // The type is that of the bytes, whatever the name is.
    scene.write("shot.txt", &files[0]);
    scene.write("b.gif", &files[1]).write("c.pdf", &files[2]);
    scene.write("notes.txt", "no image\n");
    let given = ["--attach", "shot.txt", "--attach", "c.pdf"];
    let prompt = "compare (@b.gif), @notes.txt and @nobody";
    run(
        &scene,
        &[&["run", "--pod", "p"], &given[..], &[prompt]].concat(),
    )
    .ends(0);
    let sent = endpoint.requests().pop().unwrap().body;
    let message = parts(sent["messages"].as_array().unwrap().last().unwrap(), &files);
    let want = [prompt, "[image/png]", "[application/pdf]", "[image/gif]"];
    assert!(message.ends_with(&want.map(str::to_owned)), "{message:?}");

    let log = fs::read_to_string(scene.log_file("p")).unwrap();
    let encoded = STANDARD.encode(&files[0]);
    assert!(!log.contains(&encoded[..60]), "no bytes in the journal");
    let records = scene.records("p");
    let queued = records.iter().find(|r| r["k"] == "input_queued").unwrap();
    let first = &queued["attachments"][0];
    let facts = json!([
        first["media"],
        first["bytes"],
        first["width"],
        first["height"],
        first["name"]
    ]);
    assert_eq!(
        facts,
        json!(["image/png", files[0].len(), 640, 480, "shot.txt"])
    );
    scene.sound("p");

    // After a restart they are sent again. A model that does not see gets a line for each.
    run(&scene, &["run", "--pod", "p", "again"]).ends(0);
    let again = endpoint.requests().pop().unwrap().body.to_string();
    assert!(again.contains(&encoded));
    run(
        &scene,
        &["run", "--pod", "p", "-m", "fake/blind", "and now?"],
    )
    .ends(0);
    let blind = endpoint.requests().pop().unwrap().body.to_string();
    assert!(!blind.contains(&encoded));
    let line = "[shot.txt, image/png, 640×480, 2029 bytes: this model cannot see it]";
    assert!(blind.contains(line), "{blind}");
    scene.sound("p");

    // A damaged blob ends the turn with what to do, and that helps.
    let digest = first["digest"].as_str().unwrap();
    let blob = scene.pod("p").join("blobs").join(&digest[..2]).join(digest);
    fs::write(&blob, "other").unwrap();
    let seeing = ["run", "--pod", "p", "-m", "fake/claude-sonnet-5"];
    let before = endpoint.requests().len();
    let broken = run(&scene, &[&seeing[..], &["and?"]].concat());
    assert_ne!(broken.code(), Some(0));
    broken.says(&["cannot send shot.txt", "attach the same file again"]);
    assert_eq!(endpoint.requests().len(), before);
    scene.yoi(&["verify", "p"]).says(&[digest]);
    let given = ["--attach", "shot.txt", "there"];
    run(&scene, &[&seeing[..], &given].concat()).ends(0);
    scene.sound("p");
}

#[test]
fn one_request_has_a_bound_on_all_its_files() {
    let endpoint = Endpoint::start(|_, _| Reply::Stream(TEXT.to_owned()));
    let scene = Scene::new();
    let config = endpoint.speaking("anthropic", "");
    scene.config(&config.replace("fake/one", "fake/blind"));
    let file = png(3_900_000);
    let names = ["1", "2", "3", "4", "5", "6", "7"].map(|name| format!("{name}.png"));
    for name in &names {
        scene.write(name, &file);
    }
    let given = |names: &[String]| {
        let options = names.iter().flat_map(|name| ["--attach", name]);
        options.map(str::to_owned).collect::<Vec<_>>()
    };
    let asked = |options: &[String], model: &str| {
        let mut args = vec!["run", "--pod", "p", "-m", model, "look"];
        args.extend(options.iter().map(String::as_str));
        run(&scene, &args)
    };
    let done = asked(&given(&names), "fake/blind");
    assert_ne!(done.code(), Some(0));
    done.says(&["the input has 27300203 bytes of files; one request can have at most 25165824"]);
    assert_eq!(scene.pods(), Vec::<String>::new());

    asked(&given(&names[..4]), "fake/blind").ends(0);
    asked(&given(&names[4..]), "fake/blind").ends(0);
    let before = endpoint.requests().len();
    let done = asked(&[], "fake/claude-sonnet-5");
    assert_ne!(done.code(), Some(0));
    done.says(&[
        "cannot send the conversation: it has 27300203 bytes of files",
        "/compact turns",
    ]);
    assert_eq!(endpoint.requests().len(), before);
    asked(&[], "fake/blind").ends(0);
    scene.sound("p");
}

#[test]
fn what_is_no_image_is_refused_before_a_pod_is_made() {
    let scene = Scene::new();
    scene
        .write("a.png", "<html>")
        .write("cut.png", &png(0)[..14]);
    scene.write("big.png", png(4_000_000));
    for (file, why) in [
        (
            "a.png",
            "a.png is not a PNG, JPEG, WebP or GIF image and no PDF",
        ),
        (
            "cut.png",
            "cut.png is a damaged or incomplete image/png file",
        ),
        ("big.png", "at most 3932160 can be sent"),
        ("none.png", "none.png"),
        (".", "not a regular file"),
    ] {
        let done = scene.yoi(&["run", "--attach", file, "what is it?"]);
        assert_ne!(done.code(), Some(0), "{file}");
        done.says(&[why]);
    }
    // What a text names is of the project; what an option names is the person's choice.
    scene.write("../out.png", png(9)).write(".env.png", png(9));
    for file in ["../out.png", ".env.png"] {
        let done = scene
            .yoi(&["run", &format!("look at @{file}, please")])
            .ends(2);
        done.says(&["is outside the project, or may hold secrets", "--attach"]);
    }
    assert_eq!(scene.pods(), Vec::<String>::new());
    scene
        .yoi(&["run", "--attach", "../out.png", "list the files"])
        .ends(0);
    // The planner says that it did not look.
    scene.write("a.gif", b"GIF89a\x05\0\x06\0;");
    let done = scene
        .yoi(&["run", "--attach", "a.gif", "list the files"])
        .ends(0);
    done.prints(&["This planner cannot see files: a.gif, image/gif, 5×6, 11 bytes"]);
}

#[test]
fn an_image_that_a_tool_reads_is_behind_all_results() {
    let endpoint = Endpoint::start(|number, _| match number {
        0 => calls(&[
            ("Read", json!({"path": "shot.png"}).to_string()),
            ("Read", json!({"path": "a.txt"}).to_string()),
        ]),
        _ => text("A window."),
    });
    let scene = Scene::new();
    scene.config(&endpoint.config("[models.\"fake/one\"]\nimages = true"));
    scene.write("shot.png", png(30)).write("a.txt", "plain\n");
    run(&scene, &["run", "--pod", "p", "what does it show?"]).ends(0);
    let sent = endpoint.requests().pop().unwrap().body;
    let messages = sent["messages"].as_array().unwrap();
    let roles: Vec<_> = messages
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "user"]
    );
    let content = &messages[5]["content"];
    assert!(
        content[0]["text"]
            .as_str()
            .unwrap()
            .contains("from the result of c00000001")
    );
    let url = format!("data:image/png;base64,{}", STANDARD.encode(png(30)));
    assert_eq!(
        content[1],
        json!({"type": "image_url", "image_url": {"url": url}})
    );
    assert_eq!(
        messages[3]["content"],
        "shot.png: image/png, 640×480, 59 bytes"
    );
    scene.sound("p");
}

#[test]
fn a_live_pod_gets_a_file_in_pieces() {
    let endpoint = Endpoint::start(|_, _| Reply::Stream(TEXT.to_owned()));
    let scene = Scene::new();
    let config = endpoint.speaking("anthropic", "");
    scene.config(&config.replace("fake/one", "fake/claude-sonnet-5"));
    let file = png(2_500_000);
    scene.write("shot.png", &file);
    let host = command(&scene, &["start", "p", "--foreground", "--quiet"]).spawn();
    while !scene.pod("p").join("sock").exists() {
        std::thread::yield_now();
    }
    run(&scene, &["send", "p", "--wait", "look at @shot.png"]).ends(0);
    run(
        &scene,
        &["run", "--pod", "p", "--attach", "shot.png", "and again"],
    )
    .ends(0);
    let sent = endpoint.requests().pop().unwrap().body.to_string();
    assert_eq!(sent.matches(&STANDARD.encode(&file)).count(), 2);
    run(
        &scene,
        &["send", "p", "--run", "--attach", "shot.png", "ls"],
    )
    .ends(2);
    run(&scene, &["stop", "p"]).ends(0);
    finish(host.unwrap()).ends(0);
    scene.sound("p");
}
