//! The enricher of `builtin:work-item`: kinds, priorities and labels are those of the project's items; and the category of
//! the tools, which another feature's tools can have.

use crate::rig::Seconds;
use builtins::work_item::{ENRICH, ID, MIN_ITEMS, Settings, WorkItems};
use llm_worker::{ToolDefinition, ToolEffect, ToolOutput};
use pod::feature::*;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{FeatureHost, FeatureUnderTest, feature};

fn installed(host: FeatureHost) -> FeatureUnderTest {
    host.install(WorkItems::new(Settings::default(), Seconds::noon().clock()).unwrap())
}

fn put(host: &FeatureUnderTest, n: usize, kind: &str, priority: &str, labels: &str) {
    let id = format!("20260131-1100{n:02}-item");
    // The first root that a feature requests.
    let item = host
        .project()
        .join("root-0")
        .join(if n.is_multiple_of(2) {
            "open"
        } else {
            "closed"
        })
        .join(&id);
    std::fs::create_dir_all(&item).unwrap();
    let front = format!(
        "---\nid: {id}\nslug: item\ntitle: \"item\"\nstatus: open\nkind: {kind}\npriority: {priority}\nlabels: [{labels}]\n\
         created_at: 2026-01-31T11:00:00Z\nupdated_at: 2026-01-31T11:00:00Z\nassignee: \"\"\n---\n"
    );
    std::fs::write(item.join("item.md"), front).unwrap();
    let thread = format!("# Thread of {id}\n\n## 1 | 2026-01-31T11:00:00Z | created open | Ann\n");
    std::fs::write(item.join("thread.md"), thread).unwrap();
}

/// A pod that started over this many items of the project.
fn host(items: usize, host: FeatureHost) -> FeatureUnderTest {
    let mut host = installed(host);
    for n in 0..items {
        match n {
            0 => put(&host, n, "bug", "urgent", "ui, core"),
            n => put(&host, n, "bug", "high", "core"),
        }
    }
    host.restart();
    host
}

fn enriched(host: &FeatureUnderTest) -> Vec<(String, String)> {
    host.report()
        .enriched
        .iter()
        .map(|e| (e.tool.clone(), e.properties.join(",")))
        .collect()
}

#[test]
fn the_tools_offer_the_values_of_the_projects_items() {
    let mut host = host(MIN_ITEMS, FeatureHost::new().permit_all());
    let tools = ["WorkItemList", "WorkItemCreate", "WorkItemUpdate"];
    let properties = ["kind,label", "kind,labels,priority", "kind,labels,priority"];
    let expected: Vec<_> = tools
        .iter()
        .zip(properties)
        .map(|(t, p)| ((*t).to_owned(), p.to_owned()))
        .collect();
    let mut found = enriched(&host);
    found.sort_by_key(|(tool, _)| tools.iter().position(|known| known == tool));
    assert_eq!(found, expected);
    assert_eq!(
        host.report().categories,
        [ToolCategory::new("issue-tracker")]
    );
    let item = |more: Value| {
        let mut item = json!({"title": "t", "body": "b"});
        item.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        item
    };
    let cases = [
        (json!({}), "created"),
        (
            json!({"kind": "bug", "priority": "urgent", "labels": ["ui"]}),
            "created",
        ),
        // What a new item gets anyway.
        (
            json!({"kind": "task", "priority": "normal", "labels": []}),
            "created",
        ),
        (
            json!({"kind": " Bug", "priority": "High", "labels": ["UI"]}),
            "created",
        ),
        (json!({"kind": "docs"}), "/kind: "),
        (json!({"priority": "low"}), "/priority: "),
        (json!({"labels": ["ui", "invented"]}), "/labels/1: "),
    ];
    for (more, says) in cases {
        let text = host.call("WorkItemCreate", item(more.clone())).text();
        assert!(text.contains(says), "{more}: {text}");
    }
}

#[test]
fn few_items_or_a_denial_leave_the_tools_as_they_are() {
    let cases = [
        (MIN_ITEMS - 1, FeatureHost::new()),
        (MIN_ITEMS, FeatureHost::new().deny(ENRICH)),
    ];
    for (items, builder) in cases {
        let mut host = host(items, builder.permit_all());
        assert_eq!(enriched(&host), [], "{items}");
        let text = host
            .call(
                "WorkItemCreate",
                json!({"title": "t", "body": "b", "labels": ["new"]}),
            )
            .text();
        assert!(text.contains("created"), "{text}");
    }
}

const TOOLS: FeatureId = FeatureId::user("tracker-tools");

/// A tool of another feature with the category of the work items.
fn other() -> Arc<dyn FeatureModule> {
    let name = "Triage".to_owned();
    let description = "Sort issues.".to_owned();
    let schema = r#"{"type":"object"}"#.into();
    let definition = ToolDefinition {
        name,
        description,
        schema,
        effect: ToolEffect::ReadOnly,
    };
    let category = Some(ToolCategory::new("issue-tracker"));
    let tool = ToolDeclaration {
        category,
        ..ToolDeclaration::of(definition)
    };
    let staged = tool.clone();
    feature(
        FeatureDescriptor::builder(TOOLS)
            .version("1.0.0")
            .foreign_tool(tool)
            .build(),
        move |ctx| {
            let run = |_, _| async { Ok(ToolOutput::default()) };
            let tool = ToolContribution::declared(ctx.feature_id().clone(), &staged, run);
            ctx.tools().register(tool).map(drop)
        },
    )
}

#[test]
fn other_tools_of_the_category_come_and_go_with_the_work_items() {
    for on in [true, false] {
        let items = WorkItems::new(Settings::default(), Seconds::noon().clock()).unwrap();
        let mut policy =
            CapabilityPolicy::nothing().grant(TOOLS, HostCapability::tool("*"), "test");
        for held in [HostCapability::tool("*"), builtins::work_item::READ] {
            policy = policy.grant(ID, held, "test");
        }
        if !on {
            policy = policy.disable(ID, "default");
        }
        let plan = FeatureRegistryBuilder::new(policy)
            .with(Arc::new(items))
            .with(other())
            .plan();
        let planned = plan
            .features
            .iter()
            .find(|planned| planned.feature_id == TOOLS)
            .unwrap();
        assert_eq!(planned.tools.len(), usize::from(on));
        let why: Vec<&str> = planned
            .skipped_contributions
            .iter()
            .map(|skipped| skipped.reason.as_str())
            .collect();
        let expected = "no installed feature serves its category `issue-tracker`: builtin:work-item, which serves it, is disabled";
        assert_eq!(why, if on { Vec::new() } else { vec![expected] });
    }
}
