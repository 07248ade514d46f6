//! Changes of issues.

use crate::JiraProject;
use crate::mapping::{PREFIX, VENDOR_NAME, issue};
use api_core::arguments::{IssueChange, IssueLink, LinkType, NewIssue, NewState};
use api_core::entity::Issue;
use api_core::http::{Method, sent};
use api_core::reading::{flag, id, list, needed, number, text, texts};
use api_core::{ServiceFault, key, unfit};
use authority::text::{Lines, escape_within};
use serde_json::{Map, Value, json};

/// What an issue is to have, in the words of all providers.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) labels: Option<Vec<String>>,
    pub(crate) assignees: Option<Vec<String>>,
    pub(crate) priority: Option<String>,
    pub(crate) parent: Option<String>,
}

impl JiraProject {
    /// The fields of this content, without those that stay.
    pub(crate) async fn content(
        &self,
        project: &str,
        of: Content,
    ) -> Result<Map<String, Value>, ServiceFault> {
        let parent = of.parent.as_deref();
        let parent = parent.map(|key| key::of_project(key, PREFIX)).transpose()?;
        let fields = json!({
            "summary": of.title,
            "description": of.description.map(|text| self.body(&text)),
            "labels": of.labels,
            "priority": of.priority.map(|name| json!({ "name": name })),
            "parent": parent.map(|key| json!({ "key": key })),
        });
        let mut fields = match sent(fields) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let assignee = match of.assignees.as_deref() {
            None => return Ok(fields),
            Some([]) => Value::Null,
            Some([one]) => {
                let id = self.person(project, one).await?;
                match self.is_cloud {
                    true => json!({ "accountId": id }),
                    false => json!({ "name": id }),
                }
            }
            Some(_) => return Err(unfit("`assignees`: an issue of Jira has one assignee")),
        };
        fields.insert("assignee".to_owned(), assignee);
        Ok(fields)
    }

    pub(crate) async fn create(&self, wanted: NewIssue) -> Result<Issue, ServiceFault> {
        let project = self.project_of(wanted.project_key.as_deref())?;
        let kind = self.kind(&project, &wanted).await?;
        let mut fields = match wanted.custom_fields.is_empty() {
            true => Map::new(),
            false => {
                let known = self.fields_of_type(&project, &kind).await?;
                self.fields_sent(&known, &wanted.custom_fields)?
            }
        };
        let content = Content {
            title: Some(wanted.title),
            description: wanted.description,
            labels: (!wanted.labels.is_empty()).then_some(wanted.labels),
            assignees: (!wanted.assignees.is_empty()).then_some(wanted.assignees),
            priority: wanted.priority,
            parent: wanted.parent,
        };
        fields.extend(self.content(&project, content).await?);
        let made = self.made(&project, &kind, fields).await?;
        issue(&made)
    }

    /// Makes an issue, and reads it.
    pub(crate) async fn made(
        &self,
        project: &str,
        kind: &str,
        mut fields: Map<String, Value>,
    ) -> Result<Value, ServiceFault> {
        fields.insert("project".to_owned(), json!({ "key": project }));
        fields.insert("issuetype".to_owned(), json!({ "id": kind }));
        let body = json!({ "fields": fields });
        let made = self.send(Method::POST, "/issue", body).await?;
        let key = needed(text(&made, "/key"), VENDOR_NAME, "a new issue", "key")?;
        let key = key::of_project(&key, PREFIX)?;
        let read = self.get(&format!("/issue/{key}")).await;
        read.map_err(|fault| {
            let text = format!("{key} is made, but was not read: {}", fault.message);
            ServiceFault::new(fault.kind, text)
        })
    }

    /// The type of a new issue: the wanted one, that of subtasks below an issue, else the usual one.
    async fn kind(&self, project: &str, wanted: &NewIssue) -> Result<String, ServiceFault> {
        let types = self.types(project).await?;
        let named = |name: &str| {
            let is_named = |own: String| own.eq_ignore_ascii_case(name);
            let mut all = types.iter();
            all.find(|of| text(of, "/name").is_some_and(is_named))
        };
        let is_below = match wanted.parent.as_deref() {
            Some(key) if wanted.issue_type.is_none() => {
                let key = key::of_project(key, PREFIX)?;
                let path = format!("/issue/{key}?fields=issuetype");
                let level = number(&self.get(&path).await?, "/fields/issuetype/hierarchyLevel");
                // Below an epic stands what is none.
                level.is_none_or(|level| level == 0)
            }
            _ => false,
        };
        let usual = || {
            let is_usual = |of: &&Value| {
                let level = number(of, "/hierarchyLevel").unwrap_or(0);
                flag(of, "/subtask") == is_below && (is_below || level == 0)
            };
            let task = named("Task").filter(|of| is_usual(of));
            task.or_else(|| types.iter().find(is_usual))
        };
        let found = match wanted.issue_type.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => named(name),
            None => usual(),
        };
        let names = || {
            let names: Vec<String> = types.iter().filter_map(|of| text(of, "/name")).collect();
            let names = escape_within(&names.join(", "), Lines::One, 512);
            unfit(format!("`issueType` must be one of: {names}"))
        };
        let found = found.ok_or_else(names)?;
        type_id(found)
    }

    /// A change of the fields, and then one of the status, which is a step of the project's workflow.
    pub(crate) async fn change(&self, wanted: IssueChange) -> Result<Issue, ServiceFault> {
        let key = key::of_project(&wanted.key, PREFIX)?;
        let mut fields = match wanted.custom_fields.is_empty() {
            true => Map::new(),
            false => {
                let known = self.fields_of_issue(&key).await?;
                self.fields_sent(&known, &wanted.custom_fields)?
            }
        };
        let project = key.rsplit_once('-').map_or("", |(project, _)| project);
        let content = Content {
            title: wanted.title,
            description: wanted.description,
            labels: wanted.labels,
            assignees: wanted.assignees,
            priority: wanted.priority,
            parent: wanted.parent,
        };
        fields.extend(self.content(project, content).await?);
        let status = wanted.status.as_deref();
        issue(&self.changed(&key, fields, status, wanted.state).await?)
    }

    pub(crate) async fn changed(
        &self,
        key: &str,
        fields: Map<String, Value>,
        status: Option<&str>,
        state: Option<NewState>,
    ) -> Result<Value, ServiceFault> {
        let path = format!("/issue/{key}");
        let step = self.step(key, status, state).await?;
        let is_changed = !fields.is_empty();
        if is_changed {
            let body = json!({ "fields": fields });
            self.send(Method::PUT, &path, body).await?;
        }
        let after = |fault: ServiceFault| match is_changed {
            true => ServiceFault::new(
                fault.kind,
                format!(
                    "a part of the change of {key} is done, but: {}",
                    fault.message
                ),
            ),
            false => fault,
        };
        if let Some(step) = step {
            let body = json!({ "transition": { "id": step } });
            let path = format!("{path}/transitions");
            self.send(Method::POST, &path, body).await.map_err(after)?;
        }
        self.get(&path).await.map_err(after)
    }

    /// The step to a wanted status; none where the issue is there.
    async fn step(
        &self,
        key: &str,
        status: Option<&str>,
        state: Option<NewState>,
    ) -> Result<Option<String>, ServiceFault> {
        if status.is_none() && state.is_none() {
            return Ok(None);
        }
        let now = self.get(&format!("/issue/{key}?fields=status")).await?;
        let fits = |of: Option<&Value>| {
            let of = of.unwrap_or(&Value::Null);
            match (status, state) {
                (Some(name), _) => {
                    text(of, "/name").is_some_and(|own| own.eq_ignore_ascii_case(name))
                }
                (None, state) => {
                    let is_done = text(of, "/statusCategory/key").as_deref() == Some("done");
                    is_done == (state == Some(NewState::Closed))
                }
            }
        };
        if fits(now.pointer("/fields/status")) {
            return Ok(None);
        }
        let found = self.get(&format!("/issue/{key}/transitions")).await?;
        let steps = list(&found, "/transitions");
        if let Some(step) = steps.iter().find(|of| fits(of.get("to"))) {
            return needed(id(step, "/id"), VENDOR_NAME, "a transition", "id").map(Some);
        }
        let names = texts(&found, "/transitions", "/to/name").join(", ");
        let names = escape_within(&names, Lines::One, 512);
        Err(unfit(format!(
            "{key} cannot go to this status now; the workflow leads to: {names}"
        )))
    }

    pub(crate) async fn link(&self, wanted: IssueLink) -> Result<Issue, ServiceFault> {
        let own = key::of_project(&wanted.key, PREFIX)?;
        let other = key::of_project(&wanted.target, PREFIX)?;
        // The outward words are those of the first issue.
        let (words, first, second) = match wanted.link_type {
            LinkType::Blocks => ("blocks", &own, &other),
            LinkType::BlockedBy => ("blocks", &other, &own),
            LinkType::RelatesTo => ("relates to", &own, &other),
            LinkType::Duplicates => ("duplicates", &own, &other),
            LinkType::SubtaskOf => {
                let fields = Map::from_iter([("parent".to_owned(), json!({ "key": other }))]);
                return issue(&self.changed(&own, fields, None, None).await?);
            }
        };
        let types = self.get("/issueLinkType").await?;
        let all = list(&types, "/issueLinkTypes");
        let is_meant = |of: &&Value| {
            text(of, "/outward").is_some_and(|outward| outward.eq_ignore_ascii_case(words))
        };
        let Some(name) = all.iter().find(is_meant).and_then(|of| text(of, "/name")) else {
            let known = texts(&types, "/issueLinkTypes", "/outward").join(", ");
            let known = escape_within(&known, Lines::One, 512);
            return Err(unfit(format!(
                "this Jira has no link that {words}; it has: {known}"
            )));
        };
        let body = json!({
            "type": { "name": name },
            "inwardIssue": { "key": first },
            "outwardIssue": { "key": second },
        });
        self.send(Method::POST, "/issueLink", body).await?;
        issue(&self.get(&format!("/issue/{own}")).await?)
    }
}

/// The id of a type of issues, as a part of a path.
pub(crate) fn type_id(of: &Value) -> Result<String, ServiceFault> {
    let id = id(of, "/id").filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    needed(id, VENDOR_NAME, "a type of issues", "id")
}
