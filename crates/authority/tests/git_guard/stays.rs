//! What work with git changes stays, what a person changes stays, and what is told is true.

use crate::scene::{Scene, scene, told};
use authority::Handled;
use std::fs;
use std::path::Path;

/// A command, and what the person's git answers afterwards.
const WORK: &[(&str, &str, &str)] = &[
    (
        "echo b > src/b; git add .; git commit -qm three",
        "log --format=%s -1",
        "three",
    ),
    ("git checkout -qb next", "branch --show-current", "next"),
    (
        "echo b > src/a; git stash -q",
        "stash list --format=%s",
        "WIP on main",
    ),
    (
        "git remote add other ../other.git",
        "remote get-url other",
        "../other.git",
    ),
    (
        "git config user.name somebody; git config core.autocrlf input",
        "config user.name",
        "somebody",
    ),
    (
        "git config core.fsmonitor false; git config pager.log true; git config alias.lg 'log --oneline --graph'",
        "lg -1 --format=%s",
        "two",
    ),
    (
        "git init -q nested && git -C nested commit -q --allow-empty -m inner",
        "-C nested log --format=%s",
        "inner",
    ),
    (
        "git init -q --bare b && git push -qu b main",
        "config branch.main.remote",
        "b",
    ),
    ("git clone -q . copy", "-C copy log --format=%s -1", "two"),
    (
        "git clone -q . src/s && git -c protocol.file.allow=always submodule -q add ./src/s sub && git commit -qm sub",
        "-C sub log --format=%s -1",
        "two",
    ),
    (
        "git worktree add -q tree && git -C tree commit -q --allow-empty -m there",
        "-C tree log --format=%s -1",
        "there",
    ),
    (
        "GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -q -i HEAD~1",
        "log --format=%s -1",
        "two",
    ),
    (
        "GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -q -i HEAD~1; git rebase --continue",
        "status --porcelain=v2 --branch",
        "# branch.head main",
    ),
    ("git tag one; git gc -q; git pack-refs --all", "tag", "one"),
    (
        "git config branch.main.rebase true; git config --unset branch.main.rebase",
        "log --format=%s -1",
        "two",
    ),
    (
        "git mv src/a src/c; git commit -qm moved",
        "ls-files",
        "src/c",
    ),
    (
        "git sparse-checkout set src; git sparse-checkout disable",
        "log --format=%s -1",
        "two",
    ),
    (
        "git checkout -q --orphan o; git rm -rqf .; git commit -q --allow-empty -m o",
        "log --format=%s",
        "o",
    ),
];

#[test]
fn work_with_git_stays_and_nobody_is_told() {
    for (command, question, answer) in WORK {
        let scene = scene();
        let found = scene.run(command);
        assert_eq!(told(&scene, &found), [""; 0], "{command}");
        let said = scene.answer(question);
        assert!(said.contains(answer), "{command}: {said}");
    }
}

#[test]
fn harmless_keys_of_the_same_file_stay() {
    let scene = scene();
    scene.git("config core.editor mine && git config credential.helper store");
    let before = scene.read(".git/config");
    let found = scene.run(
        "git config user.name somebody; git config core.pager evil; git config --add credential.helper '!evil'; \
         git config core.editor evil; printf '# a remark\\n[branch \"b\"]\\n\\tremote = o\\n' >> .git/config",
    );
    assert_eq!(
        told(&scene, &found),
        ["put back .git/config core.editor core.pager credential.helper"]
    );
    let after = scene.read(".git/config");
    assert!(
        after.contains("# a remark\n[branch \"b\"]\n\tremote = o\n") && !after.contains("evil"),
        "{after}"
    );
    for (key, value) in [
        ("core.editor", "mine"),
        ("user.name", "somebody"),
        ("credential.helper", "store"),
    ] {
        assert_eq!(
            scene.answer(&format!("config --local --get-all {key}")),
            value
        );
    }
    assert_eq!(scene.answer("config core.pager"), "");
    let kept = found[0].kept.clone().unwrap().unwrap();
    assert!(
        kept.starts_with(&scene.quarantine) && fs::read_to_string(kept).unwrap().contains("!evil")
    );

    // Where nothing else was changed, the file is what it was, byte for byte.
    let scene = crate::scene::scene();
    scene.git("config core.editor mine && git config credential.helper store");
    scene.run("git config core.editor evil; git config alias.x '!evil'");
    assert_eq!(scene.read(".git/config"), before);
}

#[test]
fn what_a_person_does_between_commands_is_the_persons() {
    let scene = scene();
    assert!(scene.run("true").is_empty());
    scene.git("config core.editor mine");
    scene.script(".git/hooks/pre-commit", "exit 0");
    assert!(scene.run("git status > /dev/null").is_empty());
    assert!(scene.path(".git/hooks/pre-commit").exists());
    assert_eq!(scene.answer("config core.editor"), "mine");
    // Removing it is told, with a copy, and not undone.
    let found = scene.run("git config --unset core.editor; rm .git/hooks/pre-commit");
    assert_eq!(
        told(&scene, &found),
        ["gone .git/config core.editor", "gone .git/hooks/pre-commit"]
    );
    assert_eq!(scene.answer("config core.editor"), "");
}

#[test]
fn a_rule_lets_changes_stay_and_says_so() {
    let scene = Scene::new(|path| path.ancestors().any(|dir| dir.ends_with(".git/hooks")));
    let found = scene.run(
        "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config core.pager evil",
    );
    assert_eq!(
        told(&scene, &found),
        [
            "left .git/hooks/pre-commit",
            "put back .git/config core.pager"
        ]
    );
    assert!(scene.path(".git/hooks/pre-commit").exists());
    assert!(
        found
            .iter()
            .all(|found| found.what != Handled::Left || found.kept.is_none())
    );
    // What stays is there before the next command.
    assert!(scene.run("true").is_empty());

    let scene = Scene::new(|path| path.ends_with(".git/config"));
    scene.script("there/pre-commit", "exit 0");
    let found = scene.run("git config core.hooksPath there");
    assert_eq!(told(&scene, &found), ["left .git/config core.hookspath"]);
    assert!(
        scene.path("there/pre-commit").exists(),
        "the project's own file is nobody's new hook"
    );
    // From now on it is a hook.
    let found = scene.run("echo evil >> there/pre-commit");
    assert_eq!(told(&scene, &found), ["put back there/pre-commit"]);
}

#[test]
fn what_is_removed_is_told_with_what_can_be_restored() {
    let scene = scene();
    for name in [".env", "yoi.toml"] {
        scene.file(name, name);
    }
    scene.script(".git/hooks/pre-commit", "exit 0");
    let found = scene.run("rm -rf .git .env yoi.toml");
    assert_eq!(
        told(&scene, &found),
        ["gone .env", "gone .git", "gone yoi.toml"]
    );
    for finding in &found {
        let kept = finding.kept.clone().unwrap().unwrap();
        match finding.path.ends_with(".git") {
            true => assert!(kept.join("config").exists() && kept.join("hooks/pre-commit").exists()),
            false => assert_eq!(
                fs::read_to_string(&kept).unwrap(),
                kept.file_name().unwrap().to_str().unwrap()
            ),
        }
        assert!(
            finding
                .text(|path| path.display().to_string())
                .contains("removed")
        );
    }
    assert!(scene.run("true").is_empty());
    // It may come again.
    assert!(scene.run("git init -q .").is_empty());
}

#[test]
fn what_runs_nothing_by_itself_is_reported_and_stays() {
    let scene = scene();
    scene.git("config core.attributesFile there/attributes");
    let found = scene.run(
        "echo '* text' > .git/info/attributes; echo ../../src/objects > .git/objects/info/alternates; mkdir .git/branches; \
         echo ext::evil > .git/branches/x",
    );
    let want = [
        "changed .git/branches/x",
        "changed .git/info/attributes",
        "changed .git/objects/info/alternates",
    ];
    assert_eq!(told(&scene, &found), want);
    assert_eq!(scene.read(".git/info/attributes"), "* text\n");
    assert!(scene.run("true").is_empty(), "told once");
    // A list of commands, where a line of it runs one.
    scene.git("-c sequence.editor='sed -i s/pick/edit/' rebase -q -i HEAD~1");
    let found = scene.run("echo 'exec evil' >> .git/rebase-merge/git-rebase-todo");
    assert_eq!(
        told(&scene, &found),
        ["changed .git/rebase-merge/git-rebase-todo"]
    );
    assert!(
        scene
            .run("echo 'pick x' >> .git/rebase-merge/git-rebase-todo")
            .is_empty()
    );
}

/// Commands of the next pod may read the directories of objects that a repository names.
#[test]
fn objects_elsewhere_are_not_named_by_a_command() {
    let scene = scene();
    let file = ".git/objects/info/alternates";
    for (plant, want) in [
        ("echo OUTSIDE > .git/objects/info/alternates", "removed"),
        (
            "printf '# x\\nsrc\\n../../..\\n' > .git/objects/info/alternates",
            "removed",
        ),
        ("ln -s OUTSIDE .git/objects/info/alternates", "changed"),
    ] {
        let found = scene.run(plant);
        assert_eq!(told(&scene, &found), [format!("{want} {file}")], "{plant}");
        std::fs::remove_file(scene.path(file)).ok();
        scene.run("true");
    }
    std::fs::write(scene.path(file), "/one/objects\n").unwrap();
    assert!(scene.run("true").is_empty(), "the person's");
    for plant in [
        "echo OUTSIDE >> .git/objects/info/alternates",
        "sed -i 1iOUTSIDE .git/objects/info/alternates",
    ] {
        assert_eq!(
            told(&scene, &scene.run(plant)),
            [format!("put back {file}")],
            "{plant}"
        );
        assert_eq!(scene.read(file), "/one/objects\n");
    }
    assert_eq!(
        told(
            &scene,
            &scene.run("echo src >> .git/objects/info/alternates")
        ),
        [format!("changed {file}")]
    );
}

/// Each waits for the other, so that they run at the same time.
#[test]
fn calls_together_share_what_was_before_and_what_was_found() {
    let scene = scene();
    scene.git("--version > /dev/null; mkfifo one two");
    let plant = "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; echo > one; cat two";
    let found = scene.together(&[plant, "cat one; echo > two; git config core.pager evil"]);
    let all: Vec<_> = found.iter().map(|found| told(&scene, found)).collect();
    // The one that ended last is told of everything; who ended first, of what was there then.
    let everything = [
        "put back .git/config core.pager",
        "removed .git/hooks/pre-commit",
    ];
    assert!(
        all.iter()
            .all(|told| told.contains(&everything[1].to_owned())),
        "{all:?}"
    );
    assert!(
        all.iter()
            .any(|told| told.contains(&everything[0].to_owned())),
        "{all:?}"
    );
    assert!(!scene.path(".git/hooks/pre-commit").exists());
    assert_eq!(scene.answer("config core.pager"), "");
}

/// Between comparing and putting back somebody saves the file: that is asked for at just this moment.
#[test]
fn what_is_changed_again_meanwhile_is_not_overwritten() {
    let meanwhile = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        fs::write(path, format!("{text}# the person's\n")).unwrap();
        false
    };
    let scene = Scene::new(meanwhile);
    let found = scene.run("git config core.pager evil; git config user.name somebody");
    assert!(
        found
            .iter()
            .any(|found| matches!(found.what, Handled::Failed(_))),
        "{found:?}"
    );
    assert!(scene.read(".git/config").ends_with("# the person's\n"));
}

/// A command that ran for days had the hook that it planted in force until its end.
#[test]
fn what_a_long_command_plants_goes_while_it_runs() {
    let scene = scene();
    // In one step: a look between two would find a hook that does not run yet, and put that back.
    let plant =
        "printf '#!/bin/sh\\n' > src/hook; chmod 755 src/hook; mv src/hook .git/hooks/post-commit";
    // Bounded by itself: 200 looks.
    let waits = "i=0; while [ -e .git/hooks/post-commit ] && [ $i -lt 200 ]; do sleep 0.01; i=$((i+1)); done";
    let found = scene.run_long(&format!(
        "{plant}; {waits}; [ -e .git/hooks/post-commit ] || echo gone > src/said"
    ));
    assert_eq!(told(&scene, &found), ["removed .git/hooks/post-commit"]);
    assert_eq!(scene.read("src/said"), "gone\n");
}
