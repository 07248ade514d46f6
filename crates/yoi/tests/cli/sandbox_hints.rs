//! What a person is told about what the sandbox refuses, and where commands build.

use crate::approvals::bash;
use crate::scene::{Done, Scene, finish};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn run(scene: &Scene, command: &str, flags: &[&str], target: Option<&str>) -> Done {
    let model = scene.script(
        "s.jsonl",
        &[
            json!({ "calls": [bash(command)] }),
            json!({ "text": "done" }),
        ],
    );
    let mut command = scene.command(&[&["run", "--pod", "p", "-m", &model, "go"], flags].concat());
    command.envs(target.map(|dir| ("CARGO_TARGET_DIR", dir)));
    let done = finish(command.spawn().unwrap()).ends(0);
    scene.yoi(&["rm", "p"]).ends(0);
    done
}

#[test]
fn a_refused_directory_is_said_with_the_option_that_adds_it() {
    let scene = Scene::new();
    fs::create_dir(scene.path("other")).unwrap();
    let other = scene.path("other").display().to_string();
    let touch = format!("touch {other}/x");
    let option = format!("--add-write-dir {other}");
    let hint = format!(
        "  ! the sandbox refused access to {other}/x; --add-dir {other} allows reading, {option} allows writing"
    );
    run(&scene, &touch, &[], None).says(&["✗ exit 1", &hint]);
    // A file that was only read names the option for reading, too.
    fs::write(scene.path("other/read"), "text").unwrap();
    let reading = format!(
        "  ! the sandbox refused access to {other}/read; --add-dir {other} allows reading, {option} allows writing"
    );
    run(&scene, &format!("cat {other}/read"), &[], None).says(&["✗ exit 1", &reading]);
    run(
        &scene,
        &format!("cat {other}/read"),
        &["--add-dir", &other],
        None,
    )
    .says(&["exit 0"]);
    // Also where the command hides it; but words alone are none.
    run(&scene, &format!("cat {other}/read | head -n 1"), &[], None).says(&[&reading]);
    run(&scene, &format!("cat {other}/read || true"), &[], None).says(&["exit 0", &reading]);
    for words in [
        "nowhere/at/all: Permission denied",
        "read; commands can read nothing]",
    ] {
        let command = format!("echo '[the sandbox refused access to {other}/{words}'");
        let ran = run(&scene, &command, &[], None);
        assert!(!ran.err.contains("  ! the sandbox"), "{}", ran.err);
    }
    assert!(
        !run(&scene, &touch, &["--add-write-dir", &other], None)
            .err
            .contains('!')
    );
    assert!(scene.path("other/x").exists());
    assert!(
        !run(&scene, "exit 1", &[], None)
            .err
            .contains("the sandbox refused")
    );
    // Where the network is on, words about it are the program's own.
    scene.config("[sandbox]\nnetwork = \"on\"\n");
    assert!(
        !run(
            &scene,
            "echo connect: Network is unreachable; exit 2",
            &[],
            None
        )
        .err
        .contains("refused")
    );
    scene.config("");
    let done = run(
        &scene,
        "bash -c 'exec 3<>/dev/udp/192.0.2.1/9'; exit 2",
        &[],
        None,
    );
    done.says(&[
        "  ! the sandbox refused the network; under [sandbox], network = \"hosts\" allows the ones that `hosts` names",
    ]);
}

/// `cargo build` with a new crate failed and yoi guessed from words. The proxy names the host, and a command that hides it
/// (`| tail`, exit 0) changes nothing.
#[test]
fn a_host_that_is_not_named_is_said_with_the_setting_that_names_it() {
    let scene = Scene::new();
    if !scene
        .yoi(&["doctor"])
        .out
        .contains("namespaces of their own:")
    {
        println!("skipped: no namespaces here");
        return;
    }
    scene.config("[sandbox]\nnetwork = \"hosts\"\nhosts = [\"preset:rust\"]\n");
    scene
        .yoi(&["doctor"])
        .prints(&["namespaces of their own, and a proxy to 4 hosts of `hosts`"]);
    let ask = "exec 3<>/dev/tcp/127.0.0.1/808; printf 'CONNECT other.test:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3";
    let named = "the sandbox did not connect to other.test (not in `hosts`); network = \"hosts\" and hosts = [\"other.test\"] under [sandbox] allow it";
    for end in ["; exit 2", " | tail -n 1; exit 0"] {
        run(&scene, &format!("{ask}{end}"), &[], None).says(&[&format!("  ! {named}")]);
    }
    assert!(
        !run(&scene, "exit 2", &[], None)
            .err
            .contains("did not connect")
    );
    for (hosts, why) in [
        (
            "preset:rst",
            "no such preset; there are preset:rust preset:node",
        ),
        ("*.example.org", "each host must be named; no wildcards"),
        ("10.0.0.1", "hosts are reached by name"),
    ] {
        scene.config(&format!(
            "[sandbox]\nnetwork = \"hosts\"\nhosts = [\"{hosts}\"]\n"
        ));
        scene
            .yoi(&["config", "show"])
            .ends(78)
            .says(&[&format!("`{hosts}`: {why}")]);
    }
}

/// claude-code#33657, ai-jail#101: git said "not a git repository" in a worktree whose repository is elsewhere, and nothing
/// said that the sandbox is the reason.
#[test]
fn git_in_a_part_of_a_repository_elsewhere_names_what_allows_it() {
    let git = |dir: &Path, args: &str| {
        let mut git = Command::new("git");
        git.args("-c user.name=t -c user.email=t@e.org -c protocol.file.allow=always".split(' '));
        assert!(
            git.args(args.split(' '))
                .current_dir(dir)
                .output()
                .unwrap()
                .status
                .success(),
            "{args}"
        );
    };
    let commit = "commit -qm 1 --allow-empty";
    let reading = "git log --oneline";
    for (case, command) in [
        ("copied", reading),
        ("copied", "git checkout -q -b other"),
        ("separate", reading),
        ("shared", "git log --oneline && git cat-file -p HEAD^{tree}"),
    ] {
        let scene = Scene::new();
        let other = scene.path("other");
        let project = scene.path("project");
        fs::remove_dir_all(&project).unwrap();
        fs::create_dir(&other).unwrap();
        git(&other, "init -q");
        git(&other, commit);
        let mut repository = other.join(".git");
        match case {
            // The repository names another directory than that of this `.git` file.
            "copied" => {
                git(&other, "worktree add -q ../first -b f");
                fs::create_dir(&project).unwrap();
                fs::copy(scene.path("first/.git"), project.join(".git")).unwrap();
            }
            // Nothing that the other one names any more.
            "shared" => {
                git(&other, "clone -q --shared . ../project");
                git(&other, "commit -qm 2 --allow-empty --amend");
                fs::remove_dir_all(other.join(".git/logs")).unwrap();
            }
            _separate => {
                git(&other, "init -q --separate-git-dir=../apart ../project");
                git(&project, commit);
                repository = scene.path("apart");
            }
        }
        let repository = repository.display().to_string();
        let option = format!("--add-write-dir {repository}");
        let done = run(&scene, command, &[], None);
        done.says(&["  ! the sandbox refused access to ", &option]);
        run(&scene, command, &["--add-write-dir", &repository], None).says(&["exit 0"]);
    }
    // A directory that is not there is not the sandbox's doing.
    let scene = Scene::new();
    fs::remove_dir(scene.file(".git")).unwrap();
    scene.write(".git", "gitdir: /nowhere/at/all\n");
    assert!(
        !run(&scene, "git log", &[], None)
            .err
            .contains("the sandbox refused")
    );
}

#[test]
fn commands_build_where_a_person_says_as_far_as_they_can() {
    let scene = Scene::new();
    scene.write("Cargo.toml", "[package]\nname = \"x\"\n");
    fs::create_dir(scene.path("other")).unwrap();
    let inside = scene.file("build/here").display().to_string();
    let outside = scene.path("other/t").display().to_string();
    let command = "test \"$CARGO_TARGET_DIR\" = ";
    let note = "commands build in the project's own target directory, because CARGO_TARGET_DIR (";
    let is = |dir: &str, flags: &[&str], target: &str| {
        let done = run(&scene, &format!("{command}'{dir}'"), flags, Some(target));
        done.says(&["exit 0"]).err.contains(note)
    };
    assert!(!is(&inside, &[], &inside));
    assert!(!is("build", &[], "build"));
    assert!(is("", &[], &outside));
    assert!(is("", &[], "../other"));
    assert!(is("", &[], "new/../../other"));
    assert!(!is(
        &outside,
        &["--add-write-dir", scene.path("other").to_str().unwrap()],
        &outside
    ));
    fs::remove_file(scene.file("Cargo.toml")).unwrap();
    assert!(!is("", &[], &outside), "nothing is built here");
}

/// This command where the kernel forbids user namespaces; `None` where none can be made even for that.
fn without_namespaces(inner: &Command) -> Option<Command> {
    if !Command::new("unshare")
        .args(["-Ur", "true"])
        .status()
        .is_ok_and(|ended| ended.success())
    {
        return None;
    }
    let text = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin --inh-caps=-all \"$@\"";
    let mut outer = Command::new("unshare");
    outer
        .args(["-Ur", "sh", "-c", text, "-"])
        .arg(inner.get_program())
        .args(inner.get_args());
    outer
        .current_dir(inner.get_current_dir().unwrap())
        .env_clear();
    outer.envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    outer
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Some(outer)
}

/// Containers and Ubuntu forbid user namespaces; without a word the sandbox would be weaker than its documents.
#[test]
fn without_user_namespaces_the_weaker_promise_is_named() {
    let scene = Scene::new();
    let Some(mut doctor) = without_namespaces(&scene.command(&["doctor"])) else {
        return;
    };
    let promise = [
        "no namespaces of their own (make namespaces: ",
        "): they can open no sockets",
        "user.max_user_namespaces",
    ];
    finish(doctor.spawn().unwrap()).prints(&promise);
    let asks = "/usr/bin/python3 -c 'import socket; socket.socket()'";
    let calls = [bash(asks), bash("true")].map(|call| json!({ "calls": [call] }));
    let model = scene.script(
        "s.jsonl",
        &[&calls[..], &[json!({ "text": "done" })]].concat(),
    );
    let run = without_namespaces(&scene.command(&["run", "--pod", "p", "-m", &model, "go"]))
        .unwrap()
        .spawn()
        .unwrap();
    let done = finish(run).ends(0);
    let told = "commands run without namespaces of their own: make namespaces: ";
    assert_eq!(done.err.matches(told).count(), 1, "{}", done.err);
    let results = scene
        .records("p")
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    assert!(results.contains("Network is unreachable"), "{results}");
    // And with them nothing of it is said.
    let with = run_with(&scene, &model);
    assert!(
        !with.err.contains(told)
            || !scene
                .yoi(&["doctor"])
                .out
                .contains("namespaces of their own: "),
        "{}",
        with.err
    );
}

fn run_with(scene: &Scene, model: &str) -> Done {
    finish(
        scene
            .command(&["run", "--pod", "q", "-m", model, "go"])
            .spawn()
            .unwrap(),
    )
}

/// Models read the sources of a dependency with Read, and the run ended with 3: commands could read them, Read could not.
#[test]
fn read_reads_what_commands_read() {
    let scene = Scene::new();
    let at = scene.path("home/.cargo/registry/src/kept-1.0.0");
    fs::create_dir_all(&at).unwrap();
    fs::write(at.join("lib.rs"), "pub fn kept() {}\n").unwrap();
    fs::create_dir_all(scene.path("home/.ssh")).unwrap();
    fs::write(scene.path("home/.ssh/key"), "kept secret").unwrap();
    std::os::unix::fs::symlink(scene.path("home/.ssh/key"), at.join("link")).unwrap();
    let file = at.join("lib.rs").display().to_string();
    let call =
        |name: &str, arguments: serde_json::Value| json!({ "name": name, "arguments": arguments });
    let calls = [
        bash(&format!("cat {file}")),
        call("Read", json!({ "path": file })),
        call(
            "Grep",
            json!({ "pattern": "kept", "path": at.display().to_string() }),
        ),
        call(
            "Read",
            json!({ "path": at.join("gone.rs").display().to_string() }),
        ),
        call(
            "Read",
            json!({ "path": at.join("link").display().to_string() }),
        ),
        call("Read", json!({ "path": "/etc/hostname" })),
        call("Write", json!({ "path": file, "content": "x" })),
    ];
    let model = scene.script(
        "s.jsonl",
        &[json!({ "calls": calls }), json!({ "text": "done" })],
    );
    let ran = |flags: &[&str]| {
        scene.yoi(&[&["run", "--pod", "p", "-m", &model, "go"], flags].concat());
        let mut ends: Vec<_> = scene
            .records("p")
            .into_iter()
            .filter(|record| record["k"] == "tool_finished")
            .collect();
        scene.yoi(&["rm", "p"]).ends(0);
        ends.sort_by_key(|end| end["call"].to_string());
        ends.iter()
            .map(|end| end["outcome"].to_string())
            .collect::<Vec<_>>()
    };
    for flags in [&[][..], &["--read-only"]] {
        let results = ran(flags);
        for (result, said) in results.iter().zip([
            "pub fn kept",
            "pub fn kept",
            "pub fn kept",
            "does not exist",
            "reading outside the project: deny",
            "reading outside the project: deny",
            "writing outside the project: deny",
        ]) {
            assert!(
                result.contains(said) && !result.contains("secret"),
                "{flags:?} {said}: {result}"
            );
        }
        assert_eq!(results.len(), 7);
    }
    assert!(
        ran(&["--sandbox", "off", "--allow", "Bash"])[1]
            .contains("reading outside the project: deny")
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "pub fn kept() {}\n");
}
