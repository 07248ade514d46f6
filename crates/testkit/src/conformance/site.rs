//! Installs without a pod: many of them over one session, each seen as a pod would see it.

use super::Conformance;
use crate::feature_host::{FeatureHost, Setting};
use pod::control::{Callbacks, Outbox};
use pod::feature::{
    FeatureDescriptor, FeatureModule, FeatureRegistry, FeatureRegistryBuilder, HostServices,
    RegistrarProbe,
};
use pod::hook::{
    Event, PreRequest, PreToolCall, PromptSubmit, ToolArguments, ToolOutcome, TurnEnd,
};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// The most files of a session and its project.
const MAX_FILES: usize = 100_000;

impl Conformance {
    pub(super) fn instance(&self) -> Arc<dyn FeatureModule> {
        (self.feature)()
    }

    pub(super) fn descriptor(&self) -> FeatureDescriptor {
        crate::feature_host::declared(&self.instance())
    }

    /// Creates a host in which the feature was not installed yet. Every call is permitted: they are tried, not judged.
    pub(super) fn host(&self) -> FeatureHost {
        (self.host)().permit_all().grace(self.grace)
    }
}

/// A directory with a session to install a feature in, without a pod.
pub(super) struct Site {
    feature: Arc<dyn FeatureModule>,
    pub(super) setting: Setting,
    services: HostServices,
    root: PathBuf,
    _host: FeatureHost,
}

impl Site {
    pub(super) fn of(conformance: &Conformance) -> Self {
        let host = conformance.host();
        let feature = conformance.instance();
        let opening = host
            .pod
            .opening(host.pod.resume().expect("the session opens"))
            .expect("an empty session");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let callbacks = Callbacks::new(runtime.handle().clone());
        let workspace = host
            .pod
            .start(&opening, Outbox::unwatched(), callbacks)
            .parts
            .permission
            .workspace
            .clone();
        let descriptor = crate::feature_host::declared(&feature);
        let services = host
            .setting
            .services(workspace, opening.link(), &descriptor);
        Self {
            feature,
            setting: host.setting.clone(),
            services,
            root: host.pod.root().to_owned(),
            _host: host,
        }
    }

    /// Installs with or without the feature, under a setting of its own.
    pub(super) fn install(
        &self,
        setting: &Setting,
        with: bool,
        probe: Option<RegistrarProbe>,
    ) -> FeatureRegistry {
        self.finish(setting.builder(with.then_some(&self.feature)), probe)
    }

    /// Installs the feature under the host's own setting.
    pub(super) fn install_plainly(&self) -> FeatureRegistry {
        self.install(&self.setting, true, None)
    }

    /// A builder with the feature, under the host's own setting.
    pub(super) fn builder(&self) -> FeatureRegistryBuilder {
        self.setting.builder(Some(&self.feature))
    }

    pub(super) fn finish(
        &self,
        builder: FeatureRegistryBuilder,
        probe: Option<RegistrarProbe>,
    ) -> FeatureRegistry {
        match probe {
            Some(probe) => builder.probe(probe).install(&self.services),
            None => builder.install(&self.services),
        }
    }

    pub(super) fn files(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut todo = vec![self.root.clone()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir)
                .expect("a directory")
                .map(|entry| entry.expect("an entry"))
            {
                if entry.file_type().expect("a type").is_dir() {
                    todo.push(entry.path());
                }
                found.insert(entry.path());
            }
            assert!(
                found.len() < MAX_FILES,
                "a feature under test made more than {MAX_FILES} files"
            );
        }
        found
    }
}

/// A registry as text, as a pod would see it: tools, instructions, hooks, background tasks, order.
pub(super) fn surface(registry: &FeatureRegistry) -> String {
    let tools: Vec<_> = registry
        .tools()
        .iter()
        .map(|tool| format!("{tool:?} {:?}", tool.definition))
        .collect();
    let hooks = registry.hooks();
    let names = tools
        .iter()
        .map(String::as_str)
        .chain([""])
        .collect::<Vec<_>>();
    let any = |name: &str| {
        let gates = [
            hooks.any::<PromptSubmit>(name),
            hooks.any::<PreRequest>(name),
            hooks.any::<PreToolCall>(name),
        ];
        let others = [
            hooks.any::<ToolArguments>(name),
            hooks.any::<ToolOutcome>(name),
            hooks.any::<Event>(name),
        ];
        (gates, others, hooks.any::<TurnEnd>(name))
    };
    let hooks: Vec<_> = names.into_iter().map(any).collect();
    let tasks = registry.tasks();
    format!(
        "{tools:?} {:?} {hooks:?} {tasks:?} {:?}",
        registry.instructions(),
        registry.report().order
    )
}

/// Runs `act`; the panic message if it panics.
pub(super) fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned())
    })
}
