//! `builtin:clickup`: the tasks of a list of ClickUp, by version 2 of its API. Statuses and custom fields are those of the list;
//! times are texts of milliseconds. Its API has no search, so words are looked for in all tasks of the list.
//!
//! ```toml
//! [features."builtin:clickup"]
//! list = "901100200300"
//! token = { secret = "clickup" }
//! ```

mod change;
mod fields;
mod mapping;
mod tasks;

use api_core::category::ISSUE_TRACKER;
use api_core::entity::{Issue, Status, User};
use api_core::http::{Http, Method, Step, TokenForm, TokenSetting, Vendor};
use api_core::provider::{Answer, ISSUES};
use api_core::reading::{each, id, list, text, texts};
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
pub const ID: FeatureId = FeatureId::builtin("clickup");

/// The descriptor without settings, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    ClickUp::declared()
}

static VENDOR: Vendor = Vendor {
    name: mapping::VENDOR_NAME,
    headers: &[],
    words: &["/err", "/ECODE"],
    steps: &[
        Step(
            401,
            "the token is wrong, or its person may not see this: check `list`, the key and the secret that `token` names",
        ),
        Step(
            403,
            "the person of the token may not do this, or the plan does not have it",
        ),
        Step(404, "it is not there: check `list` and the key"),
    ],
};

/// `[features."builtin:clickup"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The number of the list, as in its address behind `/li/`.
    pub list: String,
    /// The token of a person (`pk_…`).
    pub token: Option<TokenSetting>,
    /// Where the API is, if not at `https://api.clickup.com/api/v2`.
    pub base_url: Option<String>,
}

/// The feature for one list.
pub type ClickUp = ProviderFeature<ClickUpList>;

/// The list while a pod runs.
pub struct ClickUpList {
    http: Http,
    list: String,
    tasks: Walks<Issue>,
}

impl SourceProvider for ClickUpList {
    const ABOUT: ProviderAbout = ProviderAbout {
        id: ID,
        name: mapping::VENDOR_NAME,
        instance: "clickup",
        categories: &[ISSUE_TRACKER],
        vendor: &VENDOR,
        other_hosts: &[],
        why_other_hosts: "",
    };

    type Settings = Settings;

    fn origin(settings: &Settings) -> Result<ProviderOrigin, String> {
        if !is_number(&settings.list) {
            return Err("`list` must be the number of a list".to_owned());
        }
        if settings.token.is_none() {
            return Err("`token` is needed, such as { secret = \"clickup\" }".to_owned());
        }
        let base_url = settings.base_url.as_deref();
        Ok(ProviderOrigin {
            base_url: base_url
                .unwrap_or("https://api.clickup.com/api/v2")
                .to_owned(),
            token: settings.token.clone(),
            // As it is, without a scheme before it.
            form: TokenForm::Header {
                name: "authorization",
                prefix: "",
            },
        })
    }

    fn new(settings: &Settings, http: Http) -> Self {
        Self {
            http,
            list: settings.list.clone(),
            tasks: Walks::default(),
        }
    }

    fn stage(live: &Arc<Self>, to: &mut Stage<'_, '_>) -> Result<(), FeatureInstallError> {
        to.provide(ISSUES, Arc::clone(live) as Arc<_>)
    }

    fn values(&self) -> Answer<'_, Values> {
        Box::pin(async move {
            let own = self.get(&format!("/list/{}", self.list)).await?;
            let statuses = mapping::statuses(&own)?.into_iter().map(|of| of.name);
            // Both are taken.
            let people = self.members(&self.list).await?.into_iter();
            let people = people.flat_map(|of| [Some(of.id), of.name]).flatten();
            let mut values = Values::from([
                ("status", statuses.collect()),
                ("assignees", people.collect()),
                ("priority", mapping::PRIORITIES.map(str::to_owned).into()),
                ("issueType", mapping::TYPES.map(str::to_owned).into()),
            ]);
            if let Some(space) = id(&own, "/space/id").filter(|space| is_number(space)) {
                let tags = self.get(&format!("/space/{space}/tag")).await?;
                values.insert("labels", texts(&tags, "/tags", "/name"));
            }
            Ok(values)
        })
    }

    fn check(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.about_token())
    }
}

/// Whether a text is the number of something.
pub(crate) fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl ClickUpList {
    async fn get(&self, path: &str) -> Result<Value, ServiceFault> {
        Ok(self.http.get(path).await?.body)
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, ServiceFault> {
        Ok(self.http.send(method, path, Some(&body)).await?.body)
    }

    /// The list that a call means: the configured one, or another one by its number.
    fn list_of<'a>(&'a self, named: Option<&'a str>) -> Result<&'a str, ServiceFault> {
        match named.map(str::trim).filter(|named| !named.is_empty()) {
            Some(other) if is_number(other) => Ok(other),
            Some(_) => Err(unfit("`projectKey` must be the number of a list")),
            None => Ok(&self.list),
        }
    }

    async fn statuses_of(&self, list: &str) -> Result<Vec<Status>, ServiceFault> {
        mapping::statuses(&self.get(&format!("/list/{list}")).await?)
    }

    async fn members(&self, list: &str) -> Result<Vec<User>, ServiceFault> {
        let found = self.get(&format!("/list/{list}/member")).await?;
        let members = found.get("members").unwrap_or(&Value::Null);
        let all = each(members, mapping::VENDOR_NAME, |of| Ok(mapping::user(of)))?;
        Ok(all.into_iter().flatten().collect())
    }

    async fn about_token(&self) -> Result<Vec<String>, ServiceFault> {
        let own = self.get("/user").await?;
        let teams = self.get("/team").await?;
        let teams = texts(&teams, "/teams", "/name").join(", ");
        let known = |of: &Value, at| text(of, at).unwrap_or_else(|| "unknown".to_owned());
        let mut lines = vec![
            format!(
                "authenticated as {} ({})",
                known(&own, "/user/username"),
                known(&own, "/user/email")
            ),
            format!(
                "workspaces: {teams}; a token of ClickUp has no scopes, it may what its person may"
            ),
        ];
        let list_found = self.get(&format!("/list/{}", self.list)).await?;
        let names = list(&list_found, "/statuses").len();
        let name = known(&list_found, "/name");
        let space = known(&list_found, "/space/name");
        lines.push(format!("list {name} in {space}: {names} statuses"));
        if let Some("read" | "comment") = text(&list_found, "/permission_level").as_deref() {
            lines.push(format!(
                "list {name}: tasks cannot be changed, the person may only read or comment"
            ));
        }
        Ok(lines)
    }
}
