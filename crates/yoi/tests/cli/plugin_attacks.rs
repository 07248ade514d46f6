//! Plugins and projects that want more than a person granted, or that cost more than themselves.

use crate::git_guard::git;
use crate::plugins::{SCRIPT, called_once, feature, manifest, own, table, write};
use crate::scene::{Scene, fifo, finish};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn greet(scene: &Scene, pod: &str, tool: &str) -> (bool, String) {
    called_once(scene, pod, tool, json!({ "who": "you" }))
}

#[track_caller]
fn outcome(scene: &Scene, id: &str) -> String {
    feature(scene, id).unwrap_or_else(|| panic!("no {id}"))["outcome"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The same package with a schema that has these properties.
fn with_properties(package: &str, properties: &Value) -> String {
    let schema = json!({ "type": "object", "properties": properties });
    let text = manifest(package, &format!("{package}_greet"));
    let at = text.find("schema = ").unwrap();
    let end = at + text[at..].find('\n').unwrap();
    format!("{}schema = '{schema}'{}", &text[..at], &text[end..]).replace(", \"--who={who}\"", "")
}

/// Compiled, these patterns have hundreds of megabytes, and some are refused by a panic of a debug build.
#[test]
fn a_schema_costs_its_package_only() {
    let scene = Scene::new();
    own(&scene, "good", SCRIPT);
    let plugins = scene.path("config/yoi/plugins");
    let many: Value = (0..1000)
        .map(|n| (format!("p{n}"), json!({ "pattern": "^\\w{1,1000}$" })))
        .collect();
    write(
        &plugins.join("many"),
        &with_properties("many", &many),
        SCRIPT,
    );
    let huge = json!({ "a": { "pattern": "^\\p{L}{500}$" } });
    write(
        &plugins.join("huge"),
        &with_properties("huge", &huge),
        SCRIPT,
    );
    let began = std::time::Instant::now();
    scene.yoi(&["features"]).ends(0);
    assert!(
        began.elapsed().as_secs() < 5,
        "without a grant no schema is compiled: {:?}",
        began.elapsed()
    );
    scene
        .yoi(&["plugin", "check", plugins.join("many").to_str().unwrap()])
        .ends(65)
        .prints(&["at most 64 patterns"]);
    scene.yoi(&["grant", "--all"]).ends(0);
    let plan = table(&scene);
    for words in ["at most 64 patterns", "a pattern is too large"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    assert!(
        greet(&scene, "p", "good_greet")
            .1
            .contains("hello --who=you")
    );
}

#[test]
fn a_link_in_a_project_leads_to_no_grant() {
    let scene = Scene::new();
    let elsewhere = scene.path("elsewhere");
    write(
        &elsewhere.join("acme"),
        &manifest("acme", "acme_greet"),
        SCRIPT,
    );
    let with = |args: &[&str]| {
        finish(
            scene
                .command(args)
                .env("YOI_PLUGIN_DIR", &elsewhere)
                .spawn()
                .unwrap(),
        )
    };
    with(&["grant", "plugin:acme"]).ends(0);
    fs::create_dir_all(scene.file(".yoi/plugins")).unwrap();
    symlink(elsewhere.join("acme"), scene.file(".yoi/plugins/acme")).unwrap();
    assert!(
        feature(&scene, "plugin:acme/main").is_none(),
        "it was granted to be used elsewhere"
    );
    assert!(table(&scene).contains("it leads out of the project"));
    fs::remove_dir_all(scene.file(".yoi")).unwrap();
    symlink(&elsewhere, scene.file("tools")).unwrap();
    scene.write("yoi.toml", "[plugins.acme]\npath = \"tools/acme\"\n");
    scene.yoi(&["grant", "--all"]).ends(0);
    assert!(feature(&scene, "plugin:acme/main").is_none());
    // Inside the project a link is as good as a directory.
    fs::remove_file(scene.file("tools")).unwrap();
    write(
        &scene.file("real/acme"),
        &manifest("acme", "acme_greet"),
        SCRIPT,
    );
    symlink(scene.file("real"), scene.file("tools")).unwrap();
    scene.yoi(&["grant", "--all"]).ends(0);
    assert_eq!(outcome(&scene, "plugin:acme/main"), "installed");
}

#[test]
fn a_project_takes_the_place_of_no_plugin_of_the_person() {
    let scene = Scene::new();
    own(&scene, "acme", SCRIPT);
    scene.yoi(&["grant", "--all"]).ends(0);
    let other = SCRIPT.replace("hello", "hollo");
    write(
        &scene.file("tools/acme"),
        &manifest("acme", "acme_greet"),
        &other,
    );
    write(
        &scene.file(".yoi/plugins/acme"),
        &manifest("acme", "acme_greet"),
        &other,
    );
    scene.write(
        "yoi.toml",
        "[plugins.acme]\npath = \"tools/acme\"\nrename = { acme_greet = \"Read\" }\n",
    );
    assert!(
        greet(&scene, "a", "acme_greet")
            .1
            .contains("hello --who=you"),
        "nothing of the project is granted"
    );
    scene.write("yoi.toml", "[plugins.acme]\npath = \"tools/acme\"\n");
    scene.yoi(&["grant", "--all"]).ends(0);
    assert!(
        greet(&scene, "b", "acme_greet")
            .1
            .contains("hello --who=you")
    );
    assert_eq!(
        table(&scene)
            .matches("another plugin is called acme, too")
            .count(),
        2
    );
}

/// A command that can write a copy could change it between the check and the call, and so get what the plugin was granted.
#[test]
fn copies_are_kept_where_no_command_writes() {
    let scene = Scene::new();
    own(&scene, "acme", SCRIPT);
    scene.yoi(&["grant", "--all"]).ends(0);
    let with = |cache: &Path, args: &[&str]| {
        finish(
            scene
                .command(args)
                .env("XDG_CACHE_HOME", cache)
                .spawn()
                .unwrap(),
        )
        .ends(0)
        .out
    };
    for cache in [scene.file("cache"), "/dev/shm".into()] {
        let plan = with(&cache, &["features"]);
        let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plan.contains("where copies of plugins are kept"), "{plan}");
        assert!(!cache.join("yoi").exists());
    }
    assert!(
        with(&scene.file("cache"), &["features", "--json"])
            .contains("where copies of plugins are kept")
    );
    scene.config("[sandbox]\nmode = \"read-only\"\n");
    assert!(
        !with(&scene.file("cache"), &["features"]).contains("where copies of plugins are kept")
    );
    for cache in [
        scene.path("config"),
        scene.path("state"),
        scene.path("state/yoi/below"),
    ] {
        assert!(
            with(&cache, &["features", "--json"])
                .contains("XDG_CACHE_HOME is in the directory of yoi's"),
            "{cache:?}"
        );
    }
}

#[test]
fn a_copy_that_is_not_safe_is_not_run() {
    let scene = Scene::new();
    own(&scene, "acme", SCRIPT);
    scene.yoi(&["grant", "--all"]).ends(0);
    assert!(
        greet(&scene, "a", "acme_greet")
            .1
            .contains("hello --who=you")
    );
    let copies = scene.path("home/.cache/yoi/packages");
    let copy = fs::read_dir(&copies)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
        .join("run.sh");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&copy, SCRIPT.replace("hello", "hollo")).unwrap();
    assert!(
        greet(&scene, "b", "acme_greet")
            .1
            .contains("hello --who=you"),
        "it is made anew"
    );
    fs::remove_dir_all(&copies).unwrap();
    fs::write(&copies, "no directory").unwrap();
    let (is_error, text) = greet(&scene, "c", "acme_greet");
    assert!(
        is_error && text.contains("yoi's own copy of this plugin is gone or changed"),
        "{text}"
    );
    let report = scene
        .yoi(&["features", "c"])
        .ends(0)
        .out
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        report.contains("plugin acme: its tools do not run: its copy cannot be written"),
        "{report}"
    );
}

#[test]
fn copies_that_others_can_write_are_not_used() {
    let scene = Scene::new();
    own(&scene, "acme", SCRIPT);
    scene.yoi(&["grant", "--all"]).ends(0);
    for (pod, dir) in [("a", "home/.cache/yoi"), ("b", "home/.cache/yoi/packages")] {
        let dir = scene.path(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        greet(&scene, pod, "acme_greet");
        let report = scene
            .yoi(&["features", pod])
            .ends(0)
            .out
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(report.contains("its copy would not be safe"), "{report}");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert!(
        greet(&scene, "c", "acme_greet")
            .1
            .contains("hello --who=you")
    );
}

/// What a command left in the project is not the program that the person granted.
#[test]
fn a_program_of_the_project_is_not_taken_for_the_granted_one() {
    let scene = Scene::new();
    own(
        &scene,
        "acme",
        "echo script\ntrue-of-the-machine 2>&1 || echo not there\n",
    );
    scene.yoi(&["grant", "--all"]).ends(0);
    let bin = scene.file("bin");
    fs::create_dir(&bin).unwrap();
    for name in ["sh", "true-of-the-machine"] {
        fs::write(bin.join(name), "#!/bin/dash\necho from the project\n").unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (number, first) in [bin.to_str().unwrap(), "bin", ""].iter().enumerate() {
        let call = json!({ "calls": [{ "name": "acme_greet", "arguments": { "who": "you" } }] });
        let model = scene.script(
            &format!("{number}.jsonl"),
            &[call, json!({ "text": "done" })],
        );
        let pod = format!("p{number}");
        let mut command = scene.command(&["run", "--pod", &pod, "-m", &model, "go"]);
        finish(
            command
                .env("PATH", format!("{first}:/usr/bin:/bin"))
                .spawn()
                .unwrap(),
        )
        .ends(0);
        let records = scene.records(&pod);
        let result = records
            .iter()
            .find(|record| record["k"] == "tool_finished")
            .unwrap()["outcome"]
            .to_string();
        assert!(
            result.contains("script") && result.contains("not there"),
            "{first}: {result}"
        );
        assert!(!result.contains("from the project"), "{first}: {result}");
    }
}

#[test]
fn a_program_sees_no_secret_of_the_environment() {
    let scene = Scene::new();
    own(
        &scene,
        "acme",
        "env\ncat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'\n",
    );
    scene.yoi(&["grant", "--all"]).ends(0);
    let call = json!({ "calls": [{ "name": "acme_greet", "arguments": { "who": "you" } }] });
    let model = scene.script("m.jsonl", &[call, json!({ "text": "done" })]);
    let mut command = scene.command(&["run", "--pod", "p", "-m", &model, "go"]);
    command
        .env("ANTHROPIC_API_KEY", "the-first-secret")
        .env("MY_PLAIN_NAME", "the-second-secret");
    finish(command.spawn().unwrap()).ends(0);
    let records = scene.records("p");
    let result = records
        .iter()
        .find(|record| record["k"] == "tool_finished")
        .unwrap()["outcome"]
        .to_string();
    assert!(
        result.contains("PATH=") && !result.contains("-secret"),
        "{result}"
    );
}

/// A call of a client is judged by no rule, so no program of a plugin runs for one.
#[test]
fn a_tool_for_clients_is_refused() {
    let scene = Scene::new();
    let text = manifest("acme", "acme_greet").replace("effect = ", "for_clients = true\neffect = ");
    write(&scene.path("config/yoi/plugins/acme"), &text, SCRIPT);
    assert!(table(&scene).contains("unknown field `for_clients`"));
}

/// A project cannot take the rules of a granted plugin away.
#[test]
fn a_project_switches_no_plugin_of_the_person_off() {
    let scene = Scene::new();
    let rules = "rules = [{ tool = \"Bash\", program = \"echo\", decision = \"deny\" }]";
    let text =
        format!("[package]\nname = \"calm\"\nversion = \"1.0.0\"\n[features.main]\n{rules}\n");
    write(&scene.path("config/yoi/plugins/calm"), &text, SCRIPT);
    scene.yoi(&["grant", "--all"]).ends(0);
    scene.write(
        "yoi.toml",
        "[features.\"plugin:calm/main\"]\nenabled = false\n",
    );
    assert_eq!(outcome(&scene, "plugin:calm/main"), "installed");
    assert!(called_once(&scene, "a", "Bash", json!({ "command": "echo said" })).0);
    scene.yoi(&["grant", "--all"]).ends(0);
    assert_eq!(outcome(&scene, "plugin:calm/main"), "disabled");
}

/// Also where another directory with the same content is still granted, so that their copy stays.
#[test]
fn a_revoked_plugin_answers_no_more_calls_of_a_running_pod() {
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
    let started = scene.file("started");
    let gate = scene.file("gate");
    fifo(&started);
    fifo(&gate);
    let wait = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "echo > started; read line < gate" } }] });
    let greet = json!({ "calls": [{ "name": "acme_greet", "arguments": { "who": "you" } }] });
    let model = scene.script(
        "m.jsonl",
        &[greet.clone(), wait, greet, json!({ "text": "done" })],
    );
    let mut command = scene.command(&["run", "--pod", "p", "-m", &model, "go"]);
    let run = command
        .env("YOI_PLUGIN_DIR", scene.path("one"))
        .spawn()
        .unwrap();
    fs::read(&started).unwrap();
    let granted = scene.yoi(&["revoke", "--json"]).ends(0).json();
    let one = scene.path("one/acme").display().to_string();
    let at = granted["granted"]
        .as_array()
        .unwrap()
        .iter()
        .position(|grant| grant["directory"] == *one)
        .unwrap();
    scene.yoi(&["revoke", &(at + 1).to_string()]).ends(0);
    fs::write(&gate, "on\n").unwrap();
    finish(run).ends(0);
    let records = scene.records("p");
    let results: Vec<String> = records
        .iter()
        .filter(|record| record["k"] == "tool_finished")
        .map(|record| record["outcome"].to_string())
        .collect();
    assert!(results[0].contains("hello --who=you"), "{results:?}");
    assert!(
        results[2].contains("was revoked") && !results[2].contains("hello"),
        "{results:?}"
    );
}

/// Values that look like options, shell text and paths stay values.
#[test]
fn hostile_arguments_stay_values() {
    let scene = Scene::new();
    own(&scene, "acme", "printf '%s\\n' $# \"$1\"\n");
    scene.yoi(&["grant", "--all"]).ends(0);
    let values = [
        "--help",
        "$(touch pwned)",
        "`touch pwned`",
        "a\nb",
        "../../etc/passwd",
        "{package}",
        "; touch pwned #",
    ];
    for (number, value) in values.iter().enumerate() {
        let (is_error, text) = called_once(
            &scene,
            &format!("p{number}"),
            "acme_greet",
            json!({ "who": value }),
        );
        let expected = json!(format!("1\n--who={value}\n")).to_string();
        assert!(
            !is_error && text.contains(expected.trim_matches('"')),
            "{value}: {text}"
        );
    }
    assert!(!scene.file("pwned").exists());
}

#[test]
fn rules_of_a_granted_plugin_narrow() {
    let scene = Scene::new();
    let rules = "rules = [{ tool = \"Bash\", program = \"echo\", decision = \"deny\" }]";
    let text =
        format!("[package]\nname = \"calm\"\nversion = \"1.0.0\"\n[features.main]\n{rules}\n");
    let dir = write(&scene.path("config/yoi/plugins/calm"), &text, SCRIPT);
    let echo = |pod: &str| called_once(&scene, pod, "Bash", json!({ "command": "echo said" }));
    assert!(!echo("a").0, "without a grant there is no rule");
    scene.yoi(&["grant"]).ends(0).prints(&["rule: deny Bash"]);
    scene.yoi(&["grant", "--all"]).ends(0);
    let (is_error, text) = echo("b");
    assert!(is_error && !text.contains("said\\n"), "{text}");
    scene.config("[features.\"plugin:calm/main\"]\nenabled = false\n");
    assert!(!echo("c").0, "a person switches it off");
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"echo\"\ndecision = \"allow\"\n",
    );
    assert!(echo("d").0, "it is stricter than what the person allows");
    fs::write(
        dir.join("plugin.toml"),
        fs::read_to_string(dir.join("plugin.toml"))
            .unwrap()
            .replace("deny", "allow"),
    )
    .unwrap();
    assert!(table(&scene).contains("can `ask` and `deny`, not `allow`"));
}

#[test]
fn the_end_of_a_program_is_the_outcome_of_its_call() {
    let scene = Scene::new();
    own(
        &scene,
        "acme",
        "echo said\ncase $1 in *=kill) kill -9 $$ ;; *) exit \"${1#--who=}\" ;; esac\n",
    );
    scene.yoi(&["grant", "--all"]).ends(0);
    let ends = [
        ("0", "ok", "exit 0"),
        ("75", "error", "try later"),
        ("3", "error", "exit 3"),
        ("kill", "error", "signal 9"),
    ];
    for (who, kind, says) in ends {
        let (is_error, text) = called_once(
            &scene,
            &format!("p{who}"),
            "acme_greet",
            json!({ "who": who }),
        );
        assert_eq!(is_error, who != "0");
        assert!(
            text.contains(kind) && text.contains(says) && text.contains("said"),
            "{who}: {text}"
        );
    }
}

#[test]
fn only_a_program_that_says_so_has_the_network() {
    let scene = Scene::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{} && echo connected\n",
        listener.local_addr().unwrap().port()
    );
    let text = |name: &str| {
        manifest(name, &format!("{name}_greet")).replace("program = \"sh\"", "program = \"bash\"")
    };
    write(
        &scene.path("config/yoi/plugins/without"),
        &text("without"),
        &script,
    );
    let with = format!("{}network = true\n", text("with"));
    write(&scene.path("config/yoi/plugins/with"), &with, &script);
    scene
        .yoi(&["grant"])
        .ends(0)
        .prints(&["tool with_greet runs `bash {package}/run.sh --who={who}`, with network access"]);
    scene.yoi(&["grant", "--all"]).ends(0);
    assert!(!greet(&scene, "a", "without_greet").1.contains("connected"));
    assert!(greet(&scene, "b", "with_greet").1.contains("connected"));
}

/// A project brings as many features as it likes; a plan shows some of them.
#[test]
fn features_without_a_grant_are_few_in_a_plan() {
    let scene = Scene::new();
    for package in ["one", "two", "three"] {
        let features: String = (0..32).map(|n| format!("[features.f{n}]\n")).collect();
        let text = format!("[package]\nname = \"{package}\"\nversion = \"1.0.0\"\n{features}");
        write(
            &scene.file(&format!(".yoi/plugins/{package}")),
            &text,
            SCRIPT,
        );
    }
    let plan = scene.yoi(&["features", "--json"]).ends(0).json();
    let declarative = plan["features"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|feature| feature["runtime"] == "declarative");
    assert_eq!(declarative.count(), 64);
}

/// Where a program is, and the words of the system, are for the log of the host.
#[test]
fn an_error_of_the_machine_has_no_details() {
    let scene = Scene::new();
    let text =
        manifest("acme", "acme_greet").replace("program = \"sh\"", "program = \"broken-program\"");
    write(&scene.path("config/yoi/plugins/acme"), &text, SCRIPT);
    scene.yoi(&["grant", "--all"]).ends(0);
    let bin = scene.path("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("broken-program"), [0x7f, b'E', b'L', b'F', 0]).unwrap();
    fs::set_permissions(
        bin.join("broken-program"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let run = |pod: &str, log: &str| {
        let call = json!({ "calls": [{ "name": "acme_greet", "arguments": { "who": "you" } }] });
        let model = scene.script(&format!("{pod}.jsonl"), &[call, json!({ "text": "done" })]);
        let mut command = scene.command(&["run", "--pod", pod, "-m", &model, "go"]);
        finish(
            command
                .env("PATH", &bin)
                .env("YOI_LOG", log)
                .spawn()
                .unwrap(),
        )
        .ends(0);
        let records = scene.records(pod);
        let result = records
            .iter()
            .find(|record| record["k"] == "tool_finished")
            .unwrap()["outcome"]
            .to_string();
        assert!(
            result.contains("the program of this tool did not run"),
            "{result}"
        );
        assert!(
            !result.contains("bin/") && !result.contains("os error"),
            "{result}"
        );
        fs::read_to_string(scene.pod(pod).join("host.log")).unwrap_or_default()
    };
    let broken = bin.join("broken-program").display().to_string();
    assert!(!run("a", "info").contains(&broken));
    let log = run("b", "debug");
    assert!(log.contains(&broken), "{log}");
}

/// A project with the granted plugin `calm`, which refuses `touch`, and the pod `p` that ran with it.
struct Calm {
    scene: Scene,
    model: String,
    grant: (std::path::PathBuf, Vec<u8>),
}

const CALM: &str = "[package]\nname = \"calm\"\nversion = \"1.0.0\"\n[features.main]\n\
                    rules = [{ tool = \"Bash\", program = \"touch\", decision = \"deny\" }]\n";

impl Calm {
    fn new() -> Self {
        let scene = Scene::new();
        let call =
            json!({ "calls": [{ "name": "Bash", "arguments": { "command": "touch made" } }] });
        let answers: Vec<Value> = (0..64)
            .flat_map(|_| [call.clone(), json!({ "text": "done" })])
            .collect();
        let model = scene.script("m.jsonl", &answers);
        write(&scene.file(".yoi/plugins/calm"), CALM, SCRIPT);
        scene.yoi(&["grant", "plugin:calm"]).ends(0);
        let file = fs::read_dir(scene.path("state/yoi/grants/plugins"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let grant = (file.clone(), fs::read(file).unwrap());
        let calm = Self {
            scene,
            model,
            grant,
        };
        calm.refuses("p", &[]);
        calm
    }

    fn run(&self, pod: &str, args: &[&str]) -> crate::scene::Done {
        self.scene
            .yoi(&[&["run", "--pod", pod, "-m", &self.model, "go"], args].concat())
    }

    /// The rule holds.
    #[track_caller]
    fn refuses(&self, pod: &str, args: &[&str]) {
        self.run(pod, args).ends(3).prints(&["done"]);
        assert!(!self.scene.file("made").exists());
    }

    /// Nothing starts.
    #[track_caller]
    fn ends(&self, pod: &str, args: &[&str], says: &[&str]) {
        self.run(pod, args)
            .ends(78)
            .says(&[says, &["help: "]].concat());
        assert!(!self.scene.file("made").exists());
    }

    fn restore(&self) {
        drop(fs::remove_dir_all(self.scene.file(".yoi")));
        drop(fs::remove_dir_all(self.scene.file("real")));
        drop(fs::remove_file(self.scene.file("yoi.toml")));
        write(&self.scene.file(".yoi/plugins/calm"), CALM, SCRIPT);
        let (file, text) = &self.grant;
        let dir = file.parent().unwrap();
        fs::create_dir_all(dir).unwrap();
        fs::write(file, text).unwrap();
        mode(dir, 0o700);
        mode(file, 0o600);
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Any changed byte of a granted plugin took its rules away, with exit 0, and what they refused ran.
#[test]
fn no_change_of_a_plugin_takes_its_rules_away() {
    let calm = Calm::new();
    let scene = &calm.scene;
    let at = |name: &str| scene.file(".yoi/plugins").join(name);
    let append = |text: &str| fs::write(at("calm/plugin.toml"), format!("{CALM}{text}")).unwrap();
    let (file, _) = &calm.grant;
    let dir = file.parent().unwrap();
    let attacks: [(&str, &str, &dyn Fn()); 13] = [
        ("a byte", "changed since it was granted", &|| {
            append("# x\n")
        }),
        (
            "a byte with the old time",
            "changed since it was granted",
            &|| {
                let before = fs::metadata(at("calm/run.sh")).unwrap().modified().unwrap();
                fs::write(at("calm/run.sh"), SCRIPT.replace("hello", "hollo")).unwrap();
                fs::File::options()
                    .write(true)
                    .open(at("calm/run.sh"))
                    .unwrap()
                    .set_modified(before)
                    .unwrap();
            },
        ),
        ("no rules", "changed since it was granted", &|| {
            fs::write(at("calm/plugin.toml"), CALM.replace("deny", "ask")).unwrap();
        }),
        ("a mode", "changed since it was granted", &|| {
            mode(&at("calm/run.sh"), 0o755)
        }),
        ("a file", "changed since it was granted", &|| {
            fs::write(at("calm/new"), "").unwrap()
        }),
        (
            "no manifest any more",
            "lacks its rules (deny Bash touch)",
            &|| append("[[["),
        ),
        ("gone", "no plugin was found in", &|| {
            fs::remove_dir_all(at("calm")).unwrap()
        }),
        ("renamed", "no plugin was found in", &|| {
            fs::rename(at("calm"), at("calm2")).unwrap()
        }),
        ("a link", "no plugin was found in", &|| {
            fs::rename(at("calm"), scene.file("real")).unwrap();
            symlink(scene.file("real"), at("calm")).unwrap();
        }),
        (
            "another of its name",
            "another plugin is called calm, too",
            &|| {
                write(&at("a"), CALM.split("rules").next().unwrap(), SCRIPT);
            },
        ),
        (
            "more plugins than are read",
            "no plugin was found in",
            &|| {
                (0..64).for_each(|number| {
                    drop(write(
                        &at(&format!("a{number}")),
                        &manifest(&format!("a{number}"), "a_b"),
                        SCRIPT,
                    ))
                });
            },
        ),
        (
            "grants that others can write",
            "others can write it (mode 777)",
            &|| mode(dir, 0o777),
        ),
        (
            "a grant that others can write",
            "others can write it (mode 666)",
            &|| mode(file, 0o666),
        ),
    ];
    for (what, says, attack) in attacks {
        attack();
        calm.ends("new", &[], &[says]);
        calm.run("p", &[]).ends(78).says(&["help: "]);
        assert!(!scene.file("made").exists(), "{what}");
        calm.restore();
        calm.refuses("p", &[]);
    }
    assert!(!scene.pods().contains(&"new".to_owned()));
    // A person accepts it, once for each pod.
    append("# x\n");
    calm.run("p", &["--adopt"])
        .ends(0)
        .says(&["warning: since the last start, plugin:calm/main was switched off"]);
    calm.run("p", &[]).ends(0);
    calm.run("new", &["--adopt"])
        .ends(0)
        .says(&["warning: plugin:calm/main lacks its rules"]);
    calm.run("new", &[]).ends(0);
    fs::remove_file(scene.file("made")).unwrap();
    calm.ends("other", &[], &["changed since it was granted"]);
}

/// No text of the command shows that `git checkout` writes a plugin: what it wrote is judged at the next start.
#[test]
fn no_checkout_takes_the_rules_of_a_plugin_away() {
    let calm = Calm::new();
    let scene = &calm.scene;
    git(scene, &["init", "-q", "-b", "calm", "."]);
    let commit = || {
        git(scene, &["add", "-A", "."]);
        git(
            scene,
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@x",
                "commit",
                "-q",
                "-m",
                "x",
            ],
        );
    };
    commit();
    let plugins = scene.file(".yoi/plugins");
    let branches: [(&str, &str, &dyn Fn()); 4] = [
        ("weak", "changed since it was granted", &|| {
            fs::write(
                plugins.join("calm/plugin.toml"),
                CALM.replace("deny", "ask"),
            )
            .unwrap();
        }),
        ("gone", "no plugin was found in", &|| {
            fs::remove_dir_all(&plugins).unwrap()
        }),
        ("link", "no plugin was found in", &|| {
            fs::rename(plugins.join("calm"), scene.file("real")).unwrap();
            symlink("../../real", plugins.join("calm")).unwrap();
        }),
        ("named", "another plugin is called calm, too", &|| {
            write(
                &plugins.join("a"),
                CALM.split("rules").next().unwrap(),
                SCRIPT,
            );
        }),
    ];
    for (branch, _, change) in &branches {
        git(scene, &["checkout", "-q", "-b", branch, "calm"]);
        change();
        commit();
    }
    git(scene, &["checkout", "-q", "calm"]);
    for (branch, says, _) in &branches {
        let bash = |command: String| ("Bash", json!({ "command": command }));
        let calls = [
            bash(format!("git checkout -q {branch}")),
            bash("touch made".to_owned()),
        ];
        let results = crate::plugins::called(scene, branch, &calls);
        assert!(
            !results[0].0 && results[1].1.contains("deny Bash touch"),
            "the running pod keeps them: {results:?}"
        );
        assert!(scene.read(".git/HEAD").ends_with(&format!("/{branch}\n")));
        calm.ends(&format!("new-{branch}"), &[], &[says]);
        calm.run("p", &[]).ends(78).says(&["help: "]);
        git(scene, &["checkout", "-q", "calm"]);
        calm.refuses("p", &[]);
    }
}

/// Without the grant a pod that had the rule does not go on; a new one has none.
#[test]
fn a_grant_that_is_gone_is_drift() {
    let calm = Calm::new();
    let (file, _) = &calm.grant;
    fs::remove_file(file).unwrap();
    calm.ends("p", &[], &["(rule `deny Bash touch`)"]);
    calm.run("new", &[]).ends(0);
    fs::remove_file(calm.scene.file("made")).unwrap();
    calm.restore();
    calm.scene.yoi(&["revoke", "plugin:calm"]).ends(0);
    calm.ends("p", &[], &["(rule `deny Bash touch`)"]);
    calm.restore();
    // A pod that is older than the grant has no drift, and lacks the rules as a new one does.
    let old = "[features.\"plugin:calm/main\"]\nenabled = false\n";
    calm.scene
        .config(old)
        .yoi(&["run", "--pod", "old", "list the files"])
        .ends(0);
    fs::write(calm.scene.file(".yoi/plugins/calm/new"), "").unwrap();
    calm.scene.config("");
    calm.ends(
        "old",
        &[],
        &["plugin:calm/main lacks its rules (deny Bash touch)"],
    );
}

#[test]
fn no_start_and_no_project_switches_rules_off() {
    let calm = Calm::new();
    let scene = &calm.scene;
    let off = "[features.\"plugin:calm/main\"]\nenabled = false\n";
    let agent = |keys: &str| {
        let file = scene.path("agent.toml");
        fs::write(
            &file,
            format!("description = \"x\"\nprompt = \"x\"\n{keys}\n"),
        )
        .unwrap();
        file.display().to_string()
    };
    let without = agent("without = [\"plugin:calm/main\"]");
    scene.config("[profiles.calm.features.\"plugin:calm/main\"]\nenabled = false\n");
    let refused = "plugin:calm/main judges or watches what the model does";
    for args in [
        ["--without", "plugin:calm/main"],
        ["--agent", &without],
        ["--profile", "calm"],
    ] {
        calm.ends("new", &args, &[refused]);
    }
    // Also where the plugin does not say any more that it has rules.
    fs::write(
        scene.file(".yoi/plugins/calm/plugin.toml"),
        CALM.split("rules").next().unwrap(),
    )
    .unwrap();
    calm.ends(
        "new",
        &["--without", "plugin:calm/main"],
        &["changed since it was granted"],
    );
    calm.restore();
    scene.config("");
    let kept = agent("tools = [\"Bash\"]");
    calm.refuses("agent", &["--agent", &kept]);
    calm.refuses("off", &["--sandbox", "off", "--allow", "Bash"]);
    let other = CALM.split("rules").next().unwrap();
    write(&scene.file("tools/calm"), other, SCRIPT);
    for (number, text) in [
        off,
        "[plugins.calm]\npath = \"tools/calm\"\n",
        "[plugins.calm]\nrename = { Bash = \"other\" }\n",
        "[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"allow\"\n",
    ]
    .iter()
    .enumerate()
    {
        scene.write("yoi.toml", text);
        calm.refuses(&format!("q{number}"), &[]);
    }
    fs::remove_file(scene.file("yoi.toml")).unwrap();
    // The person does, in their own file; a pod that had the rules needs consent.
    scene.config(off);
    calm.ends(
        "p",
        &[],
        &["was switched off by", "(rule `deny Bash touch`)"],
    );
    calm.run("mine", &[]).ends(0);
    assert!(scene.file("made").exists());
}

/// A model that can write a plugin could otherwise have it changed, with its rules gone at the next start.
#[test]
fn a_model_does_not_write_plugins_without_a_question() {
    let calm = Calm::new();
    let path = ".yoi/plugins/calm/run.sh";
    let bash = |command: String| ("Bash", json!({ "command": command }));
    let calls = [
        ("Write", json!({ "path": path, "content": "" })),
        (
            "Write",
            json!({ "path": ".yoi/plugins/a/plugin.toml", "content": "" }),
        ),
        bash(format!("chmod u+x {path}")),
        bash(format!("echo x >> {path}")),
        bash("mv .yoi/plugins/calm .yoi/plugins/calm2".to_owned()),
        bash("cd .yoi && rm -rf plugins".to_owned()),
    ];
    let results = crate::plugins::called(&calm.scene, "m", &calls);
    for (call, (is_error, text)) in calls.iter().zip(&results) {
        assert!(
            *is_error && text.contains("requires approval"),
            "{call:?}: {text}"
        );
    }
    assert_eq!(results.len(), calls.len());
    calm.refuses("n", &[]);
}

/// What a project restricts with a grant is not dropped with what it permits.
#[test]
fn grants_that_are_not_trusted_drop_no_gate() {
    let scene = Scene::new();
    let dir = scene.path("state/yoi/grants");
    for (text, starts) in [
        (
            "[features.\"builtin:confirm-gate\"]\nenabled = true\ntools = [\"Write\"]\n",
            false,
        ),
        (
            "[features.\"builtin:loop-detect\"]\nenabled = true\n",
            false,
        ),
        (
            "[profiles.p.features.\"builtin:loop-detect\"]\nenabled = true\n",
            false,
        ),
        ("[sandbox]\nmode = \"off\"\n", true),
    ] {
        scene.write("yoi.toml", text);
        scene.yoi(&["grant", "--all"]).ends(0);
        mode(&dir, 0o777);
        let done = scene
            .yoi(&["run", "list the files"])
            .ends(if starts { 0 } else { 78 });
        done.says(&["others can write it (mode 777)", "all grants are ignored"]);
        mode(&dir, 0o700);
        scene.yoi(&["run", "list the files"]).ends(0);
    }
}
