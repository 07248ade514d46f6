//! `builtin:work-item`: the items below `work-items/`, as `tickets.sh` keeps them. Off until configured, and only
//! where the project has such a directory.
//!
//! ```text
//!   work-items/{open,pending,closed}/<id>/item.md    front matter and body
//!                                        /thread.md  numbered events, which only grow
//! ```
//!
//! The script and these tools exclude each other by the same lock and may be used side by side. Nothing is deleted:
//! items are closed. `yoi undo` restores texts; an item that moved stays in its new folder, which the script's `doctor`
//! then reports.

mod answer;
mod choices;
mod contract;
mod format;
mod id;
mod json;
mod read_first;
mod store;

use choices::Choices;
pub use choices::MIN_ITEMS;
pub use contract::{
    CHANGED, Heading, NewItem, Query, READER, TRACKER, ThreadEntry, Updated, WRITER, WorkItem,
    WorkItemChange, WorkItemList, WorkItemReader, WorkItemWriter,
};
use contract::{Show, VERSION};
pub use id::{
    Assignee, ItemId, ItemRef, Priority, Time, Title, WorkItemKind, WorkItemLabel, WorkItemStatus,
};
use json::{ReaderAsJson, Tracker, WriterAsJson};
pub use store::{MAX_ITEMS, MAX_LISTED, MAX_TEXT};

use crate::clock::Now;
use crate::plain;
use crate::store_error::StoreError;
use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolResult};
use pod::feature::{
    CapabilityRequest, EnrichKey, FeatureDescriptor, FeatureDescriptorBuilder, FeatureId,
    FeatureInstallContext, FeatureInstallError, FeatureModule, HostCapability, ServiceDeclaration,
    ServiceId, ToolCategory, ToolKey,
};
use pod::hook::ToolCallView;
use read_first::ReadFirst;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use store::WorkItemStore;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("work-item");

/// The root that holds the items: the project's directory of this name.
pub const ROOT: &str = "work-items";

/// The capability to read the items.
pub const READ: HostCapability = HostCapability::ScopedFs {
    root: Cow::Borrowed(ROOT),
    read: true,
    write: false,
    execute: false,
};
/// The capability to read and change the items.
pub const WRITE: HostCapability = HostCapability::ScopedFs {
    root: Cow::Borrowed(ROOT),
    read: true,
    write: true,
    execute: false,
};

/// The capability to provide the project's work items as its issue tracker.
pub const PROVIDE_TRACKER: HostCapability = HostCapability::ProvideService {
    key: Cow::Borrowed(TRACKER),
};

/// The capability to provide work items to other features.
pub const PROVIDE: HostCapability = HostCapability::ProvideService {
    key: Cow::Borrowed("yoi.work-items.v1"),
};

/// The category of the tools: they work where a tracker of issues is installed.
const CATEGORY: &str = "issue-tracker";

const WRITES: &[HostCapability] = &[WRITE];

const LIST: ToolKey<Query> = ToolKey::new(
    "WorkItemList",
    ToolEffect::ReadOnly,
    "List the project's work items, the most urgent first.",
)
.category(CATEGORY);
const SHOW: ToolKey<Show> = ToolKey::new(
    "WorkItemShow",
    ToolEffect::ReadOnly,
    "Show a work item with its thread.",
)
.category(CATEGORY);
const CREATE: ToolKey<NewItem> = ToolKey::new(
    "WorkItemCreate",
    ToolEffect::Effectful,
    "Record new work; answers its id.",
)
.needs(WRITES)
.category(CATEGORY);
const UPDATE: ToolKey<WorkItemChange> = ToolKey::new(
    "WorkItemUpdate",
    ToolEffect::Effectful,
    "Comment on a work item, move it to open, pending or closed, or change its fields.",
)
.needs(WRITES)
.category(CATEGORY);
const COMMENT: ToolKey<NewComment> = ToolKey::new(
    "WorkItemComment",
    ToolEffect::Effectful,
    "Add a comment to the thread of a work item.",
)
.needs(WRITES)
.category(CATEGORY);

const CHOICES: EnrichKey =
    EnrichKey::new("choices", &[LIST.name(), CREATE.name(), UPDATE.name()]).category(CATEGORY);

/// The capability to narrow the arguments of the tools to the values in use.
pub const ENRICH: HostCapability = HostCapability::EnrichTools {
    tools: Cow::Borrowed(&[
        Cow::Borrowed(LIST.name()),
        Cow::Borrowed(CREATE.name()),
        Cow::Borrowed(UPDATE.name()),
    ]),
};

/// `[features."builtin:work-item"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The author name in the events of threads; one line of at most 120 bytes.
    pub author: String,
    /// Denies comments on items, and changes of their status, before the session has read or created the item.
    pub read_first: bool,
}

impl Default for Settings {
    /// A name that shows that the author was no person.
    fn default() -> Self {
        Self {
            author: "yoi".to_owned(),
            read_first: false,
        }
    }
}

/// The author of an event.
type Author = Arc<str>;

/// The feature that adds tools for the project's work items, and provides them to other features.
pub struct WorkItems {
    author: Author,
    read_first: bool,
    now: Now,
}

impl WorkItems {
    /// Creates the feature with these settings and this clock, which dates events.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings, now: Now) -> Result<Self, String> {
        plain::line("`author`", &settings.author, id::MAX_AUTHOR)?;
        Ok(Self {
            author: settings.author.into(),
            read_first: settings.read_first,
            now,
        })
    }
}

/// A comment.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct NewComment {
    /// Id, its beginning, or its slug.
    id: ItemRef,
    /// Markdown.
    comment: String,
}

/// The feature with its default settings.
pub(crate) fn declared() -> FeatureDescriptor {
    builder().build()
}

fn builder() -> FeatureDescriptorBuilder {
    FeatureDescriptor::builder(ID)
        .display_name("Work items")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .request(CapabilityRequest::required(
            READ,
            "read the items below work-items/",
        ))
        .request(CapabilityRequest::optional(WRITE, "make and change items"))
        .tool(&LIST)
        .tool(&SHOW)
        .tool(&CREATE)
        .tool(&UPDATE)
        .tool(&COMMENT)
        .enriches(&CHOICES)
        .serves(ToolCategory::new(CATEGORY))
        .provides(ServiceDeclaration::of(READER, VERSION).emits(CHANGED))
        .provides(ServiceDeclaration::of(WRITER, VERSION))
        .provides(ServiceDeclaration::declared(
            ServiceId::whole(TRACKER),
            VERSION,
        ))
        .instruction(
            "use",
            "Work that outlives this session belongs into a work item, not only into the answer.",
        )
}

impl FeatureModule for WorkItems {
    fn descriptor(&self) -> FeatureDescriptor {
        match self.read_first {
            true => builder()
                .gate(&read_first::GATE)
                .state(&read_first::READ_ITEMS)
                .build(),
            false => declared(),
        }
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let workspace = ctx.services().fs(ROOT).map_err(absent)?;
        let directory = workspace.project().to_owned();
        let changed = ctx.services().event(CHANGED).ok();
        let author = Arc::clone(&self.author);
        let now = Arc::clone(&self.now);
        let store = Arc::new(WorkItemStore {
            files: tools::Files::new(workspace),
            author,
            now,
            changed,
        });
        let read = Touch::Read(directory.clone());
        let write = Touch::Write(directory);
        let mut live = Live {
            store: Arc::clone(&store),
            read_first: None,
        };
        if self.read_first {
            let known = Arc::clone(&store);
            let changed =
                Box::new(move |call: &ToolCallView| known.id_of(&changed_item(call)?).ok());
            let rule = Arc::new(ReadFirst {
                changed,
                items: ctx.state(&read_first::READ_ITEMS)?,
            });
            ctx.hooks()
                .gate(&read_first::GATE, &rule, ReadFirst::judge)?;
            live.read_first = Some(rule);
        }
        let live = Arc::new(live);
        ctx.tools()
            .implement_touching(&LIST, always(&read), &live, Live::list)?;
        ctx.tools()
            .implement_touching(&SHOW, always(&read), &live, Live::show)?;
        ctx.tools()
            .implement_touching(&CREATE, always(&write), &live, Live::create)?;
        ctx.tools()
            .implement_touching(&UPDATE, always(&write), &live, Live::update)?;
        ctx.tools()
            .implement_touching(&COMMENT, always(&write), &live, Live::comment)?;
        let items = Arc::clone(&store);
        let newest = Box::new(move || items.newest().map_err(|error| error.to_string()));
        ctx.tools()
            .enrich(&CHOICES, Arc::new(Choices::new(newest)))?;
        let reader = Arc::clone(&store) as Arc<dyn WorkItemReader>;
        let writer = store as Arc<dyn WorkItemWriter>;
        ctx.services().provide(READER, Arc::clone(&reader))?;
        ctx.services()
            .provide_json(&READER.id(), Arc::new(ReaderAsJson(Arc::clone(&reader))))?;
        ctx.services().provide(WRITER, Arc::clone(&writer))?;
        ctx.services()
            .provide_json(&WRITER.id(), Arc::new(WriterAsJson(Arc::clone(&writer))))?;
        let tracker = Tracker(ReaderAsJson(reader), WriterAsJson(writer));
        ctx.services()
            .provide_json(&ServiceId::whole(TRACKER), Arc::new(tracker))?;
        Ok(())
    }
}

/// A `touches` function that returns the same for all arguments.
fn always<A>(touch: &Touch) -> impl Fn(&A) -> Vec<Touch> + Send + Sync + use<A> {
    let touch = touch.clone();
    move |_| vec![touch.clone()]
}

/// Adds help to the error if the host has no such root.
fn absent(error: FeatureInstallError) -> FeatureInstallError {
    match error {
        FeatureInstallError::Unavailable { .. } => FeatureInstallError::Failed(
            "this project has no directory `work-items`".to_owned(),
            Some("create that directory"),
        ),
        error => error,
    }
}

/// The item that a call comments on or moves, as the call names it.
fn changed_item(call: &ToolCallView) -> Option<ItemRef> {
    if call.feature != ID {
        return None;
    }
    if call.tool == COMMENT.name() {
        return serde_json::from_str(&call.arguments)
            .ok()
            .map(|NewComment { id, .. }| id);
    }
    let change: Option<WorkItemChange> = serde_json::from_str(&call.arguments).ok();
    let change = change.filter(|_| call.tool == UPDATE.name())?;
    (change.comment.is_some() || change.status.is_some()).then_some(change.id)
}

/// The tools.
struct Live {
    store: Arc<WorkItemStore>,
    read_first: Option<Arc<ReadFirst>>,
}

impl Live {
    async fn list(self: Arc<Self>, query: Query, _: ToolContext) -> ToolResult {
        Ok(answer::listing(&self.store.list(query).await?))
    }

    async fn show(self: Arc<Self>, args: Show, _: ToolContext) -> ToolResult {
        let item = self.store.show(args.id).await?;
        if let Some(rule) = &self.read_first {
            rule.add(&item.heading.id).await?;
        }
        Ok(answer::item(&item))
    }

    async fn create(self: Arc<Self>, item: NewItem, cx: ToolContext) -> ToolResult {
        let id = self.store.create(item, cx).await?;
        if let Some(rule) = &self.read_first {
            // The item exists. If this is not kept, the session has to read it.
            rule.add(&id).await.ok();
        }
        Ok(tools::answer(
            &format!("{id}: created, open"),
            String::new(),
        ))
    }

    async fn update(self: Arc<Self>, change: WorkItemChange, cx: ToolContext) -> ToolResult {
        let Updated { id, status, done } = self.store.update(change, cx).await?;
        Ok(tools::answer(
            &format!("{id}: {}; it is {status}", done.join(", ")),
            String::new(),
        ))
    }

    async fn comment(self: Arc<Self>, args: NewComment, cx: ToolContext) -> ToolResult {
        let NewComment { id, comment } = args;
        let comment = Some(comment).filter(|text| !text.trim().is_empty());
        let comment =
            Some(comment.ok_or_else(|| StoreError::fix("`comment` is empty; write what to add"))?);
        self.update(
            WorkItemChange {
                comment,
                ..WorkItemChange::none(id)
            },
            cx,
        )
        .await
    }
}
