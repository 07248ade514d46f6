//! What `docs/FEATURES.md` shows of categories and enrichers: a tool that works with a tracker, and a feature that serves
//! its category and narrows it.

use pod::feature::author::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use testkit::{FeatureHost, FnTool, conformance};

const FILE: ToolKey<Filed> =
    ToolKey::new("FileIssue", ToolEffect::Effectful, "File an issue.").category("issue-tracker");
const LABELS: EnrichKey = EnrichKey::new("labels", &["*"]).category("issue-tracker");

#[derive(Serialize, Deserialize, JsonSchema)]
struct Filed {
    labels: Vec<String>,
}

struct Filing;

impl FeatureModule for Filing {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("filing"))
            .version("0.1.0")
            .tool(&FILE)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.tools()
            .implement(&FILE, &Arc::new(()), |_, args: Filed, _| async move {
                Ok(ToolOutput {
                    summary: args.labels.join(","),
                    ..ToolOutput::default()
                })
            })?;
        Ok(())
    }
}

struct Tracker;

impl FeatureModule for Tracker {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("tracker"))
            .version("0.1.0")
            .serves(ToolCategory::new("issue-tracker"))
            .enriches(&LABELS)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.tools().enrich(&LABELS, Arc::new(Labels))?;
        Ok(())
    }
}

struct Labels;

impl ToolEnricher for Labels {
    fn enrich(&self, _tool: &str, schema: &mut ToolSchema) -> Result<(), String> {
        schema.choices("labels", ["ui", "core"]);
        Ok(())
    }

    fn arguments(&self, _tool: &str, arguments: &mut Map<String, Value>) -> Result<(), String> {
        if let Some(Value::Array(labels)) = arguments.get_mut("labels") {
            labels.dedup();
        }
        Ok(())
    }
}

#[test]
fn the_tool_is_there_with_the_tracker_and_takes_its_labels() {
    let mut host = FeatureHost::new()
        .permit_all()
        .with(Filing)
        .install(Tracker);
    assert_eq!(
        host.call("FileIssue", json!({"labels": ["ui", "ui"]}))
            .text(),
        "ui"
    );
    let refused = host.call("FileIssue", json!({"labels": ["new"]})).text();
    assert!(
        refused.contains("/labels/0: ") && !refused.contains("null"),
        "{refused}"
    );
    assert_eq!(host.report().enriched[0].properties, ["labels"]);
    let other = FnTool::new("Other", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput::default())
    });
    let alone = FeatureHost::new().tool(other).install(Filing);
    assert_eq!(alone.report().skipped_contributions[0].name, "FileIssue");
}

#[test]
fn they_keep_the_contract() {
    conformance(|| Tracker).assert();
    conformance(|| Filing)
        .on(|| FeatureHost::new().with(Tracker))
        .assert();
}
