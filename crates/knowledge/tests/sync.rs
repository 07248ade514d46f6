//! The next sync equals a fresh one, whatever happened in between: changes, renames, other times, a kill.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a directory that fails is a failed test"
)]

mod support;

use knowledge::{Connector, Error, ErrorKind, ItemSink};
use rusqlite::Connection;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, SystemTime};
use support::{Listing, Project, item, open, sync, tables};

/// Names the directory of the index, and the item at which the process ends itself, to a copy of this program.
const KILLED: &str = "KNOWLEDGE_TEST_KILLED";

fn project() -> Project {
    let project = Project::new();
    project.write("README.md", "# Hello\n\nA project about lighthouses.\n");
    project.write("src/main.rs", "fn main() {\n    light_lamp();\n}\n");
    project.write(
        "docs/long.md",
        format!("# Long\n\n{}", "words of a page\n\n".repeat(600)),
    );
    project
}

/// What happens to the files, and its name.
type Step<'a> = (&'a str, &'a dyn Fn(&Project));

#[test]
fn the_next_sync_equals_a_fresh_one() {
    let project = project();
    let first = project.sync();
    assert_eq!((first.added, first.unchanged), (3, 0));
    assert_eq!(tables(&project.file()), project.fresh());
    let again = project.sync();
    assert_eq!((again.added, again.changed, again.unchanged), (0, 0, 3));

    let steps: [Step<'_>; 7] = [
        ("changed", &|p| {
            p.write("README.md", "# Hello\n\nA project about harbours.\n")
        }),
        ("new", &|p| p.write("docs/new.md", "fresh words")),
        ("renamed", &|p| {
            fs::rename(p.root().join("docs/long.md"), p.root().join("docs/a.md")).unwrap();
        }),
        ("back-dated", &|p| {
            p.write("src/main.rs", "fn main() {\n    night_lamp();\n}\n");
            let file = File::options()
                .write(true)
                .open(p.root().join("src/main.rs"));
            let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            file.unwrap().set_modified(old).unwrap();
        }),
        ("removed", &|p| {
            fs::remove_file(p.root().join("README.md")).unwrap()
        }),
        ("ignored", &|p| p.write(".gitignore", "docs/new.md\n")),
        ("not text any more", &|p| {
            p.write("src/main.rs", b"\xff\xfe\x00")
        }),
    ];
    for (what, step) in steps {
        step(&project);
        project.sync();
        assert_eq!(tables(&project.file()), project.fresh(), "{what}");
    }
    assert!(project.found("harbours lamp fresh").is_empty());
    assert_eq!(project.found("page"), ["docs/a.md"]);
}

#[test]
fn a_document_keeps_its_id_over_changes_and_renames() {
    let project = project();
    project.sync();
    let id = |query: &str| {
        let reader = project.reader();
        let query = knowledge::SearchQuery {
            text: query.to_owned(),
            limit: 1,
            ..Default::default()
        };
        reader.search(&query).unwrap()[0].document.clone()
    };
    let first = id("lighthouses");
    project.write(
        "README.md",
        "# Hello\n\nA project about lighthouses and ships.\n",
    );
    project.sync();
    assert_eq!(id("ships"), first);
    fs::rename(
        project.root().join("README.md"),
        project.root().join("ABOUT.md"),
    )
    .unwrap();
    // The old name has other text now.
    project.write("README.md", "# Other\n\nNothing of it.\n");
    let report = project.sync();
    assert_eq!((report.changed, report.added, report.renamed), (1, 1, 0));
    fs::rename(
        project.root().join("ABOUT.md"),
        project.root().join("LIGHT.md"),
    )
    .unwrap();
    let about = id("ships");
    let report = project.sync();
    assert_eq!((report.renamed, report.added, report.removed), (1, 0, 0));
    assert_eq!(id("ships"), about);
    let (document, _) = project.reader().get(&about).unwrap();
    assert_eq!(document.source_id, "LIGHT.md");
    assert_eq!(
        document.text,
        "# Hello\n\nA project about lighthouses and ships.\n"
    );
}

#[test]
fn a_change_within_one_tick_of_the_clock_is_seen() {
    let project = Project::new();
    project.write("a.txt", "one word");
    let index = project.index();
    sync(&index, &project.source(Duration::ZERO));
    // The same length, and perhaps the same time.
    project.write("a.txt", "two word");
    sync(&index, &project.source(Duration::ZERO));
    assert_eq!(project.found("two"), ["a.txt"]);
    let stamp = || -> String {
        let db = Connection::open(project.file()).unwrap();
        let sql = "SELECT stamp FROM documents";
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(stamp(), "", "what has just changed is read again");
    sync(&index, &project.source(Duration::from_secs(60)));
    assert_ne!(stamp(), "");
}

#[test]
fn texts_that_are_equal_have_ids_of_their_own() {
    let project = Project::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        project.write(name, "the same words");
    }
    project.sync();
    for name in ["a.txt", "b.txt"] {
        let to = format!("moved-{name}");
        fs::rename(project.root().join(name), project.root().join(to)).unwrap();
    }
    project.write("a.txt", "the same words");
    let report = project.sync();
    assert_eq!((report.renamed, report.added, report.removed), (1, 1, 0));
    let found = project.found("same");
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(tables(&project.file()), project.fresh());
}

#[test]
fn a_source_that_cannot_be_listed_keeps_its_documents() {
    let project = Project::new();
    let index = project.index();
    sync(
        &index,
        &Listing(|sink: &mut dyn ItemSink| sink.put(item("1", "apples"))),
    );
    let fails = |sink: &mut dyn ItemSink| {
        sink.put(item("2", "pears"))?;
        Err(Error::new(ErrorKind::Unavailable, "the disk was removed"))
    };
    let on = &mut |_| ControlFlow::Continue(());
    let failed = index.sync(&Listing(fails), SystemTime::now(), false, on);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(project.found("apples pears"), ["1"]);
    let sources = project.reader().sources().unwrap();
    assert_eq!(sources[0].error.as_deref(), Some("the disk was removed"));
    assert_eq!(sources[0].documents, 1);
    // An item that is told twice counts once, and a sync that works ends the error.
    let twice = |sink: &mut dyn ItemSink| {
        sink.put(item("2", "pears"))?;
        sink.put(item("2", "plums"))
    };
    let report = sync(&index, &Listing(twice));
    assert_eq!((report.added, report.removed), (1, 1));
    assert_eq!(project.found("apples pears plums"), ["2"]);
    assert_eq!(project.reader().sources().unwrap()[0].error, None);
}

#[test]
fn a_dry_run_and_an_ended_sync_keep_nothing() {
    let project = project();
    project.sync();
    let before = tables(&project.file());
    project.write("b.txt", "more");
    let index = project.index();
    let source = project.source(Duration::from_secs(60));
    let on = &mut |_| ControlFlow::Continue(());
    let report = index.sync(&source, SystemTime::now(), true, on).unwrap();
    assert_eq!(report.added, 1);
    assert_eq!(tables(&project.file()), before);
    let many = |sink: &mut dyn ItemSink| {
        (0..1000).try_for_each(|n| sink.put(item(&n.to_string(), "words")))
    };
    let mut told = 0;
    let ends = &mut |progress: knowledge::SyncProgress| {
        told = progress.items;
        match progress.items >= 500 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let ended = index.sync(&Listing(many), SystemTime::now(), false, ends);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(told, 500);
    assert_eq!(tables(&project.file()), before);
}

#[test]
fn two_syncs_at_once_do_not_mix() {
    let project = project();
    project.sync();
    let other = Connection::open(project.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let index = project.index().waiting(Duration::ZERO);
    let on = &mut |_| ControlFlow::Continue(());
    let busy = index.sync(
        &project.source(Duration::ZERO),
        SystemTime::now(),
        false,
        on,
    );
    assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
    // Readers do not wait for it.
    assert_eq!(project.found("lighthouses"), ["README.md"]);
}

/// A source of one item with this name.
struct Named(String);

impl Connector for Named {
    fn name(&self) -> &str {
        &self.0
    }

    fn kind(&self) -> &'static str {
        "test"
    }

    fn scan(&self, sink: &mut dyn ItemSink) -> Result<(), Error> {
        sink.put(item(&self.0, "common words"))
    }
}

/// Two first syncs at once: the second found a file without tables, took it for a damaged index and removed it, and with it
/// what the first one wrote. The file was made before the transaction that fills it.
#[test]
fn first_syncs_at_once_wait_for_each_other() {
    let project = Project::new();
    // As another sync is that begins.
    fs::write(project.file(), "").unwrap();
    let made = fs::metadata(project.file()).unwrap().ino();
    let other = Connection::open(project.index_dir().join("lock.sqlite")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let index = project.index().waiting(Duration::ZERO);
    let on = &mut |_| ControlFlow::Continue(());
    let busy = index.sync(&Named("late".to_owned()), SystemTime::now(), false, on);
    assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(fs::metadata(project.file()).unwrap().ino(), made);
    drop(other);
    fs::remove_file(project.file()).unwrap();
    let index = project.index().waiting(Duration::from_secs(60));
    let names: Vec<String> = (0..8).map(|n| format!("source{n}")).collect();
    let ready = Barrier::new(names.len());
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| {
                ready.wait();
                sync(&index, &Named(name.clone()))
            });
        }
    });
    let sources = project.reader().sources().unwrap();
    let synced: Vec<&String> = sources.iter().map(|source| &source.name).collect();
    assert_eq!(synced, names.iter().collect::<Vec<_>>());
    assert_eq!(project.found("common").len(), names.len());
    index.check().unwrap();
    fs::write(project.index_dir().join("lock.sqlite"), "something else").unwrap();
    let on = &mut |_| ControlFlow::Continue(());
    let failed = index.sync(&Named("x".to_owned()), SystemTime::now(), false, on);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unavailable);
}

/// 60 items, with the second state of the source.
fn changed(end_at: Option<usize>) -> impl Fn(&mut dyn ItemSink) -> Result<(), Error> {
    move |sink| {
        for n in 20..80usize {
            if end_at == Some(n) {
                std::process::abort();
            }
            let body = format!("item {n} {} words\n\n", n % 7).repeat(n);
            sink.put(item(&format!("{n}.txt"), &body))?;
        }
        match end_at {
            // Behind the last item.
            Some(80) => std::process::abort(),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_kill_leaves_what_was_before() {
    if let Ok(killed) = std::env::var(KILLED) {
        let (dir, at) = killed.split_once('=').unwrap();
        let dir = open(dir.as_ref(), authority::Access::ReadWrite);
        let index = knowledge::ContextIndex::below(dir);
        sync(&index, &Listing(changed(Some(at.parse().unwrap()))));
        panic!("it was to end before");
    }
    let project = Project::new();
    let index = project.index();
    sync(
        &index,
        &Listing(|sink: &mut dyn ItemSink| {
            (0..40).try_for_each(|n| {
                sink.put(item(&format!("{n}.txt"), &format!("first {n} state\n")))
            })
        }),
    );
    let before = tables(&project.file());
    for at in (20..=80).step_by(6) {
        let killed = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_kill_leaves_what_was_before", "--nocapture"])
            .env(KILLED, format!("{}={at}", project.index_dir().display()))
            .output()
            .unwrap();
        assert!(!killed.status.success());
        let text = String::from_utf8_lossy(&killed.stderr);
        assert!(!text.contains("panicked"), "{at}: {text}");
        index.check().unwrap();
        assert_eq!(tables(&project.file()), before, "{at}");
    }
    sync(&index, &Listing(changed(None)));
    let fresh = Project::new();
    sync(&fresh.index(), &Listing(changed(None)));
    assert_eq!(tables(&project.file()), tables(&fresh.file()));
}

#[test]
fn maintenance_moves_no_hit_to_another_document() {
    let project = project();
    for n in 0..50 {
        project.write(
            &format!("notes/{n}.txt"),
            format!("note number{n} about something"),
        );
    }
    project.sync();
    for n in (0..50).step_by(3) {
        fs::remove_file(project.root().join(format!("notes/{n}.txt"))).unwrap();
    }
    project.sync();
    let before = tables(&project.file());
    let db = Connection::open(project.file()).unwrap();
    db.execute_batch("VACUUM; INSERT INTO terms(terms) VALUES('optimize');")
        .unwrap();
    drop(db);
    project.index().check().unwrap();
    assert_eq!(tables(&project.file()), before);
    assert_eq!(project.found("number7"), ["notes/7.txt"]);
    for n in 0..50 {
        drop(fs::remove_file(
            project.root().join(format!("notes/{n}.txt")),
        ));
    }
    project.sync();
    let size = || fs::metadata(project.file()).unwrap().len();
    let whole = size();
    project.index().check().unwrap();
    assert!(size() < whole, "the file was not compacted: {whole}");
    // As hits move where row numbers are not declared.
    let db = Connection::open(project.file()).unwrap();
    let at = "SELECT chunks.id FROM chunks JOIN documents d ON d.id = document WHERE source_id";
    db.execute_batch(&format!(
        "CREATE TEMP TABLE two AS SELECT ({at} = 'README.md') a, ({at} = 'src/main.rs') b;
        UPDATE chunks SET id = -1 WHERE id = (SELECT a FROM two);
        UPDATE chunks SET id = (SELECT a FROM two) WHERE id = (SELECT b FROM two);
        UPDATE chunks SET id = (SELECT b FROM two) WHERE id = -1;"
    ))
    .unwrap();
    let moved = project.index().check().unwrap_err();
    assert!(
        moved.to_string().contains("terms of another text"),
        "{moved}"
    );
}

#[test]
fn links_are_not_followed() {
    let project = project();
    symlink("/etc", project.root().join("etc")).unwrap();
    symlink("..", project.root().join("docs/up")).unwrap();
    assert_eq!(project.sync().added, 3);
}
