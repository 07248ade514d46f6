//! The capabilities that a feature may request, as data. Does not depend on the policy or on handles.

mod compare;

use super::state::StateScope;
use super::text::{self, Lines};
use crate::hook::{HookClass, HookPoint};
use authority::{HostPattern, HostPort};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Text: borrowed in a `const`, owned when read.
type Text = Cow<'static, str>;

type Names = Cow<'static, [Text]>;

/// Something a host can allow. A variant exists from the day something enforces it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "capability", rename_all = "snake_case", deny_unknown_fields)]
pub enum HostCapability {
    /// Put a tool of this name before the model. Every declared tool asks for it by itself. In a policy, `*` is
    /// any name.
    ContributeTool {
        /// The tool's name.
        name: Text,
    },
    /// Install a hook at a point. The declaration of a hook requests this capability by itself.
    ContributeHook {
        point: HookPoint,
        /// The class of the hooks at this point.
        class: HookClass,
    },
    /// Run a background task of this name. Every declared background task asks for it by itself. In a policy, `*` is
    /// any name.
    ContributeBackgroundTask {
        /// The task's name.
        name: Text,
    },
    /// Offer a person a command of this name. Every declared command asks for it by itself. In a policy, `*` is any name.
    ContributeCommand {
        /// The command's name.
        name: Text,
    },
    /// Answer calls of these tools in their place. Every `ToolRun` hook asks for it by itself.
    AnswerCalls {
        /// Which tools; `*` is any.
        tools: Cow<'static, [Text]>,
    },
    /// Run calls of these tools again. Every `ToolRepeat` hook asks for it by itself.
    RepeatCalls {
        /// Which tools; `*` is any.
        tools: Cow<'static, [Text]>,
    },
    /// Replace what calls of these tools answer. Every `ToolShape` and `ToolOutcome` hook asks for it by itself.
    TransformResults {
        /// Which tools; `*` is any.
        tools: Cow<'static, [Text]>,
    },
    /// Replace the arguments of calls of these tools. Every `ToolArguments` hook asks for it by itself.
    RewriteArguments {
        /// Which tools; `*` is any.
        tools: Cow<'static, [Text]>,
    },
    /// Narrow the schemas of these tools, and change the arguments that it narrowed. Every enricher asks for it by itself.
    EnrichTools {
        /// Which tools; `*` is any.
        tools: Cow<'static, [Text]>,
    },
    /// Hold a directory handle. Enforced by `authority::Workspace` at each operation.
    ScopedFs {
        /// Which of the host's roots; see [`HostCapability::WORKSPACE`].
        root: Text,
        /// Read files and directories. Nothing is granted without it.
        read: bool,
        /// Create, change and remove files.
        write: bool,
        /// Start programs found there, confined as the host says. Enforced by `authority::Spawner` at each start.
        execute: bool,
    },
    /// Start child processes, confined as the host says.
    Process {
        /// Which programs; `*` is any.
        programs: Cow<'static, [Text]>,
        /// Whether these programs use the network, which the sandbox otherwise withholds; only of named programs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network: bool,
    },
    /// Provide a service to other features. Every declared service requests it by itself. In a policy, `*` is any service.
    ProvideService {
        /// The service's name.
        key: Text,
    },
    /// Use what another feature provides. Every requirement asks for it by itself. In a policy, `*` is any service.
    UseService {
        /// The service's name.
        key: Text,
    },
    /// Use the store of work items, through the feature that provides it. Every requirement of a side of it asks for
    /// that side by itself.
    WorkItemStore {
        /// Read them.
        read: bool,
        /// Create and change them.
        write: bool,
    },
    /// Use the store of notes, the same way.
    MemoryStore {
        /// Read them.
        read: bool,
        /// Write and delete them.
        write: bool,
    },
    /// Connect to hosts of the public internet. Enforced by `authority::Net` at each connection. A request for more than
    /// is granted comes down to what is.
    Network {
        /// The purpose, in one or two words. In a policy, `*` is any purpose.
        purpose: Text,
        /// Which hosts, as `docs.example.org`, `*.example.org` or `*`.
        hosts: Cow<'static, [Text]>,
    },
    /// Connect to exactly these hosts and ports, private ones too, which a person names. Enforced by `authority::Net` at
    /// each connection. A request for more than is granted comes down to what is.
    Endpoint {
        /// The purpose, in one or two words. In a policy, `*` is any purpose.
        purpose: Text,
        /// `127.0.0.1:9000`, or `*:*` for all that are granted.
        at: Cow<'static, [Text]>,
    },
    /// Hold a secret that the host knows under this name.
    SecretRef {
        /// Its name; in a policy, `*` is any.
        id: Text,
        /// The hosts that it may be sent to, as `api.example.org` or `127.0.0.1:9000`, never with `*`; only in requests of
        /// guests, for which the host sends it. Without any, it goes to the one host that the feature may connect to.
        #[serde(default, skip_serializing_if = "names_none")]
        hosts: Names,
    },
    /// Keep state of one's own in this scope. Every declared state asks for it by itself.
    StateStore {
        /// How long it lives, and who shares it.
        scope: StateScope,
    },
    /// Tell the model something at its next step.
    EmitModelNotification {
        /// Bytes of one notification.
        max_bytes: u32,
        /// Notifications in one turn.
        per_turn: u32,
    },
    /// Show short texts to the person who watches.
    EmitUserAlert,
}

impl HostCapability {
    /// The root that holds the project, the working directory and the directories added by flag.
    pub const WORKSPACE: &'static str = "workspace";

    /// Request to read the workspace.
    pub const READ_WORKSPACE: Self = Self::ScopedFs {
        root: Cow::Borrowed(Self::WORKSPACE),
        read: true,
        write: false,
        execute: false,
    };

    /// Request to read and change the workspace.
    pub const WRITE_WORKSPACE: Self = Self::ScopedFs {
        root: Cow::Borrowed(Self::WORKSPACE),
        read: true,
        write: true,
        execute: false,
    };

    /// Request to start any program.
    pub const ANY_PROGRAM: Self = Self::Process {
        programs: Cow::Borrowed(&[Cow::Borrowed("*")]),
        network: false,
    };

    /// Request to offer a tool of this name to the model.
    #[must_use]
    pub const fn tool(name: &'static str) -> Self {
        Self::ContributeTool {
            name: Cow::Borrowed(name),
        }
    }

    /// Request to run the background task of this name.
    #[must_use]
    pub const fn background_task(name: &'static str) -> Self {
        Self::ContributeBackgroundTask {
            name: Cow::Borrowed(name),
        }
    }

    /// Request to run any background task.
    pub const ANY_BACKGROUND_TASK: Self = Self::background_task("*");

    /// Request to offer a person any command.
    pub const ANY_COMMAND: Self = Self::ContributeCommand {
        name: Cow::Borrowed("*"),
    };

    /// Request to provide the service of this name.
    #[must_use]
    pub const fn provide(service: &'static str) -> Self {
        Self::ProvideService {
            key: Cow::Borrowed(service),
        }
    }

    /// Request to use the service of this name.
    #[must_use]
    pub const fn using(service: &'static str) -> Self {
        Self::UseService {
            key: Cow::Borrowed(service),
        }
    }

    /// Request to connect to all granted hosts, at all granted ports.
    #[must_use]
    pub const fn network(purpose: &'static str) -> Self {
        Self::Network {
            purpose: Cow::Borrowed(purpose),
            hosts: Cow::Borrowed(&[Cow::Borrowed("*:*")]),
        }
    }

    /// Request to connect to all granted endpoints.
    #[must_use]
    pub const fn endpoints(purpose: &'static str) -> Self {
        Self::Endpoint {
            purpose: Cow::Borrowed(purpose),
            at: Cow::Borrowed(&[Cow::Borrowed(EVERY_ENDPOINT)]),
        }
    }

    /// Request for the secret of this name.
    #[must_use]
    pub const fn secret(id: &'static str) -> Self {
        Self::SecretRef {
            id: Cow::Borrowed(id),
            hosts: Cow::Borrowed(&[]),
        }
    }

    /// Request to keep state in the session.
    pub const SESSION_STATE: Self = Self::StateStore {
        scope: StateScope::Session,
    };

    /// Request to answer calls of any tool.
    pub const ANY_ANSWER: Self = Self::AnswerCalls {
        tools: Cow::Borrowed(&[Cow::Borrowed("*")]),
    };

    /// Request to repeat calls of any tool.
    pub const ANY_REPEAT: Self = Self::RepeatCalls {
        tools: Cow::Borrowed(&[Cow::Borrowed("*")]),
    };

    /// Request to replace the results of any tool.
    pub const ANY_RESULT: Self = Self::TransformResults {
        tools: Cow::Borrowed(&[Cow::Borrowed("*")]),
    };

    /// Request to replace the arguments of any tool.
    pub const ANY_ARGUMENTS: Self = Self::RewriteArguments {
        tools: Cow::Borrowed(&[Cow::Borrowed("*")]),
    };

    /// Request to narrow the schemas of any tool.
    pub const ANY_ENRICHING: Self = Self::EnrichTools {
        tools: Cow::Borrowed(&[Cow::Borrowed("*")]),
    };

    /// The kind by name, and its parameters in a common form: all comparisons and texts are based on this.
    fn parts(&mut self) -> (&'static str, CapabilityScope<'_>) {
        match self {
            Self::ContributeTool { name } => ("ContributeTool", CapabilityScope::Name(name)),
            Self::ContributeHook { point, class } => (
                "ContributeHook",
                CapabilityScope::Whole(format!("{point}:{class}")),
            ),
            Self::ContributeBackgroundTask { name } => {
                ("ContributeBackgroundTask", CapabilityScope::Name(name))
            }
            Self::ContributeCommand { name } => ("ContributeCommand", CapabilityScope::Name(name)),
            Self::AnswerCalls { tools } => ("AnswerCalls", CapabilityScope::Names(tools)),
            Self::RepeatCalls { tools } => ("RepeatCalls", CapabilityScope::Names(tools)),
            Self::TransformResults { tools } => ("TransformResults", CapabilityScope::Names(tools)),
            Self::RewriteArguments { tools } => ("RewriteArguments", CapabilityScope::Names(tools)),
            Self::EnrichTools { tools } => ("EnrichTools", CapabilityScope::Names(tools)),
            Self::ScopedFs {
                root,
                read,
                write,
                execute,
            } => (
                "ScopedFs",
                CapabilityScope::Modes(Some(root), vec![(read, 'r'), (write, 'w'), (execute, 'x')]),
            ),
            Self::Process { programs, network } => {
                ("Process", CapabilityScope::Programs(programs, network))
            }
            Self::ProvideService { key } => ("ProvideService", CapabilityScope::Name(key)),
            Self::UseService { key } => ("UseService", CapabilityScope::Name(key)),
            Self::WorkItemStore { read, write } => (
                "WorkItemStore",
                CapabilityScope::Modes(None, vec![(read, 'r'), (write, 'w')]),
            ),
            Self::MemoryStore { read, write } => (
                "MemoryStore",
                CapabilityScope::Modes(None, vec![(read, 'r'), (write, 'w')]),
            ),
            Self::Network { purpose, hosts } => ("Network", CapabilityScope::Hosts(purpose, hosts)),
            Self::Endpoint { purpose, at } => ("Endpoint", CapabilityScope::Hosts(purpose, at)),
            Self::SecretRef { id, hosts } => ("SecretRef", CapabilityScope::Bound(id, hosts)),
            Self::StateStore { scope } => ("StateStore", CapabilityScope::Whole(scope.to_string())),
            Self::EmitModelNotification {
                max_bytes,
                per_turn,
            } => (
                "EmitModelNotification",
                CapabilityScope::Bounds(max_bytes, per_turn),
            ),
            Self::EmitUserAlert => ("EmitUserAlert", CapabilityScope::Whole(String::new())),
        }
    }

    /// Whether its grant gives the feature a handle, whose uses enter a door.
    pub(crate) fn is_held(&self) -> bool {
        !matches!(
            self,
            Self::ContributeTool { .. }
                | Self::ContributeHook { .. }
                | Self::ContributeBackgroundTask { .. }
                | Self::ContributeCommand { .. }
                | Self::AnswerCalls { .. }
                | Self::RepeatCalls { .. }
                | Self::TransformResults { .. }
                | Self::RewriteArguments { .. }
                | Self::EnrichTools { .. }
        )
    }

    /// Request to add hooks at this point.
    pub(crate) fn at(point: HookPoint) -> Self {
        Self::ContributeHook {
            point,
            class: point.class(),
        }
    }

    /// The problem of a row of a policy, if any; unlike a request, it may mean any name.
    pub(crate) fn row_problem(&self) -> Option<String> {
        if matches!(self, Self::ProvideService { key } | Self::UseService { key } if key == "*") {
            return None;
        }
        if matches!(self, Self::Endpoint { at, .. } if at.iter().any(|at| at == EVERY_ENDPOINT)) {
            return Some("an endpoint is a host and a port, such as 127.0.0.1:9000".to_owned());
        }
        self.problem()
    }

    /// The problem of a request, if any.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::ContributeTool { name } => {
                text::check("the tool of a ContributeTool request", name, 64, Lines::One).err()
            }
            Self::ContributeBackgroundTask { name } => text::check(
                "the task of a ContributeBackgroundTask request",
                name,
                64,
                Lines::One,
            )
            .err(),
            Self::ContributeCommand { name } => text::check(
                "the command of a ContributeCommand request",
                name,
                64,
                Lines::One,
            )
            .err(),
            Self::ProvideService { key } | Self::UseService { key } => {
                super::id::service_problem(key)
            }
            Self::WorkItemStore {
                read: false,
                write: false,
            }
            | Self::MemoryStore {
                read: false,
                write: false,
            } => Some(format!("{self} names nothing")),
            Self::WorkItemStore { .. } | Self::MemoryStore { .. } => None,
            Self::Network { hosts, .. } if hosts.is_empty() || hosts.len() > MAX_HOSTS => {
                Some(format!("a Network request names 1 to {MAX_HOSTS} hosts"))
            }
            Self::Network { purpose, hosts } => {
                let host = |host: &Text| {
                    host.parse::<HostPattern>()
                        .err()
                        .map(|error| error.to_string())
                };
                let purpose =
                    text::check("the purpose of a Network request", purpose, 64, Lines::One).err();
                purpose.or_else(|| hosts.iter().find_map(host))
            }
            Self::Endpoint { at, .. } if at.is_empty() || at.len() > MAX_HOSTS => Some(format!(
                "an Endpoint request names 1 to {MAX_HOSTS} endpoints"
            )),
            Self::Endpoint { purpose, at } => {
                let exact = |at: &&Text| *at != EVERY_ENDPOINT;
                let endpoint =
                    |at: &Text| at.parse::<HostPort>().err().map(|error| error.to_string());
                let purpose = text::check(
                    "the purpose of an Endpoint request",
                    purpose,
                    64,
                    Lines::One,
                )
                .err();
                purpose.or_else(|| at.iter().filter(exact).find_map(endpoint))
            }
            Self::SecretRef { hosts, .. } if hosts.len() > MAX_HOSTS => Some(format!(
                "a SecretRef request names at most {MAX_HOSTS} hosts"
            )),
            Self::SecretRef { id, hosts } => {
                let named = |host: &Text| match host.parse::<HostPattern>() {
                    Ok(_) if host.contains('*') => Some(format!(
                        "{self}: each host of a secret is named, without `*`"
                    )),
                    parsed => parsed.err().map(|error| error.to_string()),
                };
                let id = text::check("the name of a secret", id, 64, Lines::One).err();
                id.or_else(|| hosts.iter().find_map(named))
            }
            Self::ContributeHook { point, class } if point.class() != *class => Some(format!(
                "a hook at {point} is a {}, not a {class}",
                point.class()
            )),
            Self::ContributeHook { .. } | Self::StateStore { .. } | Self::EmitUserAlert => None,
            Self::EmitModelNotification {
                max_bytes,
                per_turn,
            } => {
                let fits = (1..=MAX_NOTIFICATION).contains(max_bytes)
                    && (1..=MAX_PER_TURN).contains(per_turn);
                let bounds = format!("1 to {MAX_NOTIFICATION} bytes and 1 to {MAX_PER_TURN} times");
                (!fits).then(|| format!("{self} is out of bounds: {bounds}"))
            }
            Self::AnswerCalls { tools }
            | Self::RepeatCalls { tools }
            | Self::TransformResults { tools }
            | Self::RewriteArguments { tools }
            | Self::EnrichTools { tools } => {
                if tools.is_empty() || tools.len() > MAX_NAMED_TOOLS {
                    return Some(format!(
                        "{self} names {} tools, not 1 to {MAX_NAMED_TOOLS}",
                        tools.len()
                    ));
                }
                tools.iter().find_map(|tool| {
                    text::check("a tool of a transform request", tool, 64, Lines::One).err()
                })
            }
            Self::ScopedFs { read: false, .. } => {
                Some("a ScopedFs request without `read` asks for nothing".into())
            }
            Self::ScopedFs { root, .. } => {
                text::check("the root of a ScopedFs request", root, 64, Lines::One).err()
            }
            Self::Process { programs, .. }
                if programs.is_empty() || programs.len() > MAX_PROGRAMS =>
            {
                Some(format!(
                    "a Process request names 1 to {MAX_PROGRAMS} programs"
                ))
            }
            Self::Process { programs, .. } if programs.iter().any(|name| name.is_empty()) => {
                Some("`process` contains an empty program name".into())
            }
            Self::Process {
                programs,
                network: true,
            } if programs.iter().any(|name| name == "*") => {
                Some("a Process request with `network` names its programs".into())
            }
            Self::Process { programs, .. } => programs.iter().find_map(|p| {
                text::check(
                    "the name of a program in a Process grant",
                    p,
                    256,
                    Lines::One,
                )
                .err()
            }),
        }
    }
}

/// The parameters of a capability, in a form that all kinds share.
enum CapabilityScope<'a> {
    /// One name; `*` is any.
    Name(&'a mut Text),
    /// Some names; `*` is any.
    Names(&'a mut Names),
    /// Some programs, and whether they use the network.
    Programs(&'a mut Names, &'a mut bool),
    /// One name, and the hosts that it is bound to; none is no bound.
    Bound(&'a mut Text, &'a mut Names),
    /// The purpose, and patterns of hosts.
    Hosts(&'a mut Text, &'a mut Names),
    /// Modes of access to one thing, each with its letter.
    Modes(Option<&'a mut Text>, Vec<(&'a mut bool, char)>),
    /// A limit on bytes, and on times per turn.
    Bounds(&'a mut u32, &'a mut u32),
    /// No parameter.
    Whole(String),
}

fn names_none(names: &Names) -> bool {
    names.is_empty()
}

/// Most tools in one request about their results, arguments or schemas.
pub(crate) const MAX_NAMED_TOOLS: usize = 64;

/// Most bytes of one notification.
pub(crate) const MAX_NOTIFICATION: u32 = 16 * 1024;

/// Most notifications of one feature in one turn.
pub(crate) const MAX_PER_TURN: u32 = 32;

/// All endpoints that a person granted, in a request.
const EVERY_ENDPOINT: &str = "*:*";

/// Most hosts in one request.
const MAX_HOSTS: usize = 64;

/// Most programs in one request.
const MAX_PROGRAMS: usize = 64;
