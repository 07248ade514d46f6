//! What programs find in namespaces of their own as it is outside of them. Their own tests compare it.

use super::apart::{python, sh};
use super::shared::{Place, apart};
use authority::SandboxMode;

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
        (format!("{core}(1, resource.RLIMIT_NOFILE, (9, 9))"), DENIED),
        (format!("{core}(2, resource.RLIMIT_NOFILE, (9, 9))"), DENIED),
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
    for (how, keeper) in ["scheduler", "param", "attr", "nice", "io"]
        .iter()
        .flat_map(|how| [(how, "1"), (how, "2")])
    {
        assert_eq!(
            place.says(&spawner, &["scheduled", how, keeper]).await,
            "EPERM",
            "{how} {keeper}"
        );
    }
}
