//! Commands that only a person may give: an agent does not approve itself, and starts and removes no pod. The person's
//! terminal, and the pod that a person means.

use crate::show::out;
use crate::show::terminal::Terminal;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use host::project::Project;

/// The terminal of a person who reads standard output and can answer questions.
pub(crate) fn terminal(env: &Env) -> Option<Terminal> {
    (env.stdin_terminal && env.stdout_terminal)
        .then(|| Terminal::of_process(std::io::stdout()))
        .flatten()
}

/// Asks a person to agree to what was shown. Without a terminal, `unasked` says why nothing happens.
pub(crate) fn agreed(
    question: &str,
    unasked: impl FnOnce() -> Failure,
    env: &Env,
) -> Result<bool, Failure> {
    let Some(mut terminal) = terminal(env) else {
        return Err(unasked());
    };
    let agreed = terminal.agrees(question, &mut || true, &mut out::raw);
    Ok(agreed.unwrap_or_else(|_left| {
        out::raw("\n");
        false
    }))
}

/// The pod that is named, or without a name that of the last run in this directory.
pub(crate) fn meant(pods: &Pods, name: Option<&str>, env: &Env) -> Result<String, Failure> {
    let Some(name) = name else {
        let root = Project::around(env).root;
        return pods.last_run(&root).ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                format!("there is no run in {}", authority::escape(&root)),
            )
            .help("name a pod; `yoi ls` lists the names")
        });
    };
    pods.find(name)
}

/// Refuses a process that was started by a pod. `cannot` says what such a process cannot do.
pub(crate) fn only_a_person(cannot: &str) -> Result<(), Failure> {
    let why = match authority::started_by_pod(&ambient::claim(), std::process::id()) {
        Some(false) => return Ok(()),
        Some(true) => format!("a run cannot {cannot}"),
        None => format!("this command cannot {cannot}: /proc does not show what started it"),
    };
    Err(Failure::new(Exit::Refused, why).help("run this command in your own terminal"))
}
