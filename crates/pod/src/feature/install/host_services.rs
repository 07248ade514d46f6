//! The handles that a host offers, and how a feature gets those it was granted. Do not depend on registrars.

use super::stage::{Stage, Staging};
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::service::{ServiceEventKey, ServiceId, ServiceKey};
use crate::feature::live::job::JobHandle;
use crate::feature::live::service::{JsonService, ServiceHandle};
use crate::feature::live::sink::ServiceEventSink;
use crate::feature::live::state::PodLink;
use authority::{Door, HostPattern, Net, Redactor, Secret, Spawner, Workspace};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

/// Gives a feature its granted handles and services during `install()`; see [`FeatureInstallContext::services`].
pub struct FeatureServiceProvider<'a>(pub(super) &'a mut Stage);

impl FeatureServiceProvider<'_> {
    /// A directory handle, attenuated to the grant, under a door of its own.
    ///
    /// # Errors
    /// `Denied` without a grant for reading `root`; `Unavailable` when the host has no such root.
    pub fn fs(&mut self, root: &str) -> Result<Workspace, FeatureInstallError> {
        self.0.call("services.fs", root, |stage| stage.fs(root))
    }

    /// The handle for starting confined child processes: any program.
    ///
    /// # Errors
    /// `Denied` without a grant for every program; `Unavailable` if the host starts no child processes.
    pub fn process(&mut self) -> Result<Spawner, FeatureInstallError> {
        self.0.call("services.process", "*", |stage| {
            let wish = HostCapability::ANY_PROGRAM;
            let grant = stage.granted(&wish)?;
            let spawner = stage.spawner(&wish)?.derive();
            stage.hold(grant, spawner.door());
            Ok(spawner)
        })
    }

    /// The handle for starting the programs that are granted by name, with or without the network.
    ///
    /// # Errors
    /// `Denied` without such a grant; `Unavailable` if the host starts no child processes, or no sandbox withholds the
    /// network.
    pub fn programs(&mut self, network: bool) -> Result<Spawner, FeatureInstallError> {
        self.0.call("services.programs", "", |stage| {
            let (grants, names) = stage.naming(|grant| {
                if let HostCapability::Process {
                    programs,
                    network: has,
                } = grant
                {
                    (*has == network).then_some(programs)
                } else {
                    None
                }
            });
            let named = names.iter().filter(|name| *name != "*");
            let named: Vec<_> = named.map(|name| OsString::from(name.as_ref())).collect();
            stage.narrowed(
                "Process",
                grants,
                named.is_empty(),
                Spawner::door,
                |stage| {
                    let spawner = stage.host.spawner.as_ref().map_err(Clone::clone)?;
                    let limited = spawner.limited(&named, network);
                    limited.map_err(|error| error.to_string())
                },
            )
        })
    }

    /// The handle for starting programs below a directory that is granted with `execute`.
    ///
    /// # Errors
    /// `Denied` without such a grant; `Unavailable` when the host has no such root, or starts no child processes.
    pub fn programs_below(&mut self, root: &str) -> Result<Spawner, FeatureInstallError> {
        self.0.call("services.programs_below", root, |stage| {
            let wish = HostCapability::ScopedFs {
                root: root.to_owned().into(),
                read: true,
                write: false,
                execute: true,
            };
            let grant = stage.granted(&wish)?;
            let files = stage.root(root, &wish)?;
            let spawner = stage.spawner(&wish)?.below(files);
            let spawner = spawner.map_err(|error| stage.unavailable(&wish, error))?;
            stage.hold(grant, spawner.door());
            Ok(spawner)
        })
    }

    /// The handle for jobs: commands that outlive the call that started them, confined as those of [`Self::process`].
    ///
    /// # Errors
    /// As [`Self::process`]; `Unavailable` if there is no pod.
    pub fn jobs(&mut self) -> Result<JobHandle, FeatureInstallError> {
        let spawner = self.process()?;
        self.0.call("services.jobs", "*", |stage| {
            let board = stage.host.link.as_ref().map(|link| link.jobs.clone());
            Ok(JobHandle {
                link: stage.link("jobs", Arc::clone(spawner.door()))?,
                spawner,
                redactor: stage.host.redactor.clone(),
                board: board.unwrap_or_default(),
            })
        })
    }

    /// Has the host replace what matches these patterns in all texts of features that it writes and shows: notifications,
    /// alerts, notes, reasons, output of jobs. Results of calls are for a hook that sees them whole.
    ///
    /// # Errors
    /// `Denied` without a grant for the results of every tool.
    pub fn redact(&mut self, patterns: &[regex::Regex]) -> Result<(), FeatureInstallError> {
        self.0.call("services.redact", "*", |stage| {
            stage.granted(&HostCapability::ANY_RESULT)?;
            stage.host.redactor.add_patterns(patterns);
            Ok(())
        })
    }

    /// The handle for connecting to the granted hosts, under one door; it lists the hosts.
    ///
    /// # Errors
    /// `Denied` without a grant of `Network`; `Unavailable` if the host offers none of them.
    pub fn network(&mut self) -> Result<Net, FeatureInstallError> {
        self.0.call("services.network", "", |stage| {
            let net = stage.host.net.clone();
            stage.reach("Network", net, |grant| {
                if let HostCapability::Network { hosts, .. } = grant {
                    Some(hosts)
                } else {
                    None
                }
            })
        })
    }

    /// The handle for connecting to the granted endpoints, private or not, under one door; it lists them.
    ///
    /// # Errors
    /// `Denied` without a grant of `Endpoint`; `Unavailable` if the host offers none of them.
    pub fn endpoints(&mut self) -> Result<Net, FeatureInstallError> {
        self.0.call("services.endpoints", "", |stage| {
            let net = stage.host.endpoints.clone();
            stage.reach("Endpoint", net, |grant| {
                if let HostCapability::Endpoint { at, .. } = grant {
                    Some(at)
                } else {
                    None
                }
            })
        })
    }

    /// The handle on a granted secret.
    ///
    /// # Errors
    /// `Denied` without a grant of a `SecretRef` of this name; `Unavailable` when the host knows no such secret.
    pub fn secret(&mut self, id: &str) -> Result<Secret, FeatureInstallError> {
        self.0.call("services.secret", id, |stage| {
            let wish = HostCapability::SecretRef {
                id: id.to_owned().into(),
                hosts: Cow::Borrowed(&[]),
            };
            // One that is bound to hosts is a grant of the secret, too: its holder is the part of the host that sends it.
            let granted = stage.grants.granted().iter();
            let mut granted = granted.filter(|grant| grant.meet(&wish).is_some());
            let grant = granted.next().cloned();
            let grant = grant.ok_or_else(|| stage.denied(&wish))?;
            let unknown = || stage.unavailable(&wish, NOT_OFFERED);
            let secret = stage.host.secrets.get(id).ok_or_else(unknown)?;
            let secret = secret
                .as_ref()
                .map_err(|why| stage.unavailable(&wish, why))?;
            let secret = secret.derive();
            stage.hold(grant, secret.door());
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
        self.0.call("services.provide", key.name(), |stage| {
            stage.offer(&key.id(), |service| service.provide(target))
        })
    }

    /// Stages a declared instance of a service; see [`ServiceDeclaration::instance`](crate::feature::ServiceDeclaration::instance).
    ///
    /// # Errors
    /// As for [`Self::provide`].
    pub fn provide_instance<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        key: ServiceKey<T>,
        instance: &str,
        target: Arc<T>,
    ) -> Result<Staging, FeatureInstallError> {
        self.0.call("services.provide", key.name(), |stage| {
            let id = key.id().of_instance(instance);
            stage.offer(&id, |service| service.provide(target))
        })
    }

    /// Stages a declared service as JSON, alone or beside its typed form.
    ///
    /// # Errors
    /// As for [`Self::provide`].
    pub fn provide_json(
        &mut self,
        id: &ServiceId,
        target: Arc<dyn JsonService>,
    ) -> Result<Staging, FeatureInstallError> {
        self.0.call("services.provide_json", &id.name, |stage| {
            stage.offer(id, |service| service.provide_json(target))
        })
    }

    /// The sink for a declared event of a service that this feature provides; usable once the feature is installed.
    ///
    /// # Errors
    /// Not declared; `Denied`; `Unavailable` if there is no pod.
    pub fn event(&mut self, key: ServiceEventKey) -> Result<ServiceEventSink, FeatureInstallError> {
        let event = key.event();
        let name = event.to_string();
        self.0
            .call("services.event", &name, |stage| stage.event_sink(event))
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
        self.0.call("services.require", key.name(), |stage| {
            stage.require(&key.id())
        })
    }

    /// Handles on all instances that were found for a requirement of [`ServiceRequirement::each`](crate::feature::ServiceRequirement::each), with their names; the
    /// name is empty for the instance without one.
    ///
    /// # Errors
    /// As for [`Self::require`]; a service that no feature provides is no error.
    pub fn each<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        key: ServiceKey<T>,
    ) -> Result<Vec<(String, ServiceHandle<T>)>, FeatureInstallError> {
        self.0.call("services.require", key.name(), |stage| {
            let found = stage.each(&key.id())?;
            found
                .into_iter()
                .map(|id| Ok((id.instance.clone().unwrap_or_default(), stage.require(&id)?)))
                .collect()
        })
    }

    /// A handle on a required service as JSON.
    ///
    /// # Errors
    /// As for [`Self::require`]; `Unavailable` when it is not provided as JSON.
    pub fn require_json(
        &mut self,
        id: &ServiceId,
    ) -> Result<ServiceHandle<dyn JsonService>, FeatureInstallError> {
        self.0
            .call("services.require", &id.name, |stage| stage.require_json(id))
    }
}

/// The names in a capability.
type Names = Cow<'static, [Cow<'static, str>]>;

impl Stage {
    /// A directory handle, attenuated to the grant.
    pub(super) fn fs(&self, root: &str) -> Result<Workspace, FeatureInstallError> {
        let wish = |write| HostCapability::ScopedFs {
            root: root.to_owned().into(),
            read: true,
            write,
            execute: false,
        };
        let reads = self.granted(&wish(false))?;
        let whole = self.root(root, &wish(false))?;
        let (grant, handle) = match self.granted(&wish(true)) {
            Ok(writes) => (writes, whole.derive()),
            Err(_denied) => (reads, whole.read_only()),
        };
        self.hold(grant, handle.door());
        Ok(handle)
    }

    fn root(&self, root: &str, wish: &HostCapability) -> Result<&Workspace, FeatureInstallError> {
        match self.host.roots.get(root) {
            Some(Ok(whole)) => Ok(whole),
            Some(Err(why)) => Err(self.unavailable(wish, why)),
            None => Err(self.unavailable(wish, NOT_OFFERED)),
        }
    }

    fn spawner(&self, wish: &HostCapability) -> Result<&Spawner, FeatureInstallError> {
        let spawner = self.host.spawner.as_ref();
        spawner.map_err(|why| self.unavailable(wish, why))
    }

    /// The grants in which `named` finds names, and all of these names.
    fn naming(
        &self,
        named: impl Fn(&HostCapability) -> Option<&Names>,
    ) -> (Vec<HostCapability>, Vec<Cow<'static, str>>) {
        let mut grants = Vec::new();
        let mut names = Vec::new();
        for grant in self.grants.granted() {
            if let Some(more) = named(grant) {
                names.extend(more.iter().cloned());
                grants.push(grant.clone());
            }
        }
        (grants, names)
    }

    /// A handle that the host narrows to grants of one kind, all under its door.
    fn narrowed<H>(
        &self,
        kind: &str,
        grants: Vec<HostCapability>,
        is_empty: bool,
        door: fn(&H) -> &Arc<Door>,
        narrow: impl FnOnce(&Self) -> Result<H, String>,
    ) -> Result<H, FeatureInstallError> {
        if is_empty {
            return Err(self.denied(kind));
        }
        let handle = narrow(self).map_err(|why| self.unavailable(kind, why))?;
        for grant in grants {
            self.hold(grant, door(&handle));
        }
        Ok(handle)
    }

    /// A part of what the host can reach: the hosts of those grants in which `named` finds some.
    fn reach(
        &self,
        kind: &str,
        offered: Option<Net>,
        named: impl Fn(&HostCapability) -> Option<&Names>,
    ) -> Result<Net, FeatureInstallError> {
        let (grants, names) = self.naming(named);
        let hosts: Vec<HostPattern> = names.iter().filter_map(|host| host.parse().ok()).collect();
        self.narrowed(kind, grants, hosts.is_empty(), Net::door, |_| {
            let net = offered.ok_or_else(|| NOT_OFFERED.to_owned())?;
            net.limited(&hosts).map_err(|error| error.to_string())
        })
    }
}

/// All handles that the host can give to features: the source of every grant. Only the composition root has a value of
/// it, since it contains the authority of all.
#[derive(Clone)]
#[must_use]
pub struct HostServices {
    /// By name; why one is missing.
    roots: BTreeMap<Cow<'static, str>, Result<Workspace, String>>,
    pub(super) spawner: Result<Spawner, String>,
    net: Option<Net>,
    endpoints: Option<Net>,
    /// By name; why one is missing that a person named.
    secrets: BTreeMap<String, Result<Secret, String>>,
    pub(super) link: Option<PodLink>,
    pub(super) redactor: Redactor,
}

/// The message for a handle that the host does not offer.
pub(super) const NOT_OFFERED: &str = "this host does not offer it";

impl HostServices {
    /// No handles.
    pub fn none() -> Self {
        Self {
            roots: BTreeMap::new(),
            spawner: Err(NOT_OFFERED.to_owned()),
            net: None,
            endpoints: None,
            secrets: BTreeMap::new(),
            link: None,
            redactor: Redactor::default(),
        }
    }

    /// Offers directories under a name that `ScopedFs` grants use.
    pub fn root(mut self, name: impl Into<Cow<'static, str>>, workspace: Workspace) -> Self {
        self.roots.insert(name.into(), Ok(workspace));
        self
    }

    /// Offers no directory under this name, and says why to the feature that asks.
    pub fn no_root(mut self, name: impl Into<Cow<'static, str>>, why: impl Into<String>) -> Self {
        self.roots.insert(name.into(), Err(why.into()));
        self
    }

    /// Sets the redactor for all texts that features write and show: reports, notifications, alerts, notes, state,
    /// results.
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

    /// Offers hosts to connect to. Each feature gets those that it is granted.
    pub fn net(mut self, net: Net) -> Self {
        self.net = Some(net);
        self
    }

    /// Offers endpoints to connect to: a handle of exactly named hosts. Each feature gets those that it is granted.
    pub fn endpoints(mut self, net: Net) -> Self {
        self.endpoints = Some(net);
        self
    }

    /// Offers a secret under its own name. Give it to [`HostServices::redact`], too.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.insert(secret.id().to_owned(), Ok(secret));
        self
    }

    /// Offers no secret of this name, and says why to the feature that asks.
    pub fn no_secret(mut self, id: &str, why: &str) -> Self {
        self.secrets.insert(id.to_owned(), Err(why.to_owned()));
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
