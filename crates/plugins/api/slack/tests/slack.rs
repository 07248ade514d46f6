//! Slack against a server of this machine that answers as Slack's documentation shows it: what is asked, what is made of the
//! answers, and of answers that lack something.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::http::{Http, Token, TokenForm};
use api_core::provider::MessengerProvider;
use api_core::source::{CheckedSource, SourceProvider};
use api_core::tools::CategoryTools;
use api_slack::{Settings, Slack, SlackWorkspace};
use authority::{Net, Secret};
use pod::feature::FeatureModule;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{
    FeatureHost, FeatureUnderTest, ResultStatus, ScriptedServer, SeenRequest, ServerAnswer,
    answered, data, holds, mutations, on,
};

const TOKEN: &str = "xoxb-canary-7f3a91e5d2";
/// What is asked for chats.
const LIST: &str =
    "/conversations.list?types=public_channel%2Cprivate_channel&exclude_archived=true&limit=200";

fn settings(server: &ScriptedServer) -> Settings {
    let settings = json!({ "base_url": server.url(), "token": { "secret": "slack" } });
    serde_json::from_value(settings).unwrap()
}

fn slack(server: &ScriptedServer) -> Slack {
    Slack::new(settings(server)).unwrap()
}

fn net(server: &ScriptedServer) -> Net {
    Net::to(&ambient::claim(), [server.endpoint().parse().unwrap()])
}

fn secret() -> Secret {
    Secret::new(&ambient::claim(), "slack", TOKEN.to_owned())
}

fn host(server: &ScriptedServer) -> FeatureUnderTest {
    let slack = slack(server);
    let tools = CategoryTools::of(&[slack.descriptor()]);
    FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("slack", TOKEN)
        .permit_all()
        .with(slack)
        .install(tools)
}

fn ok(body: Value) -> ServerAnswer {
    let mut body = body;
    body["ok"] = true.into();
    ServerAnswer::json(200, &body)
}

fn refusal(error: &str) -> ServerAnswer {
    ServerAnswer::json(200, &json!({ "ok": false, "error": error }))
}

fn chat(id: &str, name: &str) -> Value {
    json!({
        "id": id, "name": name, "is_channel": true, "is_group": false, "is_im": false, "is_mpim": false, "is_private": false,
        "created": 1449252889, "creator": "U012A3CDE", "is_archived": false, "is_general": true, "is_member": true,
        "topic": { "value": "Company-wide &amp; <#C2|work>", "creator": "", "last_set": 0 }, "num_members": 4,
    })
}

fn message(ts: &str, text: &str) -> Value {
    json!({ "type": "message", "user": "U012AB3CDE", "text": text, "ts": ts, "team": "T1", "reply_count": 2, "thread_ts": ts })
}

fn person() -> Value {
    json!({ "user": { "id": "U012AB3CDE", "name": "spengler", "real_name": "Egon Spengler", "profile": { "display_name": "" } } })
}

#[test]
fn a_message_is_sent_read_found_and_answered() {
    let first = "1503435956.000247";
    let server = ScriptedServer::new([
        on(
            "GET",
            LIST,
            ok(
                json!({ "channels": [chat("C012AB3CD", "general")], "response_metadata": { "next_cursor": "" } }),
            ),
        ),
        on(
            "POST",
            "/chat.postMessage",
            ok(
                json!({ "channel": "C012AB3CD", "ts": first, "message": { "text": "1 &lt; 2", "bot_id": "B1", "type": "message", "ts": first } }),
            ),
        ),
        on(
            "GET",
            "/conversations.history?channel=C012AB3CD&oldest=1503360000.000000&latest=1503435957.500000&limit=20",
            ok(
                json!({ "messages": [message(first, "1 &lt; 2 <https://a.example|here>")], "has_more": true, "response_metadata": { "next_cursor": "bmV4dA==" } }),
            ),
        ),
        on("GET", "/users.info?user=U012AB3CDE", ok(person())),
        on(
            "GET",
            format!(
                "/conversations.replies?channel=C012AB3CD&ts={first}&limit=20&cursor=bmV4dA%3D%3D"
            ),
            ok(
                json!({ "messages": [message(first, "root"), message("1503435999.000100", "answer")], "has_more": false }),
            ),
        ),
        on(
            "GET",
            "/search.messages?query=deploy%20in%3A%3C%23C012AB3CD%3E&count=20&sort=timestamp&cursor=%2A",
            ok(json!({ "messages": { "total": 31, "matches": [
                { "type": "message", "channel": { "id": "C012AB3CD", "name": "general" }, "user": "U012AB3CDE", "username": "egon", "ts": first, "text": "deploy", "permalink": "https://x.slack.com/p1" },
                { "type": "message", "channel": { "id": "C9", "name": "other" }, "user": "U1", "username": "u", "ts": first, "text": "deploy" },
            ] } })),
        ),
    ]);
    let mut host = host(&server);
    let got = data(&host.call("get_messenger_chats", json!({})));
    assert_eq!(
        got["items"],
        json!([{ "id": "C012AB3CD", "name": "general", "kind": "channel", "topic": "Company-wide & <#C2> (work)", "member": true, "members": 4 }])
    );
    assert_eq!(got["pagination"]["has_more"], false);
    let new = json!({ "chat_id": "C012AB3CD", "text": "1 < 2 <!channel>", "thread_id": first });
    let got = data(&host.call("send_message", new));
    assert_eq!((&got["id"], &got["text"]), (&json!(first), &json!("1 < 2")));
    let query =
        json!({ "chat_id": "C012AB3CD", "since": "2017-08-22", "until": "2017-08-22T21:05:57.5Z" });
    let got = data(&host.call("get_chat_messages", query));
    assert_eq!(
        got["items"],
        json!([{
            "id": first, "chat_id": "C012AB3CD", "text": "1 < 2 [here](https://a.example)", "author": { "id": "U012AB3CDE", "name": "Egon Spengler" },
            "created_at": "2017-08-22T21:05:56Z", "thread_id": first, "replies": 2,
        }])
    );
    let next = &got["pagination"]["next_cursor"];
    let query = json!({ "chat_id": "C012AB3CD", "thread_id": first, "cursor": next });
    let got = data(&host.call("get_chat_messages", query));
    // Without the first message of the thread, and the name was asked for once.
    assert_eq!(got["items"].as_array().unwrap().len(), 1);
    assert_eq!(got["items"][0]["author"]["name"], "Egon Spengler");
    let query = json!({ "query": "deploy", "chat_id": "C012AB3CD" });
    let got = data(&host.call("search_chat_messages", query));
    assert_eq!(
        (
            got["items"].as_array().unwrap().len(),
            &got["pagination"]["total"]
        ),
        (1, &json!(31))
    );
    assert_eq!(got["items"][0]["url"], "https://x.slack.com/p1");
    server.assert_done();
    let sent = server.requests();
    let sent = sent.iter().find(|seen| seen.method == "POST").unwrap();
    assert_eq!(
        sent.json(),
        json!({ "channel": "C012AB3CD", "text": "1 &lt; 2 &lt;!channel&gt;", "thread_ts": first })
    );
    for seen in server.requests() {
        let authorization = format!("Bearer {TOKEN}");
        assert_eq!(seen.header("authorization"), Some(authorization.as_str()));
    }
}

/// Reads all chats whose names have `part`, in pages of seven.
fn all_chats(host: &mut FeatureUnderTest, part: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let query = json!({ "search": part, "limit": 7, "cursor": cursor });
        let got = data(&host.call("get_messenger_chats", query));
        let items = got["items"].as_array().unwrap();
        names.extend(
            items
                .iter()
                .map(|of| of["name"].as_str().unwrap().to_owned()),
        );
        cursor = got["pagination"]["next_cursor"].clone();
        assert_eq!(got["pagination"]["has_more"], !cursor.is_null());
        assert!(items.len() == 7 || cursor.is_null());
        if cursor.is_null() {
            return names;
        }
    }
}

#[test]
fn chats_of_small_and_empty_pieces_come_once_each() {
    // Slack may give fewer than it was asked for, or none, where there are more.
    let server = ScriptedServer::answering(|request| {
        let cursor = request.target.strip_prefix(LIST)?;
        let from: usize = match cursor.strip_prefix("&cursor=c") {
            Some(at) => at.parse().ok()?,
            None if cursor.is_empty() => 0,
            None => return None,
        };
        let many = [30, 0, 5][(from / 5) % 3];
        let end = (from + many).min(100);
        let chats: Vec<Value> = (from..end)
            .map(|n| chat(&format!("C{n}"), &format!("room-{n}")))
            .collect();
        let next = match end {
            100 => String::new(),
            // The cursor moves on, also behind an empty piece.
            _ if many == 0 => format!("c{}", from + 5),
            _ => format!("c{end}"),
        };
        Some(ok(
            json!({ "channels": chats, "response_metadata": { "next_cursor": next } }),
        ))
    });
    let mut host = host(&server);
    let names = all_chats(&mut host, "");
    let wanted: Vec<String> = {
        let mut at = 0;
        let mut all = Vec::new();
        while at < 100 {
            let many = [30, 0, 5][(at / 5) % 3];
            all.extend((at..(at + many).min(100)).map(|n| format!("room-{n}")));
            at += many.max(5);
        }
        all
    };
    assert!(wanted.len() > 60);
    assert_eq!(names, wanted);
    let ones = all_chats(&mut host, "ROOM-1");
    let wanted: Vec<String> = wanted
        .into_iter()
        .filter(|name| name.starts_with("room-1"))
        .collect();
    assert_eq!(ones, wanted);
    server.assert_done();
}

#[test]
fn refusals_with_200_have_slacks_word_and_the_next_step() {
    let server = ScriptedServer::answering(|request| {
        let error = match request.target.split(['?', '&']).next()? {
            "/conversations.list" => {
                json!({ "ok": false, "error": "missing_scope", "needed": "groups:read", "provided": "channels:read" })
            }
            "/chat.postMessage" => json!({ "ok": false, "error": "not_in_channel" }),
            "/search.messages" => json!({ "ok": false, "error": "not_allowed_token_type" }),
            "/conversations.history" => json!({ "ok": false, "error": "ratelimited" }),
            "/conversations.replies" => {
                json!({ "ok": false, "error": "new_word", "response_metadata": { "messages": ["[ERROR] bad `ts`"] } })
            }
            _ => return None,
        };
        Some(ServerAnswer::json(200, &error))
    });
    let mut host = host(&server);
    for (tool, arguments, part) in [
        (
            "get_messenger_chats",
            json!({}),
            "Slack refused conversations.list: missing_scope; groups:read; add the scope to the app",
        ),
        (
            "send_message",
            json!({ "chat_id": "C1", "text": "x" }),
            "not_in_channel; invite the app to this chat",
        ),
        (
            "search_chat_messages",
            json!({ "query": "x" }),
            "this needs the token of a person",
        ),
        (
            "get_chat_messages",
            json!({ "chat_id": "C1" }),
            "try again in a minute; of an app that is distributed outside its marketplace",
        ),
        (
            "get_chat_messages",
            json!({ "chat_id": "C1", "thread_id": "1.2" }),
            "new_word; [ERROR] bad `ts`; change the arguments",
        ),
        // Nothing is asked.
        (
            "get_chat_messages",
            json!({ "chat_id": "#general" }),
            "`chat_id` must be an id",
        ),
        (
            "get_chat_messages",
            json!({ "chat_id": "C1&x=1" }),
            "`chat_id` must be an id",
        ),
        (
            "get_chat_messages",
            json!({ "chat_id": "C1", "thread_id": "x" }),
            "`thread_id` must be",
        ),
        (
            "get_chat_messages",
            json!({ "chat_id": "C1", "since": "soon" }),
            "`since`: `soon` is neither",
        ),
        (
            "get_messenger_chats",
            json!({ "cursor": "x" }),
            "`cursor` must be",
        ),
        (
            "send_message",
            json!({ "chat_id": "C1", "text": "&".repeat(9_000) }),
            "over 40000 characters",
        ),
    ] {
        let error = host.call(tool, arguments);
        assert_eq!(error.status, ResultStatus::Error, "{}", error.text());
        assert!(error.text().contains(part), "{part}: {}", error.text());
    }
    server.assert_done();
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_limit_is_said_and_holds_only_its_method() {
    let limit = |seconds: &str| {
        let body = json!({ "ok": false, "error": "ratelimited" });
        ServerAnswer::json(429, &body).header("retry-after", seconds)
    };
    let server = ScriptedServer::new([
        on(
            "GET",
            "/conversations.history?channel=C1&limit=20",
            limit("60"),
        ),
        on("GET", LIST, limit("7")),
        on("GET", LIST, ok(json!({ "channels": [] }))),
        on("POST", "/chat.postMessage", limit("1")),
    ]);
    let waits = Arc::new(Mutex::new(Vec::new()));
    let pause = {
        let waits = Arc::clone(&waits);
        Arc::new(move |time: Duration| {
            waits.lock().unwrap().push(time.as_secs_f64().ceil());
            Box::pin(std::future::ready(())) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        })
    };
    let token = Token {
        secret: secret(),
        form: TokenForm::BEARER,
    };
    let http = Http::new(
        SlackWorkspace::ABOUT.vendor,
        slack(&server).base().clone(),
        net(&server),
        Some(token),
    );
    let slack = SlackWorkspace::new(&settings(&server), http.pausing(pause));
    let history = || {
        let wanted = serde_json::from_value(json!({ "chat_id": "C1" })).unwrap();
        answered(slack.messages(wanted)).unwrap_err().message
    };
    for part in [
        "429 to GET /conversations.history: ratelimited; try again in 60 s",
        "Slack allows no further request now",
    ] {
        let error = history();
        assert!(error.contains(part), "{error}");
        assert!(
            error.contains("one such request a minute, for 15 messages"),
            "{error}"
        );
    }
    // A short wait is waited for, by the method that it is about.
    let chats = answered(slack.chats(serde_json::from_value(json!({})).unwrap())).unwrap();
    assert_eq!(chats.items.len(), 0);
    assert!(waits.lock().unwrap().iter().all(|wait| *wait <= 7.0));
    assert_eq!(waits.lock().unwrap().len(), 1);
    // What has an effect is not repeated.
    let wanted = serde_json::from_value(json!({ "chat_id": "C1", "text": "x" })).unwrap();
    let error = answered(slack.send_message(wanted)).unwrap_err().message;
    assert!(
        error.contains("nothing was done; try again in 1 s"),
        "{error}"
    );
    server.assert_done();
}

#[test]
fn a_write_whose_answer_is_lost_is_not_sent_again() {
    let server = ScriptedServer::answering(|request| {
        (request.method == "POST").then(|| ok(json!({ "ts": "1.2" })).cut(0))
    });
    let mut host = host(&server);
    let error = host
        .call("send_message", json!({ "chat_id": "C1", "text": "x" }))
        .text();
    assert!(
        error.contains("it may have been done all the same: look before you do it again"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
}

/// Reads one answer, and returns what comes of it as JSON.
type ReadOne = fn(&SlackWorkspace) -> Result<Value, String>;

/// Asks a method of the workspace.
macro_rules! ask {
    ($method:ident, $arguments:tt) => {
        |of: &SlackWorkspace| {
            let arguments = serde_json::from_value(json!($arguments)).unwrap();
            let answer = answered(of.$method(arguments)).map_err(|fault| fault.message)?;
            Ok(serde_json::to_value(answer).unwrap())
        }
    };
}

#[test]
fn an_answer_that_lacks_something_is_an_error_or_a_whole_entity() {
    let found = json!({ "type": "message", "channel": { "id": "C1", "name": "n" }, "user": "U1", "username": "u", "ts": "1.2", "text": "t", "permalink": "p", "files": [{ "name": "f" }] });
    let rest = json!({ "next_cursor": "" });
    let cases: Vec<(ReadOne, Value)> = vec![
        (
            ask!(chats, {}),
            json!({ "ok": true, "channels": [chat("C1", "n")], "response_metadata": rest }),
        ),
        (
            ask!(messages, { "chat_id": "C1" }),
            json!({ "ok": true, "messages": [message("1.2", "t")], "response_metadata": rest, "user": person()["user"] }),
        ),
        (
            ask!(search_messages, { "query": "x" }),
            json!({ "ok": true, "messages": { "matches": [found], "total": 1 }, "response_metadata": rest }),
        ),
        (
            ask!(send_message, { "chat_id": "C1", "text": "x" }),
            json!({ "ok": true, "channel": "C1", "ts": "1.2", "message": message("1.2", "t") }),
        ),
    ];
    let now = Arc::new(Mutex::new(Value::Null));
    let answer = Arc::clone(&now);
    let server =
        ScriptedServer::answering(move |_| Some(ServerAnswer::json(200, &answer.lock().unwrap())));
    for (read, answer) in cases {
        let workspace = slack(&server).live(net(&server), Some(secret()));
        // How many were read, and how many were errors.
        let mut ends = [0, 0];
        for some in mutations(&answer) {
            now.lock().unwrap().clone_from(&some);
            match read(&workspace) {
                Ok(got) => {
                    ends[0] += 1;
                    let items = got["items"]
                        .as_array()
                        .cloned()
                        .unwrap_or_else(|| vec![got.clone()]);
                    let is_whole = |of: &Value| of["id"].as_str().is_some_and(|id| !id.is_empty());
                    assert!(items.iter().all(is_whole), "{some}: {got}");
                }
                Err(why) => {
                    ends[1] += 1;
                    let is_clear = why.contains("Slack answered") || why.contains("Slack refused");
                    assert!(is_clear, "{some}: {why}");
                }
            }
        }
        assert!(ends.iter().all(|many| *many > 3), "{ends:?}: {answer}");
    }
}

#[test]
fn names_are_not_asked_for_again_where_the_token_may_not() {
    let server = ScriptedServer::answering(|request| {
        Some(match request.target.starts_with("/users.info") {
            true => refusal("missing_scope"),
            false => ok(json!({ "messages": [message("1.2", "t"), message("1.3", "t")] })),
        })
    });
    let mut host = host(&server);
    for _ in 0..2 {
        let got = data(&host.call("get_chat_messages", json!({ "chat_id": "C1" })));
        assert_eq!(got["items"][0]["author"], json!({ "id": "U012AB3CDE" }));
    }
    let asked = |seen: &&SeenRequest| seen.target.starts_with("/users.info");
    assert_eq!(server.requests().iter().filter(asked).count(), 1);
}

#[test]
fn a_token_is_in_no_byte_that_is_kept() {
    // A vendor that repeats what it was sent.
    let server = ScriptedServer::answering(|request| {
        let token = request.header("authorization")?.strip_prefix("Bearer ")?;
        Some(match request.target.starts_with("/conversations.history") {
            true => ok(json!({ "messages": [message("1.2", &format!("echo {token}"))] })),
            false => refusal(&format!("odd token {token}")),
        })
    });
    let mut host = host(&server);
    for (tool, arguments, part) in [
        ("get_messenger_chats", json!({}), "odd token"),
        ("get_chat_messages", json!({ "chat_id": "C1" }), "echo"),
        (
            "send_message",
            json!({ "chat_id": "C1", "text": "x" }),
            "odd token",
        ),
    ] {
        let text = host.call(tool, arguments).text();
        assert!(text.contains(part) && !text.contains(TOKEN), "{text}");
    }
    assert!(!format!("{:?}", host.registry().report()).contains(TOKEN));
    let root = host.project().parent().unwrap().to_owned();
    assert!(holds(&root, "odd token"), "the journal is elsewhere");
    assert!(!holds(&root, TOKEN));
}

#[test]
fn settings_that_do_not_fit_name_their_key() {
    for (settings, part) in [
        (json!({}), "`token`"),
        (
            json!({ "token": { "secret": "s" }, "kinds": [] }),
            "`kinds`",
        ),
        (
            json!({ "token": { "secret": "s" }, "base_url": "http://slack.com/api" }),
            "`base_url` must begin with https://",
        ),
    ] {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let error = Slack::new(settings).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    let settings: Settings = serde_json::from_value(json!({ "token": { "secret": "s" } })).unwrap();
    let asked = format!(
        "{:?}",
        Slack::new(settings)
            .unwrap()
            .descriptor()
            .requested_capabilities
    );
    assert!(
        asked.contains("slack.com:443") && asked.contains("\"s\""),
        "{asked}"
    );
}

#[test]
fn a_doctor_says_who_asks_and_what_is_missing() {
    let own = json!({ "url": "https://x.slack.com/", "team": "Subarachnoid", "user": "bot", "team_id": "T1", "user_id": "W1", "bot_id": "B1" });
    let server = ScriptedServer::new([
        on(
            "POST",
            "/auth.test",
            ok(own.clone()).header(
                "x-oauth-scopes",
                "channels:read,channels:history, chat:write,groups:read",
            ),
        ),
        on("POST", "/auth.test", ok(own)),
        on("POST", "/auth.test", refusal("invalid_auth")),
    ]);
    let ask = || {
        answered(slack(&server).live(net(&server), Some(secret())).check())
            .map_err(|fault| fault.message)
    };
    assert_eq!(
        ask().unwrap(),
        [
            "authenticated as bot (an app) in Subarachnoid",
            "scopes channels:read,channels:history, chat:write,groups:read",
            "no scope `groups:history`: private channels are not read",
            "no scope `users:read`: people have ids and no names",
            "no scope `search:read`: messages are not searched (only tokens of people can)",
        ]
    );
    assert!(ask().unwrap()[1].contains("does not say which scopes"));
    let error = ask().unwrap_err();
    assert!(
        error.contains("invalid_auth; the token is missing, wrong or expired"),
        "{error}"
    );
    server.assert_done();
}
