//! `builtin:slack`: the chats of one Slack workspace, as its app or a person sees them. Slack answers refusals with 200 and
//! `ok: false`; its limits are those of each method.
//!
//! ```toml
//! [features."builtin:slack"]
//! token = { secret = "slack" }
//! kinds = ["channel", "private_channel", "direct"]
//! ```

mod chats;
mod mapping;
mod refusal;
mod text;

use api_core::ServiceFault;
use api_core::category::CHATS;
use api_core::http::{Http, Step, TokenForm, TokenSetting, Vendor, with_query};
use api_core::provider::{Answer, MESSENGER};
use api_core::reading::text;
use api_core::source::{ProviderAbout, ProviderFeature, ProviderOrigin, SourceProvider, Stage};
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("slack");

/// The descriptor without settings, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    Slack::declared()
}

static VENDOR: Vendor = Vendor {
    name: mapping::VENDOR_NAME,
    headers: &[],
    words: refusal::WORDS,
    steps: &[Step(404, "check `base_url`: this is no API of Slack")],
};

/// What kinds of chats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    Channel,
    PrivateChannel,
    Group,
    Direct,
}

/// A kind of chats: Slack's word for it, several of them, and the scopes that list and read it (behind it `:read` and
/// `:history`).
struct Kind(ChatKind, &'static str, &'static str, &'static str);

const KINDS: [Kind; 4] = [
    Kind(
        ChatKind::Channel,
        "public_channel",
        "public channels",
        "channels",
    ),
    Kind(
        ChatKind::PrivateChannel,
        "private_channel",
        "private channels",
        "groups",
    ),
    Kind(
        ChatKind::Group,
        "mpim",
        "conversations of several people",
        "mpim",
    ),
    Kind(ChatKind::Direct, "im", "conversations of two", "im"),
];

/// Scopes beside those of kinds, and what needs them.
const SCOPES: [(&str, &str); 3] = [
    ("chat:write", "no messages are sent"),
    ("users:read", "people have ids and no names"),
    (
        "search:read",
        "messages are not searched (only tokens of people can)",
    ),
];

/// `[features."builtin:slack"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The token of an app (`xoxb-…`), or of a person (`xoxp-…`), who can search as well.
    pub token: Option<TokenSetting>,
    /// The chats that are listed. Each kind needs a scope of its own.
    pub kinds: BTreeSet<ChatKind>,
    /// Of another Slack, such as `https://slack-gov.com/api`.
    pub base_url: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            kinds: [ChatKind::Channel, ChatKind::PrivateChannel].into(),
            base_url: None,
        }
    }
}

/// The feature for one workspace.
pub type Slack = ProviderFeature<SlackWorkspace>;

/// The workspace while a pod runs.
pub struct SlackWorkspace {
    http: Http,
    /// The kinds that are listed, in Slack's words.
    types: String,
    kinds: BTreeSet<ChatKind>,
    /// People by their ids; those without a name were asked for once.
    names: Mutex<BTreeMap<String, Option<String>>>,
    /// Whether the token may not ask for names.
    is_nameless: AtomicBool,
}

impl SourceProvider for SlackWorkspace {
    const ABOUT: ProviderAbout = ProviderAbout {
        id: ID,
        name: mapping::VENDOR_NAME,
        instance: "slack",
        categories: &[CHATS],
        vendor: &VENDOR,
        other_hosts: &[],
        why_other_hosts: "",
    };

    type Settings = Settings;

    fn origin(settings: &Settings) -> Result<ProviderOrigin, String> {
        if settings.token.is_none() {
            return Err("`token` is needed, such as { secret = \"slack\" }".to_owned());
        }
        if settings.kinds.is_empty() {
            return Err("`kinds` must have at least one kind of chats".to_owned());
        }
        let base_url = settings.base_url.as_deref();
        Ok(ProviderOrigin {
            base_url: base_url.unwrap_or("https://slack.com/api").to_owned(),
            token: settings.token.clone(),
            form: TokenForm::BEARER,
        })
    }

    fn new(settings: &Settings, http: Http) -> Self {
        let kinds = settings.kinds.clone();
        let types = wanted(&kinds).map(|kind| kind.1);
        Self {
            types: types.collect::<Vec<_>>().join(","),
            http: http.limited_by_path(),
            kinds,
            names: Mutex::default(),
            is_nameless: AtomicBool::new(false),
        }
    }

    fn stage(live: &Arc<Self>, to: &mut Stage<'_, '_>) -> Result<(), FeatureInstallError> {
        to.provide(MESSENGER, Arc::clone(live) as Arc<_>)
    }

    fn check(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.about_token())
    }
}

/// The kinds of a setting.
fn wanted(kinds: &BTreeSet<ChatKind>) -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|of| kinds.contains(&of.0))
}

impl SlackWorkspace {
    /// Reads what a method answers.
    async fn get(&self, method: &str, values: &[(&str, &str)]) -> Result<Value, ServiceFault> {
        let path = with_query(&format!("/{method}"), values);
        let reply = self.http.get(&path).await;
        let reply = reply.map_err(|fault| refusal::limited(method, fault))?;
        refusal::accepted(method, reply.body)
    }

    async fn about_token(&self) -> Result<Vec<String>, ServiceFault> {
        let reply = self.http.ask("/auth.test", &json!({})).await?;
        let scopes = reply.headers.get("x-oauth-scopes");
        let scopes = scopes.and_then(|scopes| scopes.to_str().ok());
        let own = refusal::accepted("auth.test", reply.body)?;
        let named = |at| text(&own, at).unwrap_or_else(|| "unknown".to_owned());
        let what = match text(&own, "/bot_id") {
            Some(_) => "an app",
            None => "a person",
        };
        let mut lines = vec![format!(
            "authenticated as {} ({what}) in {}",
            named("/user"),
            named("/team")
        )];
        let Some(scopes) = scopes else {
            lines.push("Slack does not say which scopes the token has".to_owned());
            return Ok(lines);
        };
        lines.push(format!("scopes {scopes}"));
        let has = |scope: &str| scopes.split(',').any(|own| own.trim() == scope);
        let of_kinds = wanted(&self.kinds).flat_map(|Kind(_, _, plural, scope)| {
            let lists = (format!("{scope}:read"), format!("{plural} are not listed"));
            let reads = (format!("{scope}:history"), format!("{plural} are not read"));
            [lists, reads]
        });
        let others = SCOPES.map(|(scope, without)| (scope.to_owned(), without.to_owned()));
        let missing = of_kinds.chain(others).filter(|(scope, _)| !has(scope));
        lines.extend(missing.map(|(scope, without)| format!("no scope `{scope}`: {without}")));
        Ok(lines)
    }
}
