//! Jira's answers as the words of all providers.

use crate::adf;
use api_core::ServiceFault;
use api_core::entity::{Comment, Epic, Issue, RelatedIssue, Status, StatusCategory, User};
use api_core::reading::{id, list, needed, text, texts};
use api_core::time;
use serde_json::{Map, Value};

pub(crate) const VENDOR_NAME: &str = "Jira";

/// What stands before a key, if anything does.
pub(crate) const PREFIX: &str = "jira";

/// The fields of issues in lists.
pub(crate) const FIELDS: [&str; 11] = [
    "summary",
    "description",
    "status",
    "priority",
    "issuetype",
    "labels",
    "reporter",
    "assignee",
    "created",
    "updated",
    "parent",
];

fn must<T>(found: Option<T>, what: &str, at: &str) -> Result<T, ServiceFault> {
    needed(found, VENDOR_NAME, what, at)
}

/// What a status means.
fn category(of: &Value, at: &str) -> StatusCategory {
    match text(of, &format!("{at}/statusCategory/key")).as_deref() {
        Some("done") => StatusCategory::Done,
        Some("indeterminate") => StatusCategory::InProgress,
        _ => StatusCategory::Todo,
    }
}

/// A time such as `2026-01-17T12:34:00.000+0200`.
pub(crate) fn moment(of: &Value, at: &str) -> Option<String> {
    let whole = text(of, at)?;
    let (local, offset) = whole.split_at_checked(whole.len().checked_sub(5)?)?;
    let (hours, minutes) = offset.get(1..)?.split_at_checked(2)?;
    let minutes = hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    let local = time::millis(at, &format!("{local}Z")).ok()?;
    let away = minutes * 60_000;
    let millis = match offset.chars().next()? {
        '+' => local.checked_sub(away)?,
        '-' => local.checked_add(away)?,
        _ => return None,
    };
    Some(time::shown(millis))
}

/// A person, by the id of Jira Cloud or by the name in Jira Data Center.
pub(crate) fn user(of: &Value, at: &str) -> Option<User> {
    let of = of.pointer(at)?;
    Some(User {
        id: text(of, "/accountId").or_else(|| text(of, "/name"))?,
        name: text(of, "/displayName"),
        email: text(of, "/emailAddress"),
    })
}

/// Statuses of all types of issues of a project, each once.
pub(crate) fn statuses(types: &Value) -> Result<Vec<Status>, ServiceFault> {
    let types = must(types.as_array(), "statuses", "[…]")?;
    let mut all: Vec<Status> = Vec::new();
    for of in types.iter().flat_map(|of| list(of, "/statuses")) {
        let name = must(text(of, "/name"), "a status", "name")?;
        if all.iter().all(|own| own.name != name) {
            all.push(Status {
                id: id(of, "/id").unwrap_or_else(|| name.clone()),
                name,
                category: category(of, ""),
            });
        }
    }
    Ok(all)
}

pub(crate) fn issue(of: &Value) -> Result<Issue, ServiceFault> {
    const WHAT: &str = "an issue";
    let key = must(text(of, "/key"), WHAT, "key")?;
    Ok(Issue {
        title: must(text(of, "/fields/summary"), WHAT, "fields/summary")?,
        status: must(text(of, "/fields/status/name"), WHAT, "fields/status/name")?,
        status_category: category(of, "/fields/status"),
        description: of.pointer("/fields/description").and_then(adf::shown),
        priority: text(of, "/fields/priority/name"),
        issue_type: text(of, "/fields/issuetype/name"),
        labels: texts(of, "/fields/labels", ""),
        author: user(of, "/fields/reporter"),
        assignees: user(of, "/fields/assignee").into_iter().collect(),
        url: url(of, &key),
        created_at: moment(of, "/fields/created"),
        updated_at: moment(of, "/fields/updated"),
        parent: text(of, "/fields/parent/key"),
        key,
        ..Issue::default()
    })
}

/// Where a person sees an issue, from where the API has it.
fn url(of: &Value, key: &str) -> Option<String> {
    let whole = text(of, "/self")?;
    let (site, _) = whole.split_once("/rest/")?;
    // The address of the API by the number of a site.
    (!site.contains("/ex/jira/")).then(|| format!("{site}/browse/{key}"))
}

pub(crate) fn epic(of: &Value) -> Result<Epic, ServiceFault> {
    let of = issue(of)?;
    Ok(Epic {
        key: of.key,
        title: of.title,
        status: of.status,
        status_category: of.status_category,
        description: of.description,
        labels: of.labels,
        author: of.author,
        url: of.url,
        created_at: of.created_at,
        updated_at: of.updated_at,
        children: Vec::new(),
    })
}

/// Adds the issues that belong to one, and its fields.
pub(crate) fn relate(of: &Value, found: &mut Issue) {
    let related = |of: &Value, relation: &str| {
        Some(RelatedIssue {
            key: text(of, "/key")?,
            title: text(of, "/fields/summary").unwrap_or_default(),
            relation: relation.to_owned(),
            status: text(of, "/fields/status/name"),
        })
    };
    let subtasks = list(of, "/fields/subtasks").iter();
    found.subtasks = subtasks.filter_map(|of| related(of, "subtask")).collect();
    let links = list(of, "/fields/issuelinks").iter();
    let links = links.filter_map(|link| {
        let ends = [
            ("/outwardIssue", "/type/outward"),
            ("/inwardIssue", "/type/inward"),
        ];
        ends.into_iter().find_map(|(issue, words)| {
            let words = text(link, words)?;
            related(link.pointer(issue)?, relation(&words))
        })
    });
    found.relations = links.collect();
}

/// Jira's words for a link, in those of all providers where there is one.
fn relation(words: &str) -> &str {
    match words {
        "is blocked by" => "blocked_by",
        "relates to" => "relates_to",
        other => other,
    }
}

/// The custom fields that have values, by their names.
pub(crate) fn custom_fields(of: &Value) -> Map<String, Value> {
    let fields = of.pointer("/fields").and_then(Value::as_object);
    let custom = fields.into_iter().flatten();
    let named = custom.filter_map(|(id, value)| {
        let name = text(of, &format!("/names/{id}")).filter(|_| id.starts_with("customfield_"))?;
        Some((name, plain(value)?))
    });
    named.collect()
}

/// A value of a field without what only Jira needs.
fn plain(of: &Value) -> Option<Value> {
    match of {
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) => Some(of.clone()),
        Value::String(text) => (!text.is_empty()).then(|| of.clone()),
        Value::Array(parts) => {
            let parts: Vec<Value> = parts.iter().filter_map(plain).collect();
            (!parts.is_empty()).then(|| parts.into())
        }
        Value::Object(_) if text(of, "/type").as_deref() == Some("doc") => {
            adf::shown(of).map(Value::from)
        }
        Value::Object(_) => {
            let names = ["/value", "/name", "/displayName", "/key"];
            let name = names.iter().find_map(|at| text(of, at))?;
            // Of a choice in two steps.
            let child = text(of, "/child/value");
            Some(
                child
                    .map_or(name.clone(), |child| format!("{name} / {child}"))
                    .into(),
            )
        }
    }
}

pub(crate) fn comment(of: &Value) -> Result<Comment, ServiceFault> {
    Ok(Comment {
        id: must(id(of, "/id"), "a comment", "id")?,
        body: of.get("body").and_then(adf::shown).unwrap_or_default(),
        author: user(of, "/author"),
        created_at: moment(of, "/created"),
        updated_at: moment(of, "/updated"),
        ..Comment::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_with_an_offset_become_utc() {
        let shown = |text: &str| moment(&json!({ "at": text }), "/at");
        for (text, wanted) in [
            ("2026-01-17T12:34:00.000+0000", Some("2026-01-17T12:34:00Z")),
            ("2026-01-17T12:34:00.000+0200", Some("2026-01-17T10:34:00Z")),
            ("2026-01-17T22:34:00.000-0530", Some("2026-01-18T04:04:00Z")),
            ("2026-01-17T12:34:00.000Z", None),
            ("+0200", None),
            ("é+020", None),
            ("", None),
        ] {
            assert_eq!(shown(text).as_deref(), wanted, "{text}");
        }
    }
}
