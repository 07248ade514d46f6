//! The arguments of the tools, which are those of the providers' methods. Doc comments are what a model reads.

use crate::page::{MAX_ITEMS, MAX_LIMIT, Slice, usual};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest title, key or name, and the longest text, in characters.
const MAX_LINE: usize = 1024;
const MAX_TEXT: usize = 65_536;
/// Most labels, people or the like.
const MAX_LIST: usize = 50;
/// Most lines of a log.
const MAX_LOG_LINES: u32 = 1000;

/// Declares structs of arguments.
macro_rules! arguments {
    ($($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $kind:ty,)* })+) => {
        $($(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(description = "")]
        pub struct $name { $($(#[$of])* pub $field: $kind,)* })+
    };
}

/// Gives those with an offset and a limit their slice.
macro_rules! sliced {
    ($($name:ident)+) => {
        $(impl $name {
            /// The part of the list that is wanted.
            #[must_use]
            pub fn slice(&self) -> Slice {
                Slice::new(self.offset, self.limit)
            }
        })+
    };
}

/// Which issues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateFilter {
    #[default]
    Open,
    Closed,
    All,
}

/// Which merge requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStateFilter {
    #[default]
    Open,
    Closed,
    Merged,
    All,
}

/// What something is made to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewState {
    Open,
    Closed,
}

/// By what a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    CreatedAt,
    #[default]
    UpdatedAt,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortOrder {
    Asc,
    #[default]
    Desc,
}

/// What one issue is to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkType {
    /// `key` blocks `target`.
    Blocks,
    /// `target` blocks `key`.
    BlockedBy,
    RelatesTo,
    /// `key` duplicates `target`.
    Duplicates,
    /// `key` becomes a subtask of `target`.
    SubtaskOf,
}

arguments! {
    IssueQuery {
        #[serde(default)]
        state: StateFilter,
        /// Words to look for.
        #[schemars(length(max = MAX_LINE))]
        search: Option<String>,
        /// Only issues with all of these labels.
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        labels: Vec<String>,
        /// Only issues of this person.
        #[schemars(length(max = MAX_LINE))]
        assignee: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        /// How many to leave out before.
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
        #[serde(default)]
        sort_by: SortBy,
        #[serde(default)]
        sort_order: SortOrder,
        /// Another project than the configured one, where the tracker has several.
        #[serde(rename = "projectKey")]
        #[schemars(length(max = MAX_LINE))]
        project_key: Option<String>,
        /// A query in the tracker's own language, in place of the other filters.
        #[serde(rename = "nativeQuery")]
        #[schemars(length(max = MAX_LINE))]
        native_query: Option<String>,
    }
    IssueWish {
        /// Such as gh#12, gitlab#7, PROJ-3 or CU-abc.
        #[schemars(length(max = MAX_LINE))]
        key: String,
        #[serde(default, rename = "includeComments")]
        include_comments: bool,
        /// With subtasks and linked issues.
        #[serde(default, rename = "includeRelations")]
        include_relations: bool,
    }
    CommentQuery {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
    }
    NewIssue {
        #[schemars(length(min = 1, max = MAX_LINE))]
        title: String,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        labels: Vec<String>,
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        assignees: Vec<String>,
        /// The key of the issue above it.
        #[serde(rename = "parentId")]
        #[schemars(length(max = MAX_LINE))]
        parent: Option<String>,
        #[serde(rename = "issueType")]
        #[schemars(length(max = MAX_LINE))]
        issue_type: Option<String>,
        #[schemars(length(max = MAX_LINE))]
        priority: Option<String>,
        #[serde(rename = "projectKey")]
        #[schemars(length(max = MAX_LINE))]
        project_key: Option<String>,
        /// Fields of the project, by name.
        #[serde(default, rename = "customFields")]
        custom_fields: Map<String, Value>,
    }
    /// What is left out stays.
    IssueChange {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        #[schemars(length(min = 1, max = MAX_LINE))]
        title: Option<String>,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        state: Option<NewState>,
        /// The name of one of the available statuses.
        #[schemars(length(max = MAX_LINE))]
        status: Option<String>,
        /// All labels that it has then.
        #[schemars(length(max = MAX_LIST))]
        labels: Option<Vec<String>>,
        /// All assignees that it has then.
        #[schemars(length(max = MAX_LIST))]
        assignees: Option<Vec<String>>,
        #[schemars(length(max = MAX_LINE))]
        priority: Option<String>,
        /// The key of the issue above it.
        #[serde(rename = "parentId")]
        #[schemars(length(max = MAX_LINE))]
        parent: Option<String>,
        #[serde(default, rename = "customFields")]
        custom_fields: Map<String, Value>,
    }
    NewComment {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        /// Markdown.
        #[schemars(length(min = 1, max = MAX_TEXT))]
        body: String,
    }
    StatusQuery {
        #[serde(rename = "projectKey")]
        #[schemars(length(max = MAX_LINE))]
        project_key: Option<String>,
    }
    UserQuery {
        /// A part of a name.
        #[schemars(length(max = MAX_LINE))]
        search: Option<String>,
        #[serde(rename = "projectKey")]
        #[schemars(length(max = MAX_LINE))]
        project_key: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
    }
    IssueLink {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        /// The key of the other issue.
        #[schemars(length(max = MAX_LINE))]
        target: String,
        link_type: LinkType,
    }
    MergeRequestQuery {
        #[serde(default)]
        state: MergeStateFilter,
        #[schemars(length(max = MAX_LINE))]
        author: Option<String>,
        /// Only those with all of these labels.
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        labels: Vec<String>,
        #[schemars(length(max = MAX_LINE))]
        source_branch: Option<String>,
        #[schemars(length(max = MAX_LINE))]
        target_branch: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
        #[serde(default)]
        sort_by: SortBy,
        #[serde(default)]
        sort_order: SortOrder,
    }
    MergeRequestWish {
        /// Such as pr#12 or mr#7.
        #[schemars(length(max = MAX_LINE))]
        key: String,
    }
    NewMergeRequest {
        #[schemars(length(min = 1, max = MAX_LINE))]
        title: String,
        /// The branch with the changes.
        #[schemars(length(min = 1, max = MAX_LINE))]
        source_branch: String,
        /// The branch that they go into.
        #[schemars(length(min = 1, max = MAX_LINE))]
        target_branch: String,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        #[serde(default)]
        draft: bool,
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        labels: Vec<String>,
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        reviewers: Vec<String>,
    }
    NewReviewComment {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        /// Markdown.
        #[schemars(length(min = 1, max = MAX_TEXT))]
        body: String,
        /// A changed file; without it the comment is about the whole.
        #[schemars(length(max = MAX_LINE))]
        file_path: Option<String>,
        /// A line of the file as it is after the change.
        #[schemars(range(min = 1))]
        line: Option<u64>,
        /// The discussion that it answers.
        #[schemars(length(max = MAX_LINE))]
        discussion_id: Option<String>,
    }
    /// What is left out stays.
    MergeRequestChange {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        #[schemars(length(min = 1, max = MAX_LINE))]
        title: Option<String>,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        state: Option<NewState>,
        #[schemars(length(min = 1, max = MAX_LINE))]
        target_branch: Option<String>,
        /// All labels that it has then.
        #[schemars(length(max = MAX_LIST))]
        labels: Option<Vec<String>>,
    }
    /// The newest pipeline of a branch or a merge request.
    PipelineQuery {
        #[schemars(length(max = MAX_LINE))]
        branch: Option<String>,
        #[serde(rename = "mrKey")]
        #[schemars(length(max = MAX_LINE))]
        merge_request: Option<String>,
        /// With the ends of the logs of failed jobs.
        #[serde(default, rename = "includeFailedLogs")]
        include_failed_logs: bool,
    }
    JobLogQuery {
        /// As `get_pipeline` names it.
        #[serde(rename = "jobId")]
        #[schemars(length(max = MAX_LINE))]
        job_id: String,
        /// Only lines that contain this, in any case.
        #[schemars(length(max = MAX_LINE))]
        pattern: Option<String>,
        /// Lines around each of these.
        #[serde(default)]
        #[schemars(range(max = 50))]
        context: u32,
        /// How many lines to leave out before.
        #[serde(default)]
        offset: u32,
        #[serde(default = "usual_lines")]
        #[schemars(range(min = 1, max = MAX_LOG_LINES))]
        limit: u32,
    }
    EpicQuery {
        #[serde(default)]
        state: StateFilter,
        #[schemars(length(max = MAX_LINE))]
        search: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
    }
    NewEpic {
        #[schemars(length(min = 1, max = MAX_LINE))]
        title: String,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        labels: Vec<String>,
    }
    /// What is left out stays.
    EpicChange {
        #[schemars(length(max = MAX_LINE))]
        key: String,
        #[schemars(length(min = 1, max = MAX_LINE))]
        title: Option<String>,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        state: Option<NewState>,
        /// All labels that it has then.
        #[schemars(length(max = MAX_LIST))]
        labels: Option<Vec<String>>,
    }
    ReleaseQuery {
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
    }
    NewRelease {
        /// The tag; it is created where it is missing.
        #[schemars(length(min = 1, max = MAX_LINE))]
        tag: String,
        #[schemars(length(max = MAX_LINE))]
        name: Option<String>,
        /// Markdown.
        #[schemars(length(max = MAX_TEXT))]
        description: Option<String>,
        /// The branch or commit of a new tag.
        #[schemars(length(max = MAX_LINE))]
        target: Option<String>,
        #[serde(default)]
        draft: bool,
        #[serde(default)]
        prerelease: bool,
    }
    MeetingQuery {
        /// A date, such as 2026-01-31.
        #[schemars(length(max = MAX_LINE))]
        from_date: Option<String>,
        #[schemars(length(max = MAX_LINE))]
        to_date: Option<String>,
        /// Mail addresses.
        #[serde(default)]
        #[schemars(length(max = MAX_LIST))]
        participants: Vec<String>,
        #[schemars(length(max = MAX_LINE))]
        host_email: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
    }
    TranscriptQuery {
        #[schemars(length(max = MAX_LINE))]
        meeting_id: String,
        /// Sentences.
        #[serde(default = "usual_lines")]
        #[schemars(range(min = 1, max = MAX_LOG_LINES))]
        limit: u32,
        #[serde(default)]
        offset: u32,
    }
    MeetingSearch {
        #[schemars(length(min = 1, max = MAX_LINE))]
        query: String,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        #[serde(default)]
        #[schemars(range(max = MAX_ITEMS))]
        offset: u32,
    }
    ChatQuery {
        /// A part of a name.
        #[schemars(length(max = MAX_LINE))]
        search: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        /// `next_cursor` of the page before.
        #[schemars(length(max = MAX_LINE))]
        cursor: Option<String>,
    }
    MessageQuery {
        #[schemars(length(max = MAX_LINE))]
        chat_id: String,
        /// Only the replies of this message.
        #[schemars(length(max = MAX_LINE))]
        thread_id: Option<String>,
        /// A time, such as 2026-01-31T12:00:00Z.
        #[schemars(length(max = MAX_LINE))]
        since: Option<String>,
        #[schemars(length(max = MAX_LINE))]
        until: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        /// `next_cursor` of the page before.
        #[schemars(length(max = MAX_LINE))]
        cursor: Option<String>,
    }
    MessageSearch {
        #[schemars(length(min = 1, max = MAX_LINE))]
        query: String,
        #[schemars(length(max = MAX_LINE))]
        chat_id: Option<String>,
        #[serde(default = "usual")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: u32,
        /// `next_cursor` of the page before.
        #[schemars(length(max = MAX_LINE))]
        cursor: Option<String>,
    }
    NewMessage {
        #[schemars(length(max = MAX_LINE))]
        chat_id: String,
        #[schemars(length(min = 1, max = MAX_TEXT))]
        text: String,
        /// The message that it answers.
        #[schemars(length(max = MAX_LINE))]
        thread_id: Option<String>,
    }
}

sliced! { IssueQuery CommentQuery UserQuery MergeRequestQuery EpicQuery ReleaseQuery MeetingQuery MeetingSearch }

/// The word of a choice, as it is in JSON: `created_at`, `open`.
#[must_use]
pub fn word(choice: impl Serialize) -> String {
    let word = serde_json::to_value(choice).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

const fn usual_lines() -> u32 {
    200
}
