//! What hooks are shown, made by hand.

use llm_worker::{CallId, ToolEffect};
use pod::feature::FeatureId;
use pod::hook::ToolCallView;
use serde_json::Value;

/// A call of an effectful tool of nobody in particular, which names nothing. Its fields are public: say
/// `ToolCallView { touches, ..tool_call("Bash", arguments) }` for one that runs a command or names files.
///
/// # Panics
/// Never: there is a first call.
#[must_use]
pub fn tool_call(tool: &str, arguments: Value) -> ToolCallView {
    ToolCallView {
        call: CallId::new(1).expect("the first call"),
        tool: tool.to_owned(),
        feature: FeatureId::builtin("testkit"),
        effect: ToolEffect::Effectful,
        arguments: arguments.to_string().into(),
        touches: Vec::new(),
    }
}
