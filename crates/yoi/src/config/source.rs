//! Where a value comes from. Knows no key.

/// Where a value comes from: `built-in`, a file and line, a variable or a flag.
pub(crate) type Source = String;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

impl<T> Sourced<T> {
    pub(crate) fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    pub(super) fn built_in(value: T) -> Self {
        Self::new(value, "built-in".to_owned())
    }

    pub(crate) fn set(&mut self, value: Option<T>, source: impl FnOnce() -> Source) {
        if let Some(value) = value {
            *self = Self::new(value, source());
        }
    }
}

/// The same for what need not be set.
pub(crate) fn set<T>(
    slot: &mut Option<Sourced<T>>,
    value: Option<T>,
    source: impl FnOnce() -> Source,
) {
    if let Some(value) = value {
        *slot = Some(Sourced::new(value, source()));
    }
}
