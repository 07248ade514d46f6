//! What servers ask people in a call: the form of a question, which answers a yes to it has, and in the older era what is said
//! while the call runs.

use authority::text::{Lines, escape_line, escape_within};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The longest text of a question, in bytes.
const MAX_TEXT: usize = 1 << 10;

/// Most questions of one call.
const MAX_ASKED: usize = 8;

/// Names a question, or a call.
pub(crate) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// What a client can be asked.
pub(crate) fn capability() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

/// The method that asks.
pub(crate) const METHOD: &str = "elicitation/create";

/// The questions of one call that have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct Elicited {
    /// By the server's names, or in the older era by their digest.
    pub(crate) questions: BTreeMap<String, Value>,
    pub(crate) state: Option<String>,
}

impl Elicited {
    /// Those of a result that asks for input.
    ///
    /// # Errors
    /// It asks for something else than an answer of a person.
    pub(crate) fn of(result: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Input {
            method: String,
            #[serde(default)]
            params: Value,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Required {
            #[serde(default)]
            input_requests: BTreeMap<String, Input>,
            #[serde(default)]
            request_state: Option<String>,
        }
        let Ok(of) = serde_json::from_str::<Required>(result) else {
            return Err("its question cannot be read".to_owned());
        };
        if of.input_requests.len() > MAX_ASKED {
            return Err(format!("it asks over {MAX_ASKED} questions at once"));
        }
        let mut questions = BTreeMap::new();
        for (name, input) in of.input_requests {
            if input.method != METHOD {
                let method = escape_within(&input.method, Lines::One, MAX_TEXT);
                return Err(format!("it asks for `{method}`, which yoi does not offer"));
            }
            questions.insert(name, input.params);
        }
        match questions.is_empty() && of.request_state.is_none() {
            true => Err("it says neither what it asks nor how to go on".to_owned()),
            false => Ok(Self {
                questions,
                state: of.request_state,
            }),
        }
    }
}

/// A question as a person reads it, and what the server gets if the person agrees.
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) answer: Value,
}

impl Prompt {
    /// # Errors
    /// Yes or no is no answer to it, or it is too long to be shown whole.
    pub(crate) fn of(params: &Value) -> Result<Self, String> {
        let text = |key: &str| {
            let text = params.get(key).and_then(Value::as_str);
            text.map(whole).transpose()
        };
        let message = text("message")?.unwrap_or_default();
        if params.get("mode").is_some_and(|mode| mode == "url") {
            let url = text("url")?.ok_or("it names no address")?;
            return Ok(Self {
                text: format!("{message} (at {url}; allow it when that is done)"),
                answer: json!({ "action": "accept" }),
            });
        }
        let content = agreement(params.get("requestedSchema").unwrap_or(&Value::Null))
            .map_err(|what| format!("`{message}` wants {what}"))?;
        let sent = Value::Object(content.clone()).to_string();
        Ok(Self {
            text: match content.is_empty() {
                true => message,
                false => format!("{message} (to allow it answers {})", whole(&sent)?),
            },
            answer: json!({ "action": "accept", "content": content }),
        })
    }
}

/// A text of a question in one line. A person who sees a part of it would agree to all of it.
fn whole(text: &str) -> Result<String, String> {
    let line = escape_line(text);
    match line.len() > MAX_TEXT {
        true => Err("it is too long to be shown whole".to_owned()),
        false => Ok(line.into_owned()),
    }
}

/// The values of a form if a person agrees to it: yes for what is asked as yes or no, and what the form itself proposes.
fn agreement(schema: &Value) -> Result<Map<String, Value>, String> {
    let mut content = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|of| of == name));
    for (name, field) in fields.into_iter().flatten() {
        let only = field.get("enum").and_then(Value::as_array);
        let only = only.filter(|of| of.len() == 1).and_then(|of| of.first());
        let value = match (field.get("default"), field.get("const").or(only)) {
            (_, Some(value)) => Some(value.clone()),
            // The form does without it, and proposes no.
            (Some(Value::Bool(false)), None) if !is_required(name) => Some(Value::Bool(false)),
            _ if field.get("type").is_some_and(|of| of == "boolean") => Some(Value::Bool(true)),
            (default, None) => default.cloned(),
        };
        match value {
            Some(value) => drop(content.insert(name.clone(), value)),
            None if is_required(name) => {
                let name = escape_within(name, Lines::One, MAX_TEXT);
                return Err(format!("a value for `{name}`"));
            }
            None => {}
        }
    }
    Ok(content)
}

/// What is said to a server of the older era while a call runs.
#[derive(Debug, Default)]
pub(crate) struct Agreed {
    /// Answers that a person allowed, by the digest of the question; each is given once.
    answers: BTreeMap<String, Value>,
    /// What else was asked.
    open: BTreeMap<String, Value>,
}

impl Agreed {
    pub(crate) fn new(answers: BTreeMap<String, Value>) -> Self {
        Self {
            answers,
            open: BTreeMap::new(),
        }
    }

    /// The answer to a question; without one, the server is told that nobody answered.
    pub(crate) fn answer(&mut self, params: &Value) -> Value {
        let question = digest(&params.to_string());
        if let Some(answer) = self.answers.remove(&question) {
            return answer;
        }
        if self.open.len() < MAX_ASKED {
            self.open.insert(question, params.clone());
        }
        json!({ "action": "cancel" })
    }

    /// What was asked without an answer, if anything.
    pub(crate) fn open(self) -> Option<Elicited> {
        (!self.open.is_empty()).then_some(Elicited {
            questions: self.open,
            state: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_said_for_a_person() {
        let form =
            |schema: Value| Prompt::of(&json!({ "message": "Go on?", "requestedSchema": schema }));
        for (schema, answers) in [
            (json!({}), json!({})),
            (
                json!({ "properties": { "ok": { "type": "boolean", "default": false } } }),
                json!({ "ok": false }),
            ),
            (
                json!({ "properties": { "ok": { "type": "boolean", "default": false } }, "required": ["ok"] }),
                json!({ "ok": true }),
            ),
            (
                json!({ "properties": { "n": { "type": "integer", "default": 3 } }, "required": ["n"] }),
                json!({ "n": 3 }),
            ),
            (
                json!({ "properties": { "as": { "enum": ["me"] } } }),
                json!({ "as": "me" }),
            ),
            (
                json!({ "properties": { "note": { "type": "string" } } }),
                json!({}),
            ),
        ] {
            assert_eq!(
                form(schema.clone())
                    .ok()
                    .map(|of| of.answer["content"].clone()),
                Some(answers),
                "{schema}"
            );
        }
        for schema in [
            json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] }),
            json!({ "properties": { "of": { "enum": ["a", "b"] } }, "required": ["of"] }),
        ] {
            let why = form(schema).err().unwrap();
            assert!(why.contains("wants a value for"), "{why}");
        }
        let shown = form(json!({ "properties": { "ok": { "type": "boolean" } } }))
            .ok()
            .unwrap();
        assert_eq!(shown.text, r#"Go on? (to allow it answers {"ok":true})"#);
    }

    #[test]
    fn what_is_shown_in_part_is_not_asked() {
        let long = "x".repeat(MAX_TEXT + 1);
        for question in [
            json!({ "message": long }),
            // It is longer as it is shown.
            json!({ "message": "\n".repeat(MAX_TEXT) }),
            json!({ "mode": "url", "message": "Go there.", "url": long }),
            json!({ "message": "Go on?", "requestedSchema": { "properties": { "as": { "const": long } } } }),
        ] {
            let why = Prompt::of(&question).err();
            assert_eq!(why.as_deref(), Some("it is too long to be shown whole"));
        }
        let fits = "x".repeat(MAX_TEXT);
        let shown = Prompt::of(&json!({ "message": fits })).ok().unwrap();
        assert_eq!(shown.text, fits);
    }

    #[test]
    fn an_answer_is_given_once_and_to_its_question() {
        let question = json!({ "message": "Delete all?" });
        let key = digest(&question.to_string());
        let yes = json!({ "action": "accept" });
        let mut agreed = Agreed::new([(key, yes.clone())].into());
        let no = json!({ "action": "cancel" });
        assert_eq!(agreed.answer(&json!({ "message": "Delete more?" })), no);
        assert_eq!(agreed.answer(&question), yes);
        assert_eq!(agreed.answer(&question), no);
        assert_eq!(agreed.open().unwrap().questions.len(), 2);
    }
}
