//! The two files of an item as text: `item.md` and `thread.md`, byte for byte as `tickets.sh` writes them. Threads
//! that begin in an older form are read, too, and never rewritten. Reads and writes no file.

use super::contract::{Heading, ThreadEntry};
use super::id::{Assignee, ItemId, Time, Title, WorkItemLabel};
use crate::plain::{self, quoted, trimmed, unquoted};
use std::fmt::Write as _;

/// The prefix of a line that starts an event in the older form of a thread.
const MARKER: &str = "<!-- event: ";

/// `item.md`: ten lines of front matter in a fixed order between two rules, then the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemFile {
    /// The front matter. Its status is the written one; the folder may say something else after a crash.
    pub(super) heading: Heading,
    /// Everything behind the second rule, with LF line ends.
    rest: String,
}

impl ItemFile {
    pub(super) fn new(heading: Heading, body: &str) -> Self {
        let body = trimmed(body);
        let rest = if body.is_empty() {
            String::new()
        } else {
            format!("\n{body}\n")
        };
        Self { heading, rest }
    }

    /// Parses the content of this item's file.
    ///
    /// # Errors
    /// The line, and what was expected there.
    pub(super) fn parse(text: &str, id: &ItemId) -> Result<Self, String> {
        let mut front = Front {
            lines: text.split_inclusive('\n'),
            number: 0,
            read: 0,
        };
        front.rule()?;
        let written = front.value("id")?;
        if written != id.as_str() {
            return Err("line 2: the id is not the name of the directory".to_owned());
        }
        front.value("slug")?;
        let title = front.parsed("title", |value| Title::try_from(unquoted(value)?).ok())?;
        let status = front.parsed("status", plain::named)?;
        let kind = front.parsed("kind", plain::named)?;
        let priority = front.parsed("priority", plain::named)?;
        let labels = front.parsed("labels", labels)?;
        let created_at = front.parsed("created_at", Time::parse)?;
        let updated_at = front.parsed("updated_at", Time::parse)?;
        let assignee = front.parsed("assignee", |value| {
            Assignee::try_from(unquoted(value)?).ok()
        })?;
        front.rule()?;
        let rest = text
            .get(front.read..)
            .unwrap_or_default()
            .replace("\r\n", "\n");
        let id = id.clone();
        let heading = Heading {
            id,
            title,
            status,
            kind,
            priority,
            labels,
            created_at,
            updated_at,
            assignee,
        };
        Ok(Self { heading, rest })
    }

    /// The file.
    pub(super) fn render(&self) -> String {
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
        } = &self.heading;
        format!(
            "---\nid: {id}\nslug: {}\ntitle: {}\nstatus: {status}\nkind: {kind}\npriority: {priority}\nlabels: [{}]\n\
             created_at: {created_at}\nupdated_at: {updated_at}\nassignee: {}\n---\n{}",
            id.slug(),
            quoted(&title.to_string()),
            plain::joined(labels),
            quoted(&assignee.to_string()),
            self.rest
        )
    }

    /// The text behind the front matter.
    pub(super) fn body(&self) -> &str {
        self.rest.trim_matches('\n')
    }
}

fn labels(value: &str) -> Option<Vec<WorkItemLabel>> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    let words = inner.split(", ").filter(|_| !inner.is_empty());
    words
        .map(|word| WorkItemLabel::try_from(word.to_owned()).ok())
        .collect()
}

/// The lines of a front matter, one after the other.
struct Front<'a> {
    lines: std::str::SplitInclusive<'a, char>,
    number: usize,
    /// How many bytes were read.
    read: usize,
}

impl<'a> Front<'a> {
    fn line(&mut self) -> &'a str {
        let line = self.lines.next().unwrap_or_default();
        self.number += 1;
        self.read += line.len();
        line.trim_end_matches(['\r', '\n'])
    }

    fn rule(&mut self) -> Result<(), String> {
        if self.line() == "---" {
            Ok(())
        } else {
            Err(format!("line {}: front matter needs --- here", self.number))
        }
    }

    fn value(&mut self, key: &str) -> Result<&'a str, String> {
        let line = self.line();
        let value = line
            .strip_prefix(key)
            .and_then(|rest| rest.strip_prefix(": "));
        value.ok_or_else(|| format!("line {}: front matter needs \"{key}: \" here", self.number))
    }

    fn parsed<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, String> {
        let value = self.value(key)?;
        parse(value).ok_or_else(|| format!("line {}: this is no {key}", self.number))
    }
}

pub(super) fn new_thread(id: &ItemId, first: &ThreadEntry) -> String {
    let mut text = format!("# Thread of {id}\n");
    add(&mut text, 1, first);
    text
}

/// The thread with one more event behind it; the existing text is unchanged. The event is not before the last one.
/// `created` is as for [`events`].
///
/// # Errors
/// The part of the thread that cannot be parsed.
pub(super) fn grown(
    thread: &str,
    created: &Time,
    mut event: ThreadEntry,
) -> Result<(String, Time), String> {
    let (older, numbered) = parts(thread, created)?;
    event.at = match numbered.last().or(older.last()) {
        Some(last) => last.at.clone().max(event.at),
        None => event.at,
    };
    let mut text = thread.to_owned();
    add(&mut text, numbered.len() + 1, &event);
    Ok((text, event.at))
}

fn add(out: &mut String, number: usize, event: &ThreadEntry) {
    let ThreadEntry {
        at,
        what,
        author,
        text,
    } = event;
    // Writing to a string cannot fail.
    write!(out, "\n## {number} | {at} | {what} | {author}\n").ok();
    let text = trimmed(text);
    if text.is_empty() {
        return;
    }
    out.push('\n');
    for line in text.lines() {
        out.push('>');
        if !line.is_empty() {
            out.push(' ');
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// The events of a thread, oldest first. `created` is the time of those in the older form that have none.
///
/// # Errors
/// The line that is neither an event nor a text.
pub(super) fn events(thread: &str, created: &Time) -> Result<Vec<ThreadEntry>, String> {
    let (mut events, numbered) = parts(thread, created)?;
    events.extend(numbered);
    if events.is_empty() {
        Err("it has no event".to_owned())
    } else {
        Ok(events)
    }
}

/// The events in the older form, and the numbered ones behind them.
fn parts(thread: &str, created: &Time) -> Result<(Vec<ThreadEntry>, Vec<ThreadEntry>), String> {
    let (older, skipped) = if is_older(thread) {
        older(thread, created)
    } else {
        (Vec::new(), 1)
    };
    Ok((older, numbered(thread, skipped)?))
}

/// The events behind the first `skipped` lines.
fn numbered(thread: &str, skipped: usize) -> Result<Vec<ThreadEntry>, String> {
    let mut events: Vec<ThreadEntry> = Vec::new();
    for (number, line) in (1..).zip(thread.lines()).skip(skipped) {
        if line.is_empty() {
            continue;
        }
        if let Some(head) = line.strip_prefix("## ") {
            events.push(event(head, events.len() + 1).ok_or_else(|| {
                format!("line {number}: an event needs number | time | what | author, and the next number")
            })?);
            continue;
        }
        match (line.strip_prefix('>'), events.last_mut()) {
            (Some(text), Some(event)) => {
                let text = text.strip_prefix(' ').unwrap_or(text);
                event.text.push_str(text);
                event.text.push('\n');
            }
            (None, _) | (_, None) => {
                return Err(format!(
                    "line {number}: neither an event nor a text behind \">\""
                ));
            }
        }
    }
    Ok(events)
}

fn event(head: &str, number: usize) -> Option<ThreadEntry> {
    let mut parts = head.splitn(4, " | ");
    let numbered = parts.next()?.parse() == Ok(number);
    let at = Time::parse(parts.next()?)?;
    let what = parts.next()?.to_owned();
    let author = parts.next()?.to_owned();
    numbered.then_some(ThreadEntry {
        at,
        what,
        author,
        text: String::new(),
    })
}

/// Whether a thread begins in the older form: a marker in its first line, or `## Created` as its first heading.
fn is_older(thread: &str) -> bool {
    thread.starts_with(MARKER)
        || thread.lines().find(|line| line.starts_with("## ")) == Some("## Created")
}

/// The events in the older form, and how many lines they take: up to the first numbered event. Where markers are, they
/// divide it, else headings do.
fn older(thread: &str, created: &Time) -> (Vec<ThreadEntry>, usize) {
    let marked = thread.starts_with(MARKER);
    let mut events: Vec<ThreadEntry> = Vec::new();
    let mut lines = 0;
    for line in thread.lines() {
        let heading = line.strip_prefix("## ");
        if heading.is_some_and(|head| event(head, 1).is_some()) {
            break;
        }
        lines += 1;
        let begun = if marked {
            marker(line)
        } else {
            heading.map(|heading| headed(heading, created))
        };
        match (begun, events.last_mut()) {
            (Some(event), _) => events.push(event),
            (None, Some(event)) => {
                event.text.push_str(line);
                event.text.push('\n');
            }
            (None, None) => {}
        }
    }
    for event in &mut events {
        let text = event.text.trim();
        event.text = text.strip_suffix("\n---").unwrap_or(text).trim().to_owned();
    }
    (events, lines)
}

/// An event under a heading, which names neither a time nor an author.
fn headed(heading: &str, created: &Time) -> ThreadEntry {
    ThreadEntry {
        at: created.clone(),
        what: heading.to_lowercase(),
        author: "unknown".to_owned(),
        text: String::new(),
    }
}

/// `<!-- event: review author: Ann at: 2026-01-31T12:00:00Z status: approve -->`; the status may be absent.
fn marker(line: &str) -> Option<ThreadEntry> {
    let (what, rest) = line
        .strip_prefix(MARKER)?
        .strip_suffix(" -->")?
        .split_once(" author: ")?;
    let (author, rest) = rest.rsplit_once(" at: ")?;
    let (at, status) = rest
        .split_once(" status: ")
        .map_or((rest, None), |(at, status)| (at, Some(status)));
    let what = status.map_or_else(|| what.to_owned(), |status| format!("{what} {status}"));
    Some(ThreadEntry {
        at: Time::parse(at)?,
        what,
        author: author.to_owned(),
        text: String::new(),
    })
}
