//! The `yoi` that is killed: the program itself, dying by its own hand at a named point.

use rustix::process::{Signal, getpid, kill_process};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;
use yoi::{Points, Program};

/// Set to anything: be `yoi`.
pub(crate) const ROLE: &str = "YOI_TEST_ROLE";
/// Where to die: a point's name and which occurrence of it, from 1, as `journal:synced:3`; `any` is every point.
pub(crate) const POINT: &str = "YOI_TEST_POINT";
/// A file that gets a line with the name of each point as it is reached.
pub(crate) const RECORD: &str = "YOI_TEST_RECORD";

/// A file that is there when the process has died by its own hand: nobody waits for a detached one.
pub(crate) const DIED: &str = "YOI_TEST_DIED";

/// Counts all points.
pub(crate) const ANY: &str = "any";

/// How long a batch that is not durable may lie there before the process dies: were it shown to anybody too early,
/// that shows within this time. A right program does not depend on it.
const TOO_EARLY: Duration = Duration::from_millis(40);

/// Whether this process is one.
pub(crate) fn is_one() -> bool {
    // What holds the namespaces of its commands has another environment.
    std::env::var_os(ROLE).is_some()
        || std::env::args()
            .nth(1)
            .is_some_and(|word| word == "__helper")
}

/// Runs `yoi` with this process's arguments.
pub(crate) fn main() -> ExitCode {
    let seen = Mutex::new(Seen {
        die_at: std::env::var(POINT).ok().map(|text| parse(&text)),
        record: std::env::var_os(RECORD).map(|path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .unwrap()
        }),
        counts: HashMap::new(),
    });
    // The lock is let go before dying, or nobody else could show what they were told too early.
    let points = Points::new(move |name| {
        let dies = seen.lock().unwrap().reached(name);
        if dies {
            die(name);
        }
    });
    Program::new().points(points).main(std::env::args_os())
}

fn parse(text: &str) -> (String, u64) {
    let (name, number) = text.rsplit_once(':').expect("NAME:NUMBER");
    (name.to_owned(), number.parse().unwrap())
}

struct Seen {
    die_at: Option<(String, u64)>,
    record: Option<File>,
    counts: HashMap<String, u64>,
}

impl Seen {
    /// Whether this is where to die.
    fn reached(&mut self, name: &str) -> bool {
        let mut dies = false;
        if let Some(record) = &mut self.record {
            record.write_all(format!("{name}\n").as_bytes()).unwrap();
        }
        for counted in [name, ANY] {
            let count = self.counts.entry(counted.to_owned()).or_default();
            *count += 1;
            dies |= self
                .die_at
                .as_ref()
                .is_some_and(|(at, number)| at == counted && number == count);
        }
        dies
    }
}

fn die(name: &str) {
    if matches!(name, "journal:encoded" | "journal:written") {
        std::thread::sleep(TOO_EARLY);
    }
    if let Some(path) = std::env::var_os(DIED) {
        File::create(path).unwrap();
    }
    kill_process(getpid(), Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}
