//! A tool as a server defines it, and as a model can be given it: what models' APIs refuse is loosened, never the whole list
//! lost, since the server checks arguments itself.

use crate::mirrored::mirrored;
use crate::names::model_name;
use crate::pin::{Annotations, Era, PinnedPrompt, PinnedTool, PromptArgument, ServerPin};
use crate::resources;
use authority::text::{Lines, escape_within};
use llm_worker::{ToolDefinition, ToolEffect};
use pod::feature::{ToolDeclaration, TouchKind, TouchRule};
use pod::schema::Schema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest description, in bytes, and the longest schema.
const MAX_ABOUT: usize = 4 << 10;
const MAX_SCHEMA: usize = 64 << 10;

/// The longest name of a tool, a prompt or an argument that is kept, in bytes.
const MAX_NAME: usize = 256;

/// Most prompts of a server, and most arguments of one.
pub(crate) const MAX_PROMPTS: usize = 128;
const MAX_ARGUMENTS: usize = 16;

/// How long a call may take, in milliseconds.
const DEADLINE_MS: u64 = 120_000;

/// Keywords that models' APIs refuse at the top of a schema.
const REFUSED_AT_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// The tools of a pin as a feature declares them.
#[derive(Clone, Debug, Default)]
pub struct Fitted {
    /// Each with what it is to the server.
    pub tools: Vec<(ToolDeclaration, Own)>,
    /// What is different than the server says, or left out.
    pub problems: Vec<String>,
}

/// What a tool is to its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// A tool of this name.
    Tool(String),
    /// Its resources.
    Resources,
}

/// A tool of a server's list.
///
/// # Errors
/// It has no name, or cannot be read.
pub(crate) fn pinned(tool: &RawValue) -> Result<PinnedTool, String> {
    let tool: Value = serde_json::from_str(tool.get())
        .map_err(|_| "a tool that cannot be read is left out".to_owned())?;
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
    let name = name.ok_or("a tool without a name is left out, or one whose name is too long")?;
    let annotations = tool
        .get("annotations")
        .and_then(|of| Annotations::deserialize(of).ok());
    let needs_task = tool
        .pointer("/execution/taskSupport")
        .is_some_and(|of| of == "required");
    let schema = tool.get("inputSchema").cloned().unwrap_or_default();
    Ok(PinnedTool {
        name,
        title: text("title"),
        description: text("description"),
        output_schema: tool
            .get("outputSchema")
            .filter(|schema| !schema.is_null())
            .cloned(),
        annotations: annotations.unwrap_or_default(),
        unusable: is_unusable(&schema),
        input_schema: schema,
        needs_task,
    })
}

/// A prompt of a server's list.
///
/// # Errors
/// It has no name, or cannot be read.
pub(crate) fn pinned_prompt(prompt: &RawValue) -> Result<PinnedPrompt, String> {
    let unread = || "a prompt that cannot be read is left out".to_owned();
    let prompt: Value = serde_json::from_str(prompt.get()).map_err(|_| unread())?;
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let named =
        |of: &Value| text(of, "name").filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
    let name = named(&prompt)
        .ok_or("a prompt without a name is left out, or one whose name is too long")?;
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let arguments = arguments.into_iter().flatten().map(|of| {
        let required = of.get("required").is_some_and(|of| *of == true);
        named(of).map(|name| PromptArgument { name, required })
    });
    let arguments: Option<Vec<_>> = arguments.take(MAX_ARGUMENTS + 1).collect();
    let arguments = arguments.ok_or_else(unread)?;
    if arguments.len() > MAX_ARGUMENTS {
        let shown = escape_within(&name, Lines::One, MAX_NAME);
        return Err(format!(
            "prompt `{shown}` is left out: it has over {MAX_ARGUMENTS} arguments"
        ));
    }
    Ok(PinnedPrompt {
        name,
        title: text(&prompt, "title"),
        description: text(&prompt, "description"),
        arguments,
    })
}

impl Fitted {
    /// The tools of a pin.
    #[must_use]
    pub fn of(pin: &ServerPin) -> Self {
        let mut fitted = Self::default();
        let mut taken: BTreeMap<String, &str> = BTreeMap::new();
        for tool in &pin.tools {
            let shown = authority::text::escape_line(&tool.name);
            let mut problem = |what: String| fitted.problems.push(format!("tool `{shown}` {what}"));
            if tool.needs_task {
                problem("is left out: it demands tasks, which yoi does not speak".to_owned());
                continue;
            }
            if pin.launch.url.is_some()
                && pin.era == Era::Modern
                && let Err(why) = mirrored(&tool.input_schema)
            {
                problem(format!("is left out: {why}"));
                continue;
            }
            let renamed = pin.rename.get(&tool.name).cloned();
            let name = renamed.unwrap_or_else(|| model_name(&pin.name, &tool.name));
            if let Some(other) = taken.get(&name.to_ascii_lowercase()) {
                let other = authority::text::escape_line(other);
                problem(format!(
                    "is left out: its name before models, `{name}`, is that of `{other}`; --rename gives it another"
                ));
                continue;
            }
            let (schema, loosened) = fit_schema(tool.input_schema.clone(), tool.unusable);
            loosened.into_iter().for_each(&mut problem);
            let declared = declaration(pin, tool, name, &schema);
            if let Some(why) = declared.model_problem() {
                problem(format!("is left out: {why}"));
                continue;
            }
            taken.insert(declared.name.to_ascii_lowercase(), &tool.name);
            fitted.tools.push((declared, Own::Tool(tool.name.clone())));
        }
        if pin.resources {
            let tool = resources::tool(&pin.name);
            let name = model_name(&pin.name, &tool.name);
            let (schema, _) = fit_schema(tool.input_schema.clone(), false);
            match taken.contains_key(&name.to_ascii_lowercase()) {
                true => fitted.problems.push(format!(
                    "its resources are left out: a tool of it is called `{}`",
                    resources::NAME
                )),
                false => {
                    let declared = declaration(pin, &tool, name, &schema);
                    fitted.tools.push((declared, Own::Resources));
                }
            }
        }
        fitted.tools.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        fitted
    }
}

fn declaration(
    pin: &ServerPin,
    tool: &PinnedTool,
    name: String,
    schema: &Value,
) -> ToolDeclaration {
    let words = [&tool.description, &tool.title].into_iter().flatten();
    let about = words.map(|text| text.trim()).find(|text| !text.is_empty());
    let default = format!("The tool {} of the MCP server {}.", tool.name, pin.name);
    let definition = ToolDefinition {
        name,
        description: escape_within(about.unwrap_or(&default), Lines::Many, MAX_ABOUT),
        schema: schema.to_string().into(),
        effect: effect(pin, tool.annotations),
    };
    let declared = ToolDeclaration {
        deadline_ms: DEADLINE_MS,
        ..ToolDeclaration::of(definition)
    };
    match declared.effect {
        ToolEffect::ReadOnly => declared,
        ToolEffect::Idempotent | ToolEffect::Effectful => declared.touching(TouchRule::fixed(
            TouchKind::RemoteWrite,
            format!("mcp:{}", pin.name),
        )),
    }
}

/// What a call does, as far as the person believes it.
fn effect(pin: &ServerPin, says: Annotations) -> ToolEffect {
    match says {
        Annotations {
            read_only_hint: true,
            ..
        } if pin.trusted => ToolEffect::ReadOnly,
        Annotations {
            idempotent_hint: true,
            ..
        } if pin.trusted => ToolEffect::Idempotent,
        Annotations { .. } => ToolEffect::Effectful,
    }
}

/// The schema of an object that models' APIs take, and in what it differs.
fn fit_schema(schema: Value, is_unusable: bool) -> (Value, Vec<String>) {
    let mut problems = Vec::new();
    let Value::Object(mut object) = schema else {
        let is_said = !matches!(schema, Value::Null | Value::Bool(true));
        if is_said {
            problems.push("has a schema that is no object; any arguments are passed on".to_owned());
        }
        return (json!({ "type": "object" }), problems);
    };
    if object.get("type").is_none_or(|of| of != "object") {
        object.insert("type".to_owned(), "object".into());
    }
    for key in REFUSED_AT_TOP {
        if object.remove(key).is_some() {
            problems.push(format!(
                "has `{key}` at the top of its schema, which models' APIs refuse; it is left out"
            ));
        }
    }
    if let Some(properties) = object.get_mut("properties") {
        match properties.as_object_mut() {
            // Any value: the form that all APIs take.
            Some(properties) => properties
                .values_mut()
                .filter(|value| **value == true)
                .for_each(|value| *value = json!({})),
            None => *properties = json!({}),
        }
    }
    let mut schema = Value::Object(object);
    schema.sort_all_objects();
    if is_unusable {
        problems.push("has a schema that cannot be used; any arguments are passed on".to_owned());
        schema = open(&schema);
    }
    (schema, problems)
}

/// Whether the host cannot check arguments against a schema.
fn is_unusable(schema: &Value) -> bool {
    let (schema, _) = fit_schema(schema.clone(), false);
    schema.to_string().len() > MAX_SCHEMA || Schema::compile(schema).is_err()
}

/// A schema with the names of the arguments alone.
fn open(schema: &Value) -> Value {
    let named = schema.get("properties").and_then(Value::as_object);
    let names: BTreeSet<&String> = named
        .into_iter()
        .flat_map(Map::keys)
        .take(MAX_NAME)
        .collect();
    let properties: Map<String, Value> = names
        .into_iter()
        .map(|name| (name.clone(), json!({})))
        .collect();
    json!({ "type": "object", "properties": properties })
}
