//! Jobs of a pod that stays, with real processes: `yoi ps`, a killed host, and permission.

use crate::scene::{Scene, fifo, finish, gone, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Child;
use std::time::{Duration, Instant};

/// Ignores SIGTERM, and starts a process that leaves its group, its session and its environment.
const STUBBORN: &str = r#"trap '' TERM
setsid env -i /bin/sh -c '/bin/sh -c "echo \$\$ > bare; exec /bin/sleep 600" &' >/dev/null 2>&1 </dev/null
echo $$ > started; while :; do sleep 600; done"#;

fn start(command: &str) -> Value {
    json!({ "calls": [{ "name": "JobStart", "arguments": { "command": command } }] })
}

fn scene(answers: &[Value]) -> (Scene, String) {
    let scene = Scene::new();
    scene.config("[features.\"builtin:jobs\"]\nenabled = true\n");
    fifo(&scene.file("started"));
    fifo(&scene.file("bare"));
    let model = scene.script("jobs.jsonl", answers);
    (scene, model)
}

fn host(scene: &Scene, args: &[&str]) -> Child {
    let host = scene
        .command(&[&["start", "p", "--foreground", "--quiet"], args].concat())
        .spawn()
        .unwrap();
    while !scene.pod("p").join("sock").exists() {
        std::thread::yield_now();
    }
    host
}

/// A pod with a stubborn job: the process of the pod, and the two of the job.
fn with_job(scene: &Scene, model: &str, flags: &[&str]) -> (Child, [String; 2]) {
    let host = host(scene, &[&["-m", model], flags].concat());
    scene.yoi(&["send", "p", "go"]).ends(0);
    let left = ["bare", "started"].map(|name| reached(&scene.file(name)).trim().to_owned());
    (host, left)
}

fn until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "it took too long"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn notices(scene: &Scene) -> Vec<String> {
    let queued = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "notification_queued");
    queued
        .map(|record| record["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_killed_host_leaves_no_job_and_the_next_start_tells_its_end_once() {
    let (scene, model) = scene(&[start(STUBBORN), json!({ "text": "started" })]);
    // In the sandbox the kernel ends them, where it has namespaces.
    let (mut pod, left) = with_job(&scene, &model, &["--sandbox", "off", "--allow", "Bash"]);
    until(|| {
        scene
            .records("p")
            .iter()
            .any(|record| record["k"] == "turn_finished")
    });
    let listed = scene.yoi(&["ps", "p", "--json"]).ends(0).json();
    let owners: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["owner"] == "job-1")
        .collect();
    assert!(owners.len() >= 2, "{listed}");
    pod.kill().unwrap();
    pod.wait().unwrap();
    assert!(
        !left.iter().any(|pid| gone(pid)),
        "they ended with it; this shows nothing"
    );
    for _ in 0..2 {
        let answers: Vec<_> = (0..3).map(|_| json!({ "text": "told" })).collect();
        let again = host(&scene, &["-m", &scene.script("again.jsonl", &answers)]);
        // The socket of the killed host is still there.
        until(|| left.iter().all(|pid| gone(pid)));
        until(|| {
            notices(&scene).len() == 1
                && scene.yoi(&["status", "p", "--json"]).ends(0).json()["state"] == "idle"
        });
        scene.yoi(&["stop", "p"]).ends(0);
        finish(again).ends(0);
    }
    let [notice] = &notices(&scene)[..] else {
        panic!("{:?}", notices(&scene))
    };
    assert!(
        notice.contains("ended by recovery") && notice.ends_with("Its output is lost."),
        "{notice}"
    );
    let ends: Vec<_> = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "process")
        .collect();
    assert_eq!((ends.len(), &ends[1]["ended"]["how"]), (2, &json!("lost")));
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["job 1 started: trap", "job 1: ended by recovery"]);
    scene.sound("p");
}

/// The processes of a confined job went on after `kill -9` of its pod, until the next start.
#[test]
fn with_namespaces_nothing_outlives_a_killed_host() {
    let (scene, model) = scene(&[start(STUBBORN), json!({ "text": "started" })]);
    let (mut pod, _left) = with_job(&scene, &model, &[]);
    until(|| {
        scene
            .records("p")
            .iter()
            .any(|record| record["k"] == "turn_finished")
    });
    // Of this pod alone: by the first part of their mark, which is its session.
    let session = scene.records("p")[0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let marked = |mark: &str| {
        let is_marked = |entry: &std::fs::DirEntry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|vars| String::from_utf8_lossy(&vars).contains(mark))
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(is_marked)
            .count()
    };
    let of_pod = format!("YOI_CALL={session}/");
    let has_helper = marked(&format!("{of_pod}1/+helper")) > 0;
    assert!(marked(&of_pod) > 0, "{of_pod}");
    pod.kill().unwrap();
    pod.wait().unwrap();
    if has_helper {
        until(|| marked(&of_pod) == 0);
        assert!(
            !std::fs::read_to_string("/proc/self/mountinfo")
                .unwrap()
                .contains("/view")
        );
    }
}

#[test]
fn a_stop_ends_a_job_that_ignores_it_within_the_grace() {
    let (scene, model) = scene(&[start(STUBBORN), json!({ "text": "started" })]);
    let (pod, left) = with_job(&scene, &model, &[]);
    until(|| {
        scene
            .records("p")
            .iter()
            .any(|record| record["k"] == "turn_finished")
    });
    let began = Instant::now();
    scene.yoi(&["stop", "p"]).ends(0).prints(&["p is stopped"]);
    finish(pod).ends(0);
    assert!(left.iter().all(|pid| gone(pid)));
    assert!(
        began.elapsed() < Duration::from_secs(18),
        "the stop was not orderly: {:?}",
        began.elapsed()
    );
    let records = scene.records("p");
    let end = records
        .iter()
        .rfind(|record| record["k"] == "process")
        .unwrap();
    assert_eq!(
        (&end["ended"]["how"], &records.last().unwrap()["k"]),
        (&json!("pod_stopped"), &json!("host_stopped"))
    );
    scene.sound("p");
}

/// A rule about the shell is about the commands of jobs, too.
#[test]
fn rules_about_commands_are_about_those_of_jobs() {
    let answers = [
        start("git push origin main"),
        start("echo ran > ran"),
        json!({ "text": "done" }),
    ];
    let (scene, model) = scene(&answers);
    scene.config(
        "[features.\"builtin:jobs\"]\nenabled = true\n[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"git\"\n\
         subcommand = [\"push\"]\ndecision = \"deny\"\n",
    );
    let pod = host(&scene, &["-m", &model]);
    scene.yoi(&["send", "p", "--wait", "go"]).ends(0);
    until(|| scene.file("ran").exists());
    let verdicts: Vec<_> = scene
        .records("p")
        .into_iter()
        .filter(|record| record["call"] == "c00000001" && record["k"] == "verdict")
        .collect();
    assert!(
        verdicts[0].to_string().contains("is refused"),
        "{verdicts:?}"
    );
    signal(pod.id(), Signal::TERM);
    finish(pod);
}
