//! `yoi` without a command: at a terminal, the pod of this directory, which is started if there is none.

use crate::cli::{AttachArgs, Cli, PodFlags, StartArgs};
use crate::commands::{attach, start};
use crate::look::Look;
use crate::show::out;
use clap::CommandFactory;
use host::compose::model::{ModelChoice, OFFLINE, choose};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, check_name};
use host::points::Points;
use host::project::Project;
use provider::catalog;

/// Pods of one name that are looked at.
const NAMES: u32 = 100;

pub(crate) fn run(placed: bool, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let project = Project::around(env);
    let draws = env.stdin_terminal && env.stdout_terminal && Look::of_stdout().is_some();
    if !draws || project.too_wide.is_some() {
        out::raw(&Cli::command().render_help().to_string());
        return Ok(Exit::Done);
    }
    let pods = Pods::of(env)?;
    if let Some(name) = attach::newest(&pods, env)? {
        return attach::show(&pods, &name, &AttachArgs::default(), None, env);
    }
    let name = name(&pods, &project, env)?;
    let options = PodFlags::default();
    let args = StartArgs {
        name,
        prompt: None,
        options,
        foreground: false,
        json: false,
        quiet: true,
    };
    start::quietly(&args, placed, env, points)?;
    let hint = hint(&choose(&Config::load(env)?, env));
    attach::show(&pods, &args.name, &AttachArgs::default(), Some(&hint), env)
}

/// The first name after the project's that is free, or that a stopped pod of this directory has.
fn name(pods: &Pods, project: &Project, env: &Env) -> Result<String, Failure> {
    let dir = project
        .root
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let base = base(&dir);
    let names = (1..=NAMES).map(|number| {
        if number == 1 {
            base.clone()
        } else {
            format!("{base}-{number}")
        }
    });
    let fits = |name: &String| {
        let dir = pods.dir(name);
        !dir.exists() || start::stopped_in(&dir).is_some_and(|cwd| cwd == env.cwd)
    };
    names.into_iter().find(fits).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            format!("{NAMES} pods are called {base} or {base}-N"),
        )
        .help("`yoi start NAME` starts a pod with a name of your choice")
    })
}

/// The name of a directory as that of a pod.
fn base(dir: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
            c
        } else {
            '-'
        }
    };
    let name: String = dir.chars().map(kept).take(48).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if check_name(name).is_ok() {
        name.to_owned()
    } else {
        "pod".to_owned()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gives_a_valid_name() {
        let table = [
            ("yoi", "yoi"),
            ("My Project", "My-Project"),
            (".config", "config"),
            ("été", "t"),
            ("日本", "pod"),
            ("", "pod"),
            ("a/../b", "a-..-b"),
        ];
        for (dir, wanted) in table {
            assert_eq!(base(dir), wanted, "{dir}");
        }
        assert!(check_name(&base(&"x".repeat(300))).is_ok());
    }
}
