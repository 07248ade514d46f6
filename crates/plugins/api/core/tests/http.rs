//! Requests to a server of this machine: what is sent again and what is not, waits, kept answers, and where tokens go.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::http::{
    BaseUrl, Header, Http, Method, Step, Token, TokenForm, Vendor, encoded, with_query,
};
use authority::{Net, Secret};
use llm_worker::ErrorKind;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{ScriptedServer, ServerAnswer, on};

const TOKEN: &str = "canary-token-7f3a91";

static VENDOR: Vendor = Vendor {
    name: "Acme",
    headers: &[Header("accept", "application/json")],
    words: &["/message", "/errors/0/message"],
    steps: &[Step(404, "look again")],
};

/// A way to a server, and the waits that it asked for.
struct Way {
    http: Http,
    waits: Arc<Mutex<Vec<u64>>>,
}

fn way(server: &ScriptedServer) -> Way {
    let ambient = ambient::claim();
    let net = Net::to(&ambient, [server.endpoint().parse().unwrap()]);
    let token = Token {
        secret: Secret::new(&ambient, "acme", TOKEN.to_owned()),
        form: TokenForm::BEARER,
    };
    let base = BaseUrl::parse(&format!("{}/api", server.url())).unwrap();
    let waits: Arc<Mutex<Vec<u64>>> = Arc::default();
    let asked = Arc::clone(&waits);
    let http =
        Http::new(&VENDOR, base, net, Some(token)).pausing(Arc::new(move |time: Duration| {
            // A wait that is over at once, in seconds rounded up.
            let seconds = time.as_millis().div_ceil(1000);
            asked.lock().unwrap().push(u64::try_from(seconds).unwrap());
            Box::pin(std::future::ready(()))
        }));
    Way { http, waits }
}

impl Way {
    fn waits(&self) -> Vec<u64> {
        self.waits.lock().unwrap().clone()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

fn ok(body: Value) -> ServerAnswer {
    ServerAnswer::json(200, &body)
}

fn limited(seconds: &str) -> ServerAnswer {
    ServerAnswer::json(429, &json!({ "message": "slow down" })).header("retry-after", seconds)
}

#[test]
fn a_read_is_sent_again_and_a_write_is_not() {
    let server = ScriptedServer::new([
        on("GET", "/api/a", ok(json!(1)).cut(0)),
        on("GET", "/api/a", ServerAnswer::text(503, "busy")),
        on("GET", "/api/a", ok(json!({ "n": 1 }))),
        on("GET", "/api/b", ok(json!({ "n": 2 })).cut(3)),
        on("GET", "/api/b", ok(json!({ "n": 2 }))),
        on("POST", "/api/c", ok(json!({})).cut(0)),
        on("POST", "/api/c", ServerAnswer::text(503, "busy")),
        on("POST", "/api/c", limited("2")),
    ]);
    let way = way(&server);
    run(async {
        assert_eq!(way.http.get("/a").await.unwrap().body, json!({ "n": 1 }));
        assert_eq!(way.http.get("/b").await.unwrap().body, json!({ "n": 2 }));
        let body = json!({ "x": 1 });
        for (kind, part) in [
            (ErrorKind::Unavailable, "may have been done all the same"),
            (ErrorKind::Unavailable, "answered 503 to POST /c: busy"),
            (ErrorKind::Retry, "nothing was done; try again in 2 s"),
        ] {
            let fault = way
                .http
                .send(Method::POST, "/c", Some(&body))
                .await
                .unwrap_err();
            assert_eq!(fault.kind, kind, "{fault}");
            assert!(fault.message.contains(part), "{fault}");
        }
    });
    server.assert_done();
    assert_eq!(way.waits(), [1, 2, 1]);
    let posts: Vec<_> = server
        .requests()
        .into_iter()
        .filter(|seen| seen.method == "POST")
        .collect();
    assert_eq!(posts.len(), 3);
    assert!(posts.iter().all(|seen| seen.json() == json!({ "x": 1 })));
}

#[test]
fn a_read_gives_up_after_three_times() {
    let server =
        ScriptedServer::new([1, 2, 3].map(|_| on("GET", "/api/a", ServerAnswer::text(502, "bad"))));
    let way = way(&server);
    let fault = run(way.http.get("/a")).unwrap_err();
    assert_eq!(
        fault.message,
        "Acme answered 502 to GET /a: bad; the vendor has a fault: try later"
    );
    server.assert_done();
}

#[test]
fn waits_that_are_asked_for_are_kept() {
    let server = ScriptedServer::new([
        on("GET", "/api/a", limited("7")),
        on("GET", "/api/a", limited("0")),
        on("GET", "/api/a", ok(json!({}))),
        on("GET", "/api/b", limited("3600")),
    ]);
    let way = way(&server);
    run(async {
        way.http.get("/a").await.unwrap();
        let fault = way.http.get("/b").await.unwrap_err();
        assert_eq!(fault.kind, ErrorKind::Retry);
        assert_eq!(
            fault.message,
            "Acme answered 429 to GET /b: slow down; try again in 60 min"
        );
        // Nothing more is sent before that.
        let fault = way.http.get("/c").await.unwrap_err();
        assert!(
            fault.message.contains("Acme allows no further request now"),
            "{fault}"
        );
        let fault = way.http.send(Method::POST, "/c", None).await.unwrap_err();
        assert_eq!(fault.kind, ErrorKind::Retry);
    });
    server.assert_done();
    assert_eq!(way.waits(), [7]);
}

#[test]
fn a_spent_budget_stops_before_the_next_request() {
    let spent = ok(json!({ "n": 1 }))
        .header("date", "Sun, 31 Jan 2027 12:00:00 GMT")
        .header("x-ratelimit-remaining", "0")
        .header("x-ratelimit-reset", "1801396810");
    let far = ServerAnswer::json(403, &json!({ "message": "API rate limit exceeded" }))
        .header("date", "Sun, 31 Jan 2027 12:00:00 GMT")
        .header("x-ratelimit-remaining", "0")
        .header("x-ratelimit-reset", "1801400400");
    let server = ScriptedServer::new([on("GET", "/api/a", spent), on("GET", "/api/b", far)]);
    let way = way(&server);
    run(async {
        assert_eq!(way.http.get("/a").await.unwrap().body["n"], 1);
        let fault = way.http.get("/b").await.unwrap_err();
        assert_eq!(
            fault.message,
            "Acme answered 403 to GET /b: API rate limit exceeded; try again in 60 min"
        );
    });
    server.assert_done();
    assert_eq!(way.waits(), [10]);
}

#[test]
fn an_answer_with_a_tag_is_asked_for_once() {
    let tagged = ok(json!({ "n": 1 }))
        .header("etag", "W/\"x\"")
        .header("link", "</api/next>; rel=\"next\"");
    let server = ScriptedServer::new([
        on("GET", "/api/a", tagged),
        on("GET", "/api/a", ServerAnswer::text(304, "")),
        on("GET", "/api/a", ok(json!({ "n": 2 }))),
        on("GET", "/api/a", ok(json!({ "n": 3 }))),
    ]);
    let way = way(&server);
    let got: Vec<Value> = run(async {
        let mut got = Vec::new();
        for _ in 0..4 {
            got.push(way.http.get("/a").await.unwrap().body["n"].clone());
        }
        got
    });
    assert_eq!(got, [1, 1, 2, 3]);
    let tags: Vec<_> = server
        .requests()
        .iter()
        .map(|seen| seen.header("if-none-match").map(str::to_owned))
        .collect();
    let tag = Some("W/\"x\"".to_owned());
    assert_eq!(tags, [None, tag.clone(), tag, None]);
}

#[test]
fn the_token_goes_to_its_host_and_nowhere_else() {
    let elsewhere =
        ScriptedServer::new([on("GET", "/log?sig=1", ServerAnswer::text(200, "a log"))]);
    let moved =
        || ServerAnswer::text(302, "").header("location", format!("{}/log?sig=1", elsewhere.url()));
    let link = |to: &str| {
        ok(json!([])).header(
            "link",
            format!("<{to}>; rel=\"prev\", <{to}>; rel=\"next\""),
        )
    };
    let server = ScriptedServer::new([
        on("GET", "/api/log", moved()),
        on("GET", "/api/log", moved()),
        on("GET", "/api/a", link("https://evil.example/api/a?page=2")),
        on("GET", "/api/a", link("https://evil.example/a?page=2")),
    ]);
    let ambient = ambient::claim();
    let way = way(&server);
    // Its host is not granted.
    let fault = run(way.http.text("/log")).unwrap_err();
    assert_eq!(fault.kind, ErrorKind::Denied);
    assert!(
        fault.message.contains("add that host to `network`"),
        "{fault}"
    );
    let both = [server.endpoint(), elsewhere.endpoint()].map(|at| at.parse().unwrap());
    let token = Token {
        secret: Secret::new(&ambient, "acme", TOKEN.to_owned()),
        form: TokenForm::Basic {
            user: "me".to_owned(),
        },
    };
    let base = BaseUrl::parse(&format!("{}/api", server.url())).unwrap();
    let http = Http::new(&VENDOR, base, Net::to(&ambient, both), Some(token));
    assert_eq!(run(http.text("/log")).unwrap(), "a log");
    // Asked for here, whatever host a proxy's server names.
    let next = run(http.get("/a")).unwrap().next;
    assert_eq!(next.as_deref(), Some("/a?page=2"));
    let fault = run(http.get("/a")).unwrap_err();
    assert!(fault.message.contains("check `base_url`"), "{fault}");
    server.assert_done();
    elsewhere.assert_done();
    let seen = elsewhere.requests();
    assert!(
        seen.iter()
            .all(|seen| seen.header("authorization").is_none()),
        "{seen:?}"
    );
    let basic = server.requests()[1]
        .header("authorization")
        .map(str::to_owned);
    assert_eq!(
        basic.as_deref(),
        Some("Basic bWU6Y2FuYXJ5LXRva2VuLTdmM2E5MQ==")
    );
}

#[test]
fn errors_have_the_words_of_the_vendor_and_no_token() {
    let no = |status, body: &Value| ServerAnswer::json(status, body);
    let long = "x".repeat(100_000);
    let server = ScriptedServer::new([
        on(
            "GET",
            "/api/a?q=secret",
            no(404, &json!({ "message": "Not Found" })),
        ),
        on(
            "GET",
            "/api/a",
            no(401, &json!({ "message": "Bad credentials" })),
        ),
        on(
            "GET",
            "/api/a",
            no(
                422,
                &json!({ "message": "Validation Failed", "errors": [{ "message": "no such label\n" }] }),
            ),
        ),
        on("GET", "/api/a", no(400, &json!([1]))),
        on("GET", "/api/a", no(400, &json!({ "message": long }))),
        on("GET", "/api/a", ServerAnswer::text(200, "<html>")),
        on(
            "GET",
            "/api/a",
            ServerAnswer::text(302, "").header("location", "/b"),
        ),
    ]);
    let way = way(&server);
    let wanted = [
        (
            ErrorKind::FixInput,
            "Acme answered 404 to GET /a: Not Found; look again",
        ),
        (
            ErrorKind::Denied,
            "Acme answered 401 to GET /a: Bad credentials; the token is missing, wrong or expired: renew the secret",
        ),
        (
            ErrorKind::FixInput,
            "Acme answered 422 to GET /a: Validation Failed; no such label",
        ),
        (
            ErrorKind::FixInput,
            "Acme answered 400 to GET /a; change the arguments",
        ),
        (ErrorKind::FixInput, "Acme answered 400 to GET /a: xxxx"),
        (
            ErrorKind::Corrupt,
            "Acme answered with something that is no JSON",
        ),
        (ErrorKind::Unavailable, "which is not followed"),
    ];
    for (at, (kind, part)) in wanted.into_iter().enumerate() {
        let fault = run(way.http.get(if at == 0 { "/a?q=secret" } else { "/a" })).unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(part), "{fault}");
        assert!(
            fault.message.len() < 800 && !fault.message.contains(TOKEN),
            "{fault}"
        );
    }
    server.assert_done();
    let all = server.requests();
    let bearer = format!("Bearer {TOKEN}");
    assert!(
        all.iter()
            .all(|seen| seen.header("authorization") == Some(bearer.as_str()))
    );
}

#[test]
fn a_text_stays_one_part_of_a_path() {
    assert_eq!(encoded("a/../b c?#%é"), "a%2F..%2Fb%20c%3F%23%25%C3%A9");
    assert_eq!(encoded(".."), "%2E%2E");
    let path = with_query("/x?a=1", &[("q", "a&b"), ("none", ""), ("r", "c=d")]);
    assert_eq!(path, "/x?a=1&q=a%26b&r=c%3Dd");
}
