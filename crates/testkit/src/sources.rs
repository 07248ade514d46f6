//! What tests of providers share: a provider that is asked without a pod, and what a tool answered.

use llm_worker::ResultStatus;
use pod::feature::author::CallOutcome;
use serde_json::Value;
use std::path::Path;
use tokio::runtime::Builder;

/// Waits for what a provider answers.
///
/// # Panics
/// There is no runtime.
pub fn answered<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(future)
}

/// The JSON that a tool answered with.
///
/// # Panics
/// The call failed, or its text is no JSON.
pub fn data(outcome: &CallOutcome) -> Value {
    assert_eq!(outcome.status, ResultStatus::Ok, "{}", outcome.text());
    serde_json::from_str(&outcome.content).unwrap_or_else(|_| panic!("{}", outcome.text()))
}

/// Whether one of the files below a directory has these bytes. Files that cannot be read have none.
pub fn holds(dir: &Path, bytes: &str) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        let all = std::fs::read(&path).unwrap_or_default();
        all.windows(bytes.len())
            .any(|part| part == bytes.as_bytes())
    })
}
