//! [`Ambient`]: the token that the constructors of all handles ask for, and [`claim`], which makes it.
//!
//! The token's type is also in `authority`; its constructor is only here. A crate that does not list this one among its
//! dependencies cannot name it, whatever else is part of the build: no feature can make a handle. This crate depends on
//! nothing and knows no handle.

/// Proof that the caller is the composition root. With it any path can be opened, any program started and any host
/// reached, so the binary claims it once and hands out narrower handles.
#[derive(Debug)]
pub struct Ambient {
    _private: (),
}

/// Creates the token. For composition roots and tests; the arrows between crates say which may depend on this crate.
#[must_use]
pub const fn claim() -> Ambient {
    Ambient { _private: () }
}
