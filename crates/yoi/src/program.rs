//! A program of yoi with more features than the built-in ones: composed in a `main` of its own, without a change here.

use crate::Points;
use crate::exit::{Exit, Failure};
use pod::feature::{CapabilityPolicy, FeatureDescriptor, FeatureModule, HostCapability};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

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
    added: Vec<AddedFeature>,
    points: Points,
}

struct AddedFeature {
    module: Arc<dyn FeatureModule>,
    /// None if `descriptor()` panicked; the install report says so, too.
    declared: Option<FeatureDescriptor>,
    grants: Vec<HostCapability>,
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
            added: Vec::new(),
            points: Points::none(),
        }
    }

    /// Adds a feature with what it is granted by default; `grant = { … }` of a person's configuration replaces that. Its
    /// id is used as it is, and names its state.
    pub fn feature(mut self, module: Arc<dyn FeatureModule>, grants: &[HostCapability]) -> Self {
        let declared = catch_unwind(AssertUnwindSafe(|| module.descriptor())).ok();
        self.added.push(AddedFeature {
            module,
            declared,
            grants: grants.to_vec(),
        });
        self
    }

    /// Calls these at the named points of a run, for tests.
    pub fn points(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// Runs one command line to its exit code; `args` begins with the name of the program. Errors are printed here and
    /// nowhere else. A process runs one program.
    pub fn main(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        pod::hook::silence_private_panics();
        if !self.added.is_empty() && ADDED.set(self.added).is_err() {
            return Failure::new(
                Exit::Internal,
                "this process already runs a program with features of its own",
            )
            .help("call `Program::main` once")
            .report();
        }
        let command_line =
            AssertUnwindSafe(|| crate::command_line(args.into_iter().collect(), &self.points));
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

/// The features of this process besides the built-in ones. Set once, before the command line is read, which may name
/// their tools.
static ADDED: OnceLock<Vec<AddedFeature>> = OnceLock::new();

fn added() -> &'static [AddedFeature] {
    ADDED.get().map_or(&[], Vec::as_slice)
}

/// The added modules.
pub(crate) fn modules() -> impl Iterator<Item = Arc<dyn FeatureModule>> {
    added().iter().map(|added| Arc::clone(&added.module))
}

/// Everything that this program has declared, the built-in features first.
pub(crate) fn declared() -> Vec<FeatureDescriptor> {
    let added = added().iter().filter_map(|added| added.declared.clone());
    builtins::declared().into_iter().chain(added).collect()
}

/// A policy with the default grants of the added features.
pub(crate) fn granted(policy: CapabilityPolicy) -> CapabilityPolicy {
    added().iter().fold(policy, |policy, added| {
        let grants = added
            .declared
            .iter()
            .flat_map(|declared| added.grants.iter().map(|grant| (&declared.id, grant)));
        grants.fold(policy, |policy, (id, grant)| {
            policy.grant(id.clone(), grant.clone(), "default")
        })
    })
}
