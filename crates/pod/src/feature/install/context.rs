//! What a feature sees while it installs: registrars into its private stage, and handles for what it was granted.

use super::stage::Stage;
use crate::feature::declare::capability::{CapabilityGrantSet, HostCapability};
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::hook::{HookContribution, HookKey};
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::ServiceKey;
use crate::feature::declare::state::StateKey;
use crate::feature::declare::tool::{Keyed, ToolContribution, ToolKey};
use crate::feature::live::service::ServiceHandle;
use crate::feature::live::sink::{FeatureAlertSink, FeatureNotifySink, RunningNotes};
use crate::feature::live::state::{DurableState, PodLink};
use crate::hook::{Gate, Observe, Point, Transform};
use crate::mailbox::requests::Line;
use authority::{HostPattern, Net, Redactor, Secret, Spawner, Workspace};
use llm_worker::{Tool, ToolContext, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One feature's install, from call to return. It reaches no pod, no journal and no other feature.
pub struct FeatureInstallContext<'a> {
    stage: &'a mut Stage,
    services: &'a HostServices,
}

/// Whether a contribution will be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    /// It will, if the whole feature is.
    Staged,
    /// The plan left it out, because an optional capability was denied.
    Skipped,
}

/// One call into the host during an install, as a [`RegistrarProbe`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct RegistrarCall<'a> {
    /// Whose install.
    pub feature: &'a FeatureId,
    /// Its number in this install, from 1.
    pub number: usize,
    /// Which registrar.
    pub registrar: &'static str,
    /// What it is about: a tool, an instruction, a root.
    pub name: &'a str,
}

/// Called before each call into the host takes effect; what it answers, panics or waits stands for the call. For
/// tests of features: a failure at every point of an install.
pub type RegistrarProbe = Arc<dyn Fn(RegistrarCall<'_>) -> Result<(), FeatureInstallError> + Send + Sync>;

impl<'a> FeatureInstallContext<'a> {
    pub(crate) fn new(stage: &'a mut Stage, services: &'a HostServices) -> Self {
        Self { stage, services }
    }

    /// Whose install this is.
    #[must_use]
    pub fn feature_id(&self) -> &FeatureId {
        &self.stage.feature
    }

    /// What was granted and denied.
    #[must_use]
    pub fn grants(&self) -> &CapabilityGrantSet {
        &self.stage.grants
    }

    /// Stages tools.
    pub fn tools(&mut self) -> ToolRegistrar<'_> {
        ToolRegistrar { stage: self.stage }
    }

    /// Stages hooks.
    pub fn hooks(&mut self) -> PublicHookRegistrar<'_> {
        PublicHookRegistrar { stage: self.stage }
    }

    /// Words a declared instruction anew.
    pub fn instructions(&mut self) -> InstructionRegistrar<'_> {
        InstructionRegistrar { stage: self.stage }
    }

    /// Hands out what was granted.
    pub fn services(&mut self) -> FeatureServiceProvider<'_> {
        FeatureServiceProvider { stage: self.stage, services: self.services }
    }

    /// Takes up a declared state, with the value it was left at. It is updated once the feature is installed.
    ///
    /// # Errors
    /// Not declared, or not as declared; `Denied`; what was left does not read; the host keeps no state. A feature that
    /// goes on in spite of that is not installed, unless it was denied and asked for the scope as optional.
    pub fn state<T>(&mut self, key: &StateKey<T>) -> Result<DurableState<T>, FeatureInstallError>
    where
        T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
    {
        let (link, redactor) = (self.services.link.clone(), self.services.redactor.clone());
        self.stage.call("state", key.name(), |stage| {
            stage.state(&key.declaration(), |feature, door, presence| {
                let asked = format!("state `{}`", key.name());
                let unavailable = |why| FeatureInstallError::Unavailable { feature: feature.clone(), asked, why };
                let Some(link) = link else { return Err(unavailable(NOT_OFFERED.to_owned())) };
                let left = |why| FeatureInstallError::failed(format!("state `{}` does not read: {why}", key.name()));
                DurableState::load(key, feature, &link, (door, presence), redactor).map_err(left)
            })
        })
    }

    /// The way to tell the model something, once the feature is installed.
    ///
    /// # Errors
    /// `Denied` without a grant of `EmitModelNotification`; `Unavailable` where no pod listens.
    pub fn notifications(&mut self) -> Result<FeatureNotifySink, FeatureInstallError> {
        let line = self.services.line();
        self.stage.call("notifications", "", |stage| {
            // Without a grant, asking for the least is refused by name.
            let (mut max_bytes, mut per_turn) = (1, 1);
            for grant in stage.grants.granted() {
                if let HostCapability::EmitModelNotification { max_bytes: bytes, per_turn: times } = grant {
                    (max_bytes, per_turn) = (*bytes, *times);
                }
            }
            let door = stage.grant(&HostCapability::EmitModelNotification { max_bytes, per_turn })?;
            let (feature, presence) = (stage.feature.clone(), stage.presence());
            Ok(FeatureNotifySink {
                line: line(&feature, "notifications")?,
                feature,
                max_bytes,
                per_turn,
                door,
                presence,
            })
        })
    }

    /// The way to tell people something, once the feature is installed.
    ///
    /// # Errors
    /// `Denied` without a grant of `EmitUserAlert`; `Unavailable` where no pod listens.
    pub fn alerts(&mut self) -> Result<FeatureAlertSink, FeatureInstallError> {
        let line = self.services.line();
        self.stage.call("alerts", "", |stage| {
            let door = stage.grant(&HostCapability::EmitUserAlert)?;
            let (feature, presence) = (stage.feature.clone(), stage.presence());
            Ok(FeatureAlertSink { line: line(&feature, "alerts")?, feature, door, presence })
        })
    }

    /// Takes notes for the report.
    pub fn diagnostics(&mut self) -> FeatureDiagnosticSink<'_> {
        FeatureDiagnosticSink { stage: self.stage, services: self.services }
    }
}

/// Stages tools; see [`FeatureInstallContext::tools`].
pub struct ToolRegistrar<'a> {
    stage: &'a mut Stage,
}

impl ToolRegistrar<'_> {
    /// Stages a typed tool: an async method of the feature's live part.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn implement<S, A, F, R>(
        &mut self,
        key: &ToolKey<A>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        S: Send + Sync + 'static,
        A: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
        F: Fn(Arc<S>, A, ToolContext) -> R + Copy + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let tool = Keyed::new(key, live, method);
        let definition = tool.definition().clone();
        let needs = key.needed().to_vec();
        let feature = self.stage.feature.clone();
        self.stage.call("tools", key.name(), |stage| {
            stage.tool(&definition, || ToolContribution::new(feature, Arc::new(tool), needs))
        })
    }

    /// Stages a tool with a foreign schema.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn register(&mut self, tool: ToolContribution) -> Result<Staging, FeatureInstallError> {
        let (name, definition) = (tool.name.clone(), tool.definition.clone());
        self.stage.call("tools", &name, |stage| stage.tool(&definition, || tool))
    }
}

/// Stages hooks; see [`FeatureInstallContext::hooks`]. A hook is a method of the feature's live part that sees a view
/// and answers; it runs on a callback thread, within the deadline of its key.
pub struct PublicHookRegistrar<'a> {
    stage: &'a mut Stage,
}

impl PublicHookRegistrar<'_> {
    /// Stages a gate. Its failure refuses.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn gate<P, S, F>(&mut self, key: &HookKey<P>, live: &Arc<S>, method: F) -> Result<Staging, FeatureInstallError>
    where
        P: Gate,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> P::Answer + Send + Sync + 'static,
    {
        self.method(key, live, method)
    }

    /// Stages a transform. Its failure keeps the value as it was.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn transform<P, S, F>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Transform,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> P::Answer + Send + Sync + 'static,
    {
        self.method(key, live, method)
    }

    /// Stages an observer. Its failure is counted.
    ///
    /// # Errors
    /// Not declared, staged twice, or not the key that was declared.
    pub fn observe<P, S, F>(
        &mut self,
        key: &HookKey<P>,
        live: &Arc<S>,
        method: F,
    ) -> Result<Staging, FeatureInstallError>
    where
        P: Observe,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> P::Answer + Send + Sync + 'static,
    {
        self.method(key, live, method)
    }

    /// Stages a hook of a type of its own, or one that awaits something.
    ///
    /// # Errors
    /// Not declared, staged twice, or not what was declared.
    pub fn register(&mut self, hook: HookContribution) -> Result<Staging, FeatureInstallError> {
        let name = hook.name.clone();
        self.stage.call("hooks", &name, |stage| stage.hook(hook))
    }

    fn method<P, S, F>(&mut self, key: &HookKey<P>, live: &Arc<S>, method: F) -> Result<Staging, FeatureInstallError>
    where
        P: Point,
        S: Send + Sync + 'static,
        F: Fn(&S, &P::Input) -> P::Answer + Send + Sync + 'static,
    {
        let live = Arc::clone(live);
        let hook = move |input: &P::Input| method(&live, input);
        let feature = self.stage.feature.clone();
        self.register(HookContribution::new(feature, key, Arc::new(hook)))
    }
}

/// Words declared instructions anew; see [`FeatureInstallContext::instructions`].
pub struct InstructionRegistrar<'a> {
    stage: &'a mut Stage,
}

impl InstructionRegistrar<'_> {
    /// Replaces the text of a declared instruction, for words that depend on what was granted. An instruction
    /// that is never set keeps its declared text.
    ///
    /// # Errors
    /// Not declared, or out of the bounds of a declared text.
    pub fn set(&mut self, name: &str, text: impl Into<String>) -> Result<(), FeatureInstallError> {
        let text = text.into();
        self.stage.call("instructions", name, |stage| stage.instruction(name, text))
    }
}

/// Hands out what was granted; see [`FeatureInstallContext::services`].
pub struct FeatureServiceProvider<'a> {
    stage: &'a mut Stage,
    services: &'a HostServices,
}

impl FeatureServiceProvider<'_> {
    /// A directory handle, attenuated to the grant, under a door of its own.
    ///
    /// # Errors
    /// `Denied` without a grant for reading `root`; `Unavailable` when the host has no such root.
    pub fn fs(&mut self, root: &str) -> Result<Workspace, FeatureInstallError> {
        let services = self.services;
        self.stage.call("services.fs", root, |stage| {
            let wish =
                |write| HostCapability::ScopedFs { root: root.to_owned().into(), read: true, write, execute: false };
            let (feature, asked) = (stage.feature.clone(), wish(false).to_string());
            if !stage.grants.allows(&wish(false)) {
                return Err(FeatureInstallError::Denied { feature, asked });
            }
            let why = NOT_OFFERED.to_owned();
            let whole = services.roots.get(root).ok_or(FeatureInstallError::Unavailable { feature, asked, why })?;
            let writes = stage.grants.allows(&wish(true));
            let handle = if writes { whole.derive() } else { whole.read_only() };
            stage.hold(stage.granted(&wish(writes))?, Arc::clone(handle.door()));
            Ok(handle)
        })
    }

    /// The host's way to start confined children: any program.
    ///
    /// # Errors
    /// `Denied` without a grant for every program (a spawner cannot be narrowed to some in this build);
    /// `Unavailable` when the host starts no children.
    pub fn process(&mut self) -> Result<Spawner, FeatureInstallError> {
        let services = self.services;
        self.stage.call("services.process", "*", |stage| {
            let (feature, asked) = (stage.feature.clone(), HostCapability::ANY_PROGRAM.to_string());
            if !stage.grants.allows(&HostCapability::ANY_PROGRAM) {
                return Err(FeatureInstallError::Denied { feature, asked });
            }
            let spawner = services.spawner.as_ref().map(Spawner::derive);
            let unavailable = |why: &String| FeatureInstallError::Unavailable { feature, asked, why: why.clone() };
            let spawner = spawner.map_err(unavailable)?;
            stage.hold(stage.granted(&HostCapability::ANY_PROGRAM)?, Arc::clone(spawner.door()));
            Ok(spawner)
        })
    }
}

impl FeatureServiceProvider<'_> {
    /// The hosts that were granted, under one door. Which these are, the handle says.
    ///
    /// # Errors
    /// `Denied` without a grant of `Network`; `Unavailable` when the host reaches none of them.
    pub fn network(&mut self) -> Result<Net, FeatureInstallError> {
        let services = self.services;
        self.stage.call("services.network", "", |stage| {
            let is_network = |grant: &&HostCapability| matches!(grant, HostCapability::Network { .. });
            let grants: Vec<_> = stage.grants.granted().iter().filter(is_network).cloned().collect();
            let mut hosts = Vec::new();
            for grant in &grants {
                if let HostCapability::Network { hosts: named, .. } = grant {
                    hosts.extend(named.iter().filter_map(|host| host.parse::<HostPattern>().ok()));
                }
            }
            let (feature, asked) = (stage.feature.clone(), "Network".to_owned());
            if hosts.is_empty() {
                return Err(FeatureInstallError::Denied { feature, asked });
            }
            let limited = match &services.net {
                Some(net) => net.limited(&hosts).map_err(|error| error.to_string()),
                None => Err(NOT_OFFERED.to_owned()),
            };
            let net = limited.map_err(|why| FeatureInstallError::Unavailable { feature, asked, why })?;
            for grant in grants {
                stage.hold(grant, Arc::clone(net.door()));
            }
            Ok(net)
        })
    }

    /// A secret that was granted.
    ///
    /// # Errors
    /// `Denied` without a grant of this `SecretRef`; `Unavailable` when the host knows no such secret.
    pub fn secret(&mut self, id: &str) -> Result<Secret, FeatureInstallError> {
        let services = self.services;
        self.stage.call("services.secret", id, |stage| {
            let wish = HostCapability::SecretRef { id: id.to_owned().into() };
            let grant = stage.granted(&wish)?;
            let (feature, asked, why) = (stage.feature.clone(), wish.to_string(), NOT_OFFERED.to_owned());
            let known = services.secrets.get(id).ok_or(FeatureInstallError::Unavailable { feature, asked, why })?;
            let secret = known.derive();
            stage.hold(grant, Arc::clone(secret.door()));
            Ok(secret)
        })
    }

    /// Stages a declared service. Consumers reach it once this whole feature is installed.
    ///
    /// # Errors
    /// Not declared, or staged twice.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        key: ServiceKey<T>,
        target: Arc<T>,
    ) -> Result<Staging, FeatureInstallError> {
        self.stage.call("services.provide", key.name(), |stage| stage.provide(key, target))
    }

    /// A handle on a required service, under a door that is derived from the provider's.
    ///
    /// # Errors
    /// Not declared, or of another trait than it is provided with; `Denied`; `Unavailable` for an optional service
    /// that is not there.
    pub fn require<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        key: ServiceKey<T>,
    ) -> Result<ServiceHandle<T>, FeatureInstallError> {
        self.stage.call("services.require", key.name(), |stage| stage.require(key))
    }
}

/// Takes notes for the report; see [`FeatureInstallContext::diagnostics`].
pub struct FeatureDiagnosticSink<'a> {
    stage: &'a mut Stage,
    services: &'a HostServices,
}

impl FeatureDiagnosticSink<'_> {
    /// Keeps a note in this feature's report, cut at 512 bytes. Dropped with the feature when its install fails.
    ///
    /// # Errors
    /// `Exhausted` after [`crate::feature::MAX_NOTES`].
    pub fn note(&mut self, text: &str) -> Result<(), FeatureInstallError> {
        self.stage.call("diagnostics", "", |stage| stage.note(text))
    }

    /// The way to take notes while the pod runs.
    ///
    /// # Errors
    /// `Unavailable` where no pod listens.
    pub fn later(&mut self) -> Result<RunningNotes, FeatureInstallError> {
        let line = self.services.line();
        self.stage.call("diagnostics", "later", |stage| {
            let (feature, presence) = (stage.feature.clone(), stage.presence());
            Ok(RunningNotes { line: line(&feature, "diagnostics")?, feature, presence })
        })
    }
}

/// The handles a host can give out. Holding one of these is holding all of them: only the composition root does.
#[derive(Clone)]
#[must_use]
pub struct HostServices {
    roots: BTreeMap<Cow<'static, str>, Workspace>,
    spawner: Result<Spawner, String>,
    net: Option<Net>,
    secrets: BTreeMap<String, Secret>,
    link: Option<PodLink>,
    redactor: Redactor,
}

/// What is said of a handle that a host simply does not have.
const NOT_OFFERED: &str = "this host does not offer it";

impl HostServices {
    /// No handles.
    pub fn none() -> Self {
        Self {
            roots: BTreeMap::new(),
            spawner: Err(NOT_OFFERED.to_owned()),
            net: None,
            secrets: BTreeMap::new(),
            link: None,
            redactor: Redactor::default(),
        }
    }

    /// Offers directories under a name that `ScopedFs` grants use.
    pub fn root(mut self, name: impl Into<Cow<'static, str>>, workspace: Workspace) -> Self {
        self.roots.insert(name.into(), workspace);
        self
    }

    /// Keeps secrets out of whatever features write and show: reports, notifications, alerts, notes, state, results.
    pub fn redact(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Offers state, notifications and alerts.
    pub fn link(mut self, link: PodLink) -> Self {
        self.link = Some(link);
        self
    }

    fn line(&self) -> impl FnOnce(&FeatureId, &str) -> Result<Line, FeatureInstallError> + use<> {
        let line = self.link.as_ref().map(|link| link.line.clone());
        |feature, asked| {
            let (feature, asked, why) = (feature.clone(), asked.to_owned(), NOT_OFFERED.to_owned());
            line.ok_or(FeatureInstallError::Unavailable { feature, asked, why })
        }
    }

    /// Offers hosts to connect to. Each feature gets those that it is granted.
    pub fn net(mut self, net: Net) -> Self {
        self.net = Some(net);
        self
    }

    /// Offers a secret under its own name. Give it to [`HostServices::redact`], too.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.insert(secret.id().to_owned(), secret);
        self
    }

    /// Offers to start children.
    pub fn spawner(mut self, spawner: Spawner) -> Self {
        self.spawner = Ok(spawner);
        self
    }

    /// Starts no children, and says why to the feature that asks.
    pub fn no_spawner(mut self, why: impl Into<String>) -> Self {
        self.spawner = Err(why.into());
        self
    }
}
