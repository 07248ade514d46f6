//! Remedies in words: the flags, the files and the tools that they mean.

use builtins::PathRemedy as Refused;
use pod::permission::{AlternativeRemedy, HostTerms, Remedy};

/// What this program calls things.
pub(crate) const TERMS: HostTerms = HostTerms { read: "Read", remedy: words };

/// What it calls the ways out of a failed request to a model.
pub(crate) const MODEL_TERMS: provider::HelpTerms =
    provider::HelpTerms { other_model: "choose another model with -m", model_list: "yoi models" };

/// The flag that allows what a rule allows, quoted for a shell.
pub(crate) fn allow(tool: &str, about: Option<&str>) -> String {
    match about {
        Some(about) => format!("--allow '{tool} {about}'"),
        None => format!("--allow {tool}"),
    }
}

/// What would allow a path that a tool refused: a clause of its error.
pub(crate) fn in_tools(remedy: Refused<'_>) -> String {
    match remedy {
        Refused::AddDir(dir) => format!("the flag `--add-dir {dir}` would allow it"),
        Refused::AddWriteDir(dir) => format!("the flag `--add-write-dir {dir}` would allow it"),
        Refused::LeaveReadOnly => {
            "running without `--read-only`, or with `--add-write-dir DIR`, would allow it".to_owned()
        }
    }
}

fn words(remedy: &Remedy) -> String {
    let (tool, about, alternative) = match remedy {
        Remedy::AddDir => return "To allow it, start with --add-dir DIR.".to_owned(),
        Remedy::AddWriteDir => return "To allow it, start with --add-write-dir DIR.".to_owned(),
        Remedy::LeaveReadOnly => {
            return "To allow it, start without --read-only, in a project directory, with --sandbox workspace-write."
                .to_owned();
        }
        Remedy::FixPath => return "Name a path that exists or can be created.".to_owned(),
        Remedy::ChangeRule => {
            return "To allow it, change that rule; a more specific rule cannot override it.".to_owned();
        }
        Remedy::RaiseCost => return "raise --max-cost, or choose another model with -m".to_owned(),
        Remedy::PageOutput(handle) => {
            return format!("ReadOutput {{\"handle\":\"{handle}\"}} reads the rest");
        }
        Remedy::Rule { tool, about, alternative } => (tool, about.as_deref(), alternative),
    };
    let rule = allow(tool, about);
    let written = "add such a rule to [[permissions.rules]] in your configuration.";
    match alternative {
        AlternativeRemedy::Nothing => format!("To allow it, start with {rule}, or {written}"),
        AlternativeRemedy::Secret => format!(
            "To allow it, start with {rule}, or {written} (This protects only against calls that name the \
             file: other commands can still read it.)"
        ),
        AlternativeRemedy::AskingRule => format!("To allow it, start with {rule}, or change that rule."),
        AlternativeRemedy::Sandbox => {
            format!("To allow it, use the sandbox (--sandbox workspace-write), or start with {rule}.")
        }
        AlternativeRemedy::Kernel => {
            format!("This kernel cannot confine it (see yoi doctor). To allow it, start with {rule}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_remedy_names_its_flag() {
        let rule = |about: Option<&str>, alternative| {
            words(&Remedy::Rule { tool: "Bash".to_owned(), about: about.map(str::to_owned), alternative })
        };
        let cases = [
            (words(&Remedy::AddDir), "To allow it, start with --add-dir DIR."),
            (words(&Remedy::AddWriteDir), "To allow it, start with --add-write-dir DIR."),
            (
                words(&Remedy::LeaveReadOnly),
                "To allow it, start without --read-only, in a project directory, with --sandbox workspace-write.",
            ),
            (words(&Remedy::FixPath), "Name a path that exists or can be created."),
            (words(&Remedy::ChangeRule), "To allow it, change that rule; a more specific rule cannot override it."),
            (words(&Remedy::RaiseCost), "raise --max-cost, or choose another model with -m"),
            (words(&Remedy::PageOutput("o-1".to_owned())), "ReadOutput {\"handle\":\"o-1\"} reads the rest"),
            (
                rule(Some("git status"), AlternativeRemedy::Nothing),
                "To allow it, start with --allow 'Bash git status', or add such a rule to [[permissions.rules]] \
                 in your configuration.",
            ),
            (
                rule(None, AlternativeRemedy::Secret),
                "To allow it, start with --allow Bash, or add such a rule to [[permissions.rules]] in your configuration. \
                 (This protects only against calls that name the file: other commands can still read it.)",
            ),
            (rule(None, AlternativeRemedy::AskingRule), "To allow it, start with --allow Bash, or change that rule."),
            (
                rule(None, AlternativeRemedy::Sandbox),
                "To allow it, use the sandbox (--sandbox workspace-write), or start with --allow Bash.",
            ),
            (
                rule(None, AlternativeRemedy::Kernel),
                "This kernel cannot confine it (see yoi doctor). To allow it, start with --allow Bash.",
            ),
        ];
        let in_tools = [
            (Refused::AddDir("/x y"), "the flag `--add-dir /x y` would allow it"),
            (Refused::AddWriteDir("/x"), "the flag `--add-write-dir /x` would allow it"),
            (Refused::LeaveReadOnly, "running without `--read-only`, or with `--add-write-dir DIR`, would allow it"),
        ];
        for (remedy, expected) in in_tools {
            assert_eq!(super::in_tools(remedy), expected);
        }
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
