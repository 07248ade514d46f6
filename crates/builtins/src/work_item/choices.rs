//! The enricher of the tools: kinds, priorities and labels are those that the project's own items have, so that a model
//! does not invent others.

use super::contract::Heading;
use super::id::{Priority, WorkItemKind};
use pod::feature::{ToolEnricher, ToolSchema};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// With fewer items than this, their values say too little about what the project uses.
pub const MIN_ITEMS: usize = 10;

/// Most values of a list; a project with more labels does not choose from a list.
const MAX_VALUES: usize = 100;

/// Reads the headings of the newest items.
pub(super) type NewestItems = Box<dyn Fn() -> Result<Vec<Heading>, String> + Send + Sync>;

/// Narrows the tools to the values that items have.
pub(super) struct Choices {
    items: NewestItems,
    /// Read once, at the first tool.
    used: OnceLock<Result<Used, String>>,
}

/// The values that items have; empty if there are too few items.
#[derive(Debug, Default, PartialEq, Eq)]
struct Used {
    kinds: BTreeSet<String>,
    priorities: BTreeSet<Priority>,
    labels: BTreeSet<String>,
}

impl Choices {
    pub(super) const fn new(items: NewestItems) -> Self {
        Self {
            items,
            used: OnceLock::new(),
        }
    }
}

impl Used {
    fn of(items: &[Heading]) -> Self {
        if items.len() < MIN_ITEMS {
            return Self::default();
        }
        // What an item gets that names none.
        let mut used = Self {
            kinds: BTreeSet::from([WorkItemKind::Task.to_string()]),
            priorities: BTreeSet::from([Priority::Normal]),
            labels: BTreeSet::new(),
        };
        for item in items {
            used.kinds.insert(item.kind.to_string());
            used.priorities.insert(item.priority);
            used.labels
                .extend(item.labels.iter().map(ToString::to_string));
        }
        used
    }
}

impl ToolEnricher for Choices {
    fn enrich(&self, _: &str, schema: &mut ToolSchema) -> Result<(), String> {
        let read = || (self.items)().map(|items| Used::of(&items));
        let used = self.used.get_or_init(read).as_ref().map_err(Clone::clone)?;
        let priorities: Vec<String> = used.priorities.iter().map(ToString::to_string).collect();
        let (kinds, labels): (Vec<String>, Vec<String>) = (
            used.kinds.iter().cloned().collect(),
            used.labels.iter().cloned().collect(),
        );
        for (property, values) in [
            ("kind", &kinds),
            ("priority", &priorities),
            ("label", &labels),
            ("labels", &labels),
        ] {
            if (1..=MAX_VALUES).contains(&values.len()) {
                // A tool without this property stays as it is.
                schema.choices(property, values.iter().cloned());
            }
        }
        Ok(())
    }

    /// All these values are in small letters.
    fn arguments(&self, _: &str, arguments: &mut Map<String, Value>) -> Result<(), String> {
        arguments.values_mut().for_each(lower);
        Ok(())
    }
}

fn lower(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.trim().to_lowercase(),
        Value::Array(values) => values.iter_mut().for_each(lower),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}
