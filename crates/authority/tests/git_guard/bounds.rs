//! How much is looked at, that a bound is told, and what a look costs.

use crate::scene::{scene, told};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Until its last change lies before what follows by any clock: the times of file systems tick.
fn grown_old(path: &Path) {
    let changed = path.metadata().unwrap().modified().unwrap();
    while changed.elapsed().unwrap() < Duration::from_millis(250) {
        std::thread::yield_now();
    }
}

#[test]
fn more_than_is_looked_at_is_told_once() {
    let scene = scene();
    (0..1500).for_each(|n| fs::create_dir(scene.path(&format!("src/{n}"))).unwrap());
    fs::create_dir(scene.path("there/x")).unwrap();
    assert!(scene.run("true").is_empty());
    // Beyond the bound by a command, which then is the one that did something.
    let found = scene.run("cd src; seq 1500 2500 | xargs mkdir");
    assert_eq!(told(&scene, &found), ["bound "]);
    assert!(scene.run("true").is_empty());
    // What is nearest is still watched.
    let found = scene.run("git config core.pager evil");
    assert_eq!(told(&scene, &found), ["put back .git/config core.pager"]);
    // The person's own, which comes into view when there is less, is not taken for new.
    scene.git("init -q there/x/own && git -C there/x/own config core.pager mine");
    scene.script("there/x/own/.git/hooks/pre-commit", "exit 0");
    grown_old(&scene.path("there/x/own/.git/hooks"));
    assert_eq!(
        told(&scene, &scene.run("cd src; seq 0 2500 | xargs rmdir")),
        [""; 0]
    );
    assert!(scene.path("there/x/own/.git/hooks/pre-commit").exists());
}

#[test]
fn a_bound_that_holds_from_the_start_is_told_with_the_first_command() {
    let scene = scene();
    (0..2100).for_each(|n| fs::create_dir(scene.path(&format!("there/{n}"))).unwrap());
    assert_eq!(told(&scene, &scene.run("true")), ["bound "]);
    assert!(scene.run("true").is_empty());
}

#[test]
fn packages_do_not_hide_what_lies_deeper() {
    let scene = scene();
    (0..2100).for_each(|n| fs::create_dir_all(scene.path(&format!("node_modules/{n}"))).unwrap());
    scene.git("init -q src/a-part/own");
    scene.script("src/a-part/own/.git/hooks/mine", "exit 0");
    grown_old(&scene.path("src/a-part/own/.git/hooks"));
    assert_eq!(told(&scene, &scene.run("true")), ["bound "]);
    let found = scene.run("echo evil > src/a-part/own/.git/hooks/pre-commit");
    assert_eq!(
        told(&scene, &found),
        ["removed src/a-part/own/.git/hooks/pre-commit"]
    );
}

#[test]
fn many_new_hooks_are_removed_and_counted() {
    let scene = scene();
    let found = scene.run("cd .git/hooks; seq 1 100 | while read n; do echo evil > h$n; done");
    assert_eq!(found.len(), 65);
    assert_eq!(fs::read_dir(scene.path(".git/hooks")).unwrap().count(), 0);
    assert!(
        found[64]
            .text(|path| path.display().to_string())
            .starts_with("36 more changes")
    );
}

/// Figures, not a limit: a busy machine would fail it.
#[test]
fn what_a_look_costs() {
    let scene = scene();
    let guarded = "true";
    let plain = "true";
    (0..100).for_each(|n| fs::create_dir(scene.path(&format!("src/{n}"))).unwrap());
    scene.run(guarded);
    grown_old(&scene.path("src"));
    let rounds = if std::env::var_os("YOI_TEST_GIT").is_some() {
        1000
    } else {
        20
    };
    let mut differences: Vec<i128> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            scene.run(guarded);
            let guarded = begun.elapsed();
            let begun = Instant::now();
            scene.unguarded(plain);
            i128::try_from(guarded.as_nanos()).unwrap()
                - i128::try_from(begun.elapsed().as_nanos()).unwrap()
        })
        .collect();
    differences.sort_unstable();
    println!(
        "a watched command takes {} us more (median of {rounds} pairs)",
        differences[rounds / 2] / 1000
    );
}
