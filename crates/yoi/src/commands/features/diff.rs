//! `yoi features NAME --diff N`: what came, went and changed between two starts, field by field.

use super::capability_text::{capability, text, words};
use super::journal::{PodStart, Starts};
use super::page::Page;
use super::table::{is_denial, outcome_words};
use crate::cli::Span;
use host::exit::Failure;
use pod::feature::HostCapability;
use pod::session::restore::utc;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The differences between two starts of a pod.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Difference")]
pub(super) struct StartDifference {
    pod: String,
    /// The first start.
    from: Point,
    /// The second start.
    to: Point,
    /// Every difference, in the order of the report's fields.
    changes: Vec<Change>,
    /// The pod has only one start.
    #[serde(skip)]
    is_only: bool,
}

/// A start that is compared.
#[derive(Debug, Serialize, JsonSchema)]
struct Point {
    /// Its number, from 1.
    start: u64,
    /// The record that holds its report.
    seq: u64,
    /// When, in microseconds since 1970.
    at_us: u64,
}

/// A value that differs between the two starts.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Change {
    /// The path to the value: field names, and the names of elements of lists.
    path: Vec<String>,
    kind: Kind,
    /// The earlier value.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Value>,
    /// The later value.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Value>,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Only the second start has it.
    Came,
    /// Only the first start has it.
    Went,
    /// Both starts have it, with different values.
    Changed,
    /// The elements of a list are in another order.
    Reordered,
}

impl StartDifference {
    /// Between two starts of a pod; without a second one, the newest.
    pub(super) fn between(starts: &Starts, span: Span) -> Result<Self, Failure> {
        let from = starts.number(span.from)?;
        let to = span
            .to
            .map_or_else(|| starts.newest(), |to| starts.number(to))?;
        let mut changes = Vec::new();
        compare(&mut Vec::new(), &from.report, &to.report, &mut changes);
        let is_only = starts.count == 1;
        Ok(Self {
            pod: starts.pod.clone(),
            from: Point::of(from),
            to: Point::of(to),
            changes,
            is_only,
        })
    }

    pub(super) fn render(&self) -> Page {
        let mut page = Page::default();
        if self.is_only {
            let start = self.from.words();
            page.wrapped(
                "",
                &format!(
                    "{} has only {start}, so there is nothing to compare",
                    self.pod
                ),
            );
            return page;
        }
        page.wrapped(
            "",
            &format!("{}: {} → {}", self.pod, self.from.words(), self.to.words()),
        );
        let shown: Vec<&Change> = self
            .changes
            .iter()
            .filter(|change| !change.is_implied())
            .collect();
        page.line(if shown.is_empty() {
            "nothing changed"
        } else {
            "(+ added, - removed, ~ changed)"
        });
        let mut under = Vec::new();
        for change in shown {
            let (place, field) = change.place();
            if place != under {
                page.wrapped("", &in_table_words(&place.join(" ")));
                under = place;
            }
            let mark = match change.kind {
                Kind::Came => "+",
                Kind::Went => "-",
                Kind::Changed | Kind::Reordered => "~",
            };
            let text = match (field.split(' ').next(), change.capability()) {
                (Some("granted"), Some(held)) if self.includes(change, &held) => continue,
                (Some("granted"), Some(held)) => format!("may {}", words(&held)),
                (Some("denied"), Some(held)) => format!("denied permission: {}", words(&held)),
                // The state tells it.
                (Some("disabled_by"), _) if matches!(change.kind, Kind::Came | Kind::Went) => {
                    continue;
                }
                // The capability has a line of its own.
                (Some("diagnostics"), _) if change.is_denial() => continue,
                _ => in_table_words(&field),
            };
            page.wrapped(&format!("  {mark} "), &format!("{text}{}", change.words()));
        }
        page
    }

    /// Whether the same change of a wider grant includes this one.
    fn includes(&self, change: &Change, held: &HostCapability) -> bool {
        let others = self
            .changes
            .iter()
            .filter(|other| other.kind == change.kind && *other != change);
        let beside = others.filter(|other| other.place().0 == change.place().0);
        beside
            .filter_map(Change::capability)
            .any(|wide| wide.covers(held))
    }
}

impl Point {
    fn of(start: &PodStart) -> Self {
        Self {
            start: start.start,
            seq: start.seq,
            at_us: start.at_us,
        }
    }

    fn words(&self) -> String {
        format!(
            "start {} ({}, record {})",
            self.start,
            utc(self.at_us),
            self.seq
        )
    }
}

impl Change {
    fn capability(&self) -> Option<HostCapability> {
        self.from.as_ref().or(self.to.as_ref()).and_then(capability)
    }

    /// Whether it is a message about a denial.
    fn is_denial(&self) -> bool {
        let found = self.from.as_ref().or(self.to.as_ref());
        found.is_some_and(|found| is_denial(text(found, "code")))
    }

    /// Whether other lines tell it: a digest, a reason as data, or a field that reports of older programs lack.
    fn is_implied(&self) -> bool {
        let is_data =
            |part: &String| matches!(part.as_str(), "limits" | "source" | "remedy" | "denied");
        if self.path.iter().skip(3).any(is_data) {
            return true;
        }
        match self.path.last().map(String::as_str) {
            Some("digest" | "settings_digest" | "grants_digest") => true,
            Some("attached_by" | "body" | "settings") => self.kind != Kind::Changed,
            _ => false,
        }
    }

    /// The feature or part it belongs under, and the field there.
    fn place(&self) -> (Vec<String>, String) {
        let deep = match self.path.first().map(String::as_str) {
            Some("features") if self.path.len() > 2 => 2,
            Some("host") if self.path.len() > 1 => 2,
            Some(_) | None => 1,
        };
        let (place, field) = self.path.split_at(deep.min(self.path.len()));
        let place = place
            .iter()
            .filter(|part| *part != "features" || deep == 1)
            .cloned()
            .collect();
        let mut field = field.to_vec();
        if let [first, message, ..] = field.as_mut_slice()
            && first == "diagnostics"
            && let Some((text, _code)) = message.rsplit_once(" (")
        {
            *message = text.to_owned();
        }
        (place, field.join(" "))
    }

    fn words(&self) -> String {
        let brief = |value: &Value| match brief(value) {
            outcome if self.path.last().is_some_and(|field| field == "outcome") => {
                outcome_words(&outcome).to_owned()
            }
            text => text,
        };
        let alone = |value: &Value| !(value.is_object() || value.is_string());
        match (self.kind, &self.from, &self.to) {
            (Kind::Changed, Some(from), Some(to)) => format!(": {} → {}", brief(from), brief(to)),
            (Kind::Reordered, _, _) => ": in another order".to_owned(),
            (Kind::Came, _, Some(value)) | (Kind::Went, Some(value), _) if alone(value) => {
                format!(": {}", brief(value))
            }
            (Kind::Came | Kind::Went | Kind::Changed, _, _) => String::new(),
        }
    }
}

/// A field with its name as `yoi features` has it.
fn in_table_words(field: &str) -> String {
    let (name, rest) = field
        .split_once(' ')
        .map_or((field, ""), |(name, rest)| (name, rest));
    let shown = FIELDS
        .iter()
        .find(|(key, _)| *key == name)
        .map_or(name, |(_, shown)| shown);
    if rest.is_empty() {
        shown.to_owned()
    } else {
        format!("{shown} {rest}")
    }
}

/// Fields of a report, and their names for people.
const FIELDS: [(&str, &str); 20] = [
    ("attached_by", "switched on by"),
    ("background_tasks", "background task"),
    ("body", "code"),
    ("content_digest", "tools and instructions (digest)"),
    ("degraded", "partly installed"),
    ("denied", "denied"),
    ("diagnostics", "message:"),
    ("disabled_by", "switched off by"),
    ("estimated_tokens", "estimated tokens"),
    ("granted", "granted"),
    ("installed_hooks", "hook"),
    ("installed_tools", "tool"),
    ("instructions", "instructions for the model:"),
    ("live", "installed, fully or partly"),
    ("order", "installed features, in their order"),
    ("outcome", "state"),
    ("required_by", "required by"),
    ("schema_bytes", "bytes of tool schemas"),
    ("settings", "setting"),
    ("skipped_contributions", "without"),
];

/// A value in a line.
fn brief(value: &Value) -> String {
    match value {
        // A digest only tells that something changed.
        Value::String(text)
            if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            text.chars().take(8).collect()
        }
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(name).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn compare(path: &mut Vec<String>, from: &Value, to: &Value, found: &mut Vec<Change>) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => fields(path, from, to, found),
        (Value::Array(from), Value::Array(to)) => lists(path, from, to, found),
        (from, to) if from != to => {
            let from = Some(from.clone());
            let to = Some(to.clone());
            found.push(Change {
                path: path.clone(),
                kind: Kind::Changed,
                from,
                to,
            });
        }
        _ => {}
    }
}

fn fields(
    path: &mut Vec<String>,
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    found: &mut Vec<Change>,
) {
    let left = from.iter().map(|(key, value)| (key.clone(), value));
    let right = to.iter().map(|(key, value)| (key.clone(), value));
    pairs(path, left.collect(), right.collect(), found);
}

/// Things in lists are told apart by name, so that one more does not look like a change of all behind it.
fn lists(path: &mut Vec<String>, from: &[Value], to: &[Value], found: &mut Vec<Change>) {
    let left = named(from);
    let right = named(to);
    let common = |of: &[(String, &Value)], other: &[(String, &Value)]| -> Vec<String> {
        let names = of.iter().map(|(name, _)| name);
        names
            .filter(|name| other.iter().any(|(known, _)| known == *name))
            .cloned()
            .collect()
    };
    if common(&left, &right) != common(&right, &left) {
        let from = Some(Value::Array(from.to_vec()));
        let to = Some(Value::Array(to.to_vec()));
        found.push(Change {
            path: path.clone(),
            kind: Kind::Reordered,
            from,
            to,
        });
    }
    pairs(path, left, right, found);
}

fn pairs(
    path: &mut Vec<String>,
    from: Vec<(String, &Value)>,
    to: Vec<(String, &Value)>,
    found: &mut Vec<Change>,
) {
    let known: BTreeMap<&str, &Value> = from
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let stays: BTreeMap<&str, &Value> = to
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let mut one = |kind, name: &String, was: Option<&Value>, is: Option<&Value>| {
        let path = path.iter().chain([name]).cloned().collect();
        found.push(Change {
            path,
            kind,
            from: was.cloned(),
            to: is.cloned(),
        });
    };
    for (name, value) in from
        .iter()
        .filter(|(name, _)| !stays.contains_key(name.as_str()))
    {
        one(Kind::Went, name, Some(value), None);
    }
    for (name, value) in to
        .iter()
        .filter(|(name, _)| !known.contains_key(name.as_str()))
    {
        one(Kind::Came, name, None, Some(value));
    }
    for (name, value) in &to {
        if let Some(was) = known.get(name.as_str()) {
            path.push(name.clone());
            compare(path, was, value, found);
            path.pop();
        }
    }
}

/// Every element with a name of its own.
fn named(values: &[Value]) -> Vec<(String, &Value)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let own = |value| {
        let name = name(value);
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        (
            if *times == 1 {
                name
            } else {
                format!("{name} #{times}")
            },
            value,
        )
    };
    values.iter().map(own).collect()
}

/// What a thing in a list is called.
fn name(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    if value.get("capability").is_some() {
        return capability(value).map_or_else(
            || value.to_string(),
            |held: HostCapability| held.to_string(),
        );
    }
    let field = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let both = |first: &str, second: &str| Some(format!("{} ({})", field(first)?, field(second)?));
    both("text", "source")
        .or_else(|| both("message", "code"))
        .or_else(|| both("name", "kind"))
        .or_else(|| field("name"))
        .or_else(|| field("feature_id"))
        .unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn changes(from: Value, to: Value) -> Vec<(String, Kind)> {
        let mut found = Vec::new();
        compare(&mut Vec::new(), &from, &to, &mut found);
        found
            .into_iter()
            .map(|change| (change.path.join("/"), change.kind))
            .collect()
    }

    #[test]
    fn things_in_lists_are_told_apart_by_name() {
        let feature = |id: &str, outcome: &str, granted: Value| json!({ "feature_id": id, "outcome": outcome, "granted": granted });
        let process = json!({ "capability": "process", "programs": ["*"] });
        let from = json!({ "features": [feature("builtin:a", "installed", json!([process])), feature("builtin:b", "installed", json!([]))] });
        let to = json!({ "features": [feature("builtin:0", "installed", json!([])), feature("builtin:a", "degraded", json!([]))] });
        let expected = [
            ("features/builtin:b", Kind::Went),
            ("features/builtin:0", Kind::Came),
            ("features/builtin:a/granted/Process(*)", Kind::Went),
            ("features/builtin:a/outcome", Kind::Changed),
        ];
        assert_eq!(
            changes(from.clone(), to),
            expected.map(|(path, kind)| (path.to_owned(), kind))
        );
        assert_eq!(changes(from.clone(), from), []);
    }

    #[test]
    fn order_and_twins_count() {
        let swapped = changes(
            json!({ "order": ["a", "b"] }),
            json!({ "order": ["b", "a"] }),
        );
        assert_eq!(swapped, [("order".to_owned(), Kind::Reordered)]);
        let twin = changes(json!({ "notes": ["a"] }), json!({ "notes": ["a", "a"] }));
        assert_eq!(twin, [("notes/a #2".to_owned(), Kind::Came)]);
        let denied = |reason: &str| json!({ "denied": [{ "capability": "emit_user_alert", "reason": reason }] });
        assert_eq!(
            changes(denied("x"), denied("y")),
            [("denied/EmitUserAlert/reason".to_owned(), Kind::Changed)]
        );
    }
}
