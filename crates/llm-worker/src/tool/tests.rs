//! Arguments and schemas, as tables.

use super::{ArgumentError, canonical_schema, parse_arguments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Args {
    /// Where.
    path: String,
    #[serde(default = "forty")]
    limit: u32,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    edits: Vec<Edit>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Edit {
    old: String,
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Fast,
    Slow,
}

fn forty() -> u32 {
    40
}

#[derive(Debug, Serialize, Deserialize)]
struct Nothing {}

#[test]
fn good_arguments_come_back_canonical_with_defaults() {
    let raw = " {\"title\":null, \"path\" : \"a\\u00e9\\n\", \"edits\":[{\"old\":\"x\"}] }\n";
    let (args, canonical) = parse_arguments::<Args>("Edit", raw).unwrap();
    assert_eq!(args.limit, 40);
    assert_eq!(
        args.edits,
        [Edit {
            old: "x".into(),
            all: false
        }]
    );
    assert_eq!(
        &*canonical,
        r#"{"edits":[{"all":false,"old":"x"}],"env":{},"limit":40,"mode":"fast","path":"aé\n","title":null}"#
    );
    let (_, again) = parse_arguments::<Args>("Edit", &canonical).unwrap();
    assert_eq!(again, canonical, "canonical text is its own canonical text");
    assert_eq!(&*parse_arguments::<Nothing>("N", "{}").unwrap().1, "{}");
}

// codex#33452, warp#10596: models write `3.0` and `1e3` where the schema says `integer`; 3.0 is an integer in JSON Schema.
// What a number is must not depend on how it is written, nor lose digits on its way.
#[test]
fn a_whole_number_is_an_integer_with_all_of_its_digits() {
    let table = [
        ("3.0", "3"),
        ("5e0", "5"),
        ("1e3", "1000"),
        ("1E+3", "1000"),
        ("10e-1", "1"),
        ("1.50e1", "15"),
        ("12.300e2", "1230"),
        ("-7.00", "-7"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("0e99999999999999999999", "0"),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740993.0", "9007199254740993"),
        ("18446744073709551616", "18446744073709551616"),
        (
            "-123456789012345678901234567890",
            "-123456789012345678901234567890",
        ),
        ("1.2345678901234567890123e22", "12345678901234567890123"),
        ("1.5", "1.5"),
        ("0.10", "0.1"),
        ("15e-1", "1.5"),
        ("1e-7", "1e-7"),
        ("1e300", "1e+300"),
    ];
    for (written, read) in table {
        let raw = format!("{{\"n\": [{written}], \"a\":{{\"m\":{written}}}}}");
        let (_, text) =
            parse_arguments::<serde_json::Map<String, serde_json::Value>>("T", &raw).unwrap();
        assert_eq!(
            &*text,
            format!("{{\"a\":{{\"m\":{read}}},\"n\":[{read}]}}"),
            "{written}"
        );
        let again = parse_arguments::<serde_json::Map<String, serde_json::Value>>("T", &text)
            .unwrap()
            .1;
        assert_eq!(again, text);
    }
    for (written, limit) in [("7.0", 7), ("5e0", 5), ("4.2e1", 42), ("-0", 0), ("0.0", 0)] {
        let raw = format!("{{\"path\":\"3.0\",\"limit\":{written}}}");
        let (args, text) = parse_arguments::<Args>("T", &raw).unwrap();
        assert_eq!(
            (args.limit, args.path.as_str()),
            (limit, "3.0"),
            "{written}"
        );
        assert!(text.contains(&format!("\"limit\":{limit},")), "{text}");
    }
    for written in ["1.5", "-1.0", "4294967296.0", "1e300", "1e999"] {
        let raw = format!("{{\"path\":\"a\",\"limit\":{written}}}");
        assert!(parse_arguments::<Args>("T", &raw).is_err(), "{written}");
    }
    let deep = format!("{}{{\"n\":3.0}}{}", "{\"x\":".repeat(100), "}".repeat(100));
    let (_, text) =
        parse_arguments::<serde_json::Map<String, serde_json::Value>>("T", &deep).unwrap();
    assert!(text.contains("{\"n\":3}"));
}

#[test]
fn bad_arguments_name_the_place_and_what_was_expected() {
    let cases: &[(&str, &[&str])] = &[
        ("", &["expected a JSON object, but the text is cut off"]),
        (
            "{\"path\":\"a",
            &["expected a JSON object, but the text is cut off"],
        ),
        (
            "{path:1}",
            &["expected a JSON object, but this is not JSON: key must be a string at line 1"],
        ),
        (
            "{\"path\":\"a\"} {}",
            &["expected a JSON object, but this is not JSON: trailing characters"],
        ),
        ("[\"a\"]", &["expected an object, found an array"]),
        ("\"{}\"", &["expected an object, found a string"]),
        ("null", &["expected an object, found null"]),
        ("12.5", &["expected an object, found a number"]),
        ("-3", &["expected an object, found a number"]),
        ("true", &["expected an object, found a boolean"]),
        ("{}", &["missing field `path`"]),
        (
            "{\"path\":7}",
            &["/path: invalid type: integer `7`, expected a string"],
        ),
        (
            "{\"path\":\"a\",\"limit\":-1}",
            &["/limit: invalid value: integer `-1`, expected u32"],
        ),
        (
            "{\"path\":\"a\",\"edits\":[{\"old\":\"x\"},{\"old\":1}]}",
            &["/edits/1/old: invalid type: integer `1`"],
        ),
        (
            "{\"path\":\"a\",\"edits\":[[\"x\",true]]}",
            &["/edits/0: expected an object, found an array"],
        ),
        (
            "{\"path\":\"a\",\"mode\":\"quick\"}",
            &[
                "/mode",
                "unknown variant `quick`, expected `fast` or `slow`",
            ],
        ),
        (
            "{\"path\":\"a\",\"paths\":1}",
            &["/paths: unknown field; expected path, limit, title, edits, mode, env"],
        ),
        (
            "{\"path\":\"a\",\"edits\":[{\"old\":\"x\",\"a/b~c\":1}]}",
            &["/edits/0/a~1b~0c: unknown field"],
        ),
        (
            "{\"path\":\"a\",\"path\":\"b\"}",
            &["/path: the key occurs twice"],
        ),
        (
            "{\"path\":\"a\",\"env\":{\"A\":\"1\",\"\\u0041\":\"2\"}}",
            &["/env/A: the key occurs twice"],
        ),
        (
            "{\"path\":\"a\",\"edits\":[{\"old\":\"x\",\"old\":\"x\"}]}",
            &["/edits/0/old: the key occurs twice"],
        ),
        (
            "{\"path\":\"a\",\"x\":{\"y\":1,\"y\":2}}",
            &["/x/y: the key occurs twice"],
        ),
    ];
    for (raw, wanted) in cases {
        let error = parse_arguments::<Args>("Edit", raw).expect_err(raw);
        let text = error.to_string();
        assert!(
            text.starts_with("arguments do not fit Edit: "),
            "{raw}: {text}"
        );
        for part in *wanted {
            assert!(text.contains(part), "{raw}: {text}\nwanted {part}");
        }
    }
}

/// A model that sent `"escalate": "network"` was told "expected struct Escalate", which it cannot look up.
#[test]
fn a_value_of_another_type_is_told_the_shape_with_an_example() {
    let long = format!("{{\"path\":\"a\",\"edits\":\"{}\"}}", "x".repeat(400));
    let table = [
        (
            r#"{"path":"a","edits":"x"}"#,
            r#"/edits: invalid type: string "x", expected an array such as [{"old":"…"}]"#,
        ),
        (
            r#"{"path":"a","edits":["x"]}"#,
            r#"/edits/0: invalid type: string "x", expected an object such as {"old":"…"}"#,
        ),
        (
            r#"{"path":"a","mode":3}"#,
            r#"/mode: expected one of ["fast","slow"]"#,
        ),
        (
            r#"{"path":"a","mode":["fast"]}"#,
            r#"expected one of ["fast","slow"]"#,
        ),
        (
            r#"{"path":"a","env":"A=1"}"#,
            r#"/env: invalid type: string "A=1", expected an object such as {}"#,
        ),
        (
            r#"{"path":"a","limit":"1"}"#,
            r#"/limit: invalid type: string "1", expected a number such as 1"#,
        ),
        (
            r#"{"path":"a","limit":-1}"#,
            "/limit: invalid value: integer `-1`, expected a number such as 1",
        ),
        (&long, r#"…expected an array such as [{"old":"…"}]"#),
    ];
    for (raw, wanted) in table {
        let error = parse_arguments::<Args>("Edit", raw)
            .unwrap_err()
            .in_words_of(&canonical_schema::<Args>());
        assert!(error.to_string().contains(wanted), "{raw}: {error}");
    }
}

#[test]
fn an_error_is_bounded_whatever_the_model_wrote() {
    let many: String = (0..500).map(|n| format!(",\"x{n}\":1")).collect();
    let error = parse_arguments::<Args>("Edit", &format!("{{\"path\":\"a\"{many}}}")).unwrap_err();
    assert_eq!(error.problems.len(), ArgumentError::MAX_PROBLEMS);
    let long = "é".repeat(100_000);
    let error =
        parse_arguments::<Args>("Edit", &format!("{{\"path\":\"a\",\"limit\":\"{long}\"}}"))
            .unwrap_err();
    assert!(error.to_string().len() < 400, "{}", error.to_string().len());
    let deep = format!("{{\"path\":{}", "[".repeat(5_000));
    assert!(parse_arguments::<Args>("Edit", &deep).is_err());
}

#[test]
fn a_schema_is_canonical_and_small() {
    assert_eq!(
        &*canonical_schema::<Args>(),
        concat!(
            r#"{"properties":{"edits":{"default":[],"items":{"properties":{"all":{"default":false,"type":"boolean"},"#,
            r#""old":{"type":"string"}},"required":["old"],"type":"object"},"type":"array"},"#,
            r#""env":{"additionalProperties":{"type":"string"},"default":{},"type":"object"},"#,
            r#""limit":{"default":40,"minimum":0,"type":"integer"},"#,
            r#""mode":{"default":"fast","enum":["fast","slow"],"type":"string"},"#,
            r#""path":{"description":"Where.","type":"string"},"title":{"type":["string","null"]}},"#,
            r#""required":["path"],"type":"object"}"#
        )
    );
}
