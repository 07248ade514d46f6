//! The service `yoi.work-items.v1`: one side reads work items, the other writes them.

use super::id::{
    Assignee, ItemId, ItemRef, Priority, Time, Title, WorkItemKind, WorkItemLabel, WorkItemStatus,
};
use crate::store_error::StoreError;
use async_trait::async_trait;
use llm_worker::ToolContext;
use pod::feature::{ServiceAccess, ServiceEventKey, ServiceKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The service key for reading work items.
pub const READER: ServiceKey<dyn WorkItemReader> =
    ServiceKey::new("yoi.work-items.v1").access(ServiceAccess::WorkItemRead);
/// The service key for writing work items.
pub const WRITER: ServiceKey<dyn WorkItemWriter> =
    ServiceKey::new("yoi.work-items.v1").access(ServiceAccess::WorkItemWrite);
/// The event of the store after it created or changed an item. A change by another program is no event.
pub const CHANGED: ServiceEventKey = READER.event("changed");
/// The service that any tracker of a project provides as JSON, with the methods of both sides.
pub const TRACKER: &str = "project.issue-tracker.v1";
/// The version of all of them.
pub(super) const VERSION: &str = "1.0.0";

/// Reads work items of the project; provided by [`WorkItems`](super::WorkItems) to its tools and to other features.
#[async_trait]
pub trait WorkItemReader: Send + Sync {
    /// The items that match, the most urgent first, then the newest.
    ///
    /// # Errors
    /// `Exhausted` beyond [`super::MAX_ITEMS`]; `Denied` where the directory may not be read.
    async fn list(&self, query: Query) -> Result<WorkItemList, StoreError>;

    /// One item with its thread.
    ///
    /// # Errors
    /// `FixInput` when the reference means no item or several; `Corrupt` when its files cannot be parsed.
    async fn show(&self, item: ItemRef) -> Result<WorkItem, StoreError>;
}

/// Writes work items. The host of `cx` records each change before it happens, for the call that makes it.
#[async_trait]
pub trait WorkItemWriter: Send + Sync {
    /// The directory of the items, which a tool that uses this service names as touched.
    fn directory(&self) -> PathBuf;

    /// A new item.
    ///
    /// # Errors
    /// `FixInput` for a text that may not stand in an item; `Retry` while another process changes items; `Denied` where
    /// nothing may be written.
    async fn create(&self, item: NewItem, cx: ToolContext) -> Result<ItemId, StoreError>;

    /// Adds to an item's thread, moves it, or changes its fields.
    ///
    /// # Errors
    /// As for [`Self::create`] and [`WorkItemReader::show`]; `FixInput` when nothing would change.
    async fn update(&self, change: WorkItemChange, cx: ToolContext) -> Result<Updated, StoreError>;
}

/// Which items.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Query {
    /// Default: open and pending.
    pub status: Option<WorkItemStatus>,
    /// Only of this kind.
    pub kind: Option<WorkItemKind>,
    /// Only with this label.
    pub label: Option<WorkItemLabel>,
    /// Words that must all stand in the title or id.
    pub words: Option<String>,
    /// At most so many; default 30.
    pub limit: Option<usize>,
}

/// The content of a work item that is created.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct NewItem {
    /// One line.
    pub title: Title,
    /// Markdown: why, what is wanted, when it is done.
    pub body: String,
    /// Default: task.
    pub kind: Option<WorkItemKind>,
    /// Default: normal.
    pub priority: Option<Priority>,
    /// Words of a-z, 0-9, `:`, `_`, `-`.
    pub labels: Option<Vec<WorkItemLabel>>,
}

/// What changes of an item.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct WorkItemChange {
    /// Id, its beginning, or its slug.
    pub id: ItemRef,
    /// Added to the thread. Closing needs one: how it was settled.
    pub comment: Option<String>,
    /// Where it moves to.
    pub status: Option<WorkItemStatus>,
    /// New title.
    pub title: Option<Title>,
    /// New kind.
    pub kind: Option<WorkItemKind>,
    /// New priority.
    pub priority: Option<Priority>,
    /// All labels from now on.
    pub labels: Option<Vec<WorkItemLabel>>,
    /// Who does it; empty: nobody.
    pub assignee: Option<Assignee>,
}

impl WorkItemChange {
    /// No change of this item.
    pub(super) fn none(id: ItemRef) -> Self {
        Self {
            id,
            comment: None,
            status: None,
            title: None,
            kind: None,
            priority: None,
            labels: None,
            assignee: None,
        }
    }
}

/// The result of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkItemList {
    /// At most the requested number.
    pub items: Vec<Heading>,
    /// The number of all matches.
    pub found: usize,
    /// Items whose front matter cannot be parsed.
    pub unreadable: Vec<ItemId>,
}

/// The front matter of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heading {
    pub id: ItemId,
    pub title: Title,
    /// The status, from the folder that the item is in.
    pub status: WorkItemStatus,
    pub kind: WorkItemKind,
    pub priority: Priority,
    pub labels: Vec<WorkItemLabel>,
    pub created_at: Time,
    pub updated_at: Time,
    pub assignee: Assignee,
}

/// One item with its body and thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkItem {
    pub heading: Heading,
    pub body: String,
    /// Its thread, oldest first.
    pub events: Vec<ThreadEntry>,
}

/// One entry of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadEntry {
    pub at: Time,
    /// `created open`, `comment`, `plan`, `decision`, `implementation_report`, `review approve`, `status open ->
    /// closed`.
    pub what: String,
    pub author: String,
    /// Its text; may be empty.
    pub text: String,
}

/// The result of an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Updated {
    pub id: ItemId,
    pub status: WorkItemStatus,
    /// The changes made, for people.
    pub done: Vec<String>,
}

/// Which item.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub(super) struct Show {
    /// Id, its beginning, or its slug.
    pub(super) id: ItemRef,
}
