//! The watch of the project's files, for tasks that run when files change: collects what changed for each of them. Does
//! not decide when they run.
//!
//! One watch serves all tasks, on a thread of its own while it reads and none while it waits. Without such a task there is
//! none.

use crate::feature::RegisteredTask;
use authority::{FileChanges, FileWatch, MAX_WATCHED_DIRS, Workspace, escape};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Changes are collected until none came for this long.
const QUIET: Duration = Duration::from_millis(500);

/// They are reported after this many of these pauses at the latest.
const MAX_PAUSES: usize = 20;

/// A watch that failed is opened again after this time.
const AGAIN: Duration = Duration::from_secs(10 * 60);

/// What the watch reports.
#[derive(Debug)]
pub(in crate::control) enum FileReport {
    Changed(FileChanges),
    /// Files are not watched: for people.
    Unwatched(String),
}

/// What changed, for the tasks that run by it.
pub(super) struct ChangedFiles {
    /// Dropping it ends the watch.
    watch: JoinSet<()>,
    reports: mpsc::Receiver<FileReport>,
    /// By the position of a task: what changed since the begin of its newest run.
    waiting: BTreeMap<usize, FileChanges>,
    /// What open runs were told, with the positions of their tasks.
    told: BTreeMap<u64, (usize, FileChanges)>,
}

impl ChangedFiles {
    /// Starts the watch if one of these tasks needs it.
    pub(super) fn watch(tasks: &[RegisteredTask], runtime: &Handle) -> Self {
        let (sender, reports) = mpsc::channel(1);
        let mut watch = JoinSet::new();
        let projects: Vec<Workspace> = tasks.iter().filter_map(|task| task.files.clone()).collect();
        if !projects.is_empty() {
            watch.spawn_on(observe(projects, sender, runtime.clone()), runtime);
        }
        Self {
            watch,
            reports,
            waiting: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// The next report; `None` once nothing is watched. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<FileReport> {
        self.reports.recv().await
    }

    /// Adds changes for a task.
    pub(super) fn add(&mut self, task: usize, changes: FileChanges) {
        self.waiting.entry(task).or_default().merge(changes);
    }

    /// What a run that begins is told.
    pub(super) fn begin(&mut self, task: usize, run: u64) -> FileChanges {
        let changes = self.waiting.remove(&task).unwrap_or_default();
        if !changes.is_empty() {
            self.told.insert(run, (task, changes.clone()));
        }
        changes
    }

    /// A run ended. What it was told waits for the next run, unless it completed.
    pub(super) fn end(&mut self, run: u64, completed: bool) {
        let Some((task, changes)) = self.told.remove(&run) else {
            return;
        };
        if !completed {
            self.add(task, changes);
        }
    }

    /// Ends the watch.
    pub(super) fn close(&mut self) {
        self.watch.abort_all();
    }
}

/// Observes the project until the last of these grants is revoked. A watch that failed is opened again after a pause; each
/// reason is told once in a row.
async fn observe(projects: Vec<Workspace>, reports: mpsc::Sender<FileReport>, runtime: Handle) {
    let mut told = String::new();
    while let Some(project) = projects.iter().find(|project| !project.door().is_shut()) {
        match observe_one(project, &reports, &runtime).await {
            Ok(()) => return,
            Err(_revoked) if project.door().is_shut() => {}
            Err(why) => {
                let minutes = AGAIN.as_secs() / 60;
                let text = format!(
                    "changes of files are not noticed: {why}; tried again every {minutes} minutes"
                );
                if text != told {
                    told.clone_from(&text);
                    if reports.send(FileReport::Unwatched(text)).await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// As [`observe`], for one grant. `Ok` when nothing receives the reports any more.
async fn observe_one(
    project: &Workspace,
    reports: &mpsc::Sender<FileReport>,
    runtime: &Handle,
) -> Result<(), String> {
    let of = project.clone();
    let opened = runtime
        .spawn_blocking(move || FileWatch::open(&of, MAX_WATCHED_DIRS))
        .await;
    let mut watch = opened.map_err(text)?.map_err(text)?;
    let mut is_told = false;
    loop {
        if watch.unwatched() > 0 && !std::mem::replace(&mut is_told, true) {
            let text = unwatched(project, watch.unwatched());
            if reports.send(FileReport::Unwatched(text)).await.is_err() {
                return Ok(());
            }
        }
        watch.readable().await.map_err(text)?;
        let mut all = FileChanges::default();
        for _ in 0..MAX_PAUSES {
            tokio::time::sleep(QUIET).await;
            let reading = runtime.spawn_blocking(move || {
                let read = watch.read();
                (watch, read)
            });
            let (back, read) = reading.await.map_err(text)?;
            watch = back;
            let new = read.map_err(text)?;
            if new.is_empty() {
                break;
            }
            all.merge(new);
        }
        if !all.is_empty() && reports.send(FileReport::Changed(all)).await.is_err() {
            return Ok(());
        }
    }
}

fn unwatched(project: &Workspace, count: usize) -> String {
    let project = escape(project.project());
    format!(
        "{project}: changes in {count} or more directories are not noticed; at most {MAX_WATCHED_DIRS} are watched, and \
         at most `sysctl fs.inotify.max_user_watches` for all programs of your user"
    )
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::Access;

    // Two features watch the same project; the grant of the first one is revoked.
    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "authority of a test")]
    async fn a_revoked_grant_does_not_end_the_watch_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            || Workspace::open(&ambient::claim(), dir.path(), dir.path(), Access::Read).unwrap();
        let revoked = open();
        let granted = open();
        revoked.door().shut().await;
        let (sender, mut reports) = mpsc::channel(1);
        let mut watch = JoinSet::new();
        watch.spawn(observe(vec![revoked, granted], sender, Handle::current()));
        let changed = async {
            for n in 0.. {
                std::fs::write(dir.path().join("a"), n.to_string()).unwrap();
                if let Ok(report) = tokio::time::timeout(QUIET * 2, reports.recv()).await {
                    return report;
                }
            }
            None
        };
        let report = tokio::time::timeout(Duration::from_secs(30), changed)
            .await
            .unwrap();
        assert!(matches!(report, Some(FileReport::Changed(_))), "{report:?}");
    }
}
