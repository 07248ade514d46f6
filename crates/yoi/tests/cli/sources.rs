//! GitHub, as a person configures it: off by default, then tools, choices and a doctor, and a token that is nowhere.

use crate::scene::{Scene, holding};
use serde_json::{Value, json};
use testkit::{ScriptedServer, SeenRequest, ServerAnswer};

const TOKEN: &str = "ghp_canary0f9e8d7c";

/// A repository with 40 issues.
fn github(request: &SeenRequest) -> Option<ServerAnswer> {
    let issue = |number: u64| {
        json!({ "number": number, "title": format!("issue {number}"), "state": "open", "labels": [{ "name": "bug" }],
            "user": { "login": "octocat" }, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z" })
    };
    let path = request.target.split('?').next()?;
    let answer = match (request.method.as_str(), path) {
        ("GET", "/repos/octo/hello/labels") => json!([{ "name": "bug" }]),
        ("GET", "/repos/octo/hello/assignees") => json!([{ "login": "octocat" }]),
        ("GET", "/repos/octo/hello/issues") => (1..=40).map(issue).collect(),
        ("GET", "/user") => json!({ "login": "octocat" }),
        ("GET", "/repos/octo/hello") => {
            json!({ "full_name": "octo/hello", "permissions": { "push": true }, "has_issues": true })
        }
        _ => return None,
    };
    Some(ServerAnswer::json(200, &answer))
}

fn configured(scene: &Scene, server: &ScriptedServer, grant: &str) {
    let file = scene.file("token");
    std::fs::write(&file, TOKEN).unwrap();
    let url = server.url();
    let file = file.display();
    scene.config(&format!(
        "[secrets]\ngithub = {{ file = \"{file}\" }}\n\n[features.\"builtin:github\"]\nenabled = true\nowner = \"octo\"\nrepo = \"hello\"\nbase_url = \"{url}\"\ntoken = {{ secret = \"github\" }}\n{grant}"
    ));
}

fn feature<'a>(report: &'a Value, id: &str) -> &'a Value {
    let all = report["features"].as_array().unwrap();
    all.iter()
        .find(|feature| feature["feature_id"] == id)
        .unwrap()
}

#[test]
fn tools_for_issues_are_there_when_a_person_names_a_repository() {
    let scene = Scene::new();
    let report = scene.yoi(&["features", "--json"]).ends(0).json();
    assert_eq!(feature(&report, "builtin:sources")["outcome"], "disabled");
    let server = ScriptedServer::answering(github);
    configured(&scene, &server, "");
    // Only a person's grant leads to an address that is not public.
    let report = scene.yoi(&["features", "--json"]).ends(0).json();
    assert_eq!(feature(&report, "builtin:github")["outcome"], "skipped");
    configured(
        &scene,
        &server,
        &format!("grant = {{ endpoints = [\"{}\"] }}\n", server.endpoint()),
    );
    let call = |tool: &str, arguments: Value| json!({ "calls": [{ "name": tool, "arguments": arguments }] });
    let answers = [
        call("get_issues", json!({ "limit": 40 })),
        call(
            "create_issue",
            json!({ "title": "x", "labels": ["wontfix"] }),
        ),
        call("create_issue", json!({ "title": "x", "labels": ["bug"] })),
        json!({ "text": "done" }),
    ];
    let model = scene.script("script.jsonl", &answers);
    scene.yoi(&["run", "--pod", "p", "-m", &model, "go"]);
    let records = scene.records("p");
    let outcomes: Vec<String> = records
        .iter()
        .filter(|record| record["k"] == "tool_finished")
        .map(|record| record["outcome"].to_string())
        .collect();
    assert!(
        outcomes[0].contains("40 of 40 issues") && outcomes[0].contains("items (40 rows)"),
        "{outcomes:?}"
    );
    assert!(outcomes[1].contains("labels"), "{outcomes:?}");
    assert!(
        outcomes[2].contains("changing something on a host or in a service"),
        "{outcomes:?}"
    );
    assert!(server.requests().iter().all(|seen| seen.method == "GET"));
    scene.sound("p");
    let shown = scene
        .yoi(&["format", "stats", "p"])
        .ends(0)
        .prints(&["get_issues: 1 result, 1 shortened: about ", "% fewer"]);
    assert!(!shown.out.contains("create_issue"), "{}", shown.out);
    let stats = scene
        .yoi(&["format", "stats", "p", "--json"])
        .ends(0)
        .json();
    let of = &stats["tools"]["get_issues"];
    let number = |key: &str| of[key].as_u64().unwrap();
    assert!(
        number("shown") * 4 < number("stored") * 3 && number("shown") > 100,
        "{stats}"
    );
    scene.yoi(&["doctor"]).prints(&[
        "GitHub",
        "authenticated as octocat",
        "octo/hello: may read and write",
    ]);
    let held = holding(&scene.path(""), TOKEN);
    assert_eq!(held.len(), 1, "{held:?}");
}
