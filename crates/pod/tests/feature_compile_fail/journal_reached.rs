//! What a call holds of its host is no way to the writer of the journal.
use llm_worker::ToolContext;
use std::sync::Arc;

fn reach(cx: ToolContext) -> Option<Arc<session_store::Journal>> {
    cx.host.downcast::<session_store::Journal>().ok()
}

fn main() {}
