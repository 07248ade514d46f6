//! TOON 4.0, the encoder: <https://github.com/toon-format/spec>. Written here because the crate `toon-format` switches
//! `serde_json` for the whole program to objects in the order of their fields, which changes digests of requests, and
//! because it rounds numbers of more than 17 digits. Nothing reads TOON back: it goes to a model, JSON is what is stored.

use crate::json::{Fields, Json, is_number, quote};
use std::collections::BTreeSet;

/// Objects with more fields are no rows: their names are compared in pairs.
const MAX_COLUMNS: usize = 512;

/// What separates the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// `,`
    Comma,
    /// A tab.
    Tab,
    /// `|`
    Pipe,
}

impl Delimiter {
    pub(crate) const fn char(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Tab => '\t',
            Self::Pipe => '|',
        }
    }

    /// Behind the length in a header.
    const fn sign(self) -> &'static str {
        match self {
            Self::Comma => "",
            Self::Tab => "\t",
            Self::Pipe => "|",
        }
    }
}

/// A value as TOON; none if a name stands twice in an object, which TOON does not allow. None beyond this
/// many bytes, too: deep values have more spaces than text. An empty object is an empty text.
pub fn encode(value: &Json<'_>, delimiter: Delimiter, limit: usize) -> Option<String> {
    if has_repeated_names(value) {
        return None;
    }
    let mut writer = Writer {
        delimiter,
        limit,
        out: String::new(),
    };
    match value {
        Json::List(items) => writer.list(None, items, 0),
        Json::Object(fields) => match columns_of_entries(fields) {
            Some(columns) => writer.entries(None, fields, &columns, 0, 1),
            None => writer.fields(fields, 0),
        },
        // A byte-order mark at the beginning would be removed.
        Json::Text(text) if text.starts_with('\u{feff}') => quote(text, &mut writer.out),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => writer.scalar(value),
    }
    (!writer.is_over()).then_some(writer.out)
}

/// Whether a name stands twice in one of the objects.
pub(crate) fn has_repeated_names(value: &Json<'_>) -> bool {
    match value {
        Json::List(items) => items.iter().any(has_repeated_names),
        Json::Object(fields) => {
            let repeated = match fields.as_slice() {
                [] | [_] => false,
                fields if fields.len() <= 8 => fields
                    .iter()
                    .enumerate()
                    .any(|(i, (name, _))| fields.iter().take(i).any(|(other, _)| other == name)),
                fields => {
                    let names: BTreeSet<&str> = fields.iter().map(|(name, _)| &**name).collect();
                    names.len() < fields.len()
                }
            };
            repeated || fields.iter().any(|(_, value)| has_repeated_names(value))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => false,
    }
}

/// A column of a table: a scalar in each row, or an object with the same columns in each row.
struct Column<'v> {
    name: &'v str,
    inner: Option<Vec<Column<'v>>>,
}

/// The columns of a list of uniform objects, if it is one.
fn columns_of_rows<'v>(items: &'v [Json<'_>]) -> Option<Vec<Column<'v>>> {
    let rows = items.iter().map(object).collect::<Option<Vec<_>>>()?;
    columns(&rows)
}

/// The columns of an object whose values are uniform objects, if it is one.
fn columns_of_entries<'v>(fields: &'v Fields<'_>) -> Option<Vec<Column<'v>>> {
    let rows = fields
        .iter()
        .map(|(_, value)| object(value))
        .collect::<Option<Vec<_>>>()?;
    if rows.len() < 2 { None } else { columns(&rows) }
}

fn object<'v, 'a>(value: &'v Json<'a>) -> Option<&'v Fields<'a>> {
    match value {
        Json::Object(fields) => Some(fields),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => None,
    }
}

fn columns<'v>(rows: &[&'v Fields<'_>]) -> Option<Vec<Column<'v>>> {
    let first: &'v Fields<'_> = rows.first()?;
    let is_table = (1..=MAX_COLUMNS).contains(&first.len());
    if !is_table || rows.iter().any(|row| row.len() != first.len()) {
        return None;
    }
    let mut all = Vec::with_capacity(first.len());
    for (at, (name, _)) in first.iter().enumerate() {
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            values.push(field(row, at, name)?);
        }
        let inner = if values.iter().all(|value| value.is_scalar()) {
            None
        } else {
            let inner = values.into_iter().map(object).collect::<Option<Vec<_>>>()?;
            Some(columns(&inner)?)
        };
        all.push(Column { name, inner });
    }
    Some(all)
}

/// The field of a name, which is mostly where it is in the first row.
fn field<'v, 'a>(row: &'v Fields<'a>, at: usize, name: &str) -> Option<&'v Json<'a>> {
    match row.get(at) {
        Some((same, value)) if same == name => Some(value),
        _ => row
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value),
    }
}

struct Writer {
    delimiter: Delimiter,
    /// Bytes, checked at each line.
    limit: usize,
    out: String,
}

impl Writer {
    fn is_over(&self) -> bool {
        self.out.len() > self.limit
    }

    /// Begins a line, two spaces per level.
    fn line(&mut self, depth: usize) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }

    fn key(&mut self, name: &str) {
        let first = name.bytes().next();
        let is_plain = first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
        if is_plain {
            self.out.push_str(name);
        } else {
            quote(name, &mut self.out);
        }
    }

    fn scalar(&mut self, value: &Json<'_>) {
        match value {
            Json::Number(digits) => self.out.push_str(&canonical(digits)),
            Json::Text(text) if !needs_quotes(text, self.delimiter.char()) => {
                self.out.push_str(text);
            }
            value => value.write(&mut self.out),
        }
    }

    fn fields(&mut self, fields: &Fields<'_>, depth: usize) {
        for (name, value) in fields {
            if self.is_over() {
                return;
            }
            self.line(depth);
            self.field(name, value, depth, depth + 1);
        }
    }

    /// A field on the line that was begun; what is inside of it stands at `inside`.
    fn field(&mut self, name: &str, value: &Json<'_>, depth: usize, inside: usize) {
        match value {
            Json::List(items) => self.list_at(Some(name), items, inside),
            Json::Object(fields) => match columns_of_entries(fields) {
                Some(columns) => self.entries(Some(name), fields, &columns, depth, inside),
                None => {
                    self.key(name);
                    self.out.push(':');
                    self.fields(fields, inside);
                }
            },
            scalar => {
                self.key(name);
                self.out.push_str(": ");
                self.scalar(scalar);
            }
        }
    }

    fn header(&mut self, name: Option<&str>, count: usize, mark: &str, columns: &[Column<'_>]) {
        if let Some(name) = name {
            self.key(name);
        }
        let sign = self.delimiter.sign();
        self.out.push_str(&format!("[{count}{mark}{sign}]"));
        if !columns.is_empty() {
            self.names(columns);
        }
        self.out.push(':');
    }

    fn names(&mut self, columns: &[Column<'_>]) {
        self.out.push('{');
        for (i, column) in columns.iter().enumerate() {
            if i > 0 {
                self.out.push(self.delimiter.char());
            }
            self.key(column.name);
            if let Some(inner) = &column.inner {
                self.names(inner);
            }
        }
        self.out.push('}');
    }

    fn list(&mut self, name: Option<&str>, items: &[Json<'_>], depth: usize) {
        self.line(depth);
        self.list_at(name, items, depth + 1);
    }

    /// A list on the line that was begun.
    fn list_at(&mut self, name: Option<&str>, items: &[Json<'_>], inside: usize) {
        if items.is_empty() {
            if let Some(name) = name {
                self.key(name);
                self.out.push_str(": ");
            }
            self.out.push_str("[]");
        } else if items.iter().all(Json::is_scalar) {
            self.header(name, items.len(), "", &[]);
            self.inline(items);
        } else if let Some(columns) = columns_of_rows(items) {
            self.header(name, items.len(), "", &columns);
            for row in items.iter().filter_map(object) {
                if self.is_over() {
                    return;
                }
                self.line(inside);
                self.cells(row, &columns, &mut true);
            }
        } else {
            self.header(name, items.len(), "", &[]);
            self.items(items, inside);
        }
    }

    fn inline(&mut self, items: &[Json<'_>]) {
        for (i, item) in items.iter().enumerate() {
            self.out
                .push(if i > 0 { self.delimiter.char() } else { ' ' });
            self.scalar(item);
        }
    }

    fn items(&mut self, items: &[Json<'_>], depth: usize) {
        for item in items {
            if self.is_over() {
                return;
            }
            self.line(depth);
            match item {
                Json::Object(fields) => {
                    self.out.push('-');
                    let Some(((name, value), rest)) = fields.split_first() else {
                        continue;
                    };
                    self.out.push(' ');
                    self.field(name, value, depth + 1, depth + 2);
                    for (name, value) in rest {
                        if self.is_over() {
                            return;
                        }
                        self.line(depth + 1);
                        self.field(name, value, depth + 1, depth + 2);
                    }
                }
                Json::List(inner) => {
                    self.out.push_str("- ");
                    self.header(None, inner.len(), "", &[]);
                    if inner.iter().all(Json::is_scalar) {
                        self.inline(inner);
                    } else {
                        self.items(inner, depth + 1);
                    }
                }
                scalar => {
                    self.out.push_str("- ");
                    self.scalar(scalar);
                }
            }
        }
    }

    /// An object of uniform objects: a row for each of its fields.
    fn entries(
        &mut self,
        name: Option<&str>,
        fields: &Fields<'_>,
        columns: &[Column<'_>],
        depth: usize,
        inside: usize,
    ) {
        if name.is_none() {
            self.line(depth);
        }
        self.header(name, fields.len(), ":", columns);
        for (name, value) in fields {
            if self.is_over() {
                return;
            }
            self.line(inside);
            self.key(name);
            self.out.push_str(": ");
            if let Some(row) = object(value) {
                self.cells(row, columns, &mut true);
            }
        }
    }

    fn cells(&mut self, row: &Fields<'_>, columns: &[Column<'_>], is_first: &mut bool) {
        for (at, column) in columns.iter().enumerate() {
            let value = field(row, at, column.name).unwrap_or(&Json::Null);
            match (&column.inner, value) {
                (Some(inner), Json::Object(fields)) => self.cells(fields, inner, is_first),
                (_, value) => {
                    if !std::mem::take(is_first) {
                        self.out.push(self.delimiter.char());
                    }
                    self.scalar(value);
                }
            }
        }
    }
}

/// Whether a reader would take the bare text for something else.
fn needs_quotes(text: &str, delimiter: char) -> bool {
    let is_special = |c: char| {
        c < ' ' || c == delimiter || matches!(c, ':' | '"' | '\\' | '[' | ']' | '{' | '}')
    };
    text.is_empty()
        || text.starts_with([' ', '\t', '-', '#'])
        || text.ends_with([' ', '\t'])
        || matches!(text, "null" | "true" | "false")
        || looks_like_a_number(text)
        || text.contains(is_special)
}

/// Numbers, also with a plus sign or zeros before them, as older readers take them.
fn looks_like_a_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let bare = unsigned.trim_start_matches('0');
    unsigned.starts_with(|c: char| c.is_ascii_digit())
        && (bare.is_empty() || is_number(bare) || is_number(&format!("0{bare}")))
}

/// A number without an exponent, a fraction of zeros or a negative zero; very large and very small ones keep an exponent.
fn canonical(digits: &str) -> String {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (sign, plain) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let Ok(exponent) = exponent.parse::<i32>() else {
        return digits.to_ascii_lowercase();
    };
    let all = format!("{whole}{fraction}");
    let leading = all.len() - all.trim_start_matches('0').len();
    let significant = all.trim_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    // Where the decimal point stands, counted from the first digit that is not zero.
    let point = i64::try_from(whole.len()).unwrap_or(0) + i64::from(exponent)
        - i64::try_from(leading).unwrap_or(0);
    let is_written_out = !digits.contains(['e', 'E']) && point > 0;
    if is_written_out || (-5..=21).contains(&point) {
        return format!("{sign}{}", written_out(significant, point));
    }
    let (first, rest) = significant.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{dot}{rest}e{:+}", point - 1)
}

fn written_out(significant: &str, point: i64) -> String {
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let length = i64::try_from(significant.len()).unwrap_or(0);
    match usize::try_from(point) {
        Ok(at @ 1..) => match significant.split_at_checked(at) {
            Some((whole, "")) => whole.to_owned(),
            Some((whole, fraction)) => format!("{whole}.{fraction}"),
            None => format!("{significant}{}", zeros(point - length)),
        },
        _ => format!("0.{}{significant}", zeros(-point)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_value() {
        for (digits, canonical_form) in [
            ("-0", "0"),
            ("-0.00", "0"),
            ("1.500", "1.5"),
            ("1e3", "1000"),
            ("1.25E-2", "0.0125"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("0.00000012", "1.2e-7"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("-12.5e30", "-1.25e+31"),
            (
                "12345678901234567890123456789",
                "12345678901234567890123456789",
            ),
            ("0.12345678901234567890123", "0.12345678901234567890123"),
            ("1E99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(canonical(digits), canonical_form, "{digits}");
        }
    }

    #[test]
    fn a_repeated_name_has_no_form() {
        let of = |text| Json::parse(text).and_then(|json| encode(&json, Delimiter::Comma, 100));
        assert_eq!(of("{\"a\":[{\"b\":1,\"b\":2}]}"), None);
        assert_eq!(
            of("{\"a\":[{\"b\":1,\"c\":2}]}").as_deref(),
            Some("a[1]{b,c}:\n  1,2")
        );
    }
}
