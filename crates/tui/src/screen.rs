//! The full screen of a pod: a fold of what the pod tells, keys in, frames out. The driver owns the terminal, the
//! connection and the clock.

mod approvals;
mod cache;
mod cell;
mod composer;
mod dead_time;
mod exchange;
mod farewell;
mod feature_panel;
mod files;
mod fold;
mod frame;
mod full_context;
mod inline;
mod key_table;
mod keys;
mod layout;
mod live;
mod menu;
mod panels;
mod pods;
mod processes;
mod search;
mod state;
mod status;
mod told;
mod viewport;
mod writing;

pub(crate) use cell::FILE;
pub use cell::{CallExtent, ShownCall};
pub use exchange::{
    ConnectionState, FeatureChange, FeatureEntry, FeatureList, FoundFiles, Frame, Intent, Key,
    PodEntry, Reply, ScreenSize, ShownText,
};
pub use panels::{context_gain, context_kind, context_masking, context_part};
pub use state::Screen;
pub use status::short_model;
