//! A question about a call as a person at a terminal sees it, and what may be typed as its answer. Does not depend on how
//! an answer is sent.

use super::terminal::{Terminal, TypedLine};
use pod::permission::Rule;
use pod::record::ProposedRule;
use protocol::method::AllowScope;
use protocol::record::ApprovalRequested;
use serde_json::Value;

/// An answer of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
    Allow(AllowScope),
    /// With words for the model.
    Deny(Option<String>),
    /// No answer now.
    Skip,
}

/// The question as clients get it.
pub(crate) fn mirror(asked: &pod::record::ApprovalRequested) -> Option<ApprovalRequested> {
    serde_json::to_value(asked).and_then(serde_json::from_value).ok()
}

/// Everything that will run and what asks, in lines.
pub(crate) fn lines(asked: &ApprovalRequested) -> Vec<String> {
    let mut lines = Vec::new();
    for (field, value) in fields(&asked.arguments) {
        let mut parts = value.split('\n');
        lines.push(format!("    {field}: {}", parts.next().unwrap_or_default()));
        lines.extend(parts.map(|more| format!("      {more}")));
    }
    lines.extend(asked.question.lines().map(|text| format!("  {text}")));
    lines
}

/// The arguments by name: as JSON, except a text that reads as no other JSON value.
fn fields(arguments: &str) -> Vec<(String, String)> {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return vec![("arguments".to_owned(), arguments.to_owned())];
    };
    let is_plain = |text: &&str| serde_json::from_str::<Value>(text).is_err();
    let text = |value: Value| value.as_str().filter(is_plain).map_or_else(|| value.to_string(), str::to_owned);
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// The rules that an allowance for the pod adds, in the form that `--allow` takes.
pub(crate) fn rules(asked: &ApprovalRequested) -> Vec<String> {
    let rule = |rule: &Value| serde_json::from_value::<ProposedRule>(rule.clone()).ok();
    asked.rules.iter().flatten().filter_map(rule).map(|rule| short(&Rule::from(&rule))).collect()
}

/// A rule without its decision.
pub(crate) fn short(rule: &Rule) -> String {
    rule.about().map_or_else(|| rule.tool.clone(), |about| format!("{} {about}", rule.tool))
}

/// What an allowance for the pod adds, behind what a person types for it.
pub(crate) fn also_allows(asked: &ApprovalRequested, typed: &str) -> Option<String> {
    let rules = rules(asked);
    (!rules.is_empty())
        .then(|| format!("  {typed} allows it and later calls of this pod that match: {}", rules.join("; ")))
}

/// Asks until an answer is typed; `show` prints a text without ending the line. `Err` says why there is none.
pub(crate) fn ask(
    terminal: &mut Terminal,
    asked: &ApprovalRequested,
    skip: &str,
    stands: &mut dyn FnMut() -> bool,
    show: &mut dyn FnMut(&str),
) -> Result<TypedAnswer, TypedLine> {
    let has_rules = !rules(asked).is_empty();
    let pod = if has_rules { "p: in this pod; " } else { "" };
    terminal.settle(stands)?;
    loop {
        show(&format!("  allow this call? y: once; {pod}n, or n WORDS for the model: deny; {skip}: "));
        match terminal.line(stands) {
            TypedLine::Line(line) => {
                if let Some(answer) = read(&line, has_rules) {
                    return Ok(answer);
                }
            }
            none => return Err(none),
        }
    }
}

/// What a line means. An empty one means nothing: an answer is never the default.
fn read(line: &str, has_rules: bool) -> Option<TypedAnswer> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_ascii_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Some(TypedAnswer::Allow(AllowScope::Once)),
        ("p", "") if has_rules => Some(TypedAnswer::Allow(AllowScope::Pod)),
        ("n" | "no", "") => Some(TypedAnswer::Deny(None)),
        ("n" | "no", words) => Some(TypedAnswer::Deny(Some(words.to_owned()))),
        ("s" | "skip", "") => Some(TypedAnswer::Skip),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_another_value_look_different() {
        let shown = fields(r#"{"a":"5","b":5,"c":"true","d":"[1]","e":"sleep 5"}"#);
        let shown: Vec<_> = shown.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(shown, [r#""5""#, "5", r#""true""#, r#""[1]""#, "sleep 5"]);
    }

    #[test]
    fn only_a_whole_word_is_an_answer() {
        let allow = |scope| Some(TypedAnswer::Allow(scope));
        assert_eq!((read("y", false), read("YES", true)), (allow(AllowScope::Once), allow(AllowScope::Once)));
        assert_eq!((read("p", true), read("p", false)), (allow(AllowScope::Pod), None));
        assert_eq!(read("n not today ", false), Some(TypedAnswer::Deny(Some("not today".to_owned()))));
        assert_eq!((read("no", true), read("s", true)), (Some(TypedAnswer::Deny(None)), Some(TypedAnswer::Skip)));
        for line in ["", " ", "yy", "y n", "yes please", "always", "p now", "skip it", "1"] {
            assert_eq!(read(line, true), None, "{line}");
        }
    }
}
