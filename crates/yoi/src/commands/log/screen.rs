//! `yoi log --screen`: what the full screen of an attached client shows at a record.

use crate::look::Look;
use crate::show::out;
use host::exit::{Exit, Failure};
use host::pods::read_failure;
use protocol::event::Event;
use protocol::record::RecordLine;
use session_store::Reader;
use tui::{Screen, ScreenSize, Theme};

/// Not sent to clients: it is for its feature alone.
const HIDDEN: &str = "feature_state";

/// Folds the records up to `at`, or all, and prints the frame. Deltas and drafts are not recorded.
pub(super) fn run(
    name: &str,
    reader: &Reader,
    at: Option<u64>,
    size: Option<ScreenSize>,
) -> Result<Exit, Failure> {
    let look = Look::of_stdout();
    let theme = look.map_or(Theme::Plain, |look| look.theme);
    let mut screen = Screen::before_any_record(name, theme);
    let mut newest = 0;
    let mut time_us = 0;
    for frame in reader.frames() {
        let frame = frame.map_err(|e| read_failure(name, &e))?;
        if at.is_some_and(|at| frame.seq > at) {
            break;
        }
        (newest, time_us) = (frame.seq, frame.time);
        if frame.kind != HIDDEN {
            let line = RecordLine::new(frame.line);
            let line = line
                .map_err(|e| Failure::new(Exit::Data, format!("{name}: record {newest}: {e}")))?;
            screen.event(&Event::Record(line));
        }
    }
    if let Some(at) = at.filter(|at| *at > newest) {
        return Err(Failure::new(
            Exit::Usage,
            format!("{name} has no record {at}; its newest record is {newest}"),
        ));
    }
    let columns = || {
        look.and_then(|look| u16::try_from(look.width()).ok())
            .unwrap_or(80)
    };
    let size = size.unwrap_or_else(|| ScreenSize {
        columns: columns(),
        rows: 24,
    });
    for row in screen.frame(size, time_us / 1000).rows {
        out::raw(&format!("{}\n", row.ansi(theme)));
    }
    Ok(Exit::Done)
}
