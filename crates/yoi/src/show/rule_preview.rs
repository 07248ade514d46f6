//! Rules that an answer writes into the user's configuration, as a person sees them before and after. Writes nothing.

use super::escape::line;
use authority::text::escape_line;
use protocol::method::{MatchedCall, MatchedCalls};
use tui::arguments::brief;
use tui::count;

/// Characters of a call.
const SHOWN: usize = 80;

/// What would be written, and the past calls that it would have matched, in lines that end.
pub(crate) fn before(file: &str, toml: &str, past: &Result<MatchedCalls, String>) -> String {
    let what = match toml {
        "" => format!("{file} already has these rules"),
        _ => format!("added to {file}, for all pods"),
    };
    ended([written(&what, toml), past_calls(past)].concat())
}

/// What was written.
pub(crate) fn after(file: &str, toml: &str) -> Vec<String> {
    match toml {
        "" => vec![format!("{file} already has these rules")],
        toml => {
            let mut lines = written(&format!("added to {file}"), toml);
            lines.push(
                "  other running pods use these rules after a HUP signal or their next start"
                    .to_owned(),
            );
            lines
        }
    }
}

fn written(what: &str, toml: &str) -> Vec<String> {
    let colon = if toml.is_empty() { "" } else { ":" };
    let lines = toml
        .lines()
        .filter(|text| !text.is_empty())
        .map(|text| format!("    {}", escape_line(text)));
    std::iter::once(format!("  {what}{colon}"))
        .chain(lines)
        .collect()
}

/// The past calls that the rules would have matched.
pub(crate) fn past_calls(past: &Result<MatchedCalls, String>) -> Vec<String> {
    let MatchedCalls {
        calls,
        matched,
        searched,
        complete,
    } = match past {
        Ok(past) => past,
        Err(why) => {
            return vec![format!(
                "  past calls were not searched: {}",
                escape_line(why)
            )];
        }
    };
    let among = if *complete {
        String::new()
    } else {
        format!(" (of the newest {searched})")
    };
    if *matched == 0 {
        return vec![format!(
            "  would also have matched no past call of this pod{among}"
        )];
    }
    let calls_text = count(*matched, "past call");
    let mut lines = vec![format!(
        "  would also have matched {calls_text} of this pod{among}:"
    )];
    let call = |MatchedCall {
                    tool, arguments, ..
                }: &MatchedCall| {
        format!(
            "    {} {}",
            escape_line(tool),
            line(&brief(arguments), SHOWN)
        )
    };
    lines.extend(calls.iter().map(call));
    let more = matched.saturating_sub(calls.len() as u64);
    lines.extend((more > 0).then(|| format!("    and {more} more")));
    lines
}

fn ended(lines: Vec<String>) -> String {
    lines.iter().map(|text| format!("{text}\n")).collect()
}
