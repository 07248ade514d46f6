//! A program of yoi with more features than the built-in ones: composed in a `main` of its own, without a change here.

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
    points: Points,
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Program {
    /// The built-in features alone.
    pub fn new() -> Self {
        Self {
            added: AddedFeatures::default(),
            points: Points::none(),
        }
    }

    /// Adds a feature with what it is granted by default; `grant = { … }` of a person's configuration replaces that. Its
    /// id is used as it is, and names its state.
    pub fn feature(mut self, module: Arc<dyn FeatureModule>, grants: &[HostCapability]) -> Self {
        self.added.add(module, grants);
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
            crate::command_line(args.into_iter().collect(), self.added, &self.points)
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
