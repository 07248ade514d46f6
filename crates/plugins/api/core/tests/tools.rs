//! The tools of the categories in a pod: which are there, which provider a call means, what asks a person.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

use api_core::arguments::{
    ChatQuery, CommentQuery, IssueChange, IssueQuery, IssueWish, MessageQuery, NewComment,
    NewIssue, NewMessage,
};
use api_core::category::{CHATS, ISSUE_TRACKER, declare};
use api_core::entity::{Chat, ChatMessage, Comment, Issue};
use api_core::page::ItemPage;
use api_core::provider::{Answer, ISSUES, IssueProvider, MESSENGER, MessengerProvider};
use api_core::tools::{CategoryTools, TABLE};
use api_core::unfit;
use llm_worker::ToolEffect;
use pod::feature::author::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{FeatureHost, FeatureUnderTest};

/// The result as JSON.
fn data(outcome: &CallOutcome) -> Value {
    serde_json::from_str(&outcome.content).unwrap_or_else(|_| panic!("{}", outcome.text()))
}

/// A tracker and a chat in memory, under this name.
#[derive(Clone)]
struct Memory(&'static str, &'static [&'static str]);

impl FeatureModule for Memory {
    fn descriptor(&self) -> FeatureDescriptor {
        let id = FeatureId::user(self.0);
        let builder = FeatureDescriptor::builder(id).version("1.0.0");
        declare(builder, self.0, self.1).build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(self.clone());
        let mut services = ctx.services();
        if self.1.contains(&ISSUE_TRACKER) {
            services.provide_instance(
                ISSUES,
                self.0,
                Arc::clone(&live) as Arc<dyn IssueProvider>,
            )?;
        }
        if self.1.contains(&CHATS) {
            services.provide_instance(MESSENGER, self.0, live as Arc<dyn MessengerProvider>)?;
        }
        Ok(())
    }
}

impl Memory {
    fn issue(&self, title: &str) -> Issue {
        Issue {
            key: format!("{}#1", self.0),
            title: title.to_owned(),
            status: "open".to_owned(),
            ..Issue::default()
        }
    }
}

fn ready<T: Send + 'static>(answer: T) -> Answer<'static, T> {
    Box::pin(std::future::ready(Ok(answer)))
}

impl IssueProvider for Memory {
    fn issues(&self, wanted: IssueQuery) -> Answer<'_, ItemPage<Issue>> {
        let all = vec![self.issue("first"), self.issue("second")];
        ready(ItemPage::of_all(all, wanted.slice()))
    }

    fn issue(&self, wanted: IssueWish) -> Answer<'_, Issue> {
        Box::pin(async move { Err(unfit(format!("there is no {}", wanted.key))) })
    }

    fn issue_comments(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Comment>> {
        ready(ItemPage::of_all(Vec::new(), wanted.slice()))
    }

    fn create_issue(&self, wanted: NewIssue) -> Answer<'_, Issue> {
        ready(self.issue(&wanted.title))
    }

    fn update_issue(&self, wanted: IssueChange) -> Answer<'_, Issue> {
        ready(self.issue(wanted.title.as_deref().unwrap_or("as before")))
    }

    fn comment_issue(&self, wanted: NewComment) -> Answer<'_, Comment> {
        ready(Comment {
            id: "c".to_owned(),
            body: wanted.body,
            ..Comment::default()
        })
    }
}

impl MessengerProvider for Memory {
    fn chats(&self, wanted: ChatQuery) -> Answer<'_, ItemPage<Chat>> {
        ready(ItemPage::at_cursor(
            Vec::new(),
            wanted.limit,
            Some("more".to_owned()),
        ))
    }

    fn messages(&self, wanted: MessageQuery) -> Answer<'_, ItemPage<ChatMessage>> {
        ready(ItemPage::at_cursor(Vec::new(), wanted.limit, None))
    }

    fn send_message(&self, wanted: NewMessage) -> Answer<'_, ChatMessage> {
        ready(ChatMessage {
            id: "1".to_owned(),
            chat_id: wanted.chat_id,
            text: wanted.text,
            ..ChatMessage::default()
        })
    }
}

fn host(providers: &[Memory], host: FeatureHost) -> FeatureUnderTest {
    let all: Vec<_> = providers.iter().map(FeatureModule::descriptor).collect();
    let host = providers.iter().cloned().fold(host, FeatureHost::with);
    host.install(CategoryTools::of(&all))
}

fn names(host: &FeatureUnderTest) -> BTreeSet<String> {
    let skipped: BTreeSet<&str> = host
        .report()
        .skipped_contributions
        .iter()
        .map(|of| of.name.as_str())
        .collect();
    let all = TABLE
        .iter()
        .map(|row| row.name)
        .filter(|name| !skipped.contains(name));
    all.map(str::to_owned).collect()
}

#[test]
fn tools_of_categories_that_nobody_serves_are_left_out() {
    let chat = Memory("chat", &[CHATS]);
    let mut host = host(&[chat], FeatureHost::new().permit_all());
    let wanted = [
        "get_chat_messages",
        "get_messenger_chats",
        "search_chat_messages",
        "send_message",
    ];
    assert_eq!(names(&host), wanted.map(str::to_owned).into());
    let reasons: Vec<_> = host
        .report()
        .skipped_contributions
        .iter()
        .map(|of| (of.name.clone(), of.reason.clone()))
        .collect();
    let of = |name: &str| {
        reasons
            .iter()
            .find(|of| of.0 == name)
            .map(|of| of.1.clone())
    };
    let reason = "no installed feature serves its category `issue-tracker`: no feature of this build serves it";
    assert_eq!(of("get_issues").as_deref(), Some(reason));
    assert_eq!(
        data(&host.call("get_messenger_chats", json!({})))["pagination"]["next_cursor"],
        "more"
    );
    let error = host
        .call("search_chat_messages", json!({ "query": "x" }))
        .text();
    assert!(
        error.contains("this provider does not offer search messages"),
        "{error}"
    );
}

/// The work items of a project serve the same category, and are no provider.
#[test]
fn a_category_that_is_served_otherwise_gets_no_tools() {
    struct Other;
    impl FeatureModule for Other {
        fn descriptor(&self) -> FeatureDescriptor {
            let builder = FeatureDescriptor::builder(FeatureId::user("other")).version("1.0.0");
            builder.serves(ToolCategory::new(ISSUE_TRACKER)).build()
        }

        fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
            Ok(())
        }
    }
    let chat = Memory("chat", &[CHATS]);
    let all = [chat.descriptor(), Other.descriptor()];
    let tools = CategoryTools::of(&all);
    let declared: Vec<_> = tools
        .descriptor()
        .declared_tools
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert!(
        !declared.iter().any(|name| name == "get_issues"),
        "{declared:?}"
    );
    let host = FeatureHost::new().with(chat).with(Other).install(tools);
    let notes = format!("{:?}", host.report().diagnostics);
    assert!(
        notes.contains("user:other serves their category `issue-tracker`, but is no provider"),
        "{notes}"
    );
}

#[test]
fn one_provider_needs_no_name_and_of_two_a_call_names_one() {
    let mut one = host(
        &[Memory("gh", &[ISSUE_TRACKER])],
        FeatureHost::new().permit_all(),
    );
    let got = one.call("get_issues", json!({ "limit": 1 }));
    let shown = data(&got);
    assert_eq!(
        shown["items"][0],
        json!({ "key": "gh#1", "title": "first", "status": "open", "status_category": "todo" })
    );
    assert_eq!(
        shown["pagination"],
        json!({ "offset": 0, "limit": 1, "total": 2, "has_more": true })
    );
    assert!(
        got.text().starts_with("1 of 2 issue, there are more"),
        "{}",
        got.text()
    );
    // The same is there for programs.
    let kept = format!("{:?}", one.records());
    assert!(kept.contains("ResultData"), "{kept}");
    let error = one.call("get_issues", json!({ "provider": "gh" })).text();
    assert!(error.contains("provider"), "{error}");
    let both = [
        Memory("gh", &[ISSUE_TRACKER]),
        Memory("jira", &[ISSUE_TRACKER, CHATS]),
    ];
    let mut two = host(&both, FeatureHost::new().permit_all());
    let got = two.call(
        "create_issue",
        json!({ "title": "new", "provider": "jira" }),
    );
    assert_eq!(data(&got)["key"], "jira#1");
    for bad in [
        json!({ "title": "new" }),
        json!({ "title": "new", "provider": "other" }),
    ] {
        let error = two.call("create_issue", bad).text();
        assert!(error.contains("provider"), "{error}");
    }
    // The other category has one provider.
    let sent = two.call("send_message", json!({ "chat_id": "a", "text": "b" }));
    assert_eq!(data(&sent)["text"], "b");
}

#[test]
fn what_changes_something_asks_and_what_reads_does_not() {
    let gh = Memory("gh", &[ISSUE_TRACKER]);
    let mut host = host(&[gh], FeatureHost::new());
    assert!(host.call("get_issues", json!({})).text().contains("first"));
    for (tool, arguments) in [
        ("create_issue", json!({ "title": "new" })),
        ("update_issue", json!({ "key": "gh#1", "state": "closed" })),
        ("add_issue_comment", json!({ "key": "gh#1", "body": "b" })),
    ] {
        let refusal = host.call(tool, arguments).text();
        assert!(
            refusal.contains("changing something on a host or in a service"),
            "{refusal}"
        );
        assert!(refusal.contains("gh"), "{refusal}");
    }
}

#[test]
fn the_table_is_whole() {
    let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!((names.len(), TABLE.len()), (30, 30));
    for row in TABLE {
        let reads = row.name.starts_with("get_") || row.name.starts_with("search_");
        assert_eq!(row.effect == ToolEffect::ReadOnly, reads, "{}", row.name);
    }
    let declared = CategoryTools::of(&[]).descriptor();
    assert_eq!(declared.problems(), [""; 0]);
    let of = |name: &str| {
        let tool = declared
            .declared_tools
            .iter()
            .find(|tool| tool.name == name)
            .unwrap();
        let schema: Value = serde_json::from_str(&tool.schema).unwrap();
        let names: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        (names, schema["required"].clone())
    };
    let (issues, required) = of("get_issues");
    assert_eq!(
        issues,
        [
            "assignee",
            "labels",
            "limit",
            "nativeQuery",
            "offset",
            "projectKey",
            "search",
            "sort_by",
            "sort_order",
            "state"
        ]
    );
    assert_eq!(required, Value::Null);
    assert_eq!(
        of("get_issue"),
        (
            ["includeComments", "includeRelations", "key"]
                .map(str::to_owned)
                .into(),
            json!(["key"])
        )
    );
    assert_eq!(of("create_issue").1, json!(["title"]));
    assert_eq!(
        of("create_merge_request").1,
        json!(["title", "source_branch", "target_branch"])
    );
    assert_eq!(of("create_merge_request_comment").1, json!(["key", "body"]));
    assert_eq!(
        of("get_job_logs"),
        (
            ["context", "jobId", "limit", "offset", "pattern"]
                .map(str::to_owned)
                .into(),
            json!(["jobId"])
        )
    );
}
