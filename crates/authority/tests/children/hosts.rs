//! Children that reach hosts through the proxy of their pod. A stand-in on loopback is the host.

use super::shared::{Place, apart, confinable, helped, run};
use authority::{ChildExit, HostProxy, HostRefusal, HostTraffic, Net, Resolver, SandboxMode, Spawner, Traffic};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Answers each connection with `kept`, whatever it is asked.
fn stand_in() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut asked = [0; 512];
            drop(stream.read(&mut asked));
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nkept"));
        }
    });
    at
}

/// None where this machine has no namespaces for this user.
fn spawner(place: &Place, hosts: &[&str]) -> Option<Spawner> {
    apart(place, SandboxMode::WorkspaceWrite)?;
    let at = stand_in();
    let hosts = hosts.iter().map(|host| host.parse().unwrap());
    let net = Net::to(&ambient::claim(), hosts).with_resolver(Resolver::new(move |_| Ok(vec![at])));
    Some(helped(place, SandboxMode::WorkspaceWrite).with_proxy(HostProxy::new(net)))
}

/// A program reaches the named host by the variables alone; another one is refused, and both count. Nothing leaves beside it.
#[tokio::test]
async fn the_named_host_is_reached_and_no_other() {
    let place = Place::new();
    let Some(spawner) = spawner(&place, &["kept.test:80"]) else { return };
    let ask = "import sys, urllib.request\ntry: print(urllib.request.urlopen('http://' + sys.argv[1]).read().decode())\nexcept Exception as e: print(e)";
    std::fs::write(place.project.join("ask.py"), ask).unwrap();
    let mut before = Traffic::default();
    for (host, said, refused) in [
        ("kept.test/", "kept", None),
        ("other.test/", "HTTP Error 403: Forbidden", Some(HostRefusal::NotNamed)),
        ("10.0.0.1/", "HTTP Error 403: Forbidden", Some(HostRefusal::Address)),
    ] {
        let (ended, output) = run(&spawner, place.job("/usr/bin/python3", &["ask.py", host])).await.unwrap();
        assert_eq!((ended.how, output.trim()), (ChildExit::Exit(0), said), "{host}");
        let now = spawner.traffic();
        let (Traffic(new), name) = (now.clone().since(&before), host.trim_end_matches('/'));
        let HostTraffic { connections, sent, received, refused: why } = new[name].clone();
        assert_eq!(why.into_keys().collect::<Vec<_>>(), Vec::from_iter(refused), "{host}");
        assert_eq!(
            (connections, sent > 0, received > 0),
            if refused.is_some() { (0, false, false) } else { (1, true, true) }
        );
        before = now;
    }
    let past = "(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1";
    let (ended, output) = run(&spawner, place.job("bash", &["-c", past])).await.unwrap();
    assert_eq!((ended.how, ended.refused > Some(0)), (ChildExit::Exit(1), true), "{output}");
}

/// Own servers are reached past the proxy, and its port is not theirs.
#[tokio::test]
async fn the_loopback_is_no_host() {
    let place = Place::new();
    let Some(spawner) = spawner(&place, &["kept.test:80"]) else { return };
    let own = "import os, socket, threading, urllib.request
s = socket.create_server(('127.0.0.1', 0))
def serve():
    c = s.accept()[0]; c.recv(9999); c.send(b'HTTP/1.0 200 OK\\r\\n\\r\\nown'); c.close()
threading.Thread(target=serve, daemon=True).start()
print(urllib.request.urlopen('http://127.0.0.1:%d/' % s.getsockname()[1]).read().decode())
try: print(socket.create_server(('127.0.0.1', 808)))
except OSError as e: print(e.strerror)";
    std::fs::write(place.project.join("own.py"), own).unwrap();
    let (_, output) = run(&spawner, place.job("/usr/bin/python3", &["own.py"])).await.unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[0], "own", "{output}");
    assert!(["Permission denied", "Address already in use"].iter().any(|why| lines[1].starts_with(why)), "{output}");
    assert_eq!(spawner.traffic(), Traffic::default());
}

/// Without namespaces there is no proxy, and no variable names one.
#[tokio::test]
async fn without_namespaces_nothing_is_proxied() {
    let place = Place::new();
    if !confinable() {
        return;
    }
    let proxy = HostProxy::new(Net::to(&ambient::claim(), []));
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap().with_proxy(proxy);
    let (_, output) = run(&spawner, place.job("bash", &["-c", "env | grep -ic proxy"])).await.unwrap();
    assert_eq!(output.trim(), "0");
}
