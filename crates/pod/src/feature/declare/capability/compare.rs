//! What one capability means for another. It all follows from what two of them have in common. It knows no policy.

use super::{HostCapability, Text};
use authority::HostPattern;
use std::borrow::Cow;

impl HostCapability {
    /// What `self` and `asked` have in common, if anything; `asked` itself, as it is written, where `self` includes it.
    #[must_use]
    pub fn meet(&self, asked: &Self) -> Option<Self> {
        let mut both = asked.clone();
        match (self, &mut both) {
            (Self::ContributeTool { name: own }, Self::ContributeTool { name })
            | (Self::ProvideService { key: own }, Self::ProvideService { key: name })
            | (Self::UseService { key: own }, Self::UseService { key: name })
            | (Self::SecretRef { id: own }, Self::SecretRef { id: name }) => *name = name_of_both(own, name)?,
            (Self::Process { programs: own }, Self::Process { programs: names })
            | (Self::TransformResults { tools: own }, Self::TransformResults { tools: names })
            | (Self::RewriteArguments { tools: own }, Self::RewriteArguments { tools: names }) => {
                *names = names_of_both(own, names)?;
            }
            (Self::Network { purpose: own, hosts: reached }, Self::Network { purpose, hosts }) => {
                (*purpose, *hosts) = (name_of_both(own, purpose)?, hosts_of_both(reached, hosts)?);
            }
            (
                Self::ScopedFs { root: own, read: r, write: w, execute: x },
                Self::ScopedFs { root, read, write, execute },
            ) if own == root => modes_of_both([(r, read), (w, write), (x, execute)])?,
            (Self::WorkItemStore { read: r, write: w }, Self::WorkItemStore { read, write })
            | (Self::MemoryStore { read: r, write: w }, Self::MemoryStore { read, write }) => {
                modes_of_both([(r, read), (w, write)])?;
            }
            (
                Self::EmitModelNotification { max_bytes, per_turn },
                Self::EmitModelNotification { max_bytes: bytes, per_turn: times },
            ) => {
                (*bytes, *times) = (*max_bytes.min(bytes), *per_turn.min(times));
                (*bytes > 0 && *times > 0).then_some(())?;
            }
            (Self::ContributeHook { .. } | Self::StateStore { .. } | Self::EmitUserAlert, asked) if self == asked => {}
            _ => return None,
        }
        Some(both)
    }

    /// Whether a grant of `self` includes all of `asked`.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        self.meet(asked).is_some_and(|both| both == *asked)
    }

    /// Whether a refusal of `self` hits any part of `asked`. A refusal to write lets a feature read.
    pub(crate) fn conflicts_with(&self, asked: &Self) -> bool {
        if let Self::ScopedFs { root, read: _, write, execute } = self
            && (*write || *execute)
        {
            let changing = Self::ScopedFs { root: root.clone(), read: false, write: *write, execute: *execute };
            return changing.meet(asked).is_some();
        }
        self.meet(asked).is_some()
    }

    /// What a grant of `self` leaves of `asked`, where the rest is of use without the whole: hosts that both mean, the
    /// smaller numbers of notifications.
    pub(crate) fn leaves(&self, asked: &Self) -> Option<Self> {
        let divisible = matches!(asked, Self::Network { .. } | Self::EmitModelNotification { .. });
        self.meet(asked).filter(|left| divisible || left == asked)
    }

    /// Two things that are left of one request, together.
    pub(crate) fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Network { purpose, hosts }, Self::Network { hosts: more, .. }) => {
                Self::Network { purpose, hosts: sorted(hosts.iter().chain(more.iter()).cloned().collect()) }
            }
            (one, _) => one,
        }
    }

    /// The part that only reads, of what reads and writes.
    pub(crate) fn reading(&self) -> Option<Self> {
        let mut part = self.clone();
        if let Self::ScopedFs { read: true, write, .. }
        | Self::WorkItemStore { read: true, write }
        | Self::MemoryStore { read: true, write } = &mut part
        {
            return std::mem::take(write).then_some(part);
        }
        None
    }

    /// Whether both are about the same thing, so that a word on one is a word on the other.
    pub(crate) fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ScopedFs { root, .. }, Self::ScopedFs { root: other, .. }) => root == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Some names; `*` is any.
type Names = Cow<'static, [Text]>;

fn name_of_both(own: &Text, asked: &Text) -> Option<Text> {
    if asked == "*" { Some(own) } else { (own == "*" || own == asked).then_some(asked) }.cloned()
}

fn names_of_both(own: &Names, asked: &Names) -> Option<Names> {
    let any = |names: &Names| names.iter().any(|name| name == "*");
    if any(own) || any(asked) {
        return Some(if any(own) { asked.clone() } else { own.clone() });
    }
    let both: Vec<_> = asked.iter().filter(|name| own.contains(name)).cloned().collect();
    (!both.is_empty()).then(|| both.into())
}

fn hosts_of_both(own: &Names, asked: &Names) -> Option<Names> {
    let of = |asked: &Text| match own.iter().any(|own| includes(own, asked)) {
        true => vec![asked.clone()],
        false => own.iter().filter(|own| includes(asked, own)).cloned().collect(),
    };
    let both: Vec<Text> = asked.iter().flat_map(of).collect();
    if both.is_empty() {
        return None;
    }
    Some(if both == **asked { asked.clone() } else { sorted(both) })
}

/// Whether a pattern of hosts includes another; what is no pattern includes nothing and is included nowhere.
fn includes(own: &str, asked: &str) -> bool {
    let (own, asked) = (own.parse::<HostPattern>(), asked.parse::<HostPattern>());
    own.ok().zip(asked.ok()).is_some_and(|(own, asked)| own.covers(&asked))
}

fn sorted(mut names: Vec<Text>) -> Names {
    names.sort();
    names.dedup();
    names.into()
}

/// Leaves the modes that are on in both, if any.
fn modes_of_both<const N: usize>(both: [(&bool, &mut bool); N]) -> Option<()> {
    let left = both.map(|(own, asked)| {
        *asked &= *own;
        *asked
    });
    left.contains(&true).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fs(read: bool, write: bool) -> HostCapability {
        HostCapability::ScopedFs { root: "workspace".into(), read, write, execute: false }
    }

    // What is common is asked for, however the two are turned; a refusal of one name hits a request for any.
    #[test]
    fn two_capabilities_meet_in_what_both_mean() {
        let hosts = |hosts: &[&'static str]| {
            let hosts = hosts.iter().map(|host| Text::from(*host)).collect::<Vec<_>>();
            HostCapability::Network { purpose: "docs".into(), hosts: hosts.into() }
        };
        let notify = |max_bytes, per_turn| HostCapability::EmitModelNotification { max_bytes, per_turn };
        let rows = [
            (HostCapability::secret("*"), HostCapability::secret("key"), Some(HostCapability::secret("key"))),
            (HostCapability::secret("key"), HostCapability::tool("key"), None),
            (fs(true, true), fs(true, false), Some(fs(true, false))),
            (fs(true, false), fs(false, true), None),
            (hosts(&["*.a.org"]), hosts(&["b.org", "x.a.org"]), Some(hosts(&["x.a.org"]))),
            (notify(100, 1), notify(10, 2), Some(notify(10, 1))),
        ];
        for (one, other, both) in rows {
            assert_eq!(one.meet(&other), both, "{one} and {other}");
            assert_eq!(other.meet(&one), both, "{other} and {one}");
            assert_eq!(one.covers(&other), both.as_ref() == Some(&other), "{one} covers {other}");
        }
        assert!(HostCapability::secret("key").conflicts_with(&HostCapability::secret("*")));
        assert!(!fs(true, true).conflicts_with(&fs(true, false)), "a refusal to write lets a feature read");
    }
}
