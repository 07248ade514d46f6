//! `read_first` of `builtin:work-item`: comments and changes of status need an item that the session has read.

use crate::rig::Seconds;
use builtins::work_item::{Settings, WorkItems};
use pod::feature::InstallOutcome;
use serde_json::{Value, json};
use testkit::{FeatureHost, FeatureUnderTest};

fn host(read_first: bool) -> FeatureUnderTest {
    let settings = Settings {
        author: "tester".to_owned(),
        read_first,
    };
    let host =
        FeatureHost::new().install(WorkItems::new(settings, Seconds::noon().clock()).unwrap());
    assert_eq!(host.report().outcome, InstallOutcome::Installed);
    host
}

/// Adds an item that the session did not create.
fn put(host: &FeatureUnderTest, id: &str) {
    // The first root that a feature requests.
    let item = host.project().join("root-0/open").join(id);
    std::fs::create_dir_all(&item).unwrap();
    let slug = &id[16..];
    let front = format!(
        "---\nid: {id}\nslug: {slug}\ntitle: \"{slug}\"\nstatus: open\nkind: task\npriority: normal\nlabels: []\n\
         created_at: 2026-01-31T11:00:00Z\nupdated_at: 2026-01-31T11:00:00Z\nassignee: \"\"\n---\n"
    );
    std::fs::write(item.join("item.md"), front).unwrap();
    let thread = format!("# Thread of {id}\n\n## 1 | 2026-01-31T11:00:00Z | created open | Ann\n");
    std::fs::write(item.join("thread.md"), thread).unwrap();
}

#[track_caller]
fn refused(host: &mut FeatureUnderTest, tool: &str, arguments: Value, id: &str) {
    let text = host.call(tool, arguments).text();
    let wanted =
        format!("rule `read_first`: this session has not read {id}; call WorkItemShow with it");
    assert!(text.contains(&wanted), "{text}");
}

#[track_caller]
fn done(host: &mut FeatureUnderTest, tool: &str, arguments: Value, text: &str) {
    let shown = host.call(tool, arguments).text();
    assert!(shown.contains(text), "{shown}");
}

#[test]
fn an_unread_item_is_not_commented_on_or_moved() {
    let mut host = host(true);
    let id = "20260131-110000-theirs";
    put(&host, id);
    for (tool, arguments) in [
        (
            "WorkItemComment",
            json!({"id": "theirs", "comment": "Done."}),
        ),
        ("WorkItemUpdate", json!({"id": id, "comment": "Done."})),
        (
            "WorkItemUpdate",
            json!({"id": "20260131", "status": "pending"}),
        ),
    ] {
        refused(&mut host, tool, arguments, id);
    }
    done(
        &mut host,
        "WorkItemUpdate",
        json!({"id": id, "priority": "high"}),
        "priority changed",
    );
    done(
        &mut host,
        "WorkItemComment",
        json!({"id": "none", "comment": "x"}),
        "there is no item `none`",
    );
    done(
        &mut host,
        "WorkItemShow",
        json!({"id": "theirs"}),
        "open, 1 event",
    );
    host.kill();
    done(
        &mut host,
        "WorkItemComment",
        json!({"id": "theirs", "comment": "Done."}),
        "comment added; it is open",
    );
    done(
        &mut host,
        "WorkItemUpdate",
        json!({"id": id, "status": "pending"}),
        "moved from open to pending",
    );
}

#[test]
fn an_item_that_the_session_created_counts_as_read() {
    let mut host = host(true);
    put(&host, "20260131-110000-theirs");
    done(
        &mut host,
        "WorkItemCreate",
        json!({"title": "Mine", "body": ""}),
        "20260131-120000-mine: created",
    );
    host.restart();
    done(
        &mut host,
        "WorkItemComment",
        json!({"id": "mine", "comment": "More."}),
        "comment added",
    );
    refused(
        &mut host,
        "WorkItemComment",
        json!({"id": "theirs", "comment": "More."}),
        "20260131-110000-theirs",
    );
}

#[test]
fn without_the_setting_a_comment_needs_only_a_text() {
    let mut host = host(false);
    put(&host, "20260131-110000-theirs");
    assert!(host.report().installed_hooks.is_empty());
    done(
        &mut host,
        "WorkItemComment",
        json!({"id": "theirs", "comment": " "}),
        "`comment` is empty",
    );
    done(
        &mut host,
        "WorkItemComment",
        json!({"id": "theirs", "comment": "Done."}),
        "comment added",
    );
    done(
        &mut host,
        "WorkItemShow",
        json!({"id": "theirs"}),
        "comment (tester)\n  Done.",
    );
}
