//! The traits of providers, the services under which features find them, and how a provider declares what it serves.

use crate::arguments::{
    ChatQuery, CommentQuery, EpicChange, EpicQuery, IssueChange, IssueLink, IssueQuery, IssueWish,
    JobLogQuery, MeetingQuery, MeetingSearch, MergeRequestChange, MergeRequestQuery,
    MergeRequestWish, MessageQuery, MessageSearch, NewComment, NewEpic, NewIssue, NewMergeRequest,
    NewMessage, NewRelease, NewReviewComment, PipelineQuery, ReleaseQuery, StatusQuery,
    TranscriptQuery, UserQuery,
};
use crate::entity::{
    Chat, ChatMessage, Comment, Discussion, Epic, FileDiff, Issue, JobLog, MeetingNote,
    MeetingTranscript, MergeRequest, Pipeline, Release, Status, User,
};
use crate::page::ItemPage;
use llm_worker::ErrorKind;
use pod::feature::{ServiceFault, ServiceFuture, ServiceKey};

/// What a method of a provider returns. Kinds of faults: `FixInput` other arguments, `Retry` later, `Denied` the token may
/// not, `Unavailable` the provider does not answer or does not offer this, `Corrupt` an answer that cannot be read.
pub type Answer<'a, T> = ServiceFuture<'a, Result<T, ServiceFault>>;

/// The version of all services here.
pub const VERSION: &str = "1.0.0";

/// The trackers of issues.
pub const ISSUES: ServiceKey<dyn IssueProvider> = ServiceKey::new("forge.issues.v1");
/// The merge requests of repositories.
pub const MERGE_REQUESTS: ServiceKey<dyn MergeRequestProvider> =
    ServiceKey::new("forge.merge-requests.v1");
/// What checks repositories.
pub const PIPELINES: ServiceKey<dyn PipelineProvider> = ServiceKey::new("forge.pipelines.v1");
/// The releases of repositories.
pub const RELEASES: ServiceKey<dyn ReleaseProvider> = ServiceKey::new("forge.releases.v1");
/// The trackers of epics.
pub const EPICS: ServiceKey<dyn EpicProvider> = ServiceKey::new("forge.epics.v1");
/// The chats.
pub const MESSENGER: ServiceKey<dyn MessengerProvider> = ServiceKey::new("forge.messenger.v1");
/// The notes of meetings.
pub const MEETING_NOTES: ServiceKey<dyn MeetingNotesProvider> =
    ServiceKey::new("forge.meeting-notes.v1");

/// Declares traits of providers. A method behind `?` may be left out: it then says that the provider does not offer it.
macro_rules! providers {
    ($($(#[$about:meta])* $name:ident { $($method:ident($arguments:ty) -> $answer:ty;)* $(? $($other:ident($other_arguments:ty) -> $other_answer:ty;)*)? })+) => {
        $($(#[$about])*
        pub trait $name: Send + Sync {
            $(fn $method(&self, wanted: $arguments) -> Answer<'_, $answer>;)*
            $($(fn $other(&self, _wanted: $other_arguments) -> Answer<'_, $other_answer> {
                not_offered(stringify!($other))
            })*)?
        })+
    };
}

providers! {
    /// A tracker of issues. A page of issues is full where there are more.
    IssueProvider {
        issues(IssueQuery) -> ItemPage<Issue>;
        issue(IssueWish) -> Issue;
        issue_comments(CommentQuery) -> ItemPage<Comment>;
        create_issue(NewIssue) -> Issue;
        update_issue(IssueChange) -> Issue;
        comment_issue(NewComment) -> Comment;
        ?
        statuses(StatusQuery) -> ItemPage<Status>;
        users(UserQuery) -> ItemPage<User>;
        link_issues(IssueLink) -> Issue;
    }
    /// Merge requests of a repository, which some call pull requests.
    MergeRequestProvider {
        merge_requests(MergeRequestQuery) -> ItemPage<MergeRequest>;
        merge_request(MergeRequestWish) -> MergeRequest;
        discussions(CommentQuery) -> ItemPage<Discussion>;
        diffs(CommentQuery) -> ItemPage<FileDiff>;
        create_merge_request(NewMergeRequest) -> MergeRequest;
        comment_merge_request(NewReviewComment) -> Comment;
        update_merge_request(MergeRequestChange) -> MergeRequest;
    }
    /// What checks a repository.
    PipelineProvider {
        pipeline(PipelineQuery) -> Pipeline;
        job_log(JobLogQuery) -> JobLog;
    }
    /// Releases of a repository.
    ReleaseProvider {
        releases(ReleaseQuery) -> ItemPage<Release>;
        ?
        create_release(NewRelease) -> Release;
    }
    /// Work that is larger than an issue.
    EpicProvider {
        epics(EpicQuery) -> ItemPage<Epic>;
        create_epic(NewEpic) -> Epic;
        update_epic(EpicChange) -> Epic;
    }
    /// Chats and their messages.
    MessengerProvider {
        chats(ChatQuery) -> ItemPage<Chat>;
        messages(MessageQuery) -> ItemPage<ChatMessage>;
        send_message(NewMessage) -> ChatMessage;
        ?
        search_messages(MessageSearch) -> ItemPage<ChatMessage>;
    }
    /// Notes and transcripts of meetings.
    MeetingNotesProvider {
        meetings(MeetingQuery) -> ItemPage<MeetingNote>;
        transcript(TranscriptQuery) -> MeetingTranscript;
        search_meetings(MeetingSearch) -> ItemPage<MeetingNote>;
    }
}

/// The answer of a method that a provider does not have.
#[must_use]
pub fn not_offered<T: Send + 'static>(what: &str) -> Answer<'static, T> {
    let fault = ServiceFault::new(
        ErrorKind::Unavailable,
        format!("this provider does not offer {}", what.replace('_', " ")),
    );
    Box::pin(std::future::ready(Err(fault)))
}
