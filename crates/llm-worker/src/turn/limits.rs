//! The limits of one turn.

/// The limits of one turn, set by the host: the number of requests and the size of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Requests in this turn.
    pub steps: u32,
    /// Calls in one answer.
    pub calls: usize,
    /// Bytes of a call's name and raw arguments.
    pub argument_bytes: usize,
    /// Bytes of the names and raw arguments of all calls of one answer.
    pub all_argument_bytes: usize,
    /// Bytes of an answer's text and reasoning together.
    pub text_bytes: usize,
    /// Parts of an answer that keeps their order; each is an item of its own.
    pub parts: usize,
}

impl TurnLimits {
    /// Calls in one answer: far above what a model does on purpose.
    pub const CALLS: usize = 64;
    /// Bytes of one call: a whole source file fits, a runaway stream does not.
    pub const ARGUMENT_BYTES: usize = 1 << 20;
    /// Bytes of all calls of an answer: above every vendor's longest output.
    pub const ALL_ARGUMENT_BYTES: usize = 8 << 20;
    /// Bytes of text and reasoning: above every vendor's longest output.
    pub const TEXT_BYTES: usize = 8 << 20;
    /// Parts of an answer: above what a model does on purpose, which thinks or talks between its calls at most.
    pub const PARTS: usize = 512;

    /// At most this many requests, and the limits above for each answer.
    #[must_use]
    pub const fn steps(steps: u32) -> Self {
        Self {
            steps,
            calls: Self::CALLS,
            argument_bytes: Self::ARGUMENT_BYTES,
            all_argument_bytes: Self::ALL_ARGUMENT_BYTES,
            text_bytes: Self::TEXT_BYTES,
            parts: Self::PARTS,
        }
    }
}

/// The number of consecutive answers over a limit that ends the turn: a model that ignored two notes will ignore the
/// next.
pub const MAX_OVERFLOWS: u32 = 3;
