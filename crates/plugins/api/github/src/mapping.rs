//! GitHub's answers as the words of all providers.

use api_core::ServiceFault;
use api_core::entity::{
    Comment, FileDiff, Issue, Job, MergeRequest, MergeState, RelatedIssue, Release, RunStatus,
    StatusCategory, User,
};
use api_core::key::numbered;
use api_core::reading::{flag, id, list, needed, number, text, texts};
use serde_json::Value;

pub(crate) const VENDOR_NAME: &str = "GitHub";

/// The keys of issues and of pull requests.
pub(crate) const ISSUE: &str = "gh";
pub(crate) const PULL: &str = "pr";

pub(crate) fn key_of(of: &Value, prefix: &str, what: &str) -> Result<String, ServiceFault> {
    let number = needed(number(of, "/number"), VENDOR_NAME, what, "number")?;
    Ok(numbered(prefix, number))
}

pub(crate) fn user(of: &Value, at: &str) -> Option<User> {
    let of = of.pointer(at)?;
    Some(User {
        id: text(of, "/login")?,
        name: text(of, "/name"),
        email: text(of, "/email"),
    })
}

fn users(of: &Value, at: &str) -> Vec<User> {
    list(of, at).iter().filter_map(|of| user(of, "")).collect()
}

/// Labels are objects; where a repository is old, texts.
fn labels(of: &Value) -> Vec<String> {
    let plain = list(of, "/labels")
        .iter()
        .filter_map(|label| text(label, ""));
    plain.chain(texts(of, "/labels", "/name")).collect()
}

/// An issue; nothing of a pull request, which GitHub lists among them.
pub(crate) fn listed_issue(of: &Value) -> Result<Option<Issue>, ServiceFault> {
    match of.get("pull_request").is_some_and(|of| !of.is_null()) {
        true => Ok(None),
        false => issue(of).map(Some),
    }
}

pub(crate) fn issue(of: &Value) -> Result<Issue, ServiceFault> {
    let state = needed(text(of, "/state"), VENDOR_NAME, "an issue", "state")?;
    let reason = text(of, "/state_reason");
    let (status, status_category) = match (state.as_str(), reason.as_deref()) {
        ("open", _) => ("open", StatusCategory::Todo),
        (_, Some("not_planned" | "duplicate")) => ("not_planned", StatusCategory::Cancelled),
        _ => ("completed", StatusCategory::Done),
    };
    Ok(Issue {
        key: key_of(of, ISSUE, "an issue")?,
        title: needed(text(of, "/title"), VENDOR_NAME, "an issue", "title")?,
        status: status.to_owned(),
        status_category,
        description: text(of, "/body"),
        issue_type: text(of, "/type/name"),
        labels: labels(of),
        author: user(of, "/user"),
        assignees: users(of, "/assignees"),
        url: text(of, "/html_url"),
        created_at: text(of, "/created_at"),
        updated_at: text(of, "/updated_at"),
        parent: text(of, "/parent_issue_url").and_then(|url| {
            let number = url.rsplit('/').next()?.parse().ok()?;
            Some(numbered(ISSUE, number))
        }),
        milestone: text(of, "/milestone/title"),
        ..Issue::default()
    })
}

pub(crate) fn related(of: &Value, relation: &str) -> Result<RelatedIssue, ServiceFault> {
    let Issue {
        key, title, status, ..
    } = issue(of)?;
    Ok(RelatedIssue {
        key,
        title,
        relation: relation.to_owned(),
        status: Some(status),
    })
}

pub(crate) fn comment(of: &Value) -> Result<Comment, ServiceFault> {
    Ok(Comment {
        id: needed(id(of, "/id"), VENDOR_NAME, "a comment", "id")?,
        body: text(of, "/body").unwrap_or_default(),
        author: user(of, "/user"),
        created_at: text(of, "/created_at").or_else(|| text(of, "/submitted_at")),
        updated_at: text(of, "/updated_at"),
        url: text(of, "/html_url"),
        file_path: text(of, "/path"),
        line: number(of, "/line").or_else(|| number(of, "/original_line")),
    })
}

pub(crate) fn listed_comment(of: &Value) -> Result<Option<Comment>, ServiceFault> {
    comment(of).map(Some)
}

/// The id of an issue that links between issues take.
pub(crate) fn database_id(of: &Value) -> Result<u64, ServiceFault> {
    needed(number(of, "/id"), VENDOR_NAME, "an issue", "id")
}

pub(crate) fn pull(of: &Value) -> Result<MergeRequest, ServiceFault> {
    const WHAT: &str = "a pull request";
    let branch = |at| needed(text(of, at), VENDOR_NAME, WHAT, at);
    let merged_at = text(of, "/merged_at");
    let state = needed(text(of, "/state"), VENDOR_NAME, WHAT, "state")?;
    Ok(MergeRequest {
        key: key_of(of, PULL, WHAT)?,
        title: needed(text(of, "/title"), VENDOR_NAME, WHAT, "title")?,
        state: match (state.as_str(), &merged_at) {
            (_, Some(_)) => MergeState::Merged,
            ("open", None) => MergeState::Open,
            _ => MergeState::Closed,
        },
        source_branch: branch("/head/ref")?,
        target_branch: branch("/base/ref")?,
        description: text(of, "/body"),
        draft: flag(of, "/draft"),
        labels: labels(of),
        author: user(of, "/user"),
        assignees: users(of, "/assignees"),
        reviewers: users(of, "/requested_reviewers"),
        url: text(of, "/html_url"),
        created_at: text(of, "/created_at"),
        updated_at: text(of, "/updated_at"),
        merged_at,
        sha: text(of, "/head/sha"),
        mergeable: text(of, "/mergeable_state"),
    })
}

pub(crate) fn file(of: &Value) -> Result<FileDiff, ServiceFault> {
    Ok(FileDiff {
        path: needed(text(of, "/filename"), VENDOR_NAME, "a file", "filename")?,
        change: text(of, "/status").unwrap_or_else(|| "modified".to_owned()),
        old_path: text(of, "/previous_filename"),
        additions: number(of, "/additions"),
        deletions: number(of, "/deletions"),
        diff: text(of, "/patch"),
    })
}

pub(crate) fn release(of: &Value) -> Result<Release, ServiceFault> {
    let tag = needed(text(of, "/tag_name"), VENDOR_NAME, "a release", "tag_name")?;
    Ok(Release {
        name: text(of, "/name").unwrap_or_else(|| tag.clone()),
        tag,
        description: text(of, "/body"),
        draft: flag(of, "/draft"),
        prerelease: flag(of, "/prerelease"),
        author: user(of, "/author"),
        url: text(of, "/html_url"),
        created_at: text(of, "/created_at"),
        published_at: text(of, "/published_at"),
    })
}

/// How far a run or a job is.
pub(crate) fn run_status(of: &Value) -> RunStatus {
    let conclusion = text(of, "/conclusion");
    match (text(of, "/status").as_deref(), conclusion.as_deref()) {
        (_, Some("success" | "neutral")) => RunStatus::Success,
        (_, Some("cancelled")) => RunStatus::Cancelled,
        (_, Some("skipped")) => RunStatus::Skipped,
        (_, Some(_)) => RunStatus::Failed,
        (Some("in_progress"), None) => RunStatus::Running,
        (_, None) => RunStatus::Pending,
    }
}

pub(crate) fn job(of: &Value, workflow: Option<String>) -> Result<Job, ServiceFault> {
    Ok(Job {
        id: needed(id(of, "/id"), VENDOR_NAME, "a job", "id")?,
        name: text(of, "/name").unwrap_or_default(),
        status: run_status(of),
        stage: workflow,
        url: text(of, "/html_url"),
        log: None,
    })
}
