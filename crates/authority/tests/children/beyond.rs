//! What a call may do that the host let go beyond the sandbox: that and no more, once.

use super::shared::{self, Place, confinable, probe};
use authority::{Beyond, SandboxMode, Spawner};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

/// What the probe says, and what the child could do beyond the sandbox.
async fn says(place: &Place, spawner: &Spawner, args: &[&str]) -> (String, Option<Beyond>) {
    let (ended, output) = shared::run(spawner, place.job(probe(), args))
        .await
        .unwrap();
    (output.trim().to_owned(), ended.beyond)
}

/// Each attempt as a call of its own that the host permits.
async fn tries(place: &Place, beyond: Beyond, tries: &[(&[&str], &str)]) {
    let host = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let held = host.derive();
    for (args, expected) in tries {
        let _permit = host.permit("c00000001", beyond.clone()).unwrap();
        let said = says(place, &held, args).await;
        assert_eq!(
            said,
            ((*expected).to_owned(), Some(beyond.clone())),
            "{beyond:?} {args:?}"
        );
    }
}

#[tokio::test]
async fn with_the_network_all_else_stays_confined() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let path = place.project.join("socket").to_str().unwrap().to_owned();
    let _unix = UnixListener::bind(&path).unwrap();
    let outside = place.outside.join("file").to_str().unwrap().to_owned();
    let key = place.home.join(".ssh/id").to_str().unwrap().to_owned();
    let expected: [(&[&str], &str); 12] = [
        (&["tcp", &port], "ok"),
        (&["socket", "2", "2"], "ok"),
        (&["socket", "10", "1"], "ok"),
        (&["socket", "1", "1"], "EPERM"),
        (&["socket", "16", "3"], "EPERM"),
        (&["socket", "40", "1"], "EPERM"),
        (&["unix", &path], "EPERM"),
        (&["io_uring"], "EPERM"),
        (&["write", &outside], "EACCES"),
        (&["read", &outside], "EACCES"),
        (&["read", &key], "EACCES"),
        (&["write", "new"], "ok"),
    ];
    tries(&place, Beyond::Network, &expected).await;
    let confined = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    assert_eq!(
        says(&place, &confined, &["tcp", &port]).await,
        ("ENETUNREACH".to_owned(), None)
    );
}

#[tokio::test]
async fn unconfined_is_without_the_sandbox() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let path = place.project.join("socket").to_str().unwrap().to_owned();
    let _unix = UnixListener::bind(&path).unwrap();
    let made = place.outside.join("made").to_str().unwrap().to_owned();
    let expected: [(&[&str], &str); 2] = [(&["write", &made], "ok"), (&["unix", &path], "ok")];
    tries(&place, Beyond::Unconfined, &expected).await;
}

#[tokio::test]
async fn a_permit_is_for_one_child_of_its_call_and_only_the_host_gives_it() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let host = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let open = ("ok".to_owned(), Some(Beyond::Network));
    let shut = ("ENETUNREACH".to_owned(), None);
    let socket = ["socket", "2", "1"];
    let permit = host.permit("c00000001", Beyond::Network);
    let other = authority::Job {
        call: "c00000002".to_owned(),
        ..place.job(probe(), &socket)
    };
    assert_eq!(
        shared::run(&host, other).await.unwrap().1.trim(),
        "ENETUNREACH",
        "another call has it"
    );
    assert_eq!(says(&place, &host, &socket).await, open);
    assert_eq!(says(&place, &host, &socket).await, shut, "it is used twice");
    drop(permit);
    drop(host.permit("c00000001", Beyond::Network));
    assert_eq!(
        says(&place, &host, &socket).await,
        shut,
        "it outlives the call"
    );
    assert!(host.derive().permit("c00000001", Beyond::Network).is_none());
    assert!(
        host.derive()
            .clone()
            .permit("c00000001", Beyond::Network)
            .is_none()
    );
    for mode in [SandboxMode::ReadOnly, SandboxMode::Off] {
        assert!(
            place
                .spawner(mode)
                .unwrap()
                .permit("c00000001", Beyond::Unconfined)
                .is_none(),
            "{mode:?}"
        );
    }
}
