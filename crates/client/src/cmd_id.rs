//! Names of requests that change something: no two of one user are alike, on one machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

static MADE: AtomicU64 = AtomicU64::new(0);

/// A new `cmd_id`: the time, the process and a count. A request that is repeated keeps its own.
#[must_use]
pub fn cmd_id() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros());
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{now:x}-{:x}-{made:x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_fit() {
        let names: BTreeSet<String> = (0..1000).map(|_| cmd_id()).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.len() <= protocol::MAX_CMD_ID));
    }
}
