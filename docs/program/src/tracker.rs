//! A small tracker as a provider: the example of docs/PROVIDERS.md. Its issues are at `GET /issues`, `GET /issues/N`,
//! `POST /issues` and `PATCH /issues/N`, comments at `/issues/N/comments`; lists go on where the header `Link` says.

use api_core::arguments::{
    CommentQuery, IssueChange, IssueQuery, IssueWish, NewComment, NewIssue, word,
};
use api_core::category::{self, ISSUE_TRACKER};
use api_core::entity::{Comment, Issue, StatusCategory};
use api_core::http::{BaseUrl, Header, Http, Method, Token, TokenForm, Vendor, sent, with_query};
use api_core::page::ItemPage;
use api_core::provider::{Answer, ISSUES, IssueProvider};
use api_core::reading::{id, needed, number, text, texts};
use api_core::walk::Walks;
use api_core::{ServiceFault, key, unfit};
use pod::feature::author::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of its services and of its secret, and what stands in its keys: `tracker#7`.
pub const NAME: &str = "tracker";

static VENDOR: Vendor = Vendor {
    name: "Tracker",
    headers: &[Header("accept", "application/json")],
    words: &["/error"],
    steps: &[],
};

/// `[features."user:tracker"]`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// Where the API is, such as `http://127.0.0.1:8080`.
    base_url: String,
}

/// The feature.
pub struct Tracker;

impl FeatureModule for Tracker {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(FeatureId::user(NAME))
            .version("1.0.0")
            .settings::<Settings>()
            .request(CapabilityRequest::required(
                HostCapability::endpoints(NAME),
                "the tracker at `base_url`",
            ))
            .request(CapabilityRequest::required(
                HostCapability::secret(NAME),
                "the token of the tracker",
            ));
        category::declare(builder, NAME, &[ISSUE_TRACKER]).build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let settings: Settings = ctx.settings()?;
        let base = BaseUrl::parse(&settings.base_url)
            .map_err(|error| FeatureInstallError::Failed(format!("`base_url`: {error}"), None))?;
        let mut services = ctx.services();
        let token = Token {
            secret: services.secret(NAME)?,
            form: TokenForm::BEARER,
        };
        let http = Http::new(&VENDOR, base, services.endpoints()?, Some(token));
        let live: Arc<dyn IssueProvider> = Arc::new(Live {
            http,
            issues: Walks::default(),
            comments: Walks::default(),
        });
        services.provide_instance(ISSUES, NAME, live).map(drop)
    }
}

/// The provider while a pod runs.
struct Live {
    http: Http,
    issues: Walks<Issue>,
    comments: Walks<Comment>,
}

impl IssueProvider for Live {
    fn issues(&self, wanted: IssueQuery) -> Answer<'_, ItemPage<Issue>> {
        Box::pin(async move {
            if wanted.native_query.is_some() {
                return Err(unfit("`nativeQuery`: Tracker has no query language"));
            }
            let values = [
                ("state", word(wanted.state)),
                ("text", wanted.search.clone().unwrap_or_default()),
                ("labels", wanted.labels.join(",")),
            ];
            let values = values
                .each_ref()
                .map(|(name, value)| (*name, value.as_str()));
            let path = with_query("/issues", &values);
            let known = &self.issues;
            self.http.page_of(known, &path, wanted.slice(), issue).await
        })
    }

    fn issue(&self, wanted: IssueWish) -> Answer<'_, Issue> {
        Box::pin(async move { issue(&self.http.get(&at(&wanted.key, "")?).await?.body) })
    }

    fn issue_comments(&self, wanted: CommentQuery) -> Answer<'_, ItemPage<Comment>> {
        Box::pin(async move {
            let path = at(&wanted.key, "/comments")?;
            let known = &self.comments;
            self.http
                .page_of(known, &path, wanted.slice(), comment)
                .await
        })
    }

    fn create_issue(&self, wanted: NewIssue) -> Answer<'_, Issue> {
        Box::pin(async move {
            let body = json!({
                "title": wanted.title,
                "body": wanted.description,
                "labels": wanted.labels,
            });
            issue(&self.send(Method::POST, "/issues", body).await?)
        })
    }

    fn update_issue(&self, wanted: IssueChange) -> Answer<'_, Issue> {
        Box::pin(async move {
            let body = json!({
                "title": wanted.title,
                "body": wanted.description,
                "state": wanted.state,
                "labels": wanted.labels,
            });
            let path = at(&wanted.key, "")?;
            issue(&self.send(Method::PATCH, &path, body).await?)
        })
    }

    fn comment_issue(&self, wanted: NewComment) -> Answer<'_, Comment> {
        Box::pin(async move {
            let path = at(&wanted.key, "/comments")?;
            let body = json!({ "body": wanted.body });
            comment(&self.send(Method::POST, &path, body).await?)
        })
    }
}

impl Live {
    /// Sends a body without what is `null`, once.
    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, ServiceFault> {
        let answer = self.http.send(method, path, Some(&sent(body))).await?;
        Ok(answer.body)
    }
}

/// A path below the issue of a key.
fn at(wanted: &str, path: &str) -> Result<String, ServiceFault> {
    Ok(format!("/issues/{}{path}", key::number(wanted, NAME)?))
}

/// An issue of an answer: a part that may be missing is left out, one that it has to have is an error.
fn issue(of: &Value) -> Result<Issue, ServiceFault> {
    let must = |found: Option<String>, at| needed(found, VENDOR.name, "an issue", at);
    let number = needed(number(of, "/number"), VENDOR.name, "an issue", "number")?;
    let status = must(text(of, "/state"), "state")?;
    Ok(Issue {
        key: key::numbered(NAME, number),
        title: must(text(of, "/title"), "title")?,
        status_category: match status.as_str() {
            "closed" => StatusCategory::Done,
            _ => StatusCategory::Todo,
        },
        status,
        description: text(of, "/body"),
        labels: texts(of, "/labels", ""),
        ..Issue::default()
    })
}

fn comment(of: &Value) -> Result<Comment, ServiceFault> {
    Ok(Comment {
        id: needed(id(of, "/id"), VENDOR.name, "a comment", "id")?,
        body: text(of, "/body").unwrap_or_default(),
        ..Comment::default()
    })
}
