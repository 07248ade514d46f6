//! The values that a project has, such as its labels, as choices in the schemas of tools: asked of the vendor once at a
//! start, within a bound. A vendor that does not answer leaves the schemas as they are, and the report says so.

use crate::ServiceFault;
use crate::tools::{PROVIDER, TABLE};
use pod::feature::{ToolEnricher, ToolSchema};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a start waits for all values of a project. Less than an install may take.
pub const LIMIT: Duration = Duration::from_secs(3);
/// Most values of one property: a project with more has no list to choose from.
pub const MAX_VALUES: usize = 100;
/// The longest value, in bytes.
const MAX_VALUE: usize = 200;

/// The values of properties of arguments. A list that is not whole must be left out.
pub type Values = BTreeMap<&'static str, Vec<String>>;

/// Asks for values, with a connection of its own: the one of calls belongs to another thread.
pub type AskValues =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Values, ServiceFault>>>> + Send + Sync>;

/// The enricher of a provider's tools.
pub struct ProjectValues {
    categories: &'static [&'static str],
    ask: AskValues,
    known: OnceLock<Result<Values, String>>,
    told: AtomicBool,
}

impl ProjectValues {
    /// An enricher of the tools of these categories, that asks for the values when it is first asked about one.
    #[must_use]
    pub fn new(categories: &'static [&'static str], ask: AskValues) -> Self {
        Self {
            categories,
            ask,
            known: OnceLock::new(),
            told: AtomicBool::new(false),
        }
    }

    fn asked(&self) -> Result<Values, String> {
        within(LIMIT, (self.ask)())
    }
}

/// Waits on this thread for an answer, which has a connection of its own. The thread runs nothing else.
///
/// # Errors
/// The fault, or that it is late.
pub fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, ServiceFault>>,
) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let answer = runtime
        .map_err(|error| format!("no runtime: {error}"))?
        .block_on(async { tokio::time::timeout(limit, answer).await });
    match answer {
        Ok(answer) => answer.map_err(|fault| fault.message),
        Err(_late) => Err(format!("no answer within {} s", limit.as_secs())),
    }
}

impl ToolEnricher for ProjectValues {
    fn enrich(&self, tool: &str, schema: &mut ToolSchema) -> Result<(), String> {
        let mut own = TABLE
            .iter()
            .filter(|row| self.categories.contains(&row.category));
        // Of several providers, each has other values.
        if own.all(|row| row.name != tool) || schema.property(PROVIDER).is_some() {
            return Ok(());
        }
        let values = match self.known.get_or_init(|| self.asked()) {
            Ok(values) => values,
            // Said once, not for each tool.
            Err(_) if self.told.swap(true, Ordering::Relaxed) => return Ok(()),
            Err(why) => {
                return Err(format!(
                    "the values of the project are not known, so any are accepted: {why}"
                ));
            }
        };
        for (property, values) in values {
            let fit = |value: &String| {
                (1..=MAX_VALUE).contains(&value.len()) && !value.contains(char::is_control)
            };
            if (1..=MAX_VALUES).contains(&values.len()) && values.iter().all(fit) {
                // A tool without this property stays as it is.
                schema.choices(property, values.iter().cloned());
            }
        }
        Ok(())
    }
}
