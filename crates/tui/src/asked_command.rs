//! The command line of a question with its parts marked, as the pod parsed it. Parses nothing itself.

use crate::arguments::fields;
use crate::line::Line;
use crate::screen::FILE;
use crate::style::Tone;
use authority::text::{escape_line, escape_strict};
use protocol::record::{ApprovalRequested, AskedCommand, CommandPart};
use serde_json::Value;

/// An argument of a question: its name, and its lines.
#[derive(Clone, Debug)]
pub struct AskedField {
    pub name: String,
    /// As it is; misleading characters are escaped.
    pub value: String,
    /// The lines of a command line whose parts are marked.
    pub marked: Option<Vec<Line>>,
}

/// The arguments of a question; `tone` is that of a command line where nothing is marked.
#[must_use]
pub fn asked_fields(asked: &ApprovalRequested, tone: Tone) -> Vec<AskedField> {
    let strict = |text: &str| escape_strict(text).into_owned();
    let field = |(name, value): (String, String)| {
        let command = asked
            .command
            .as_ref()
            .filter(|command| escape_line(&command.field) == name);
        let marked = command.filter(|command| is_text(&asked.arguments, &command.field, &value));
        let marked = marked.map(|command| lines(&value, command, tone));
        AskedField {
            name: strict(&name),
            value: strict(&value),
            marked,
        }
    };
    fields(&asked.arguments).into_iter().map(field).collect()
}

/// The file that a question names.
#[must_use]
pub fn asked_file(asked: &ApprovalRequested) -> Option<String> {
    let arguments: Value = serde_json::from_str(&asked.arguments).ok()?;
    Some(arguments.get(FILE)?.as_str()?.to_owned())
}

/// The parts of the command line in a row, where there are several: what is marked can be read without colours, too.
#[must_use]
pub fn asked_parts(asked: &ApprovalRequested) -> Option<String> {
    let AskedCommand { parts, more, .. } = asked.command.as_ref()?;
    if parts.len() < 2 {
        return None;
    }
    let shown = |CommandPart { text, asks, .. }: &CommandPart| {
        let asks = if *asks == Some(true) {
            " (asked about)"
        } else {
            ""
        };
        format!("`{}`{asks}", escape_line(&escape_strict(text)))
    };
    let shown: Vec<String> = parts.iter().map(shown).collect();
    let more = more
        .filter(|more| *more > 0)
        .map(|more| format!(", and {}", crate::count::count(more, "more part")));
    Some(format!(
        "parts: {}{}",
        shown.join(", "),
        more.unwrap_or_default()
    ))
}

/// Whether what is shown of a field is its text as it is, so that bytes of one are bytes of the other.
fn is_text(arguments: &str, field: &str, shown: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return false;
    };
    fields.get(field).and_then(Value::as_str) == Some(shown)
}

/// The lines of a text with the programs of its parts marked.
fn lines(text: &str, command: &AskedCommand, tone: Tone) -> Vec<Line> {
    let marks = marks(text, command);
    let mut lines = Vec::new();
    let mut begin = 0;
    for line in text.split('\n') {
        let end = begin + line.len();
        lines.push(toned(line, begin, &marks, tone));
        begin = end + 1;
    }
    lines
}

/// The bytes of the programs in their order, none over another, with their meanings.
fn marks(text: &str, command: &AskedCommand) -> Vec<(usize, usize, Tone)> {
    let mark = |part: &CommandPart| {
        let [from, to] = part.at?.map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        let tone = if part.asks == Some(true) {
            Tone::Waiting
        } else {
            Tone::Strong
        };
        text.get(from..to)
            .is_some_and(|word| !word.is_empty())
            .then_some((from, to, tone))
    };
    let mut marks: Vec<_> = command.parts.iter().filter_map(mark).collect();
    marks.sort_by_key(|(from, to, tone)| (*from, *to, *tone != Tone::Waiting));
    let mut end = 0;
    marks.retain(|(from, to, _)| *from >= end && std::mem::replace(&mut end, *to) <= *to);
    marks
}

/// A line of a text that begins at the byte `begin` of it.
fn toned(line: &str, begin: usize, marks: &[(usize, usize, Tone)], tone: Tone) -> Line {
    let end = begin + line.len();
    // Shown text is longer where characters are escaped.
    let shown = |at: usize| {
        let before = line.get(..at.clamp(begin, end) - begin).unwrap_or_default();
        Line::of_output(&escape_strict(before), tone).text().len()
    };
    let within = marks
        .iter()
        .filter(|(from, to, _)| *from < end && *to > begin);
    let mut pieces: Vec<(usize, Tone)> = within
        .flat_map(|(from, to, mark)| [(shown(*from), tone), (shown(*to), *mark)])
        .collect();
    let whole = Line::of_output(&escape_strict(line), tone);
    pieces.push((usize::MAX, tone));
    whole.toned(&pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &str, parts: &[(&str, Option<[u64; 2]>, bool)]) -> ApprovalRequested {
        let part = |(text, at, asks): &(&str, Option<[u64; 2]>, bool)| CommandPart {
            text: (*text).to_owned(),
            at: *at,
            asks: asks.then_some(true),
            ..CommandPart::default()
        };
        let parts = parts.iter().map(part).collect();
        let command_line = AskedCommand {
            field: "command".to_owned(),
            parts,
            ..AskedCommand::default()
        };
        let arguments = serde_json::json!({ "command": command }).to_string();
        ApprovalRequested {
            arguments,
            command: Some(command_line),
            ..ApprovalRequested::default()
        }
    }

    /// Marked text in brackets; what is asked about in braces.
    fn shown(asked: &ApprovalRequested) -> Vec<String> {
        let fields = asked_fields(asked, Tone::Code);
        let lines = fields[0].marked.clone().unwrap_or_default();
        let piece = |(text, tone): (&str, Tone)| match tone {
            Tone::Strong => format!("[{text}]"),
            Tone::Waiting => format!("{{{text}}}"),
            _ => text.to_owned(),
        };
        lines
            .iter()
            .map(|line| line.pieces().map(piece).collect())
            .collect()
    }

    #[test]
    fn programs_are_marked_where_they_stand() {
        let one = asked(
            "cd /tmp && rm -rf x",
            &[
                ("cd /tmp", Some([0, 2]), false),
                ("rm -rf x", Some([11, 13]), true),
            ],
        );
        assert_eq!(shown(&one), ["[cd] /tmp && {rm} -rf x"]);
        assert_eq!(
            asked_parts(&one).as_deref(),
            Some("parts: `cd /tmp`, `rm -rf x` (asked about)")
        );
        let escaped = asked(
            "a\u{1b}\tb\u{202e}; rm\nls",
            &[("", Some([9, 11]), true), ("", Some([12, 14]), false)],
        );
        assert_eq!(shown(&escaped), [r"a\u{1b} b\u{202e}; {rm}", "[ls]"]);
        let broken = asked("'a\nb' c", &[("", Some([0, 5]), false)]);
        assert_eq!(shown(&broken), ["['a]", "[b'] c"]);
    }

    #[test]
    fn places_that_do_not_fit_mark_nothing() {
        let wrong = [
            Some([3, 2]),
            Some([5, 99]),
            Some([0, u64::MAX]),
            Some([1, 2]),
            Some([0, 0]),
            None,
        ];
        let parts = wrong.map(|at| ("x", at, true));
        assert_eq!(shown(&asked("é x", &parts)), ["é x"]);
        // One over another: the first one stands.
        let over = asked(
            "abcdef",
            &[
                ("", Some([0, 3]), false),
                ("", Some([2, 5]), true),
                ("", Some([4, 6]), false),
            ],
        );
        assert_eq!(shown(&over), ["[abc]d[ef]"]);
        // What is shown is not the text itself.
        assert_eq!(
            shown(&asked("true", &[("true", Some([0, 4]), true)])),
            Vec::<String>::new()
        );
    }
}
