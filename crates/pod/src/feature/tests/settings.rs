//! Settings: declared as a JSON Schema, checked at plan, and read by the feature as they were checked.

use super::rig::*;
use crate::feature::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Window {
    #[schemars(range(min = 2, max = 20))]
    window: u32,
    words: Vec<String>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            window: 3,
            words: Vec::new(),
        }
    }
}

fn settings(value: Value) -> Settings {
    value.as_object().cloned().unwrap()
}

/// Installs one feature that reads its settings, and returns what it read.
fn installed(
    descriptor: FeatureDescriptorBuilder,
    written: Value,
) -> (RegistryReport, Option<Window>) {
    let read = Arc::new(Mutex::new(None));
    let reads = Arc::clone(&read);
    let module = with(descriptor.build(), move |ctx| {
        *reads.lock().unwrap() = Some(ctx.settings::<Window>()?);
        Ok(())
    });
    let policy = CapabilityPolicy::nothing().settings(id("user:a"), settings(written));
    let report = build(policy, vec![module])
        .install(&HostServices::none())
        .report()
        .clone();
    let read = read.lock().unwrap().take();
    (report, read)
}

fn declared() -> FeatureDescriptorBuilder {
    declaring("user:a", &[]).settings::<Window>()
}

#[test]
fn what_fits_the_schema_reaches_the_feature_with_its_defaults() {
    let words = || vec!["x".to_owned()];
    for (written, read) in [
        (json!({}), Window::default()),
        (
            json!({"window": 9}),
            Window {
                window: 9,
                ..Window::default()
            },
        ),
        (
            json!({"words": ["x"]}),
            Window {
                words: words(),
                ..Window::default()
            },
        ),
    ] {
        let (report, settings) = installed(declared(), written.clone());
        assert_eq!(settings, Some(read), "{written}: {report:#?}");
    }
}

#[derive(schemars::JsonSchema)]
struct Keyed {
    #[expect(dead_code, reason = "its schema alone is used")]
    key: String,
}

#[test]
fn what_does_not_fit_is_refused_at_plan_before_any_code_runs() {
    let bare = || declaring("user:a", &[]);
    for (descriptor, written, says) in [
        (declared(), json!({"window": 1}), "`window`: must be >=2"),
        (declared(), json!({"window": "3"}), "`window`: want integer"),
        (declared(), json!({"words": [3]}), "`words.0`: want string"),
        (declared(), json!({"windows": 3}), "unknown key `windows`"),
        (
            bare(),
            json!({"window": 3}),
            "`window` is set, but the feature has no settings",
        ),
        (
            declared(),
            json!({"words": ["x".repeat(70_000)]}),
            "over 65536 bytes",
        ),
        (
            bare().foreign_settings(r#"{"required":["key"]}"#),
            json!({}),
            "`key` must be set",
        ),
        (bare().settings::<Keyed>(), json!({}), "`key` must be set"),
    ] {
        let (report, read) = installed(descriptor, written.clone());
        let [diagnostic] = report.features[0].diagnostics.as_slice() else {
            panic!("{written}: {report:#?}")
        };
        assert_eq!(
            diagnostic.code,
            DiagnosticCode::InvalidSettings,
            "{written}"
        );
        assert!(
            diagnostic.message.contains(says),
            "{written}: {}",
            diagnostic.message
        );
        assert_eq!(
            (report.features[0].outcome, read),
            (InstallOutcome::Skipped, None),
            "{written}"
        );
    }
}

#[test]
fn a_schema_that_is_none_or_reaches_out_is_a_problem_of_the_descriptor() {
    for (schema, says) in [
        ("{", "is not valid"),
        (r#"{"type":"nothing"}"#, "is not valid"),
        (
            r#"{"$ref":"http://127.0.0.1:9/x.json"}"#,
            "references outside of the schema are not loaded",
        ),
        // A plugin with such a default passed its check, and ended each start.
        (
            r#"{"properties":{"most":{"type":"integer","default":"3"}}}"#,
            "the default of `most`: want integer",
        ),
        (
            r#"{"properties":{"a/b":{"items":{"type":"string"},"default":["x",1]}}}"#,
            "the default of `a~1b.1`: want string",
        ),
    ] {
        let problems = declaring("user:a", &[])
            .foreign_settings(schema)
            .build()
            .problems();
        assert!(
            problems.iter().any(|problem| problem.contains(says)),
            "{schema}: {problems:?}"
        );
    }
    // What has to be set is of the person, and no fault of a default beside it.
    let fits = r#"{"required":["who"],"minProperties":2,"properties":{"who":{},"most":{"type":"integer","default":3}}}"#;
    let descriptor = declaring("user:a", &[]).foreign_settings(fits).build();
    assert_eq!(descriptor.problems(), [""; 0]);
}

#[test]
fn settings_that_are_not_declared_cannot_be_read() {
    let (report, _) = installed(declaring("user:a", &[]), json!({}));
    assert!(
        report.features[0].diagnostics[0]
            .message
            .contains("the descriptor declares no settings"),
        "{report:#?}"
    );
}

/// Numbers and switches are shown; texts may be private.
#[test]
fn a_report_shows_no_text_of_settings() {
    let (report, _) = installed(declared(), json!({"window": 9, "words": ["hunter2"]}));
    let json = report.to_json().unwrap();
    assert!(
        !json.contains("hunter2") && report.features[0].settings["window"] == 9,
        "{json}"
    );
    assert_eq!(
        report.features[0].settings["words"].as_str().map(str::len),
        Some(16)
    );
}
