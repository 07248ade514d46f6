//! The declared contributions of one kind, and what `install()` staged for each. The one place that compares the two.

use super::stage::Staging;
use crate::feature::decide::report::SkippedContribution;
use crate::feature::declare::contribution::Contribution;
use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::id::FeatureId;

/// One slot for each declaration of a kind.
pub(super) struct Slots<D, S>(Vec<Slot<D, S>>);

struct Slot<D, S> {
    name: String,
    declared: D,
    /// Whether the plan left it out: what is staged for it is dropped.
    is_left_out: bool,
    staged: Option<S>,
}

impl<D: Contribution + Clone, S> Slots<D, S> {
    /// Empty slots, in the order of the declarations.
    pub(super) fn new(declared: &[D], skipped: &[SkippedContribution]) -> Self {
        let slot = |declared: &D| {
            let name = declared.name();
            let is_left_out = skipped
                .iter()
                .any(|skipped| skipped.kind == D::KIND && skipped.name == name);
            Slot {
                name,
                declared: declared.clone(),
                is_left_out,
                staged: None,
            }
        };
        Self(declared.iter().map(slot).collect())
    }

    /// The same, by name.
    pub(super) fn sorted(mut self) -> Self {
        self.0.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    fn slot(&self, name: &str, of: &FeatureId) -> Result<&Slot<D, S>, FeatureInstallError> {
        let slot = self.0.iter().find(|slot| slot.name == name);
        slot.ok_or_else(|| FeatureInstallError::undeclared(D::KIND, name, of))
    }

    /// The declaration of this name; none if the plan left it out.
    pub(super) fn declared(
        &self,
        name: &str,
        of: &FeatureId,
    ) -> Result<Option<&D>, FeatureInstallError> {
        let slot = self.slot(name, of)?;
        Ok((!slot.is_left_out).then_some(&slot.declared))
    }

    /// Whether something may be staged under this name. `difference` says in what it is not what was declared.
    pub(super) fn check(
        &self,
        name: &str,
        of: &FeatureId,
        difference: impl FnOnce(&D) -> Option<&'static str>,
    ) -> Result<Staging, FeatureInstallError> {
        let slot = self.slot(name, of)?;
        if slot.is_left_out {
            return Ok(Staging::Skipped);
        }
        if slot.staged.is_some() {
            return Err(FeatureInstallError::twice(D::KIND, name, of));
        }
        match difference(&slot.declared) {
            Some(what) => Err(FeatureInstallError::differs(D::KIND, name, of, what)),
            None => Ok(Staging::Staged),
        }
    }

    /// Fills a slot.
    pub(super) fn put(&mut self, name: &str, staged: S) {
        if let Some(slot) = self.0.iter_mut().find(|slot| slot.name == name) {
            slot.staged = Some(staged);
        }
    }

    /// Checks something, and fills its slot with it.
    pub(super) fn stage(
        &mut self,
        name: &str,
        of: &FeatureId,
        difference: impl FnOnce(&D) -> Option<&'static str>,
        staged: S,
    ) -> Result<Staging, FeatureInstallError> {
        let staging = self.check(name, of, difference)?;
        if staging == Staging::Staged {
            self.put(name, staged);
        }
        Ok(staging)
    }

    pub(super) fn get(&self, name: &str) -> Option<&S> {
        let slot = self.0.iter().find(|slot| slot.name == name);
        slot.and_then(|slot| slot.staged.as_ref())
    }

    fn kept(&self) -> impl Iterator<Item = &Slot<D, S>> {
        self.0.iter().filter(|slot| !slot.is_left_out)
    }

    /// The declarations that the plan did not leave out.
    pub(super) fn planned(&self) -> impl Iterator<Item = &D> {
        self.kept().map(|slot| &slot.declared)
    }

    /// What is still to be staged, as messages.
    pub(super) fn missing(&self, of: &FeatureId) -> impl Iterator<Item = String> {
        let empty = self.kept().filter(|slot| slot.staged.is_none());
        empty.map(|slot| D::KIND.missing(&slot.name, of))
    }

    /// What was staged, with the declarations.
    pub(super) fn into_staged(self) -> impl Iterator<Item = (D, S)> {
        self.0
            .into_iter()
            .filter_map(|slot| Some((slot.declared, slot.staged?)))
    }
}

/// The first part that is not the same.
pub(super) fn first_difference(parts: &[(&'static str, bool)]) -> Option<&'static str> {
    parts
        .iter()
        .find_map(|(what, is_same)| (!is_same).then_some(*what))
}
