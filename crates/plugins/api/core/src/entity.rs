//! What providers answer with: the same words for all vendors. Times are RFC 3339 in UTC. A field that a vendor does not
//! have is left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Declares structs of answers: fields of `Option` and lists are left out where there is nothing.
macro_rules! entities {
    ($($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $kind:ty,)* $(? $($(#[$rest_about:meta])* $rest:ident: $rest_kind:ty,)*)? })+) => {
        $($(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $kind,)*
            $($($(#[$rest_about])*
            #[serde(default, skip_serializing_if = "is_nothing")]
            pub $rest: $rest_kind,)*)?
        })+
    };
}

/// Whether there is nothing to say.
trait Nothing {
    fn is_nothing(&self) -> bool;
}

impl<T> Nothing for Option<T> {
    fn is_nothing(&self) -> bool {
        self.is_none()
    }
}

impl<T> Nothing for Vec<T> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl Nothing for Map<String, Value> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl Nothing for bool {
    fn is_nothing(&self) -> bool {
        !self
    }
}

fn is_nothing(of: &impl Nothing) -> bool {
    of.is_nothing()
}

/// What a status means, whatever a project calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusCategory {
    #[default]
    Todo,
    InProgress,
    Done,
    Cancelled,
}

/// What became of a merge request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeState {
    #[default]
    Open,
    Closed,
    Merged,
}

/// How far a pipeline or a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    #[default]
    Pending,
    Running,
    Success,
    Failed,
    Cancelled,
    Skipped,
}

entities! {
    /// An issue, a task, a ticket.
    Issue {
        /// Such as `gh#12`.
        key: String,
        title: String,
        /// The vendor's word, such as `open`.
        status: String,
        status_category: StatusCategory,
        ?
        /// Markdown.
        description: Option<String>,
        priority: Option<String>,
        issue_type: Option<String>,
        labels: Vec<String>,
        author: Option<User>,
        assignees: Vec<User>,
        url: Option<String>,
        created_at: Option<String>,
        updated_at: Option<String>,
        /// The key of the issue above it.
        parent: Option<String>,
        subtasks: Vec<RelatedIssue>,
        relations: Vec<RelatedIssue>,
        comments: Vec<Comment>,
        milestone: Option<String>,
        custom_fields: Map<String, Value>,
    }
    /// Another issue, and what it is to the first one.
    RelatedIssue {
        key: String,
        title: String,
        /// `subtask`, `parent`, `blocks`, `blocked_by`, `relates_to`, `duplicates`, or the vendor's word.
        relation: String,
        ? status: Option<String>,
    }
    /// A person or a robot.
    User {
        /// What other arguments take.
        id: String,
        ?
        name: Option<String>,
        email: Option<String>,
    }
    /// A comment.
    Comment {
        id: String,
        body: String,
        ?
        author: Option<User>,
        created_at: Option<String>,
        updated_at: Option<String>,
        url: Option<String>,
        /// The file and the line that it is about.
        file_path: Option<String>,
        line: Option<u64>,
    }
    /// A status that issues can have.
    Status {
        id: String,
        name: String,
        category: StatusCategory,
    }
    /// A merge request or pull request.
    MergeRequest {
        key: String,
        title: String,
        state: MergeState,
        source_branch: String,
        target_branch: String,
        ?
        description: Option<String>,
        draft: bool,
        labels: Vec<String>,
        author: Option<User>,
        assignees: Vec<User>,
        reviewers: Vec<User>,
        url: Option<String>,
        created_at: Option<String>,
        updated_at: Option<String>,
        merged_at: Option<String>,
        /// Of its newest commit.
        sha: Option<String>,
        /// The vendor's word on whether it can be merged.
        mergeable: Option<String>,
    }
    /// Comments that answer each other.
    Discussion {
        id: String,
        comments: Vec<Comment>,
        ? resolved: bool,
    }
    /// What a merge request changes in one file.
    FileDiff {
        path: String,
        /// `added`, `removed`, `modified`, `renamed`.
        change: String,
        ?
        old_path: Option<String>,
        additions: Option<u64>,
        deletions: Option<u64>,
        /// Unified hunks; none of a file that is binary or too large.
        diff: Option<String>,
    }
    /// A run of what a project checks.
    Pipeline {
        id: String,
        status: RunStatus,
        jobs: Vec<Job>,
        ?
        branch: Option<String>,
        sha: Option<String>,
        url: Option<String>,
        created_at: Option<String>,
        updated_at: Option<String>,
    }
    /// A part of a pipeline.
    Job {
        /// What `get_job_logs` takes.
        id: String,
        name: String,
        status: RunStatus,
        ?
        stage: Option<String>,
        url: Option<String>,
        /// The end of the log of a job that failed.
        log: Option<String>,
    }
    /// Lines of a job's log.
    JobLog {
        job_id: String,
        /// Of the whole log.
        total_lines: u64,
        /// Those that are shown, each with its number.
        lines: Vec<LogLine>,
        has_more: bool,
    }
    /// A line of a log; the first has the number 1.
    LogLine {
        number: u64,
        text: String,
    }
    /// A release.
    Release {
        tag: String,
        name: String,
        ?
        description: Option<String>,
        draft: bool,
        prerelease: bool,
        author: Option<User>,
        url: Option<String>,
        created_at: Option<String>,
        published_at: Option<String>,
    }
    /// Work that is larger than an issue.
    Epic {
        key: String,
        title: String,
        status: String,
        status_category: StatusCategory,
        ?
        description: Option<String>,
        labels: Vec<String>,
        author: Option<User>,
        url: Option<String>,
        created_at: Option<String>,
        updated_at: Option<String>,
        children: Vec<RelatedIssue>,
    }
    /// What is known about a meeting.
    MeetingNote {
        id: String,
        title: String,
        ?
        date: Option<String>,
        duration_minutes: Option<f64>,
        host: Option<String>,
        participants: Vec<String>,
        summary: Option<String>,
        action_items: Vec<String>,
        keywords: Vec<String>,
        url: Option<String>,
    }
    /// Sentences of a meeting.
    MeetingTranscript {
        meeting_id: String,
        title: String,
        sentences: Vec<Sentence>,
        total_sentences: u64,
        has_more: bool,
    }
    /// What was said.
    Sentence {
        text: String,
        ?
        speaker: Option<String>,
        /// Seconds from the beginning.
        start: Option<f64>,
    }
    /// A channel, a group or a conversation of two.
    Chat {
        id: String,
        name: String,
        /// `channel`, `private_channel`, `group`, `direct`.
        kind: String,
        ?
        topic: Option<String>,
        member: bool,
        members: Option<u64>,
        archived: bool,
    }
    /// A message of a chat.
    ChatMessage {
        id: String,
        chat_id: String,
        text: String,
        ?
        author: Option<User>,
        created_at: Option<String>,
        thread_id: Option<String>,
        replies: Option<u64>,
        url: Option<String>,
        attachments: Vec<String>,
    }
}

/// A thing that a summary names.
pub trait Named {
    /// What one is called, and several.
    const NOUN: [&'static str; 2];

    /// What tells it from others of its list.
    fn key(&self) -> &str;

    /// One line about this one.
    fn line(&self) -> String;
}

macro_rules! named {
    ($($name:ident.$key:ident: $one:literal, $many:literal, |$it:ident| $line:expr;)+) => {
        $(impl Named for $name {
            const NOUN: [&'static str; 2] = [$one, $many];

            fn key(&self) -> &str {
                &self.$key
            }

            fn line(&self) -> String {
                let $it = self;
                $line
            }
        })+
    };
}

named! {
    Issue.key: "issue", "issues", |it| format!("{} {} ({})", it.key, it.title, it.status);
    Comment.id: "comment", "comments", |it| format!("comment {}", it.id);
    Status.id: "status", "statuses", |it| it.name.clone();
    User.id: "user", "users", |it| it.id.clone();
    MergeRequest.key: "merge request", "merge requests", |it| format!("{} {}", it.key, it.title);
    Discussion.id: "discussion", "discussions", |it| format!("discussion {}", it.id);
    FileDiff.path: "changed file", "changed files", |it| format!("{} {}", it.change, it.path);
    Pipeline.id: "pipeline", "pipelines", |it| format!("pipeline {}: {:?}, {} jobs", it.id, it.status, it.jobs.len());
    JobLog.job_id: "log", "logs", |it| format!("{} of {} lines of job {}", it.lines.len(), it.total_lines, it.job_id);
    Release.tag: "release", "releases", |it| format!("release {}", it.tag);
    Epic.key: "epic", "epics", |it| format!("{} {} ({})", it.key, it.title, it.status);
    MeetingNote.id: "meeting", "meetings", |it| it.title.clone();
    MeetingTranscript.meeting_id: "transcript", "transcripts", |it| format!("{} of {} sentences of {}", it.sentences.len(), it.total_sentences, it.title);
    Chat.id: "chat", "chats", |it| it.name.clone();
    ChatMessage.id: "message", "messages", |it| format!("message {}", it.id);
}
