//! Fireflies against a server of this machine that answers as its documentation shows it: what is asked, what is made of the
//! answers, and of answers that lack something.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::provider::MeetingNotesProvider;
use api_core::source::SourceProvider;
use api_core::tools::CategoryTools;
use api_fireflies::{Fireflies, MeetingAccount, Settings};
use authority::{Net, Secret};
use pod::feature::FeatureModule;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testkit::{
    FeatureHost, FeatureUnderTest, ResultStatus, ScriptedServer, SeenRequest, ServerAnswer,
    answered, data, holds, mutations, on,
};

const TOKEN: &str = "ff-canary-7f3a91e5d2";

fn fireflies(server: &ScriptedServer) -> Fireflies {
    let settings = json!({ "base_url": server.url(), "token": { "secret": "fireflies" } });
    let settings: Settings = serde_json::from_value(settings).unwrap();
    Fireflies::new(settings).unwrap()
}

fn net(server: &ScriptedServer) -> Net {
    Net::to(&ambient::claim(), [server.endpoint().parse().unwrap()])
}

fn secret() -> Secret {
    Secret::new(&ambient::claim(), "fireflies", TOKEN.to_owned())
}

fn host(server: &ScriptedServer) -> FeatureUnderTest {
    let fireflies = fireflies(server);
    let tools = CategoryTools::of(&[fireflies.descriptor()]);
    FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("fireflies", TOKEN)
        .permit_all()
        .with(fireflies)
        .install(tools)
}

fn answer(field: &str, found: Value) -> ServerAnswer {
    ServerAnswer::json(200, &json!({ "data": { field: found } }))
}

fn refusal(error: &Value) -> ServerAnswer {
    ServerAnswer::json(200, &json!({ "data": null, "errors": [error] }))
}

/// The question of a request.
fn question(seen: &SeenRequest) -> String {
    seen.json()["query"].as_str().unwrap().to_owned()
}

/// The part of a question between its parentheses.
fn arguments(seen: &SeenRequest) -> String {
    let question = question(seen);
    let (_, rest) = question.split_once('(').unwrap();
    rest.split_once(") {").unwrap().0.to_owned()
}

fn meeting(id: &str) -> Value {
    json!({
        "id": id, "title": format!("Weekly {id}"), "date": 1_713_201_000_000_u64, "dateString": "2024-04-15T17:10:00.000Z",
        "duration": 31.5, "host_email": "egon@x.example", "organizer_email": "ray@x.example",
        "participants": ["egon@x.example,ray@x.example", "ray@x.example"], "transcript_url": "https://app.fireflies.ai/view/a",
        "meeting_attendees": [{ "displayName": "Egon", "email": "egon@x.example", "name": null }],
        "summary": { "overview": "We *met*.", "short_summary": "met", "gist": null, "action_items": "\n**Egon**\nShip it (01:02)\n", "keywords": ["ship", "test"] },
    })
}

fn spoken() -> Value {
    let sentence = |n: u32| json!({ "text": format!("sentence {n}"), "speaker_name": "Egon", "start_time": f64::from(n) + 0.5 });
    json!({ "id": "m1", "title": "Weekly", "sentences": (0..450).map(sentence).collect::<Vec<_>>() })
}

#[test]
fn meetings_are_listed_found_and_read() {
    let list = || {
        on(
            "POST",
            "/graphql",
            answer("transcripts", json!([meeting("m1")])),
        )
    };
    let server = ScriptedServer::new([
        list(),
        list(),
        on("POST", "/graphql", answer("transcript", spoken())),
        on("POST", "/graphql", answer("transcript", spoken())),
    ]);
    let mut host = host(&server);
    let query = json!({ "from_date": "2024-04-01", "to_date": "2024-04-30", "participants": ["a@x.example"], "host_email": "egon@x.example" });
    let got = data(&host.call("get_meeting_notes", query));
    assert_eq!(
        got["items"],
        json!([{
            "id": "m1", "title": "Weekly m1", "date": "2024-04-15T17:10:00Z", "duration_minutes": 31.5, "host": "egon@x.example",
            "participants": ["egon@x.example", "ray@x.example"], "summary": "We *met*.", "action_items": ["**Egon**", "Ship it (01:02)"],
            "keywords": ["ship", "test"], "url": "https://app.fireflies.ai/view/a",
        }])
    );
    assert_eq!(got["pagination"]["total"], 1);
    let got = data(&host.call("search_meeting_notes", json!({ "query": "ship \"it\"" })));
    assert_eq!(got["items"][0]["id"], "m1");
    // The pages of a transcript are parts of one answer.
    let mut sentences = Vec::new();
    loop {
        let query = json!({ "meeting_id": "m1", "offset": sentences.len() });
        let got = data(&host.call("get_meeting_transcript", query));
        assert_eq!(got["total_sentences"], 450);
        sentences.extend(got["sentences"].as_array().unwrap().clone());
        if got["has_more"] == false {
            break;
        }
    }
    assert_eq!(Value::from(sentences.clone()), {
        let sentence = |n: u32| json!({ "text": format!("sentence {n}"), "speaker": "Egon", "start": f64::from(n) + 0.5 });
        Value::from((0..450).map(sentence).collect::<Vec<_>>())
    });
    // From the beginning it is read anew.
    data(&host.call("get_meeting_transcript", json!({ "meeting_id": "m1" })));
    server.assert_done();
    let seen = server.requests();
    assert_eq!(
        arguments(&seen[0]),
        r#"fromDate: "2024-04-01T00:00:00.000Z", toDate: "2024-04-30T23:59:59.999Z", participants: ["a@x.example"], host_email: "egon@x.example", limit: 50, skip: 0"#
    );
    assert_eq!(
        arguments(&seen[1]),
        r#"keyword: "ship \"it\"", scope: "all", limit: 50, skip: 0"#
    );
    assert_eq!(arguments(&seen[2]), r#"id: "m1""#);
    for request in seen {
        let authorization = format!("Bearer {TOKEN}");
        assert_eq!(
            request.header("authorization"),
            Some(authorization.as_str())
        );
        assert_eq!(request.header("content-type"), Some("application/json"));
    }
}

#[test]
fn pages_of_meetings_have_no_repeats_while_new_ones_come() {
    // Newest first; before each piece another meeting has taken place.
    let held = Arc::new(Mutex::new(230_usize));
    let server = ScriptedServer::answering(move |request| {
        let question = question(request);
        let skip: usize = question
            .split_once("skip: ")?
            .1
            .split(')')
            .next()?
            .parse()
            .ok()?;
        let mut held = held.lock().unwrap();
        *held += 1;
        let all: Vec<usize> = (0..*held).rev().collect();
        let piece = all.iter().skip(skip).take(50);
        let piece: Vec<Value> = piece.map(|n| meeting(&n.to_string())).collect();
        Some(answer("transcripts", piece.into()))
    });
    let mut host = host(&server);
    let mut ids = Vec::new();
    loop {
        let query = json!({ "limit": 30, "offset": ids.len() });
        let got = data(&host.call("get_meeting_notes", query));
        let items = got["items"].as_array().unwrap();
        ids.extend(
            items
                .iter()
                .map(|of| of["id"].as_str().unwrap().parse::<usize>().unwrap()),
        );
        if got["pagination"]["has_more"] == false {
            break;
        }
        assert_eq!(items.len(), 30);
    }
    assert_eq!(ids, (0..=230).rev().collect::<Vec<_>>());
    // A day has few requests: each piece was asked for once.
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn errors_with_200_have_the_vendors_words_and_the_next_step() {
    let server = ScriptedServer::answering(|request| {
        let question = question(request);
        Some(match question.split_once("id: \"")?.1.split('"').next()? {
            "a" => refusal(
                &json!({ "message": "Transcript not found", "code": "object_not_found", "friendly": true, "extensions": { "status": 404 } }),
            ),
            "b" => refusal(
                &json!({ "message": "Too many requests. Please retry after 2:00:00 AM (UTC)", "code": "too_many_requests", "extensions": { "status": 429, "metadata": { "retryAfter": 1_713_201_000_000_u64 } } }),
            ),
            "c" => refusal(
                &json!({ "message": "Invalid argument(s) were provided", "extensions": { "code": "invalid_arguments", "metadata": { "fields": [{ "name": "id", "message": "id is odd" }] } } }),
            ),
            "d" => refusal(
                &json!({ "message": "You do not have access to this", "code": "require_elevated_privilege" }),
            ),
            "e" => ServerAnswer::json(
                401,
                &json!({ "errors": [{ "message": "Missing API key", "code": "auth_failed" }] }),
            ),
            "f" => answer("transcript", Value::Null),
            "g" => ServerAnswer::text(200, "<html>"),
            _ => return None,
        })
    });
    let mut host = host(&server);
    for (id, part) in [
        (
            "a",
            "Fireflies refused transcript: Transcript not found; object_not_found; use an id from the list of meetings",
        ),
        (
            "b",
            "the plan allows only so many requests a day or a minute: try again at 2024-04-15T17:10:00Z",
        ),
        (
            "c",
            "Invalid argument(s) were provided; invalid_arguments; id is odd; change the arguments",
        ),
        (
            "d",
            "require_elevated_privilege; the person of the API key may not do this",
        ),
        (
            "e",
            "Fireflies answered 401 to POST /graphql: Missing API key; auth_failed; the API key is wrong or expired",
        ),
        ("f", "Fireflies answered with no `transcript`"),
        ("g", "Fireflies answered with something that is no JSON"),
    ] {
        let error = host.call("get_meeting_transcript", json!({ "meeting_id": id }));
        assert_eq!(error.status, ResultStatus::Error, "{}", error.text());
        assert!(error.text().contains(part), "{part}: {}", error.text());
    }
    assert_eq!(server.requests().len(), 7);
    for (tool, arguments, part) in [
        (
            "get_meeting_notes",
            json!({ "to_date": "May" }),
            "`to_date`: `May` is neither",
        ),
        (
            "search_meeting_notes",
            json!({ "query": "x".repeat(256) }),
            "over 255 characters",
        ),
    ] {
        let error = host.call(tool, arguments);
        assert!(error.text().contains(part), "{part}: {}", error.text());
    }
    assert_eq!(server.requests().len(), 7);
}

#[test]
fn a_question_waits_and_is_asked_again() {
    let limit = ServerAnswer::json(
        429,
        &json!({ "errors": [{ "message": "Too many requests" }] }),
    );
    let server = ScriptedServer::new([
        on(
            "POST",
            "/graphql",
            answer("transcripts", json!([meeting("a")])).cut(5),
        ),
        on("POST", "/graphql", limit.clone().header("retry-after", "0")),
        on(
            "POST",
            "/graphql",
            answer("transcripts", json!([meeting("b")])),
        ),
        on("POST", "/graphql", limit.header("retry-after", "3600")),
    ]);
    let mut host = host(&server);
    let got = data(&host.call("get_meeting_notes", json!({})));
    assert_eq!(got["items"][0]["id"], "b");
    for part in [
        "Too many requests; try again in 60 min",
        "allows no further request now",
    ] {
        let error = host.call("get_meeting_notes", json!({})).text();
        assert!(error.contains(part), "{part}: {error}");
    }
    server.assert_done();
}

/// Reads one answer, and returns what comes of it as JSON.
type ReadOne = fn(&MeetingAccount) -> Result<Value, String>;

/// Asks a method of the account.
macro_rules! ask {
    ($method:ident, $arguments:tt) => {
        |of: &MeetingAccount| {
            let arguments = serde_json::from_value(json!($arguments)).unwrap();
            let answer = answered(of.$method(arguments)).map_err(|fault| fault.message)?;
            Ok(serde_json::to_value(answer).unwrap())
        }
    };
}

#[test]
fn an_answer_that_lacks_something_is_an_error_or_a_whole_entity() {
    let spoken = json!({ "id": "m1", "title": "t", "sentences": [{ "text": "x", "speaker_name": "s", "start_time": "1.5" }] });
    let cases: Vec<(ReadOne, Value)> = vec![
        (
            ask!(meetings, {}),
            json!({ "data": { "transcripts": [meeting("m1")] } }),
        ),
        (
            ask!(search_meetings, { "query": "x" }),
            json!({ "data": { "transcripts": [meeting("m1")] } }),
        ),
        (
            ask!(transcript, { "meeting_id": "m1" }),
            json!({ "data": { "transcript": spoken } }),
        ),
        (
            ask!(transcript, { "meeting_id": "m1" }),
            json!({ "data": { "transcript": spoken }, "errors": [{ "message": "m", "code": "too_many_requests", "extensions": { "metadata": { "retryAfter": 1, "fields": [{ "message": "f" }] } } }] }),
        ),
    ];
    let now = Arc::new(Mutex::new(Value::Null));
    let some = Arc::clone(&now);
    let server =
        ScriptedServer::answering(move |_| Some(ServerAnswer::json(200, &some.lock().unwrap())));
    for (read, answer) in cases {
        let account = fireflies(&server).live(net(&server), Some(secret()));
        // How many were read, and how many were errors.
        let mut ends = [0, 0];
        for some in mutations(&answer) {
            now.lock().unwrap().clone_from(&some);
            match read(&account) {
                Ok(got) => {
                    ends[0] += 1;
                    let items = got["items"]
                        .as_array()
                        .cloned()
                        .unwrap_or_else(|| vec![got.clone()]);
                    let is_whole = |of: &Value| {
                        let id = of["id"].as_str().or_else(|| of["meeting_id"].as_str());
                        id.is_some_and(|id| !id.is_empty())
                            && of["title"].as_str().is_some_and(|title| !title.is_empty())
                    };
                    assert!(items.iter().all(is_whole), "{some}: {got}");
                }
                Err(why) => {
                    ends[1] += 1;
                    let is_clear =
                        why.contains("Fireflies answered") || why.contains("Fireflies refused");
                    assert!(is_clear, "{some}: {why}");
                }
            }
        }
        assert!(ends.iter().all(|many| *many > 3), "{ends:?}: {answer}");
    }
}

#[test]
fn a_key_is_in_no_byte_that_is_kept() {
    // A vendor that repeats what it was sent.
    let server = ScriptedServer::answering(|request| {
        let key = request.header("authorization")?.strip_prefix("Bearer ")?;
        Some(match question(request).contains("transcripts") {
            true => answer(
                "transcripts",
                json!([{ "id": "m1", "title": format!("echo {key}") }]),
            ),
            false => {
                refusal(&json!({ "message": format!("odd key {key}"), "code": "auth_failed" }))
            }
        })
    });
    let mut host = host(&server);
    for (tool, arguments, part) in [
        ("get_meeting_notes", json!({}), "echo"),
        (
            "get_meeting_transcript",
            json!({ "meeting_id": "m1" }),
            "odd key",
        ),
    ] {
        let text = host.call(tool, arguments).text();
        assert!(text.contains(part) && !text.contains(TOKEN), "{text}");
    }
    assert!(!format!("{:?}", host.registry().report()).contains(TOKEN));
    let root = host.project().parent().unwrap().to_owned();
    assert!(holds(&root, "odd key"), "the journal is elsewhere");
    assert!(!holds(&root, TOKEN));
}

#[test]
fn settings_that_do_not_fit_name_their_key() {
    let read = |settings| Fireflies::new(serde_json::from_value(settings).unwrap());
    assert!(read(json!({})).err().unwrap().contains("`token`"));
    let plain = json!({ "token": { "secret": "s" }, "base_url": "http://api.example.com" });
    assert!(
        read(plain)
            .err()
            .unwrap()
            .contains("`base_url` must begin with https://")
    );
    let asked = read(json!({ "token": { "secret": "s" } }))
        .unwrap()
        .descriptor();
    let asked = format!("{:?}", asked.requested_capabilities);
    assert!(
        asked.contains("api.fireflies.ai:443") && asked.contains("\"s\""),
        "{asked}"
    );
}

#[test]
fn a_doctor_says_who_asks_and_what_is_missing() {
    let own = |admin: bool, many: Value| {
        answer(
            "user",
            json!({ "name": "Egon", "email": "egon@x.example", "is_admin": admin, "num_transcripts": many }),
        )
    };
    let server = ScriptedServer::new([
        on("POST", "/graphql", own(true, 7.into())),
        on("POST", "/graphql", own(false, 0.into())),
        on(
            "POST",
            "/graphql",
            refusal(&json!({ "message": "Invalid API key", "code": "auth_failed" })),
        ),
    ]);
    let ask = || {
        answered(
            fireflies(&server)
                .live(net(&server), Some(secret()))
                .check(),
        )
        .map_err(|fault| fault.message)
    };
    assert_eq!(
        ask().unwrap(),
        [
            "authenticated as Egon (egon@x.example)",
            "an administrator: reads the meetings of the team",
            "7 meetings"
        ]
    );
    assert_eq!(
        ask().unwrap()[1..],
        [
            "no administrator: reads the meetings that this person may see",
            "no meetings yet: let Fireflies join one"
        ]
    );
    let error = ask().unwrap_err();
    assert!(
        error.contains("Invalid API key; auth_failed; the API key is wrong or expired"),
        "{error}"
    );
    server.assert_done();
}
