//! Writes lines on a thread of its own, so that nobody waits for the disk or the terminal. What it cannot take or write
//! is counted and dropped, and the next line that is written says how many are missing.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Most lines that wait; of at most 4 KiB each.
const QUEUE: usize = 1024;

/// How long a flush waits.
const FLUSH: Duration = Duration::from_millis(500);

/// Where lines go.
pub(super) enum Destination {
    Files(Files),
    Other(Box<dyn Write + Send>),
}

/// A file and the one before it.
pub(super) struct Files {
    path: PathBuf,
    file: File,
    size: u64,
    max: u64,
}

enum Message {
    Line(String),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// Takes lines from everywhere.
#[derive(Clone)]
pub(super) struct LogWriter {
    queue: SyncSender<Message>,
    missing: Arc<AtomicU64>,
}

impl LogWriter {
    pub(super) fn start(to: Destination) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE);
        let missing = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&missing);
        thread::Builder::new().name("host log".to_owned()).spawn(move || write_all(to, &lines, &lost))?;
        Ok(Self { queue, missing })
    }

    /// Hands a line over. Never waits.
    pub(super) fn write(&self, mut line: String) {
        line.push('\n');
        if self.queue.try_send(Message::Line(line)).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was handed over is written, but not longer than [`FLUSH`].
    pub(super) fn flush(&self) {
        let (done, over) = sync_channel(1);
        if self.queue.try_send(Message::Flush(done)).is_ok() {
            over.recv_timeout(FLUSH).ok();
        }
    }
}

fn write_all(mut to: Destination, lines: &Receiver<Message>, missing: &AtomicU64) {
    while let Ok(message) = lines.recv() {
        match message {
            Message::Line(line) => {
                let before = missing.swap(0, Ordering::Relaxed);
                let text = if before > 0 { format!("{before} lines are missing here\n{line}") } else { line };
                if to.write(text.as_bytes()).is_err() {
                    missing.fetch_add(before + 1, Ordering::Relaxed);
                }
            }
            Message::Flush(done) => {
                done.send(()).ok();
            }
        }
    }
}

impl Destination {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Files(files) => files.write(text),
            Self::Other(other) => other.write_all(text),
        }
    }
}

impl Files {
    /// Opens the file for appending, for this user alone. Together with the one before it, it has at most twice `max`
    /// bytes.
    pub(super) fn open(path: PathBuf, max: u64) -> io::Result<Self> {
        let file = append(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file, size, max })
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let bytes = text.len() as u64;
        if self.size > 0 && self.size + bytes > self.max {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            std::fs::rename(&self.path, older)?;
            *self = Self::open(std::mem::take(&mut self.path), self.max)?;
        }
        self.file.write_all(text)?;
        self.size += bytes;
        Ok(())
    }
}

fn append(path: &PathBuf) -> io::Result<File> {
    // Not through a link, and without waiting for the reader of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags.cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a plain file")) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::{Mutex, PoisonError, mpsc};

    /// What was written.
    #[derive(Clone, Default)]
    pub(crate) struct Collected(Arc<Mutex<Vec<u8>>>);

    impl Collected {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap()
        }
    }

    impl Write for Collected {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A writer, and what it has written.
    pub(crate) fn collector() -> (LogWriter, Collected) {
        let lines = Collected::default();
        (LogWriter::start(Destination::Other(Box::new(lines.clone()))).unwrap(), lines)
    }

    fn size(path: &Path) -> u64 {
        path.metadata().map_or(0, |meta| meta.len())
    }

    #[test]
    fn two_files_of_bounded_size_keep_the_newest_lines() {
        let dir = tempfile::tempdir().unwrap();
        let (path, older) = (dir.path().join("log"), dir.path().join("log.1"));
        for run in 0..2 {
            // The second run goes on with the file of the first.
            let writer = LogWriter::start(Destination::Files(Files::open(path.clone(), 1000).unwrap())).unwrap();
            for n in 0..100 {
                writer.write(format!("{run} line {n:03} of them"));
                writer.flush();
                assert!(size(&path) <= 1000 && size(&older) <= 1000);
            }
        }
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        let all = format!("{}{}", text(&older), text(&path));
        let wanted: Vec<String> = (0..100).map(|n| format!("1 line {n:03} of them")).collect();
        let kept: Vec<&str> = all.lines().collect();
        assert!(
            kept.len() > 50 && wanted.ends_with(&kept.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>()),
            "{all}"
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_not_a_plain_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("target", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for name in ["link", "dir", "fifo"] {
            assert!(Files::open(dir.path().join(name), 1000).is_err(), "{name}");
        }
        assert!(!dir.path().join("target").exists());
    }

    /// Fails until it is told not to.
    struct Failing(mpsc::Receiver<()>, Collected);

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.try_recv() {
                Ok(()) | Err(mpsc::TryRecvError::Disconnected) => self.1.write(bytes),
                Err(mpsc::TryRecvError::Empty) => Err(io::ErrorKind::StorageFull.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_fail_are_counted_and_the_log_goes_on() {
        let (mend, broken) = mpsc::channel();
        let lines = Collected::default();
        let writer = LogWriter::start(Destination::Other(Box::new(Failing(broken, lines.clone())))).unwrap();
        for n in 0..3 {
            writer.write(format!("lost {n}"));
        }
        writer.flush();
        drop(mend);
        writer.write("kept".to_owned());
        writer.write("and this".to_owned());
        writer.flush();
        assert_eq!(lines.text(), "3 lines are missing here\nkept\nand this\n");
    }

    /// Waits for its first line until somebody opens it.
    struct Stuck(mpsc::Receiver<()>, Collected);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().ok();
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_is_stuck_holds_nobody_up() {
        let (open, stuck) = mpsc::channel();
        let lines = Collected::default();
        let writer = LogWriter::start(Destination::Other(Box::new(Stuck(stuck, lines.clone())))).unwrap();
        // One may be in the writer's hands. Without the bound on the queue this would be all of them.
        for n in 0..QUEUE + 100 {
            writer.write(n.to_string());
        }
        let missing = writer.missing.load(Ordering::Relaxed);
        assert!((99..=100).contains(&missing), "{missing}");
        writer.flush();
        drop(open);
        while writer.queue.try_send(Message::Line("last\n".to_owned())).is_err() {
            thread::yield_now();
        }
        writer.flush();
        assert!(lines.text().contains("lines are missing here\n") && lines.text().ends_with("last\n"));
    }
}
