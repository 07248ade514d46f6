//! The whole model against a server: what it sends, what it makes of refusals, and when it tries again. Connections
//! and waits are the endpoint's, and tried with chat completions.

use crate::anthropic::{Messages, MessagesWire, endpoint};
use crate::catalog::Api;
use crate::endpoint::{Endpoint, EndpointConfig, Transport, list_models};
use crate::test_server::{self, Reply, Server, Waits, ask, begun, millis, status, streamed};
use authority::{HostPort, Net, Secret};
use http_client::{BaseUrl, Timeouts};
use llm_worker::{
    Body, ErrorKind, Item, Model, ModelError, ModelEvent, Projection, StopReason, Surface,
};
use std::sync::Arc;

const ANSWER: &str = include_str!("../../../tests/fixtures/anthropic_text.sse");
const OVERLOADED: &str = include_str!("../../../tests/fixtures/anthropic_overloaded.sse");
const KEY: &str = "sk-ant-very-secret-123";

struct Rig {
    model: Endpoint<MessagesWire>,
    waits: Waits,
}

fn config(port: u16) -> (EndpointConfig, Waits) {
    let net = Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", port)]);
    test_server::config(
        "anthropic/claude-x",
        &format!("http://127.0.0.1:{port}/v1/messages"),
        net,
        KEY,
    )
}

impl Rig {
    fn at(port: u16) -> Self {
        let (config, waits) = config(port);
        Self {
            model: endpoint(config),
            waits,
        }
    }

    async fn ask(&self) -> (Result<(), ModelError>, Vec<ModelEvent>) {
        ask(&self.model, &self.body()).await
    }

    fn body(&self) -> Body {
        let surface = Surface {
            generation: 1,
            model: self.model.name().to_owned(),
            system: "s".to_owned(),
            tools: Vec::new(),
            max_output: self.model.max_output(),
            effort: None,
            thinking: false,
            media: Vec::new(),
        };
        let mut projection = Projection::new(&surface, Arc::new(Messages));
        projection.push(&Item::user("hi".to_owned()));
        projection.body()
    }

    fn waits(&self) -> Vec<u128> {
        millis(&self.waits)
    }
}

#[tokio::test]
async fn a_request_has_its_headers_and_exact_bytes() {
    let server = Server::start([
        Reply::Keep(streamed(ANSWER, 7)),
        Reply::Keep(streamed(ANSWER, 900)),
    ])
    .await;
    let rig = Rig::at(server.port);
    for _twice in 0..2 {
        let (result, events) = rig.ask().await;
        assert_eq!(result, Ok(()));
        assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::EndTurn)));
    }
    let seen = server.seen();
    assert_eq!(server.connections(), [1, 1]);
    assert_eq!(seen[1].body, rig.body().to_vec());
    assert!(String::from_utf8_lossy(&seen[0].body).contains(r#""max_tokens":32000"#));
    let head = &seen[1].head;
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    for line in [
        format!("x-api-key: {KEY}"),
        "anthropic-version: 2023-06-01".to_owned(),
    ] {
        assert!(head.lines().any(|at| at == line), "{line} in {head}");
    }
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn what_passes_is_retried_until_it_has_passed() {
    let error = |line: &str, headers: &str, kind: &str| {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"busy"}},"request_id":"r"}}"#
        );
        Reply::Keep(status(line, headers, &body))
    };
    let half = ANSWER.split("event: message_delta").next().unwrap();
    let table: Vec<(&str, Vec<Reply>, Vec<u128>)> = vec![
        (
            "429",
            vec![error(
                "429 Too Many Requests",
                "retry-after: 7\r\n",
                "rate_limit_error",
            )],
            vec![7000],
        ),
        (
            "529",
            vec![
                error("529 ", "", "overloaded_error"),
                error("529 ", "", "overloaded_error"),
            ],
            vec![500, 1000],
        ),
        (
            "500",
            vec![error("500 Internal Server Error", "", "api_error")],
            vec![500],
        ),
        (
            "overloaded in mid-stream",
            vec![Reply::Keep(streamed(OVERLOADED, 64))],
            vec![500],
        ),
        (
            "cut before the stop reason",
            vec![Reply::Close(begun(half, 64))],
            vec![500],
        ),
        (
            "ended before the stop reason",
            vec![Reply::Keep(streamed(half, 64))],
            vec![500],
        ),
    ];
    // Wherever it is cut behind the stop reason. What comes to the body's own end there is whole, as for the vendor's SDK.
    let reason = ANSWER.find("event: message_delta").unwrap();
    let stop = ANSWER.find("event: message_stop").unwrap();
    let counted = ANSWER.replace(
        "event: message_stop",
        "event: ping\ndata: {\"type\": \"ping\"}\n\nevent: message_stop",
    );
    let boundaries = counted
        .match_indices("\n\n")
        .map(|(at, _)| at + 2)
        .filter(|at| *at > reason && *at < counted.len());
    let ends: Vec<usize> = boundaries.chain([reason + 40, stop + 40]).collect();
    assert!(ends.len() >= 4, "{ends:?}");
    let cuts = ends.iter().flat_map(|end| {
        let cut = &counted[..*end];
        let own_ends = [
            Reply::Keep(streamed(cut, 64)),
            Reply::Close(format!("HTTP/1.1 200 OK\r\n\r\n{cut}")),
        ];
        let waits = if *end == reason + 40 {
            vec![500]
        } else {
            vec![]
        };
        let own_ends = own_ends.map(|reply| {
            (
                "the body's own end behind the stop reason",
                vec![reply],
                waits.clone(),
            )
        });
        [(
            "cut behind the stop reason",
            vec![Reply::Close(begun(cut, 64))],
            vec![500],
        )]
        .into_iter()
        .chain(own_ends)
    });
    for (case, mut replies, waits) in table.into_iter().chain(cuts) {
        let retries = waits.len();
        replies.push(Reply::Keep(streamed(ANSWER, 64)));
        let server = Server::start(replies).await;
        let rig = Rig::at(server.port);
        let (result, events) = rig.ask().await;
        assert_eq!(result, Ok(()), "{case}");
        let retried = events
            .iter()
            .filter(|event| matches!(event, ModelEvent::Retrying { .. }))
            .count();
        assert_eq!((retried, rig.waits()), (retries, waits), "{case}");
    }
}

#[tokio::test]
async fn refusals_are_told_apart_and_say_what_to_do() {
    let table = [
        (
            "400 Bad Request",
            "invalid_request_error",
            "bad tool",
            ErrorKind::FixInput,
            "supports tools",
        ),
        (
            "400 Bad Request",
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ErrorKind::Exhausted,
            "larger context",
        ),
        (
            "400 Bad Request",
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
            ErrorKind::Exhausted,
            "larger context",
        ),
        (
            "400 Bad Request",
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
            ErrorKind::Exhausted,
            "credit",
        ),
        (
            "401 Unauthorized",
            "authentication_error",
            "invalid x-api-key",
            ErrorKind::Denied,
            "TEST_API_KEY",
        ),
        (
            "402 Payment Required",
            "billing_error",
            "pay",
            ErrorKind::Exhausted,
            "credit",
        ),
        (
            "404 Not Found",
            "not_found_error",
            "model: claude-x",
            ErrorKind::FixInput,
            "claude-x",
        ),
        (
            "413 Payload Too Large",
            "request_too_large",
            "32 MB",
            ErrorKind::Exhausted,
            "larger context",
        ),
    ];
    for (line, kind, message, expected, help) in table {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message} {KEY}"}}}}"#
        );
        let server = Server::start([Reply::Keep(status(line, "", &body))]).await;
        let (result, _) = Rig::at(server.port).ask().await;
        let error = result.unwrap_err();
        assert_eq!(error.kind, expected, "{message}: {error:?}");
        assert!(error.message.contains(message), "{}", error.message);
        assert!(
            error.help.as_ref().is_some_and(|text| text.contains(help)),
            "{message}: {:?}",
            error.help
        );
        assert!(!format!("{error:?}").contains("secret-123"), "{error:?}");
        assert_eq!(server.seen().len(), 1, "{message} is not retried");
    }
    let fatal = format!(
        "event: error\ndata: {}\n\n",
        r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#
    );
    let server = Server::start([Reply::Keep(streamed(&fatal, 64))]).await;
    let (result, _) = Rig::at(server.port).ask().await;
    assert_eq!(
        result.unwrap_err().kind,
        ErrorKind::Denied,
        "in mid-stream it is the same"
    );
}

#[tokio::test]
async fn models_are_listed_with_the_same_headers() {
    let list = r#"{"data":[{"type":"model","id":"claude-b"},{"type":"model","id":"claude-a"}],"has_more":false}"#;
    let server = Server::start([Reply::Close(status("200 OK", "", list))]).await;
    let base = BaseUrl::parse(&format!("http://127.0.0.1:{}/v1", server.port)).unwrap();
    let net = Net::to(&ambient::claim(), [base.host_port()]);
    let key = Secret::new(&ambient::claim(), "K", KEY.to_owned());
    let transport = Transport::plain(net, Timeouts::USUAL);
    let names = list_models(Api::Anthropic, &base, transport, Some(&key)).await;
    assert_eq!(
        names,
        Ok(vec!["claude-a".to_owned(), "claude-b".to_owned()])
    );
    let head = &server.seen()[0].head;
    assert!(
        head.starts_with("GET /v1/models HTTP/1.1\r\n")
            && head.contains(&format!("x-api-key: {KEY}")),
        "{head}"
    );
}

#[test]
fn a_limit_in_the_configuration_is_the_limit() {
    let (usual, _) = config(1);
    assert_eq!(endpoint(usual).max_output(), Some(32_000));
    let (small, _) = config(1);
    assert_eq!(
        endpoint(EndpointConfig {
            max_output: Some(100),
            ..small
        })
        .max_output(),
        Some(100)
    );
}
