//! Children that reach hosts through the proxy of their pod. A stand-in on loopback is the host.

use super::programs::place_with_toolchains;
use super::shared::{Place, apart, confinable, helped, run};
use authority::{
    Beyond, ChildExit, HostProxy, HostRefusal, HostTraffic, Job, Net, Resolver, SandboxMode,
    Spawner, Traffic,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// Answers each connection with `kept`, whatever it is asked.
fn stand_in() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut asked = [0; 512];
            drop(stream.read(&mut asked));
            drop(stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nkept",
            ));
        }
    });
    at
}

/// None where this machine has no namespaces for this user.
fn spawner(place: &Place, hosts: &[&str]) -> Option<Spawner> {
    spawner_to(place, hosts, true, stand_in())
}

fn spawner_to(place: &Place, hosts: &[&str], is_for_all: bool, at: SocketAddr) -> Option<Spawner> {
    apart(place, SandboxMode::WorkspaceWrite)?;
    let hosts = hosts.iter().map(|host| host.parse().unwrap());
    let net = Net::to(&ambient::claim(), hosts).with_resolver(Resolver::new(move |_| Ok(vec![at])));
    let proxy = HostProxy::new(is_for_all.then(|| net.clone()), net);
    Some(helped(place, SandboxMode::WorkspaceWrite).with_proxy(proxy))
}

/// A program reaches the named host by the variables alone; another one is refused, and both count. Nothing leaves beside it.
#[tokio::test]
async fn the_named_host_is_reached_and_no_other() {
    let place = Place::new();
    let Some(spawner) = spawner(&place, &["kept.test:80"]) else {
        return;
    };
    let ask = "import sys, urllib.request\ntry: print(urllib.request.urlopen('http://' + sys.argv[1]).read().decode())\nexcept Exception as e: print(e)";
    std::fs::write(place.project.join("ask.py"), ask).unwrap();
    let mut before = Traffic::default();
    for (host, said, refused) in [
        ("kept.test/", "kept", None),
        (
            "other.test/",
            "HTTP Error 403: Forbidden",
            Some(HostRefusal::NotNamed),
        ),
        (
            "10.0.0.1/",
            "HTTP Error 403: Forbidden",
            Some(HostRefusal::Address),
        ),
    ] {
        let (ended, output) = run(&spawner, place.job("/usr/bin/python3", &["ask.py", host]))
            .await
            .unwrap();
        assert_eq!(
            (ended.how, output.trim()),
            (ChildExit::Exit(0), said),
            "{host}"
        );
        let now = spawner.traffic();
        let (Traffic(new), name) = (now.clone().since(&before), host.trim_end_matches('/'));
        let HostTraffic {
            connections,
            sent,
            received,
            refused: why,
        } = new[name].clone();
        assert_eq!(
            why.into_keys().collect::<Vec<_>>(),
            Vec::from_iter(refused),
            "{host}"
        );
        assert_eq!(
            (connections, sent > 0, received > 0),
            if refused.is_some() {
                (0, false, false)
            } else {
                (1, true, true)
            }
        );
        before = now;
    }
    let past = "(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1";
    let (ended, output) = run(&spawner, place.job("bash", &["-c", past]))
        .await
        .unwrap();
    assert_eq!(
        (ended.how, ended.refused > Some(0)),
        (ChildExit::Exit(1), true),
        "{output}"
    );
}

/// Own servers are reached past the proxy, and its port is not theirs.
#[tokio::test]
async fn the_loopback_is_no_host() {
    let place = Place::new();
    let Some(spawner) = spawner(&place, &["kept.test:80"]) else {
        return;
    };
    let own = "import os, socket, threading, urllib.request
s = socket.create_server(('127.0.0.1', 0))
def serve():
    c = s.accept()[0]; c.recv(9999); c.send(b'HTTP/1.0 200 OK\\r\\n\\r\\nown'); c.close()
threading.Thread(target=serve, daemon=True).start()
print(urllib.request.urlopen('http://127.0.0.1:%d/' % s.getsockname()[1]).read().decode())
try: print(socket.create_server(('127.0.0.1', 808)))
except OSError as e: print(e.strerror)";
    std::fs::write(place.project.join("own.py"), own).unwrap();
    let (_, output) = run(&spawner, place.job("/usr/bin/python3", &["own.py"]))
        .await
        .unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[0], "own", "{output}");
    assert!(
        ["Permission denied", "Address already in use"]
            .iter()
            .any(|why| lines[1].starts_with(why)),
        "{output}"
    );
    assert_eq!(spawner.traffic(), Traffic::default());
}

/// Without namespaces there is no proxy, and no variable names one.
#[tokio::test]
async fn without_namespaces_nothing_is_proxied() {
    let place = Place::new();
    if !confinable() {
        return;
    }
    let proxy = HostProxy::new(None, Net::to(&ambient::claim(), []));
    let spawner = place
        .spawner(SandboxMode::WorkspaceWrite)
        .unwrap()
        .with_proxy(proxy);
    let (_, output) = run(&spawner, place.job("bash", &["-c", "env | grep -ic proxy"]))
        .await
        .unwrap();
    assert_eq!(output.trim(), "0");
}

/// A person allowed one host to one command: no other command reaches it, not even at the same time, and that one no other
/// host.
#[tokio::test]
async fn a_host_that_is_lent_is_for_one_call() {
    let place = Place::new();
    let Some(spawner) = spawner_to(
        &place,
        &["kept.test:80", "other.test:80"],
        false,
        stand_in(),
    ) else {
        return;
    };
    let ask = "import sys, urllib.request
for host in sys.argv[1:]:
    try: print(urllib.request.urlopen('http://' + host).read().decode())
    except Exception as e: print('no', getattr(e, 'code', 0))";
    std::fs::write(place.project.join("ask.py"), ask).unwrap();
    let job = |call: &str| {
        let job = place.job("/usr/bin/python3", &["ask.py", "kept.test/", "other.test/"]);
        Job {
            call: call.to_owned(),
            ..job
        }
    };
    let hosts = Beyond::Hosts(vec!["kept.test".parse().unwrap()]);
    let _permit = spawner.permit("c00000001", hosts.clone()).unwrap();
    let (first, second) = tokio::join!(
        run(&spawner, job("c00000001")),
        run(&spawner, job("c00000002"))
    );
    let ((first, said), (second, other)) = (first.unwrap(), second.unwrap());
    assert_eq!(
        (said.as_str(), first.beyond),
        ("kept\nno 403\n", Some(hosts.clone()))
    );
    assert_eq!((other.as_str(), second.beyond), ("no 0\nno 0\n", None));
    let (again, said) = run(&spawner, job("c00000001")).await.unwrap();
    assert_eq!(
        (said.as_str(), again.beyond),
        ("no 0\nno 0\n", None),
        "once"
    );
    // Where there is no proxy, nothing was given.
    let plain = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let _permit = plain.permit("c00000001", hosts).unwrap();
    assert_eq!(run(&plain, job("c00000001")).await.unwrap().0.beyond, None);
}

/// A registry of package managers. No process of its own: the end of a child's run ends strangers.
async fn registry(dir: &Path) -> SocketAddr {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/children/registry.py");
    let place = Place::new();
    let job = place.job(
        "/usr/bin/python3",
        &[script.to_str().unwrap(), dir.to_str().unwrap()],
    );
    let (ended, said) = run(&place.spawner(SandboxMode::Off).unwrap(), job)
        .await
        .unwrap();
    assert_eq!(ended.how, ChildExit::Exit(0), "{said}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let dir = dir.to_owned();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut line = String::new();
            let mut lines = BufReader::new(&stream);
            lines.read_line(&mut line).unwrap();
            while lines
                .read_line(&mut String::new())
                .is_ok_and(|bytes| bytes > 2)
            {}
            let name = line
                .split(' ')
                .nth(1)
                .unwrap_or_default()
                .trim_start_matches('/');
            let (kind, name) = match name.ends_with('/') {
                true => ("text/html", format!("{name}index.html")),
                false => ("application/octet-stream", name.to_owned()),
            };
            let found = std::fs::read(dir.join(name));
            let status = if found.is_ok() {
                "200 OK"
            } else {
                "404 Not Found"
            };
            let body = found.unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            drop((&stream).write_all(&[head.as_bytes(), &body].concat()));
        }
    });
    at
}

/// The package managers, what makes a project for each, and what gets a package that only the registry has.
const MANAGERS: &[(&str, &str, &str)] = &[
    (
        "cargo",
        "mkdir -p src .cargo && touch src/lib.rs && printf '[package]\\nname = \"own\"\\nedition = \"2021\"\\n' > Cargo.toml \
         && printf '[source.crates-io]\\nreplace-with = \"kept\"\\n[source.kept]\\nregistry = \"sparse+http://kept.test/crates/\"\\n' \
         > .cargo/config.toml",
        "cargo add kept && cargo build",
    ),
    (
        "npm",
        "echo '{}' > package.json",
        "npm install --registry http://kept.test/npm kept && test -f node_modules/kept/package.json",
    ),
    (
        "pip",
        "true",
        "python3 -m pip install --target . --index-url http://kept.test/simple --trusted-host kept.test kept; test -f kept.py",
    ),
    (
        "go",
        "printf 'module own\\n' > go.mod && printf 'package own\\n\\nimport _ \"kept.test/kept\"\\n' > own.go",
        "GOPROXY=http://kept.test/go GOSUMDB=off GOFLAGS=-mod=mod go get kept.test/kept && go build",
    ),
    (
        "mvn",
        "echo '<settings><mirrors><mirror><id>kept</id><mirrorOf>*</mirrorOf><url>http://kept.test/maven</url></mirror></mirrors></settings>' \
         > settings.xml && echo '<project><modelVersion>4.0.0</modelVersion><parent><groupId>kept</groupId><artifactId>kept</artifactId>\
         <version>1.0.0</version></parent><artifactId>own</artifactId><packaging>pom</packaging></project>' > pom.xml",
        "mvn -B -s settings.xml validate",
    ),
    (
        "gradle",
        "printf 'repositories { maven { url \"http://kept.test/maven\" } }\\nconfigurations { own }\\ndependencies { own \"kept:kept:1.0.0@pom\" }\\n\
         task get { doLast { println configurations.own.files } }\\n' > build.gradle",
        "gradle --no-daemon get",
    ),
];

/// Each gets its package through the proxy, of all children or lent, and from nowhere else: the proxy's bytes show it.
#[tokio::test]
async fn package_managers_reach_their_registry() {
    let dir = tempfile::tempdir().unwrap();
    let at = registry(dir.path()).await;
    for (name, make, get) in MANAGERS {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|dir| dir.join(name).is_file()) {
            eprintln!("left out: {name} is not installed");
            continue;
        }
        for (is_for_all, is_lent) in [(true, false), (false, true), (false, false)] {
            if is_lent && *name == "mvn" {
                // Its older versions name themselves to no proxy.
                continue;
            }
            let mut place = place_with_toolchains();
            place.read.clear();
            let Some(spawner) = spawner_to(&place, &["kept.test:80"], is_for_all, at) else {
                return;
            };
            let hosts = Beyond::Hosts(vec!["kept.test".parse().unwrap()]);
            let _permit = is_lent.then(|| spawner.permit("c00000001", hosts).unwrap());
            let text = format!("{{ {make} && {get}; }} 2>&1");
            let (ended, said) = run(&spawner, place.job("bash", &["-c", &text]))
                .await
                .unwrap();
            assert_eq!(
                ended.how == ChildExit::Exit(0),
                is_for_all || is_lent,
                "{name} {is_for_all} {is_lent}: {said}"
            );
            let counted = ended
                .traffic
                .0
                .get("kept.test")
                .cloned()
                .unwrap_or_default();
            assert_eq!(
                counted.received > 200,
                is_for_all || is_lent,
                "{name}: {:?}",
                ended.traffic
            );
            assert!(counted.refused.is_empty(), "{name}: {:?}", ended.traffic);
        }
    }
}
