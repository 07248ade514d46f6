//! Values as lines of `path: value`, and lists of objects as tables with a row for each: CSV, whose cells are bare texts or
//! JSON. A cell between two separators is an absent field, so that rows need not be uniform.

use crate::json::{Fields, Json, is_number, quote};
use crate::toon::has_repeated_names;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A table with more columns is none: most of its cells would be empty.
const MAX_COLUMNS: usize = 256;

/// Cells of a table for each value in it.
const MAX_EMPTY: usize = 4;

/// The bytes of the longest name of a column or line.
const MAX_PATH: usize = 256;

/// Cells of one row: where a value stands, and the value.
type Cells<'v, 'a> = Vec<(String, &'v Json<'a>)>;

/// A list of objects as a table; none for other values, where names would be ambiguous, and beyond this many bytes.
pub fn csv(value: &Json<'_>, limit: usize) -> Option<String> {
    let Json::List(items) = value else {
        return None;
    };
    if has_repeated_names(value) {
        return None;
    }
    let mut out = String::new();
    Table::of(items, limit)?.write(limit, &mut out)?;
    Some(out)
}

/// An object as lines; lists of at least two objects in it are tables behind the lines. None for other values, where
/// names would be ambiguous, and beyond this many bytes.
pub fn key_value(value: &Json<'_>, limit: usize) -> Option<String> {
    let Json::Object(fields) = value else {
        return None;
    };
    if fields.is_empty() || has_repeated_names(value) {
        return None;
    }
    let mut cells = Vec::new();
    // Each path and each column is written, so together they have no more bytes than the text.
    let mut room = limit;
    flatten(fields, "", &mut room, &mut cells)?;
    let mut out = String::new();
    let mut tables = Vec::new();
    for (path, value) in cells {
        match value {
            Json::List(items)
                if items.len() > 1
                    && let Some(table) = Table::of(items, room) =>
            {
                room = room.saturating_sub(table.named);
                tables.push((path, table));
            }
            value => {
                out.push_str(&path);
                out.push_str(": ");
                cell(value, None, &mut out);
                out.push('\n');
            }
        }
        if out.len() > limit {
            return None;
        }
    }
    for (path, table) in tables {
        writeln!(out, "{path} ({} rows):", table.rows.len()).ok()?;
        table.write(limit, &mut out)?;
        out.push('\n');
    }
    out.truncate(out.trim_end_matches('\n').len());
    Some(out)
}

struct Table<'v, 'a> {
    columns: Vec<String>,
    /// The bytes of their names.
    named: usize,
    rows: Vec<Vec<(usize, &'v Json<'a>)>>,
}

impl<'v, 'a> Table<'v, 'a> {
    /// None if the names of its columns have more bytes than there is room for.
    fn of(items: &'v [Json<'a>], room: usize) -> Option<Self> {
        let mut columns = Vec::new();
        let mut named = 0;
        let mut places = BTreeMap::new();
        let mut rows = Vec::with_capacity(items.len());
        let mut values = 0;
        for item in items {
            let Json::Object(fields) = item else {
                return None;
            };
            let mut cells = Cells::new();
            flatten(fields, "", &mut (MAX_COLUMNS * MAX_PATH), &mut cells)?;
            // An empty object would be an empty line.
            if cells.is_empty() {
                return None;
            }
            values += cells.len();
            let mut row = Vec::with_capacity(cells.len());
            for (path, value) in cells {
                let place = match places.get(&path) {
                    Some(place) => *place,
                    None => {
                        named += path.len();
                        places.insert(path.clone(), columns.len());
                        columns.push(path);
                        columns.len() - 1
                    }
                };
                row.push((place, value));
            }
            if columns.len() > MAX_COLUMNS || named > room {
                return None;
            }
            row.sort_by_key(|(place, _)| *place);
            rows.push(row);
        }
        (!rows.is_empty() && columns.len() * rows.len() <= values * MAX_EMPTY).then_some(Self {
            columns,
            named,
            rows,
        })
    }

    /// None once the text has more bytes than the limit.
    fn write(&self, limit: usize, out: &mut String) -> Option<()> {
        let holds_lists = |row: &Vec<(usize, &Json<'_>)>| {
            row.iter()
                .any(|(_, value)| matches!(value, Json::List(items) if items.len() > 1))
        };
        let separator = if self.rows.iter().any(holds_lists) {
            '\t'
        } else {
            ','
        };
        for (i, column) in self.columns.iter().enumerate() {
            if i > 0 {
                out.push(separator);
            }
            out.push_str(column);
        }
        for row in &self.rows {
            out.push('\n');
            let mut next = 0;
            for (place, value) in row {
                (next..*place).for_each(|_| out.push(separator));
                next = *place;
                cell(value, Some(separator), out);
            }
            (next + 1..self.columns.len()).for_each(|_| out.push(separator));
            if out.len() > limit {
                return None;
            }
        }
        Some(())
    }
}

/// The values of an object and of the objects in it, each with the names on its way; none if a name could be read in two ways,
/// and where the ways are long: each takes its bytes of the room.
fn flatten<'v, 'a>(
    fields: &'v Fields<'a>,
    above: &str,
    room: &mut usize,
    cells: &mut Cells<'v, 'a>,
) -> Option<()> {
    for (name, value) in fields {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-+$@/".contains(&b);
        if name.is_empty() || !name.bytes().all(is_plain) {
            return None;
        }
        let length = above.len() + 1 + name.len();
        if length > MAX_PATH {
            return None;
        }
        let path = if above.is_empty() {
            name.to_string()
        } else {
            format!("{above}.{name}")
        };
        match value {
            Json::Object(inner) if !inner.is_empty() => flatten(inner, &path, room, cells)?,
            value => {
                *room = room.checked_sub(length)?;
                cells.push((path, value));
            }
        }
    }
    Some(())
}

/// A value as a bare text if nothing else reads like it, else as JSON.
fn cell(value: &Json<'_>, separator: Option<char>, out: &mut String) {
    match value {
        Json::Text(text) => {
            let is_bare = !text.is_empty()
                && !text.starts_with(['"', '[', '{'])
                && text.trim() == text
                && !text.contains(|c: char| c.is_control() || Some(c) == separator)
                && !matches!(&**text, "null" | "true" | "false")
                && !is_number(text);
            if is_bare {
                out.push_str(text);
            } else {
                quote(text, out);
            }
        }
        value => value.write(out),
    }
}
