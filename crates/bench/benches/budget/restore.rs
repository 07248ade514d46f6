//! Going on with a long session.

use crate::Amount;
use crate::table::Table;
use authority::Ambient;
use bench::counting::CountingDisk;
use bench::pods::{PodPlace, copy};
use bench::program::Program;
use bench::ratio::{median, ms};
use bench::server::Server;
use llm_worker::history::{Counters, History};
use pod::session::resume::{ResumedSession, resume};
use provider::openai_chat::{Chat, Flavour};
use session_store::SessionRecords;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Records of the session.
const RECORDS: u64 = 100_000;
/// A full segment and a group behind it, in bytes; what stands behind a checkpoint is no longer.
const TAIL: f64 = 16.8e6;
/// Private memory of an idle pod of that session, in MB.
const IDLE: f64 = 16.0;

/// What each part took, in milliseconds.
#[derive(Default)]
struct Times {
    floor: Vec<f64>,
    open: Vec<f64>,
    fold: Vec<f64>,
    history: Vec<f64>,
    whole: Vec<f64>,
}

/// Opens a session of 100,000 records again and again.
pub(crate) fn restore(ambient: &Ambient, binary: &Path, amount: Amount, table: &mut Table) {
    let place = PodPlace::new();
    while place.records() < RECORDS {
        drop(place.run(ambient, 500, 1));
    }
    let files = newest(&place.session());
    let mut times = Times::default();
    let mut floor = 0;
    let mut read = 0;
    let mut behind = 0;
    for _ in 0..amount.rounds {
        let began = Instant::now();
        floor = files.iter().map(|file| checksum(file)).sum();
        times.floor.push(ms(began.elapsed()));
        let disk = CountingDisk::default();
        let began = Instant::now();
        let (opened, past) = place.open(&disk);
        times.open.push(ms(began.elapsed()));
        behind = round(past, began, &mut times);
        read = disk.0.read.load(Ordering::Relaxed);
        opened.journal.close();
    }
    let least = median(&times.floor);
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let log = files.first().map_or(0, |file| length(file));
    table.figure(
        &format!("restore {} records: the log read for it", place.records()),
        mega(log),
        "MB",
        Some(TAIL / 1e6),
    );
    table.figure("  records folded", behind as f64, "", None);
    table.figure("  checkpoint", mega(floor - log), "MB", None);
    table.ratio(
        "  bytes read, floor these two",
        (mega(read), mega(floor)),
        "MB",
        Some(1.01),
    );
    table.ratio(
        "  open and check, floor read and CRC",
        (median(&times.open), least),
        "ms",
        Some(2.0),
    );
    table.ratio(
        "  and fold",
        (median(&times.open) + median(&times.fold), least),
        "ms",
        Some(2.0),
    );
    table.ratio(
        "  and encode the history: all of it",
        (median(&times.whole), least),
        "ms",
        None,
    );
    table.ratio(
        "    of that, encoding",
        (median(&times.history), least),
        "ms",
        None,
    );
    memory(&place, binary, table);
}

/// What a pod of this session has in use once it is idle, restored from its checkpoint and from the whole log, and how
/// much of that is the history's.
fn memory(place: &PodPlace, binary: &Path, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let empty = program.idle("empty").private;
    let long = program.pods().join("long");
    let whole = program.pods().join("whole");
    copy(&place.session(), &long);
    copy(&place.session(), &whole);
    std::fs::remove_dir_all(whole.join("idx")).unwrap();
    let private = program.idle("long").private;
    let folded = program.idle("whole").private;
    let (opened, past) = place.open(&CountingDisk::default());
    let items = resume(past).unwrap().restored.items.len();
    opened.journal.close();
    let mega = |bytes: u64| bytes as f64 / 1e6;
    table.figure(
        "private memory of an idle pod of this session",
        mega(private),
        "MB",
        Some(IDLE),
    );
    let each = private.saturating_sub(empty) as f64 / items as f64;
    table.figure(&format!("  for each of its {items} items"), each, "B", None);
    table.figure(
        "  restored without a checkpoint",
        mega(folded),
        "MB",
        Some(IDLE),
    );
}

/// Folds and encodes; answers how many records stood behind the checkpoint.
fn round(past: SessionRecords, began: Instant, times: &mut Times) -> u64 {
    let from = past.checkpoint().map_or(0, session_store::Checkpoint::seq);
    let folding = Instant::now();
    let ResumedSession { restored, .. } = resume(past).unwrap();
    times.fold.push(ms(folding.elapsed()));
    let encoding = Instant::now();
    let (surface, _) = restored.state.surface.clone().unwrap();
    let counters = Counters {
        calls: restored.state.calls,
        requests: restored.state.requests,
    };
    black_box(
        History::restore(
            surface,
            Arc::new(Chat(Flavour::Compatible)),
            restored.items,
            counters,
        )
        .unwrap(),
    );
    times.history.push(ms(encoding.elapsed()));
    times.whole.push(ms(began.elapsed()));
    RECORDS.saturating_sub(from)
}

/// The newest segment and the checkpoint.
fn newest(session: &Path) -> Vec<PathBuf> {
    let log = std::fs::read_dir(session.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .max();
    log.into_iter()
        .chain([session.join("idx/fold.ckpt")])
        .filter(|file| file.exists())
        .collect()
}

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).unwrap().len()
}

fn checksum(file: &Path) -> u64 {
    let bytes = std::fs::read(file).unwrap();
    black_box(crc32c::crc32c(&bytes));
    bytes.len() as u64
}
