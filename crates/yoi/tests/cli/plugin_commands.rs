//! The commands about plugins: directories on the command line, metadata, and what a test of a package finds.

use crate::plugins::{SCRIPT, called_once, manifest, own, write};
use crate::scene::Scene;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn commands_look_for_plugins_in_more_directories() {
    let scene = Scene::new();
    let dir = scene.path("more");
    write(&dir.join("acme"), &manifest("acme", "acme_greet"), SCRIPT);
    let dir = ["--plugin-dir", dir.to_str().unwrap()];
    let with = |args: &[&str]| scene.yoi(&[args, &dir[..]].concat());
    scene
        .yoi(&["plugin", "list"])
        .ends(0)
        .prints(&["there are no plugins"]);
    with(&["plugin", "list"])
        .ends(0)
        .prints(&["acme 1.0.0  not granted"]);
    with(&["plugin", "show", "acme"])
        .ends(0)
        .prints(&["tool acme_greet runs"]);
    with(&["grant"])
        .ends(0)
        .prints(&["plugin:acme  (version 1.0.0"]);
    with(&["grant", "plugin:acme"]).ends(0);
    let plan = with(&["features", "--json"]).ends(0).json();
    let found = plan["features"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["feature_id"] == "plugin:acme/main")
        .unwrap();
    assert_eq!(found["outcome"], "installed");
    with(&["features", "--explain", "acme_greet"]).ends(0);
    with(&["features", "some-pod"])
        .ends(2)
        .says(&["--plugin-dir applies to the next start"]);
}

#[test]
fn what_a_package_says_of_itself_stands_in_reports() {
    let scene = Scene::new();
    let about = "1.0.0\"\nauthors = [\"Ada\"]\nlicense = \"MIT\"\nhomepage = \"https://example.org\"\nmetadata = { labels = [\"maps\"] }";
    write(
        &scene.path("config/yoi/plugins/acme"),
        &manifest("acme", "acme_greet").replace("1.0.0\"", about),
        SCRIPT,
    );
    scene.yoi(&["grant", "--all"]).ends(0);
    let expected = json!({
        "authors": ["Ada"], "license": "MIT", "homepage": "https://example.org", "metadata": { "labels": ["maps"] },
    });
    let about = |report: &Value| {
        let all = report["features"].as_array().unwrap();
        all.iter()
            .find(|of| of["feature_id"] == "plugin:acme/main")
            .unwrap()["about"]
            .clone()
    };
    assert_eq!(
        about(&scene.yoi(&["features", "--json"]).ends(0).json()),
        expected
    );
    scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    assert_eq!(
        about(&scene.yoi(&["features", "p", "--json"]).ends(0).json()),
        expected
    );
}

/// The problems of the examples below; the last one is of a tool without an example.
const EXPECTED: [&str; 9] = [
    "",
    "",
    "the schema refuses the arguments",
    "does not refuse",
    "1 process behind",
    "1 process behind",
    "does not contain \"else\"",
    "the output is \"end\\n\", not \"end\"",
    "no example",
];

#[test]
fn a_test_of_a_package_checks_what_a_call_would() {
    let scene = Scene::new();
    let script = "case $1 in *stay) setsid sleep 31234 & sleep 0.2 ;; *group) sleep 31234 & ;; esac\necho end\n";
    let text = manifest("acme", "acme_greet");
    let second = "[[features.main.tools]]\nname = \"acme_other\"\nabout = \"x\"\neffect = \"read_only\"\nschema = { type = \"object\" }\n";
    let text = format!("{text}[features.main.run.acme_other]\nprogram = \"true\"\n");
    let text = text.replacen(
        "[[features.main.tools]]",
        &format!("{second}[[features.main.tools]]"),
        1,
    );
    let dir = write(&scene.file("acme"), &text, script);
    fs::create_dir(dir.join("tests")).unwrap();
    let call = |arguments: Value, more: Value| {
        let mut example = json!({ "tool": "acme_greet", "arguments": arguments });
        example
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        example
    };
    let examples = json!([
        call(json!({ "who": "x" }), json!({ "equals": "end\n" })),
        call(json!({}), json!({ "refused": true })),
        call(json!({}), json!({})),
        call(json!({ "who": "x" }), json!({ "refused": true })),
        call(json!({ "who": "stay" }), json!({})),
        call(json!({ "who": "group" }), json!({})),
        call(json!({ "who": "x" }), json!({ "contains": "else" })),
        call(json!({ "who": "x" }), json!({ "equals": "end" })),
    ]);
    fs::write(dir.join("tests/a.json"), examples.to_string()).unwrap();
    let done = scene
        .yoi(&["plugin", "test", "acme", "--json"])
        .ends(1)
        .json();
    let problems: Vec<String> = done["examples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| end["problem"].as_str().unwrap_or("").to_owned())
        .collect();
    for (at, words) in EXPECTED.iter().enumerate() {
        assert!(
            problems[at].contains(words) && problems[at].is_empty() == words.is_empty(),
            "{words}: {problems:?}"
        );
    }
    assert_eq!(
        (problems.len(), &done["examples"][8]["name"]),
        (9, &json!("acme_other")),
        "{problems:?}"
    );
    // What would keep it from being installed is found before anything runs.
    fs::write(dir.join("plugin.toml"), manifest("acme", "Read")).unwrap();
    scene
        .yoi(&["plugin", "test", "acme"])
        .ends(65)
        .says(&["reserved for builtin:files"]);
    scene
        .yoi(&["plugin", "check", "acme"])
        .ends(65)
        .prints(&["reserved for builtin:files"]);
}

/// What a tool says of its effect is tried, in a directory that the example fills.
#[test]
fn a_test_of_a_package_checks_what_a_tool_leaves() {
    let scene = Scene::new();
    let script = "case $1 in *read) cat in/a ;; *same) echo x > b ;; *more) echo x >> b ;; *once) mkdir c ;; esac\n";
    let dir = write(&scene.file("acme"), &manifest("acme", "acme_greet"), script);
    fs::create_dir(dir.join("tests")).unwrap();
    let call = |who: &str| json!({ "tool": "acme_greet", "arguments": { "who": who } });
    let mut read = call("read");
    (read["files"], read["equals"]) = (json!({ "in/a": "text" }), json!("text"));
    let mut outside = call("read");
    outside["files"] = json!({ "../a": "text" });
    fs::write(
        dir.join("tests/a.json"),
        json!([read, call("same"), call("more"), outside, call("once")]).to_string(),
    )
    .unwrap();
    for (effect, expected) in [
        (
            "read_only",
            ["", "is `read_only`", "is `read_only`", "without `..`", ""],
        ),
        (
            "idempotent",
            ["", "", "is `idempotent`", "without `..`", "is `idempotent`"],
        ),
        ("effectful", ["", "", "", "without `..`", ""]),
    ] {
        fs::write(
            dir.join("plugin.toml"),
            manifest("acme", "acme_greet").replace("read_only", effect),
        )
        .unwrap();
        let done = scene
            .yoi(&["plugin", "test", "acme", "--json"])
            .ends(1)
            .json();
        let ends = done["examples"].as_array().unwrap();
        for (end, words) in ends.iter().zip(expected) {
            let problem = end["problem"].as_str().unwrap_or_default();
            assert!(
                problem.contains(words) && problem.is_empty() == words.is_empty(),
                "{effect}: {done}"
            );
        }
        let failed = expected.iter().filter(|words| !words.is_empty()).count();
        assert_eq!(
            (&done["passed"], &done["failed"]),
            (&json!(5 - failed), &json!(failed))
        );
    }
    let left = fs::read_dir(scene.path("project"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter().all(|name| name != "b" && name != "c"),
        "nothing ran in the project"
    );
}

/// A sandbox that cannot give one tool what it needs costs this tool, and the person is told.
#[test]
fn a_sandbox_leaves_out_the_tools_that_do_not_run_in_it() {
    let scene = Scene::new();
    let dir = own(&scene, "acme", SCRIPT);
    let more = "[[features.main.tools]]\nname = \"acme_net\"\nabout = \"x\"\neffect = \"read_only\"\nschema = { type = \"object\" }\n";
    let run = "[features.main.run.acme_net]\nprogram = \"sh\"\nargs = [\"-c\", \"true\"]\nnetwork = true\n";
    let text =
        manifest("acme", "acme_greet").replacen("[[features", &format!("{more}[[features"), 1);
    fs::write(dir.join("plugin.toml"), format!("{text}{run}")).unwrap();
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let calls = [
        json!({ "name": "acme_greet", "arguments": { "who": "x" } }),
        json!({ "name": "acme_net", "arguments": {} }),
    ];
    let model = scene.script(
        "m.jsonl",
        &[json!({ "calls": calls }), json!({ "text": "done" })],
    );
    for (sandbox, works, says) in [
        ("workspace-write", [true, true], ""),
        (
            "read-only",
            [true, false],
            "plugin acme is used without acme_net: in read-only mode",
        ),
        (
            "off",
            [false, false],
            "plugin acme is used without acme_greet, acme_net: without a sandbox",
        ),
    ] {
        let done = scene.yoi(&[
            "run",
            "--sandbox",
            sandbox,
            "--pod",
            sandbox,
            "-m",
            &model,
            "go",
        ]);
        assert!(
            done.err.contains(says) && done.err.contains("is used without") != says.is_empty(),
            "{}",
            done.err
        );
        let ends = scene
            .records(sandbox)
            .into_iter()
            .filter(|record| record["k"] == "tool_finished");
        let ok: BTreeMap<String, bool> = ends
            .map(|end| (end["call"].to_string(), end["outcome"]["status"] == "ok"))
            .collect();
        assert_eq!(ok.into_values().collect::<Vec<_>>(), works, "{sandbox}");
        let strict = [
            "run",
            "--sandbox",
            sandbox,
            "--strict-plugins",
            "--pod",
            &format!("{sandbox}-strict"),
            "-m",
            &model,
            "go",
        ];
        scene
            .yoi(&strict)
            .ends(if says.is_empty() { 0 } else { 78 })
            .says(&[says]);
    }
    // A feature whose tools are all left out is off for that reason.
    fs::write(
        dir.join("plugin.toml"),
        format!("{}\nnetwork = true\n", manifest("acme", "acme_greet")),
    )
    .unwrap();
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    scene
        .yoi(&["run", "--read-only", "list the files"])
        .ends(0)
        .says(&["without acme_greet: in read-only mode"]);
    scene.config("[features.\"plugin:acme/main\"]\nrequired = true\n");
    scene
        .yoi(&["run", "--read-only", "list the files"])
        .ends(78)
        .says(&["is not installed", "in read-only mode"]);
}

/// What is explained of a tool is what its declaration says, as it is with each call; and a hint works.
#[test]
fn a_tool_is_explained_by_what_it_declares() {
    let scene = Scene::new();
    let plain = manifest("acme", "acme_greet").replace(
        "additionalProperties = false",
        "additionalProperties = true",
    );
    let with = |effect: &str, touches: &str| {
        let text = plain.replace(
            "\"read_only\"",
            &format!("\"{effect}\"\ntouches = [{touches}]"),
        );
        write(&scene.path("config/yoi/plugins/acme"), &text, SCRIPT);
        scene.yoi(&["grant", "plugin:acme"]).ends(0);
        scene
            .yoi(&["features", "--explain", "acme_greet"])
            .ends(0)
            .out
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let remote = "changing something on a host or in a service";
    let command = "tools with unknown effects";
    let text = with("effectful", "");
    assert!(
        text.contains(remote) && !text.contains(command) && !text.contains("writing inside"),
        "{text}"
    );
    let text = with("effectful", "{ is = \"write\", at = \"/who\" }");
    assert!(
        text.contains("writing inside the project: allow") && !text.contains(remote),
        "{text}"
    );
    let text = with("read_only", "{ is = \"host\", fixed = \"example.org\" }");
    assert!(
        text.contains("reading from a host") && !text.contains("reading inside"),
        "{text}"
    );
    with("read_only", "{ is = \"read\", at = \"/who\" }");
    fs::write(scene.file(".env"), "x").unwrap();
    let call = json!({ "calls": [{ "name": "acme_greet", "arguments": { "who": ".env" } }] });
    let model = scene.script("m.jsonl", &[call, json!({ "text": "done" })]);
    let refused = scene.yoi(&["run", "--pod", "a", "-m", &model, "go"]);
    assert!(
        format!("{}{}", refused.out, refused.err).contains("--allow 'acme_greet .env'"),
        "{}",
        refused.err
    );
    scene
        .yoi(&[
            "run",
            "--allow",
            "acme_greet .env",
            "--pod",
            "b",
            "-m",
            &model,
            "go",
        ])
        .ends(0);
    let ends = scene
        .records("b")
        .into_iter()
        .filter(|record| record["k"] == "tool_finished");
    assert!(ends.into_iter().all(|end| end["outcome"]["status"] == "ok"));
}

/// A granted plugin that cannot be installed is named by a run and by the lists, with the way out.
#[test]
fn a_granted_plugin_whose_tool_has_a_taken_name_is_told() {
    let scene = Scene::new();
    write(
        &scene.path("config/yoi/plugins/acme"),
        &manifest("acme", "Read"),
        SCRIPT,
    );
    assert!(
        !scene
            .yoi(&["plugin", "list"])
            .ends(0)
            .out
            .contains("reserved"),
        "nothing is compiled before a grant"
    );
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let way_out = "rename it, or set `rename` under [plugins.acme]";
    scene.yoi(&["plugin", "list"]).ends(0).prints(&[
        "granted",
        "reserved for builtin:files",
        way_out,
    ]);
    let listed = scene
        .yoi(&["plugin", "show", "acme", "--json"])
        .ends(0)
        .json();
    assert!(
        listed["problems"][0]
            .as_str()
            .unwrap()
            .contains("reserved for builtin:files"),
        "{listed}"
    );
    scene
        .yoi(&["run", "list the files"])
        .ends(0)
        .says(&["has the same name as a tool of builtin:files; rename it"]);
}

/// An argument grants one plugin, whatever a project calls its own.
#[test]
fn an_argument_names_one_plugin() {
    let scene = Scene::new();
    own(&scene, "acme", SCRIPT);
    let digest = |key: &str| {
        let listed = scene.yoi(&["grant", "--json"]).ends(0).json();
        let all = listed["pending"]
            .as_array()
            .unwrap()
            .iter()
            .find(|plugin| plugin["key"] == key)
            .cloned();
        all.map(|plugin| plugin["digest"].as_str().unwrap().to_owned())
    };
    let acme = digest("plugin:acme").unwrap();
    let names = ["1", &acme[..12], "acme2"];
    for name in names {
        write(
            &scene.file(&format!(".yoi/plugins/{name}")),
            &manifest(name, &format!("p{name}_greet")),
            SCRIPT,
        );
    }
    scene.yoi(&["grant"]).ends(0).prints(&[
        "plugin:acme  (",
        "`yoi grant DIGEST…` grants plugins as they are listed",
    ]);
    for number in ["1", "2"] {
        scene
            .yoi(&["grant", number])
            .ends(2)
            .says(&["has no number; use its digest"]);
    }
    scene.yoi(&["grant", &acme[..12]]).ends(0);
    let granted = scene.yoi(&["revoke", "--json"]).ends(0).json();
    assert_eq!(granted["granted"].as_array().unwrap().len(), 1, "{granted}");
    assert_eq!(granted["granted"][0]["key"], "plugin:acme");
    scene
        .yoi(&["grant", "plugin:1"])
        .ends(0)
        .prints(&["granted: plugin:1"]);
    scene
        .yoi(&["grant", "acme2"])
        .ends(0)
        .prints(&["granted: plugin:acme2"]);
}

/// What would not work on any machine is not added; what this one lacks is said.
#[test]
fn a_package_that_cannot_work_is_not_added() {
    let scene = Scene::new();
    let dir = write(&scene.file("acme"), &manifest("acme", "acme_greet"), SCRIPT);
    fs::create_dir(dir.join("tests")).unwrap();
    fs::write(dir.join("tests/a.json"), "[{]").unwrap();
    scene
        .yoi(&["plugin", "check", "acme"])
        .ends(65)
        .prints(&["! tests/a.json: "]);
    fs::remove_file(dir.join("run.sh")).unwrap();
    scene
        .yoi(&["plugin", "add", "acme"])
        .ends(65)
        .says(&["`run.sh` of acme_greet is not in the package"]);
    let text = manifest("acme", "acme_greet").replace("\"sh\"", "\"no-such-program\"");
    write(&dir, &text, SCRIPT);
    scene
        .yoi(&["plugin", "add", "acme"])
        .ends(0)
        .prints(&["! the program `no-such-program`", "added acme"]);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    let (is_error, text) = called_once(&scene, "p", "acme_greet", json!({ "who": "x" }));
    assert!(
        is_error
            && text.contains("no such program in PATH; install it")
            && !text.contains("name its path"),
        "{text}"
    );
}

/// What a person requires and a plugin has is missed for the plugin's reason.
#[test]
fn a_required_feature_of_a_plugin_is_missed_for_its_reason() {
    let scene = Scene::new();
    own(&scene, "acme", SCRIPT);
    write(
        &scene.path("config/yoi/plugins/bad"),
        "[package]\nname = 1\n",
        SCRIPT,
    );
    let bad = manifest("half", "half_greet").replace("effect = \"read_only\"", "effect = \"none\"");
    write(&scene.path("config/yoi/plugins/half"), &bad, SCRIPT);
    for (id, says) in [
        (
            "acme/main",
            "is not installed: not granted; `yoi grant` lists it",
        ),
        ("gone/main", "does not exist"),
        (
            "bad/main",
            "is not installed: plugin bad ($XDG_CONFIG_HOME/yoi/plugins/bad): the manifest is not valid",
        ),
        (
            "half/main",
            "is not installed: plugin:half/main: line 8: unknown variant `none`",
        ),
    ] {
        scene.config(&format!("[features.\"plugin:{id}\"]\nrequired = true\n"));
        scene
            .yoi(&["run", "list the files"])
            .ends(78)
            .says(&[&format!("plugin:{id} is required by "), says]);
    }
}

/// Whatever is above the temporary directory, the project of a test is its own.
#[test]
fn a_test_of_a_package_stays_in_its_directory() {
    let scene = Scene::new();
    let above = scene.file("above");
    fs::create_dir_all(above.join(".git")).unwrap();
    fs::create_dir(above.join("tmp")).unwrap();
    let script = "echo x > ../../../pwned 2>/dev/null; echo x > ../../pwned 2>/dev/null; echo x > ../pwned; echo end\n";
    let dir = write(
        &scene.file("acme"),
        &manifest("acme", "acme_greet").replace("read_only", "effectful"),
        script,
    );
    fs::create_dir(dir.join("tests")).unwrap();
    fs::write(
        dir.join("tests/a.json"),
        r#"[{ "tool": "acme_greet", "arguments": { "who": "x" }, "contains": "end" }]"#,
    )
    .unwrap();
    let mut command = scene.command(&["plugin", "test", "acme"]);
    crate::scene::finish(command.env("TMPDIR", above.join("tmp")).spawn().unwrap()).ends(0);
    assert!(!above.join("pwned").exists() && !above.join("tmp/pwned").exists());
    assert_eq!(
        fs::read_dir(above.join("tmp")).unwrap().count(),
        0,
        "nothing is left"
    );
}

/// A new version takes the place of an added plugin in one step; nothing of it runs before it is granted.
#[test]
fn an_added_plugin_is_replaced_and_granted_anew() {
    let scene = Scene::new();
    let dir = write(&scene.file("acme"), &manifest("acme", "acme_greet"), SCRIPT);
    fs::write(dir.join("more"), "x").unwrap();
    scene
        .yoi(&["plugin", "add", "acme", "--replace"])
        .ends(0)
        .prints(&["added acme"]);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    fs::write(dir.join("run.sh"), SCRIPT.replace("hello", "hollo")).unwrap();
    fs::remove_file(dir.join("more")).unwrap();
    scene
        .yoi(&["plugin", "add", "acme"])
        .ends(2)
        .says(&["already exists", "--replace"]);
    scene
        .yoi(&["plugin", "add", "acme", "--replace"])
        .ends(0)
        .prints(&["replaced acme"]);
    assert!(
        !called_once(&scene, "a", "acme_greet", json!({ "who": "x" }))
            .1
            .contains("hollo")
    );
    scene
        .yoi(&["grant"])
        .ends(0)
        .prints(&["changed: run.sh", "gone: more"]);
    scene.yoi(&["grant", "plugin:acme"]).ends(0);
    assert!(
        called_once(&scene, "b", "acme_greet", json!({ "who": "x" }))
            .1
            .contains("hollo")
    );
    let names = fs::read_dir(scene.path("config/yoi"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        names
            .into_iter()
            .all(|name| !name.to_string_lossy().starts_with('.')),
        "the older one is gone"
    );
    let added = scene.path("config/yoi/plugins/acme");
    let this = added.to_str().unwrap();
    scene
        .yoi(&["plugin", "add", "--replace", this])
        .ends(2)
        .says(&["is this package itself"]);
    fs::create_dir(added.join(".git")).unwrap();
    scene
        .yoi(&["plugin", "add", "acme", "--replace"])
        .ends(2)
        .says(&["is a repository of git"]);
    fs::remove_dir_all(&added).unwrap();
    fs::write(&added, "mine").unwrap();
    scene
        .yoi(&["plugin", "add", "acme", "--replace"])
        .ends(2)
        .says(&["is no plugin that was added"]);
    assert_eq!(fs::read_to_string(&added).unwrap(), "mine");
}

#[test]
fn only_plugins_of_the_person_are_removed() {
    let scene = Scene::new();
    write(
        &scene.file(".yoi/plugins/acme"),
        &manifest("acme", "acme_greet"),
        SCRIPT,
    );
    scene
        .yoi(&["plugin", "remove", "acme"])
        .ends(2)
        .says(&["has no plugin `acme`"]);
    let elsewhere = write(
        &scene.path("elsewhere/other"),
        &manifest("other", "other_greet"),
        SCRIPT,
    );
    fs::create_dir_all(scene.path("config/yoi/plugins")).unwrap();
    symlink(&elsewhere, scene.path("config/yoi/plugins/other")).unwrap();
    scene.yoi(&["plugin", "remove", "other"]).ends(2);
    assert!(scene.file(".yoi/plugins/acme/run.sh").exists() && elsewhere.join("run.sh").exists());
}

#[test]
fn a_package_that_cannot_be_copied_leaves_nothing() {
    let scene = Scene::new();
    let dir = write(&scene.file("acme"), &manifest("acme", "acme_greet"), SCRIPT);
    symlink("/etc/passwd", dir.join("z-link")).unwrap();
    scene
        .yoi(&["plugin", "add", "acme"])
        .ends(65)
        .says(&["z-link: is a symbolic link"]);
    assert!(!scene.path("config/yoi/plugins/acme").exists());
    assert_eq!(
        fs::read_dir(scene.path("config/yoi")).unwrap().count(),
        0,
        "not even the directory of plugins"
    );
}

/// Names that a person gave to tools stay, whatever a project that was granted says.
#[test]
fn names_of_the_person_come_before_those_of_a_project() {
    let scene = Scene::new();
    write(
        &scene.path("config/yoi/plugins/acme"),
        &manifest("acme", "acme_greet"),
        SCRIPT,
    );
    scene.config("[plugins.acme]\nrename = { acme_greet = \"mine\" }\n");
    scene.write(
        "yoi.toml",
        "[plugins.acme]\nrename = { acme_greet = \"theirs\" }\n",
    );
    scene
        .yoi(&["grant"])
        .ends(0)
        .prints(&["gives tools of the plugin acme other names"]);
    scene.yoi(&["grant", "--all"]).ends(0);
    assert!(
        called_once(&scene, "p", "mine", json!({ "who": "you" }))
            .1
            .contains("hello --who=you")
    );
    scene.config("");
    assert!(
        called_once(&scene, "q", "theirs", json!({ "who": "you" }))
            .1
            .contains("hello --who=you")
    );
}

#[test]
fn a_tool_with_a_name_that_is_taken_is_added_under_another_one() {
    let scene = Scene::new();
    let dir = write(&scene.path("acme"), &manifest("acme", "Read"), SCRIPT);
    let dir = dir.to_str().unwrap();
    scene
        .yoi(&["plugin", "add", dir])
        .ends(65)
        .says(&["`Read`", "reserved for builtin:files"]);
    scene.config("[plugins.acme]\nrename = { Read = \"acme_read\" }\n");
    scene
        .yoi(&["plugin", "check", dir])
        .ends(0)
        .prints(&["tool acme_read runs", "valid"]);
    let tests = scene.path("acme/tests");
    fs::create_dir(&tests).unwrap();
    fs::write(
        tests.join("a.json"),
        r#"[{ "tool": "Read", "arguments": { "who": "you" } }]"#,
    )
    .unwrap();
    scene
        .yoi(&["plugin", "test", dir])
        .ends(0)
        .prints(&["1 passed, 0 failed"]);
    fs::remove_dir_all(&tests).unwrap();
    scene.yoi(&["plugin", "add", dir]).ends(0);
    scene
        .yoi(&["grant", "acme"])
        .ends(0)
        .prints(&["tool acme_read runs"]);
    let (is_error, text) = called_once(&scene, "p", "acme_read", json!({ "who": "you" }));
    assert!(!is_error, "{text}");
}

#[test]
fn a_run_names_plugins_that_it_does_not_use() {
    let scene = Scene::new();
    let run = || scene.yoi(&["run", "list the files"]).ends(0);
    own(&scene, "acme", SCRIPT);
    run().says(&["plugin acme is not used: not granted; `yoi grant` lists it"]);
    scene.yoi(&["grant", "--all"]).ends(0);
    assert!(!run().err.contains("acme"), "it is used");
    fs::write(scene.path("config/yoi/plugins/acme/run.sh"), "other").unwrap();
    run().says(&["plugin acme is not used: changed since it was granted"]);
    for number in 0..5 {
        own(&scene, &format!("more{number}"), SCRIPT);
    }
    run().says(&["and 2 more; `yoi plugin list` lists all plugins"]);
    fs::write(scene.path("config/yoi/plugins/acme/plugin.toml"), "x = 1").unwrap();
    run().says(&["plugin acme (", "[package] is missing"]);
    let checked = scene
        .yoi(&[
            "plugin",
            "check",
            scene.path("config/yoi/plugins/acme").to_str().unwrap(),
        ])
        .ends(65);
    assert_eq!(checked.out.lines().count(), 1, "{}", checked.out);
}

#[test]
fn a_directory_of_plugins_that_was_named_has_to_be_there() {
    let scene = Scene::new();
    let dir = write(&scene.path("acme"), &manifest("acme", "acme_greet"), SCRIPT);
    let list = |dir: &str| scene.yoi(&["plugin", "list", "--plugin-dir", dir]).ends(0);
    list("none").prints(&["! --plugin-dir: ", "none"]);
    list(dir.to_str().unwrap()).prints(&[
        "! --plugin-dir: ",
        "is a plugin; name the directory that contains it",
    ]);
    scene
        .yoi(&[
            "run",
            "--strict-plugins",
            "--plugin-dir",
            "none",
            "list the files",
        ])
        .ends(78)
        .says(&["--plugin-dir"]);
}

#[test]
fn a_name_of_several_grants_revokes_none() {
    let scene = Scene::new();
    for place in ["one", "two"] {
        write(
            &scene.path(place).join("acme"),
            &manifest("acme", "acme_greet"),
            SCRIPT,
        );
        scene
            .yoi(&[
                "grant",
                "--all",
                "--plugin-dir",
                scene.path(place).to_str().unwrap(),
            ])
            .ends(0);
    }
    scene
        .yoi(&["revoke", "plugin:acme"])
        .ends(2)
        .says(&["`plugin:acme` names 2 granted entries; use their numbers or digests"]);
    scene.yoi(&["revoke", "2"]).ends(0);
    scene.yoi(&["revoke", "acme"]).ends(0);
    scene
        .yoi(&["revoke"])
        .ends(0)
        .prints(&["nothing is granted"]);
}
