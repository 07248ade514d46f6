//! `--output-schema`: answers of a form, corrected a few times, whatever comes between.

use crate::scene::{Done, Scene, fifo, finish, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Child;

const SCHEMA: &str = r#"{ "type": "object", "required": ["files"], "properties": { "files": { "type": "integer" } } }"#;
const SCHEMA_TOML: &str = r#"{ type = "object", required = ["files"] }"#;

fn scene() -> Scene {
    let scene = Scene::new();
    fs::write(scene.path("schema.json"), SCHEMA).unwrap();
    scene
}

fn run(scene: &Scene, model: &str, more: &[&str]) -> Done {
    let schema = scene.path("schema.json").display().to_string();
    scene.yoi(
        &[
            &["run", "--output-schema", &schema, "-m", model][..],
            more,
            &["how many?"],
        ]
        .concat(),
    )
}

fn inputs(scene: &Scene, pod: &str) -> Vec<String> {
    let of = |record: &Value| {
        record["text"]
            .as_str()
            .filter(|_| record["k"] == "input_queued")
            .map(str::to_owned)
    };
    scene.records(pod).iter().filter_map(of).collect()
}

fn answers(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({ "text": text })).collect()
}

#[test]
fn an_answer_that_fits_is_printed_alone() {
    let scene = scene();
    for (text, printed) in [
        ("{\"files\": 3}", "{\"files\": 3}\n"),
        ("```json\n{\"files\": 3}\n```\n", "{\"files\": 3}\n"),
        (
            "{\"files\": 3, \"note\": \"\u{202e}\"}",
            "{\"files\": 3, \"note\": \"\\u202e\"}\n",
        ),
    ] {
        let model = scene.script("s.jsonl", &answers(&[text]));
        let done = run(&scene, &model, &["--pod", "p"]).ends(0);
        assert_eq!(done.out, printed);
        scene.sound("p");
        let told = inputs(&scene, "p");
        assert!(
            told.len() == 1
                && told[0].starts_with("how many?\n\n")
                && told[0].contains("\"integer\""),
            "{told:?}"
        );
        scene.yoi(&["rm", "p", "--purge"]).ends(0);
    }
    let model = scene.script("s.jsonl", &answers(&["{\"files\":3}"]));
    let result = run(&scene, &model, &["--json", "--ephemeral"])
        .ends(0)
        .lines()
        .pop()
        .unwrap();
    assert_eq!(
        (&result["output"], &result["answer"]),
        (&json!({ "files": 3 }), &json!("{\"files\":3}"))
    );
    let free = scene
        .yoi(&["run", "--json", "-m", &model, "x"])
        .ends(0)
        .lines()
        .pop()
        .unwrap();
    assert_eq!(free.get("output"), None, "only where a form was asked for");
}

#[test]
fn what_does_not_fit_is_corrected_and_all_of_it_counts() {
    let scene = scene();
    let usage = json!({ "input": 100, "output": 10 });
    let script = ["three", "{\"files\":\"3\"}", "{\"files\":3}"]
        .map(|text| json!({ "text": text, "usage": usage }));
    let model = scene.script("s.jsonl", &script);
    let done = run(&scene, &model, &["--pod", "p"])
        .ends(0)
        .says(&["3 steps", "330 tokens"]);
    assert_eq!(done.out, "{\"files\":3}\n");
    scene.sound("p");
    let told = inputs(&scene, "p");
    assert_eq!(told.len(), 3);
    assert!(
        told[1].contains("not one JSON document") && told[2].contains("- /files: "),
        "{told:?}"
    );
    // A limit is a limit of the run.
    run(&scene, &model, &["--max-steps", "2"])
        .ends(4)
        .says(&["the step limit was reached", "2 steps"]);
    let price = "price = { input = 100.0, output = 1000.0 }";
    scene.config(&format!("[models.\"{model}\"]\n{price}\n"));
    let spent = run(&scene, &model, &["--max-cost", "0.03"]).ends(4);
    assert_eq!(
        spent
            .says(&["the cost limit was reached", "2 steps", "$0.04"])
            .out,
        ""
    );
    run(&scene, &model, &["--max-cost", "0.05"])
        .ends(0)
        .says(&["$0.06"]);
}

#[test]
fn a_model_that_never_gets_it_right_is_given_up() {
    let scene = scene();
    let model = scene.script(
        "s.jsonl",
        &answers(&["[]", "{}", "{\"files\":1.5}", "no", "{\"files\":1}"]),
    );
    let done = run(&scene, &model, &["--pod", "p"]).ends(1).says(&[
        "the answer does not match the schema: it is not one JSON document",
        "help: `yoi log p` shows the answer; choose another model with -m",
    ]);
    assert_eq!(
        done.out, "",
        "whoever reads it gets JSON of that form or nothing"
    );
    assert_eq!(inputs(&scene, "p").len(), 4);
    scene.sound("p");
    let result = run(&scene, &model, &["--json"])
        .ends(1)
        .lines()
        .pop()
        .unwrap();
    assert_eq!(
        (&result["output"], &result["exit"], &result["answer"]),
        (&Value::Null, &json!(1), &json!("no"))
    );
}

/// What programs read of the pod `p`, whose newest answer gates did not accept.
fn assert_not_done(scene: &Scene) {
    let status = scene.yoi(&["status", "p", "--json"]).ends(0).json();
    assert_eq!(status["last_outcome"], json!({ "outcome": "not_accepted" }));
    let list = scene.yoi(&["ls", "--json"]).ends(0).json();
    assert_eq!(list[0]["outcome"], json!("failed"));
}

// A run whose answer missed its schema ended with code 1, and its result line, `yoi log` and `yoi status` said `done`.
#[test]
fn an_answer_that_is_not_accepted_is_nowhere_done() {
    let scene = scene();
    let feature = "[features.\"builtin:output-validate\"]\n";
    let schema = scene.path("schema.json").display().to_string();
    for (settings, more) in [
        (format!("{feature}schema = {SCHEMA_TOML}\n"), &[][..]),
        (format!("{feature}command = [\"false\"]\n"), &[][..]),
        (String::new(), &["--output-schema", &schema][..]),
        (
            format!("{feature}enabled = false\n"),
            &["--output-schema", &schema][..],
        ),
    ] {
        scene.config(&settings);
        let model = scene.script("s.jsonl", &answers(&["three"; 4]));
        let run = [
            &["run", "--json", "--pod", "p", "-m", &model],
            more,
            &["how many?"],
        ]
        .concat();
        let result = scene.yoi(&run).ends(1).lines().pop().unwrap();
        assert_eq!(
            result["outcome"],
            json!({ "outcome": "not_accepted" }),
            "{settings}"
        );
        if !settings.contains("enabled") {
            let log = scene
                .yoi(&["log", "p"])
                .ends(0)
                .prints(&["⊘ the answer is not accepted by ", "turn 4: answered"]);
            assert!(!log.out.contains(": done"), "{}", log.out);
            scene
                .yoi(&["status", "p"])
                .ends(0)
                .prints(&["answer not accepted"]);
            assert_not_done(&scene);
        }
        scene.yoi(&["rm", "p", "--purge"]).ends(0);
    }
    // A gate that fails has a person look.
    scene.config(&format!("{feature}command = [\"no-such-program\"]\n"));
    let model = scene.script("s.jsonl", &answers(&["three"]));
    let result = scene
        .yoi(&["run", "--json", "--pod", "p", "-m", &model, "x"])
        .ends(1)
        .lines()
        .pop()
        .unwrap();
    assert_eq!(result["outcome"], json!({ "outcome": "not_accepted" }));
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["answer not accepted"]);
    assert_not_done(&scene);
    scene.yoi(&["rm", "p", "--purge"]).ends(0);
    // One that is accepted is.
    scene.config(&format!("{feature}command = [\"true\"]\n"));
    let model = scene.script("s.jsonl", &answers(&["three"]));
    let result = scene
        .yoi(&["run", "--json", "--pod", "p", "-m", &model, "x"])
        .ends(0)
        .lines()
        .pop()
        .unwrap();
    assert_eq!(result["outcome"], json!({ "outcome": "done" }));
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["last turn done"]);
}

#[test]
fn what_is_no_schema_is_refused_before_anything_begins() {
    let scene = scene();
    let model = scene.script("s.jsonl", &answers(&["{}"]));
    let file = scene.path("schema.json");
    let long = format!("{{\"description\":\"{}\"}}", "x".repeat(64 * 1024));
    for (text, says) in [
        ("{", "not JSON: "),
        ("{\"type\":\"thing\"}", "not a JSON Schema: /type: "),
        (
            "{\"$ref\":\"http://127.0.0.1:1/x\"}",
            "it refers to http://127.0.0.1:1/x, but references outside",
        ),
        (&long, "over 64 KiB"),
    ] {
        fs::write(&file, text).unwrap();
        run(&scene, &model, &[]).ends(2).says(&[
            "error: --output-schema ",
            "schema.json: ",
            says,
            "help: ",
        ]);
    }
    fs::remove_file(&file).unwrap();
    run(&scene, &model, &[])
        .ends(2)
        .says(&["schema.json does not exist"]);
    assert_eq!(scene.pods(), Vec::<String>::new());
}

/// A run whose first answer does not fit and whose second one waits at a command.
fn between(scene: &Scene) -> (Child, Vec<Value>) {
    fifo(&scene.file("started"));
    let command = "echo $$ > started; while :; do sleep 600; done";
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "timeout_s": 3600 } }] });
    let script = vec![json!({ "text": "three" }), call];
    let model = scene.script("s.jsonl", &script);
    let schema = scene.path("schema.json").display().to_string();
    let run = [
        "run",
        "--pod",
        "p",
        "--output-schema",
        &schema,
        "-m",
        &model,
        "how many?",
    ];
    let run = scene.command(&run).spawn().unwrap();
    reached(&scene.file("started"));
    fs::remove_file(scene.file("started")).unwrap();
    (run, script)
}

#[test]
fn a_run_that_ends_in_a_correction_goes_on() {
    for (sent, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let scene = scene();
        let (child, mut script) = between(&scene);
        signal(child.id(), sent);
        let done = finish(child);
        assert_eq!((done.code(), done.out.as_str()), (code, ""), "{done:?}");
        script.push(json!({ "text": "{\"files\": 7}" }));
        let model = scene.script("s.jsonl", &script);
        let done = run(&scene, &model, &["-c"]).ends(0);
        assert_eq!(done.out, "{\"files\": 7}\n");
        assert_eq!(scene.sound("p"), 1);
        let told = inputs(&scene, "p");
        assert!(
            told.len() == 3 && told[1].contains("does not fit") && told[2].starts_with("how many?"),
            "{told:?}"
        );
    }
}

// kimi-cli#2065, cline#12151: editors of Windows begin files with a byte order mark and end lines with CRLF.
#[test]
fn a_mark_and_crlf_in_small_files_mean_nothing() {
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let scene = Scene::new();
    scene.config(&windows("model = \"offline\"\n[limits]\nmax_steps = 7\n"));
    scene
        .yoi(&["config", "show"])
        .ends(0)
        .prints(&["max_steps"]);
    fs::write(scene.path("schema.json"), windows(SCHEMA)).unwrap();
    let agent = windows("description = \"Checks.\"\nprompt = \"\"\"\nYou check.\nTwice.\"\"\"\n");
    scene
        .write("agents/checker.toml", agent)
        .write("yoi.toml", windows("[limits]\nmax_steps = 5\n"));
    let model = scene.script("s.jsonl", &answers(&["{\"files\": 3}"]));
    let file = model.strip_prefix("scripted:").unwrap();
    let script = windows(&format!(
        "# a comment\n{}",
        fs::read_to_string(file).unwrap()
    ));
    fs::write(file, script).unwrap();
    let done = run(
        &scene,
        &model,
        &["--pod", "p", "--agent", "agents/checker.toml"],
    )
    .ends(0);
    assert_eq!(done.out, "{\"files\": 3}\n");
    let started = &scene
        .records("p")
        .into_iter()
        .find(|record| record["k"] == "surface")
        .unwrap();
    assert!(
        started["surface"]["system"]
            .as_str()
            .unwrap()
            .contains("You check.\nTwice.")
    );
}

/// What PowerShell's `>` writes was "not JSON" as a schema and "choose an existing file" as a script.
#[test]
fn utf_16_is_named_and_a_mark_in_piped_text_is_no_input() {
    let scene = Scene::new();
    let utf_16 = |text: &str| {
        [
            &[0xff, 0xfe][..],
            &text
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>(),
        ]
        .concat()
    };
    let model = scene.script("s.jsonl", &answers(&["{\"files\": 3}"]));
    let script = fs::read_to_string(model.strip_prefix("scripted:").unwrap()).unwrap();
    for (name, text) in [
        ("u.jsonl", script.as_str()),
        ("schema.json", SCHEMA),
        ("agent.toml", "prompt = \"x\""),
    ] {
        fs::write(scene.path(name), utf_16(text)).unwrap();
    }
    let at = |name: &str| scene.path(name).display().to_string();
    let is = "is UTF-16 text, not UTF-8";
    scene
        .yoi(&["run", "-m", &format!("scripted:{}", at("u.jsonl")), "x"])
        .ends(65)
        .says(&[is, "help: save the file"]);
    for option in [
        ["--output-schema", &at("schema.json")],
        ["--agent", &at("agent.toml")],
    ] {
        let failed = scene.yoi(&[&["run", "-m", &model, "x"], &option[..]].concat());
        assert!(failed.err.contains(is), "{}", failed.err);
    }
    scene
        .fed(&["run", "-m", &model], &utf_16("x"))
        .ends(65)
        .says(&["standard input is UTF-16 text"]);
    scene
        .fed(
            &["run", "--pod", "p", "-m", &model, "count"],
            "\u{feff}these".as_bytes(),
        )
        .ends(0);
    assert_eq!(inputs(&scene, "p")[0], "count\n\n<stdin>\nthese\n</stdin>");
}
