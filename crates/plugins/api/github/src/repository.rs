//! Pull requests, workflow runs, logs and releases.

use crate::Repository;
use crate::issues::{after, sorted};
use crate::mapping::{
    PULL, VENDOR_NAME, comment, file, job, listed_comment, pull, release, run_status,
};
use api_core::arguments::{
    CommentQuery, JobLogQuery, MergeRequestChange, MergeRequestQuery, MergeRequestWish,
    MergeStateFilter, NewMergeRequest, NewRelease, NewReviewComment, PipelineQuery, ReleaseQuery,
    word,
};
use api_core::entity::{
    Comment, Discussion, FileDiff, JobLog, MergeRequest, MergeState, Pipeline, Release, RunStatus,
};
use api_core::http::{List, Method, sent, with_query};
use api_core::page::ItemPage;
use api_core::provider::{Answer, MergeRequestProvider, PipelineProvider, ReleaseProvider};
use api_core::{ServiceFault, key, log, reading, unfit};
use serde_json::{Value, json};

/// Most runs of one commit whose jobs are read.
const MAX_RUNS: usize = 10;
/// How ids of discussions begin that are of comments on lines, by the first of them.
const REVIEW: &str = "review-";

impl MergeRequestProvider for Repository {
    fn merge_requests(&self, wanted: MergeRequestQuery) -> Answer<'_, ItemPage<MergeRequest>> {
        Box::pin(self.list_pulls(wanted))
    }

    fn merge_request(&self, wanted: MergeRequestWish) -> Answer<'_, MergeRequest> {
        Box::pin(async move { self.one_pull(key::number(&wanted.key, PULL)?).await })
    }

    fn discussions(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Discussion>> {
        Box::pin(self.list_discussions(wanted))
    }

    fn diffs(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<FileDiff>> {
        Box::pin(async move {
            let path = self.list(&format!("/pulls/{}/files", key::number(&wanted.key, PULL)?));
            self.http
                .page_of(&self.files, &path, wanted.slice(), file)
                .await
        })
    }

    fn create_merge_request(&self, wanted: NewMergeRequest) -> Answer<'_, MergeRequest> {
        Box::pin(self.new_pull(wanted))
    }

    fn comment_merge_request(&self, wanted: NewReviewComment) -> Answer<'_, Comment> {
        Box::pin(self.new_review_comment(wanted))
    }

    fn update_merge_request(&self, wanted: MergeRequestChange) -> Answer<'_, MergeRequest> {
        Box::pin(self.change_pull(wanted))
    }
}

impl Repository {
    async fn one_pull(&self, number: u64) -> Result<MergeRequest, ServiceFault> {
        pull(&self.get(&format!("/pulls/{number}")).await?)
    }

    async fn list_pulls(
        &self,
        wanted: MergeRequestQuery,
    ) -> Result<ItemPage<MergeRequest>, ServiceFault> {
        let state = word(wanted.state).replace("merged", "closed");
        let (sort, order) = sorted(wanted.sort_by, wanted.sort_order);
        // A branch of a fork has its owner before it.
        let head = match &wanted.source_branch {
            Some(branch) if !branch.contains(':') => format!("{}:{branch}", self.owner),
            other => other.clone().unwrap_or_default(),
        };
        let base = wanted.target_branch.as_deref().unwrap_or_default();
        let values = [
            ("state", state.as_str()),
            ("head", &head),
            ("base", base),
            ("sort", &sort),
            ("direction", &order),
        ];
        let path = with_query(&self.list("/pulls"), &values);
        // GitHub's list has no filters for these.
        let is_wanted = |of: &MergeRequest| {
            let author = of.author.as_ref().map(|author| author.id.as_str());
            let is_author =
                |name: &String| author.is_some_and(|own| own.eq_ignore_ascii_case(name));
            wanted.author.as_ref().is_none_or(is_author)
                && wanted.labels.iter().all(|label| of.labels.contains(label))
                && match wanted.state {
                    MergeStateFilter::Merged => of.state == MergeState::Merged,
                    MergeStateFilter::Closed => of.state == MergeState::Closed,
                    MergeStateFilter::Open | MergeStateFilter::All => true,
                }
        };
        let read = |of: &Value| Ok(Some(pull(of)?).filter(is_wanted));
        let filter = format!("{:?} {:?} {:?}", wanted.state, wanted.author, wanted.labels);
        let list = List::new(&path).filtered(&filter);
        self.http
            .page(&self.pulls, list, wanted.slice(), read)
            .await
    }

    async fn list_discussions(
        &self,
        wanted: CommentQuery,
    ) -> Result<ItemPage<Discussion>, ServiceFault> {
        let number = key::number(&wanted.key, PULL)?;
        let mut discussions: Vec<Discussion> = Vec::new();
        // Comments on lines answer each other by the id of the first.
        let read = |of: &Value| {
            let root = reading::id(of, "/in_reply_to_id");
            Ok(Some(Answering {
                root,
                comment: comment(of)?,
            }))
        };
        let path = self.list(&format!("/pulls/{number}/comments"));
        for Answering { root, comment } in self.http.whole(List::new(&path), read).await?.items {
            let id = format!("{REVIEW}{}", root.as_ref().unwrap_or(&comment.id));
            match discussions.iter_mut().find(|of| of.id == id) {
                Some(of) => of.comments.push(comment),
                None => discussions.push(Discussion {
                    id,
                    comments: vec![comment],
                    resolved: false,
                }),
            }
        }
        for (path, kind) in [
            ("pulls/{}/reviews", "approval-"),
            ("issues/{}/comments", "comment-"),
        ] {
            let path = self.list(&format!("/{}", path.replace("{}", &number.to_string())));
            let all = self
                .http
                .whole(List::new(&path), listed_comment)
                .await?
                .items;
            let said = all.into_iter().filter(|of| !of.body.is_empty());
            discussions.extend(said.map(|comment| Discussion {
                id: format!("{kind}{}", comment.id),
                comments: vec![comment],
                resolved: false,
            }));
        }
        discussions.sort_by_key(|of| {
            of.comments
                .first()
                .and_then(|first| first.created_at.clone())
        });
        Ok(ItemPage::of_all(discussions, wanted.slice()))
    }

    async fn new_pull(&self, wanted: NewMergeRequest) -> Result<MergeRequest, ServiceFault> {
        let body = sent(json!({
            "title": wanted.title,
            "head": wanted.source_branch,
            "base": wanted.target_branch,
            "body": wanted.description,
            "draft": wanted.draft,
        }));
        let new = pull(&self.send(Method::POST, "/pulls", body).await?)?;
        let number = key::number(&new.key, PULL)?;
        if !wanted.labels.is_empty() {
            let path = format!("/issues/{number}/labels");
            let done = self
                .send(Method::POST, &path, json!({ "labels": wanted.labels }))
                .await;
            done.map_err(|fault| after(&new.key, "it does not have its labels", &fault))?;
        }
        if !wanted.reviewers.is_empty() {
            let path = format!("/pulls/{number}/requested_reviewers");
            let done = self
                .send(
                    Method::POST,
                    &path,
                    json!({ "reviewers": wanted.reviewers }),
                )
                .await;
            done.map_err(|fault| after(&new.key, "nobody was asked to review it", &fault))?;
        }
        Ok(new)
    }

    async fn new_review_comment(&self, wanted: NewReviewComment) -> Result<Comment, ServiceFault> {
        let number = key::number(&wanted.key, PULL)?;
        let text = wanted.body;
        let (path, body) = match (wanted.discussion_id, wanted.file_path) {
            (Some(discussion), _) => {
                let root = discussion
                    .strip_prefix(REVIEW)
                    .and_then(|id| id.parse::<u64>().ok());
                let root = root.ok_or_else(|| unfit(
                    "only discussions on lines, whose ids begin with `review-`, are answered; else leave out `discussion_id`",
                ))?;
                (
                    format!("/pulls/{number}/comments/{root}/replies"),
                    json!({ "body": text }),
                )
            }
            (None, Some(file)) => {
                let sha = self.head(number).await?;
                let (side, of) = match wanted.line {
                    Some(_) => (Some("RIGHT"), None),
                    None => (None, Some("file")),
                };
                let body = json!({
                    "body": text,
                    "commit_id": sha,
                    "path": file,
                    "line": wanted.line,
                    "side": side,
                    "subject_type": of,
                });
                (format!("/pulls/{number}/comments"), sent(body))
            }
            (None, None) => (
                format!("/issues/{number}/comments"),
                json!({ "body": text }),
            ),
        };
        comment(&self.send(Method::POST, &path, body).await?)
    }

    /// The newest commit of a pull request.
    async fn head(&self, number: u64) -> Result<String, ServiceFault> {
        reading::needed(
            self.one_pull(number).await?.sha,
            VENDOR_NAME,
            "a pull request",
            "head/sha",
        )
    }

    async fn change_pull(&self, wanted: MergeRequestChange) -> Result<MergeRequest, ServiceFault> {
        let number = key::number(&wanted.key, PULL)?;
        let body = sent(json!({
            "title": wanted.title,
            "body": wanted.description,
            "base": wanted.target_branch,
            "state": wanted.state,
        }));
        if body != json!({}) {
            self.send(Method::PATCH, &format!("/pulls/{number}"), body)
                .await?;
        }
        if let Some(labels) = wanted.labels {
            let path = format!("/issues/{number}/labels");
            let done = self
                .send(Method::PUT, &path, json!({ "labels": labels }))
                .await;
            done.map_err(|fault| after(&wanted.key, "its labels are as before", &fault))?;
        }
        self.one_pull(number).await
    }

    /// The newest commit that is meant.
    async fn commit(&self, wanted: &PipelineQuery) -> Result<String, ServiceFault> {
        if let Some(of) = &wanted.merge_request {
            return self.head(key::number(of, PULL)?).await;
        }
        let branch = wanted.branch.as_deref().unwrap_or_default();
        let path = with_query("/actions/runs?per_page=1", &[("branch", branch)]);
        reading::text(&self.get(&path).await?, "/workflow_runs/0/head_sha")
            .ok_or_else(|| unfit("no workflow has run there; name another branch"))
    }

    async fn newest_pipeline(&self, wanted: PipelineQuery) -> Result<Pipeline, ServiceFault> {
        let sha = self.commit(&wanted).await?;
        let path = with_query("/actions/runs?per_page=100", &[("head_sha", &sha)]);
        let runs = self.get(&path).await?;
        let runs = reading::list(&runs, "/workflow_runs");
        let first = runs.first().unwrap_or(&Value::Null);
        let mut jobs = Vec::new();
        for run in runs.iter().take(MAX_RUNS) {
            let id = reading::needed(reading::id(run, "/id"), VENDOR_NAME, "a run", "id")?;
            let name = reading::text(run, "/name");
            let path = self.list(&format!(
                "/actions/runs/{}/jobs",
                api_core::http::encoded(&id)
            ));
            let read = |of: &Value| job(of, name.clone()).map(Some);
            jobs.extend(
                self.http
                    .whole(List::new(&path).within("/jobs"), read)
                    .await?
                    .items,
            );
        }
        for job in log::of_failed(&mut jobs, wanted.include_failed_logs) {
            job.log = Some(log::told(self.log(&job.id).await));
        }
        Ok(Pipeline {
            id: sha.clone(),
            status: worst(runs.iter().map(run_status)),
            jobs,
            branch: reading::text(first, "/head_branch"),
            sha: Some(sha),
            url: reading::text(first, "/html_url"),
            created_at: reading::text(first, "/created_at"),
            updated_at: reading::text(first, "/updated_at"),
        })
    }

    async fn log(&self, job: &str) -> Result<String, ServiceFault> {
        let path = format!("/actions/jobs/{}/logs", log::job_number(job)?);
        self.http.text(&self.at(&path)).await
    }
}

/// A comment, and the id of the one that it answers.
struct Answering {
    root: Option<String>,
    comment: Comment,
}

/// What several runs come to.
fn worst(all: impl Iterator<Item = RunStatus>) -> RunStatus {
    let rank = |status: &RunStatus| match status {
        RunStatus::Failed => 5,
        RunStatus::Running => 4,
        RunStatus::Pending => 3,
        RunStatus::Cancelled => 2,
        RunStatus::Success => 1,
        RunStatus::Skipped => 0,
    };
    all.max_by_key(rank).unwrap_or_default()
}

impl PipelineProvider for Repository {
    fn pipeline(&self, wanted: PipelineQuery) -> Answer<'_, Pipeline> {
        Box::pin(self.newest_pipeline(wanted))
    }

    fn job_log(&self, wanted: JobLogQuery) -> Answer<'_, JobLog> {
        Box::pin(async move { Ok(log::cut(&self.log(&wanted.job_id).await?, &wanted)) })
    }
}

impl ReleaseProvider for Repository {
    fn releases(&self, wanted: ReleaseQuery) -> Answer<'_, ItemPage<Release>> {
        Box::pin(async move {
            let path = self.list("/releases");
            self.http
                .page_of(&self.releases, &path, wanted.slice(), release)
                .await
        })
    }

    fn create_release(&self, wanted: NewRelease) -> Answer<'_, Release> {
        Box::pin(async move {
            let body = sent(json!({
                "tag_name": wanted.tag,
                "name": wanted.name,
                "body": wanted.description,
                "target_commitish": wanted.target,
                "draft": wanted.draft,
                "prerelease": wanted.prerelease,
            }));
            release(&self.send(Method::POST, "/releases", body).await?)
        })
    }
}
