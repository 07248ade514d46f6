//! The method of a background task takes the context of the run, and nothing else.
use llm_worker::ToolEffect;
use pod::feature::{FeatureInstallContext, TaskKey, TaskResult};
use std::sync::Arc;

const REFRESH: TaskKey = TaskKey::new("refresh", ToolEffect::ReadOnly).at_start();

struct Live;

impl Live {
    async fn refresh(self: Arc<Self>, _: u64) -> TaskResult {
        Ok(())
    }
}

fn install(ctx: &mut FeatureInstallContext<'_>) {
    let _ = ctx.background_tasks().run(&REFRESH, &Arc::new(Live), Live::refresh);
}

fn main() {}
