//! Jira against a server of this machine that answers as Atlassian's documentation shows it: what is asked, what is made of
//! the answers, and of answers that lack something.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::provider::{EpicProvider, IssueProvider};
use api_core::source::CheckedSource;
use api_core::tools::CategoryTools;
use api_jira::{Jira, JiraProject, Settings};
use authority::{Net, Secret};
use pod::feature::FeatureModule;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testkit::{
    Expected, FeatureHost, FeatureUnderTest, ResultStatus, ScriptedServer, SeenRequest,
    ServerAnswer, answered, data, holds, mutations, on,
};

const TOKEN: &str = "ATATT-canary7f3a91e5d2";
/// `me@x.example` and the token.
const BASIC: &str = "Basic bWVAeC5leGFtcGxlOkFUQVRULWNhbmFyeTdmM2E5MWU1ZDI=";
const CLOUD: &str = "/rest/api/3";
const SERVER: &str = "/rest/api/2";

fn jira(server: &ScriptedServer, email: Option<&str>) -> Jira {
    let settings = json!({
        "project": "proj", "base_url": format!("{}/", server.url()), "email": email, "token": { "secret": "jira" },
    });
    Jira::new(serde_json::from_value(settings).unwrap()).unwrap()
}

fn net(server: &ScriptedServer) -> Net {
    Net::to(&ambient::claim(), [server.endpoint().parse().unwrap()])
}

fn host_of(server: &ScriptedServer, email: Option<&str>) -> FeatureUnderTest {
    let jira = jira(server, email);
    let tools = CategoryTools::of(&[jira.descriptor()]);
    FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("jira", TOKEN)
        .permit_all()
        .with(jira)
        .install(tools)
}

fn host(server: &ScriptedServer) -> FeatureUnderTest {
    host_of(server, Some("me@x.example"))
}

fn ok(body: &Value) -> ServerAnswer {
    ServerAnswer::json(200, body)
}

/// What is known of the project at a start.
fn known(target: &str) -> Option<ServerAnswer> {
    let path = target.strip_prefix(CLOUD).or(target.strip_prefix(SERVER))?;
    Some(match path {
        "/project/PROJ/statuses" => ok(&json!([])),
        "/issue/createmeta/PROJ/issuetypes?maxResults=200" => ok(&json!({ "issueTypes": [] })),
        "/user/assignable/search?maxResults=1000&project=PROJ" => ok(&json!([])),
        _ => return None,
    })
}

/// A server that knows nothing of the project, and answers everything else by this.
fn server(
    answer: impl Fn(&SeenRequest) -> Option<ServerAnswer> + Send + Sync + 'static,
) -> ScriptedServer {
    // Only the first of each question is that of a start.
    let left = Mutex::new(3);
    ScriptedServer::answering(move |request| {
        let mut left = left.lock().unwrap();
        match known(&request.target).filter(|_| *left > 0) {
            Some(answer) => {
                *left -= 1;
                Some(answer)
            }
            None => answer(request),
        }
    })
}

/// The same, in this order.
fn scripted_at(base: &str, script: Vec<Expected>) -> ScriptedServer {
    let start = [
        "/project/PROJ/statuses",
        "/issue/createmeta/PROJ/issuetypes?maxResults=200",
        "/user/assignable/search?maxResults=1000&project=PROJ",
    ];
    let start = start.map(|path| {
        let target = format!("{base}{path}");
        on("GET", target.clone(), known(&target).unwrap())
    });
    ScriptedServer::new(start.into_iter().chain(script))
}

fn scripted(script: Vec<Expected>) -> ScriptedServer {
    scripted_at(CLOUD, script)
}

fn get(path: &str, body: &Value) -> Expected {
    on("GET", format!("{CLOUD}{path}"), ok(body))
}

fn post(path: &str, status: u16, body: &Value) -> Expected {
    on(
        "POST",
        format!("{CLOUD}{path}"),
        ServerAnswer::json(status, body),
    )
}

fn done(method: &'static str, path: &str) -> Expected {
    on(
        method,
        format!("{CLOUD}{path}"),
        ServerAnswer::text(204, ""),
    )
}

/// The bodies that were sent, other than questions.
fn sent(server: &ScriptedServer) -> Vec<Value> {
    let all = server.requests();
    let writes = all
        .iter()
        .filter(|seen| seen.method != "GET" && !seen.target.contains("/search"));
    writes.map(SeenRequest::json).collect()
}

fn doc(text: &str) -> Value {
    json!({ "type": "doc", "version": 1, "content": [{ "type": "paragraph", "content": [{ "type": "text", "text": text }] }] })
}

fn user(id: &str, name: &str) -> Value {
    json!({ "accountId": id, "displayName": name, "emailAddress": format!("{id}@x.example"), "active": true, "accountType": "atlassian" })
}

fn status(name: &str, category: &str) -> Value {
    json!({ "id": "3", "name": name, "statusCategory": { "id": 4, "key": category, "name": "x" } })
}

fn issue(number: u64) -> Value {
    json!({
        "id": (10_000 + number).to_string(), "key": format!("PROJ-{number}"), "self": format!("https://x.atlassian.net/rest/api/3/issue/{number}"),
        "names": { "customfield_1": "Points", "customfield_2": "Size", "customfield_3": "Notes", "customfield_4": "Team", "summary": "Summary" },
        "fields": {
            "summary": format!("issue {number}"), "description": doc("It fails."), "status": status("In Arbeit", "indeterminate"),
            "priority": { "id": "2", "name": "High" }, "issuetype": { "id": "10001", "name": "Bug", "subtask": false, "hierarchyLevel": 0 },
            "labels": ["backend"], "reporter": user("a1", "Mia"), "assignee": user("a2", "Egon"), "parent": { "key": "PROJ-1" },
            "created": "2026-01-17T12:34:00.000+0200", "updated": "2026-01-18T12:34:00.000+0000",
            "customfield_1": 5.0, "customfield_2": { "id": "1", "value": "Large" }, "customfield_3": doc("long"), "customfield_4": null,
            "subtasks": [{ "key": "PROJ-9", "fields": { "summary": "part", "status": status("Done", "done") } }],
            "issuelinks": [
                { "type": { "name": "Blocks", "inward": "is blocked by", "outward": "blocks" }, "inwardIssue": { "key": "PROJ-8", "fields": { "summary": "first" } } },
                { "type": { "name": "Blocks", "inward": "is blocked by", "outward": "blocks" }, "outwardIssue": { "key": "PROJ-7", "fields": { "summary": "next" } } },
            ],
        },
    })
}

fn comment(id: u64) -> Value {
    json!({ "id": id.to_string(), "body": doc(&format!("comment {id}")), "author": user("a1", "Mia"), "created": "2026-01-17T12:34:00.000+0000", "updated": "2026-01-17T12:34:00.000+0000" })
}

fn types() -> Value {
    json!({ "startAt": 0, "maxResults": 200, "total": 4, "issueTypes": [
        { "id": "10000", "name": "Epic", "subtask": false, "hierarchyLevel": 1 },
        { "id": "10001", "name": "Bug", "subtask": false, "hierarchyLevel": 0 },
        { "id": "10002", "name": "Task", "subtask": false, "hierarchyLevel": 0 },
        { "id": "10003", "name": "Unteraufgabe", "subtask": true, "hierarchyLevel": -1 },
    ] })
}

fn fields() -> Value {
    let custom = |kind: &str| format!("com.atlassian.jira.plugin.system.customfieldtypes:{kind}");
    json!({ "fields": [
        { "fieldId": "customfield_1", "name": "Points", "required": false, "schema": { "type": "number", "custom": custom("float") } },
        { "fieldId": "customfield_2", "name": "Size", "schema": { "type": "option", "custom": custom("select") }, "allowedValues": [{ "id": "1", "value": "Large" }, { "id": "2", "value": "Small" }] },
        { "fieldId": "customfield_3", "name": "Notes", "schema": { "type": "string", "custom": custom("textarea") } },
        { "fieldId": "customfield_5", "name": "Areas", "schema": { "type": "array", "items": "option", "custom": custom("multiselect") }, "allowedValues": [{ "value": "API" }, { "value": "UI" }] },
        { "fieldId": "customfield_6", "name": "Owner", "schema": { "type": "user", "custom": custom("userpicker") } },
        { "fieldId": "components", "key": "components", "name": "Components", "schema": { "type": "array", "items": "component", "system": "components" }, "allowedValues": [{ "id": "3", "name": "Core" }] },
        { "fieldId": "customfield_7", "name": "Request", "schema": { "type": "sd-customerrequesttype" } },
    ] })
}

const META: &str = "/issue/createmeta/PROJ/issuetypes?maxResults=200";
const PEOPLE: &str = "/user/assignable/search?maxResults=1000&project=PROJ";

#[test]
fn an_issue_is_made_read_changed_and_commented() {
    let mut finished = issue(7);
    finished["fields"]["status"] = status("Fertig", "done");
    let steps = json!({ "transitions": [
        { "id": "11", "name": "Back", "to": status("Offen", "new") }, { "id": "31", "name": "Finish", "to": status("Fertig", "done") },
    ] });
    let links = json!({ "issueLinkTypes": [{ "id": "1", "name": "Blocker", "inward": "is blocked by", "outward": "blocks" }] });
    let comments = |from: u64, total: u64| json!({ "startAt": from, "maxResults": 100, "total": total, "comments": [comment(from + 1)] });
    let server = scripted(vec![
        get(META, &types()),
        get(
            "/issue/createmeta/PROJ/issuetypes/10002?maxResults=200",
            &fields(),
        ),
        get(
            &format!("{PEOPLE}&query=Egon"),
            &json!([user("a3", "Egon Other"), user("a2", "Egon")]),
        ),
        post(
            "/issue",
            201,
            &json!({ "id": "10007", "key": "PROJ-7", "self": "x" }),
        ),
        get("/issue/PROJ-7", &issue(7)),
        get("/issue/PROJ-7?expand=names", &issue(7)),
        get(
            "/issue/PROJ-7/comment?orderBy=created&maxResults=100&startAt=0",
            &comments(0, 2),
        ),
        get(
            "/issue/PROJ-7/comment?orderBy=created&maxResults=100&startAt=1",
            &comments(1, 2),
        ),
        get(
            "/issue/PROJ-7/editmeta",
            &json!({ "fields": { "customfield_1": fields()["fields"][0] } }),
        ),
        get("/issue/PROJ-7?fields=status", &issue(7)),
        get("/issue/PROJ-7/transitions", &steps),
        done("PUT", "/issue/PROJ-7"),
        done("POST", "/issue/PROJ-7/transitions"),
        get("/issue/PROJ-7", &finished),
        // It is there already.
        get("/issue/PROJ-7?fields=status", &finished),
        get("/issue/PROJ-7", &finished),
        post("/issue/PROJ-7/comment", 201, &comment(5)),
        get("/issueLinkType", &links),
        on(
            "POST",
            format!("{CLOUD}/issueLink"),
            ServerAnswer::text(201, ""),
        ),
        get("/issue/PROJ-7", &issue(7)),
    ]);
    let mut host = host(&server);
    let new = json!({
        "title": "issue 7", "description": "It **fails**.", "labels": ["backend"], "assignees": ["Egon"], "priority": "High", "parentId": "",
        "customFields": { "points": 5, "Size": "large", "Notes": "- a", "Areas": ["api"], "Owner": "a1", "Components": ["core"] },
    });
    let mut new = new;
    new.as_object_mut().unwrap().remove("parentId");
    let person = |id: &str, name: &str| json!({ "id": id, "name": name, "email": format!("{id}@x.example") });
    assert_eq!(
        data(&host.call("create_issue", new)),
        json!({
            "key": "PROJ-7", "title": "issue 7", "status": "In Arbeit", "status_category": "in_progress", "description": "It fails.",
            "priority": "High", "issue_type": "Bug", "labels": ["backend"], "author": person("a1", "Mia"), "assignees": [person("a2", "Egon")],
            "url": "https://x.atlassian.net/browse/PROJ-7", "created_at": "2026-01-17T10:34:00Z", "updated_at": "2026-01-18T12:34:00Z",
            "parent": "PROJ-1",
        })
    );
    let wish = json!({ "key": "jira#proj-7", "includeComments": true, "includeRelations": true });
    let got = data(&host.call("get_issue", wish));
    assert_eq!(
        got["custom_fields"],
        json!({ "Points": 5.0, "Size": "Large", "Notes": "long" })
    );
    assert_eq!(
        got["subtasks"],
        json!([{ "key": "PROJ-9", "title": "part", "relation": "subtask", "status": "Done" }])
    );
    let relations: Vec<_> = got["relations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (&of["key"], &of["relation"]))
        .collect();
    assert_eq!(
        relations,
        [
            (&json!("PROJ-8"), &json!("blocked_by")),
            (&json!("PROJ-7"), &json!("blocks"))
        ]
    );
    let bodies: Vec<_> = got["comments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["body"].clone())
        .collect();
    assert_eq!(bodies, ["comment 1", "comment 2"]);
    let change = json!({ "key": "PROJ-7", "title": "new", "labels": [], "assignees": [], "status": "fertig", "customFields": { "Points": null } });
    assert_eq!(
        data(&host.call("update_issue", change))["status_category"],
        "done"
    );
    let again = json!({ "key": "PROJ-7", "state": "closed" });
    assert_eq!(data(&host.call("update_issue", again))["status"], "Fertig");
    let said = json!({ "key": "PROJ-7", "body": "done" });
    assert_eq!(data(&host.call("add_issue_comment", said))["id"], "5");
    let link = json!({ "key": "PROJ-7", "target": "PROJ-8", "link_type": "blocked_by" });
    assert_eq!(data(&host.call("link_issues", link))["key"], "PROJ-7");
    server.assert_done();
    let strong = json!([{ "type": "text", "text": "It " }, { "type": "text", "text": "fails", "marks": [{ "type": "strong" }] }, { "type": "text", "text": "." }]);
    let item = json!([{ "type": "listItem", "content": doc("a")["content"] }]);
    assert_eq!(
        sent(&server),
        [
            json!({ "fields": {
                "project": { "key": "PROJ" }, "issuetype": { "id": "10002" }, "summary": "issue 7", "labels": ["backend"], "priority": { "name": "High" },
                "description": { "type": "doc", "version": 1, "content": [{ "type": "paragraph", "content": strong }] }, "assignee": { "accountId": "a2" },
                "customfield_1": 5, "customfield_2": { "value": "Large" }, "customfield_5": [{ "value": "API" }], "customfield_6": { "accountId": "a1" },
                "customfield_3": { "type": "doc", "version": 1, "content": [{ "type": "bulletList", "content": item }] }, "components": [{ "name": "Core" }],
            } }),
            json!({ "fields": { "summary": "new", "labels": [], "assignee": null, "customfield_1": null } }),
            json!({ "transition": { "id": "31" } }),
            json!({ "body": doc("done") }),
            json!({ "type": { "name": "Blocker" }, "inwardIssue": { "key": "PROJ-8" }, "outwardIssue": { "key": "PROJ-7" } }),
        ]
    );
    for seen in server.requests() {
        assert_eq!(seen.header("authorization"), Some(BASIC));
    }
}

#[test]
fn subtasks_and_epics_have_types_of_their_own() {
    let mut above = issue(1);
    above["fields"]["issuetype"] = json!({ "id": "10000", "hierarchyLevel": 1 });
    let server = scripted(vec![
        get(META, &types()),
        get("/issue/PROJ-2?fields=issuetype", &issue(2)),
        post("/issue", 201, &json!({ "key": "PROJ-3" })),
        get("/issue/PROJ-3", &issue(3)),
        get(META, &types()),
        get("/issue/PROJ-1?fields=issuetype", &above),
        post("/issue", 201, &json!({ "key": "PROJ-4" })),
        get("/issue/PROJ-4", &issue(4)),
        get(META, &types()),
        post(
            "/search/jql",
            200,
            &json!({ "issues": [issue(1)], "isLast": true }),
        ),
        get(META, &types()),
        post("/issue", 201, &json!({ "key": "PROJ-5" })),
        get("/issue/PROJ-5", &issue(5)),
        get("/issue/PROJ-5?fields=status", &issue(5)),
        get(
            "/issue/PROJ-5/transitions",
            &json!({ "transitions": [{ "id": 31, "to": status("Done", "done") }] }),
        ),
        done("POST", "/issue/PROJ-5/transitions"),
        get("/issue/PROJ-5", &issue(5)),
    ]);
    let mut host = host(&server);
    for parent in ["PROJ-2", "PROJ-1"] {
        let new = json!({ "title": "x", "parentId": parent });
        data(&host.call("create_issue", new));
    }
    let got = data(&host.call("get_epics", json!({ "search": "pay (now)" })));
    assert_eq!(got["items"][0]["key"], "PROJ-1");
    let made = data(&host.call("create_epic", json!({ "title": "big", "labels": ["q1"] })));
    assert_eq!(made["key"], "PROJ-5");
    let closed = json!({ "key": "PROJ-5", "state": "closed" });
    assert_eq!(data(&host.call("update_epic", closed))["key"], "PROJ-5");
    server.assert_done();
    let sent = sent(&server);
    let kinds: Vec<_> = sent
        .iter()
        .map(|of| of["fields"]["issuetype"]["id"].clone())
        .collect();
    assert_eq!(kinds[..3], ["10003", "10002", "10000"]);
    assert_eq!(sent[0]["fields"]["parent"], json!({ "key": "PROJ-2" }));
    assert_eq!(sent[3], json!({ "transition": { "id": "31" } }));
    let asked = server.requests();
    let search = asked
        .iter()
        .find(|seen| seen.target.contains("/search/"))
        .unwrap()
        .json();
    assert_eq!(
        search["jql"],
        "project = \"PROJ\" AND issuetype = 10000 AND statusCategory != Done AND text ~ \"pay  now\" ORDER BY updated desc"
    );
}

#[test]
fn pages_follow_tokens_and_there_is_no_total() {
    // 250 issues; between two pieces a new one moves all others by one.
    let server = server(|request| {
        let question = (request.target == format!("{CLOUD}/search/jql")).then(|| request.json())?;
        let page: u64 = question["nextPageToken"]
            .as_str()
            .map_or(Some(0), |at| at.strip_prefix("t")?.parse().ok())?;
        let all = (page * 100..page * 100 + 100).filter(|at| *at < 250 + page);
        let piece: Vec<Value> = all.map(|at| issue(250 + page - at)).collect();
        let next = (page < 2).then(|| format!("t{}", page + 1));
        Some(ok(
            &json!({ "issues": piece, "nextPageToken": next, "isLast": next.is_none() }),
        ))
    });
    let mut host = host(&server);
    let mut keys = Vec::new();
    for offset in (0..250).step_by(50) {
        let query = json!({ "limit": 50, "offset": offset, "sort_by": "created_at" });
        let got = data(&host.call("get_issues", query));
        let items = got["items"].as_array().unwrap();
        assert_eq!(items.len(), 50);
        assert_eq!(got["pagination"]["has_more"], offset < 200);
        assert_eq!(got["pagination"].get("total").is_some(), offset == 200);
        keys.extend(
            items
                .iter()
                .map(|of| of["key"].as_str().unwrap().to_owned()),
        );
    }
    let wanted: Vec<String> = (1..=250).rev().map(|of| format!("PROJ-{of}")).collect();
    assert_eq!(keys, wanted);
    // Three for the values of the project, and each piece once.
    assert_eq!(server.requests().len(), 6);
    let asked = server.requests()[3].json();
    assert_eq!(
        asked["jql"],
        "project = \"PROJ\" AND statusCategory != Done ORDER BY created desc"
    );
    assert!(
        asked["fields"]
            .as_array()
            .unwrap()
            .contains(&json!("summary"))
    );
}

#[test]
fn queries_are_written_in_the_language_of_jira() {
    let server = server(|request| match request.target.contains("/search/jql") {
        true => Some(ok(&json!({ "issues": [] }))),
        false => Some(ok(&json!([user("a2", "Egon")]))),
    });
    let mut host = host(&server);
    for (query, jql) in [
        (
            json!({ "state": "closed", "labels": ["a", "b \"c\" \\"], "projectKey": "other", "assignee": "egon", "sort_order": "asc" }),
            "project = \"OTHER\" AND statusCategory = Done AND labels = \"a\" AND labels = \"b \\\"c\\\" \\\\\" AND assignee = \"a2\" ORDER BY updated asc",
        ),
        (
            json!({ "state": "all", "search": "a\" OR project = X", "assignee": "me" }),
            "project = \"PROJ\" AND text ~ \"a  OR project = X\" AND assignee = currentUser() ORDER BY updated desc",
        ),
        (
            json!({ "state": "all", "search": "\"*\"", "assignee": "5b10ac8d82e05b22cc7d4ef5" }),
            "project = \"PROJ\" AND assignee = \"5b10ac8d82e05b22cc7d4ef5\" ORDER BY updated desc",
        ),
        (json!({ "nativeQuery": "key = PROJ-1" }), "key = PROJ-1"),
    ] {
        data(&host.call("get_issues", query));
        assert_eq!(server.requests().last().unwrap().json()["jql"], jql);
    }
}

#[test]
fn refusals_have_the_words_of_jira_and_the_next_step() {
    let refused = |method: &'static str, path: &str, status, body: Value| {
        on(
            method,
            format!("{CLOUD}{path}"),
            ServerAnswer::json(status, &body),
        )
    };
    let server = scripted(vec![
        refused(
            "GET",
            "/issue/PROJ-5?expand=names",
            404,
            json!({ "errorMessages": ["Issue does not exist or you do not have permission to see it."], "errors": {} }),
        ),
        get(META, &types()),
        refused(
            "POST",
            "/issue",
            400,
            json!({ "errorMessages": [], "errors": { "customfield_9": "Team is required." } }),
        ),
        get(META, &types()),
        get(META, &types()),
        get(
            "/issue/createmeta/PROJ/issuetypes/10002?maxResults=200",
            &fields(),
        ),
        get(META, &types()),
        get(
            "/issue/createmeta/PROJ/issuetypes/10002?maxResults=200",
            &fields(),
        ),
        get(META, &types()),
        get(
            "/issue/createmeta/PROJ/issuetypes/10002?maxResults=200",
            &fields(),
        ),
        get("/issue/PROJ-5?fields=status", &issue(5)),
        get(
            "/issue/PROJ-5/transitions",
            &json!({ "transitions": [{ "id": "1", "to": status("Review", "new") }] }),
        ),
        get(
            "/issueLinkType",
            &json!({ "issueLinkTypes": [{ "name": "Clone", "outward": "clones" }] }),
        ),
        get(&format!("{PEOPLE}&query=No%20One"), &json!([])),
        get("/issue/PROJ-5?fields=status", &issue(5)),
        get(
            "/issue/PROJ-5/transitions",
            &json!({ "transitions": [{ "id": "1", "to": status("Review", "new") }] }),
        ),
        done("PUT", "/issue/PROJ-5"),
        refused(
            "POST",
            "/issue/PROJ-5/transitions",
            400,
            json!({ "errorMessages": ["Resolution is required"] }),
        ),
    ]);
    let mut host = host(&server);
    for (tool, arguments, parts) in [
        (
            "get_issue",
            json!({ "key": "PROJ-5" }),
            ["Issue does not exist", "may not see it"],
        ),
        (
            "create_issue",
            json!({ "title": "x" }),
            ["customfield_9: Team is required.", "400"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "issueType": "Story" }),
            ["`issueType`", "Epic, Bug, Task"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "customFields": { "Nope": 1 } }),
            ["no field `Nope`", "Points, Size"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "customFields": { "Areas": ["XX"] } }),
            ["`Areas` takes a list of", "one of: API, UI"],
        ),
        (
            "create_issue",
            json!({ "title": "x", "customFields": { "Request": "a" } }),
            ["`Request` takes no values", "sd-customerrequesttype"],
        ),
        (
            "update_issue",
            json!({ "key": "PROJ-5", "status": "Done" }),
            ["cannot go to this status now", "Review"],
        ),
        (
            "link_issues",
            json!({ "key": "PROJ-5", "target": "PROJ-6", "link_type": "duplicates" }),
            ["no link that duplicates", "clones"],
        ),
        (
            "update_issue",
            json!({ "key": "PROJ-5", "assignees": ["No One"] }),
            ["none of the people", "get_users"],
        ),
        (
            "update_issue",
            json!({ "key": "PROJ-5", "assignees": ["a", "b"] }),
            ["`assignees`", "one assignee"],
        ),
        (
            "update_issue",
            json!({ "key": "PROJ-5", "title": "x", "status": "Review" }),
            [
                "a part of the change of PROJ-5 is done",
                "Resolution is required",
            ],
        ),
        (
            "get_issue",
            json!({ "key": "gh#5" }),
            ["key `gh#5`", "jira#PROJ-N"],
        ),
        (
            "get_issues",
            json!({ "projectKey": "a/b" }),
            ["`projectKey`", "PROJ"],
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
fn data_center_has_version_two_with_texts_and_names() {
    let person = json!({ "name": "mia", "key": "JIRAUSER1", "displayName": "Mia", "emailAddress": "mia@x.example" });
    let mut of = issue(7);
    of["fields"]["description"] = "h1. wiki".into();
    of["fields"]["assignee"] = person.clone();
    let meta = json!({ "values": [{ "id": "1", "name": "Epic", "subtask": false }, { "id": "2", "name": "Task", "subtask": false }], "isLast": true });
    let label = json!({ "values": [{ "fieldId": "customfield_8", "name": "Epic Name", "schema": { "type": "string", "custom": "com.pyxis.greenhopper.jira:gh-epic-label" } }] });
    let at = |method, path: &str, answer| on(method, format!("{SERVER}{path}"), answer);
    let made = |key: &str| ServerAnswer::json(201, &json!({ "key": key }));
    let server = scripted_at(
        SERVER,
        vec![
            at("GET", META, ok(&meta)),
            at(
                "GET",
                &format!("{PEOPLE}&username=mia"),
                ok(&json!([person])),
            ),
            at("POST", "/issue", made("PROJ-7")),
            at("GET", "/issue/PROJ-7", ok(&of)),
            at(
                "POST",
                "/search",
                ok(&json!({ "startAt": 0, "maxResults": 1, "total": 2, "issues": [of] })),
            ),
            at(
                "POST",
                "/search",
                ok(&json!({ "startAt": 1, "maxResults": 1, "total": 2, "issues": [issue(8)] })),
            ),
            at("GET", META, ok(&meta)),
            at(
                "GET",
                "/issue/createmeta/PROJ/issuetypes/1?maxResults=200",
                ok(&label),
            ),
            at("POST", "/issue", made("PROJ-9")),
            at("GET", "/issue/PROJ-9", ok(&issue(9))),
        ],
    );
    let mut host = host_of(&server, None);
    let new = json!({ "title": "x", "description": "h1. wiki", "assignees": ["mia"] });
    let got = data(&host.call("create_issue", new));
    assert_eq!(
        (&got["description"], &got["assignees"][0]["id"]),
        (&json!("h1. wiki"), &json!("mia"))
    );
    let got = data(&host.call("get_issues", json!({})));
    assert_eq!(
        got["pagination"],
        json!({ "offset": 0, "limit": 20, "total": 2, "has_more": false })
    );
    assert_eq!(got["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        data(&host.call("create_epic", json!({ "title": "big" })))["key"],
        "PROJ-9"
    );
    server.assert_done();
    let sent = sent(&server);
    assert_eq!(sent[0]["fields"]["description"], "h1. wiki");
    assert_eq!(sent[0]["fields"]["assignee"], json!({ "name": "mia" }));
    assert_eq!(sent[1]["fields"]["customfield_8"], "big");
    let searches: Vec<_> = server
        .requests()
        .into_iter()
        .filter(|seen| seen.target.ends_with("/search"))
        .collect();
    assert_eq!(searches[1].json()["startAt"], 1);
    let bearer = format!("Bearer {TOKEN}");
    assert!(
        server
            .requests()
            .iter()
            .all(|seen| seen.header("authorization") == Some(&bearer))
    );
}

/// Reads one answer, and returns what comes of it as JSON.
type ReadOne = fn(&JiraProject) -> Result<Value, String>;

/// Asks a method of the project.
macro_rules! ask {
    ($method:ident, $arguments:tt) => {
        |of: &JiraProject| {
            let arguments = serde_json::from_value(json!($arguments)).unwrap();
            let answer = answered(of.$method(arguments)).map_err(|fault| fault.message)?;
            Ok(serde_json::to_value(answer).unwrap())
        }
    };
}

#[test]
fn an_answer_that_lacks_something_is_an_error_or_a_whole_entity() {
    // The rest of an issue is that of the second case.
    let short =
        json!({ "key": "PROJ-1", "fields": { "summary": "s", "status": status("Open", "new") } });
    let found = json!({ "issues": [short], "nextPageToken": null, "isLast": true });
    let cases: Vec<(ReadOne, Value)> = vec![
        (ask!(issues, { "limit": 5 }), found),
        (
            ask!(issue, { "key": "PROJ-1", "includeRelations": true }),
            issue(1),
        ),
        (
            ask!(issue_comments, { "key": "PROJ-1" }),
            json!({ "startAt": 0, "total": 1, "comments": [comment(1)] }),
        ),
        (
            ask!(statuses, {}),
            json!([{ "name": "Task", "statuses": [status("Open", "new")] }]),
        ),
        (ask!(users, {}), json!([user("a1", "Mia")])),
        (
            ask!(epics, {}),
            json!({ "issueTypes": [{ "id": "10", "name": "Epic" }], "issues": [short] }),
        ),
    ];
    let now = Arc::new(Mutex::new(Value::Null));
    let answer = Arc::clone(&now);
    let server = ScriptedServer::answering(move |_| Some(ok(&answer.lock().unwrap())));
    let project = jira(&server, Some("me@x.example")).live(net(&server), None);
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
                        let ids = ["key", "id"];
                        ids.iter()
                            .any(|key| of[*key].as_str().is_some_and(|id| !id.is_empty()))
                    };
                    assert!(items.iter().all(is_whole), "{some}: {got}");
                }
                Err(why) => {
                    errors += 1;
                    let is_clear =
                        why.contains("Jira answered with") || why.contains("has no epics");
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
            "/project/PROJ/statuses",
            &json!([
                { "name": "Bug", "statuses": [status("Offen", "new"), status("Fertig", "done")] }, { "name": "Task", "statuses": [status("Offen", "new")] },
            ]),
        ),
        get(META, &types()),
        get(PEOPLE, &json!([user("a1", "Mia")])),
    ]);
    let mut host = host(&server);
    server.assert_done();
    let schema = |tool: &str| -> Value {
        let tool = host.registry().tools().get(tool).unwrap();
        serde_json::from_str(&tool.definition.schema).unwrap()
    };
    let create = schema("create_issue");
    assert_eq!(
        create["properties"]["issueType"]["enum"],
        json!(["Epic", "Bug", "Task", "Unteraufgabe", null])
    );
    assert_eq!(
        create["properties"]["assignees"]["items"]["enum"],
        json!(["a1", "Mia"])
    );
    assert_eq!(
        schema("update_issue")["properties"]["status"]["enum"],
        json!(["Offen", "Fertig", null])
    );
    let wrong = json!({ "key": "PROJ-1", "status": "Nope" });
    let refusal = host.call("update_issue", wrong).text();
    assert!(refusal.contains("status"), "{refusal}");
}

#[test]
fn a_token_is_in_no_byte_that_is_kept() {
    // A vendor that repeats what it was sent.
    let server = server(|request| {
        let basic = request.header("authorization")?.to_owned();
        let repeated = format!("odd {basic} {TOKEN}");
        Some(match request.target.contains("/PROJ-1?") {
            true => ServerAnswer::json(400, &json!({ "errorMessages": [repeated] })),
            false => {
                let mut issue = issue(2);
                issue["fields"]["description"] = doc(&repeated);
                ok(&issue)
            }
        })
    });
    let mut host = host(&server);
    let basic = BASIC.trim_start_matches("Basic ");
    for (key, part) in [("PROJ-1", "odd"), ("PROJ-2", "issue 2")] {
        let text = host.call("get_issue", json!({ "key": key })).text();
        assert!(text.contains(part) && !text.contains(TOKEN), "{text}");
    }
    assert!(!format!("{:?}", host.registry().report()).contains(TOKEN));
    let root = host.project().parent().unwrap().to_owned();
    assert!(holds(&root, "odd"), "the journal is elsewhere");
    assert!(!holds(&root, TOKEN));
    assert!(!holds(&root, basic), "as a header has it");
}

#[test]
fn a_write_is_sent_once_and_a_limit_is_told() {
    let server = server(|request| {
        let limited =
            || ServerAnswer::json(429, &json!({ "errorMessages": ["Rate limit exceeded."] }));
        match (request.method.as_str(), request.target.strip_prefix(CLOUD)?) {
            ("GET", _) => Some(ok(&types())),
            ("POST", "/issue") => Some(ServerAnswer::json(201, &json!({ "key": "PROJ-1" })).cut(0)),
            ("POST", _) => Some(
                limited()
                    .header("retry-after", "3600")
                    .header("x-ratelimit-reset", "2026-03-26T16:00Z"),
            ),
            _ => None,
        }
    });
    let mut host = host(&server);
    let error = host.call("create_issue", json!({ "title": "x" })).text();
    assert!(
        error.contains("it may have been done all the same"),
        "{error}"
    );
    let said = json!({ "key": "PROJ-1", "body": "x" });
    let error = host.call("add_issue_comment", said.clone()).text();
    assert!(
        error.contains("Rate limit exceeded.; nothing was done; try again in 60 min"),
        "{error}"
    );
    // The wait that Jira asked for is kept: nothing more is sent before.
    let error = host.call("add_issue_comment", said).text();
    assert!(error.contains("allows no further request now"), "{error}");
    assert_eq!(sent(&server).len(), 2);
}

#[test]
fn settings_that_do_not_fit_name_their_key() {
    let site = "https://x.atlassian.net";
    for (settings, part) in [
        (json!({}), "`project`"),
        (json!({ "project": "1A", "base_url": site }), "`project`"),
        (json!({ "project": "A/B", "base_url": site }), "`project`"),
        (json!({ "project": "A" }), "`base_url` is needed"),
        (
            json!({ "project": "A", "base_url": site }),
            "`token` is needed",
        ),
        (
            json!({ "project": "A", "base_url": "http://jira.example.com", "token": { "secret": "s" } }),
            "`base_url` must begin with https://",
        ),
    ] {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let error = Jira::new(settings).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    let settings = json!({ "project": "A", "base_url": site, "token": { "secret": "s" } });
    let made = Jira::new(serde_json::from_value(settings).unwrap()).unwrap();
    let asked = format!("{:?}", made.descriptor().requested_capabilities);
    assert!(
        asked.contains("x.atlassian.net:443") && asked.contains("\"s\""),
        "{asked}"
    );
}

#[test]
fn a_doctor_says_who_asks_and_what_is_missing() {
    let held = |has: bool| {
        json!({ "permissions": {
        "BROWSE_PROJECTS": { "havePermission": true }, "CREATE_ISSUES": { "havePermission": has }, "EDIT_ISSUES": { "havePermission": has },
        "TRANSITION_ISSUES": { "havePermission": true }, "ADD_COMMENTS": { "havePermission": true },
    } })
    };
    let asked = "/mypermissions?projectKey=PROJ&permissions=BROWSE_PROJECTS%2CCREATE_ISSUES%2CEDIT_ISSUES%2CTRANSITION_ISSUES%2CADD_COMMENTS";
    let server = ScriptedServer::new([
        get("/myself", &user("a1", "Mia")),
        get(
            "/project/PROJ",
            &json!({ "key": "PROJ", "name": "Project", "issueTypes": [{ "name": "Bug" }, { "name": "Epic" }] }),
        ),
        get(asked, &held(false)),
        on(
            "GET",
            format!("{CLOUD}/myself"),
            ServerAnswer::text(401, "Client must be authenticated to access this resource."),
        ),
    ]);
    let ask = || {
        let secret = Secret::new(&ambient::claim(), "jira", TOKEN.to_owned());
        jira(&server, Some("me@x.example")).check(net(&server), Some(secret))
    };
    assert_eq!(
        ask().unwrap(),
        [
            "authenticated as Mia; Jira Cloud",
            "project PROJ: Project",
            "project PROJ: the person lacks CREATE_ISSUES, EDIT_ISSUES",
            "project PROJ: Bug, Epic",
        ]
    );
    let error = ask().unwrap_err();
    assert!(
        error.contains("Client must be authenticated")
            && error.contains("the token or `email` is wrong"),
        "{error}"
    );
    server.assert_done();
}
