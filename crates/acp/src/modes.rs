//! Modes of a session: those of the sandbox. A pod has another one from its next start on.

use serde_json::{Value, json};

/// The modes that an editor can choose, with what they mean for people.
const MODES: [(&str, &str, &str); 2] = [
    (
        "read-only",
        "Read only",
        "Tools cannot write files; commands can write only in temporary directories of their own",
    ),
    (
        "workspace-write",
        "Workspace",
        "Tools and commands can write in the project",
    ),
];

/// The mode of a pod with this sandbox.
pub(crate) fn of_sandbox(sandbox: &str) -> &str {
    sandbox.split(',').next().unwrap_or(sandbox)
}

/// Whether an editor can choose it.
pub(crate) fn is_offered(mode: &str) -> bool {
    MODES.iter().any(|(id, _, _)| *id == mode)
}

/// The modes and the current one, which may be one that only a person can choose at a start.
pub(crate) fn state(current: &str) -> Value {
    let mut modes: Vec<Value> = MODES
        .iter()
        .map(|(id, name, about)| json!({ "id": id, "name": name, "description": about }))
        .collect();
    if !is_offered(current) {
        modes.push(json!({ "id": current, "name": current }));
    }
    json!({ "currentModeId": current, "availableModes": modes })
}
