//! The document's settings: declared by their type, and read as they were checked.

use pod::feature::author::*;
use serde_json::json;
use testkit::{FeatureHost, conformance};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    /// How many files one call may publish.
    #[schemars(range(min = 1, max = 100))]
    files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 7 }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Nothing {}

const LIMIT: ToolKey<Nothing> = ToolKey::new("Limit", ToolEffect::ReadOnly, "Show the limit.");

struct Capped;

struct Live {
    files: u32,
}

impl Live {
    async fn limit(self: Arc<Self>, _: Nothing, _: ToolContext) -> ToolResult {
        Ok(ToolOutput {
            summary: self.files.to_string(),
            ..ToolOutput::default()
        })
    }
}

impl FeatureModule for Capped {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("capped"))
            .display_name("A cap for each call")
            .version(env!("CARGO_PKG_VERSION"))
            .settings::<Limits>()
            .tool(&LIMIT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let limits: Limits = ctx.settings()?;
        let live = Arc::new(Live {
            files: limits.files,
        });
        ctx.tools().implement(&LIMIT, &live, Live::limit).map(drop)
    }
}

#[test]
fn the_documents_settings_are_checked_and_read() {
    let mut host = FeatureHost::new().install(Capped);
    assert_eq!(host.call("Limit", json!({})).text(), "7");
    let mut host = FeatureHost::new()
        .settings(json!({"files": 2}))
        .install(Capped);
    assert_eq!(host.call("Limit", json!({})).text(), "2");
    let refused = FeatureHost::new()
        .settings(json!({"files": 0}))
        .try_install(Capped);
    assert!(
        refused.report().diagnostics[0].message.contains("`files`"),
        "{:?}",
        refused.report()
    );
    conformance(|| Capped).assert();
}
