//! `builtin:watch`: tells the model which files of the project changed since its last step. Off until configured.
//!
//! What the file tools of this session wrote is left out: a record in the journal names the file and the digest of its new
//! content. What commands wrote is told. Changes that were not told yet are forgotten when the host ends.

use authority::{FileChanges, Workspace, escape};
use llm_worker::ToolEffect;
use pod::feature::{
    BackgroundTaskContext, CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, FeatureNotifySink, HookKey, HostCapability, SinkError,
    TaskKey, TaskResult,
};
use pod::hook::{Event, EventView, PreRequest, RequestView, Verdict};
use pod::record::{FileChanged, Record};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("watch");

/// The capability to tell the model.
pub const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: MAX_TEXT as u32,
    per_turn: 16,
};

/// The capability to run when files change.
pub const LOOKS: HostCapability = HostCapability::background_task("look");

const NEEDS: &[HostCapability] = &[NOTIFY, HostCapability::READ_WORKSPACE];

const LOOK: TaskKey = TaskKey::new("look", ToolEffect::ReadOnly)
    .on_file_change()
    .needs(NEEDS);
const TELL: HookKey<PreRequest> = HookKey::new("watch-tell").needs(NEEDS);
const OWN: HookKey<Event> = HookKey::new("watch-own-changes");

/// Most bytes of a notification, and of the list of paths in it.
const MAX_TEXT: usize = 2048;
const MAX_LIST: usize = 1800;
/// Most bytes that are shown of a path.
const MAX_SHOWN: usize = 200;
/// Most files whose newest content by a tool is remembered.
const MAX_OWN: usize = 256;
/// A larger file is told, even if a tool wrote it.
const MAX_READ: u64 = 8 << 20;
/// The longest wait of a request for the notification; far within the deadline of the hook.
const PATIENCE: Duration = Duration::from_secs(1);

/// `[features."builtin:watch"]`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Whether a change starts a turn of an idle pod.
    pub wake: bool,
}

/// The feature that tells the model which files changed.
#[derive(Debug)]
pub struct ProjectWatch(pub Settings);

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("File changes")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .request(CapabilityRequest::required(
            HostCapability::READ_WORKSPACE,
            "notice changes of the project's files",
        ))
        .request(CapabilityRequest::required(
            NOTIFY,
            "tell the model which files changed",
        ))
        .gate(&TELL)
        .observe(&OWN)
        .background_task(&LOOK)
        .build()
}

impl FeatureModule for ProjectWatch {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            wake: self.0.wake,
            files: ctx.services().fs(HostCapability::WORKSPACE)?,
            notify: ctx.notifications()?,
            own: Mutex::default(),
            changed: Mutex::default(),
        });
        ctx.hooks().gate_async(&TELL, &live, Live::before_request)?;
        ctx.hooks().observe(&OWN, &live, Live::written)?;
        ctx.background_tasks().run(&LOOK, &live, Live::look)?;
        Ok(())
    }
}

/// A file and the digest of the content that a tool gave it; none if it removed the file.
type Written = (String, Option<String>);

struct Live {
    wake: bool,
    files: Workspace,
    notify: FeatureNotifySink,
    /// By the tools of this session, the newest last.
    own: Mutex<VecDeque<Written>>,
    /// What the model was not told yet.
    changed: Mutex<FileChanges>,
}

impl Live {
    async fn before_request(self: Arc<Self>, _: RequestView) -> Verdict<PreRequest> {
        // What could not be sent is told with a later request.
        drop(tokio::time::timeout(PATIENCE, self.tell(false)).await);
        Verdict::allow()
    }

    fn written(&self, view: &EventView) {
        if let Record::FileChanged(FileChanged {
            call, path, after, ..
        }) = &*view.record
        {
            let mut own = lock(&self.own);
            own.retain(|(known, _)| known != path);
            // Without a call, a person undid a change.
            if call.is_some() {
                own.push_back((path.clone(), after.clone()));
            }
            if own.len() > MAX_OWN {
                own.pop_front();
            }
        }
    }

    async fn look(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        let mut changes = cx.changes;
        changes.paths.retain(|path| !self.is_own(path));
        lock(&self.changed).merge(changes);
        if self.wake {
            self.tell(true).await?;
        }
        Ok(())
    }

    /// Whether a file has the content that a tool of this session gave it last.
    fn is_own(&self, path: &Path) -> bool {
        let path = self.files.project().join(path);
        let written = lock(&self.own)
            .iter()
            .find(|(known, _)| Path::new(known) == path)
            .cloned();
        let Some((_, after)) = written else {
            return false;
        };
        let Ok(at) = self.files.inside(&path) else {
            return false;
        };
        match (self.files.open_file(&at), after) {
            (Err(error), None) => error.is_not_found(),
            (Ok(file), Some(after)) => {
                let mut bytes = Vec::new();
                let read = file.take(MAX_READ).read_to_end(&mut bytes);
                read.is_ok() && blake3::hash(&bytes).to_hex().as_str() == after
            }
            (Err(_), Some(_)) | (Ok(_), None) => false,
        }
    }

    /// Tells the model what changed. What is taken and cannot be sent waits for the next time.
    async fn tell(&self, wake: bool) -> Result<(), SinkError> {
        let changes = std::mem::take(&mut *lock(&self.changed));
        if changes.is_empty() {
            return Ok(());
        }
        let text = told(&changes);
        let sent = if wake {
            self.notify.wake_model(text).await
        } else {
            self.notify.notify_model(text).await
        };
        if sent.is_err() {
            lock(&self.changed).merge(changes);
        }
        sent.map(drop)
    }
}

/// The notification: as many paths as fit.
fn told(changes: &FileChanges) -> String {
    let mut text =
        "Files of the project changed since your last step, not by your file tools:".to_owned();
    let mut left = changes.paths.len();
    for path in &changes.paths {
        let shown = escape(path);
        let cut = shown
            .get(..shown.floor_char_boundary(MAX_SHOWN))
            .unwrap_or_default();
        let more = if cut.len() < shown.len() { "…" } else { "" };
        if text.len() + cut.len() > MAX_LIST {
            break;
        }
        text.push_str(&format!("\n- {cut}{more}"));
        left -= 1;
    }
    match (left, changes.incomplete) {
        (0, false) => {}
        (0, true) => text.push_str("\nand others; look for them with git status, for example"),
        (left, false) => text.push_str(&format!("\nand {left} more")),
        (left, true) => text.push_str(&format!("\nand more than {left} others")),
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::MAX_CHANGED_PATHS;

    #[test]
    fn the_notification_is_bounded_and_says_what_it_leaves_out() {
        let changes = |names: &[String], incomplete| FileChanges {
            paths: names.iter().map(std::path::PathBuf::from).collect(),
            incomplete,
        };
        let few = told(&changes(&["b\u{1b}[2J".to_owned(), "a".to_owned()], false));
        assert!(
            few.ends_with(":\n- a\n- b\\u{1b}[2J") || few.ends_with(":\n- a\n- b\\x1b[2J"),
            "{few}"
        );
        let long: Vec<String> = (0..MAX_CHANGED_PATHS)
            .map(|n| format!("{n}/{}", "ä".repeat(2000)))
            .collect();
        for incomplete in [false, true] {
            let all = told(&changes(&long, incomplete));
            assert!(
                all.len() <= MAX_TEXT && all.contains("248 "),
                "{} {all}",
                all.len()
            );
        }
        assert!(told(&changes(&[], true)).contains("and others"));
    }
}
