//! Views for calling hooks, made without a pod.

use llm_worker::tool::Touch;
use llm_worker::{CallId, ToolEffect};
use pod::feature::FeatureId;
use pod::hook::ToolCallView;
use serde_json::{Value, json};

/// A view of a call of an effectful tool that names no file and no command, for
/// [`FeatureUnderTest::ask`](crate::FeatureUnderTest::ask). Its fields are public: write `ToolCallView { touches,
/// ..tool_call("Write", arguments) }` for a call that names some.
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
        input: None,
        turn: 1,
        by_person: false,
    }
}

/// A view of a call that runs this shell command.
#[must_use]
pub fn shell_call(command: &str) -> ToolCallView {
    let touches = vec![Touch::Shell(command.to_owned())];
    ToolCallView {
        touches,
        ..tool_call("Bash", json!({ "command": command }))
    }
}
