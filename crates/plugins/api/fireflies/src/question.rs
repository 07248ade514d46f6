//! A question in GraphQL, and the errors that come for it. Values stand in the question itself: the documentation names other
//! types of variables than the schema has (`scope` is a `String`), and a value in its place fits both.

use crate::mapping::VENDOR_NAME;
use api_core::ServiceFault;
use api_core::http::Http;
use api_core::reading::{list, number, text};
use api_core::time;
use authority::text::{Lines, escape_within};
use llm_worker::ErrorKind;
use serde_json::{Value, json};
use std::fmt::Write;

/// Where the words of Fireflies are in an answer.
pub(crate) const WORDS: &[&str] = &["/errors/0/message", "/errors/0/code"];
/// The longest of these words, in bytes.
const MAX_WORDS: usize = 512;

pub(crate) const RENEW: &str =
    "the API key is wrong or expired: renew the secret that `token` names";

/// A kind of errors: the codes of Fireflies, and the next step.
struct Refusal(ErrorKind, &'static [&'static str], &'static str);

const REFUSALS: &[Refusal] = &[
    Refusal(ErrorKind::Denied, &["auth_failed"], RENEW),
    Refusal(
        ErrorKind::Denied,
        &["forbidden", "require_elevated_privilege", "not_in_team"],
        "the person of the API key may not do this: use that of an administrator",
    ),
    Refusal(
        ErrorKind::Denied,
        &["paid_required", "require_ai_credits", "account_cancelled"],
        "the plan of the account does not have this",
    ),
    Refusal(
        ErrorKind::FixInput,
        &["object_not_found"],
        "use an id from the list of meetings; the API key sees no others",
    ),
    Refusal(
        ErrorKind::Unavailable,
        &["internal_server_error", "INTERNAL_SERVER_ERROR"],
        "Fireflies has a fault: try later",
    ),
];

/// A field of the API with its arguments, and what is wanted of it.
pub(crate) struct Question {
    field: &'static str,
    arguments: String,
    wanted: &'static str,
}

impl Question {
    pub(crate) fn new(field: &'static str, wanted: &'static str) -> Self {
        Self {
            field,
            arguments: String::new(),
            wanted,
        }
    }

    /// Adds an argument: a text, a number or a list of texts, which JSON and GraphQL write alike.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let before = if self.arguments.is_empty() { "" } else { ", " };
        let value: Value = value.into();
        write!(self.arguments, "{before}{name}: {value}").ok();
        self
    }

    /// What tells it from other questions.
    pub(crate) fn text(&self) -> String {
        let arguments = match self.arguments.as_str() {
            "" => String::new(),
            arguments => format!("({arguments})"),
        };
        format!("{{ {}{arguments} {{ {} }} }}", self.field, self.wanted)
    }

    /// What is answered for the field.
    pub(crate) async fn ask(&self, http: &Http) -> Result<Value, ServiceFault> {
        let question = json!({ "query": self.text() });
        let mut body = http.ask("/graphql", &question).await?.body;
        let errors = list(&body, "/errors");
        if let Some(error) = errors.first() {
            return Err(refused(self.field, error));
        }
        let found = body
            .pointer_mut("/data")
            .and_then(|of| of.get_mut(self.field));
        match found.map(Value::take) {
            Some(found) if !found.is_null() => Ok(found),
            _ => Err(ServiceFault::new(
                ErrorKind::Corrupt,
                format!("{VENDOR_NAME} answered with no `{}`", self.field),
            )),
        }
    }
}

/// An error in an answer with 200. There may be several; the first one says most.
fn refused(field: &str, error: &Value) -> ServiceFault {
    let code = text(error, "/code").or_else(|| text(error, "/extensions/code"));
    let code = code.unwrap_or_default();
    let mut words = vec![text(error, "/message").unwrap_or_default(), code.clone()];
    let details = list(error, "/extensions/metadata/fields").iter();
    words.extend(details.filter_map(|of| text(of, "/message")));
    words.retain(|word| !word.is_empty());
    let words = escape_within(&words.join("; "), Lines::One, MAX_WORDS);
    let known = REFUSALS.iter().find(|of| of.1.contains(&code.as_str()));
    let (kind, step) = match known {
        Some(Refusal(kind, _, step)) => (*kind, (*step).to_owned()),
        None if code == "too_many_requests" => {
            let until = number(error, "/extensions/metadata/retryAfter").map(time::shown);
            let until = until.map_or("try later".to_owned(), |at| format!("try again at {at}"));
            let step = format!("the plan allows only so many requests a day or a minute: {until}");
            (ErrorKind::Retry, step)
        }
        None => (ErrorKind::FixInput, "change the arguments".to_owned()),
    };
    ServiceFault::new(
        kind,
        format!("{VENDOR_NAME} refused {field}: {words}; {step}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_place() {
        let question = Question::new("transcripts", "id")
            .with("keyword", "a\" ) { id } # \n\\ 错")
            .with("limit", 5)
            .with("participants", vec!["a@b.example"]);
        assert_eq!(
            question.text(),
            r#"{ transcripts(keyword: "a\" ) { id } # \n\\ 错", limit: 5, participants: ["a@b.example"]) { id } }"#
        );
        assert_eq!(Question::new("user", "name").text(), "{ user { name } }");
    }
}
