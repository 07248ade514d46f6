//! The service `yoi.memory.v1` as JSON.

use super::Named;
use super::contract::{MemoryKeeper, MemoryLookup, NewNote, NoteQuery};
use crate::json_form::{answer, arguments, context, unknown};
use pod::feature::{JsonCall, JsonService, ServiceFault, ServiceFuture};
use serde_json::{Value, json};
use std::sync::Arc;

/// The methods that read.
pub(super) struct LookupAsJson(pub(super) Arc<dyn MemoryLookup>);

/// The methods that change notes.
pub(super) struct KeeperAsJson(pub(super) Arc<dyn MemoryKeeper>);

impl JsonService for LookupAsJson {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            match call.method.as_str() {
                "search" => answer(self.0.search(arguments::<NoteQuery>(&call)?).await),
                "read" => answer(self.0.read(arguments::<Named>(&call)?.name).await),
                _ => unknown(&call, "search, read"),
            }
        })
    }
}

impl JsonService for KeeperAsJson {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            match call.method.as_str() {
                "write" => {
                    let saved = self
                        .0
                        .write(arguments::<NewNote>(&call)?, context(&call)?)
                        .await;
                    answer(saved.map(|saved| json!({ "saved": saved })))
                }
                "forget" => answer(
                    self.0
                        .forget(arguments::<Named>(&call)?.name, context(&call)?)
                        .await,
                ),
                _ => unknown(&call, "write, forget"),
            }
        })
    }
}
