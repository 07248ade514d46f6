//! Declarations that are known only at run time: foreign tools, hooks, states and background tasks.

use super::rig::*;
use crate::feature::*;
use crate::hook::{HookClass, HookPoint, PreToolCall, ToolCallView, TurnEnd, TurnEndView, Verdict};
use llm_worker::tool::Touch;
use llm_worker::{ToolDefinition, ToolEffect, ToolOutput};
use serde_json::json;
use std::sync::Arc;

fn tool(name: &str, schema: &str) -> ToolDeclaration {
    ToolDeclaration::of(ToolDefinition {
        schema: schema.into(),
        ..foreign(name)
    })
}

fn problems(tool: ToolDeclaration) -> String {
    declaring("builtin:m", &[])
        .foreign_tool(tool)
        .build()
        .problems()
        .join("\n")
}

#[test]
fn a_schema_that_does_not_compile_fails_the_plan() {
    let port = "http://127.0.0.1:9/x.json";
    let cases = [
        (
            r#"{"type":"object","properties":{"a":{"type":"nothing"}}}"#.to_owned(),
            "not a JSON Schema",
        ),
        (
            r##"{"type":"object","$ref":"#/$defs/none"}"##.to_owned(),
            "$defs/none",
        ),
        (
            r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#.to_owned(),
            "regex",
        ),
        (
            format!(r#"{{"type":"object","$ref":"{port}"}}"#),
            "outside of the schema are not loaded",
        ),
    ];
    for (schema, says) in cases {
        let descriptor = declaring("builtin:m", &[])
            .foreign_tool(tool("Far", &schema))
            .build();
        let plan = build(
            tools_for(&["builtin:m"]),
            vec![with(descriptor, |_| Ok(()))],
        )
        .plan();
        let [planned] = plan.features.as_slice() else {
            panic!("{plan:?}")
        };
        assert_eq!(planned.outcome, InstallOutcome::Skipped, "{schema}");
        assert_eq!(
            codes(&planned.diagnostics),
            [DiagnosticCode::InvalidDescriptor],
            "{schema}"
        );
        assert!(
            planned.diagnostics[0].message.contains(says),
            "{schema}: {}",
            planned.diagnostics[0].message
        );
    }
}

#[test]
fn the_rules_of_touches_are_checked_at_plan() {
    const SCHEMA: &str =
        r#"{"type":"object","properties":{"path":{"type":"string"},"a.b":{"type":"string"}}}"#;
    let rule = |at: Option<&str>, fixed: Option<&str>, is| TouchRule {
        at: at.map(str::to_owned),
        fixed: fixed.map(str::to_owned),
        is,
    };
    let cases = [
        (TouchRule::at(TouchKind::Write, "/path"), ""),
        (TouchRule::at(TouchKind::Write, "/path/0"), ""),
        (TouchRule::at(TouchKind::Read, "/a.b"), ""),
        (
            TouchRule::fixed(TouchKind::RemoteWrite, "api.example.org"),
            "",
        ),
        (TouchRule::session(), ""),
        (
            TouchRule::at(TouchKind::Write, "/pth"),
            "names no such property",
        ),
        (
            TouchRule::at(TouchKind::Write, "path"),
            "names no such property",
        ),
        (TouchRule::at(TouchKind::Write, ""), "is empty"),
        (TouchRule::fixed(TouchKind::Host, ""), "is empty"),
        (
            rule(Some("/path"), Some("x"), TouchKind::Read),
            "exactly one",
        ),
        (rule(None, None, TouchKind::Read), "exactly one"),
        (rule(Some("/path"), None, TouchKind::Session), "neither"),
    ];
    for (rule, says) in cases {
        let problems = problems(tool("Far", SCHEMA).touching(rule.clone()));
        assert_eq!(problems.is_empty(), says.is_empty(), "{rule:?}: {problems}");
        assert!(problems.contains(says), "{rule:?}: {problems}");
    }
    let many = (0..17).fold(tool("Far", SCHEMA), |tool, _| {
        tool.touching(TouchRule::session())
    });
    assert!(problems(many).contains("at most 16"));
    let mut typed = declaring("builtin:m", &["Say"]).build();
    typed.declared_tools[0].touches.push(TouchRule::session());
    assert!(typed.problems().join("\n").contains("only a foreign tool"));
}

#[test]
fn touches_stand_where_the_pointers_say() {
    let arguments = json!({ "path": "a.md", "more": ["b.md", "c.md"], "count": 3, "none": null });
    let write = |path: &str| Touch::Write(path.into());
    let cases = [
        (
            TouchRule::at(TouchKind::Write, "/path"),
            Some(vec![write("a.md")]),
        ),
        (
            TouchRule::at(TouchKind::Write, "/more"),
            Some(vec![write("b.md"), write("c.md")]),
        ),
        (
            TouchRule::at(TouchKind::Shell, "/more/1"),
            Some(vec![Touch::Shell("c.md".to_owned())]),
        ),
        (TouchRule::at(TouchKind::Read, "/absent"), Some(Vec::new())),
        (TouchRule::at(TouchKind::Read, "/none"), Some(Vec::new())),
        (TouchRule::at(TouchKind::Read, "/count"), None),
        (
            TouchRule::fixed(TouchKind::Host, "h"),
            Some(vec![Touch::Host("h".to_owned())]),
        ),
        (
            TouchRule::fixed(TouchKind::RemoteWrite, "h"),
            Some(vec![Touch::RemoteWrite("h".to_owned())]),
        ),
        (TouchRule::session(), Some(vec![Touch::Session])),
    ];
    for (rule, expected) in cases {
        assert_eq!(rule.touches(&arguments).ok(), expected, "{rule:?}");
    }
}

// Otherwise its schema would be checked by nobody.
#[test]
fn a_foreign_tool_is_declared_as_one() {
    let install = |ctx: &mut FeatureInstallContext<'_>| {
        let definition = declaring("builtin:m", &["Say"])
            .build()
            .declared_tools
            .remove(0)
            .definition();
        let tool = ToolContribution::new(
            ctx.feature_id().clone(),
            Arc::new(Foreign(definition)),
            Vec::new(),
        );
        ctx.tools().register(tool).map(drop)
    };
    let module = with(declaring("builtin:m", &["Say"]).build(), install);
    let registry = build(tools_for(&["builtin:m"]), vec![module]).install(&HostServices::none());
    let report = registry.report().feature(&id("builtin:m")).unwrap();
    assert_eq!(codes(&report.diagnostics), [DiagnosticCode::InstallFailed]);
    assert!(
        report.diagnostics[0]
            .message
            .contains("whether its schema is foreign"),
        "{:?}",
        report.diagnostics
    );
}

fn hook(name: &str, point: HookPoint) -> HookDeclaration {
    HookDeclaration {
        name: name.to_owned(),
        point,
        class: point.class(),
        deadline_ms: 100,
        tools: if point.class() == HookClass::Transform {
            vec!["*".to_owned()]
        } else {
            Vec::new()
        },
        needs: Vec::new(),
        withholds: false,
        with_output_schema: false,
        shortens: false,
        before: Vec::new(),
        after: Vec::new(),
    }
}

#[test]
fn a_foreign_hook_has_the_bounds_of_a_key() {
    type Edit = fn(&mut HookDeclaration);
    let cases: [(HookPoint, Edit, &str); 11] = [
        (HookPoint::PreToolCall, |_| {}, ""),
        (HookPoint::ToolShape, |hook| hook.withholds = true, ""),
        (HookPoint::ToolShape, |hook| hook.shortens = true, ""),
        (
            HookPoint::ToolOutcome,
            |hook| hook.shortens = true,
            "shortens results, which is possible only at",
        ),
        (
            HookPoint::ToolShape,
            |hook| (hook.shortens, hook.withholds) = (true, true),
            "not for a hook that withholds them",
        ),
        (
            HookPoint::TurnEnd,
            |hook| hook.with_output_schema = true,
            "",
        ),
        (
            HookPoint::PreToolCall,
            |hook| hook.class = HookClass::Observe,
            "is a gate, not a observe",
        ),
        (
            HookPoint::PreToolCall,
            |hook| hook.with_output_schema = true,
            "does not see",
        ),
        (
            HookPoint::PreToolCall,
            |hook| hook.tools = vec!["*".to_owned()],
            "only a transform",
        ),
        (
            HookPoint::ToolRun,
            |hook| hook.tools.clear(),
            "names 0 tools",
        ),
        (
            HookPoint::ToolRun,
            |hook| hook.withholds = true,
            "withholds",
        ),
    ];
    for (point, edit, says) in cases {
        let mut hook = hook("far", point);
        edit(&mut hook);
        let problems = declaring("builtin:m", &[])
            .foreign_hook(hook.clone())
            .build()
            .problems()
            .join("\n");
        assert_eq!(problems.is_empty(), says.is_empty(), "{hook:?}: {problems}");
        assert!(problems.contains(says), "{hook:?}: {problems}");
    }
}

/// A module whose descriptor is read from JSON, as that of a program elsewhere, with the old names of its parts.
fn read() -> FeatureDescriptor {
    let text = json!({
        "id": "builtin:m", "display_name": "m", "version": "1.0.0", "runtime": "builtin", "requests": [],
        "tools": [{
            "name": "Far", "about": "From afar.", "effect": "effectful", "deadline_ms": 1000, "foreign": true,
            "schema": r#"{"type":"object"}"#, "touches": [{ "is": "session" }],
        }],
        "hooks": [hook("judge", HookPoint::PreToolCall)],
        "background_tasks": [{
            "name": "refresh", "effect": "read_only", "triggers": [{ "trigger": "start" }],
            "restart": { "restart": "never" }, "deadline_ms": 1000,
        }],
        "instructions": [],
    });
    serde_json::from_value(text).unwrap()
}

#[test]
fn all_that_is_declared_at_run_time_is_installed() {
    let descriptor = read();
    let written = serde_json::to_value(&descriptor).unwrap();
    for name in [
        "requested_capabilities",
        "declared_tools",
        "declared_hooks",
        "declared_background_tasks",
    ] {
        assert!(written.get(name).is_some(), "{name}");
    }
    assert_eq!(
        serde_json::from_value::<FeatureDescriptor>(written).unwrap(),
        descriptor
    );
    let declared = descriptor.clone();
    let module = with(descriptor, move |ctx| {
        let id = ctx.feature_id().clone();
        let far = ToolContribution::declared(
            id.clone(),
            &declared.declared_tools[0],
            |arguments, _| async move {
                Ok(ToolOutput {
                    summary: arguments.to_string(),
                    content: String::new(),
                    data: None,
                })
            },
        );
        ctx.tools().register(far)?;
        let judge = |_: &ToolCallView| Verdict::<PreToolCall>::allow();
        let judge = HookContribution::declared::<PreToolCall>(
            id.clone(),
            &declared.declared_hooks[0],
            Arc::new(judge),
        );
        ctx.hooks().register(judge)?;
        let refresh = BackgroundTaskContribution::declared(
            id,
            &declared.declared_background_tasks[0],
            |_| async { Ok(()) },
        );
        ctx.background_tasks().register(refresh).map(drop)
    });
    let policy = tools_for(&["builtin:m"])
        .grant(
            id("builtin:m"),
            HostCapability::hook::<PreToolCall>(),
            "test",
        )
        .grant(id("builtin:m"), HostCapability::ANY_BACKGROUND_TASK, "test");
    let registry = build(policy, vec![module]).install(&HostServices::none());
    let report = registry.report().feature(&id("builtin:m")).unwrap();
    assert_eq!(report.outcome, InstallOutcome::Installed, "{report:?}");
    assert_eq!(
        registry
            .tools()
            .get("Far")
            .map(|tool| tool.definition.effect),
        Some(ToolEffect::Effectful)
    );
    assert_eq!(
        (report.installed_hooks.len(), report.background_tasks.len()),
        (1, 1)
    );
}

// A hook for another point has another meaning, whatever its declaration says.
#[test]
fn a_foreign_hook_stands_at_the_point_of_its_code() {
    let declared = hook("judge", HookPoint::PreToolCall);
    let module = with(
        declaring("builtin:m", &[])
            .foreign_hook(declared.clone())
            .build(),
        move |ctx| {
            let judge = |_: &TurnEndView| Verdict::<TurnEnd>::finish();
            let id = ctx.feature_id().clone();
            ctx.hooks()
                .register(HookContribution::declared::<TurnEnd>(
                    id,
                    &declared,
                    Arc::new(judge),
                ))
                .map(drop)
        },
    );
    let policy = CapabilityPolicy::nothing().grant(
        id("builtin:m"),
        HostCapability::hook::<PreToolCall>(),
        "test",
    );
    let registry = build(policy, vec![module]).install(&HostServices::none());
    let report = registry.report().feature(&id("builtin:m")).unwrap();
    assert!(
        report.diagnostics[0].message.contains("its point"),
        "{:?}",
        report.diagnostics
    );
}
