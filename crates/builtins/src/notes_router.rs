//! `builtin:notes-router`: one tool that stores a note as a work item or in memory. Off until configured.
//!
//! ```text
//!   asks for something to be done ── work items there ──> a work item
//!             │                             └─ not there ─> a note in memory, and the answer says so
//!             └── otherwise ─────────────────────────────> a note in memory
//! ```
//!
//! It stores nothing itself. It requires memory; work items are optional. It depends on their contracts, not on the
//! features that provide them.

use crate::memory::{Description, KEEPER, MemoryKeeper, NewNote, NoteKind, NoteName, NoteSaved};
use crate::plain;
use crate::store_error::StoreError;
use crate::work_item::{ItemId, NewItem, Title, WRITER, WorkItemWriter};
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolResult};
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    ServiceError, ServiceHandle, ServiceRequirement, ToolKey,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("notes-router");

const ROUTE: ToolKey<Args> = ToolKey::new(
    "RouteNote",
    ToolEffect::Effectful,
    "File a note: as a work item when it asks for something to be done, else in memory. The answer says why.",
);

/// Marks at the beginning of a line that stand for open work.
const MARKS: [&str; 5] = ["TODO", "FIXME", "BUG", "- [ ]", "* [ ]"];

/// First words of a title that ask for work.
const VERBS: &str = "add change check clean document fix implement improve investigate make mend migrate move refactor \
                     remove rename replace support test update upgrade write";

/// Words in a title that ask for work.
const WISHES: [&str; 6] = [
    "should",
    "must",
    "needs to",
    "has to",
    "is broken",
    "is missing",
];

/// The longest name that a title becomes, in bytes.
const MAX_NAME: usize = 60;

/// The feature that adds the tool to store a note where it belongs.
#[derive(Debug)]
pub struct NotesRouter;

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct Args {
    /// One line.
    title: Title,
    /// Markdown.
    text: String,
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Notes router")
        .version(env!("CARGO_PKG_VERSION"))
        .requires(ServiceRequirement::required(KEEPER, "^1"))
        .requires(ServiceRequirement::optional(WRITER, "^1"))
        .tool(&ROUTE)
        .build()
}

impl FeatureModule for NotesRouter {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let memory = ctx.services().require(KEEPER)?;
        let items = match ctx.services().require(WRITER) {
            Ok(items) => Some(items),
            Err(FeatureInstallError::Unavailable { .. } | FeatureInstallError::Denied { .. }) => {
                None
            }
            Err(error) => return Err(error),
        };
        let directory = items
            .as_ref()
            .and_then(|items| items.with(WorkItemWriter::directory).ok());
        let live = Arc::new(Live { memory, items });
        let touches = move |args: &Args| {
            let directory = directory
                .clone()
                .filter(|_| asks(&args.title.to_string(), &args.text).is_some());
            directory.into_iter().map(Touch::Write).collect()
        };
        ctx.tools()
            .implement_touching(&ROUTE, touches, &live, Live::route)
            .map(drop)
    }
}

struct Live {
    memory: ServiceHandle<dyn MemoryKeeper>,
    items: Option<ServiceHandle<dyn WorkItemWriter>>,
}

impl Live {
    async fn route(self: Arc<Self>, args: Args, cx: ToolContext) -> ToolResult {
        let title = args.title.to_string();
        let Some(why) = asks(&title, &args.text) else {
            let note = self.remember(args, cx).await?;
            return Ok(tools::answer(
                &format!("{note}: nothing in it requests work"),
                String::new(),
            ));
        };
        let lost = match self.file(&args, cx.clone()).await? {
            Ok(id) => {
                return Ok(tools::answer(
                    &format!("work item {id}: {why}"),
                    String::new(),
                ));
            }
            Err(lost) => lost,
        };
        let note = self.remember(args, cx).await?;
        Ok(tools::answer(
            &format!("{note}, though {why}: {lost}"),
            String::new(),
        ))
    }

    /// Stores a note as a work item; returns the reason if there are no work items.
    async fn file(
        &self,
        args: &Args,
        cx: ToolContext,
    ) -> Result<Result<ItemId, String>, StoreError> {
        let Some(items) = &self.items else {
            return Ok(Err("there are no work items here".to_owned()));
        };
        let title = args.title.clone();
        let body = args.text.clone();
        let item = NewItem {
            title,
            body,
            kind: None,
            priority: None,
            labels: None,
        };
        match items.call(|items| items.create(item, cx)).await {
            Ok(created) => created.map(Ok),
            Err(lost @ (ServiceError::Revoked { .. } | ServiceError::Unavailable { .. })) => {
                Ok(Err(lost.to_string()))
            }
            Err(error) => Err(StoreError::new(error.kind(), error.to_string())),
        }
    }

    /// Stores a note in memory; returns its name.
    async fn remember(&self, args: Args, cx: ToolContext) -> Result<String, StoreError> {
        let title = args.title.to_string();
        let slug = plain::slug(&title, MAX_NAME);
        let name = if slug.is_empty() {
            "note".to_owned()
        } else {
            slug
        };
        let name = NoteName::try_from(name).map_err(StoreError::fix)?;
        let shown = format!("memory note {name}");
        let description = Description::try_from(title).map_err(StoreError::fix)?;
        let note = NewNote {
            name,
            description,
            kind: NoteKind::Fact,
            tags: None,
            text: args.text,
            replace: None,
        };
        let kept = self.memory.call(|memory| memory.write(note, cx)).await;
        match kept.map_err(|error| StoreError::new(error.kind(), error.to_string()))?? {
            NoteSaved::Created => Ok(shown),
            NoteSaved::Replaced => Err(StoreError::new(
                ErrorKind::Bug,
                format!("{shown} replaced another note"),
            )),
        }
    }
}

/// The reason why a note counts as a request for work, if it does.
fn asks(title: &str, text: &str) -> Option<String> {
    let lower = title.to_lowercase();
    let first = lower
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    if VERBS.split(' ').any(|verb| verb == first) {
        return Some(format!("its title begins with `{first}`"));
    }
    let padded = format!(" {lower} ");
    if let Some(wish) = WISHES
        .iter()
        .find(|wish| padded.contains(&format!(" {wish} ")))
    {
        return Some(format!("its title says `{wish}`"));
    }
    let lines = std::iter::once(title)
        .chain(text.lines())
        .map(str::trim_start);
    let mark = lines
        .into_iter()
        .find_map(|line| MARKS.iter().find(|mark| line.starts_with(*mark)));
    mark.map(|mark| format!("a line begins with `{mark}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_work_and_what_tells() {
        let cases = [
            ("Fix the parser", "", true),
            ("fix: parser", "", true),
            ("Fixtures of the parser", "", false),
            ("The parser should name lines", "", true),
            ("The parser is broken.", "", false),
            ("The parser is broken", "", true),
            ("Parser", "notes\n  - [ ] name lines", true),
            ("Parser", "TODO name lines", true),
            ("Parser", "there is no TODO here", false),
            ("How the parser names lines", "It counts them.", false),
        ];
        for (title, text, work) in cases {
            assert_eq!(asks(title, text).is_some(), work, "{title}: {text}");
        }
    }
}
