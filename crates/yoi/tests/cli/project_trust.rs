//! A project's `yoi.toml` narrows what the user's own files give, and widens nothing.

use crate::scene::{Scene, finish};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// What is in force by key, and what is pending: value and source each.
struct Shown {
    force: BTreeMap<String, (String, String)>,
    pending: BTreeMap<String, (String, String)>,
}

fn shown(scene: &Scene) -> Shown {
    let mut shown = Shown {
        force: BTreeMap::new(),
        pending: BTreeMap::new(),
    };
    for row in scene
        .yoi(&["config", "show", "--json"])
        .ends(0)
        .json()
        .as_array()
        .unwrap()
    {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let list = if row["pending"] == true {
            &mut shown.pending
        } else {
            &mut shown.force
        };
        list.insert(text("key"), (text("value"), text("source")));
    }
    shown
}

/// What the user has in most of these cases.
const OUTER: &str = "model = \"local/x\"\n[providers.local]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                     [limits]\nmax_steps = 50\nmax_cost_usd = 2.0\nmax_tokens = 1000\n[limits.pod]\nmax_steps = 90\nmax_cost_usd = 4.0\nmax_wall_s = 60\n[models.\"local/x\"]\nprice = { input = 1, output = 1 }\n\
                     [features.\"builtin:loop-detect\"]\nenabled = true\n[sandbox]\nnetwork = \"hosts\"\nhosts = [\"preset:rust\"]\n";

#[test]
fn what_narrows_acts_at_once() {
    // The project's file; the key it is about; its value and line; whether the project's file is its source.
    let cases: [(&str, &str, &str, Option<u32>); 35] = [
        ("model = \"offline\"", "model", "offline", Some(1)),
        ("\nmodel = \"local/y\"", "model", "local/y", Some(2)),
        (
            "model = \"openai/gpt-4.1\"",
            "model",
            "openai/gpt-4.1",
            Some(1),
        ),
        (
            "[sandbox]\nnetwork = \"loopback\"",
            "sandbox.network",
            "loopback",
            Some(2),
        ),
        (
            "[sandbox]\nhosts = [\"crates.io\"]",
            "sandbox.hosts",
            "crates.io",
            Some(2),
        ),
        ("[sandbox]\nhosts = []", "sandbox.hosts", "", Some(2)),
        ("[limits]\nmax_steps = 7", "limits.max_steps", "7", Some(2)),
        ("[limits]\nmax_steps = 50", "limits.max_steps", "50", None),
        ("[limits]\nmax_steps = 51", "limits.max_steps", "50", None),
        (
            "limits = { max_cost_usd = 0.5 }",
            "limits.max_cost_usd",
            "0.5",
            Some(1),
        ),
        (
            "limits = { max_cost_usd = 3 }",
            "limits.max_cost_usd",
            "2",
            None,
        ),
        (
            "limits = { max_cost_usd = inf }",
            "limits.max_cost_usd",
            "2",
            None,
        ),
        (
            "limits = { max_tokens = 999 }",
            "limits.max_tokens",
            "999",
            Some(1),
        ),
        (
            "limits = { max_tokens = 1001 }",
            "limits.max_tokens",
            "1000",
            None,
        ),
        (
            "[limits.pod]\nmax_steps = 89",
            "limits.pod.max_steps",
            "89",
            Some(2),
        ),
        (
            "limits.pod.max_steps = 91",
            "limits.pod.max_steps",
            "90",
            None,
        ),
        (
            "limits.pod.max_cost_usd = 3",
            "limits.pod.max_cost_usd",
            "3",
            Some(1),
        ),
        (
            "limits.pod.max_cost_usd = 5",
            "limits.pod.max_cost_usd",
            "4",
            None,
        ),
        (
            "limits.pod.max_cost_usd = inf",
            "limits.pod.max_cost_usd",
            "4",
            None,
        ),
        (
            "limits.pod.max_wall_s = 59",
            "limits.pod.max_wall_s",
            "59",
            Some(1),
        ),
        (
            "limits.pod.max_wall_s = 61",
            "limits.pod.max_wall_s",
            "60",
            None,
        ),
        (
            "limits.pod.max_tokens = 7",
            "limits.pod.max_tokens",
            "7",
            Some(1),
        ),
        (
            "limits.max_tokens = 5",
            "limits.pod.max_tokens",
            "none",
            None,
        ),
        (
            "limits.tool_concurrency = 1",
            "limits.tool_concurrency",
            "1",
            Some(1),
        ),
        (
            "limits.tool_concurrency = 9",
            "limits.tool_concurrency",
            "8",
            None,
        ),
        (
            "[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"deny\"",
            "permissions.rules[0]",
            "deny Bash",
            Some(1),
        ),
        (
            "[[permissions.rules]]\ntool = \"*\"\ndecision = \"ask\"",
            "permissions.rules[0]",
            "ask *",
            Some(1),
        ),
        (
            "[features.\"builtin:shell\"]\nenabled = false",
            "features.\"builtin:shell\".enabled",
            "false",
            Some(2),
        ),
        (
            "[features.\"builtin:shell\"]\nrequired = true",
            "features.\"builtin:shell\".required",
            "true",
            Some(2),
        ),
        (
            "[features.\"builtin:web\"]\nrequired = true",
            "features.\"builtin:web\".required",
            "true",
            Some(2),
        ),
        (
            "[features.\"builtin:memory\"]\nenabled = false",
            "features.\"builtin:memory\".enabled",
            "false",
            Some(2),
        ),
        (
            "[features.\"builtin:loop-detect\"]\nenabled = true",
            "features.\"builtin:loop-detect\".enabled",
            "true",
            None,
        ),
        (
            "[sandbox]\nmode = \"read-only\"",
            "sandbox.mode",
            "read-only",
            Some(2),
        ),
        (
            "[sandbox]\nmode = \"workspace-write\"",
            "sandbox.mode",
            "workspace-write",
            None,
        ),
        ("instructions = true", "instructions", "true", None),
    ];
    let scene = Scene::new();
    scene.config(OUTER);
    for (text, key, value, line) in cases {
        scene.write("yoi.toml", text);
        let Shown { force, pending } = shown(&scene);
        let (in_force, source) = &force[key];
        assert_eq!(in_force, value, "{text}");
        match line {
            Some(line) => assert!(
                source.ends_with(&format!("project/yoi.toml:{line}")),
                "{text}: {source}"
            ),
            None => assert!(!source.contains("yoi.toml"), "{text}: {source}"),
        }
        assert!(pending.is_empty(), "{text}: {pending:?}");
        assert!(
            !scene
                .yoi(&["config", "check"])
                .ends(0)
                .out
                .contains("not granted")
        );
    }
}

/// What a project's file may ask for: it, and what is pending with its line.
pub(crate) const ASKING: [(&str, &str, u32); 26] = [
    (
        "[providers.evil]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"",
        "providers.evil",
        1,
    ),
    (
        "[providers.local]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"",
        "providers.local",
        1,
    ),
    (
        "[providers.openai]\napi = \"openai-chat\"\nbase_url = \"http://h/v1\"\nkey = { env = \"OPENAI_API_KEY\" }",
        "providers.openai",
        1,
    ),
    ("model = \"evil/x\"", "model", 1),
    ("model = \"scripted:evil.jsonl\"", "model", 1),
    ("model = \"record:local/x\"", "model", 1),
    (
        "[models.\"local/x\"]\n\nprice = { input = 0, output = 0 }",
        "models.\"local/x\".price",
        3,
    ),
    (
        "[models.\"local/x\"]\nmax_output = 9",
        "models.\"local/x\".max_output",
        2,
    ),
    (
        "[models.\"local/x\"]\ncontext = 9000",
        "models.\"local/x\".context",
        2,
    ),
    (
        "[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"deny\"\n[[permissions.rules]]\ntool = \"Bash\"\n\
         decision = \"allow\"",
        "permissions.rules[1]",
        4,
    ),
    (
        "[features.\"builtin:web\"]\nenabled = true",
        "features.\"builtin:web\".enabled",
        2,
    ),
    (
        "[features.\"builtin:web\"]\nmax_bytes = 5",
        "features.\"builtin:web\".max_bytes",
        2,
    ),
    (
        "[features.\"builtin:web\"]\ngrant = { network = [\"*\"] }",
        "features.\"builtin:web\".grant",
        2,
    ),
    (
        "[features.\"builtin:shell\"]\ngrant = { process = [] }",
        "features.\"builtin:shell\".grant",
        2,
    ),
    (
        "[features.\"builtin:loop-detect\"]\nwindow = 20",
        "features.\"builtin:loop-detect\".window",
        2,
    ),
    ("[context]\nprune_at = 50", "context.prune_at", 2),
    ("[context]\nprotect_tokens = 0", "context.protect_tokens", 2),
    ("[mcp]\ndefer = 100", "mcp.defer", 2),
    ("[mcp]\nalways = [\"x\"]", "mcp.always", 2),
    ("[sandbox]\nmode = \"off\"", "sandbox.mode", 2),
    ("[sandbox]\nnetwork = \"on\"", "sandbox.network", 2),
    ("[sandbox]\nhosts = [\"evil.test\"]", "sandbox.hosts", 2),
    (
        "[state]\nany_file_system = true",
        "state.any_file_system",
        2,
    ),
    // The user switched it on: it refuses calls, and a repository must not be able to take it away.
    (
        "[features.\"builtin:loop-detect\"]\nenabled = false",
        "features.\"builtin:loop-detect\".enabled",
        2,
    ),
    ("instructions = false", "instructions", 1),
    (
        "[features.\"builtin:task\"]\nenabled = true",
        "features.\"builtin:task\".enabled",
        2,
    ),
];

#[test]
fn what_widens_is_pending_with_its_line_and_does_nothing() {
    let scene = Scene::new();
    let off = "[features.\"builtin:task\"]\nenabled = false\n";
    scene.config(&format!("{OUTER}{off}"));
    let without = |force: &BTreeMap<String, (String, String)>| -> Vec<(String, String)> {
        let rows = force
            .iter()
            .filter(|(key, _)| !key.starts_with("permissions"));
        rows.map(|(key, (value, _))| (key.clone(), value.clone()))
            .collect()
    };
    let before = without(&shown(&scene).force);
    for (text, key, line) in ASKING {
        scene.write("yoi.toml", text);
        let Shown { force, pending } = shown(&scene);
        assert_eq!(without(&force), before, "{text}");
        assert!(
            force.values().all(|(value, _)| !value.starts_with("allow")),
            "{force:?}"
        );
        assert_eq!(pending.keys().collect::<Vec<_>>(), [key], "{text}");
        assert!(
            pending[key]
                .1
                .ends_with(&format!("project/yoi.toml:{line}")),
            "{text}: {pending:?}"
        );
        let listed = format!("project/yoi.toml:{line}: {key} is pending; `yoi grant` lists it");
        scene.yoi(&["config", "check"]).ends(0).prints(&[&listed]);
        scene
            .yoi(&["config", "show"])
            .ends(0)
            .prints(&["pending, without effect", key]);
        scene
            .yoi(&["grant"])
            .ends(0)
            .prints(&[&format!("1  {key}"), &format!("yoi.toml:{line}")]);
    }
    scene
        .yoi(&["doctor"])
        .prints(&["- project", "has 1 pending entry", "builtin:task"]);
}

#[test]
fn a_project_cannot_set_what_is_its_readers_alone() {
    let scene = Scene::new();
    scene.config("[terminal]\nvi_keys = true\n");
    assert_eq!(shown(&scene).force["terminal.vi_keys"].0, "true");
    scene.write("yoi.toml", "[sandbox]\n[terminal]\nvi_keys = false\n");
    let refused = scene.yoi(&["config", "check"]).ends(78);
    refused.says(&[
        "project/yoi.toml:3: a project cannot set `terminal.vi_keys`",
        "help: delete the line",
    ]);
    scene.write("yoi.toml", "ca_file = \"ca.pem\"\n");
    let refused = scene.yoi(&["config", "check"]).ends(78);
    refused.says(&["project/yoi.toml:1: a project cannot set `ca_file`"]);
}

#[test]
fn a_run_says_on_one_line_what_is_not_granted() {
    let scene = Scene::new();
    scene.write(
        "yoi.toml",
        "[sandbox]\nmode = \"off\"\n[state]\nany_file_system = true\n",
    );
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let done = scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    let lines: Vec<&str> = done
        .err
        .lines()
        .filter(|line| line.contains("yoi.toml"))
        .collect();
    assert!(
        lines.len() == 1 && lines[0].ends_with("has 2 pending entries (`yoi grant` lists them)"),
        "{lines:?}"
    );
    assert!(!done.err.contains("sandbox is off"));
    let started = scene
        .records("p")
        .into_iter()
        .find(|record| record["k"] == "host_started")
        .unwrap();
    assert_eq!(started["sandbox"], "workspace-write");
    let quiet = scene.yoi(&["run", "-q", "-m", &model, "go"]).ends(0);
    assert!(quiet.err.is_empty(), "{}", quiet.err);
}

#[test]
fn an_invalid_project_file_stops_the_run_and_is_named() {
    let wrong: [(&[u8], &str); 14] = [
        (
            b"[limits]\nmax_stepps = 1\n",
            "project/yoi.toml:2: unknown key `max_stepps`",
        ),
        (
            b"\nmodle = \"x\"\n",
            "project/yoi.toml:2: unknown key `modle`",
        ),
        (
            b"[audio]\nlimit = 1\n",
            "project/yoi.toml:1: unknown key `audio`",
        ),
        (
            b"[limits]\nmax_steps = 0\n",
            "project/yoi.toml:2: `max_steps` must be at least 1",
        ),
        (
            b"limits = { max_cost_usd = nan }\n",
            "project/yoi.toml:1: `max_cost_usd` must be",
        ),
        (
            b"limits = { max_cost_usd = -1 }\n",
            "project/yoi.toml:1: `max_cost_usd` must be",
        ),
        (
            b"model = \"x\"\n",
            "project/yoi.toml:1: `model`: `x` is not a model",
        ),
        (
            b"[features.\"builtin:shel\"]\nenabled = true\n",
            "project/yoi.toml:1: there is no feature `builtin:shel`",
        ),
        (
            b"[features.\"nobody\"]\nx = 1\n",
            "project/yoi.toml:1: `nobody` is not a feature id",
        ),
        (
            b"[[permissions.rules]]\ntool = \"Bsh\"\ndecision = \"deny\"\n",
            "yoi.toml:2: permissions.rules[0].tool",
        ),
        (
            b"[providers.x]\nkey = \"sk-canary-0123456789\"\n",
            "project/yoi.toml:2: an API key must not be written",
        ),
        (b"[sandbox]\nmode = \"of\"\n", "project/yoi.toml:2:"),
        (
            b"model = \"\xff\"\n",
            "project/yoi.toml: the file is not UTF-8 after byte 9",
        ),
        (b"model = ", "project/yoi.toml:1:"),
    ];
    let scene = Scene::new();
    for (text, says) in wrong {
        scene.write("yoi.toml", text);
        for args in [
            &["run", "list the files"][..],
            &["config", "check"],
            &["features"],
        ] {
            let done = scene.yoi(args).ends(78).says(&[says]);
            assert!(!done.err.contains("canary"), "{}", done.err);
        }
        scene.yoi(&["doctor"]).ends(1).prints(&["✗ "]);
    }
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn a_required_feature_is_not_switched_on_by_it() {
    let scene = Scene::new();
    scene.write(
        "yoi.toml",
        "\n[features.\"builtin:loop-detect\"]\nrequired = true\n",
    );
    let says = [
        "builtin:loop-detect is required by",
        "project/yoi.toml:3 but is disabled",
    ];
    scene.yoi(&["run", "list the files"]).ends(78).says(&says);
    scene.config("[features.\"builtin:loop-detect\"]\nenabled = true\n");
    scene.yoi(&["run", "list the files"]).ends(0);
    // What the user requires stays required.
    scene.config("[features.\"builtin:shell\"]\nrequired = true\n");
    scene.write(
        "yoi.toml",
        "[features.\"builtin:shell\"]\nrequired = false\nenabled = false\n",
    );
    scene
        .yoi(&["run", "list the files"])
        .ends(78)
        .says(&["builtin:shell is required by"]);
}

/// How a run with this project file and these flags answers one call of Write and one of Bash.
fn outcomes(scene: &Scene, flags: &[&str]) -> Vec<String> {
    let call = |name: &str, arguments: Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let model = scene.script(
        "s.jsonl",
        &[
            call("Write", json!({ "path": "docs/a.txt", "content": "x" })),
            call("Read", json!({ "path": "secret.txt" })),
            json!({ "text": "done" }),
        ],
    );
    let mut args = vec!["run", "--json", "-m", &model, "go"];
    args.extend(flags);
    let lines = scene.yoi(&args).lines();
    let finished = lines.iter().filter(|line| line["k"] == "tool_finished");
    finished
        .map(|line| line["outcome"]["status"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn denials_of_a_project_stand_and_what_it_allows_does_not_count() {
    let rule = |tool: &str, decision: &str| {
        format!("[[permissions.rules]]\ntool = \"{tool}\"\ndecision = \"{decision}\"\n")
    };
    // The user's file, the project's file, and what becomes of Write and Read.
    let cases: [(String, String, [&str; 2]); 6] = [
        (String::new(), String::new(), ["ok", "ok"]),
        (String::new(), rule("Write", "deny"), ["refused", "ok"]),
        (
            rule("Write", "allow"),
            rule("Write", "deny"),
            ["refused", "ok"],
        ),
        (
            rule("Read", "allow"),
            rule("Read", "ask"),
            ["ok", "refused"],
        ),
        (
            rule("Write", "ask"),
            rule("Write", "allow"),
            ["refused", "ok"],
        ),
        (rule("Read", "deny"), rule("*", "allow"), ["ok", "refused"]),
    ];
    let scene = Scene::new();
    scene.write("secret.txt", "x");
    for (user, project, expected) in cases {
        scene.config(&user);
        scene.write("yoi.toml", &project);
        assert_eq!(outcomes(&scene, &[]), expected, "{user}\n{project}");
    }
}

#[test]
fn variables_and_flags_are_the_users_and_stand_over_it() {
    let scene = Scene::new();
    scene.write(
        "yoi.toml",
        "[limits]\nmax_steps = 1\n[sandbox]\nmode = \"read-only\"\n",
    );
    let shown = |name: &str, value: &str| {
        let child = scene
            .command(&["config", "show"])
            .env(name, value)
            .spawn()
            .unwrap();
        finish(child).ends(0).out
    };
    assert!(shown("YOI_MAX_STEPS", "9").contains("9  (YOI_MAX_STEPS)"));
    assert!(shown("YOI_SANDBOX", "workspace-write").contains("workspace-write  (YOI_SANDBOX)"));
    assert!(shown("YOI_MODEL", "offline").contains("read-only  (/"));
    scene.write("secret.txt", "x");
    assert_eq!(outcomes(&scene, &["--max-steps", "5"]), ["refused", "ok"]);
    assert_eq!(
        outcomes(
            &scene,
            &["--max-steps", "5", "--sandbox", "workspace-write"]
        ),
        ["ok", "ok"]
    );
}

#[test]
fn a_file_further_down_takes_no_denial_out_of_force() {
    let scene = Scene::new();
    let deny =
        "[limits]\nmax_steps = 5\n[[permissions.rules]]\ntool = \"Write\"\ndecision = \"deny\"\n";
    scene.write("yoi.toml", deny);
    scene.write("vendor/evil/yoi.toml", "[limits]\nmax_steps = 9\n");
    let below = scene.file("vendor/evil");
    let shown = |dir: &std::path::Path| {
        scene
            .yoi(&["-C", dir.to_str().unwrap(), "config", "show"])
            .ends(0)
            .out
    };
    let nested = shown(&below);
    assert!(
        nested.contains("project/yoi.toml:3)") && nested.contains("5  (/"),
        "{nested}"
    );
}

// A command made `.git` in a directory, and the next start there was free of the denials of the project around it.
#[test]
fn no_repository_inside_takes_a_denial_out_of_force() {
    for made in [
        &["sub/.git/"][..],
        &["sub/.git", "sub/yoi.toml"],
        &["sub/.git/", "sub/deep/.git/"],
        &["sub/deep/yoi.toml"],
    ] {
        let scene = Scene::new();
        scene.write(".git/HEAD", "ref: refs/heads/main\n");
        scene.write("sub/deep/file", "");
        let denies = "model = \"local/x\"\n[limits]\nmax_steps = 5\n[sandbox]\nmode = \"read-only\"\n\
            [permissions]\nsecrets = [\"mine\"]\n[[permissions.rules]]\ntool = \"Write\"\ndecision = \"deny\"\n\
            [[permissions.rules]]\ntool = \"Bash\"\ndecision = \"allow\"\n";
        scene.write("yoi.toml", denies);
        for path in made {
            match path.strip_suffix('/') {
                Some(dir) => fs::create_dir_all(scene.file(dir)).unwrap(),
                None => {
                    scene.write(path, "");
                }
            }
        }
        let at = scene.file("sub/deep");
        let yoi = |args: &[&str]| {
            scene
                .yoi(&[&["-C", at.to_str().unwrap()], args].concat())
                .ends(0)
                .out
        };
        let shown = yoi(&["config", "show"]);
        for held in ["deny Write", "5  (/", "read-only  (/", "mine"] {
            assert!(shown.contains(held), "{made:?}: {held}: {shown}");
        }
        // What would permit something is that of the repository alone.
        let is_own = !made.iter().any(|path| path.contains(".git"));
        assert_eq!(shown.contains("local/x"), is_own, "{made:?}: {shown}");
        assert_eq!(
            yoi(&["grant"]).contains("permissions.rules"),
            is_own,
            "{made:?}"
        );
    }
}
