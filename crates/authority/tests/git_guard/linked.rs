//! Which repository a `.git` file opens: only one that names the directory of that file, too.

use authority::LinkedRepository;
use std::path::Path;
use std::process::Command;

/// What is there, how it comes about beside two repositories, and the repository of `project`, if it has one.
type Case = (&'static str, &'static str, Option<(&'static str, &'static str)>);

const CASES: &[Case] = &[
    ("a worktree beside", "git -C r worktree add -q ../project", Some(("r/.git/worktrees/project", "r/.git"))),
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
    ("a plain repository", "mv r project", None),
    ("a separate directory that names nothing", "git init -q --separate-git-dir=g project", None),
    ("a file that names a repository", "mkdir project; echo gitdir: ../r/.git > project/.git", None),
    ("a copy of a worktree", "git -C r worktree add -q ../w; cp -r w project", None),
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
    ("a link in place of the file", "git -C r worktree add -q ../w; mkdir project; ln -s ../w/.git project/.git", None),
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

/// claude-code#33657: the repository of a worktree is elsewhere. What a command or an archive wrote opens none.
#[test]
fn a_git_file_opens_the_repository_that_names_its_directory() {
    for (what, script, expected) in CASES {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let git = "git() { command git -c user.name=t -c user.email=t@e.org -c protocol.file.allow=always \"$@\"; }";
        let given = "for x in r s; do git init -q -b main $x; git -C $x commit -qm 1 --allow-empty; done";
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("{git}; {given}; {script}")]).current_dir(&base).env("HOME", &base);
        let done = shell.output().unwrap();
        assert!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
        let found = LinkedRepository::of(&base.join("project"));
        let below = |path: &Path| path.strip_prefix(&base).unwrap().to_str().unwrap().to_owned();
        let found = found.map(|found| (below(&found.own), below(&found.whole)));
        assert_eq!(found, expected.map(|(own, whole)| (own.to_owned(), whole.to_owned())), "{what}");
    }
}
