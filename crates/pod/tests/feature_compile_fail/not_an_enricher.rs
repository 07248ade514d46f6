//! An enricher says what it changes of a tool.
use pod::feature::author::*;

struct Labels;

const LABELS: EnrichKey = EnrichKey::new("labels", &["*"]);

fn stage(ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
    ctx.tools().enrich(&LABELS, Arc::new(Labels))?;
    Ok(())
}

fn main() {}
