//! Features in any number, each with one tool and one grant; every other provides a service to the next.

use llm_worker::tool::{ArgumentError, Prepared};
use llm_worker::{Tool, ToolDefinition, ToolEffect, ToolOutput};
use pod::feature::{
    CapabilityPolicy, CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, FeatureRegistryBuilder, HostCapability, ServiceDeclaration,
    ServiceKey, ServiceRequirement, ToolContribution, ToolDeclaration,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often features were called.
#[derive(Debug, Default)]
pub struct Called {
    /// For their descriptors.
    pub descriptors: AtomicU64,
    /// To install.
    pub installs: AtomicU64,
}

struct Synthetic {
    number: usize,
    service: ServiceKey<dyn Service>,
    called: Arc<Called>,
}

impl Synthetic {
    fn provides(&self) -> bool {
        self.number.is_multiple_of(2)
    }
}

trait Service: Send + Sync {}

struct Idle;

impl Service for Idle {}

struct Echo(ToolDefinition);

impl Tool for Echo {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn prepare(&self, _: &str) -> Result<Prepared, ArgumentError> {
        Ok(Prepared::new(Arc::from("{}"), Vec::new(), |_| {
            Box::pin(async { Ok(ToolOutput::default()) })
        }))
    }
}

fn id(number: usize) -> FeatureId {
    format!("builtin:synthetic-{number}").parse().unwrap()
}

fn definition(number: usize) -> ToolDefinition {
    let name = format!("Tool{number}");
    let schema = r#"{"type":"object"}"#.into();
    ToolDefinition {
        name,
        description: "Does nothing.".into(),
        schema,
        effect: ToolEffect::ReadOnly,
    }
}

impl FeatureModule for Synthetic {
    fn descriptor(&self) -> FeatureDescriptor {
        self.called.descriptors.fetch_add(1, Ordering::Relaxed);
        let read = CapabilityRequest::optional(HostCapability::READ_WORKSPACE, "to be measured");
        let descriptor = FeatureDescriptor::builder(id(self.number))
            .request(read)
            .foreign_tool(ToolDeclaration::of(definition(self.number)));
        let descriptor = if self.provides() {
            descriptor.provides(ServiceDeclaration::of(self.service, "1.0.0"))
        } else {
            descriptor.requires(ServiceRequirement::required(self.service, "^1"))
        };
        descriptor.build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        self.called.installs.fetch_add(1, Ordering::Relaxed);
        let tool = ToolContribution::new(
            id(self.number),
            Arc::new(Echo(definition(self.number))),
            Vec::new(),
        );
        if self.provides() {
            ctx.services().provide(self.service, Arc::new(Idle))?;
        } else {
            ctx.services().require(self.service)?;
        }
        ctx.tools().register(tool).map(drop)
    }
}

/// `count` features, all of them granted what they ask for.
pub fn builder(count: usize, called: &Arc<Called>) -> FeatureRegistryBuilder {
    let policy = (0..count).fold(CapabilityPolicy::nothing(), |policy, number| {
        let files = HostCapability::READ_WORKSPACE;
        let service = if number.is_multiple_of(2) {
            HostCapability::provide("*")
        } else {
            HostCapability::using("*")
        };
        let policy = policy.grant(id(number), HostCapability::tool("*"), "bench");
        policy
            .grant(id(number), files, "bench")
            .grant(id(number), service, "bench")
    });
    // A key is a constant; these are as many as features and live as long as the program.
    let name = |number: usize| -> &'static str {
        Box::leak(format!("bench.s{}.v1", number / 2).into_boxed_str())
    };
    let module = |number| -> Arc<dyn FeatureModule> {
        Arc::new(Synthetic {
            number,
            service: ServiceKey::new(name(number)),
            called: called.clone(),
        })
    };
    FeatureRegistryBuilder::new(policy).with_all((0..count).map(module))
}
