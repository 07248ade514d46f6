//! The one place where authority comes from nothing. It knows nothing that is made with it.

/// Proof of standing at the composition root. Whoever holds it can open any path, start any program and reach any
/// host, so the binary claims it once and hands out narrower handles instead.
#[derive(Debug)]
pub struct Ambient {
    _private: (),
}

impl Ambient {
    /// Claims it. Only the composition root and tests call this; a lint refuses it elsewhere.
    pub fn claim() -> Self {
        Self { _private: () }
    }
}
