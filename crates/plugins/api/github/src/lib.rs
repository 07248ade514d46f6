//! `builtin:github`: issues, pull requests, workflow runs and releases of one repository of GitHub or of GitHub Enterprise
//! Server. Epics are left to others: GitHub has none.
//!
//! ```toml
//! [features."builtin:github"]
//! owner = "octocat"
//! repo = "hello"
//! token = { secret = "github" }
//! ```

mod issues;
mod mapping;
mod repository;

use api_core::ServiceFault;
use api_core::category::{GIT_REPOSITORY, ISSUE_TRACKER, RELEASE_LIST};
use api_core::entity::{Comment, FileDiff, Issue, MergeRequest, Release};
use api_core::http::{
    Header, Http, Method, Step, TokenForm, TokenSetting, ValueList, Vendor, with_query,
};
use api_core::provider::{Answer, ISSUES, MERGE_REQUESTS, PIPELINES, RELEASES};
use api_core::reading::{flag, text};
use api_core::source::{
    ProviderAbout, ProviderFeature, ProviderOrigin, SourceProvider, Stage, is_name,
};
use api_core::values::Values;
use api_core::walk::Walks;
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("github");

/// The descriptor without settings, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    GitHub::declared()
}

static VENDOR: Vendor = Vendor {
    name: mapping::VENDOR_NAME,
    headers: &[
        Header("accept", "application/vnd.github+json"),
        Header("x-github-api-version", "2022-11-28"),
    ],
    words: &[
        "/message",
        "/errors/0/message",
        "/errors/0/field",
        "/errors/0/code",
    ],
    steps: &[
        Step(
            401,
            "the token is wrong or expired: renew the secret that `token` names",
        ),
        Step(
            403,
            "the token may not do this: give it the permission, or ask an owner of the organization",
        ),
        Step(
            404,
            "it is not there, or the token may not see it: check the key, `owner`, `repo` and the token's repositories",
        ),
        Step(410, "issues are turned off in this repository"),
    ],
};

/// `[features."builtin:github"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The person or organization.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// Of GitHub Enterprise Server, such as `https://github.example.org/api/v3`.
    pub base_url: Option<String>,
    /// Without a token only public repositories are read, and few requests are allowed.
    pub token: Option<TokenSetting>,
}

/// The feature for one repository.
pub type GitHub = ProviderFeature<Repository>;

/// The repository while a pod runs.
pub struct Repository {
    http: Http,
    owner: String,
    repo: String,
    issues: Walks<Issue>,
    comments: Walks<Comment>,
    pulls: Walks<MergeRequest>,
    files: Walks<FileDiff>,
    releases: Walks<Release>,
}

impl SourceProvider for Repository {
    const ABOUT: ProviderAbout = ProviderAbout {
        id: ID,
        name: mapping::VENDOR_NAME,
        instance: "github",
        categories: &[ISSUE_TRACKER, GIT_REPOSITORY, RELEASE_LIST],
        vendor: &VENDOR,
        other_hosts: &[
            Cow::Borrowed("*.blob.core.windows.net"),
            Cow::Borrowed("*.actions.githubusercontent.com"),
        ],
        why_other_hosts: "logs of jobs, which GitHub keeps there",
    };

    type Settings = Settings;

    fn origin(settings: &Settings) -> Result<ProviderOrigin, String> {
        let names = [("owner", &settings.owner), ("repo", &settings.repo)];
        if let Some((key, _)) = names.into_iter().find(|(_, name)| !is_name(name)) {
            return Err(format!("`{key}` must be a name as GitHub has it"));
        }
        let base_url = settings.base_url.as_deref();
        Ok(ProviderOrigin {
            base_url: base_url.unwrap_or("https://api.github.com").to_owned(),
            token: settings.token.clone(),
            form: TokenForm::BEARER,
        })
    }

    fn new(settings: &Settings, http: Http) -> Self {
        Self {
            http,
            owner: settings.owner.clone(),
            repo: settings.repo.clone(),
            issues: Walks::default(),
            comments: Walks::default(),
            pulls: Walks::default(),
            files: Walks::default(),
            releases: Walks::default(),
        }
    }

    fn stage(live: &Arc<Self>, to: &mut Stage<'_, '_>) -> Result<(), FeatureInstallError> {
        to.provide(ISSUES, Arc::clone(live) as Arc<_>)?;
        to.provide(MERGE_REQUESTS, Arc::clone(live) as Arc<_>)?;
        to.provide(PIPELINES, Arc::clone(live) as Arc<_>)?;
        to.provide(RELEASES, Arc::clone(live) as Arc<_>)
    }

    fn values(&self) -> Answer<'_, Values> {
        Box::pin(async move {
            let labels = ValueList {
                property: "labels",
                path: &self.list("/labels"),
                at: "/name",
            };
            let people = ValueList {
                property: "assignees",
                path: &self.list("/assignees"),
                at: "/login",
            };
            self.http.values(&[labels, people]).await
        })
    }

    fn check(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.about_token())
    }
}

impl Repository {
    /// A path below the repository.
    fn at(&self, path: &str) -> String {
        format!("/repos/{}/{}{path}", self.owner, self.repo)
    }

    /// The same, for a list in large pieces.
    fn list(&self, path: &str) -> String {
        with_query(&self.at(path), &[("per_page", "100")])
    }

    async fn get(&self, path: &str) -> Result<Value, ServiceFault> {
        Ok(self.http.get(&self.at(path)).await?.body)
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, ServiceFault> {
        Ok(self
            .http
            .send(method, &self.at(path), Some(&body))
            .await?
            .body)
    }

    async fn about_token(&self) -> Result<Vec<String>, ServiceFault> {
        let mut lines = Vec::new();
        if self.http.has_token() {
            let user = self.http.get("/user").await?;
            let login = text(&user.body, "/login").unwrap_or_default();
            let scopes = user.headers.get("x-oauth-scopes");
            let scopes = match scopes.and_then(|of| of.to_str().ok()) {
                Some("") => "no scopes: it reads only what is public".to_owned(),
                Some(scopes) => format!("scopes {scopes}"),
                None => "fine-grained permissions, which GitHub does not list".to_owned(),
            };
            lines.push(format!("authenticated as {login}; {scopes}"));
        } else {
            lines.push("no token: only public repositories, 60 requests an hour".to_owned());
        }
        let repo = self.get("").await?;
        let name = text(&repo, "/full_name").unwrap_or_default();
        let may = match (
            flag(&repo, "/permissions/push"),
            flag(&repo, "/permissions/triage"),
        ) {
            (true, _) => "may read and write",
            (false, true) => "may read, and change issues but no code",
            (false, false) => "may read, and write what everybody may",
        };
        lines.push(format!("{name}: {may}"));
        if !flag(&repo, "/has_issues") {
            lines.push(format!("{name}: issues are turned off"));
        }
        if flag(&repo, "/archived") {
            lines.push(format!("{name}: archived, nothing can be changed"));
        }
        Ok(lines)
    }
}
