//! The whole model against a server: connections, waits, retries, cuts.

use crate::catalog::Api;
use crate::endpoint::{Endpoint, Transport, list_models};
use crate::openai_chat::{Chat, ChatWire, Flavour};
use crate::test_server::{Reply, Server, Waits, ask, begun, config, millis, status, streamed};
use authority::{HostPort, Net};
use http_client::{BaseUrl, HttpClient, Timeouts};
use llm_worker::{Body, ErrorKind, Item, ModelError, ModelEvent, Projection, StopReason, Surface};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const ANSWER: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n"
);
const HALF: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
const KEY: &str = "sk-very-secret-123";

pub(super) struct Rig {
    pub(super) model: Endpoint<ChatWire>,
    pub(super) net: Net,
    waits: Waits,
}

impl Rig {
    pub(super) fn at(port: u16) -> Self {
        Self::with(&format!("http://127.0.0.1:{port}/v1"), Some(port))
    }

    fn with(url: &str, reach: Option<u16>) -> Self {
        let net = Net::to(
            &ambient::claim(),
            reach.map(|port| HostPort::new("127.0.0.1", port)),
        );
        let (config, waits) = config("test/some-model", url, net.clone(), KEY);
        Self {
            model: Endpoint::new(config, ChatWire(Flavour::Compatible)),
            net,
            waits,
        }
    }

    fn impatient(port: u16) -> Self {
        let short = Duration::from_millis(60);
        let long = Duration::from_secs(20);
        let timeouts = Timeouts {
            connect: long,
            first_byte: short,
            between_bytes: short,
            ..Timeouts::USUAL
        };
        let mut rig = Self::at(port);
        let base = rig.model.client.base().clone();
        rig.model.client = HttpClient::new(base, rig.net.clone(), timeouts);
        rig
    }

    pub(super) async fn ask(&self) -> (Result<(), ModelError>, Vec<ModelEvent>) {
        self.ask_with(&body(1)).await
    }

    async fn ask_with(&self, body: &Body) -> (Result<(), ModelError>, Vec<ModelEvent>) {
        ask(&self.model, body).await
    }

    fn waits(&self) -> Vec<u128> {
        millis(&self.waits)
    }
}

pub(super) fn body(kilobytes: usize) -> Body {
    let surface = Surface {
        generation: 1,
        model: "test/some-model".to_owned(),
        system: "s".to_owned(),
        tools: Vec::new(),
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    };
    let mut projection = Projection::new(&surface, Arc::new(Chat(Flavour::Compatible)));
    projection.push(&Item::user("0123456789abcdef".repeat(64 * kilobytes)));
    projection.body()
}

fn good() -> Reply {
    Reply::Keep(streamed(ANSWER, 7))
}

/// The text after the last retry, how often it was retried, and the stop.
fn heard(events: &[ModelEvent]) -> (String, usize, Option<&StopReason>) {
    let mut text = String::new();
    let mut retries = 0;
    let mut stop = None;
    for event in events {
        assert!(stop.is_none(), "nothing follows the stop: {event:?}");
        match event {
            ModelEvent::Text(more) => text.push_str(more),
            ModelEvent::Retrying { attempt, .. } => {
                text.clear();
                retries += 1;
                assert_eq!(*attempt as usize, retries);
            }
            ModelEvent::Stop(reason) => stop = Some(reason),
            ModelEvent::Usage(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::Shortfall(_)
            | ModelEvent::Notice(_)
            | ModelEvent::CallStarted { .. }
            | ModelEvent::CallArguments { .. } => {}
        }
    }
    (text, retries, stop)
}

fn assert_hello(
    (result, events): (Result<(), ModelError>, Vec<ModelEvent>),
    retries: usize,
    case: &str,
) {
    assert_eq!(result, Ok(()), "{case}");
    assert_eq!(
        heard(&events),
        ("Hello".to_owned(), retries, Some(&StopReason::EndTurn)),
        "{case}"
    );
}

#[tokio::test]
async fn two_requests_share_a_connection_and_carry_the_exact_bytes() {
    let server = Server::start([good(), good()]).await;
    let rig = Rig::at(server.port);
    let small = body(1);
    let large = body(300);
    assert!(large.chunks().count() > 5, "more than one chunk travels");
    assert_hello(rig.ask_with(&small).await, 0, "first");
    assert_hello(rig.ask_with(&large).await, 0, "second");
    let seen = server.seen();
    assert_eq!(server.connections(), [1, 1]);
    assert_eq!(
        (&seen[0].body, &seen[1].body),
        (&small.to_vec(), &large.to_vec())
    );
    let head = &seen[1].head;
    assert!(
        head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{head}"
    );
    for line in [
        format!("host: 127.0.0.1:{}", server.port),
        format!("authorization: Bearer {KEY}"),
        format!("content-length: {}", large.len),
    ] {
        assert!(head.lines().any(|at| at == line), "{line} in {head}");
    }
    assert!(
        head.contains("accept-encoding: identity\r\n") && !head.contains("transfer-encoding"),
        "{head}"
    );
}

#[tokio::test]
async fn a_connection_closed_meanwhile_is_replaced_without_a_retry() {
    let server = Server::start([
        Reply::Close(streamed(ANSWER, 64)),
        good(),
        Reply::Close(String::new()),
        good(),
    ])
    .await;
    let rig = Rig::at(server.port);
    assert_hello(rig.ask().await, 0, "first");
    assert_hello(rig.ask().await, 0, "the server closed after its answer");
    assert_hello(
        rig.ask().await,
        0,
        "the server closes instead of answering on the kept connection",
    );
    assert_eq!(server.connections(), [1, 2, 2, 3]);
    assert!(rig.waits().is_empty());
}

#[tokio::test]
async fn a_connection_unused_for_too_long_is_not_trusted() {
    let server = Server::start([good(), good()]).await;
    let mut rig = Rig::at(server.port);
    let long = Duration::from_secs(20);
    let connect = long;
    let first_byte = long;
    let between_bytes = long;
    let timeouts = Timeouts {
        connect,
        first_byte,
        between_bytes,
        idle: Duration::ZERO,
        ..Timeouts::USUAL
    };
    let base = rig.model.client.base().clone();
    rig.model.client = HttpClient::new(base, rig.net.clone(), timeouts);
    assert_hello(rig.ask().await, 0, "first");
    assert_hello(rig.ask().await, 0, "second");
    assert_eq!(server.connections(), [1, 2]);
}

#[tokio::test]
async fn what_passes_is_retried_until_it_has_passed() {
    let error = |line: &str, headers: &str| {
        Reply::Keep(status(line, headers, r#"{"error":{"message":"busy"}}"#))
    };
    let cut = || Reply::Close(begun(HALF, 16));
    let clean_end = || Reply::Keep(streamed(HALF, 16));
    let malformed = || Reply::Keep(streamed(&format!("{HALF}data: {{oops\n\n"), 16));
    let overloaded = || {
        Reply::Keep(streamed(
            &format!("{HALF}data: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n"),
            16,
        ))
    };
    let table: Vec<(&str, Vec<Reply>, Vec<u128>)> = vec![
        (
            "429 with seconds",
            vec![error("429 Too Many Requests", "retry-after: 7\r\n")],
            vec![7000],
        ),
        (
            "429 with a date",
            vec![error(
                "429 Too Many Requests",
                "Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n",
            )],
            vec![30_000],
        ),
        (
            "500 twice",
            vec![
                error("500 Internal Server Error", ""),
                error("503 Service Unavailable", ""),
            ],
            vec![500, 1000],
        ),
        ("529", vec![error("529 Overloaded", "")], vec![500]),
        ("cut in the middle", vec![cut()], vec![500]),
        (
            "cut, cut, cut, cut",
            vec![cut(), cut(), cut(), cut()],
            vec![500, 1000, 2000, 4000],
        ),
        (
            "a clean end without a finish reason",
            vec![clean_end()],
            vec![500],
        ),
        (
            "closed before any answer",
            vec![Reply::Close(String::new())],
            vec![500],
        ),
        (
            "not HTTP",
            vec![Reply::Close("SSH-2.0-nope\r\n".to_owned())],
            vec![500],
        ),
        ("a malformed chunk", vec![malformed()], vec![500]),
        ("an error in mid-stream", vec![overloaded()], vec![500]),
    ];
    for (case, mut replies, waits) in table {
        let retries = replies.len();
        replies.push(good());
        let server = Server::start(replies).await;
        let rig = Rig::at(server.port);
        assert_hello(rig.ask().await, retries, case);
        assert_eq!(rig.waits(), waits, "{case}");
        assert_eq!(server.seen().len(), retries + 1, "{case}");
    }
}

#[tokio::test]
async fn silence_is_timed_out_and_retried() {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let table = [
        ("no head", String::new(), "no answer"),
        ("a head and nothing more", head.to_owned(), "no first byte"),
        ("half an answer", begun(HALF, 16), "no further byte"),
    ];
    for (case, sent, why) in table {
        let server = Server::start([Reply::Hang(sent), good()]).await;
        let (result, events) = Rig::impatient(server.port).ask().await;
        let said = events.iter().find_map(|event| match event {
            ModelEvent::Retrying { why, .. } => Some(why.clone()),
            _other => None,
        });
        assert!(
            said.as_ref().is_some_and(|said| said.contains(why)),
            "{case}: {said:?}"
        );
        assert_hello((result, events), 1, case);
        assert_eq!(
            server.connections(),
            [1, 2],
            "{case}: a silent connection is not used again"
        );
    }
}

/// Cuts between the finish reason and `[DONE]`, at every event. A broken body may have lost its token count, so it is asked
/// again. Where the end of the connection is the body's own end, the vendors' SDKs read a whole answer; it was asked again.
#[tokio::test]
async fn what_breaks_between_the_finish_reason_and_the_end_is_a_cut_if_the_body_has_an_end() {
    let fixture = include_str!("../../../tests/fixtures/openai_counts_last.sse");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let mut cuts = 0;
    for text in [ANSWER, &fixture.replace("\"ok\"", "\"Hello\"")] {
        let finished = text.find("\"finish_reason\":\"stop\"").unwrap();
        let done = text.find("data: [DONE]").unwrap();
        let ends = text
            .match_indices("\n\n")
            .map(|(at, _)| at + 2)
            .filter(|at| (finished..=done).contains(at));
        for end in ends.chain([finished + 20, done + 8]) {
            let cut = &text[..end];
            let told_by_nothing = Reply::Close(format!("{head}{cut}"));
            let hangs = Reply::Hang(begun(cut, 16));
            let is_early = usize::from(end == finished + 20);
            for (reply, retries) in [
                (Reply::Close(begun(cut, 16)), 1),
                (told_by_nothing, is_early),
                (hangs, 1),
            ] {
                let server = Server::start([reply, good()]).await;
                let (result, events) = Rig::impatient(server.port).ask().await;
                assert_hello((result, events), retries, cut);
                cuts += 1;
            }
        }
    }
    assert!(cuts >= 18, "{cuts}");
}

/// Nothing can follow: `[DONE]` was said, or the body came to its proper end and the server says no such thing.
#[tokio::test]
async fn what_breaks_after_the_end_breaks_nothing() {
    let unended = ANSWER.replace("data: [DONE]\n\n", "");
    let length = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{unended}",
        unended.len()
    );
    let open = format!("HTTP/1.1 200 OK\r\n\r\n{ANSWER}");
    for reply in [
        Reply::Close(begun(ANSWER, 16)),
        Reply::Hang(begun(ANSWER, 16)),
        Reply::Close(open),
    ] {
        let server = Server::start([reply, good()]).await;
        let rig = Rig::impatient(server.port);
        assert_hello(rig.ask().await, 0, "the answer was whole");
        assert_hello(rig.ask().await, 0, "the next request");
        assert_eq!(server.connections(), [1, 2], "on a connection of its own");
    }
    for reply in [Reply::Keep(streamed(&unended, 16)), Reply::Keep(length)] {
        let server = Server::start([reply]).await;
        assert_hello(
            Rig::at(server.port).ask().await,
            0,
            "a server without [DONE]",
        );
    }
}

#[tokio::test]
async fn parallel_calls_arrive_in_order() {
    let fixture = include_str!("../../../tests/fixtures/openai_parallel.sse");
    let server = Server::start([Reply::Keep(streamed(fixture, 11))]).await;
    let (result, events) = Rig::at(server.port).ask().await;
    assert_eq!(result, Ok(()));
    let names: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::CallStarted { index, name } => Some((*index, name.as_str())),
            _other => None,
        })
        .collect();
    assert_eq!(names, [(0, "Read"), (1, "Grep")]);
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::ToolUse)));
}

#[tokio::test]
async fn a_whole_json_answer_and_an_early_hint_are_understood() {
    let json = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let whole = status("200 OK", "content-type: application/json\r\n", json);
    let server = Server::start([
        Reply::Keep(format!("HTTP/1.1 102 Processing\r\n\r\n{whole}")),
        Reply::Keep(whole),
    ])
    .await;
    let rig = Rig::at(server.port);
    assert_hello(rig.ask().await, 0, "after a 1xx");
    assert_hello(rig.ask().await, 0, "kept alive");
    assert_eq!(server.connections(), [1, 1]);
}

#[tokio::test]
async fn dropping_the_request_ends_it_and_nobody_listening_cancels_it() {
    let server = Server::start([Reply::Hang(begun(HALF, 16)), good(), good()]).await;
    let rig = Rig::at(server.port);
    let (sender, mut receiver) = mpsc::channel(8);
    let body = body(1);
    tokio::select! {
        _ended = rig.model.answer(&body, &sender) => panic!("the server hangs"),
        event = receiver.recv() => assert_eq!(event, Some(ModelEvent::Text("Hel".to_owned()))),
    }
    drop(receiver);
    let result = rig.model.answer(&body, &sender).await;
    assert_eq!(
        result.map_err(|error| error.kind),
        Err(ErrorKind::Cancelled)
    );
    assert_hello(rig.ask().await, 0, "the next request is not disturbed");
    assert_eq!(server.connections(), [1, 2, 3]);
}

#[tokio::test]
async fn a_shut_door_ends_a_request_under_way() {
    let server = Server::start([Reply::Hang(begun(HALF, 16))]).await;
    let rig = Rig::at(server.port);
    let (sender, mut receiver) = mpsc::channel(8);
    let body = body(1);
    let revoke = async {
        receiver.recv().await.unwrap();
        rig.net.door().shut().await;
    };
    let (result, ()) = tokio::join!(rig.model.answer(&body, &sender), revoke);
    assert_eq!(result.map_err(|error| error.kind), Err(ErrorKind::Denied));
    assert!(
        receiver.try_recv().is_err(),
        "ended at once, not by a time-out and a retry"
    );
    let (again, _) = rig.ask().await;
    assert_eq!(again.map_err(|error| error.kind), Err(ErrorKind::Denied));
}

#[tokio::test]
async fn no_connection_at_all() {
    let unused = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let rig = Rig::at(port);
    let (result, events) = rig.ask().await;
    let error = result.unwrap_err();
    assert_eq!((error.kind, heard(&events).1), (ErrorKind::Unavailable, 4));
    let help = error.help.unwrap();
    assert!(
        help.contains("the provider is running") && help.contains(&port.to_string()),
        "{help}"
    );
    assert!(error.message.contains("5 attempts"), "{}", error.message);

    let outside = Rig::with(&format!("http://127.0.0.1:{port}/v1"), None);
    let (result, events) = outside.ask().await;
    assert_eq!(
        (result.unwrap_err().kind, events.len()),
        (ErrorKind::Denied, 0),
        "a host outside the grant"
    );
}

/// A machine without root certificates ends here as well, with another message.
#[tokio::test]
async fn tls_to_a_server_that_has_none_fails_once() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let rig = Rig::with(&format!("https://127.0.0.1:{port}/v1"), Some(port));
    let plain = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        std::future::pending::<()>().await;
    };
    let (result, events) = tokio::select! {
        answer = rig.ask() => answer,
        () = plain => unreachable!(),
    };
    let error = result.unwrap_err();
    assert_eq!((error.kind, events.len()), (ErrorKind::Unavailable, 0));
    assert!(
        error.message.contains("TLS") || error.message.contains("root certificates"),
        "{}",
        error.message
    );
    assert!(error.help.unwrap().contains("http://"));
}

#[tokio::test]
async fn models_are_listed() {
    let list = r#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"}]}"#;
    let replies = [
        status("200 OK", "", list),
        status("200 OK", "", "[]"),
        status("404 Not Found", "", ""),
    ];
    let server = Server::start(replies.map(Reply::Close)).await;
    let base = BaseUrl::parse(&format!("http://127.0.0.1:{}/v1", server.port)).unwrap();
    let net = Net::to(&ambient::claim(), [base.host_port()]);
    let list = async || {
        list_models(
            Api::OpenAiChat(Flavour::Compatible),
            &base,
            Transport::plain(net.clone(), Timeouts::USUAL),
            None,
        )
        .await
        .map_err(|error| error.kind)
    };
    assert_eq!(list().await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(list().await, Err(ErrorKind::FixInput));
    assert_eq!(list().await, Err(ErrorKind::FixInput));
    assert!(
        server.seen()[0]
            .head
            .starts_with("GET /v1/models HTTP/1.1\r\n")
    );
}

/// A second copy of a request that the endpoint has read may be paid and run twice.
#[tokio::test]
async fn a_request_that_got_bytes_for_an_answer_is_not_sent_again_by_the_connection() {
    let server = Server::start([
        good(),
        Reply::Close("HTTP/1.1 nonsense\r\n\r\n".to_owned()),
        good(),
    ])
    .await;
    let rig = Rig::at(server.port);
    assert_hello(rig.ask().await, 0, "first");
    assert_hello(
        rig.ask().await,
        1,
        "what came is no answer: the policy for retries decides",
    );
    let half = Server::start([good(), Reply::Close("HTTP/1.1 20".to_owned()), good()]).await;
    let rig = Rig::at(half.port);
    assert_hello(rig.ask().await, 0, "first");
    assert_hello(rig.ask().await, 1, "half a head");
    for server in [server, half] {
        assert_eq!(server.connections(), [1, 1, 2]);
    }
}

#[tokio::test]
async fn a_kept_connection_asks_the_door() {
    let server = Server::start([good(), good(), good()]).await;
    let rig = Rig::at(server.port);
    assert_hello(rig.ask().await, 0, "first");
    let before = rig.net.door().uses();
    assert_hello(rig.ask().await, 0, "second");
    assert_eq!(
        rig.net.door().uses(),
        before + 1,
        "each request is a use of the grant"
    );
    assert_eq!(server.connections(), [1, 1]);
    // A drain refuses what is new, although nothing is shut yet.
    let drained = rig
        .net
        .door()
        .drain(tokio::time::Instant::now() + Duration::from_secs(20));
    let (again, _) = rig.ask().await;
    assert_eq!(again.map_err(|error| error.kind), Err(ErrorKind::Denied));
    drop(drained);
    assert_eq!(server.seen().len(), 2);
}

/// A server that sends a byte now and then keeps nobody for ever.
#[tokio::test]
async fn an_exchange_is_bounded_as_a_whole() {
    let dripping = || async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap();
        (listener.local_addr().unwrap().port(), listener)
    };
    let short = Duration::from_millis(120);
    for (head, kind) in [
        ("200 OK", "the answer is not whole"),
        ("500 Internal Server Error", "HTTP 500"),
    ] {
        let (port, listener) = dripping().await;
        let mut rig = Rig::at(port);
        let long = Duration::from_secs(600);
        let connect = long;
        let first_byte = long;
        let between_bytes = long;
        let (whole, error_body) = if head.starts_with('2') {
            (short, long)
        } else {
            (long, short)
        };
        let timeouts = Timeouts {
            connect,
            first_byte,
            between_bytes,
            whole,
            error_body,
            ..Timeouts::USUAL
        };
        let base = rig.model.client.base().clone();
        rig.model.client = HttpClient::new(base, rig.net.clone(), timeouts);
        let drip = async {
            use tokio::io::AsyncWriteExt;
            let (mut stream, _) = listener.accept().await.unwrap();
            let begin = format!(
                "HTTP/1.1 {head}\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n"
            );
            stream.write_all(begin.as_bytes()).await.unwrap();
            while stream.write_all(b":").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::future::pending::<()>().await;
        };
        let body = body(1);
        let (sender, mut receiver) = mpsc::channel(8);
        tokio::select! {
            _ended = rig.model.answer(&body, &sender) => panic!("it is retried"),
            () = drip => panic!("it drips"),
            () = tokio::time::sleep(Duration::from_secs(15)) => panic!("{head}: nothing ends it"),
            event = receiver.recv() => {
                let Some(ModelEvent::Retrying { why, .. }) = event else { panic!("{event:?}") };
                assert!(why.contains(kind), "{why}");
            }
        }
    }
}
