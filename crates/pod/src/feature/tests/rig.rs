//! Features made of closures.

use crate::feature::*;
use llm_worker::{Tool, ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) type Install =
    dyn Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> + Send + Sync;

pub(crate) struct Fake {
    pub(crate) descriptor: Box<dyn Fn() -> FeatureDescriptor + Send + Sync>,
    pub(crate) install: Box<Install>,
}

impl FeatureModule for Fake {
    fn descriptor(&self) -> FeatureDescriptor {
        (self.descriptor)()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        (self.install)(ctx)
    }
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Args {
    pub(crate) word: String,
    #[serde(default)]
    pub(crate) times: u32,
}

pub(crate) struct Live;

impl Live {
    pub(crate) async fn say(self: Arc<Self>, args: Args, _: ToolContext) -> ToolResult {
        Ok(ToolOutput {
            summary: format!("{} x{}", args.word, args.times),
            content: String::new(),
            data: None,
        })
    }
}

pub(crate) const fn key(name: &'static str) -> ToolKey<Args> {
    ToolKey::new(name, ToolEffect::ReadOnly, "Say a word.")
}

/// A tool with a schema of its own.
pub(crate) struct Foreign(pub(crate) ToolDefinition);

impl Tool for Foreign {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn prepare(
        &self,
        _: &str,
    ) -> Result<llm_worker::tool::Prepared, llm_worker::tool::ArgumentError> {
        let none = Arc::from("{}");
        Ok(llm_worker::tool::Prepared::new(none, Vec::new(), |_| {
            Box::pin(async { Ok(ToolOutput::default()) })
        }))
    }
}

pub(crate) fn foreign(name: &str) -> ToolDefinition {
    let schema = r#"{"type":"object"}"#.into();
    ToolDefinition {
        name: name.into(),
        description: "From afar.".into(),
        schema,
        effect: ToolEffect::Effectful,
    }
}

pub(crate) fn id(text: &str) -> FeatureId {
    text.parse().unwrap()
}

/// `id` with one typed tool per name, all staged.
pub(crate) fn feature(id_text: &str, tools: &'static [&'static str]) -> Arc<dyn FeatureModule> {
    with(declaring(id_text, tools).build(), move |ctx| {
        stage_all(ctx, tools)
    })
}

pub(crate) fn declaring(id_text: &str, tools: &[&'static str]) -> FeatureDescriptorBuilder {
    let start = FeatureDescriptor::builder(id(id_text)).version("1.0.0");
    tools
        .iter()
        .fold(start, |builder, name| builder.tool(&key(name)))
}

pub(crate) fn stage_all(
    ctx: &mut FeatureInstallContext<'_>,
    tools: &[&'static str],
) -> Result<(), FeatureInstallError> {
    let live = Arc::new(Live);
    for name in tools {
        ctx.tools().implement(&key(name), &live, Live::say)?;
    }
    Ok(())
}

pub(crate) fn with(
    descriptor: FeatureDescriptor,
    install: impl Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>
    + Send
    + Sync
    + 'static,
) -> Arc<dyn FeatureModule> {
    Arc::new(Fake {
        descriptor: Box::new(move || descriptor.clone()),
        install: Box::new(install),
    })
}

pub(crate) fn any_tool() -> HostCapability {
    HostCapability::tool("*")
}

/// Every tool to every id.
pub(crate) fn tools_for(ids: &[&str]) -> CapabilityPolicy {
    ids.iter()
        .fold(CapabilityPolicy::nothing(), |policy, text| {
            policy.grant(id(text), any_tool(), "test")
        })
}

pub(crate) fn build(
    policy: CapabilityPolicy,
    modules: Vec<Arc<dyn FeatureModule>>,
) -> FeatureRegistryBuilder {
    FeatureRegistryBuilder::new(policy).with_all(modules)
}

pub(crate) fn codes(diagnostics: &[FeatureDiagnostic]) -> Vec<DiagnosticCode> {
    diagnostics.iter().map(|d| d.code).collect()
}

/// What a pod would see of a registry: surface, instructions and owners.
pub(crate) fn surface(registry: &FeatureRegistry) -> String {
    let tools: Vec<_> = registry
        .tools()
        .iter()
        .map(|t| (t, t.definition.clone()))
        .collect();
    format!(
        "{tools:?} {:?} {:?}",
        registry.instructions(),
        registry.report().order
    )
}
