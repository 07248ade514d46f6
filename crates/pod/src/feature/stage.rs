//! What one feature has put together so far, privately: compared with its plan, then handed over whole or dropped.

use super::capability::CapabilityGrantSet;
use super::context::{RegistrarCall, RegistrarProbe, Staging};
use super::descriptor::{FeatureDescriptor, InstructionDeclaration, ToolDeclaration};
use super::diagnostic::{DiagnosticCode, FeatureDiagnostic, FeatureInstallError, MAX_NOTES};
use super::hook::HookContribution;
use super::id::FeatureId;
use super::plan::{PlannedFeature, PlannedHook};
use super::report::ContributionKind;
use super::tool::ToolContribution;
use llm_worker::ToolDefinition;
use std::collections::BTreeMap;

/// A feature's private stage. It knows the plan and refuses what is not in it.
pub(super) struct Stage {
    pub(super) feature: FeatureId,
    pub(super) grants: CapabilityGrantSet,
    planned: BTreeMap<String, ToolDeclaration>,
    planned_hooks: Vec<PlannedHook>,
    skipped: Vec<(ContributionKind, String)>,
    instructions: Vec<InstructionDeclaration>,
    tools: BTreeMap<String, ToolContribution>,
    hooks: BTreeMap<String, HookContribution>,
    notes: Vec<FeatureDiagnostic>,
    refusal: Option<FeatureInstallError>,
    probe: Option<RegistrarProbe>,
    calls: usize,
}

/// A stage that equals its plan: merging it cannot fail.
pub(super) struct Complete {
    pub(super) feature: FeatureId,
    pub(super) tools: Vec<(ToolContribution, u64)>,
    pub(super) hooks: Vec<(HookContribution, PlannedHook)>,
    pub(super) instructions: Vec<InstructionDeclaration>,
    pub(super) notes: Vec<FeatureDiagnostic>,
}

impl Stage {
    pub(super) fn new(descriptor: &FeatureDescriptor, planned: &PlannedFeature, probe: Option<RegistrarProbe>) -> Self {
        let expected = |t: &&ToolDeclaration| planned.tools.iter().any(|p| p.name == t.name);
        Self {
            feature: descriptor.id.clone(),
            grants: planned.grants.clone(),
            planned: descriptor.tools.iter().filter(expected).map(|t| (t.name.clone(), t.clone())).collect(),
            planned_hooks: planned.hooks.clone(),
            skipped: planned.skipped_contributions.iter().map(|s| (s.kind, s.name.clone())).collect(),
            instructions: descriptor.instructions.clone(),
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
            notes: Vec::new(),
            refusal: None,
            probe,
            calls: 0,
        }
    }

    /// One call into the host. A refusal is remembered, so that a feature which ignores it is not installed all
    /// the same; only a handle may be refused without that, since a feature can do without.
    pub(super) fn call<T>(
        &mut self,
        registrar: &'static str,
        name: &str,
        act: impl FnOnce(&mut Self) -> Result<T, FeatureInstallError>,
    ) -> Result<T, FeatureInstallError> {
        self.calls += 1;
        let call = RegistrarCall { feature: &self.feature, number: self.calls, registrar, name };
        let probed = self.probe.as_ref().map_or(Ok(()), |probe| probe(call));
        let result = probed.and_then(|()| act(self));
        if let (Err(error), None) = (&result, &self.refusal) {
            let survivable =
                matches!(error, FeatureInstallError::Denied { .. } | FeatureInstallError::Unavailable { .. });
            self.refusal = (!survivable).then(|| error.clone());
        }
        result
    }

    /// Takes a tool that equals its declaration. `contribution` is not called when the plan left it out.
    pub(super) fn tool(
        &mut self,
        definition: &ToolDefinition,
        contribution: impl FnOnce() -> ToolContribution,
    ) -> Result<Staging, FeatureInstallError> {
        let (kind, name, feature) = ("tool", definition.name.clone(), self.feature.clone());
        if self.leaves_out(ContributionKind::Tool, &name) {
            return Ok(Staging::Skipped);
        }
        let Some(declared) = self.planned.get(&name) else {
            return Err(FeatureInstallError::NotDeclared { kind, name, feature });
        };
        if self.tools.contains_key(&name) {
            return Err(FeatureInstallError::StagedTwice { kind, name, feature });
        }
        if let Some(what) = difference(declared, definition) {
            return Err(FeatureInstallError::Differs { kind, name, feature, what });
        }
        let contribution = contribution();
        if contribution.feature_id != feature {
            return Err(FeatureInstallError::Differs { kind, name, feature, what: "its feature id" });
        }
        if contribution.required_capabilities != declared.needs {
            return Err(FeatureInstallError::Differs { kind, name, feature, what: "its required capabilities" });
        }
        self.tools.insert(name, contribution);
        Ok(Staging::Staged)
    }

    /// Takes a hook that equals its declaration.
    pub(super) fn hook(&mut self, hook: HookContribution) -> Result<Staging, FeatureInstallError> {
        let (kind, name, feature) = ("hook", hook.name.clone(), self.feature.clone());
        if self.leaves_out(ContributionKind::Hook, &name) {
            return Ok(Staging::Skipped);
        }
        let Some(planned) = self.planned_hooks.iter().find(|planned| planned.name == name) else {
            return Err(FeatureInstallError::NotDeclared { kind, name, feature });
        };
        if self.hooks.contains_key(&name) {
            return Err(FeatureInstallError::StagedTwice { kind, name, feature });
        }
        if let Some(what) = hook.differs(planned) {
            return Err(FeatureInstallError::Differs { kind, name, feature, what });
        }
        if hook.feature_id != feature {
            return Err(FeatureInstallError::Differs { kind, name, feature, what: "its feature id" });
        }
        self.hooks.insert(name, hook);
        Ok(Staging::Staged)
    }

    fn leaves_out(&self, kind: ContributionKind, name: &str) -> bool {
        self.skipped.iter().any(|(skipped, other)| *skipped == kind && other == name)
    }

    /// Replaces the text of a declared instruction.
    pub(super) fn instruction(&mut self, name: &str, text: String) -> Result<(), FeatureInstallError> {
        let Some(declared) = self.instructions.iter_mut().find(|i| i.name == name) else {
            let (name, feature) = (name.to_owned(), self.feature.clone());
            return Err(FeatureInstallError::NotDeclared { kind: "instruction", name, feature });
        };
        super::descriptor::instruction_text(name, &text).map_err(FeatureInstallError::Exhausted)?;
        declared.text = text;
        Ok(())
    }

    pub(super) fn note(&mut self, text: &str) -> Result<(), FeatureInstallError> {
        if self.notes.len() >= MAX_NOTES {
            return Err(FeatureInstallError::Exhausted(format!("{} left {MAX_NOTES} notes already", self.feature)));
        }
        self.notes.push(FeatureDiagnostic::new(DiagnosticCode::Note, &self.feature, text));
        Ok(())
    }

    /// The whole feature, or everything that keeps it from being whole.
    pub(super) fn complete(self) -> Result<Complete, Vec<FeatureDiagnostic>> {
        let Self { feature, planned, planned_hooks, instructions, mut tools, mut hooks, notes, refusal, .. } = self;
        if let Some(refusal) = refusal {
            return Err(vec![FeatureDiagnostic::new(DiagnosticCode::InstallFailed, &feature, refusal.to_string())]);
        }
        let (mut staged, mut missing) = (Vec::new(), Vec::new());
        for (name, declared) in planned {
            match tools.remove(&name) {
                Some(tool) => staged.push((tool, declared.deadline_ms)),
                None => {
                    let message = format!("tool `{name}` of {feature} is declared but was not staged");
                    missing.push(FeatureDiagnostic::new(DiagnosticCode::PlannedNotStaged, &feature, message));
                }
            }
        }
        let mut staged_hooks = Vec::new();
        for planned in planned_hooks {
            match hooks.remove(&planned.name) {
                Some(hook) => staged_hooks.push((hook, planned)),
                None => {
                    let message = format!("hook `{}` of {feature} is declared but was not staged", planned.name);
                    missing.push(FeatureDiagnostic::new(DiagnosticCode::PlannedNotStaged, &feature, message));
                }
            }
        }
        let complete = Complete { feature, tools: staged, hooks: staged_hooks, instructions, notes };
        if missing.is_empty() { Ok(complete) } else { Err(missing) }
    }
}

fn difference(declared: &ToolDeclaration, staged: &ToolDefinition) -> Option<&'static str> {
    let pairs = [
        ("its description", declared.about == staged.description),
        ("its schema", declared.schema == staged.schema),
        ("its effect", declared.effect == staged.effect),
    ];
    pairs.into_iter().find_map(|(what, same)| (!same).then_some(what))
}
