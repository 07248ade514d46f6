//! The proxy, as a command sees it, with stand-ins on loopback for hosts.

use super::super::Resolver;
use super::*;
use crate::HostPattern;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A host that sends back what it gets, after `hello`; and how many connections and look-ups there were.
struct Stand {
    at: SocketAddr,
    connections: Arc<AtomicUsize>,
    lookups: Arc<AtomicUsize>,
}

impl Stand {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    stream.write_all(b"hello").await.unwrap();
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await.ok();
                });
            }
        });
        Self {
            at,
            connections,
            lookups: Arc::default(),
        }
    }

    /// Every name leads to this host.
    fn resolver(&self) -> Resolver {
        self.resolver_to(vec![self.at])
    }

    fn resolver_to(&self, found: Vec<SocketAddr>) -> Resolver {
        let lookups = Arc::clone(&self.lookups);
        Resolver::new(move |_| {
            lookups.fetch_add(1, Ordering::SeqCst);
            Ok(found.clone())
        })
    }

    /// A proxy that checks no address, for these hosts.
    async fn proxy(&self, hosts: &[&str]) -> (HostProxy, SocketAddr) {
        serve(self.net(hosts)).await
    }

    fn net(&self, hosts: &[&str]) -> Net {
        let hosts = hosts.iter().map(|host| host.parse().unwrap());
        Net::to(&ambient::claim(), hosts).with_resolver(self.resolver())
    }

    fn seen(&self) -> (usize, usize) {
        (
            self.lookups.load(Ordering::SeqCst),
            self.connections.load(Ordering::SeqCst),
        )
    }
}

async fn serve(net: Net) -> (HostProxy, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = HostProxy::new(Some(net.clone()), net);
    let at = listener.local_addr().unwrap();
    tokio::spawn(proxy.clone().serve(listener));
    (proxy, at)
}

/// Sends this, then the end; returns all that came.
async fn ask(at: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    // The proxy may have answered and closed.
    stream.write_all(request.as_ref()).await.ok();
    stream.shutdown().await.ok();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.ok();
    String::from_utf8_lossy(&said).into_owned()
}

const ALLOWED: &[&str] = &[
    "allowed.test:443",
    "allowed.test:80",
    "other.test:8443",
    "127.0.0.1:443",
    "[::1]:443",
];

/// What a hostile command asks for. Each row reaches the stand-in if its check is missing: every name leads there.
#[tokio::test]
async fn nothing_passes_that_is_not_named() {
    let stand = Stand::new().await;
    let (proxy, at) = stand.proxy(ALLOWED).await;
    let connect = "
        127.0.0.1:443 [::1]:443 10.0.0.1:443 169.254.169.254:443 [::ffff:127.0.0.1]:443 [64:ff9b::7f00:1]:443
        [2002:7f00:1::]:443 0x7f000001:443 2130706433:443 127.1:443 0:443 127.0.0.1.:443 0177.0.0.1:443 [fe80::1%25lo]:443
        evil.test:443 allowed.test:22 allowed.test:80 allowed.test:8443 other.test:443 allowed.test allowed.test: :443
        allowed.test:0 allowed.test:65979 allowed.test:443:443 allowed.test:-1 *:443 *.test:443
        user@allowed.test:443 user:word@allowed.test:443 allowed.test:443@evil.test:443 evil.test#@allowed.test:443
        allowed.test.evil.test:443 sub.allowed.test:443 xallowed.test:443 allowed.test..:443 .allowed.test:443
        allowed.test%00.evil.test:443 allowed%2etest:443 аllowed.test:443 allowed.test/:443 allowed.test\\:443
        http://allowed.test:443 allowed.test:443/ [allowed.test:443 allowed.test]:443";
    let long = format!("{}:443", "a.".repeat(150));
    let connect = connect.split_whitespace().chain([long.as_str()]);
    let mut rows: Vec<Vec<u8>> = connect
        .map(|target| format!("CONNECT {target} HTTP/1.1\r\n\r\n").into())
        .collect();
    rows.extend(
        [
            "CONNECT allowed.test\r\nHost: evil.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT allowed.test\r:443 HTTP/1.1\r\n\r\n",
            "CONNECT allowed.test\0:443 HTTP/1.1\r\n\r\n",
            "CONNECT evil.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n",
            "CONNECT allowed.test:443 allowed.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT allowed.test:443 HTTP/2.0\r\n\r\n",
            "connect allowed.test:443 HTTP/1.1\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "GET http://user@allowed.test/ HTTP/1.1\r\n\r\n",
            "GET http://allowed.test@evil.test/ HTTP/1.1\r\n\r\n",
            "GET http://allowed.test\\@evil.test/ HTTP/1.1\r\n\r\n",
            "GET http://evil.test?@allowed.test/ HTTP/1.1\r\n\r\n",
            "GET http://127.0.0.1:443/ HTTP/1.1\r\n\r\n",
            "GET http://[::1]:443/ HTTP/1.1\r\n\r\n",
            "GET http://allowed.test:443/ HTTP/1.1\r\n\r\n",
            "GET http:///path HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "GET https://allowed.test/ HTTP/1.1\r\n\r\n",
            "GET ftp://allowed.test/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "POST http://allowed.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "POST http://allowed.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\na",
            "POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na",
            "GET http://allowed.test/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
            "GET http://allowed.test/ HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "\x16\x03\x01\x02\0\x01",
            "CONNECT allowed.test:443 HTTP/1.1\r\n",
            "",
        ]
        .map(Vec::from),
    );
    rows.push(
        format!(
            "CONNECT allowed.test:443 HTTP/1.1\r\nA: {}\r\n\r\n",
            "a".repeat(MAX_HEAD)
        )
        .into(),
    );
    rows.push(
        format!(
            "CONNECT allowed.test:443 HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(65)
        )
        .into(),
    );
    rows.push(vec![b'A'; 8 * MAX_HEAD]);
    for row in &rows {
        let said = ask(at, row).await;
        let is_refused = ["HTTP/1.1 400 ", "HTTP/1.1 403 ", "HTTP/1.1 431 "]
            .iter()
            .any(|head| said.starts_with(head));
        assert!(is_refused, "{:?}: {said}", String::from_utf8_lossy(row));
        assert_eq!(
            stand.seen(),
            (0, 0),
            "{:?}: {said}",
            String::from_utf8_lossy(row)
        );
    }
    assert!(rows.len() >= 75, "{}", rows.len());
    let all = proxy.traffic();
    let refused: u64 = all.0.values().flat_map(|host| host.refused.values()).sum();
    assert_eq!(refused, rows.len() as u64, "{all:?}");
    assert_eq!(
        all.0["evil.test"].refused[&HostRefusal::NotNamed],
        4,
        "{all:?}"
    );
    assert_eq!(
        all.0["allowed.test:22"].refused[&HostRefusal::NotNamed],
        1,
        "{all:?}"
    );
}

/// A name that is allowed and leads to this machine, its network or its cloud, alone or beside a public address: DNS is
/// not the person's.
#[tokio::test]
async fn names_lead_to_no_private_address() {
    let stand = Stand::new().await;
    let forms = "127.0.0.1 10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 169.254.169.254 0.0.0.0 224.0.0.1 255.255.255.255 ::1 ::
        ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1::1 2001::1 fc00::1 fe80::1 ff02::1
        fec0::1";
    let forms = forms
        .split_whitespace()
        .map(|form| form.parse::<IpAddr>().unwrap());
    let port = stand.at.port();
    for form in forms {
        for beside in [None, Some("203.0.112.1")] {
            let found = beside
                .into_iter()
                .map(|ip| ip.parse().unwrap())
                .chain([form]);
            let found = found.map(|ip| SocketAddr::new(ip, port)).collect();
            let net = Net::public(
                &ambient::claim(),
                ["allowed.test".parse::<HostPattern>().unwrap()],
            );
            let (proxy, at) = serve(net.with_resolver(stand.resolver_to(found))).await;
            for request in [
                "CONNECT allowed.test:443 HTTP/1.1\r\n\r\n",
                "GET http://allowed.test/ HTTP/1.1\r\n\r\n",
            ] {
                let said = ask(at, request).await;
                assert!(
                    said.starts_with("HTTP/1.1 403 ") && said.contains("network = \"on\""),
                    "{form}: {said}"
                );
                assert!(
                    !said.contains(&form.to_string()),
                    "an address of the person's network: {said}"
                );
            }
            assert_eq!(
                proxy.traffic().0["allowed.test"].refused,
                [(HostRefusal::Address, 2)].into()
            );
        }
    }
    assert_eq!(stand.seen().1, 0);
}

/// A name that changes its address between the check and the connection gains nothing: it is looked up once.
#[tokio::test]
async fn the_address_that_was_checked_is_the_one_connected_to() {
    let first = Stand::new().await;
    let second = Stand::new().await;
    let turns = AtomicUsize::new(0);
    let at = [first.at, second.at];
    let rebinding = Resolver::new(move |_| Ok(vec![at[turns.fetch_add(1, Ordering::SeqCst) % 2]]));
    let net =
        Net::to(&ambient::claim(), ["allowed.test:443".parse().unwrap()]).with_resolver(rebinding);
    let (_proxy, at) = serve(net).await;
    assert!(
        ask(at, "CONNECT allowed.test:443 HTTP/1.1\r\n\r\n")
            .await
            .ends_with("hello")
    );
    assert_eq!((first.seen().1, second.seen().1), (1, 0));
}

/// What is allowed passes whole, in both directions, and each byte counts.
#[tokio::test]
async fn bytes_of_allowed_hosts_pass_and_count() {
    let stand = Stand::new().await;
    let (proxy, at) = stand.proxy(ALLOWED).await;
    let body = "x".repeat(300_000);
    for (target, host) in [
        ("allowed.test:443", "allowed.test"),
        ("ALLOWED.Test.:443", "allowed.test"),
        ("other.test:8443", "other.test:8443"),
    ] {
        let before = proxy.traffic();
        // The second request is a part of what passes, and nothing for the proxy.
        let second = "CONNECT evil.test:443 HTTP/1.1\r\n\r\n";
        let said = ask(
            at,
            format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n{second}{body}"),
        )
        .await;
        assert_eq!(
            said,
            format!("HTTP/1.1 200 Connection established\r\n\r\nhello{second}{body}")
        );
        let sent = (second.len() + body.len()) as u64;
        let received = (5 + second.len() + body.len()) as u64;
        let counted = HostTraffic {
            connections: 1,
            sent,
            received,
            refused: Default::default(),
        };
        assert_eq!(
            proxy.traffic().since(&before),
            Traffic([(host.to_owned(), counted)].into())
        );
    }
    assert_eq!(stand.seen(), (3, 3));
}

/// What a host gets of a request with a whole URL: its own name, no more than the body, and nothing for the proxy.
#[tokio::test(start_paused = true)]
async fn requests_are_passed_on_alone() {
    let stand = Stand::new().await;
    let (proxy, at) = stand.proxy(ALLOWED).await;
    for (request, passed) in [
        (
            "GET http://Allowed.test/dists?a=b HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\nAccept: */*\r\n\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n",
            "GET /dists?a=b HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\nAccept: */*\r\n\r\n",
        ),
        (
            "GET HTTP://allowed.test:80?q HTTP/1.0\r\nConnection: x-own, keep-alive\r\nX-Own: 1\r\n\r\n",
            "GET /?q HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n",
        ),
        (
            "POST http://other.test:8443/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST http://evil.test/ HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: other.test:8443\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
        ),
    ] {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = vec![0; 5 + passed.len()];
        stream.read_exact(&mut said).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&said), format!("hello{passed}"));
        // One that comes later, while the host has the connection; it ends because the host is silent.
        stream
            .write_all(b"GET http://evil.test/ HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        let mut more = Vec::new();
        stream.read_to_end(&mut more).await.ok();
        assert_eq!(String::from_utf8_lossy(&more), "");
    }
    assert!(!proxy.traffic().0.contains_key("evil.test"));
}

/// A client that sends a byte now and then, or nothing, and two that say nothing to each other: each ends, in the clock of
/// the test, and frees its place.
#[tokio::test(start_paused = true)]
async fn slow_and_silent_clients_hold_no_connection() {
    let stand = Stand::new().await;
    let (proxy, at) = stand.proxy(ALLOWED).await;
    let begun = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        slow.push(TcpStream::connect(at).await.unwrap());
    }
    for stream in &mut slow {
        stream
            .write_all(b"CONNECT allowed.test:443 HTTP/1.1\r\nA: ")
            .await
            .unwrap();
    }
    // One more waits for a place and then gets it.
    assert!(
        ask(at, "CONNECT allowed.test:443 HTTP/1.1\r\n\r\n")
            .await
            .ends_with("hello")
    );
    assert!(begun.elapsed() >= HEAD_WAIT, "at most so many at once");
    for mut stream in slow {
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    }
    assert!(begun.elapsed() < HEAD_WAIT * 3, "{:?}", begun.elapsed());
    assert_eq!(
        proxy.traffic().0[traffic::NO_HOST].refused[&HostRefusal::Request],
        MAX_CONNECTIONS as u64
    );
    let mut silent = TcpStream::connect(at).await.unwrap();
    silent
        .write_all(b"CONNECT allowed.test:443 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let begun = Instant::now();
    let mut said = String::new();
    silent.read_to_string(&mut said).await.ok();
    assert!(
        said.ends_with("hello") && begun.elapsed() >= IDLE && begun.elapsed() < IDLE * 2,
        "{:?}",
        begun.elapsed()
    );
}

/// What cannot be reached is named, and a refusal names the setting.
#[tokio::test]
async fn answers_name_what_allows_it() {
    let stand = Stand::new().await;
    let (_proxy, at) = stand.proxy(ALLOWED).await;
    for (target, hint) in [
        (
            "evil.test:443",
            "network = \"hosts\" and hosts = [\"evil.test\"] under [sandbox] allow it",
        ),
        (
            "evil.test:22",
            "network = \"hosts\" and hosts = [\"evil.test:22\"] under [sandbox] allow it",
        ),
        ("10.0.0.1:443", "network = \"on\" under [sandbox]"),
    ] {
        let said = ask(at, format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(
            said.starts_with("HTTP/1.1 403 Forbidden\r\n") && said.contains(hint),
            "{said}"
        );
    }
    let none = Net::to(&ambient::claim(), ["allowed.test:443".parse().unwrap()]);
    let (proxy, at) = serve(none.with_resolver(Resolver::new(|_| Ok(Vec::new())))).await;
    let said = ask(at, "CONNECT allowed.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(
        said.starts_with("HTTP/1.1 502 ") && said.contains("the name has no address"),
        "{said}"
    );
    assert_eq!(
        proxy.traffic().0["allowed.test"].refused,
        [(HostRefusal::Unreachable, 1)].into()
    );
}

/// A program that asks for one name after the other fills no memory.
#[test]
fn names_that_are_counted_are_bounded() {
    let counts = Counts::default();
    for number in 0..2000 {
        counts.refused(&format!("h{number}.test"), HostRefusal::NotNamed);
    }
    let all = counts.read();
    assert!(all.0.len() < 300, "{}", all.0.len());
    assert_eq!(
        all.0
            .values()
            .map(|host| host.refused[&HostRefusal::NotNamed])
            .sum::<u64>(),
        2000
    );
}

/// claude-code and others ask about each host: what was allowed for one command is not another one's, and ends with it.
#[tokio::test]
async fn what_is_lent_is_for_one_key_and_ends() {
    let stand = Stand::new().await;
    let net = stand.net(ALLOWED);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = HostProxy::new(None, net);
    let at = listener.local_addr().unwrap();
    tokio::spawn(proxy.clone().serve(listener));
    let request = |name: &str, lent: Option<&Lent>| {
        let user =
            lent.map(|lent| BASE64_STANDARD.encode(format!("{}:{}", lent.user().0, lent.user().1)));
        let user = user
            .map(|user| format!("Proxy-Authorization: Basic {user}\r\n"))
            .unwrap_or_default();
        format!("CONNECT {name}:443 HTTP/1.1\r\n{user}\r\n")
    };
    let lend = |host: &str| proxy.lend(&[host.parse().unwrap()]).unwrap();
    assert!(
        ask(at, request("allowed.test", None))
            .await
            .starts_with("HTTP/1.1 403 "),
        "nothing is lent"
    );
    let lent = lend("allowed.test");
    let other = lend("other.test");
    for (name, who, wanted) in [
        ("allowed.test", Some(&lent), "200"),
        ("allowed.test", None, "407"),
        ("evil.test", Some(&lent), "403"),
        ("evil.test", None, "403"),
        ("allowed.test", Some(&other), "403"),
    ] {
        let said = ask(at, request(name, who)).await;
        assert!(
            said.starts_with(&format!("HTTP/1.1 {wanted} ")),
            "{name} {who:?}: {said}"
        );
        assert_eq!(
            said.contains("Proxy-Authenticate: Basic"),
            wanted != "200",
            "{said}"
        );
    }
    let mut open = TcpStream::connect(at).await.unwrap();
    open.write_all(request("allowed.test", Some(&lent)).as_bytes())
        .await
        .unwrap();
    let mut said = [0; 39 + 5];
    open.read_exact(&mut said).await.unwrap();
    let words = request("allowed.test", Some(&lent));
    drop(lent);
    let mut more = Vec::new();
    open.read_to_end(&mut more).await.ok();
    assert_eq!(more, b"", "what is open ends as well");
    assert!(ask(at, words).await.starts_with("HTTP/1.1 403 "));
    let given =
        ["allowed.test", "evil.test"].map(|host| proxy.lend(&[host.parse().unwrap()]).is_ok());
    assert_eq!(
        given,
        [true, true],
        "of exactly named hosts, those that are not meant are left out"
    );
    let public = HostProxy::new(
        None,
        Net::public(
            &ambient::claim(),
            ["a.test".parse::<HostPattern>().unwrap()],
        ),
    );
    assert_eq!(
        public
            .lend(&["b.test".parse().unwrap()])
            .unwrap_err()
            .kind(),
        ErrorKind::Denied
    );
}
