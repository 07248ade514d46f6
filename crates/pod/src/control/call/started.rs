//! A call whose start is durable, as its stages share it: the hooks around it, its run, and the hooks that shape its result.

use super::authorized::Landings;
use super::output::CallOutput;
use crate::control::core::Core;
use crate::feature::FeatureRegistry;
use crate::foreign::Callbacks;
use crate::hook::{Shaping, ToolCallView};
use crate::record::{HookName, TransformNote};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// One call that runs.
pub(super) struct StartedCall {
    pub(super) registry: Arc<FeatureRegistry>,
    pub(super) callbacks: Callbacks,
    pub(super) view: Arc<ToolCallView>,
    pub(super) shaping: Shaping,
    pub(super) output: Arc<CallOutput>,
    /// Fires when the call must end.
    pub(super) cancel: CancellationToken,
    pub(super) began: Instant,
    pub(super) deadline: Duration,
    pub(super) traces: Mutex<Traces>,
}

/// What the hooks around the call leave for the record of its end.
#[derive(Default)]
pub(super) struct Traces {
    pub(super) notes: Vec<TransformNote>,
    pub(super) answered_by: Option<HookName>,
}

impl StartedCall {
    pub(super) fn new(
        core: &Core,
        view: Arc<ToolCallView>,
        deadline: Duration,
        landings: Landings,
    ) -> Self {
        let shaping = core.registry.hooks().shaping(&view.tool);
        Self {
            registry: core.registry.clone(),
            callbacks: core.callbacks.clone(),
            shaping,
            output: Arc::new(CallOutput::begin(core, view.call, shaping, landings)),
            view,
            cancel: CancellationToken::new(),
            began: Instant::now(),
            deadline,
            traces: Mutex::default(),
        }
    }
}
