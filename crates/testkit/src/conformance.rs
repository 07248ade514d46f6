//! Checks any feature against the contract of `pod::feature`: the duties of its author, tried at every point where the
//! feature could break them. Guarantees of the host are tested by the host.

mod called;
mod declared;
mod hooked;
mod installed;
mod proxy;
mod sample;
mod site;
mod strays;
mod tasks;

use crate::feature_host::FeatureHost;
use pod::feature::FeatureModule;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use strays::Strays;

/// The time in which a cancelled call or run has to end.
const GRACE: Duration = Duration::from_secs(5);

/// One rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// `descriptor()` returns the same bytes each time, also in a new instance, and reads and writes nothing.
    Descriptor,
    /// The descriptor is within the bounds of planning.
    Bounds,
    /// Every schema is valid: known types, references that resolve.
    Schemas,
    /// With all its requested capabilities it installs completely, twice, and stages everything that it declares.
    Install,
    /// An error, a panic or a hang at any call into the host leaves no file and nothing in the registry.
    Atomic,
    /// If any optional capability, tool, hook or background task is denied, or all at once, the rest is installed.
    Optional,
    /// Without a required capability it is skipped before its install is called; it uses every capability that it
    /// requests.
    Required,
    /// Tools accept only objects as arguments and refuse unknown fields.
    Arguments,
    /// A cancelled call ends in time. Not tried for a tool that refuses its sample arguments.
    Cancellation,
    /// A call does not panic and returns no more than the host accepts at once.
    Outputs,
    /// Summaries and errors hold no characters that mislead a reader.
    Text,
    /// Hooks return in time and do not panic for any call.
    Hooks,
    /// A run of a background task does not panic, and ends in time when it is cancelled.
    Tasks,
    /// After a kill around any update it installs again, and the state in the log is unchanged.
    State,
    /// No task of it runs after its pod closed; if it is disabled, it leaves nothing.
    Leftovers,
    /// No thread that it started runs after its pod closed.
    Threads,
    /// No process that it started runs after its pod closed.
    Children,
    /// It writes no file but through its handles.
    Files,
}

impl Check {
    /// Every check, in the order in which they run.
    pub const ALL: [Self; 18] = [
        Self::Descriptor,
        Self::Bounds,
        Self::Schemas,
        Self::Install,
        Self::Atomic,
        Self::Optional,
        Self::Required,
        Self::Arguments,
        Self::Cancellation,
        Self::Outputs,
        Self::Text,
        Self::Hooks,
        Self::Tasks,
        Self::State,
        Self::Leftovers,
        Self::Threads,
        Self::Children,
        Self::Files,
    ];
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The check passed.
    Yes,
    /// The check failed, with the evidence.
    No(String),
    /// The check could not run, with the reason.
    NotTried(String),
}

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    pub check: Check,
    pub held: CheckOutcome,
}

impl fmt::Display for CheckResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            CheckOutcome::Yes => write!(f, "✓ {}", self.check),
            CheckOutcome::No(how) => write!(f, "✗ {}: {how}", self.check),
            CheckOutcome::NotTried(why) => write!(f, "- {}: not tried, {why}", self.check),
        }
    }
}

/// A run of all checks over one feature; see [`conformance`].
#[must_use]
pub struct Conformance {
    feature: Box<dyn Fn() -> Arc<dyn FeatureModule>>,
    host: Box<dyn Fn() -> FeatureHost>,
    examples: BTreeMap<String, Vec<Value>>,
    grace: Duration,
}

/// Checks a feature against the whole contract. Call it in a test of the feature. The closure creates a new instance,
/// as a new process would.
///
/// ```
/// use pod::feature::author::*;
///
/// struct Nothing;
///
/// impl FeatureModule for Nothing {
///     fn descriptor(&self) -> FeatureDescriptor {
///         FeatureDescriptor::builder(FeatureId::user("nothing")).version("0.1.0").build()
///     }
///
///     fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
///         Ok(())
///     }
/// }
///
/// testkit::conformance(|| Nothing).assert();
/// ```
pub fn conformance<M: FeatureModule>(feature: impl Fn() -> M + 'static) -> Conformance {
    Conformance {
        feature: Box::new(move || Arc::new(feature())),
        host: Box::new(FeatureHost::new),
        examples: BTreeMap::new(),
        grace: GRACE,
    }
}

impl Conformance {
    /// Adds example arguments for a tool. A tool without examples is called with arguments made from its schema, which
    /// the tool may refuse. Give one example that does the work, and one that takes long.
    pub fn example(mut self, tool: &str, arguments: Value) -> Self {
        self.examples
            .entry(tool.to_owned())
            .or_default()
            .push(arguments);
        self
    }

    /// Sets the host that the feature is tried in, for a feature that needs other features or files in its project.
    pub fn on(mut self, host: impl Fn() -> FeatureHost + 'static) -> Self {
        self.host = Box::new(host);
        self
    }

    /// Sets the time in which a cancelled call or run has to end; the default is five seconds.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Runs every check and returns the results.
    #[must_use]
    pub fn findings(&self) -> Vec<CheckResult> {
        let mut made = Made::default();
        made.note(Check::Descriptor, declared::pure(self));
        made.note(Check::Bounds, declared::bounded(self));
        made.note(Check::Schemas, declared::schemas(self));
        if made.broken(Check::Bounds) {
            return made.rest("its descriptor is out of bounds");
        }
        if made.broken(Check::Schemas) {
            return made.rest("a feature with such a schema is not installed");
        }
        made.note(Check::Install, installed::whole(self));
        if made.broken(Check::Install) {
            return made.rest("it does not install");
        }
        made.note(Check::Atomic, installed::atomic(self));
        made.note(Check::Optional, installed::optional(self));
        made.note(Check::Required, installed::required(self));
        let called = called::called(self);
        made.note(Check::Arguments, called.arguments);
        made.note(Check::Cancellation, called.cancellation);
        made.note(Check::Outputs, called.outputs);
        made.note(Check::Text, called.text);
        made.note(Check::Hooks, hooked::hooks(self));
        made.note(Check::Tasks, tasks::tasks(self));
        made.note(Check::State, called::state(self, &called.quick));
        made.note(Check::Leftovers, called::leftovers(self, &called.quick));
        let strays = match made.broken(Check::Hooks) || made.broken(Check::Tasks) {
            true => Strays::not_tried("its hooks or background tasks do not end in time"),
            false => strays::strays(self, &called.quick),
        };
        made.note(Check::Threads, strays.threads);
        made.note(Check::Children, strays.children);
        made.note(Check::Files, strays.files);
        made.findings
    }

    /// Runs every check and panics with all that failed.
    ///
    /// # Panics
    /// At least one check failed.
    pub fn assert(&self) {
        let findings = self.findings();
        let broken: Vec<_> = findings
            .iter()
            .filter(|f| matches!(f.held, CheckOutcome::No(_)))
            .map(ToString::to_string)
            .collect();
        assert!(
            broken.is_empty(),
            "{} breaks the contract:\n{}",
            self.descriptor().id,
            broken.join("\n")
        );
    }
}

#[derive(Default)]
struct Made {
    findings: Vec<CheckResult>,
}

impl Made {
    fn note(&mut self, check: Check, held: CheckOutcome) {
        self.findings.push(CheckResult { check, held });
    }

    fn broken(&self, check: Check) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.check == check && matches!(finding.held, CheckOutcome::No(_)))
    }

    /// Adds the checks that did not run, with this reason.
    fn rest(mut self, why: &str) -> Vec<CheckResult> {
        let made = self.findings.len();
        for check in Check::ALL.into_iter().skip(made) {
            self.note(check, CheckOutcome::NotTried(why.to_owned()));
        }
        self.findings
    }
}

/// The outcome of a check of several parts: passed, or the first problem.
fn all(parts: impl IntoIterator<Item = Result<(), String>>) -> CheckOutcome {
    match parts.into_iter().find_map(Result::err) {
        Some(how) => CheckOutcome::No(how),
        None => CheckOutcome::Yes,
    }
}
