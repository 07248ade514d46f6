//! Who is inside. Going in costs one atomic exchange, leaving none.
//!
//! A seat is a word that its holder alone writes while it sits: nobody takes a taken seat, so giving it back is a
//! plain store. When all are taken, a pair of counters holds the rest, at the usual two additions for each.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many sit beside the first before the rest stands.
const OTHERS: usize = 3;

/// Somebody sits here. The bits above count who ever sat.
const TAKEN: u64 = 1;
const ONCE: u64 = 2;

/// A taken seat: its number, or [`STANDING`], and its word as it was before. With that at hand, leaving need not wait
/// for the exchange to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    at: u8,
    before: u64,
}

/// The first seat's number, which an uncontended use has; the others follow.
const FIRST: u8 = 0;
const STANDING: u8 = u8::MAX;

impl Seat {
    /// How many sat or stood there before, for what is done once in a while.
    pub(super) fn earlier(self) -> u64 {
        self.before / ONCE
    }
}

#[derive(Debug, Default)]
pub(super) struct Seats {
    first: AtomicU64,
    others: [AtomicU64; OTHERS],
    standing: AtomicU64,
    stood: AtomicU64,
}

impl Seats {
    /// Goes in.
    #[inline]
    pub(super) fn take(&self) -> Seat {
        sit(&self.first, FIRST).unwrap_or_else(|| self.take_another())
    }

    #[cold]
    fn take_another(&self) -> Seat {
        let found = self.others.iter().zip(FIRST + 1..).find_map(|(word, at)| sit(word, at));
        found.unwrap_or_else(|| {
            self.standing.fetch_add(1, Ordering::SeqCst);
            Seat { at: STANDING, before: self.stood.fetch_add(1, Ordering::Relaxed).wrapping_mul(ONCE) }
        })
    }

    /// Goes out; what was done inside is over for whoever sees nobody afterwards.
    #[inline]
    pub(super) fn leave(&self, seat: Seat) {
        let after = seat.before.wrapping_add(ONCE);
        if seat.at == FIRST { self.first.store(after, Ordering::Release) } else { self.leave_another(seat, after) }
    }

    /// Goes out as if never in.
    pub(super) fn undo(&self, seat: Seat) {
        match seat.at {
            FIRST => self.first.store(seat.before, Ordering::Release),
            STANDING => {
                self.stood.fetch_sub(1, Ordering::Relaxed);
                self.leave_another(seat, seat.before);
            }
            _other => self.leave_another(seat, seat.before),
        }
    }

    #[cold]
    fn leave_another(&self, seat: Seat, after: u64) {
        match self.others.get(usize::from(seat.at).wrapping_sub(1)) {
            Some(word) => word.store(after, Ordering::Release),
            None => {
                self.standing.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    pub(super) fn are_empty(&self) -> bool {
        let nobody_sits = self.words().all(|word| word.load(Ordering::SeqCst) & TAKEN == 0);
        nobody_sits && self.standing.load(Ordering::SeqCst) == 0
    }

    /// How many ever went in.
    pub(super) fn total(&self) -> u64 {
        let sat = self.words().map(|word| word.load(Ordering::Relaxed) / ONCE);
        sat.fold(self.stood.load(Ordering::Relaxed), u64::wrapping_add)
    }

    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

#[inline]
fn sit(word: &AtomicU64, at: u8) -> Option<Seat> {
    // Expected to be free; a taken one makes the exchange fail.
    let before = word.load(Ordering::Relaxed) & !TAKEN;
    let taken = before.wrapping_add(ONCE | TAKEN);
    let sits = word.compare_exchange(before, taken, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    sits.then_some(Seat { at, before })
}
