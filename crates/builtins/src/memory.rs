//! `builtin:memory`: notes that outlive a session, one file each. Off until configured.
//!
//! The notes belong to the user, not to the project: the root is a directory that the host keeps for each project,
//! outside of it. Notes are checked before they are stored: complete front matter, plain text, limits, links with
//! targets, and nothing that looks like a secret.

mod contract;
mod json;
mod lint;
mod note;
mod rank;
mod store;

use contract::VERSION;
pub use contract::{
    Hits, KEEPER, LOOKUP, MemoryKeeper, MemoryLookup, NewNote, NoteQuery, NoteSaved,
};
use json::{KeeperAsJson, LookupAsJson};
pub use lint::{MAX_TAGS, MAX_TEXT};
pub use note::{Day, Description, Note, NoteKind, NoteName, Tag};
pub use store::{MAX_FOUND, MAX_NOTES};

use crate::clock::Now;
use llm_worker::{ToolContext, ToolEffect, ToolOutput, ToolResult};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HostCapability, ServiceDeclaration, ToolKey,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use store::NoteStore;
use tools::{answer, counted};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("memory");

/// The root that holds the notes of this project.
pub const ROOT: &str = "memory";

/// The capability to read the notes.
pub const READ: HostCapability = HostCapability::ScopedFs {
    root: Cow::Borrowed(ROOT),
    read: true,
    write: false,
    execute: false,
};
/// The capability to read and change the notes.
pub const WRITE: HostCapability = HostCapability::ScopedFs {
    root: Cow::Borrowed(ROOT),
    read: true,
    write: true,
    execute: false,
};

/// The capability to provide notes to other features.
pub const PROVIDE: HostCapability = HostCapability::ProvideService {
    key: Cow::Borrowed("yoi.memory.v1"),
};

const WRITES: &[HostCapability] = &[WRITE];

const SEARCH: ToolKey<NoteQuery> = ToolKey::new(
    "MemorySearch",
    ToolEffect::ReadOnly,
    "Find notes that earlier sessions kept about this project; without words, the newest.",
);
const READ_NOTE: ToolKey<Named> = ToolKey::new("MemoryRead", ToolEffect::ReadOnly, "Read a note.");
const KEEP: ToolKey<NewNote> = ToolKey::new(
    "MemoryWrite",
    ToolEffect::Idempotent,
    "Keep one thing that later sessions need and the project's files do not say.",
)
.needs(WRITES);
const FORGET: ToolKey<Named> = ToolKey::new(
    "MemoryForget",
    ToolEffect::Effectful,
    "Delete a note that is no longer true; answers what it said.",
)
.needs(WRITES);

/// The feature that adds tools for notes of the project, and provides them to other features.
pub struct Memory {
    now: Now,
}

impl Memory {
    /// Creates the feature with this clock, which dates new notes.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self { now }
    }
}

/// Which note.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct Named {
    name: NoteName,
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Memory")
        .version(env!("CARGO_PKG_VERSION"))
        .request(CapabilityRequest::required(
            READ,
            "read the notes of this project",
        ))
        .request(CapabilityRequest::optional(WRITE, "keep and delete notes"))
        .tool(&SEARCH)
        .tool(&READ_NOTE)
        .tool(&KEEP)
        .tool(&FORGET)
        .provides(ServiceDeclaration::of(LOOKUP, VERSION))
        .provides(ServiceDeclaration::of(KEEPER, VERSION))
        .instruction(
            "use",
            "Search memory before you work out again what an earlier session may have found.",
        )
        .build()
}

impl FeatureModule for Memory {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let files = tools::Files::new(ctx.services().fs(ROOT)?);
        let store = Arc::new(NoteStore {
            files,
            now: Arc::clone(&self.now),
        });
        ctx.tools().implement(&SEARCH, &store, search)?;
        ctx.tools().implement(&READ_NOTE, &store, read)?;
        ctx.tools().implement(&KEEP, &store, keep)?;
        ctx.tools().implement(&FORGET, &store, forget)?;
        let lookup = Arc::clone(&store) as Arc<dyn MemoryLookup>;
        let keeper = store as Arc<dyn MemoryKeeper>;
        ctx.services().provide(LOOKUP, Arc::clone(&lookup))?;
        ctx.services()
            .provide_json(&LOOKUP.id(), Arc::new(LookupAsJson(lookup)))?;
        ctx.services().provide(KEEPER, Arc::clone(&keeper))?;
        ctx.services()
            .provide_json(&KEEPER.id(), Arc::new(KeeperAsJson(keeper)))?;
        Ok(())
    }
}

async fn search(store: Arc<NoteStore>, query: NoteQuery, _: ToolContext) -> ToolResult {
    let Hits {
        notes,
        found,
        unreadable,
    } = store.search(query).await?;
    let mut summary = counted(found as u64, "note", "notes");
    if notes.len() < found {
        summary.push_str(&format!(", the best {} shown", notes.len()));
    }
    if let Some(first) = unreadable.first() {
        summary.push_str(&format!("; {} not readable: {first}", unreadable.len()));
    }
    let line = |note: &Note| {
        let Note {
            name,
            description,
            kind,
            updated,
            ..
        } = note;
        format!("{name} ({kind}, {updated}): {description}")
    };
    Ok(answer(
        &summary,
        notes.iter().map(line).collect::<Vec<_>>().join("\n"),
    ))
}

async fn read(store: Arc<NoteStore>, args: Named, _: ToolContext) -> ToolResult {
    Ok(note_output("", &store.read(args.name).await?))
}

async fn keep(store: Arc<NoteStore>, note: NewNote, cx: ToolContext) -> ToolResult {
    let name = note.name.clone();
    let kept = match store.write(note, cx).await? {
        NoteSaved::Created => "kept",
        NoteSaved::Replaced => "replaced",
    };
    Ok(answer(&format!("{name}: {kept}"), String::new()))
}

async fn forget(store: Arc<NoteStore>, args: Named, cx: ToolContext) -> ToolResult {
    Ok(note_output(
        "forgotten; it said: ",
        &store.forget(args.name, cx).await?,
    ))
}

fn note_output(did: &str, note: &Note) -> ToolOutput {
    let Note {
        name,
        description,
        kind,
        tags,
        created,
        updated,
        text,
    } = note;
    let tags: String = tags.iter().map(|tag| format!(" #{tag}")).collect();
    let head = format!("{kind} of {created}, updated {updated}{tags}");
    answer(
        &format!("{name}: {did}{description}"),
        format!("{head}\n\n{text}"),
    )
}
