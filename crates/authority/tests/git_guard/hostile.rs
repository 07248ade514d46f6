//! Files that block, lead astray, never end or change while they are looked at.

use crate::scene::{scene, told};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Given, a command, what is told, and what the configuration holds afterwards: `=` for what it held.
const STRANGE: &[(&str, &str, &[&str])] = &[
    (
        "",
        "rm .git/config; mkfifo .git/config",
        &["put back .git/config"],
    ),
    (
        "",
        "ln -sf /dev/zero .git/config",
        &["put back .git/config"],
    ),
    ("", "ln -sf config .git/config", &["put back .git/config"]),
    (
        "",
        "truncate -s 100M .git/config",
        &["put back .git/config"],
    ),
    (
        "",
        "printf '[core' > .git/config",
        &["put back .git/config"],
    ),
    (
        "",
        "printf '[user]\\nname=x\\0y\\n' >> .git/config",
        &["put back .git/config"],
    ),
    (
        "",
        "printf '[core]\\npager=x ;\\n' >> .git/config; printf '[include]\\npath=config\\n' >> .git/config",
        &["put back .git/config core.pager include.path"],
    ),
    (
        "",
        "mkfifo .git/hooks/pre-commit",
        &["removed .git/hooks/pre-commit"],
    ),
    (
        "",
        "ln -s /dev/zero .git/hooks/pre-commit",
        &["removed .git/hooks/pre-commit"],
    ),
    (
        "",
        "truncate -s 100M .git/hooks/pre-commit",
        &["removed .git/hooks/pre-commit"],
    ),
    ("", "mkdir .git/hooks/pre-commit", &[]),
    (
        "",
        "mkfifo src/.git; mkfifo src/HEAD src/objects src/refs; mkfifo .git/commondir",
        &["removed .git/commondir"],
    ),
    (
        "",
        "mkdir -p src/HEAD src/objects src/refs; ln -s . .git/modules; ln -s loop .git/worktrees",
        &["removed .git/modules", "removed .git/worktrees"],
    ),
    (
        "config include.path loop; printf '[include]\\npath=loop\\npath=.git/../loop\\n' > .git/loop",
        "printf '[core]\\npager=x\\n' >> .git/loop",
        &["put back .git/loop core.pager"],
    ),
    (
        "config include.path /dev/zero; git config core.hooksPath /dev",
        "true",
        &[],
    ),
    ("config core.hooksPath ''", "true", &[]),
    (
        "--version; mkfifo .git/hooks/post-commit; ln -s /dev/zero .git/config.worktree",
        "true",
        &[],
    ),
];

#[test]
fn nothing_blocks_and_what_was_there_is_there_again() {
    for (given, command, want) in STRANGE {
        let scene = scene();
        if !given.is_empty() {
            scene.git(given);
        }
        let before = scene.read(".git/config");
        let begun = Instant::now();
        let found = scene.run(command);
        assert!(begun.elapsed() < Duration::from_secs(30), "{command}");
        assert_eq!(told(&scene, &found), *want, "{command}: {found:?}");
        assert_eq!(scene.read(".git/config"), before, "{command}");
        assert!(!scene.path(".git/config").is_symlink());
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_told() {
    let scene = scene();
    let found = scene.run("rm .git/config; mkdir .git/config");
    assert_eq!(told(&scene, &found), ["failed .git/config"]);
}

/// Somebody swaps the directory of hooks for a link while it is compared and put back, again and again: nothing outside
/// is read into the quarantine, changed or removed.
#[test]
fn a_directory_that_is_swapped_meanwhile_leads_nowhere() {
    let scene = scene();
    let hooks = scene.path(".git/hooks");
    let aside = scene.path(".git/aside");
    let link = scene.path(".git/link");
    let theirs = scene.outside.join("theirs");
    fs::create_dir(&theirs).unwrap();
    for n in 0..20 {
        fs::write(theirs.join(format!("h{n}")), "PRIVATE").unwrap();
    }
    symlink(&theirs, &link).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let swap = fs::rename(&hooks, &aside).and_then(|()| fs::rename(&link, &hooks));
                let back = fs::rename(&hooks, &link).and_then(|()| fs::rename(&aside, &hooks));
                if swap.and(back).is_err() {
                    // The guard took one of them: made again.
                    drop(fs::remove_file(&hooks));
                    drop(fs::create_dir_all(&hooks));
                    drop(symlink(&theirs, &link));
                }
            }
        });
        for n in 0..30 {
            scene.run(&format!("for h in 0 1 2 3 4 5 6 7; do echo evil > .git/hooks/h$h; done; echo {n} > /dev/null"));
        }
        done.store(true, Ordering::Relaxed);
    });
    // The command itself writes through the link, too: it is not confined here. What it wrote is no harm of the guard.
    for n in 8..20 {
        assert_eq!(
            fs::read_to_string(theirs.join(format!("h{n}"))).unwrap(),
            "PRIVATE"
        );
    }
    assert_eq!(
        fs::read_dir(&theirs).unwrap().count(),
        20,
        "nothing is removed through a link"
    );
    let kept = std::process::Command::new("grep")
        .args(["-r", "PRIVATE"])
        .arg(&scene.quarantine)
        .output()
        .unwrap();
    assert!(
        kept.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&kept.stdout)
    );
}
