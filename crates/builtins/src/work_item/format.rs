//! The two files of an item as text: `item.md` and `thread.md`, byte for byte as `tickets.sh` writes them. Reads and
//! writes none.

use super::contract::{Event, Heading};
use super::id::{Assignee, ItemId, Label, Time, Title};
use crate::plain::{self, quoted, trimmed, unquoted};
use std::fmt::Write as _;

/// `item.md`: ten lines of front matter in a fixed order between two rules, then the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemFile {
    /// The front matter. Its status is the written one; the folder may say something else after a crash.
    pub(super) heading: Heading,
    /// Everything behind the second rule, as it stands there.
    rest: String,
}

impl ItemFile {
    pub(super) fn new(heading: Heading, body: &str) -> Self {
        let body = trimmed(body);
        let rest = if body.is_empty() { String::new() } else { format!("\n{body}\n") };
        Self { heading, rest }
    }

    /// Reads what stands in the file of this item.
    ///
    /// # Errors
    /// The line, and what was expected there.
    pub(super) fn parse(text: &str, id: &ItemId) -> Result<Self, String> {
        let mut front = Front { lines: text.split_inclusive('\n'), number: 0, read: 0 };
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
        let assignee = front.parsed("assignee", |value| Assignee::try_from(unquoted(value)?).ok())?;
        front.rule()?;
        let rest = text.get(front.read..).unwrap_or_default().to_owned();
        let id = id.clone();
        let heading = Heading { id, title, status, kind, priority, labels, created_at, updated_at, assignee };
        Ok(Self { heading, rest })
    }

    /// The file.
    pub(super) fn render(&self) -> String {
        let Heading { id, title, status, kind, priority, labels, created_at, updated_at, assignee } = &self.heading;
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

    /// What stands behind the front matter.
    pub(super) fn body(&self) -> &str {
        self.rest.trim_matches('\n')
    }
}

fn labels(value: &str) -> Option<Vec<Label>> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    let words = inner.split(", ").filter(|_| !inner.is_empty());
    words.map(|word| Label::try_from(word.to_owned()).ok()).collect()
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
        line.strip_suffix('\n').unwrap_or(line)
    }

    fn rule(&mut self) -> Result<(), String> {
        if self.line() == "---" { Ok(()) } else { Err(format!("line {}: front matter needs --- here", self.number)) }
    }

    fn value(&mut self, key: &str) -> Result<&'a str, String> {
        let line = self.line();
        let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(": "));
        value.ok_or_else(|| format!("line {}: front matter needs \"{key}: \" here", self.number))
    }

    fn parsed<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, String> {
        let value = self.value(key)?;
        parse(value).ok_or_else(|| format!("line {}: this is no {key}", self.number))
    }
}

pub(super) fn new_thread(id: &ItemId, first: &Event) -> String {
    let mut text = format!("# Thread of {id}\n");
    add(&mut text, 1, first);
    text
}

/// The thread with one more event behind it; nothing that stands there changes. The event is not before the last one.
///
/// # Errors
/// What of the thread does not read.
pub(super) fn grown(thread: &str, mut event: Event) -> Result<(String, Time), String> {
    let (number, last) = {
        let events = events(thread)?;
        (events.len() + 1, events.last().map(|event| event.at.clone()))
    };
    event.at = last.map_or(event.at.clone(), |last| last.max(event.at));
    let mut text = thread.to_owned();
    add(&mut text, number, &event);
    Ok((text, event.at))
}

fn add(out: &mut String, number: usize, event: &Event) {
    let Event { at, what, author, text } = event;
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

/// The events of a thread, oldest first.
///
/// # Errors
/// The line that is neither an event nor a text.
pub(super) fn events(thread: &str) -> Result<Vec<Event>, String> {
    let mut events: Vec<Event> = Vec::new();
    for (number, line) in (1..).zip(thread.lines()) {
        if number == 1 || line.is_empty() {
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
            (None, _) | (_, None) => return Err(format!("line {number}: neither an event nor a text behind \">\"")),
        }
    }
    if events.is_empty() { Err("it has no event".to_owned()) } else { Ok(events) }
}

fn event(head: &str, number: usize) -> Option<Event> {
    let mut parts = head.splitn(4, " | ");
    let numbered = parts.next()?.parse() == Ok(number);
    let at = Time::parse(parts.next()?)?;
    let (what, author) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    numbered.then_some(Event { at, what, author, text: String::new() })
}
