//! Writes lines on a thread of its own, so that nobody waits for the disk or the terminal. What it cannot take or write
//! is counted and dropped, and the next line that is written says how many are missing.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Most lines that wait; of at most 4 KiB each.
const QUEUE: usize = 1024;

/// How long a flush waits.
const FLUSH: Duration = Duration::from_millis(500);

/// How long a flush waits before it tries a full queue again.
const AGAIN: Duration = Duration::from_millis(5);

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
    /// The last write failed and may have left a part of its line.
    torn: bool,
    /// Standard error goes into the same file.
    has_stderr: bool,
}

enum Message {
    Line(String),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
    /// Standard error goes into the file from now on; answered then.
    TakeStderr(SyncSender<io::Result<()>>),
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
        thread::Builder::new()
            .name("host log".to_owned())
            .spawn(move || write_all(to, &lines, &lost))?;
        Ok(Self { queue, missing })
    }

    /// Hands a line over. Never waits.
    pub(super) fn write(&self, mut line: String) {
        line.push('\n');
        if self.queue.try_send(Message::Line(line)).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Standard error goes where the lines go.
    pub(super) fn take_stderr(&self) -> io::Result<()> {
        let (done, over) = sync_channel(1);
        self.queue
            .send(Message::TakeStderr(done))
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        over.recv().map_err(|_| io::ErrorKind::BrokenPipe)?
    }

    /// Waits until what was handed over is written, but not longer than [`FLUSH`].
    pub(super) fn flush(&self) {
        let until = Instant::now() + FLUSH;
        let (done, over) = sync_channel(1);
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.queue.try_send(message) {
            if Instant::now() >= until {
                return;
            }
            message = back;
            thread::sleep(AGAIN);
        }
        over.recv_timeout(until.saturating_duration_since(Instant::now()))
            .ok();
    }
}

fn write_all(mut to: Destination, lines: &Receiver<Message>, missing: &AtomicU64) {
    while let Ok(message) = lines.recv() {
        match message {
            Message::Line(line) => {
                let before = missing.swap(0, Ordering::Relaxed);
                let text = match before {
                    0 => line,
                    1 => format!("1 line is missing here\n{line}"),
                    more => format!("{more} lines are missing here\n{line}"),
                };
                if to.write(text.as_bytes()).is_err() {
                    missing.fetch_add(before + 1, Ordering::Relaxed);
                }
            }
            Message::Flush(done) => {
                done.send(()).ok();
            }
            Message::TakeStderr(done) => {
                done.send(to.take_stderr()).ok();
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

    fn take_stderr(&mut self) -> io::Result<()> {
        match self {
            Self::Files(files) => files.take_stderr(),
            // It is standard error itself.
            Self::Other(_) => Ok(()),
        }
    }
}

impl Files {
    /// Opens the file for appending, for this user alone. Together with the one before it, it has at most twice `max`
    /// bytes.
    pub(super) fn open(path: PathBuf, max: u64) -> io::Result<Self> {
        let file = append(&path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            size,
            max,
            torn: false,
            has_stderr: false,
        })
    }

    fn take_stderr(&mut self) -> io::Result<()> {
        rustix::stdio::dup2_stderr(&self.file)?;
        self.has_stderr = true;
        Ok(())
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.has_stderr {
            self.size = self.file.metadata().map_or(self.size, |meta| meta.len());
        }
        if self.size > 0 && self.size + text.len() as u64 > self.max {
            self.rotate()?;
        }
        let text = if self.torn {
            [b"\n", text].concat()
        } else {
            text.to_vec()
        };
        let written = self.file.write_all(&text);
        self.torn = written.is_err();
        self.size = match written {
            Ok(()) => self.size + text.len() as u64,
            Err(_) => self.file.metadata().map_or(self.size, |meta| meta.len()),
        };
        written
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut older = self.path.clone().into_os_string();
        older.push(".1");
        match std::fs::rename(&self.path, older) {
            // An earlier attempt renamed it and could not open the next one.
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        let next = Self::open(self.path.clone(), self.max)?;
        if std::mem::replace(self, next).has_stderr {
            self.take_stderr()?;
        }
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    // Not through a link, and without waiting for the reader of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.cast_signed())
        .open(path);
    let file = opened.map_err(|why| match rustix::io::Errno::from_io_error(&why) {
        Some(rustix::io::Errno::LOOP) => io::Error::other("it is a symbolic link"),
        _ => why,
    })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // An older file may have another mode.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError, mpsc};

    /// What was written.
    #[derive(Clone, Default)]
    pub(crate) struct Collected(Arc<Mutex<Vec<u8>>>);

    impl Collected {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(
                self.0
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone(),
            )
            .unwrap()
        }
    }

    impl Write for Collected {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A writer, and what it has written.
    pub(crate) fn collector() -> (LogWriter, Collected) {
        let lines = Collected::default();
        (
            LogWriter::start(Destination::Other(Box::new(lines.clone()))).unwrap(),
            lines,
        )
    }

    fn size(path: &Path) -> u64 {
        path.metadata().map_or(0, |meta| meta.len())
    }

    #[test]
    fn two_files_of_bounded_size_keep_the_newest_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let older = dir.path().join("log.1");
        for run in 0..2 {
            // The second run goes on with the file of the first.
            let writer =
                LogWriter::start(Destination::Files(Files::open(path.clone(), 1000).unwrap()))
                    .unwrap();
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
            kept.len() > 50
                && wanted.ends_with(&kept.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>()),
            "{all}"
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    // The file was renamed and the next one could not be opened: the log forgot its own name, and everything after it was
    // lost although the disk worked again.
    #[test]
    fn a_log_whose_next_file_cannot_be_opened_goes_on_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let older = dir.path().join("log.1");
        std::fs::write(&path, "before\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let mut files = Files::open(path.clone(), 10).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // As behind a rename whose open failed.
        std::fs::rename(&path, &older).unwrap();
        let gone = dir.path().join("gone");
        files.path = gone.join("log");
        assert!(files.write(b"second\n").is_err() && files.write(b"second\n").is_err());
        std::fs::create_dir(&gone).unwrap();
        files.write(b"second\n").unwrap();
        assert_eq!(
            std::fs::read_to_string(gone.join("log")).unwrap(),
            "second\n"
        );
    }

    #[test]
    fn a_line_behind_a_torn_one_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut files = Files::open(path.clone(), 1000).unwrap();
        files.file.write_all(b"half a li").unwrap();
        files.torn = true;
        files.write(b"whole\n").unwrap();
        files.write(b"next\n").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "half a li\nwhole\nnext\n"
        );
    }

    #[test]
    fn what_is_not_a_plain_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("target", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        let fifo = dir.path().join("fifo");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
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
        let (repair, broken) = mpsc::channel();
        let lines = Collected::default();
        let writer =
            LogWriter::start(Destination::Other(Box::new(Failing(broken, lines.clone())))).unwrap();
        for n in 0..3 {
            writer.write(format!("lost {n}"));
        }
        writer.flush();
        drop(repair);
        writer.write("kept".to_owned());
        writer.write("and this".to_owned());
        writer.flush();
        assert_eq!(lines.text(), "3 lines are missing here\nkept\nand this\n");
    }

    /// Waits for its first line until the test lets it through.
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
        let writer =
            LogWriter::start(Destination::Other(Box::new(Stuck(stuck, lines.clone())))).unwrap();
        // One may be in the writer's hands. Without the bound on the queue this would be all of them.
        for n in 0..QUEUE + 100 {
            writer.write(n.to_string());
        }
        let missing = writer.missing.load(Ordering::Relaxed);
        assert!((99..=100).contains(&missing), "{missing}");
        let began = Instant::now();
        writer.flush();
        assert!(
            began.elapsed() >= FLUSH,
            "the queue is full for the whole time"
        );
        drop(open);
        // It waits for room in the queue.
        writer.flush();
        writer.write("last".to_owned());
        writer.flush();
        assert!(
            lines.text().contains("lines are missing here\n") && lines.text().ends_with("last\n")
        );
    }
}
