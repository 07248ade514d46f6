//! One record is one line: encoding and checking lines.

mod check;
mod checked;
pub(crate) mod columns;
mod encode;

pub(crate) use check::{
    Chain, Frame, Header, begins_like_one, check, line_length, next_candidate, rechained,
    standalone,
};
pub(crate) use checked::{CheckedLines, CheckedRecords};
pub(crate) use columns::HEADER;
pub(crate) use encode::Encoder;

pub use check::{FrameError, OwnedFrame, RecordId};
pub use encode::{EncodeError, Frames};

/// The longest line, newline included. Larger payloads are blobs.
pub const MAX_LINE: usize = 1 << 20;
/// The most records in one batch; the column `b` has five digits.
pub const MAX_BATCH_RECORDS: usize = 4096;
/// The most bytes in one batch: one positioned write and one flush of that size take well under a second.
pub const MAX_BATCH_BYTES: usize = 16 << 20;
