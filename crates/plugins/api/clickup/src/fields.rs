//! Custom fields: their values by type, as a model reads and writes them, and as ClickUp does.

use api_core::reading::{id, list, needed, number, text};
use api_core::{ServiceFault, time, unfit};
use authority::text::{Lines, escape_within};
use serde_json::{Map, Value, json};

pub(crate) const VENDOR_NAME: &str = "ClickUp";

/// What stands before the id of a task.
pub(crate) const SIGN: &str = "CU-";

/// A field that has a value.
pub(crate) struct ShownField {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// A field of an answer; none of one without a value.
pub(crate) fn shown(field: &Value) -> Option<ShownField> {
    let name = text(field, "/name")?;
    let value = field.get("value").filter(|value| !value.is_null())?;
    let each = |of: &dyn Fn(&Value) -> Option<Value>| {
        let all: Vec<Value> = value.as_array()?.iter().filter_map(of).collect();
        (!all.is_empty()).then_some(Value::from(all))
    };
    let kind = text(field, "/type")?;
    let value = match kind.as_str() {
        // By the place of the option, or by its id.
        "drop_down" => option(field, |of| {
            of.get("orderindex") == Some(value) || of.get("id") == Some(value)
        })
        .map(Value::from)?,
        "labels" => each(&|one| option(field, |of| of.get("id") == Some(one)).map(Value::from))?,
        "users" => each(&|one| {
            text(one, "/username")
                .or_else(|| id(one, "/id"))
                .map(Value::from)
        })?,
        "tasks" | "list_relationship" => {
            each(&|one| text(one, "/id").map(|id| format!("{SIGN}{id}").into()))?
        }
        "date" => number(value, "").map(time::shown)?.into(),
        "number" | "currency" => decimal(value)?,
        "checkbox" => (value == &json!(true) || value == &json!("true")).into(),
        "location" => text(value, "/formatted_address")?.into(),
        "manual_progress" | "automatic_progress" => value.get("percent_complete")?.clone(),
        _ => value.clone(),
    };
    Some(ShownField { name, value })
}

/// A number, also where it is a text.
fn decimal(value: &Value) -> Option<Value> {
    match value.as_str() {
        Some(text) => text.parse::<serde_json::Number>().ok().map(Value::from),
        None => value.is_number().then(|| value.clone()),
    }
}

/// The name of the first option that fits.
fn option(field: &Value, fits: impl Fn(&Value) -> bool) -> Option<String> {
    let found = list(field, "/type_config/options")
        .iter()
        .find(|of| fits(of))?;
    text(found, "/name").or_else(|| text(found, "/label"))
}

/// The id of the option with this name.
fn option_id(field: &Value, name: &Value) -> Option<Value> {
    let name = name.as_str()?;
    let is_meant = |of: &&Value| {
        let names = ["/name", "/label", "/id"]
            .iter()
            .filter_map(|at| text(of, at));
        names.into_iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    let options = list(field, "/type_config/options");
    options
        .iter()
        .find(is_meant)
        .and_then(|of| of.get("id"))
        .cloned()
}

/// The wanted fields as ClickUp takes them: `{id, value}` each. `known` are the fields of the list.
///
/// # Errors
/// There is no such field, or the value does not fit its type.
pub(crate) fn sent(known: &Value, wanted: &Map<String, Value>) -> Result<Vec<Value>, ServiceFault> {
    let one = |(name, value): (&String, &Value)| {
        let mut all = list(known, "/fields").iter();
        let field = all.find(|of| {
            let own = text(of, "/name").is_some_and(|own| own.eq_ignore_ascii_case(name));
            own || text(of, "/id").as_deref() == Some(name)
        });
        let shown = escape_within(name, Lines::One, 128);
        let Some(field) = field else {
            let names: Vec<String> = list(known, "/fields")
                .iter()
                .filter_map(|of| text(of, "/name"))
                .collect();
            let names = escape_within(&names.join(", "), Lines::One, 512);
            return Err(unfit(format!(
                "the list has no field `{shown}`; it has: {names}"
            )));
        };
        let id = needed(text(field, "/id"), VENDOR_NAME, "a field", "id")?;
        let kind = text(field, "/type").unwrap_or_default();
        match value_sent(field, &kind, value)? {
            Some(value) => Ok(json!({ "id": id, "value": value })),
            None => Err(unfit(format!(
                "`{shown}` ({kind}) takes {}",
                form(field, &kind)
            ))),
        }
    };
    wanted.iter().map(one).collect()
}

/// The value of a field in ClickUp's form; none if it does not fit.
fn value_sent(field: &Value, kind: &str, value: &Value) -> Result<Option<Value>, ServiceFault> {
    let all = |of: &dyn Fn(&Value) -> Option<Value>| -> Option<Vec<Value>> {
        value.as_array()?.iter().map(of).collect()
    };
    Ok(match kind {
        "drop_down" => option_id(field, value),
        "labels" => all(&|one| option_id(field, one)).map(Value::from),
        "users" => all(&|one| number(one, "").map(Value::from)).map(|ids| json!({ "add": ids })),
        "tasks" | "list_relationship" => {
            let id = |one: &Value| Some(one.as_str()?.strip_prefix(SIGN)?.into());
            all(&id).map(|ids| json!({ "add": ids }))
        }
        "date" => match value.as_str() {
            Some(text) => Some(time::millis("customFields", text)?.into()),
            None => None,
        },
        "number" | "currency" | "emoji" => decimal(value),
        "checkbox" => value.as_bool().map(Value::from),
        "manual_progress" => decimal(value).map(|current| json!({ "current": current })),
        "text" | "short_text" | "url" | "email" | "phone" => value.as_str().map(Value::from),
        _ => None,
    })
}

/// What a field takes.
fn form(field: &Value, kind: &str) -> String {
    let options = || {
        let all = list(field, "/type_config/options").iter();
        let names = all.filter_map(|of| text(of, "/name").or_else(|| text(of, "/label")));
        escape_within(&names.collect::<Vec<_>>().join(", "), Lines::One, 512)
    };
    match kind {
        "drop_down" => format!("one of: {}", options()),
        "labels" => format!("a list of: {}", options()),
        "users" => "a list of ids of people".to_owned(),
        "tasks" | "list_relationship" => format!("a list of keys, such as {SIGN}86abc"),
        "date" => "a date or a time in UTC".to_owned(),
        "number" | "currency" | "emoji" | "manual_progress" => "a number".to_owned(),
        "checkbox" => "true or false".to_owned(),
        "text" | "short_text" | "url" | "email" | "phone" => "a text".to_owned(),
        _ => "no values by this API".to_owned(),
    }
}
