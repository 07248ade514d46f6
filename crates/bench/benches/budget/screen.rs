//! The terminal of a pod. The programs have one processor, this one has the other.

use crate::Amount;
use crate::table::Table;
use authority::Ambient;
use bench::machine::{self, on_processor};
use bench::pods::{PodPlace, copy};
use bench::program::Program;
use bench::ratio::{median, ms};
use bench::server::{Server, WORDS_PER_SECOND};
use bench::terminal::Terminal;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Processors of this program and of what is measured.
const OURS: usize = 0;
const THEIRS: usize = 1;
/// How long a model speaks.
const SPEAKS_S: usize = 20;
/// What a tool prints meanwhile.
const PRINTS: &str = "yes 'a line of what a tool prints, as long as lines are' | head -c 100000000";
/// What is typed: letters that nothing else on the screen has, each once.
const LETTERS: std::ops::Range<u32> = 0x0400..0x0460;
/// Keys that turn a page.
const UP: &str = "\x1b[5~";
const DOWN: &str = "\x1b[6~";
/// Records of a long session.
const RECORDS: u64 = 100_000;

/// Everything that has a budget.
pub(crate) fn screen(ambient: &Ambient, binary: &Path, amount: Amount, table: &mut Table) {
    on_processor(OURS, || {
        let server = Server::start();
        let program = Program::new(binary, &server);
        program.enable_jobs();
        keys(&server, &program, table);
        long(ambient, &program, amount, table);
    });
}

/// Starts a pod, and a client of it.
fn attach(program: &Program, name: &str) -> Terminal {
    on_processor(THEIRS, || program.at_terminal(&["attach", name]))
}

/// From a key to the frame that shows it, while a model speaks and a tool prints.
fn keys(server: &Server, program: &Program, table: &mut Table) {
    on_processor(THEIRS, || program.start("busy"));
    let mut terminal = attach(program, "busy");
    terminal.sees("idle");
    let quiet = typed(&mut terminal);
    terminal.types("\x15");
    server.expect_jobs(1, PRINTS, WORDS_PER_SECOND * SPEAKS_S);
    terminal.types("go\r");
    terminal.sees("started");
    terminal.sees("word word");
    let busy = typed(&mut terminal);
    let again = typed(&mut terminal);
    assert!(
        !server.is_over(),
        "the model spoke to the end of what was typed"
    );
    let p95 = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[sorted.len() * 95 / 100]
    };
    table.figure(
        "key to frame, p95, nothing else at work",
        p95(&quiet),
        "ms",
        None,
    );
    table.figure(
        "  while a model sends 2,000 words a second and a tool prints",
        p95(&busy),
        "ms",
        Some(16.0),
    );
    table.ratio(
        "  the same again (A/A)",
        (p95(&again), p95(&busy)),
        "ms",
        None,
    );
    terminal.types("\x15");
    terminal.sees("idle");
    let there_and_back = [[UP; 50], [DOWN; 50]].concat().repeat(3);
    scrolled(
        &mut terminal,
        "an answer of 40,000 words",
        &there_and_back,
        table,
    );
    terminal.leaves();
    program.stop("busy");
}

/// Milliseconds to the frame of each letter.
fn typed(terminal: &mut Terminal) -> Vec<f64> {
    let one = |letter: u32| {
        // Keys do not come in step with frames.
        thread::sleep(Duration::from_millis(20 + u64::from(letter * 7 % 41)));
        let letter = char::from_u32(letter).unwrap().to_string();
        let began = terminal.types(&letter);
        ms(terminal.sees(&letter).duration_since(began))
    };
    let times = LETTERS.map(one).collect();
    terminal.types("\x15");
    times
}

/// What the client uses of its processor to turn pages.
fn scrolled(terminal: &mut Terminal, what: &str, pages: &[&str], table: &mut Table) {
    terminal.frames(Duration::from_secs(1));
    let before = machine::cpu(terminal.pid());
    let mut frames = 0;
    for page in pages {
        terminal.types(page);
        // Longer than between two frames.
        frames += terminal.frames(Duration::from_millis(40));
    }
    let after = machine::cpu(terminal.pid());
    let used = (after.user + after.system - before.user - before.system) as f64 / frames as f64;
    table.figure(
        &format!("CPU of the client for each of {frames} frames, {what}"),
        used,
        "ms",
        Some(4.0),
    );
}

/// A session of 100,000 records.
fn long(ambient: &Ambient, program: &Program, amount: Amount, table: &mut Table) {
    let place = PodPlace::new();
    while place.records() < RECORDS {
        drop(place.run(ambient, 500, 1));
    }
    copy(&place.session(), &program.pods().join("long"));
    on_processor(THEIRS, || program.start("long"));
    let opened = || {
        let began = Instant::now();
        let mut terminal = attach(program, "long");
        let shown = terminal.sees("done");
        terminal.sees("idle");
        terminal.leaves();
        ms(shown.duration_since(began))
    };
    let mut times = Vec::new();
    let mut again = Vec::new();
    for _ in 0..amount.rounds {
        times.push(opened());
        again.push(opened());
    }
    table.figure(
        &format!("a session of {} records is shown", place.records()),
        median(&times),
        "ms",
        Some(100.0),
    );
    table.ratio(
        "  the same again (A/A)",
        (median(&again), median(&times)),
        "ms",
        None,
    );
    let mut terminal = attach(program, "long");
    terminal.sees("done");
    scrolled(&mut terminal, "this session", &[UP; 300], table);
    thread::sleep(Duration::from_secs(12));
    let waits = || machine::waits(terminal.pid()).values().sum::<u64>();
    let before = waits();
    thread::sleep(amount.idle);
    let what = format!(
        "waits of all threads of the client in {} s",
        amount.idle.as_secs()
    );
    table.figure(&what, (waits() - before) as f64, "", Some(0.0));
    let usage = machine::usage(terminal.pid());
    table.figure(
        "private memory of the client",
        usage.private as f64 / 1e6,
        "MB",
        Some(40.0),
    );
    table.figure(
        "  the most it had in use, its program included",
        usage.peak as f64 / 1e6,
        "MB",
        Some(40.0),
    );
    terminal.leaves();
    program.stop("long");
}
