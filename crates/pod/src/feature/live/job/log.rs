//! The end of a job's output, in memory: a flood costs no disk, and nothing is left to remove.

use authority::text::{Lines, escape_within};
use authority::{Redactor, shown};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes that [`JobHandle::tail`](super::JobHandle::tail) returns.
pub const MAX_JOB_TAIL: usize = 64 * 1024;

/// The bytes that are kept: more than are shown, because a secret gets shorter.
const KEPT: usize = 4 * MAX_JOB_TAIL;

#[derive(Clone, Default)]
pub(crate) struct JobLog(Arc<Mutex<Ring>>);

#[derive(Default)]
struct Ring {
    bytes: VecDeque<u8>,
    written: u64,
}

impl JobLog {
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut ring = self.lock();
        ring.written = ring.written.saturating_add(bytes.len() as u64);
        let new = bytes
            .get(bytes.len().saturating_sub(KEPT)..)
            .unwrap_or(bytes);
        let excess = (ring.bytes.len() + new.len()).saturating_sub(KEPT);
        ring.bytes.drain(..excess);
        ring.bytes.extend(new);
    }

    /// The last output as text of at most `max` bytes, from the beginning of a line where there is one, and the number of
    /// bytes written so far.
    pub(super) fn tail(&self, max: usize, redactor: &Redactor) -> (String, u64) {
        let (bytes, written) = {
            let ring = self.lock();
            (Vec::from(ring.bytes.clone()), ring.written)
        };
        let is_whole = written == bytes.len() as u64;
        // The end of a secret whose beginning is gone would not be recognised.
        let cut = if is_whole { 0 } else { redactor.cut(&bytes) };
        let all = String::from_utf8_lossy(bytes.get(cut..).unwrap_or_default());
        let last = shown(redactor.text(&all).as_bytes()).into_owned();
        let clean = redactor.text(&last);
        // What is escaped gets longer, so it is cut before and after.
        let text = escape_within(suffix(&clean, max), Lines::Many, usize::MAX);
        let text = suffix(&text, max);
        let is_cut = text.len() < clean.len() || !is_whole;
        let whole = text
            .split_once('\n')
            .map(|(_, rest)| rest)
            .filter(|rest| is_cut && !rest.is_empty());
        (whole.unwrap_or(text).to_owned(), written)
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last bytes of a text, at most `max`, from a character on.
fn suffix(text: &str, max: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(max))..)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::Secret;

    #[test]
    fn the_end_of_an_output_is_kept_in_whole_lines() {
        let log = JobLog::default();
        log.write(b"one\ntwo\nthree");
        assert_eq!(
            log.tail(100, &Redactor::default()),
            ("one\ntwo\nthree".to_owned(), 13)
        );
        assert_eq!(log.tail(9, &Redactor::default()), ("three".to_owned(), 13));
        log.write(b"\x1b[2J\xff\n");
        let (text, _) = log.tail(100, &Redactor::default());
        assert!(
            !text.contains('\u{1b}') && text.ends_with("\u{fffd}\n"),
            "{text:?}"
        );
    }

    #[test]
    fn a_flood_is_bounded() {
        let log = JobLog::default();
        for _ in 0..1_000 {
            log.write(&[b'y'; 3_001]);
        }
        log.write(&vec![b'z'; 10 * KEPT]);
        assert_eq!(log.lock().bytes.len(), KEPT);
        let (text, written) = log.tail(usize::MAX, &Redactor::default());
        assert_eq!((text.len(), written), (KEPT, 3_001_000 + 10 * KEPT as u64));
        assert_eq!(log.tail(5, &Redactor::default()).0, "zzzzz");
    }

    #[allow(clippy::disallowed_methods, reason = "a secret of a test")]
    fn redactor(key: &str) -> Redactor {
        Redactor::new([&Secret::new(&ambient::claim(), "KEY", key.to_owned())]).unwrap()
    }

    /// Of an output of secrets, less is shown than was kept: the cut in the first of them was shown.
    #[test]
    fn no_part_of_a_secret_is_shown_whose_beginning_is_gone() {
        let key = format!("{}-0123456789", "k3y-of-a-provider".repeat(40));
        let redactor = redactor(&key);
        for before in (0..key.len()).step_by(53) {
            let log = JobLog::default();
            log.write("b".repeat(before).as_bytes());
            let whole = key.repeat(2 * KEPT / key.len());
            log.write(whole.as_bytes());
            let (text, written) = log.tail(MAX_JOB_TAIL, &redactor);
            assert_eq!(written, (before + whole.len()) as u64);
            assert!(
                text.contains("KEY") && !text.contains("0123456789"),
                "{before}: {}",
                &text[..40]
            );
        }
    }

    /// It came in two pieces, and the cut is in the middle of it.
    #[test]
    fn no_part_of_a_secret_is_shown() {
        let key = "k3y-of-a-provider-0123456789";
        let redactor = redactor(key);
        let log = JobLog::default();
        log.write(format!("before {}", &key[..10]).as_bytes());
        log.write(format!("{} after", &key[10..]).as_bytes());
        for max in 1..60 {
            let (text, _) = log.tail(max, &redactor);
            assert!(
                !text.contains("0123456789") && !text.contains("89 after"),
                "{max}: {text}"
            );
        }
    }
}
