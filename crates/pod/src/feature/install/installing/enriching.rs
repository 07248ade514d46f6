//! Asks the enrichers about the installed tools, once all features are installed. An enricher that fails, or changes what
//! it may not change, leaves the tool as it was.

use super::Installing;
use crate::feature::decide::plan::FeatureDemand;
use crate::feature::decide::report::{Enriched, FeatureInstallReport};
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::text::secret;
use crate::feature::declare::tool_schema::ToolSchema;
use crate::feature::live::enrich::{ArgumentEnricher, Enrichment, ToolEnricher};
use crate::feature::live::registry::RegisteredTool;
use crate::foreign::installs::{CallbackEnd, InstallCallback};
use authority::Door;
use serde_json::Value;
use std::sync::Arc;

/// An enricher of an installed feature.
pub(super) struct InstalledEnricher {
    pub(super) feature: FeatureId,
    pub(super) declaration: EnricherDeclaration,
    pub(super) code: Arc<dyn ToolEnricher>,
    pub(super) door: Arc<Door>,
}

/// A tool and what the enricher made of it.
type Answer = (String, Result<ToolSchema, String>);

impl Installing {
    /// Asks each enricher, in install order, about the tools as the earlier ones left them.
    pub(super) fn enrich(&mut self) {
        for enricher in std::mem::take(&mut self.enrichers) {
            let of = |tool: &&RegisteredTool| {
                enricher
                    .declaration
                    .means(&tool.definition.name, tool.category.as_ref())
            };
            let tools = self.registry.tools.by_name.values().filter(of);
            let tools: Vec<_> = tools
                .map(|t| (t.definition.name.clone(), ToolSchema::of(&t.definition)))
                .collect();
            if tools.is_empty() {
                continue;
            }
            let failed = match self.runner.run_all(vec![asking(&enricher, tools)]).pop() {
                Some(CallbackEnd::Done { value, .. }) => {
                    value
                        .into_iter()
                        .for_each(|(tool, answer)| self.answered(&enricher, &tool, answer));
                    continue;
                }
                Some(CallbackEnd::Panicked { message }) => format!("panicked: {message}"),
                Some(CallbackEnd::TimedOut) => "did not return in time".to_owned(),
                Some(CallbackEnd::NotCalled) | None => {
                    "was not called: too many calls of other features hang".to_owned()
                }
            };
            self.diagnose(&enricher, DiagnosticCode::EnricherFailed, &failed);
        }
    }

    fn answered(
        &mut self,
        enricher: &InstalledEnricher,
        tool: &str,
        answer: Result<ToolSchema, String>,
    ) {
        let after = match answer {
            Ok(after) => after,
            Err(why) => {
                return self.diagnose(
                    enricher,
                    DiagnosticCode::EnricherFailed,
                    &format!("failed for `{tool}`: {why}"),
                );
            }
        };
        if let Err(why) = self.apply(enricher, tool, &after) {
            let refused = format!("changed `{tool}` in a way that is refused: {why}");
            self.diagnose(enricher, DiagnosticCode::EnrichmentRefused, &refused);
        }
    }

    /// Changes the definition of a tool.
    fn apply(
        &mut self,
        enricher: &InstalledEnricher,
        name: &str,
        after: &ToolSchema,
    ) -> Result<(), String> {
        let Some(tool) = self.registry.tools.by_name.get_mut(name) else {
            return Ok(());
        };
        let before = ToolSchema::of(&tool.definition);
        if *after == before {
            return Ok(());
        }
        let narrowing = after.narrowed_from(&before)?;
        let description = Value::from(after.description.clone());
        let redactor = self.host.redactor();
        if let Some(found) =
            secret(&after.arguments, redactor).or_else(|| secret(&description, redactor))
        {
            return Err(format!("it contains {found}"));
        }
        let definition = after.definition(&tool.definition);
        let now = (&*definition.description, &*definition.schema);
        let was = (&*tool.definition.description, &*tool.definition.schema);
        let mut demand = FeatureDemand::default();
        demand.grown(now, was);
        let sizes = [was, now].map(|(description, schema)| {
            u64::try_from(description.len() + schema.len()).unwrap_or(u64::MAX)
        });
        let id = (enricher.feature.clone(), enricher.declaration.name.clone());
        let properties = narrowing.properties;
        let of_arguments = (!properties.is_empty()).then(|| {
            ArgumentEnricher::new(
                id,
                Arc::clone(&enricher.code),
                Arc::clone(&enricher.door),
                properties.clone(),
            )
        });
        let enrichment = match &tool.enrichment {
            Some(earlier) => earlier.with(after, of_arguments)?,
            None => Enrichment::new(tool.definition.clone()).with(after, of_arguments)?,
        };
        self.budget
            .take(&enricher.feature, demand)
            .map_err(|full| full.message)?;
        (tool.definition, tool.enrichment) = (definition, Some(Arc::new(enrichment)));
        let owner = tool.feature.clone();
        let [was, now] = sizes;
        self.report(&owner, |report| report.resize(was, now));
        let tool = name.to_owned();
        let by = enricher.declaration.name.clone();
        let enriched = Enriched {
            tool,
            by,
            properties: properties.into_iter().collect(),
        };
        self.report(&enricher.feature, |report| report.enriched.push(enriched));
        Ok(())
    }

    fn diagnose(&mut self, enricher: &InstalledEnricher, code: DiagnosticCode, what: &str) {
        let InstalledEnricher {
            feature,
            declaration,
            ..
        } = enricher;
        let message = format!("enricher `{}` of {feature} {what}", declaration.name);
        let diagnostic = FeatureDiagnostic::quoting(code, feature, &message, self.host.redactor());
        self.report(feature, |report| report.diagnostics.push(diagnostic));
    }

    fn report(&mut self, feature: &FeatureId, change: impl FnOnce(&mut FeatureInstallReport)) {
        self.reports
            .values_mut()
            .find(|report| report.feature_id == *feature)
            .map(change);
    }
}

/// The call of an enricher about its tools. Under its door, so that a revocation waits for it.
fn asking(
    enricher: &InstalledEnricher,
    tools: Vec<(String, ToolSchema)>,
) -> InstallCallback<Vec<Answer>> {
    let code = Arc::clone(&enricher.code);
    let door = Arc::clone(&enricher.door);
    Box::new(move || {
        let Ok(_inside) = door.enter() else {
            return Vec::new();
        };
        let ask = |(name, mut schema): (String, ToolSchema)| {
            let answer = code.enrich(&name, &mut schema).map(|()| schema);
            (name, answer)
        };
        tools.into_iter().map(ask).collect()
    })
}
