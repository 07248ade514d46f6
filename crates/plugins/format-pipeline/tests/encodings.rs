//! The chosen text never costs more than JSON without spaces, far less than what was sent, and has every field.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests: what cannot be read is a failed test"
)]

mod corpus;

use format_pipeline::encoding::{Encoding, cheapest};
use format_pipeline::json::Json;
use format_pipeline::table;
use format_pipeline::token_counter::TokenCounter;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn a_corpus_of_two_thousand_results() {
    let counter = TokenCounter::unmeasured();
    let mut sent = 0;
    let mut shown = 0;
    let mut chosen = BTreeMap::new();
    for sample in corpus::samples(2000) {
        let value = Json::parse(&sample.sent).unwrap();
        let best = cheapest(&value, counter);
        assert!(
            best.tokens <= counter.count(&value.compact()),
            "{}",
            sample.tool
        );
        assert_eq!(best.tokens, counter.count(&best.text), "{}", sample.tool);
        sent += counter.count(&sample.sent);
        shown += best.tokens;
        *chosen.entry(best.encoding).or_insert(0) += 1;
    }
    assert!(
        shown * 100 <= sent * 70,
        "{shown} of {sent} tokens; {chosen:?}"
    );
    assert!(chosen.len() > 2, "{chosen:?}");
}

/// What a reader of our lines and tables understands, as JSON: so nothing is lost and no type is changed.
mod reader {
    use serde_json::{Map, Value, from_str};

    pub(crate) fn cell(text: &str) -> Value {
        from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    }

    pub(crate) fn put(at: &mut Map<String, Value>, path: &str, value: Value) {
        match path.split_once('.') {
            None => assert_eq!(at.insert(path.to_owned(), value), None, "{path} twice"),
            Some((first, rest)) => {
                let inner = at.entry(first).or_insert_with(|| Map::new().into());
                put(inner.as_object_mut().unwrap(), rest, value);
            }
        }
    }

    /// Splits at separators that do not stand in JSON.
    fn split(line: &str, separator: char) -> Vec<&str> {
        let mut cells = Vec::new();
        let mut from = 0;
        while let Some(rest) = line.get(from..) {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let is_json = rest.starts_with(['"', '[', '{']) && matches!(values.next(), Some(Ok(_)));
            let skip = if is_json { values.byte_offset() } else { 0 };
            let end = rest[skip..]
                .find(separator)
                .map_or(rest.len(), |at| skip + at);
            cells.push(&rest[..end]);
            from += end + 1;
        }
        cells
    }

    pub(crate) fn table<'a>(lines: &mut impl Iterator<Item = &'a str>, rows: usize) -> Value {
        let header = lines.next().unwrap();
        let separator = if header.contains('\t') { '\t' } else { ',' };
        let columns: Vec<&str> = header.split(separator).collect();
        let row = |line: &str| {
            let mut fields = Map::new();
            let cells = split(line, separator);
            assert_eq!(cells.len(), columns.len(), "{line:?}");
            for (column, text) in columns.iter().zip(cells) {
                if !text.is_empty() {
                    put(&mut fields, column, cell(text));
                }
            }
            Value::Object(fields)
        };
        lines.take(rows).map(row).collect()
    }

    pub(crate) fn lines(text: &str) -> Value {
        let mut fields = Map::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some((path, rows)) = line
                .strip_suffix(" rows):")
                .and_then(|l| l.split_once(" ("))
            {
                let rows = table(&mut lines, rows.parse().unwrap());
                put(&mut fields, path, rows);
            } else {
                let (path, text) = line.split_once(": ").unwrap();
                put(&mut fields, path, cell(text));
            }
        }
        fields.into()
    }
}

fn same(sent: &str) -> Result<bool, TestCaseError> {
    let value = Json::parse(sent).unwrap();
    let wanted: serde_json::Value = serde_json::from_str(sent).unwrap();
    let rows = wanted.as_array().map_or(0, Vec::len);
    let csv = table::csv(&value, usize::MAX).map(|text| reader::table(&mut text.lines(), rows));
    let lines = table::key_value(&value, usize::MAX).map(|text| reader::lines(&text));
    let compact: serde_json::Value = serde_json::from_str(&value.compact()).unwrap();
    prop_assert_eq!(&compact, &wanted);
    let is_read = csv.is_some() || lines.is_some();
    for read in [csv, lines].into_iter().flatten() {
        prop_assert_eq!(&read, &wanted);
    }
    Ok(is_read)
}

#[test]
fn tables_and_lines_of_the_corpus_are_read_back() {
    let read = corpus::samples(300)
        .iter()
        .filter(|s| same(&s.sent).unwrap())
        .count();
    assert_eq!(read, 300);
}

#[test]
fn an_empty_value_is_never_an_empty_text() {
    for sent in [
        "{}",
        "[]",
        "\"\"",
        "[{}]",
        "{\"a\":{}}",
        "[\"\"]",
        "null",
        "[[]]",
        "{\"\":\"\"}",
        "[{},{}]",
        "[{\"a\":\"\"}]",
    ] {
        let value = Json::parse(sent).unwrap();
        for encoding in [
            Encoding::Json,
            Encoding::Toon,
            Encoding::Csv,
            Encoding::KeyValue,
        ] {
            if let Some(text) = encoding.text(&value, usize::MAX) {
                let body = text.strip_prefix(encoding.label()).unwrap();
                assert!(!body.trim().is_empty(), "{encoding:?} of {sent}");
            }
        }
        same(sent).unwrap();
    }
}

/// Before there were limits, 128 MB for the first one.
#[test]
fn a_text_much_longer_than_json_is_not_built() {
    let leaves: Vec<String> = (0..2000).map(|i| format!("\"{i}\":{i}")).collect();
    let below = |key: String| format!("{{\"{key}\":{{{}}}}}", leaves.join(","));
    let rows = |key: String| {
        let row = below(key);
        format!("[{row},{row}]")
    };
    let deep = format!(
        "{}{}1{}",
        "[".repeat(100),
        "1,[1],".repeat(2000),
        "]".repeat(100)
    );
    for (name, sent) in [
        ("a long name", below("k".repeat(64 * 1024))),
        ("a name below the limit", below("k".repeat(200))),
        ("rows of a long name", rows("k".repeat(64 * 1024))),
        ("rows of a name below the limit", rows("k".repeat(200))),
        ("spaces", deep),
    ] {
        let value = Json::parse(&sent).unwrap();
        let limit = 2 * sent.len();
        for encoding in [Encoding::Toon, Encoding::Csv, Encoding::KeyValue] {
            let text = encoding.text(&value, limit);
            let length = text.map_or(0, |text| text.len());
            assert!(length <= limit + 64, "{name}: {encoding:?} has {length}");
            assert!(
                length == 0 || encoding == Encoding::Toon && name != "spaces",
                "{name}: {encoding:?}"
            );
        }
        let best = cheapest(&value, TokenCounter::unmeasured());
        assert_eq!(best.encoding, Encoding::Json, "{name}");
        assert_eq!(best.text, sent, "{name}");
    }
}

fn scalar() -> impl Strategy<Value = serde_json::Value> {
    let texts = prop_oneof![
        "[a-z,: \t\"\\\\\n\\[{#-]{0,8}",
        "\\PC{0,6}",
        "-?[0-9]{1,3}(\\.[0-9])?",
        Just("null".to_owned()),
        Just("\u{1}\r\n".to_owned()),
    ];
    prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map_into(),
        any::<i64>().prop_map_into(),
        texts.prop_map_into(),
    ]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let name = prop_oneof![5 => "[a-d]", 1 => "\\PC{0,3}"];
    scalar().prop_recursive(4, 40, 5, move |inner| {
        let fields = prop::collection::btree_map(name.clone(), inner.clone(), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map_into(),
            fields.prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn tables_and_lines_are_read_back(value in value()) {
        same(&value.to_string())?;
        same(&serde_json::to_string_pretty(&value).unwrap())?;
    }

    #[test]
    fn no_text_costs_more_than_json(value in value()) {
        let sent = value.to_string();
        let value = Json::parse(&sent).unwrap();
        let counter = TokenCounter::unmeasured();
        let best = cheapest(&value, counter);
        prop_assert!(best.tokens <= counter.count(&sent));
        prop_assert!(!best.text.is_empty());
    }
}
