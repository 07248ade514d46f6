//! Wall clocks that are off: before 1970, far ahead, jumping. Only dates suffer.

use crate::endpoint::{Endpoint, text};
use crate::scene::{Scene, finish};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Takes the place of the C library's call: the wall clock begins at so many seconds and jumps by so many at each look.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static long looks;
int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    const char *at = getenv("CLOCK_AT"), *jump = getenv("CLOCK_JUMP");
    if (clock == CLOCK_REALTIME && at && jump)
        now->tv_sec = atoll(at) + atoll(jump) * (__sync_fetch_and_add(&looks, 1) % 5);
    return result;
}
"#;

pub(crate) fn library(dir: &Path) -> PathBuf {
    let file = dir.join("clock.so");
    let mut cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-xc", "-", "-o"])
        .arg(&file)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    cc.stdin
        .take()
        .unwrap()
        .write_all(CLOCK.as_bytes())
        .unwrap();
    assert!(cc.wait().unwrap().success());
    file
}

#[test]
fn no_clock_ends_the_program() {
    let scene = Scene::new();
    let at = tempfile::tempdir().unwrap();
    let library = library(at.path());
    let endpoint = Endpoint::start(|_, _| text("hello"));
    let features = "[features.\"builtin:work-item\"]\nenabled = true\n[features.\"builtin:memory\"]\nenabled = true\n";
    // A server behind TLS that is not there: what judges certificates reads the clock, too.
    let tls = "[providers.safe]\napi = \"openai-chat\"\nbase_url = \"https://127.0.0.1:9/v1\"\nattempts = 1\n";
    scene.config(&(endpoint.config("") + tls + features));
    let model = scene.script(
        "s.jsonl",
        &[
            json!({ "calls": [{ "name": "Write", "arguments": { "path": "a.txt", "content": "a" } },
                              { "name": "Bash", "arguments": { "command": "cat a.txt" } }] }),
            json!({ "text": "done" }),
        ],
    );
    let yoi = |args: &[&str], clock: (&str, &str)| {
        let mut command = scene.command(args);
        command
            .env("LD_PRELOAD", &library)
            .env("CLOCK_AT", clock.0)
            .env("CLOCK_JUMP", clock.1)
            .env("FAKE_KEY", "k");
        let done = finish(command.spawn().unwrap());
        for said in [&done.err, &done.out] {
            assert!(!said.contains("panicked"), "{args:?} at {clock:?}:\n{said}");
        }
        done
    };
    let clocks = [
        ("-1", "0"),
        ("-62135596800", "0"),
        ("253402300800", "0"),
        ("9223372036854", "0"),
        ("1700000000", "-1000000000"),
        ("1700000000", "100000000000"),
    ];
    for (n, clock) in clocks.into_iter().enumerate() {
        let pod = format!("p{n}");
        yoi(&["run", "--pod", &pod, "-m", &model, "go"], clock).ends(0);
        yoi(&["run", "--pod", "shared", "go"], clock).ends(0);
        yoi(
            &["run", "--ephemeral", "-m", "record:fake/one", "go"],
            clock,
        )
        .ends(0);
        yoi(&["run", "-m", "safe/x", "go"], clock).ends(5);
        for args in [
            &["log", &pod][..],
            &["ls"],
            &["verify", &pod],
            &["features", &pod],
            &["undo", &pod],
        ] {
            yoi(args, clock).ends(0);
        }
        yoi(&["doctor"], clock);
    }
    scene.sound("shared");
}
