//! Merge requests, pipelines and releases.

use crate::GitLabProject;
use crate::mapping::{
    MERGE, VENDOR_NAME, comment, discussion, file, job, merge_request, release, run_status,
};
use api_core::arguments::{
    CommentQuery, JobLogQuery, MergeRequestChange, MergeRequestQuery, MergeRequestWish,
    MergeStateFilter, NewMergeRequest, NewRelease, NewReviewComment, NewState, PipelineQuery,
    ReleaseQuery, word,
};
use api_core::entity::{Comment, Discussion, FileDiff, JobLog, MergeRequest, Pipeline, Release};
use api_core::http::{List, Method, encoded, with_query};
use api_core::page::ItemPage;
use api_core::provider::{Answer, MergeRequestProvider, PipelineProvider, ReleaseProvider};
use api_core::reading::{id, needed, text};
use api_core::{ServiceFault, key, log, unfit};
use llm_worker::ErrorKind;
use serde_json::{Value, json};

impl MergeRequestProvider for GitLabProject {
    fn merge_requests(&self, wanted: MergeRequestQuery) -> Answer<'_, ItemPage<MergeRequest>> {
        Box::pin(self.list_merges(wanted))
    }

    fn merge_request(&self, wanted: MergeRequestWish) -> Answer<'_, MergeRequest> {
        Box::pin(async move { merge_request(&self.get(&below(&wanted.key, "")?).await?) })
    }

    fn discussions(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Discussion>> {
        Box::pin(async move {
            let path = self.list(&below(&wanted.key, "/discussions")?, &[]);
            let list = List::new(&path);
            let known = &self.lists.discussions;
            self.http
                .page(known, list, wanted.slice(), discussion)
                .await
        })
    }

    fn diffs(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<FileDiff>> {
        Box::pin(async move {
            let path = self.at(&below(&wanted.key, DIFFS)?);
            let known = &self.lists.files;
            self.http.page_of(known, &path, wanted.slice(), file).await
        })
    }

    fn create_merge_request(&self, wanted: NewMergeRequest) -> Answer<'_, MergeRequest> {
        Box::pin(self.new_merge(wanted))
    }

    fn comment_merge_request(&self, wanted: NewReviewComment) -> Answer<'_, Comment> {
        Box::pin(self.new_review_comment(wanted))
    }

    fn update_merge_request(&self, wanted: MergeRequestChange) -> Answer<'_, MergeRequest> {
        Box::pin(async move {
            let event = wanted.state.map(|state| match state {
                NewState::Open => "reopen",
                NewState::Closed => "close",
            });
            let body = json!({
                "title": wanted.title,
                "description": wanted.description,
                "target_branch": wanted.target_branch,
                "labels": wanted.labels.map(|all| all.join(",")),
                "state_event": event,
            });
            let path = below(&wanted.key, "")?;
            merge_request(&self.send(Method::PUT, &path, body).await?)
        })
    }
}

/// Some servers answer 500 to larger pieces of this list.
const DIFFS: &str = "/diffs?per_page=30";

/// A path below a merge request.
fn below(key: &str, path: &str) -> Result<String, ServiceFault> {
    let iid = key::number(key, MERGE)?;
    Ok(format!("/merge_requests/{iid}{path}"))
}

impl GitLabProject {
    async fn list_merges(
        &self,
        wanted: MergeRequestQuery,
    ) -> Result<ItemPage<MergeRequest>, ServiceFault> {
        let state = match wanted.state {
            MergeStateFilter::Open => "opened",
            MergeStateFilter::Closed => "closed",
            MergeStateFilter::Merged => "merged",
            MergeStateFilter::All => "all",
        };
        let source = wanted.source_branch.as_deref().unwrap_or_default();
        let target = wanted.target_branch.as_deref().unwrap_or_default();
        let values = [
            ("state", state),
            (
                "author_username",
                wanted.author.as_deref().unwrap_or_default(),
            ),
            ("labels", &wanted.labels.join(",")),
            ("source_branch", source),
            ("target_branch", target),
            ("order_by", &word(wanted.sort_by)),
            ("sort", &word(wanted.sort_order)),
        ];
        let path = self.list("/merge_requests", &values);
        let known = &self.lists.merges;
        self.http
            .page_of(known, &path, wanted.slice(), merge_request)
            .await
    }

    async fn new_merge(&self, wanted: NewMergeRequest) -> Result<MergeRequest, ServiceFault> {
        let reviewers = match wanted.reviewers.is_empty() {
            true => None,
            false => Some(self.numbers_of(&wanted.reviewers).await?),
        };
        // A draft is one by its title.
        let mark = match wanted.draft && !wanted.title.starts_with("Draft:") {
            true => "Draft: ",
            false => "",
        };
        let body = json!({
            "title": format!("{mark}{}", wanted.title),
            "source_branch": wanted.source_branch,
            "target_branch": wanted.target_branch,
            "description": wanted.description,
            "labels": (!wanted.labels.is_empty()).then(|| wanted.labels.join(",")),
            "reviewer_ids": reviewers,
        });
        merge_request(&self.send(Method::POST, "/merge_requests", body).await?)
    }

    async fn new_review_comment(&self, wanted: NewReviewComment) -> Result<Comment, ServiceFault> {
        let path = match (&wanted.discussion_id, wanted.file_path) {
            (Some(of), _) => format!("/discussions/{}/notes", encoded(of)),
            (None, None) => "/notes".to_owned(),
            (None, Some(file)) => {
                let body = json!({
                    "body": wanted.body,
                    "position": self.position(&wanted.key, file, wanted.line).await?,
                });
                let path = below(&wanted.key, "/discussions")?;
                let made = self.send(Method::POST, &path, body).await;
                let made = made.map_err(|fault| match fault.kind {
                    ErrorKind::FixInput if wanted.line.is_some() => unfit(format!(
                        "{}; `line` must be one that the merge request adds; else leave it out",
                        fault.message
                    )),
                    _ => fault,
                })?;
                return comment(made.pointer("/notes/0").unwrap_or(&Value::Null));
            }
        };
        let path = below(&wanted.key, &path)?;
        let body = json!({ "body": wanted.body });
        comment(&self.send(Method::POST, &path, body).await?)
    }

    /// Where a comment stands: the commits that are compared, and the names of the file before and after.
    async fn position(
        &self,
        key: &str,
        path: String,
        line: Option<u64>,
    ) -> Result<Value, ServiceFault> {
        let of = self.get(&below(key, "")?).await?;
        let refs = of.pointer("/diff_refs").and_then(Value::as_object);
        let refs = needed(refs, VENDOR_NAME, "a merge request", "diff_refs")?;
        let diffs = self.at(&below(key, DIFFS)?);
        let read = |of: &Value| Ok(Some(file(of)?).filter(|of| of.path == path));
        let files = self.http.whole(List::new(&diffs), read).await?;
        let found = files.items.into_iter().next();
        if found.is_none() && !files.is_cut {
            return Err(unfit(format!("{key} does not change `{path}`")));
        }
        let old = found.and_then(|of| of.old_path);
        let mut position = refs.clone();
        let is = if line.is_some() { "text" } else { "file" };
        position.insert("position_type".to_owned(), is.into());
        position.insert(
            "old_path".to_owned(),
            old.unwrap_or_else(|| path.clone()).into(),
        );
        position.insert("new_path".to_owned(), path.into());
        position.extend(line.map(|line| ("new_line".to_owned(), line.into())));
        Ok(position.into())
    }

    async fn newest_pipeline(&self, wanted: PipelineQuery) -> Result<Pipeline, ServiceFault> {
        let path = match &wanted.merge_request {
            Some(key) => below(key, "/pipelines?per_page=1")?,
            None => {
                let branch = wanted.branch.as_deref().unwrap_or_default();
                with_query("/pipelines?per_page=1", &[("ref", branch)])
            }
        };
        let all = self.get(&path).await?;
        let newest = all
            .pointer("/0")
            .ok_or_else(|| unfit("no pipeline has run there; name another branch"))?;
        let id = needed(id(newest, "/id"), VENDOR_NAME, "a pipeline", "id")?;
        let path = self.list(&format!("/pipelines/{}/jobs", encoded(&id)), &[]);
        let read = |of: &Value| job(of).map(Some);
        let mut jobs = self.http.whole(List::new(&path), read).await?.items;
        for job in log::of_failed(&mut jobs, wanted.include_failed_logs) {
            job.log = Some(log::told(self.log(&job.id).await));
        }
        Ok(Pipeline {
            id,
            status: run_status(newest),
            jobs,
            branch: text(newest, "/ref"),
            sha: text(newest, "/sha"),
            url: text(newest, "/web_url"),
            created_at: text(newest, "/created_at"),
            updated_at: text(newest, "/updated_at"),
        })
    }

    async fn log(&self, job: &str) -> Result<String, ServiceFault> {
        let path = format!("/jobs/{}/trace", log::job_number(job)?);
        self.http.text(&self.at(&path)).await
    }
}

impl PipelineProvider for GitLabProject {
    fn pipeline(&self, wanted: PipelineQuery) -> Answer<'_, Pipeline> {
        Box::pin(self.newest_pipeline(wanted))
    }

    fn job_log(&self, wanted: JobLogQuery) -> Answer<'_, JobLog> {
        Box::pin(async move { Ok(log::cut(&self.log(&wanted.job_id).await?, &wanted)) })
    }
}

impl ReleaseProvider for GitLabProject {
    fn releases(&self, wanted: ReleaseQuery) -> Answer<'_, ItemPage<Release>> {
        Box::pin(async move {
            let path = self.list("/releases", &[]);
            let known = &self.lists.releases;
            self.http
                .page_of(known, &path, wanted.slice(), release)
                .await
        })
    }

    fn create_release(&self, wanted: NewRelease) -> Answer<'_, Release> {
        Box::pin(async move {
            if wanted.draft || wanted.prerelease {
                return Err(unfit(
                    "GitLab has neither drafts nor prereleases of releases",
                ));
            }
            let body = json!({
                "tag_name": wanted.tag,
                "name": wanted.name,
                "description": wanted.description,
                "ref": wanted.target,
            });
            release(&self.send(Method::POST, "/releases", body).await?)
        })
    }
}
