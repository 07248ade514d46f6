//! Scratch directories that are held, stale, removed, or cannot be.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn what_nobody_holds_is_removed_whatever_its_number_says() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let own = std::process::id();
    let random = "0123456789abcdef";
    let stale = [
        format!("yoi-{own}-{random}"),
        format!("yoi-4194304-{random}"),
    ];
    let others = [
        "yoi-12-0123",
        "yoi-x-0123456789abcdef",
        "yoi-ephemeral-12-0123456789abcdef",
    ]
    .map(str::to_owned);
    stale
        .iter()
        .chain(&others)
        .for_each(|name| fs::create_dir_all(at(name).join("sub")).unwrap());
    let held_name = format!("yoi-4194305-{random}");
    fs::create_dir(at(&held_name)).unwrap();
    let held = File::open(at(&held_name)).unwrap();
    held.lock().unwrap();
    fs::create_dir(at("elsewhere")).unwrap();
    symlink(at("elsewhere"), at(&format!("yoi-4194306-{random}"))).unwrap();

    let scratch = Scratch::create(&ambient::claim(), dir.path(), "yoi-").unwrap();
    assert!(stale.iter().all(|name| !at(name).exists()));
    assert!(others.iter().all(|name| at(name).exists()));
    assert!(at(&held_name).exists() && at("elsewhere").exists());
    // Its own too is held, in this process as well.
    let other = Scratch::create(&ambient::claim(), dir.path(), "yoi-").unwrap();
    assert!(scratch.path().exists());
    let paths = [scratch.path().to_owned(), other.path().to_owned()];
    drop(held);
    drop(other);
    scratch.remove().unwrap();
    assert!(paths.iter().all(|path| !path.exists()));
}

/// A start removes for so long, and the next one goes on.
#[test]
fn what_is_left_of_a_stale_one_is_removed_later() {
    let dir = tempfile::tempdir().unwrap();
    let stale = dir.path().join("yoi-4194304-0123456789abcdef");
    (0..30).for_each(|number| fs::create_dir_all(stale.join(format!("{number}/a/b"))).unwrap());
    let closed = stale.join("0/a");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let now = Instant::now();
    remove_stale(dir.path(), "yoi-", now);
    assert!(closed.exists(), "there was no time");
    let held = open(CWD, &stale).map(File::from).unwrap();
    held.lock().unwrap();
    remove_stale(dir.path(), "yoi-", now + MAX_TIME);
    assert!(closed.exists(), "it is held");
    drop(held);
    remove_stale(dir.path(), "yoi-", now + MAX_TIME);
    assert!(!stale.exists());
}

#[test]
fn many_starts_at_once_do_not_take_each_others() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                (0..200).for_each(|_| {
                    drop(Scratch::create(&ambient::claim(), dir.path(), "yoi-").unwrap())
                })
            });
        }
    });
}

#[test]
fn a_removal_that_fails_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = Scratch::create(&ambient::claim(), dir.path(), "yoi-").unwrap();
    fs::create_dir(scratch.path().join("sub")).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o500)).unwrap();
    scratch.remove().unwrap();
    let scratch = Scratch::create(&ambient::claim(), dir.path(), "yoi-").unwrap();
    fs::remove_dir(scratch.path()).unwrap();
    fs::write(scratch.path(), "no directory").unwrap();
    assert!(scratch.remove().is_err());
    let scratch = Scratch::create(&ambient::claim(), dir.path(), "yoi-").unwrap();
    fs::remove_dir(scratch.path()).unwrap();
    scratch.remove().unwrap();
}
