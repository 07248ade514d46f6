//! A consumer's handle on a service. Does not depend on the plan.

use super::offer::Service;
use crate::feature::sanitize;
use crate::foreign::attribution;
use crate::foreign::{caught, stepping};
use authority::{Door, Redactor, Shut};
use llm_worker::ErrorKind;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The return type of an asynchronous method of a contract, as `#[async_trait]` writes it.
pub type ServiceFuture<'a, R> = Pin<Box<dyn Future<Output = R> + Send + 'a>>;

/// A consumer's handle on a granted service. Clones share the door of the grant.
///
/// Methods of a contract take owned arguments: the host drops a call when the grant is revoked, even while its caller
/// still holds references.
pub struct ServiceHandle<T: ?Sized> {
    pub(super) target: Arc<T>,
    pub(super) service: Arc<Service>,
    pub(super) door: Arc<Door>,
    pub(super) redactor: Redactor,
}

/// The reason why a use of a service failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    #[error("the grant of service {service} was revoked")]
    Revoked { service: String },
    #[error("service {service} is no longer available: {provider} was removed")]
    Unavailable { service: String, provider: String },
    /// The provider panicked in this call; its state may be half changed.
    #[error("service {service} of {provider} panicked: {message}")]
    Panicked {
        service: String,
        provider: String,
        /// The message of the panic, cut at 512 bytes.
        message: String,
    },
}

/// Bytes of the message of a panic.
const MAX_WORDS: usize = 512;

impl ServiceError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Revoked { .. } => ErrorKind::Denied,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Panicked { .. } => ErrorKind::Bug,
        }
    }
}

impl<T: ?Sized + Send + Sync + 'static> ServiceHandle<T> {
    /// Uses the service synchronously, in the caller's thread. A revocation waits for `f`; so an `f` that revokes its
    /// own grant and waits for that never ends.
    ///
    /// # Errors
    /// `Revoked`; `Unavailable` after the provider left; `Panicked`.
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> Result<R, ServiceError> {
        let _inside = self.door.enter().map_err(|Shut| self.shut())?;
        let _running = attribution::inside(&self.service.provider);
        caught(|| f(&self.target)).map_err(|words| self.panicked(&words))
    }

    /// Uses the service asynchronously. The door is entered each time the call continues, and nothing is held while it
    /// waits; so the call ends at its next wait when the grant is revoked.
    ///
    /// # Errors
    /// `Revoked`; `Unavailable` after the provider left; `Panicked`.
    pub async fn call<R>(
        &self,
        f: impl for<'a> FnOnce(&'a T) -> ServiceFuture<'a, R>,
    ) -> Result<R, ServiceError> {
        // Only a drain waits for it: a revocation at once lets no use finish.
        let under_way = self.door.begin().map_err(|Shut| self.shut())?;
        let target = Arc::clone(&self.target);
        let _waiting = attribution::waiting(&self.service.provider);
        let mut running = {
            let _inside = under_way.enter().map_err(|Shut| self.shut())?;
            let _running = attribution::inside(&self.service.provider);
            caught(|| f(&target)).map_err(|words| self.panicked(&words))?
        };
        let ended = stepping(&under_way, |cx| self.go_on(&mut running, cx))
            .await
            .unwrap_or_else(|Shut| Err(self.shut()));
        let dropped = caught(move || drop(running)).map_err(|words| self.panicked(&words));
        ended.and_then(|value| dropped.map(|()| value))
    }

    fn go_on<R>(
        &self,
        running: &mut ServiceFuture<'_, R>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, ServiceError>> {
        let _running = attribution::inside(&self.service.provider);
        match caught(|| running.as_mut().poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(words) => Poll::Ready(Err(self.panicked(&words))),
        }
    }

    fn shut(&self) -> ServiceError {
        let (service, provider) = self.names();
        if self.service.has_left() {
            ServiceError::Unavailable { service, provider }
        } else {
            ServiceError::Revoked { service }
        }
    }

    fn panicked(&self, words: &str) -> ServiceError {
        let (service, provider) = self.names();
        ServiceError::Panicked {
            service,
            provider,
            message: sanitize(words, MAX_WORDS, &self.redactor),
        }
    }

    fn names(&self) -> (String, String) {
        (
            self.service.id.to_string(),
            self.service.provider.to_string(),
        )
    }
}

impl<T: ?Sized> Clone for ServiceHandle<T> {
    fn clone(&self) -> Self {
        let target = Arc::clone(&self.target);
        let service = Arc::clone(&self.service);
        Self {
            target,
            service,
            door: Arc::clone(&self.door),
            redactor: self.redactor.clone(),
        }
    }
}

impl<T: ?Sized> fmt::Debug for ServiceHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "service {} of {}",
            self.service.id, self.service.provider
        )
    }
}
