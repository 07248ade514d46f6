//! What it costs that old results and steps leave the requests.

use crate::Amount;
use crate::table::Table;
use authority::Ambient;
use bench::pods::{Asks, Mark, PodPlace};
use bench::ratio::{median, ms};

/// Its changes mask a good 100,000 tokens each.
const LARGE: Asks = Asks {
    steps: 400,
    calls: 1,
    lines: 200,
    window: Some(360_000),
};

/// A small window: there are many changes, of both levels.
const SMALL: Asks = Asks {
    steps: 5_000,
    calls: 1,
    lines: 30,
    window: Some(32_000),
};

/// Milliseconds that masking may add to a step.
const MASKING: f64 = 20.0;

/// The steps that are compared, `BLOCK` from each.
const EARLY: usize = 100;
const BLOCK: usize = 500;

pub(crate) fn context(ambient: &Ambient, _: &std::path::Path, amount: Amount, table: &mut Table) {
    let marks = PodPlace::new().run_of(ambient, LARGE);
    let (changes, others): (Vec<_>, Vec<_>) = steps(&marks).partition(is_change);
    let time = |steps: &[(Mark, Mark)]| median(&steps.iter().map(took).collect::<Vec<_>>());
    let sizes = |of: fn(&(Mark, Mark)) -> u64| {
        median(
            &changes
                .iter()
                .map(|step| of(step) as f64 / 1e3)
                .collect::<Vec<_>>(),
        )
    };
    table.added(
        "a step that masks old results, floor one that does not",
        (time(&changes), time(&others)),
        "ms",
        MASKING,
    );
    table.figure(
        "  bytes that leave",
        sizes(|(from, to)| from.body.saturating_sub(to.body)),
        "kB",
        None,
    );
    table.figure(
        "  bytes of prompt cache lost",
        sizes(|(from, to)| from.body.saturating_sub(to.kept)),
        "kB",
        None,
    );
    table.figure(
        "  steps for each change",
        others.len() as f64 / changes.len() as f64,
        "",
        None,
    );
    let asks = Asks {
        steps: SMALL.steps.min(amount.steps * 5),
        ..SMALL
    };
    let marks = PodPlace::new().run_of(ambient, asks);
    let all: Vec<_> = steps(&marks).collect();
    // Medians, because another process on the machine makes single steps many times as long.
    let blocks = [&all[all.len() - BLOCK..], &all[EARLY..EARLY + BLOCK]];
    for (what, wanted) in [("steps", false), ("changes of the view", true)] {
        let of = |block: &[(Mark, Mark)]| {
            let chosen = block.iter().filter(|step| is_change(step) == wanted);
            median(&chosen.map(took).collect::<Vec<_>>())
        };
        let what = format!(
            "{what} among the last {BLOCK} of {} steps in a small window, floor from step {EARLY}",
            asks.steps
        );
        let [late, early] = blocks.map(of);
        table.ratio(&what, (late, early), "ms", Some(1.1));
    }
    let changes: Vec<_> = all.iter().filter(|step| is_change(step)).collect();
    table.figure(
        "  steps for each change",
        all.len() as f64 / changes.len() as f64,
        "",
        None,
    );
    let lost: Vec<f64> = changes
        .iter()
        .map(|(from, to)| from.body.saturating_sub(to.kept) as f64 / 1e3)
        .collect();
    table.figure(
        "  bytes of prompt cache lost by each",
        median(&lost),
        "kB",
        None,
    );
}

fn steps(marks: &[Mark]) -> impl Iterator<Item = (Mark, Mark)> {
    marks.windows(2).map(|pair| (pair[0], pair[1]))
}

/// Whether something has left.
fn is_change((from, to): &(Mark, Mark)) -> bool {
    to.body < from.body
}

/// From the answer to the next request.
fn took((from, to): &(Mark, Mark)) -> f64 {
    ms(to.at.duration_since(from.marked))
}
