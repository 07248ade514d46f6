//! A model against a server: where it asks, with what, and what it hears.

use super::dialect::surface;
use crate::catalog::Api;
use crate::endpoint::{Endpoint, Transport, list_models};
use crate::gemini::{Gemini, GeminiWire};
use crate::test_server::{Reply, Server, ask, config, streamed};
use authority::{HostPort, Net};
use http_client::{BaseUrl, Timeouts};
use llm_worker::{Item, ModelEvent, Projection, StopReason};
use std::sync::Arc;

const CALLS: &str = include_str!("../../../tests/fixtures/genai_calls_with_ids.sse");
const OVERLOADED: &str = include_str!("../../../tests/fixtures/genai_error.sse");

const LIST: &str = r#"{"models":[{"name":"models/gemini-b"},{"name":"models/gemini-a"}]}"#;

#[tokio::test]
async fn an_error_inside_of_an_answer_is_tried_again() {
    let replies = [OVERLOADED, CALLS, LIST].map(|body| Reply::Close(streamed(body, 7)));
    let server = Server::start(replies).await;
    let port = server.port;
    let net = Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", port)]);
    let url = format!("http://127.0.0.1:{port}/v1beta/models");
    let (config, waits) = config(
        "google/gemini-3.5-flash",
        &url,
        net.clone(),
        "AIza-very-secret",
    );
    let model = Endpoint::new(config, GeminiWire);
    let mut projection = Projection::new(&surface(), Arc::new(Gemini));
    projection.push(&Item::user("go".to_owned()));
    let (ended, events) = ask(&model, &projection.body()).await;
    ended.unwrap();
    assert_eq!(waits.lock().unwrap().len(), 1, "{events:?}");
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::ToolUse)));
    let base = BaseUrl::parse(&url).unwrap();
    let transport = Transport::plain(net, Timeouts::USUAL);
    let listed = list_models(Api::Gemini, &base, transport, None).await;
    assert_eq!(listed.unwrap(), ["gemini-a", "gemini-b"]);
    let seen = server.seen();
    let line = "GET /v1beta/models?pageSize=1000 ";
    assert!(seen[2].head.starts_with(line), "{}", seen[2].head);
    for seen in &seen[..2] {
        let line = "POST /v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse ";
        assert!(seen.head.starts_with(line), "{}", seen.head);
        let head = seen.head.to_lowercase();
        assert!(head.contains("x-goog-api-key: aiza-very-secret"));
        assert_eq!(seen.body, projection.body().to_vec());
    }
}
