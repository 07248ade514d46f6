//! `yoi rm`: a pod to the trash, or gone.

use crate::Points;
use crate::cli::RmArgs;
use crate::commands::left_running::{HELP, LeftRunning};
use crate::commands::person::only_a_person;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::hosting::leftovers::{clear, everything};
use crate::hosting::session_location::{now, open_failure, patient};
use crate::pods::{Pods, check_name, disk, make_private};
use crate::show::out;
use authority::Ambient;
use session_store::Session;
use std::fs;
use std::path::PathBuf;

/// Takes the whole name: a beginning is enough for reading, not for deleting.
pub(crate) fn run(args: &RmArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    check_name(&args.name)?;
    only_a_person("remove a pod")?;
    let pods = Pods::of(env)?;
    let left: Vec<_> = LeftRunning::find(env).into_iter().filter(|left| left.is_of(&pods, &args.name)).collect();
    let kept = remove(&pods, &args.name, args.purge, points)?;
    out::line(&match kept {
        Some(target) => format!("moved {} to {}", args.name, target.display()),
        None => format!("deleted {}", args.name),
    });
    left.iter().for_each(|left| out::line(&format!("{}: {}; {HELP}", args.name, left.text())));
    Ok(Exit::Done)
}

/// Gives the place in the trash, if it went there. The lock is held until the name is free.
fn remove(pods: &Pods, name: &str, purge: bool, points: &Points) -> Result<Option<PathBuf>, Failure> {
    let dir = pods.dir(name);
    if !dir.exists() {
        return Err(Failure::new(Exit::Usage, format!("there is no pod called `{name}`"))
            .help("`yoi ls --all` lists all pods; rm needs the full name"));
    }
    let _held = patient(&Ambient::claim(), || Session::hold(&dir, now()))
        .map_err(|error| open_failure(&error, now(), Some(name)))?;
    (points.0)("rm.held");
    if let Ok(files) = everything(&Ambient::claim()) {
        clear(&dir, &files);
    }
    if purge {
        return pods.discard(name).map(|()| None);
    }
    let trash = pods.trash();
    make_private(&trash)?;
    let free = |n: u32| Some(trash.join(format!("{name}.{n}"))).filter(|path| !path.exists());
    let Some(target) = (1..=u32::MAX).find_map(free) else {
        return Err(Failure::new(Exit::Journal, format!("{} is full", trash.display())));
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
            let points = Points::new(move |point| {
                let opened = Session::open(&dir, options());
                assert!(point != "rm.held" || matches!(opened, Err(OpenError::Busy { .. })), "{opened:?}");
            });
            let target = remove(&pods, "p", purge, &points).unwrap();
            assert!(!pods.dir("p").exists());
            assert_eq!(target.is_some_and(|target| target.join("LOCK").exists()), !purge);
            assert_eq!(fs::read_dir(pods.root()).unwrap().count(), 0);
        }
    }
}
