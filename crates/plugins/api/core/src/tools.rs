//! `builtin:sources`: the tools of all categories, each declared once, which ask the providers through their services. A
//! tool is there where a provider serves its category; with several, its argument `provider` says which.

mod answers;
mod table;

pub use answers::PROVIDER;
pub use table::{Row, TABLE};

use crate::category::CATEGORIES;
use crate::provider::{
    EPICS, ISSUES, MEETING_NOTES, MERGE_REQUESTS, MESSENGER, PIPELINES, RELEASES,
};
use answers::{Hub, Wanted};
use llm_worker::{ToolDefinition, ToolEffect};
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HostCapability, ServiceRequirement, ToolCategory, ToolContribution, ToolDeclaration, TouchKind,
    TouchRule,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("sources");

/// What the feature has to be granted.
pub const GRANTS: [HostCapability; 8] = [
    HostCapability::tool("*"),
    ISSUES.admission(),
    MERGE_REQUESTS.admission(),
    PIPELINES.admission(),
    RELEASES.admission(),
    EPICS.admission(),
    MESSENGER.admission(),
    MEETING_NOTES.admission(),
];

/// The feature that offers the tools of all providers.
#[derive(Debug)]
pub struct CategoryTools {
    tools: Vec<ToolDeclaration>,
    /// What is left out, and why.
    notes: Vec<String>,
}

/// A provider of a category.
#[derive(Debug)]
struct Offer {
    instance: String,
    /// What a call of it touches.
    host: String,
}

impl CategoryTools {
    /// The tools for these features, of which some are providers: all that are on.
    #[must_use]
    pub fn of(features: &[FeatureDescriptor]) -> Self {
        let mut tools = Vec::new();
        let mut notes = Vec::new();
        for category in CATEGORIES {
            let offers = offers(category.services, features);
            let rows: Vec<&Row> = TABLE
                .iter()
                .filter(|row| row.category == category.name)
                .collect();
            let served_otherwise = features.iter().find(|feature| {
                let mut served = feature.serves.iter();
                offers.is_empty() && served.any(|of| of.as_str() == category.name)
            });
            if let Some(other) = served_otherwise {
                let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
                notes.push(format!(
                    "left out: {}: {} serves their category `{}`, but is no provider",
                    names.join(", "),
                    other.id,
                    category.name
                ));
                continue;
            }
            tools.extend(rows.iter().map(|row| row.declared(&offers)));
        }
        Self { tools, notes }
    }

    /// Whether one of these features is a provider.
    #[must_use]
    pub fn has_provider(features: &[FeatureDescriptor]) -> bool {
        let mut services = CATEGORIES.iter().flat_map(|of| of.services);
        services.any(|service| !offers(&[*service], features).is_empty())
    }
}

/// The providers of a category: features that provide instances of its services.
fn offers(services: &[&str], features: &[FeatureDescriptor]) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    for feature in features {
        for provided in &feature.provides {
            let id = &provided.service;
            let Some(instance) = id
                .instance
                .as_ref()
                .filter(|_| services.contains(&id.name.as_str()))
            else {
                continue;
            };
            if offers.iter().all(|offer| offer.instance != *instance) {
                offers.push(Offer {
                    instance: instance.clone(),
                    host: host(feature).unwrap_or_else(|| instance.clone()),
                });
            }
        }
    }
    offers
}

/// The first host that a feature asks for by name.
fn host(feature: &FeatureDescriptor) -> Option<String> {
    let mut asked = feature.requested_capabilities.iter();
    asked.find_map(|request| match &request.capability {
        HostCapability::Network { hosts: names, .. }
        | HostCapability::Endpoint { at: names, .. } => {
            let name = names.first().filter(|name| !name.starts_with('*'))?;
            Some(name.strip_suffix(":443").unwrap_or(name).to_owned())
        }
        _ => None,
    })
}

impl Row {
    fn declared(&self, offers: &[Offer]) -> ToolDeclaration {
        let mut schema: Value = serde_json::from_str(&(self.schema)()).unwrap_or_default();
        if offers.len() > 1 {
            add_provider(&mut schema, offers);
        }
        schema.sort_all_objects();
        let definition = ToolDefinition {
            name: self.name.to_owned(),
            description: self.about.to_owned(),
            schema: schema.to_string().into(),
            effect: self.effect,
        };
        let is = match self.effect {
            ToolEffect::ReadOnly => TouchKind::Host,
            ToolEffect::Idempotent | ToolEffect::Effectful => TouchKind::RemoteWrite,
        };
        let touch = match offers {
            [one] => TouchRule::fixed(is, one.host.clone()),
            [] => TouchRule::fixed(is, self.category),
            _ => TouchRule::at(is, format!("/{PROVIDER}")),
        };
        ToolDeclaration {
            category: Some(ToolCategory::new(self.category)),
            ..ToolDeclaration::of(definition)
        }
        .touching(touch)
    }
}

/// Adds the argument that says which provider.
fn add_provider(schema: &mut Value, offers: &[Offer]) {
    let names: Vec<&str> = offers.iter().map(|offer| offer.instance.as_str()).collect();
    let provider =
        json!({ "type": "string", "enum": names, "description": "Which tracker or service." });
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    for (key, empty) in [("properties", json!({})), ("required", json!([]))] {
        schema.entry(key).or_insert(empty);
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(PROVIDER.to_owned(), provider);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push(PROVIDER.into());
    }
}

impl FeatureModule for CategoryTools {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(ID)
            .display_name("Issues, repositories, chats and meetings")
            .version(env!("CARGO_PKG_VERSION"))
            .requires(ServiceRequirement::each(ISSUES, "^1"))
            .requires(ServiceRequirement::each(MERGE_REQUESTS, "^1"))
            .requires(ServiceRequirement::each(PIPELINES, "^1"))
            .requires(ServiceRequirement::each(RELEASES, "^1"))
            .requires(ServiceRequirement::each(EPICS, "^1"))
            .requires(ServiceRequirement::each(MESSENGER, "^1"))
            .requires(ServiceRequirement::each(MEETING_NOTES, "^1"));
        let tools = self.tools.iter().cloned();
        tools
            .fold(builder, |builder, tool| builder.foreign_tool(tool))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let hub = Arc::new(Hub::of(ctx)?);
        for note in &self.notes {
            ctx.diagnostics().note(note)?;
        }
        for declared in &self.tools {
            let Some(row) = TABLE.iter().find(|row| row.name == declared.name) else {
                continue;
            };
            let hub = Arc::clone(&hub);
            let run = move |arguments: Arc<str>, cx| {
                let hub = Arc::clone(&hub);
                async move {
                    let answered = (row.ask)(hub, Wanted::read(&arguments)?);
                    answers::run(row.effect, answered, cx).await
                }
            };
            ctx.tools()
                .register(ToolContribution::of_text(ID, declared, run))?;
        }
        Ok(())
    }
}

/// The descriptor with all tools and no provider, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    CategoryTools::of(&[]).descriptor()
}
