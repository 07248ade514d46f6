//! Sinks: the only ways in which a feature can notify, alert or note. Each returns whether that was done. Do not depend
//! on the journal.

use super::presence::{Absent, Presence};
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::ServiceEvent;
use crate::feature::declare::text::{Lines, check};
use crate::mailbox::requests::{Declined, DriverRequest, MailboxSender, NotTaken, Notification};
use authority::{Door, Shut, UseGuard};
use llm_worker::ErrorKind;
use protocol::event::AlertLevel;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Longest key of a notification, in bytes.
const MAX_KEY: usize = 128;

/// Sends notifications to the model, delivered with its next step; see
/// [`crate::feature::FeatureInstallContext::notifications`].
#[derive(Clone)]
pub struct FeatureNotifySink {
    pub(crate) link: SinkLink,
    pub(crate) max_bytes: u32,
    pub(crate) per_turn: u32,
}

/// The way of a feature's sinks to the pod, while the feature is installed and the grant is not revoked.
#[derive(Clone)]
pub(crate) struct SinkLink {
    pub(crate) feature: FeatureId,
    pub(crate) door: Arc<Door>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) mailbox: MailboxSender,
}

impl SinkLink {
    /// One use of the grant.
    pub(crate) fn enter<E: From<Absent> + From<Shut>>(&self) -> Result<UseGuard<'_>, E> {
        self.presence.check()?;
        Ok(self.door.enter()?)
    }

    fn send(&self, request: DriverRequest) -> Result<(), SinkError> {
        let _pass = self.enter::<SinkError>()?;
        Ok(self.mailbox.try_send(request)?)
    }
}

/// Proof that a notification is durable. The model gets it once, with its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The notification's number in the session.
    pub number: u64,
}

/// The reason why a text was not sent or a run was not requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// Empty, or with control characters.
    #[error("{0}")]
    Malformed(String),
    /// More bytes, or more often, than granted.
    #[error("{0}")]
    Exhausted(String),
    #[error("it was not written: {0}")]
    Refused(String),
    /// The grant was revoked, or the feature is not live any more.
    #[error("the grant was revoked")]
    Revoked,
    /// The feature is still installing: a text could not be withdrawn if the install failed.
    #[error("the feature is not installed yet; use it from a tool, a hook or a background task")]
    Early,
    #[error("too many requests are waiting; try again")]
    Busy,
    #[error("the pod has ended")]
    Closed,
}

impl SinkError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed(_) => ErrorKind::FixInput,
            Self::Exhausted(_) => ErrorKind::Exhausted,
            Self::Refused(_) | Self::Closed => ErrorKind::Unavailable,
            Self::Revoked => ErrorKind::Denied,
            Self::Busy => ErrorKind::Retry,
            Self::Early => ErrorKind::Bug,
        }
    }
}

impl From<NotTaken> for SinkError {
    fn from(not: NotTaken) -> Self {
        match not {
            NotTaken::Full => Self::Busy,
            NotTaken::Closed => Self::Closed,
        }
    }
}

impl From<Absent> for SinkError {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::Early => Self::Early,
            Absent::Gone => Self::Revoked,
        }
    }
}

impl From<Shut> for SinkError {
    fn from(_: Shut) -> Self {
        Self::Revoked
    }
}

impl FeatureNotifySink {
    /// Sends the text at once, and resolves when it is durable. The model gets it with its next step, attributed to this
    /// feature, even if the host was killed in between. Dropping the future loses the answer, not the notification.
    ///
    /// # Errors
    /// `Early` in an install; `Malformed`; `Exhausted` beyond the grant's bytes or number per turn, or while
    /// too many wait; `Refused` by the log; `Revoked`; `Closed`.
    pub fn notify_model(&self, body: impl Into<String>) -> Notifying {
        self.notify(body.into(), false, None)
    }

    /// As [`Self::notify_model`], at most once for a key of this feature: for the keys of the newest 256 keyed
    /// notifications of a session, also after a restart, the answer is the receipt of the first one, and the text is
    /// not sent.
    ///
    /// # Errors
    /// As [`Self::notify_model`]; `Malformed` for an invalid key.
    pub fn notify_model_once(&self, key: &str, body: impl Into<String>) -> Notifying {
        self.notify(body.into(), false, Some(key))
    }

    /// As [`Self::notify_model`], and an idle pod begins a turn for the notification: at most 12 times an hour for one
    /// feature and 60 times for all; beyond that it waits for the next turn. A pod that is held is not woken before it is
    /// resumed.
    ///
    /// # Errors
    /// As [`Self::notify_model`].
    pub fn wake_model(&self, body: impl Into<String>) -> Notifying {
        self.notify(body.into(), true, None)
    }

    /// As [`Self::wake_model`], at most once for a key of 1 to 128 bytes, as for [`Self::notify_model_once`].
    ///
    /// # Errors
    /// As [`Self::notify_model_once`].
    pub fn wake_model_once(&self, key: &str, body: impl Into<String>) -> Notifying {
        self.notify(body.into(), true, Some(key))
    }

    fn notify(&self, text: String, wake: bool, key: Option<&str>) -> Notifying {
        let mailbox = self.link.mailbox.clone();
        Notifying(match self.send(text, wake, key) {
            Err(error) => Box::pin(std::future::ready(Err(error))),
            Ok(answer) => Box::pin(async move {
                match mailbox.answered(answer).await {
                    Some(Ok(number)) => Ok(Receipt { number }),
                    Some(Err(Declined::TooMany(why))) => Err(SinkError::Exhausted(why)),
                    Some(Err(Declined::Refused(why))) => Err(SinkError::Refused(why)),
                    None => Err(SinkError::Closed),
                }
            }),
        })
    }

    fn send(
        &self,
        text: String,
        wake: bool,
        key: Option<&str>,
    ) -> Result<oneshot::Receiver<Result<u64, Declined>>, SinkError> {
        self.link.presence.check()?;
        key.map_or(Ok(()), |key| {
            check("the key of a notification", key, MAX_KEY, Lines::One)
        })
        .map_err(SinkError::Malformed)?;
        let limit = self.max_bytes as usize;
        if text.len() > limit {
            let have = text.len();
            return Err(SinkError::Exhausted(format!(
                "the notification has {have} bytes; the grant allows {limit}"
            )));
        }
        check("a notification", &text, limit, Lines::Many).map_err(SinkError::Malformed)?;
        let (reply, answer) = oneshot::channel();
        let notification = Notification {
            feature: Some(self.link.feature.clone()),
            by: None,
            text,
            wake,
            key: key.map(str::to_owned),
            per_turn: self.per_turn,
        };
        self.link.send(DriverRequest::Notify {
            notification,
            reply,
        })?;
        Ok(answer)
    }
}

/// A notification on its way to the log; see [`FeatureNotifySink::notify_model`]. It was sent when this was made:
/// awaiting gives the receipt, and dropping loses only that.
#[must_use = "`notify_model(…)` sends at once; drop the answer, or await the receipt"]
pub struct Notifying(Pin<Box<dyn Future<Output = Result<Receipt, SinkError>> + Send>>);

impl Future for Notifying {
    type Output = Result<Receipt, SinkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Notifying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a notification")
    }
}

impl fmt::Debug for FeatureNotifySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "notifications of {}", self.link.feature)
    }
}

/// Shows short texts to the people who watch the pod; see [`crate::feature::FeatureInstallContext::alerts`].
#[derive(Clone)]
pub struct FeatureAlertSink {
    pub(crate) link: SinkLink,
}

impl FeatureAlertSink {
    /// Shows at most 512 bytes to the watcher. Alerts are in no log and no context; beyond 8 in a turn they are
    /// dropped, and the watcher is informed.
    ///
    /// # Errors
    /// `Early` in an install; `Malformed` when empty; `Revoked`; `Busy`; `Closed`.
    pub fn alert(&self, level: AlertLevel, text: &str) -> Result<(), SinkError> {
        let _pass = self.link.enter::<SinkError>()?;
        if text.trim().is_empty() {
            return Err(SinkError::Malformed("an alert is empty".to_owned()));
        }
        Ok(self.link.mailbox.try_send(DriverRequest::Alert {
            feature: self.link.feature.clone(),
            level,
            text: crate::feature::clamp(text).to_owned(),
        })?)
    }
}

impl fmt::Debug for FeatureAlertSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alerts of {}", self.link.feature)
    }
}

/// Emits an event of a service; see [`crate::feature::FeatureServiceProvider::event`].
#[derive(Clone)]
pub struct ServiceEventSink {
    pub(crate) link: SinkLink,
    pub(crate) event: ServiceEvent,
}

impl ServiceEventSink {
    /// Tells the tasks of consumers that were granted the service. Not durable; events that are emitted before a task
    /// runs are one.
    ///
    /// # Errors
    /// `Early` in an install; `Revoked`; `Busy`; `Closed`.
    pub fn emit(&self) -> Result<(), SinkError> {
        self.link
            .send(DriverRequest::ServiceEvent(self.event.clone()))
    }
}

impl fmt::Debug for ServiceEventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.event)
    }
}

/// Adds notes for people who inspect the pod, while it runs; see [`crate::feature::FeatureDiagnosticSink::later`].
#[derive(Clone)]
pub struct RunningNotes {
    pub(crate) link: SinkLink,
}

impl RunningNotes {
    /// Journals a note of at most 512 bytes with the next commit; `yoi features NAME` shows it. Beyond
    /// [`crate::feature::MAX_NOTES`] in one day they are dropped, and the last one says so.
    ///
    /// # Errors
    /// `Early` in an install; `Revoked` once the feature is not live any more; `Busy`; `Closed`.
    pub fn note(&self, text: &str) -> Result<(), SinkError> {
        self.link.send(DriverRequest::Note {
            feature: self.link.feature.clone(),
            text: crate::feature::clamp(text).to_owned(),
        })
    }

    /// Resolves when the pod has ended, for what a feature has to end with it.
    pub async fn pod_ended(&self) {
        self.link.mailbox.closed().await;
    }
}

impl fmt::Debug for RunningNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "notes of {}", self.link.feature)
    }
}
