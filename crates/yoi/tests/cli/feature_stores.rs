//! Features that keep records of their own: where these are, who may read them, and taking them back.

use crate::scene::Scene;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const ON: &str = "[features.\"builtin:work-item\"]\nenabled = true\nauthor = \"Ann\"\n[features.\"builtin:memory\"]\nenabled = true\n";

fn call(name: &str, arguments: Value) -> Value {
    json!({ "calls": [{ "name": name, "arguments": arguments }] })
}

/// A run of a new pod that makes these calls, one after the other; how each ended.
fn run(scene: &Scene, pod: &str, flags: &[&str], calls: &[Value]) -> Vec<(String, String)> {
    let answers: Vec<Value> = calls
        .iter()
        .cloned()
        .chain([json!({ "text": "done" })])
        .collect();
    let model = scene.script("script.jsonl", &answers);
    let args: Vec<&str> = ["run", "--pod", pod, "-m", &model]
        .into_iter()
        .chain(flags.iter().copied())
        .chain(["go"])
        .collect();
    scene.yoi(&args);
    let ended = |record: &Value| {
        let outcome = &record["outcome"];
        let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
        (record["k"] == "tool_finished").then(|| (text("status"), text("summary")))
    };
    scene.records(pod).iter().filter_map(ended).collect()
}

/// The directories of notes.
fn notes(scene: &Scene) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(scene.path("state/yoi/memory")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn note() -> Value {
    call(
        "MemoryWrite",
        json!({"name": "a", "description": "d", "kind": "fact", "text": "t"}),
    )
}

fn item() -> Value {
    call("WorkItemCreate", json!({"title": "Mend it", "body": "b"}))
}

#[test]
fn they_are_off_until_somebody_switches_them_on() {
    let scene = Scene::new();
    fs::create_dir(scene.file("work-items")).unwrap();
    let ended = run(&scene, "p1", &[], &[item(), note()]);
    assert!(ended.iter().all(|(status, _)| status != "ok"), "{ended:?}");
    assert_eq!(notes(&scene), Vec::<PathBuf>::new());
    scene
        .config(ON)
        .yoi(&["features", "--plan"])
        .ends(0)
        .prints(&["builtin:work-item", "builtin:memory"]);
    assert_eq!(notes(&scene), Vec::<PathBuf>::new(), "a plan makes nothing");
}

#[test]
fn records_are_kept_where_they_belong_and_taken_back() {
    let scene = Scene::new();
    fs::create_dir_all(scene.file("work-items")).unwrap();
    fs::create_dir_all(scene.file("src")).unwrap();
    scene.config(ON);
    let status = call(
        "WorkItemUpdate",
        json!({"id": "mend-it", "comment": "seen"}),
    );
    let ended = run(
        &scene,
        "p2",
        &["-C", scene.file("src").to_str().unwrap()],
        &[item(), status, note()],
    );
    assert!(
        ended.len() == 3 && ended.iter().all(|(status, _)| status == "ok"),
        "{ended:?}"
    );
    let [kept] = notes(&scene).try_into().unwrap();
    assert!(
        kept.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("project-"),
        "{kept:?}"
    );
    assert_eq!(
        fs::metadata(&kept).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert!(
        fs::read_to_string(kept.join("a.md"))
            .unwrap()
            .ends_with("\n\nt\n")
    );
    let id = fs::read_dir(scene.file("work-items/open"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert!(
        fs::read_to_string(id.join("thread.md"))
            .unwrap()
            .contains("| comment | Ann\n\n> seen\n")
    );
    let again = run(
        &scene,
        "p3",
        &[],
        &[
            call("MemorySearch", json!({})),
            call("MemoryForget", json!({"name": "a"})),
        ],
    );
    assert_eq!(again[0].1, "1 note");
    assert_eq!(
        (notes(&scene).len(), kept.join("a.md").exists()),
        (1, false),
        "the same project from another directory"
    );
    scene
        .yoi(&["undo", "p2"])
        .ends(0)
        .prints(&["removed: ", "item.md", "thread.md"]);
    assert!(
        !id.exists() && !scene.file("work-items/open").exists(),
        "the folder was made for it, too"
    );
    assert!(scene.file("work-items").exists());
    scene.sound("p2");
}

/// Everything below a directory: files with their content, and directories.
fn tree(at: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push((path.clone(), None));
            all.extend(tree(&path));
        } else {
            all.push((path.clone(), Some(fs::read(&path).unwrap())));
        }
    }
    all.sort();
    all
}

/// A project with one work item that holds more than the tools know of, and where it lies.
fn with_item(scene: &Scene) -> PathBuf {
    fs::create_dir_all(scene.file("work-items")).unwrap();
    scene.config(ON);
    run(scene, "made", &[], &[item()]);
    let id = fs::read_dir(scene.file("work-items/open"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::create_dir_all(id.join("artifacts/deep")).unwrap();
    fs::create_dir_all(id.join("artifacts/empty")).unwrap();
    fs::write(id.join("artifacts/deep/plan.bin"), [0, 255, 10]).unwrap();
    fs::File::create(id.join("artifacts/large"))
        .unwrap()
        .set_len(11 << 20)
        .unwrap();
    symlink("deep/plan.bin", id.join("artifacts/link")).unwrap();
    id
}

fn to(status: &str) -> Value {
    call(
        "WorkItemUpdate",
        json!({"id": "mend-it", "status": status, "comment": "so"}),
    )
}

#[test]
fn undo_moves_a_work_item_back_with_its_files() {
    for other in [false, true] {
        let scene = Scene::new();
        let id = with_item(&scene);
        if other {
            fs::create_dir_all(scene.file("work-items/closed/20200101-000000-mine")).unwrap();
        }
        let before = tree(&scene.file("work-items"));
        let ended = run(&scene, "moves", &[], &[to("pending"), to("closed")]);
        assert!(ended.iter().all(|(status, _)| status == "ok"), "{ended:?}");
        let closed = scene
            .file("work-items/closed")
            .join(id.file_name().unwrap());
        assert!(!id.exists() && closed.join("artifacts/large").exists());
        let moved =
            |from: &Path, to: &Path| format!("moved: {} to {}", from.display(), to.display());
        scene
            .yoi(&["diff", "moves"])
            .ends(0)
            .prints(&[&moved(&id, &closed), "so"]);
        let json = scene.yoi(&["diff", "moves", "--json"]).ends(0).json();
        assert_eq!(json["moved"], json!([{"from": id, "to": closed}]));
        scene
            .yoi(&["undo", "moves"])
            .ends(0)
            .prints(&["restored: ", "moved back: "]);
        assert_eq!(tree(&scene.file("work-items")), before);
        scene
            .yoi(&["undo", "moves"])
            .ends(0)
            .prints(&["nothing to undo"]);
        assert_eq!(tree(&scene.file("work-items")), before);
        scene
            .yoi(&["log", "moves"])
            .ends(0)
            .prints(&["  c00000001 moves ", "  undo: moves "]);
        scene.sound("moves");
    }
}

// One that was made and moved is gone with all that was made for it, and nothing else.
#[test]
fn a_work_item_that_was_made_and_moved_is_gone() {
    for beside in [
        None,
        Some("work-items/open/mine"),
        Some("work-items/closed/mine"),
    ] {
        let scene = Scene::new();
        fs::create_dir_all(scene.file("work-items")).unwrap();
        scene.config(ON);
        let ended = run(&scene, "both", &[], &[item(), to("closed")]);
        assert!(ended.iter().all(|(status, _)| status == "ok"), "{ended:?}");
        beside.inspect(|beside| fs::create_dir_all(scene.file(beside)).unwrap());
        scene.yoi(&["undo", "both"]).ends(0).prints(&["removed: "]);
        let left: Vec<PathBuf> = tree(&scene.file("work-items"))
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        let mine: Vec<PathBuf> = beside.iter().map(|beside| scene.file(beside)).collect();
        let above: Vec<PathBuf> = mine
            .iter()
            .map(|path| path.parent().unwrap().to_owned())
            .collect();
        assert_eq!(left, [above, mine].concat());
    }
}

// What a person did meanwhile stays, and the item stays in one place.
#[test]
fn a_moved_work_item_changed_since_stays_in_one_place() {
    for edit in [true, false] {
        let scene = Scene::new();
        let id = with_item(&scene);
        let moves = [to("pending"), to("closed"), to("pending")];
        run(
            &scene,
            "moves",
            &[],
            if edit { &moves } else { &moves[..1] },
        );
        let name = id.file_name().unwrap();
        let pending = scene.file("work-items/pending").join(name);
        let mine = if edit {
            pending.clone()
        } else {
            scene.file("work-items/closed").join(name)
        };
        if edit {
            fs::write(pending.join("thread.md"), "mine").unwrap();
        } else {
            fs::create_dir_all(scene.file("work-items/closed")).unwrap();
            fs::rename(&pending, &mine).unwrap();
        }
        let before = tree(&mine);
        let undone = scene.yoi(&["undo", "moves"]).ends(1);
        let why = if edit {
            "thread.md was modified after this pod's change"
        } else {
            "is no longer where it was moved to"
        };
        undone
            .prints(&["skipped: ", why])
            .says(&["1 path was skipped"]);
        assert_eq!(tree(&mine), before, "nothing of it is touched");
        assert!(
            !id.exists() && (edit || !pending.exists()),
            "it stands in one folder"
        );
    }
}

// As after a crash between the record of the move and the move, or where somebody moved it back.
#[test]
fn a_work_item_that_stands_where_it_stood_is_taken_back_there() {
    let scene = Scene::new();
    let id = with_item(&scene);
    let before = tree(&scene.file("work-items"));
    run(&scene, "moves", &[], &[to("pending")]);
    fs::rename(
        scene
            .file("work-items/pending")
            .join(id.file_name().unwrap()),
        &id,
    )
    .unwrap();
    let diff = scene.yoi(&["diff", "moves"]).ends(0).prints(&["> so"]);
    assert!(!diff.out.contains("moved: "), "{}", diff.out);
    scene
        .yoi(&["undo", "moves"])
        .ends(0)
        .prints(&["restored: "]);
    assert_eq!(tree(&scene.file("work-items")), before);
}

// What somebody else wrote between two changes of a pod is no change of the pod.
#[test]
fn what_somebody_else_wrote_in_between_is_not_taken_back() {
    let scene = Scene::new();
    let id = with_item(&scene);
    run(&scene, "moves", &[], &[to("pending")]);
    let pending = scene
        .file("work-items/pending")
        .join(id.file_name().unwrap());
    let text = fs::read_to_string(pending.join("item.md")).unwrap();
    fs::write(pending.join("item.md"), format!("{text}Mine.\n")).unwrap();
    let again = [
        json!({"text": "-"}),
        json!({"text": "-"}),
        to("closed"),
        json!({"text": "done"}),
    ];
    scene.yoi(&[
        "run",
        "--pod",
        "moves",
        "-m",
        &scene.script("again.jsonl", &again),
        "go on",
    ]);
    let closed = scene
        .file("work-items/closed")
        .join(id.file_name().unwrap());
    let before = tree(&closed);
    assert!(
        fs::read_to_string(closed.join("item.md"))
            .unwrap()
            .contains("Mine.")
    );
    scene
        .yoi(&["diff", "moves"])
        .ends(0)
        .prints(&["modified by something else between this pod's changes"]);
    let undone = scene
        .yoi(&["undo", "moves"])
        .ends(1)
        .prints(&["modified by something else between this pod's changes; `--to "]);
    assert_eq!(tree(&closed), before);
    let to = undone
        .out
        .split("`--to ")
        .nth(1)
        .unwrap()
        .split('`')
        .next()
        .unwrap();
    scene.yoi(&["undo", "moves", "--to", to]).ends(0);
    assert!(
        fs::read_to_string(closed.join("item.md"))
            .unwrap()
            .contains("Mine."),
        "back to what they wrote"
    );
}

// All that a pod made of an item is gone: there is nothing to take back but what was made for it.
#[test]
fn a_work_item_that_somebody_else_removed_stays_gone() {
    let scene = Scene::new();
    fs::create_dir_all(scene.file("work-items")).unwrap();
    scene.config(ON);
    run(&scene, "both", &[], &[item(), to("closed")]);
    let id = fs::read_dir(scene.file("work-items/closed"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::remove_dir_all(&id).unwrap();
    scene
        .yoi(&["undo", "both"])
        .ends(0)
        .prints(&["nothing to undo"]);
    assert!(!id.exists());
}

#[test]
fn without_the_directory_the_run_continues_without_work_items() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:work-item\"]\nenabled = true\n");
    assert_ne!(run(&scene, "p4", &[], &[item()])[0].0, "ok");
    scene
        .yoi(&["features", "p4"])
        .ends(0)
        .prints(&["✗ builtin:work-item", "this project has no directory"]);
    // Not one that is somewhere else either.
    fs::create_dir(scene.path("elsewhere")).unwrap();
    symlink(scene.path("elsewhere"), scene.file("work-items")).unwrap();
    assert_ne!(run(&scene, "p5", &[], &[item()])[0].0, "ok");
    scene
        .yoi(&["features", "p5"])
        .ends(0)
        .prints(&["✗ builtin:work-item", "this project has no directory"]);
    assert_eq!(fs::read_dir(scene.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn nothing_is_written_in_a_run_that_only_reads() {
    let scene = Scene::new();
    fs::create_dir_all(scene.file("work-items")).unwrap();
    scene.config(ON);
    let ended = run(
        &scene,
        "p6",
        &["--read-only"],
        &[call("WorkItemList", json!({})), item(), note()],
    );
    let status: Vec<&str> = ended.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(status[0], "ok", "{ended:?}");
    assert!(
        status[1..].iter().all(|status| *status != "ok"),
        "{ended:?}"
    );
    assert_eq!(fs::read_dir(scene.file("work-items")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&notes(&scene)[0]).unwrap().count(), 0);
}

#[test]
fn a_write_policy_holds_for_work_items() {
    let scene = Scene::new();
    fs::create_dir_all(scene.file("work-items")).unwrap();
    fs::create_dir_all(scene.file("src")).unwrap();
    scene.config(&format!(
        "{ON}[features.\"builtin:write-policy\"]\nenabled = true\nscopes = [\"src\"]\n"
    ));
    // From a directory in which the name of the records would be below the scope.
    let ended = run(
        &scene,
        "p7",
        &["-C", scene.file("src").to_str().unwrap()],
        &[item()],
    );
    assert!(
        ended[0].0 == "refused" && ended[0].1.contains("builtin:write-policy"),
        "{ended:?}"
    );
    scene.config(&format!(
        "{ON}[[permissions.rules]]\ntool = \"WorkItemCreate\"\ndecision = \"deny\"\n"
    ));
    let ended = run(&scene, "p8", &[], &[item()]);
    assert_eq!(ended[0].0, "refused", "a rule can name the tool: {ended:?}");
}
