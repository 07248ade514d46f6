//! Tasks, and what is asked about them.

use crate::mapping::{SIGN, VENDOR_NAME, comment, issue, relate};
use crate::{ClickUpList, is_number};
use api_core::arguments::{
    CommentQuery, IssueChange, IssueLink, IssueQuery, IssueWish, NewComment, NewIssue, SortBy,
    SortOrder, StateFilter, StatusQuery, UserQuery,
};
use api_core::entity::{Comment, Issue, Status, StatusCategory, User};
use api_core::http::{Method, with_query};
use api_core::page::ItemPage;
use api_core::provider::{Answer, IssueProvider};
use api_core::reading::{each, flag, id, list, needed, number, text};
use api_core::walk::Piece;
use api_core::{ServiceFault, key, time, unfit};
use llm_worker::ErrorKind;
use serde_json::{Value, json};

/// Tasks in one piece of a list, and comments in one.
const TASKS: usize = 100;
const COMMENTS: usize = 25;
/// Most pieces of the comments of a task.
const MAX_PIECES: usize = 20;

impl IssueProvider for ClickUpList {
    fn issues(&self, wanted: IssueQuery) -> Answer<'_, ItemPage<Issue>> {
        Box::pin(self.list_tasks(wanted))
    }

    fn issue(&self, wanted: IssueWish) -> Answer<'_, Issue> {
        Box::pin(async move {
            let task = self.task(key::signed(&wanted.key, SIGN)?).await?;
            let mut found = issue(&task)?;
            if wanted.include_relations {
                relate(&task, &mut found);
            }
            if wanted.include_comments {
                found.comments = self.comments(&wanted.key).await?;
            }
            Ok(found)
        })
    }

    fn issue_comments(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Comment>> {
        Box::pin(async move {
            let all = self.comments(&wanted.key).await?;
            Ok(ItemPage::of_all(all, wanted.slice()))
        })
    }

    fn create_issue(&self, wanted: NewIssue) -> Answer<'_, Issue> {
        Box::pin(self.create(wanted))
    }

    fn update_issue(&self, wanted: IssueChange) -> Answer<'_, Issue> {
        Box::pin(self.change(wanted))
    }

    fn comment_issue(&self, wanted: NewComment) -> Answer<'_, Comment> {
        Box::pin(async move {
            let path = format!("/task/{}/comment", key::signed(&wanted.key, SIGN)?);
            let body = json!({ "comment_text": wanted.body, "notify_all": false });
            let made = self.send(Method::POST, &path, body).await?;
            Ok(Comment {
                id: needed(id(&made, "/id"), VENDOR_NAME, "a new comment", "id")?,
                body: wanted.body,
                created_at: number(&made, "/date").map(time::shown),
                ..Comment::default()
            })
        })
    }

    fn statuses(&self, wanted: StatusQuery) -> Answer<'_, ItemPage<Status>> {
        Box::pin(async move {
            let list = self.list_of(wanted.project_key.as_deref())?;
            Ok(ItemPage::short(self.statuses_of(list).await?))
        })
    }

    fn users(&self, wanted: UserQuery) -> Answer<'_, ItemPage<User>> {
        Box::pin(async move {
            let list = self.list_of(wanted.project_key.as_deref())?;
            let part = wanted.search.as_deref().unwrap_or_default().to_lowercase();
            let mut all = self.members(list).await?;
            all.retain(|of| {
                let names = [of.name.as_deref(), of.email.as_deref()];
                names
                    .into_iter()
                    .flatten()
                    .any(|name| name.to_lowercase().contains(&part))
            });
            Ok(ItemPage::of_all(all, wanted.slice()))
        })
    }

    fn link_issues(&self, wanted: IssueLink) -> Answer<'_, Issue> {
        Box::pin(self.link(wanted))
    }
}

impl ClickUpList {
    pub(crate) async fn task(&self, id: &str) -> Result<Value, ServiceFault> {
        let values = [
            ("include_subtasks", "true"),
            ("include_markdown_description", "true"),
        ];
        self.get(&with_query(&format!("/task/{id}"), &values)).await
    }

    async fn list_tasks(&self, wanted: IssueQuery) -> Result<ItemPage<Issue>, ServiceFault> {
        if wanted.native_query.is_some() {
            return Err(unfit("`nativeQuery`: ClickUp has no language for queries"));
        }
        let list = self.list_of(wanted.project_key.as_deref())?;
        let assignee = match wanted.assignee.as_deref().filter(|of| !of.is_empty()) {
            Some(person) => self.person(list, person).await?,
            None => String::new(),
        };
        let word = |is: bool| if is { "true" } else { "" };
        let order = match wanted.sort_by {
            SortBy::CreatedAt => "created",
            SortBy::UpdatedAt => "updated",
        };
        let mut values = vec![
            ("subtasks", "true"),
            ("include_markdown_description", "true"),
            ("include_closed", word(wanted.state != StateFilter::Open)),
            ("order_by", order),
            // Without it the newest is the first.
            ("reverse", word(wanted.sort_order == SortOrder::Asc)),
            ("assignees%5B%5D", &assignee),
        ];
        values.extend(
            wanted
                .labels
                .iter()
                .map(|label| ("tags%5B%5D", label.as_str())),
        );
        let path = with_query(&format!("/list/{list}/task"), &values);
        let search = wanted.search.as_deref().unwrap_or_default().to_lowercase();
        let wanted_of = &wanted;
        let search_of = search.as_str();
        let path_of = path.as_str();
        let ask = |next: Option<String>| async move {
            let page: usize = next.as_deref().and_then(|of| of.parse().ok()).unwrap_or(0);
            let found = self
                .get(&with_query(path_of, &[("page", &page.to_string())]))
                .await?;
            let tasks = found.get("tasks").unwrap_or(&Value::Null);
            let mut items = each(tasks, VENDOR_NAME, issue)?;
            let is_full = items.len() >= TASKS && !flag(&found, "/last_page");
            items.retain(|of| is_meant(of, wanted_of, search_of));
            Ok(Piece {
                items,
                next: is_full.then(|| (page + 1).to_string()),
                total: None,
            })
        };
        self.tasks
            .page(
                &format!("{path} {:?} {search}", wanted.state),
                wanted.slice(),
                ask,
            )
            .await
    }

    /// The number of a person, who is named by it, by name or by mail address.
    pub(crate) async fn person(&self, list: &str, named: &str) -> Result<String, ServiceFault> {
        let named = named.trim();
        if is_number(named) {
            return Ok(named.to_owned());
        }
        let members = self.members(list).await?;
        let is_meant = |of: &&User| {
            let names = [of.name.as_deref(), of.email.as_deref()];
            names
                .into_iter()
                .flatten()
                .any(|name| name.eq_ignore_ascii_case(named))
        };
        let found = members.iter().find(is_meant).map(|of| of.id.clone());
        found.ok_or_else(|| {
            unfit(
                "an assignee is none of the people of the list: use an id from the list of people",
            )
        })
    }

    /// All comments of a task, oldest first. ClickUp gives the newest first, and goes on behind the oldest one of a piece.
    async fn comments(&self, key: &str) -> Result<Vec<Comment>, ServiceFault> {
        let path = format!("/task/{}/comment", key::signed(key, SIGN)?);
        let mut all: Vec<Comment> = Vec::new();
        let mut next = path.clone();
        for _piece in 0..MAX_PIECES {
            let found = self.get(&next).await?;
            let rows = list(&found, "/comments");
            let rows_read = each(
                found.get("comments").unwrap_or(&Value::Null),
                VENDOR_NAME,
                comment,
            )?;
            for one in rows_read {
                if all.iter().all(|own| own.id != one.id) {
                    all.push(one);
                }
            }
            let oldest = rows.last().filter(|_| rows.len() >= COMMENTS);
            let place = oldest.and_then(|of| Some((id(of, "/id")?, text(of, "/date")?)));
            let Some((oldest, date)) = place else {
                all.reverse();
                return Ok(all);
            };
            next = with_query(&path, &[("start", &date), ("start_id", &oldest)]);
        }
        let text = format!(
            "{key} has over {} comments, which are not read",
            MAX_PIECES * COMMENTS
        );
        Err(ServiceFault::new(ErrorKind::Exhausted, text))
    }
}

/// What ClickUp does not filter: statuses that mean done, all of several labels, words.
fn is_meant(of: &Issue, wanted: &IssueQuery, search: &str) -> bool {
    let is_done = of.status_category == StatusCategory::Done;
    let fits_state = match wanted.state {
        StateFilter::Open => !is_done,
        StateFilter::Closed => is_done,
        StateFilter::All => true,
    };
    let has = |label: &String| of.labels.iter().any(|own| own.eq_ignore_ascii_case(label));
    let texts = [Some(of.title.as_str()), of.description.as_deref()];
    let mut texts = texts.into_iter().flatten();
    fits_state
        && wanted.labels.iter().all(has)
        && (search.is_empty() || texts.any(|text| text.to_lowercase().contains(search)))
}
