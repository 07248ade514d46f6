//! The service `yoi.work-items.v1` as JSON, and `project.issue-tracker.v1`: the same methods under the name that any
//! tracker of a project provides.

use super::contract::{NewItem, Query, Show, WorkItemChange, WorkItemReader, WorkItemWriter};
use crate::json_form::{answer, arguments, context, unknown};
use pod::feature::{JsonCall, JsonService, ServiceFault, ServiceFuture};
use serde_json::{Value, json};
use std::sync::Arc;

/// The methods that read.
pub(super) struct ReaderAsJson(pub(super) Arc<dyn WorkItemReader>);

/// The methods that change items.
pub(super) struct WriterAsJson(pub(super) Arc<dyn WorkItemWriter>);

/// All methods.
pub(super) struct Tracker(pub(super) ReaderAsJson, pub(super) WriterAsJson);

const READING: &str = "list, show";
const WRITING: &str = "directory, create, update";

impl JsonService for ReaderAsJson {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            match call.method.as_str() {
                "list" => answer(self.0.list(arguments::<Query>(&call)?).await),
                "show" => answer(self.0.show(arguments::<Show>(&call)?.id).await),
                _ => unknown(&call, READING),
            }
        })
    }
}

impl JsonService for WriterAsJson {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            match call.method.as_str() {
                "directory" => answer(Ok(self.0.directory())),
                "create" => {
                    let id = self
                        .0
                        .create(arguments::<NewItem>(&call)?, context(&call)?)
                        .await;
                    answer(id.map(|id| json!({ "id": id })))
                }
                "update" => answer(
                    self.0
                        .update(arguments::<WorkItemChange>(&call)?, context(&call)?)
                        .await,
                ),
                _ => unknown(&call, WRITING),
            }
        })
    }
}

impl JsonService for Tracker {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        match call.method.as_str() {
            "list" | "show" => self.0.call(call),
            "directory" | "create" | "update" => self.1.call(call),
            _ => Box::pin(async move { unknown(&call, &format!("{READING}, {WRITING}")) }),
        }
    }
}
