//! `yoi features`: what is on and off and why, what changed between starts, and what decides a call.

use crate::scene::{Done, Scene, finish};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// No line wider than a terminal, and nothing that colours it.
#[track_caller]
fn fits(text: &str) {
    let wide: Vec<&str> = text
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

fn explained(scene: &Scene, tool: &str) -> (Done, Value) {
    let shown = scene.yoi(&["features", "--explain", tool]).ends(0);
    fits(&shown.out);
    (
        shown,
        scene
            .yoi(&["features", "--explain", tool, "--json"])
            .ends(0)
            .json(),
    )
}

/// Marks and texts of a route, in order.
fn steps(route: &Value) -> Vec<(String, String, String)> {
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let steps = route["steps"].as_array().unwrap().iter();
    steps
        .map(|step| (text(step, "mark"), text(step, "text"), text(step, "source")))
        .collect()
}

#[track_caller]
fn has(route: &Value, mark: &str, words: &str, source: &str) {
    let all = steps(route);
    let found = all
        .iter()
        .any(|(m, text, from)| m == mark && text.contains(words) && from.contains(source));
    assert!(found, "no {mark} `{words}` from `{source}` in {all:#?}");
}

#[test]
fn what_is_off_is_listed_with_its_switch() {
    let scene = Scene::new();
    let shown = scene.yoi(&["features"]).ends(0).prints(&[
        "✓ builtin:files",
        "- disabled by default: ",
        "to enable one, set enabled = true under [features.\"ID\"]",
    ]);
    fits(&shown.out);
    for id in builtins::policies::OPT_IN {
        assert!(
            shown.out.contains(&id.to_string()),
            "{id} in\n{}",
            shown.out
        );
        assert!(
            builtins::policies::declared()
                .iter()
                .any(|feature| feature.id == id),
            "{id}"
        );
    }
    scene.config(
        "\n[features.\"builtin:loop-detect\"]\nenabled = true\n[features.\"builtin:shell\"]\nenabled = false\n",
    );
    let shown = scene.yoi(&["features"]).ends(0).prints(&[
        "✓ builtin:loop-detect",
        "- builtin:shell",
        "enabled = false in $XDG_CONFIG_HOME/yoi/config.toml:5",
    ]);
    fits(&shown.out);
    let rows: Vec<&str> = shown
        .out
        .lines()
        .filter(|line| line.starts_with(['✓', '-', '~', '✗']))
        .collect();
    let on = rows.iter().take_while(|row| row.starts_with('✓')).count();
    assert!(
        rows[on..].iter().all(|row| row.starts_with('-')),
        "{rows:#?}"
    );
    assert!(
        rows[..on].is_sorted() && rows[on..].is_sorted(),
        "{rows:#?}"
    );
    let plan = || scene.yoi(&["features", "--json"]).ends(0).out;
    assert_eq!(plan(), plan());
}

#[test]
fn the_host_names_its_gates_and_bounds() {
    let scene = Scene::new();
    scene.config("[limits]\ntool_concurrency = 3\n[sandbox]\nmode = \"off\"\n");
    let plan = scene.yoi(&["features", "--json"]).ends(0).json();
    let gates: Vec<&str> = plan["host"]["gates"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|g| g["name"].as_str())
        .collect();
    let order = [
        "tool_arguments",
        "host:known-tool",
        "host:arguments",
        "host:permission",
        "pre_tool_call",
    ];
    assert_eq!(gates[..5], order);
    assert_eq!(plan["host"]["sandbox"]["mode"], "off");
    let limit = |name: &str| {
        let limits = plan["host"]["limits"].as_array().unwrap();
        limits
            .iter()
            .find(|limit| limit["name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
            .clone()
    };
    let calls = limit("tool.concurrency");
    assert_eq!(calls["value"], 3);
    assert!(
        calls["source"].as_str().unwrap().ends_with("config.toml:2"),
        "{calls}"
    );
    assert_eq!(limit("hook.deadline")["value"], 2000);
    assert_eq!(limit("notification.waiting")["source"], "built-in");
    let shown = scene
        .yoi(&["features"])
        .ends(0)
        .prints(&["sandbox: off", "3 calls at once"]);
    fits(&shown.out);
}

#[test]
fn settings_that_do_not_fit_name_their_line() {
    let scene = Scene::new();
    let loops = "[features.\"builtin:loop-detect\"]\nenabled = true\n";
    let wrong: [(String, &[&str]); 8] = [
        (
            format!("{loops}windw = 4\n"),
            &[
                "config.toml:3: features.\"builtin:loop-detect\": unknown key `windw`",
                "mean `window`?",
            ],
        ),
        (
            format!("{loops}window = \"four\"\n"),
            &[
                "config.toml:3: features.\"builtin:loop-detect\": `window`",
                "a whole number, not text",
            ],
        ),
        (
            format!("{loops}\n\nwindow = 1\n"),
            &["config.toml:5: ", "`window` must be 2 to 20, not 1"],
        ),
        (
            format!("{loops}requird = true\n"),
            &["config.toml:3: ", "did you mean `required`?"],
        ),
        (
            "[features.\"builtin:files\"]\nenabeld = true\n".into(),
            &["config.toml:2: ", "did you mean `enabled`?"],
        ),
        (
            "\n[features.\"builtin:shel\"]\nenabled = false\n".into(),
            &["config.toml:2: ", "mean `builtin:shell`?"],
        ),
        (
            "[features]\n\"builtin:shell\" = { enabled = 3 }\n".into(),
            &["config.toml:2:", "must be true or false"],
        ),
        (
            "\n[features.\"builtin:write-policy\"]\nenabled = true\n".into(),
            &["config.toml:2: ", "`scopes`"],
        ),
    ];
    for (text, says) in wrong {
        scene.config(&text);
        for args in [&["config", "check"][..], &["run", "x"], &["features"]] {
            scene.yoi(args).ends(78).says(says);
        }
    }
    scene.config("[features.\"builtin:shell\"]\nrequired = true\nenabled = true\n");
    let shown = scene.yoi(&["config", "show"]).ends(0);
    let row = |key: &str| {
        shown
            .out
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        row("features.\"builtin:shell\".required").ends_with("config.toml:2)"),
        "{}",
        shown.out
    );
    assert!(
        row("features.\"builtin:shell\".enabled").ends_with("config.toml:3)"),
        "{}",
        shown.out
    );
}

#[test]
fn a_route_names_grant_gate_and_rule() {
    let scene = Scene::new();
    let (_, route) = explained(&scene, "Bash");
    assert_eq!(
        (&route["feature"], &route["effect"]),
        (&json!("builtin:shell"), &json!("effectful"))
    );
    has(&route, "yes", "builtin:shell is enabled", "default");
    has(
        &route,
        "yes",
        "the feature may offer the tool Bash",
        "default",
    );
    has(
        &route,
        "yes",
        "the feature may start any program",
        "default",
    );
    scene.config(
        "[features.\"builtin:loop-detect\"]\nenabled = true\n[sandbox]\nmode = \"off\"\n\
         [[permissions.rules]]\ntool = \"Bash\"\ndecision = \"allow\"\n",
    );
    let (shown, route) = explained(&scene, "Bash");
    shown.prints(&[
        "by `allow Bash`",
        "config.toml:5)",
        "gate `loop-detect`",
        "unless a gate",
    ]);
    has(&route, "yes", "running commands", "config.toml");
    has(
        &route,
        "depends",
        "gate `loop-detect` of builtin:loop-detect",
        "",
    );
    has(
        &route,
        "note",
        "`loop-detect-results` of builtin:loop-detect sees its result",
        "",
    );
    assert_eq!(route["verdict"], "depends");
    scene.config("[[permissions.rules]]\ntool = \"*\"\ndecision = \"deny\"\n");
    let (shown, route) = explained(&scene, "Bash");
    shown.prints(&["✗ permission rule", "so a call to Bash is refused"]);
    has(&route, "no", "by `deny *`", "config.toml");
    assert_eq!(route["verdict"], "refused");
    scene.config(
        "[[permissions.rules]]\ntool = \"Write\"\npath = \"**/*.lock\"\ndecision = \"deny\"\n",
    );
    let (_, route) = explained(&scene, "Write");
    has(
        &route,
        "yes",
        "writing inside the project: allow",
        "default",
    );
    has(
        &route,
        "depends",
        "writing inside the project, on **/*.lock: deny",
        "config.toml",
    );
    has(&route, "no", "writing outside the project: deny", "default");
    assert_eq!(route["verdict"], "depends");
}

#[test]
fn a_route_names_the_enrichers_of_the_tool_alone() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:work-item\"]\nenabled = true\n");
    let words = "of builtin:work-item may narrow its schema at the start of the pod";
    let (_, route) = explained(&scene, "WorkItemCreate");
    has(&route, "note", words, "");
    let (_, route) = explained(&scene, "Read");
    assert!(
        steps(&route)
            .iter()
            .all(|(_, text, _)| !text.contains(words)),
        "{route:#}"
    );
}

#[test]
fn a_route_of_a_tool_that_is_off_or_unknown_says_so() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:shell\"]\nenabled = false\n");
    let (shown, route) = explained(&scene, "Bash");
    shown.prints(&[
        "✗ builtin:shell is disabled: enabled = false in",
        "config.toml:2",
        "the model is not offered Bash",
    ]);
    assert_eq!(route["verdict"], "absent");
    scene
        .yoi(&["features", "--explain", "Bahs"])
        .ends(2)
        .says(&[
            "no feature has a tool or a background task `Bahs`",
            "did you mean `Bash`?",
        ]);
    scene
        .yoi(&["features", "--explain", "Bash", "--plan"])
        .ends(2);
    scene
        .yoi(&["features", "--diff", "1"])
        .ends(2)
        .says(&["there is no run in "]);
}

#[test]
fn starts_are_numbered_and_compared_field_by_field() {
    let scene = Scene::new();
    let done = json!({ "text": "done" });
    let model = scene.script("answers.jsonl", &[done.clone(), done.clone(), done]);
    let start = || {
        scene.yoi(&["run", "--pod", "p", "-m", &model, "x"]).ends(0);
    };
    start();
    start();
    scene.config(
        "[features.\"builtin:shell\"]\nenabled = false\n[features.\"builtin:loop-detect\"]\nenabled = true\n\
         [[permissions.rules]]\ntool = \"Write\"\ndecision = \"deny\"\n",
    );
    start();
    let shown = scene
        .yoi(&["features", "p"])
        .ends(0)
        .prints(&["p: start 3 of 3", "- builtin:shell"]);
    fits(&shown.out);
    let newest = scene.yoi(&["features", "p", "--json"]).ends(0).json();
    assert_eq!(
        (&newest["start"], &newest["notes"]),
        (&json!(3), &json!([]))
    );
    scene
        .yoi(&["features", "p", "--diff", "1..2"])
        .ends(0)
        .prints(&["nothing changed"]);
    let shown = scene
        .yoi(&["features", "p", "--diff", "1"])
        .ends(0)
        .prints(&[
            "start 1 (",
            "start 3 (",
            "builtin:shell\n",
            "(+ added, - removed, ~ changed)",
            "- may start any program",
            "~ state: installed → disabled",
            "+ deny Write",
        ]);
    fits(&shown.out);
    let difference = scene
        .yoi(&["features", "p", "--diff", "1..3", "--json"])
        .ends(0)
        .json();
    let changes = difference["changes"].as_array().unwrap();
    let path = json!(["features", "builtin:shell", "enabled"]);
    let change = changes
        .iter()
        .find(|change| change["path"] == path)
        .unwrap();
    assert_eq!(
        (&change["from"], &change["to"]),
        (&json!(true), &json!(false))
    );
    scene
        .yoi(&["features", "p", "--diff", "4"])
        .ends(2)
        .says(&["p has no start 4: it has 3 starts"]);
    scene
        .yoi(&["features", "p", "--diff", "0"])
        .ends(2)
        .says(&["the number of a start (1 or more)"]);
}

#[test]
fn a_person_narrows_and_widens_what_a_feature_may_do() {
    let scene = Scene::new();
    scene.config(
        "[features.\"builtin:files\"]\nenabled = true\ngrant = { fs = { workspace = \"read\" } }\n",
    );
    let plan = scene.yoi(&["features"]).ends(0).prints(&[
        "~ builtin:files",
        "without Write",
        "config.toml:3",
    ]);
    fits(&plan.out);
    let (shown, route) = explained(&scene, "Write");
    shown.prints(&["config.toml:3", "the model is not offered Write"]);
    assert_eq!(route["verdict"], "absent");
    scene
        .yoi(&["config", "show"])
        .ends(0)
        .prints(&["{\"fs\":{\"workspace\":\"read\"}}", "config.toml:3)"]);
    scene.config(
        "[features.\"builtin:search\".grant]\nalerts = true\nfs = { workspace = \"write\" }\n",
    );
    scene
        .yoi(&["features"])
        .ends(0)
        .prints(&["✓ builtin:search"]);
    let (_, route) = explained(&scene, "Grep");
    has(
        &route,
        "yes",
        "the feature may read the project",
        "config.toml:1",
    );
    scene.config("[features.\"builtin:shell\"]\ngrant = { process = [] }\n");
    scene.yoi(&["features"]).ends(0).prints(&[
        "✗ builtin:shell",
        "the feature requires permission to start any program",
    ]);
    // Beside a grant of one host it said that the feature may not connect to `*:*`.
    let web = |hosts: &str| {
        scene.config(&format!(
            "[features.\"builtin:web\"]\nenabled = true\ngrant = {{ network = [{hosts}] }}\n"
        ));
        let told = scene.yoi(&["features"]).ends(0).out
            + &scene.yoi(&["features", "--explain", "Fetch"]).ends(0).out;
        assert!(!told.contains("*:*"), "{told}");
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        web("\"docs.rs\"")
            .contains("has no permission to connect to hosts other than docs.rs (fetch)")
    );
    assert!(web("").contains("the feature requires permission to connect to any host (fetch)"));
    let wrong: [(&str, &[&str]); 3] = [
        (
            "grant = { netwrk = [] }\n",
            &["config.toml:2:", "netwrk", "did you mean `network`?"],
        ),
        (
            "grant = { fs = { workspace = \"rw\" } }\n",
            &["config.toml:2:", "rw"],
        ),
        (
            "\n[features.\"builtin:shell\".grant]\nalerts = true\nprocess = [\"\"]\n",
            &["config.toml:5: ", "grant.process"],
        ),
    ];
    for (text, says) in wrong {
        scene.config(&format!("[features.\"builtin:shell\"]\n{text}"));
        scene.yoi(&["config", "check"]).ends(78).says(says);
    }
}

#[test]
fn grants_that_nothing_was_done_under_are_named() {
    let scene = Scene::new();
    scene.write("a.txt", "words");
    let call = |name: &str, arguments: Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let read = call("Read", json!({ "path": "a.txt" }));
    let model = scene.script("answers.jsonl", &[read, json!({ "text": "done" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "read it"])
        .ends(0);
    let records = scene.records("p");
    let ledger = &records[records.len() - 2];
    let last = &records[records.len() - 1];
    assert_eq!(
        (&ledger["k"], &last["k"]),
        (&json!("grants_used"), &json!("host_stopped"))
    );
    let grants = ledger["grants"].as_array().unwrap();
    let used =
        |row: &&Value| row["uses"].as_u64() > Some(0) && row["last_use_ms"].as_u64() > Some(0);
    let files = grants
        .iter()
        .filter(|row| row["feature"] == "builtin:files")
        .find(used);
    assert_eq!(
        files.unwrap()["grant"],
        "ScopedFs(workspace:rw)",
        "{grants:?}"
    );
    let shown = scene.yoi(&["features", "p", "--unused"]).ends(0).prints(&[
        "builtin:shell may start any program; read the project",
        "builtin:files may offer the tools List, Write",
    ]);
    fits(&shown.out);
    assert!(
        !shown.out.contains("Read,") && !shown.out.contains("builtin:files may read"),
        "{}",
        shown.out
    );
    let newest = scene.yoi(&["features", "p", "--json"]).ends(0).json();
    assert_eq!(newest["calls"], json!({ "Read": 1 }));
}

#[test]
fn a_missing_requirement_is_refused_before_a_pod_is_created() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:shell\"]\nenabled = false\nrequired = true\n");
    let done = scene.yoi(&["run", "--pod", "new", "x"]).ends(78).says(&[
        "- builtin:shell",
        "error: builtin:shell is required by $XDG_CONFIG_HOME/yoi/config.toml:3 but is disabled",
    ]);
    assert_eq!(done.out, "");
    assert!(!scene.pod("new").exists() && scene.pods().is_empty());
}

// A pod that does not start has the report of that start in its journal, and is otherwise as it was.
#[test]
fn a_known_pod_that_lacks_a_requirement_records_the_report() {
    let cases = [
        (
            "builtin:shell",
            "enabled = false\nrequired = true\n",
            "is disabled",
        ),
        (
            "builtin:work-item",
            "enabled = true\nrequired = true\n",
            "no directory `work-items`",
        ),
    ];
    for (id, switches, why) in cases {
        let scene = Scene::new();
        let run = || scene.yoi(&["run", "--pod", "p", "-m", "offline", "list the files"]);
        run().ends(0);
        let before = scene.records("p");
        scene.config(&format!("[features.\"{id}\"]\n{switches}"));
        let says = format!("error: {id} is required by $XDG_CONFIG_HOME/yoi/config.toml:3 but ");
        run().ends(78).says(&[&says, why]);
        let after = scene.records("p");
        let kinds: Vec<_> = after
            .iter()
            .skip(before.len())
            .map(|record| record["k"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            ["host_started", "features", "grants_used", "host_stopped"],
            "{id}"
        );
        let report = &after[before.len() + 1]["report"];
        assert_eq!(report["unmet"][0]["feature_id"], *id);
        assert!(
            report["unmet"][0]["reason"].as_str().unwrap().contains(why),
            "{report}"
        );
        assert!(
            after.last().unwrap()["reason"]
                .as_str()
                .unwrap()
                .contains(id)
        );
        let shown = scene.yoi(&["features", "p"]).ends(0);
        assert!(
            shown.out.contains(&format!("! {id} is required")),
            "{}",
            shown.out
        );
        scene.config("");
        let again = run().ends(0);
        assert!(!again.err.contains("changed since"), "{}", again.err);
        scene.sound("p");
    }
    let scene = Scene::new();
    scene.config("[features.\"builtin:work-item\"]\nenabled = true\nrequired = true\n");
    scene
        .yoi(&["run", "--pod", "new", "x"])
        .ends(78)
        .says(&["builtin:work-item is required"]);
    assert!(scene.pods().is_empty());
}

#[test]
fn findings_of_opening_are_printed_even_if_the_run_fails() {
    let scene = Scene::new();
    let run = || scene.yoi(&["run", "--pod", "p", "-m", "offline", "list the files"]);
    run().ends(0);
    // What a run leaves that is killed while it writes.
    let log = scene.log_file("p");
    let cut = [&fs::read(&log).unwrap()[..], b"{\"c\":\"12345678\",\"n\":"].concat();
    fs::write(&log, cut).unwrap();
    scene.config("[features.\"builtin:shell\"]\nenabled = false\nrequired = true\n");
    let found = "restored after a crash: no call was interrupted; 20 bytes that followed the last complete record were moved";
    run()
        .ends(78)
        .says(&[found, "error: builtin:shell is required"]);
    scene.sound("p");
}

/// The schemas that ship are those of the types: `yoi features --schema > docs/schema/features-plan.json`, each with
/// `| python3 -m json.tool` or the like between.
#[test]
fn the_schemas_are_those_that_ship() {
    let scene = Scene::new();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let all: [(&str, &[&str]); 7] = [
        ("config.schema.json", &["config", "schema"]),
        ("features-plan.json", &["features", "--schema"]),
        ("features-report.json", &["features", "POD", "--schema"]),
        (
            "features-diff.json",
            &["features", "POD", "--diff", "1", "--schema"],
        ),
        (
            "features-unused.json",
            &["features", "POD", "--unused", "--schema"],
        ),
        (
            "features-explain.json",
            &["features", "--explain", "TOOL", "--schema"],
        ),
        (
            "features-explain-task.json",
            &["features", "--explain", "deliver", "--schema"],
        ),
    ];
    for (file, args) in all {
        let shipped: Value =
            serde_json::from_str(&fs::read_to_string(docs.join(file)).unwrap()).unwrap();
        let own = finish(scene.command(args).spawn().unwrap()).ends(0).json();
        assert_eq!(
            own,
            shipped,
            "docs/schema/{file} is not what `yoi {}` prints",
            args.join(" ")
        );
    }
}
