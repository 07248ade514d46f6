//! `builtin:gitlab`: issues, merge requests, pipelines and releases of one project of GitLab. Epics are left to others: the
//! REST API for them is deprecated and a part of paid plans only.
//!
//! ```toml
//! [features."builtin:gitlab"]
//! project = "group/subgroup/hello"
//! token = { secret = "gitlab" }
//! ```

mod issues;
mod mapping;
mod repository;

use api_core::category::{GIT_REPOSITORY, ISSUE_TRACKER, RELEASE_LIST};
use api_core::entity::{Comment, Discussion, FileDiff, Issue, MergeRequest, Release, User};
use api_core::http::{
    Header, Http, Method, Step, TokenForm, TokenSetting, ValueList, Vendor, encoded, sent,
    with_query,
};
use api_core::provider::{Answer, ISSUES, MERGE_REQUESTS, PIPELINES, RELEASES};
use api_core::reading::{flag, number, text, texts};
use api_core::source::{
    ProviderAbout, ProviderFeature, ProviderOrigin, SourceProvider, Stage, is_name,
};
use api_core::values::Values;
use api_core::walk::Walks;
use api_core::{ServiceFault, unfit};
use llm_worker::ErrorKind;
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("gitlab");

/// The descriptor without settings, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    GitLab::declared()
}

static VENDOR: Vendor = Vendor {
    name: mapping::VENDOR_NAME,
    headers: &[Header("accept", "application/json")],
    words: &["/message", "/error", "/error_description"],
    steps: &[
        Step(
            401,
            "the token is wrong, expired or revoked: renew the secret that `token` names",
        ),
        Step(
            403,
            "the token may not do this: it needs the scope `api` and a role that may, or a plan that has it",
        ),
        Step(
            404,
            "it is not there, or the token may not see it: check the key, `project` and the token's role",
        ),
        Step(409, "there is one already: read it, and change that one"),
    ],
};

/// `[features."builtin:gitlab"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The path of the project, such as `group/subgroup/hello`, or its number.
    pub project: String,
    /// Of a server of your own, such as `https://gitlab.example.org/api/v4`.
    pub base_url: Option<String>,
    /// A personal, group or project access token. Without one only public projects are read.
    pub token: Option<TokenSetting>,
}

/// The feature for one project.
pub type GitLab = ProviderFeature<GitLabProject>;

/// The project while a pod runs.
pub struct GitLabProject {
    http: Http,
    name: String,
    lists: Lists,
}

#[derive(Default)]
struct Lists {
    issues: Walks<Issue>,
    comments: Walks<Comment>,
    people: Walks<User>,
    merges: Walks<MergeRequest>,
    discussions: Walks<Discussion>,
    files: Walks<FileDiff>,
    releases: Walks<Release>,
}

impl SourceProvider for GitLabProject {
    const ABOUT: ProviderAbout = ProviderAbout {
        id: ID,
        name: mapping::VENDOR_NAME,
        instance: "gitlab",
        categories: &[ISSUE_TRACKER, GIT_REPOSITORY, RELEASE_LIST],
        vendor: &VENDOR,
        other_hosts: &[],
        why_other_hosts: "",
    };

    type Settings = Settings;

    fn origin(settings: &Settings) -> Result<ProviderOrigin, String> {
        if !settings.project.split('/').all(is_name) {
            return Err("`project` must be a path as GitLab has it, such as `group/hello`".into());
        }
        let base_url = settings.base_url.as_deref();
        Ok(ProviderOrigin {
            base_url: base_url.unwrap_or("https://gitlab.com/api/v4").to_owned(),
            token: settings.token.clone(),
            form: TokenForm::Header {
                name: "private-token",
                prefix: "",
            },
        })
    }

    fn new(settings: &Settings, http: Http) -> Self {
        Self {
            http,
            name: settings.project.clone(),
            lists: Lists::default(),
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
                path: &self.list("/labels", &[]),
                at: "/name",
            };
            let people = ValueList {
                property: "assignees",
                path: &self.list("/members/all", &[]),
                at: "/username",
            };
            self.http.values(&[labels, people]).await
        })
    }

    fn check(&self) -> Answer<'_, Vec<String>> {
        Box::pin(async move {
            let who = self.about_token().await?;
            let project = self.get("").await?;
            Ok([vec![who], about_project(&project)].concat())
        })
    }
}

impl GitLabProject {
    /// A path below the project, whose own path is one part of it.
    fn at(&self, path: &str) -> String {
        format!("/projects/{}{path}", encoded(&self.name))
    }

    /// The same, for a list in large pieces.
    fn list(&self, path: &str, values: &[(&str, &str)]) -> String {
        with_query(&format!("{}?per_page=100", self.at(path)), values)
    }

    async fn get(&self, path: &str) -> Result<Value, ServiceFault> {
        Ok(self.http.get(&self.at(path)).await?.body)
    }

    /// Sends a body without what is `null`.
    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, ServiceFault> {
        let path = self.at(path);
        let answer = self.http.send(method, &path, Some(&sent(body))).await?;
        Ok(answer.body)
    }

    /// The numbers of people by their names, which GitLab takes in place of them; `[0]` is nobody.
    async fn numbers_of(&self, names: &[String]) -> Result<Vec<u64>, ServiceFault> {
        let mut numbers = Vec::new();
        for name in names {
            let name = name.trim().trim_start_matches('@');
            // Without a name, all people are listed.
            if name.is_empty() {
                return Err(unfit("an assignee has no name: `[]` is nobody"));
            }
            let found = with_query("/users", &[("username", name)]);
            let found = number(&self.http.get(&found).await?.body, "/0/id");
            let nobody = || {
                unfit(format!(
                    "GitLab knows nobody with the name `{name}`: take one of get_users"
                ))
            };
            numbers.push(found.ok_or_else(nobody)?);
        }
        if numbers.is_empty() {
            numbers.push(0);
        }
        Ok(numbers)
    }

    async fn about_token(&self) -> Result<String, ServiceFault> {
        if !self.http.has_token() {
            return Ok("no token: only public projects are read".to_owned());
        }
        let user = self.http.get("/user").await?.body;
        let name = text(&user, "/username").unwrap_or_default();
        let token = match self.http.get("/personal_access_tokens/self").await {
            Ok(token) => token.body,
            Err(fault) if fault.kind == ErrorKind::Retry => return Err(fault),
            // A token of OAuth or of a job.
            Err(_) => {
                return Ok(format!(
                    "authenticated as {name}; GitLab does not list the scopes of this token"
                ));
            }
        };
        let scopes = texts(&token, "/scopes", "");
        let missing = match scopes.iter().any(|scope| scope == "api") {
            true => "",
            false => " (without `api` nothing can be changed)",
        };
        let end = text(&token, "/expires_at");
        let end = end.map_or_else(String::new, |day| format!(", until {day}"));
        let scopes = scopes.join(", ");
        Ok(format!(
            "authenticated as {name}; scopes {scopes}{missing}{end}"
        ))
    }
}

/// What can be done in the project.
fn about_project(project: &Value) -> Vec<String> {
    let name = text(project, "/path_with_namespace").unwrap_or_default();
    let level = |of| number(project, of).unwrap_or_default();
    let level = level("/permissions/project_access/access_level")
        .max(level("/permissions/group_access/access_level"));
    let may = match level {
        30.. => "may read and write",
        15.. => "may read, and change issues but no code",
        _ => "may read, and write what everybody may",
    };
    let mut lines = vec![format!("{name}: {may}")];
    for (at, what) in [
        ("/issues_access_level", "issues"),
        ("/merge_requests_access_level", "merge requests"),
        ("/builds_access_level", "pipelines"),
    ] {
        if text(project, at).as_deref() == Some("disabled") {
            lines.push(format!("{name}: {what} are turned off"));
        }
    }
    if flag(project, "/archived") {
        lines.push(format!("{name}: archived, nothing can be changed"));
    }
    lines
}
