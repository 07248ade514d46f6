//! A method must take the key's arguments.
use llm_worker::{ToolContext, ToolEffect, ToolOutput, ToolResult};
use pod::feature::{FeatureInstallContext, ToolKey};
use std::sync::Arc;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Declared {
    word: String,
}

struct Other;

const KEY: ToolKey<Declared> = ToolKey::new("Say", ToolEffect::ReadOnly, "Say a word.");

struct Live;

impl Live {
    async fn say(self: Arc<Self>, _: Other, _: ToolContext) -> ToolResult {
        Ok(ToolOutput::default())
    }
}

fn install(ctx: &mut FeatureInstallContext<'_>) {
    let _ = ctx.tools().implement(&KEY, &Arc::new(Live), Live::say);
}

fn main() {}
