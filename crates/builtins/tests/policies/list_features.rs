//! `list-features`: what the model is shown of the install report.

use builtins::list_features::{ListFeatures, RECORDS};
use builtins::phase_recorder::PhaseRecorder;
use pod::feature::InstallOutcome;
use pod::feature::author::*;
use serde_json::json;
use testkit::FeatureHost;

const LOOK: TaskKey = TaskKey::new("look", ToolEffect::ReadOnly).at_start();

/// A feature with a background task.
struct Looks;

impl FeatureModule for Looks {
    fn descriptor(&self) -> FeatureDescriptor {
        let about =
            json!({ "authors": ["A", "B"], "license": "MIT", "metadata": { "labels": ["maps"] } });
        let about = serde_json::from_value(about).unwrap();
        FeatureDescriptor::builder(FeatureId::user("looks"))
            .version("1.0.0")
            .background_task(&LOOK)
            .about(about)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.background_tasks()
            .run(&LOOK, &Arc::new(()), |_, _| async { Ok(()) })
            .map(drop)
    }
}

#[test]
fn the_model_sees_features_with_what_they_add() {
    let mut host = FeatureHost::new()
        .with(PhaseRecorder)
        .with(Looks)
        .install(ListFeatures);
    let listed = host.call("ListFeatures", json!({}));
    assert_eq!(listed.summary, "4 features, 4 on");
    for lines in [
        "builtin:list-features: installed\n  tools: ListFeatures\n",
        "builtin:phase-recorder: installed\n  tools: record_phase\n  states: phases\n",
        "user:looks: installed\n  authors: A, B\n  license: MIT\n  metadata: {\"labels\":[\"maps\"]}\n  background tasks: look",
    ] {
        assert!(
            listed.content.contains(lines),
            "{lines} in {}",
            listed.content
        );
    }
    host.kill();
    let chosen = host.call("ListFeatures", json!({"words": "phase"}));
    assert_eq!(
        chosen.text(),
        "1 feature, 1 on\nbuiltin:phase-recorder: installed\n  tools: record_phase\n  states: phases"
    );
}

#[test]
fn without_records_there_is_no_list() {
    let host = FeatureHost::new().deny(RECORDS).try_install(ListFeatures);
    assert_eq!(host.report().outcome, InstallOutcome::Skipped);
}
