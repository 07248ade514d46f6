//! `yoi undo`: shows what it would do, asks, and takes back what a pod changed in files.

use crate::cli::UndoArgs;
use crate::commands::live::reach;
use crate::commands::person::{meant, terminal};
use crate::show::out;
use crate::socket::{block_on, of_wire};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::leftovers::{clear, everything, session};
use host::hosting::session_location::{now, open_failure};
use host::pods::{Pods, empty};
use host::points::Points;
use host::undo;
use pod::control::Batch;
use pod::undo::{FileUndo, UndoWrites};
use session_store::{Clock, Opened, Options, Session};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::runtime::Builder;

/// Puts files back as they were before the pod, or before what came after `--to`. In a live pod its process does that.
pub(crate) fn run(args: &UndoArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = meant(&pods, args.name.as_deref(), env)?;
    let to = args.to.unwrap_or(0);
    if !args.yes && !is_wanted(args, env, &pods, &name, to)? {
        out::wrapped("nothing was undone");
        return Ok(Exit::Failed);
    }
    let live = block_on(async {
        match reach(&pods, &name, "yoi undo").await? {
            Some(mut live) => live.undo(to).await.map(Some),
            None => Ok(None),
        }
    })??;
    if let Some(undone) = live {
        undone.lines.iter().for_each(|line| out::wrapped(line));
        return undone
            .failure
            .map_or(Ok(Exit::Done), |failure| Err(of_wire(failure)));
    }
    let clock: Clock = Arc::new(now);
    // What can be taken back does not depend on a configuration that reads.
    let any_file_system = Config::load(env).is_ok_and(|config| config.any_file_system.value);
    let dir = pods.dir(&name);
    let options = Options {
        any_file_system,
        ..Options::new(name.clone(), clock)
    };
    let opened = Session::open(&dir, options).map_err(|e| open_failure(&e, now(), Some(&name)))?;
    let (mut changes, view) = undo::read(&dir, &name, to)?;
    let Opened {
        journal,
        blobs,
        recovered,
    } = opened;
    let runtime = Builder::new_current_thread().build().map_err(|e| {
        let why = authority::explain(&e);
        Failure::new(
            Exit::Unavailable,
            format!("the asynchronous runtime cannot start: {why}"),
        )
    })?;
    let append = |record| {
        let committed = runtime.block_on(journal.append(Batch::of(vec![record])));
        committed
            .map(drop)
            .map_err(|refused| refused.why.to_string())
    };
    let undo = FileUndo {
        files: everything(&ambient::claim())?,
        session: recovered.session,
        view,
        writes: Some(UndoWrites {
            blobs,
            append: Box::new(append),
        }),
        reached: &|point| points.reached(point),
    };
    clear(&dir, &undo.files);
    let done = undo::undo(&undo, &name, &mut changes, &out::wrapped);
    journal.close();
    done.map(|()| Exit::Done)
}

/// Whether a person at a terminal agrees, who is shown what would be done. Where there is none, the pod has to be named.
fn is_wanted(
    args: &UndoArgs,
    env: &Env,
    pods: &Pods,
    name: &str,
    to: u64,
) -> Result<bool, Failure> {
    let Some(mut terminal) = terminal(env) else {
        if args.name.is_some() {
            return Ok(true);
        }
        let refused = Failure::new(
            Exit::Usage,
            "`yoi undo` without NAME asks first, and there is no terminal to ask at",
        );
        return Err(refused.help(format!(
            "`yoi undo -y` undoes the changes of {name} without asking"
        )));
    };
    let lines = preview(pods, name, to)?;
    if lines.is_empty() {
        return Ok(true);
    }
    lines.iter().for_each(|line| out::wrapped(line));
    let question = format!("undo these changes of {name}? y or n: ");
    Ok(terminal
        .agrees(&question, &mut || true, &mut out::raw)
        .unwrap_or_else(|_left| {
            out::raw("\n");
            false
        }))
}

/// What an undo would do about each path, in lines; none if there is nothing to undo.
pub(super) fn preview(pods: &Pods, name: &str, to: u64) -> Result<Vec<String>, Failure> {
    let dir = pods.dir(name);
    let (mut changes, view) = undo::read(&dir, name, to)?;
    let preview = FileUndo {
        files: everything(&ambient::claim())?,
        session: session(&dir).ok_or_else(|| empty(name, Exit::Usage))?,
        view,
        writes: None,
        reached: &|_| {},
    };
    let lines = RefCell::new(Vec::new());
    let say = |line: &str| lines.borrow_mut().push(line.to_owned());
    if undo::run(&preview, &mut changes, &say)?.paths == 0 {
        return Ok(Vec::new());
    }
    Ok(lines.into_inner())
}
