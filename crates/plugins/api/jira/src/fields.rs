//! Fields of issues by name: their values by type, as Jira takes them.

use crate::JiraProject;
use crate::mapping::VENDOR_NAME;
use api_core::reading::{list, needed, text};
use api_core::{ServiceFault, unfit};
use authority::text::{Lines, escape_within};
use serde_json::{Map, Value, json};

/// The longest names of fields and values in an error, in bytes.
const MAX_NAMES: usize = 512;

impl JiraProject {
    /// The fields that a new issue of this type can have.
    pub(crate) async fn fields_of_type(
        &self,
        project: &str,
        kind: &str,
    ) -> Result<Vec<Value>, ServiceFault> {
        let path = format!("/issue/createmeta/{project}/issuetypes/{kind}?maxResults=200");
        self.listed(&path, ["/fields", "/values"]).await
    }

    /// The fields of an issue that can be changed.
    pub(crate) async fn fields_of_issue(&self, key: &str) -> Result<Vec<Value>, ServiceFault> {
        let found = self.get(&format!("/issue/{key}/editmeta")).await?;
        let fields = found.pointer("/fields").and_then(Value::as_object);
        let fields = needed(fields, VENDOR_NAME, "what can be changed", "fields")?;
        let all = fields.iter().map(|(id, field)| {
            let mut field = field.as_object().cloned().unwrap_or_default();
            field.insert("fieldId".to_owned(), id.as_str().into());
            Value::Object(field)
        });
        Ok(all.collect())
    }

    /// The wanted fields as Jira takes them, by their ids. `known` are those that there are.
    pub(crate) fn fields_sent(
        &self,
        known: &[Value],
        wanted: &Map<String, Value>,
    ) -> Result<Map<String, Value>, ServiceFault> {
        let one = |(name, value): (&String, &Value)| {
            let field = known.iter().find(|of| {
                let own = text(of, "/name").is_some_and(|own| own.eq_ignore_ascii_case(name));
                own || id(of).as_deref() == Some(name)
            });
            let shown = escape_within(name, Lines::One, 128);
            let Some(field) = field else {
                let names: Vec<String> = known.iter().filter_map(|of| text(of, "/name")).collect();
                let names = escape_within(&names.join(", "), Lines::One, MAX_NAMES);
                return Err(unfit(format!(
                    "there is no field `{shown}` to set; there are: {names}"
                )));
            };
            let id = needed(id(field), VENDOR_NAME, "a field", "fieldId")?;
            let sent = match value {
                Value::Null => Some(Value::Null),
                value => self.value_sent(field, &kind(field), value),
            };
            let sent = sent.ok_or_else(|| unfit(format!("`{shown}` takes {}", form(field))))?;
            Ok((id, sent))
        };
        wanted.iter().map(one).collect()
    }

    /// A value in Jira's form; none if it does not fit.
    fn value_sent(&self, field: &Value, kind: &str, value: &Value) -> Option<Value> {
        let is_long = text(field, "/schema/custom").is_some_and(|of| of.ends_with(":textarea"));
        let words = value.as_str();
        match kind {
            "string" if is_long => words.map(|text| self.body(text)),
            "string" | "date" | "datetime" | "any" => words.map(Value::from),
            "number" => value.is_number().then(|| value.clone()),
            "option" => choice(field, value).map(|of| json!({ "value": of })),
            "user" if self.is_cloud => words.map(|id| json!({ "accountId": id })),
            "user" | "group" | "version" | "component" | "priority" | "resolution" => {
                choice(field, value).map(|of| json!({ "name": of }))
            }
            "array" => {
                let items = text(field, "/schema/items")?;
                let all = value.as_array()?.iter();
                let all = all.map(|one| match items.as_str() {
                    "array" => None,
                    items => self.value_sent(field, items, one),
                });
                all.collect()
            }
            _ => None,
        }
    }
}

fn id(field: &Value) -> Option<String> {
    text(field, "/fieldId").or_else(|| text(field, "/key"))
}

fn kind(field: &Value) -> String {
    text(field, "/schema/type").unwrap_or_default()
}

/// The names of the values that a field allows; none where any fits.
fn allowed(field: &Value) -> Vec<String> {
    let all = list(field, "/allowedValues").iter();
    all.filter_map(|of| text(of, "/value").or_else(|| text(of, "/name")))
        .collect()
}

/// A value as it is written among the allowed ones; any text where there are none.
fn choice(field: &Value, value: &Value) -> Option<String> {
    let name = value.as_str()?;
    let allowed = allowed(field);
    let found = allowed.iter().find(|own| own.eq_ignore_ascii_case(name));
    match allowed.is_empty() {
        true => Some(name.to_owned()),
        false => found.cloned(),
    }
}

/// What a field takes.
fn form(field: &Value) -> String {
    let kind = kind(field);
    let [many, kind] = match kind.as_str() {
        "array" => [
            "a list of ",
            &text(field, "/schema/items").unwrap_or_default(),
        ],
        one => ["", one],
    };
    let allowed = allowed(field);
    let of = match kind {
        _ if !allowed.is_empty() => {
            let names = escape_within(&allowed.join(", "), Lines::One, MAX_NAMES);
            format!("one of: {names}")
        }
        "string" | "any" => "a text".to_owned(),
        "date" => "a date, such as 2026-01-31".to_owned(),
        "datetime" => "a time, such as 2026-01-31T12:00:00.000+0000".to_owned(),
        "number" => "a number".to_owned(),
        "user" => "an id of get_users".to_owned(),
        "group" | "version" | "component" | "option" => "a name".to_owned(),
        other => {
            let other = escape_within(other, Lines::One, 64);
            return format!("no values by this tool, it is of the type {other}");
        }
    };
    format!("{many}{of}")
}
