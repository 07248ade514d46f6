//! The forms of scripts: the tables `tool`, `agent` and `connector`, checked when the script is loaded.

use crate::convert;
use crate::failure::Failure;
use crate::script::Script;
use mlua::{Function, Table, Value};
use serde_json::{Map, Value as Json};

/// `tool`, with the function `execute(params, context)`.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) parameters: Parameters,
    pub(crate) execute: Function,
}

/// `agent`, with the function `resolve(arguments, config, context)`.
pub(crate) struct Agent {
    pub(crate) arguments: Parameters,
    pub(crate) resolve: Function,
}

/// `connector`, with the function `scan(config, cursor)`.
pub(crate) struct Connector {
    pub(crate) scan: Function,
}

/// What arguments are given by name.
pub(crate) struct Parameters(Vec<Parameter>);

struct Parameter {
    name: String,
    kind: Option<Kind>,
    is_required: bool,
    default: Option<Json>,
    /// Every value is allowed where there are none.
    allowed: Vec<Json>,
}

#[derive(Clone, Copy)]
enum Kind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

impl Tool {
    pub(crate) fn of(script: &Script) -> Result<Option<Self>, Failure> {
        let Some(form) = Form::of(script, "tool")? else {
            return Ok(None);
        };
        form.text("version")?;
        form.needed("description")?;
        Ok(Some(Self {
            name: form.needed("name")?,
            parameters: form.parameters("parameters", true)?,
            execute: form.function("execute")?,
        }))
    }
}

impl Agent {
    pub(crate) fn of(script: &Script) -> Result<Option<Self>, Failure> {
        let Some(form) = Form::of(script, "agent")? else {
            return Ok(None);
        };
        form.needed("name")?;
        form.needed("description")?;
        let tools = form.json("tools", Some(&list()))?;
        if !tools.is_null()
            && !tools
                .as_array()
                .is_some_and(|all| all.iter().all(Json::is_string))
        {
            return Err(form.wrong("`tools` is a list of names"));
        }
        Ok(Some(Self {
            arguments: form.parameters("arguments", false)?,
            resolve: form.function("resolve")?,
        }))
    }
}

impl Connector {
    pub(crate) fn of(script: &Script) -> Result<Option<Self>, Failure> {
        let Some(form) = Form::of(script, "connector")? else {
            return Ok(None);
        };
        form.needed("name")?;
        form.text("version")?;
        form.needed("description")?;
        let scan = form.function("scan")?;
        Ok(Some(Self { scan }))
    }
}

fn list() -> Json {
    serde_json::json!({ "type": "array" })
}

impl Parameters {
    /// The arguments with defaults for what is absent.
    ///
    /// # Errors
    /// One that is required is absent, or one is not what its parameter says.
    pub(crate) fn checked(
        &self,
        mut given: Map<String, Json>,
    ) -> Result<Map<String, Json>, Failure> {
        for Parameter {
            name,
            kind,
            is_required,
            default,
            allowed,
        } in &self.0
        {
            let wrong = |why: String| Err(Failure::new("fix_input", format!("`{name}` {why}")));
            let Some(value) = given.get(name).filter(|value| !value.is_null()) else {
                match default {
                    Some(default) => drop(given.insert(name.clone(), default.clone())),
                    None if *is_required => return wrong("is required".to_owned()),
                    None => {}
                }
                continue;
            };
            if let Some(kind) = kind.filter(|kind| !kind.fits(value)) {
                return wrong(format!("is not {}", kind.text()));
            }
            if !allowed.is_empty() && !allowed.contains(value) {
                let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
                return wrong(format!("is not one of {}", allowed.join(", ")));
            }
        }
        Ok(given)
    }
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn text(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Boolean => "true or false",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }

    fn fits(self, value: &Json) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// A global table of a script.
struct Form<'a> {
    script: &'a Script,
    place: String,
    table: Table,
}

impl<'a> Form<'a> {
    fn of(script: &'a Script, name: &str) -> Result<Option<Self>, Failure> {
        let table = script.global(name)?;
        let form = |table| Self {
            script,
            place: name.to_owned(),
            table,
        };
        Ok(table.map(form))
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::bug(format!("the table {} of the script: {why}", self.place))
    }

    fn text(&self, key: &str) -> Result<Option<String>, Failure> {
        match self.json(key, None)? {
            Json::Null => Ok(None),
            Json::String(text) => Ok(Some(text)),
            _ => Err(self.wrong(&format!("`{key}` is not a text"))),
        }
    }

    fn needed(&self, key: &str) -> Result<String, Failure> {
        self.text(key)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.wrong(&format!("`{key}` is missing")))
    }

    fn function(&self, key: &str) -> Result<Function, Failure> {
        match self.table.raw_get(key)? {
            Value::Function(function) => Ok(function),
            _ => Err(self.wrong(&format!("the function `{key}` is missing"))),
        }
    }

    fn json(&self, key: &str, schema: Option<&Json>) -> Result<Json, Failure> {
        let value: Value = self.table.raw_get(key)?;
        convert::to_json(&self.script.lua, &value, schema)
            .map_err(|why| self.wrong(&format!("`{key}`: {why}")))
    }

    /// A list of tables; each names its type where this is needed.
    fn parameters(&self, key: &str, typed: bool) -> Result<Parameters, Failure> {
        let all = match self.table.raw_get(key)? {
            Value::Nil => return Ok(Parameters(Vec::new())),
            Value::Table(all) => all,
            _ => return Err(self.wrong(&format!("`{key}` is not a list"))),
        };
        let mut parameters = Vec::new();
        for at in 1..=all.raw_len() {
            let Value::Table(table) = all.raw_get(at)? else {
                return Err(self.wrong(&format!("{key}[{at}] is not a table")));
            };
            let place = format!("{}.{key}[{at}]", self.place);
            let form = Form {
                script: self.script,
                place,
                table,
            };
            parameters.push(form.parameter(typed)?);
        }
        Ok(Parameters(parameters))
    }

    fn parameter(&self, typed: bool) -> Result<Parameter, Failure> {
        self.text("description")?;
        let kind = match self.text("type")? {
            None if typed => return Err(self.wrong("`type` is missing")),
            None => None,
            Some(name) => {
                let unknown = || self.wrong(&format!("the type `{name}` is not known"));
                Some(Kind::of(&name).ok_or_else(unknown)?)
            }
        };
        let schema = match kind {
            Some(Kind::Array) => Some(list()),
            _ => None,
        };
        let default = self.json("default", schema.as_ref())?;
        if let Some(kind) = kind.filter(|kind| !default.is_null() && !kind.fits(&default)) {
            return Err(self.wrong(&format!("`default` is not {}", kind.text())));
        }
        let allowed = match self.json("enum", Some(&list()))? {
            Json::Null => Vec::new(),
            Json::Array(allowed) => allowed,
            _ => return Err(self.wrong("`enum` is not a list")),
        };
        Ok(Parameter {
            name: self.needed("name")?,
            kind,
            is_required: matches!(self.json("required", None)?, Json::Bool(true)),
            default: Some(default).filter(|default| !default.is_null()),
            allowed,
        })
    }
}
