//! What the host enforces of a foreign tool, before any code of its feature runs: the schema of its arguments, and what
//! the arguments touch.

use crate::feature::declare::tool::ToolDeclaration;
use crate::feature::declare::touch::TouchRule;
use crate::schema::Schema;
use llm_worker::tool::{ArgumentError, Touch, parse_arguments};
use serde_json::{Map, Value};

/// The compiled schema and the touch rules of a foreign tool.
#[derive(Debug)]
pub struct ForeignContract {
    tool: String,
    schema: Schema,
    touches: Vec<TouchRule>,
}

impl ForeignContract {
    /// Compiles the declaration of a foreign tool.
    ///
    /// # Errors
    /// Its schema is not a JSON Schema.
    pub(crate) fn of(declared: &ToolDeclaration) -> Result<Self, String> {
        let schema = Schema::compile(
            serde_json::from_str(&declared.schema).map_err(|error| error.to_string())?,
        )?;
        Ok(Self {
            tool: declared.name.clone(),
            schema,
            touches: declared.touches.clone(),
        })
    }

    /// Checks raw arguments: one JSON object without a key twice, which fits the schema.
    pub(crate) fn check(&self, raw: &str) -> Result<(), ArgumentError> {
        let (arguments, _canonical) = parse_arguments::<Map<String, Value>>(&self.tool, raw)?;
        self.schema
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
