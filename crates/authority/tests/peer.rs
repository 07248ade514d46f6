//! Who started a process, and who is at the other end of a socket. What is asked about must not be below the process
//! that asks, so both are processes of their own: this program again, in a role.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{OnlyLooks, label_descendants, peer_of, started_by_pod};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What this program does instead of testing, and with what.
const ROLE: &str = "YOI_TEST_ROLE";
const WITH: &str = "YOI_TEST_WITH";

const MARK: &str = "a/1/c1";

/// A process that is ended with the test; at the latest by itself.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Started {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let said: &mut dyn Read = match (&mut self.0.stdout, &mut self.0.stderr) {
            (_, Some(stderr)) => stderr,
            (stdout, None) => stdout.as_mut().unwrap(),
        };
        // A byte at a time: no line is taken away from the next reader.
        let mut byte = [0];
        while said.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(char::from(byte[0]));
        }
        line
    }
}

fn role(name: &str, with: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "as_told", "--nocapture"])
        .env(ROLE, name)
        .env(WITH, with);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn start(command: &mut Command) -> Started {
    Started(command.spawn().unwrap())
}

fn sleep() -> Command {
    let mut sleep = Command::new("sleep");
    sleep.arg("60").env_remove("YOI_CALL");
    sleep
}

/// Does nothing unless this is a process of another test.
#[tokio::test]
async fn as_told() {
    let Ok(name) = std::env::var(ROLE) else {
        return;
    };
    let with = std::env::var(WITH).unwrap();
    let ambient = ambient::claim();
    let own = std::process::id();
    match name.as_str() {
        "asks" => eprintln!("{:?}", started_by_pod(&ambient, with.parse().unwrap())),
        // A host with a child that shed environment, session and parent.
        "hosts" => {
            assert!(label_descendants(&ambient, "s/1"));
            let script = "setsid sh -c 'sleep 60 >/dev/null 2>&1 & echo $!'";
            let bare = Command::new("sh")
                .args(["-c", script])
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .output();
            eprint!("{}", String::from_utf8(bare.unwrap().stdout).unwrap());
            eprintln!("{:?}", started_by_pod(&ambient, own));
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "serves" => {
            let socket = tokio::net::UnixListener::bind(&with).unwrap();
            std::fs::set_permissions(&with, PermissionsExt::from_mode(0o777)).unwrap();
            eprintln!("ready");
            while let Ok((stream, _)) = socket.accept().await {
                // The client says when to look.
                while stream.readable().await.is_ok()
                    && matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
                {
                }
                let peer = peer_of(&ambient, &stream).unwrap();
                eprintln!("{} {} {:?}", peer.uid, peer.pid, peer.may_change);
            }
        }
        "connects" => connects(&with),
        // Ends, but its child keeps the stream.
        "leaves" => {
            let stream = std::os::fd::OwnedFd::from(UnixStream::connect(&with).unwrap());
            let script = "while kill -0 $1 2>/dev/null; do sleep 0.01; done; echo >&0; sleep 60";
            let mut child = Command::new("sh");
            child
                .args(["-c", script, "sh", &own.to_string()])
                .stdin(stream)
                .stderr(Stdio::null());
            eprintln!("{}", child.spawn().unwrap().id());
        }
        other => panic!("{other}"),
    }
}

fn connects(socket: impl AsRef<Path>) {
    let mut stream = UnixStream::connect(socket).unwrap();
    std::io::Write::write_all(&mut stream, b"look").unwrap();
    // Until the server has looked, and closes.
    stream.read_to_end(&mut Vec::new()).ok();
}

fn asked(pid: impl ToString) -> String {
    start(&mut role("asks", &pid.to_string())).line()
}

#[test]
fn what_a_pod_started_is_recognised() {
    let plain = start(&mut sleep());
    assert_eq!(asked(plain.pid()), "Some(false)");
    // All below the process that asks are what it started.
    assert_eq!(started_by_pod(&ambient::claim(), plain.0.id()), Some(true));
    assert_eq!(
        started_by_pod(&ambient::claim(), std::process::id()),
        Some(false)
    );
    assert_eq!(
        asked(start(sleep().env("YOI_CALL", MARK)).pid()),
        "Some(true)"
    );
    assert_eq!(
        asked(start(sleep().env("YOI_CALL", "")).pid()),
        "Some(false)"
    );
    // Taking the mark off does not help.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "env -u YOI_CALL sleep 60 & echo $!; wait"])
        .env("YOI_CALL", MARK)
        .stdout(Stdio::piped());
    let mut shell = start(&mut shell);
    let below = shell.line();
    assert_eq!(asked(&below), "Some(true)");
    Command::new("kill").arg(&below).status().unwrap();
}

#[test]
fn a_label_is_not_shed_with_the_parents() {
    let mut host = start(&mut role("hosts", ""));
    let orphan = host.line();
    let itself = host.line();
    assert_eq!(asked(&orphan), "Some(true)");
    Command::new("kill").arg(&orphan).status().unwrap();
    // Its label is for those below it, but to others it is a pod's.
    assert_eq!(itself, "Some(false)");
    assert_eq!(asked(host.pid()), "Some(true)");
}

#[test]
fn what_ended_or_is_hidden_is_unknown() {
    let mut ended = start(&mut sleep());
    ended.0.kill().unwrap();
    let stat = format!("/proc/{}/stat", ended.0.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z") {
        std::thread::yield_now();
    }
    assert_eq!(asked(ended.pid()), "None", "not yet waited for");
    ended.0.wait().unwrap();
    assert_eq!(asked(ended.pid()), "None");
    assert_eq!(
        (asked(0), asked(u32::MAX)),
        ("None".to_owned(), "None".to_owned())
    );
    let root = std::fs::read("/proc/1/environ").is_ok();
    assert_eq!(asked(1), if root { "Some(false)" } else { "None" });
}

#[test]
fn a_client_changes_only_what_its_user_may_and_no_pod_started() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = dir.path().join("socket");
    let socket = path.to_str().unwrap();
    let mut server = start(&mut role("serves", socket));
    assert_eq!(server.line(), "ready");
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    let mut says = |client: &str, user, want: Result<(), OnlyLooks>| {
        assert_eq!(server.line(), format!("{user} {client} {want:?}"));
    };
    connects(&path);
    says(&std::process::id().to_string(), uid, Ok(()));
    let client = start(&mut role("connects", socket));
    says(&client.pid(), uid, Ok(()));
    let client = start(role("connects", socket).env("YOI_CALL", MARK));
    says(&client.pid(), uid, Err(OnlyLooks::StartedByPod));
    // The process that connected has ended, and another one talks.
    let mut client = start(&mut role("leaves", socket));
    let keeper = client.line();
    client.0.wait().unwrap();
    says(&client.pid(), uid, Err(OnlyLooks::Unknown));
    Command::new("kill").arg(&keeper).status().unwrap();
    // Only root can become another user.
    if uid == 0 {
        let exe = dir.path().join("program");
        // Copied by a process of its own: a child of another test could hold this one's descriptor, and it would be busy.
        assert!(
            Command::new("cp")
                .arg(std::env::current_exe().unwrap())
                .arg(&exe)
                .status()
                .unwrap()
                .success()
        );
        let mut command = Command::new(exe);
        command
            .args(["--exact", "as_told"])
            .env(ROLE, "connects")
            .env(WITH, socket)
            .uid(65_534)
            .gid(65_534);
        command.stdout(Stdio::null());
        let client = start(&mut command);
        says(&client.pid(), 65_534, Err(OnlyLooks::OtherUser));
    }
}

/// A child of this process's own: an orphan of a call that shed everything is one, too.
#[tokio::test]
async fn a_client_below_the_server_only_looks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let socket = tokio::net::UnixListener::bind(&path).unwrap();
    let client = start(&mut role("connects", path.to_str().unwrap()));
    let (stream, _) = socket.accept().await.unwrap();
    let peer = peer_of(&ambient::claim(), &stream).unwrap();
    assert_eq!(
        (peer.pid, peer.may_change),
        (client.0.id(), Err(OnlyLooks::StartedByPod))
    );
}
