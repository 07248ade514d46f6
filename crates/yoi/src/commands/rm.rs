//! `yoi rm`: a pod to the trash, or gone.

use crate::cli::RmArgs;
use crate::commands::out;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::{Pods, check_name, disk, make_private};
use session_store::Session;
use std::fs;

/// Takes the whole name: a beginning is enough for reading, not for deleting.
pub(crate) fn run(args: &RmArgs, env: &Env) -> Result<Exit, Failure> {
    check_name(&args.name)?;
    let pods = Pods::of(env)?;
    let dir = pods.dir(&args.name);
    if !dir.exists() {
        return Err(Failure::new(Exit::Usage, format!("there is no pod called `{}`", args.name))
            .help("`yoi ls --all` lists them; rm takes the whole name"));
    }
    let owner = Session::owner(&dir).map_err(|e| Failure::new(Exit::Journal, e.to_string()))?;
    if let Some(owner) = owner {
        return Err(Failure::new(Exit::Busy, format!("`{}` is in use by process {}", args.name, owner.pid))
            .help("wait for it or end it first"));
    }
    if args.purge {
        fs::remove_dir_all(&dir).map_err(|e| disk(&dir, &e))?;
        out::line(&format!("deleted {}", args.name));
        return Ok(Exit::Done);
    }
    let trash = pods.trash();
    make_private(&trash)?;
    let free = |n: u32| Some(trash.join(format!("{}.{n}", args.name))).filter(|path| !path.exists());
    let Some(target) = (1..=u32::MAX).find_map(free) else {
        return Err(Failure::new(Exit::Journal, format!("{} is full", trash.display())));
    };
    fs::rename(&dir, &target).map_err(|e| disk(&target, &e))?;
    out::line(&format!("moved {} to {}", args.name, target.display()));
    Ok(Exit::Done)
}
