//! Doors: no use starts after a shut that was waited for, under real threads.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{Door, ErrorKind, HostPort, Net, Secret, Shut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Many rounds of threads that enter as fast as they can while one shuts. What they do inside must be over when the
/// shut resolves, and none may get in later.
// covers: INV-05
#[tokio::test]
async fn no_use_starts_after_the_shut_was_waited_for() {
    for round in 0..300 {
        let door = Door::new();
        let inside = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let late = Arc::new(AtomicUsize::new(0));
        let users: Vec<_> = (0..7)
            .map(|n| {
                let door = if n % 2 == 0 {
                    door.clone()
                } else {
                    door.derive()
                };
                let inside = inside.clone();
                let over = over.clone();
                let late = late.clone();
                std::thread::spawn(move || {
                    while let Ok(_pass) = door.enter() {
                        inside.fetch_add(1, Ordering::SeqCst);
                        if over.load(Ordering::SeqCst) {
                            late.fetch_add(1, Ordering::SeqCst);
                        }
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        if round % 3 == 0 {
            std::thread::yield_now();
        }
        door.shut().await;
        over.store(true, Ordering::SeqCst);
        assert_eq!(
            inside.load(Ordering::SeqCst),
            0,
            "somebody was inside after the shut"
        );
        users.into_iter().for_each(|user| user.join().unwrap());
        assert_eq!(
            late.load(Ordering::SeqCst),
            0,
            "somebody got in after the shut"
        );
    }
}

#[tokio::test]
async fn shutting_reaches_derived_doors_and_waits_for_them() {
    let door = Door::new();
    let child = door.derive();
    let grandchild = child.derive();
    let sibling = Door::new();
    // The middle of the chain may be gone.
    drop(child);
    let pass = grandchild.enter_owned().unwrap();
    let shut = door.shut();
    assert_eq!(grandchild.enter().unwrap_err(), Shut);
    assert_eq!(
        door.derive().enter().unwrap_err(),
        Shut,
        "derived from a shut door"
    );
    grandchild.closed().await;
    let waiting = tokio::spawn(shut);
    // A second one waits too, and both see the same end.
    assert!(
        tokio::time::timeout(Duration::from_millis(20), door.shut())
            .await
            .is_err(),
        "somebody is still inside"
    );
    assert!(!waiting.is_finished());
    drop(pass);
    waiting.await.unwrap();
    door.shut().await;
    sibling.enter().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_finish_what_has_begun() {
    let door = Door::new();
    let child = door.derive();
    let begun = child.begin().unwrap();
    let pass = door.enter_owned().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let draining = tokio::spawn(door.drain(deadline));
    tokio::task::yield_now().await;
    for door in [&door, &child] {
        assert_eq!(
            (
                door.enter().unwrap_err(),
                door.begin().unwrap_err(),
                door.is_shut()
            ),
            (Shut, Shut, true)
        );
    }
    drop(begun.enter().expect("a step of what has begun"));
    assert!(
        timeout(Duration::from_secs(1), child.closed())
            .await
            .is_err(),
        "nothing is cancelled yet"
    );
    drop(pass);
    assert!(!draining.is_finished());
    drop(begun);
    draining.await.unwrap();
    child.closed().await;
    assert!(
        Instant::now() < deadline,
        "it resolves when all is over, not at the deadline"
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_at_its_deadline() {
    let door = Door::new();
    let child = door.derive();
    let began = Instant::now();
    let begun = child.begin().unwrap();
    let pass = child.enter_owned().unwrap();
    let draining = tokio::spawn(door.drain(began + Duration::from_secs(60)));
    child.closed().await;
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!(begun.enter().unwrap_err(), Shut, "not even a step");
    tokio::task::yield_now().await;
    assert!(!draining.is_finished(), "somebody is inside");
    drop(pass);
    draining.await.unwrap();
    assert_eq!(
        (child.uses(), child.refused(), begun.door().refused()),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn an_abandoned_drain_shuts() {
    let door = Door::new();
    let begun = door.begin().unwrap();
    drop(door.drain(Instant::now() + Duration::from_secs(3600)));
    door.closed().await;
    assert_eq!(begun.enter().unwrap_err(), Shut);
    door.shut().await;
}

/// Steps of uses and plain entries against a drain: none inside when it resolves, and none later.
#[tokio::test]
async fn nobody_is_inside_when_a_drain_resolves() {
    for _ in 0..200 {
        let door = Door::new();
        let inside = Arc::new(AtomicUsize::new(0));
        let users: Vec<_> = (0..3)
            .map(|_| {
                let door = door.derive();
                let inside = inside.clone();
                std::thread::spawn(move || {
                    let mut steps = 0;
                    while let Ok(begun) = door.begin() {
                        for _ in 0..3 {
                            let Ok(_pass) = begun.enter() else {
                                panic!("a drain with time to spare lets it finish")
                            };
                            inside.fetch_add(1, Ordering::SeqCst);
                            steps += 1;
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                    (steps, door.uses())
                })
            })
            .collect();
        door.drain(Instant::now() + Duration::from_secs(60)).await;
        assert_eq!(inside.load(Ordering::SeqCst), 0);
        for user in users {
            let (steps, uses) = user.join().unwrap();
            assert_eq!(steps, uses, "each step is counted, no refusal is");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_inside_at_once_are_counted_alike() {
    let door = Door::new();
    let mut passes: Vec<_> = (0..50).map(|_| door.enter_owned().unwrap()).collect();
    assert_eq!(door.uses(), 50);
    let shut = tokio::spawn(door.shut());
    assert_eq!(door.enter().unwrap_err(), Shut);
    assert_eq!((door.uses(), door.refused()), (50, 1));
    // The first to come, then the last.
    for rest in [40, 1] {
        passes.rotate_left(5);
        passes.truncate(rest);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!shut.is_finished(), "{rest} are inside");
    }
    drop(passes);
    shut.await.unwrap();
}

#[test]
fn uses_are_counted() {
    let door = Door::new();
    assert_eq!((door.uses(), door.refused(), door.last_use()), (0, 0, None));
    drop(door.enter().unwrap());
    drop(door.enter_owned().unwrap());
    assert_eq!((door.uses(), door.refused()), (2, 0));
    assert!(door.last_use().unwrap().elapsed().unwrap() < Duration::from_secs(60));
    let read = std::time::SystemTime::now();
    drop(door.enter().unwrap());
    assert!(door.last_use().unwrap() + Duration::from_millis(1) > read);
    drop(door.shut());
    assert_eq!(door.enter().unwrap_err(), Shut);
    assert_eq!((door.uses(), door.refused()), (3, 1));
}

#[test]
fn a_secret_is_never_printed() {
    let secret = Secret::new(&ambient::claim(), "openai", "s3cret".to_owned());
    let printed = format!("{secret} {secret:?} {:#?} {:?}", secret, Some(&secret));
    assert!(
        !printed.contains("s3cret") && printed.contains("‹secret openai›"),
        "{printed}"
    );
    assert_eq!(secret.expose().unwrap(), "s3cret");
    let derived = secret.derive();
    drop(secret.door().shut());
    for secret in [&secret, &derived] {
        let error = secret.expose().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Revoked);
        assert!(error.to_string().contains("openai"));
    }
    assert_eq!(secret.door().uses(), 1);
}

#[tokio::test]
async fn the_network_is_what_the_grant_names() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let closed = {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        gone.local_addr().unwrap().port()
    };
    let hosts = [
        HostPort::new("LocalHost.", port),
        HostPort::new("127.0.0.1", port),
        HostPort::new("127.0.0.1", closed),
    ];
    let net = Net::to(&ambient::claim(), hosts.clone());
    let second = Duration::from_secs(5);
    for host in ["localhost", "LOCALHOST", "127.0.0.1"] {
        let stream = net.connect(host, port, second).await.unwrap();
        assert!(stream.nodelay().unwrap());
    }
    let wrong = port.wrapping_add(1);
    for (host, port) in [
        ("127.0.0.2", port),
        ("127.0.0.1", wrong),
        ("localhost.evil", port),
        ("[::1]", port),
        ("", port),
    ] {
        let error = net.connect(host, port, second).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{host}:{port}");
        assert!(
            error.to_string().contains("127.0.0.1"),
            "names what it reaches: {error}"
        );
    }
    assert_eq!(
        net.connect("127.0.0.1", closed, second)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Unavailable
    );
    let narrow = net
        .limited(&[format!("localhost:{port}").parse().unwrap()])
        .unwrap();
    assert_eq!(
        narrow
            .connect("127.0.0.1", port, second)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Denied
    );
    drop(narrow.connect("localhost", port, second).await.unwrap());
    net.door().shut().await;
    for net in [&net, &narrow] {
        assert_eq!(
            net.connect("localhost", port, second)
                .await
                .unwrap_err()
                .kind(),
            ErrorKind::Revoked
        );
    }
    assert_eq!(HostPort::new("[::1]", 1).to_string(), "[::1]:1");
}

#[tokio::test]
async fn a_public_grant_reaches_nothing_inside() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let second = Duration::from_secs(5);
    let net = Net::public(&ambient::claim(), [format!("*:{port}").parse().unwrap()]);
    // Also as a name, as one number, in hexadecimal, short, and dressed as IPv6.
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
    ] {
        let error = net.connect(host, port, second).await.unwrap_err();
        let reached =
            matches!(error.kind(), ErrorKind::Denied) || error.to_string().contains("resolve");
        assert!(reached, "{host}: {error}");
        assert!(net.names(host, port));
    }
    for host in ["127.0.0.1", "localhost", "2130706433"] {
        assert_eq!(
            net.connect(host, port, second).await.unwrap_err().kind(),
            ErrorKind::Denied,
            "{host}"
        );
    }
    for host in ["", "a b", "x\r\ny", "a/b"] {
        assert_eq!(
            net.connect(host, port, second).await.unwrap_err().kind(),
            ErrorKind::Denied,
            "{host:?}"
        );
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "nobody knocked"
    );

    let docs = Net::public(&ambient::claim(), ["*.example.org".parse().unwrap()]);
    assert_eq!(
        docs.limited(&["*".parse().unwrap()]).unwrap_err().kind(),
        ErrorKind::Denied
    );
    let one = docs
        .limited(&["docs.example.org".parse().unwrap()])
        .unwrap();
    assert_eq!(
        (one.hosts(), one.names("api.example.org", 443)),
        (vec!["docs.example.org".to_owned()], false)
    );
    docs.door().shut().await;
    assert_eq!(
        one.connect("docs.example.org", 443, second)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Revoked
    );
}
