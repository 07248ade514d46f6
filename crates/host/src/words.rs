//! What the face calls things. A host knows no command line, so these words are handed to it.

use crate::exit::Help;
use builtins::PathRemedy;
use pod::permission::Remedy;
use provider::HelpTerms;

/// The tool that runs commands.
pub const SHELL: &str = "Bash";

/// The tool with which the model reads the parts of outputs that results leave out.
pub const READ_OUTPUT: &str = "ReadOutput";

/// Why a pod may not write in its project.
#[derive(Clone, Copy, Debug)]
pub enum ReadOnlyCause {
    Sandbox,
    /// Its start asked for that alone.
    Flag,
    /// The directory is never written.
    TooWide,
}

/// Puts next steps into words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// After a failure.
    pub help: fn(&Help) -> String,
    /// After a refused call, for a pod that may not write for this reason.
    pub remedy: fn(ReadOnlyCause) -> fn(&Remedy) -> String,
    /// After a path that a tool refused: a clause of its error.
    pub path: fn(PathRemedy<'_>) -> String,
    /// What allows the use of a tool on a path.
    pub allow: fn(&str, Option<&str>) -> String,
    /// After a failed request to a model; gets the variable of the proxy in use.
    pub model: fn(String) -> HelpTerms,
}

/// No words.
impl Default for Words {
    fn default() -> Self {
        Self {
            help: |_| String::new(),
            remedy: |_| |_| String::new(),
            path: |_| String::new(),
            allow: |_, _| String::new(),
            model: |proxy| HelpTerms {
                other_model: "",
                model_list: "",
                full_context: "",
                proxy,
            },
        }
    }
}
