//! One attempt to deliver a message: a command, or a POST to a webhook. The URL of a webhook may be a secret: only its
//! host is in errors.

use super::message::{BodyFormat, Message};
use authority::{ChildExit, Job, Net, Secret, Spawner, Workspace};
use http_client::{
    Bytes, HeaderMap, HeaderValue, HttpClient, HttpErrorKind, HttpRequest, Method, StatusCode,
    Timeouts, Tls, Upload, Url, header,
};
use pod::feature::{BackgroundTaskContext, FeatureInstallError};
use std::ffi::OsString;
use std::time::Duration;

/// The name of the secret that is the URL of the webhook.
pub const WEBHOOK: &str = "notify-person-webhook";

/// The pauses after failed attempts; after one more the message is given up.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(480),
    Duration::from_secs(1920),
];

/// The header that is the same for every attempt of a message.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The time limits of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct AttemptLimits {
    pub command: Duration,
    /// Each step of an exchange.
    pub each: Timeouts,
    /// All of an exchange.
    pub webhook: Duration,
}

impl AttemptLimits {
    /// Limits for ordinary commands and servers.
    pub const USUAL: Self = Self {
        command: Duration::from_secs(30),
        each: Timeouts {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(20),
            ..Timeouts::USUAL
        },
        webhook: Duration::from_secs(30),
    };
}

/// How messages leave.
pub(super) enum Sender {
    Command {
        words: Vec<String>,
        spawner: Spawner,
        workspace: Workspace,
        format: BodyFormat,
    },
    Webhook {
        url: Url,
        secret: Secret,
        net: Net,
        tls: Tls,
        format: BodyFormat,
    },
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct DeliveryError {
    /// For people.
    pub(super) why: String,
    pub(super) next: NextAttempt,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAttempt {
    Later,
    /// It would fail, too.
    Never,
    /// The pod ended meanwhile: the message may have arrived.
    Unknown,
}

/// The pause after this attempt; none after the last one.
pub(super) fn pause(attempt: u32) -> Option<Duration> {
    PAUSES
        .get(usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX))
        .copied()
}

fn again(why: impl Into<String>) -> DeliveryError {
    DeliveryError {
        why: why.into(),
        next: NextAttempt::Later,
    }
}

fn never(why: impl Into<String>) -> DeliveryError {
    DeliveryError {
        why: why.into(),
        next: NextAttempt::Never,
    }
}

fn unknown() -> DeliveryError {
    DeliveryError {
        why: "the pod ended during the attempt".to_owned(),
        next: NextAttempt::Unknown,
    }
}

impl Sender {
    pub(super) fn webhook(
        secret: Secret,
        net: Net,
        format: BodyFormat,
    ) -> Result<Self, FeatureInstallError> {
        let text = secret
            .expose()
            .map_err(|error| FeatureInstallError::failed(error.to_string()))?;
        // The error of parsing has the URL.
        let url = Url::parse(text)
            .map_err(|_| FeatureInstallError::failed("the webhook is not a URL"))?;
        if !net.names(url.host(), url.port()) {
            let host = url.base().host_port();
            let why = format!("the host of the webhook, {host}, is not in `network` of the grant");
            return Err(FeatureInstallError::failed(why));
        }
        Ok(Self::Webhook {
            url,
            secret,
            net,
            tls: Tls::default(),
            format,
        })
    }

    /// Makes one attempt, within its time limits.
    pub(super) async fn deliver(
        &self,
        message: &Message,
        cx: &BackgroundTaskContext,
        limits: &AttemptLimits,
    ) -> Result<(), DeliveryError> {
        match self {
            Self::Command {
                words,
                spawner,
                workspace,
                format,
            } => {
                let mut words = words
                    .iter()
                    .map(OsString::from)
                    .chain([OsString::from(message.body(*format))]);
                let program = words.next().unwrap_or_default();
                let args = words.collect();
                let cwd = workspace.cwd().to_owned();
                let call = format!("notify-{}", cx.run);
                command(
                    spawner,
                    Job {
                        program,
                        args,
                        cwd,
                        call,
                        deadline: limits.command,
                        input: Vec::new(),
                    },
                    cx,
                )
                .await
            }
            Self::Webhook {
                url,
                secret,
                net,
                tls,
                format,
            } => {
                // Counted as a use, and refused once the grant is revoked.
                secret.expose().map_err(|error| never(error.to_string()))?;
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => Err(unknown()),
                    () = net.door().closed() => Err(never("the network grant was revoked")),
                    posted = tokio::time::timeout(limits.webhook, post(url, net, tls, *format, limits.each, message)) => {
                        posted.unwrap_or_else(|_late| Err(again(format!("no answer within {:?}", limits.webhook))))
                    }
                }
            }
        }
    }
}

async fn command(
    spawner: &Spawner,
    job: Job,
    cx: &BackgroundTaskContext,
) -> Result<(), DeliveryError> {
    let deadline = job.deadline;
    let ended = spawner.run(job, |_output| Ok(()), &cx.cancel).await;
    match ended.map_err(|error| again(error.to_string()))?.how {
        ChildExit::Exit(0) => Ok(()),
        ChildExit::Exit(status) => Err(again(format!(
            "the command ended with exit status {status}"
        ))),
        ChildExit::Signal(signal) => {
            Err(again(format!("the command was killed by signal {signal}")))
        }
        ChildExit::Deadline => Err(again(format!("the command was stopped after {deadline:?}"))),
        ChildExit::Cancelled => Err(unknown()),
    }
}

async fn post(
    url: &Url,
    net: &Net,
    tls: &Tls,
    format: BodyFormat,
    each: Timeouts,
    message: &Message,
) -> Result<(), DeliveryError> {
    let client = HttpClient::new(url.base(), net.clone(), each).secured(tls.clone());
    let kind = match format {
        BodyFormat::Json => "application/json",
        BodyFormat::Text => "text/plain; charset=utf-8",
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(id) = HeaderValue::from_str(&message.id) {
        headers.insert(IDEMPOTENCY_KEY, id);
    }
    let body = Some(Upload::new([Bytes::from(message.body(format))]));
    let request = HttpRequest {
        method: Method::POST,
        path: url.target(),
        headers,
        body,
        once: false,
    };
    let response = client
        .send(&request)
        .await
        .map_err(|error| match error.kind {
            HttpErrorKind::Proxy | HttpErrorKind::Denied | HttpErrorKind::Bug => {
                never(error.message)
            }
            HttpErrorKind::Connect(_)
            | HttpErrorKind::Tls
            | HttpErrorKind::Timeout
            | HttpErrorKind::Cut
            | HttpErrorKind::Malformed
            | HttpErrorKind::Encoded
            | HttpErrorKind::TooLarge => again(error.message),
        })?;
    let status = response.status;
    let host = url.base().host_port();
    let why = format!("{host} answered {status}");
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(again(why)),
        _ if status.is_server_error() => Err(again(why)),
        // Redirects are not followed: a secret in the URL is for this host.
        _ => Err(never(why)),
    }
}
