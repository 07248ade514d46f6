//! What the references of a schema can lead to. Where parts have addresses of their own, more than one place is possible, and
//! all of them count.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::BTreeMap;

/// The parts of a schema that have a name, by their JSON pointers.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Parts with an address of their own: the address, and where they are.
    addressed: Vec<(String, String)>,
    named: BTreeMap<String, Vec<String>>,
}

/// Where a reference can lead.
pub(super) struct Targets<'a> {
    pub(super) inside: Vec<&'a Value>,
    /// Perhaps also to a document that the validator brings along: a schema of schemas.
    pub(super) outside: bool,
}

impl References {
    pub(super) fn of(schema: &Value) -> Self {
        let mut all = Self::default();
        all.collect(schema, String::new());
        all
    }

    /// Looks into all values, since a reference can lead into any.
    fn collect(&mut self, value: &Value, at: String) {
        match value {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    if let ("$anchor" | "$dynamicAnchor" | "$id" | "id", Value::String(name)) =
                        (keyword.as_str(), value)
                    {
                        let name = name.strip_prefix('#').unwrap_or(name);
                        match keyword.as_str() {
                            "$id" | "id" => self.addressed.push((name.to_owned(), at.clone())),
                            _ => {}
                        }
                        self.named.entry(name.to_owned()).or_default().push(at.clone());
                    }
                    self.collect(value, format!("{at}/{}", keyword.replace('~', "~0").replace('/', "~1")));
                }
            }
            Value::Array(all) => {
                for (index, value) in all.iter().enumerate() {
                    self.collect(value, format!("{at}/{index}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(super) fn targets<'a>(&self, root: &'a Value, to: &str) -> Targets<'a> {
        let (address, fragment) = to.split_once('#').unwrap_or((to, ""));
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let outside = !address.is_empty() && self.addressed.iter().all(|(known, _)| known != address);
        let inside = if fragment.is_empty() || fragment.starts_with('/') {
            let bases = self.addressed.iter().filter_map(|(_, at)| root.pointer(at)).chain([root]);
            let mut found: Vec<&Value> = bases.filter_map(|base| base.pointer(&fragment)).collect();
            found.sort_by_key(|part| std::ptr::from_ref(*part));
            found.dedup_by_key(|part| std::ptr::from_ref(*part));
            found
        } else {
            let named = self.named.get(&*fragment).into_iter().flatten();
            named.filter_map(|at| root.pointer(at)).collect()
        };
        Targets { inside, outside }
    }
}
