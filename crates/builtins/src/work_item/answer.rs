//! Work items as the model reads them. Does not depend on files.

use super::contract::{Heading, ThreadEntry, WorkItem, WorkItemList};
use crate::plain;
use llm_worker::ToolOutput;
use std::fmt::Write as _;
use tools::{answer, counted};

/// Most bytes of a body that are shown.
const MAX_BODY: usize = 12 * 1024;
/// Most bytes of a thread that are shown, the newest events of it.
const MAX_THREAD: usize = 12 * 1024;
/// How many unreadable items a list names.
const NAMED: usize = 3;

/// One line per item.
pub(super) fn listing(listing: &WorkItemList) -> ToolOutput {
    let WorkItemList {
        items,
        found,
        unreadable,
    } = listing;
    let mut summary = counted(*found as u64, "work item", "work items");
    if items.len() < *found {
        summary.push_str(&format!(
            ", the first {} shown; narrow it or raise `limit`",
            items.len()
        ));
    }
    if !unreadable.is_empty() {
        let names: Vec<&str> = unreadable
            .iter()
            .take(NAMED)
            .map(|id| id.as_str())
            .collect();
        let left = unreadable.len() - names.len();
        let more = if left > 0 {
            format!(" and {left} more")
        } else {
            String::new()
        };
        let count = unreadable.len();
        summary.push_str(&format!(
            "; {count} not readable: {}{more} (`./tickets.sh doctor` shows why)",
            names.join(", ")
        ));
    }
    let lines: Vec<String> = items.iter().map(line).collect();
    answer(&summary, lines.join("\n"))
}

fn line(heading: &Heading) -> String {
    let Heading {
        id,
        title,
        status,
        kind,
        priority,
        ..
    } = heading;
    format!("{status:<7} {kind:<7} {priority:<6} {id}  {title}")
}

/// Front matter, body, and as much of the thread's end as fits.
pub(super) fn item(item: &WorkItem) -> ToolOutput {
    let Heading {
        id,
        title,
        status,
        kind,
        priority,
        labels,
        created_at,
        updated_at,
        assignee,
    } = &item.heading;
    let mut text = format!("# {title}\nkind: {kind}  priority: {priority}");
    for (name, value) in [
        ("labels", plain::joined(labels)),
        ("assignee", assignee.to_string()),
    ] {
        if !value.is_empty() {
            text.push_str(&format!("  {name}: {value}"));
        }
    }
    text.push_str(&format!(
        "\ncreated: {created_at}  updated: {updated_at}\n\n"
    ));
    let shown = item
        .body
        .get(..item.body.floor_char_boundary(MAX_BODY))
        .unwrap_or(&item.body);
    text.push_str(shown);
    if shown.len() < item.body.len() {
        let rest = item.body.len() - shown.len();
        text.push_str(&format!(
            "\n[{rest} more bytes in work-items/{status}/{id}/item.md]"
        ));
    }
    let (skipped, thread) = newest(&item.events);
    text.push_str("\n\n## Thread\n");
    if skipped > 0 {
        text.push_str(&format!(
            "[{skipped} older events in work-items/{status}/{id}/thread.md]\n"
        ));
    }
    text.push_str(&thread);
    let events = counted(item.events.len() as u64, "event", "events");
    answer(
        &format!("{id}: {status}, {events}"),
        text.trim_end().to_owned(),
    )
}

/// The newest events that fit, and how many older ones there are; of the newest at least a part.
fn newest(events: &[ThreadEntry]) -> (usize, String) {
    let mut shown: Vec<String> = Vec::new();
    let mut bytes = 0;
    for event in events.iter().rev() {
        let mut text = entry_text(event);
        bytes += text.len();
        if bytes > MAX_THREAD {
            if !shown.is_empty() {
                break;
            }
            text.truncate(text.floor_char_boundary(MAX_THREAD));
            text.push_str("…\n");
        }
        shown.push(text);
    }
    shown.reverse();
    (events.len() - shown.len(), shown.concat())
}

fn entry_text(event: &ThreadEntry) -> String {
    let ThreadEntry {
        at,
        what,
        author,
        text,
    } = event;
    let mut out = String::new();
    // Writing to a string cannot fail.
    writeln!(out, "{at} {what} ({author})").ok();
    for line in text.lines() {
        writeln!(out, "  {line}").ok();
    }
    out
}
