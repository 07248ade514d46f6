//! A question about a call as a person at a terminal sees it, and what may be typed as its answer. Does not depend on how
//! an answer is sent.

use super::terminal::{Terminal, TypedLine};
use crate::look::Look;
use authority::text::escape_strict;
use pod::permission::Rule;
use pod::record::ProposedRule;
use pod::session::restore::utc;
use protocol::method::{AllowScope, PreviewedCall};
use protocol::record::ApprovalRequested;
use serde_json::Value;
use std::time::Duration;
use tui::{AskedField, Line, Tone, asked_fields, asked_parts, duration, previewed};

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
    serde_json::to_value(asked)
        .and_then(serde_json::from_value)
        .ok()
}

/// When the call is denied if nobody answers; none if it waits without an end. Times are milliseconds since 1970. Without
/// `now_ms` the text has no time that is left.
pub(crate) fn end(expires_ms: Option<u64>, now_ms: Option<u64>) -> Option<String> {
    let at_ms = expires_ms?;
    let at = utc(at_ms.saturating_mul(1000));
    let Some(now_ms) = now_ms else {
        return Some(format!("denied at {at} if nobody answers"));
    };
    Some(match at_ms.saturating_sub(now_ms) {
        0 => format!("nobody answered until {at}: the pod denies the call"),
        left => format!(
            "denied in {} ({at}) if nobody answers",
            duration(Duration::from_millis(left))
        ),
    })
}

/// What is shown of a question.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown<'a> {
    /// A line with its end, or the place behind which an answer is typed.
    Text(&'a str),
    Line(&'a QuestionLine),
}

impl Shown<'_> {
    /// The text on a terminal; without a look as it is.
    pub(crate) fn text(self, look: Option<Look>) -> String {
        match (self, look) {
            (Self::Text(text), Some(look)) => drawn(text, look),
            (Self::Text(text), None) => text.to_owned(),
            (Self::Line(line), Some(look)) => line.drawn(look),
            (Self::Line(line), None) => format!("{}\n", line.text),
        }
    }
}

/// A line of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionLine {
    pub(crate) text: String,
    /// The line of a command whose parts are marked.
    marked: Option<Line>,
}

impl From<String> for QuestionLine {
    fn from(text: String) -> Self {
        Self { text, marked: None }
    }
}

impl QuestionLine {
    fn drawn(&self, look: Look) -> String {
        match &self.marked {
            Some(line) => chopped(line, look),
            None => drawn(&format!("{}\n", self.text), look),
        }
    }
}

/// Everything that will run and what asks, and when that ends, in lines.
pub(crate) fn lines(asked: &ApprovalRequested, now_ms: Option<u64>) -> Vec<QuestionLine> {
    let mut lines = Vec::new();
    for AskedField {
        name,
        value,
        marked,
    } in asked_fields(asked, Tone::Plain)
    {
        for (at, part) in value.split('\n').enumerate() {
            let before = if at == 0 {
                format!("    {name}: ")
            } else {
                "      ".to_owned()
            };
            let marked = marked
                .as_ref()
                .and_then(|marked| marked.get(at))
                .map(|part| {
                    let mut line = Line::of(&before, Tone::Plain);
                    line.append(part);
                    line
                });
            lines.push(QuestionLine {
                text: format!("{before}{part}"),
                marked,
            });
        }
    }
    let mut say = |text: &str| lines.push(format!("  {text}").into());
    asked_parts(asked).iter().for_each(|parts| say(parts));
    escape_strict(&asked.question).lines().for_each(&mut say);
    let expires_ms = asked.expires.as_ref().map(|expires| expires.at_ms);
    end(expires_ms, now_ms).iter().for_each(|end| say(end));
    lines
}

/// What the call would change in a file, in lines.
pub(crate) fn change(file: &str, call: &PreviewedCall) -> Vec<QuestionLine> {
    let indented = |line: Line| {
        let mut shown = Line::of("    ", Tone::Plain);
        shown.append(&line);
        QuestionLine {
            text: shown.text(),
            marked: Some(shown),
        }
    };
    previewed(file, call).into_iter().map(indented).collect()
}

/// The rules that an allowance for the pod adds; none if one of them is not understood.
pub(crate) fn rules(asked: &ApprovalRequested) -> Vec<Rule> {
    read_rules(asked.rules.iter().flatten())
}

/// Rules as a pod sends them; none if one of them is not understood.
pub(crate) fn read_rules<'a>(rules: impl Iterator<Item = &'a Value>) -> Vec<Rule> {
    let rule = |rule: &Value| {
        serde_json::from_value::<ProposedRule>(rule.clone())
            .ok()
            .map(|rule| Rule::from(&rule))
    };
    rules.map(rule).collect::<Option<_>>().unwrap_or_default()
}

/// What an allowance may be about.
pub(crate) fn scopes(asked: &ApprovalRequested) -> &'static [&'static str] {
    match (rules(asked).as_slice(), asked.configurable) {
        ([], _) => &["once"],
        (_, Some(true)) => &["once", "pod", "rule"],
        (_, _) => &["once", "pod"],
    }
}

/// A rule without its decision, in the form that `--allow` takes.
pub(crate) fn short(rule: &Rule) -> String {
    let proposed = rule.proposed();
    proposed.map_or_else(|| rule.to_string(), |proposed| proposed.to_string())
}

/// What an allowance for the pod adds, behind what a person types for it.
pub(crate) fn also_allows(asked: &ApprovalRequested, typed: &str) -> Option<String> {
    let rules: Vec<_> = rules(asked).iter().map(short).collect();
    (!rules.is_empty()).then(|| {
        format!(
            "  {typed} allows it and later calls of this pod that match: {}",
            rules.join("; ")
        )
    })
}

/// Asks until an answer is typed; `show` prints a line, or a part of one without ending it, and `preview` gives the text
/// about rules that would be written, or why none can. `Err` says why there is no answer.
pub(crate) fn ask(
    terminal: &mut Terminal,
    asked: &ApprovalRequested,
    skip: &str,
    stands: &mut dyn FnMut() -> bool,
    show: &mut dyn FnMut(&str),
    preview: &mut dyn FnMut() -> Result<String, String>,
) -> Result<TypedAnswer, TypedLine> {
    let scopes = scopes(asked);
    let wider = match scopes.len() {
        1 => "",
        2 => "p: in this pod; ",
        _ => "p: in this pod; r: by a rule (shown first); ",
    };
    terminal.settle(stands)?;
    loop {
        show(&format!(
            "  allow this call? y: once; {wider}n, or n WORDS for the model: deny; {skip}: "
        ));
        match (terminal.line(stands), scopes.len()) {
            (TypedLine::Line(line), scopes) => match read(&line, scopes) {
                Some(TypedAnswer::Allow(AllowScope::Rule)) => match preview() {
                    Ok(text) if confirmed(terminal, &text, stands, show)? => {
                        return Ok(TypedAnswer::Allow(AllowScope::Rule));
                    }
                    Ok(_) => {}
                    Err(why) => why.lines().for_each(|why| show(&format!("  {why}\n"))),
                },
                Some(answer) => return Ok(answer),
                None => {}
            },
            (none, _) => return Err(none),
        }
    }
}

/// Shows what would be written, and asks whether to.
pub(crate) fn confirmed(
    terminal: &mut Terminal,
    text: &str,
    stands: &mut dyn FnMut() -> bool,
    show: &mut dyn FnMut(&str),
) -> Result<bool, TypedLine> {
    text.split_inclusive('\n').for_each(&mut *show);
    terminal.agrees("  allow the call by these rules? y or n: ", stands, show)
}

/// What a line means. An empty one means nothing: an answer is never the default.
fn read(line: &str, scopes: usize) -> Option<TypedAnswer> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_ascii_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Some(TypedAnswer::Allow(AllowScope::Once)),
        ("p", "") if scopes > 1 => Some(TypedAnswer::Allow(AllowScope::Pod)),
        ("r", "") if scopes > 2 => Some(TypedAnswer::Allow(AllowScope::Rule)),
        ("n" | "no", "") => Some(TypedAnswer::Deny(None)),
        ("n" | "no", words) => Some(TypedAnswer::Deny(Some(words.to_owned()))),
        ("s" | "skip", "") => Some(TypedAnswer::Skip),
        _ => None,
    }
}

/// What a line of a question goes on behind: no line of the host begins as deep, so no part of a longer one looks like one.
const GOES_ON: &str = "    │ ";

/// A line of a question, broken between words, or the place behind which an answer is typed. What will run stays as it
/// is where it fits.
fn drawn(text: &str, look: Look) -> String {
    let rest = Line::of(GOES_ON, Tone::Dim);
    if text.starts_with("    ") {
        return chopped(
            &Line::of_output(text.trim_end_matches('\n'), Tone::Plain),
            look,
        );
    }
    let line = text.trim();
    let tone = if line.starts_with("? ") {
        Tone::Waiting
    } else {
        Tone::Plain
    };
    let indent = Line::of(if text.starts_with("  ") { "  " } else { "" }, Tone::Plain);
    let shown = look.text(&Line::of_output(line, tone).wrap(look.width(), &indent, &rest));
    if text.ends_with('\n') {
        shown
    } else {
        format!("{} ", shown.trim_end())
    }
}

/// What will run, broken only where it is too long.
fn chopped(line: &Line, look: Look) -> String {
    look.text(&line.chop(
        look.width(),
        &Line::default(),
        &Line::of(GOES_ON, Tone::Dim),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_joiner_hides_in_a_question() {
        let arguments = serde_json::json!({ "command": "rm ک\u{200c}ه\n❤\u{fe0f}" }).to_string();
        let asked = serde_json::json!({"approval": 1, "call": "c00000001", "tool": "Bash", "feature": "builtin:shell",
            "effect": "effectful", "arguments": arguments, "arguments_digest": "d", "question": "ه\u{200d}?", "rule": "r",
            "sandbox": "off"});
        let asked: ApprovalRequested = serde_json::from_value(asked).unwrap();
        let wanted = [
            r"    command: rm ک\u{200c}ه",
            r"      ❤\u{fe0f}",
            r"  ه\u{200d}?",
        ];
        let shown: Vec<String> = lines(&asked, None)
            .into_iter()
            .map(|line| line.text)
            .collect();
        assert_eq!(shown, wanted);
    }

    #[test]
    fn an_end_is_shown_until_it_comes() {
        let hour = 3_600_000;
        let shown = |now| end(Some(2 * hour), Some(now)).unwrap_or_default();
        assert_eq!(
            shown(hour / 2),
            "denied in 1 h 30 min (1970-01-01T02:00:00Z) if nobody answers"
        );
        assert_eq!(
            shown(2 * hour),
            "nobody answered until 1970-01-01T02:00:00Z: the pod denies the call"
        );
        assert_eq!(
            (end(None, None), end(Some(u64::MAX), Some(0)).is_some()),
            (None, true)
        );
        assert_eq!(
            end(Some(0), None).as_deref(),
            Some("denied at 1970-01-01T00:00:00Z if nobody answers")
        );
    }

    #[test]
    fn only_a_whole_word_is_an_answer() {
        let allow = |scope| Some(TypedAnswer::Allow(scope));
        assert_eq!(
            (read("y", 1), read("YES", 2)),
            (allow(AllowScope::Once), allow(AllowScope::Once))
        );
        assert_eq!((read("p", 2), read("p", 1)), (allow(AllowScope::Pod), None));
        assert_eq!(
            (read("r", 3), read("r", 2)),
            (allow(AllowScope::Rule), None)
        );
        assert_eq!(
            read("n not today ", 1),
            Some(TypedAnswer::Deny(Some("not today".to_owned())))
        );
        assert_eq!(
            (read("no", 3), read("s", 3)),
            (Some(TypedAnswer::Deny(None)), Some(TypedAnswer::Skip))
        );
        for line in [
            "",
            " ",
            "yy",
            "y n",
            "yes please",
            "always",
            "p now",
            "r now",
            "skip it",
            "1",
        ] {
            assert_eq!(read(line, 3), None, "{line}");
        }
    }
}
