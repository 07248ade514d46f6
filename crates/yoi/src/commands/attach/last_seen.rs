//! The newest record that a client of this person showed of a pod: what came later came while they were away. A file for each
//! person in the directory of the pod. Of several clients, the one that saw most counts.

use rustix::process::getuid;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of the file: a session and a number.
const MAX_BYTES: u64 = 128;

fn path(dir: &Path) -> PathBuf {
    dir.join(format!("seen-{}", getuid().as_raw()))
}

/// None if nothing is known of this session.
pub(super) fn read(dir: &Path, session: &str) -> Option<u64> {
    let mut text = String::new();
    let file = File::open(path(dir)).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let (of, seq) = text.strip_suffix('\n')?.split_once(' ')?;
    (of == session).then(|| seq.parse().ok()).flatten()
}

/// Remembers it. Without it, the next client tells of more than was missed.
pub(super) fn write(dir: &Path, session: &str, seq: u64) {
    if read(dir, session) >= Some(seq) {
        return;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(path(dir))
        .and_then(|mut file| file.write_all(format!("{session} {seq}\n").as_bytes()));
    // It is read as nothing if it is not whole.
    drop(written);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_client_that_saw_most_counts_and_a_file_that_is_none_tells_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(read(dir, "s"), None);
        write(dir, "s", 7);
        write(dir, "s", 5);
        assert_eq!((read(dir, "s"), read(dir, "another")), (Some(7), None));
        write(dir, "another", 2);
        assert_eq!(read(dir, "another"), Some(2));
        for text in ["", "another 2", "another\n", "another x\n"] {
            fs::write(path(dir), text).unwrap();
            assert_eq!(read(dir, "another"), None, "{text}");
        }
    }
}
