//! JSON Schemas that the host compiles and enforces: of foreign tools, of answers, of settings. What a schema refers to
//! must be in it; nothing is loaded, from no file and no network. Without `$schema` the draft is 2020-12.

mod bounds;
mod cost;
mod references;

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use references::References;
use serde_json::Value;
use std::error::Error;
use std::fmt;

/// Most problems of a value that are listed.
const MAX_PROBLEMS: usize = 8;
/// Most names in one problem.
const MAX_NAMES: usize = 16;
/// Longest text of one problem, in characters.
const MAX_PROBLEM: usize = 240;

/// The address of the schema while it is compiled; nothing is loaded from there.
const PLACE: &str = "schema:/root";

/// A compiled JSON Schema.
pub struct Schema {
    schemas: Schemas,
    root: SchemaIndex,
    source: Value,
    references: References,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is not a JSON Schema, refers to something outside of itself, or would take too long to check values against.
    pub fn compile(schema: Value) -> Result<Self, String> {
        let references = References::of(&schema)?;
        bounds::problem(&schema, &references).map_or(Ok(()), Err)?;
        let mut compiler = Compiler::new();
        let mut schemas = Schemas::new();
        compiler.use_loader(Box::new(Nowhere));
        compiler
            .add_resource(PLACE, schema.clone())
            .map_err(|error| defect(&error))?;
        let root = compiler
            .compile(PLACE, &mut schemas)
            .map_err(|error| defect(&error))?;
        Ok(Self {
            schemas,
            root,
            source: schema,
            references,
        })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The innermost problems, each with its JSON pointer; at most 8 and the number of the others. A value that would take too
    /// many steps, or too much of the stack, is one.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let found = self.problems(value);
        if found.is_empty() {
            Ok(())
        } else {
            Err(listed(&found))
        }
    }

    /// The innermost problems of a value; none if it fits.
    pub(crate) fn problems(&self, value: &Value) -> Vec<SchemaProblem> {
        if !cost::is_bounded(&self.source, &self.references, value) {
            return vec![SchemaProblem {
                pointer: String::new(),
                kind: SchemaProblemKind::Other(cost::TOO_MUCH.to_owned()),
            }];
        }
        self.schemas
            .validate(value, self.root)
            .map_or_else(|error| innermost(&error), |()| Vec::new())
    }
}

/// A problem of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaProblem {
    /// The JSON pointer of the value; empty for the whole.
    pub(crate) pointer: String,
    pub(crate) kind: SchemaProblemKind,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaProblemKind {
    /// It lacks these properties.
    Missing(Vec<String>),
    /// It has these properties, which the schema does not know.
    Unknown(Vec<String>),
    Other(String),
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// The first innermost problems of a value, and how many more there are.
fn innermost(error: &ValidationError<'_, '_>) -> Vec<SchemaProblem> {
    let mut open = vec![error];
    let mut found = Vec::new();
    let mut more = 0_usize;
    while let Some(error) = open.pop() {
        open.extend(error.causes.iter().rev());
        if !error.causes.is_empty() {
            continue;
        }
        if found.len() == MAX_PROBLEMS {
            // A text for each of a million problems is more than a machine has.
            more += 1;
            continue;
        }
        let kind = if let ErrorKind::Required { want } = &error.kind {
            SchemaProblemKind::Missing(
                want.iter()
                    .take(MAX_NAMES)
                    .map(|name| (*name).to_owned())
                    .collect(),
            )
        } else if let ErrorKind::AdditionalProperties { got } = &error.kind {
            SchemaProblemKind::Unknown(
                got.iter()
                    .take(MAX_NAMES)
                    .map(|name| name.to_string())
                    .collect(),
            )
        } else {
            SchemaProblemKind::Other(within(&error.kind))
        };
        found.push(SchemaProblem {
            pointer: error.instance_location.to_string(),
            kind,
        });
    }
    let others = SchemaProblemKind::Other(format!("and {more} more"));
    found.extend((more > 0).then(|| SchemaProblem {
        pointer: String::new(),
        kind: others,
    }));
    found
}

/// A problem in its words, which can be those of the whole value.
fn within(kind: &ErrorKind<'_, '_>) -> String {
    struct Bounded(String);
    impl fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.push_str(&short(text));
            if self.0.len() > 4 * MAX_PROBLEM {
                Err(fmt::Error)
            } else {
                Ok(())
            }
        }
    }
    let mut words = Bounded(String::new());
    // What is too long ends early.
    fmt::Write::write_fmt(&mut words, format_args!("{kind}")).ok();
    words.0
}

fn listed(found: &[SchemaProblem]) -> Vec<String> {
    found
        .iter()
        .map(|problem| short(&problem.to_string()))
        .collect()
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        let quoted = |names: &[String]| {
            names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        match &self.kind {
            SchemaProblemKind::Missing(names) if names.len() == 1 => {
                write!(f, "the property {} is missing", quoted(names))
            }
            SchemaProblemKind::Missing(names) => {
                write!(f, "the properties {} are missing", quoted(names))
            }
            SchemaProblemKind::Unknown(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                write!(f, "additionalProperties {} not allowed", names.join(", "))
            }
            SchemaProblemKind::Other(what) => f.write_str(what),
        }
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
        return format!(
            "not a JSON Schema: {}",
            listed(&innermost(src)).first().cloned().unwrap_or_default()
        );
    }
    if let CompileError::LoadUrlError { url, .. } | CompileError::UnsupportedUrlScheme { url } =
        error
    {
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
