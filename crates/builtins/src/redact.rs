//! `builtin:redact`: replaces what matches a person's patterns in the results of calls, before anything of them is kept
//! or shown. Off until configured.
//!
//! It sees each result whole, with its summary, its error and its warnings. When it fails, the result is withheld. It does
//! not see what the model itself writes, nor files: the content of a file before a change is kept as it is.

use authority::text::{Lines, escape_within};
use llm_worker::ToolOutput;
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule, HookKey};
use pod::hook::{Change, MAX_DEADLINE, ToolShape, ToolShapeView};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("redact");

const RESULTS: HookKey<ToolShape> = HookKey::new("redact").deadline(MAX_DEADLINE).withhold_on_failure();

/// Most patterns, and bytes of one.
const MAX_PATTERNS: usize = 64;
const MAX_BYTES: usize = 512;

/// Most bytes of one compiled pattern.
const MAX_COMPILED: usize = 1024 * 1024;

/// The most bytes of an invalid pattern that an error shows.
const MAX_SHOWN: usize = 40;

/// What stands in place of a match.
const MARK: &str = "[redacted]";

/// `[features."builtin:redact"]`.
#[derive(Clone, Debug, Default, Deserialize)]
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
        match settings.patterns.len() {
            1..=MAX_PATTERNS => settings.patterns.iter().map(|text| compiled(text)).collect::<Result<_, _>>().map(Self),
            many => Err(format!("`patterns` has {many}; expected 1 to {MAX_PATTERNS}")),
        }
    }
}

fn compiled(text: &str) -> Result<Regex, String> {
    let bad =
        |problem: &str| Err(format!("`patterns` has `{}`: {problem}", escape_within(text, Lines::One, MAX_SHOWN)));
    if text.is_empty() || text.len() > MAX_BYTES {
        return bad(&format!("expected 1 to {MAX_BYTES} bytes"));
    }
    match RegexBuilder::new(text).size_limit(MAX_COMPILED).build() {
        Ok(regex) if regex.is_match("") => bad("it matches the empty text"),
        Ok(regex) => Ok(regex),
        Err(_) => bad("it is no regular expression of at most 1 MiB"),
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Redaction")
        .version(env!("CARGO_PKG_VERSION"))
        .transform(&RESULTS)
        .build()
}

impl FeatureModule for Redact {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live(Arc::clone(&self.0)));
        ctx.hooks().transform(&RESULTS, &live, Live::redact).map(drop)
    }
}

struct Live(Arc<[Regex]>);

impl Live {
    fn redact(&self, view: &ToolShapeView) -> Change<ToolOutput> {
        // A match may begin in the summary and end in the content.
        let whole = format!("{}\n{}", view.output.summary, view.output.content);
        match self.0.iter().fold(Cow::Borrowed(whole.as_str()), replaced) {
            Cow::Borrowed(_) => Change::Unchanged,
            Cow::Owned(clean) => {
                let (summary, content) = clean.split_once('\n').unwrap_or((&clean, ""));
                Change::Replaced(ToolOutput { summary: summary.to_owned(), content: content.to_owned() })
            }
        }
    }
}

fn replaced<'a>(text: Cow<'a, str>, pattern: &Regex) -> Cow<'a, str> {
    match pattern.replace_all(&text, regex::NoExpand(MARK)) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => Cow::Owned(clean),
    }
}
