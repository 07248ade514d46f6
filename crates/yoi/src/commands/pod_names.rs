//! Names for the pods of a directory that a person did not name.

use crate::commands::start;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, check_name};
use host::project::Project;

/// Pods of one name that are looked at.
const NAMES: u32 = 100;

/// The first name after the project's that is free.
pub(super) fn new_name(env: &Env) -> Result<String, Failure> {
    let pods = Pods::of(env)?;
    named("", &Project::around(env), |name| !pods.dir(name).exists())
}

/// The first name after the project's that is free, or that a stopped pod of this directory has.
pub(super) fn first(pods: &Pods, project: &Project, env: &Env) -> Result<String, Failure> {
    named("", project, |name| {
        let dir = pods.dir(name);
        !dir.exists() || start::stopped_in(&dir).is_some_and(|cwd| cwd == env.cwd)
    })
}

/// The first name for the tools of this directory that is free, or that a pod of this directory has.
pub(super) fn of_door(pods: &Pods, project: &Project, env: &Env) -> Result<String, Failure> {
    named("mcp-", project, |name| {
        let dir = pods.dir(name);
        !dir.exists() || start::directory_of(&dir).is_some_and(|cwd| cwd == env.cwd)
    })
}

fn named(before: &str, project: &Project, fits: impl Fn(&str) -> bool) -> Result<String, Failure> {
    let dir = project
        .root
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let base = format!("{before}{}", base(&dir));
    let names = (1..=NAMES).map(|number| {
        if number == 1 {
            base.clone()
        } else {
            format!("{base}-{number}")
        }
    });
    names.into_iter().find(|name| fits(name)).ok_or_else(|| {
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
