//! `builtin:jira`: the issues and epics of one project of Jira Cloud, or of Jira Data Center.
//!
//! ```toml
//! [features."builtin:jira"]
//! project = "PROJ"
//! base_url = "https://example.atlassian.net"
//! email = "me@example.com"
//! token = { secret = "jira" }
//! ```
//!
//! Without `email` the server is of the other kind: version 2 of the API, texts as they are, people by their names, and a
//! personal access token.

mod adf;
mod change;
mod epics;
mod fields;
mod issues;
mod mapping;

use api_core::category::{EPIC_TRACKER, ISSUE_TRACKER};
use api_core::entity::{Comment, Epic, Issue, User};
use api_core::http::{Http, Method, Step, TokenForm, TokenSetting, Vendor, with_query};
use api_core::provider::{Answer, EPICS, ISSUES};
use api_core::reading::{each, flag, list, text, texts};
use api_core::source::{ProviderAbout, ProviderFeature, ProviderOrigin, SourceProvider, Stage};
use api_core::values::Values;
use api_core::walk::Walks;
use api_core::{ServiceFault, unfit};
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("jira");

/// The descriptor without settings, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    Jira::declared()
}

static VENDOR: Vendor = Vendor {
    name: mapping::VENDOR_NAME,
    headers: &[],
    words: &["/errorMessages", "/errors", "/message"],
    steps: &[
        Step(
            401,
            "the token or `email` is wrong, or the token expired: renew the secret that `token` names",
        ),
        Step(
            403,
            "the person of the token may not do this, or must first log in with a browser",
        ),
        Step(
            404,
            "it is not there, or the person of the token may not see it: check the key, `project` and the token",
        ),
        Step(
            410,
            "this version of the API is gone: check `base_url` and `email`",
        ),
    ],
};

/// `[features."builtin:jira"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The key of the project, such as `PROJ`.
    pub project: String,
    /// The site, such as `https://example.atlassian.net`.
    pub base_url: String,
    /// The account of the token on Jira Cloud. Without it the site is a Jira Data Center.
    pub email: Option<String>,
    /// An API token, or a personal access token of Jira Data Center.
    pub token: Option<TokenSetting>,
}

/// The feature for one project.
pub type Jira = ProviderFeature<JiraProject>;

/// The project while a pod runs.
pub struct JiraProject {
    http: Http,
    key: String,
    is_cloud: bool,
    issues: Walks<Issue>,
    comments: Walks<Comment>,
    epics: Walks<Epic>,
}

impl SourceProvider for JiraProject {
    const ABOUT: ProviderAbout = ProviderAbout {
        id: ID,
        name: mapping::VENDOR_NAME,
        instance: "jira",
        categories: &[ISSUE_TRACKER, EPIC_TRACKER],
        vendor: &VENDOR,
        other_hosts: &[],
        why_other_hosts: "",
    };

    type Settings = Settings;

    fn origin(settings: &Settings) -> Result<ProviderOrigin, String> {
        project_key(&settings.project)
            .ok_or("`project` must be the key of a project, such as PROJ")?;
        let site = settings.base_url.trim_end_matches('/');
        if site.is_empty() {
            return Err("`base_url` is needed, such as https://example.atlassian.net".to_owned());
        }
        if settings.token.is_none() {
            return Err("`token` is needed, such as { secret = \"jira\" }".to_owned());
        }
        let (version, form) = match settings.email.clone() {
            Some(user) => (3, TokenForm::Basic { user }),
            None => (2, TokenForm::BEARER),
        };
        Ok(ProviderOrigin {
            base_url: format!("{site}/rest/api/{version}"),
            token: settings.token.clone(),
            form,
        })
    }

    fn new(settings: &Settings, http: Http) -> Self {
        Self {
            http,
            key: project_key(&settings.project).unwrap_or_default(),
            is_cloud: settings.email.is_some(),
            issues: Walks::default(),
            comments: Walks::default(),
            epics: Walks::default(),
        }
    }

    fn stage(live: &Arc<Self>, to: &mut Stage<'_, '_>) -> Result<(), FeatureInstallError> {
        to.provide(ISSUES, Arc::clone(live) as Arc<_>)?;
        to.provide(EPICS, Arc::clone(live) as Arc<_>)
    }

    fn values(&self) -> Answer<'_, Values> {
        Box::pin(async move {
            let statuses = self.statuses_of(&self.key).await?.into_iter();
            let types = self.types(&self.key).await?;
            let types = types.iter().filter_map(|of| text(of, "/name"));
            // Both are taken.
            let people = self.people(&self.key, "").await?.into_iter();
            let people = people.flat_map(|of| [Some(of.id), of.name]).flatten();
            Ok(Values::from([
                ("status", statuses.map(|of| of.name).collect()),
                ("issueType", types.collect()),
                ("assignees", people.collect()),
            ]))
        })
    }

    fn check(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.about_token())
    }
}

/// The key of a project as Jira writes it; none of another text.
fn project_key(text: &str) -> Option<String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_key = (1..=64).contains(&text.len())
        && text.bytes().all(fits)
        && text.starts_with(|first: char| first.is_ascii_alphabetic());
    is_key.then(|| text.to_ascii_uppercase())
}

impl JiraProject {
    async fn get(&self, path: &str) -> Result<Value, ServiceFault> {
        Ok(self.http.get(path).await?.body)
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, ServiceFault> {
        Ok(self.http.send(method, path, Some(&body)).await?.body)
    }

    /// The project that a call means: the configured one, or another one by its key.
    fn project_of(&self, named: Option<&str>) -> Result<String, ServiceFault> {
        match named.map(str::trim).filter(|named| !named.is_empty()) {
            Some(other) => project_key(other)
                .ok_or_else(|| unfit("`projectKey` must be the key of a project, such as PROJ")),
            None => Ok(self.key.clone()),
        }
    }

    /// A text as Jira takes it.
    fn body(&self, markdown: &str) -> Value {
        match self.is_cloud {
            true => adf::document(markdown),
            false => markdown.into(),
        }
    }

    /// The types of issues that can be made in a project.
    async fn types(&self, project: &str) -> Result<Vec<Value>, ServiceFault> {
        let path = format!("/issue/createmeta/{project}/issuetypes?maxResults=200");
        self.listed(&path, ["/issueTypes", "/values"]).await
    }

    /// A list, where Jira Cloud has it and where the other one does.
    async fn listed(&self, path: &str, at: [&str; 2]) -> Result<Vec<Value>, ServiceFault> {
        let found = self.get(path).await?;
        let list = at.iter().find_map(|at| found.pointer(at));
        each(list.unwrap_or(&Value::Null), mapping::VENDOR_NAME, |of| {
            Ok(of.clone())
        })
    }

    /// The people to whom issues of a project can be assigned: the first thousand of Jira's.
    async fn people(&self, project: &str, part: &str) -> Result<Vec<User>, ServiceFault> {
        let name = if self.is_cloud { "query" } else { "username" };
        let path = format!("/user/assignable/search?maxResults=1000&project={project}");
        let found = self.get(&with_query(&path, &[(name, part)])).await?;
        let all = each(&found, mapping::VENDOR_NAME, |of| Ok(mapping::user(of, "")))?;
        Ok(all.into_iter().flatten().collect())
    }

    /// The id of a person, who is named by it, by name or by mail address.
    async fn person(&self, project: &str, named: &str) -> Result<String, ServiceFault> {
        let named = named.trim();
        let is_meant = |of: &User| {
            let names = [Some(&of.id), of.name.as_ref(), of.email.as_ref()];
            let mut names = names.into_iter().flatten();
            names.any(|name| name.eq_ignore_ascii_case(named))
        };
        let found = self.people(project, named).await?;
        let mut meant: Vec<User> = found.into_iter().filter(is_meant).collect();
        if let Some(at) = meant.iter().position(|of| of.id == named) {
            meant.swap(0, at);
            meant.truncate(1);
        }
        if named.is_empty() || meant.len() > 1 {
            return Err(unfit(
                "an assignee is not one person: take an id of get_users",
            ));
        }
        match meant.pop() {
            Some(person) => Ok(person.id),
            // An id is not looked for.
            None if !named.contains([' ', '@']) => Ok(named.to_owned()),
            None => Err(unfit(
                "an assignee is none of the people of the project: take an id of get_users",
            )),
        }
    }

    async fn about_token(&self) -> Result<Vec<String>, ServiceFault> {
        const NEEDED: [&str; 5] = [
            "BROWSE_PROJECTS",
            "CREATE_ISSUES",
            "EDIT_ISSUES",
            "TRANSITION_ISSUES",
            "ADD_COMMENTS",
        ];
        let own = self.get("/myself").await?;
        let project = self.get(&format!("/project/{}", self.key)).await?;
        let known = |of: &Value, at| text(of, at).unwrap_or_else(|| "unknown".to_owned());
        let kind = match self.is_cloud {
            true => "Jira Cloud",
            false => "Jira Data Center",
        };
        let mut lines = vec![
            format!("authenticated as {}; {kind}", known(&own, "/displayName")),
            format!("project {}: {}", self.key, known(&project, "/name")),
        ];
        let path = format!("/mypermissions?projectKey={}", self.key);
        let path = with_query(&path, &[("permissions", &NEEDED.join(","))]);
        let held = self.get(&path).await?;
        let lacks = |name: &&str| !flag(&held, &format!("/permissions/{name}/havePermission"));
        let missing: Vec<&str> = NEEDED.into_iter().filter(lacks).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            lines.push(format!("project {}: the person lacks {missing}", self.key));
        }
        if list(&project, "/issueTypes").is_empty() {
            lines.push(format!("project {}: it has no types of issues", self.key));
        } else {
            let names = texts(&project, "/issueTypes", "/name").join(", ");
            lines.push(format!("project {}: {names}", self.key));
        }
        Ok(lines)
    }
}
