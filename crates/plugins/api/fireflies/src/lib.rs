//! `builtin:fireflies`: the meetings of an account of Fireflies, their summaries and what was said. Its API is GraphQL, which
//! answers errors with 200, too. It only reads.
//!
//! ```toml
//! [features."builtin:fireflies"]
//! token = { secret = "fireflies" }
//! ```

mod mapping;
mod meetings;
mod question;

use api_core::ServiceFault;
use api_core::category::MEETINGS;
use api_core::entity::{MeetingNote, MeetingTranscript};
use api_core::http::{Http, Step, TokenForm, TokenSetting, Vendor};
use api_core::provider::{Answer, MEETING_NOTES};
use api_core::reading::{flag, number, text};
use api_core::source::{ProviderAbout, ProviderFeature, ProviderOrigin, SourceProvider, Stage};
use api_core::walk::Walks;
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallError};
use question::Question;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Arc, Mutex};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("fireflies");

/// The descriptor without settings, for plans in which the feature is off.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    Fireflies::declared()
}

static VENDOR: Vendor = Vendor {
    name: mapping::VENDOR_NAME,
    headers: &[],
    words: question::WORDS,
    steps: &[
        Step(401, question::RENEW),
        Step(404, "check `base_url`: this is no API of Fireflies"),
    ],
};

/// `[features."builtin:fireflies"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The API key of a person. That of an administrator reads the meetings of the whole team.
    pub token: Option<TokenSetting>,
    /// Where the API is, if not at `https://api.fireflies.ai`.
    pub base_url: Option<String>,
}

/// The feature for one account.
pub type Fireflies = ProviderFeature<MeetingAccount>;

/// The account while a pod runs.
pub struct MeetingAccount {
    http: Http,
    meetings: Walks<MeetingNote>,
    /// The newest transcript that was read: its pages are parts of one answer, and the requests of a day are few.
    transcript: Mutex<Option<Arc<MeetingTranscript>>>,
}

impl SourceProvider for MeetingAccount {
    const ABOUT: ProviderAbout = ProviderAbout {
        id: ID,
        name: mapping::VENDOR_NAME,
        instance: "fireflies",
        categories: &[MEETINGS],
        vendor: &VENDOR,
        other_hosts: &[],
        why_other_hosts: "",
    };

    type Settings = Settings;

    fn origin(settings: &Settings) -> Result<ProviderOrigin, String> {
        if settings.token.is_none() {
            return Err("`token` is needed, such as { secret = \"fireflies\" }".to_owned());
        }
        let base_url = settings.base_url.as_deref();
        Ok(ProviderOrigin {
            base_url: base_url.unwrap_or("https://api.fireflies.ai").to_owned(),
            token: settings.token.clone(),
            form: TokenForm::BEARER,
        })
    }

    fn new(_settings: &Settings, http: Http) -> Self {
        Self {
            http,
            meetings: Walks::default(),
            transcript: Mutex::default(),
        }
    }

    fn stage(live: &Arc<Self>, to: &mut Stage<'_, '_>) -> Result<(), FeatureInstallError> {
        to.provide(MEETING_NOTES, Arc::clone(live) as Arc<_>)
    }

    fn check(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.about_key())
    }
}

impl MeetingAccount {
    async fn about_key(&self) -> Result<Vec<String>, ServiceFault> {
        let fields = "name email is_admin num_transcripts integrations";
        let own = Question::new("user", fields).ask(&self.http).await?;
        let named = |at| text(&own, at).unwrap_or_else(|| "unknown".to_owned());
        let mut lines = vec![format!(
            "authenticated as {} ({})",
            named("/name"),
            named("/email")
        )];
        lines.push(match flag(&own, "/is_admin") {
            true => "an administrator: reads the meetings of the team".to_owned(),
            false => "no administrator: reads the meetings that this person may see".to_owned(),
        });
        lines.push(match number(&own, "/num_transcripts") {
            Some(0) => "no meetings yet: let Fireflies join one".to_owned(),
            Some(many) => format!("{many} meetings"),
            None => "the number of meetings is not known".to_owned(),
        });
        Ok(lines)
    }
}
