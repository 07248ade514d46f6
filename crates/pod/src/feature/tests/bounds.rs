//! What a descriptor may say.

use super::rig::*;
use crate::feature::*;
use llm_worker::ToolDefinition;
use std::borrow::Cow;
use std::sync::Arc;

#[test]
fn descriptors_are_bounded() {
    let base = || declaring("user:u", &["X"]);
    let long = |n: usize| "a".repeat(n);
    let tool = |edit: &dyn Fn(&mut ToolDeclaration)| {
        let mut tool = ToolDeclaration::of(foreign("Y"));
        edit(&mut tool);
        base().foreign_tool(tool)
    };
    let fs = |root: &'static str, read| HostCapability::ScopedFs {
        root: Cow::Borrowed(root),
        read,
        write: true,
        execute: false,
    };
    let asks =
        |capability, reason: &str| base().request(CapabilityRequest::optional(capability, reason));
    let process = |programs: Vec<Cow<'static, str>>| HostCapability::Process {
        programs: Cow::Owned(programs),
        network: false,
    };
    let many = |n: usize| {
        (0..n).fold(base(), |b, i| {
            b.foreign_tool(ToolDeclaration::of(foreign(&format!("T{i}"))))
        })
    };
    // what the problem says; none when it fits
    let cases: Vec<(FeatureDescriptorBuilder, &str)> = vec![
        (base(), ""),
        (base().display_name(long(64)), ""),
        (base().display_name(long(65)), "display_name has 65 bytes"),
        (base().display_name(" "), "display_name is empty"),
        (base().display_name("a\nb"), "display_name contains \\u{a}"),
        (
            base().display_name("a\u{202e}b"),
            "display_name contains \\u{202e}",
        ),
        (base().display_name("a\u{2066}b"), "\\u{2066}"),
        (base().display_name("a\u{85}b"), "\\u{85}"),
        (base().version(""), "version"),
        (base().version("1.0"), "MAJOR.MINOR.PATCH"),
        (base().version("1.0.x"), "MAJOR.MINOR.PATCH"),
        (
            base().version("1.0.18446744073709551616"),
            "MAJOR.MINOR.PATCH",
        ),
        (tool(&|t| t.name = "".into()), "1 to 64 bytes"),
        (tool(&|t| t.name = long(65)), "1 to 64 bytes"),
        (tool(&|t| t.name = "a b".into()), "1 to 64 bytes"),
        (tool(&|t| t.name = "ä".into()), "1 to 64 bytes"),
        (tool(&|t| t.name = "x".into()), "declared twice"),
        (tool(&|t| t.about = long(8 * 1024)), ""),
        (
            tool(&|t| t.about = long(8 * 1024 + 1)),
            "description of tool `Y` has 8193",
        ),
        (
            tool(&|t| t.about = String::new()),
            "description of tool `Y` is empty",
        ),
        (tool(&|t| t.about = "a\n\tb".into()), ""),
        (tool(&|t| t.about = "a\u{1b}[2Jb".into()), "\\u{1b}"),
        (tool(&|t| t.schema = "{".into()), "schema of tool `Y`"),
        (tool(&|t| t.schema = "[]".into()), "schema of tool `Y`"),
        (
            tool(&|t| t.schema = r#"{"type":"string"}"#.into()),
            "schema of tool `Y`",
        ),
        (
            tool(&|t| {
                t.schema = format!(r#"{{"type":"object","title":"{}"}}"#, long(65_536)).into()
            }),
            "65536 are allowed",
        ),
        (tool(&|t| t.deadline_ms = 0), "deadline of tool `Y`"),
        (tool(&|t| t.deadline_ms = 3_610_001), "deadline of tool `Y`"),
        (
            tool(&|t| t.needs = vec![HostCapability::ANY_PROGRAM]),
            "does not request",
        ),
        (many(63), ""),
        (many(64), "65 tools; at most 64"),
        (asks(HostCapability::ANY_PROGRAM, "why"), ""),
        (
            asks(HostCapability::ANY_PROGRAM, ""),
            "reason of Process(*) is empty",
        ),
        (asks(HostCapability::ANY_PROGRAM, &long(513)), "513 bytes"),
        (asks(fs("w", false), "why"), "without `read`"),
        (asks(fs("", true), "why"), "root"),
        (asks(process(vec![]), "why"), "1 to 64 programs"),
        (asks(process(vec!["a\u{7}".into()]), "why"), "\\u{7}"),
        (asks(HostCapability::tool("a\u{7}"), "why"), "\\u{7}"),
        (
            (0..65).fold(base(), |b, _| {
                b.request(CapabilityRequest::optional(fs("w", true), "why"))
            }),
            "65 requests",
        ),
        (
            base()
                .instruction("a", "text")
                .instruction("b", "text\nmore"),
            "",
        ),
        (
            base().instruction("a", "text").instruction("a", "text"),
            "instruction `a` is declared twice",
        ),
        (base().instruction("a", ""), "instruction `a` is empty"),
        (
            base().instruction("", "text"),
            "an instruction's name is empty",
        ),
        (base().instruction("a", "\u{2029}x"), "\\u{2029}"),
        (base().instruction("a", long(8 * 1024 + 1)), "8193 bytes"),
        (
            (0..17).fold(base(), |b, i| b.instruction(format!("i{i}"), "text")),
            "17 instructions; at most 16",
        ),
    ];
    for (n, (builder, expected)) in cases.into_iter().enumerate() {
        let descriptor = builder.build();
        let problems = descriptor.problems();
        if expected.is_empty() {
            assert!(problems.is_empty(), "case {n}: {problems:?}");
            continue;
        }
        assert_eq!(problems.len(), 1, "case {n}: {problems:?}");
        assert!(
            problems[0].contains(expected),
            "case {n}: {expected} in {problems:?}"
        );
        let plan = build(tools_for(&["user:u"]), vec![with(descriptor, |_| Ok(()))]).plan();
        assert_eq!(
            codes(&plan.features[0].diagnostics),
            [DiagnosticCode::InvalidDescriptor],
            "case {n}"
        );
        let shown = serde_json::to_string(&plan).unwrap();
        assert!(
            !shown.contains(['\u{202e}', '\u{2066}', '\u{85}', '\u{2029}']),
            "case {n}: {shown}"
        );
    }
}

#[test]
fn ids_are_parsed_not_taken() {
    for good in ["builtin:a", "user:a-1", "plugin:pkg/x", "project:9"] {
        let parsed: FeatureId = good.parse().unwrap();
        assert_eq!(parsed.to_string(), good);
        assert_eq!(
            serde_json::from_str::<FeatureId>(&format!("\"{good}\"")).unwrap(),
            parsed
        );
    }
    let long = format!("user:{}", "a".repeat(65));
    let bad = [
        "",
        "a",
        "builtin:",
        "builtin:A",
        "builtin:a/b",
        "plugin:a",
        "plugin:a/",
        "plugin:a/b/c",
        "other:a",
        "user:a b",
        &long,
    ];
    for bad in bad {
        assert!(bad.parse::<FeatureId>().is_err(), "{bad}");
        assert!(
            serde_json::from_str::<FeatureId>(&format!("\"{bad}\"")).is_err(),
            "{bad}"
        );
    }
    for bad in ["", "A", "a/b", Box::leak("a".repeat(65).into_boxed_str())] {
        assert!(
            std::panic::catch_unwind(|| FeatureId::builtin(bad)).is_err(),
            "{bad}"
        );
    }
    assert_eq!(
        "user:\n"
            .parse::<FeatureId>()
            .unwrap_err()
            .to_string()
            .lines()
            .count(),
        1
    );
}

#[test]
fn a_descriptor_survives_its_own_json() {
    let descriptor = declaring("user:u", &["X"])
        .request(CapabilityRequest::optional(
            HostCapability::ANY_PROGRAM,
            "why",
        ))
        .instruction("a", "text")
        .build();
    let json = serde_json::to_string(&descriptor).unwrap();
    assert_eq!(
        serde_json::from_str::<FeatureDescriptor>(&json).unwrap(),
        descriptor
    );
    let more = json.replacen('{', r#"{"surprise":1,"#, 1);
    assert!(
        serde_json::from_str::<FeatureDescriptor>(&more)
            .unwrap_err()
            .to_string()
            .contains("surprise")
    );
}

// Each feature is within its own bounds; together they would be more than one record takes.
#[test]
fn what_all_features_put_before_the_model_is_bounded() {
    const TEXT: &str = "[instructions of a feature that are set anew]";
    let large = |id_text: &'static str, tools: usize| {
        let schema = format!(
            "{{\"title\":\"{}\",\"type\":\"object\"}}",
            "x".repeat(60_000)
        );
        let definition = move |n: usize| ToolDefinition {
            schema: schema.as_str().into(),
            ..foreign(&format!("{}{n}", &id_text[8..]))
        };
        let start = declaring(id_text, &[]).instruction("words", TEXT);
        let declared = (0..tools).fold(start, |b, n| {
            b.foreign_tool(ToolDeclaration::of(definition(n)))
        });
        with(declared.build(), move |ctx| {
            for n in 0..tools {
                let tool = ToolContribution::new(
                    id(id_text),
                    Arc::new(Foreign(definition(n))),
                    Vec::new(),
                );
                ctx.tools().register(tool)?;
            }
            // Longer by far than what the plan counted.
            ctx.instructions().set("words", "y".repeat(8_000))
        })
    };
    let ids = ["builtin:a", "builtin:b", "builtin:c"];
    // The second does not fit beside the first; the third fits as it is declared, and not as it is worded.
    let modules = vec![
        large("builtin:a", 12),
        large("builtin:b", 2),
        large("builtin:c", 1),
    ];
    let plan = build(tools_for(&ids), modules.clone()).plan();
    let live = |outcomes: Vec<InstallOutcome>| {
        outcomes
            .into_iter()
            .map(InstallOutcome::is_live)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        live(plan.features.iter().map(|f| f.outcome).collect()),
        [true, false, true]
    );
    assert_eq!(
        codes(&plan.features[1].diagnostics),
        [DiagnosticCode::TooManyFeatures]
    );
    let registry = build(tools_for(&ids), modules).install(&HostServices::none());
    assert_eq!(
        live(
            registry
                .report()
                .features
                .iter()
                .map(|f| f.outcome)
                .collect()
        ),
        [true, false, false]
    );
    assert_eq!(
        codes(&registry.report().features[2].diagnostics),
        [DiagnosticCode::TooManyFeatures]
    );
}
