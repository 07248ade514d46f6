//! ClickUp's answers as the words of all providers.

use crate::fields;
pub(crate) use crate::fields::{SIGN, VENDOR_NAME};
use api_core::ServiceFault;
use api_core::entity::{Comment, Issue, RelatedIssue, Status, StatusCategory, User};
use api_core::reading::{id, list, needed, number, text, texts};
use api_core::time;
use serde_json::Value;

/// Priorities, of which the first has the number 1.
pub(crate) const PRIORITIES: [&str; 4] = ["urgent", "high", "normal", "low"];

/// Types of tasks that each workspace has, of which the first has the number 0.
pub(crate) const TYPES: [&str; 2] = ["task", "milestone"];

/// What a type of statuses means.
fn category(kind: &str) -> StatusCategory {
    match kind {
        "done" | "closed" => StatusCategory::Done,
        "open" | "unstarted" => StatusCategory::Todo,
        _ => StatusCategory::InProgress,
    }
}

/// The statuses of a list, in its order.
pub(crate) fn statuses(of: &Value) -> Result<Vec<Status>, ServiceFault> {
    let all = needed(
        of.get("statuses").and_then(Value::as_array),
        VENDOR_NAME,
        "a list",
        "statuses",
    )?;
    let read = |of: &Value| {
        let name = needed(text(of, "/status"), VENDOR_NAME, "a status", "status")?;
        let kind = text(of, "/type").unwrap_or_default();
        Ok(Status {
            id: name.clone(),
            name,
            category: category(&kind),
        })
    };
    all.iter().map(read).collect()
}

pub(crate) fn user(of: &Value) -> Option<User> {
    Some(User {
        id: id(of, "/id")?,
        name: text(of, "/username"),
        email: text(of, "/email"),
    })
}

/// The milliseconds there, which are a text.
fn moment(of: &Value, at: &str) -> Option<String> {
    number(of, at).map(time::shown)
}

pub(crate) fn key(of: &Value, what: &str) -> Result<String, ServiceFault> {
    let id = needed(text(of, "/id"), VENDOR_NAME, what, "id")?;
    Ok(format!("{SIGN}{id}"))
}

pub(crate) fn issue(of: &Value) -> Result<Issue, ServiceFault> {
    const WHAT: &str = "a task";
    let kind = text(of, "/status/type").unwrap_or_default();
    let first = |all: &[&str]| all.iter().find_map(|at| text(of, at));
    let type_number = number(of, "/custom_item_id").unwrap_or_default();
    let type_name = usize::try_from(type_number)
        .ok()
        .and_then(|at| TYPES.get(at));
    let mut found = Issue {
        key: key(of, WHAT)?,
        title: needed(text(of, "/name"), VENDOR_NAME, WHAT, "name")?,
        status: needed(text(of, "/status/status"), VENDOR_NAME, WHAT, "status")?,
        status_category: category(&kind),
        description: first(&["/markdown_description", "/description", "/text_content"]),
        priority: text(of, "/priority/priority"),
        issue_type: type_name.map(|name| (*name).to_owned()),
        labels: texts(of, "/tags", "/name"),
        author: of.get("creator").and_then(user),
        assignees: list(of, "/assignees").iter().filter_map(user).collect(),
        url: text(of, "/url"),
        created_at: moment(of, "/date_created"),
        updated_at: moment(of, "/date_updated"),
        parent: text(of, "/parent").map(|id| format!("{SIGN}{id}")),
        ..Issue::default()
    };
    for field in list(of, "/custom_fields") {
        if let Some(shown) = fields::shown(field) {
            found.custom_fields.insert(shown.name, shown.value);
        }
    }
    Ok(found)
}

/// Tasks below a task, and others that it is connected with, of which ClickUp says no titles.
pub(crate) fn relate(of: &Value, found: &mut Issue) {
    for child in list(of, "/subtasks") {
        if let (Ok(key), Some(title)) = (key(child, ""), text(child, "/name")) {
            let status = text(child, "/status/status");
            found.subtasks.push(RelatedIssue {
                key,
                title,
                relation: "subtask".to_owned(),
                status,
            });
        }
    }
    let own = text(of, "/id").unwrap_or_default();
    let other = |ids: [Option<String>; 2]| ids.into_iter().flatten().find(|id| *id != own);
    let blocked = |row: &Value| text(row, "/task_id").as_deref() == Some(&own);
    let dependencies = list(of, "/dependencies").iter().map(|row| {
        let ids = [text(row, "/task_id"), text(row, "/depends_on")];
        (
            other(ids),
            if blocked(row) { "blocked_by" } else { "blocks" },
        )
    });
    let links = list(of, "/linked_tasks").iter().map(|row| {
        (
            other([text(row, "/task_id"), text(row, "/link_id")]),
            "relates_to",
        )
    });
    found.relations = dependencies
        .chain(links)
        .filter_map(|(id, relation)| {
            let key = format!("{SIGN}{}", id?);
            Some(RelatedIssue {
                title: key.clone(),
                key,
                relation: relation.to_owned(),
                status: None,
            })
        })
        .collect();
}

pub(crate) fn comment(of: &Value) -> Result<Comment, ServiceFault> {
    Ok(Comment {
        id: needed(id(of, "/id"), VENDOR_NAME, "a comment", "id")?,
        body: text(of, "/comment_text").unwrap_or_default(),
        author: of.get("user").and_then(user),
        created_at: moment(of, "/date"),
        ..Comment::default()
    })
}
