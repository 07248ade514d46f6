//! One failed attempt: its cause, whether a retry can help, and the help for the person.

use crate::vendor_error::{VendorError, one_line};
use http_client::{BaseUrl, HttpErrorKind};
use llm_worker::{ErrorKind, ModelError};
use std::time::Duration;

/// A failed attempt. `message` names the URL.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) cause: FailureCause,
    pub(crate) message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The HTTP exchange failed, or its bytes are not a response of this API.
    Http(HttpErrorKind),
    /// The URL is not of this API, or redirects.
    WrongPlace,
    /// The endpoint reported an error, by status or in mid-stream.
    Refused {
        /// An HTTP status; `None` for an error in mid-stream that names none.
        status: Option<u16>,
        advice: RetryAdvice,
        why: RefusalReason,
    },
    /// The answer has no text and no call.
    Empty,
    /// The receiver of the events was dropped.
    ReceiverGone,
}

/// What an endpoint says about another attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RetryAdvice {
    /// How long it asks to wait.
    pub(crate) wait: Option<Duration>,
    /// Whether to try again at all; the status decides if it does not say.
    pub(crate) again: Option<bool>,
}

impl From<HttpErrorKind> for FailureCause {
    fn from(cause: HttpErrorKind) -> Self {
        Self::Http(cause)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// Credit or quota is used up: waiting does not help.
    Quota,
    /// The conversation is longer than the model's context.
    TooLong,
    /// The status decides.
    Status,
}

/// Statuses after which the same request may succeed; those from 520 on are of proxies and overloaded servers.
fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=504 | 520..=530 | 598 | 599)
}

impl Failure {
    pub(crate) fn new(cause: impl Into<FailureCause>, message: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            message: message.into(),
        }
    }

    /// A failure at an endpoint.
    pub(crate) fn at(base: &BaseUrl, cause: impl Into<FailureCause>, what: &str) -> Self {
        Self::new(cause, format!("{base}: {what}"))
    }

    pub(crate) fn refused(
        status: Option<u16>,
        advice: RetryAdvice,
        error: &VendorError,
        message: String,
    ) -> Self {
        let advice = RetryAdvice {
            wait: advice.wait.or(error.wait),
            ..advice
        };
        Self::new(
            FailureCause::Refused {
                status,
                advice,
                why: why(status, error),
            },
            message,
        )
    }

    /// Makes the message safe to show: vendors repeat a refused key, and their messages may be long. The key is
    /// replaced before the message is cut, so that no part of it remains.
    pub(crate) fn without(self, key: Option<&str>) -> Self {
        let message = match key.filter(|key| !key.is_empty()) {
            Some(key) => one_line(&self.message.replace(key, "‹key›")),
            None => one_line(&self.message),
        };
        Self { message, ..self }
    }

    /// Whether the same request may succeed on a retry.
    pub(crate) fn passing(&self) -> bool {
        match &self.cause {
            FailureCause::Http(
                HttpErrorKind::Connect(_)
                | HttpErrorKind::Timeout
                | HttpErrorKind::Cut
                | HttpErrorKind::Malformed,
            )
            | FailureCause::Empty => true,
            FailureCause::Refused {
                why: RefusalReason::Status,
                status,
                advice,
            } => advice.again.unwrap_or_else(|| status.is_none_or(passes)),
            FailureCause::Refused {
                why: RefusalReason::Quota | RefusalReason::TooLong,
                ..
            } => false,
            FailureCause::Http(
                HttpErrorKind::Tls
                | HttpErrorKind::Encoded
                | HttpErrorKind::TooLarge
                | HttpErrorKind::Proxy
                | HttpErrorKind::Denied
                | HttpErrorKind::Bug,
            )
            | FailureCause::WrongPlace
            | FailureCause::ReceiverGone => false,
        }
    }

    /// How long the endpoint asked to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if let FailureCause::Refused { advice, .. } = self.cause {
            advice.wait
        } else {
            None
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self.cause {
            FailureCause::Http(
                HttpErrorKind::Connect(_)
                | HttpErrorKind::Tls
                | HttpErrorKind::Timeout
                | HttpErrorKind::Cut
                | HttpErrorKind::Malformed
                | HttpErrorKind::Encoded,
            )
            | FailureCause::Empty => ErrorKind::Unavailable,
            FailureCause::Http(HttpErrorKind::TooLarge) => ErrorKind::Exhausted,
            FailureCause::WrongPlace => ErrorKind::FixInput,
            FailureCause::Http(HttpErrorKind::Proxy | HttpErrorKind::Denied) => ErrorKind::Denied,
            FailureCause::ReceiverGone => ErrorKind::Cancelled,
            FailureCause::Http(HttpErrorKind::Bug) => ErrorKind::Bug,
            FailureCause::Refused { why, status, .. } => match (why, status) {
                (RefusalReason::Quota | RefusalReason::TooLong, _) => ErrorKind::Exhausted,
                (RefusalReason::Status, Some(401 | 403)) => ErrorKind::Denied,
                (RefusalReason::Status, Some(413)) => ErrorKind::Exhausted,
                (RefusalReason::Status, Some(status)) if passes(status) || status >= 500 => {
                    ErrorKind::Unavailable
                }
                (RefusalReason::Status, Some(_)) => ErrorKind::FixInput,
                (RefusalReason::Status, None) => ErrorKind::Unavailable,
            },
        }
    }

    fn help(&self, place: &RequestContext<'_>) -> Option<String> {
        let RequestContext {
            url,
            model,
            key,
            terms:
                HelpTerms {
                    other_model,
                    model_list,
                    full_context,
                    proxy,
                },
        } = place;
        let through = if proxy.is_empty() {
            String::new()
        } else {
            format!("; {proxy} names a proxy: check it, or add the host to NO_PROXY")
        };
        let text = match self.cause {
            FailureCause::Http(HttpErrorKind::Connect(_)) => format!("check that the provider is running and that {url} is its address{through}"),
            FailureCause::Http(HttpErrorKind::Timeout) => format!("the provider at {url} is slow or overloaded: try again, use a smaller model, start a new pod (its history is shorter), or raise the provider's `timeouts`"),
            FailureCause::Http(HttpErrorKind::Cut) => "try again; if the error persists, the provider, or a server in front of it, closes connections too early: if you run that server, check its log".to_owned(),
            FailureCause::Http(HttpErrorKind::Malformed) => format!("check that {url} is the right `base_url` and that `api` names the API of this provider; if both are right, try again"),
            FailureCause::Http(HttpErrorKind::Tls) => format!("check {url} and the system's certificates; local providers usually use http://, not https://{through}"),
            FailureCause::Http(HttpErrorKind::Encoded) => format!("turn off the compression in the server at {url}, or in the proxy in front of it"),
            FailureCause::Http(HttpErrorKind::TooLarge) => "ask for a shorter answer, or set a limit on its tokens".to_owned(),
            FailureCause::Http(HttpErrorKind::Proxy) => format!("check the proxy in {proxy}, or add the host to NO_PROXY"),
            FailureCause::WrongPlace => format!("check the `base_url` {url}: for most providers it ends in /v1"),
            FailureCause::Http(HttpErrorKind::Denied) => "check the provider's `base_url`: this run may not connect to its host".to_owned(),
            FailureCause::Empty => format!("try again, or {other_model}"),
            FailureCause::Http(HttpErrorKind::Bug) | FailureCause::ReceiverGone => return None,
            FailureCause::Refused { why, status, .. } => match (why, status) {
                (RefusalReason::Quota, _) => format!("add credit or raise the spending limit at the provider, or {other_model}"),
                (RefusalReason::TooLong, _) | (RefusalReason::Status, Some(413)) => {
                    format!("the history of this pod is too long for this model: {full_context}")
                }
                (RefusalReason::Status, Some(401 | 403)) => match key {
                    KeyStatus::Sent(name) => format!("check that the API key in {name} belongs to this provider, has not expired and may use `{model}`"),
                    KeyStatus::Missing(name) => format!("no API key was sent; set {name}"),
                    KeyStatus::None => "no API key was sent; set the key of this provider in the configuration".to_owned(),
                },
                (RefusalReason::Status, Some(404)) => format!("check that the provider offers `{model}` (`{model_list}` lists its models), and check its `base_url`"),
                (RefusalReason::Status, Some(429)) => format!("the provider's rate limit was reached: wait, or {other_model}"),
                (RefusalReason::Status, Some(400..500)) => {
                    format!("the provider rejected the request: check that the model `{model}` supports tools and streaming")
                }
                (RefusalReason::Status, _) => format!("try again later, or {other_model}"),
            },
        };
        Some(text)
    }

    /// The error that ends the request after `tries` attempts.
    pub(crate) fn into_error(self, tries: u32, place: &RequestContext<'_>) -> ModelError {
        let times = if tries > 1 {
            format!(" ({tries} attempts)")
        } else {
            String::new()
        };
        ModelError {
            kind: self.kind(),
            help: self.help(place),
            message: format!("{}{times}", self.message),
        }
    }
}

impl From<http_client::Error> for Failure {
    fn from(error: http_client::Error) -> Self {
        Self::new(error.kind, error.message)
    }
}

/// The host's wording for remedies in help texts; supplied by `yoi`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpTerms {
    /// How to choose another model, as in `choose another model with --model`.
    pub other_model: &'static str,
    /// The command that lists an endpoint's models.
    pub model_list: &'static str,
    /// The ways out of a full context.
    pub full_context: &'static str,
    /// The variable whose proxy the requests go through, as in `HTTPS_PROXY`; empty if they go straight to the endpoint.
    pub proxy: String,
}

/// The endpoint, model and key of a request, for help texts.
pub(crate) struct RequestContext<'a> {
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) key: KeyStatus<'a>,
    pub(crate) terms: &'a HelpTerms,
}

/// The printable name of the key, and whether it was sent.
pub(crate) enum KeyStatus<'a> {
    Sent(&'a str),
    Missing(&'a str),
    None,
}

fn why(status: Option<u16>, error: &VendorError) -> RefusalReason {
    const QUOTA: &[&str] = &[
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_credits",
        "billing_error",
    ];
    // Anthropic reports it as `invalid_request_error`.
    const QUOTA_WORDS: &[&str] = &["credit balance is too low", "insufficient balance"];
    const LONG: &[&str] = &[
        "context_length_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
        "model_max_prompt_tokens_exceeded",
        // GLM's number.
        "1261",
    ];
    // In the order of: OpenAI and most others, Anthropic, Bedrock, Gemini, Kimi, xAI, Copilot, GLM, Qwen, Groq and
    // Cerebras, TGI, vLLM, SGLang, Doubao.
    const LONG_WORDS: &[&str] = &[
        "context length",
        "context window",
        "maximum context",
        "context size",
        "input tokens exceed",
        "prompt is too long",
        "too many tokens",
        "exceed context limit",
        "input is too long",
        "input token count",
        "exceeded model token limit",
        "maximum prompt length",
        "prompt token count",
        "prompt exceeds max length",
        "prompt 超长",
        "range of input length",
        "reduce the length of the messages",
        "`inputs` tokens + `max_new_tokens`",
        "`inputs` must have less than",
        "maximum model length",
        "is too long and exceeds limit",
        "maximum allowed length",
        "maximum allowed input length",
        "exceed max message tokens",
        "exceed model limit",
        "max tokens allowed",
        "model context",
        "max_prompt_tokens exceeded",
        "最大长度",
    ];
    // A rate is no length.
    const RATE_WORDS: &[&str] = &["please wait", "per minute", "per day", "rate limit"];
    let words = error.message.to_lowercase();
    let says = |any: &[&str]| any.iter().any(|some| words.contains(some));
    if status == Some(402) || error.labelled(QUOTA) || says(QUOTA_WORDS) {
        RefusalReason::Quota
    } else if status != Some(429) && (error.labelled(LONG) || says(LONG_WORDS) && !says(RATE_WORDS))
    {
        RefusalReason::TooLong
    } else {
        RefusalReason::Status
    }
}
