//! A run of a background task returns no value: what people or the model should know goes through a sink.
use llm_worker::ToolEffect;
use pod::feature::{BackgroundTaskContext, FeatureInstallContext, TaskError, TaskKey};
use std::sync::Arc;

const REFRESH: TaskKey = TaskKey::new("refresh", ToolEffect::ReadOnly).at_start();

struct Live;

impl Live {
    async fn refresh(self: Arc<Self>, _: BackgroundTaskContext) -> Result<String, TaskError> {
        Ok(String::new())
    }
}

fn install(ctx: &mut FeatureInstallContext<'_>) {
    let _ = ctx.background_tasks().run(&REFRESH, &Arc::new(Live), Live::refresh);
}

fn main() {}
