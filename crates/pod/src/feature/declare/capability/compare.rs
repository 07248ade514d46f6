//! Compares capabilities and shows them to people. Every comparison follows from the common part of the parameters of
//! two capabilities. Depends on no kind and no policy.

use super::{CapabilityScope, HostCapability, Names, Text};
use authority::HostPattern;
use std::fmt;
use std::mem::discriminant;

impl HostCapability {
    /// The common part of `self` and `asked`, if any; `asked` itself, as it is written, if `self` includes it.
    #[must_use]
    pub fn meet(&self, asked: &Self) -> Option<Self> {
        if discriminant(self) != discriminant(asked) {
            return None;
        }
        let mut own = self.clone();
        let mut both = asked.clone();
        match (own.parts().1, both.parts().1) {
            (CapabilityScope::Name(own), CapabilityScope::Name(name)) => {
                *name = name_of_both(own, name)?
            }
            (CapabilityScope::Names(own), CapabilityScope::Names(names)) => {
                *names = names_of_both(own, names)?
            }
            (
                CapabilityScope::Programs(own, reaches),
                CapabilityScope::Programs(programs, network),
            ) => {
                (*programs, *network) = (names_of_both(own, programs)?, *network && *reaches);
            }
            (CapabilityScope::Hosts(own, reached), CapabilityScope::Hosts(purpose, hosts)) => {
                (*purpose, *hosts) = (name_of_both(own, purpose)?, hosts_of_both(reached, hosts)?);
            }
            (CapabilityScope::Bound(own, bound), CapabilityScope::Bound(name, hosts)) => {
                *name = name_of_both(own, name)?;
                if hosts.is_empty() {
                    hosts.clone_from(bound);
                } else if !bound.is_empty() {
                    *hosts = hosts_of_both(bound, hosts)?;
                }
            }
            (CapabilityScope::Modes(own, on), CapabilityScope::Modes(of, modes)) if own == of => {
                modes_of_both(&on, modes)?
            }
            (
                CapabilityScope::Bounds(max_bytes, per_turn),
                CapabilityScope::Bounds(bytes, times),
            ) => {
                (*bytes, *times) = (*max_bytes.min(bytes), *per_turn.min(times));
                (*bytes > 0 && *times > 0).then_some(())?;
            }
            (CapabilityScope::Whole(own), CapabilityScope::Whole(asked)) if own == asked => {}
            _ => return None,
        }
        Some(both)
    }

    /// Whether a grant of `self` includes all of `asked`.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        self.meet(asked).is_some_and(|both| both == *asked)
    }

    /// Whether a refusal of `self` affects any part of `asked`. A refusal of writing leaves reading.
    pub(crate) fn conflicts_with(&self, asked: &Self) -> bool {
        if let Self::ScopedFs {
            root,
            read: _,
            write,
            execute,
        } = self
            && (*write || *execute)
        {
            let changing = Self::ScopedFs {
                root: root.clone(),
                read: false,
                write: *write,
                execute: *execute,
            };
            return changing.meet(asked).is_some();
        }
        self.meet(asked).is_some()
    }

    /// The useful part of `asked` that a grant of `self` allows, for kinds that can be granted in part: common hosts,
    /// smaller numbers of notifications.
    pub(crate) fn leaves(&self, asked: &Self) -> Option<Self> {
        let divisible = matches!(
            asked,
            Self::Network { .. } | Self::Endpoint { .. } | Self::EmitModelNotification { .. }
        );
        self.meet(asked).filter(|left| divisible || left == asked)
    }

    /// Combines two granted parts of one request.
    pub(crate) fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Network { purpose, hosts }, Self::Network { hosts: more, .. }) => {
                Self::Network {
                    purpose,
                    hosts: sorted(hosts.iter().chain(more.iter()).cloned().collect()),
                }
            }
            (Self::Endpoint { purpose, at }, Self::Endpoint { at: more, .. }) => Self::Endpoint {
                purpose,
                at: sorted(at.iter().chain(more.iter()).cloned().collect()),
            },
            (one, _) => one,
        }
    }

    /// The read-only part of a request for reading and writing.
    pub(crate) fn reading(&self) -> Option<Self> {
        let mut part = self.clone();
        if let Self::ScopedFs {
            read: true, write, ..
        }
        | Self::WorkItemStore { read: true, write }
        | Self::MemoryStore { read: true, write } = &mut part
        {
            return std::mem::take(write).then_some(part);
        }
        None
    }

    /// The names in it; none for a kind without.
    pub(crate) fn names(&self) -> Vec<Text> {
        match self.clone().parts().1 {
            CapabilityScope::Name(name) | CapabilityScope::Bound(name, _) => vec![name.clone()],
            CapabilityScope::Names(names)
            | CapabilityScope::Programs(names, _)
            | CapabilityScope::Hosts(_, names) => names.to_vec(),
            CapabilityScope::Modes(..)
            | CapabilityScope::Bounds(..)
            | CapabilityScope::Whole(_) => Vec::new(),
        }
    }

    /// The same kind with other names: one capability for each, or one for all where the kind takes many.
    pub(crate) fn with_names(&self, names: Vec<String>) -> Vec<Self> {
        let names: Vec<Text> = names.into_iter().map(Text::from).collect();
        let takes_one = matches!(
            self.clone().parts().1,
            CapabilityScope::Name(_) | CapabilityScope::Bound(..)
        );
        let size = if takes_one { 1 } else { names.len().max(1) };
        let named = |names: &[Text]| {
            let mut named = self.clone();
            match (named.parts().1, names) {
                (CapabilityScope::Name(own) | CapabilityScope::Bound(own, _), [name]) => {
                    own.clone_from(name)
                }
                (
                    CapabilityScope::Names(own)
                    | CapabilityScope::Programs(own, _)
                    | CapabilityScope::Hosts(_, own),
                    names,
                ) => *own = names.to_vec().into(),
                _ => {}
            }
            named
        };
        names.chunks(size).map(named).collect()
    }

    /// Whether both are about the same thing, so that a row of policy about one also decides about the other.
    pub(crate) fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ScopedFs { root, .. }, Self::ScopedFs { root: other, .. }) => root == other,
            _ => discriminant(self) == discriminant(other),
        }
    }
}

impl fmt::Display for HostCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.clone();
        let (kind, part) = shown.parts();
        match part {
            CapabilityScope::Name(name) => write!(f, "{kind}({name})"),
            CapabilityScope::Names(names) => write!(f, "{kind}({})", names.join(",")),
            CapabilityScope::Programs(programs, network) => {
                write!(
                    f,
                    "{kind}({}{})",
                    programs.join(","),
                    if *network { " with network" } else { "" }
                )
            }
            CapabilityScope::Hosts(purpose, hosts) => {
                write!(f, "{kind}({purpose}: {})", hosts.join(","))
            }
            CapabilityScope::Bound(name, hosts) if hosts.is_empty() => write!(f, "{kind}({name})"),
            CapabilityScope::Bound(name, hosts) => {
                write!(f, "{kind}({name} for {})", hosts.join(","))
            }
            CapabilityScope::Modes(of, modes) => {
                let on: String = modes
                    .iter()
                    .filter(|(on, _)| **on)
                    .map(|(_, letter)| *letter)
                    .collect();
                let of = of.map(|of| format!("{of}:")).unwrap_or_default();
                write!(f, "{kind}({of}{on})")
            }
            CapabilityScope::Bounds(max_bytes, per_turn) => {
                write!(f, "{kind}({max_bytes} bytes, {per_turn} a turn)")
            }
            CapabilityScope::Whole(all) if all.is_empty() => f.write_str(kind),
            CapabilityScope::Whole(which) => write!(f, "{kind}({which})"),
        }
    }
}

fn name_of_both(own: &Text, asked: &Text) -> Option<Text> {
    if asked == "*" {
        Some(own)
    } else {
        (own == "*" || own == asked).then_some(asked)
    }
    .cloned()
}

fn names_of_both(own: &Names, asked: &Names) -> Option<Names> {
    let any = |names: &Names| names.iter().any(|name| name == "*");
    if any(own) || any(asked) {
        return Some(if any(own) { asked.clone() } else { own.clone() });
    }
    let both: Vec<_> = asked
        .iter()
        .filter(|name| own.contains(name))
        .cloned()
        .collect();
    (!both.is_empty()).then(|| both.into())
}

fn hosts_of_both(own: &Names, asked: &Names) -> Option<Names> {
    let of = |asked: &Text| match own.iter().any(|own| includes(own, asked)) {
        true => vec![asked.clone()],
        false => own
            .iter()
            .filter(|own| includes(asked, own))
            .cloned()
            .collect(),
    };
    let both: Vec<Text> = asked.iter().flat_map(of).collect();
    if both.is_empty() {
        return None;
    }
    Some(if both == **asked {
        asked.clone()
    } else {
        sorted(both)
    })
}

/// Whether a pattern of hosts includes another; an invalid pattern includes nothing and is included nowhere.
fn includes(own: &str, asked: &str) -> bool {
    let own = own.parse::<HostPattern>();
    let asked = asked.parse::<HostPattern>();
    own.ok()
        .zip(asked.ok())
        .is_some_and(|(own, asked)| own.covers(&asked))
}

fn sorted(mut names: Vec<Text>) -> Names {
    names.sort();
    names.dedup();
    names.into()
}

/// Keeps the modes that both have, if any.
fn modes_of_both(own: &[(&mut bool, char)], asked: Vec<(&mut bool, char)>) -> Option<()> {
    let left = own.iter().zip(asked).map(|((own, _), (asked, _))| {
        *asked &= **own;
        *asked
    });
    left.fold(false, |any, on| any | on).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fs(read: bool, write: bool) -> HostCapability {
        HostCapability::ScopedFs {
            root: "workspace".into(),
            read,
            write,
            execute: false,
        }
    }

    // What is common is asked for, however the two are turned; a refusal of one name hits a request for any.
    #[test]
    fn two_capabilities_meet_in_what_both_mean() {
        let hosts = |hosts: &[&'static str]| {
            let hosts = hosts
                .iter()
                .map(|host| Text::from(*host))
                .collect::<Vec<_>>();
            HostCapability::Network {
                purpose: "docs".into(),
                hosts: hosts.into(),
            }
        };
        let bound = |hosts: &[&'static str]| HostCapability::SecretRef {
            id: "key".into(),
            hosts: hosts.iter().map(|host| Text::from(*host)).collect(),
        };
        let run = |network| HostCapability::Process {
            programs: vec![Text::from("git")].into(),
            network,
        };
        let notify = |max_bytes, per_turn| HostCapability::EmitModelNotification {
            max_bytes,
            per_turn,
        };
        let rows = [
            (
                HostCapability::secret("*"),
                HostCapability::secret("key"),
                Some(HostCapability::secret("key")),
            ),
            (
                HostCapability::secret("key"),
                HostCapability::tool("key"),
                None,
            ),
            (
                HostCapability::secret("*"),
                bound(&["a.org", "b.org"]),
                Some(bound(&["a.org", "b.org"])),
            ),
            (
                bound(&["a.org", "b.org"]),
                bound(&["b.org", "c.org"]),
                Some(bound(&["b.org"])),
            ),
            (bound(&["a.org"]), bound(&["b.org"]), None),
            (fs(true, true), fs(true, false), Some(fs(true, false))),
            (fs(true, false), fs(false, true), None),
            (
                hosts(&["*.a.org"]),
                hosts(&["b.org", "x.a.org"]),
                Some(hosts(&["x.a.org"])),
            ),
            (notify(100, 1), notify(10, 2), Some(notify(10, 1))),
            (run(true), run(false), Some(run(false))),
            (HostCapability::ANY_PROGRAM, run(true), Some(run(false))),
        ];
        for (one, other, both) in rows {
            assert_eq!(one.meet(&other), both, "{one} and {other}");
            assert_eq!(other.meet(&one), both, "{other} and {one}");
            assert_eq!(
                one.covers(&other),
                both.as_ref() == Some(&other),
                "{one} covers {other}"
            );
        }
        assert!(HostCapability::secret("key").conflicts_with(&HostCapability::secret("*")));
        assert!(
            !fs(true, true).conflicts_with(&fs(true, false)),
            "a refusal to write lets a feature read"
        );
    }
}
