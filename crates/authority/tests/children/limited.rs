//! Handles that start only some programs, with or without the network.

use super::shared::{Place, confinable, probe, run};
use authority::{Access, ChildExit, ErrorKind, SandboxMode, Spawner, Workspace};
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn names(names: &[&str]) -> Vec<OsString> {
    names.iter().map(OsString::from).collect()
}

/// How starting a program ends: its kind of error, or none.
async fn starts(place: &Place, spawner: &Spawner, program: impl AsRef<Path>) -> Option<ErrorKind> {
    run(spawner, place.job(program, &[]))
        .await
        .err()
        .map(|error| error.kind())
}

#[tokio::test]
async fn only_named_programs_are_started() {
    let place = Place::new();
    let host = place.spawner(SandboxMode::Off).unwrap();
    let limited = host.limited(&names(&["true", "/bin/ls"]), true).unwrap();
    let denied = Some(ErrorKind::Denied);
    let cases = [
        ("true", None),
        ("/bin/ls", None),
        ("false", denied),
        ("ls", denied),
        ("/bin/../bin/ls", denied),
        ("/bin/true", denied),
        ("./true", denied),
    ];
    for (program, expected) in cases {
        assert_eq!(
            starts(&place, &limited, program).await,
            expected,
            "{program}"
        );
    }
    assert_eq!(starts(&place, &limited.derive(), "false").await, denied);
    // It is narrowed further, never widened.
    let narrower = limited.limited(&names(&["true"]), true).unwrap();
    assert_eq!(starts(&place, &narrower, "/bin/ls").await, denied);
    assert_eq!(
        narrower
            .limited(&names(&["/bin/ls"]), true)
            .unwrap_err()
            .kind(),
        ErrorKind::Denied
    );
    for unfit in [
        names(&[]),
        names(&[""]),
        names(&["bin/ls"]),
        vec![OsString::from("a"); 65],
    ] {
        assert_eq!(
            host.limited(&unfit, true).unwrap_err().kind(),
            ErrorKind::FixInput,
            "{unfit:?}"
        );
    }
}

#[tokio::test]
async fn the_network_is_given_by_the_host_only() {
    let place = Place::new();
    let some = names(&[probe().to_str().unwrap()]);
    let unconfined = place.spawner(SandboxMode::Off).unwrap();
    assert_eq!(
        unconfined.limited(&some, false).unwrap_err().kind(),
        ErrorKind::Unavailable,
        "nothing withholds it"
    );
    if !confinable() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let host = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let outside = place.outside.join("file").to_str().unwrap().to_owned();
    let with = host.limited(&some, true).unwrap();
    let without = host.limited(&some, false).unwrap();
    assert_eq!(place.says(&with, &["tcp", &port]).await, "ok");
    assert_eq!(
        place.says(&with, &["read", &outside]).await,
        "EACCES",
        "all else stays confined"
    );
    assert_eq!(place.says(&without, &["tcp", &port]).await, "ENETUNREACH");
    assert_eq!(
        place
            .says(&with.limited(&some, false).unwrap(), &["tcp", &port])
            .await,
        "ENETUNREACH"
    );
    assert_eq!(
        host.derive().limited(&some, true).unwrap_err().kind(),
        ErrorKind::Denied
    );
    assert_eq!(
        without.limited(&some, true).unwrap_err().kind(),
        ErrorKind::Denied
    );
    let read_only = place.spawner(SandboxMode::ReadOnly).unwrap();
    assert_eq!(
        read_only.limited(&some, true).unwrap_err().kind(),
        ErrorKind::Denied
    );
}

// A permit is about the command that a person saw.
#[tokio::test]
async fn a_limited_handle_takes_no_permit() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let host = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let limited = host
        .limited(&names(&[probe().to_str().unwrap()]), false)
        .unwrap();
    let permit = host
        .permit("c00000001", authority::Beyond::Unconfined)
        .unwrap();
    let (ended, said) = run(&limited, place.job(probe(), &["socket", "2", "2"]))
        .await
        .unwrap();
    assert_eq!((ended.beyond, said.trim()), (None, "ENETUNREACH"));
    drop(permit);
}

#[tokio::test]
async fn only_programs_below_a_root_are_started() {
    let place = Place::new();
    let root = place.project.join("tools");
    std::fs::create_dir(&root).unwrap();
    let own = root.join("own");
    std::fs::write(&own, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("own", root.join("link")).unwrap();
    symlink("/bin/true", root.join("out")).unwrap();
    std::fs::copy(&own, place.project.join("beside")).unwrap();
    let files = Workspace::open(&ambient::claim(), &root, &root, Access::Read).unwrap();
    let granted = files.derive();
    let below = place
        .spawner(SandboxMode::Off)
        .unwrap()
        .below(&granted)
        .unwrap();
    let denied = Some(ErrorKind::Denied);
    let cases = [
        (own.clone(), None),
        (root.join("link"), None),
        (root.join("out"), denied),
        (root.join("../beside"), denied),
        (place.project.join("beside"), denied),
        ("true".into(), denied),
        ("/bin/true".into(), denied),
    ];
    for (program, expected) in cases {
        assert_eq!(
            starts(&place, &below, &program).await,
            expected,
            "{}",
            program.display()
        );
    }
    assert_eq!(
        below.limited(&names(&["true"]), true).unwrap_err().kind(),
        ErrorKind::Denied
    );
    assert_eq!(below.below(&files).unwrap_err().kind(), ErrorKind::Denied);
    granted.door().shut().await;
    assert_eq!(starts(&place, &below, &own).await, Some(ErrorKind::Revoked));
}

/// What a command left in the project, or where a link of `PATH` leads into it, is not taken for a program of the machine.
#[tokio::test]
async fn a_guarded_path_leaves_out_what_children_write() {
    let mut place = Place::new();
    let bin = place.project.join("bin");
    let links = place.outside.join("links");
    for dir in [&bin, &links] {
        std::fs::create_dir(dir).unwrap();
    }
    std::fs::write(bin.join("true"), "#!/bin/sh\necho from the project\n").unwrap();
    std::fs::set_permissions(bin.join("true"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(bin.join("true"), links.join("true")).unwrap();
    let into = place.outside.join("into");
    symlink(&bin, &into).unwrap();
    for first in [
        "bin",
        "",
        bin.to_str().unwrap(),
        links.to_str().unwrap(),
        into.to_str().unwrap(),
    ] {
        place.vars.retain(|(name, _)| name != "PATH");
        let all = format!("{first}:/usr/bin:/bin");
        place.vars.push(("PATH".into(), all.clone().into()));
        let host = place.spawner(SandboxMode::Off).unwrap();
        let limited = host.limited(&names(&["true", "sh"]), true).unwrap();
        let (_, free) = run(&limited, place.job("true", &[])).await.unwrap();
        assert_eq!(free.is_empty(), first.is_empty(), "{first}: {free}");
        let guarded = limited.with_guarded_path();
        let (ended, output) = run(&guarded, place.job("true", &[])).await.unwrap();
        assert_eq!(
            (ended.how, output.as_str()),
            (ChildExit::Exit(0), ""),
            "{first}"
        );
        let (_, path) = run(&guarded.derive(), place.job("sh", &["-c", "echo $PATH"]))
            .await
            .unwrap();
        let kept = if first == links.to_str().unwrap() {
            all.clone()
        } else {
            "/usr/bin:/bin".to_owned()
        };
        assert_eq!(path.trim(), kept, "{first}");
    }
}
