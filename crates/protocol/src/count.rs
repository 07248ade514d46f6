//! Numbers with their noun, and lengths of time.

use std::time::Duration;

/// `1 file`, `2 files`, `2 processes`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    let end = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{end}")
}

/// What left the context: `results`, `steps` or `turns`, how many results, and bytes by part.
#[must_use]
pub fn left_context(level: &str, results: u64, parts: &[(String, u64)]) -> String {
    let what = match level {
        "turns" => "the oldest turns and their steps left the context".to_owned(),
        "steps" => format!(
            "old steps with {} left the context",
            count(results, "result")
        ),
        _ => format!("{} left the context", count(results, "old result")),
    };
    let parts = parts
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(part, bytes)| format!("{part} {bytes} bytes"));
    format!("{what}: {}", parts.collect::<Vec<_>>().join(", "))
}

/// An amount of memory: `812 KiB`, `14 MiB`, `1.5 GiB`.
#[must_use]
pub fn bytes(number: u64) -> String {
    match number >> 10 {
        kib @ 0..1024 => format!("{kib} KiB"),
        kib @ 1024..1_048_576 => format!("{} MiB", kib >> 10),
        kib => {
            let tenths = kib.saturating_mul(10) >> 20;
            format!("{}.{} GiB", tenths / 10, tenths % 10)
        }
    }
}

/// A length of time in at most two units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h`, `12 d 4 h`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = |large: u64, small: u64, names: [&str; 2]| {
        let whole = seconds / large;
        let rest = seconds % large / small;
        let rest = if rest == 0 {
            String::new()
        } else {
            format!(" {rest} {}", names[1])
        };
        format!("{whole} {}{rest}", names[0])
    };
    match seconds {
        0..10 if time.subsec_millis() > 0 => format!("{:.1} s", time.as_secs_f64()),
        0..60 => format!("{seconds} s"),
        60..3_600 => units(60, 1, ["min", "s"]),
        3_600..86_400 => units(3_600, 60, ["h", "min"]),
        _ => units(86_400, 3_600, ["d", "h"]),
    }
}
