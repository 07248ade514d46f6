//! The report: stable bytes, sums that add up, a digest that follows the content.

use super::rig::*;
use crate::feature::*;
use std::sync::Arc;

fn report(tools: &'static [&'static str], text: &'static str) -> RegistryReport {
    let descriptor = declaring("builtin:a", tools)
        .instruction("how", text)
        .build();
    let module = with(descriptor, move |ctx| {
        ctx.diagnostics().note("a note\u{202e}")?;
        stage_all(ctx, tools)
    });
    let rules = vec![HostRule {
        source: "default".into(),
        text: "writing outside: deny".into(),
    }];
    let host = HostReport {
        rules,
        ..HostReport::default()
    };
    let modules = vec![
        module,
        feature("builtin:off", &["Off"]),
        feature("user:poor", &["Poor"]),
    ];
    let policy = tools_for(&["builtin:a"]).disable(id("builtin:off"), "user.toml");
    build(policy, modules)
        .host(host)
        .install(&HostServices::none())
        .report()
        .clone()
}

#[test]
fn the_bytes_are_pinned() {
    let report = report(&["Say"], "Say it.");
    let json = report.to_json().unwrap();
    let digest = report.features[0].content_digest.clone();
    let hash = |json: &str| blake3::hash(json.as_bytes()).to_hex();
    let empty = blake3::hash(b"").to_hex();
    let expected = format!(
        concat!(
            r#"{{"generation":1,"order":["builtin:a","user:poor"],"digest":"{all}","#,
            r#""host":{{"gates":[],"rules":[{{"source":"default","text":"writing outside: deny"}}],"limits":[]}},"features":["#,
            r#"{{"feature_id":"builtin:a","version":"1.0.0","runtime":"builtin","enabled":true,"outcome":"installed","attached_by":"default","#,
            r#""body":"build:{version}","settings_digest":"{unset}","grants_digest":"{say}","granted":[{{"capability":"contribute_tool","name":"Say"}}],"denied":[],"installed_tools":["Say"],"installed_hooks":[],"background_tasks":[],"#,
            r#""instructions":["how"],"states":[],"services":{none},"schema_bytes":{bytes},"estimated_tokens":{tokens},"content_digest":"{digest}","#,
            r#""skipped_contributions":[],"diagnostics":[{{"code":"note","feature_id":"builtin:a","message":"a note\\u{{202e}}"}}]}},"#,
            r#"{{"feature_id":"builtin:off","version":"1.0.0","runtime":"builtin","enabled":false,"outcome":"disabled","disabled_by":"user.toml","#,
            r#""body":"build:{version}","settings_digest":"{unset}","grants_digest":"{none_granted}","granted":[],"denied":[],"installed_tools":[],"installed_hooks":[],"background_tasks":[],"instructions":[],"states":[],"services":{none},"schema_bytes":0,"estimated_tokens":0,"#,
            r#""content_digest":"{empty}","skipped_contributions":[],"diagnostics":[]}},"#,
            r#"{{"feature_id":"user:poor","version":"1.0.0","runtime":"builtin","enabled":true,"outcome":"degraded","attached_by":"default","#,
            r#""body":"build:{version}","settings_digest":"{unset}","grants_digest":"{none_granted}","granted":[],"denied":[{{"capability":"contribute_tool","name":"Poor","reason":"no rule grants it{remedy}","remedy":{{"tools":["Poor"]}}}}],"#,
            r#""installed_tools":[],"installed_hooks":[],"background_tasks":[],"instructions":[],"states":[],"services":{none},"schema_bytes":0,"estimated_tokens":0,"content_digest":"{empty}","#,
            r#""skipped_contributions":[{{"kind":"tool","name":"Poor","reason":"it needs ContributeTool(Poor): no rule grants it{remedy}","#,
            r#""denied":{{"capability":"contribute_tool","name":"Poor","reason":"no rule grants it{remedy}","remedy":{{"tools":["Poor"]}}}}}}],"#,
            r#""diagnostics":[{{"code":"optional_capability_denied","feature_id":"user:poor","#,
            r#""message":"user:poor was denied ContributeTool(Poor): no rule grants it{remedy}"}}]}}],"#,
            r#""totals":{{"features":3,"live":2,"degraded":1,"skipped":0,"disabled":1,"tools":1,"schema_bytes":{bytes},"#,
            r#""estimated_tokens":{tokens}}},"unmet":[],"diagnostics":[]}}"#,
        ),
        remedy = r#"; set grant = { tools = [\"Poor\"] } under [features.\"user:poor\"]"#,
        bytes = bytes(),
        tokens = bytes().div_ceil(4),
        digest = digest,
        empty = empty,
        version = env!("CARGO_PKG_VERSION"),
        all = report.digest,
        unset = hash("{}"),
        say = hash(r#"[{"capability":"contribute_tool","name":"Say"}]"#),
        none_granted = hash("[]"),
        none = r#"{"provided":[],"resolved":[],"missing":[]}"#,
    );
    assert_eq!(json, expected);
}

/// Name, description and schema of the one tool, and the instruction's text.
fn bytes() -> usize {
    declaring("builtin:a", &["Say"]).build().declared_tools[0].bytes() + "Say it.".len()
}

#[test]
fn the_digest_follows_the_content_and_nothing_else() {
    let digest = |tools, text| report(tools, text).features[0].content_digest.clone();
    let base = digest(&["Say"], "Say it.");
    assert_eq!(base, digest(&["Say"], "Say it."));
    assert_ne!(base, digest(&["Say"], "Say it!"));
    assert_ne!(base, digest(&["Tell"], "Say it."));
    assert_ne!(base, digest(&["Say", "Tell"], "Say it."));
}

#[test]
fn the_report_has_a_schema_and_is_the_same_twice() {
    let schema = serde_json::to_string(&schemars::schema_for!(RegistryReport)).unwrap();
    assert!(schema.contains("skipped_contributions") && schema.contains("unmet"));
    let plan_schema = serde_json::to_string(&schemars::schema_for!(InstallPlan)).unwrap();
    assert!(plan_schema.contains("deadline_ms"));
    let module = feature("builtin:a", &[]);
    let twice = |m: &Arc<dyn FeatureModule>| {
        build(CapabilityPolicy::nothing(), vec![Arc::clone(m)])
            .install(&HostServices::none())
            .report()
            .to_json()
            .unwrap()
    };
    assert_eq!(twice(&module), twice(&module));
}
