//! Where a value comes from. Knows no key.

/// Where a value comes from: `built-in`, a file and line, a variable or a flag.
pub type Source = String;

/// A value, and where it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub source: Source,
}

impl<T> Sourced<T> {
    /// A value that was set there.
    pub fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    pub(super) fn built_in(value: T) -> Self {
        Self::new(value, "built-in".to_owned())
    }

    /// Takes a value over, if there is one.
    pub fn set(&mut self, value: Option<T>, source: impl FnOnce() -> Source) {
        if let Some(value) = value {
            *self = Self::new(value, source());
        }
    }
}

/// The same for what need not be set.
pub fn set<T>(slot: &mut Option<Sourced<T>>, value: Option<T>, source: impl FnOnce() -> Source) {
    if let Some(value) = value {
        *slot = Some(Sourced::new(value, source()));
    }
}
