//! The form of an answer: a JSON Schema that it has to fit. Does not depend on turns.

use pod::schema::Schema;
use serde_json::Value;

/// A schema that an answer has to fit.
pub struct AnswerSchema(Schema);

impl AnswerSchema {
    /// Compiles a schema. What it refers to must be in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(schema: Value) -> Result<Self, String> {
        Schema::compile(schema).map(Self)
    }

    /// Reads an answer: the document, as the model wrote it, and as it reads.
    ///
    /// # Errors
    /// What is wrong with it, a line each.
    pub fn read<'a>(&self, answer: &'a str) -> Result<(&'a str, Value), Vec<String>> {
        let text = unfenced(answer);
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return Err(vec![format!("it is not one JSON document: {error}")]),
        };
        self.0.check(&value).map(|()| (text, value))
    }
}

/// The words that tell a model what is wrong with its answer.
#[must_use]
pub(super) fn correcting(problems: &[String]) -> String {
    let problems: Vec<String> = problems
        .iter()
        .map(|problem| format!("- {problem}"))
        .collect();
    format!(
        "The last answer does not fit the JSON Schema it must be valid against:\n{}\nAnswer with the whole corrected \
         JSON document and nothing else.",
        problems.join("\n")
    )
}

/// The answer without a byte order mark and without a code fence, if it is one block in a fence and nothing else.
fn unfenced(answer: &str) -> &str {
    const FENCE: &str = "```";
    let answer = answer.trim().trim_start_matches('\u{feff}').trim();
    let inside = answer
        .strip_prefix(FENCE)
        .and_then(|rest| rest.strip_suffix(FENCE));
    let block = inside
        .and_then(|inside| inside.split_once('\n'))
        .filter(|(language, block)| {
            (language.trim().is_empty() || language.trim().eq_ignore_ascii_case("json"))
                && !block.contains(FENCE)
        });
    block.map_or(answer, |(_, block)| block.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_whole_answer_in_one_fence_is_taken_out_of_it() {
        let cases = [
            ("{}", "{}"),
            (" \n{}\n", "{}"),
            ("```\n{}\n```", "{}"),
            ("```json\n{\"a\":1}\n```\n", "{\"a\":1}"),
            ("``` JSON \n[]\n```", "[]"),
            ("Here: ```json\n{}\n```", "Here: ```json\n{}\n```"),
            ("```json\n{}\n```\nDone.", "```json\n{}\n```\nDone."),
            (
                "```json\n{}\n```\nand\n```json\n{}\n```",
                "```json\n{}\n```\nand\n```json\n{}\n```",
            ),
            ("```rust\n{}\n```", "```rust\n{}\n```"),
            ("```{}```", "```{}```"),
            ("```", "```"),
            ("\u{feff}{}", "{}"),
            (" \u{feff}\n{} ", "{}"),
            ("\u{feff}```json\n{}\n```", "{}"),
            ("{}\u{feff}", "{}\u{feff}"),
        ];
        for (answer, expected) in cases {
            assert_eq!(unfenced(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn what_fits_is_the_text_and_what_does_not_is_told_by_its_place() {
        let schema = AnswerSchema::of(json!({
            "type": "object", "required": ["n", "tags"], "additionalProperties": false,
            "properties": { "n": { "$ref": "#/$defs/count" }, "tags": { "type": "array", "items": { "enum": ["a", "b"] } } },
            "$defs": { "count": { "type": "integer", "minimum": 1 } },
        }))
        .unwrap();
        let text = "{\"n\": 1e0, \"tags\": [\"a\"]}";
        assert!(
            schema
                .read(text)
                .is_ok_and(|(as_it_is, _)| as_it_is == text)
        );
        let cases = [
            ("{}", "the properties `n`, `tags` are missing"),
            ("{\"n\":0,\"tags\":[]}", "/n: "),
            ("{\"n\":1.5,\"tags\":[]}", "/n: want integer"),
            (
                "{\"n\":1,\"tags\":[\"a\",\"c\"]}",
                "/tags/1: value must be one of",
            ),
            ("{\"n\":1,\"tags\":[],\"x\":1}", "additionalProperties 'x'"),
            ("[1]", "want object"),
            ("{\"n\":1,\"tags\":[]} and more", "not one JSON document"),
            ("n is 1", "not one JSON document"),
            ("", "not one JSON document"),
        ];
        for (answer, says) in cases {
            let Err(problems) = schema.read(answer) else {
                panic!("{answer} fits")
            };
            assert!(
                problems.iter().any(|problem| problem.contains(says)),
                "{answer}: {problems:?}"
            );
        }
        let many = json!({ "n": 1, "tags": vec!["c"; 100] }).to_string();
        let Err(problems) = schema.read(&many) else {
            panic!("it fits")
        };
        assert_eq!(
            (problems.len(), problems.last().map(String::as_str)),
            (8 + 1, Some("and 92 more"))
        );
        let long = format!("[\"{}\"]", "x".repeat(9_000));
        let any = AnswerSchema::of(json!({ "items": { "pattern": "^y" } })).unwrap();
        let Err(problems) = any.read(&long) else {
            panic!("it fits")
        };
        assert!(problems[0].chars().count() == 240 + 1, "{problems:?}");
    }

    #[test]
    fn a_schema_that_is_none_or_reaches_out_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{}").unwrap();
        let url = format!("file://{}", file.path().display());
        let cases = [
            (json!([]), "not a JSON Schema"),
            (json!({ "type": "nothing" }), "not a JSON Schema"),
            (
                json!({ "$ref": "https://example.org/x.json" }),
                "refers to https://example.org/x.json",
            ),
            (json!({ "$ref": url }), "not loaded"),
            (
                json!({ "$ref": "other.json" }),
                "refers to schema:/other.json",
            ),
            (
                json!({ "$schema": "https://example.org/own" }),
                "https://example.org/own",
            ),
            (json!({ "$ref": "#/$defs/none" }), "$defs/none"),
            (json!({ "pattern": "(" }), "regex"),
        ];
        for (schema, says) in cases {
            let Err(told) = AnswerSchema::of(schema.clone()) else {
                panic!("{schema} is taken")
            };
            assert!(told.contains(says), "{schema}: {told}");
        }
        assert!(AnswerSchema::of(json!(true)).is_ok());
        assert!(
            AnswerSchema::of(
                json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "null" })
            )
            .is_ok()
        );
    }
}
