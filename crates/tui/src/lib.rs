//! What people see, as lines: pure functions from data and a width to lines of spans with a meaning.
//!
//! Nothing here reads or writes a terminal, a file, a clock or the environment; the caller knows the width and whether
//! there may be colours, and prints. A [`Span`] is made of any text: characters that mislead become visible escapes.

pub mod arguments;
mod asked_command;
mod call;
mod changed_words;
mod diff;
mod finished;
mod for_people;
mod highlight;
mod line;
mod markdown;
mod note;
mod screen;
pub mod slash;
mod style;
mod table;
mod tail;
pub mod transcript;

pub use asked_command::{AskedField, asked_fields, asked_file, asked_parts};
pub use call::{CallBody, CallCell, CallState};
pub use diff::{diff, previewed};
pub use finished::finished;
pub use for_people::for_people;
pub use line::{Line, Span, columns};
pub use markdown::markdown;
pub use note::{Paragraph, joined, labelled};
pub(crate) use protocol::count;
pub use protocol::count::{count, duration, left_context};
pub use screen::{
    CallExtent, ConnectionState, FeatureChange, FeatureEntry, FeatureList, FoundFiles, Frame,
    Intent, Key, PodEntry, Reply, Screen, ScreenSize, ShownCall, ShownText, context_gain,
    context_kind, context_masking, context_part, short_model,
};
pub use style::{Theme, Tone};
pub use tail::output_tail;
