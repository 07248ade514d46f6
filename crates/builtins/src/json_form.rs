//! What the services of stores have in common as JSON.

use crate::store_error::StoreError;
use llm_worker::tool::parse_arguments;
use llm_worker::{ErrorKind, ToolContext};
use pod::feature::{JsonCall, ServiceFault};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The arguments of a call, as strictly as those of a tool.
pub(crate) fn arguments<A: DeserializeOwned + Serialize>(
    call: &JsonCall,
) -> Result<A, ServiceFault> {
    let read = parse_arguments(&call.method, &call.params.to_string());
    read.map(|(arguments, _canonical)| arguments)
        .map_err(|error| ServiceFault::new(error.kind(), error.to_string()))
}

/// The call of a tool within which files are changed.
pub(crate) fn context(call: &JsonCall) -> Result<ToolContext, ServiceFault> {
    let missing = || {
        let text = format!(
            "{} changes files; call it within a call of a tool",
            call.method
        );
        ServiceFault::new(ErrorKind::FixInput, text)
    };
    call.within.clone().ok_or_else(missing)
}

pub(crate) fn answer<T: Serialize>(result: Result<T, StoreError>) -> Result<Value, ServiceFault> {
    let value = result.map_err(|error| ServiceFault::new(error.kind(), error.to_string()))?;
    serde_json::to_value(value)
        .map_err(|error| ServiceFault::new(ErrorKind::Bug, error.to_string()))
}

pub(crate) fn unknown(call: &JsonCall, known: &str) -> Result<Value, ServiceFault> {
    let text = format!(
        "there is no method `{}`; the methods are {known}",
        call.method
    );
    Err(ServiceFault::new(ErrorKind::FixInput, text))
}
