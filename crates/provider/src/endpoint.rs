//! A model of one endpoint: the code shared by all wire formats. Request bodies are sent as the projection encoded
//! them; temporary failures are retried; keys never appear in errors.

mod list;
mod transport;

pub use list::{ListError, MAX_MODELS, list_models};
pub use transport::Transport;

use crate::decode::{Decode, DecodeError};
use crate::failure::{Failure, FailureCause, HelpTerms, KeyStatus, RequestContext, RetryAdvice};
use crate::retry::{Attempts, Pacing, RetryDecision, RetryPolicy, advice};
use crate::vendor_error::VendorError;
use async_trait::async_trait;
use authority::Secret;
use http_client::{
    BaseUrl, Bytes, HeaderMap, HeaderValue, HttpClient, HttpErrorKind, HttpRequest, HttpResponse,
    Method, Upload, header,
};
use llm_worker::model::EventSink;
use llm_worker::projection::Dialect;
use llm_worker::{
    Body, ErrorKind, MediaType, Model, ModelError, ModelEvent, ModelRequest, Price, StopReason,
    Thinking,
};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The configuration of one model.
pub struct EndpointConfig {
    /// `provider/name`; requests name the model by the part after the first `/`.
    pub name: String,
    /// The URL of the API; the path of its chat endpoint at the end is dropped.
    pub base_url: BaseUrl,
    pub transport: Transport,
    /// Its id is shown in errors.
    pub key: Option<Secret>,
    /// The name of the variable that would hold a key, for the error about a missing key.
    pub key_source: Option<String>,
    pub retry: RetryPolicy,
    pub pacing: Pacing,
    pub max_output: Option<u32>,
    pub thinking: Thinking,
    /// The types of files that the model reads.
    pub media: Vec<MediaType>,
    pub price: Option<Price>,
    pub context_window: Option<u64>,
    pub terms: HelpTerms,
}

const QUIET: Duration = Duration::from_secs(20);

/// The parts that differ between wire formats.
pub(crate) trait Wire: Send + Sync + 'static {
    /// What all paths for requests begin with, below the base URL.
    const PATH: &'static str;
    /// Where requests to this model go, below the base URL.
    fn path(_model: &str) -> String {
        Self::PATH.to_owned()
    }
    /// The path of the list of models, below the base URL.
    const MODELS: &'static str;
    /// The prefix of both paths, with which the base URL may end.
    const VERSION: &'static str;
    /// Decodes an answer.
    type Decoder: Decode;
    /// The headers of every request; `None` if the key cannot be a header value.
    fn headers(key: Option<&str>) -> Option<HeaderMap>;
    /// The dialect of the requests.
    fn dialect(&self) -> Arc<dyn Dialect>;
}

/// A base URL as people write it: the chat endpoint's path and the API version are dropped.
fn base<W: Wire>(url: BaseUrl) -> BaseUrl {
    url.without(W::PATH).without(W::VERSION)
}

/// A header value that debug output hides.
pub(crate) fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A model's endpoint and the connection to it.
pub(crate) struct Endpoint<W> {
    name: String,
    pub(crate) client: HttpClient,
    max_output: Option<u32>,
    thinking: Thinking,
    media: Vec<MediaType>,
    price: Option<Price>,
    context_window: Option<u64>,
    url: String,
    key: Option<Secret>,
    key_source: Option<String>,
    retry: RetryPolicy,
    pacing: Pacing,
    /// After so long without a byte people are told, once for an attempt.
    pub(crate) quiet: Duration,
    terms: HelpTerms,
    wire: W,
}

#[async_trait]
impl<W: Wire> Model for Endpoint<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        self.wire.dialect()
    }

    fn max_output(&self) -> Option<u32> {
        self.max_output
    }

    fn thinking(&self) -> Thinking {
        self.thinking
    }

    fn media(&self) -> &[MediaType] {
        &self.media
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn context_window(&self) -> Option<u64> {
        self.context_window
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        self.answer(request.body(), &events).await
    }
}

impl<W: Wire> Endpoint<W> {
    /// Nothing is connected before the first request.
    pub(crate) fn new(config: EndpointConfig, wire: W) -> Self {
        let EndpointConfig {
            name,
            base_url,
            transport,
            key,
            key_source,
            retry,
            pacing,
            ..
        } = config;
        let EndpointConfig {
            max_output,
            thinking,
            media,
            price,
            context_window,
            terms,
            ..
        } = config;
        let base_url = base::<W>(base_url);
        let url = base_url.to_string();
        let client = transport.client(base_url);
        let quiet = QUIET;
        Self {
            name,
            client,
            max_output,
            thinking,
            media,
            price,
            context_window,
            url,
            key,
            key_source,
            retry,
            pacing,
            quiet,
            terms,
            wire,
        }
    }

    /// Sends until an answer is complete, the retries are used up, or the grant is revoked.
    pub(crate) async fn answer(&self, body: &Body, events: &EventSink) -> Result<(), ModelError> {
        tokio::select! {
            biased;
            () = self.client.net().door().closed() => {
                let why = format!("{}: the network grant was revoked", self.url);
                Err(Failure::new(HttpErrorKind::Denied, why).into_error(1, &self.place()))
            }
            done = self.attempts(body, events) => done,
        }
    }

    async fn attempts(&self, body: &Body, events: &EventSink) -> Result<(), ModelError> {
        let mut failed = Attempts::default();
        let mut failed_at = None;
        let mut was_empty = false;
        loop {
            let may_be_empty = was_empty || self.retry.is_last(failed);
            let mut heard = Heard {
                events,
                began: false,
                text: false,
                calls: false,
                told: false,
            };
            let failure = match self.attempt(body, &mut heard, may_be_empty).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure.without(exposed(self.key.as_ref()).unwrap_or_default()),
            };
            failed.attempt += 1;
            failed.begun += u32::from(heard.began);
            failed.elapsed = failed_at.get_or_insert_with(Instant::now).elapsed();
            let attempt = failed.attempt;
            let is_empty = failure.cause == FailureCause::Empty;
            let delay = match self.retry.after(failed, &failure, (self.pacing.jitter)()) {
                RetryDecision::Again(delay) if !(is_empty && was_empty) => delay,
                RetryDecision::Again(_) | RetryDecision::GiveUp => {
                    return Err(failure.into_error(attempt, &self.place()));
                }
                RetryDecision::TooLong(asked) => return Err(self.too_long_a_wait(&failure, asked)),
            };
            was_empty |= is_empty;
            let sent = events
                .send(ModelEvent::Retrying {
                    attempt,
                    delay,
                    why: failure.message,
                })
                .await;
            sent.map_err(|_| receiver_gone().into_error(attempt, &self.place()))?;
            (self.pacing.sleep)(delay).await;
        }
    }

    /// Sends once. `may_be_empty`: an answer without text and calls is an answer.
    async fn attempt(
        &self,
        body: &Body,
        heard: &mut Heard<'_>,
        may_be_empty: bool,
    ) -> Result<(), Failure> {
        let key = exposed(self.key.as_ref())?;
        let mut headers = headers::<W>(self.client.base(), key)?;
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let upload = Upload::new(body.chunks().cloned().map(Bytes::from_owner));
        let request = HttpRequest {
            method: Method::POST,
            path: &W::path(&self.name),
            headers,
            body: Some(upload),
            once: false,
        };
        let mut answer = self.watched(heard, self.client.send(&request)).await?;
        if !answer.status.is_success() {
            return Err(refusal(&self.client, answer, (self.pacing.now)()).await);
        }
        let advice = advice(|name| answer.header(name), (self.pacing.now)());
        let mut page = answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"));
        let mut decoder = W::Decoder::default();
        let mut any = false;
        let mut cut = false;
        while !decoder.done() && !page && !cut {
            match self.watched(heard, answer.next()).await? {
                Some(piece) => {
                    page = !any && piece.trim_ascii_start().starts_with(b"<");
                    any = true;
                    let mut out = Vec::new();
                    let read = decoder.push(&piece, &mut out);
                    heard.tell(out).await?;
                    read.map_err(|error| self.undecoded(error, advice, heard.began))?;
                }
                None if answer.shows_its_end() || decoder.one_document() => break,
                None => cut = true,
            }
        }
        if page {
            let what = "answered with an HTML page instead of a model's answer";
            return Err(Failure::at(
                self.client.base(),
                FailureCause::WrongPlace,
                what,
            ));
        }
        let mut out = Vec::new();
        let ended = match decoder.finish(&mut out) {
            Err(DecodeError::Cut) | Ok(()) if !any => {
                let what = format!("answered HTTP {} with an empty body", answer.status);
                return Err(Failure::at(self.client.base(), HttpErrorKind::Cut, &what));
            }
            Err(error @ (DecodeError::Vendor(_) | DecodeError::OtherApi(..))) => Err(error),
            // After a reason, the connection's end is the answer's: nothing else of it is missing.
            Err(_) if cut => {
                let what = "the connection closed before the end of the answer";
                return Err(Failure::at(self.client.base(), HttpErrorKind::Cut, what));
            }
            ended => ended,
        };
        if ended.is_ok() {
            heard
                .check(&out, may_be_empty)
                .map_err(|what| Failure::at(self.client.base(), FailureCause::Empty, what))?;
        }
        heard.tell(out).await?;
        ended.map_err(|error| self.undecoded(error, advice, heard.began))?;
        answer.keep().await;
        Ok(())
    }

    /// Waits for the endpoint, and tells people once when nothing arrives for a while.
    async fn watched<T>(&self, heard: &mut Heard<'_>, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        if !heard.told {
            tokio::select! {
                biased;
                done = &mut wait => return done,
                () = tokio::time::sleep(self.quiet) => {}
            }
            heard.told = true;
            let words = format!(
                "{}: nothing has arrived for {} s; still waiting",
                self.url,
                self.quiet.as_secs()
            );
            // Nobody listens: the next event ends the attempt.
            heard.events.send(ModelEvent::Notice(words)).await.ok();
        }
        wait.await
    }

    /// `began`: a part of the answer arrived before the error.
    fn undecoded(&self, error: DecodeError, advice: RetryAdvice, began: bool) -> Failure {
        let base = self.client.base();
        match error {
            DecodeError::Cut => Failure::at(
                base,
                HttpErrorKind::Cut,
                "the answer has no end: it was cut",
            ),
            DecodeError::Malformed(what) => Failure::at(
                base,
                HttpErrorKind::Malformed,
                &format!("the answer contains {what}"),
            ),
            DecodeError::OtherApi(name, api) => {
                let read = api.map_or_else(String::new, |api| {
                    format!(": set `api = \"{api}\"` for this provider")
                });
                Failure::at(
                    base,
                    FailureCause::WrongPlace,
                    &format!("answers in the form of {name}{read}"),
                )
            }
            DecodeError::Vendor(error) => {
                let status = if began {
                    error.status
                } else {
                    error.status_of_words()
                };
                let message = format!(
                    "{}: the provider failed during the answer: {}",
                    self.url, error.message
                );
                Failure::refused(status, advice, &error, message)
            }
        }
    }

    fn place(&self) -> RequestContext<'_> {
        let model = crate::json_text::vendor_model(&self.name);
        let key = match (&self.key, &self.key_source) {
            (Some(key), _) => KeyStatus::Sent(key.id()),
            (None, Some(source)) => KeyStatus::Missing(source),
            (None, None) => KeyStatus::None,
        };
        RequestContext {
            url: &self.url,
            model,
            key,
            terms: &self.terms,
        }
    }

    /// The error that the endpoint asks for a longer wait than the policy allows, for the user to decide.
    fn too_long_a_wait(&self, failure: &Failure, asked: Duration) -> ModelError {
        let seconds = asked.as_secs() + u64::from(asked.subsec_nanos() > 0);
        let when = if seconds < 180 {
            format!("{seconds} s")
        } else {
            format!("{} min", seconds.div_ceil(60))
        };
        ModelError {
            kind: ErrorKind::Unavailable,
            message: format!(
                "{}; it asks to wait {seconds} s before the next try",
                failure.message
            ),
            help: Some(format!(
                "try again in {when}, or {}",
                self.terms.other_model
            )),
        }
    }
}

/// What arrived of an answer, and who is told.
struct Heard<'a> {
    events: &'a EventSink,
    /// A part of an answer came, which may be paid for.
    began: bool,
    text: bool,
    calls: bool,
    /// People know that nothing arrives.
    told: bool,
}

impl Heard<'_> {
    fn note(&mut self, events: &[ModelEvent]) {
        self.began |= !events.is_empty();
        self.text |= events
            .iter()
            .any(|event| matches!(event, ModelEvent::Text(text) if !text.trim().is_empty()));
        self.calls |= events
            .iter()
            .any(|event| matches!(event, ModelEvent::CallStarted { .. }));
    }

    async fn tell(&mut self, out: Vec<ModelEvent>) -> Result<(), Failure> {
        self.note(&out);
        for event in out {
            self.events.send(event).await.map_err(|_| receiver_gone())?;
        }
        Ok(())
    }

    /// Checks a complete answer with the last events.
    fn check(&mut self, last: &[ModelEvent], may_be_empty: bool) -> Result<(), &'static str> {
        self.note(last);
        match last.last() {
            Some(ModelEvent::Stop(StopReason::ToolUse)) if !self.calls => {
                Err("the answer ends with a tool call, but contains none")
            }
            Some(ModelEvent::Stop(StopReason::EndTurn | StopReason::Other(_)))
                if !(self.text || self.calls || may_be_empty) =>
            {
                Err("the answer is empty")
            }
            _other => Ok(()),
        }
    }
}

fn receiver_gone() -> Failure {
    Failure::new(
        FailureCause::ReceiverGone,
        "nobody listens to the answer any more",
    )
}

fn exposed(key: Option<&Secret>) -> Result<Option<&str>, Failure> {
    key.map(Secret::expose)
        .transpose()
        .map_err(|error| Failure::new(HttpErrorKind::Denied, error.to_string()))
}

/// The headers of every request.
fn headers<W: Wire>(base: &BaseUrl, key: Option<&str>) -> Result<HeaderMap, Failure> {
    let unfit = || {
        Failure::at(
            base,
            HttpErrorKind::Denied,
            "the API key contains a character that an HTTP header cannot contain",
        )
    };
    let mut headers = W::headers(key).ok_or_else(unfit)?;
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream, application/json"),
    );
    Ok(headers)
}

/// The failure for a status other than 2xx, with the vendor's message.
async fn refusal(client: &HttpClient, mut answer: HttpResponse<'_>, now: SystemTime) -> Failure {
    let status = answer.status;
    if status.is_redirection() {
        let target = answer.header("location").unwrap_or("an unnamed place");
        let what = format!("HTTP {status} to {target}; redirects are not followed");
        return Failure::at(client.base(), FailureCause::WrongPlace, &what);
    }
    let advice = advice(|name| answer.header(name), now);
    let body = answer.error_body().await;
    answer.keep().await;
    let error = VendorError::read_bytes(&body);
    let said = &error.message;
    // Some have no name.
    let status_text = status.to_string().replace(" <unknown status code>", "");
    let message = format!(
        "{}: HTTP {status_text}{}{said}",
        client.base(),
        if said.is_empty() { "" } else { ": " }
    );
    Failure::refused(Some(status.as_u16()), advice, &error, message)
}
