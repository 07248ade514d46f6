//! Categories of tools, and enrichers of their schemas.

use super::rig::*;
use super::services::{Greeter, Plain, anything};
use crate::feature::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const IDS: &[&str] = &["builtin:a", "builtin:b", "builtin:c", "user:a"];
const A: ServiceKey<dyn Greeter> = ServiceKey::new("test.a.v1");
const SCHEMA: &str = concat!(
    r#"{"additionalProperties":false,"properties":{"kind":{"enum":["bug","task",null]},"#,
    r#""labels":{"items":{"type":"string"},"type":["array","null"]},"path":{"type":"string"}},"required":["path"],"type":"object"}"#
);
const KEY: EnrichKey = EnrichKey::new("choices", &["Far"]);

fn category() -> ToolCategory {
    ToolCategory::new("issue-tracker")
}

fn far() -> ToolDeclaration {
    ToolDeclaration::of(llm_worker::ToolDefinition {
        schema: SCHEMA.into(),
        ..foreign("Far")
    })
}

/// A feature with the tool `Far`, in the category or not.
fn owner(of: &str, category: Option<ToolCategory>) -> Arc<dyn FeatureModule> {
    let tool = ToolDeclaration { category, ..far() };
    let staged = tool.clone();
    with(declaring(of, &[]).foreign_tool(tool).build(), move |ctx| {
        let answer = |_, _| async { Ok(llm_worker::ToolOutput::default()) };
        let tool = ToolContribution::declared(ctx.feature_id().clone(), &staged, answer);
        ctx.tools().register(tool).map(drop)
    })
}

fn server(of: &str) -> Arc<dyn FeatureModule> {
    with(declaring(of, &[]).serves(category()).build(), |_| Ok(()))
}

struct Changes<F>(F);

impl<F: Fn(&str, &mut ToolSchema) -> Result<(), String> + Send + Sync + 'static> ToolEnricher
    for Changes<F>
{
    fn enrich(&self, tool: &str, schema: &mut ToolSchema) -> Result<(), String> {
        (self.0)(tool, schema)
    }
}

fn enricher(
    of: &str,
    change: impl Fn(&str, &mut ToolSchema) -> Result<(), String> + Send + Sync + 'static,
) -> Arc<dyn FeatureModule> {
    let code: Arc<dyn ToolEnricher> = Arc::new(Changes(change));
    with(declaring(of, &[]).enriches(&KEY).build(), move |ctx| {
        ctx.tools().enrich(&KEY, Arc::clone(&code)).map(drop)
    })
}

fn enriching(ids: &[&str]) -> CapabilityPolicy {
    ids.iter().fold(anything(ids), |policy, text| {
        policy.grant(id(text), HostCapability::ANY_ENRICHING, "test")
    })
}

fn install(modules: Vec<Arc<dyn FeatureModule>>) -> FeatureRegistry {
    build(enriching(IDS), modules).install(&HostServices::none())
}

fn report<'a>(registry: &'a FeatureRegistry, of: &str) -> &'a FeatureInstallReport {
    registry.report().feature(&id(of)).unwrap()
}

fn schema(registry: &FeatureRegistry) -> Value {
    serde_json::from_str(&registry.tools().get("Far").unwrap().definition.schema).unwrap()
}

#[test]
fn a_category_is_a_short_plain_word() {
    for (name, fits) in [
        ("issue-tracker", true),
        ("a", true),
        ("", false),
        ("Issue", false),
        ("a b", false),
        ("ä", false),
    ] {
        assert_eq!(name.parse::<ToolCategory>().is_ok(), fits, "{name}");
        assert_eq!(
            serde_json::from_value::<ToolCategory>(json!(name)).is_ok(),
            fits,
            "{name}"
        );
    }
    assert!("a".repeat(32).parse::<ToolCategory>().is_ok());
    assert!("a".repeat(33).parse::<ToolCategory>().is_err());
}

#[test]
fn a_tool_is_there_where_its_category_is_served() {
    let broken = with(
        declaring("builtin:b", &[]).serves(category()).build(),
        |_| Err(FeatureInstallError::failed("no")),
    );
    let cases = [
        (vec![server("builtin:b")], None, ""),
        // It comes first in the order of ids.
        (vec![server("user:a")], None, ""),
        (Vec::new(), None, "no feature of this build serves it"),
        (
            vec![server("builtin:b")],
            Some("builtin:b"),
            "builtin:b, which serves it, is disabled",
        ),
        (
            vec![broken],
            None,
            "the features that serve it failed to install",
        ),
    ];
    for (others, off, reason) in cases {
        let mut policy = enriching(IDS);
        if let Some(off) = off {
            policy = policy.disable(id(off), "user.toml");
        }
        let mut modules = others;
        modules.push(owner("builtin:a", Some(category())));
        let registry = build(policy, modules).install(&HostServices::none());
        let report = report(&registry, "builtin:a");
        assert_eq!(
            registry.tools().get("Far").is_some(),
            reason.is_empty(),
            "{reason}: {report:?}"
        );
        let skipped: Vec<_> = report
            .skipped_contributions
            .iter()
            .map(|s| (s.kind, s.name.as_str()))
            .collect();
        match reason.is_empty() {
            true => assert_eq!(
                (report.outcome, skipped),
                (InstallOutcome::Installed, Vec::new())
            ),
            false => {
                assert_eq!(
                    (report.outcome, skipped),
                    (
                        InstallOutcome::Degraded,
                        vec![(ContributionKind::Tool, "Far")]
                    )
                );
                let said = &report.skipped_contributions[0].reason;
                assert_eq!(
                    *said,
                    format!("no installed feature serves its category `issue-tracker`: {reason}")
                );
            }
        }
    }
}

#[test]
fn a_feature_can_serve_the_category_of_its_own_tools() {
    let tool = ToolDeclaration {
        category: Some(category()),
        ..far()
    };
    let descriptor = declaring("builtin:a", &[])
        .foreign_tool(tool)
        .serves(category())
        .build();
    let plan = build(enriching(IDS), vec![with(descriptor, |_| Ok(()))]).plan();
    assert_eq!(
        (plan.features[0].tools.len(), plan.features[0].outcome),
        (1, InstallOutcome::Installed)
    );
    assert_eq!(plan.features[0].categories, [category()]);
}

// The tool needs the server first, and the server a service of the tool's feature: the tool gives way, nobody is skipped.
#[test]
fn a_circle_through_a_category_costs_the_tool_only() {
    let tool = ToolDeclaration {
        category: Some(category()),
        ..far()
    };
    let first = declaring("builtin:a", &[])
        .foreign_tool(tool)
        .provides(ServiceDeclaration::of(A, "1.0.0"))
        .build();
    let first = with(first, |ctx| {
        ctx.services().provide(A, Arc::new(Plain)).map(drop)
    });
    let second = declaring("builtin:b", &[])
        .serves(category())
        .requires(ServiceRequirement::required(A, "^1"))
        .build();
    let registry = install(vec![first, with(second, |_| Ok(()))]);
    assert_eq!(
        report(&registry, "builtin:b").outcome,
        InstallOutcome::Installed
    );
    let report = report(&registry, "builtin:a");
    assert_eq!(report.outcome, InstallOutcome::Degraded);
    assert!(
        report.skipped_contributions[0]
            .reason
            .ends_with("also needs this feature"),
        "{report:?}"
    );
}

#[test]
fn an_enricher_narrows_what_the_model_sees() {
    let registry = install(vec![
        owner("builtin:a", None),
        enricher("builtin:b", |tool, schema| {
            assert_eq!(tool, "Far");
            schema.description.push_str(" Mind the labels.");
            assert!(schema.choices("kind", ["bug"]) && schema.choices("labels", ["ui", "core"]));
            assert!(!schema.choices("none", ["x"]), "there is no such property");
            schema
                .property("path")
                .unwrap()
                .insert("default".to_owned(), json!("here"));
            Ok(())
        }),
        // It sees what the one before left.
        enricher("builtin:c", |_, schema| {
            assert_eq!(
                schema.arguments["properties"]["labels"]["items"]["enum"],
                json!(["ui", "core"])
            );
            schema.choices("labels", ["ui"]);
            Ok(())
        }),
    ]);
    let schema = schema(&registry);
    assert_eq!(
        schema["properties"]["kind"]["enum"],
        json!(["bug", null]),
        "nothing is still an answer"
    );
    assert_eq!(
        schema["properties"]["labels"]["items"],
        json!({"enum": ["ui"], "type": "string"})
    );
    let tool = registry.tools().get("Far").unwrap();
    assert_eq!(tool.definition.description, "From afar. Mind the labels.");
    assert_eq!(
        (&*tool.declared().schema, &*tool.declared().description),
        (SCHEMA, "From afar.")
    );
    let enriched = |of| {
        let report = report(&registry, of);
        assert_eq!(report.outcome, InstallOutcome::Installed, "{report:?}");
        report
            .enriched
            .iter()
            .map(|e| (e.tool.clone(), e.by.clone(), e.properties.join(",")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        enriched("builtin:b"),
        [("Far".into(), "choices".into(), "kind,labels,path".into())]
    );
    assert_eq!(
        enriched("builtin:c"),
        [("Far".into(), "choices".into(), "labels".into())]
    );
    let bytes = tool.definition.name.len()
        + tool.definition.description.len()
        + tool.definition.schema.len();
    assert_eq!(
        report(&registry, "builtin:a").schema_bytes,
        u64::try_from(bytes).unwrap()
    );
}

type Change = fn(&mut ToolSchema);

fn limit(
    schema: &mut ToolSchema,
    property: &str,
    values: impl IntoIterator<Item = impl Into<Value>>,
) {
    assert!(schema.choices(property, values));
}

#[test]
fn what_does_not_narrow_is_refused_and_the_tool_stays() {
    let cases: [(&str, Change); 16] = [
        ("did not fit before", |schema| {
            limit(schema, "kind", ["epic"])
        }),
        ("did not fit before", |schema| limit(schema, "labels", [1])),
        ("has 0 values", |schema| limit(schema, "labels", [""; 0])),
        ("has 257 values", |schema| {
            limit(schema, "labels", (0..257).map(|n| n.to_string()))
        }),
        ("control, direction or invisible", |schema| {
            limit(schema, "labels", ["a\u{202e}b"])
        }),
        ("has 257 bytes", |schema| {
            limit(schema, "labels", ["a".repeat(257)])
        }),
        ("`enum` of `/kind` changed", |schema| {
            drop(schema.property("kind").unwrap().remove("enum"))
        }),
        ("the default of `/kind` does not fit", |schema| {
            schema
                .property("kind")
                .unwrap()
                .insert("default".to_owned(), json!("epic"));
        }),
        ("`type` of `/path` changed", |schema| {
            drop(schema.property("path").unwrap().remove("type"))
        }),
        ("`required` of the schema changed", |schema| {
            schema.arguments["required"] = json!([])
        }),
        ("`additionalProperties` of the schema changed", |schema| {
            schema.arguments["additionalProperties"] = json!(true)
        }),
        ("the property `/path` was removed", |schema| {
            drop(
                schema.arguments["properties"]
                    .as_object_mut()
                    .unwrap()
                    .remove("path"),
            );
        }),
        ("the property `/more` was added", |schema| {
            schema.arguments["properties"]["more"] = json!({})
        }),
        ("another kind of schema", |schema| {
            schema.arguments = json!(true)
        }),
        ("the description is empty", |schema| {
            schema.description.clear()
        }),
        ("the description has 8193 bytes", |schema| {
            schema.description = "a".repeat(8193)
        }),
    ];
    for (says, change) in cases {
        let registry = install(vec![
            owner("builtin:a", None),
            enricher("builtin:b", move |_, schema| {
                change(schema);
                Ok(())
            }),
        ]);
        let tool = registry.tools().get("Far").unwrap();
        assert_eq!(
            (&*tool.definition.schema, &*tool.definition.description),
            (SCHEMA, "From afar."),
            "{says}"
        );
        assert!(tool.enrichment.is_none(), "{says}");
        let report = report(&registry, "builtin:b");
        assert_eq!(
            (report.outcome, report.enriched.len()),
            (InstallOutcome::Installed, 0),
            "{says}"
        );
        assert_eq!(
            codes(&report.diagnostics),
            [DiagnosticCode::EnrichmentRefused],
            "{says}"
        );
        assert!(
            report.diagnostics[0].message.contains(says),
            "{says}: {}",
            report.diagnostics[0].message
        );
    }
}

#[test]
fn an_enricher_that_fails_leaves_the_tool_and_the_others() {
    type Fails = fn() -> Result<(), String>;
    let cases: [(&str, Fails); 3] = [
        ("panicked: dropped it", || panic!("dropped it")),
        ("failed for `Far`: no file", || Err("no file".to_owned())),
        ("did not return in time", || {
            loop {
                std::thread::park();
            }
        }),
    ];
    for (says, fails) in cases {
        let modules = vec![
            owner("builtin:a", None),
            enricher("builtin:b", move |_, schema| {
                schema.choices("kind", ["bug"]);
                fails()
            }),
            enricher("builtin:c", |_, schema| {
                schema.choices("labels", ["ui"]);
                Ok(())
            }),
        ];
        let builder = build(enriching(IDS), modules).callback_limit(Duration::from_secs(2));
        let registry = builder.install(&HostServices::none());
        let diagnostics = &report(&registry, "builtin:b").diagnostics;
        assert_eq!(
            codes(diagnostics),
            [DiagnosticCode::EnricherFailed],
            "{says}"
        );
        assert!(
            diagnostics[0].message.contains(says),
            "{says}: {}",
            diagnostics[0].message
        );
        let schema = schema(&registry);
        assert_eq!(
            schema["properties"]["kind"]["enum"],
            json!(["bug", "task", null]),
            "{says}"
        );
        assert_eq!(
            schema["properties"]["labels"]["items"]["enum"],
            json!(["ui"]),
            "{says}"
        );
    }
}

#[test]
fn an_enricher_is_granted_its_tools_and_asked_about_no_others() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let module = |key: EnrichKey| {
        let heard = Arc::clone(&asked);
        let code = Arc::new(Changes(move |tool: &str, _: &mut ToolSchema| {
            heard.lock().unwrap().push(tool.to_owned());
            Ok(())
        }));
        let install = move |ctx: &mut FeatureInstallContext<'_>| {
            let code: Arc<dyn ToolEnricher> = Arc::clone(&code) as _;
            ctx.tools().enrich(&key, code).map(drop)
        };
        with(
            declaring("builtin:b", &[])
                .enriches(&key)
                .serves(category())
                .build(),
            install,
        )
    };
    let any = EnrichKey::new("choices", &["*"]);
    let only = HostCapability::EnrichTools {
        tools: vec!["Say".into()].into(),
    };
    let cases = [
        (any, HostCapability::ANY_ENRICHING, vec!["Far", "Say"]),
        (
            any.category("issue-tracker"),
            HostCapability::ANY_ENRICHING,
            vec!["Far"],
        ),
        (
            any.category("other"),
            HostCapability::ANY_ENRICHING,
            Vec::new(),
        ),
        (
            EnrichKey::new("choices", &["Say"]),
            only.clone(),
            vec!["Say"],
        ),
        (EnrichKey::new("choices", &["Far"]), only, Vec::new()),
    ];
    for (key, grant, expected) in cases {
        asked.lock().unwrap().clear();
        let modules = vec![
            owner("builtin:a", Some(category())),
            feature("builtin:c", &["Say"]),
            module(key),
        ];
        let policy = anything(IDS).grant(id("builtin:b"), grant, "test");
        let registry = build(policy, modules).install(&HostServices::none());
        assert_eq!(*asked.lock().unwrap(), expected, "{key:?}");
        let report = report(&registry, "builtin:b");
        let is_denied = report
            .skipped_contributions
            .iter()
            .any(|s| s.kind == ContributionKind::Enricher);
        assert_eq!(
            is_denied,
            key.name() == "choices" && codes(&report.diagnostics).len() == 1,
            "{report:?}"
        );
    }
}

#[test]
fn an_enricher_is_staged_as_declared() {
    let code = || Arc::new(Changes(|_: &str, _: &mut ToolSchema| Ok(()))) as Arc<dyn ToolEnricher>;
    let other = EnrichKey::new("other", &["Far"]);
    let wider = EnrichKey::new("choices", &["*"]);
    type Stages = Box<
        dyn Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> + Send + Sync,
    >;
    let cases: Vec<(&str, Stages)> = vec![
        ("is declared but was not staged", Box::new(|_| Ok(()))),
        (
            "is not declared",
            Box::new(move |ctx| ctx.tools().enrich(&other, code()).map(drop)),
        ),
        (
            "in its tools, category or needs",
            Box::new(move |ctx| ctx.tools().enrich(&wider, code()).map(drop)),
        ),
        (
            "was staged twice",
            Box::new(move |ctx| {
                ctx.tools().enrich(&KEY, code())?;
                ctx.tools().enrich(&KEY, code()).map(drop)
            }),
        ),
    ];
    for (says, stages) in cases {
        let registry = install(vec![with(
            declaring("builtin:b", &[]).enriches(&KEY).build(),
            stages,
        )]);
        let report = report(&registry, "builtin:b");
        assert_eq!(report.outcome, InstallOutcome::Skipped, "{says}");
        assert!(
            report.diagnostics[0].message.contains(says),
            "{says}: {report:?}"
        );
    }
}

#[test]
fn a_declaration_of_enrichers_is_bounded_and_reads_back() {
    let empty = EnricherDeclaration {
        tools: Vec::new(),
        ..EnricherDeclaration::from(&KEY)
    };
    let needy = EnricherDeclaration {
        needs: vec![HostCapability::EmitUserAlert],
        ..EnricherDeclaration::from(&KEY)
    };
    let nameless = EnricherDeclaration {
        name: "\n".to_owned(),
        ..EnricherDeclaration::from(&KEY)
    };
    let start = || declaring("builtin:a", &[]);
    let many = (0..9).fold(start(), |builder, n| {
        builder.enriches(EnricherDeclaration {
            name: n.to_string(),
            ..EnricherDeclaration::from(&KEY)
        })
    });
    let cases = [
        (start().enriches(empty), "names 0 tools"),
        (
            start().enriches(needy),
            "which the feature does not request",
        ),
        (start().enriches(nameless), "an enricher's name is empty"),
        (
            start().enriches(&KEY).enriches(&KEY),
            "enricher `choices` is declared twice",
        ),
        (
            start().serves(category()).serves(category()),
            "category `issue-tracker` is declared twice",
        ),
        (many, "9 enrichers; at most 8"),
    ];
    for (descriptor, says) in cases {
        let problems = descriptor.build().problems().join("\n");
        assert!(problems.contains(says), "{says}: {problems}");
    }
    let whole = start().enriches(&KEY).serves(category()).build();
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(
        serde_json::from_str::<FeatureDescriptor>(&text).unwrap(),
        whole
    );
}
