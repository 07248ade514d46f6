//! What runs cost, and the limit on it.

use crate::endpoint::{Endpoint, Reply, delta};
use crate::scene::{Scene, finish};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// Steps of 10,000 tokens in, half of them cached, and 1,000 out.
fn steps(scene: &Scene, count: usize) -> String {
    let usage = json!({ "input": 10_000, "output": 1_000, "cached": 5_000 });
    let call = json!({ "calls": [{ "name": "List", "arguments": {} }], "usage": usage });
    let mut answers = vec![call; count - 1];
    answers.push(json!({ "text": "done", "usage": usage }));
    scene.script("steps.jsonl", &answers)
}

/// With these prices a step costs two cents.
fn priced(model: &str) -> String {
    format!("[models.\"{model}\"]\nprice = {{ input = 2.0, output = 9.0, cached_input = 0.2 }}\n")
}

#[test]
fn a_cost_is_counted_journaled_and_shown() {
    let scene = Scene::new();
    let model = steps(&scene, 3);
    scene.config(&priced(&model));
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(0)
        .says(&["33k tokens · $0.06 · p"]);
    let records = scene.records("p");
    let costs: Vec<&Value> = records
        .iter()
        .filter(|r| r["k"] == "response")
        .map(|r| &r["cost"])
        .collect();
    assert_eq!(costs, [20_000_000, 20_000_000, 20_000_000]);
    let row = &scene.yoi(&["ls", "--json"]).ends(0).json()[0];
    assert_eq!(
        (&row["cost"], &row["tokens"]),
        (&json!(0.06), &json!(33_000))
    );
    scene.yoi(&["ls"]).ends(0).prints(&["COST", "$0.06"]);
    let result = scene
        .yoi(&["run", "--json", "-m", &model, "go"])
        .ends(0)
        .lines();
    assert_eq!(result.last().unwrap()["cost"], 0.06);
    scene.sound("p");
    scene.config("");
    let unpriced = scene
        .yoi(&["run", "--json", "--pod", "q", "-m", &model, "go"])
        .ends(0)
        .lines();
    assert_eq!(unpriced.last().unwrap()["cost"], Value::Null);
    scene.yoi(&["run", "--pod", "r", "list the files"]).ends(0);
    scene.yoi(&["ls"]).ends(0).prints(&["  -  "]);
}

#[test]
fn a_spent_budget_ends_the_run_before_the_next_request() {
    let scene = Scene::new();
    let model = steps(&scene, 9);
    scene.config(&priced(&model));
    let limited = |pod: &str, most: &str| {
        scene.yoi(&["run", "--pod", pod, "--max-cost", most, "-m", &model, "go"])
    };
    let done = limited("p", "0.05").ends(4);
    done.says(&[
        "error: the cost limit was reached",
        "help: continue with `yoi run --pod p \"continue\"`, or raise --max-cost",
        "3 steps",
        "$0.06",
    ]);
    assert_eq!(scene.sound("p"), 3);
    limited("p", "$0.01").ends(4).says(&["1 step ", "$0.02"]);
    limited("q", "0.04").ends(4).says(&["2 steps"]);
    // What is spent by the last answer is no reason to fail.
    limited("r", "0.17").ends(0).says(&["9 steps", "$0.18"]);
    let run = ["run", "--ephemeral", "-m", &model, "go"];
    let variable = scene.command(&run).env("YOI_MAX_COST", "0.02").spawn();
    finish(variable.unwrap()).ends(4).says(&["1 step "]);
    scene.config(&format!(
        "{}[limits]\nmax_cost_usd = 0.03\n",
        priced(&model)
    ));
    scene.yoi(&run).ends(4).says(&["2 steps"]);
    scene.yoi(&["config", "show"]).ends(0).prints(&[
        "limits.max_cost_usd",
        "0.03",
        "$2.00 input, $9.00 output, $0.20 cached input",
    ]);
}

#[test]
fn a_limit_on_tokens_ends_the_run_before_the_next_request() {
    let scene = Scene::new();
    let model = steps(&scene, 5);
    let limited = |pod: &str, most: &str| {
        scene.config(&format!("[limits]\nmax_tokens = {most}\n"));
        scene.yoi(&["run", "--pod", pod, "-m", &model, "go"])
    };
    limited("p", "33000").ends(4).says(&[
        "error: the token limit was reached",
        "help: continue with `yoi run --pod p \"continue\"`, or raise --max-tokens",
        "3 steps",
        "33k tokens",
    ]);
    assert_eq!(scene.sound("p"), 3);
    limited("q", "33001").ends(4).says(&["4 steps"]);
    limited("r", "45000").ends(0).says(&["5 steps"]);
    scene
        .yoi(&["config", "show"])
        .ends(0)
        .prints(&["limits.max_tokens", "45000"]);
    limited("s", "0")
        .ends(78)
        .says(&["`max_tokens` must be at least 1"]);
    scene.config("");
    let run = ["run", "--ephemeral", "-m", &model, "go"];
    scene
        .yoi(&[&run[..], &["--max-tokens", "12000"]].concat())
        .ends(4)
        .says(&["2 steps "]);
    let variable = scene.command(&run).env("YOI_MAX_TOKENS", "11000").spawn();
    finish(variable.unwrap()).ends(4).says(&["1 step "]);
    scene
        .yoi(&["run", "--max-tokens", "0", "go"])
        .ends(2)
        .says(&["--max-tokens 0: the value must be a whole number, at least 1"]);
    scene.config("[limits]\nmax_tokens = 1\n");
    // The built-in planner takes no tokens.
    scene.yoi(&["run", "--ephemeral", "list the files"]).ends(0);
}

#[test]
fn a_limit_on_time_ends_the_run_before_the_next_request() {
    let scene = Scene::new();
    let endpoint = Endpoint::start(|_, _| {
        // An answer takes longer than the limit.
        sleep(Duration::from_millis(1100));
        let call =
            json!({ "index": 0, "id": "x", "function": { "name": "List", "arguments": "{}" } });
        let stop =
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
        Reply::Answer(vec![delta(&json!({ "tool_calls": [call] })), stop])
    });
    scene.config(&endpoint.config("[limits]\nmax_wall_s = 3600\n"));
    scene
        .yoi(&["config", "show"])
        .ends(0)
        .prints(&["limits.max_wall_s", "3600"]);
    let run = |args: &[&str], variable: &str| {
        let mut command = scene.command(args);
        finish(
            command
                .env("FAKE_KEY", "some-fake-key")
                .env("YOI_MAX_WALL", variable)
                .spawn()
                .unwrap(),
        )
    };
    run(&["run", "--pod", "p", "--max-wall", "1", "go"], "60")
        .ends(4)
        .says(&[
            "error: the time limit was reached",
            "help: continue with `yoi run --pod p \"continue\"`, or raise --max-wall",
            "1 step ",
        ]);
    let done = run(&["run", "--ephemeral", "go"], "1")
        .ends(4)
        .says(&["1 step "]);
    assert!(!done.err.contains("unknown variable"), "{}", done.err);
    assert_eq!(endpoint.requests().len(), 2);
    scene.sound("p");
    scene
        .yoi(&["run", "--max-wall", "0", "go"])
        .ends(2)
        .says(&["--max-wall 0: the value must be a whole number, at least 1"]);
    scene.config("[limits]\nmax_wall_s = 0\n");
    scene
        .yoi(&["config", "check"])
        .ends(78)
        .says(&["`max_wall_s` must be at least 1 second"]);
}

/// A token is four bytes here: nothing counts them.
#[test]
fn an_old_result_leaves_the_context_and_is_read_again_by_its_call() {
    let scene = Scene::new();
    let line = |n: usize| format!("line {n} of a file that is read again and again\n");
    scene.write("long.txt", (1..=400).map(line).collect::<String>());
    let call = |name: &str, arguments: Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let mut answers = vec![call("Read", json!({ "path": "long.txt" })); 6];
    answers.push(call(
        "ReadOutput",
        json!({ "handle": "c00000001", "offset": 3, "lines": 1 }),
    ));
    answers.push(json!({ "text": "done" }));
    let model = scene.script("reads.jsonl", &answers);
    let window = |more: &str| {
        scene.config(&format!(
            "[models.\"{model}\"]\ncontext = 40000\n[context]\nprune_at = 50\n{more}"
        ))
    };
    window("protect_tokens = 6000\n");
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    scene.sound("p");
    let records = scene.records("p");
    let pruned: Vec<&Value> = records
        .iter()
        .filter(|record| record["k"] == "pruned")
        .collect();
    assert!(!pruned.is_empty());
    assert!(
        pruned[0]["mark"]
            .as_str()
            .unwrap()
            .contains(r#"ReadOutput {"handle":"{call}"}"#),
        "{pruned:?}"
    );
    let finished = |call: &str| {
        records
            .iter()
            .find(|record| record["k"] == "tool_finished" && record["call"] == call)
    };
    let again = &finished("c00000007").unwrap()["outcome"];
    assert_eq!(again["status"], "ok", "{again}");
    let content = finished("c00000001").unwrap()["outcome"]["content"]
        .as_str()
        .unwrap();
    assert!(
        again["content"]
            .as_str()
            .unwrap()
            .starts_with(content.lines().nth(2).unwrap()),
        "{again}"
    );
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["old results left the context: Read "]);
    // The receipt is the sum of all changes.
    let receipt = scene.yoi(&["status", "p", "--json"]).ends(0).json()["context_usage"].clone();
    let results: u64 = pruned
        .iter()
        .map(|change| change["left"]["results"].as_u64().unwrap())
        .sum();
    let bytes: u64 = pruned
        .iter()
        .map(|change| change["left"]["bytes"]["Read"].as_u64().unwrap())
        .sum();
    assert_eq!(receipt["left_results"], results);
    assert_eq!(
        (&receipt["left"][0]["name"], &receipt["left"][0]["tokens"]),
        (&json!("Read"), &json!(bytes / 4))
    );
    scene.yoi(&["status", "p"]).ends(0).prints(&[
        &format!(" left the requests so far, with {results} results"),
        "results: Read",
    ]);
    // A window that has room for all keeps everything.
    scene.config(&format!("[models.\"{model}\"]\ncontext = 200000\n"));
    scene
        .yoi(&["run", "--pod", "q", "-m", &model, "go"])
        .ends(0);
    assert!(
        !scene
            .records("q")
            .iter()
            .any(|record| record["k"] == "pruned")
    );
}

#[test]
fn the_context_is_shown_with_its_contributors() {
    let scene = Scene::new();
    let model = steps(&scene, 3);
    let window = |context: &str| scene.config(&format!("[models.\"{model}\"]\n{context}\n"));
    window("context = 40000");
    scene.write("AGENTS.md", "Be brief.\n");
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    let status = || scene.yoi(&["status", "p", "--json"]).ends(0).json();
    let now = status();
    let usage = &now["context_usage"];
    // 10,000 tokens were counted for the newest request; the answer to it comes to a few more.
    let used = usage["used"].as_u64().unwrap();
    assert!((10_000..10_010).contains(&used), "{usage}");
    assert_eq!(now["context"], used);
    assert_eq!(
        (
            &usage["window"],
            &usage["percent"],
            &usage["measured"],
            &usage["cached"]
        ),
        (&json!(40_000), &json!(25), &json!(true), &json!(5_000))
    );
    let parts = usage["parts"].as_array().unwrap();
    let sum = |key: &str| {
        parts
            .iter()
            .map(|part| part[key].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(sum("tokens"), used);
    assert!((4_990..=5_000).contains(&sum("cached")), "{usage}");
    let part = |kind: &str, name: Value| {
        parts
            .iter()
            .find(|part| part["kind"] == kind && part["name"] == name)
    };
    assert_eq!(
        part("schema", json!("List")).unwrap()["feature"],
        "builtin:files"
    );
    for (kind, name) in [
        ("system", Value::Null),
        ("instructions", Value::Null),
        ("feature_instructions", Value::Null),
        ("results", json!("List")),
        ("inputs", Value::Null),
        ("notes", json!("host")),
    ] {
        assert!(part(kind, name.clone()).is_some(), "{kind} {name}: {usage}");
    }
    let shown = format!("context   {used} tokens of 40000 (25%), 5000 cached");
    let leaves = "old results leave before a request of more than 30000 tokens (75%)";
    let text = scene.yoi(&["status", "p"]).ends(0);
    text.prints(&[
        &shown,
        "tool schemas ",
        "  tool schemas: List, about ",
        leaves,
    ]);
    assert_eq!(
        (&usage["masks_above"], &usage["left"]),
        (&json!(30_000), &Value::Null)
    );
    assert_eq!(
        scene.yoi(&["ls", "--json"]).ends(0).json()[0]["context_percent"],
        25
    );
    // A window that is not known is none.
    scene.config("");
    let now = status();
    assert_eq!(
        (&now["context"], &now["context_usage"]["percent"]),
        (&json!(used), &Value::Null)
    );
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["the window of the model is unknown, so nothing leaves"]);
    window("context = 900");
    scene.yoi(&["config", "show"]).ends(78).says(&[
        "models.\"",
        "context",
        "1000 to 100000000 tokens",
    ]);
}

#[test]
fn a_request_that_does_not_fit_the_context_is_not_sent() {
    let scene = Scene::new();
    let model = steps(&scene, 5);
    let run = |context: u64| {
        scene.config(&format!("[models.\"{model}\"]\ncontext = {context}\n"));
        scene.yoi(&["run", "--pod", &format!("p{context}"), "-m", &model, "go"])
    };
    run(9_000).ends(4).says(&[
        "error: the next request does not fit the model's context",
        "help: start another pod, or use a model with a larger context (-m)",
        "1 step ",
    ]);
    assert_eq!(scene.sound("p9000"), 1);
    run(20_000).ends(0).says(&["5 steps"]);
}

#[test]
fn what_has_no_price_has_no_budget() {
    let scene = Scene::new();
    let model = steps(&scene, 2);
    let done = scene
        .yoi(&["run", "--max-cost", "1", "-m", &model, "go"])
        .ends(2);
    done.says(&[
        &format!("error: yoi knows no price for {model}, so it cannot limit the cost (--max-cost)"),
        "config.toml, such as price = { input = 0.5, output = 1.5 } under [models.\"scripted:",
    ]);
    assert_eq!(scene.pods(), Vec::<String>::new());
    scene.config("[limits]\nmax_cost_usd = 1\n");
    scene
        .yoi(&["run", "-m", &model, "go"])
        .ends(2)
        .says(&["config.toml"]);
    // What answers on this machine costs nothing.
    scene.yoi(&["run", "list the files"]).ends(0);
    for bad in ["0", "-1", "lots", "nan", "inf"] {
        scene
            .yoi(&["run", &format!("--max-cost={bad}"), "go"])
            .ends(2)
            .says(&["dollars"]);
    }
    let wrong: [(&str, &str); 6] = [
        (
            "[limits]\nmax_cost_usd = 0\n",
            "`max_cost_usd` must be more than 0",
        ),
        (
            "[models.\"openai/x\"]\nprice = { input = -1, output = 1 }\n",
            "`models.\"openai/x\".price` must be US dollars",
        ),
        (
            "[models.\"openai/x\"]\nprice = { input = 1 }\n",
            "the key `output` is missing",
        ),
        (
            "[models.\"nowhere/x\"]\nmax_output = 5\n",
            "there is no provider called `nowhere`",
        ),
        ("[models.\"openai/x\"]\nmax_output = 0\n", "at least 1"),
        ("[models.\"offline\"]\nmax_output = 5\n", "no such limit"),
    ];
    for (config, says) in wrong {
        scene.config(config);
        scene.yoi(&["config", "check"]).ends(78).says(&[says]);
    }
}

/// Where nothing is counted nothing is limited: a budget ends with the first answer instead of going on for free.
#[test]
fn a_budget_is_not_kept_by_an_endpoint_that_does_not_count() {
    let scene = Scene::new();
    let endpoint = Endpoint::start(|_, _| {
        let call =
            json!({ "index": 0, "id": "x", "function": { "name": "List", "arguments": "{}" } });
        let uncounted =
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
        Reply::Answer(vec![delta(&json!({ "tool_calls": [call] })), uncounted])
    });
    scene.config(&endpoint.config(&priced("fake/one")));
    let run = |args: &[&str]| {
        finish(
            scene
                .command(args)
                .env("FAKE_KEY", "some-fake-key")
                .spawn()
                .unwrap(),
        )
    };
    run(&["run", "--pod", "p", "--max-cost", "1", "go"])
        .ends(3)
        .says(&["does not say how many tokens it used"]);
    assert_eq!(endpoint.requests().len(), 1);
    assert_eq!(
        scene.yoi(&["ls", "--json"]).ends(0).json()[0]["cost"],
        Value::Null,
        "not known is not nothing"
    );
    scene.sound("p");
    run(&["run", "--pod", "q", "--max-steps", "2", "go"]).ends(4);
    assert_eq!(
        endpoint.requests().len(),
        3,
        "without a budget nobody has to count"
    );
    scene.config(&endpoint.config("[limits]\nmax_tokens = 1000\n"));
    run(&["run", "--pod", "r", "go"])
        .ends(3)
        .says(&["so the token limit cannot be kept"]);
    assert_eq!(endpoint.requests().len(), 4);
}

/// Attempts that bring no answer are paid as well.
#[test]
fn what_cut_answers_cost_counts_and_is_limited() {
    let scene = Scene::new();
    let endpoint = Endpoint::start(|_, _| {
        let usage = json!({ "prompt_tokens": 10_000, "completion_tokens": 0 });
        Reply::Cut(vec![
            json!({ "choices": [], "usage": usage }),
            delta(&json!({ "content": "hal" })),
        ])
    });
    scene.config(&endpoint.config(&priced("fake/one")));
    let run = scene
        .command(&["run", "--pod", "p", "--max-cost", "0.03", "go"])
        .env("FAKE_KEY", "some-fake-key")
        .spawn();
    let done = finish(run.unwrap());
    assert_ne!(done.code(), Some(0), "{done:?}");
    done.says(&["the cost limit was reached by attempts", "$0.04"]);
    assert_eq!(endpoint.requests().len(), 2);
    let records = scene.records("p");
    let ended = records
        .iter()
        .find(|record| record["k"] == "turn_finished")
        .unwrap();
    assert_eq!(ended["unanswered"]["cost"], 40_000_000);
    assert_eq!(scene.yoi(&["ls", "--json"]).ends(0).json()[0]["cost"], 0.04);
    scene.sound("p");
    scene.config(&endpoint.config("[limits]\nmax_tokens = 15000\n"));
    let run = scene
        .command(&["run", "--pod", "q", "go"])
        .env("FAKE_KEY", "some-fake-key")
        .spawn();
    let done = finish(run.unwrap());
    assert_ne!(done.code(), Some(0), "{done:?}");
    done.says(&[
        "the token limit was reached by attempts",
        "raise --max-tokens",
    ]);
    assert_eq!(endpoint.requests().len(), 4);
}
