//! What one capability means for another: whether it includes it, overlaps it, or leaves something of it.

use super::{HostCapability, Text};
use authority::HostPattern;

impl HostCapability {
    /// Whether a grant of `self` includes all of `asked`.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        match (self, asked) {
            (Self::ContributeTool { name: own }, Self::ContributeTool { name })
            | (Self::ProvideService { key: own }, Self::ProvideService { key: name })
            | (Self::UseService { key: own }, Self::UseService { key: name })
            | (Self::SecretRef { id: own }, Self::SecretRef { id: name }) => own == "*" || own == name,
            (
                Self::ScopedFs { root, read, write, execute },
                Self::ScopedFs { root: r, read: ar, write: aw, execute: ax },
            ) => root == r && (*read || !ar) && (*write || !aw) && (*execute || !ax),
            (Self::WorkItemStore { read, write }, Self::WorkItemStore { read: ar, write: aw })
            | (Self::MemoryStore { read, write }, Self::MemoryStore { read: ar, write: aw }) => {
                (*read || !ar) && (*write || !aw)
            }
            (Self::Network { purpose: own, hosts }, Self::Network { purpose, hosts: asked }) => {
                (own == "*" || own == purpose) && asked.iter().all(|asked| hosts.iter().any(|own| includes(own, asked)))
            }
            (Self::Process { programs: own }, Self::Process { programs: asked })
            | (Self::TransformResults { tools: own }, Self::TransformResults { tools: asked })
            | (Self::RewriteArguments { tools: own }, Self::RewriteArguments { tools: asked }) => {
                own.iter().any(|p| p == "*") || asked.iter().all(|p| own.contains(p))
            }
            (
                Self::EmitModelNotification { max_bytes, per_turn },
                Self::EmitModelNotification { max_bytes: bytes, per_turn: times },
            ) => bytes <= max_bytes && times <= per_turn,
            (Self::ContributeHook { .. } | Self::StateStore { .. } | Self::EmitUserAlert, asked) => self == asked,
            (
                Self::ContributeTool { .. }
                | Self::ProvideService { .. }
                | Self::UseService { .. }
                | Self::WorkItemStore { .. }
                | Self::MemoryStore { .. }
                | Self::Network { .. }
                | Self::SecretRef { .. }
                | Self::ScopedFs { .. }
                | Self::Process { .. }
                | Self::EmitModelNotification { .. }
                | Self::TransformResults { .. }
                | Self::RewriteArguments { .. },
                _,
            ) => false,
        }
    }

    /// Whether a refusal of `self` hits any part of `asked`.
    pub(crate) fn touches(&self, asked: &Self) -> bool {
        match (self, asked) {
            (Self::ContributeTool { name: own }, Self::ContributeTool { name })
            | (Self::ProvideService { key: own }, Self::ProvideService { key: name })
            | (Self::UseService { key: own }, Self::UseService { key: name })
            | (Self::SecretRef { id: own }, Self::SecretRef { id: name }) => own == "*" || own == name,
            (
                Self::ScopedFs { root, read, write, execute },
                Self::ScopedFs { root: r, read: ar, write: aw, execute: ax },
            ) => root == r && ((*write && *aw) || (*execute && *ax) || (!write && !execute && *read && *ar)),
            (Self::WorkItemStore { read, write }, Self::WorkItemStore { read: ar, write: aw })
            | (Self::MemoryStore { read, write }, Self::MemoryStore { read: ar, write: aw }) => {
                (*read && *ar) || (*write && *aw)
            }
            (Self::Network { purpose: own, hosts }, Self::Network { purpose, hosts: asked }) => {
                let meet = |own: &str, asked: &str| includes(own, asked) || includes(asked, own);
                let meet = |asked: &Text| hosts.iter().any(|own| meet(own, asked));
                (own == "*" || purpose == "*" || own == purpose) && asked.iter().any(meet)
            }
            (Self::Process { programs: own }, Self::Process { programs: asked })
            | (Self::TransformResults { tools: own }, Self::TransformResults { tools: asked })
            | (Self::RewriteArguments { tools: own }, Self::RewriteArguments { tools: asked }) => {
                own.iter().chain(asked.iter()).any(|p| p == "*") || asked.iter().any(|p| own.contains(p))
            }
            (Self::EmitModelNotification { .. }, Self::EmitModelNotification { .. }) => true,
            (Self::ContributeHook { .. } | Self::StateStore { .. } | Self::EmitUserAlert, asked) => self == asked,
            (
                Self::ContributeTool { .. }
                | Self::ProvideService { .. }
                | Self::UseService { .. }
                | Self::WorkItemStore { .. }
                | Self::MemoryStore { .. }
                | Self::Network { .. }
                | Self::SecretRef { .. }
                | Self::ScopedFs { .. }
                | Self::Process { .. }
                | Self::EmitModelNotification { .. }
                | Self::TransformResults { .. }
                | Self::RewriteArguments { .. },
                _,
            ) => false,
        }
    }

    /// Whether both have a part in common: taking back `self` takes that away. Unlike a refusal to write, which lets a
    /// feature read, what takes back reading and writing takes back a handle that only reads.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::ScopedFs { root, read, write, execute },
                Self::ScopedFs { root: r, read: ar, write: aw, execute: ax },
            ) => root == r && ((*read && *ar) || (*write && *aw) || (*execute && *ax)),
            _ => self.touches(other),
        }
    }

    /// What a grant of `self` leaves of `asked`, where the rest is of use without the whole: hosts that both mean, the
    /// smaller numbers of notifications. Nothing where it leaves nothing, or the rest would be no use.
    pub(crate) fn leaves(&self, asked: &Self) -> Option<Self> {
        match (self, asked) {
            (Self::Network { purpose: own, hosts }, Self::Network { purpose, hosts: asked })
                if own == "*" || own == purpose =>
            {
                let of = |asked: &Text| {
                    let within = hosts.iter().filter(move |own| includes(asked, own)).cloned();
                    if hosts.iter().any(|own| includes(own, asked)) { vec![asked.clone()] } else { within.collect() }
                };
                let mut left: Vec<Text> = asked.iter().flat_map(of).collect();
                left.sort();
                left.dedup();
                (!left.is_empty()).then(|| Self::Network { purpose: purpose.clone(), hosts: left.into() })
            }
            (
                Self::EmitModelNotification { max_bytes, per_turn },
                Self::EmitModelNotification { max_bytes: bytes, per_turn: times },
            ) => {
                let (max_bytes, per_turn) = (*max_bytes.min(bytes), *per_turn.min(times));
                (max_bytes > 0 && per_turn > 0).then_some(Self::EmitModelNotification { max_bytes, per_turn })
            }
            _ if self.covers(asked) => Some(asked.clone()),
            _ => None,
        }
    }

    /// Two things that are left of one request, together.
    pub(crate) fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Network { purpose, hosts }, Self::Network { hosts: more, .. }) => {
                let mut all: Vec<Text> = hosts.iter().chain(more.iter()).cloned().collect();
                all.sort();
                all.dedup();
                Self::Network { purpose, hosts: all.into() }
            }
            (one, _) => one,
        }
    }

    /// The part that only reads, of what reads and writes.
    pub(crate) fn reading(&self) -> Option<Self> {
        if let Self::ScopedFs { root, read: true, write: true, execute } = self {
            return Some(Self::ScopedFs { root: root.clone(), read: true, write: false, execute: *execute });
        }
        let stores = [
            (Self::WorkItemStore { read: true, write: true }, Self::WorkItemStore { read: true, write: false }),
            (Self::MemoryStore { read: true, write: true }, Self::MemoryStore { read: true, write: false }),
        ];
        stores.into_iter().find_map(|(whole, reading)| (whole == *self).then_some(reading))
    }

    /// Whether both are about the same thing, so that a word on one is a word on the other.
    pub(crate) fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ScopedFs { root, .. }, Self::ScopedFs { root: other, .. }) => root == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Whether a pattern of hosts includes another; what is no pattern includes nothing and is included nowhere.
fn includes(own: &str, asked: &str) -> bool {
    let (own, asked) = (own.parse::<HostPattern>(), asked.parse::<HostPattern>());
    own.ok().zip(asked.ok()).is_some_and(|(own, asked)| own.covers(&asked))
}
