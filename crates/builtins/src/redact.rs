//! `builtin:redact`: replaces what matches a person's patterns in the results of calls, and in all texts of features, such
//! as notifications with the output of jobs, before anything of them is kept or shown. Off until configured.
//!
//! It sees each result whole, with its summary, its error and its warnings. When it fails, the result is withheld. The
//! texts of features are the host's to replace. It does not see what the model itself writes, nor files: the content of a
//! file before a change is kept as it is.

use crate::patterns::compiled;
use authority::Redactor;
use llm_worker::ToolOutput;
use llm_worker::tool::data::map_texts;
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookKey,
};
use pod::hook::{Change, MAX_DEADLINE, ToolShape, ToolShapeView};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("redact");

const RESULTS: HookKey<ToolShape> = HookKey::new("redact")
    .deadline(MAX_DEADLINE)
    .withhold_on_failure();

/// `[features."builtin:redact"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Regular expressions; each match in a result becomes `[redacted]`. 1 to 64.
    pub patterns: Vec<String>,
}

/// The feature that redacts results.
#[derive(Debug)]
pub struct Redact(Arc<[Regex]>);

impl Redact {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        compiled(&settings.patterns, 1).map(Self)
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Redaction")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .transform(&RESULTS)
        .build()
}

impl FeatureModule for Redact {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let redactor = Redactor::default();
        redactor.add_patterns(&self.0);
        ctx.hooks()
            .transform(&RESULTS, &Arc::new(Live(redactor)), Live::redact)?;
        ctx.services().redact(&self.0)
    }
}

struct Live(Redactor);

impl Live {
    fn redact(&self, view: &ToolShapeView) -> Change<ToolOutput> {
        // A match may begin in the summary and end in the content.
        let whole = format!("{}\n{}", view.output.summary, view.output.content);
        let clean = |text: &str| match self.0.text(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        };
        let text = clean(&whole);
        let data = view.output.data.clone();
        let data = data.map(|data| map_texts(data, &clean));
        if text.is_none() && data == view.output.data {
            return Change::Unchanged;
        }
        let text = text.as_deref().unwrap_or(&whole);
        let (summary, content) = text.split_once('\n').unwrap_or((text, ""));
        Change::Replaced(ToolOutput {
            summary: summary.to_owned(),
            content: content.to_owned(),
            data,
        })
    }
}
