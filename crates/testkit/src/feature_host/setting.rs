//! The grants of a feature under test and the features beside it, for a pod or for an install without a pod.

use crate::rig::Tools;
use crate::tool::FnTool;
use authority::{
    Access, Ambient, Confinement, EnvPolicy, HostPort, Net, Redactor, SandboxMode, Secret, Spawner,
    Workspace,
};
use pod::feature::{
    CapabilityPolicy, CommandDeclaration, EnricherDeclaration, FeatureDescriptor, FeatureId,
    FeatureModule, FeatureRegistryBuilder, HostCapability, HostServices, PodLink, Settings,
    StateScope,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The id of the feature that contributes the tools of the setting.
const KIT: FeatureId = FeatureId::builtin("testkit");

/// The source that every grant and denial names.
const SOURCE: &str = "testkit";

/// The grants, denials and other features of an install, without the feature under test.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    pub(crate) granted: Vec<HostCapability>,
    pub(crate) denied: Vec<HostCapability>,
    pub(crate) disabled: bool,
    pub(crate) tools: Vec<FnTool>,
    pub(crate) beside: Vec<Arc<dyn FeatureModule>>,
    pub(crate) settings: Settings,
    /// Of this machine: all that can be reached.
    pub(crate) endpoints: Vec<HostPort>,
    pub(crate) secrets: Vec<Secret>,
    dirs: PathBuf,
}

impl Setting {
    /// A setting without explicit grants, denials or other features. Requested directories are created below `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            dirs: root.join("roots"),
            ..Self::default()
        }
    }

    /// A builder with the setting's other features, and the feature under test unless it is left out.
    pub(crate) fn builder(
        &self,
        feature: Option<&Arc<dyn FeatureModule>>,
    ) -> FeatureRegistryBuilder {
        let nothing = CapabilityPolicy::nothing().grant(KIT, HostCapability::tool("*"), SOURCE);
        let policy = self.beside.iter().fold(nothing, |policy, other| {
            let descriptor = declared(other);
            let asked = requested(&descriptor).chain(implied(&descriptor)).collect();
            grant(policy, &descriptor.id, asked)
        });
        let policy = feature.map_or(policy.clone(), |feature| {
            self.policy(policy, &declared(feature))
        });
        let tools: Arc<dyn FeatureModule> = Arc::new(Tools {
            id: KIT,
            tools: self.tools.clone(),
        });
        let builder = FeatureRegistryBuilder::new(policy)
            .with(tools)
            .with_all(self.beside.iter().cloned());
        builder.with_all(feature.cloned())
    }

    fn policy(&self, policy: CapabilityPolicy, descriptor: &FeatureDescriptor) -> CapabilityPolicy {
        let requested: Vec<_> = if self.granted.is_empty() {
            requested(descriptor).collect()
        } else {
            self.granted.clone()
        };
        let id = &descriptor.id;
        let policy = grant(
            policy,
            id,
            requested.into_iter().chain(implied(descriptor)).collect(),
        );
        let policy = self.denied.iter().fold(policy, |policy, denied| {
            policy.refuse(id.clone(), denied.clone(), SOURCE)
        });
        let policy = policy.settings(id.clone(), self.settings.clone());
        if self.disabled {
            policy.disable(id.clone(), SOURCE)
        } else {
            policy
        }
    }

    /// The handles that can be granted to the features.
    pub(crate) fn services(
        &self,
        workspace: Workspace,
        link: PodLink,
        feature: &FeatureDescriptor,
    ) -> HostServices {
        let ambient = ambient();
        let state = |name| directory(&ambient, &self.dirs.join(name));
        let link = link
            .files(StateScope::Pod, state("pod-state"))
            .files(StateScope::User, state("user-state"));
        let project = workspace.project().to_owned();
        let services = HostServices::none().root(HostCapability::WORKSPACE, workspace);
        // No host can be reached, whatever is granted, but those of the test itself.
        let services = services
            .net(Net::to(&ambient, []))
            .endpoints(Net::to(&ambient, self.endpoints.clone()))
            .link(link);
        let secrets = self.secrets.iter().cloned();
        let services = secrets.fold(services, HostServices::secret);
        let services = match Redactor::new(&self.secrets) {
            Ok(redactor) => services.redact(redactor),
            Err(why) => panic!("{why}"),
        };
        let others: Vec<_> = self.beside.iter().map(declared).collect();
        let requests = || {
            others
                .iter()
                .chain([feature])
                .flat_map(|descriptor| &descriptor.requested_capabilities)
        };
        let starts = |capability: &HostCapability| {
            matches!(
                capability,
                HostCapability::Process { .. } | HostCapability::ScopedFs { execute: true, .. }
            )
        };
        let starts = requests().any(|request| starts(&request.capability));
        let services = if starts {
            services.spawner(spawner(&ambient, &self.dirs))
        } else {
            services
        };
        let mut roots = BTreeMap::new();
        for request in requests() {
            if let HostCapability::ScopedFs { root, .. } = &request.capability
                && root != HostCapability::WORKSPACE
            {
                let number = roots.len();
                // In the project, where writing is allowed by default.
                let dir = project.join(format!("root-{number}"));
                roots
                    .entry(root.clone())
                    .or_insert_with(|| directory(&ambient, &dir));
            }
        }
        roots
            .into_iter()
            .fold(services, |services, (name, dir)| services.root(name, dir))
    }

    /// The directory for states of a scope other than the session's.
    pub(crate) fn state_dir(&self, scope: StateScope) -> PathBuf {
        self.dirs.join(if scope == StateScope::Pod {
            "pod-state"
        } else {
            "user-state"
        })
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the root of a test, in a directory of its own"
)]
fn ambient() -> Ambient {
    ambient::claim()
}

/// Creates a spawner without confinement; the temporary files of its children are in the directory of the test.
fn spawner(ambient: &Ambient, temp: &Path) -> Spawner {
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let vars = std::env::vars_os()
        .filter(|(name, _)| name != "TMPDIR")
        .chain([("TMPDIR".into(), temp.into())]);
    let env = EnvPolicy::from_vars(vars, &[]).expect("an environment");
    Spawner::new(ambient, confinement, env, "testkit/1".to_owned()).expect("a spawner")
}

fn directory(ambient: &Ambient, path: &Path) -> Workspace {
    fs::create_dir_all(path).expect("a directory");
    Workspace::open(ambient, path, path, Access::ReadWrite).expect("a directory")
}

fn grant(policy: CapabilityPolicy, id: &FeatureId, held: Vec<HostCapability>) -> CapabilityPolicy {
    held.into_iter().fold(policy, |policy, capability| {
        policy.grant(id.clone(), capability, SOURCE)
    })
}

/// The feature's descriptor; `None` when `descriptor()` panics, which the install report then shows.
pub(crate) fn declared(feature: &Arc<dyn FeatureModule>) -> FeatureDescriptor {
    let nothing = |_| FeatureDescriptor::builder(FeatureId::user("unknown")).build();
    catch_unwind(AssertUnwindSafe(|| feature.descriptor())).unwrap_or_else(nothing)
}

/// The capabilities that the feature requests itself.
fn requested(descriptor: &FeatureDescriptor) -> impl Iterator<Item = HostCapability> {
    descriptor
        .requested_capabilities
        .iter()
        .map(|request| request.capability.clone())
}

/// The capabilities that it needs for its declared tools, hooks, background tasks, states, services and enrichers.
fn implied(descriptor: &FeatureDescriptor) -> impl Iterator<Item = HostCapability> {
    let tool = |name: &String| HostCapability::ContributeTool {
        name: Cow::Owned(name.clone()),
    };
    let tools = descriptor
        .declared_tools
        .iter()
        .map(move |declared| tool(&declared.name));
    let hooks = descriptor.declared_hooks.iter().flat_map(|hook| {
        let stands = HostCapability::ContributeHook {
            point: hook.point,
            class: hook.class,
        };
        [
            stands,
            HostCapability::ANY_ARGUMENTS,
            HostCapability::ANY_ANSWER,
            HostCapability::ANY_REPEAT,
            HostCapability::ANY_RESULT,
        ]
    });
    let task = |name: &String| HostCapability::ContributeBackgroundTask {
        name: Cow::Owned(name.clone()),
    };
    let tasks = descriptor
        .declared_background_tasks
        .iter()
        .map(move |declared| task(&declared.name));
    let states = descriptor
        .states
        .iter()
        .map(|state| HostCapability::StateStore { scope: state.scope });
    let provided = |name: &String| HostCapability::ProvideService {
        key: Cow::Owned(name.clone()),
    };
    let provides = descriptor
        .provides
        .iter()
        .map(move |declared| provided(&declared.service.name));
    let uses = descriptor
        .requires
        .iter()
        .map(|asked| asked.service.admission());
    let enriches = descriptor.enriches.iter().map(EnricherDeclaration::implied);
    let commands = descriptor.commands.iter().map(CommandDeclaration::implied);
    tools
        .chain(hooks)
        .chain(tasks)
        .chain(states)
        .chain(provides)
        .chain(uses)
        .chain(enriches)
        .chain(commands)
}
