//! ClickUp against a server of this machine that answers as its documentation shows it: what is asked, what is made of the
//! answers, and of answers that lack something.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_clickup::{ClickUp, ClickUpList, Settings};
use api_core::provider::IssueProvider;
use api_core::source::SourceProvider;
use api_core::tools::CategoryTools;
use authority::{Net, Secret};
use pod::feature::FeatureModule;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testkit::{
    FeatureHost, FeatureUnderTest, ResultStatus, ScriptedServer, SeenRequest, ServerAnswer,
    answered, data, holds, mutations, on,
};

const TOKEN: &str = "pk_canary_7f3a91e5d2";

fn clickup(server: &ScriptedServer) -> ClickUp {
    let settings =
        json!({ "list": "90", "base_url": server.url(), "token": { "secret": "clickup" } });
    let settings: Settings = serde_json::from_value(settings).unwrap();
    ClickUp::new(settings).unwrap()
}

fn net(server: &ScriptedServer) -> Net {
    Net::to(&ambient::claim(), [server.endpoint().parse().unwrap()])
}

fn secret() -> Secret {
    Secret::new(&ambient::claim(), "clickup", TOKEN.to_owned())
}

fn host(server: &ScriptedServer) -> FeatureUnderTest {
    let clickup = clickup(server);
    let tools = CategoryTools::of(&[clickup.descriptor()]);
    FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("clickup", TOKEN)
        .permit_all()
        .with(clickup)
        .install(tools)
}

fn ok(body: &Value) -> ServerAnswer {
    ServerAnswer::json(200, body)
}

fn list() -> Value {
    json!({
        "id": "90", "name": "Sprint", "space": { "id": "7", "name": "Dev" }, "permission_level": "create",
        "statuses": [
            { "status": "to do", "type": "open", "orderindex": 0, "color": "#d3d3d3" },
            { "status": "в работе", "type": "custom", "orderindex": 1 },
            { "status": "shipped", "type": "done", "orderindex": 2 },
            { "status": "Closed", "type": "closed", "orderindex": 3 },
        ],
    })
}

fn members() -> Value {
    json!({ "members": [{ "id": 183, "username": "Egon", "email": "egon@x.example", "color": "#000" }, { "id": 184, "username": null, "email": "ray@x.example" }] })
}

/// What is known of the list at a start.
fn known(request: &SeenRequest) -> Option<ServerAnswer> {
    Some(match request.target.as_str() {
        "/list/90" => ok(&list()),
        "/list/90/member" => ok(&members()),
        "/space/7/tag" => ok(&json!({ "tags": [] })),
        _ => return None,
    })
}

/// A server that knows the list, and answers the rest in this order.
fn scripted(script: Vec<testkit::Expected>) -> ScriptedServer {
    let start = [
        on("GET", "/list/90", ok(&list())),
        on("GET", "/list/90/member", ok(&members())),
        on("GET", "/space/7/tag", ok(&json!({ "tags": [] }))),
    ];
    ScriptedServer::new(start.into_iter().chain(script))
}

fn fields() -> Value {
    let options = json!([{ "id": "o1", "name": "Small", "orderindex": 0 }, { "id": "o2", "name": "Large", "orderindex": 1 }]);
    json!([
        { "id": "f1", "name": "Size", "type": "drop_down", "type_config": { "options": options }, "value": 1 },
        { "id": "f2", "name": "Areas", "type": "labels", "type_config": { "options": [{ "id": "l1", "label": "API" }, { "id": "l2", "label": "UI" }] }, "value": ["l2"] },
        { "id": "f3", "name": "Points", "type": "number", "type_config": {}, "value": "5" },
        { "id": "f4", "name": "Due", "type": "date", "value": "1567780450202" },
        { "id": "f5", "name": "Owner", "type": "users", "value": [{ "id": 183, "username": "Egon" }] },
        { "id": "f6", "name": "Ready", "type": "checkbox", "value": "true" },
        { "id": "f7", "name": "Note", "type": "short_text", "value": null },
        { "id": "f8", "name": "Formula", "type": "formula", "value": "3" },
        { "id": "f9", "name": "After", "type": "tasks", "value": [{ "id": "86b", "name": "other" }] },
    ])
}

fn task(id: &str) -> Value {
    json!({
        "id": id, "custom_id": null, "custom_item_id": 0, "name": format!("task {id}"), "text_content": "It fails.", "description": "It fails.",
        "markdown_description": "It *fails*.", "status": { "status": "в работе", "type": "custom", "color": "#d3d3d3", "orderindex": 1 },
        "date_created": "1567780450202", "date_updated": "1567780450203", "date_closed": null,
        "creator": { "id": 183, "username": "Egon", "email": "egon@x.example" }, "assignees": [{ "id": 184, "username": null }],
        "tags": [{ "name": "bug", "tag_fg": "#000" }], "parent": null, "priority": { "id": "2", "priority": "high" },
        "custom_fields": fields(), "url": format!("https://app.clickup.com/t/{id}"), "list": { "id": "90", "name": "Sprint" },
        "dependencies": [{ "task_id": id, "depends_on": "86b", "type": 1 }, { "task_id": "86c", "depends_on": id, "type": 1 }],
        "linked_tasks": [{ "task_id": id, "link_id": "86d" }],
        "subtasks": [{ "id": "86e", "name": "part", "status": { "status": "to do" } }],
    })
}

fn comment(id: u64) -> Value {
    json!({ "id": id.to_string(), "comment_text": format!("comment {id}"), "user": { "id": 183, "username": "Egon" }, "date": (1_567_780_450_000 + id).to_string(), "resolved": false })
}

const TASK: &str = "?include_subtasks=true&include_markdown_description=true";

#[test]
fn a_task_is_made_read_changed_and_commented() {
    let mut closed = task("86a");
    closed["status"] = json!({ "status": "Closed", "type": "closed" });
    let done = || ok(&json!({}));
    let server = scripted(vec![
        on("GET", "/list/90/field", ok(&json!({ "fields": fields() }))),
        on("GET", "/list/90/member", ok(&members())),
        on("POST", "/list/90/task", ok(&task("86a"))),
        on("GET", format!("/task/86a{TASK}"), ok(&task("86a"))),
        on(
            "GET",
            "/task/86a/comment",
            ok(&json!({ "comments": [comment(2), comment(1)] })),
        ),
        on("GET", format!("/task/86a{TASK}"), ok(&task("86a"))),
        on("GET", "/list/90/field", ok(&json!({ "fields": fields() }))),
        on("GET", "/list/90", ok(&list())),
        on("PUT", "/task/86a", ok(&task("86a"))),
        on("POST", "/task/86a/tag/new%20one", done()),
        on("DELETE", "/task/86a/tag/bug", done()),
        on("POST", "/task/86a/field/f3", done()),
        on("GET", format!("/task/86a{TASK}"), ok(&closed)),
        on(
            "POST",
            "/task/86a/comment",
            ok(&json!({ "id": 9, "hist_id": "h", "date": 1_567_780_450_202_u64 })),
        ),
        on("POST", "/task/86b/dependency", done()),
        on("GET", format!("/task/86a{TASK}"), ok(&task("86a"))),
    ]);
    let mut host = host(&server);
    let new = json!({
        "title": "task 86a", "description": "It *fails*.", "labels": ["bug"], "assignees": ["Egon", "184"], "priority": "high", "parentId": "CU-86p",
        "issueType": "milestone", "customFields": { "size": "large", "Areas": ["API"], "f3": 5, "due": "2019-09-06", "Owner": ["183"], "Ready": true, "after": ["CU-86b"] },
    });
    let got = data(&host.call("create_issue", new));
    assert_eq!(
        got,
        json!({
            "key": "CU-86a", "title": "task 86a", "status": "в работе", "status_category": "in_progress", "description": "It *fails*.",
            "priority": "high", "issue_type": "task", "labels": ["bug"], "author": { "id": "183", "name": "Egon", "email": "egon@x.example" },
            "assignees": [{ "id": "184" }], "url": "https://app.clickup.com/t/86a", "created_at": "2019-09-06T14:34:10Z", "updated_at": "2019-09-06T14:34:10Z",
            "custom_fields": { "Size": "Large", "Areas": ["UI"], "Points": 5, "Due": "2019-09-06T14:34:10Z", "Owner": ["Egon"], "Ready": true, "Formula": "3", "After": ["CU-86b"] },
        })
    );
    let got = data(&host.call(
        "get_issue",
        json!({ "key": "CU-86a", "includeComments": true, "includeRelations": true }),
    ));
    assert_eq!(
        got["comments"],
        json!([
            { "id": "1", "body": "comment 1", "author": { "id": "183", "name": "Egon" }, "created_at": "2019-09-06T14:34:10Z" },
            { "id": "2", "body": "comment 2", "author": { "id": "183", "name": "Egon" }, "created_at": "2019-09-06T14:34:10Z" },
        ])
    );
    assert_eq!(
        got["subtasks"],
        json!([{ "key": "CU-86e", "title": "part", "relation": "subtask", "status": "to do" }])
    );
    let relations: Vec<(&str, &str)> = got["relations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            (
                of["key"].as_str().unwrap(),
                of["relation"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        relations,
        [
            ("CU-86b", "blocked_by"),
            ("CU-86c", "blocks"),
            ("CU-86d", "relates_to")
        ]
    );
    let change = json!({ "key": "CU-86a", "state": "closed", "assignees": ["183"], "labels": ["new one"], "customFields": { "Points": 8 } });
    let got = data(&host.call("update_issue", change));
    assert_eq!(
        (&got["status"], &got["status_category"]),
        (&json!("Closed"), &json!("done"))
    );
    let got = data(&host.call(
        "add_issue_comment",
        json!({ "key": "CU-86a", "body": "done" }),
    ));
    assert_eq!(
        got,
        json!({ "id": "9", "body": "done", "created_at": "2019-09-06T14:34:10Z" })
    );
    data(&host.call(
        "link_issues",
        json!({ "key": "CU-86a", "target": "CU-86b", "link_type": "blocks" }),
    ));
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
            json!({
                "name": "task 86a", "markdown_content": "It *fails*.", "tags": ["bug"], "assignees": [183, 184], "priority": 2, "parent": "86p", "custom_item_id": 1,
                "custom_fields": [ { "id": "f2", "value": ["l1"] }, { "id": "f5", "value": { "add": [183] } }, { "id": "f6", "value": true }, { "id": "f9", "value": { "add": ["86b"] } },
                    { "id": "f4", "value": 1_567_728_000_000_u64 }, { "id": "f3", "value": 5 }, { "id": "f1", "value": "o2" },
                ],
            }),
            json!({ "status": "Closed", "assignees": { "add": [183], "rem": [184] } }),
            json!({}),
            json!({}),
            json!({ "value": 8 }),
            json!({ "comment_text": "done", "notify_all": false }),
            json!({ "depends_on": "86a" }),
        ]
    );
    for seen in server.requests() {
        assert_eq!(seen.header("authorization"), Some(TOKEN));
    }
}

#[test]
fn tasks_that_are_meant_come_once_each_in_full_pages() {
    // Of 730 tasks every third is done; while they are read, others are added at the front.
    let held = Arc::new(Mutex::new(730_usize));
    let server = ScriptedServer::answering(move |request| {
        let at = request.target.strip_prefix(
            "/list/90/task?subtasks=true&include_markdown_description=true&order_by=updated&page=",
        );
        let Some(page) = at.and_then(|page| page.parse::<usize>().ok()) else {
            return known(request);
        };
        let mut held = held.lock().unwrap();
        *held += 3;
        let all: Vec<usize> = (0..*held).rev().collect();
        let piece = all.iter().skip(page * 100).take(100).map(|n| {
            let mut task = task(&n.to_string());
            if n % 3 == 0 {
                task["status"] = json!({ "status": "shipped", "type": "done" });
            }
            task
        });
        let tasks: Vec<Value> = piece.collect();
        Some(ok(
            &json!({ "tasks": tasks, "last_page": (page + 1) * 100 >= *held }),
        ))
    });
    let mut host = host(&server);
    let mut keys: Vec<usize> = Vec::new();
    loop {
        let got = data(&host.call("get_issues", json!({ "limit": 40, "offset": keys.len() })));
        let items = got["items"].as_array().unwrap();
        keys.extend(
            items
                .iter()
                .map(|of| of["key"].as_str().unwrap()[3..].parse::<usize>().unwrap()),
        );
        if got["pagination"]["has_more"] == false {
            break;
        }
        assert_eq!(items.len(), 40);
    }
    // As it was when the first piece was read.
    let wanted: Vec<usize> = (0..733).rev().filter(|n| n % 3 != 0).collect();
    assert_eq!(keys, wanted);
    server.assert_done();
    // Three for the values of the list, and each piece once.
    assert_eq!(server.requests().len(), 3 + 8);
}

#[test]
fn filters_comments_and_refusals() {
    let first: Vec<Value> = (26..=50).rev().map(comment).collect();
    let rest: Vec<Value> = (1..=26).rev().map(comment).take(25).collect();
    let server = scripted(vec![
        on("GET", "/list/90/member", ok(&members())),
        on(
            "GET",
            "/list/91/task?subtasks=true&include_markdown_description=true&include_closed=true&order_by=created&reverse=true&assignees%5B%5D=184&tags%5B%5D=bug&tags%5B%5D=b%20c&page=0",
            ok(&json!({ "tasks": [task("86a"), task("86b")], "last_page": true })),
        ),
        on(
            "GET",
            "/task/86a/comment",
            ok(&json!({ "comments": first })),
        ),
        on(
            "GET",
            "/task/86a/comment?start=1567780450026&start_id=26",
            ok(&json!({ "comments": rest })),
        ),
        on(
            "GET",
            "/task/86a/comment?start=1567780450002&start_id=2",
            ok(&json!({ "comments": [comment(1)] })),
        ),
        on(
            "GET",
            format!("/task/86z{TASK}"),
            ServerAnswer::json(
                401,
                &json!({ "err": "Team not authorized", "ECODE": "OAUTH_023" }),
            ),
        ),
        on("GET", "/list/90/field", ok(&json!({ "fields": fields() }))),
        on("GET", "/list/90/field", ok(&json!({ "fields": fields() }))),
    ]);
    let mut host = host(&server);
    let query = json!({ "state": "all", "assignee": "nobody" });
    let error = host.call("get_issues", query).text();
    assert!(error.contains("assignee"), "{error}");
    let query = json!({ "projectKey": "91", "state": "all", "assignee": "184", "labels": ["bug", "b c"], "sort_by": "created_at", "sort_order": "asc" });
    assert_eq!(data(&host.call("get_issues", query))["items"], json!([]));
    let got = data(&host.call(
        "get_issue_comments",
        json!({ "key": "CU-86a", "limit": 100 }),
    ));
    let ids: Vec<u64> = got["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids, (1..=50).collect::<Vec<_>>());
    for (tool, arguments, part) in [
        (
            "get_issue",
            json!({ "key": "CU-86z" }),
            "ClickUp answered 401 to GET /task/86z: Team not authorized; OAUTH_023; the token is wrong, or its person may not see this",
        ),
        (
            "create_issue",
            json!({ "title": "x", "customFields": { "Nope": 1 } }),
            "the list has no field `Nope`; it has: Size, Areas",
        ),
        (
            "create_issue",
            json!({ "title": "x", "customFields": { "Size": "Huge" } }),
            "`Size` (drop_down) takes one of: Small, Large",
        ),
        (
            "get_issue",
            json!({ "key": "86z" }),
            "key `86z` is not of the form CU-ID",
        ),
        (
            "get_issues",
            json!({ "nativeQuery": "x" }),
            "no language for queries",
        ),
        (
            "get_issues",
            json!({ "projectKey": "x/y" }),
            "`projectKey` must be the number of a list",
        ),
        (
            "link_issues",
            json!({ "key": "CU-1", "target": "CU-2", "link_type": "duplicates" }),
            "ClickUp has no such link",
        ),
    ] {
        let error = host.call(tool, arguments);
        assert_eq!(error.status, ResultStatus::Error, "{}", error.text());
        assert!(error.text().contains(part), "{part}: {}", error.text());
    }
    server.assert_done();
}

#[test]
fn choices_are_those_of_the_list() {
    let server = ScriptedServer::answering(|request| match request.target.as_str() {
        "/space/7/tag" => Some(ok(
            &json!({ "tags": [{ "name": "bug" }, { "name": "срочно" }] }),
        )),
        _ => known(request),
    });
    let host = host(&server);
    let schema = |tool: &str| -> Value {
        let tool = host.registry().tools().get(tool).unwrap();
        serde_json::from_str(&tool.definition.schema).unwrap()
    };
    let change = schema("update_issue");
    let text = change["properties"].to_string();
    for part in [
        "[\"to do\",\"в работе\",\"shipped\",\"Closed\"",
        "[\"bug\",\"срочно\"",
        "[\"183\",\"Egon\",\"184\"",
        "[\"urgent\",\"high\",\"normal\",\"low\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        schema("create_issue")
            .to_string()
            .contains("[\"task\",\"milestone\"")
    );
}

/// Reads one answer, and returns what comes of it as JSON.
type ReadOne = fn(&ClickUpList) -> Result<Value, String>;

/// Asks a method of the list.
macro_rules! ask {
    ($method:ident, $arguments:tt) => {
        |of: &ClickUpList| {
            let arguments = serde_json::from_value(json!($arguments)).unwrap();
            let answer = answered(of.$method(arguments)).map_err(|fault| fault.message)?;
            Ok(serde_json::to_value(answer).unwrap())
        }
    };
}

#[test]
fn an_answer_that_lacks_something_is_an_error_or_a_whole_entity() {
    // As ClickUp answers to a change; what is asked before it comes from the same answer.
    let mut lean = task("86a");
    for field in ["custom_fields", "dependencies", "linked_tasks", "subtasks"] {
        lean[field] = json!([]);
    }
    let mut known = lean.clone();
    known["members"] = members()["members"].clone();
    let cases: Vec<(ReadOne, Value)> = vec![
        (
            ask!(issues, { "state": "all" }),
            json!({ "tasks": [task("86a")], "last_page": true }),
        ),
        (
            ask!(issue, { "key": "CU-86a", "includeRelations": true }),
            task("86a"),
        ),
        (
            ask!(issue_comments, { "key": "CU-86a" }),
            json!({ "comments": [comment(1)] }),
        ),
        (
            ask!(create_issue, { "title": "x", "customFields": {} }),
            lean,
        ),
        (
            ask!(update_issue, { "key": "CU-86a", "assignees": ["Egon"], "labels": ["a"] }),
            known,
        ),
        (
            ask!(comment_issue, { "key": "CU-86a", "body": "x" }),
            json!({ "id": 9, "date": 1 }),
        ),
        (ask!(statuses, {}), list()),
        (ask!(users, {}), members()),
    ];
    let now = Arc::new(Mutex::new(Value::Null));
    let answer = Arc::clone(&now);
    let server = ScriptedServer::answering(move |_| Some(ok(&answer.lock().unwrap())));
    for (read, answer) in cases {
        let list = clickup(&server).live(net(&server), Some(secret()));
        // How many were read, and how many were errors.
        let mut ends = [0, 0];
        for some in mutations(&answer) {
            now.lock().unwrap().clone_from(&some);
            match read(&list) {
                Ok(got) => {
                    ends[0] += 1;
                    let items = got["items"]
                        .as_array()
                        .cloned()
                        .unwrap_or_else(|| vec![got.clone()]);
                    let is_whole = |of: &Value| {
                        let mut ids = ["key", "id"].iter().filter_map(|key| of[*key].as_str());
                        ids.any(|text| !text.is_empty())
                    };
                    assert!(items.iter().all(is_whole), "{some}: {got}");
                }
                Err(why) => {
                    ends[1] += 1;
                    let is_clear = why.contains("ClickUp answered with")
                        || ["none of the people of the list", "no valid number"]
                            .iter()
                            .any(|part| why.contains(part));
                    assert!(is_clear, "{some}: {why}");
                }
            }
        }
        assert!(ends.iter().all(|many| *many > 3), "{ends:?}: {answer}");
    }
}

#[test]
fn a_token_is_in_no_byte_that_is_kept() {
    // A vendor that repeats what it was sent.
    let server = ScriptedServer::answering(|request| {
        let token = request.header("authorization")?.to_owned();
        Some(match request.target.starts_with("/task/86e") {
            true => {
                let mut task = task("86e");
                task["name"] = format!("echo {token}").into();
                ok(&task)
            }
            false => ServerAnswer::json(400, &json!({ "err": format!("odd token {token}") })),
        })
    });
    let mut host = host(&server);
    for (key, part) in [("CU-1", "odd token"), ("CU-86e", "echo")] {
        let text = host.call("get_issue", json!({ "key": key })).text();
        assert!(text.contains(part) && !text.contains(TOKEN), "{text}");
    }
    assert!(!format!("{:?}", host.registry().report()).contains(TOKEN));
    let root = host.project().parent().unwrap().to_owned();
    assert!(holds(&root, "odd token"), "the journal is elsewhere");
    assert!(!holds(&root, TOKEN));
}

#[test]
fn writes_are_sent_once_and_say_what_is_done() {
    let lost = ScriptedServer::answering(|request| match request.method.as_str() {
        "POST" => Some(ok(&task("86a")).cut(0)),
        _ => known(request),
    });
    let error = host(&lost)
        .call("create_issue", json!({ "title": "x" }))
        .text();
    assert!(
        error.contains("it may have been done all the same: look before you do it again"),
        "{error}"
    );
    assert_eq!(
        lost.requests()
            .iter()
            .filter(|seen| seen.method == "POST")
            .count(),
        1
    );
    let limited = ScriptedServer::answering(|request| match request.method.as_str() {
        "PUT" => Some(ok(&task("86a"))),
        "POST" | "DELETE" => {
            let answer = ServerAnswer::json(
                429,
                &json!({ "err": "Rate limit reached", "ECODE": "APP_002" }),
            );
            Some(
                answer
                    .header("x-ratelimit-remaining", "0")
                    .header("x-ratelimit-reset", "30"),
            )
        }
        _ if request.target.starts_with("/task/86a") => Some(ok(&task("86a"))),
        _ => known(request),
    });
    let change = json!({ "key": "CU-86a", "title": "new", "labels": ["other"] });
    let error = host(&limited).call("update_issue", change).text();
    assert!(
        error.contains("a part of the change of CU-86a is done, but: ClickUp answered 429 to POST /task/86a/tag/other: Rate limit reached; APP_002; nothing was done; try again in 30 s"),
        "{error}"
    );
    assert_eq!(
        limited
            .requests()
            .iter()
            .filter(|seen| seen.method == "POST")
            .count(),
        1
    );
}

#[test]
fn settings_that_do_not_fit_name_their_key() {
    let read = |settings| ClickUp::new(serde_json::from_value(settings).unwrap());
    for (settings, part) in [
        (json!({}), "`list`"),
        (
            json!({ "list": "90/x", "token": { "secret": "s" } }),
            "`list`",
        ),
        (json!({ "list": "90" }), "`token`"),
        (
            json!({ "list": "90", "token": { "secret": "s" }, "base_url": "http://api.example.com" }),
            "`base_url` must begin with https://",
        ),
    ] {
        assert!(read(settings).err().unwrap().contains(part));
    }
    let asked = read(json!({ "list": "90", "token": { "secret": "s" } }))
        .unwrap()
        .descriptor();
    let asked = format!("{:?}", asked.requested_capabilities);
    assert!(
        asked.contains("api.clickup.com:443") && asked.contains("\"s\""),
        "{asked}"
    );
}

#[test]
fn a_doctor_says_who_asks_and_what_is_missing() {
    let own = json!({ "user": { "id": 183, "username": "Egon", "email": "egon@x.example" } });
    let teams = json!({ "teams": [{ "id": "1", "name": "Labs" }, { "id": "2", "name": "Home" }] });
    let mut read_only = list();
    read_only["permission_level"] = "read".into();
    let server = ScriptedServer::new([
        on("GET", "/user", ok(&own)),
        on("GET", "/team", ok(&teams)),
        on("GET", "/list/90", ok(&read_only)),
        on(
            "GET",
            "/user",
            ServerAnswer::json(
                401,
                &json!({ "err": "Token invalid", "ECODE": "OAUTH_025" }),
            ),
        ),
    ]);
    let ask = || {
        answered(clickup(&server).live(net(&server), Some(secret())).check())
            .map_err(|fault| fault.message)
    };
    assert_eq!(
        ask().unwrap(),
        [
            "authenticated as Egon (egon@x.example)",
            "workspaces: Labs, Home; a token of ClickUp has no scopes, it may what its person may",
            "list Sprint in Dev: 4 statuses",
            "list Sprint: tasks cannot be changed, the person may only read or comment",
        ]
    );
    let error = ask().unwrap_err();
    assert!(
        error.contains("Token invalid; OAUTH_025; the token is wrong"),
        "{error}"
    );
    server.assert_done();
}
