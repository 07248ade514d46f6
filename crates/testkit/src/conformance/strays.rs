//! What a feature leaves behind or touches outside of its pod: threads, child processes, files elsewhere.
//!
//! The pod runs on a thread that carries a mark, which the kernel hands on to every thread and process that comes from
//! it and which none of them can remove: three filters of system calls that filter nothing of use. Other tests of the
//! same process have no such mark. Files elsewhere show in two ways: in a run that may write only below its own
//! directory something ends differently, or a file of one name changes in each run that may write and in no other.

use super::called::SampleCall;
use super::proxy::PATIENT;
use super::{CheckOutcome, Conformance};
use crate::Shared;
use crate::feature_host::FeatureHost;
use landlock::{
    ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    path_beneath_rules,
};
use llm_worker::ResultStatus;
use pod::feature::{FeatureModule, InstallOutcome};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Filters that make the mark; nothing else in a test puts so many on one thread of this process.
const MARKS: u32 = 3;

/// How long threads and processes of a closed pod may take to end.
const LINGER: Duration = Duration::from_secs(5);

/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Pairs of runs, one that may write elsewhere and one that may not, in which a file must change and stay.
const ROUNDS: usize = 2;

/// Most files of one directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// One run at a time carries the mark.
static ALONE: Mutex<()> = Mutex::new(());

pub(super) struct Strays {
    pub(super) threads: CheckOutcome,
    pub(super) children: CheckOutcome,
    pub(super) files: CheckOutcome,
}

impl Strays {
    pub(super) fn not_tried(why: &str) -> Self {
        let outcome = || CheckOutcome::NotTried(why.to_owned());
        Self {
            threads: outcome(),
            children: outcome(),
            files: outcome(),
        }
    }
}

/// Runs the feature, its quick calls and its tasks under the mark.
pub(super) fn strays(conformance: &Conformance, quick: &[SampleCall]) -> Strays {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let run = |confined| Run::new(conformance, quick, confined).observed();
    let before = Files::elsewhere();
    let threads = marked_threads();
    let children = marked_processes();
    let free = match run(false) {
        Ok(free) => free,
        Err(why) => return Strays::not_tried(&why),
    };
    let (threads, children) = lingering(&threads, &children);
    let changed = Files::elsewhere().changed_since(&before);
    Strays {
        threads: no_more(threads, "thread"),
        children: no_more(children, "process"),
        files: files(&free, &changed, run),
    }
}

fn no_more(left: Vec<String>, what: &str) -> CheckOutcome {
    left.first().map_or(CheckOutcome::Yes, |name| {
        CheckOutcome::No(format!(
            "the {what} `{name}`, which it started, still runs after the pod was closed"
        ))
    })
}

fn files(
    free: &Observed,
    changed: &Files,
    run: impl Fn(bool) -> Result<Observed, String>,
) -> CheckOutcome {
    let mut its = changed.clone();
    for _ in 0..ROUNDS {
        let confined = match run(true) {
            Ok(confined) => confined,
            Err(why) => return CheckOutcome::NotTried(why),
        };
        if let Some(what) = confined.differs(free) {
            return CheckOutcome::No(format!(
                "where it can write only its own directories, {what}"
            ));
        }
        // What changes also now is not its.
        its.retain_unchanged();
        if its.0.is_empty() {
            return CheckOutcome::Yes;
        }
        if let Err(why) = run(false) {
            return CheckOutcome::NotTried(why);
        }
        its = Files::elsewhere().changed_since(&its).only(&its);
    }
    let path = its.0.keys().next();
    path.map_or(CheckOutcome::Yes, |path| {
        CheckOutcome::No(format!("it writes {}", path.display()))
    })
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    install: InstallOutcome,
    calls: Vec<(String, ResultStatus)>,
    tasks: Vec<(String, bool)>,
}

impl Observed {
    fn differs(&self, free: &Self) -> Option<String> {
        if self.install != free.install {
            return Some("it does not install".to_owned());
        }
        let call = self
            .calls
            .iter()
            .zip(&free.calls)
            .find(|(own, free)| own != free);
        let task = self
            .tasks
            .iter()
            .zip(&free.tasks)
            .find(|(own, free)| own != free);
        let call = call.map(|((tool, _), _)| format!("a call of {tool} ends differently"));
        call.or_else(|| {
            task.map(|((name, _), _)| format!("background task `{name}` ends differently"))
        })
    }
}

/// One pod under the mark.
struct Run {
    host: FeatureHost,
    feature: Arc<dyn FeatureModule>,
    calls: Vec<SampleCall>,
    tasks: Vec<String>,
    confined: bool,
}

impl Run {
    fn new(conformance: &Conformance, quick: &[SampleCall], confined: bool) -> Self {
        let tasks = conformance
            .descriptor()
            .declared_background_tasks
            .into_iter()
            .map(|task| task.name)
            .collect();
        let host = conformance.host();
        let feature = conformance.instance();
        Self {
            host,
            feature,
            calls: quick.to_vec(),
            tasks,
            confined,
        }
    }

    /// Why there is no run: this kernel cannot mark or confine it.
    fn observed(self) -> Result<Observed, String> {
        let marked = thread::Builder::new()
            .name("conformance".to_owned())
            .spawn(|| {
                mark().map_err(|error| format!("this kernel cannot mark threads: {error}"))?;
                if self.confined {
                    let confined = confine(self.host.pod.root());
                    confined
                        .map_err(|error| format!("this kernel cannot confine threads: {error}"))?;
                }
                Ok(self.act())
            });
        let marked = marked.map_err(|error| error.to_string())?;
        marked
            .join()
            .unwrap_or_else(|_| Err("the pod panicked".to_owned()))
    }

    fn act(self) -> Observed {
        let mut host = self.host.try_install(Shared(self.feature));
        let install = host.report().outcome;
        if !install.is_live() {
            return Observed {
                install,
                calls: Vec::new(),
                tasks: Vec::new(),
            };
        }
        let called = |(tool, arguments): &SampleCall| {
            let ended = host.calls(&[(tool, &arguments.to_string())]);
            ended
                .into_iter()
                .map(|outcome| (tool.clone(), outcome.status))
                .collect::<Vec<_>>()
        };
        let calls = self.calls.iter().flat_map(called).collect();
        let mut ran = |name: String| {
            let ended = host.run_task_within(&name, PATIENT, None).is_ok();
            (name, ended)
        };
        let tasks = self.tasks.into_iter().map(&mut ran).collect();
        host.close();
        Observed {
            install,
            calls,
            tasks,
        }
    }
}

/// Marks this thread and all that comes from it.
fn mark() -> Result<(), Box<dyn Error>> {
    // Switching process accounting on or off, which no test does.
    let rules = BTreeMap::from([(libc::SYS_acct, Vec::new())]);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        refused,
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    for _ in 0..MARKS {
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}

/// From here on this thread, and all that comes from it, writes below these directories alone.
fn confine(root: &Path) -> Result<(), Box<dyn Error>> {
    let writing = AccessFs::from_write(ABI::V3);
    let rules = Ruleset::default().handle_access(writing)?.create()?;
    let rules = rules.add_rule(PathBeneath::new(PathFd::new(root)?, writing))?;
    let rules = rules.add_rules(path_beneath_rules(["/dev/null"], AccessFs::WriteFile))?;
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("it has no Landlock".into()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// The names of new threads and processes that are left when the time is over.
fn lingering(threads: &Marked, children: &Marked) -> (Vec<String>, Vec<String>) {
    let begun = Instant::now();
    loop {
        let new = |now: Marked, before: &Marked| -> Vec<String> {
            now.into_iter()
                .filter(|(id, _)| !before.contains_key(id))
                .map(|(_, name)| name)
                .collect()
        };
        let left = (
            new(marked_threads(), threads),
            new(marked_processes(), children),
        );
        if (left.0.is_empty() && left.1.is_empty()) || begun.elapsed() > LINGER {
            return left;
        }
        thread::sleep(LOOK);
    }
}

/// Names by number.
type Marked = BTreeMap<u32, String>;

fn marked_threads() -> Marked {
    marked(Path::new("/proc/self/task"))
}

/// Without this process.
fn marked_processes() -> Marked {
    let mut all = marked(Path::new("/proc"));
    all.remove(&std::process::id());
    all
}

fn marked(tasks: &Path) -> Marked {
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    let numbered =
        entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let is_marked = |path: &Path| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let filters = status.lines().find_map(|line| {
            line.strip_prefix("Seccomp_filters:")?
                .trim()
                .parse::<u32>()
                .ok()
        });
        filters.is_some_and(|filters| filters >= MARKS)
    };
    let marked = numbered.filter(|(_, path): &(u32, PathBuf)| is_marked(path));
    marked
        .map(|(id, path)| {
            (
                id,
                fs::read_to_string(path.join("comm"))
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            )
        })
        .collect()
}

/// Files in the places where a feature may leave some, each with its inode, size and time.
#[derive(Clone, Debug, Default)]
struct Files(BTreeMap<PathBuf, (u64, u64, i64, i64)>);

impl Files {
    fn elsewhere() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let here = std::env::current_dir().ok();
        let fixed = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let places: BTreeSet<PathBuf> = fixed
            .into_iter()
            .chain([std::env::temp_dir()])
            .chain(home)
            .chain(here)
            .collect();
        let entries = places
            .iter()
            .flat_map(|place| fs::read_dir(place).into_iter().flatten().take(MAX_ENTRIES));
        Self(
            entries
                .flatten()
                .filter_map(|entry| Some((entry.path(), stamp(&entry.path())?)))
                .collect(),
        )
    }

    fn changed_since(&self, before: &Self) -> Self {
        let changed = self
            .0
            .iter()
            .filter(|(path, stamp)| before.0.get(*path) != Some(stamp));
        Self(
            changed
                .map(|(path, stamp)| (path.clone(), *stamp))
                .collect(),
        )
    }

    /// Forgets what has changed by now.
    fn retain_unchanged(&mut self) {
        self.0.retain(|path, known| stamp(path) == Some(*known));
    }

    fn only(mut self, others: &Self) -> Self {
        self.0.retain(|path, _| others.0.contains_key(path));
        self
    }
}

fn stamp(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let meta = fs::symlink_metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}
