//! Issues, their comments and their relations.

use crate::Repository;
use crate::mapping::{
    ISSUE, PULL, comment, database_id, issue, listed_comment, listed_issue, related, user,
};
use api_core::arguments::{
    CommentQuery, IssueChange, IssueLink, IssueQuery, IssueWish, LinkType, NewComment, NewIssue,
    NewState, SortBy, SortOrder, StateFilter, StatusQuery, UserQuery, word,
};
use api_core::entity::{Comment, Issue, RelatedIssue, Status, StatusCategory, User};
use api_core::http::{List, Method, sent, with_query};
use api_core::page::ItemPage;
use api_core::provider::{Answer, IssueProvider};
use api_core::source::only_project;
use api_core::{ServiceFault, key, unfit};
use llm_worker::ErrorKind;
use serde_json::{Map, Value, json};

/// The statuses of issues. GitHub has a state and its reason.
const STATUSES: [(&str, StatusCategory); 3] = [
    ("open", StatusCategory::Todo),
    ("completed", StatusCategory::Done),
    ("not_planned", StatusCategory::Cancelled),
];

impl IssueProvider for Repository {
    fn issues(&self, wanted: IssueQuery) -> Answer<'_, ItemPage<Issue>> {
        Box::pin(self.list_issues(wanted))
    }

    fn issue(&self, wanted: IssueWish) -> Answer<'_, Issue> {
        Box::pin(self.one_issue(wanted))
    }

    fn issue_comments(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Comment>> {
        Box::pin(async move {
            // Pull requests have the same comments.
            let number = key::number(&wanted.key, ISSUE)
                .or_else(|first| key::number(&wanted.key, PULL).map_err(|_| first))?;
            let path = self.list(&format!("/issues/{number}/comments"));
            let list = List::new(&path);
            self.http
                .page(&self.comments, list, wanted.slice(), listed_comment)
                .await
        })
    }

    fn create_issue(&self, wanted: NewIssue) -> Answer<'_, Issue> {
        Box::pin(self.new_issue(wanted))
    }

    fn update_issue(&self, wanted: IssueChange) -> Answer<'_, Issue> {
        Box::pin(self.change_issue(wanted))
    }

    fn comment_issue(&self, wanted: NewComment) -> Answer<'_, Comment> {
        Box::pin(async move {
            let path = format!("/issues/{}/comments", key::number(&wanted.key, ISSUE)?);
            comment(
                &self
                    .send(Method::POST, &path, json!({ "body": wanted.body }))
                    .await?,
            )
        })
    }

    fn statuses(&self, wanted: StatusQuery) -> Answer<'_, ItemPage<Status>> {
        Box::pin(async move {
            self.only_project(wanted.project_key.as_deref())?;
            let all = STATUSES.map(|(name, category)| Status {
                id: name.to_owned(),
                name: name.to_owned(),
                category,
            });
            Ok(ItemPage::short(all.into()))
        })
    }

    fn users(&self, wanted: UserQuery) -> Answer<'_, ItemPage<User>> {
        Box::pin(async move {
            self.only_project(wanted.project_key.as_deref())?;
            let part = wanted.search.as_deref().unwrap_or_default().to_lowercase();
            let is_meant = |of: &User| of.id.to_lowercase().contains(&part);
            let read = |of: &Value| Ok(user(of, "").filter(is_meant));
            let all = self
                .http
                .whole(List::new(&self.list("/assignees")), read)
                .await?;
            Ok(ItemPage::of_all(all.items, wanted.slice()))
        })
    }

    fn link_issues(&self, wanted: IssueLink) -> Answer<'_, Issue> {
        Box::pin(self.link(wanted))
    }
}

impl Repository {
    /// A repository is one project.
    fn only_project(&self, named: Option<&str>) -> Result<(), ServiceFault> {
        only_project(&format!("{}/{}", self.owner, self.repo), named)
    }

    async fn list_issues(&self, wanted: IssueQuery) -> Result<ItemPage<Issue>, ServiceFault> {
        self.only_project(wanted.project_key.as_deref())?;
        let (sort, order) = sorted(wanted.sort_by, wanted.sort_order);
        let is_search = wanted.search.is_some() || wanted.native_query.is_some();
        let (path, at) = match is_search {
            true => {
                let query = self.search(&wanted);
                let values = [("q", query.as_str()), ("sort", &sort), ("order", &order)];
                (with_query("/search/issues?per_page=100", &values), "/items")
            }
            false => {
                let state = word(wanted.state);
                let labels = wanted.labels.join(",");
                let values = [
                    ("state", state.as_str()),
                    ("labels", &labels),
                    ("assignee", wanted.assignee.as_deref().unwrap_or_default()),
                    ("sort", &sort),
                    ("direction", &order),
                ];
                (with_query(&self.list("/issues"), &values), "")
            }
        };
        let list = List::new(&path).within(at);
        self.http
            .page(&self.issues, list, wanted.slice(), listed_issue)
            .await
    }

    /// What a search looks for, in GitHub's words. It gives at most 1,000 items.
    fn search(&self, wanted: &IssueQuery) -> String {
        let mut words = vec![format!("repo:{}/{} is:issue", self.owner, self.repo)];
        if let Some(native) = &wanted.native_query {
            words.push(native.clone());
            return words.join(" ");
        }
        let quoted = |name: &str, text: &str| format!("{name}:\"{}\"", text.replace('"', " "));
        if wanted.state != StateFilter::All {
            words.push(format!("is:{}", word(wanted.state)));
        }
        words.extend(wanted.labels.iter().map(|label| quoted("label", label)));
        words.extend(
            wanted
                .assignee
                .iter()
                .map(|person| quoted("assignee", person)),
        );
        words.extend(wanted.search.clone());
        words.join(" ")
    }

    async fn one_issue(&self, wanted: IssueWish) -> Result<Issue, ServiceFault> {
        let number = key::number(&wanted.key, ISSUE)?;
        let answer = self.get(&format!("/issues/{number}")).await?;
        let Some(mut found) = listed_issue(&answer)? else {
            return Err(unfit(format!(
                "gh#{number} is a pull request: read it as pr#{number}"
            )));
        };
        if wanted.include_comments {
            let path = self.list(&format!("/issues/{number}/comments"));
            found.comments = self
                .http
                .whole(List::new(&path), listed_comment)
                .await?
                .items;
        }
        if wanted.include_relations {
            found.subtasks = self.related(number, "sub_issues", "subtask").await?;
            for (path, relation) in [
                ("dependencies/blocked_by", "blocked_by"),
                ("dependencies/blocking", "blocks"),
            ] {
                found
                    .relations
                    .extend(self.related(number, path, relation).await?);
            }
        }
        Ok(found)
    }

    /// Issues that are related to one; none on a server that does not have this relation.
    async fn related(
        &self,
        number: u64,
        path: &str,
        relation: &str,
    ) -> Result<Vec<RelatedIssue>, ServiceFault> {
        let path = self.list(&format!("/issues/{number}/{path}"));
        let read = |of: &Value| related(of, relation).map(Some);
        match self.http.whole(List::new(&path), read).await {
            Ok(whole) => Ok(whole.items),
            Err(fault) if fault.kind == ErrorKind::FixInput => Ok(Vec::new()),
            Err(fault) => Err(fault),
        }
    }

    async fn new_issue(&self, wanted: NewIssue) -> Result<Issue, ServiceFault> {
        self.only_project(wanted.project_key.as_deref())?;
        no_fields(wanted.priority.as_deref(), &wanted.custom_fields)?;
        let parent = parent(wanted.parent.as_deref())?;
        let body = sent(json!({
            "title": wanted.title,
            "body": wanted.description,
            "type": wanted.issue_type,
            "labels": wanted.labels,
            "assignees": wanted.assignees,
        }));
        let created = self.send(Method::POST, "/issues", body).await?;
        self.below(parent, &created).await
    }

    async fn change_issue(&self, wanted: IssueChange) -> Result<Issue, ServiceFault> {
        let number = key::number(&wanted.key, ISSUE)?;
        no_fields(wanted.priority.as_deref(), &wanted.custom_fields)?;
        let parent = parent(wanted.parent.as_deref())?;
        let (state, reason) = match (wanted.state, wanted.status.as_deref()) {
            (_, Some("open" | "reopened")) | (Some(NewState::Open), None) => (Some("open"), None),
            (_, Some("closed" | "completed")) | (Some(NewState::Closed), None) => {
                (Some("closed"), Some("completed"))
            }
            (_, Some("not_planned")) => (Some("closed"), Some("not_planned")),
            (_, Some(_)) => return Err(unfit("`status` must be open, completed or not_planned")),
            (None, None) => (None, None),
        };
        let body = sent(json!({
            "title": wanted.title,
            "body": wanted.description,
            "labels": wanted.labels,
            "assignees": wanted.assignees,
            "state": state,
            "state_reason": reason,
        }));
        let changed = self
            .send(Method::PATCH, &format!("/issues/{number}"), body)
            .await?;
        self.below(parent, &changed).await
    }

    /// The issue of an answer, put below another one if that is wanted.
    async fn below(&self, parent: Option<u64>, of: &Value) -> Result<Issue, ServiceFault> {
        let issue = issue(of)?;
        if let Some(parent) = parent {
            let body = json!({ "sub_issue_id": database_id(of)?, "replace_parent": true });
            let done = self
                .send(Method::POST, &format!("/issues/{parent}/sub_issues"), body)
                .await;
            done.map_err(|fault| after(&issue.key, "it is not yet a subtask", &fault))?;
        }
        Ok(issue)
    }

    async fn link(&self, wanted: IssueLink) -> Result<Issue, ServiceFault> {
        let key = key::number(&wanted.key, ISSUE)?;
        let target = key::number(&wanted.target, ISSUE)?;
        let (blocked, by) = match wanted.link_type {
            LinkType::Blocks => (target, key),
            LinkType::BlockedBy => (key, target),
            LinkType::SubtaskOf => {
                let child = self.get(&format!("/issues/{key}")).await?;
                return self.below(Some(target), &child).await;
            }
            LinkType::RelatesTo | LinkType::Duplicates => {
                return Err(unfit(
                    "GitHub has no such link: use blocks, blocked_by or subtask_of, or name the other issue in a comment",
                ));
            }
        };
        let id = database_id(&self.get(&format!("/issues/{by}")).await?)?;
        let path = format!("/issues/{blocked}/dependencies/blocked_by");
        self.send(Method::POST, &path, json!({ "issue_id": id }))
            .await?;
        issue(&self.get(&format!("/issues/{key}")).await?)
    }
}

/// GitHub's words for the order of a list.
pub(crate) fn sorted(by: SortBy, order: SortOrder) -> (String, String) {
    (word(by).replace("_at", ""), word(order))
}

fn parent(key: Option<&str>) -> Result<Option<u64>, ServiceFault> {
    key.map(|key| key::number(key, ISSUE)).transpose()
}

/// The error of what was to follow something that is done.
pub(crate) fn after(key: &str, what: &str, fault: &ServiceFault) -> ServiceFault {
    ServiceFault::new(
        fault.kind,
        format!("{key} is there, but {what}: {}", fault.message),
    )
}

fn no_fields(priority: Option<&str>, fields: &Map<String, Value>) -> Result<(), ServiceFault> {
    match priority.is_none() && fields.is_empty() {
        true => Ok(()),
        false => Err(unfit(
            "issues of GitHub have no priority and no custom fields: use labels",
        )),
    }
}
