//! One feature in its own pod: its grants, other features, and everything that the feature does, as seen from outside.

mod killed;
mod setting;
mod under_test;
mod view;

pub use killed::killed_anywhere;
pub(crate) use setting::{Setting, declared};
pub use under_test::{FeatureUnderTest, Notification};
pub use view::{shell_call, tool_call};

use crate::clock::ManualClock;
use crate::model::ModelScript;
use crate::rig::PodUnderTest;
use crate::tool::FnTool;
use authority::{SandboxMode, Secret};
use pod::feature::{
    FeatureDescriptor, FeatureInstallContext, FeatureInstallError, FeatureModule, HostCapability,
    InstallOutcome,
};
use pod::permission::{Rule, RuleDecision, SandboxState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Builds a pod for tests of one feature; [`FeatureHost::install`] installs the feature and opens the pod.
///
/// The feature gets everything it asks for. With [`FeatureHost::grant`], only the granted ones of its own requests are
/// granted; its tools, hooks and states need no grant. [`FeatureHost::deny`] overrides both.
///
/// ```
/// use pod::feature::author::*;
/// use testkit::FeatureHost;
///
/// const COUNT: StateKey<u64> = StateKey::new("count", 1);
/// const UP: ToolKey<UpArgs> = ToolKey::new("Up", ToolEffect::Effectful, "Count one up.");
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct UpArgs {}
///
/// struct Counter;
///
/// impl FeatureModule for Counter {
///     fn descriptor(&self) -> FeatureDescriptor {
///         FeatureDescriptor::builder(FeatureId::user("counter")).version("0.1.0").tool(&UP).state(&COUNT).build()
///     }
///
///     fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
///         let live = Arc::new(Live { count: ctx.state(&COUNT)? });
///         ctx.tools().implement(&UP, &live, Live::up).map(drop)
///     }
/// }
///
/// struct Live {
///     count: DurableState<u64>,
/// }
///
/// impl Live {
///     async fn up(self: Arc<Self>, _: UpArgs, _: ToolContext) -> ToolResult {
///         let now = self.count.update(|count| { *count += 1; *count }).await?;
///         Ok(ToolOutput { summary: now.to_string(), ..ToolOutput::default() })
///     }
/// }
///
/// let mut host = FeatureHost::new().install(Counter);
/// assert_eq!(host.call("Up", serde_json::json!({})).text(), "1");
/// host.restart();
/// assert_eq!(host.state(&COUNT), 1);
/// ```
#[must_use]
pub struct FeatureHost {
    pub(crate) pod: PodUnderTest,
    pub(crate) setting: Setting,
}

impl Default for FeatureHost {
    fn default() -> Self {
        Self::new()
    }
}

impl FeatureHost {
    /// A pod in a temporary directory. Calls are judged as in a new installation of yoi: by the default table, in an
    /// enforced sandbox, where nobody answers questions. Timers run in real time; the wall clock does not advance.
    #[allow(
        clippy::disallowed_methods,
        reason = "the root of a test, in a directory of its own"
    )]
    pub fn new() -> Self {
        let ambient = ambient::claim();
        let mut pod = PodUnderTest::new(&ambient, ModelScript::new([]), Vec::new());
        pod.paused = false;
        pod.sandboxed(SandboxState {
            mode: SandboxMode::WorkspaceWrite,
            enforced: true,
        });
        Self {
            setting: Setting::new(pod.root()),
            pod,
        }
    }

    /// Grants a capability that the feature requests. Without any grant, all its requests are granted.
    pub fn grant(mut self, capability: HostCapability) -> Self {
        self.setting.granted.push(capability);
        self
    }

    /// Denies a capability, also when a request, tool, hook or state would grant it.
    pub fn deny(mut self, capability: HostCapability) -> Self {
        self.setting.denied.push(capability);
        self
    }

    /// Sets the settings of the feature: a JSON object. Without them, it has the defaults of its schema.
    ///
    /// # Panics
    /// The value is no object.
    pub fn settings(mut self, settings: serde_json::Value) -> Self {
        let serde_json::Value::Object(settings) = settings else {
            panic!("settings are an object, not {settings}")
        };
        self.setting.settings = settings;
        self
    }

    /// Adds a tool of another feature, whose calls the gates and transforms of the feature under test see.
    pub fn tool(mut self, tool: FnTool) -> Self {
        self.setting.tools.push(tool);
        self
    }

    /// Installs another feature, too, with all capabilities that it requests.
    pub fn with(mut self, feature: impl FeatureModule) -> Self {
        self.setting.beside.push(Arc::new(feature));
        self
    }

    /// Offers an endpoint of this machine, such as `127.0.0.1:9000`: grants of endpoints can name it. Without this, no host
    /// can be reached.
    ///
    /// # Panics
    /// It is no host and port.
    pub fn endpoint(mut self, at: &str) -> Self {
        let at = at.parse().unwrap_or_else(|error| panic!("{error}"));
        self.setting.endpoints.push(at);
        self
    }

    /// Offers a secret, which is kept out of all that the pod writes.
    ///
    /// # Panics
    /// It is too short for that.
    #[allow(
        clippy::disallowed_methods,
        reason = "the secret of a test, for features of its own"
    )]
    pub fn secret(mut self, name: &str, value: &str) -> Self {
        let secret = Secret::new(&ambient::claim(), name, value.to_owned());
        self.setting.secrets.push(secret);
        self
    }

    /// Permits every call that a rule can permit, for tests of what a tool does.
    pub fn permit_all(self) -> Self {
        self.judge_by(vec![Rule::new("*", RuleDecision::Allow)])
    }

    /// Judges calls by these rules, as a person's file has them; where none matches, by the default table. The rules
    /// belong to the host and are evaluated before any gate.
    pub fn judge_by(mut self, rules: Vec<Rule>) -> Self {
        self.pod.judge_by(rules);
        self
    }

    /// Sets the time that a cancelled call may continue before the host abandons it.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.pod.grace = grace;
        self
    }

    /// The wall clock, for features that take one.
    #[must_use]
    pub fn clock(&self) -> ManualClock {
        self.pod.clock.clone()
    }

    /// The project's directory: the root `workspace`.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.pod.project
    }

    /// Installs the feature and opens the pod.
    ///
    /// # Panics
    /// The feature was not installed; the message has the reason. [`FeatureHost::try_install`] does not panic.
    pub fn install(self, feature: impl FeatureModule) -> FeatureUnderTest {
        let host = self.try_install(feature);
        let report = host.report();
        assert!(
            report.outcome.is_live(),
            "{} was not installed: {:#?}",
            report.feature_id,
            report.diagnostics
        );
        host
    }

    /// Like [`install`](Self::install), but a feature that is not installed is no panic: [`FeatureUnderTest::report`]
    /// has the reason.
    ///
    /// # Panics
    /// Another feature of the setting was not installed, or the pod did not open.
    pub fn try_install(self, feature: impl FeatureModule) -> FeatureUnderTest {
        let host = FeatureUnderTest::open(self.pod, self.setting, Arc::new(feature));
        for other in host
            .registry_report()
            .features
            .iter()
            .filter(|other| other.feature_id != *host.id())
        {
            assert_eq!(
                other.outcome,
                InstallOutcome::Installed,
                "beside it: {other:#?}"
            );
        }
        host
    }
}

/// Passes a shared feature where a feature by value is expected.
#[derive(Clone)]
pub struct Shared(pub Arc<dyn FeatureModule>);

impl FeatureModule for Shared {
    fn descriptor(&self) -> FeatureDescriptor {
        self.0.descriptor()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        self.0.install(ctx)
    }

    fn source(&self) -> std::borrow::Cow<'static, str> {
        self.0.source()
    }

    fn body(&self) -> Option<String> {
        self.0.body()
    }
}
