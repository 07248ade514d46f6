//! Every target over its seeds and more than a thousand changes of them: the same ones each time.
//!
//! `YOI_FUZZ_ROUNDS` is how many, `YOI_FUZZ_TARGET` one target alone, `YOI_FUZZ_SEED` another beginning. What breaks a
//! promise is written beside the program, with its path; `YOI_FUZZ_INPUT=path` tries that alone.

use fuzz::mutate::{Dice, mutate};
use fuzz::{TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// By default: less than half a minute for all targets in a debug build.
const ROUNDS: u64 = 1_500;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn number(name: &str, otherwise: u64) -> u64 {
    variable(name).map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number"))
    })
}

/// Each with how it is cut or treated put in front, as the targets want.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = target
        .seeds
        .iter()
        .filter_map(|dir| std::fs::read_dir(here.join(dir)).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| {
            target
                .ends
                .iter()
                .any(|end| path.to_string_lossy().ends_with(end))
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no seeds", target.name);
    let front: &[u8] = match target.name {
        "journal" => b"\x01\0",
        "anthropic" | "openai" => b"\x06",
        _ => b"",
    };
    paths
        .iter()
        .map(|path| [front, &std::fs::read(path).unwrap()].concat())
        .collect()
}

fn attempt(target: &Target, input: &[u8], what: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{what}", target.name));
        std::fs::write(&path, input).unwrap();
        panic!(
            "{}: try it alone with YOI_FUZZ_TARGET={} YOI_FUZZ_INPUT={}",
            target.name,
            target.name,
            path.display()
        );
    }
}

#[test]
fn promises_hold_for_changed_seeds() {
    let rounds = number("YOI_FUZZ_ROUNDS", ROUNDS);
    let begin = number("YOI_FUZZ_SEED", 0);
    let only = variable("YOI_FUZZ_TARGET");
    let mut tried = 0;
    for target in TARGETS
        .iter()
        .filter(|target| only.as_ref().is_none_or(|only| only == target.name))
    {
        if let Some(path) = variable("YOI_FUZZ_INPUT") {
            (target.run)(&std::fs::read(path).unwrap());
            return;
        }
        let seeds = seeds(target);
        for (number, seed) in seeds.iter().enumerate() {
            attempt(target, seed, &format!("seed-{number}"));
        }
        for round in 0..rounds {
            let mut dice = Dice::new(begin + round);
            let one = dice.below(seeds.len());
            let other = dice.below(seeds.len());
            let input = mutate(&seeds[one], &seeds[other], target.words, &mut dice);
            attempt(target, &input, &round.to_string());
        }
        tried += 1;
        println!("{}: {} seeds, {rounds} changes", target.name, seeds.len());
    }
    assert!(tried > 0, "no target of that name");
}
