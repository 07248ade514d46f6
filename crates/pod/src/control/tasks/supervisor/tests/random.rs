//! Random stories in simulated time: runs that end in every way and order, a disk that refuses for a while, jumps of the
//! clock, kills at any moment. Whatever was written can be folded. A failing seed is printed.

use super::world::World;
use super::{MINUTE, NOW, RequestTime, SupervisorInput, TaskRunEnd, cron, every, spec};
use crate::control::tasks::supervisor::TaskSpec;
use crate::control::tasks::supervisor::spec::Schedule;
use crate::feature::{Restart, TaskTrigger};
use crate::record::TriggerKind;
use crate::schedule::tests::dice::{Dice, are_many, seeds};
use llm_worker::ToolEffect;
use std::time::Duration;

const DAY: u64 = 24 * 60 * MINUTE;

/// What all seeds together met.
#[derive(Default)]
struct Met {
    runs: u64,
    kills: usize,
    /// Times when the disk became full, and ends that it refused.
    refusals: usize,
    kept: u64,
    jumps: usize,
    late: usize,
    settled: usize,
}

fn schedule(dice: &mut Dice) -> TaskTrigger {
    const EXPRESSIONS: &[&str] = &[
        "*/5 * * * *",
        "17 * * * *",
        "0 9 * * MON-FRI",
        "30 2 * * *",
        "0 0 1 * *",
    ];
    const ZONES: &[&str] = &["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"];
    const EVERY: &[u64] = &[1_000, 45_000, 7 * MINUTE, 60 * MINUTE, 3 * DAY];
    if dice.one_in(2) {
        cron(
            EXPRESSIONS[dice.below(EXPRESSIONS.len())],
            ZONES[dice.below(ZONES.len())],
        )
    } else {
        every(EVERY[dice.below(EVERY.len())])
    }
}

fn some_task(dice: &mut Dice, at: usize) -> TaskSpec {
    let mut triggers = Vec::new();
    for _ in 0..1 + dice.below(2) {
        triggers.push(match dice.below(5) {
            0 => TaskTrigger::Start,
            1 => TaskTrigger::Request,
            _ => schedule(dice),
        });
    }
    let effect = [
        ToolEffect::ReadOnly,
        ToolEffect::Idempotent,
        ToolEffect::Effectful,
        ToolEffect::Effectful,
    ];
    let seconds = |dice: &mut Dice, most: usize| Duration::from_secs(1 + dice.below(most) as u64);
    let restart = match dice.below(4) {
        0 => Restart::Always {
            backoff: seconds(dice, 600),
        },
        1 => Restart::OnFailure {
            max: 1 + dice.below(5) as u32,
            within: seconds(dice, 7200),
            backoff: seconds(dice, 60),
        },
        _ => Restart::Never,
    };
    let mut task = spec(&format!("t{at}"), effect[dice.below(4)], &triggers, restart);
    task.feature = format!("test:f{}", at % 3);
    task
}

fn play(seed: u64, met: &mut Met) {
    let mut dice = Dice::new(seed);
    let most = if dice.one_in(4) { 20 } else { 5 };
    let count = 1 + dice.below(most);
    let specs = (0..count).map(|at| some_task(&mut dice, at)).collect();
    let mut world = World::new(NOW + dice.below(365) as u64 * DAY, specs);
    let killing = 20 + dice.below(300);
    let jumping = 20 + dice.below(300);
    let refusing = 3 + dice.below(30);
    for _ in 0..300 {
        match dice.below(14) {
            0..=2 => world.flush(),
            3 if dice.one_in(refusing) => {
                world.journal.is_full = true;
                met.refusals += 1;
            }
            12 if dice.one_in(3) => world.journal.is_full = false,
            12 => world.journal.retry(),
            13 => world.journal.write_out(),
            3..=5 => end_one(&mut world, &mut dice),
            6 => late(&mut world, &mut dice, met),
            7 => request(&mut world, &mut dice),
            8 => {
                let soon = dice.below(90_000) as u64;
                world.set_clock(world.now + soon);
            }
            _ => {
                // Asleep until the next look, or longer, as machines are.
                let late = if dice.one_in(20) {
                    dice.below(3 * DAY as usize) as u64
                } else {
                    0
                };
                let look = world
                    .supervisor
                    .next_look(world.now)
                    .unwrap_or(world.now + MINUTE);
                world.set_clock(look + late);
            }
        }
        if dice.one_in(jumping) {
            let far = [2_000, 400_000, DAY, 400 * DAY][dice.below(4)];
            let by = dice.below(far as usize) as u64;
            let clock = if dice.one_in(2) {
                world.now + by
            } else {
                world.now - by
            };
            world.set_clock(clock);
            met.jumps += 1;
        }
        if dice.one_in(killing) {
            let durable = dice.below(8);
            let down = dice.below(2 * DAY as usize) as u64;
            world.kill(durable, if dice.one_in(2) { down } else { 0 });
            met.kills += 1;
        }
        if dice.one_in(200) {
            let feature = format!("test:f{}", dice.below(3));
            world.disable(&feature);
        }
        if dice.one_in(50) {
            world.settle();
            met.settled += 1;
        }
    }
    finish(&mut world, &mut dice);
    met.runs += world.journal.begun + world.journal.others;
    met.kept += world.journal.kept;
}

/// The pod ends: everything that began has its end.
fn finish(world: &mut World, dice: &mut Dice) {
    world.close();
    for _ in 0..100 {
        match dice.below(3) {
            0 => world.flush(),
            1 => end_one(world, dice),
            _ => world.set_clock(world.now + DAY),
        }
    }
    while let Some(run) = world.bodies.keys().next().copied() {
        world.end(run, TaskRunEnd::Cancelled);
    }
    world.sync();
    assert!(world.supervisor.is_done());
    assert_eq!(
        world.journal.begun, world.journal.ended,
        "each run has one end"
    );
}

fn end_one(world: &mut World, dice: &mut Dice) {
    let runs: Vec<u64> = world.bodies.keys().copied().collect();
    if runs.is_empty() {
        return;
    }
    let end = match dice.below(5) {
        0 => TaskRunEnd::Failed("it failed".to_owned()),
        1 => TaskRunEnd::TimedOut("it was slow".to_owned()),
        2 => TaskRunEnd::Cancelled,
        _ => TaskRunEnd::Completed,
    };
    world.end(runs[dice.below(runs.len())], end);
}

/// Reports that change nothing: of runs that are over or never began, twice, or too early.
fn late(world: &mut World, dice: &mut Dice, met: &mut Met) {
    let waiting = world.journal.starting();
    let running: Vec<u64> = world.bodies.keys().copied().collect();
    let runs: Vec<u64> = world
        .over
        .iter()
        .chain(&waiting)
        .chain(&running)
        .chain(&[0, u64::MAX])
        .copied()
        .collect();
    let run = runs[dice.below(runs.len())];
    let ended = SupervisorInput::Ended {
        run,
        end: TaskRunEnd::Completed,
        ms: 1,
    };
    met.late += 1;
    world.handle(match dice.below(3) {
        _ if waiting.contains(&run) => ended,
        0 => SupervisorInput::Committed { run },
        2 if !running.contains(&run) => ended,
        _ => SupervisorInput::Refused { run },
    });
}

fn request(world: &mut World, dice: &mut Dice) {
    if dice.one_in(4) {
        let TaskSpec { feature, task, .. } = world.specs[dice.below(world.specs.len())].clone();
        return world.handle(SupervisorInput::Triggered {
            feature,
            task,
            trigger: TriggerKind::ServiceEvent,
        });
    }
    let time = match dice.below(3) {
        0 => RequestTime::Now,
        1 => RequestTime::At(world.now + dice.below(DAY as usize) as u64),
        _ => RequestTime::Clear,
    };
    world.request(dice.below(world.specs.len()), time);
}

#[test]
fn random_stories_keep_every_promise() {
    let mut met = Met::default();
    for seed in seeds() {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut one = Met::default();
            play(seed, &mut one);
            one
        }));
        let one = caught.unwrap_or_else(|_| panic!("seed {seed} failed"));
        met.runs += one.runs;
        met.kills += one.kills;
        met.refusals += one.refusals;
        met.kept += one.kept;
        met.jumps += one.jumps;
        met.late += one.late;
        met.settled += one.settled;
    }
    let Met {
        runs,
        kills,
        refusals,
        kept,
        jumps,
        late,
        settled,
    } = met;
    let least = [
        runs / 20,
        kills as u64,
        refusals as u64,
        kept,
        jumps as u64,
        late as u64 / 5,
        settled as u64,
    ];
    assert!(
        least.iter().all(|count| *count > 100) || !are_many(&seeds()),
        "hardly anything was met: {least:?}"
    );
}

/// Without jumps, kills and refusals, and with runs that are short, each due time of each schedule is one run.
fn play_window(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let specs: Vec<TaskSpec> = (0..1 + dice.below(12))
        .map(|at| {
            spec(
                &format!("t{at}"),
                ToolEffect::ReadOnly,
                &[schedule(&mut dice)],
                Restart::Never,
            )
        })
        .collect();
    let from = NOW + dice.below(365) as u64 * DAY;
    let mut world = World::new(from, specs.clone());
    for _ in 0..150 {
        let Some(look) = world.supervisor.next_look(world.now) else {
            break;
        };
        world.set_clock(look);
        while let Some(run) = world.bodies.keys().next().copied() {
            world.end(run, TaskRunEnd::Completed);
        }
    }
    for (task, spec) in specs.iter().enumerate() {
        let ran: Vec<u64> = world
            .due_times
            .iter()
            .filter(|(of, _)| *of == task)
            .map(|(_, due)| *due)
            .collect();
        let next = |due: &u64| match &spec.schedules[0] {
            Schedule::Interval(interval) => Some(interval.next_after(Some(*due), *due)),
            Schedule::Cron(cron) => cron.next_after(*due),
        };
        let due = std::iter::successors(next(&from), next).take_while(|due| *due <= world.now);
        assert!(
            due.eq(ran.iter().copied()),
            "seed {seed}: {spec:?} ran at {ran:?}"
        );
    }
    world.due_times.len()
}

#[test]
fn each_due_time_is_one_run() {
    let ran: usize = seeds().map(play_window).sum();
    assert!(ran > 10_000 || !are_many(&seeds()), "{ran} runs");
}
