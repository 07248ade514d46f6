//! `builtin:confirm-gate`: asks a person before calls of some tools, or with some arguments, also where the rules allow
//! them. Off until configured.
//!
//! A pattern is searched in the arguments as JSON, as an approval shows them, and in each text in them. A program that
//! hides what it does from the text of its arguments is not found: this feature is for people who want to be asked, and
//! the sandbox limits intentional damage.

use crate::patterns::{compiled, shown};
use crate::tool_search;
use llm_worker::tool::Touch;
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookKey,
};
use pod::hook::{MAX_EXPIRY, PreToolCall, ToolCallView, Verdict};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("confirm-gate");

const GATE: HookKey<PreToolCall> = HookKey::new("confirm-gate");

/// Most names of tools.
const MAX_TOOLS: usize = 64;

/// `[features."builtin:confirm-gate"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The tools whose calls are asked about; `*` is any, and so is none, beside `patterns`. `Bash` is every tool that runs a
    /// command. At most 64.
    #[schemars(length(max = MAX_TOOLS))]
    pub tools: Vec<String>,
    /// Regular expressions; with any, only calls are asked about in whose arguments one matches. At most 64.
    pub patterns: Vec<String>,
    /// How long a call waits for an answer before it is denied, such as `10m`: from 1 second to 30 days. Without it a call
    /// waits without an end.
    pub timeout: Option<String>,
}

/// The feature that asks.
#[derive(Debug)]
pub struct ConfirmGate(Arc<Live>);

impl ConfirmGate {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let Settings {
            tools,
            patterns,
            timeout,
        } = settings;
        if tools.is_empty() && patterns.is_empty() {
            return Err(
                "`tools` and `patterns` are empty; expected names of tools, patterns or both"
                    .to_owned(),
            );
        }
        if tools.len() > MAX_TOOLS || tools.iter().any(String::is_empty) {
            return Err(format!(
                "`tools` has an empty name or more than {MAX_TOOLS}; expected names of tools, or `*`"
            ));
        }
        tool_search::names_a_tool(&tools)?;
        let patterns = compiled(&patterns, 0)?;
        let timeout = timeout.as_deref().map(time).transpose()?;
        Ok(Self(Arc::new(Live {
            tools,
            patterns,
            timeout,
        })))
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .ok()
        .filter(|t| (Duration::from_secs(1)..=MAX_EXPIRY).contains(t));
    time.ok_or_else(|| {
        format!(
            "`timeout` must be a time from 1s to 30d, such as 90s, 10m or 2h, not `{}`",
            shown(text)
        )
    })
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Confirmation")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .gate(&GATE)
        .build()
}

impl FeatureModule for ConfirmGate {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks().gate(&GATE, &self.0, Live::judge).map(drop)
    }
}

#[derive(Debug)]
struct Live {
    tools: Vec<String>,
    patterns: Arc<[Regex]>,
    timeout: Option<Duration>,
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        // As for permission rules, every tool that runs a command is meant by the one for commands.
        let shell = call
            .touches
            .iter()
            .any(|touch| matches!(touch, Touch::Shell(_)));
        let meant = |tool: &String| tool == "*" || *tool == call.tool || (shell && tool == "Bash");
        let named = self.tools.is_empty() || self.tools.iter().any(meant);
        let question = match named.then(|| self.found(&call.arguments)).flatten() {
            Some(found) => format!(
                "may {} run with `{}`? (rule `patterns`)",
                call.tool,
                shown(found.as_str())
            ),
            None if named && self.patterns.is_empty() => {
                format!("may {} run? (rule `tools`)", call.tool)
            }
            None => return Verdict::allow(),
        };
        let asked = Verdict::ask(question);
        if let Some(time) = self.timeout {
            asked.expires_after(time)
        } else {
            asked
        }
    }

    /// The first pattern that matches.
    fn found(&self, arguments: &str) -> Option<&Regex> {
        // Always JSON: the tool has parsed them.
        let value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        self.patterns
            .iter()
            .find(|pattern| pattern.is_match(arguments) || any_text(&value, pattern))
    }
}

/// Whether a text in a value matches; the depth of a parsed value is bounded.
fn any_text(value: &Value, pattern: &Regex) -> bool {
    match value {
        Value::String(text) => pattern.is_match(text),
        Value::Array(values) => values.iter().any(|value| any_text(value, pattern)),
        Value::Object(fields) => fields.values().any(|value| any_text(value, pattern)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
