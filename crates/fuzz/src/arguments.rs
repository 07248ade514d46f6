//! Raw arguments of a call.

use llm_worker::tool::parse_arguments;
use serde::{Deserialize, Serialize};

/// A bit of all that tools' arguments are made of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default)]
    edits: Vec<Edit>,
    offset: Option<u64>,
    #[serde(default)]
    mode: Mode,
    ratio: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Files,
    Count,
}

/// What is judged and shown is what runs: the canonical form means the same and is its own canonical form.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok((first, canonical)) = parse_arguments::<Arguments>("Try", &text) else {
        return;
    };
    match parse_arguments::<Arguments>("Try", &canonical) {
        Ok((second, again)) => {
            assert_eq!(first, second, "{canonical}");
            assert_eq!(canonical, again);
            // Sorted, without spaces, each key once.
            let value: serde_json::Value = serde_json::from_str(&canonical).expect("JSON");
            assert_eq!(value.to_string(), *canonical);
        }
        Err(error) => panic!("the canonical form {canonical} is refused: {error:?}"),
    }
}
