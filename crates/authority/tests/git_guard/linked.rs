//! Which repository a `.git` file opens: only one that names the directory of that file, too.

use authority::{LinkedRepository, borrowed_objects};
use std::path::Path;
use std::process::Command;

/// What is there, how it comes about beside two repositories, and the repository of `project`, if it has one.
type Case = (
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
);

const CASES: &[Case] = &[
    (
        "a worktree beside",
        "git -C r worktree add -q ../project",
        Some(("r/.git/worktrees/project", "r/.git")),
    ),
    (
        "a worktree of a bare repository",
        "git clone -q --bare r b; git -C b worktree add -q ../project",
        Some(("b/worktrees/project", "b")),
    ),
    (
        "a worktree of a submodule",
        "git -C s submodule add -q ../r sub; git -C s/sub worktree add -q ../../project",
        Some(("s/.git/modules/sub/worktrees/project", "s/.git/modules/sub")),
    ),
    (
        "a worktree with relative paths",
        "git -C r worktree add -q ../project; cd r/.git/worktrees/project; echo ../../../../project/.git > gitdir",
        Some(("r/.git/worktrees/project", "r/.git")),
    ),
    (
        "a submodule",
        "git -C s submodule add -q ../r sub; ln -s s/sub project",
        Some(("s/.git/modules/sub", "s/.git/modules/sub")),
    ),
    (
        "a separate directory that names its files",
        "git init -q --separate-git-dir=g project; git -C project config core.worktree ../project",
        Some(("g", "g")),
    ),
    (
        "a separate directory whose index has its files",
        "git clone -q --separate-git-dir=g s project",
        Some(("g", "g")),
    ),
    (
        "the same, named by a relative path",
        "mkdir a; git clone -q --separate-git-dir=a/g s project; echo gitdir: ../a/g > project/.git",
        Some(("a/g", "a/g")),
    ),
    (
        "the same, with the index of version 4 and the first file changed",
        "git clone -q --separate-git-dir=g s project; git -C project update-index --index-version 4; touch project/a",
        Some(("g", "g")),
    ),
    (
        "the same, with names that are only to be added",
        "git clone -q --separate-git-dir=g s project; cd project; rm -r *; touch n1 n2; git add -N n1; git add -A",
        Some(("g", "g")),
    ),
    (
        "a copy of the files of another one",
        "git clone -q --separate-git-dir=g s w; cp -a w project",
        None,
    ),
    (
        "links to the files of another one",
        "git clone -q --separate-git-dir=g s w; mkdir project; cp w/.git project; ln -s ../w/dir ../w/a project",
        None,
    ),
    (
        "a name above the project, in the index of another one",
        "git clone -q --separate-git-dir=g s w; mkdir w/project; ln -s w/project project; echo gitdir: ../../g > w/project/.git",
        None,
    ),
    (
        "the index of another one, cut",
        "git clone -q --separate-git-dir=g s project; head -c 60 g/index > cut; mv cut g/index",
        None,
    ),
    (
        "a separate directory that names other files",
        "git clone -q --separate-git-dir=g s project; git -C project config core.worktree ../r",
        None,
    ),
    (
        "a plain repository of another project",
        "git clone -q s w; mkdir project; cp -a w/a w/dir project; echo gitdir: ../w/.git > project/.git",
        None,
    ),
    ("a plain repository", "mv r project", None),
    (
        "a separate directory that names nothing",
        "git init -q --separate-git-dir=g project",
        None,
    ),
    (
        "a file that names a repository",
        "mkdir project; echo gitdir: ../r/.git > project/.git",
        None,
    ),
    (
        "a copy of a worktree",
        "git -C r worktree add -q ../w; cp -r w project",
        None,
    ),
    (
        "a copy of a submodule",
        "git -C s submodule add -q ../r sub; cp -r s/sub project; echo gitdir: ../s/.git/modules/sub > project/.git",
        None,
    ),
    (
        "a forged worktree in the project",
        "mkdir -p project/f; cd project; echo gitdir: f > .git;\
         echo $PWD/.git > f/gitdir; echo ../../r/.git > f/commondir; echo 'ref: refs/heads/main' > f/HEAD",
        None,
    ),
    (
        "a swapped commondir",
        "git -C r worktree add -q ../project; git init -q v; echo ../../../../v/.git > r/.git/worktrees/project/commondir",
        None,
    ),
    (
        "a link in place of the file",
        "git -C r worktree add -q ../w; mkdir project; ln -s ../w/.git project/.git",
        None,
    ),
    (
        "no repository",
        "mkdir project g; echo gitdir: ../g > project/.git; git config -f g/config core.worktree ../project",
        None,
    ),
    (
        "a directory around the project",
        "git init -q --bare b; mkdir b/p; ln -s b/p project; echo gitdir: .. > project/.git; git -C b config core.worktree p",
        None,
    ),
];

/// Two repositories, each with a commit, and one with files.
const GIVEN: &str = "git() { command git -c user.name=t -c user.email=t@e.org -c protocol.file.allow=always \"$@\"; }; \
    for x in r s; do git init -q -b main $x; done; mkdir s/dir; echo x | tee s/a s/b > s/dir/c; git -C s add .; \
    for x in r s; do git -C $x commit -qm 1 --allow-empty; done";

fn make(base: &Path, what: &str, script: &str) {
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", &format!("{GIVEN}; {script}")])
        .current_dir(base)
        .env("HOME", base);
    let done = shell.output().unwrap();
    assert!(
        done.status.success(),
        "{what}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// claude-code#33657: the repository of a worktree is elsewhere. What a command or an archive wrote opens none.
#[test]
fn a_git_file_opens_the_repository_that_names_its_directory() {
    for (what, script, expected) in CASES {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        make(&base, what, script);
        let found = LinkedRepository::of(&base.join("project"));
        let below = |path: &Path| {
            path.strip_prefix(&base)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        let found = found.map(|found| (below(&found.own), below(&found.whole)));
        assert_eq!(
            found,
            expected.map(|(own, whole)| (own.to_owned(), whole.to_owned())),
            "{what}"
        );
    }
}

/// What is there, how it comes about, and the directories whose objects `project` uses.
const ALTERNATES: &[(&str, &str, &[&str])] = &[
    (
        "a shared clone",
        "git clone -q --shared s project",
        &["s/.git/objects"],
    ),
    (
        "with a relative path",
        "git clone -q --shared s project; echo ../../../s/.git/objects > project/.git/objects/info/alternates",
        &["s/.git/objects"],
    ),
    (
        "with a reference",
        "git clone -q --bare s b; git clone -q --reference b s project",
        &["b/objects"],
    ),
    (
        "two, after more commits on both sides",
        "git clone -q --reference r --shared s project; git -C project fetch -q ../r main:other; \
         for x in r s project; do git -C $x commit -qm 2 --allow-empty; done",
        &["r/.git/objects", "s/.git/objects"],
    ),
    (
        "a chain",
        "git clone -q --shared s t; git clone -q --shared t u; git clone -q --shared u project",
        &["s/.git/objects", "t/.git/objects", "u/.git/objects"],
    ),
    (
        "a circle",
        "git clone -q --shared s project; echo $PWD/project/.git/objects > s/.git/objects/info/alternates",
        // One's own is read anyway.
        &["project/.git/objects", "s/.git/objects"],
    ),
    ("none", "git clone -q s project", &[]),
    (
        "another repository",
        "git init -q project; echo $PWD/s/.git/objects > project/.git/objects/info/alternates",
        &[],
    ),
    (
        "another one, by what every repository may have",
        "git init -q project; git -C s rev-parse :a HEAD^{tree} | sed 's/.*/& refs\\/x/' > project/.git/packed-refs; \
         echo 0000000000000000000000000000000000000000 refs/y >> project/.git/packed-refs; \
         echo $PWD/s/.git/objects > project/.git/objects/info/alternates",
        &[],
    ),
    (
        "another one, by links to its names",
        "git init -q project; echo $PWD/s/.git/objects > project/.git/objects/info/alternates; cd project/.git; \
         rm -rf refs logs HEAD; ln -s ../../s/.git/refs ../../s/.git/logs ../../s/.git/HEAD .",
        &[],
    ),
    (
        "another one, as one's own by a link",
        "git clone -q --shared s w; mkdir project; ln -s ../w/.git project/.git",
        &[],
    ),
    (
        "another one's, by a link to its file",
        "git clone -q --shared s w; git clone -q s project; ln -s ../../../../w/.git/objects/info/alternates project/.git/objects/info/",
        &[],
    ),
    (
        "directories that hold something else",
        "git clone -q s project; mkdir -p .ssh/objects objects/refs; cp -r s/.git/HEAD s/.git/refs objects; cp -r s/.git/refs .ssh; \
         printf '%s\\n' $PWD $PWD/.ssh $PWD/.ssh/objects $PWD/objects $PWD/s $PWD/s/.git $PWD/s/.git/refs / '' '#x' '\"/x\"' . .. \
         > project/.git/objects/info/alternates",
        &[],
    ),
    (
        "a directory that is a link to something else",
        "git clone -q s project; mkdir -p .ssh f; cp -r s/.git/HEAD s/.git/refs s/.git/logs f; ln -s ../.ssh f/objects; \
         echo $PWD/f/objects > project/.git/objects/info/alternates",
        &[],
    ),
];

/// A clone that shares objects could not read them. What a command or an archive wrote gives nothing: a repository names a commit
/// that both have, or it is not read.
#[test]
fn objects_are_borrowed_of_a_repository_that_has_a_commit_of_this_one() {
    for (what, script, expected) in ALTERNATES {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        make(&base, what, script);
        let mut found = borrowed_objects(&base.join("project/.git"));
        found.sort();
        assert_eq!(
            found,
            expected
                .iter()
                .map(|path| base.join(path))
                .collect::<Vec<_>>(),
            "{what}"
        );
    }
}
