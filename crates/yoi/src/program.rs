//! A program of yoi with more features and runtimes than the built-in ones: composed in a `main` of its own, without a change here.

use crate::report::Report;
use host::added::AddedFeatures;
use host::exit::{Exit, Failure};
use host::points::Points;
use pod::feature::{FeatureModule, HostCapability};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

/// yoi's whole command line with these features beside the built-in ones. They are on; a person switches them off,
/// grants and configures them as every feature.
///
/// ```no_run
/// use pod::feature::{FeatureModule, HostCapability};
/// use std::process::ExitCode;
/// use std::sync::Arc;
///
/// fn program(mine: Arc<dyn FeatureModule>) -> ExitCode {
///     let granted = [HostCapability::tool("*"), HostCapability::SESSION_STATE];
///     yoi::Program::new().feature(mine, &granted).main(std::env::args_os())
/// }
/// ```
#[must_use]
pub struct Program {
    added: AddedFeatures,
    runtimes: Vec<Runtime>,
    points: Points,
}

/// What runs scripts of plugins.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    name: &'static str,
    run: fn(&[OsString]) -> ExitCode,
}

impl Runtime {
    /// Runs a script if the words of the process say so: the hidden command of this runtime, and what stands behind it.
    pub(crate) fn answered(self, words: &[OsString]) -> Option<ExitCode> {
        let name = words.first()?.to_str()?.strip_prefix("__")?;
        let words = words.get(1..).unwrap_or_default();
        (name == self.name).then(|| (self.run)(words))
    }
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Program {
    /// The built-in features alone, and Lua for scripts.
    pub fn new() -> Self {
        let none = Self {
            added: AddedFeatures::default(),
            runtimes: Vec::new(),
            points: Points::none(),
        };
        none.runtime("lua", crate::scripts::run_lua)
    }

    /// Adds a feature with what it is granted by default; `grant = { … }` of a person's configuration replaces that. Its
    /// id is used as it is, and names its state.
    pub fn feature(mut self, module: Arc<dyn FeatureModule>, grants: &[HostCapability]) -> Self {
        self.added.add(module, grants);
        self
    }

    /// Adds a runtime: features of plugins with `runtime = "NAME"` are answered by guests, each a process of this program in
    /// which `run` gets the path of the script, and speaks the contract of guests on standard input and output. The working
    /// directory is the package. `run` is called before this process has another thread.
    pub fn runtime(mut self, name: &'static str, run: fn(&[OsString]) -> ExitCode) -> Self {
        self.added.add_runtime(name);
        self.runtimes.push(Runtime { name, run });
        self
    }

    /// Calls these at the named points of a run, for tests.
    pub fn points(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// Runs one command line to its exit code; `args` begins with the name of the program. Errors are printed here and
    /// nowhere else.
    pub fn main(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        pod::hook::silence_private_panics();
        let command_line = AssertUnwindSafe(|| {
            let args = args.into_iter().collect();
            crate::command_line(args, self.added, &self.runtimes, &self.points)
        });
        catch_unwind(command_line).unwrap_or_else(|_panic| {
            // The panic has said where.
            Failure::new(
                Exit::Internal,
                "a fault in yoi ended the command; everything committed is on disk",
            )
            .report()
        })
    }
}
