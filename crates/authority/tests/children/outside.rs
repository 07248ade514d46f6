//! What programs find in namespaces of their own as it is outside of them. Their own tests compare it.

use super::apart::{python, sh};
use super::shared::{Place, apart, helped};
use authority::{Network, SandboxMode};
use std::path::Path;

const DENIED: &str = "Operation not permitted";

/// CPython's `test_chown_without_permission` and libuv's `spawn_setuid_fails`: in a namespace with one user, the kernel says of
/// all others that they are invalid. Outside an ordinary user is told that it is not permitted.
#[tokio::test]
async fn other_owners_are_not_permitted() {
    let place = Place::new();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    let mut rows = vec![
        ("os.chown('file', 4321, -1)", DENIED),
        ("os.chown('file', -1, 4321)", DENIED),
        ("os.lchown('file', 4321, 4321)", DENIED),
        ("os.fchown(os.open('file', 0), 4321, os.getgid())", DENIED),
        (
            "os.chown('file', os.getuid(), 4321, dir_fd=os.open('.', 0))",
            DENIED,
        ),
        (
            "os.chown('file', os.getuid(), os.getgid())\nprint('own')",
            "own",
        ),
        (
            "os.chown('file', -1, -1)\nos.lchown('file', os.getuid(), -1)\nprint('none')",
            "none",
        ),
        (
            "os.fchown(os.open('file', 0), -1, os.getgid())\nprint('group')",
            "group",
        ),
        (
            "os.setuid(os.getuid())\nos.setgid(os.getgid())\nprint('own')",
            "own",
        ),
        (
            "os.setresuid(-1, os.getuid(), -1)\nos.setresgid(os.getgid(), -1, -1)\nprint('own')",
            "own",
        ),
        (
            "os.setreuid(-1, -1)\nos.setregid(-1, os.getgid())\nprint('own')",
            "own",
        ),
        // Invalid everywhere.
        (
            "import ctypes\nprint(ctypes.CDLL(None, use_errno=True).setuid(-1), ctypes.get_errno())",
            "-1 22",
        ),
    ];
    // Root's children may become other users.
    if !rustix::process::geteuid().is_root() {
        rows.extend([
            ("os.setuid(0)", DENIED),
            ("os.setgid(4321)", DENIED),
            ("os.setreuid(-1, 4321)", DENIED),
            ("os.setregid(0, -1)", DENIED),
            ("os.setresuid(os.getuid(), -1, 0)", DENIED),
            ("os.setresgid(4321, -1, -1)", DENIED),
            (
                "import subprocess\nsubprocess.run(['true'], user=0)",
                DENIED,
            ),
        ]);
    }
    for (lines, said) in rows {
        assert_eq!(python(&spawner, &place, lines).await.0, said, "{lines}");
    }
}

/// psutil's own tests and CPython's `test_set_get_priority`: limits and priorities of processes by their number.
#[tokio::test]
async fn its_own_processes_are_limited_and_scheduled_by_number() {
    let place = Place::new();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    let child = "import subprocess, resource\npid = subprocess.Popen(['sleep', '60']).pid";
    let core = "import resource\nresource.prlimit";
    for (lines, said) in [
        (
            format!("{core}(os.getpid(), resource.RLIMIT_CORE, (0, 0))\nprint('own')"),
            "own",
        ),
        (
            format!(
                "{child}\nresource.prlimit(pid, resource.RLIMIT_NOFILE, (9, 9))\nprint('child')"
            ),
            "child",
        ),
        (
            format!(
                "{child}\nos.setpriority(os.PRIO_PROCESS, pid, 5)\nprint(os.getpriority(os.PRIO_PROCESS, pid))"
            ),
            "5",
        ),
        (
            format!(
                "{child}\nos.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))\nprint('batch')"
            ),
            "batch",
        ),
        (
            format!("{core}(4000000, resource.RLIMIT_CORE)"),
            "No such process",
        ),
        (format!("{core}(os.getpid(), 10, (1, 1))"), DENIED),
        ("os.setpriority(os.PRIO_USER, 0, 5)".to_owned(), DENIED),
    ] {
        assert_eq!(python(&spawner, &place, &lines).await.0, said, "{lines}");
    }
    assert_eq!(
        sh(
            &spawner,
            &place,
            "sleep 60 & ionice -c 3 -p $! && ionice -p $! && renice 7 $! >/dev/null"
        )
        .await
        .1,
        "idle"
    );
    // What has the numbers before it started it, and is not confined.
    assert_eq!(sh(&spawner, &place, "echo $$").await.1, "3");
    let out = helped(&place, SandboxMode::WorkspaceWrite).with_network(Network::On);
    assert_eq!(sh(&out, &place, "echo $$").await.1, "4");
    for (spawner, keepers) in [(&spawner, 1..3), (&out, 1..4)] {
        for keeper in keepers {
            let keeper = keeper.to_string();
            for how in ["scheduler", "param", "attr", "nice", "io"] {
                let said = place.says(spawner, &["scheduled", how, &keeper]).await;
                assert_eq!(said, "EPERM", "{how} {keeper}");
            }
            let lines = format!("{core}({keeper}, resource.RLIMIT_NOFILE, (9, 9))");
            assert_eq!(python(spawner, &place, &lines).await.0, DENIED, "{lines}");
        }
    }
}

/// redis' own tests set `oom-score-adj`, and `choom` does: it is written below `/proc`.
#[tokio::test]
async fn an_ordinary_users_processes_are_described_below_proc() {
    let place = Place::new();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    let root = rustix::process::geteuid().is_root();
    let denied = "Permission denied";
    let not_permitted = if root { denied } else { DENIED };
    for (name, value, said) in [
        ("oom_score_adj", "300", "300"),
        ("comm", "mine", "mine"),
        ("task/self/comm", "mine", "mine"),
        ("coredump_filter", "0x33", "00000033"),
        ("timerslack_ns", "60000", "60000"),
    ] {
        let name = name.replace("self", "'+str(os.getpid())+'");
        let lines = format!(
            "os.write(os.open('/proc/self/{name}', os.O_WRONLY), b'{value}')\nprint(open('/proc/self/{name}').read().strip())"
        );
        let said = if root { denied } else { said };
        assert_eq!(python(&spawner, &place, &lines).await.0, said, "{lines}");
    }
    for (path, said) in [
        ("/proc/1/oom_score_adj", denied),
        ("/proc/1/timerslack_ns", not_permitted),
        ("/proc/self/uid_map", not_permitted),
        ("/proc/sys/kernel/ns_last_pid", not_permitted),
        ("/proc/sys/kernel/core_pattern", denied),
        ("/proc/sys/net/ipv4/ip_forward", denied),
    ] {
        let value = if path.ends_with("uid_map") {
            "0 0 1"
        } else {
            "1"
        };
        let lines = format!("os.write(os.open('{path}', os.O_WRONLY), b'{value}')");
        assert_eq!(python(&spawner, &place, &lines).await.0, said, "{path}");
    }
    let text = "sleep 60 & echo 300 > /proc/$!/oom_score_adj && cat /proc/$!/oom_score_adj && choom -n 300 -- true && echo chosen";
    let (_, said, _) = sh(&spawner, &place, &format!("{{ {text}; }} 2>/dev/null")).await;
    assert_eq!(said, if root { "" } else { "300\nchosen" });
}

/// rsync's own tests keep files in `/var/tmp`, and programs look at `/run`.
#[tokio::test]
async fn places_that_every_machine_has() {
    let place = Place::new();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    let name = format!("/var/tmp/{}", place.tag.replace('/', "-"));
    let links = [("/var/run", "/run"), ("/run/shm", "/dev/shm")];
    let is_there = |(link, end): &(&str, &str)| {
        std::fs::canonicalize(link).is_ok_and(|real| real == Path::new(end))
    };
    for (link, end) in links.iter().filter(|link| is_there(link)) {
        let lines = format!("print(os.path.realpath('{link}'))");
        assert_eq!(python(&spawner, &place, &lines).await.0, *end, "{link}");
    }
    for (lines, said) in [
        (
            format!("open({name:?}, 'w').write('kept')\nprint('written')"),
            "written",
        ),
        (format!("print(open({name:?}).read())"), "kept"),
        (
            "print(oct(os.stat('/var/tmp').st_mode))".to_owned(),
            "0o41777",
        ),
        ("print(os.path.isdir('/run'))".to_owned(), "True"),
    ] {
        assert_eq!(python(&spawner, &place, &lines).await.0, said, "{lines}");
    }
    assert!(
        !Path::new(&name).exists(),
        "a directory of the commands' own"
    );
}

/// Programs ask for the devices of their network: psutil, for one.
#[tokio::test]
async fn devices_of_the_network_are_those_that_commands_have() {
    let place = Place::new();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    // Where parts of it are covered, as in some containers, the kernel makes no whole one.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let covers = |line: &str| line.contains(" /sys/") && line.contains(" - tmpfs ");
    // A place that is made for it.
    let is_made = |line: &str| line.contains(" /sys/fs/cgroup ");
    if mounts.lines().any(|line| covers(line) && !is_made(line)) {
        eprintln!("left out: something below /sys is covered");
        return;
    }
    let lines =
        "print(os.listdir('/sys/class/net'), open('/sys/class/net/lo/type').read().strip())";
    assert_eq!(python(&spawner, &place, lines).await.0, "['lo'] 772");
    let lines = "open('/sys/class/net/lo/mtu', 'w')";
    let (said, ..) = python(&spawner, &place, lines).await;
    assert!(
        said.contains("Read-only") || said.contains("denied"),
        "{said}"
    );
    // Nothing else of the kernel's files comes with them.
    let lines = "print([name for name in ['/sys/kernel/security', '/sys/firmware', '/sys/bus', '/.devices'] if os.path.exists(name)])";
    assert_eq!(python(&spawner, &place, lines).await.0, "[]");
}

/// pre-commit's hooks and node-gyp's headers are in the person's cache directory, and commands have another one.
#[tokio::test]
async fn programs_in_the_persons_caches_are_found() {
    let place = Place::new();
    let names = ["pre-commit", "node-gyp"];
    let there = names.map(|name| place.home.join(".cache").join(name));
    for dir in &there {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("file"), "theirs").unwrap();
    }
    std::fs::write(place.home.join(".cache/other"), "secret").unwrap();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    for name in names {
        let text = format!(
            "cd $XDG_CACHE_HOME/{name} && cat file && echo own > file && cat ~/.cache/{name}/file; cat ~/.cache/other || true"
        );
        let (_, said, _) = sh(&spawner, &place, &format!("{{ {text}; }} 2>/dev/null")).await;
        assert_eq!(said, "theirsown", "{name}");
    }
    for dir in &there {
        assert_eq!(std::fs::read_to_string(dir.join("file")).unwrap(), "theirs");
    }
    // Where the person has none, it is the pod's alone.
    let place = Place::new();
    std::fs::create_dir(place.home.join(".cache")).unwrap();
    let spawner = helped(&place, SandboxMode::WorkspaceWrite);
    let text = "mkdir -p $XDG_CACHE_HOME/pre-commit && echo x > $XDG_CACHE_HOME/pre-commit/x && ls $XDG_CACHE_HOME/pre-commit";
    assert_eq!(sh(&spawner, &place, text).await.1, "x");
    assert!(!place.home.join(".cache/pre-commit").exists());
}
