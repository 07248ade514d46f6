//! The next step after a refusal, a limit or a cut, as data. The host turns it into text: only the host knows its
//! flags, its files and the names of its tools.

/// What a person, or the model, does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    AddDir,
    AddWriteDir,
    LeaveReadOnly,
    /// Name a path that exists or can be created.
    FixPath,
    /// Change the rule that denies; no rule inside of it can allow.
    ChangeRule,
    /// Allow such calls by a rule.
    Rule {
        tool: String,
        /// The narrowest program, path or host that allows the call, in plain characters; without it the whole tool.
        about: Option<String>,
        beside: Beside,
    },
    /// Raise the cost limit, or choose another model.
    RaiseCost,
    /// Page an output that was cut, by its handle.
    PageOutput(String),
}

/// What else allows a call that a rule would allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// Nothing; and a command that does not name the file can read it all the same.
    Secret,
    /// Changing the rule that asks.
    AskingRule,
    Sandbox,
    /// A kernel that can confine it.
    Kernel,
}

/// What a host calls things.
#[derive(Clone, Copy, Debug)]
pub struct HostTerms {
    /// The tool whose rules also say which files a command may name.
    pub read: &'static str,
    /// The words of a remedy; they end up in results, requests and the journal.
    pub remedy: fn(&Remedy) -> String,
}
