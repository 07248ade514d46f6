//! GitLab against a server of this machine that answers as GitLab's documentation shows it: what is asked, what is made of
//! the answers, and of answers that lack something.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::provider::{IssueProvider, MergeRequestProvider, PipelineProvider, ReleaseProvider};
use api_core::source::CheckedSource;
use api_core::tools::CategoryTools;
use api_gitlab::{GitLab, GitLabProject, Settings};
use authority::{Net, Secret};
use pod::feature::FeatureModule;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testkit::{
    Expected, FeatureHost, FeatureUnderTest, ResultStatus, ScriptedServer, SeenRequest,
    ServerAnswer, answered, data, holds, mutations, on,
};

const TOKEN: &str = "glpat-canary7f3a91e5d2";
const BASE: &str = "/projects/group%2Fsub%2Fhello";

fn gitlab(server: &ScriptedServer) -> GitLab {
    let settings = json!({
        "project": "group/sub/hello", "base_url": server.url(), "token": { "secret": "gitlab" },
    });
    GitLab::new(serde_json::from_value(settings).unwrap()).unwrap()
}

fn net(server: &ScriptedServer) -> Net {
    Net::to(&ambient::claim(), [server.endpoint().parse().unwrap()])
}

fn host(server: &ScriptedServer) -> FeatureUnderTest {
    let gitlab = gitlab(server);
    let tools = CategoryTools::of(&[gitlab.descriptor()]);
    FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("gitlab", TOKEN)
        .permit_all()
        .with(gitlab)
        .install(tools)
}

/// A server that knows no labels and no people, and answers everything else by this.
fn server(
    answer: impl Fn(&SeenRequest) -> Option<ServerAnswer> + Send + Sync + 'static,
) -> ScriptedServer {
    ScriptedServer::answering(move |request| {
        match request.target.strip_prefix(BASE).unwrap_or_default() {
            "/labels?per_page=100" | "/members/all?per_page=100" => Some(ok(&json!([]))),
            _ => answer(request),
        }
    })
}

/// The same, in this order.
fn scripted(script: Vec<Expected>) -> ScriptedServer {
    let none = |path: &str| get(&format!("/{path}?per_page=100"), &json!([]));
    ScriptedServer::new(
        [none("labels"), none("members/all")]
            .into_iter()
            .chain(script),
    )
}

fn get(path: &str, body: &Value) -> Expected {
    on("GET", format!("{BASE}{path}"), ok(body))
}

fn post(path: &str, body: &Value) -> Expected {
    on(
        "POST",
        format!("{BASE}{path}"),
        ServerAnswer::json(201, body),
    )
}

fn put(path: &str, body: &Value) -> Expected {
    on("PUT", format!("{BASE}{path}"), ok(body))
}

fn ok(body: &Value) -> ServerAnswer {
    ServerAnswer::json(200, body)
}

/// What was sent to be changed.
fn sent(server: &ScriptedServer) -> Vec<Value> {
    let all = server.requests();
    let writes = all.iter().filter(|seen| seen.method != "GET");
    writes.map(SeenRequest::json).collect()
}

fn user(name: &str) -> Value {
    json!({ "id": 18, "username": name, "name": "Alexandra", "state": "active", "avatar_url": null, "web_url": "https://gitlab.com/x" })
}

fn issue(iid: u64) -> Value {
    json!({
        "id": 9000 + iid, "iid": iid, "project_id": 4, "title": format!("issue {iid}"), "state": "opened",
        "description": "It *fails*.", "labels": ["bug"], "author": user("eileen"), "assignees": [user("root")],
        "assignee": user("root"), "issue_type": "issue", "type": "ISSUE", "severity": "UNKNOWN", "milestone": { "title": "v1.0", "iid": 1 },
        "user_notes_count": 1, "confidential": false, "weight": null, "closed_at": null,
        "references": { "short": format!("#{iid}"), "relative": format!("#{iid}"), "full": format!("group/sub/hello#{iid}") },
        "web_url": format!("https://gitlab.com/group/sub/hello/-/issues/{iid}"),
        "created_at": "2026-01-04T15:31:51.081Z", "updated_at": "2026-01-05T15:31:51.081Z",
    })
}

fn merge(iid: u64) -> Value {
    json!({
        "id": 7000 + iid, "iid": iid, "project_id": 4, "title": format!("Draft: merge {iid}"), "description": null, "state": "opened",
        "source_branch": "topic", "target_branch": "main", "draft": true, "work_in_progress": true, "labels": ["docs"],
        "author": user("eileen"), "assignees": [], "reviewers": [user("root")], "sha": "8888", "merge_status": "can_be_merged",
        "detailed_merge_status": "not_open", "merged_at": null, "web_url": "https://gitlab.com/m",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "diff_refs": { "base_sha": "c380", "head_sha": "8888", "start_sha": "c381" },
    })
}

fn note(id: u64, body: &str) -> Value {
    json!({ "id": id, "type": null, "body": body, "author": user("root"), "system": false, "resolvable": false,
        "created_at": "2026-01-03T00:00:00Z", "updated_at": "2026-01-03T00:00:00Z", "noteable_iid": 7 })
}

fn system(id: u64) -> Value {
    let mut of = note(id, "changed the description");
    of["system"] = true.into();
    of
}

#[test]
fn an_issue_is_made_read_changed_and_commented() {
    let mut closed = issue(7);
    closed["state"] = "closed".into();
    let mut linked = issue(8);
    linked["link_type"] = "is_blocked_by".into();
    let mut elsewhere = issue(3);
    elsewhere["project_id"] = 5.into();
    elsewhere["references"]["full"] = "other/one#3".into();
    let sorted = "per_page=100&order_by=created_at&sort=asc";
    let server = scripted(vec![
        on("GET", "/users?username=root", ok(&json!([user("root")]))),
        post("/issues", &issue(7)),
        get("/issues/7", &issue(7)),
        get(
            &format!("/issues/7/notes?{sorted}"),
            &json!([system(1), note(2, "why?")]),
        ),
        get("/issues/7/links?per_page=100", &json!([linked, elsewhere])),
        put("/issues/7", &closed),
        post("/issues/7/notes", &note(5, "done")),
        get(
            &format!("/issues/7/notes?{sorted}"),
            &json!([note(2, "why?"), system(3), note(5, "done")]),
        ),
        get(
            "/issues?per_page=100&state=all&search=fails&labels=bug%2Cx%20y&assignee_username=root&order_by=updated_at&sort=desc",
            &json!([closed]),
        ),
        post("/issues/8/links", &json!({})),
        get("/issues/7", &issue(7)),
    ]);
    let mut host = host(&server);
    let new = json!({ "title": "issue 7", "description": "It *fails*.", "labels": ["bug"], "assignees": ["root"], "issueType": "Test Case" });
    let person = |name: &str| json!({ "id": name, "name": "Alexandra" });
    assert_eq!(
        data(&host.call("create_issue", new)),
        json!({
            "key": "gitlab#7", "title": "issue 7", "status": "opened", "status_category": "todo", "description": "It *fails*.",
            "issue_type": "issue", "labels": ["bug"], "author": person("eileen"), "assignees": [person("root")],
            "url": "https://gitlab.com/group/sub/hello/-/issues/7", "created_at": "2026-01-04T15:31:51.081Z",
            "updated_at": "2026-01-05T15:31:51.081Z", "milestone": "v1.0",
        })
    );
    let wish = json!({ "key": "gitlab#7", "includeComments": true, "includeRelations": true });
    let got = data(&host.call("get_issue", wish));
    assert_eq!(got["comments"].as_array().unwrap().len(), 1);
    assert_eq!(
        got["relations"],
        json!([
            { "key": "gitlab#8", "title": "issue 8", "relation": "blocked_by", "status": "opened" },
            { "key": "other/one#3", "title": "issue 3", "relation": "relates_to", "status": "opened" },
        ])
    );
    let change = json!({ "key": "gitlab#7", "status": "closed", "labels": [], "assignees": [] });
    assert_eq!(
        data(&host.call("update_issue", change))["status_category"],
        "done"
    );
    let said = json!({ "key": "gitlab#7", "body": "done" });
    assert_eq!(data(&host.call("add_issue_comment", said))["id"], "5");
    let got = data(&host.call("get_issue_comments", json!({ "key": "gitlab#7" })));
    assert_eq!(got["items"].as_array().unwrap().len(), 2);
    let query =
        json!({ "state": "all", "search": "fails", "labels": ["bug", "x y"], "assignee": "root" });
    assert_eq!(
        data(&host.call("get_issues", query))["items"][0]["status"],
        "closed"
    );
    let link = json!({ "key": "gitlab#7", "target": "gitlab#8", "link_type": "blocked_by" });
    assert_eq!(data(&host.call("link_issues", link))["key"], "gitlab#7");
    server.assert_done();
    assert_eq!(
        sent(&server),
        [
            json!({ "title": "issue 7", "description": "It *fails*.", "labels": "bug", "assignee_ids": [18], "issue_type": "test_case" }),
            json!({ "labels": "", "assignee_ids": [0], "state_event": "close" }),
            json!({ "body": "done" }),
            json!({ "target_project_id": "group/sub/hello", "target_issue_iid": 7, "link_type": "blocks" }),
        ]
    );
    for seen in server.requests() {
        assert_eq!(seen.header("private-token"), Some(TOKEN));
        assert_eq!(seen.header("authorization"), None);
    }
}

#[test]
fn pages_follow_links_without_repeats_or_gaps() {
    // 250 issues; between two pieces a new one moves all others by one. GitLab says no total.
    let server = server(|request| {
        let first =
            format!("{BASE}/issues?per_page=100&state=opened&order_by=created_at&sort=desc");
        let rest = request.target.strip_prefix(&first)?;
        let page: u64 = rest
            .strip_prefix("&page=")
            .map_or(Some(1), |at| at.parse().ok())?;
        let moved = page - 1;
        let from = (page - 1) * 100;
        let all = (from..from + 100).filter(|at| *at < 250 + moved);
        let piece: Vec<Value> = all.map(|at| issue(250 + moved - at)).collect();
        let answer = ok(&piece.into());
        Some(match page {
            3 => answer,
            _ => {
                let host = request.header("host")?;
                let link = format!("<http://{host}{first}&page={}>; rel=\"next\"", page + 1);
                answer.header(
                    "link",
                    format!("{link}, <http://{host}{first}&page=1>; rel=\"first\""),
                )
            }
        })
    });
    let mut host = host(&server);
    let mut keys = Vec::new();
    for offset in (0..250).step_by(50) {
        let query = json!({ "limit": 50, "offset": offset, "sort_by": "created_at" });
        let got = data(&host.call("get_issues", query));
        let items = got["items"].as_array().unwrap();
        assert_eq!(items.len(), 50);
        assert_eq!(got["pagination"]["has_more"], offset < 200);
        keys.extend(
            items
                .iter()
                .map(|of| of["key"].as_str().unwrap().to_owned()),
        );
    }
    let wanted: Vec<String> = (1..=250).rev().map(|of| format!("gitlab#{of}")).collect();
    assert_eq!(keys, wanted);
    // Two for the values of the project, and each piece once.
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn refusals_have_the_words_of_gitlab_and_the_next_step() {
    let refused = |method: &'static str, path: &str, status, body: Value| {
        on(
            method,
            format!("{BASE}{path}"),
            ServerAnswer::json(status, &body),
        )
    };
    let server = scripted(vec![
        refused(
            "GET",
            "/issues/5",
            404,
            json!({ "message": "404 Issue Not Found" }),
        ),
        refused(
            "POST",
            "/issues",
            403,
            json!({ "error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.", "scope": "api" }),
        ),
        refused(
            "POST",
            "/issues",
            400,
            json!({ "message": { "title": ["is too long (maximum is 255 characters)"] } }),
        ),
        refused(
            "POST",
            "/merge_requests",
            409,
            json!({ "message": ["Another open merge request already exists for this source branch: !4"] }),
        ),
        on("GET", "/users?username=nobody", ok(&json!([]))),
    ]);
    let mut host = host(&server);
    let branches = json!({ "title": "x", "source_branch": "a", "target_branch": "b" });
    for (tool, arguments, parts) in [
        (
            "get_issue",
            json!({ "key": "gitlab#5" }),
            ["404 Issue Not Found", "check the key, `project`"],
        ),
        (
            "create_issue",
            json!({ "title": "x" }),
            [
                "insufficient_scope; The request requires",
                "needs the scope `api`",
            ],
        ),
        (
            "create_issue",
            json!({ "title": "x" }),
            ["answered 400", "is too long (maximum is 255 characters)"],
        ),
        (
            "create_merge_request",
            branches,
            ["for this source branch: !4", "there is one already"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "assignees": ["@nobody"] }),
            ["knows nobody with the name `nobody`", "get_users"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "assignees": ["@"] }),
            ["an assignee has no name", "`[]` is nobody"],
        ),
        ("get_issue", json!({ "key": "5" }), ["key `5`", "gitlab#N"]),
        (
            "get_issues",
            json!({ "nativeQuery": "x" }),
            ["no query language", "`search`"],
        ),
        (
            "get_issues",
            json!({ "projectKey": "other/one" }),
            ["`projectKey`", "only group/sub/hello"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "priority": "high" }),
            ["no priority", "use labels"],
        ),
        (
            "update_issue",
            json!({ "key": "gitlab#5", "status": "done" }),
            ["`status`", "opened or closed"],
        ),
        (
            "link_issues",
            json!({ "key": "gitlab#5", "target": "gitlab#6", "link_type": "duplicates" }),
            ["no such link", "relates_to"],
        ),
        (
            "create_release",
            json!({ "tag": "v1", "draft": true }),
            ["neither drafts", "prereleases"],
        ),
    ] {
        let error = host.call(tool, arguments);
        assert_eq!(error.status, ResultStatus::Error, "{}", error.text());
        for part in parts {
            assert!(error.text().contains(part), "{part}: {}", error.text());
        }
    }
    server.assert_done();
}

#[test]
fn a_merge_request_is_made_reviewed_and_merged() {
    let mut merged = merge(12);
    merged["state"] = "merged".into();
    merged["merged_at"] = "2026-03-01T00:00:00Z".into();
    let mut on_line = note(6, "here");
    on_line["position"] = json!({ "new_path": "src/a.rs", "old_path": "src/a.rs", "new_line": 3, "position_type": "text" });
    on_line["resolvable"] = true.into();
    on_line["resolved"] = true.into();
    let thread = json!({ "id": "6a9c1750b37d", "individual_note": false, "notes": [on_line, note(7, "yes")] });
    let silent = json!({ "id": "87805b7c09", "individual_note": true, "notes": [system(8)] });
    let file = json!({ "old_path": "b.rs", "new_path": "src/a.rs", "a_mode": "100644", "b_mode": "100644", "diff": "@@ -1 +1 @@\n", "new_file": false, "renamed_file": true, "deleted_file": false, "collapsed": false, "too_large": false });
    let server = scripted(vec![
        on("GET", "/users?username=root", ok(&json!([user("root")]))),
        post("/merge_requests", &merge(12)),
        get(
            "/merge_requests?per_page=100&state=merged&labels=docs&source_branch=topic&order_by=updated_at&sort=desc",
            &json!([merged]),
        ),
        get(
            "/merge_requests/12/discussions?per_page=100",
            &json!([silent, thread]),
        ),
        get("/merge_requests/12/diffs?per_page=30", &json!([file])),
        get("/merge_requests/12", &merge(12)),
        get("/merge_requests/12/diffs?per_page=30", &json!([file])),
        post("/merge_requests/12/discussions", &thread),
        post(
            "/merge_requests/12/discussions/6a9c1750b37d/notes",
            &note(7, "yes"),
        ),
        post("/merge_requests/12/notes", &note(9, "whole")),
        get("/merge_requests/12", &merge(12)),
        get("/merge_requests/12/diffs?per_page=30", &json!([file])),
        on(
            "POST",
            format!("{BASE}/merge_requests/12/discussions"),
            ServerAnswer::json(
                400,
                &json!({ "message": "400 Bad request - Note {:line_code=>[\"can't be blank\"]}" }),
            ),
        ),
        get("/merge_requests/12", &merge(12)),
        get("/merge_requests/12/diffs?per_page=30", &json!([file])),
        put("/merge_requests/12", &merged),
    ]);
    let mut host = host(&server);
    let new = json!({ "title": "merge 12", "source_branch": "topic", "target_branch": "main", "draft": true, "labels": ["docs"], "reviewers": ["root"] });
    let got = data(&host.call("create_merge_request", new));
    assert_eq!(
        (&got["key"], &got["draft"], &got["mergeable"]),
        (&json!("mr#12"), &json!(true), &json!("not_open"))
    );
    let query = json!({ "state": "merged", "source_branch": "topic", "labels": ["docs"] });
    let got = data(&host.call("get_merge_requests", query));
    assert_eq!(got["items"][0]["state"], "merged");
    let got = data(&host.call("get_merge_request_discussions", json!({ "key": "mr#12" })));
    assert_eq!(got["items"].as_array().unwrap().len(), 1);
    assert_eq!(got["items"][0]["resolved"], true);
    assert_eq!(got["items"][0]["comments"][0]["line"], 3);
    let got = data(&host.call("get_merge_request_diffs", json!({ "key": "mr#12" })));
    assert_eq!(
        got["items"][0],
        json!({ "path": "src/a.rs", "change": "renamed", "old_path": "b.rs", "diff": "@@ -1 +1 @@\n" })
    );
    for (arguments, id) in [
        (
            json!({ "key": "mr#12", "body": "here", "file_path": "src/a.rs", "line": 3 }),
            "6",
        ),
        (
            json!({ "key": "mr#12", "body": "yes", "discussion_id": "6a9c1750b37d" }),
            "7",
        ),
        (json!({ "key": "mr#12", "body": "whole" }), "9"),
    ] {
        assert_eq!(
            data(&host.call("create_merge_request_comment", arguments))["id"],
            id
        );
    }
    let old = json!({ "key": "mr#12", "body": "x", "file_path": "src/a.rs", "line": 900 });
    let error = host.call("create_merge_request_comment", old).text();
    assert!(
        error.contains("can't be blank")
            && error.contains("`line` must be one that the merge request adds"),
        "{error}"
    );
    let other = json!({ "key": "mr#12", "body": "x", "file_path": "b.rs", "line": 3 });
    let error = host.call("create_merge_request_comment", other).text();
    assert!(error.contains("mr#12 does not change `b.rs`"), "{error}");
    let change = json!({ "key": "mr#12", "state": "closed", "labels": ["a", "b"] });
    let got = data(&host.call("update_merge_request", change));
    assert_eq!(got["merged_at"], "2026-03-01T00:00:00Z");
    server.assert_done();
    let sent = sent(&server);
    assert_eq!(
        sent[0],
        json!({ "title": "Draft: merge 12", "source_branch": "topic", "target_branch": "main", "labels": "docs", "reviewer_ids": [18] })
    );
    assert_eq!(
        sent[1]["position"],
        json!({ "position_type": "text", "base_sha": "c380", "start_sha": "c381", "head_sha": "8888", "old_path": "b.rs", "new_path": "src/a.rs", "new_line": 3 })
    );
    assert_eq!(sent[5], json!({ "labels": "a,b", "state_event": "close" }));
}

#[test]
fn the_newest_pipeline_has_its_jobs_and_logs_are_lines() {
    let job = |id: u64, status: &str| json!({ "id": id, "name": "rspec", "stage": "test", "status": status, "web_url": "https://gitlab.com/j" });
    let pipeline = json!({ "id": 47, "iid": 12, "status": "failed", "ref": "main", "sha": "a91957", "web_url": "https://gitlab.com/p" });
    let log: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let trace = || {
        on(
            "GET",
            format!("{BASE}/jobs/10/trace"),
            ServerAnswer::text(200, log.clone()),
        )
    };
    let server = scripted(vec![
        get("/pipelines?per_page=1&ref=main", &json!([pipeline])),
        get(
            "/pipelines/47/jobs?per_page=100",
            &json!([job(9, "success"), job(10, "failed"), job(11, "manual")]),
        ),
        trace(),
        get("/merge_requests/3/pipelines?per_page=1", &json!([])),
        trace(),
        get(
            "/releases?per_page=100",
            &json!([{ "tag_name": "v1", "name": null, "author": user("x"), "released_at": "2026-01-01T00:00:00Z", "_links": { "self": "https://gitlab.com/r" } }]),
        ),
        post("/releases", &json!({ "tag_name": "v2", "name": "Two" })),
    ]);
    let mut host = host(&server);
    let got = data(&host.call(
        "get_pipeline",
        json!({ "branch": "main", "includeFailedLogs": true }),
    ));
    assert_eq!(
        (&got["id"], &got["status"]),
        (&json!("47"), &json!("failed"))
    );
    let states: Vec<_> = got["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["status"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["success", "failed", "pending"]);
    assert!(
        got["jobs"][1]["log"]
            .as_str()
            .unwrap()
            .starts_with("line 61\n"),
        "{got}"
    );
    let error = host.call("get_pipeline", json!({ "mrKey": "mr#3" })).text();
    assert!(error.contains("no pipeline has run there"), "{error}");
    let got = data(&host.call(
        "get_job_logs",
        json!({ "jobId": "10", "pattern": "LINE 9", "limit": 2 }),
    ));
    assert_eq!(
        got["lines"],
        json!([{ "number": 9, "text": "line 9" }, { "number": 90, "text": "line 90" }])
    );
    let got = data(&host.call("get_releases", json!({})));
    assert_eq!(got["items"][0]["published_at"], "2026-01-01T00:00:00Z");
    let new = json!({ "tag": "v2", "name": "Two", "target": "main" });
    assert_eq!(data(&host.call("create_release", new))["name"], "Two");
    server.assert_done();
    assert_eq!(
        sent(&server),
        [json!({ "tag_name": "v2", "name": "Two", "ref": "main" })]
    );
}

/// Reads one answer, and returns what comes of it as JSON.
type ReadOne = fn(&GitLabProject) -> Result<Value, String>;

/// Asks a method of the project.
macro_rules! ask {
    ($method:ident, $arguments:tt) => {
        |of: &GitLabProject| {
            let arguments = serde_json::from_value(json!($arguments)).unwrap();
            let answer = answered(of.$method(arguments)).map_err(|fault| fault.message)?;
            Ok(serde_json::to_value(answer).unwrap())
        }
    };
}

#[test]
fn an_answer_that_lacks_something_is_an_error_or_a_whole_entity() {
    let thread = json!([{ "id": "6a9c", "notes": [note(1, "b"), system(2)] }]);
    let file = json!([{ "old_path": "b", "new_path": "a", "diff": "@@", "new_file": true, "renamed_file": false }]);
    let release = json!([{ "tag_name": "v1", "name": "n", "description": "b", "author": user("x"), "_links": { "self": "u" } }]);
    // Also the answer to the question about its jobs.
    let pipeline = json!([{ "id": 1, "name": "n", "status": "failed", "ref": "main", "sha": "a", "stage": "test" }]);
    let cases: Vec<(ReadOne, Value)> = vec![
        (ask!(issues, { "limit": 5 }), json!([issue(1)])),
        (ask!(issue, { "key": "gitlab#1" }), issue(1)),
        (
            ask!(issue_comments, { "key": "gitlab#1" }),
            json!([note(1, "b")]),
        ),
        (ask!(users, {}), json!([user("x")])),
        (ask!(merge_requests, {}), json!([merge(1)])),
        (ask!(merge_request, { "key": "mr#1" }), merge(1)),
        (ask!(discussions, { "key": "mr#1" }), thread),
        (ask!(diffs, { "key": "mr#1" }), file),
        (ask!(pipeline, {}), pipeline),
        (ask!(releases, {}), release),
    ];
    let now = Arc::new(Mutex::new(Value::Null));
    let answer = Arc::clone(&now);
    let server = ScriptedServer::answering(move |_| Some(ok(&answer.lock().unwrap())));
    let project = gitlab(&server).live(net(&server), None);
    for (read, answer) in cases {
        let [mut whole, mut errors] = [0, 0];
        for some in mutations(&answer) {
            now.lock().unwrap().clone_from(&some);
            match read(&project) {
                Ok(got) => {
                    whole += 1;
                    let one = || vec![got.clone()];
                    let items = got["items"].as_array().cloned().unwrap_or_else(one);
                    let is_whole = |of: &Value| {
                        let ids = ["key", "id", "path", "tag"];
                        ids.iter()
                            .any(|key| of[*key].as_str().is_some_and(|id| !id.is_empty()))
                    };
                    assert!(items.iter().all(is_whole), "{some}: {got}");
                }
                Err(why) => {
                    errors += 1;
                    let is_clear =
                        why.contains("GitLab answered with") || why.contains("no pipeline has run");
                    assert!(is_clear, "{some}: {why}");
                }
            }
        }
        assert!(whole > 3 && errors > 3, "{whole} {errors}: {answer}");
    }
}

#[test]
fn choices_are_those_of_the_project() {
    let server = ScriptedServer::new([
        get(
            "/labels?per_page=100",
            &json!([{ "name": "bug" }, { "name": "priority::1" }]),
        ),
        get("/members/all?per_page=100", &json!([user("root")])),
    ]);
    let mut host = host(&server);
    server.assert_done();
    let tool = host.registry().tools().get("create_issue").unwrap();
    let schema: Value = serde_json::from_str(&tool.definition.schema).unwrap();
    let choices = |of: &str| schema["properties"][of]["items"]["enum"].clone();
    assert_eq!(choices("labels"), json!(["bug", "priority::1"]));
    assert_eq!(choices("assignees"), json!(["root"]));
    let wrong = json!({ "title": "x", "labels": ["wontfix"] });
    let refusal = host.call("create_issue", wrong).text();
    assert!(refusal.contains("labels"), "{refusal}");
}

#[test]
fn a_token_is_in_no_byte_that_is_kept() {
    // A vendor that repeats what it was sent.
    let server = server(|request| {
        let token = request.header("private-token")?;
        Some(match request.target.ends_with("/1") {
            true => ServerAnswer::json(400, &json!({ "message": format!("odd token {token}") })),
            false => {
                let mut issue = issue(2);
                issue["description"] = token.into();
                ok(&issue)
            }
        })
    });
    let mut host = host(&server);
    for (key, part) in [("gitlab#1", "odd token"), ("gitlab#2", "issue 2")] {
        let text = host.call("get_issue", json!({ "key": key })).text();
        assert!(text.contains(part) && !text.contains(TOKEN), "{text}");
    }
    assert!(!format!("{:?}", host.registry().report()).contains(TOKEN));
    let root = host.project().parent().unwrap().to_owned();
    assert!(holds(&root, "odd token"), "the journal is elsewhere");
    assert!(!holds(&root, TOKEN));
}

#[test]
fn a_write_is_sent_once_and_a_limit_is_told() {
    let server = server(|request| {
        let limited = || ServerAnswer::json(429, &json!({ "message": "429 Too Many Requests" }));
        match (request.method.as_str(), request.target.strip_prefix(BASE)?) {
            ("POST", "/issues") => Some(ServerAnswer::json(201, &issue(1)).cut(0)),
            ("POST", _) => Some(limited().header("retry-after", "3600")),
            _ => None,
        }
    });
    let mut host = host(&server);
    let error = host.call("create_issue", json!({ "title": "x" })).text();
    assert!(
        error.contains("it may have been done all the same"),
        "{error}"
    );
    let said = json!({ "key": "gitlab#1", "body": "x" });
    let error = host.call("add_issue_comment", said.clone()).text();
    assert!(
        error.contains("429 Too Many Requests") && error.contains("nothing was done"),
        "{error}"
    );
    // The wait that GitLab asked for is kept: nothing more is sent before.
    let error = host.call("add_issue_comment", said).text();
    assert!(error.contains("allows no further request now"), "{error}");
    assert_eq!(sent(&server).len(), 2);
}

#[test]
fn settings_that_do_not_fit_name_their_key() {
    for (settings, part) in [
        (json!({}), "`project`"),
        (json!({ "project": "a//b" }), "`project`"),
        (json!({ "project": "a/../b" }), "`project`"),
        (json!({ "project": "a/b?x" }), "`project`"),
        (
            json!({ "project": "a/b", "base_url": "http://gitlab.example.com/api/v4" }),
            "`base_url` must begin with https://",
        ),
    ] {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let error = GitLab::new(settings).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    let settings = json!({ "project": "4", "token": { "secret": "s" } });
    let made = GitLab::new(serde_json::from_value(settings).unwrap()).unwrap();
    let asked = format!("{:?}", made.descriptor().requested_capabilities);
    assert!(
        asked.contains("gitlab.com:443") && asked.contains("\"s\""),
        "{asked}"
    );
}

#[test]
fn a_doctor_says_who_asks_and_what_is_missing() {
    let project = json!({
        "path_with_namespace": "group/sub/hello", "issues_access_level": "disabled", "archived": false,
        "permissions": { "project_access": null, "group_access": { "access_level": 20 } },
    });
    let server = ScriptedServer::new([
        on("GET", "/user", ok(&user("root"))),
        on(
            "GET",
            "/personal_access_tokens/self",
            ok(
                &json!({ "id": 4, "scopes": ["read_api", "read_user"], "expires_at": "2026-12-31", "active": true }),
            ),
        ),
        get("", &project),
        on(
            "GET",
            "/user",
            ServerAnswer::json(401, &json!({ "message": "401 Unauthorized" })),
        ),
    ]);
    let ask = || {
        let secret = Secret::new(&ambient::claim(), "gitlab", TOKEN.to_owned());
        gitlab(&server).check(net(&server), Some(secret))
    };
    assert_eq!(
        ask().unwrap(),
        [
            "authenticated as root; scopes read_api, read_user (without `api` nothing can be changed), until 2026-12-31",
            "group/sub/hello: may read, and change issues but no code",
            "group/sub/hello: issues are turned off",
        ]
    );
    let error = ask().unwrap_err();
    assert!(
        error.contains("401 Unauthorized; the token is wrong, expired or revoked"),
        "{error}"
    );
    server.assert_done();
}
