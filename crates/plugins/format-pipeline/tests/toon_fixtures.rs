//! The encoding tests of the TOON specification, one JSON object a line: version 4.0 of
//! <https://github.com/toon-format/spec> at c770bbed, tests/fixtures/encode, under the licence beside them. Its tests of
//! decoding have no counterpart: nothing of yoi reads TOON.

#![allow(
    clippy::unwrap_used,
    reason = "tests: a fixture that cannot be read is a failed test"
)]

use format_pipeline::json::Json;
use format_pipeline::toon::{Delimiter, encode};

/// Lines are indented by two spaces, and by nothing else.
const OTHER_INDENT: &str = "respects custom indent size option";

fn field<'v, 'a>(value: &'v Json<'a>, name: &str) -> Option<&'v Json<'a>> {
    let Json::Object(fields) = value else {
        return None;
    };
    fields.iter().find(|(of, _)| of == name).map(|(_, v)| v)
}

fn text<'v>(value: Option<&'v Json<'_>>) -> &'v str {
    match value {
        Some(Json::Text(text)) => text,
        other => panic!("{other:?} is no text"),
    }
}

#[test]
fn the_encoding_tests_of_the_specification() {
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in include_str!("toon/encode.jsonl").lines() {
        let test = Json::parse(line).unwrap();
        let name = text(field(&test, "name"));
        let delimiter = match field(&test, "options").and_then(|o| field(o, "delimiter")) {
            None => Delimiter::Comma,
            Some(given) => match text(Some(given)) {
                "," => Delimiter::Comma,
                "\t" => Delimiter::Tab,
                "|" => Delimiter::Pipe,
                other => panic!("{other:?}"),
            },
        };
        let wanted = text(field(&test, "expected"));
        match encode(field(&test, "input").unwrap(), delimiter, usize::MAX) {
            Some(got) if got == wanted => passed += 1,
            got => failed.push((name.to_owned(), wanted.to_owned(), got)),
        }
    }
    failed.retain(|(name, ..)| name != OTHER_INDENT);
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(passed, 172);
}
