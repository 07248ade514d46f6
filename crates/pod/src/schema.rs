//! JSON Schemas that the host compiles and enforces: of foreign tools, of answers, of settings. What a schema refers to
//! must be in it; nothing is loaded, from no file and no network. Without `$schema` the draft is 2020-12.

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;
use std::error::Error;
use std::fmt;

/// Most problems of a value that are listed.
const MAX_PROBLEMS: usize = 8;
/// Longest text of one problem, in characters.
const MAX_PROBLEM: usize = 240;

/// The address of the schema while it is compiled; nothing is loaded from there.
const PLACE: &str = "schema:/root";

/// A compiled JSON Schema.
pub struct Schema {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is not a JSON Schema, or refers to something outside of itself.
    pub fn compile(schema: Value) -> Result<Self, String> {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.use_loader(Box::new(Nowhere));
        compiler.add_resource(PLACE, schema).map_err(|error| defect(&error))?;
        let root = compiler.compile(PLACE, &mut schemas).map_err(|error| defect(&error))?;
        Ok(Self { schemas, root })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The innermost problems, each with its JSON pointer; at most 8 and the number of the others.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        self.schemas.validate(value, self.root).map_err(|error| problems(&error))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

fn problems(error: &ValidationError<'_, '_>) -> Vec<String> {
    let (mut open, mut found) = (vec![error], Vec::new());
    while let Some(error) = open.pop() {
        open.extend(error.causes.iter().rev());
        if error.causes.is_empty() {
            let place = error.instance_location.to_string();
            let place = if place.is_empty() { place } else { format!("{place}: ") };
            found.push(short(&format!("{place}{}", problem(&error.kind))));
        }
    }
    let more = found.len().saturating_sub(MAX_PROBLEMS);
    found.truncate(MAX_PROBLEMS);
    found.extend((more > 0).then(|| format!("and {more} more")));
    found
}

fn problem(kind: &ErrorKind<'_, '_>) -> String {
    let ErrorKind::Required { want } = kind else { return kind.to_string() };
    let names: Vec<String> = want.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [name] => format!("the property {name} is missing"),
        names => format!("the properties {} are missing", names.join(", ")),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_PROBLEM) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The problem of a schema.
fn defect(error: &CompileError) -> String {
    if let CompileError::ValidationError { src, .. } = error {
        return format!("not a JSON Schema: {}", problems(src).first().cloned().unwrap_or_default());
    }
    if let CompileError::LoadUrlError { url, .. } | CompileError::UnsupportedUrlScheme { url } = error {
        return format!("it refers to {url}, but references outside of the schema are not loaded");
    }
    short(&error.to_string().replace(PLACE, "it"))
}

/// Loads nothing: what a schema refers to must be in it.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("not loaded".into())
    }
}
