//! `yoi rm`: pods to the trash, or gone.

use crate::cli::RmArgs;
use crate::commands::left_running::{HELP, LeftRunning};
use crate::commands::ls::row;
use crate::commands::person::{only_a_person, terminal};
use crate::report::Report;
use crate::show::out;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::leftovers::{clear, everything};
use host::hosting::session_location::{now, open_failure, patient};
use host::pods::{Pods, check_name, disk, make_private};
use host::points::Points;
use session_store::Session;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;
use tui::count;

/// How many names of pods are said.
const NAMED: usize = 10;

/// Takes the whole name: a beginning is enough for reading, not for deleting.
pub(crate) fn run(args: &RmArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    args.names.iter().try_for_each(|name| check_name(name))?;
    only_a_person("remove a pod")?;
    let pods = Pods::of(env)?;
    if args.names.is_empty() {
        return several(args, env, &pods, points);
    }
    let (_, exit) = each(&args.names, |name| {
        let left: Vec<_> = LeftRunning::find(env)
            .into_iter()
            .filter(|left| left.is_of(&pods, name))
            .collect();
        out::wrapped(&match remove(&pods, name, args.purge, points)? {
            Some(target) => format!("moved {name} to {}", target.display()),
            None => format!("deleted {name}"),
        });
        left.iter()
            .for_each(|left| out::wrapped(&format!("{name}: {}; {HELP}", left.text())));
        Ok(())
    });
    Ok(exit)
}

/// Removes pod by pod, and says each failure. Returns how many were removed, and the exit code of the last failure.
fn each(names: &[String], mut remove: impl FnMut(&str) -> Result<(), Failure>) -> (u64, Exit) {
    let mut removed = 0;
    let mut exit = Exit::Done;
    for name in names {
        match remove(name) {
            Ok(()) => removed += 1,
            Err(failure) => {
                failure.say();
                exit = failure.exit;
            }
        }
    }
    (removed, exit)
}

/// Removes the pods that are old, failed or there, once a person agrees to their number. Running ones stay.
fn several(args: &RmArgs, env: &Env, pods: &Pods, points: &Points) -> Result<Exit, Failure> {
    let (names, running) = chosen(args, pods)?;
    if running > 0 {
        let stay = if running == 1 {
            "1 running pod is kept".to_owned()
        } else {
            format!("{running} running pods are kept")
        };
        out::wrapped(&stay);
    }
    if names.is_empty() {
        out::wrapped("no pod to remove");
        return Ok(Exit::Done);
    }
    let number = count(names.len() as u64, "pod");
    let them = if names.len() == 1 { "it" } else { "them" };
    if !args.yes {
        let Some(mut terminal) = terminal(env) else {
            let refused = format!("{number} would be removed, and there is no terminal to ask at");
            return Err(Failure::new(Exit::Usage, refused)
                .help(format!("-y removes {them} without asking")));
        };
        out::wrapped(&format!("{number}: {}", listed(&names)));
        let what = if args.purge {
            format!("delete {them} for good")
        } else {
            format!("move {them} to the trash")
        };
        let agreed = terminal.agrees(&format!("{what}? y or n: "), &mut || true, &mut out::raw);
        if !agreed.unwrap_or_else(|_left| {
            out::raw("\n");
            false
        }) {
            out::wrapped("nothing was removed");
            return Ok(Exit::Failed);
        }
    }
    let (removed, exit) = each(&names, |name| {
        remove(pods, name, args.purge, points).map(drop)
    });
    let removed = count(removed, "pod");
    out::wrapped(&match args.purge {
        true => format!("deleted {removed}"),
        false => format!("moved {removed} to {}", pods.trash().display()),
    });
    Ok(exit)
}

/// The pods to remove, oldest first, and how many more run.
fn chosen(args: &RmArgs, pods: &Pods) -> Result<(Vec<String>, u64), Failure> {
    let now = SystemTime::now();
    let mut chosen = Vec::new();
    let mut running = 0;
    for name in pods.names()? {
        let active = active(pods, &name);
        // One whose clock is ahead is not old.
        let age = now.duration_since(active).unwrap_or_default();
        if args.older_than.is_some_and(|time| age < time)
            || (args.failed && row(pods, &name, None, &mut || {}).shown() != "failed")
        {
            continue;
        }
        if matches!(Session::owner(&pods.dir(&name)), Ok(Some(_))) {
            running += 1;
        } else {
            chosen.push((active, name));
        }
    }
    chosen.sort();
    Ok((chosen.into_iter().map(|(_, name)| name).collect(), running))
}

/// When a pod last changed; one that begins now has no log yet.
fn active(pods: &Pods, name: &str) -> SystemTime {
    let made = fs::metadata(pods.dir(name))
        .and_then(|meta| meta.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH);
    pods.touched(name).max(made)
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

/// Gives the place in the trash, if it went there. The lock is held until the name is free.
fn remove(
    pods: &Pods,
    name: &str,
    purge: bool,
    points: &Points,
) -> Result<Option<PathBuf>, Failure> {
    let dir = pods.dir(name);
    if !dir.exists() {
        return Err(
            Failure::new(Exit::Usage, format!("there is no pod called `{name}`"))
                .help("`yoi ls --all` lists all pods; rm needs the full name"),
        );
    }
    let _held = patient(&ambient::claim(), || Session::hold(&dir, now()))
        .map_err(|error| open_failure(&error, now(), Some(name)))?;
    points.reached("rm.held");
    if let Ok(files) = everything(&ambient::claim()) {
        clear(&dir, &files);
    }
    if purge {
        return pods.discard(name).map(|()| None);
    }
    let trash = pods.trash();
    make_private(&trash)?;
    let free = |n: u32| Some(trash.join(format!("{name}.{n}"))).filter(|path| !path.exists());
    let Some(target) = (1..=u32::MAX).find_map(free) else {
        return Err(Failure::new(
            Exit::Journal,
            format!("{} is full", trash.display()),
        ));
    };
    fs::rename(&dir, &target).map_err(|e| disk(&target, &e))?;
    Ok(Some(target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use session_store::{OpenError, Options};
    use std::sync::Arc;

    #[test]
    fn nobody_begins_to_work_in_what_is_being_removed() {
        for purge in [false, true] {
            let root = tempfile::tempdir().unwrap();
            let pods = Pods::at(root.path().to_path_buf());
            pods.prepare().unwrap();
            let options = || Options::new("s-1", Arc::new(|| 1));
            drop(Session::create(&pods.dir("p"), options()).unwrap());
            let dir = pods.dir("p");
            // A child that another test starts has the lock until it executes its program.
            while Session::owner(&dir).unwrap().is_some() {
                std::thread::yield_now();
            }
            let points = Points::new(move |point| {
                let opened = Session::open(&dir, options());
                assert!(
                    point != "rm.held" || matches!(opened, Err(OpenError::Busy { .. })),
                    "{opened:?}"
                );
            });
            let target = remove(&pods, "p", purge, &points).unwrap();
            assert!(!pods.dir("p").exists());
            assert_eq!(
                target.is_some_and(|target| target.join("LOCK").exists()),
                !purge
            );
            assert_eq!(fs::read_dir(pods.root()).unwrap().count(), 0);
        }
    }
}
