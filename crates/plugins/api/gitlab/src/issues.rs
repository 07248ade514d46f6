//! Issues, their comments and their relations.

use crate::GitLabProject;
use crate::mapping::{ISSUE, MERGE, comment, issue, listed_comment, related, user};
use api_core::arguments::{
    CommentQuery, IssueChange, IssueLink, IssueQuery, IssueWish, LinkType, NewComment, NewIssue,
    NewState, StateFilter, StatusQuery, UserQuery, word,
};
use api_core::entity::{Comment, Issue, Status, StatusCategory, User};
use api_core::http::{List, Method};
use api_core::page::ItemPage;
use api_core::provider::{Answer, IssueProvider};
use api_core::reading::{number, text};
use api_core::source::only_project;
use api_core::{ServiceFault, key, unfit};
use serde_json::{Map, Value, json};

impl IssueProvider for GitLabProject {
    fn issues(&self, wanted: IssueQuery) -> Answer<'_, ItemPage<Issue>> {
        Box::pin(self.list_issues(wanted))
    }

    fn issue(&self, wanted: IssueWish) -> Answer<'_, Issue> {
        Box::pin(self.one_issue(wanted))
    }

    fn issue_comments(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Comment>> {
        Box::pin(async move {
            let path = self.list(&notes(&wanted.key)?, &OLDEST_FIRST);
            let list = List::new(&path);
            let known = &self.lists.comments;
            self.http
                .page(known, list, wanted.slice(), listed_comment)
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
            let body = json!({ "body": wanted.body });
            comment(&self.send(Method::POST, &notes(&wanted.key)?, body).await?)
        })
    }

    fn statuses(&self, wanted: StatusQuery) -> Answer<'_, ItemPage<Status>> {
        Box::pin(async move {
            only_project(&self.name, wanted.project_key.as_deref())?;
            let all = [
                ("opened", StatusCategory::Todo),
                ("closed", StatusCategory::Done),
            ];
            let all = all.map(|(name, category)| Status {
                id: name.to_owned(),
                name: name.to_owned(),
                category,
            });
            Ok(ItemPage::short(all.into()))
        })
    }

    fn users(&self, wanted: UserQuery) -> Answer<'_, ItemPage<User>> {
        Box::pin(async move {
            only_project(&self.name, wanted.project_key.as_deref())?;
            let part = wanted.search.as_deref().unwrap_or_default();
            let path = self.list("/members/all", &[("query", part)]);
            let read = |of: &Value| {
                let is_active = text(of, "/state").is_none_or(|state| state == "active");
                Ok(user(of, "").filter(|_| is_active))
            };
            let list = List::new(&path);
            let known = &self.lists.people;
            self.http.page(known, list, wanted.slice(), read).await
        })
    }

    fn link_issues(&self, wanted: IssueLink) -> Answer<'_, Issue> {
        Box::pin(self.link(wanted))
    }
}

const OLDEST_FIRST: [(&str, &str); 2] = [("order_by", "created_at"), ("sort", "asc")];

/// Where the comments of an issue are, or of a merge request, which has the same.
fn notes(key: &str) -> Result<String, ServiceFault> {
    match key::number(key, MERGE) {
        Ok(iid) => Ok(format!("/merge_requests/{iid}/notes")),
        Err(_) => Ok(format!("/issues/{}/notes", key::number(key, ISSUE)?)),
    }
}

impl GitLabProject {
    async fn list_issues(&self, wanted: IssueQuery) -> Result<ItemPage<Issue>, ServiceFault> {
        only_project(&self.name, wanted.project_key.as_deref())?;
        if wanted.native_query.is_some() {
            return Err(unfit(
                "GitLab's lists have no query language: use `search` and the other filters",
            ));
        }
        let state = match wanted.state {
            StateFilter::Open => "opened",
            StateFilter::Closed => "closed",
            StateFilter::All => "all",
        };
        let search = wanted.search.as_deref().unwrap_or_default();
        let assignee = wanted.assignee.as_deref().unwrap_or_default();
        let values = [
            ("state", state),
            ("search", search),
            ("labels", &wanted.labels.join(",")),
            ("assignee_username", assignee),
            ("order_by", &word(wanted.sort_by)),
            ("sort", &word(wanted.sort_order)),
        ];
        let path = self.list("/issues", &values);
        let known = &self.lists.issues;
        self.http.page_of(known, &path, wanted.slice(), issue).await
    }

    async fn one_issue(&self, wanted: IssueWish) -> Result<Issue, ServiceFault> {
        let iid = key::number(&wanted.key, ISSUE)?;
        let answer = self.get(&format!("/issues/{iid}")).await?;
        let mut found = issue(&answer)?;
        if wanted.include_comments {
            let path = self.list(&notes(&wanted.key)?, &OLDEST_FIRST);
            let all = self.http.whole(List::new(&path), listed_comment).await?;
            found.comments = all.items;
        }
        if wanted.include_relations {
            let project = number(&answer, "/project_id");
            let path = self.list(&format!("/issues/{iid}/links"), &[]);
            let read = |of: &Value| related(of, project).map(Some);
            found.relations = self.http.whole(List::new(&path), read).await?.items;
        }
        Ok(found)
    }

    async fn new_issue(&self, wanted: NewIssue) -> Result<Issue, ServiceFault> {
        only_project(&self.name, wanted.project_key.as_deref())?;
        no_more(wanted.priority, wanted.parent, &wanted.custom_fields)?;
        let assignees = match wanted.assignees.is_empty() {
            true => None,
            false => Some(self.numbers_of(&wanted.assignees).await?),
        };
        let kind = wanted.issue_type;
        let body = json!({
            "title": wanted.title,
            "description": wanted.description,
            "issue_type": kind.map(|of| of.to_lowercase().replace(' ', "_")),
            "labels": (!wanted.labels.is_empty()).then(|| wanted.labels.join(",")),
            "assignee_ids": assignees,
        });
        issue(&self.send(Method::POST, "/issues", body).await?)
    }

    async fn change_issue(&self, wanted: IssueChange) -> Result<Issue, ServiceFault> {
        let path = format!("/issues/{}", key::number(&wanted.key, ISSUE)?);
        no_more(wanted.priority, wanted.parent, &wanted.custom_fields)?;
        let event = match (wanted.status.as_deref(), wanted.state) {
            (Some("opened" | "open" | "reopened"), _) | (None, Some(NewState::Open)) => {
                Some("reopen")
            }
            (Some("closed"), _) | (None, Some(NewState::Closed)) => Some("close"),
            (Some(_), _) => return Err(unfit("`status` must be opened or closed")),
            (None, None) => None,
        };
        let assignees = match &wanted.assignees {
            Some(names) => Some(self.numbers_of(names).await?),
            None => None,
        };
        let body = json!({
            "title": wanted.title,
            "description": wanted.description,
            "labels": wanted.labels.map(|all| all.join(",")),
            "assignee_ids": assignees,
            "state_event": event,
        });
        issue(&self.send(Method::PUT, &path, body).await?)
    }

    async fn link(&self, wanted: IssueLink) -> Result<Issue, ServiceFault> {
        let key = key::number(&wanted.key, ISSUE)?;
        let target = key::number(&wanted.target, ISSUE)?;
        let (from, to, kind) = match wanted.link_type {
            LinkType::RelatesTo => (key, target, "relates_to"),
            LinkType::Blocks => (key, target, "blocks"),
            // From the other end: servers of before 2023 make such a link and answer 404.
            LinkType::BlockedBy => (target, key, "blocks"),
            LinkType::Duplicates | LinkType::SubtaskOf => {
                return Err(unfit(
                    "GitLab's REST API has no such link: use relates_to, blocks or blocked_by, or name the other issue in a comment",
                ));
            }
        };
        let body = json!({
            "target_project_id": self.name,
            "target_issue_iid": to,
            "link_type": kind,
        });
        let path = format!("/issues/{from}/links");
        self.send(Method::POST, &path, body).await?;
        issue(&self.get(&format!("/issues/{key}")).await?)
    }
}

fn no_more(
    priority: Option<String>,
    parent: Option<String>,
    fields: &Map<String, Value>,
) -> Result<(), ServiceFault> {
    match priority.is_none() && parent.is_none() && fields.is_empty() {
        true => Ok(()),
        false => Err(unfit(
            "issues of GitLab have no priority, no parent and no custom fields here: use labels and link_issues",
        )),
    }
}
