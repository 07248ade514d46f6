//! What the methods and closures of authors may return from a hook: the answer of its point, or that and a failure.

use super::typed::{Gate, Observe, Point, Transform};
use super::verdict::{Change, Verdict};
use std::fmt;

/// A hook has no answer. The class of its point fixes what that means: a gate refuses, a transform keeps the value (or
/// withholds it), an observer is counted. It carries no authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFailure(String);

impl HookFailure {
    /// A failure with its reason, for people and for the log. Where a result may be withheld, the reason must not
    /// quote it.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lets `?` turn any standard error into a failure.
impl<E: std::error::Error> From<E> for HookFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The return value of a method that is a hook: an answer of the point `P`, or a `Result` of it and a [`HookFailure`].
#[diagnostic::on_unimplemented(
    message = "a hook at `{P}` cannot return `{Self}`",
    note = "a gate returns `Verdict<{P}>`, a transform `Change<…>`, an observer nothing; or a `Result` of that and `HookFailure`"
)]
pub trait HookAnswer<P: Point>: Send + 'static {
    /// The answer or the failure.
    ///
    /// # Errors
    /// The failure.
    fn answered(self) -> Result<P::Answer, HookFailure>;
}

impl<P: Point> HookAnswer<P> for Result<P::Answer, HookFailure> {
    fn answered(self) -> Result<P::Answer, HookFailure> {
        self
    }
}

impl<P: Gate> HookAnswer<P> for Verdict<P> {
    fn answered(self) -> Result<Self, HookFailure> {
        Ok(self)
    }
}

impl<P: Transform> HookAnswer<P> for Change<P::Value> {
    fn answered(self) -> Result<Self, HookFailure> {
        Ok(self)
    }
}

impl<P: Observe> HookAnswer<P> for () {
    fn answered(self) -> Result<(), HookFailure> {
        Ok(())
    }
}
