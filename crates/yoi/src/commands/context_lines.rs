//! The lines of `yoi status` about the context: the tokens of the next request by contributor, when old results leave it,
//! and what has left.

use protocol::status::{ContextKind, ContextPart, ContextStatus};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tui::{context_gain, context_kind, context_masking, context_part, count};

/// How many contributors are listed.
const LISTED: usize = 10;

/// How the ids of features of MCP servers begin.
const SERVER: &str = "plugin:mcp/";

pub(super) fn context_lines(context: &ContextStatus) -> Vec<(&'static str, String)> {
    let ContextStatus {
        used,
        window,
        percent,
        measured,
        cached,
        parts,
        left_results,
        left,
        ..
    } = context;
    let about = if *measured { "" } else { "about " };
    let of = window
        .zip(*percent)
        .map(|(window, percent)| format!(" of {window} ({percent}%)"))
        .unwrap_or_default();
    let cached = if *cached > 0 {
        format!(", {cached} cached")
    } else {
        String::new()
    };
    let mut lines = vec![
        (
            "context",
            format!("{about}{}{of}{cached}", count(*used, "token")),
        ),
        ("", sums(parts)),
    ];
    lines.extend(listed(parts));
    lines.extend(servers(parts).map(|text| ("", text)));
    lines.push(("", context_masking(context)));
    let gain =
        context_gain(context).filter(|_| context.steps_free.max(context.masking_frees) > Some(0));
    lines.extend(gain.map(|gain| ("", gain.replace("/compact", "`yoi compact`"))));
    if !left.is_empty() {
        let (all, what): (u64, _) = (
            left.iter().map(|part| part.tokens).sum(),
            count(*left_results, "result"),
        );
        lines.push((
            "left",
            format!(
                "about {} left the requests so far, with {what}",
                count(all, "token")
            ),
        ));
        lines.extend(listed(left));
    }
    lines
}

/// The definitions of each MCP server, if there are some.
fn servers(parts: &[ContextPart]) -> Option<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for part in parts
        .iter()
        .filter(|part| part.kind == ContextKind::Schema.word())
    {
        let feature = part.feature.as_deref().unwrap_or_default();
        if let Some(server) = feature.strip_prefix(SERVER) {
            *sums.entry(server).or_default() += part.tokens;
        }
    }
    let all: Vec<String> = sums
        .iter()
        .map(|(server, tokens)| format!("{server} {tokens}"))
        .collect();
    (!all.is_empty()).then(|| format!("tools of MCP servers: {}", all.join(", ")))
}

/// The sums by kind.
fn sums(parts: &[ContextPart]) -> String {
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for part in parts {
        match kinds.iter_mut().find(|(kind, _)| *kind == part.kind) {
            Some((_, sum)) => *sum = sum.saturating_add(part.tokens),
            None => kinds.push((&part.kind, part.tokens)),
        }
    }
    kinds.sort_by_key(|(_, tokens)| Reverse(*tokens));
    let kinds: Vec<_> = kinds
        .iter()
        .map(|(kind, tokens)| format!("{} {tokens}", context_kind(kind)))
        .collect();
    kinds.join(", ")
}

/// The first parts, and how many more there are.
fn listed(parts: &[ContextPart]) -> impl Iterator<Item = (&'static str, String)> {
    let more = parts.len().saturating_sub(LISTED);
    let row = |part: &ContextPart| format!("{:>8}  {}", part.tokens, context_part(part));
    let rest = (more > 0).then(|| format!("{more} more; --json lists them"));
    let rows = parts.iter().take(LISTED).map(row).chain(rest);
    rows.map(|text| ("", text))
}
