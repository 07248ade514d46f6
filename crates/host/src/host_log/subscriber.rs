//! Spans and events as lines: time, level, module, the spans around it, and its fields. It knows no file.
//!
//! A span has a line when it begins and one with its duration when it ends. What surrounds a span or an event is what it
//! names as its parent; nothing is inferred from the thread, for the host's work moves between threads.

use super::filter::Filter;
use super::writer::LogWriter;
use authority::Redactor;
use authority::text::{Lines, escape_within};
use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata};

/// Most bytes of a line.
const MAX_LINE: usize = 4 * 1024;

pub(super) struct Subscriber {
    filter: Filter,
    redactor: Redactor,
    writer: LogWriter,
    open: Mutex<HashMap<u64, OpenSpan>>,
    next: AtomicU64,
}

/// A span that has not ended.
struct OpenSpan {
    metadata: &'static Metadata<'static>,
    /// Itself and the spans around it, as they stand in front of its lines.
    path: String,
    /// The fields that got their values after it began.
    late: String,
    since: Instant,
    handles: usize,
}

impl Subscriber {
    pub(super) fn new(filter: Filter, redactor: Redactor, writer: LogWriter) -> Self {
        Self {
            filter,
            redactor,
            writer,
            open: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, OpenSpan>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Secrets go before the text is escaped and cut: an escape could split one.
    fn line(&self, metadata: &Metadata<'_>, path: &str, text: &str) {
        let time = humantime::format_rfc3339_millis(authority::dated(SystemTime::now()));
        let between = if path.is_empty() { "" } else { ": " };
        let line = format!(
            "{time} {:>5} {} {path}{between}{text}",
            metadata.level(),
            metadata.target()
        );
        let line = escape_within(&self.redactor.text(&line), Lines::One, MAX_LINE);
        self.writer.write(line);
    }
}

impl tracing::Subscriber for Subscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.filter.takes(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.takes(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most())
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open();
        let above = attributes
            .parent()
            .and_then(|parent| open.get(&parent.into_u64()));
        let mut path = above.map_or_else(String::new, |above| format!("{}:", above.path));
        path.push_str(metadata.name());
        if !fields.0.is_empty() {
            // Writing to a string cannot fail.
            write!(path, "{{{}}}", fields.0.trim_start()).ok();
        }
        let begun = path.clone();
        let since = Instant::now();
        open.insert(
            number,
            OpenSpan {
                metadata,
                path,
                late: String::new(),
                since,
                handles: 1,
            },
        );
        drop(open);
        self.line(metadata, &begun, "begins");
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(open) = self.open().get_mut(&span.into_u64()) {
            open.late.push_str(&fields.0);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let path = event
            .parent()
            .and_then(|parent| Some(self.open().get(&parent.into_u64())?.path.clone()));
        self.line(
            event.metadata(),
            &path.unwrap_or_default(),
            fields.0.trim_start(),
        );
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(open) = self.open().get_mut(&id.into_u64()) {
            open.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let ended = {
            let mut open = self.open();
            let Some(span) = open.get_mut(&id.into_u64()) else {
                return false;
            };
            span.handles -= 1;
            if span.handles > 0 {
                return false;
            }
            open.remove(&id.into_u64())
        };
        let Some(OpenSpan {
            metadata,
            path,
            late,
            since,
            ..
        }) = ended
        else {
            return false;
        };
        self.line(
            metadata,
            &path,
            &format!("ends after {:.1?}{late}", since.elapsed()),
        );
        true
    }
}

/// ` name=value` for each field; a message comes as it is.
#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Writing to a string cannot fail.
        match field.name() {
            "message" => write!(self.0, " {value}").ok(),
            name => write!(self.0, " {name}={value}").ok(),
        };
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.0, " {value:?}").ok(),
            name => write!(self.0, " {name}={value:?}").ok(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::tests::collector;
    use super::*;
    use authority::Secret;
    use tracing::field::Empty;
    use tracing::{debug, info, info_span, warn};

    /// What is logged by `work` under this filter, without the times.
    fn logged(filter: &str, redactor: Redactor, work: impl FnOnce()) -> Vec<String> {
        let (writer, lines) = collector();
        let subscriber = Subscriber::new(Filter::parse(filter).unwrap(), redactor, writer.clone());
        tracing::subscriber::with_default(subscriber, work);
        writer.flush();
        lines
            .text()
            .lines()
            .map(|line| line.split_once(' ').unwrap().1.trim_start().to_owned())
            .collect()
    }

    #[test]
    fn spans_have_two_lines_and_events_one_behind_their_spans() {
        const HERE: &str = module_path!();
        let lines = logged("info", Redactor::default(), || {
            let turn = info_span!("turn", turn = 3, outcome = Empty);
            let step = info_span!(parent: &turn, "step", bytes = 10);
            warn!(parent: &step, attempt = 1, "sent again");
            debug!(parent: &step, "not logged");
            let held = step.clone();
            drop(step);
            info!("alone");
            drop(held);
            turn.record("outcome", "done");
        });
        let cut = |line: &String| match line.split_once("ends after ") {
            Some((before, after)) => format!(
                "{before}ends{}",
                after.split_once(' ').map_or("", |(_, late)| late)
            ),
            None => line.clone(),
        };
        let lines: Vec<String> = lines.iter().map(cut).collect();
        let wanted = [
            format!("INFO {HERE} turn{{turn=3}}: begins"),
            format!("INFO {HERE} turn{{turn=3}}:step{{bytes=10}}: begins"),
            format!("WARN {HERE} turn{{turn=3}}:step{{bytes=10}}: sent again attempt=1"),
            format!("INFO {HERE} alone"),
            format!("INFO {HERE} turn{{turn=3}}:step{{bytes=10}}: ends"),
            format!("INFO {HERE} turn{{turn=3}}: endsoutcome=done"),
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn no_secret_comes_into_a_line() {
        const CANARY: &str = "canary-4471\nwith a second line";
        let secret = Secret::new(&ambient::claim(), "the key", CANARY.to_owned());
        let redactor = Redactor::new([&secret]).unwrap();
        let lines = logged("trace", redactor, || {
            let span = info_span!("call", tool = CANARY, late = Empty);
            warn!(parent: &span, reason = CANARY, "{CANARY}");
            warn!(reason = ?Some("x"), "{}{CANARY}", "y".repeat(MAX_LINE - 60));
            span.record("late", CANARY);
        });
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(
            lines.iter().all(|line| !line.contains("canary-")),
            "{lines:#?}"
        );
        assert!(lines[1].matches("the key").count() >= 3, "{lines:#?}");
    }

    #[test]
    fn a_line_is_one_line_of_bounded_length() {
        let lines = logged("info", Redactor::default(), || {
            info!("two\nlines \u{1b}[2J{}", "x".repeat(2 * MAX_LINE));
        });
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains(r"two\nlines \u{1b}[2Jxx") && lines[0].len() < MAX_LINE + 8,
            "{lines:#?}"
        );
    }
}
