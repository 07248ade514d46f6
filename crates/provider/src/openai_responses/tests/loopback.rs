//! A model against a server: where it asks, with what, and what it hears.

use crate::endpoint::Endpoint;
use crate::openai_responses::{Responses, ResponsesWire};
use crate::test_server::{Reply, Server, ask, config, streamed};
use authority::{HostPort, Net};
use llm_worker::{Item, ModelEvent, Projection, StopReason, Surface};
use std::sync::Arc;

const CALLS: &str = include_str!("../../../tests/fixtures/responses_reasoning_calls.sse");
const LIMIT: &str = include_str!("../../../tests/fixtures/responses_error.sse");
const TEXT: &str = include_str!("../../../tests/fixtures/responses_text.sse");

#[tokio::test]
async fn an_error_inside_of_an_answer_is_tried_again() {
    let replies = [LIMIT, TEXT, CALLS].map(|body| Reply::Keep(streamed(body, 7)));
    let server = Server::start(replies).await;
    let port = server.port;
    let net = Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", port)]);
    let url = format!("http://127.0.0.1:{port}/v1/responses");
    let (config, waits) = config("openai/gpt-5.1", &url, net, "sk-very-secret-123");
    let model = Endpoint::new(config, ResponsesWire);
    let surface = Surface {
        generation: 1,
        model: "openai/gpt-5.1".to_owned(),
        system: "s".to_owned(),
        tools: Vec::new(),
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    };
    let mut projection = Projection::new(&surface, Arc::new(Responses));
    projection.push(&Item::user("go".to_owned()));
    let (ended, events) = ask(&model, &projection.body()).await;
    ended.unwrap();
    assert_eq!(waits.lock().unwrap().len(), 1, "{events:?}");
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::EndTurn)));
    let (ended, events) = ask(&model, &projection.body()).await;
    ended.unwrap();
    let sealed = |event: &&ModelEvent| matches!(event, ModelEvent::Sealed(_));
    assert_eq!(events.iter().filter(sealed).count(), 1);
    for seen in server.seen() {
        assert!(
            seen.head.starts_with("POST /v1/responses "),
            "{}",
            seen.head
        );
        let head = seen.head.to_lowercase();
        assert!(head.contains("authorization: bearer sk-very-secret-123"));
        assert_eq!(seen.body, projection.body().to_vec());
    }
}
