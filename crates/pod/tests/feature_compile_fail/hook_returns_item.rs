//! A hook cannot put words before the model.
use llm_worker::Item;
use pod::feature::{FeatureInstallContext, HookKey};
use pod::hook::{PreRequest, RequestView};
use std::sync::Arc;

const GATE: HookKey<PreRequest> = HookKey::new("gate");

struct Live;

impl Live {
    fn add(&self, _: &RequestView) -> Item {
        Item::user("do more".to_owned())
    }
}

fn install(ctx: &mut FeatureInstallContext<'_>) {
    drop(ctx.hooks().gate(&GATE, &Arc::new(Live), Live::add));
}

fn main() {}
