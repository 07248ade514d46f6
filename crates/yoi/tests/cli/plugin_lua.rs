//! Features that are scripts in Lua: what this program runs itself, confined, from a grant to a run.

use crate::plugins::{SYSTEM_PATH, called_once, has_python};
use crate::scene::{Done, Scene, finish};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

fn example(name: &str) -> String {
    format!("{}/../../docs/plugins/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(scene: &Scene, args: &[&str]) -> Done {
    let mut command = scene.command(args);
    finish(command.env("PATH", SYSTEM_PATH).spawn().unwrap())
}

/// The log of a run whose push is refused until its branch is reviewed, without times and the directory of the scene.
fn reviewed(package: &str) -> String {
    let scene = Scene::new();
    scene.yoi(&["plugin", "add", &example(package)]).ends(0);
    scene.yoi(&["grant", "plugin:review-first"]).ends(0);
    let push = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "echo git push origin fix" } }] });
    let review = json!({ "calls": [{ "name": "Reviewed", "arguments": { "branch": "fix" } }] });
    let script = [push.clone(), review, push, json!({ "text": "done" })];
    let model = scene.script("push.jsonl", &script);
    run(&scene, &["run", "--pod", "p", "-m", &model, "go"]).ends(0);
    scene.yoi(&["verify", "p"]).ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let log = log.replace(scene.path("").to_str().unwrap(), "SCENE/");
    let without_times = log
        .lines()
        .map(|line| match line.split_once(" started in ") {
            Some((_, after)) => format!("started in {after}"),
            None => line.split(" in 0.").next().unwrap_or_default().to_owned(),
        });
    without_times.map(|line| line + "\n").collect()
}

#[test]
fn the_same_feature_in_lua_gives_the_same_transcript() {
    let lua = reviewed("review-first-lua");
    assert!(
        lua.contains("this branch was not reviewed") && lua.contains("1 reviewed"),
        "{lua}"
    );
    if has_python() {
        assert_eq!(lua, reviewed("review-first"));
    }
}

#[test]
fn a_new_package_in_lua_works_as_it_is() {
    let scene = Scene::new();
    scene.yoi(&["plugin", "new", "acme-first", "--lua"]).ends(0);
    let checked = scene.yoi(&["plugin", "check", "acme-first"]).ends(0);
    checked.prints(&["guests run `yoi __lua {package}/main.lua`", "valid"]);
    scene.yoi(&["plugin", "add", "acme-first"]).ends(0);
    scene.yoi(&["grant", "plugin:acme-first"]).ends(0);
    let (failed, said) = called_once(
        &scene,
        "p",
        "acme_first_reviewed",
        json!({ "branch": "fix" }),
    );
    assert!(!failed && said.contains("1 reviewed"), "{said}");
    // A script that is not in the package.
    fs::remove_file(scene.file("acme-first/main.lua")).unwrap();
    let checked = scene.yoi(&["plugin", "check", "acme-first"]).ends(65);
    checked.prints(&["the file `main.lua` of guest is not in the package"]);
}

/// Settings are declared in the manifest, written in the configuration, and given to the script.
#[test]
fn a_script_has_the_settings_that_a_person_wrote() {
    let scene = Scene::new();
    scene.yoi(&["plugin", "new", "acme-first", "--lua"]).ends(0);
    let path = scene.file("acme-first/plugin.toml");
    let text = fs::read_to_string(&path).unwrap();
    let schema = "\n[features.main.settings]\ntype = \"object\"\nadditionalProperties = false\nrequired = [\"who\"]\n\
        [features.main.settings.properties.who]\ntype = \"string\"\ndescription = \"Who reviews.\"\n\
        [features.main.settings.properties.most]\ntype = \"integer\"\ndefault = 3\n";
    fs::write(&path, format!("{text}{schema}")).unwrap();
    let script = "yoi.tool(\"acme_first_reviewed\", function() return yoi.settings.who .. yoi.settings.most end)\n";
    fs::write(scene.file("acme-first/main.lua"), script).unwrap();
    fs::remove_dir_all(scene.file("acme-first/tests")).unwrap();
    let manifest = fs::read_to_string(&path).unwrap();
    let is_left = |line: &&str| {
        let out = ["hooks", "states", "touches"];
        !out.iter().any(|key| line.starts_with(key))
    };
    let without_gate: Vec<&str> = manifest.lines().filter(is_left).collect();
    let without_gate = without_gate.join("\n").replace("idempotent", "read_only");
    fs::write(
        &path,
        without_gate.replace("default = 3", "default = \"3\""),
    )
    .unwrap();
    let unfit = "the default of `most`: want integer";
    scene
        .yoi(&["plugin", "check", "acme-first"])
        .ends(65)
        .prints(&[unfit]);
    scene
        .yoi(&["plugin", "add", "acme-first"])
        .ends(65)
        .says(&[unfit]);
    fs::write(&path, without_gate).unwrap();
    scene.yoi(&["plugin", "add", "acme-first"]).ends(0);
    scene.yoi(&["grant", "plugin:acme-first"]).ends(0);
    let show = || scene.yoi(&["plugin", "show", "acme-first"]).ends(0);
    show().prints(&[
        "setting most: 3 (default)",
        "setting who: must be set; Who reviews.",
    ]);
    let unset = scene.yoi(&["run", "list the files"]).ends(78);
    unset.says(&["error: settings of plugin:acme-first/main: `who` must be set"]);
    for (written, says) in [
        (
            "",
            "config.toml:1: settings of plugin:acme-first/main: `who` must",
        ),
        (
            "who = 1\n",
            "config.toml:2: settings of plugin:acme-first/main: `who`",
        ),
        (
            "who = \"Ada\"\nwhom = 1\n",
            "config.toml:3: settings of plugin:acme-first/main: unknown key `whom`",
        ),
    ] {
        scene.config(&format!("[features.\"plugin:acme-first/main\"]\n{written}"));
        scene.yoi(&["run", "list the files"]).ends(78).says(&[says]);
    }
    scene.config("[features.\"plugin:acme-first/main\"]\nwho = \"Ada\"\n");
    show().prints(&["setting who: \"Ada\" ("]);
    let (failed, said) = called_once(
        &scene,
        "p",
        "acme_first_reviewed",
        json!({ "branch": "fix" }),
    );
    assert!(!failed && said.contains("Ada3"), "{said}");
}

/// A server of a catalogue on two pages, which ends after the requests of one question. Gives its port.
fn catalogue() -> (u16, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let item = |id: &str, cover: f64, at: &str| {
        json!({
            "id": id, "type": "Feature", "collection": "sentinel-2-l2a", "bbox": [178.5, -18.5, -179.2, -16],
            "properties": { "datetime": at, "eo:cloud_cover": cover }, "assets": { "B04": { "href": "x", "file:size": 7 } },
        })
    };
    let next = format!("http://127.0.0.1:{port}/search?page=2");
    let pages = [
        json!({ "id": "far", "description": "A catalogue elsewhere." }),
        json!({ "collections": [{ "id": "sentinel-2-l2a", "title": "Images" }] }),
        json!({ "features": [item("ONE", 3.5, "2024-05-31T23:59:59.123Z")], "links": [{ "rel": "next", "href": next }] }),
        json!({ "features": [item("TWO", 50.0, "2024-06-01T00:00:00+00:00")], "links": [] }),
    ];
    let serve = move || {
        let mut asked = Vec::new();
        for page in pages {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
            asked.push(lines.next().unwrap());
            assert!(lines.any(|line| line.is_empty()));
            let body = page.to_string();
            let kind = "application/geo+json; charset=utf-8";
            let length = body.len();
            let head = format!("content-type: {kind}\r\ncontent-length: {length}");
            write!(&stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").unwrap();
        }
        asked
    };
    (port, thread::spawn(serve))
}

#[test]
fn a_catalogue_on_a_server_is_asked_as_the_one_of_the_package() {
    let scene = Scene::new();
    for file in [
        "plugin.toml",
        "main.lua",
        "catalogue.lua",
        "remote.lua",
        "place.lua",
        "time.lua",
    ] {
        let from = Path::new(&example("stac-lua")).join(file);
        let text = fs::read_to_string(from).unwrap();
        scene.write(&format!("stac-lua/{file}"), &text);
    }
    let (port, served) = catalogue();
    let manifest = fs::read_to_string(scene.file("stac-lua/plugin.toml")).unwrap();
    let own =
        format!("capability = \"endpoint\", purpose = \"catalogue\", at = [\"127.0.0.1:{port}\"]");
    let public = "capability = \"network\", purpose = \"catalogue\", hosts = [\"earth-search.aws.element84.com\"]";
    assert!(manifest.contains(public));
    scene.write("stac-lua/plugin.toml", manifest.replace(public, &own));
    let server = format!("return \"http://127.0.0.1:{port}/\"");
    scene.write("stac-lua/server.lua", server);
    scene.yoi(&["plugin", "add", "stac-lua"]).ends(0);
    scene.yoi(&["grant", "plugin:stac-lua"]).ends(0);
    let question = json!({ "datetime": "2024-06", "bbox": [-180, -20, -179, -15], "fields": ["properties.datetime"] });
    let (failed, said) = called_once(&scene, "p", "search_items", question);
    assert!(!failed, "{said}");
    let found = json!({ "id": "TWO", "collection": "sentinel-2-l2a", "properties": { "datetime": "2024-06-01T00:00:00Z" } });
    let escaped = found.to_string().replace('"', "\\\"");
    assert!(said.contains(&escaped) && !said.contains("ONE"), "{said}");
    let paths = ["/", "/collections", "/search?limit=100", "/search?page=2"];
    let lines = paths.map(|path| format!("GET {path} HTTP/1.1"));
    assert_eq!(served.join().unwrap(), lines);
    // Nobody serves any more: the question fails, and the answer is no empty page.
    let (failed, said) = called_once(&scene, "q", "search_items", json!({}));
    assert!(failed && said.contains("127.0.0.1"), "{said}");
}
