//! Issues, and what is asked about them.

use crate::JiraProject;
use crate::mapping::{
    FIELDS, PREFIX, VENDOR_NAME, comment, custom_fields, issue, relate, statuses,
};
use api_core::arguments::{
    CommentQuery, IssueChange, IssueLink, IssueQuery, IssueWish, NewComment, NewIssue, SortBy,
    StateFilter, StatusQuery, UserQuery, word,
};
use api_core::entity::{Comment, Issue, Named, Status, User};
use api_core::http::{Method, sent};
use api_core::page::{ItemPage, MAX_LIMIT, Slice};
use api_core::provider::{Answer, IssueProvider};
use api_core::reading::{each, flag, number, text};
use api_core::walk::{Piece, Walks};
use api_core::{ServiceFault, key};
use serde_json::{Value, json};

/// Most pages of comments that come with an issue.
const MAX_PAGES: u32 = 10;

impl IssueProvider for JiraProject {
    fn issues(&self, wanted: IssueQuery) -> Answer<'_, ItemPage<Issue>> {
        Box::pin(async move {
            let jql = self.jql(&wanted).await?;
            self.search(&self.issues, &jql, wanted.slice(), issue).await
        })
    }

    fn issue(&self, wanted: IssueWish) -> Answer<'_, Issue> {
        Box::pin(async move {
            let key = key::of_project(&wanted.key, PREFIX)?;
            let answer = self.get(&format!("/issue/{key}?expand=names")).await?;
            let mut found = issue(&answer)?;
            found.custom_fields = custom_fields(&answer);
            if wanted.include_relations {
                relate(&answer, &mut found);
            }
            if wanted.include_comments {
                found.comments = self.all_comments(&key).await?;
            }
            Ok(found)
        })
    }

    fn issue_comments(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Comment>> {
        Box::pin(async move {
            let key = key::of_project(&wanted.key, PREFIX)?;
            self.page_of_comments(&self.comments, &key, wanted.slice())
                .await
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
            let key = key::of_project(&wanted.key, PREFIX)?;
            let body = json!({ "body": self.body(&wanted.body) });
            let path = format!("/issue/{key}/comment");
            comment(&self.send(Method::POST, &path, body).await?)
        })
    }

    fn statuses(&self, wanted: StatusQuery) -> Answer<'_, ItemPage<Status>> {
        Box::pin(async move {
            let project = self.project_of(wanted.project_key.as_deref())?;
            Ok(ItemPage::short(self.statuses_of(&project).await?))
        })
    }

    fn users(&self, wanted: UserQuery) -> Answer<'_, ItemPage<User>> {
        Box::pin(async move {
            let project = self.project_of(wanted.project_key.as_deref())?;
            let part = wanted.search.as_deref().unwrap_or_default();
            let all = self.people(&project, part).await?;
            Ok(ItemPage::of_all(all, wanted.slice()))
        })
    }

    fn link_issues(&self, wanted: IssueLink) -> Answer<'_, Issue> {
        Box::pin(self.link(wanted))
    }
}

impl JiraProject {
    pub(crate) async fn statuses_of(&self, project: &str) -> Result<Vec<Status>, ServiceFault> {
        statuses(&self.get(&format!("/project/{project}/statuses")).await?)
    }

    /// What is looked for, in Jira's language.
    async fn jql(&self, wanted: &IssueQuery) -> Result<String, ServiceFault> {
        if let Some(native) = &wanted.native_query {
            return Ok(native.clone());
        }
        let project = self.project_of(wanted.project_key.as_deref())?;
        let mut terms = vec![format!("project = {}", quoted(&project))];
        terms.extend(state(wanted.state));
        let labels = wanted.labels.iter();
        terms.extend(labels.map(|label| format!("labels = {}", quoted(label))));
        terms.extend(search_words(wanted.search.as_deref()));
        match wanted.assignee.as_deref().map(str::trim) {
            None | Some("") => {}
            Some("me") => terms.push("assignee = currentUser()".to_owned()),
            Some(named) => {
                let id = self.person(&project, named).await?;
                terms.push(format!("assignee = {}", quoted(&id)));
            }
        }
        let by = match wanted.sort_by {
            SortBy::CreatedAt => "created",
            SortBy::UpdatedAt => "updated",
        };
        let order = word(wanted.sort_order);
        Ok(format!("{} ORDER BY {by} {order}", terms.join(" AND ")))
    }

    /// A page of what a query finds. Jira Cloud names the next piece and says no total.
    pub(crate) async fn search<T: Named>(
        &self,
        walks: &Walks<T>,
        jql: &str,
        slice: Slice,
        read: impl Fn(&Value) -> Result<T, ServiceFault>,
    ) -> Result<ItemPage<T>, ServiceFault> {
        let read = &read;
        let ask = |next: Option<String>| async move {
            let (path, token, from) = match self.is_cloud {
                true => ("/search/jql", next, None),
                false => ("/search", None, next.and_then(|at| at.parse::<u64>().ok())),
            };
            let question = sent(json!({
                "jql": jql,
                "fields": FIELDS,
                "maxResults": MAX_LIMIT,
                "nextPageToken": token,
                "startAt": from,
            }));
            let found = self.http.ask(path, &question).await?.body;
            let mut piece = piece(&found, "issues", from.unwrap_or(0), read)?;
            if self.is_cloud {
                let is_last = flag(&found, "/isLast");
                piece.next = text(&found, "/nextPageToken").filter(|_| !is_last);
            }
            Ok(piece)
        };
        walks.page(jql, slice, ask).await
    }

    async fn page_of_comments(
        &self,
        walks: &Walks<Comment>,
        key: &str,
        slice: Slice,
    ) -> Result<ItemPage<Comment>, ServiceFault> {
        let ask = |next: Option<String>| async move {
            let from: u64 = next.and_then(|at| at.parse().ok()).unwrap_or(0);
            let path =
                format!("/issue/{key}/comment?orderBy=created&maxResults=100&startAt={from}");
            piece(&self.get(&path).await?, "comments", from, comment)
        };
        walks.page(key, slice, ask).await
    }

    /// The comments of an issue, oldest first: the first thousand.
    async fn all_comments(&self, key: &str) -> Result<Vec<Comment>, ServiceFault> {
        let walks = Walks::default();
        let mut all = Vec::new();
        for page in 0..MAX_PAGES {
            let slice = Slice::new(page * MAX_LIMIT, MAX_LIMIT);
            let page = self.page_of_comments(&walks, key, slice).await?;
            all.extend(page.items);
            if !page.pagination.has_more {
                break;
            }
        }
        Ok(all)
    }
}

/// A piece of a list, from a place in it that was asked for, that says how long the list is.
fn piece<T>(
    found: &Value,
    at: &str,
    from: u64,
    read: impl Fn(&Value) -> Result<T, ServiceFault>,
) -> Result<Piece<T>, ServiceFault> {
    let items = each(found.get(at).unwrap_or(&Value::Null), VENDOR_NAME, read)?;
    let total = number(found, "/total");
    let end = from.saturating_add(items.len() as u64);
    let is_more = !items.is_empty() && total.is_some_and(|total| end < total);
    Ok(Piece {
        next: is_more.then(|| end.to_string()),
        items,
        total,
    })
}

pub(crate) fn state(wanted: StateFilter) -> Option<String> {
    match wanted {
        StateFilter::Open => Some("statusCategory != Done".to_owned()),
        StateFilter::Closed => Some("statusCategory = Done".to_owned()),
        StateFilter::All => None,
    }
}

/// Words to look for, without the signs that mean something in Jira's searches.
pub(crate) fn search_words(words: Option<&str>) -> Option<String> {
    let is_sign = |of: char| "+-&|!(){}[]^~*?\\/:\"".contains(of);
    let words = words?.replace(is_sign, " ");
    let words = words.trim();
    (!words.is_empty()).then(|| format!("text ~ {}", quoted(words)))
}

/// A text in Jira's language.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
