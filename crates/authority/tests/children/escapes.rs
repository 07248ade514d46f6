//! Ways out of namespaces of a child's own: none may succeed.

use super::shared::{Place, apart, probe, run};
use authority::SandboxMode;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// New namespaces, by their flags: mounts, cgroups, names, shared memory, users, processes, the network, time.
const NAMESPACES: &[&str] = &[
    "0x20000",
    "0x2000000",
    "0x4000000",
    "0x8000000",
    "0x10000000",
    "0x20000000",
    "0x40000000",
    "0x10020000",
];

/// At the first process of its namespace, which is outside of its confinement: the operation, and what follows the number.
const AT_KEEPER: &[(&str, &str)] = &[
    ("kill", "9"),
    ("kill", "0"),
    ("tgkill", ""),
    ("sigqueue", ""),
    ("pidfd-kill", ""),
    ("pidfd-getfd", ""),
    ("ptrace", ""),
    ("peek", "4096"),
    ("prlimit", ""),
    ("kcmp", ""),
    ("move-pages", ""),
    ("migrate-pages", ""),
    ("robust-list", ""),
    ("madvise", ""),
];

/// Files of `/proc/1`, with what is tried.
const OF_KEEPER: &[(&str, &str)] = &[
    ("read", "mem"),
    ("read", "environ"),
    ("read", "maps"),
    ("read", "auxv"),
    ("read", "io"),
    ("read", "exe"),
    ("read", "stack"),
    ("read", "syscall"),
    ("read", "root/etc/passwd"),
    ("list", "cwd/."),
    ("list", "fdinfo"),
    ("read", "fd/3"),
    ("read", "ns/mnt"),
    ("read", "ns/net"),
    ("read", "ns/user"),
    ("write", "mem"),
    ("write", "oom_score_adj"),
    ("write", "uid_map"),
    ("write", "setgroups"),
    ("write", "clear_refs"),
    ("put", "attr/current"),
    ("put", "timerslack_ns"),
    ("put", "sched"),
    ("put", "autogroup"),
    ("put", "loginuid"),
    ("write", "coredump_filter"),
];

/// Of the machine: while a view was built, its files were there.
const FILES: &[(&str, &str)] = &[
    ("list", "/.machine"),
    ("read", "/.machine/etc/passwd"),
    ("read", "/etc/shadow"),
    ("read", "/../../../etc/shadow"),
    ("read", "/proc/self/root/etc/shadow"),
    ("read", "/proc/self/cwd/../../.ssh/id"),
    ("read", "/proc/kcore"),
    ("read", "/proc/kmsg"),
    ("read", "/dev/mem"),
    ("write", "/proc/sysrq-trigger"),
    ("write", "/proc/sys/kernel/core_pattern"),
    ("write", "/proc/sys/net/ipv4/ip_forward"),
    ("write", "/proc/sys/user/max_user_namespaces"),
    ("write", "/sys/fs/cgroup/cgroup.procs"),
    ("write", "/etc/resolv.conf"),
    ("write", "/.resolv.conf"),
    ("write", "/new"),
    ("mkdir", "/new"),
    ("list", "/root"),
    ("write", "/run/new"),
    ("mkdir", "/run/new"),
    ("unlink", "/dev/ptmx"),
    ("mkdir", "/dev/new"),
    ("chroot", "/"),
    ("mount", "/tmp"),
    ("mount", "/proc"),
];

/// What the pod's helper, its keepers, the pod itself and the person's programs could be asked or made to do.
#[tokio::test]
async fn none_succeeds() {
    let place = Place::new();
    let Some(spawner) = apart(&place, SandboxMode::WorkspaceWrite) else {
        return;
    };
    let mut tries: Vec<Vec<String>> = Vec::new();
    let mut add =
        |words: &[&str]| tries.push(words.iter().map(|word| (*word).to_owned()).collect());
    for (kind, flags) in ["unshare", "clone", "clone3"]
        .iter()
        .flat_map(|kind| NAMESPACES.iter().map(move |it| (kind, it)))
    {
        add(&[kind, flags]);
    }
    let host = std::process::id().to_string();
    for (op, more) in AT_KEEPER {
        add(&[op, "1", more]);
        add(&[op, &host, more]);
    }
    OF_KEEPER
        .iter()
        .for_each(|(op, name)| add(&[op, &format!("/proc/1/{name}")]));
    FILES.iter().for_each(|args| add(&[args.0, args.1]));
    // An ordinary user opens its own.
    if rustix::process::geteuid().is_root() {
        ["uid_map", "oom_score_adj"]
            .iter()
            .for_each(|name| add(&["write", &format!("/proc/self/{name}")]));
    }
    let listening = Listening::new(&place);
    for name in &listening.names {
        add(&["unix", name]);
        add(&["pair-sendto", name, "2"]);
    }
    let mut said = Vec::new();
    for args in &tries {
        said.push(
            place
                .says(
                    &spawner,
                    &args.iter().map(String::as_str).collect::<Vec<_>>(),
                )
                .await,
        );
    }
    let out: Vec<_> = tries
        .iter()
        .zip(&said)
        .filter(|(_, said)| *said == "ok" || *said == "EOF")
        .collect();
    assert!(out.is_empty(), "{out:#?}");
    // Each was understood.
    assert!(said.iter().all(|said| said != "unknown"), "{said:?}");
    println!("{} ways out, none succeeds", tries.len());
    let (_, said) = run(&spawner, place.job(probe(), &["descriptors"]))
        .await
        .unwrap();
    assert_eq!(
        said.trim(),
        "0 /dev\n1 pipe\n2 pipe\nok",
        "nothing is inherited but the standard three"
    );
}

/// Sockets where programs of the machine have theirs, which this process reaches.
struct Listening {
    paths: Vec<PathBuf>,
    names: Vec<String>,
    _held: Vec<UnixListener>,
}

impl Listening {
    fn new(place: &Place) -> Self {
        let unique = format!("yoi-escape-{}", std::process::id());
        let shared = ["/tmp", "/dev/shm", "/run", "/var/run", "/var/lib"]
            .map(|dir| Path::new(dir).join(&unique));
        let mut paths = ["docker.sock", "agent"]
            .map(|name| place.outside.join(name))
            .to_vec();
        paths.extend([
            place.home.join("agent"),
            place.home.join(".ssh/agent"),
            place.state.join("sock"),
        ]);
        paths.extend(shared);
        let mut held = Vec::new();
        // Not every user may write in all of these.
        paths.retain(|path| {
            UnixListener::bind(path)
                .map(|socket| held.push(socket))
                .is_ok()
        });
        assert!(
            paths.len() >= 6 && paths.iter().all(|path| UnixStream::connect(path).is_ok()),
            "{paths:?}"
        );
        held.push(
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&unique).unwrap()).unwrap(),
        );
        let names = paths
            .iter()
            .map(|path| path.to_str().unwrap().to_owned())
            .chain([format!("@{unique}")]);
        Self {
            names: names.collect(),
            paths,
            _held: held,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.paths
            .iter()
            .for_each(|path| drop(std::fs::remove_file(path)));
    }
}
