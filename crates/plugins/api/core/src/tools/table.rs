//! Every tool once: its category, its effect, what a model reads, its arguments and the method that answers it.

use super::answers::{Answered, Hub, Wanted};
use crate::arguments::{
    ChatQuery, CommentQuery, EpicChange, EpicQuery, IssueChange, IssueLink, IssueQuery, IssueWish,
    JobLogQuery, MeetingQuery, MeetingSearch, MergeRequestChange, MergeRequestQuery,
    MergeRequestWish, MessageQuery, MessageSearch, NewComment, NewEpic, NewIssue, NewMergeRequest,
    NewMessage, NewRelease, NewReviewComment, PipelineQuery, ReleaseQuery, StatusQuery,
    TranscriptQuery, UserQuery,
};
use crate::category::{CHATS, EPIC_TRACKER, GIT_REPOSITORY, ISSUE_TRACKER, MEETINGS, RELEASE_LIST};
use llm_worker::ToolEffect;
use llm_worker::tool::canonical_schema;
use std::sync::Arc;

/// One tool.
pub struct Row {
    pub name: &'static str,
    pub category: &'static str,
    pub effect: ToolEffect,
    /// What a model reads.
    pub about: &'static str,
    pub(super) schema: fn() -> Arc<str>,
    pub(super) ask: fn(Arc<Hub>, Wanted) -> Answered,
}

macro_rules! table {
    ($($category:ident, $services:ident { $($name:ident: $effect:ident $method:ident($arguments:ty), $about:literal;)+ })+) => {
        &[$($(Row {
            name: stringify!($name),
            category: $category,
            effect: ToolEffect::$effect,
            about: $about,
            schema: canonical_schema::<$arguments>,
            ask: |hub, wanted| Box::pin(async move {
                hub.$services
                    .ask(wanted, |provider, arguments: $arguments| provider.$method(arguments))
                    .await
            }),
        },)+)+]
    };
}

/// All tools, with the names and arguments that models know from other servers of the same sources.
pub const TABLE: &[Row] = table! {
    ISSUE_TRACKER, issues {
        get_issues: ReadOnly issues(IssueQuery), "List issues, newest change first.";
        get_issue: ReadOnly issue(IssueWish), "Read one issue.";
        get_issue_comments: ReadOnly issue_comments(CommentQuery), "Read the comments of an issue, oldest first.";
        create_issue: Effectful create_issue(NewIssue), "Create an issue.";
        update_issue: Idempotent update_issue(IssueChange), "Change an issue. What you leave out stays.";
        add_issue_comment: Effectful comment_issue(NewComment), "Comment on an issue.";
        get_available_statuses: ReadOnly statuses(StatusQuery), "List the statuses that issues can have.";
        get_users: ReadOnly users(UserQuery), "List the people whom issues can be assigned to.";
        link_issues: Idempotent link_issues(IssueLink), "Connect two issues.";
    }
    GIT_REPOSITORY, merge_requests {
        get_merge_requests: ReadOnly merge_requests(MergeRequestQuery), "List merge requests (pull requests), newest change first.";
        get_merge_request: ReadOnly merge_request(MergeRequestWish), "Read one merge request.";
        get_merge_request_discussions: ReadOnly discussions(CommentQuery), "Read the discussions of a merge request: comments, reviews and their answers.";
        get_merge_request_diffs: ReadOnly diffs(CommentQuery), "Read what a merge request changes, by file.";
        create_merge_request: Effectful create_merge_request(NewMergeRequest), "Create a merge request from a branch that is there.";
        create_merge_request_comment: Effectful comment_merge_request(NewReviewComment), "Comment on a merge request, on a line of it, or answer a discussion.";
        update_merge_request: Idempotent update_merge_request(MergeRequestChange), "Change a merge request. What you leave out stays.";
    }
    GIT_REPOSITORY, pipelines {
        get_pipeline: ReadOnly pipeline(PipelineQuery), "Read the newest pipeline of a branch or of a merge request, with its jobs.";
        get_job_logs: ReadOnly job_log(JobLogQuery), "Read lines of a job's log.";
    }
    EPIC_TRACKER, epics {
        get_epics: ReadOnly epics(EpicQuery), "List epics.";
        create_epic: Effectful create_epic(NewEpic), "Create an epic.";
        update_epic: Idempotent update_epic(EpicChange), "Change an epic. What you leave out stays.";
    }
    RELEASE_LIST, releases {
        get_releases: ReadOnly releases(ReleaseQuery), "List releases, newest first.";
        create_release: Effectful create_release(NewRelease), "Publish a release.";
    }
    MEETINGS, meetings {
        get_meeting_notes: ReadOnly meetings(MeetingQuery), "List meetings with their summaries.";
        get_meeting_transcript: ReadOnly transcript(TranscriptQuery), "Read what was said in a meeting.";
        search_meeting_notes: ReadOnly search_meetings(MeetingSearch), "Find meetings by words.";
    }
    CHATS, messenger {
        get_messenger_chats: ReadOnly chats(ChatQuery), "List channels and conversations.";
        get_chat_messages: ReadOnly messages(MessageQuery), "Read messages of a chat, newest first.";
        search_chat_messages: ReadOnly search_messages(MessageSearch), "Find messages by words.";
        send_message: Effectful send_message(NewMessage), "Send a message to a chat.";
    }
};
