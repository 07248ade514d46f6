//! Ways out that are no paths: system calls, their other numbers, other processes, and what is open on purpose.

use super::shared::{self, Place, confinable, probe};
use authority::{ChildExit, SandboxMode, Spawner};
use std::io;
use tokio_util::sync::CancellationToken;

/// Calls without a use in building and testing, each with arguments that no kernel would take: what is `EPERM` was
/// refused for its name.
const REFUSED: &[(&str, libc::c_long)] = &[
    ("socket", libc::SYS_socket),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("shmget", libc::SYS_shmget),
    ("shmat", libc::SYS_shmat),
    ("shmctl", libc::SYS_shmctl),
    ("semget", libc::SYS_semget),
    ("semop", libc::SYS_semop),
    ("semctl", libc::SYS_semctl),
    ("msgget", libc::SYS_msgget),
    ("msgsnd", libc::SYS_msgsnd),
    ("msgrcv", libc::SYS_msgrcv),
    ("msgctl", libc::SYS_msgctl),
    ("mq_open", libc::SYS_mq_open),
    ("mq_unlink", libc::SYS_mq_unlink),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("file_setattr", 469),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("fsopen", libc::SYS_fsopen),
    ("fsconfig", libc::SYS_fsconfig),
    ("fsmount", libc::SYS_fsmount),
    ("fspick", libc::SYS_fspick),
    ("move_mount", libc::SYS_move_mount),
    ("open_tree", libc::SYS_open_tree),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("setns", libc::SYS_setns),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("kexec_load", libc::SYS_kexec_load),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("swapoff", libc::SYS_swapoff),
    ("acct", libc::SYS_acct),
    ("settimeofday", libc::SYS_settimeofday),
    ("clock_settime", libc::SYS_clock_settime),
    ("sethostname", libc::SYS_sethostname),
    ("setdomainname", libc::SYS_setdomainname),
    ("syslog", libc::SYS_syslog),
    ("quotactl", libc::SYS_quotactl),
    ("quotactl_fd", libc::SYS_quotactl_fd),
    #[cfg(target_arch = "x86_64")]
    ("kexec_file_load", libc::SYS_kexec_file_load),
    #[cfg(target_arch = "x86_64")]
    ("iopl", libc::SYS_iopl),
    #[cfg(target_arch = "x86_64")]
    ("ioperm", libc::SYS_ioperm),
];

/// Whether it is about what children in namespaces share with each other only.
fn is_shared(name: &str) -> bool {
    ["socket", "shm", "sem", "msg", "mq_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// All families of sockets that some kernel has, by number: IPv4, its neighbours, packets, keys, virtual machines, raw
/// devices, ciphers.
const FAMILIES: std::ops::Range<u32> = 1..47;

#[tokio::test]
async fn calls_that_are_refused_by_name() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
        let caged = place.spawner(mode).unwrap();
        for (name, number) in REFUSED {
            let call = ["call", &number.to_string()];
            if is_shared(name) {
                assert_eq!(place.says(&caged, &call).await, "EPERM", "{name}, {mode:?}");
            } else {
                place.tries(&caged, &call, "EPERM").await;
            }
        }
    }
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    for (family, kind) in FAMILIES.flat_map(|family| [1, 3].map(|kind| (family, kind))) {
        // The internet's, as on a machine without a network.
        let refused = if [2, 10].contains(&family) {
            "ENETUNREACH"
        } else {
            "EPERM"
        };
        place
            .tries(
                &caged,
                &["socket", &family.to_string(), &kind.to_string()],
                refused,
            )
            .await;
    }
}

/// What is said inside and outside; the reason, where nothing is refused.
#[tokio::test]
async fn ways_around_the_names() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let [caged, free] =
        [SandboxMode::WorkspaceWrite, SandboxMode::Off].map(|mode| place.spawner(mode).unwrap());
    let at = |name: &str| place.project.join(name).to_str().unwrap().to_owned();
    let socket = at("socket");
    let bound = at("bound");
    let file = at("file");
    let outside = place.outside.join("file").to_str().unwrap().to_owned();
    let hard = at("hard");
    let unnamed = place.outside.join("unnamed").to_str().unwrap().to_owned();
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    // Namespaces other than a user's need powers, which even root's children lack; outside, a machine may forbid them.
    let tries: &[(&[&str], &str, &str)] = &[
        (&["unshare", "0x10000000"], "EPERM", ""),
        (&["clone", "0x10000000"], "EPERM", ""),
        (&["clone", "0x10020000"], "EPERM", ""),
        (&["clone3", "0x10000000"], "ENOSYS", ""),
        (&["clone3", "0"], "ENOSYS", "ok"),
        (&["clone", "0"], "ok", "ok"),
        (&["unshare", "0x400"], "ok", "ok"),
        (&["unshare", "0x20000"], "EPERM", ""),
        (&["unshare", "0x40000000"], "EPERM", ""),
        (&["mount", &at("")], "EPERM", ""),
        (&["chroot", &at("")], "EPERM", ""),
        (&["ioctl", "0x5412"], "EPERM", "ENOTTY"),
        (&["ioctl", "0x541c"], "EPERM", "ENOTTY"),
        // The kernel looks at the lower half only.
        (&["ioctl", "0xffffffff00005412"], "EPERM", "ENOTTY"),
        // An end of a pair is a socket, but a connected one.
        (&["pair", "connect", &socket], "EISCONN", "EISCONN"),
        (&["pair", "bind", &bound], "EINVAL", "EADDRINUSE"),
        (&["exchange", &file, &outside], "EACCES", "ok"),
        (&["exchange", &outside, &file], "EACCES", "ok"),
        (&["unnamed", &at(""), &unnamed], "EACCES", "ok"),
        (&["link", &file, &hard], "ok", "EEXIST"),
        (&["raise-limit"], "EPERM", ""),
        // Allowed: a debugger's work, on processes of the same call.
        (&["traces-its-own"], "ok", "ok"),
        // Allowed: a program in memory is confined as the one that made it.
        (&["exec-memory"], "ok", "ok"),
        // Not judged by Landlock, and no content: permissions of the person's other files.
        (&["chmod", &outside], "ok", "ok"),
    ];
    for (args, inside, without) in tries {
        place.tries(&caged, args, inside).await;
        if !without.is_empty() {
            assert_eq!(place.says(&free, args).await, *without, "free {args:?}");
        }
    }
    let _inherited = rustix::io::dup(io::stdin()).unwrap();
    authority::seal_inherited(&ambient::claim());
    let (_, said) = shared::run(&caged, place.job(probe(), &["descriptors"]))
        .await
        .unwrap();
    assert_eq!(
        said.trim(),
        "0 /dev\n1 pipe\n2 pipe\nok",
        "nothing is inherited but the standard three"
    );
    let (_, said) = shared::run(&caged, place.job("cat", &["/proc/self/status"]))
        .await
        .unwrap();
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(said.lines().any(|found| found == line), "{line} in {said}");
    }
}

/// What a file system does for whoever has a file open for reading: only asking, and copying to what is open for writing.
#[tokio::test]
async fn files_that_are_open_for_reading() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let [caged, free] =
        [SandboxMode::ReadOnly, SandboxMode::Off].map(|mode| place.spawner(mode).unwrap());
    let given = place
        .home
        .join(".cargo/registry/crate")
        .to_str()
        .unwrap()
        .to_owned();
    let dir = place
        .home
        .join(".cargo/registry")
        .to_str()
        .unwrap()
        .to_owned();
    let tries: &[(&str, &str, &str)] = &[
        ("lease", &given, "ok"),
        ("notify", &dir, "ok"),
        ("setflags", &given, "ok"),
        ("setflags", &dir, "ok"),
        ("setxattr", &given, "ok"),
        ("0x40806685", &given, "verity"),
        ("0x800c6613", &dir, "encryption"),
        ("0xc0506617", &given, "a key of encryption"),
        ("0xc0406618", &given, "a key of encryption, away"),
        ("0x40087602", &given, "an inode's version"),
        ("0x40086604", &given, "ext4's"),
        ("0x50009401", &dir, "a snapshot"),
        ("0x5000940e", &dir, "a subvolume"),
        ("0x5000940f", &dir, "a subvolume, away"),
        ("0x50009417", &dir, "a snapshot"),
        ("0x4008941a", &dir, "a subvolume's flags"),
        ("0xc0189436", &given, "shared blocks"),
        ("0x40047211", &given, "FAT's attributes"),
    ];
    for (how, path, without) in tries {
        place.tries(&caged, &["held", how, path], "EPERM").await;
        let said = place.says(&free, &["held", how, path]).await;
        // Not every file system has these.
        let absent = ["ENOTTY", "EOPNOTSUPP"].contains(&said.as_str());
        assert!(
            *without != "ok" || said == "ok" || absent,
            "free {how}: {said}"
        );
    }
    for how in [
        "getflags",
        "0x801c581f",
        "0x80087601",
        "0x40049409",
        "0xc020660b",
    ] {
        let inside = place.says(&caged, &["held", how, &given]).await;
        assert_eq!(
            inside,
            place.says(&free, &["held", how, &given]).await,
            "{how}"
        );
    }
}

/// The calls of programs of 32 bits have numbers of their own, and end the process, where this kernel has them at all.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn the_other_door_into_the_kernel() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let [caged, free] =
        [SandboxMode::WorkspaceWrite, SandboxMode::Off].map(|mode| place.spawner(mode).unwrap());
    for op in ["int80", "int80-socket"] {
        let (without, _) = shared::run(&free, place.job(probe(), &[op])).await.unwrap();
        let (inside, said) = shared::run(&caged, place.job(probe(), &[op]))
            .await
            .unwrap();
        match without.how {
            ChildExit::Exit(0) => {
                assert_eq!(
                    (inside.how, said.as_str()),
                    (ChildExit::Signal(libc::SIGSYS), ""),
                    "{op}"
                )
            }
            // A kernel built or started without them kills on its own, or says that there is no such call.
            _absent => assert_ne!(inside.how, ChildExit::Exit(0), "{op}: {said}"),
        }
    }
}

/// What one call tries on another process of the same person: the host, and a child that runs meanwhile in another
/// call, confined or not.
#[tokio::test]
async fn other_processes() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let [caged, free] =
        [SandboxMode::WorkspaceWrite, SandboxMode::Off].map(|mode| place.spawner(mode).unwrap());
    on(&place, &caged, std::process::id()).await;
    for spawner in [&caged, &free] {
        let mut job = place.job("sh", &["-c", "echo $$; exec sleep 300"]);
        job.call = "victim".to_owned();
        let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
        let keep = |bytes: &[u8]| {
            told.send(String::from_utf8_lossy(bytes).into_owned())
                .map_err(io::Error::other)
        };
        let cancel = CancellationToken::new();
        let tries = async {
            let pid = hear.recv().await.unwrap().trim().parse().unwrap();
            on(&place, &caged, pid).await;
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(spawner.run(job, keep, &cancel), tries);
        assert_eq!(
            ended.unwrap().how,
            ChildExit::Cancelled,
            "it was left alone until it was no longer needed"
        );
    }
}

async fn on(place: &Place, caged: &Spawner, pid: u32) {
    let pid = pid.to_string();
    let proc = |name: &str| format!("/proc/{pid}/{name}");
    // Before version 6 Landlock does not judge signals, and `doctor` says so. The host is spared: it runs this test.
    let judged = authority::support().landlock_abi >= 6 && pid != std::process::id().to_string();
    let signals: &[&str] = &["tgkill", "sigqueue", "pidfd-kill", "owned"];
    for op in signals.iter().filter(|_| judged) {
        // The owner of a pipe is signalled without an answer to the one who writes.
        let want = if *op == "owned" { "ok" } else { "EPERM" };
        assert_eq!(place.says(caged, &[op, &pid]).await, want, "{op}");
    }
    for how in [
        "scheduler",
        "param",
        "attr",
        "nice",
        "nice-group",
        "nice-user",
        "io",
        "io-group",
        "io-user",
    ] {
        assert_eq!(
            place.says(caged, &["scheduled", how, &pid]).await,
            "EPERM",
            "{how}"
        );
        // Its own is its own matter.
        if !how.ends_with("-user") && !how.ends_with("-group") {
            assert_eq!(
                place.says(caged, &["scheduled", how, "0"]).await,
                "ok",
                "{how}"
            );
        }
    }
    // Allowed: on which processors; but root's children lack the power over what has more powers than they.
    assert!(
        ["ok", "EPERM"].contains(
            &place
                .says(caged, &["scheduled", "affinity", &pid])
                .await
                .as_str()
        )
    );
    assert_eq!(place.says(caged, &["madvise", &pid]).await, "EACCES");
    for op in [
        "ptrace",
        "pidfd-getfd",
        "kcmp",
        "move-pages",
        "migrate-pages",
        "robust-list",
        "prlimit",
    ] {
        assert_eq!(place.says(caged, &[op, &pid]).await, "EPERM", "{op}");
    }
    assert_eq!(place.says(caged, &["peek", &pid, "4096"]).await, "EPERM");
    for name in [
        "mem",
        "environ",
        "maps",
        "root/etc/passwd",
        "cwd/.",
        "fd/0",
        "exe",
        "auxv",
        "io",
    ] {
        assert_eq!(
            place.says(caged, &["read", &proc(name)]).await,
            "EACCES",
            "{name}"
        );
    }
    // Allowed: what every user of the machine may read, and how many files it has open, not which.
    assert_eq!(place.says(caged, &["list", &proc("fd")]).await, "ok");
    for name in ["stat", "status", "cmdline"] {
        assert_eq!(
            place.says(caged, &["read", &proc(name)]).await,
            "ok",
            "{name}"
        );
    }
}
