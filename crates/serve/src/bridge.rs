//! The bridge for scripts: tools and calls as plain JSON over HTTP, judged and recorded as all calls are.

use crate::mcp::McpServer;
use crate::pod_calls::{Called, Fault, PodCalls};
use crate::published;
use hyper::StatusCode;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Whether the pod answers.
pub(crate) async fn health(pod: &PodCalls) -> (StatusCode, Value) {
    match pod.tools().await {
        Ok(tools) => {
            let health = json!({ "status": "ok", "pod": pod.name, "tools": tools.len() });
            (StatusCode::OK, health)
        }
        Err(fault) => refused(&fault),
    }
}

/// The tools, each with the schema of its arguments and whether it may change something.
pub(crate) async fn tools(pod: &PodCalls) -> (StatusCode, Value) {
    match pod.tools().await {
        Ok(tools) => {
            let tools = tools.iter().map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "schema": published::schema(&tool.schema),
                    "effect": tool.effect,
                })
            });
            (
                StatusCode::OK,
                json!({ "tools": tools.collect::<Vec<_>>() }),
            )
        }
        Err(fault) => refused(&fault),
    }
}

/// One call: the body has its arguments. Any result is an answer, with how the call ended in `status`.
pub(crate) async fn call(server: &McpServer, tool: &str, body: &[u8]) -> (StatusCode, Value) {
    let body = if body.trim_ascii().is_empty() {
        b"{}"
    } else {
        body
    };
    let arguments: Map<String, Value> = match serde_json::from_slice(body) {
        Ok(arguments) => arguments,
        Err(why) => {
            let why = format!("the arguments are no JSON object: {why}");
            return (StatusCode::BAD_REQUEST, json!({ "error": why }));
        }
    };
    let cancel = CancellationToken::new();
    let called = server.call(tool, arguments, None, &cancel, &|_| {}).await;
    match called {
        Ok(Called::Finished(finished)) => {
            let outcome = &finished.outcome;
            let mut told = Map::new();
            told.insert("call".to_owned(), json!(finished.call));
            told.insert("status".to_owned(), json!(outcome.status));
            told.insert("summary".to_owned(), json!(outcome.summary));
            let content = outcome.content.clone().unwrap_or_default();
            told.insert("content".to_owned(), json!(content));
            if let Some(data) = finished.data.and_then(|data| data.value) {
                told.insert("data".to_owned(), data);
            }
            (StatusCode::OK, Value::Object(told))
        }
        Ok(Called::Ended(why)) => {
            let told = json!({ "status": "cancelled", "summary": why, "content": "" });
            (StatusCode::OK, told)
        }
        Ok(Called::Parked { asked, .. }) => {
            let why = format!("{asked}; then make the same call again");
            let told = json!({ "status": "waiting", "summary": why, "content": "" });
            (StatusCode::ACCEPTED, told)
        }
        Err(fault) => refused(&fault),
    }
}

fn refused(fault: &Fault) -> (StatusCode, Value) {
    let status = match fault {
        Fault::NoTool(_) => StatusCode::NOT_FOUND,
        Fault::Refused(_) => StatusCode::FORBIDDEN,
        Fault::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, json!({ "error": fault.to_string() }))
}
