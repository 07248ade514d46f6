//! GitLab's answers as the words of all providers.

use api_core::ServiceFault;
use api_core::entity::{
    Comment, Discussion, FileDiff, Issue, Job, MergeRequest, MergeState, RelatedIssue, Release,
    RunStatus, StatusCategory, User,
};
use api_core::key::numbered;
use api_core::reading::{flag, id, list, needed, number, text, texts};
use serde_json::Value;

pub(crate) const VENDOR_NAME: &str = "GitLab";

/// The keys of issues and of merge requests: both by the number within the project.
pub(crate) const ISSUE: &str = "gitlab";
pub(crate) const MERGE: &str = "mr";

fn must<T>(found: Option<T>, what: &str, at: &str) -> Result<T, ServiceFault> {
    needed(found, VENDOR_NAME, what, at)
}

pub(crate) fn user(of: &Value, at: &str) -> Option<User> {
    let of = of.pointer(at)?;
    Some(User {
        id: text(of, "/username")?,
        name: text(of, "/name"),
        email: text(of, "/public_email"),
    })
}

fn users(of: &Value, at: &str) -> Vec<User> {
    list(of, at).iter().filter_map(|of| user(of, "")).collect()
}

pub(crate) fn issue(of: &Value) -> Result<Issue, ServiceFault> {
    const WHAT: &str = "an issue";
    let status = must(text(of, "/state"), WHAT, "state")?;
    Ok(Issue {
        key: numbered(ISSUE, must(number(of, "/iid"), WHAT, "iid")?),
        title: must(text(of, "/title"), WHAT, "title")?,
        status_category: match status.as_str() {
            "closed" => StatusCategory::Done,
            _ => StatusCategory::Todo,
        },
        status,
        description: text(of, "/description"),
        priority: text(of, "/severity").filter(|of| of != "UNKNOWN"),
        issue_type: text(of, "/issue_type"),
        labels: texts(of, "/labels", ""),
        author: user(of, "/author"),
        assignees: users(of, "/assignees"),
        url: text(of, "/web_url"),
        created_at: text(of, "/created_at"),
        updated_at: text(of, "/updated_at"),
        milestone: text(of, "/milestone/title"),
        ..Issue::default()
    })
}

/// A linked issue; one of another project has its full reference as its key.
pub(crate) fn related(of: &Value, project: Option<u64>) -> Result<RelatedIssue, ServiceFault> {
    let Issue {
        key, title, status, ..
    } = issue(of)?;
    let is_other = number(of, "/project_id") != project;
    let full = text(of, "/references/full").filter(|_| is_other);
    Ok(RelatedIssue {
        key: full.unwrap_or(key),
        title,
        relation: match text(of, "/link_type").as_deref() {
            Some("is_blocked_by") => "blocked_by".to_owned(),
            Some(other) => other.to_owned(),
            None => "relates_to".to_owned(),
        },
        status: Some(status),
    })
}

pub(crate) fn comment(of: &Value) -> Result<Comment, ServiceFault> {
    Ok(Comment {
        id: must(id(of, "/id"), "a note", "id")?,
        body: text(of, "/body").unwrap_or_default(),
        author: user(of, "/author"),
        created_at: text(of, "/created_at"),
        updated_at: text(of, "/updated_at"),
        url: None,
        file_path: text(of, "/position/new_path").or_else(|| text(of, "/position/old_path")),
        line: number(of, "/position/new_line"),
    })
}

/// A comment of a person; nothing of a note with which GitLab records a change.
pub(crate) fn listed_comment(of: &Value) -> Result<Option<Comment>, ServiceFault> {
    match flag(of, "/system") {
        true => Ok(None),
        false => comment(of).map(Some),
    }
}

/// A discussion without such notes; nothing if it has no others.
pub(crate) fn discussion(of: &Value) -> Result<Option<Discussion>, ServiceFault> {
    let id = must(id(of, "/id"), "a discussion", "id")?;
    let notes = list(of, "/notes");
    let comments: Result<Vec<_>, _> = notes.iter().map(listed_comment).collect();
    let comments: Vec<Comment> = comments?.into_iter().flatten().collect();
    let mut resolvable = notes.iter().filter(|of| flag(of, "/resolvable")).peekable();
    let resolved = resolvable.peek().is_some() && resolvable.all(|of| flag(of, "/resolved"));
    Ok((!comments.is_empty()).then_some(Discussion {
        id,
        comments,
        resolved,
    }))
}

pub(crate) fn merge_request(of: &Value) -> Result<MergeRequest, ServiceFault> {
    const WHAT: &str = "a merge request";
    let branch = |at| must(text(of, at), WHAT, at);
    Ok(MergeRequest {
        key: numbered(MERGE, must(number(of, "/iid"), WHAT, "iid")?),
        title: must(text(of, "/title"), WHAT, "title")?,
        state: match must(text(of, "/state"), WHAT, "state")?.as_str() {
            "merged" => MergeState::Merged,
            "closed" => MergeState::Closed,
            _ => MergeState::Open,
        },
        source_branch: branch("/source_branch")?,
        target_branch: branch("/target_branch")?,
        description: text(of, "/description"),
        draft: flag(of, "/draft") || flag(of, "/work_in_progress"),
        labels: texts(of, "/labels", ""),
        author: user(of, "/author"),
        assignees: users(of, "/assignees"),
        reviewers: users(of, "/reviewers"),
        url: text(of, "/web_url"),
        created_at: text(of, "/created_at"),
        updated_at: text(of, "/updated_at"),
        merged_at: text(of, "/merged_at"),
        sha: text(of, "/sha"),
        mergeable: text(of, "/detailed_merge_status").or_else(|| text(of, "/merge_status")),
    })
}

pub(crate) fn file(of: &Value) -> Result<FileDiff, ServiceFault> {
    let path = must(text(of, "/new_path"), "a file", "new_path")?;
    let changes = [
        ("/new_file", "added"),
        ("/deleted_file", "removed"),
        ("/renamed_file", "renamed"),
    ];
    let change = changes.iter().find(|(at, _)| flag(of, at));
    Ok(FileDiff {
        change: change.map_or("modified", |(_, word)| *word).to_owned(),
        old_path: text(of, "/old_path").filter(|old| *old != path),
        path,
        additions: None,
        deletions: None,
        diff: text(of, "/diff"),
    })
}

pub(crate) fn release(of: &Value) -> Result<Release, ServiceFault> {
    let tag = must(text(of, "/tag_name"), "a release", "tag_name")?;
    Ok(Release {
        name: text(of, "/name").unwrap_or_else(|| tag.clone()),
        tag,
        description: text(of, "/description"),
        draft: false,
        prerelease: false,
        author: user(of, "/author"),
        url: text(of, "/_links/self"),
        created_at: text(of, "/created_at"),
        published_at: text(of, "/released_at"),
    })
}

/// How far a pipeline or a job is.
pub(crate) fn run_status(of: &Value) -> RunStatus {
    match text(of, "/status").as_deref() {
        Some("success") => RunStatus::Success,
        Some("failed") => RunStatus::Failed,
        Some("running" | "canceling") => RunStatus::Running,
        Some("canceled") => RunStatus::Cancelled,
        Some("skipped") => RunStatus::Skipped,
        // `created`, `waiting_for_resource`, `preparing`, `pending`, `manual`, `scheduled`.
        _ => RunStatus::Pending,
    }
}

pub(crate) fn job(of: &Value) -> Result<Job, ServiceFault> {
    Ok(Job {
        id: must(id(of, "/id"), "a job", "id")?,
        name: text(of, "/name").unwrap_or_default(),
        status: run_status(of),
        stage: text(of, "/stage"),
        url: text(of, "/web_url"),
        log: None,
    })
}
