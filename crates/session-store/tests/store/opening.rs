//! Making and opening: what is refused, what is found.

use std::io;
use std::path::Path;
use std::sync::Arc;

use session_store::{ErrorKind, Op, OpenError, Options, ReadError, Reader, Session, Tail};

use crate::disks::{Judge, Judged, Quick};
use crate::scene::{Scene, append, clock, options, texts};

#[test]
fn a_session_is_made_once_and_opened_often() {
    let scene = Scene::new();
    assert!(matches!(scene.open(), Err(OpenError::NoSuch(_))));
    assert!(matches!(
        Reader::open(&scene.dir),
        Err(ReadError::NoSuch(_))
    ));
    let opened = scene.create();
    let found = opened.recovered.clone();
    assert_eq!(
        (
            found.existed,
            found.session.as_str(),
            found.last,
            found.epoch
        ),
        (false, "s-1", 0, 1)
    );
    assert_eq!(Reader::open(&scene.dir).unwrap().durable(), 0);
    append(&opened, &["one"]).unwrap();
    opened.journal.close();
    let again = Session::create(&scene.dir, options(Arc::new(Quick))).unwrap_err();
    assert_eq!(
        (matches!(again, OpenError::Exists(_)), again.kind()),
        (true, ErrorKind::FixInput)
    );
    let other = Options {
        disk: Arc::new(Quick),
        ..Options::new("another", clock())
    };
    let opened = Session::open(&scene.dir, other).unwrap();
    let found = opened.recovered.clone();
    assert_eq!(
        (
            found.existed,
            found.session.as_str(),
            found.last,
            found.class
        ),
        (true, "s-1", 2, None)
    );
    assert_eq!(found.last_time, Some(1_790_000_000_000_001));
    assert!(found.epoch > 1);
    append(&opened, &["two"]).unwrap();
    let epochs: Vec<_> = Reader::open(&scene.dir)
        .unwrap()
        .frames()
        .map(|f| f.unwrap().epoch)
        .collect();
    assert_eq!(epochs, [1, 1, found.epoch]);
}

/// A crash between making the directory and the first commit leaves something that is neither there nor not there.
#[test]
fn an_empty_log_may_be_made_again_or_opened() {
    let scene = Scene::new();
    scene.create().journal.close();
    scene.create().journal.close();
    let opened = scene.open().unwrap();
    assert!(!opened.recovered.existed);
    append(&opened, &["one"]).unwrap();
    assert_eq!(texts(&scene.dir), ["one"]);
}

#[test]
fn ids_are_spelled_plainly() {
    let scene = Scene::new();
    for id in ["", "a b", "a\"b", "../x\n", &"x".repeat(65)] {
        let made = Session::create(&scene.dir, Options::new(id, clock()));
        assert!(matches!(made, Err(OpenError::Id(_))), "{id:?}");
    }
    assert!(!scene.dir.exists());
}

struct Elsewhere(u64);

impl Judge for Elsewhere {
    fn before(&self, _: Op, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn magic(&self) -> u64 {
        self.0
    }
}

#[test]
fn network_file_systems_are_refused_unless_told() {
    let scene = Scene::new();
    for magic in [0x6969, 0xFF53_4D42, 0x6573_5546, 0x0102_1997] {
        let given = || options(Arc::new(Judged(Elsewhere(magic))));
        let refused = Session::create(&scene.dir, given()).unwrap_err();
        assert!(matches!(refused, OpenError::Place { .. }), "{magic:x}");
        assert_eq!(refused.kind(), ErrorKind::FixInput);
        assert!(!scene.dir.exists());
    }
    let told = Options {
        any_file_system: true,
        ..options(Arc::new(Judged(Elsewhere(0x6969))))
    };
    Session::create(&scene.dir, told).unwrap();
    assert!(matches!(
        Session::open(&scene.dir, options(Arc::new(Judged(Elsewhere(0x6969))))),
        Err(OpenError::Place { .. })
    ));
    Session::open(&scene.dir, options(Arc::new(Judged(Elsewhere(0xEF53))))).unwrap();
}

struct ReadOnly;

impl Judge for ReadOnly {
    fn before(&self, op: Op, _: &Path) -> io::Result<()> {
        match op {
            Op::Read => Ok(()),
            _ => Err(io::Error::from_raw_os_error(30)),
        }
    }
}

#[test]
fn a_read_only_place_says_so() {
    let scene = Scene::with(&[&["one"]]);
    let refused = Session::open(&scene.dir, options(Arc::new(Judged(ReadOnly)))).unwrap_err();
    assert!(matches!(refused, OpenError::ReadOnly(_)));
    assert_eq!(refused.kind(), ErrorKind::Denied);
    assert_eq!(texts(&scene.dir), ["one"]);
}

/// An unfinished tail of a writer that lives is being written, and no reader calls it damage.
#[test]
fn a_readers_view_of_the_tail() {
    let scene = Scene::new();
    let opened = scene.create();
    append(&opened, &["one"]).unwrap();
    assert_eq!(
        Reader::open(&scene.dir).unwrap().tail().unwrap(),
        Tail::Clean
    );
    let mut bytes = std::fs::read(scene.log()).unwrap();
    bytes.extend_from_slice(b"{\"c\":\"0000");
    std::fs::write(scene.log(), &bytes).unwrap();
    let reader = Reader::open(&scene.dir).unwrap();
    assert_eq!(reader.tail().unwrap(), Tail::BeingWritten(10));
    assert_eq!(reader.frames().filter(|frame| frame.is_ok()).count(), 2);
    opened.journal.close();
    assert_eq!(
        reader.tail().unwrap(),
        Tail::Cut(session_store::TailDamage::TornTail, 10)
    );
    assert_eq!(texts(&scene.dir), ["one"]);
}

#[test]
fn a_held_directory_can_be_moved_away_under_everybody() {
    let scene = Scene::new();
    append(&scene.create(), &["one"]).unwrap();
    let held = Session::hold(&scene.dir, 7).unwrap();
    let Err(OpenError::Busy {
        owner: Some(owner), ..
    }) = scene.open()
    else {
        panic!("it is held")
    };
    assert_eq!((owner.pid, owner.since), (std::process::id(), 7));
    let away = scene.dir.with_extension("away");
    std::fs::rename(&scene.dir, &away).unwrap();
    assert!(matches!(scene.open(), Err(OpenError::NoSuch(_))));
    assert!(
        matches!(Session::hold(&away, 8), Err(OpenError::Busy { .. })),
        "the lock goes with the directory"
    );
    drop(held);
    assert_eq!(texts(&away), ["one"]);
    let opened = Session::open(&away, options(Arc::new(Quick))).unwrap();
    assert!(matches!(
        Session::hold(&away, 9),
        Err(OpenError::Busy { .. })
    ));
    drop(opened);
    // What is no session yet can be held too, and then nobody makes one of it.
    std::fs::create_dir(&scene.dir).unwrap();
    let held = Session::hold(&scene.dir, 10).unwrap();
    assert!(matches!(
        Session::create(&scene.dir, options(Arc::new(Quick))),
        Err(OpenError::Busy { .. })
    ));
    drop(held);
    assert!(
        Reader::open(&scene.dir).is_err()
            || Reader::open(&scene.dir).unwrap().frames().next().is_none()
    );
}

/// Without HEAD nothing says how far the newest batch is durable; while a writer lives, it is not shown.
#[test]
fn without_head_a_reader_beside_a_writer_shows_what_is_proven() {
    let scene = Scene::new();
    let opened = scene.create();
    append(&opened, &["one"]).unwrap();
    append(&opened, &["two"]).unwrap();
    std::fs::write(scene.head(), "torn").unwrap();
    assert_eq!(texts(&scene.dir), ["one"]);
    opened.journal.close();
    std::fs::write(scene.head(), "torn").unwrap();
    assert_eq!(texts(&scene.dir), ["one", "two"]);
}
