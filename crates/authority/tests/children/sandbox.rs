//! Ways out of the sandbox, each with the errno it must fail with and the same thing going well where it may.

use super::shared::{self, Place, confinable, probe};
use authority::{ErrorKind, SandboxMode};
use landlock::{AccessFs, Ruleset, RulesetAttr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn files() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let p = |name: &str| text(&place.project.join(name));
    let o = |name: &str| text(&place.outside.join(name));
    let h = |name: &str| text(&place.home.join(name));
    std::os::unix::fs::symlink(place.outside.join("file"), place.project.join("out")).unwrap();
    std::os::unix::fs::symlink(&place.outside, place.project.join("outdir")).unwrap();
    let pid = std::process::id();
    // What is tried, what it says inside, what it says outside.
    let tries: Vec<(Vec<String>, &str, &str)> = vec![
        (vec!["read".into(), p("file")], "ok", "ok"),
        (vec!["write".into(), p("new")], "ok", "ok"),
        (vec!["write".into(), "/dev/null".into()], "ok", "ok"),
        (vec!["read".into(), "/dev/urandom".into()], "ok", "ok"),
        (vec!["read".into(), o("file")], "EACCES", "ok"),
        (
            vec!["read".into(), "../../outside/file".into()],
            "EACCES",
            "ok",
        ),
        (vec!["write".into(), o("made")], "EACCES", "ok"),
        (vec!["write".into(), o("file")], "EACCES", "ok"),
        (vec!["truncate".into(), o("file")], "EACCES", "ok"),
        (vec!["mkdir".into(), o("dir")], "EACCES", "ok"),
        (vec!["list".into(), text(&place.outside)], "EACCES", "ok"),
        (vec!["list".into(), "/".into()], "EACCES", "ok"),
        (vec!["list".into(), h("")], "EACCES", "ok"),
        (vec!["list".into(), "/etc".into()], "ok", "ok"),
        (vec!["read".into(), "out".into()], "EACCES", "EOF-or-ok"),
        (vec!["write".into(), "out".into()], "EACCES", "ok"),
        (vec!["write".into(), "outdir/x".into()], "EACCES", "ok"),
        (vec!["link".into(), o("file"), p("hard")], "EXDEV", "ok"),
        (vec!["rename".into(), p("file"), o("gone")], "EACCES", "ok"),
        (vec!["mkfifo".into(), p("fifo")], "ok", "EEXIST"),
        (
            vec!["read".into(), format!("/proc/{pid}/root/etc/passwd")],
            "EACCES",
            "ok",
        ),
        (
            vec!["read".into(), format!("/proc/{pid}/environ")],
            "EACCES",
            "ok",
        ),
        (
            vec!["write".into(), format!("/proc/{pid}/oom_score_adj")],
            "EACCES",
            "ok",
        ),
        (
            vec!["read".into(), "/proc/self/root/etc/passwd".into()],
            "ok",
            "ok",
        ),
        (
            vec![
                "read".into(),
                text(
                    &Path::new("/proc/self/root")
                        .join(place.outside.join("file").strip_prefix("/").unwrap()),
                ),
            ],
            "EACCES",
            "EOF-or-ok",
        ),
        (vec!["read".into(), h(".ssh/id")], "EACCES", "ok"),
        (
            vec!["read".into(), h(".cargo/credentials.toml")],
            "EACCES",
            "ok",
        ),
        (vec!["read".into(), h(".cargo/registry/crate")], "ok", "ok"),
        (
            vec!["write".into(), h(".cargo/registry/crate")],
            "EACCES",
            "ok",
        ),
        (
            vec!["read".into(), h(".local/state/yoi/other")],
            "EACCES",
            "ok",
        ),
        (
            vec!["write".into(), "/usr/yoi-probe-new".into()],
            "EACCES",
            "",
        ),
        (
            vec!["write".into(), "/tmp/yoi-probe-new".into()],
            "EACCES",
            "",
        ),
        (vec!["write".into(), "/dev/tty".into()], "EACCES", ""),
        (vec!["list".into(), "/dev/pts".into()], "EACCES", "ok"),
    ];
    for (args, inside, outside) in &tries {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.tries(&caged, &args, inside).await;
        if !outside.is_empty() {
            let said = place.says(&free, &args).await;
            assert!(
                said == *outside || (*outside == "EOF-or-ok" && said == "ok"),
                "free {args:?}: {said}"
            );
        }
    }
    // The host's own file is still what it was made to by the free run, not by the caged one.
    assert!(place.outside.join("made").exists());
}

#[tokio::test]
async fn read_only_mode_writes_nothing_but_its_temporary_directory() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::ReadOnly).unwrap();
    let file = text(&place.project.join("file"));
    assert_eq!(place.says(&caged, &["read", &file]).await, "ok");
    for (op, name) in [
        ("write", "file"),
        ("write", "new"),
        ("mkdir", "dir"),
        ("truncate", "file"),
        ("unlink", "file"),
    ] {
        place
            .tries(&caged, &[op, &text(&place.project.join(name))], "EACCES")
            .await;
    }
    let job = place.job(
        "sh",
        &[
            "-c",
            "echo x > $TMPDIR/a && cat $TMPDIR/a && stat -c %a $TMPDIR && echo $TMPDIR",
        ],
    );
    let (_, said) = shared::run(&caged, job).await.unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[..2], ["x", "700"]);
    assert!(
        !Path::new(lines[2]).exists(),
        "{} was not removed",
        lines[2]
    );
}

#[tokio::test]
async fn sockets() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let path = text(&place.project.join("socket"));
    let datagrams = text(&place.project.join("datagrams"));
    let _stream = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let _datagram = std::os::unix::net::UnixDatagram::bind(&datagrams).unwrap();
    let name = format!("@yoi-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            &name[1..],
        )
        .unwrap();
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let tries: &[(&[&str], &str)] = &[
        (&["socket", "2", "1"], "ENETUNREACH"),
        (&["socket", "2", "2"], "ENETUNREACH"),
        (&["socket", "10", "1"], "ENETUNREACH"),
        (&["socket", "1", "1"], "EPERM"),
        (&["socket", "16", "3"], "EPERM"),
        (&["unix", &path], "EPERM"),
        (&["unix", &name], "EPERM"),
        (&["socketpair", "1"], "ok"),
        (&["socketpair", "5"], "ok"),
        (&["socketpair", "2"], "EPERM"),
        (&["pair-sendto", &datagrams, "2"], "EPERM"),
        (&["pair-sendto", &datagrams, "3"], "EPERM"),
        // As 524290 = SOCK_DGRAM | SOCK_CLOEXEC.
        (&["pair-sendto", &datagrams, "524290"], "EPERM"),
    ];
    for (args, inside) in tries {
        place.tries(&caged, args, inside).await;
        assert_eq!(place.says(&free, args).await, "ok", "free {args:?}");
    }
}

#[tokio::test]
async fn processes_and_the_kernel() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let host = std::process::id().to_string();
    let here = std::hint::black_box(1_u8);
    let address = (std::ptr::from_ref(&here) as usize).to_string();
    let scoped = authority::support().landlock_abi >= 6;
    let signal = if scoped { "EPERM" } else { "ok" };
    let tries: &[(&[&str], &str, &str)] = &[
        (&["socketpair-of", "1"], "ok", "ok"),
        // The kernel refuses a pair of AF_INET on its own, in other words.
        (&["socketpair-of", "2"], "EPERM", "EOPNOTSUPP"),
        (&["socketpair-of", "30"], "EPERM", ""),
        (&["kill", &host, "0"], signal, "ok"),
        (&["ptrace", &host], "EPERM", ""),
        (&["peek", &host, &address], "EPERM", "ok"),
        (&["prlimit", &host], "EPERM", "ok"),
        (&["prlimit", "0"], "ok", "ok"),
        // The limit on file locks is the label by which descendants are found: to be read, not to be set.
        (&["setrlimit", "10", ""], "EPERM", "ok"),
        (&["setrlimit", "10", "raw"], "EPERM", "ok"),
        (&["setrlimit", "7", ""], "ok", "ok"),
        (&["setrlimit", "7", "raw"], "ok", "ok"),
        (&["io_uring"], "EPERM", ""),
        (&["x32"], "ENOSYS", ""),
        (&["add_key"], "EPERM", "ok"),
        (&["shmget"], "EPERM", "ok"),
        (&["shmctl"], "EPERM", "EINVAL"),
        (&["semctl"], "EPERM", "EINVAL"),
        (&["semop"], "EPERM", "EINVAL"),
        (&["semtimedop"], "EPERM", "EINVAL"),
        (&["msgsnd"], "EPERM", "EINVAL"),
        (&["msgrcv"], "EPERM", "EINVAL"),
        (&["msgctl"], "EPERM", "EINVAL"),
        (&["mq_unlink"], "EPERM", "ENOENT"),
        (&["tiocsti"], "EPERM", "ENOTTY"),
        (&["openpty"], "EACCES", "ok"),
    ];
    for (args, inside, outside) in tries {
        place.tries(&caged, args, inside).await;
        if !outside.is_empty() {
            assert_eq!(place.says(&free, args).await, *outside, "free {args:?}");
        }
    }
    // Within its own call a child may signal as it likes.
    let (_, said) = shared::run(
        &caged,
        place.job("sh", &["-c", "sleep 60 & kill $! && wait $!; echo $?"]),
    )
    .await
    .unwrap();
    assert_eq!(said.lines().last(), Some("143"), "{said}");
}

/// Root could make the disk appear in the project and read it whole.
#[tokio::test]
async fn root_keeps_no_power_over_the_machine() {
    if !confinable() || !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let device = text(&place.project.join("device"));
    assert_eq!(place.says(&free, &["mknod", &device]).await, "ok");
    std::fs::remove_file(&device).unwrap();
    assert!(["EPERM", "EACCES"].contains(&place.says(&caged, &["mknod", &device]).await.as_str()));
    assert!(
        ["EPERM", "EACCES", "ENOENT"]
            .contains(&place.says(&caged, &["read", "/proc/kcore"]).await.as_str())
    );
    let (_, said) = shared::run(&caged, place.job("grep", &["Cap[EB]", "/proc/self/status"]))
        .await
        .unwrap();
    // DAC_OVERRIDE, FSETID, KILL, SETGID, SETUID.
    assert!(said.contains("CapEff:\t00000000000000f2"), "{said}");
    place
        .tries(&caged, &["read", "/etc/shadow"], "EACCES")
        .await;
}

/// What a program is started with in spite of the bounding set.
#[tokio::test]
async fn inheritable_and_ambient_powers_are_dropped() {
    use rustix::thread::{
        CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
    };
    let power = CapabilitySet::SYS_CHROOT;
    let before = capabilities(None).unwrap();
    if !confinable() || !before.permitted.contains(power | CapabilitySet::KILL) {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let mut raised = before;
    raised.inheritable |= power | CapabilitySet::KILL;
    set_capabilities(None, raised).unwrap();
    configure_capability_in_ambient_set(power, true).unwrap();
    let mut found = Vec::new();
    for spawner in [&free, &caged] {
        let (_, said) = shared::run(spawner, place.job("cat", &["/proc/self/status"]))
            .await
            .unwrap();
        let set = |name: &str| {
            let line = said
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        found.push(
            ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(|name| set(name) & power.bits() != 0),
        );
        assert_ne!(
            set("CapInh:") & CapabilitySet::KILL.bits(),
            0,
            "what is kept stays"
        );
    }
    configure_capability_in_ambient_set(power, false).unwrap();
    set_capabilities(None, before).unwrap();
    assert_eq!(found, [[true; 4], [false; 4]]);
}

#[tokio::test]
async fn environment() {
    let mut place = Place::new();
    place.vars.extend([
        ("MINE".into(), "yes".into()),
        ("OTHER".into(), "no".into()),
        ("LC_ALL".into(), "C".into()),
    ]);
    place.vars.push(("MY_API_KEY".into(), "s3cret".into()));
    place.pass = vec!["MINE".to_owned()];
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let (_, said) = shared::run(&spawner, place.job("env", &[])).await.unwrap();
    let mark = format!("YOI_CALL={}/c00000001", place.tag);
    for wanted in [
        "MINE=yes",
        "LC_ALL=C",
        "GIT_TERMINAL_PROMPT=0",
        "PAGER=cat",
        &mark,
    ] {
        assert!(
            said.lines().any(|line| line == wanted),
            "{wanted} in {said}"
        );
    }
    assert!(
        !said.contains("s3cret") && !said.contains("OTHER"),
        "{said}"
    );
    for (name, kind) in [
        ("OPENAI_API_KEY", ErrorKind::Denied),
        ("gh_token", ErrorKind::Denied),
        ("YOI_CALL", ErrorKind::FixInput),
        ("A=B", ErrorKind::FixInput),
    ] {
        place.pass = vec![name.to_owned()];
        assert_eq!(
            place.spawner(SandboxMode::Off).unwrap_err().kind(),
            kind,
            "{name}"
        );
    }
}

/// A home directory as the project holds keys and sessions, which no rule can take out of it again.
#[tokio::test]
async fn a_directory_that_holds_keys_is_not_given() {
    if !confinable() {
        return;
    }
    let mut place = Place::new();
    let state = place.state.clone();
    for given in [
        place.home.clone(),
        place.home.join(".ssh"),
        state.join("deeper"),
        place.dir.path().to_owned(),
    ] {
        std::fs::create_dir_all(&given).unwrap();
        place.read = vec![given.clone()];
        for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
            let refused = place.spawner(mode).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Denied, "{given:?}");
            assert!(refused.to_string().contains("/home/"), "{refused}");
        }
        place.spawner(SandboxMode::Off).unwrap();
    }
}

#[tokio::test]
async fn what_may_run() {
    let place = Place::new();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let missing = shared::run(&free, place.job("yoi-no-such-program", &[]))
        .await
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::FixInput);
    let mut job = place.job("true", &[]);
    job.cwd = place.project.join("none");
    assert_eq!(
        shared::run(&free, job).await.unwrap_err().kind(),
        ErrorKind::FixInput
    );
    let mut job = place.job("true", &[]);
    job.call = "../x".to_owned();
    assert_eq!(
        shared::run(&free, job).await.unwrap_err().kind(),
        ErrorKind::FixInput
    );
    if !confinable() {
        return;
    }
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let copy = place.outside.join("probe");
    std::fs::copy(probe(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = shared::run(&caged, place.job(&copy, &["read", "file"]))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    assert!(refused.to_string().contains("sandbox"), "{refused}");
    assert_eq!(
        shared::run(&free, place.job(&copy, &["read", "file"]))
            .await
            .unwrap()
            .1
            .trim(),
        "ok"
    );
}

/// Root may open everything, so the rules are all that keeps its children from what is not for every user.
#[tokio::test]
async fn of_etc_only_what_every_user_may_read() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let caged = place.spawner(SandboxMode::ReadOnly).unwrap();
    let script = "find /etc -type f -exec sh -c 'for file; do head -c1 \"$file\" >/dev/null 2>&1 && echo \"$file\"; done' - {} +";
    let (_, said) = shared::run(&caged, place.job("sh", &["-c", script]))
        .await
        .unwrap();
    let for_all = |path: &&str| {
        let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode();
        let entered = Path::new(path)
            .ancestors()
            .skip(1)
            .all(|dir| mode(dir) & 0o001 != 0);
        entered && mode(Path::new(path)) & 0o004 != 0
    };
    // To an ordinary user also what is for a group of theirs.
    if rustix::process::geteuid().is_root() {
        assert_eq!(
            said.lines()
                .filter(|path| !for_all(path))
                .collect::<Vec<_>>(),
            Vec::<&str>::new()
        );
    }
    assert!(said.lines().any(|path| path == "/etc/passwd"), "{said}");
    let count = said.lines().count();
    let (_, all) = shared::run(
        &place.spawner(SandboxMode::Off).unwrap(),
        place.job("sh", &["-c", script]),
    )
    .await
    .unwrap();
    let withheld = all.lines().filter(|path| {
        path.starts_with("/etc/") && for_all(path) && !said.lines().any(|given| given == *path)
    });
    println!(
        "{count} files of /etc; for every user, and withheld: {:?}",
        withheld.collect::<Vec<_>>()
    );
}

// A kernel can make rules and yet refuse to apply them: here under 16 sets of them, which is as many as may be nested.
#[tokio::test]
async fn rules_that_can_be_made_and_not_applied_are_no_sandbox() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    assert!(spawner.try_confinement().is_ok());
    let tried = std::thread::spawn(move || {
        for _ in 0..16 {
            let rules = Ruleset::default().handle_access(AccessFs::MakeBlock);
            rules
                .and_then(Ruleset::create)
                .unwrap()
                .restrict_self()
                .unwrap();
        }
        place
            .spawner(SandboxMode::WorkspaceWrite)
            .unwrap()
            .try_confinement()
    });
    let error = tried.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
