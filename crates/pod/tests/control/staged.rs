//! What a killed call had written beside a file goes when its session is opened again, and nothing else.

use crate::scene::{echo, pod, said, sound};
use llm_worker::ToolEffect;
use llm_worker::tool::FileChange;
use pod::session::record::Record;
use session_store::Digest;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::{Answer, FnTool, How, PodUnderTest, Script};

const STAGED: &str = ".yoi-0123456789abcdef.tmp";

fn staged(dir: &Path, name: &str, content: &[u8], at: SystemTime) {
    fs::write(dir.join(name), content).unwrap();
    File::options().write(true).open(dir.join(name)).unwrap().set_modified(at).unwrap();
}

/// Announces a change of `new` to `f` and is killed before it comes about.
fn killed(after: &'static [u8]) -> PodUnderTest {
    let mut pod = pod(vec![Answer::calls(&[("Change", "{}")])], Vec::new());
    let path = pod.project.join("f");
    let change = FnTool::new("Change", ToolEffect::Effectful, move |cx, _| {
        let after = Some(Digest::of(after).to_string());
        let change = FileChange { path: path.clone(), before: None, mode: None, after, made: None };
        async move { cx.host.file_changing(change).await.and_then(|()| said("changed")) }
    });
    pod.tools = vec![change, echo("Echo", ToolEffect::ReadOnly)];
    pod.points.kill("file_changed", 0);
    assert!(matches!(pod.run("go").how, How::Killed));
    pod.revive();
    pod
}

#[test]
fn what_was_announced_and_is_as_old_goes() {
    let cases: [(&str, &[u8], i64, bool); 7] = [
        (STAGED, b"new", 0, true),
        (STAGED, b"new", -60, true),
        (STAGED, b"new", 60, false),
        (STAGED, b"old", 0, false),
        (STAGED, b"", 0, false),
        (".yoi-0123456789abcdeg.tmp", b"new", 0, false),
        ("new.tmp", b"new", 0, false),
    ];
    for (name, content, seconds, goes) in cases {
        let what = format!("{name} {content:?} {seconds}");
        let mut pod = killed(b"new");
        let crash = UNIX_EPOCH + Duration::from_micros(pod.restored().last_time);
        let age = Duration::from_secs(seconds.unsigned_abs());
        staged(&pod.project, name, content, if seconds < 0 { crash - age } else { crash + age });
        pod.script = Script::new(vec![Answer::text("went on")]);
        pod.run("go on").end();
        assert_eq!(pod.project.join(name).exists(), !goes, "{what}");
        let swept = |(_, record): &(u64, Record)| match record {
            Record::Recovery(recovery) => Some(recovery.swept),
            _ => None,
        };
        assert_eq!(pod.records().iter().find_map(swept), Some(u64::from(goes)), "{what}");
        sound(&pod, &what);
    }
}

/// A change that came about has no call that waits: whatever looks like its content is somebody else's.
#[test]
fn nothing_goes_when_nothing_was_left_open() {
    let mut pod = killed(b"new");
    pod.script = Script::new(vec![Answer::text("went on"), Answer::text("again")]);
    pod.run("go on").end();
    staged(&pod.project, STAGED, b"new", UNIX_EPOCH);
    pod.points.kill("commit:host_stopped", 0);
    assert!(matches!(pod.run("again").how, How::Killed));
    pod.revive();
    pod.script = Script::new(vec![Answer::text("last")]);
    pod.run("last").end();
    assert!(pod.project.join(STAGED).exists());
}
