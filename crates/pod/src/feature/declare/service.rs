//! Services: their names, their declarations, and their part of a plan. Do not depend on handles.

use super::capability::HostCapability;
use super::contribution::{Contribution, ContributionKind};
use super::grants::Need;
use super::id::{FeatureId, service_name_fits, service_problem};
use super::text::{self, Lines, MAX_NAME};
use schemars::JsonSchema;
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Longest version or range of versions, in bytes.
const MAX_VERSION: usize = 64;
/// Most events of one service.
const MAX_EVENTS: usize = 8;

/// Which methods of a service a key gives access to: all, or those that read or write work items or notes. Each needs another capability.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Facade")]
pub enum ServiceAccess {
    /// All methods; needs `UseService`.
    #[default]
    Whole,
    /// The methods that read work items; needs `WorkItemStore { read }`.
    WorkItemRead,
    /// The methods that change work items; needs `WorkItemStore { write }`.
    WorkItemWrite,
    /// The methods that read notes; needs `MemoryStore { read }`.
    MemoryRead,
    /// The methods that change notes; needs `MemoryStore { write }`.
    MemoryWrite,
}

/// A service's name, side and trait, as a `const` in the crate of the contract.
///
/// ```
/// use pod::feature::ServiceKey;
/// trait Clock: Send + Sync {
///     fn now(&self) -> u64;
/// }
/// const CLOCK: ServiceKey<dyn Clock> = ServiceKey::new("example.clock.v1");
/// assert_eq!(CLOCK.name(), "example.clock.v1");
/// ```
pub struct ServiceKey<T: ?Sized> {
    name: &'static str,
    access: ServiceAccess,
    contract: PhantomData<fn(&T)>,
}

impl<T: ?Sized> ServiceKey<T> {
    /// A whole service. Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not two or more parts of `[a-z0-9-]` and then the major version, like `yoi.memory.v1`, in at
    /// most 64 bytes.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            service_name_fits(name),
            "a service is called like yoi.memory.v1, in at most 64 bytes"
        );
        Self {
            name,
            access: ServiceAccess::Whole,
            contract: PhantomData,
        }
    }

    /// One side of a service: another trait under the same name, with a capability of its own.
    #[must_use]
    pub const fn access(mut self, access: ServiceAccess) -> Self {
        self.access = access;
        self
    }

    /// The service's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The capability that a consumer must be granted; for the `needs` of tools and hooks that cannot work without the
    /// service.
    #[must_use]
    pub const fn admission(self) -> HostCapability {
        self.access.admits(self.name)
    }

    /// An event of this service, as a `const` beside the key. Its provider declares it with
    /// [`ServiceDeclaration::emits`]; tasks of consumers run by it with
    /// [`TaskKey::on_event`](crate::feature::TaskKey::on_event). Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of printable ASCII.
    #[must_use]
    pub const fn event(self, name: &'static str) -> ServiceEventKey {
        assert!(
            text::name_fits(name, MAX_NAME),
            "an event's name is 1 to 64 bytes of printable ASCII"
        );
        ServiceEventKey {
            service: self.name,
            access: self.access,
            name,
        }
    }

    /// The service, by name.
    #[must_use]
    pub fn id(self) -> ServiceId {
        ServiceId {
            name: self.name.to_owned(),
            access: self.access,
            instance: None,
        }
    }
}

/// An event of a service: it carries nothing but that it happened.
#[derive(Clone, Copy, Debug)]
pub struct ServiceEventKey {
    service: &'static str,
    access: ServiceAccess,
    name: &'static str,
}

impl ServiceEventKey {
    pub(crate) fn event(self) -> ServiceEvent {
        let service = ServiceId {
            name: self.service.to_owned(),
            access: self.access,
            instance: None,
        };
        ServiceEvent {
            service,
            event: self.name.to_owned(),
        }
    }
}

/// An event of a service, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceEvent {
    pub service: ServiceId,
    /// One line, at most 64 bytes.
    pub event: String,
}

impl fmt::Display for ServiceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event `{}` of service {}", self.event, self.service)
    }
}

impl<T: ?Sized> Clone for ServiceKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for ServiceKey<T> {}

impl ServiceAccess {
    /// The capability that admits a consumer of the service `name`.
    const fn admits(self, name: &'static str) -> HostCapability {
        match self {
            Self::Whole => HostCapability::UseService {
                key: Cow::Borrowed(name),
            },
            Self::WorkItemRead => HostCapability::WorkItemStore {
                read: true,
                write: false,
            },
            Self::WorkItemWrite => HostCapability::WorkItemStore {
                read: false,
                write: true,
            },
            Self::MemoryRead => HostCapability::MemoryStore {
                read: true,
                write: false,
            },
            Self::MemoryWrite => HostCapability::MemoryStore {
                read: false,
                write: true,
            },
        }
    }

    const fn side(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::WorkItemRead | Self::MemoryRead => " (read)",
            Self::WorkItemWrite | Self::MemoryWrite => " (write)",
        }
    }
}

/// A service, or a part of its methods.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct ServiceId {
    pub name: String,
    /// Which methods: all, or a part.
    #[serde(default, rename = "facade")]
    pub access: ServiceAccess,
    /// Which of several providers, 1 to 64 of `[a-z0-9-]`; none where one is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

impl ServiceId {
    /// All methods of the service of this name.
    #[must_use]
    pub fn whole(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            access: ServiceAccess::Whole,
            instance: None,
        }
    }

    /// This service of the instance of this name.
    #[must_use]
    pub fn of_instance(self, instance: impl Into<String>) -> Self {
        Self {
            instance: Some(instance.into()),
            ..self
        }
    }

    fn problem(&self) -> Option<String> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let instance = self
            .instance
            .as_deref()
            .filter(|name| name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits));
        let named = |name| {
            format!(
                "instance `{}` of {} is not 1 to {MAX_NAME} bytes of [a-z0-9-]",
                shown(name),
                self.name
            )
        };
        service_problem(&self.name).or_else(|| instance.map(named))
    }

    /// What admits a consumer.
    #[must_use]
    pub fn admission(&self) -> HostCapability {
        if self.access == ServiceAccess::Whole {
            return HostCapability::UseService {
                key: self.name.clone().into(),
            };
        }
        self.access.admits("")
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instance = self
            .instance
            .as_ref()
            .map(|instance| format!("#{instance}"))
            .unwrap_or_default();
        write!(f, "{}{instance}{}", self.name, self.access.side())
    }
}

/// A service as its provider declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceDeclaration {
    pub service: ServiceId,
    /// `MAJOR.MINOR.PATCH`.
    pub version: String,
    /// The events that it emits; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

impl ServiceDeclaration {
    /// Declares the service of a key.
    #[must_use]
    pub fn of<T: ?Sized>(key: ServiceKey<T>, version: impl Into<String>) -> Self {
        Self {
            service: key.id(),
            version: version.into(),
            events: Vec::new(),
        }
    }

    /// Declares a service that is known only at run time.
    #[must_use]
    pub fn declared(service: ServiceId, version: impl Into<String>) -> Self {
        Self {
            service,
            version: version.into(),
            events: Vec::new(),
        }
    }

    /// Declares one of several instances of the service.
    #[must_use]
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.service = self.service.of_instance(name);
        self
    }

    /// Declares an event of this service.
    #[must_use]
    pub fn emits(mut self, event: ServiceEventKey) -> Self {
        self.events.push(event.name.to_owned());
        self
    }
}

impl Contribution for ServiceDeclaration {
    const KIND: ContributionKind = ContributionKind::Service;

    fn name(&self) -> String {
        self.service.to_string()
    }

    fn requests(&self) -> Vec<HostCapability> {
        vec![HostCapability::ProvideService {
            key: self.service.name.clone().into(),
        }]
    }

    fn needs(&self) -> Vec<HostCapability> {
        Vec::new()
    }

    fn problem(&self, _requested: &[HostCapability]) -> Option<String> {
        let Self {
            service,
            version,
            events,
        } = self;
        let problem = || {
            format!(
                "version `{}` of {service} is not MAJOR.MINOR.PATCH",
                shown(version)
            )
        };
        let count = events.len();
        let many =
            || format!("service {service} declares {count} events; expected at most {MAX_EVENTS}");
        let named = |event: &String| {
            text::check("an event of a service", event, MAX_NAME, Lines::One).err()
        };
        service
            .problem()
            .or_else(|| parsed::<Version>(version).is_none().then(problem))
            .or_else(|| (count > MAX_EVENTS).then(many))
            .or_else(|| events.iter().find_map(named))
    }
}

/// A service as a consumer asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceRequirement {
    pub service: ServiceId,
    /// The versions that it accepts, such as `^1`.
    pub version: String,
    pub need: Need,
    /// All instances of all providers, none to many.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
}

impl ServiceRequirement {
    /// Without this service the feature is skipped.
    #[must_use]
    pub fn required<T: ?Sized>(key: ServiceKey<T>, version: impl Into<String>) -> Self {
        Self {
            service: key.id(),
            version: version.into(),
            need: Need::Required,
            each: false,
        }
    }

    /// Without this service, contributions that need it are left out.
    #[must_use]
    pub fn optional<T: ?Sized>(key: ServiceKey<T>, version: impl Into<String>) -> Self {
        Self {
            service: key.id(),
            version: version.into(),
            need: Need::Optional,
            each: false,
        }
    }

    /// All instances of this service, of all features: none to many, never missing.
    #[must_use]
    pub fn each<T: ?Sized>(key: ServiceKey<T>, version: impl Into<String>) -> Self {
        Self {
            each: true,
            ..Self::optional(key, version)
        }
    }

    /// A service that is known only at run time.
    #[must_use]
    pub fn declared(service: ServiceId, version: impl Into<String>, need: Need) -> Self {
        Self {
            service,
            version: version.into(),
            need,
            each: false,
        }
    }

    pub(crate) fn problem(&self) -> Option<String> {
        let Self {
            service,
            version,
            need,
            each,
        } = self;
        if *each && (service.instance.is_some() || *need == Need::Required) {
            return Some(format!(
                "a requirement of each {} names no instance and is optional",
                service.name
            ));
        }
        let problem = || {
            format!(
                "`{}` is not a range of versions of {service}; expected something like ^1",
                shown(version)
            )
        };
        service
            .problem()
            .or_else(|| parsed::<VersionReq>(version).is_none().then(problem))
    }

    pub(crate) fn takes(&self, version: &str) -> bool {
        let range = parsed::<VersionReq>(&self.version);
        range
            .zip(parsed::<Version>(version))
            .is_some_and(|(range, version)| range.matches(&version))
    }
}

fn shown(version: &str) -> String {
    text::escape_line(version, MAX_VERSION)
}

/// A version, or a range of them, of bounded length.
pub(crate) fn parsed<T: std::str::FromStr>(version: &str) -> Option<T> {
    (version.len() <= MAX_VERSION)
        .then(|| version.parse().ok())
        .flatten()
}

/// The services that a feature provides and uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureServices {
    /// Services that it provides.
    pub provided: Vec<ServiceDeclaration>,
    /// Services of other features that it uses.
    pub resolved: Vec<ResolvedService>,
    /// Services that it requested and that are missing.
    pub missing: Vec<MissingService>,
}

/// A requirement that is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedService {
    pub service: ServiceId,
    pub version: String,
    pub provider: FeatureId,
}

/// A requirement that is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingService {
    pub service: ServiceId,
    /// The versions that it accepts.
    pub version: String,
    /// The reason why it is missing.
    pub reason: String,
}
