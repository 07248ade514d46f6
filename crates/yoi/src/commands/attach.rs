//! `yoi attach`: follows a live pod and talks to it, on a full screen or in plain lines. Leaving changes nothing for the
//! pod.

mod full;
mod last_seen;
pub(super) mod own;
mod plain;
mod screen;
mod typed;

use self::full::Left;
use self::plain::in_lines;
use self::screen::note;
use crate::cli::AttachArgs;
use crate::look::Look;
use crate::remedy::in_one;
use crate::socket::{block_on, owner, statuses};
use crate::terminal::Takes;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use host::project::Project;
use protocol::status::Status;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

/// How long the pods of a directory may take to tell what they do.
const ASKED: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &AttachArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = match &args.name {
        Some(name) => pods.find(name)?,
        None => newest(&pods, env)?.ok_or_else(|| {
            Failure::new(Exit::Unavailable, "no pod of this directory is running")
                .help("`yoi ls` lists pods; `yoi start NAME` starts one")
        })?,
    };
    show(&pods, &name, args, None, env)
}

/// The live pod of this directory, or of the project around it, that was started last.
pub(super) fn newest(pods: &Pods, env: &Env) -> Result<Option<String>, Failure> {
    block_on(newest_here(pods, env))?
}

/// Shows a pod of this directory; where there are others, with the list of pods.
pub(super) fn show_first(
    pods: &Pods,
    name: &str,
    hint: Option<&str>,
    has_others: bool,
    env: &Env,
) -> Result<Exit, Failure> {
    show_at(pods, name, &AttachArgs::default(), (hint, has_others), env)
}

/// Shows a live pod, on a full screen if the terminal can draw one. `hint` is told to a person at the start.
pub(super) fn show(
    pods: &Pods,
    name: &str,
    args: &AttachArgs,
    hint: Option<&str>,
    env: &Env,
) -> Result<Exit, Failure> {
    show_at(pods, name, args, (hint, false), env)
}

fn show_at(
    pods: &Pods,
    name: &str,
    args: &AttachArgs,
    (hint, has_others): (Option<&str>, bool),
    env: &Env,
) -> Result<Exit, Failure> {
    let lists = Cell::new(has_others);
    let draws = env.stdin_terminal && env.stdout_terminal && Look::of_stdout().is_some();
    let screen = Takes::Screen {
        mouse: !args.no_mouse,
    };
    let ways: &[Takes] = match args {
        _ if !draws || args.plain => &[],
        _ if args.inline => &[Takes::RowsBelow],
        _ => &[screen, screen, Takes::RowsBelow],
    };
    let full = |name: &str, hint: Option<&str>, takes| {
        let begin = full::Begin {
            hint,
            takes,
            lists_pods: lists.take(),
        };
        block_on(full::run(pods, name, begin, env)).and_then(|left| left)
    };
    let place = Place {
        name: name.to_owned(),
        hint: hint.map(str::to_owned),
    };
    let Place { name, hint } = match on_screens(ways, place, full, |text| note(&text))? {
        ControlFlow::Break(exit) => return Ok(exit),
        ControlFlow::Continue(place) => place,
    };
    block_on(in_lines(pods, &name, hint.as_deref(), env))?
}

/// The pod that is shown, and what a person is told there first.
struct Place {
    name: String,
    hint: Option<String>,
}

/// Shows pods in the first of these ways that works, until the person leaves. Where none works, gives what was to be shown.
fn on_screens(
    ways: &[Takes],
    mut place: Place,
    mut full: impl FnMut(&str, Option<&str>, Takes) -> Result<Left, Failure>,
    mut tell: impl FnMut(String),
) -> Result<ControlFlow<Exit, Place>, Failure> {
    let mut at = 0;
    let mut failed = None;
    let mut before = None;
    while let Some(takes) = ways.get(at) {
        if let Some(why) = failed.take().filter(|_| at > 1) {
            tell(format!(
                "the full screen failed twice: {why}; --inline follows"
            ));
        }
        let shown = || full(&place.name, place.hint.as_deref(), *takes);
        // The terminal was given back before the message of a panic.
        failed = match (catch_unwind(AssertUnwindSafe(shown)), before.take()) {
            (Ok(Ok(Left::Detached(exit))), _) => return Ok(ControlFlow::Break(exit)),
            (Ok(Ok(Left::Switched { to, unsent })), _) => {
                let hint = (!unsent.is_empty())
                    .then(|| format!("not sent to {}: {}", place.name, unsent.join("\n")));
                before = Some(std::mem::replace(&mut place, Place { name: to, hint }).name);
                continue;
            }
            // The pod has ended meanwhile: back to the one before.
            (Ok(Err(failure)), Some(name)) => {
                place = Place {
                    name,
                    hint: Some(in_one(&failure)),
                };
                continue;
            }
            (Ok(Err(failure)), None) => return Err(failure),
            (Ok(Ok(Left::NoScreen(why))), _) => Some(why),
            (Err(_panicked), _) => Some("an internal error".to_owned()),
        };
        at += 1;
    }
    if let Some(why) = failed {
        tell(format!("the screen failed: {why}; plain lines follow"));
    }
    Ok(ControlFlow::Continue(place))
}

async fn newest_here(pods: &Pods, env: &Env) -> Result<Option<String>, Failure> {
    let mut live = Vec::new();
    for name in pods.names()? {
        let dir = pods.dir(&name);
        if owner(&dir)?.is_some() {
            live.push((dir, name));
        }
    }
    let root = Project::around(env).root;
    let is_here =
        |status: &Status| [&root, &env.cwd].contains(&&Path::new(&status.host.cwd).to_path_buf());
    let here = statuses(live, "yoi attach", ASKED)
        .await
        .into_iter()
        .filter(|(_, status)| is_here(status));
    Ok(here
        .max_by_key(|(_, status)| status.host.since_us)
        .map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Takes = Takes::Screen { mouse: true };

    fn place() -> Place {
        Place {
            name: "p".to_owned(),
            hint: None,
        }
    }

    #[test]
    fn after_two_failed_starts_the_pod_is_shown_in_the_rows_below() {
        for works in [true, false] {
            let mut tried = Vec::new();
            let mut told = Vec::new();
            let full = |name: &str, _: Option<&str>, takes| {
                assert_eq!(name, "p");
                tried.push(matches!(takes, Takes::RowsBelow));
                match tried[..] {
                    [false] => panic!("a bug of the screen"),
                    [false, false, true] if works => Ok(Left::Detached(Exit::Done)),
                    _ => Ok(Left::NoScreen("no modes".to_owned())),
                }
            };
            let done = on_screens(&[SCREEN, SCREEN, Takes::RowsBelow], place(), full, |text| {
                told.push(text)
            })
            .unwrap();
            assert_eq!(matches!(done, ControlFlow::Break(Exit::Done)), works);
            assert_eq!(tried, [false, false, true]);
            let mut wanted = vec!["the full screen failed twice: no modes; --inline follows"];
            wanted.extend((!works).then_some("the screen failed: no modes; plain lines follow"));
            assert_eq!(told, wanted);
        }
    }

    #[test]
    fn a_pod_that_cannot_be_shown_leads_back_to_the_one_before() {
        let mut shown = Vec::new();
        let full = |name: &str, hint: Option<&str>, _| {
            shown.push(format!("{name}: {}", hint.unwrap_or_default()));
            match shown.len() {
                1 => Ok(Left::Switched {
                    to: "q".to_owned(),
                    unsent: vec!["a thought".to_owned()],
                }),
                2 => Err(Failure::new(Exit::Unavailable, "q is not running")),
                _ => Err(Failure::new(Exit::Unavailable, "p is not running")),
            }
        };
        let done = on_screens(&[SCREEN], place(), full, |text| panic!("{text}"));
        assert!(matches!(done, Err(failure) if failure.message == "p is not running"));
        assert_eq!(
            shown,
            ["p: ", "q: not sent to p: a thought", "p: q is not running"]
        );
    }
}
