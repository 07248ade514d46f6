//! What the calls of one answer touch: calls that touch the same run one after the other, in the order of the answer.
//! Does not depend on how a call runs.

use crate::permission::says_what_changes;
use authority::{Location, Stamp, Workspace};
use llm_worker::tool::Touch;
use llm_worker::{CallId, ToolEffect};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What one call touches.
#[derive(Clone, Debug)]
pub(crate) enum Claims {
    /// Perhaps anything, like a command.
    All,
    Some(Vec<Claim>),
}

#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// A file, or a directory with all that is in it; by its real path, and by its state if it exists.
    Path {
        path: PathBuf,
        stamp: Option<Stamp>,
        writes: bool,
    },
    Session,
}

impl Claims {
    /// Reads directory entries to resolve paths. A path that cannot be resolved may be any.
    pub(crate) fn of(effect: ToolEffect, touches: &[Touch], workspace: &Workspace) -> Self {
        if effect != ToolEffect::ReadOnly && !says_what_changes(touches) {
            return Self::All;
        }
        let mut claims = Vec::with_capacity(touches.len());
        for touch in touches {
            let (path, writes) = match touch {
                Touch::Read(path) => (path, false),
                Touch::Write(path) => (path, true),
                Touch::Session => {
                    claims.push(Claim::Session);
                    continue;
                }
                Touch::Host(_) => continue,
                Touch::Shell(_)
                | Touch::RemoteWrite(_)
                | Touch::Escalate(..)
                | Touch::Connect(..) => return Self::All,
            };
            claims.push(match workspace.locate(path) {
                Ok(Location::Inside(at)) => {
                    let stamp = workspace.metadata(&at).ok().map(|meta| meta.stamp);
                    Claim::Path {
                        path: at.path().to_owned(),
                        stamp,
                        writes,
                    }
                }
                Ok(Location::Outside(path)) => Claim::Path {
                    path,
                    stamp: None,
                    writes,
                },
                Err(_) => return Self::All,
            });
        }
        Self::Some(claims)
    }

    fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Some(own), Self::Some(other)) => own
                .iter()
                .any(|claim| other.iter().any(|that| claim.meets(that))),
        }
    }
}

impl Claim {
    fn meets(&self, other: &Self) -> bool {
        let (
            Self::Path {
                path,
                stamp,
                writes,
            },
            Self::Path {
                path: that,
                stamp: its,
                writes: also,
            },
        ) = (self, other)
        else {
            return matches!((self, other), (Self::Session, Self::Session));
        };
        let same = stamp
            .as_ref()
            .zip(its.as_ref())
            .is_some_and(|(stamp, its)| stamp.is_of_the_same_file(its));
        (*writes || *also) && (same || path.starts_with(that) || that.starts_with(path))
    }
}

/// The calls of an answer that have no result yet, whether they run, wait, or are asked about.
#[derive(Default)]
pub(crate) struct CallOrder(BTreeMap<CallId, Claims>);

impl CallOrder {
    /// A call that may run.
    pub(crate) fn add(&mut self, call: CallId, claims: Claims) {
        self.0.insert(call, claims);
    }

    /// The call has ended, or will not run.
    pub(crate) fn end(&mut self, call: CallId) {
        self.0.remove(&call);
    }

    /// Whether no earlier call that touches the same is still to end.
    pub(crate) fn may_start(&self, call: CallId) -> bool {
        let mut earlier = self.0.range(..call);
        self.0
            .get(&call)
            .is_none_or(|claims| !earlier.any(|(_, before)| before.meet(claims)))
    }
}
