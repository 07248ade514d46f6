//! Between values of Lua and JSON. A table is a list or an object; what is neither is an error that names the place.

#[cfg(test)]
mod tests;

use mlua::{Lua, Table, Value};
use serde_json::{Map, Number, Value as Json};
use std::fmt::Write;

/// The deepest nesting, in both directions; that of the reader of JSON.
const MAX_DEPTH: usize = 127;

/// Most values and bytes of texts that become JSON at once: shared tables would multiply without an end.
const MAX_WORK: usize = 2 << 20;

/// What a value counts beside its text.
const VALUE: usize = 4;

/// 2⁶³, the first number above all integers of Lua.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Where the metatable of empty lists is kept.
const LIST: &str = "yoi.list";

/// Whether a text of JSON has only integers that Lua has, too: others would lose digits without a word.
///
/// # Errors
/// It has another one. The text is otherwise not checked.
pub(crate) fn exact_integers(json: &str) -> Result<(), String> {
    let mut rest = json;
    let mut is_text = false;
    while let Some(at) =
        rest.find(|c: char| c == '"' || c == '\\' || !is_text && c.is_ascii_digit())
    {
        let (before, found) = rest.split_at(at);
        match found.as_bytes().first() {
            Some(b'"') => {
                is_text = !is_text;
                rest = found.get(1..).unwrap_or_default();
            }
            // What is escaped is never the end of a text.
            Some(b'\\') => {
                let mut after = found.chars();
                after.by_ref().take(2).for_each(drop);
                rest = after.as_str();
            }
            _ => {
                let is_of_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
                let end = found.find(|c| !is_of_number(c)).unwrap_or(found.len());
                let (digits, after) = found.split_at(end);
                let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
                let sign = if before.ends_with('-') { "-" } else { "" };
                if is_integer && format!("{sign}{digits}").parse::<i64>().is_err() {
                    let digits = digits.get(..32).unwrap_or(digits);
                    return Err(format!(
                        "the integer {sign}{digits} is outside of those of Lua, -2^63 to 2^63-1; write it as a text"
                    ));
                }
                rest = after;
            }
        }
    }
    Ok(())
}

/// A value of JSON in Lua. Null is nil; a whole number is an integer.
pub(crate) fn to_lua(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Integer(whole),
            (None, Some(float)) => whole(float).map_or(Value::Number(float), Value::Integer),
            (None, None) => Value::Nil,
        },
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(items) => {
            let table = list(lua, lua.create_table_with_capacity(items.len(), 0)?)?;
            for (at, item) in (1_i64..).zip(items) {
                table.raw_set(at, to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
        Json::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (name, field) in fields {
                table.raw_set(name.as_str(), to_lua(lua, field)?)?;
            }
            Value::Table(table)
        }
    })
}

/// Marks a table: it is a list also when it is empty.
pub(crate) fn list(lua: &Lua, table: Table) -> mlua::Result<Table> {
    let mark = match lua.named_registry_value(LIST)? {
        Value::Table(mark) => mark,
        _ => {
            let mark = lua.create_table()?;
            lua.set_named_registry_value(LIST, &mark)?;
            mark
        }
    };
    table.set_metatable(Some(mark))?;
    Ok(table)
}

/// A value of Lua as JSON. What an empty table is says this schema at its place, or else the table's origin; without both, it
/// is an object. Metatables have no influence otherwise.
///
/// # Errors
/// Names the place and what JSON does not have there.
pub(crate) fn to_json(lua: &Lua, value: &Value, schema: Option<&Json>) -> Result<Json, String> {
    let mark = lua.named_registry_value(LIST);
    let mut walk = Walk {
        mark: mark.ok(),
        place: Vec::new(),
        left: MAX_WORK,
    };
    walk.json(value, schema).map_err(|why| {
        let place = walk
            .place
            .iter()
            .enumerate()
            .fold(String::new(), |mut text, (at, step)| {
                match step {
                    // Into a text.
                    Step::Index(index) => write!(text, "[{index}]").ok(),
                    Step::Name(name) if at == 0 => write!(text, "{name}").ok(),
                    Step::Name(name) => write!(text, ".{name}").ok(),
                };
                text
            });
        if place.is_empty() {
            why
        } else {
            format!("{place}: {why}")
        }
    })
}

struct Walk {
    mark: Option<Table>,
    /// Left where it is when something failed.
    place: Vec<Step>,
    left: usize,
}

enum Step {
    Index(usize),
    Name(String),
}

/// What the keys of a table make it.
enum Shape {
    Empty,
    List(usize),
    Object,
}

impl Walk {
    fn json(&mut self, value: &Value, schema: Option<&Json>) -> Result<Json, String> {
        self.spend(VALUE)?;
        match value {
            Value::Nil => Ok(Json::Null),
            // What the kit writes where the contract wants null.
            Value::LightUserData(pointer) if pointer.0.is_null() => Ok(Json::Null),
            Value::Boolean(value) => Ok(Json::Bool(*value)),
            Value::Integer(value) => Ok(Json::Number((*value).into())),
            Value::Number(value) => match whole(*value) {
                Some(whole) => Ok(Json::Number(whole.into())),
                None => Number::from_f64(*value)
                    .map(Json::Number)
                    .ok_or_else(|| format!("JSON has no {value}")),
            },
            Value::String(text) => {
                self.spend(text.as_bytes().len())?;
                let text = text.to_str().map_err(|_| "the text is not UTF-8")?;
                Ok(Json::String(text.to_owned()))
            }
            Value::Table(table) => self.table(table, schema),
            other => Err(format!("a {} is not JSON", other.type_name())),
        }
    }

    fn table(&mut self, table: &Table, schema: Option<&Json>) -> Result<Json, String> {
        if self.place.len() >= MAX_DEPTH {
            self.place.truncate(4);
            return Err(format!("nested deeper than {MAX_DEPTH}, or in itself"));
        }
        match shape(table)? {
            Shape::Empty => {
                let is_list = says(schema).unwrap_or_else(|| {
                    let own = table.metatable();
                    own.is_some() && own == self.mark
                });
                Ok(if is_list {
                    Json::Array(Vec::new())
                } else {
                    Json::Object(Map::new())
                })
            }
            Shape::List(length) => {
                let mut items = Vec::new();
                for at in 1..=length {
                    let item: Value = table.raw_get(at).map_err(|error| error.to_string())?;
                    self.place.push(Step::Index(at));
                    items.push(self.json(&item, item_schema(schema, at))?);
                    self.place.pop();
                }
                Ok(Json::Array(items))
            }
            Shape::Object => {
                let mut fields = Map::new();
                for pair in table.pairs::<mlua::LuaString, Value>() {
                    let (name, field) = pair.map_err(|error| error.to_string())?;
                    self.spend(name.as_bytes().len())?;
                    let name = name
                        .to_str()
                        .map_err(|_| "the text of a key is not UTF-8")?;
                    self.place.push(Step::Name(name.to_owned()));
                    let field = self.json(&field, field_schema(schema, &name))?;
                    self.place.pop();
                    fields.insert(name.to_owned(), field);
                }
                Ok(Json::Object(fields))
            }
        }
    }

    fn spend(&mut self, work: usize) -> Result<(), String> {
        let left = self.left.checked_sub(work);
        self.left = left.ok_or("it would be over 2 MiB of JSON")?;
        Ok(())
    }
}

fn shape(table: &Table) -> Result<Shape, String> {
    let mut names = 0_usize;
    let mut indices = 0_usize;
    let mut largest = 0_i64;
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair.map_err(|error| error.to_string())?;
        match key {
            Value::String(_) => names += 1,
            Value::Integer(index) if index >= 1 => {
                indices += 1;
                largest = largest.max(index);
            }
            Value::Integer(index) => return Err(format!("a key is {index}; lists begin at 1")),
            other => return Err(format!("a key is a {}, not a text", other.type_name())),
        }
    }
    match (names, indices) {
        (0, 0) => Ok(Shape::Empty),
        (_, 0) => Ok(Shape::Object),
        (0, _) if usize::try_from(largest) == Ok(indices) => Ok(Shape::List(indices)),
        (0, _) => Err(format!(
            "a list with gaps: {indices} items, the last one at {largest}"
        )),
        _ => Err(format!(
            "a table with {indices} items and {names} named fields is neither a list nor an object"
        )),
    }
}

/// The integer that a number is, if it is one.
fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && (-TOO_LARGE..TOO_LARGE).contains(&number);
    is_whole.then_some(number as i64)
}

/// Whether a schema wants a list; `None` where it says neither.
fn says(schema: Option<&Json>) -> Option<bool> {
    let kinds = match schema?.get("type")? {
        Json::String(kind) => std::slice::from_ref(kind)
            .iter()
            .map(String::as_str)
            .collect(),
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect::<Vec<_>>(),
        _ => return None,
    };
    match (kinds.contains(&"array"), kinds.contains(&"object")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

fn item_schema(schema: Option<&Json>, at: usize) -> Option<&Json> {
    let schema = schema?;
    let own = schema
        .get("prefixItems")
        .and_then(|items| items.get(at - 1));
    own.or_else(|| schema.get("items"))
}

fn field_schema<'a>(schema: Option<&'a Json>, name: &str) -> Option<&'a Json> {
    let schema = schema?;
    let own = schema.get("properties").and_then(|fields| fields.get(name));
    own.or_else(|| schema.get("additionalProperties"))
}
