//! What the host enforces of a foreign tool, before any code of its feature runs: the schema of its arguments, and what
//! the arguments touch.

use crate::feature::declare::tool::ToolDeclaration;
use crate::feature::declare::touch::TouchRule;
use crate::schema::Schema;
use llm_worker::tool::{ArgumentError, Touch, parse_arguments};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// The schema and the touch rules of a foreign tool. The schema is compiled at the first call: a start pays for no tool that
/// nobody calls.
#[derive(Debug)]
pub struct ForeignContract {
    tool: String,
    text: Arc<str>,
    schema: OnceLock<Result<Schema, String>>,
    touches: Vec<TouchRule>,
}

impl ForeignContract {
    /// The contract of the declaration of a foreign tool.
    pub(crate) fn of(declared: &ToolDeclaration) -> Self {
        Self {
            tool: declared.name.clone(),
            text: Arc::clone(&declared.schema),
            schema: OnceLock::new(),
            touches: declared.touches.clone(),
        }
    }

    fn schema(&self) -> Result<&Schema, ArgumentError> {
        let compile = || {
            let schema = serde_json::from_str(&self.text).map_err(|error| error.to_string());
            schema.and_then(Schema::compile)
        };
        let schema = self.schema.get_or_init(compile).as_ref();
        schema.map_err(|why| self.refused(vec![format!("the schema of this tool is unfit: {why}")]))
    }

    /// Checks raw arguments: one JSON object without a key twice, which fits the schema.
    pub(crate) fn check(&self, raw: &str) -> Result<(), ArgumentError> {
        let (arguments, _canonical) = parse_arguments::<Map<String, Value>>(&self.tool, raw)?;
        self.schema()?
            .check(&Value::Object(arguments))
            .map_err(|problems| self.refused(problems))
    }

    /// What a call with these canonical arguments touches.
    pub(crate) fn touches(&self, canonical: &str) -> Result<Vec<Touch>, ArgumentError> {
        let arguments: Value = serde_json::from_str(canonical).unwrap_or_default();
        let touches: Result<Vec<_>, _> = self
            .touches
            .iter()
            .map(|rule| rule.touches(&arguments))
            .collect();
        touches
            .map(|touches| touches.concat())
            .map_err(|problem| self.refused(vec![problem]))
    }

    fn refused(&self, mut problems: Vec<String>) -> ArgumentError {
        problems.truncate(ArgumentError::MAX_PROBLEMS);
        ArgumentError {
            tool: self.tool.clone(),
            problems,
        }
    }
}
