//! What people see, as lines: pure functions from data and a width to lines of spans with a meaning.
//!
//! Nothing here reads or writes a terminal, a file, a clock or the environment; the caller knows the width and whether
//! there may be colours, and prints. A [`Span`] is made of any text: characters that mislead become visible escapes.

pub mod arguments;
mod call;
mod changed_words;
mod count;
mod diff;
mod finished;
mod highlight;
mod line;
mod markdown;
mod note;
mod screen;
mod style;
mod table;
mod tail;

pub use call::{CallBody, CallCell, CallState, unrepeated};
pub use count::{count, duration, left_context};
pub use diff::diff;
pub use finished::finished;
pub use line::{Line, Span, columns};
pub use markdown::markdown;
pub use note::{Paragraph, joined, labelled};
pub use screen::{
    ConnectionState, Frame, Intent, Key, PodEntry, Reply, Screen, ScreenSize, context_kind, context_masking,
    context_part, short_model,
};
pub use style::{Theme, Tone};
pub use tail::output_tail;
