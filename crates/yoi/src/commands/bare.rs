//! `yoi` without a command: at a terminal, the pod of this directory, which is started if there is none.

use crate::cli::{AgentFlags, Cli, PodFlags, StartArgs};
use crate::commands::{attach, pod_names, start};
use crate::look::Look;
use crate::show::out;
use clap::CommandFactory;
use host::compose::model::{ModelChoice, OFFLINE, choose};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, is_of_run};
use host::points::Points;
use host::project::Project;
use provider::catalog;

pub(crate) fn run(placed: bool, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let project = Project::around(env);
    let draws = env.stdin_terminal && env.stdout_terminal && Look::of_stdout().is_some();
    if !draws || project.too_wide.is_some() {
        out::raw(&Cli::command().render_help().to_string());
        return Ok(Exit::Done);
    }
    let pods = Pods::of(env)?;
    if let Some(name) = attach::newest(&pods, env)? {
        return attach::show_first(&pods, &name, None, has_others(&pods, &name, env)?, env);
    }
    let name = pod_names::first(&pods, &project, env)?;
    let options = PodFlags::default();
    let args = StartArgs {
        name,
        prompt: None,
        agent: AgentFlags::default(),
        options,
        foreground: false,
        json: false,
        quiet: true,
    };
    start::quietly(&args, placed, env, points)?;
    let hint = hint(&choose(&Config::load(env)?, env));
    let has_others = has_others(&pods, &args.name, env)?;
    attach::show_first(&pods, &args.name, Some(&hint), has_others, env)
}

/// Whether this directory has more than one pod with a name of its own, so that a person may mean another one.
fn has_others(pods: &Pods, own: &str, env: &Env) -> Result<bool, Failure> {
    let named = pods.names()?.into_iter().filter(|name| !is_of_run(name));
    let mut others = named.filter(|name| name != own);
    Ok(others.any(|name| start::directory_of(&pods.dir(&name)).is_some_and(|dir| dir == env.cwd)))
}

/// What answers, and how to choose something else.
fn hint(ModelChoice { name, why }: &ModelChoice) -> String {
    if name != OFFLINE {
        return format!("{name} answers ({why}); `yoi models` lists the other models");
    }
    let keys: Vec<_> = catalog::PROVIDERS
        .iter()
        .filter_map(|provider| provider.key_variables().first())
        .copied()
        .collect();
    format!(
        "No language model is set up. The built-in planner answers: it follows fixed rules and understands requests such as \
         \"list the files\" or \"what does this project do?\".\n\
         To use a language model, set {} and start the pod again. `yoi models` lists the models, also those of servers on this \
         machine; `yoi doctor` checks the setup.",
        keys.join(" or ")
    )
}
