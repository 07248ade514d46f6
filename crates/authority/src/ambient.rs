//! [`Ambient`]: the token that the constructors of all handles ask for. Does not depend on those handles.

/// Proof that the caller is the composition root. With it any path can be opened, any program started and any host
/// reached, so the binary claims it once and hands out narrower handles.
#[derive(Debug)]
pub struct Ambient {
    _private: (),
}

impl Ambient {
    /// Creates the token. Only the composition root and tests call this; a lint refuses it elsewhere.
    pub fn claim() -> Self {
        Self { _private: () }
    }
}
