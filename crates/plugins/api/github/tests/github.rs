//! GitHub against a server of this machine that answers as GitHub's documentation shows it: what is asked, what is made of
//! the answers, and of answers that lack something.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::provider::{IssueProvider, MergeRequestProvider, PipelineProvider, ReleaseProvider};
use api_core::source::CheckedSource;
use api_core::tools::CategoryTools;
use api_github::{GitHub, Repository, Settings};
use authority::{Net, Secret};
use pod::feature::FeatureModule;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testkit::{
    FeatureHost, FeatureUnderTest, ResultStatus, ScriptedServer, SeenRequest, ServerAnswer,
    answered, data, holds, mutations, on,
};

const TOKEN: &str = "ghp_canary7f3a91e5d2";

fn github(server: &ScriptedServer) -> GitHub {
    let settings = json!({
        "owner": "octo", "repo": "hello", "base_url": server.url(), "token": { "secret": "github" },
    });
    let settings: Settings = serde_json::from_value(settings).unwrap();
    GitHub::new(settings).unwrap()
}

fn net(server: &ScriptedServer) -> Net {
    Net::to(&ambient::claim(), [server.endpoint().parse().unwrap()])
}

fn host(server: &ScriptedServer) -> FeatureUnderTest {
    let github = github(server);
    let tools = CategoryTools::of(&[github.descriptor()]);
    FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("github", TOKEN)
        .permit_all()
        .with(github)
        .install(tools)
}

/// A server that knows no labels and no people, and answers everything else by this.
fn server(
    answer: impl Fn(&SeenRequest) -> Option<ServerAnswer> + Send + Sync + 'static,
) -> ScriptedServer {
    ScriptedServer::answering(move |request| match request.target.as_str() {
        "/repos/octo/hello/labels?per_page=100" | "/repos/octo/hello/assignees?per_page=100" => {
            Some(ServerAnswer::json(200, &json!([])))
        }
        _ => answer(request),
    })
}

/// The same, in this order.
fn scripted(script: Vec<testkit::Expected>) -> ScriptedServer {
    let none = |path: &str| {
        on(
            "GET",
            format!("/repos/octo/hello/{path}?per_page=100"),
            ServerAnswer::json(200, &json!([])),
        )
    };
    ScriptedServer::new(
        [none("labels"), none("assignees")]
            .into_iter()
            .chain(script),
    )
}

fn user(login: &str) -> Value {
    json!({ "login": login, "id": 1, "type": "User", "site_admin": false })
}

fn issue(number: u64) -> Value {
    json!({
        "id": 1000 + number, "node_id": "x", "number": number, "title": format!("issue {number}"), "state": "open",
        "state_reason": null, "body": "It *fails*.", "user": user("octocat"), "labels": [{ "name": "bug", "color": "f29513" }],
        "assignee": user("hubot"), "assignees": [user("hubot")], "milestone": { "title": "v1.0", "number": 1 },
        "comments": 0, "html_url": format!("https://github.com/octo/hello/issues/{number}"), "locked": false,
        "created_at": "2026-01-22T13:33:48Z", "updated_at": "2026-02-22T13:33:48Z", "closed_at": null,
        "type": { "name": "Bug" },
    })
}

fn pull(number: u64) -> Value {
    json!({
        "id": 2000 + number, "number": number, "title": format!("pull {number}"), "state": "open", "draft": true,
        "body": null, "user": user("octocat"), "labels": [], "assignees": [], "requested_reviewers": [user("hubot")],
        "head": { "ref": "topic", "sha": "6dcb09b5" }, "base": { "ref": "main", "sha": "aaaa" }, "merged_at": null,
        "html_url": "https://github.com/x", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "mergeable_state": "clean",
    })
}

fn comment(id: u64, body: &str) -> Value {
    json!({ "id": id, "body": body, "user": user("hubot"), "created_at": format!("2026-01-0{id}T00:00:00Z"), "html_url": "https://github.com/c" })
}

fn ok(body: &Value) -> ServerAnswer {
    ServerAnswer::json(200, body)
}

#[test]
fn an_issue_is_made_read_changed_and_commented() {
    let mut closed = issue(7);
    closed["state"] = "closed".into();
    closed["state_reason"] = "not_planned".into();
    let server = scripted(vec![
        on(
            "POST",
            "/repos/octo/hello/issues",
            ServerAnswer::json(201, &issue(7)),
        ),
        on(
            "POST",
            "/repos/octo/hello/issues/3/sub_issues",
            ServerAnswer::json(201, &issue(3)),
        ),
        on("GET", "/repos/octo/hello/issues/7", ok(&issue(7))),
        on(
            "GET",
            "/repos/octo/hello/issues/7/comments?per_page=100",
            ok(&json!([comment(1, "why?")])),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues/7/sub_issues?per_page=100",
            ok(&json!([issue(8)])),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues/7/dependencies/blocked_by?per_page=100",
            ServerAnswer::json(404, &json!({ "message": "Not Found" })),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues/7/dependencies/blocking?per_page=100",
            ok(&json!([issue(9)])),
        ),
        on("PATCH", "/repos/octo/hello/issues/7", ok(&closed)),
        on(
            "POST",
            "/repos/octo/hello/issues/7/comments",
            ServerAnswer::json(201, &comment(2, "done")),
        ),
    ]);
    let mut host = host(&server);
    let new = json!({ "title": "issue 7", "description": "It *fails*.", "labels": ["bug"], "assignees": ["hubot"], "issueType": "Bug", "parentId": "gh#3" });
    let got = data(&host.call("create_issue", new));
    assert_eq!(
        got,
        json!({
            "key": "gh#7", "title": "issue 7", "status": "open", "status_category": "todo", "description": "It *fails*.",
            "issue_type": "Bug", "labels": ["bug"], "author": { "id": "octocat" }, "assignees": [{ "id": "hubot" }],
            "url": "https://github.com/octo/hello/issues/7", "created_at": "2026-01-22T13:33:48Z",
            "updated_at": "2026-02-22T13:33:48Z", "milestone": "v1.0",
        })
    );
    let got = data(&host.call(
        "get_issue",
        json!({ "key": "gh#7", "includeComments": true, "includeRelations": true }),
    ));
    assert_eq!(got["comments"][0]["body"], "why?");
    assert_eq!(
        got["subtasks"][0],
        json!({ "key": "gh#8", "title": "issue 8", "relation": "subtask", "status": "open" })
    );
    assert_eq!(got["relations"][0]["relation"], "blocks");
    let got = data(&host.call(
        "update_issue",
        json!({ "key": "gh#7", "status": "not_planned", "labels": [] }),
    ));
    assert_eq!(
        (&got["status"], &got["status_category"]),
        (&json!("not_planned"), &json!("cancelled"))
    );
    let got = data(&host.call(
        "add_issue_comment",
        json!({ "key": "gh#7", "body": "done" }),
    ));
    assert_eq!(got["id"], "2");
    server.assert_done();
    let sent: Vec<Value> = server
        .requests()
        .iter()
        .filter(|seen| seen.method != "GET")
        .map(SeenRequest::json)
        .collect();
    assert_eq!(
        sent,
        [
            json!({ "title": "issue 7", "body": "It *fails*.", "labels": ["bug"], "assignees": ["hubot"], "type": "Bug" }),
            json!({ "sub_issue_id": 1007, "replace_parent": true }),
            json!({ "labels": [], "state": "closed", "state_reason": "not_planned" }),
            json!({ "body": "done" }),
        ]
    );
    for seen in server.requests() {
        assert_eq!(seen.header("accept"), Some("application/vnd.github+json"));
        assert_eq!(seen.header("x-github-api-version"), Some("2022-11-28"));
        assert_eq!(
            seen.header("authorization"),
            Some(format!("Bearer {TOKEN}").as_str())
        );
    }
}

#[test]
fn pull_requests_among_issues_are_left_out_of_full_pages() {
    // Every second one is a pull request, in pieces of 100 of which each names the next by its id, not by a number.
    let server = server(|request| {
        let at = request.target.strip_prefix(
            "/repos/octo/hello/issues?per_page=100&state=all&sort=created&direction=asc",
        )?;
        let from: u64 = at
            .strip_prefix("&after=")
            .map_or(Some(1), |at| at.parse().ok())?;
        let piece: Vec<Value> = (from..from + 100)
            .map(|number| {
                let mut issue = issue(number);
                if number % 2 == 0 {
                    issue["pull_request"] = json!({ "url": "x" });
                }
                issue
            })
            .collect();
        let answer = ok(&piece.into());
        Some(match from + 100 {
            501 => answer,
            next => {
                // As GitHub names it: by the number of the repository, and by another parameter.
                let host = request.header("host")?;
                let next = format!(
                    "http://{host}{}&after={next}",
                    request.target.split("&after").next()?
                );
                answer.header(
                    "link",
                    format!("<{next}>; rel=\"next\", <{next}>; rel=\"last\""),
                )
            }
        })
    });
    let mut host = host(&server);
    let mut numbers = Vec::new();
    for offset in (0..=240).step_by(60) {
        let query = json!({ "state": "all", "limit": 60, "offset": offset, "sort_by": "created_at", "sort_order": "asc" });
        let got = data(&host.call("get_issues", query));
        let items = got["items"].as_array().unwrap();
        assert_eq!(items.len(), if offset < 240 { 60 } else { 10 });
        assert_eq!(got["pagination"]["has_more"], offset < 240);
        numbers.extend(
            items
                .iter()
                .map(|item| item["key"].as_str().unwrap().to_owned()),
        );
    }
    let wanted: Vec<String> = (1..500)
        .step_by(2)
        .map(|number| format!("gh#{number}"))
        .collect();
    assert_eq!(numbers, wanted);
    server.assert_done();
    // Two for the values of the repository, and each piece once.
    assert_eq!(server.requests().len(), 7);
}

#[test]
fn searches_filters_and_refusals() {
    let server = scripted(vec![
        on(
            "GET",
            "/search/issues?per_page=100&q=repo%3Aocto%2Fhello%20is%3Aissue%20is%3Aopen%20label%3A%22a%20b%22%20assignee%3A%22me%22%20parser%20fails&sort=updated&order=desc",
            ok(&json!({ "total_count": 1, "incomplete_results": false, "items": [issue(4)] })),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues?per_page=100&state=closed&labels=a%2Cb&assignee=me&sort=updated&direction=desc",
            ok(&json!([])),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues/5",
            ServerAnswer::json(404, &json!({ "message": "Not Found", "status": "404" })),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues/6",
            ok(&{
                let mut of = issue(6);
                of["pull_request"] = json!({});
                of
            }),
        ),
    ]);
    let mut host = host(&server);
    let query = json!({ "search": "parser fails", "labels": ["a b"], "assignee": "me" });
    assert_eq!(
        data(&host.call("get_issues", query))["pagination"]["total"],
        1
    );
    let query = json!({ "state": "closed", "labels": ["a", "b"], "assignee": "me" });
    assert_eq!(data(&host.call("get_issues", query))["items"], json!([]));
    for (tool, arguments, part) in [
        (
            "get_issue",
            json!({ "key": "gh#5" }),
            "GitHub answered 404 to GET /repos/octo/hello/issues/5: Not Found; it is not there",
        ),
        (
            "get_issue",
            json!({ "key": "gh#6" }),
            "gh#6 is a pull request: read it as pr#6",
        ),
        (
            "get_issue",
            json!({ "key": "5" }),
            "key `5` is not of the form gh#N",
        ),
        (
            "create_issue",
            json!({ "title": "x", "priority": "high" }),
            "no priority and no custom fields",
        ),
        (
            "get_issues",
            json!({ "projectKey": "other/one" }),
            "only octo/hello is configured",
        ),
        (
            "update_issue",
            json!({ "key": "gh#5", "status": "wontfix" }),
            "`status` must be open, completed or not_planned",
        ),
        (
            "link_issues",
            json!({ "key": "gh#5", "target": "gh#6", "link_type": "duplicates" }),
            "GitHub has no such link",
        ),
    ] {
        let error = host.call(tool, arguments);
        assert_eq!(error.status, ResultStatus::Error, "{}", error.text());
        assert!(error.text().contains(part), "{}", error.text());
    }
    server.assert_done();
}

#[test]
fn a_pull_request_is_made_reviewed_and_merged() {
    let mut merged = pull(12);
    merged["state"] = "closed".into();
    merged["merged_at"] = "2026-03-01T00:00:00Z".into();
    let on_line = |id: u64, root: Option<u64>| {
        let mut of = comment(id, "line");
        of["path"] = "src/a.rs".into();
        of["line"] = 3.into();
        of["in_reply_to_id"] = root.map_or(Value::Null, Value::from);
        of
    };
    let server = scripted(vec![
        on(
            "POST",
            "/repos/octo/hello/pulls",
            ServerAnswer::json(201, &pull(12)),
        ),
        on("POST", "/repos/octo/hello/issues/12/labels", ok(&json!([]))),
        on(
            "POST",
            "/repos/octo/hello/pulls/12/requested_reviewers",
            ServerAnswer::json(
                422,
                &json!({ "message": "Reviews may only be requested from collaborators." }),
            ),
        ),
        on(
            "GET",
            "/repos/octo/hello/pulls?per_page=100&state=closed&head=octo%3Atopic&sort=updated&direction=desc",
            ok(&json!([pull(11), merged])),
        ),
        on(
            "GET",
            "/repos/octo/hello/pulls/12/comments?per_page=100",
            ok(&json!([on_line(2, None), on_line(4, Some(2))])),
        ),
        on(
            "GET",
            "/repos/octo/hello/pulls/12/reviews?per_page=100",
            ok(&json!([{ "id": 5, "body": "", "state": "APPROVED", "user": user("x") }])),
        ),
        on(
            "GET",
            "/repos/octo/hello/issues/12/comments?per_page=100",
            ok(&json!([comment(1, "hello")])),
        ),
        on(
            "GET",
            "/repos/octo/hello/pulls/12/files?per_page=100",
            ok(
                &json!([{ "filename": "src/a.rs", "status": "modified", "additions": 1, "deletions": 2, "patch": "@@ -1 +1 @@" }]),
            ),
        ),
        on("GET", "/repos/octo/hello/pulls/12", ok(&pull(12))),
        on(
            "POST",
            "/repos/octo/hello/pulls/12/comments",
            ServerAnswer::json(201, &on_line(6, None)),
        ),
        on(
            "POST",
            "/repos/octo/hello/pulls/12/comments/2/replies",
            ServerAnswer::json(201, &on_line(7, Some(2))),
        ),
        on("PATCH", "/repos/octo/hello/pulls/12", ok(&pull(12))),
        on("GET", "/repos/octo/hello/pulls/12", ok(&merged)),
    ]);
    let mut host = host(&server);
    let new = json!({ "title": "pull 12", "source_branch": "topic", "target_branch": "main", "draft": true, "labels": ["x"], "reviewers": ["y"] });
    let error = host.call("create_merge_request", new).text();
    assert!(
        error.contains("pr#12 is there, but nobody was asked to review it: GitHub answered 422"),
        "{error}"
    );
    let got = data(&host.call(
        "get_merge_requests",
        json!({ "state": "merged", "source_branch": "topic" }),
    ));
    assert_eq!(got["items"].as_array().unwrap().len(), 1);
    assert_eq!(got["items"][0]["state"], "merged");
    let got = data(&host.call("get_merge_request_discussions", json!({ "key": "pr#12" })));
    let ids: Vec<_> = got["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["comment-1", "review-2"]);
    assert_eq!(got["items"][1]["comments"].as_array().unwrap().len(), 2);
    let got = data(&host.call("get_merge_request_diffs", json!({ "key": "pr#12" })));
    assert_eq!(
        got["items"][0],
        json!({ "path": "src/a.rs", "change": "modified", "additions": 1, "deletions": 2, "diff": "@@ -1 +1 @@" })
    );
    let note = json!({ "key": "pr#12", "body": "here", "file_path": "src/a.rs", "line": 3 });
    assert_eq!(
        data(&host.call("create_merge_request_comment", note))["line"],
        3
    );
    let answer = json!({ "key": "pr#12", "body": "yes", "discussion_id": "review-2" });
    assert_eq!(
        data(&host.call("create_merge_request_comment", answer))["id"],
        "7"
    );
    let got = data(&host.call(
        "update_merge_request",
        json!({ "key": "pr#12", "state": "closed" }),
    ));
    assert_eq!(got["merged_at"], "2026-03-01T00:00:00Z");
    server.assert_done();
    let sent = server
        .requests()
        .iter()
        .map(SeenRequest::json)
        .find(|of| of["side"] == "RIGHT");
    assert_eq!(
        sent.unwrap(),
        json!({ "body": "here", "commit_id": "6dcb09b5", "path": "src/a.rs", "line": 3, "side": "RIGHT" })
    );
}

#[test]
fn runs_of_a_commit_are_one_pipeline_and_logs_are_lines() {
    let run = |id: u64, conclusion: Value| json!({ "id": id, "name": format!("flow {id}"), "status": "completed", "conclusion": conclusion, "head_sha": "abc", "head_branch": "main", "html_url": "https://github.com/r", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z" });
    let job = |id: u64, conclusion: &str| json!({ "id": id, "name": "build", "status": "completed", "conclusion": conclusion, "html_url": "https://github.com/j" });
    let log: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let server = scripted(vec![
        on(
            "GET",
            "/repos/octo/hello/actions/runs?per_page=1&branch=main",
            ok(&json!({ "total_count": 9, "workflow_runs": [run(2, Value::Null)] })),
        ),
        on(
            "GET",
            "/repos/octo/hello/actions/runs?per_page=100&head_sha=abc",
            ok(
                &json!({ "total_count": 2, "workflow_runs": [run(2, "success".into()), run(1, "failure".into())] }),
            ),
        ),
        on(
            "GET",
            "/repos/octo/hello/actions/runs/2/jobs?per_page=100",
            ok(&json!({ "total_count": 1, "jobs": [job(20, "success")] })),
        ),
        on(
            "GET",
            "/repos/octo/hello/actions/runs/1/jobs?per_page=100",
            ok(&json!({ "total_count": 1, "jobs": [job(10, "failure")] })),
        ),
        on(
            "GET",
            "/repos/octo/hello/actions/jobs/10/logs",
            ServerAnswer::text(200, log.clone()),
        ),
        on(
            "GET",
            "/repos/octo/hello/actions/jobs/10/logs",
            ServerAnswer::text(200, log),
        ),
        on(
            "GET",
            "/repos/octo/hello/releases?per_page=100",
            ok(
                &json!([{ "tag_name": "v1", "name": null, "draft": false, "prerelease": true, "author": user("x") }]),
            ),
        ),
        on(
            "POST",
            "/repos/octo/hello/releases",
            ServerAnswer::json(201, &json!({ "tag_name": "v2", "name": "Two" })),
        ),
    ]);
    let mut host = host(&server);
    let got = data(&host.call(
        "get_pipeline",
        json!({ "branch": "main", "includeFailedLogs": true }),
    ));
    assert_eq!(
        (&got["status"], got["jobs"].as_array().unwrap().len()),
        (&json!("failed"), 2)
    );
    assert_eq!(got["jobs"][1]["stage"], "flow 1");
    assert!(
        got["jobs"][1]["log"]
            .as_str()
            .unwrap()
            .starts_with("line 61\n"),
        "{got}"
    );
    let got = data(&host.call(
        "get_job_logs",
        json!({ "jobId": "10", "pattern": "LINE 9", "limit": 2 }),
    ));
    assert_eq!(
        got["lines"],
        json!([{ "number": 9, "text": "line 9" }, { "number": 90, "text": "line 90" }])
    );
    assert_eq!(got["has_more"], true);
    let got = data(&host.call("get_releases", json!({})));
    assert_eq!(
        got["items"][0],
        json!({ "tag": "v1", "name": "v1", "prerelease": true, "author": { "id": "x" } })
    );
    let got = data(&host.call(
        "create_release",
        json!({ "tag": "v2", "name": "Two", "target": "main" }),
    ));
    assert_eq!(got["name"], "Two");
    server.assert_done();
}

/// Reads one answer, and returns what comes of it as JSON.
type ReadOne = fn(&Repository) -> Result<Value, String>;

/// Asks a method of the repository.
macro_rules! ask {
    ($method:ident, $arguments:tt) => {
        |of: &Repository| {
            let arguments = serde_json::from_value(json!($arguments)).unwrap();
            let answer = answered(of.$method(arguments)).map_err(|fault| fault.message)?;
            Ok(serde_json::to_value(answer).unwrap())
        }
    };
}

#[test]
fn an_answer_that_lacks_something_is_an_error_or_a_whole_entity() {
    let flow = json!({ "id": 1, "name": "n", "status": "completed", "conclusion": "failure", "head_sha": "abc", "head_branch": "main" });
    let job =
        json!({ "id": 1, "name": "n", "status": "completed", "conclusion": null, "html_url": "u" });
    let file = json!({ "filename": "a", "status": "renamed", "previous_filename": "b", "additions": 1, "patch": "@@" });
    let release = json!({ "tag_name": "v1", "name": "n", "body": "b", "author": user("x") });
    let cases: Vec<(ReadOne, Value)> = vec![
        (ask!(issues, { "limit": 5 }), json!([issue(1)])),
        (ask!(issue, { "key": "gh#1" }), issue(1)),
        (
            ask!(issue_comments, { "key": "gh#1" }),
            json!([comment(1, "b")]),
        ),
        (ask!(users, {}), json!([user("x")])),
        (ask!(merge_requests, {}), json!([pull(1)])),
        (ask!(merge_request, { "key": "pr#1" }), pull(1)),
        (ask!(diffs, { "key": "pr#1" }), json!([file])),
        (
            ask!(pipeline, {}),
            json!({ "total_count": 1, "workflow_runs": [flow], "jobs": [job] }),
        ),
        (ask!(releases, {}), json!([release])),
    ];
    let now = Arc::new(Mutex::new(Value::Null));
    let answer = Arc::clone(&now);
    let server = ScriptedServer::answering(move |_| Some(ok(&answer.lock().unwrap())));
    let repository = github(&server).live(net(&server), None);
    for (read, answer) in cases {
        // How many were read, and how many were errors.
        let mut ends = [0, 0];
        for some in mutations(&answer) {
            now.lock().unwrap().clone_from(&some);
            match read(&repository) {
                Ok(got) => {
                    ends[0] += 1;
                    let items = got["items"]
                        .as_array()
                        .cloned()
                        .unwrap_or_else(|| vec![got.clone()]);
                    let is_whole = |of: &Value| {
                        let mut ids = ["key", "id", "path", "tag"]
                            .iter()
                            .filter_map(|key| of[*key].as_str());
                        ids.any(|text| !text.is_empty())
                    };
                    assert!(items.iter().all(is_whole), "{some}: {got}");
                }
                Err(why) => {
                    ends[1] += 1;
                    let is_clear = why.contains("GitHub answered with")
                        || why.contains("no workflow has run")
                        || why.contains("is a pull request");
                    assert!(is_clear, "{some}: {why}");
                }
            }
        }
        assert!(ends.iter().all(|many| *many > 3), "{ends:?}: {answer}");
    }
}

#[test]
fn choices_are_those_of_the_repository() {
    let server = ScriptedServer::new([
        on(
            "GET",
            "/repos/octo/hello/labels?per_page=100",
            ok(&json!([{ "name": "bug" }, { "name": "good first issue" }])),
        ),
        on(
            "GET",
            "/repos/octo/hello/assignees?per_page=100",
            ok(&json!([user("hubot")])),
        ),
    ]);
    let mut host = host(&server);
    server.assert_done();
    let tool = host.registry().tools().get("create_issue").unwrap();
    let schema: Value = serde_json::from_str(&tool.definition.schema).unwrap();
    assert_eq!(
        schema["properties"]["labels"]["items"]["enum"],
        json!(["bug", "good first issue"])
    );
    assert_eq!(
        schema["properties"]["assignees"]["items"]["enum"],
        json!(["hubot"])
    );
    let refusal = host
        .call(
            "create_issue",
            json!({ "title": "x", "labels": ["wontfix"] }),
        )
        .text();
    assert!(refusal.contains("labels"), "{refusal}");
}

#[test]
fn a_repository_that_does_not_answer_leaves_the_schemas_as_they_are() {
    let server = ScriptedServer::answering(|_| {
        Some(ServerAnswer::json(
            401,
            &json!({ "message": "Bad credentials" }),
        ))
    });
    let host = host(&server);
    let tool = host.registry().tools().get("create_issue").unwrap();
    assert!(
        !tool.definition.schema.contains("enum"),
        "{}",
        tool.definition.schema
    );
    let report = format!("{:?}", host.registry().report());
    assert!(
        report.contains("any are accepted: GitHub answered 401"),
        "{report}"
    );
    // Said once.
    assert_eq!(report.matches("any are accepted").count(), 1);
}

#[test]
fn a_token_is_in_no_byte_that_is_kept() {
    // A vendor that repeats what it was sent.
    let server = server(|request| {
        let token = request.header("authorization")?.strip_prefix("Bearer ")?;
        Some(match request.target.ends_with("/1") {
            true => ServerAnswer::json(400, &json!({ "message": format!("odd token {token}") })),
            false => {
                let mut issue = issue(2);
                issue["body"] = token.into();
                ok(&issue)
            }
        })
    });
    let mut host = host(&server);
    for (key, part) in [("gh#1", "odd token"), ("gh#2", "issue 2")] {
        let text = host.call("get_issue", json!({ "key": key })).text();
        assert!(text.contains(part) && !text.contains(TOKEN), "{text}");
    }
    assert!(!format!("{:?}", host.registry().report()).contains(TOKEN));
    let root = host.project().parent().unwrap().to_owned();
    assert!(holds(&root, "odd token"), "the journal is elsewhere");
    assert!(!holds(&root, TOKEN));
}

#[test]
fn a_write_whose_answer_is_lost_is_not_sent_again() {
    let server = server(|request| {
        (request.method == "POST").then(|| ServerAnswer::json(201, &issue(1)).cut(0))
    });
    let mut host = host(&server);
    let error = host.call("create_issue", json!({ "title": "x" })).text();
    assert!(
        error.contains("it may have been done all the same: look before you do it again"),
        "{error}"
    );
    assert_eq!(
        server
            .requests()
            .iter()
            .filter(|seen| seen.method == "POST")
            .count(),
        1
    );
}

#[test]
fn settings_that_do_not_fit_name_their_key() {
    for (settings, part) in [
        (json!({}), "`owner`"),
        (json!({ "owner": "o" }), "`repo`"),
        (json!({ "owner": "o/../x", "repo": "r" }), "`owner`"),
        (json!({ "owner": "o", "repo": "..", }), "`repo`"),
        (
            json!({ "owner": "o", "repo": "r", "base_url": "http://api.example.com" }),
            "`base_url` must begin with https://",
        ),
        (
            json!({ "owner": "o", "repo": "r", "base_url": "x" }),
            "`base_url`",
        ),
    ] {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let error = GitHub::new(settings).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    let settings: Settings =
        serde_json::from_value(json!({ "owner": "o", "repo": "r", "token": { "secret": "s" } }))
            .unwrap();
    let asked = format!(
        "{:?}",
        GitHub::new(settings)
            .unwrap()
            .descriptor()
            .requested_capabilities
    );
    assert!(
        asked.contains("api.github.com:443") && asked.contains("\"s\""),
        "{asked}"
    );
}

#[test]
fn a_doctor_says_who_asks_and_what_is_missing() {
    let server = ScriptedServer::new([
        on(
            "GET",
            "/user",
            ok(&user("octocat")).header("x-oauth-scopes", "repo, read:org"),
        ),
        on(
            "GET",
            "/repos/octo/hello",
            ok(
                &json!({ "full_name": "octo/hello", "permissions": { "pull": true }, "has_issues": false }),
            ),
        ),
        on(
            "GET",
            "/user",
            ServerAnswer::json(401, &json!({ "message": "Bad credentials" })),
        ),
    ]);
    let ask = || {
        let secret = Secret::new(&ambient::claim(), "github", TOKEN.to_owned());
        github(&server).check(net(&server), Some(secret))
    };
    assert_eq!(
        ask().unwrap(),
        [
            "authenticated as octocat; scopes repo, read:org",
            "octo/hello: may read, and write what everybody may",
            "octo/hello: issues are turned off",
        ]
    );
    let error = ask().unwrap_err();
    assert!(
        error.contains("Bad credentials; the token is wrong or expired"),
        "{error}"
    );
    server.assert_done();
}
