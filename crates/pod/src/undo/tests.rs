//! Taking back beside somebody who edits, and with a journal that refuses.

use super::*;
use crate::control::Batch;
use authority::Access;
use session_store::{Opened, Options, Reader, Session};
use std::fs;
use std::sync::Arc;

/// A pod's journal with one change, `two` to `three`, or nothing to `three`, and the file as it was left.
fn scene(dir: &Path, existed: bool) -> (Opened, Changes, std::path::PathBuf) {
    let dir = dir.canonicalize().unwrap();
    let opened = Session::create(&dir.join("pod"), Options::new("s-1", Arc::new(|| 1))).unwrap();
    let path = dir.join("file");
    fs::write(&path, "three").unwrap();
    let before = existed.then(|| Stored::from(opened.blobs.put(b"two").unwrap()));
    let change = FileChanged {
        call: None,
        path: path.to_str().unwrap().to_owned(),
        before,
        mode: existed.then_some(0o640),
        after: Some(Digest::of(b"three").to_string()),
        made: None,
    };
    let mut changes = Changes::default();
    changes.take(1, 0, &change.into());
    (opened, changes, path)
}

/// Calls `then` with an undo in the pod of `scene`.
fn with_undo<T>(
    opened: Opened,
    dir: &Path,
    reached: &dyn Fn(&str),
    then: impl FnOnce(&FileUndo<'_>) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    let journal = opened.journal;
    let append = |record| {
        let committed = runtime.block_on(journal.append(Batch::of(vec![record])));
        committed
            .map(drop)
            .map_err(|refused| refused.why.to_string())
    };
    let root = Path::new("/");
    let undo = FileUndo {
        files: Workspace::open(&ambient::claim(), root, root, Access::ReadWrite).unwrap(),
        session: opened.recovered.session,
        view: Reader::open(&dir.join("pod")).unwrap().blobs(),
        writes: Some(UndoWrites {
            blobs: opened.blobs,
            append: Box::new(append),
        }),
        reached,
    };
    then(&undo)
}

fn undone(
    opened: Opened,
    changes: &Changes,
    dir: &Path,
    reached: &dyn Fn(&str),
) -> Result<Option<UndoAction>, SkipReason> {
    let changed = changes.files().next().unwrap();
    with_undo(opened, dir, reached, |undo| undo.file(changed))
}

#[test]
fn an_edit_made_meanwhile_is_not_lost() {
    for existed in [true, false] {
        for at in ["undo.found", "undo.staged", "never"] {
            let dir = tempfile::tempdir().unwrap();
            let (opened, changes, path) = scene(dir.path(), existed);
            let edited = path.clone();
            let reached = move |point: &str| {
                if point == at {
                    fs::write(&edited, "mine").unwrap();
                }
            };
            let done = undone(opened, &changes, dir.path(), &reached);
            let now = fs::read_to_string(&path).ok();
            match (at, existed) {
                ("never", true) => assert_eq!(
                    (done, now.as_deref()),
                    (Ok(Some(UndoAction::Restored)), Some("two"))
                ),
                ("never", false) => assert_eq!((done, now), (Ok(Some(UndoAction::Removed)), None)),
                _ => {
                    assert!(
                        matches!(&done, Err(SkipReason::File(why)) if why.contains("while this command ran")),
                        "{done:?}"
                    );
                    assert_eq!(now.as_deref(), Some("mine"), "{at} {existed}");
                }
            }
        }
    }
}

#[test]
fn a_journal_that_refuses_stops_it_before_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (opened, changes, path) = scene(dir.path(), true);
    opened.journal.close();
    let done = undone(opened, &changes, dir.path(), &|_| {});
    assert!(matches!(done, Err(SkipReason::Journal(_))), "{done:?}");
    assert_eq!(fs::read_to_string(path).unwrap(), "three");
}
// Its record stands, the rename does not: what is taken back then is what was to be.
#[test]
fn a_move_that_only_was_recorded_is_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir(root.join("to")).unwrap();
    fs::write(root.join("to/f"), "new").unwrap();
    let opened = Session::create(&root.join("pod"), Options::new("s-1", Arc::new(|| 1))).unwrap();
    let before = Some(Stored::from(opened.blobs.put(b"old").unwrap()));
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let after = Some(Digest::of(b"new").to_string());
    let wrote = FileChanged {
        call: None,
        path: at("from/f"),
        before,
        mode: Some(0o644),
        after,
        made: None,
    };
    let moved = |from: &str, to: &str| DirectoryMoved {
        call: None,
        from: at(from),
        to: at(to),
        made: None,
    };
    let records: [Record; 3] = [
        wrote.into(),
        moved("from", "to").into(),
        moved("to", "from").into(),
    ];
    let mut changes = Changes::default();
    records.iter().for_each(|record| changes.take(1, 0, record));
    with_undo(opened, &root, &|_| {}, |undo| {
        locate_moved(&mut changes, &undo.files);
        let [moved] = changes.moved() else {
            panic!("it stands where it was moved to")
        };
        assert_eq!(undo.whole(moved, &changes), Ok(()));
        assert_eq!(
            undo.file(changes.files().next().unwrap()),
            Ok(Some(UndoAction::Restored))
        );
        assert_eq!(undo.directory(moved, &[]), Ok(Some(UndoAction::MovedBack)));
        assert_eq!(fs::read_to_string(root.join("from/f")).unwrap(), "old");
        // Nothing more comes of it; where both are, neither is touched.
        assert_eq!(undo.directory(moved, &[]), Ok(None));
        fs::create_dir(root.join("to")).unwrap();
        assert!(
            matches!(undo.whole(moved, &changes), Err(SkipReason::File(why)) if why.contains("in use again"))
        );
    });
}
