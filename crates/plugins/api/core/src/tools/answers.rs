//! One call of a tool: which provider it means, and its answer as a result.

use crate::entity::Named;
use crate::page::ItemPage;
use crate::provider::{
    Answer, EPICS, EpicProvider, ISSUES, IssueProvider, MEETING_NOTES, MERGE_REQUESTS, MESSENGER,
    MeetingNotesProvider, MergeRequestProvider, MessengerProvider, PIPELINES, PipelineProvider,
    RELEASES, ReleaseProvider,
};
use authority::text::{Lines, escape_within};
use llm_worker::tool::data;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolOutput, ToolResult};
use pod::feature::{FeatureInstallContext, FeatureInstallError, ServiceHandle, ServiceKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

/// The argument that says which of several providers.
pub const PROVIDER: &str = "provider";

/// The longest summary, in bytes.
const MAX_SUMMARY: usize = 200;
/// A longer result is written while it is produced, not handed over.
const MAX_CONTENT: usize = 1 << 20;

/// The providers that are installed.
pub(super) struct Hub {
    pub(super) issues: Served<dyn IssueProvider>,
    pub(super) merge_requests: Served<dyn MergeRequestProvider>,
    pub(super) pipelines: Served<dyn PipelineProvider>,
    pub(super) releases: Served<dyn ReleaseProvider>,
    pub(super) epics: Served<dyn EpicProvider>,
    pub(super) messenger: Served<dyn MessengerProvider>,
    pub(super) meetings: Served<dyn MeetingNotesProvider>,
}

/// The providers of one service, by the names of their instances.
pub(super) struct Served<T: ?Sized>(BTreeMap<String, ServiceHandle<T>>);

/// What a call asks for.
pub(super) struct Wanted {
    provider: Option<String>,
    arguments: Map<String, Value>,
}

/// An answer on its way.
pub(super) type Answered = Pin<Box<dyn Future<Output = Result<Shown, ToolError>> + Send>>;

/// An answer as a result shows it.
pub(super) struct Shown {
    summary: String,
    value: Value,
}

impl Hub {
    pub(super) fn of(ctx: &mut FeatureInstallContext<'_>) -> Result<Self, FeatureInstallError> {
        Ok(Self {
            issues: Served::of(ctx, ISSUES)?,
            merge_requests: Served::of(ctx, MERGE_REQUESTS)?,
            pipelines: Served::of(ctx, PIPELINES)?,
            releases: Served::of(ctx, RELEASES)?,
            epics: Served::of(ctx, EPICS)?,
            messenger: Served::of(ctx, MESSENGER)?,
            meetings: Served::of(ctx, MEETING_NOTES)?,
        })
    }
}

impl Wanted {
    /// Reads the arguments of a call, which fit the tool's schema.
    pub(super) fn read(arguments: &str) -> Result<Self, ToolError> {
        let arguments = serde_json::from_str::<Map<String, Value>>(arguments);
        let mut arguments =
            arguments.map_err(|error| ToolError::new(ErrorKind::FixInput, error.to_string()))?;
        let provider = arguments.remove(PROVIDER);
        let provider = provider.and_then(|name| name.as_str().map(str::to_owned));
        Ok(Self {
            provider,
            arguments,
        })
    }
}

impl<T: ?Sized + Send + Sync + 'static> Served<T> {
    fn of(
        ctx: &mut FeatureInstallContext<'_>,
        key: ServiceKey<T>,
    ) -> Result<Self, FeatureInstallError> {
        let all = ctx.services().each(key)?;
        Ok(Self(all.into_iter().collect()))
    }

    /// The provider that a call means: the one that it names, or the only one.
    fn provider(&self, named: Option<&str>) -> Result<&ServiceHandle<T>, ToolError> {
        let found = match named {
            Some(name) => self.0.get(name),
            None => self.0.values().next().filter(|_| self.0.len() == 1),
        };
        found.ok_or_else(|| {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            match names.as_slice() {
                [] => ToolError::new(ErrorKind::Unavailable, "no provider of this is installed"),
                _ => ToolError::new(
                    ErrorKind::FixInput,
                    format!("`{PROVIDER}` must be one of: {}", names.join(", ")),
                ),
            }
        })
    }

    /// Asks the provider that a call means.
    pub(super) async fn ask<A: DeserializeOwned, R: Serialize + Summary>(
        &self,
        wanted: Wanted,
        ask: impl for<'a> FnOnce(&'a T, A) -> Answer<'a, R>,
    ) -> Result<Shown, ToolError> {
        let provider = self.provider(wanted.provider.as_deref())?;
        let arguments = serde_json::from_value(Value::Object(wanted.arguments));
        let arguments =
            arguments.map_err(|error| ToolError::new(ErrorKind::FixInput, error.to_string()))?;
        let answer = provider.call(|provider| ask(provider, arguments)).await??;
        let value = serde_json::to_value(&answer)
            .map_err(|error| ToolError::new(ErrorKind::Bug, error.to_string()))?;
        Ok(Shown {
            summary: answer.summary(),
            value,
        })
    }
}

/// Runs one call.
pub(super) async fn run(effect: ToolEffect, answered: Answered, cx: ToolContext) -> ToolResult {
    let shown = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            let doubt = match effect {
                ToolEffect::ReadOnly => "",
                ToolEffect::Idempotent | ToolEffect::Effectful => {
                    "; it may have been done all the same: look before you do it again"
                }
            };
            return Err(ToolError::new(ErrorKind::Cancelled, format!("cancelled{doubt}")));
        }
        shown = answered => shown?,
    };
    let content = shown.value.to_string();
    let data = data::bytes(&shown.value).is_ok().then_some(shown.value);
    let content = match content.len() <= MAX_CONTENT {
        true => content,
        false => {
            cx.host.write_output(content.as_bytes())?;
            String::new()
        }
    };
    Ok(ToolOutput {
        summary: escape_within(&shown.summary, Lines::One, MAX_SUMMARY),
        content,
        data,
    })
}

/// One line about an answer.
pub(super) trait Summary {
    fn summary(&self) -> String;
}

impl<T: Named> Summary for T {
    fn summary(&self) -> String {
        self.line()
    }
}

impl<T: Named> Summary for ItemPage<T> {
    fn summary(&self) -> String {
        let many = self.items.len();
        let [one, several] = T::NOUN;
        let noun = if many == 1 { one } else { several };
        let of = self
            .pagination
            .total
            .map_or_else(String::new, |total| format!(" of {total}"));
        let more = match self.pagination.has_more {
            true => ", there are more",
            false => "",
        };
        format!("{many}{of} {noun}{more}")
    }
}
