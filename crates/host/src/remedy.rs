//! Remedies in words: the flags, the files and the tools that they mean.

use builtins::PathRemedy as Refused;
use pod::permission::{AlternativeRemedy, HostTerms, Remedy, RuleRemedy};
use std::path::Path;

/// What this program calls things.
pub const TERMS: HostTerms = HostTerms {
    read: "Read",
    shell: "Bash",
    jobs: builtins::jobs::START_TOOL,
    run: builtins::shell::run_by_person,
    remedy: |remedy| words(remedy, "with --sandbox workspace-write"),
};

/// As [`TERMS`], for a run with `--read-only`.
pub const TERMS_READ_ONLY: HostTerms = HostTerms {
    remedy: |remedy| words(remedy, "without --read-only"),
    ..TERMS
};

/// As [`TERMS`], for a run in a directory that is never written.
pub const TERMS_TOO_WIDE: HostTerms = HostTerms {
    remedy: |remedy| words(remedy, "in a project directory"),
    ..TERMS
};

/// The tool with which the model reads the parts of outputs that results leave out.
pub const READ_OUTPUT: &str = "ReadOutput";

/// What it calls the ways out of a failed request to a model.
pub fn model_terms(proxies: String) -> provider::HelpTerms {
    let (other_model, model_list, full_context) = (OTHER_MODEL, "yoi models", FULL_CONTEXT);
    provider::HelpTerms {
        other_model,
        model_list,
        full_context,
        proxies,
    }
}

/// The way out where a model is the cause.
const OTHER_MODEL: &str = "choose another model with -m";

/// The ways out of a context that is full for a model; `NAME` is the pod's.
pub const FULL_CONTEXT: &str = "`yoi compact NAME --drop-turns` continues a live pod without its oldest turns; or start a new \
     pod, or choose a model with a larger context (-m)";

/// A help text with the pod's own name in its commands.
pub fn of_pod(help: &str, name: Option<&str>) -> String {
    let Some(name) = name else {
        return help.to_owned();
    };
    help.replace("compact NAME ", &format!("compact {name} "))
}

/// The flag that allows what a rule allows, quoted for a shell.
pub fn allow(tool: &str, about: Option<&str>) -> String {
    match about {
        Some(about) => format!("--allow '{tool} {about}'"),
        None => format!("--allow {tool}"),
    }
}

/// A path as an argument of a shell command.
pub fn argument(path: &Path) -> String {
    let text = authority::escape(path);
    let plain = text
        .chars()
        .all(|c| c.is_alphanumeric() || "/._-+,@:".contains(c));
    if plain {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// What would allow a path that a tool refused: a clause of its error.
pub fn in_tools(remedy: Refused<'_>) -> String {
    match remedy {
        Refused::AddDir(dir) => format!("the flag `--add-dir {dir}` would allow it"),
        Refused::AddWriteDir(dir) => format!("the flag `--add-write-dir {dir}` would allow it"),
        Refused::LeaveReadOnly => {
            "running without `--read-only`, or with `--add-write-dir DIR`, would allow it"
                .to_owned()
        }
    }
}

/// What a person can do about a pod that has used its budget. None: a run that is not kept.
pub fn more_budget(name: Option<&str>, live: bool) -> String {
    let higher = "raise the limit under [limits.pod] in your configuration";
    match name {
        Some(name) if live => format!(
            "`yoi resume {name} --more` allows as much again; or {higher} and send the process a HUP signal, then \
             `yoi resume {name}`; `yoi stop {name}` stops the pod"
        ),
        Some(name) => {
            format!(
                "{higher}, or allow as much again: `yoi start {name}`, then `yoi resume {name} --more`"
            )
        }
        None => higher.to_owned(),
    }
}

/// A remedy in words; `leave` says how a run is started that may write.
fn words(remedy: &Remedy, leave: &str) -> String {
    let (rules, alternative) = match remedy {
        Remedy::AddDir(dir) => {
            return format!(
                "to allow this call, start yoi with --add-dir {}",
                argument(dir)
            );
        }
        Remedy::AddWriteDir(dir) => {
            return format!(
                "to allow this call, start yoi with --add-write-dir {}",
                argument(dir)
            );
        }
        Remedy::LeaveReadOnly => return format!("to allow this call, start yoi {leave}"),
        Remedy::AskPerson => {
            return "only a person can allow this call, each time: `yoi start`, or `yoi run` at a terminal, asks; or start \
                    yoi with --sandbox off"
                .to_owned();
        }
        Remedy::FixPath => return "use a path that exists or can be created".to_owned(),
        Remedy::ChangeRule => {
            return "to allow this call, change that rule; a more specific rule cannot override it"
                .to_owned();
        }
        Remedy::RaiseCost => return "raise --max-cost, or choose another model with -m".to_owned(),
        Remedy::RaiseTokens => return "raise --max-tokens".to_owned(),
        Remedy::RaiseTime => return "raise --max-wall".to_owned(),
        Remedy::RaisePodBudget => {
            return "raise the limit under [limits.pod] in your configuration, or allow as much again with `yoi resume --more`"
                .to_owned();
        }
        Remedy::PageOutput(handle) => {
            return format!("{READ_OUTPUT} {{\"handle\":\"{handle}\"}} reads the rest");
        }
        Remedy::WholeOutput(handle) => {
            return format!("{READ_OUTPUT} {{\"handle\":\"{handle}\"}} reads it as it came");
        }
        Remedy::HaveShell => {
            return "`yoi features` shows what left out `builtin:shell` (--without, an agent file or the configuration); start \
                    the pod without that"
                .to_owned();
        }
        Remedy::Rule { rules, alternative } => (rules, alternative),
    };
    let options = rules
        .iter()
        .map(|RuleRemedy { tool, about }| allow(tool, about.as_deref()))
        .collect::<Vec<_>>();
    let mut start = format!("to allow this call, start yoi with {}", options.join(" "));
    if let Some(rule) = rules
        .iter()
        .find(|rule| rule.about.is_none() && *alternative == AlternativeRemedy::Secret)
    {
        start.push_str(&format!(" (which allows {} on every file)", rule.tool));
    }
    let such = if rules.len() == 1 {
        "such a rule"
    } else {
        "such rules"
    };
    let written = format!("or add {such} under [[permissions.rules]] in your configuration");
    match alternative {
        AlternativeRemedy::Nothing => format!("{start}, {written}"),
        AlternativeRemedy::Secret => {
            format!(
                "{start}, {written} (a command that does not name the file can read it even without such a rule)"
            )
        }
        AlternativeRemedy::AskingRule => format!("{start}, or change that rule"),
        AlternativeRemedy::Sandbox => format!("{start}, or with --sandbox workspace-write"),
        AlternativeRemedy::Kernel => {
            format!("this kernel cannot confine commands (see `yoi doctor`); {start}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_remedy_names_its_flag() {
        let rule = |about: Option<&str>, alternative| {
            let rule = RuleRemedy {
                tool: "Bash".to_owned(),
                about: about.map(str::to_owned),
            };
            (TERMS.remedy)(&Remedy::Rule {
                rules: vec![rule],
                alternative,
            })
        };
        let words = TERMS.remedy;
        let start = "to allow this call, start yoi with";
        let written = "or add such a rule under [[permissions.rules]] in your configuration";
        let cases = [
            (words(&Remedy::AddDir("/etc".into())), format!("{start} --add-dir /etc")),
            (words(&Remedy::AddWriteDir("/x's y".into())), format!("{start} --add-write-dir '/x'\\''s y'")),
            (words(&Remedy::LeaveReadOnly), format!("{start} --sandbox workspace-write")),
            (
                (TERMS_READ_ONLY.remedy)(&Remedy::LeaveReadOnly),
                "to allow this call, start yoi without --read-only".to_owned(),
            ),
            (
                (TERMS_TOO_WIDE.remedy)(&Remedy::LeaveReadOnly),
                "to allow this call, start yoi in a project directory".to_owned(),
            ),
            (
                words(&Remedy::AskPerson),
                "only a person can allow this call, each time: `yoi start`, or `yoi run` at a terminal, asks; or start \
                 yoi with --sandbox off"
                    .to_owned(),
            ),
            (words(&Remedy::FixPath), "use a path that exists or can be created".to_owned()),
            (
                words(&Remedy::ChangeRule),
                "to allow this call, change that rule; a more specific rule cannot override it".to_owned(),
            ),
            (words(&Remedy::RaiseCost), "raise --max-cost, or choose another model with -m".to_owned()),
            (words(&Remedy::RaiseTokens), "raise --max-tokens".to_owned()),
            (words(&Remedy::RaiseTime), "raise --max-wall".to_owned()),
            (words(&Remedy::PageOutput("o-1".to_owned())), "ReadOutput {\"handle\":\"o-1\"} reads the rest".to_owned()),
            (words(&Remedy::WholeOutput("o-1".to_owned())), "ReadOutput {\"handle\":\"o-1\"} reads it as it came".to_owned()),
            (
                words(&Remedy::HaveShell),
                "`yoi features` shows what left out `builtin:shell` (--without, an agent file or the configuration); start \
                 the pod without that"
                    .to_owned(),
            ),
            (
                rule(Some("git status"), AlternativeRemedy::Nothing),
                format!("{start} --allow 'Bash git status', {written}"),
            ),
            (
                rule(None, AlternativeRemedy::Secret),
                format!(
                    "{start} --allow Bash (which allows Bash on every file), {written} (a command that does not name the file can read \
                     it even without such a rule)"
                ),
            ),
            (rule(None, AlternativeRemedy::AskingRule), format!("{start} --allow Bash, or change that rule")),
            (
                rule(None, AlternativeRemedy::Sandbox),
                format!("{start} --allow Bash, or with --sandbox workspace-write"),
            ),
            (
                rule(None, AlternativeRemedy::Kernel),
                format!("this kernel cannot confine commands (see `yoi doctor`); {start} --allow Bash"),
            ),
        ];
        let in_tools = [
            (
                Refused::AddDir("/x y"),
                "the flag `--add-dir /x y` would allow it",
            ),
            (
                Refused::AddWriteDir("/x"),
                "the flag `--add-write-dir /x` would allow it",
            ),
            (
                Refused::LeaveReadOnly,
                "running without `--read-only`, or with `--add-write-dir DIR`, would allow it",
            ),
        ];
        for (remedy, expected) in in_tools {
            assert_eq!(super::in_tools(remedy), expected);
        }
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
