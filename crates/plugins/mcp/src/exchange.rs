//! What one request to a server comes to: its answer, or why there is none; and how much may come before it.

use crate::elicit::Elicited;
use crate::wire::RpcError;
use authority::text::{Lines, escape_within};
use serde_json::value::RawValue;
use tokio::time::Instant;

/// The longest message of a server, in bytes: a picture is one.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// The longest quote of what a server says or prints, in bytes.
pub(crate) const MAX_QUOTE: usize = 512;

/// Most lines of a server after each request, and most bytes: what writes more is ended, also while it is idle.
const MAX_LINES: usize = 10_000;
const MAX_BYTES: usize = 4 * MAX_LINE;

/// After how many lines, or bytes of them, others have their turn.
const TURN_LINES: usize = 32;
const TURN_BYTES: usize = 64 << 10;

/// The longest quote of a server's standard error, in bytes.
const MAX_STDERR: usize = 8 << 10;

/// A server that cannot be asked any more, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Gone(pub String);

impl Gone {
    /// The same, with what the server wrote to its standard error.
    #[must_use]
    pub(crate) fn with_stderr(self, text: &str) -> Self {
        match text.trim() {
            "" => self,
            text => {
                let text = escape_within(text, Lines::One, MAX_STDERR);
                Self(format!("{}; it wrote: {text}", self.0))
            }
        }
    }
}

/// The answer to one request: a result, or the server's error.
pub(crate) type Answer = Result<Box<RawValue>, RpcError>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The pin is gone or another one.
    Changed(String),
    /// It did not start, so nothing was called.
    NotStarted(String),
    /// It was asked and is gone: the call may have happened.
    Died(String),
    /// The same, for want of time.
    Late,
    PodEnded,
}

impl Fault {
    pub(crate) fn earlier() -> Self {
        Self::NotStarted("earlier calls of its server took all of the time".to_owned())
    }

    /// Why a connection gave no answer in time that was asked, or was not.
    pub(crate) fn of(was_asked: bool, gone: Gone, until: Instant) -> Self {
        if !was_asked {
            Self::NotStarted(gone.0)
        } else if Instant::now() >= until {
            Self::Late
        } else {
            Self::Died(gone.0)
        }
    }
}

/// The answer of a call, and what the person has to know beside it.
pub(crate) struct Called {
    pub(crate) answer: Answer,
    /// What it asked a person meanwhile, in the older era.
    pub(crate) asked: Option<Elicited>,
    pub(crate) warning: Option<String>,
}

/// What a request names, which a server on the network also gets in headers.
pub(crate) struct About<'a> {
    /// The tool or resource.
    pub(crate) name: &'a str,
    /// Arguments, by the names of their headers.
    pub(crate) mirrored: Vec<(String, String)>,
}

/// What a server replied.
pub(crate) enum Reply {
    Answer(Answer),
    /// Another status of HTTP than one of success, and what stood beside it.
    Status(u16, String),
    /// It does not know the session any more: the request was not carried out.
    NoSession,
}

/// Lines of a server and their bytes: all since it was last asked, and those of this turn.
#[derive(Default)]
pub(crate) struct Heard {
    all: (usize, usize),
    turn: (usize, usize),
}

impl Heard {
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Gone> {
        for (lines, sum) in [&mut self.all, &mut self.turn] {
            *lines += 1;
            *sum += bytes;
        }
        match self.all.0 > MAX_LINES || self.all.1 > MAX_BYTES {
            true => Err(Gone(format!(
                "it wrote over {MAX_LINES} lines or {} MiB after one request",
                MAX_BYTES >> 20
            ))),
            false => Ok(()),
        }
    }

    /// Whether others have their turn; the next one begins.
    pub(crate) fn is_turn_over(&mut self) -> bool {
        let is_over = self.turn.0 >= TURN_LINES || self.turn.1 >= TURN_BYTES;
        if is_over {
            self.turn = (0, 0);
        }
        is_over
    }
}
