//! Changes of tasks.

use crate::mapping::{PRIORITIES, SIGN, TYPES, issue};
use crate::{ClickUpList, fields, is_number};
use api_core::arguments::{IssueChange, IssueLink, LinkType, NewIssue, NewState};
use api_core::entity::{Issue, StatusCategory};
use api_core::http::{Method, encoded, sent};
use api_core::reading::{list, number, text, texts};
use api_core::{ServiceFault, key, unfit};
use serde_json::{Map, Value, json};

impl ClickUpList {
    pub(crate) async fn create(&self, wanted: NewIssue) -> Result<Issue, ServiceFault> {
        let list = self.list_of(wanted.project_key.as_deref())?;
        let fields = self.fields(list, &wanted.custom_fields).await?;
        let body = sent(json!({
            "name": wanted.title,
            "markdown_content": wanted.description,
            "tags": wanted.labels,
            "assignees": self.people(list, &wanted.assignees).await?,
            "priority": priority(wanted.priority.as_deref())?,
            "parent": parent(wanted.parent.as_deref())?,
            "custom_item_id": kind(wanted.issue_type.as_deref())?,
            "custom_fields": (!fields.is_empty()).then_some(fields),
        }));
        issue(
            &self
                .send(Method::POST, &format!("/list/{list}/task"), body)
                .await?,
        )
    }

    /// Tags and custom fields are changed one by one, after what a task itself has.
    pub(crate) async fn change(&self, wanted: IssueChange) -> Result<Issue, ServiceFault> {
        let id = key::signed(&wanted.key, SIGN)?;
        let path = format!("/task/{id}");
        let now = self.task(id).await?;
        let own_list = api_core::reading::id(&now, "/list/id").filter(|of| is_number(of));
        let own_list = self.list_of(own_list.as_deref())?;
        let fields = self.fields(own_list, &wanted.custom_fields).await?;
        let status = match (wanted.status, wanted.state) {
            (Some(status), _) => Some(status),
            (None, Some(state)) => Some(self.status_of(own_list, state).await?),
            (None, None) => None,
        };
        let assignees = match &wanted.assignees {
            Some(people) => {
                let then = self.people(own_list, people).await?;
                let before = list(&now, "/assignees")
                    .iter()
                    .filter_map(|of| number(of, "/id"));
                let before: Vec<u64> = before.collect();
                let add: Vec<&u64> = then.iter().filter(|of| !before.contains(of)).collect();
                let rem: Vec<&u64> = before.iter().filter(|of| !then.contains(of)).collect();
                Some(json!({ "add": add, "rem": rem }))
            }
            None => None,
        };
        let body = sent(json!({
            "name": wanted.title,
            "markdown_content": wanted.description,
            "status": status,
            "priority": priority(wanted.priority.as_deref())?,
            "parent": parent(wanted.parent.as_deref())?,
            "assignees": assignees,
        }));
        if body != json!({}) {
            self.send(Method::PUT, &path, body).await?;
        }
        let after = |fault| after(&wanted.key, fault);
        if let Some(then) = &wanted.labels {
            let before = texts(&now, "/tags", "/name");
            let other =
                |of: &&String, all: &[String]| all.iter().all(|own| !own.eq_ignore_ascii_case(of));
            let added = then
                .iter()
                .filter(|of| other(of, &before))
                .map(|of| (Method::POST, of));
            let removed = before
                .iter()
                .filter(|of| other(of, then))
                .map(|of| (Method::DELETE, of));
            for (method, tag) in added.chain(removed) {
                let path = format!("{path}/tag/{}", encoded(tag));
                self.send(method, &path, json!({})).await.map_err(after)?;
            }
        }
        for field in fields {
            let id = text(&field, "/id").unwrap_or_default();
            let body = json!({ "value": field.get("value") });
            let path = format!("{path}/field/{}", encoded(&id));
            self.send(Method::POST, &path, body).await.map_err(after)?;
        }
        issue(&self.task(id).await?).map_err(after)
    }

    pub(crate) async fn link(&self, wanted: IssueLink) -> Result<Issue, ServiceFault> {
        let own = key::signed(&wanted.key, SIGN)?;
        let other = key::signed(&wanted.target, SIGN)?;
        let (method, path, body) = match wanted.link_type {
            LinkType::Blocks => (
                Method::POST,
                format!("/task/{other}/dependency"),
                json!({ "depends_on": own }),
            ),
            LinkType::BlockedBy => (
                Method::POST,
                format!("/task/{own}/dependency"),
                json!({ "depends_on": other }),
            ),
            LinkType::RelatesTo => (Method::POST, format!("/task/{own}/link/{other}"), json!({})),
            LinkType::SubtaskOf => (
                Method::PUT,
                format!("/task/{own}"),
                json!({ "parent": other }),
            ),
            LinkType::Duplicates => {
                return Err(unfit(
                    "ClickUp has no such link: use relates_to, or name the other task in a comment",
                ));
            }
        };
        self.send(method, &path, body).await?;
        issue(&self.task(own).await?).map_err(|fault| after(&wanted.key, fault))
    }

    async fn people(&self, list: &str, named: &[String]) -> Result<Vec<u64>, ServiceFault> {
        let mut ids = Vec::new();
        for person in named {
            let id = self.person(list, person).await?;
            ids.push(
                id.parse()
                    .map_err(|_| unfit("an assignee has no valid number"))?,
            );
        }
        Ok(ids)
    }

    async fn fields(
        &self,
        list: &str,
        wanted: &Map<String, Value>,
    ) -> Result<Vec<Value>, ServiceFault> {
        match wanted.is_empty() {
            true => Ok(Vec::new()),
            false => fields::sent(&self.get(&format!("/list/{list}/field")).await?, wanted),
        }
    }

    /// The first status of a list that means this: of several that mean done, the one that closes is the last.
    async fn status_of(&self, list: &str, state: NewState) -> Result<String, ServiceFault> {
        let all = self.statuses_of(list).await?;
        let of = |category| move |of: &&api_core::entity::Status| of.category == category;
        let found = match state {
            NewState::Open => all.iter().find(of(StatusCategory::Todo)),
            NewState::Closed => all.iter().rev().find(of(StatusCategory::Done)),
        };
        let found = found.map(|of| of.name.clone());
        found.ok_or_else(|| unfit("the list has no status that means this: use `status`"))
    }
}

/// The error of what was to follow something that may be done.
fn after(key: &str, fault: ServiceFault) -> ServiceFault {
    let text = format!(
        "a part of the change of {key} is done, but: {}",
        fault.message
    );
    ServiceFault::new(fault.kind, text)
}

fn parent(key: Option<&str>) -> Result<Option<&str>, ServiceFault> {
    key.map(|key| key::signed(key, SIGN)).transpose()
}

fn priority(name: Option<&str>) -> Result<Option<usize>, ServiceFault> {
    place("priority", &PRIORITIES, name).map(|at| at.map(|at| at + 1))
}

fn kind(name: Option<&str>) -> Result<Option<usize>, ServiceFault> {
    place("issueType", &TYPES, name).map(|at| at.filter(|at| *at > 0))
}

fn place(argument: &str, all: &[&str], name: Option<&str>) -> Result<Option<usize>, ServiceFault> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let at = all.iter().position(|own| own.eq_ignore_ascii_case(name));
    let unknown = || unfit(format!("`{argument}` must be one of: {}", all.join(", ")));
    at.map(Some).ok_or_else(unknown)
}
