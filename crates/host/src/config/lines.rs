//! Where keys stand in a file, for messages that are made after it was read.

use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Every key of a file with its line, from 1.
#[derive(Debug, Default)]
pub(super) struct KeyLines(BTreeMap<Vec<String>, usize>);

impl KeyLines {
    /// Of a text that has been read. One that does not parse has no lines.
    pub(super) fn of(text: &str) -> Self {
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let mut lines = Self::default();
        if let Ok(table) = DeTable::parse(text) {
            lines.table(table.get_ref(), &mut Vec::new(), &|at| {
                ends.partition_point(|end| *end < at) + 1
            });
        }
        lines
    }

    /// The line of a key, or of the nearest thing around it.
    pub(super) fn at(&self, path: &[&str]) -> Option<usize> {
        let whole: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        (1..=whole.len())
            .rev()
            .find_map(|length| self.0.get(whole.get(..length)?).copied())
    }

    fn table(
        &mut self,
        table: &DeTable<'_>,
        path: &mut Vec<String>,
        line: &dyn Fn(usize) -> usize,
    ) {
        for (key, value) in table {
            path.push(key.get_ref().to_string());
            self.0.insert(path.clone(), line(key.span().start));
            self.value(value, path, line);
            path.pop();
        }
    }

    fn value(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        path: &mut Vec<String>,
        line: &dyn Fn(usize) -> usize,
    ) {
        match value.get_ref() {
            DeValue::Table(table) => self.table(table, path, line),
            DeValue::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    path.push(index.to_string());
                    self.0.insert(path.clone(), line(value.span().start));
                    self.value(value, path, line);
                    path.pop();
                }
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_however_they_are_written() {
        let text = "model = \"x\"\n\n[features.\"builtin:a\"]\nenabled = true\nscopes = [\n  \"a\",\n  \"b\",\n]\n\
                    [features]\n\"builtin:b\" = { enabled = false, grant = { network = [] } }\n\
                    [[permissions.rules]]\ntool = \"*\"\n[[permissions.rules]]\ntool = \"Bash\"\n";
        let lines = KeyLines::of(text);
        let cases: [(&[&str], Option<usize>); 9] = [
            (&["model"], Some(1)),
            (&["features", "builtin:a"], Some(3)),
            (&["features", "builtin:a", "enabled"], Some(4)),
            (&["features", "builtin:a", "scopes", "1"], Some(7)),
            (&["features", "builtin:a", "unknown"], Some(3)),
            (&["features", "builtin:b", "enabled"], Some(10)),
            (&["permissions", "rules", "1", "tool"], Some(14)),
            (&["sandbox"], None),
            (&[], None),
        ];
        for (path, line) in cases {
            assert_eq!(lines.at(path), line, "{path:?}");
        }
        assert_eq!(KeyLines::of("a = ").at(&["a"]), None);
    }
}
