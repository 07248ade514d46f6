//! Generated texts that are judged transparent are run by bash itself: every program that it starts must be listed.

use super::chance::Chance;
use super::jail::Jail;
use super::{OFF, World, about, layer};
use pod::permission::{Policy, RuleDecision::Allow};
use shell::{CommandLine, Part, RedirectKind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::TERMS;

/// Set: how many texts are compared. Otherwise [`FEW`].
const VARIABLE: &str = "YOI_TEST_COMMANDS";

/// As many take about ten seconds on two cores.
const FEW: usize = 4_000;

/// Texts of one seed, at the most.
const CHUNK: usize = 5_000;

const THREADS: usize = 2;

/// Texts for one bash.
const BATCH: usize = 200;

/// Texts that are generated for one that is transparent, at the most.
const MAX_TRIES: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Texts that were transparent and that bash ran.
    pub(super) compared: usize,
    /// Names that it looked for.
    pub(super) started: usize,
    /// Texts whose bash did not end.
    stopped: usize,
    /// Texts that rules about some of the programs admit with the sandbox off.
    admitted: usize,
    wrong: Vec<String>,
}

/// Allows half of the programs that are generated.
struct Rules {
    world: World,
    policy: Policy,
    allowed: BTreeSet<String>,
}

impl Rules {
    fn new() -> Self {
        let names = (1..=6)
            .flat_map(|n| [format!("p{n}"), format!("q{n}")])
            .chain(["git", "cargo", "cat"].map(str::to_owned));
        let allowed: BTreeSet<String> = names.collect();
        let rules = allowed.iter().map(|name| about(name, Allow)).collect();
        Self {
            world: World::new(),
            policy: Policy::new(TERMS, vec![layer("--allow", rules)]),
            allowed,
        }
    }
}

#[test]
fn what_bash_starts_of_anything_is_among_the_parts() {
    let wanted = wanted(FEW);
    let each = wanted.div_ceil(THREADS).min(CHUNK);
    let chunks = wanted.div_ceil(each);
    let next = AtomicUsize::new(0);
    let run = || {
        let mut seen = Seen::default();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return seen;
            }
            let found = compare_generated(chunk as u64 + 1, each);
            if !found.wrong.is_empty() {
                next.store(chunks, Ordering::Relaxed);
            }
            seen.add(found);
        }
    };
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(run));
        threads
            .into_iter()
            .for_each(|thread| seen.add(thread.join().unwrap()));
    });
    println!("{}", seen.summary());
    seen.check();
    if Jail::new().is_some() {
        assert!(
            seen.compared * 100 >= wanted * 95
                && seen.started > seen.compared / 2
                && seen.admitted > seen.compared / 20,
            "too little was compared: {}",
            seen.summary()
        );
    }
}

/// How many texts are asked for.
pub(super) fn wanted(few: usize) -> usize {
    std::env::var(VARIABLE).map_or(few, |number| number.parse().unwrap())
}

fn compare_generated(seed: u64, count: usize) -> Seen {
    let mut chance = Chance::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut left = count;
    let mut tries = count * MAX_TRIES;
    let mut seen = compare(|| {
        left = left.checked_sub(1)?;
        loop {
            tries = tries.checked_sub(1)?;
            let text = chance.text();
            if runs_here(&shell::parse(&text), &text) {
                return Some(text);
            }
        }
    });
    seen.wrong
        .iter_mut()
        .for_each(|wrong| *wrong = format!("seed {seed}: {wrong}"));
    seen
}

/// Runs texts until there are none.
pub(super) fn compare(next: impl FnMut() -> Option<String>) -> Seen {
    let Some(jail) = Jail::new() else {
        eprintln!("not compared: this kernel has no sandbox for it");
        return Seen::default();
    };
    compare_in(&jail, next)
}

pub(super) fn compare_in(jail: &Jail, mut next: impl FnMut() -> Option<String>) -> Seen {
    let mut seen = Seen::default();
    let rules = Rules::new();
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut rest = true;
        while batch.len() < BATCH && rest {
            match next() {
                Some(text) if runs_here(&shell::parse(&text), &text) => batch.push(text),
                Some(_) => {}
                None => rest = false,
            }
        }
        match jail.run(&batch) {
            Some(started) => batch
                .iter()
                .zip(started)
                .for_each(|(text, started)| seen.judge(text, &started, &rules)),
            None => seen.stopped += batch.len(),
        }
        if !rest {
            break;
        }
    }
    seen
}

impl Seen {
    /// Fails when something started that is not listed.
    pub(super) fn check(&self) {
        assert!(
            self.wrong.is_empty(),
            "{} texts are wrong:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
    }

    pub(super) fn summary(&self) -> String {
        let Self {
            compared,
            started,
            stopped,
            admitted,
            wrong,
        } = self;
        format!(
            "{compared} transparent texts ran, {started} programs started, {} texts are wrong, {stopped} were stopped; \
             rules admitted {admitted} with the sandbox off",
            wrong.len()
        )
    }

    fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.started += other.started;
        self.stopped += other.stopped;
        self.admitted += other.admitted;
        self.wrong.extend(other.wrong);
    }

    fn judge(&mut self, text: &str, started: &BTreeSet<String>, rules: &Rules) {
        let parts = shell::parse(text).parts;
        let mut known: BTreeSet<&str> = parts
            .iter()
            .filter_map(|part| part.program.as_ref()?.literal())
            .collect();
        known.extend(
            parts
                .iter()
                .flat_map(|part| &part.wrappers)
                .map(String::as_str),
        );
        let missed: Vec<_> = started
            .iter()
            .filter(|name| !known.contains(name.as_str()))
            .collect();
        if !missed.is_empty() && self.wrong.len() < 40 {
            self.wrong.push(format!(
                "{text:?}: bash starts {missed:?}, the parts are {known:?}"
            ));
        }
        if rules.world.runs(&rules.policy, text, OFF) {
            let wraps = |name: &String| parts.iter().any(|part| part.wrappers.contains(name));
            let more: Vec<_> = started
                .iter()
                .filter(|name| !rules.allowed.contains(*name) && !wraps(name))
                .collect();
            if !more.is_empty() && self.wrong.len() < 40 {
                self.wrong.push(format!(
                    "{text:?}: bash starts {more:?}, which no rule allows"
                ));
            }
            self.admitted += 1;
        }
        self.compared += 1;
        self.started += started.len();
    }
}

/// Whether bash may be let at it: nothing is opaque, and it starts nothing by a path, writes nothing outside of its
/// directory, and has no function that starts one.
fn runs_here(script: &CommandLine, text: &str) -> bool {
    let parts = &script.parts;
    let by_path = |part: &Part| {
        part.program
            .as_ref()
            .is_some_and(|word| word.bare().contains('/'))
    };
    let far = |part: &Part| {
        part.redirections.iter().any(|redirection| {
            let file = matches!(redirection.kind, RedirectKind::Read | RedirectKind::Write);
            file && redirection
                .target
                .literal()
                .is_none_or(|path| path.starts_with('/') && path != "/dev/null")
        })
    };
    let calls = |part: &Part| {
        script
            .functions
            .iter()
            .any(|function| part.program_name() == Some(&function.name))
    };
    let recursive = script
        .functions
        .iter()
        .any(|function| parts[function.body.clone()].iter().any(calls));
    parts.iter().all(|part| part.opaque.is_none())
        && !parts.iter().any(|part| by_path(part) || far(part))
        && !recursive
        && !text.contains('\0')
}
