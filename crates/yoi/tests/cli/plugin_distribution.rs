//! Plugins from archives and addresses: what is taken, what is refused and leaves nothing, and how an added plugin is updated.

use crate::plugins::{SCRIPT, called_once, manifest};
use crate::scene::Scene;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// An archive of files with their modes, each in the directory `acme-1`.
fn archive(files: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text, mode) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(*mode);
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, format!("acme-1/{path}"), text.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// The package `acme`, whose script says `word`.
fn acme(word: &str) -> Vec<u8> {
    let manifest = manifest("acme", "acme_greet");
    let script = SCRIPT.replace("hello", word);
    archive(&[
        ("plugin.toml", &manifest, 0o644),
        ("run.sh", &script, 0o755),
    ])
}

/// A key of minisign, and signatures of it in the older form, which signs the bytes themselves.
struct Signer(Ed25519KeyPair, u8);

impl Signer {
    fn new(seed: u8) -> Self {
        Self(
            Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap(),
            seed,
        )
    }

    fn head(&self) -> Vec<u8> {
        [b"Ed".as_slice(), &[self.1; 8]].concat()
    }

    fn key(&self) -> String {
        BASE64_STANDARD.encode([&self.head(), self.0.public_key().as_ref()].concat())
    }

    fn sign(&self, bytes: &[u8]) -> String {
        let signature = self.0.sign(bytes);
        let both = self.0.sign(&[signature.as_ref(), b"of a test"].concat());
        let whole = BASE64_STANDARD.encode([&self.head(), signature.as_ref()].concat());
        let both = BASE64_STANDARD.encode(both.as_ref());
        format!("untrusted comment: x\n{whole}\ntrusted comment: of a test\n{both}\n")
    }
}

/// A server of this machine with these answers by path, as long as the test runs.
fn served(answers: BTreeMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines();
            let first = lines.next().unwrap().unwrap();
            drop(lines.find(|line| line.as_ref().is_ok_and(String::is_empty)));
            let path = first.split(' ').nth(1).unwrap();
            let missing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone".to_vec();
            let answer = answers.get(path).unwrap_or(&missing);
            // A client that has seen enough is gone.
            drop((&stream).write_all(answer));
        }
    });
    at
}

fn found(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn moved(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// What is in the directory of the person's plugins, staged copies included.
fn left(scene: &Scene) -> usize {
    let count = |dir| fs::read_dir(dir).map_or(0, Iterator::count);
    let place = scene.path("config/yoi");
    count(place.join("plugins")) + count(place)
}

#[test]
fn an_archive_is_added_whole_or_not_at_all() {
    let scene = Scene::new();
    let bytes = acme("hello");
    scene.write("acme.tar.gz", &bytes);
    for (name, bytes, says) in [
        ("cut.tgz", &bytes[..bytes.len() - 9], "cut off or damaged"),
        (
            "plain.zip",
            b"plain".as_slice(),
            "neither a .tar.gz nor a .zip",
        ),
    ] {
        scene.write(name, bytes);
        scene
            .yoi(&["plugin", "add", name])
            .ends(65)
            .says(&[name, says]);
    }
    // What is no package on any machine is unpacked, and leaves nothing either.
    scene.write("bad.tgz", archive(&[("plugin.toml", "[package]\n", 0o644)]));
    scene.yoi(&["plugin", "add", "bad.tgz"]).ends(65);
    scene
        .yoi(&["plugin", "add", "acme.tar.gz", "--sha256", &"0".repeat(64)])
        .ends(65)
        .says(&["its sha256 is not 0000"]);
    assert_eq!(left(&scene), 0);

    let added = scene.yoi(&["plugin", "add", "acme.tar.gz"]).ends(0);
    let added = added.prints(&["sha256 of the archive: ", "added acme"]);
    let digest = added.out.split_whitespace().nth(4).unwrap();
    scene
        .yoi(&[
            "plugin",
            "add",
            "acme.tar.gz",
            "--replace",
            "--sha256",
            digest,
        ])
        .ends(0)
        .prints(&["replaced acme"]);
    scene
        .yoi(&["plugin", "show", "acme"])
        .ends(0)
        .prints(&["from: ", "acme.tar.gz"]);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let (is_error, text) = called_once(&scene, "p", "acme_greet", json!({ "who": "x" }));
    assert!(!is_error && text.contains("hello --who=x"), "{text}");
    assert_eq!(left(&scene), 2, "the plugin, and the directory of plugins");
    scene.yoi(&["plugin", "remove", "acme"]).ends(0);
    let origins = fs::read_dir(scene.path("state/yoi/plugin-origins")).unwrap();
    assert_eq!(origins.count(), 0);
}

/// Where it comes from is asked again; what changes is shown first, and is nobody's grant.
#[test]
fn an_update_shows_what_changes_and_asks() {
    let scene = Scene::new();
    scene.write("acme.tgz", acme("hello"));
    scene.yoi(&["plugin", "add", "acme.tgz"]).ends(0);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let update = |args: &[&str]| scene.yoi(&[&["plugin", "update", "acme"], args].concat());
    update(&[]).ends(0).prints(&["acme is as it was"]);

    let manifest = manifest("acme", "acme_greet")
        .replace("1.0.0", "1.1.0")
        .replace("[\"{package}/run.sh\"", "[\"{package}/new.sh\"");
    let manifest = format!("{manifest}network = true\n");
    let script = SCRIPT.replace("hello", "hollo");
    scene.write(
        "acme.tgz",
        archive(&[
            ("plugin.toml", &manifest, 0o644),
            ("new.sh", &script, 0o755),
        ]),
    );
    let refused = update(&[]).ends(3);
    let refused = refused.prints(&[
        "acme 1.0.0 (digest ",
        "becomes 1.1.0",
        "changed: plugin.toml",
        "new: new.sh",
        "gone: run.sh",
        "- plugin:acme/main: tool acme_greet runs `sh {package}/run.sh",
        "+ plugin:acme/main: tool acme_greet runs `sh {package}/new.sh",
        "with network access",
        "nothing of the new one runs before `yoi grant plugin:acme`",
    ]);
    refused.says(&["nobody can be asked", "--yes"]);
    let call = |pod: &str| called_once(&scene, pod, "acme_greet", json!({ "who": "x" }));
    assert!(call("before").1.contains("hello"), "it stays as it was");

    update(&["--yes"]).ends(0).prints(&["replaced acme"]);
    assert!(call("ungranted").0, "the grant was for the older one");
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    assert!(call("granted").1.contains("hollo"));

    scene.write(
        "acme.tgz",
        archive(&[
            ("plugin.toml", &manifest.replace("acme", "other"), 0o644),
            ("new.sh", "", 0o755),
        ]),
    );
    update(&["--yes"])
        .ends(65)
        .says(&["it is the plugin other, not acme"]);
    scene
        .yoi(&["plugin", "update", "../acme"])
        .ends(2)
        .says(&["has no plugin `../acme`"]);
}

#[test]
fn a_key_that_was_named_must_have_signed() {
    let scene = Scene::new();
    let bytes = acme("hello");
    let own = Signer::new(1);
    let other = Signer::new(2);
    scene.write("acme.tgz", &bytes);
    let key = own.key();
    let add = ["plugin", "add", "acme.tgz", "--key", &key];
    scene.yoi(&add).ends(65).says(&["its signature is missing"]);
    for (signature, says) in [
        (other.sign(&bytes), "it is of another key"),
        (own.sign(b"other bytes"), "it is not of these bytes"),
        ("x".to_owned(), "it is not a signature of minisign"),
    ] {
        scene.write("acme.tgz.minisig", signature);
        scene.yoi(&add).ends(65).says(&[says]);
    }
    assert_eq!(left(&scene), 0);
    scene.write("acme.tgz.minisig", own.sign(&bytes));
    scene.write("own.pub", format!("untrusted comment: x\n{key}\n"));
    scene
        .yoi(&["plugin", "add", "acme.tgz", "--key", "own.pub"])
        .ends(0)
        .prints(&[&format!("signed by {key}: of a test"), "added acme"]);

    // The key counts for updates, wherever they come from.
    let newer = acme("hollo");
    for name in ["acme.tgz", "moved.tgz"] {
        scene.write(name, &newer);
        let update = || scene.yoi(&["plugin", "update", "acme", "--yes", "--from", name]);
        let refused = update().ends(65);
        assert!(refused.err.contains("signature"), "{}", refused.err);
    }
    scene.write("moved.tgz.minisig", own.sign(&newer));
    let update = ["plugin", "update", "acme", "--yes"];
    scene
        .yoi(&[&update[..], &["--from", "moved.tgz"]].concat())
        .ends(0);
    scene.yoi(&update).ends(0).prints(&["acme is as it was"]);
    // A directory has no signature.
    fs::create_dir(scene.file("dir")).unwrap();
    scene
        .yoi(&[&update[..], &["--from", "dir"]].concat())
        .ends(2)
        .says(&["is not an archive"]);
}

#[test]
fn an_address_is_asked_within_bounds() {
    let scene = Scene::new();
    let bytes = acme("hello");
    let signer = Signer::new(1);
    let cut = found(&bytes);
    let answers = [
        ("/acme.tgz?key=secret", found(&bytes)),
        (
            "/acme.tgz.minisig?key=secret",
            found(signer.sign(&bytes).as_bytes()),
        ),
        ("/moved.tgz", moved("/acme.tgz?key=secret")),
        ("/out.tgz", moved("http://example.org/acme.tgz")),
        ("/round.tgz", moved("/round.tgz")),
        ("/cut.tgz", cut[..cut.len() - 1].to_vec()),
        (
            "/large.tgz",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_vec(),
        ),
    ];
    let at = served(
        answers
            .map(|(path, answer)| (path.to_owned(), answer))
            .into(),
    );
    let add = |path: &str| scene.yoi(&["plugin", "add", &format!("{at}{path}")]);
    for (path, says) in [
        ("/none.tgz", "status 404: none"),
        (
            "/out.tgz",
            "redirects to http://example.org, which is not https",
        ),
        ("/round.tgz", "more than 5 redirects"),
        ("/cut.tgz", "the connection was lost"),
        ("/large.tgz", "the connection was lost"),
    ] {
        add(path).ends(69).says(&[says]);
    }
    for address in [
        "http://example.org/a.tgz",
        "https://me:pw@example.org/a.tgz",
    ] {
        let refused = scene.yoi(&["plugin", "add", address]).ends(2);
        assert!(!refused.err.contains("pw"), "{}", refused.err);
    }
    assert_eq!(left(&scene), 0);
    add("/moved.tgz")
        .ends(0)
        .prints(&["redirects to ", "/acme.tgz", "added acme"]);
    let url = format!("{at}/acme.tgz?key=secret");
    let key = signer.key();
    scene
        .yoi(&["plugin", "add", "--replace", "--key", &key, &url])
        .ends(0)
        .prints(&["signed by ", "replaced acme"]);
    let updated = scene.yoi(&["plugin", "update", "acme"]).ends(0);
    updated.prints(&["signed by ", "acme is as it was"]);
    let shown = scene.yoi(&["plugin", "show", "acme"]).ends(0);
    let shown = shown.prints(&[&format!("from: {at}/acme.tgz, signed by {key}")]);
    assert!(
        !shown.out.contains("secret"),
        "a key of an address is not shown"
    );
}

/// A package of skills and commands alone has no features; it is copied as others are.
#[test]
fn a_package_without_features_works() {
    let scene = Scene::new();
    let text = "[package]\nname = \"words\"\nversion = \"1.0.0\"\n";
    let skill = "---\nname: deploy\ndescription: How to deploy.\n---\nThe body of deploy.\n";
    let of_nothing = archive(&[("plugin.toml", text, 0o644)]);
    scene.write("empty.tgz", of_nothing);
    scene
        .yoi(&["plugin", "add", "empty.tgz"])
        .ends(65)
        .says(&["no features, skills, commands"]);
    let files = [
        ("plugin.toml", text, 0o644),
        ("skills/deploy/SKILL.md", skill, 0o644),
        (
            "commands/review.md",
            "---\ndescription: Review\n---\nReview $1.\n",
            0o644,
        ),
    ];
    scene.write("words.tgz", archive(&files));
    scene.yoi(&["plugin", "add", "words.tgz"]).ends(0);
    scene
        .yoi(&["plugin", "show", "words"])
        .ends(0)
        .prints(&["skill deploy", "command /words:review"]);
    scene.yoi(&["grant", "plugin:words"]).ends(0);
    let model = scene.script(
        "m.jsonl",
        &[
            json!({ "calls": [{ "name": "Skill", "arguments": { "name": "deploy" } }] }),
            json!({ "text": "done" }),
        ],
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "/words:review a.rs"])
        .ends(0);
    let records = scene.records("p");
    let of = |kind: &str| records.iter().find(|record| record["k"] == kind).unwrap();
    assert_eq!(of("input_queued")["text"], "Review a.rs.");
    let result = of("tool_finished")["outcome"].to_string();
    assert!(result.contains("The body of deploy."), "{result}");
}
