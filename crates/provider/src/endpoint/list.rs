//! Listing an endpoint's models, for people; never used by a run.

use super::{Transport, Wire, exposed, headers, refusal};
use crate::anthropic;
use crate::catalog::Api;
use crate::failure::{Failure, FailureCause};
use crate::{gemini, openai_chat, openai_responses};
use authority::Secret;
use http_client::{BaseUrl, HttpClient, HttpErrorKind, HttpRequest, Method};
use llm_worker::ErrorKind;
use serde::Deserialize;
use std::io;
use std::time::SystemTime;

/// The most names that are listed.
pub const MAX_MODELS: usize = 2000;

/// The list format of both APIs. Anthropic's has pages; only the first is read, which has the newest models.
#[derive(Deserialize)]
struct List {
    /// Gemini's key is `models`.
    #[serde(alias = "models")]
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: Option<String>,
    /// Of Gemini, which has no ids.
    name: Option<String>,
}

/// Why the models of an endpoint are not listed.
#[derive(Debug, PartialEq, Eq)]
pub struct ListError {
    pub kind: ErrorKind,
    /// What the system says, where no connection was made; `NotFound` if the name does not resolve.
    pub unconnected: Option<io::ErrorKind>,
    pub message: String,
}

/// The model names of an endpoint, sorted, at most [`MAX_MODELS`]. One attempt.
///
/// # Errors
/// No connection, an error status, or a response that is not a list of models.
pub async fn list_models(
    api: Api,
    base_url: &BaseUrl,
    transport: Transport,
    key: Option<&Secret>,
) -> Result<Vec<String>, ListError> {
    match api {
        Api::OpenAiChat(_) => list::<openai_chat::ChatWire>(base_url, transport, key).await,
        Api::OpenAiResponses => {
            list::<openai_responses::ResponsesWire>(base_url, transport, key).await
        }
        Api::Gemini => list::<gemini::GeminiWire>(base_url, transport, key).await,
        Api::Anthropic => list::<anthropic::MessagesWire>(base_url, transport, key).await,
    }
}

async fn list<W: Wire>(
    base_url: &BaseUrl,
    transport: Transport,
    key: Option<&Secret>,
) -> Result<Vec<String>, ListError> {
    let client = transport.client(super::base::<W>(base_url.clone()));
    listed::<W>(&client, key).await.map_err(|failure| {
        let failure = failure.without(exposed(key).unwrap_or_default());
        let unconnected = if let FailureCause::Http(HttpErrorKind::Connect(why)) = failure.cause {
            why
        } else {
            None
        };
        ListError {
            kind: failure.kind(),
            unconnected,
            message: failure.message,
        }
    })
}

async fn listed<W: Wire>(
    client: &HttpClient,
    key: Option<&Secret>,
) -> Result<Vec<String>, Failure> {
    let key = exposed(key)?;
    let headers = headers::<W>(client.base(), key)?;
    let request = HttpRequest {
        method: Method::GET,
        path: W::MODELS,
        headers,
        body: None,
        once: false,
    };
    let mut answer = client.send(&request).await?;
    if !answer.status.is_success() {
        return Err(refusal(client, answer, SystemTime::UNIX_EPOCH).await);
    }
    let mut body = Vec::new();
    while let Some(piece) = answer.next().await? {
        body.extend_from_slice(&piece);
    }
    let not_a_list = |error| {
        let what = format!(
            "{} did not answer with a list of models: {error}",
            W::MODELS
        );
        Failure::at(client.base(), FailureCause::WrongPlace, &what)
    };
    let list: List = serde_json::from_slice(&body).map_err(not_a_list)?;
    let mut names: Vec<String> = list
        .data
        .into_iter()
        .filter_map(|entry| entry.id.or(entry.name))
        .map(|name| name.strip_prefix("models/").unwrap_or(&name).to_owned())
        .take(MAX_MODELS)
        .collect();
    names.sort();
    Ok(names)
}
