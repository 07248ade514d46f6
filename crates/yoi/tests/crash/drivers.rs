//! The kills: a run at its points, a run by the clock, a run with children under way, a recovery at its points.

use crate::checks::{self, Shown, said};
use crate::moments::{self, Dice};
use crate::scene::Scene;
use crate::script;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, Output};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Kills at once.
const WORKERS: usize = 2;
/// Kills by the clock.
const CLOCK: usize = 4;
/// Points of one recovery, by default.
const RECOVERY_SAMPLE: usize = 7;
/// How long a child may take to come up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What will be done.
pub(crate) struct Plan {
    pub(crate) reached: usize,
    pub(crate) names: usize,
    pub(crate) named: Vec<String>,
    pub(crate) random: Vec<String>,
    pub(crate) clock: Vec<Duration>,
    /// The point to kill at to have a recovery with work to do.
    base: String,
}

/// What was done.
#[derive(Default)]
pub(crate) struct Tally {
    kills: BTreeMap<&'static str, usize>,
    failed: Vec<String>,
}

impl Plan {
    /// Runs the script to its end once, undisturbed, and chooses from the points it reached.
    pub(crate) fn choose(seed: u64) -> Self {
        let place = Scene::new();
        let began = Instant::now();
        let (output, reached) = place.record();
        let took = began.elapsed();
        assert!(output.status.success(), "{}", said(&output));
        checks::all(&place, &checks::shown(&output)).unwrap();
        assert_eq!(checks::calls(&place), Ok(script::CALLS));
        let (names, named) = moments::named(&reached);
        let mut dice = Dice(seed.rotate_left(32) | 1);
        let clock = (0..CLOCK)
            .map(|_| took.mul_f64((dice.roll() % 1000) as f64 / 1000.0))
            .collect();
        let groups = reached
            .iter()
            .filter(|name| *name == "journal:written")
            .count();
        let base = format!("journal:written:{}", groups * 8 / 10);
        Self {
            reached: reached.len(),
            names,
            named,
            random: moments::random(reached.len(), seed),
            clock,
            base,
        }
    }
}

/// Every chosen moment of the run.
pub(crate) fn matrix(plan: &Plan, tally: &mut Tally) {
    let at_points = |points: &[String]| {
        each(points, |point| {
            let place = Scene::new();
            let killed = place.run(Some(point));
            follow(&place, &killed).map_err(|why| format!("{point}: {why}"))
        })
    };
    tally.add("at named points", at_points(&plan.named));
    tally.add("at random points", at_points(&plan.random));
    tally.add(
        "by the clock",
        each(&plan.clock, |after| {
            let place = Scene::new();
            let mut child = place.run_command(None).spawn().unwrap();
            thread::sleep(*after);
            child.kill().unwrap();
            let killed = child.wait_with_output().unwrap();
            // It may have been done, or not begun.
            if killed.status.success() || !place.pod().join("log").exists() {
                return Ok(());
            }
            follow(&place, &killed)
        }),
    );
}

/// A kill while children are known to be running, two of them in sessions of their own, one without an environment.
pub(crate) fn survivors(tally: &mut Tally) {
    const SCRIPT: &str = r#"{"calls":[{"name":"Bash","arguments":{"command":"setsid sleep 300 & setsid env -i /bin/sleep 300 & echo up > up; sleep 300"}}]}
{"text":"done"}
"#;
    tally.add(
        "with children running",
        each(&["children"], |_| {
            let place = Scene::new();
            place.script(SCRIPT);
            // In the sandbox the kernel ends them, where it has namespaces.
            let outside = ["--sandbox", "off", "--allow", "Bash"];
            let mut child = place.run_command(None).args(outside).spawn().unwrap();
            let began = Instant::now();
            while fs::read_to_string(place.project().join("up"))
                .map_or(true, |text| text.is_empty())
            {
                if began.elapsed() > PATIENCE {
                    child.kill().unwrap();
                    return Err(format!(
                        "no child came up: {}",
                        said(&child.wait_with_output().unwrap())
                    ));
                }
                thread::sleep(Duration::from_millis(5));
            }
            child.kill().unwrap();
            let killed = child.wait_with_output().unwrap();
            if checks::alive(&checks::session(&place)).len() < 2 {
                return Err("the children died with the pod; this shows nothing".to_owned());
            }
            follow(&place, &killed)
        }),
    );
}

/// Changes the end of the log.
type Spoil = fn(&Scene);

/// What a crash can make of the end of the log.
const TAILS: [(&str, Spoil); 4] = [
    ("a whole batch that nobody proved", |_| {}),
    ("a torn batch", |place| {
        let file = OpenOptions::new()
            .write(true)
            .open(place.segment())
            .unwrap();
        file.set_len(file.metadata().unwrap().len() - 20).unwrap();
    }),
    ("zeros", |place| append(place, &[0; 4096])),
    ("rubbish", |place| append(place, b"{\"c\":\"no frame\"}\n")),
];

fn append(place: &Scene, bytes: &[u8]) {
    OpenOptions::new()
        .append(true)
        .open(place.segment())
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

/// For each kind of end: a recovery that is killed at its own points, up to the turn that follows it.
pub(crate) fn recoveries(plan: &Plan, tally: &mut Tally) {
    let done = each(&TAILS, |(_, spoil)| {
        let place = Scene::new();
        let killed = place.run(Some(&plan.base));
        spoil(&place);
        place.keep();
        let (output, reached) = place.record();
        if !output.status.success() {
            return Err(said(&output));
        }
        let turn = reached
            .iter()
            .position(|name| name == "commit:turn_started")
            .unwrap_or(reached.len());
        let points: Vec<usize> = (1..=turn + 1).collect();
        let points = if moments::all() {
            points
        } else {
            moments::sample(&points, RECOVERY_SAMPLE)
        };
        for point in &points {
            place.restore();
            let at = format!("any:{point} ({})", reached[point - 1]);
            recovery(&place, &killed, *point).map_err(|why| format!("{at}: {why}"))?;
        }
        Ok(points.len())
    });
    let counted: usize = done.iter().filter_map(|(_, done)| done.as_ref().ok()).sum();
    let failed = done
        .into_iter()
        .zip(TAILS)
        .filter_map(|((_, done), (name, _))| Some((name, done.err()?)));
    failed.for_each(|(name, why)| tally.fail(format!("recovery of {name}: {why}")));
    tally.kills.insert("during recovery", counted);
}

/// Kills a recovery, and the recovery of that one point later, then lets it be.
fn recovery(place: &Scene, killed: &Output, point: usize) -> Result<(), String> {
    let mut shown = checks::shown(killed);
    let before = place.effects();
    for at in [point, point + 1] {
        let again = place.run(Some(&format!("any:{at}")));
        if again.status.signal() != Some(9) {
            return Err(format!("was not killed: {}", said(&again)));
        }
        let seen = checks::shown(&again);
        checks::nothing_early(place, &seen)?;
        shown.extend(seen);
    }
    if place.effects() != before {
        return Err("recovery did something".to_owned());
    }
    go_on(place, &shown)
}

/// After a kill: the checks at once, then the next run, then all checks.
fn follow(place: &Scene, killed: &Output) -> Result<(), String> {
    if killed.status.signal() != Some(9) {
        return Err(format!("was not killed: {}", said(killed)));
    }
    let shown = checks::shown(killed);
    checks::nothing_early(place, &shown)?;
    go_on(place, &shown)
}

fn go_on(place: &Scene, shown: &[Shown]) -> Result<(), String> {
    let next = place.run(None);
    if !next.status.success() {
        return Err(format!("the next run: {}", said(&next)));
    }
    checks::all(place, shown)
}

/// Each one on one of the workers; which one it was, and what came of it.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    check: impl Fn(&T) -> Result<R, String> + Sync,
) -> Vec<(usize, Result<R, String>)> {
    let next = Mutex::new(0..items.len());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(at) = next.lock().unwrap().next() else {
                        return;
                    };
                    let result = check(&items[at]);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done
}

impl Tally {
    pub(crate) fn add(&mut self, what: &'static str, done: Vec<(usize, Result<(), String>)>) {
        self.kills.insert(what, done.len());
        done.into_iter()
            .filter_map(|(_, done)| done.err())
            .for_each(|why| self.fail(format!("{what}: {why}")));
    }

    /// Said at once: what follows may hang for the same reason.
    pub(crate) fn fail(&mut self, what: String) {
        println!("FAILED {what}\n");
        self.failed.push(what);
    }

    /// Says what was done, and what that means for the test.
    pub(crate) fn end(&self, took: Duration) -> ExitCode {
        for (what, count) in &self.kills {
            println!("{count:>4} kills {what}");
        }
        println!("{} failed, {:.0} s", self.failed.len(), took.as_secs_f64());
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
