//! The next step after a refusal, a limit or a cut, as data. The host turns it into text: only the host knows its
//! flags, its files and the names of its tools.

use std::path::PathBuf;

/// What a person, or the model, can do about a refusal. Permission attaches it to its decision; the host renders it with
/// [`HostTerms::remedy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Add this directory for reading.
    AddDir(PathBuf),
    /// Add this directory for writing.
    AddWriteDir(PathBuf),
    LeaveReadOnly,
    /// Run where a person can be asked, or without the sandbox; no rule allows it.
    AskPerson,
    /// Name a path that exists or can be created.
    FixPath,
    /// Change the rule that denies; no rule inside of it can allow.
    ChangeRule,
    /// Allow such calls by rules: one for each thing that the call names and that needs approval.
    Rule {
        rules: Vec<RuleRemedy>,
        alternative: AlternativeRemedy,
    },
    /// Raise the cost limit, or choose another model.
    RaiseCost,
    /// Raise the limit on tokens.
    RaiseTokens,
    /// Raise the limit on time.
    RaiseTime,
    /// Raise the pod's limits, or grant it its budget once more.
    RaisePodBudget,
    /// Page an output that was cut, by its handle.
    PageOutput(String),
    /// Read the whole of a result that is shown shorter, by its handle.
    WholeOutput(String),
    /// Have the pod offer the tool that runs shell commands.
    HaveShell,
}

/// A rule that allows a part of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRemedy {
    pub tool: String,
    /// The narrowest program, path or host that allows the call, in plain characters; without it the whole tool.
    pub about: Option<String>,
}

/// Another way to get a call allowed, besides a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlternativeRemedy {
    Nothing,
    /// None; and a command that does not name the file can still read it.
    Secret,
    /// Changing the rule that asks for approval.
    AskingRule,
    Sandbox,
    /// Running on a kernel that can confine the command.
    Kernel,
}

/// The names and texts of the program around this crate, which `yoi` supplies: the crate knows neither flags nor files of
/// configuration.
#[derive(Clone, Copy, Debug)]
pub struct HostTerms {
    /// The tool whose rules also say which files a command may name.
    pub read: &'static str,
    /// The tool that runs shell commands, and the one that starts them as jobs: rules about the first are about both.
    pub shell: &'static str,
    pub jobs: &'static str,
    /// The arguments with which that tool runs a command of a person, as JSON.
    pub run: fn(&str) -> String,
    /// Renders a remedy as text; the text ends up in results, requests and the journal.
    pub remedy: fn(&Remedy) -> String,
}

impl HostTerms {
    /// The tools whose rules are about the calls of this one.
    pub(super) fn ruled_as<'a>(&self, tool: &'a str) -> [&'a str; 2]
    where
        Self: 'a,
    {
        [tool, if tool == self.jobs { self.shell } else { tool }]
    }
}
