//! Children in namespaces of their own: what they can do there, that it ends, and what stays out of reach. Where this user
//! may not make namespaces, the reason is told, and children are confined without.

use super::shared::{Place, apart, confinable, helped, run};
use authority::{Beyond, ChildExit, HelperProgram, Network, SandboxMode, Spawner};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// None where this machine has no namespaces for this user.
fn spawner(place: &Place) -> Option<Spawner> {
    apart(place, SandboxMode::WorkspaceWrite)
}

pub(crate) async fn sh(
    spawner: &Spawner,
    place: &Place,
    text: &str,
) -> (ChildExit, String, Option<u32>) {
    let (ended, said) = run(spawner, place.job("bash", &["-c", text]))
        .await
        .unwrap();
    (ended.how, said.trim().to_owned(), ended.refused)
}

/// What a program says, by `python3`, whose sockets are plain.
pub(crate) async fn python(spawner: &Spawner, place: &Place, lines: &str) -> (String, Option<u32>) {
    let text = format!(
        "import os, socket\ntry:\n    {}\nexcept OSError as e: print(e.strerror)",
        lines.replace('\n', "\n    ")
    );
    std::fs::write(place.project.join("try.py"), text).unwrap();
    let (_, said, refused) = sh(spawner, place, "/usr/bin/python3 try.py 2>&1").await;
    (said, refused)
}

/// B: mini-redis, werkzeug and needle: their own tests open servers on loopback, and EPERM ended them.
#[tokio::test]
async fn servers_and_terminals_of_their_own() {
    let place = Place::new();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    for (lines, said) in [
        (
            "s = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname())\nprint('tcp')",
            "tcp",
        ),
        (
            "s = socket.create_server(('::1', 0), family=socket.AF_INET6)\nsocket.create_connection(s.getsockname()[:2])\nprint('six')",
            "six",
        ),
        (
            "s = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\ns.sendto(b'x', s.getsockname())\nprint(s.recv(1))",
            "b'x'",
        ),
        (
            "s = socket.socket(socket.AF_UNIX)\ns.bind('sock')\ns.listen()\nsocket.socket(socket.AF_UNIX).connect('sock')\nprint('path')",
            "path",
        ),
        (
            "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0name')\ns.listen()\nsocket.socket(socket.AF_UNIX).connect('\\0name')\nprint('name')",
            "name",
        ),
        (
            "a, b = socket.socketpair(type=socket.SOCK_DGRAM)\na.send(b'x')\nprint(b.recv(1))",
            "b'x'",
        ),
        (
            "import pty\na, b = pty.openpty()\nprint(os.ttyname(b)[:9])",
            "/dev/pts/",
        ),
        (
            "import multiprocessing\nmultiprocessing.Lock()\nprint('lock')",
            "lock",
        ),
        (
            "import pty\npid, fd = pty.fork()\nif pid == 0: os.write(os.open('/dev/tty', os.O_RDWR), b'own')\nelse: print(os.read(fd, 3))",
            "b'own'",
        ),
        (
            "print(os.getpid() < 100, os.readlink('/proc/self') == str(os.getpid()))",
            "True True",
        ),
        (
            "print(len([n for n in os.listdir('/proc') if n.isdigit()]) < 10)",
            "True",
        ),
    ] {
        assert_eq!(
            python(&spawner, &place, lines).await,
            (said.to_owned(), Some(0)),
            "{lines}"
        );
    }
}

/// A directory for each call had a path that is too long for the names of sockets that tests make below it.
#[tokio::test]
async fn temporary_files_have_short_names() {
    let mut place = Place::new();
    // Beside `/tmp`: where something below may only be read, it is not written.
    place.read.clear();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    let text = "echo $TMPDIR; echo x > /tmp/kept; ls /tmp/kept";
    assert_eq!(sh(&spawner, &place, text).await.1, "/tmp\n/tmp/kept");
    assert_eq!(
        sh(&spawner, &place, "cat /tmp/kept").await.1,
        "x",
        "one for the pod"
    );
    assert!(!Path::new("/tmp/kept").exists());
}

/// What goes out is refused and counted by the kernel, whatever the command says of it and however it ends.
#[tokio::test]
async fn what_goes_out_is_counted() {
    let place = Place::new();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    for (text, how) in [
        ("exec 3<>/dev/tcp/192.0.2.1/80", ChildExit::Exit(1)),
        (
            "(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1 | tail -n 0; true",
            ChildExit::Exit(0),
        ),
        (
            "(exec 3<>/dev/udp/192.0.2.1/80) >/dev/null 2>&1; exit 0",
            ChildExit::Exit(0),
        ),
        (
            "(exec 3<>/dev/tcp/2001:db8::1/80) 2>/dev/null; exit 3",
            ChildExit::Exit(3),
        ),
        (
            "(exec 3<>/dev/tcp/example.org/80) 2>/dev/null; exit 0",
            ChildExit::Exit(0),
        ),
        (
            "(setsid bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' 2>/dev/null; sleep 60) & exit 0",
            ChildExit::Exit(0),
        ),
    ] {
        let (ended, said, refused) = sh(&spawner, &place, text).await;
        assert_eq!(
            (ended, refused > Some(0)),
            (how, true),
            "{text}: {said} {refused:?}"
        );
        assert_eq!(
            sh(&spawner, &place, "echo network is unreachable").await.2,
            Some(0),
            "only its own"
        );
    }
}

/// A server that a job started is reached by the next call, and by no one else; its end ends all of it.
#[tokio::test]
async fn a_server_of_a_job_is_reached_by_the_next_call_and_ends_with_the_job() {
    let place = Place::new();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    let server = "import socket, os\ns = socket.create_server(('127.0.0.1', 4321))\nif os.fork() == 0: os.setsid()\nopen('up', 'w')\nwhile 1: s.accept()[0].send(b'here')";
    std::fs::write(place.project.join("server.py"), server).unwrap();
    let stop = CancellationToken::new();
    let child = spawner
        .spawn(place.job("/usr/bin/python3", &["server.py"]))
        .await
        .unwrap();
    let job = tokio::spawn({
        let stop = stop.clone();
        async move { child.run(|_| Ok(()), &stop).await }
    });
    let asks =
        "until test -e up; do sleep 0.05; done; exec 3<>/dev/tcp/127.0.0.1/4321 && head -c 4 <&3";
    assert_eq!(sh(&spawner, &place, asks).await.1, "here");
    assert!(
        std::net::TcpStream::connect("127.0.0.1:4321").is_err(),
        "not from outside"
    );
    // Another pod's.
    let other = Place::new();
    let another = helped(&other, SandboxMode::WorkspaceWrite);
    assert_eq!(
        sh(&another, &other, "exec 3<>/dev/tcp/127.0.0.1/4321")
            .await
            .0,
        ChildExit::Exit(1)
    );
    stop.cancel();
    let ended = job.await.unwrap().unwrap();
    assert_eq!((ended.how, ended.remaining), (ChildExit::Cancelled, 0));
    assert_eq!(
        sh(&spawner, &place, "exec 3<>/dev/tcp/127.0.0.1/4321")
            .await
            .0,
        ChildExit::Exit(1)
    );
}

/// What is said inside; outside of the sandbox each of these reaches something.
#[tokio::test]
async fn the_machine_stays_out_of_reach() {
    let mut place = Place::new();
    // Where the probe was built may be anywhere.
    place.read.clear();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    let named = place.outside.join("sock");
    let _path = UnixListener::bind(&named).unwrap();
    let name = format!("yoi-test-{}", std::process::id());
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let own = std::process::id();
    let missing = "No such file or directory";
    let denied = "Permission denied";
    for (lines, said) in [
        (format!("socket.socket(socket.AF_UNIX).connect({named:?})"), missing),
        (format!("socket.socket(socket.AF_UNIX).connect('\\0{name}')"), "Connection refused"),
        (format!("socket.create_connection(('127.0.0.1', {port}))"), "Connection refused"),
        (format!("os.kill({own}, 0)"), "No such process"),
        (format!("os.listdir('/proc/{own}')"), missing),
        ("os.readlink('/proc/1/root')".to_owned(), denied),
        ("os.readlink('/proc/1/ns/net')".to_owned(), denied),
        ("os.readlink('/proc/1/fd/0')".to_owned(), denied),
        ("open('/proc/1/environ')".to_owned(), denied),
        ("open('/proc/1/mem', 'r+')".to_owned(), denied),
        (format!("print('{name}' in open('/proc/1/net/unix').read())"), "False"),
        ("os.kill(1, 9)".to_owned(), "Operation not permitted"),
        ("print(set(os.listdir('/run')) <= {'systemd', 'current-system', 'shm'})".to_owned(), "True"),
        ("open('/run/new', 'w')".to_owned(), denied),
        ("print(sorted(set(os.listdir('/')) - {'bin', 'dev', 'etc', 'gnu', 'home', 'lib', 'lib32', 'lib64', 'libx32', 'nix', 'opt', 'proc', 'run', 'sbin', 'snap', 'sys', 'tmp', 'usr', 'var', '.resolv.conf'}))".to_owned(), "[]"),
        (format!("open({:?})", place.home.join(".ssh/id")), missing),
        (format!("open({:?}, 'w')", place.outside.join("new")), missing),
        ("open('/etc/new', 'w')".to_owned(), if [0, 65534].contains(&rustix::process::geteuid().as_raw()) { "Read-only file system" } else { denied }),
        ("open('/proc/sys/kernel/hostname', 'w')".to_owned(), denied),
        ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)".to_owned(), "Operation not permitted"),
        ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)".to_owned(), "Operation not permitted"),
        ("socket.socket(socket.AF_VSOCK)".to_owned(), "Operation not permitted"),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)".to_owned(), "Operation not permitted"),
        ("print(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).family == 16)".to_owned(), "True"),
        ("os.open('/dev/tty', os.O_RDWR)".to_owned(), "No such device or address"),
        ("os.chroot('.')".to_owned(), "Operation not permitted"),
        ("print(sorted(os.listdir('/proc/self/fd')))".to_owned(), "['0', '1', '2', '3']"),
    ] {
        let (heard, _) = python(&spawner, &place, &lines).await;
        assert_eq!(heard, said, "{lines}");
    }
    for text in [
        "unshare -Ur true",
        "unshare -n true",
        "mount -t tmpfs x .",
        "mount --bind . /tmp",
        "umount /proc",
    ] {
        let (how, said, _) = sh(&spawner, &place, &format!("{text} 2>&1")).await;
        assert_ne!(how, ChildExit::Exit(0), "{text}: {said}");
    }
}

/// A rule for a directory counts for what is mounted below it, too: with a rule for `/tmp`, what is below it and may only be
/// read was written.
#[tokio::test]
async fn what_may_only_be_read_is_not_written_wherever_it_is() {
    let mut place = Place::new();
    place.read.push(place.outside.clone());
    // The project is below a directory that is only read.
    let home = place.home.join("..").canonicalize().unwrap();
    place.project = home.join("outside/project");
    std::fs::create_dir(&place.project).unwrap();
    std::fs::write(place.project.join("file"), "inside").unwrap();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    let file = place.outside.join("file");
    assert_eq!(
        sh(
            &spawner,
            &place,
            "chmod 600 file && touch -d 2001-01-01 file && echo -n ' too' >> file && cat file"
        )
        .await
        .1,
        "inside too"
    );
    for text in [
        "echo x > {}",
        "echo x >> {}",
        "rm {}",
        "mv {} {}2",
        "touch {}2",
        "ln -s x {}2",
        // Landlock knows no rule for these.
        "chmod 777 {}",
        "chmod 777 $(dirname {})",
        "chown $(id -u) {}",
        "touch -d 2001-01-01 {}",
        "setfattr -n user.x -v y {} || python3 -c \"import os; os.setxattr('{}', 'user.x', b'y')\"",
    ] {
        let text = text.replace("{}", file.to_str().unwrap());
        assert_ne!(
            sh(&spawner, &place, &text).await.0,
            ChildExit::Exit(0),
            "{text}"
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "outside");
    std::fs::write(place.project.join("file"), "inside").unwrap();
    let reads = helped(&place, SandboxMode::ReadOnly);
    for text in ["echo x > file", "rm file", "touch new"] {
        assert_ne!(
            sh(&reads, &place, text).await.0,
            ChildExit::Exit(0),
            "{text}"
        );
    }
    assert_eq!(
        sh(
            &reads,
            &place,
            "cat file; echo x > \"$TMPDIR/x\" && cat \"$TMPDIR/x\""
        )
        .await
        .1,
        "insidex"
    );
}

/// claude-code#33657: git in a worktree or a submodule, whose repository is elsewhere, works as in the project.
#[tokio::test]
async fn git_works_where_its_repository_is_elsewhere() {
    for (make, whole) in [
        (
            "git init -q r; git -C r commit -qm a --allow-empty; git -C r worktree add -q ../project",
            "r/.git",
        ),
        (
            "git init -q r; git -C r commit -qm a --allow-empty; git clone -q --bare r b; git -C b worktree add -q ../project",
            "b",
        ),
        (
            "git init -q r; git -C r commit -qm a --allow-empty; git init -q s; git -C s submodule --quiet add ../r sub; ln -s s/sub project",
            "s/.git/modules/sub",
        ),
        (
            "git init -q r; touch r/a; git -C r add a; git -C r commit -qm a; git clone -q --separate-git-dir=g r project",
            "g",
        ),
    ] {
        let mut place = Place::new();
        let home = place.home.clone();
        std::fs::remove_dir_all(&place.project).unwrap();
        let set = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=a \
            GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@example.org GIT_CONFIG_KEY_2=protocol.file.allow GIT_CONFIG_VALUE_2=always";
        let made = Command::new("sh")
            .args(["-ec", &format!("{set}; {make}")])
            .current_dir(&home)
            .status();
        assert!(made.unwrap().success(), "{make}");
        place.project = home.join("project").canonicalize().unwrap();
        let found = authority::LinkedRepository::of(&place.project)
            .unwrap()
            .whole;
        assert_eq!(found, home.join(whole), "{make}");
        place.write.push(found);
        let Some(spawner) = spawner(&place) else {
            return;
        };
        let text = format!(
            "{set}; echo x > new; git add new && git commit -qm b && git log --format=%s | head -n 1"
        );
        assert_eq!(sh(&spawner, &place, &text).await.1, "b", "{make}");
        let away = format!(
            "ls {}",
            home.join(if whole == "b" { "r" } else { "r/../outside" })
                .display()
        );
        assert_ne!(
            sh(&spawner, &place, &away).await.0,
            ChildExit::Exit(0),
            "only the repository is given"
        );
    }
}

/// Ending a call ends all that it started, however that was started.
#[tokio::test]
async fn nothing_outlives_its_call() {
    let place = Place::new();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    for text in [
        "sleep 4321 & exit 0",
        "setsid sleep 4321 & exit 0",
        "(setsid env -i bash -c 'sleep 4321 & sleep 4321' &) ; exit 0",
        "trap '' TERM; (trap '' TERM HUP; while :; do sleep 4321; done) & exit 0",
        "kill -9 $$",
    ] {
        let (ended, said) = run(&spawner, place.job("bash", &["-c", text]))
            .await
            .unwrap();
        assert_eq!(ended.remaining, 0, "{text}: {said}");
        assert_eq!(
            ended.leftovers > 0,
            !text.starts_with("kill"),
            "{text}: {ended:?}"
        );
        assert!(running("sleep\u{0}4321").is_empty(), "{text}");
    }
}

/// Command lines of all processes that begin so.
fn running(start: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(start)).collect()
}

/// The helper ends with the pod's handle on it, also while a call runs; another one takes its place where it was killed.
#[tokio::test]
async fn a_helper_ends_with_its_pod_and_is_replaced_where_it_was_killed() {
    let place = Place::new();
    let Some(spawner) = spawner(&place) else {
        return;
    };
    let mark = format!("{}/+helper", place.tag);
    let helpers = || {
        let all = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let is_helper = |path: &Path| {
            std::fs::read(path.join("environ")).is_ok_and(|vars| {
                vars.split(|byte| *byte == 0)
                    .any(|var| var == format!("YOI_CALL={mark}").as_bytes())
            })
        };
        all.filter(|path| is_helper(path)).collect::<Vec<_>>()
    };
    let kept = "cd ~/.cargo/registry && cat crate && echo";
    let store = async |word: &str| {
        sh(&spawner, &place, &format!("{kept} {word} >> crate"))
            .await
            .1
    };
    assert_eq!(store("one").await, "code");
    let old = helpers();
    // Only root looks into those that are not dumpable.
    let seen = if rustix::process::geteuid().is_root() {
        2
    } else {
        1
    };
    assert!(old.len() >= seen, "{old:?}");
    for path in &old {
        let pid = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        )
        .ok();
    }
    // Its stores are the pod's, and go on to be written.
    assert_eq!(store("two").await, "codeone");
    assert_eq!(store("three").await, "codeone\ntwo");
    let child = spawner.spawn(place.job("sleep", &["4322"])).await.unwrap();
    // The first process of the namespaces hangs.
    let mut pids: Vec<i32> = helpers()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().parse().unwrap())
        .collect();
    pids.sort_unstable();
    for pid in &pids[1..] {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(*pid).unwrap(),
            rustix::process::Signal::STOP,
        )
        .ok();
    }
    drop((child, spawner));
    let until = Instant::now() + Duration::from_secs(20);
    while !(helpers().is_empty() && running("sleep\u{0}4322").is_empty()) {
        assert!(Instant::now() < until, "{:?}", helpers());
        std::thread::yield_now();
    }
}

/// Which network children use is the person's: none, one of their own, the machine's; a call may be let out once.
#[tokio::test]
async fn networks() {
    let place = Place::new();
    let Some(own) = spawner(&place) else { return };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let reach = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}",
        tcp.local_addr().unwrap().port()
    );
    let none = helped(&place, SandboxMode::WorkspaceWrite).with_network(Network::None);
    let on = helped(&place, SandboxMode::WorkspaceWrite).with_network(Network::On);
    let none = sh(&none, &place, &reach).await;
    let on = sh(&on, &place, &reach).await;
    assert_eq!(
        (none.0, none.2),
        (ChildExit::Exit(1), Some(1)),
        "{}",
        none.1
    );
    assert_eq!((on.0, on.2), (ChildExit::Exit(0), None), "{}", on.1);
    assert_eq!(sh(&own, &place, &reach).await.0, ChildExit::Exit(1));
    let _permit = own.permit("c00000001", Beyond::Network).unwrap();
    assert_eq!(sh(&own, &place, &reach).await.0, ChildExit::Exit(0));
    assert_eq!(sh(&own, &place, &reach).await.0, ChildExit::Exit(1), "once");
}

/// Without namespaces a socket of the internet fails as without a network, which programs name, and the reason is told once.
#[tokio::test]
async fn without_namespaces_the_reason_is_told_once() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let program = HelperProgram::new(&ambient::claim(), "/bin/false".into(), "".into());
    let spawner = place
        .spawner(SandboxMode::WorkspaceWrite)
        .unwrap()
        .with_helper(program);
    assert_eq!(spawner.weaker(), None, "not known yet");
    let (said, refused) = python(&spawner, &place, "socket.socket()").await;
    assert_eq!((said.as_str(), refused), ("Network is unreachable", None));
    assert!(
        spawner
            .weaker()
            .is_some_and(|why| why.contains("namespaces"))
    );
    assert_eq!(spawner.weaker(), None);
    assert_eq!(
        python(&spawner, &place, "socket.socket(socket.AF_UNIX)")
            .await
            .0,
        "Operation not permitted"
    );
}

/// A call that is let out, and all with `network = "on"`, had neither sockets of paths nor terminals: the option that the refusal
/// named took away what the default gave.
#[tokio::test]
async fn a_call_that_is_let_out_keeps_the_rest() {
    let place = Place::new();
    let Some(own) = spawner(&place) else { return };
    let on = helped(&place, SandboxMode::WorkspaceWrite).with_network(Network::On);
    let named = place.outside.join("sock");
    let _path = UnixListener::bind(&named).unwrap();
    let name = format!("yoi-out-{}", std::process::id());
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let resolver = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    for (lines, said) in [
        (format!("socket.create_connection(('127.0.0.1', {port}))\nprint('tcp')"), "tcp".to_owned()),
        (format!("print(open('/etc/resolv.conf').read() == {resolver:?})"), "True".to_owned()),
        (
            "s = socket.socket(socket.AF_UNIX)\ns.bind('sock')\ns.listen()\nsocket.socket(socket.AF_UNIX).connect('sock')\nos.unlink('sock')\nprint('path')"
                .to_owned(),
            "path".to_owned(),
        ),
        ("import pty\na, b = pty.openpty()\nprint(os.ttyname(b)[:9])".to_owned(), "/dev/pts/".to_owned()),
        (format!("socket.socket(socket.AF_UNIX).connect({named:?})"), "No such file or directory".to_owned()),
        (format!("socket.socket(socket.AF_UNIX).connect('\\0{name}')"), "Operation not permitted".to_owned()),
        ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)".to_owned(), "Operation not permitted".to_owned()),
        (format!("os.kill({}, 0)", std::process::id()), "No such process".to_owned()),
    ] {
        let _permit = own.permit("c00000001", Beyond::Network).unwrap();
        assert_eq!(python(&own, &place, &lines).await, (said.clone(), None), "{lines}");
        assert_eq!(python(&on, &place, &lines).await, (said, None), "{lines}");
    }
    let (said, _) = python(&own, &place, "print(open('/etc/resolv.conf').read())").await;
    assert_eq!(said.trim(), "nameserver 192.0.2.1", "once");
}

/// A new crate or package could not be stored, with the network or without: nothing of the person's is written, and the pod has
/// a copy.
#[tokio::test]
async fn package_managers_have_stores_of_their_own() {
    let place = Place::new();
    let odd = place.home.join("a,b:c\\d");
    std::fs::create_dir_all(odd.join("pkg")).unwrap();
    std::fs::create_dir_all(place.home.join(".m2")).unwrap();
    std::fs::write(place.home.join(".m2/settings.xml"), "<mirror/>").unwrap();
    let mut place = place;
    place.vars.push(("GOMODCACHE".into(), odd.clone().into()));
    let Some(own) = spawner(&place) else { return };
    let registry = place.home.join(".cargo/registry");
    for (text, said) in [
        (
            "cd ~/.cargo/registry && echo new > new && echo more >> crate && mkdir -p d/e && cat crate new",
            "codemore\nnew",
        ),
        (
            "cat ~/.cargo/registry/crate ~/.cargo/registry/new; ls ~/.cargo/registry/d",
            "codemore\nnew\ne",
        ),
        (
            "mkdir -p ~/.m2/repository/x && echo y > ~/.m2/repository/x/y && cat ~/.m2/repository/x/y",
            "y",
        ),
        // What is not there at all is one new directory.
        (
            "ls ~/.gradle; mkdir ~/.gradle/caches && echo w > ~/.gradle/own && ls ~/.gradle",
            "caches\nown",
        ),
        ("echo z > \"$GOMODCACHE/z\" && ls \"$GOMODCACHE\"", "pkg\nz"),
        ("cat ~/.m2/settings.xml", "<mirror/>"),
        (
            "echo $npm_config_fetch_retries $CARGO_NET_RETRY $PIP_RETRIES",
            "0 0 0",
        ),
        (
            "rm ~/.cargo/registry/crate && ls ~/.cargo/registry",
            "d\nnew",
        ),
        (
            "cat ~/.cargo/credentials.toml || echo x > ~/.cargo/config.toml || echo x > ~/.m2/settings.xml || echo no",
            "no",
        ),
    ] {
        let (_, heard, _) = sh(&own, &place, &format!("{{ {text}; }} 2>/dev/null")).await;
        assert_eq!(heard, said, "{text}");
    }
    let (_, seen, _) = sh(&own, &place, "ls -A ~").await;
    assert!(
        !seen.contains(".ssh") && seen.contains(".cargo") && seen.contains("project"),
        "{seen}"
    );
    let _permit = own.permit("c00000001", Beyond::Network).unwrap();
    assert_eq!(
        sh(&own, &place, "ls ~/.cargo/registry").await.1,
        "d\nnew",
        "a call that is let out has the same"
    );
    assert_eq!(
        std::fs::read_to_string(registry.join("crate")).unwrap(),
        "code"
    );
    assert_eq!(std::fs::read_dir(&registry).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&odd).unwrap().count(), 1);
    assert_eq!(
        std::fs::read_dir(place.home.join(".m2")).unwrap().count(),
        1
    );
    assert!(!place.home.join(".gradle").exists());
    std::fs::write(
        place.home.join(".m2/settings.xml"),
        "<server><Password>x</Password></server>",
    )
    .unwrap();
    let other = spawner(&place).unwrap();
    assert_ne!(
        sh(&other, &place, "cat ~/.m2/settings.xml").await.0,
        ChildExit::Exit(0),
        "it holds a secret"
    );
}
