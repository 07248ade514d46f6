//! Bash, in real processes. Where the kernel cannot confine, the tests of the sandbox say that it is refused.

use crate::host::{FakeHost, Project, ambient, args, block_on, context, failed, ok};
use authority::{Access, Confinement, EnvPolicy, GitGuard, SandboxMode, Spawner, support};
use llm_worker::{CallId, ErrorKind, ToolResult};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tools::{Shell, bash};

fn shell(project: &Project, mode: SandboxMode) -> Option<Arc<Shell>> {
    let confinement = Confinement {
        mode,
        read: Vec::new(),
        write: vec![project.root()],
    };
    let env = EnvPolicy::inherit(&ambient(), &[]).unwrap();
    // What is left of a call is found by its tag: tests that run together must not share one.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let tag = format!("tests/{}", NEXT.fetch_add(1, Ordering::Relaxed));
    match Spawner::new(&ambient(), confinement, env, tag) {
        Ok(spawner) => {
            let guard = GitGuard::new(
                &ambient(),
                &[project.root()],
                None,
                |_| false,
                |_| "a flag".to_owned(),
            )
            .unwrap();
            let spawner = spawner.with_git_guard(Arc::new(guard));
            Some(Arc::new(Shell::new(
                project.workspace(Access::ReadWrite),
                spawner,
                "sh",
            )))
        }
        Err(error) => {
            assert!(
                !support().in_force(mode) && error.kind() == authority::ErrorKind::Unavailable,
                "{error}"
            );
            None
        }
    }
}

fn run(project: &Project, mode: SandboxMode, call: Value) -> Option<(ToolResult, String)> {
    let host = Arc::new(FakeHost::default());
    let live = shell(project, mode)?;
    let result = block_on(bash::run(live.clone(), args(call), context(&host)));
    let text = format!("{}{}", host.text(), notes(&result));
    Some((result, text))
}

/// The tool's own words, which stand behind the output.
fn notes(result: &ToolResult) -> &str {
    result
        .as_ref()
        .map_or_else(|error| &error.content, |output| &output.content)
}

fn off(project: &Project, call: Value) -> (ToolResult, String) {
    run(project, SandboxMode::Off, call).unwrap()
}

#[test]
fn output_is_merged_in_order_and_the_summary_says_how_it_ended() {
    let p = Project::new(&[("f", b"x")]);
    let (result, text) = off(
        &p,
        json!({"command": "echo one; echo two >&2; ls; read x || echo closed"}),
    );
    let got = ok(result);
    assert!(got.summary.starts_with("exit 0 in ") && got.content.is_empty());
    assert_eq!(text, "one\ntwo\nf\nclosed\n");

    let (result, text) = off(&p, json!({"command": "echo partial; exit 7"}));
    assert!(failed(result, ErrorKind::FixInput).starts_with("exit 7 in "));
    assert_eq!(text, "partial\n");

    let (result, _) = off(&p, json!({"command": "kill -9 $$"}));
    assert!(failed(result, ErrorKind::FixInput).starts_with("killed by signal 9 "));

    let (result, text) = off(
        &p,
        json!({"command": "echo begun; sleep 60", "timeout_s": 1}),
    );
    assert_eq!(
        failed(result, ErrorKind::Exhausted),
        "stopped at its time limit of 1 s"
    );
    assert_eq!(text, "begun\n");
}

#[test]
fn what_is_left_running_is_ended_and_named() {
    let p = Project::new(&[]);
    // In a session of its own: what dies with the call's group is counted only by a subreaper, which a test is not.
    let (result, text) = off(&p, json!({"command": "setsid sleep 61 & printf started"}));
    ok(result);
    assert_eq!(
        text,
        "started[ended with the call: 1 process that still ran]\n"
    );
}

#[test]
fn a_host_that_cannot_keep_the_output_ends_the_call() {
    let p = Project::new(&[]);
    let host = Arc::new(FakeHost {
        refuses_output: true,
        ..FakeHost::default()
    });
    let live = shell(&p, SandboxMode::Off).unwrap();
    let result = block_on(bash::run(
        live.clone(),
        args(json!({"command": "echo x; sleep 60"})),
        context(&host),
    ));
    assert_eq!(failed(result, ErrorKind::Unavailable), "the disk is full");

    // Its changes are told nevertheless.
    let p = Project::new(&[(".git/config", b"[core]\n")]);
    let live = shell(&p, SandboxMode::Off).unwrap();
    let command = json!({"command": "echo pager=x >> .git/config; echo x; sleep 60"});
    let result = block_on(bash::run(live.clone(), args(command), context(&host)));
    let message = failed(result, ErrorKind::Unavailable);
    assert!(
        message.starts_with("the disk is full; restored core.pager in .git/config"),
        "{message}"
    );
    assert_eq!(
        (host.warnings().len(), p.get(".git/config").as_str()),
        (1, "[core]\\n")
    );
}

// The command itself says, through a FIFO, that it runs; only then it is cancelled.
#[test]
fn a_cancelled_command_ends() {
    let p = Project::new(&[]);
    let live = shell(&p, SandboxMode::Off).unwrap();
    let fifo = p.root().join("ready");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let cx = context(&Arc::default());
    let cancel = cx.cancel.clone();
    let waiter = std::thread::spawn(move || {
        std::fs::read(fifo).unwrap();
        cancel.cancel();
    });
    let result = block_on(bash::run(
        live.clone(),
        args(json!({"command": "echo > ready; sleep 60"})),
        cx,
    ));
    assert!(failed(result, ErrorKind::Cancelled).starts_with("cancelled"));
    waiter.join().unwrap();
}

// Each writes to the other's FIFO and reads its own: one after the other, neither would end.
#[test]
fn two_calls_overlap() {
    let p = Project::new(&[]);
    let live = shell(&p, SandboxMode::Off).unwrap();
    for name in ["one", "two"] {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(p.root().join(name))
                .status()
                .unwrap()
                .success()
        );
    }
    // Calls have numbers of their own: what ends with a call is found by its number.
    let call = |number: u64, command: &str| {
        let mut cx = context(&Arc::default());
        cx.call = CallId::new(number).unwrap();
        let args = args(json!({"command": command, "timeout_s": 20}));
        bash::run(live.clone(), args, cx)
    };
    block_on(async {
        let (one, two) = tokio::join!(
            call(1, "echo > one; cat two"),
            call(2, "cat one; echo > two")
        );
        ok(one);
        ok(two);
    });
}

#[test]
fn the_sandbox_is_explained_where_it_stops_something() {
    let p = Project::new(&[
        (".git/config", b"[core]\n"),
        (".git/hooks/old", b"x"),
        (".git/HEAD", b"x"),
    ]);
    let mode = SandboxMode::WorkspaceWrite;
    let script = "import socket; socket.socket()";
    let call = json!({"command": format!("python3 -c '{script}'")});
    let Some((result, text)) = run(&p, mode, call.clone()) else {
        println!("no confinement on this kernel: refused, as it must be");
        return;
    };
    // Without Python, the shell says so with 127. Nothing counts refusals here, so the program names the network itself.
    if !failed(result, ErrorKind::FixInput).starts_with("exit 127") {
        assert!(text.contains("Network is unreachable"), "{text}");
        assert!(!text.contains("in the sandbox"), "{text}");
        let (_, text) = off(&p, call);
        assert!(!text.contains("in the sandbox"), "{text}");
    }

    let hooks = "echo 'pager = x' >> .git/config; echo y > .git/hooks/new; rm .git/hooks/old; echo z > .git/HEAD";
    let host = Arc::new(FakeHost::default());
    let live = shell(&p, mode).unwrap();
    let result = block_on(bash::run(
        live.clone(),
        args(json!({"command": hooks})),
        context(&host),
    ));
    let want = [
        "restored core.pager in .git/config, which a command changed: git would run it outside of the sandbox; no copy was kept: there is no place to keep it; help: a flag",
        "removed .git/hooks/new, which a command created: git would run it outside of the sandbox; no copy was kept: there is no place to keep it; help: a flag",
        "a command removed .git/hooks/old; no copy was kept: there is no place to keep it",
    ];
    // The model and the person are told the same.
    assert_eq!(host.warnings(), want);
    assert_eq!(
        notes(&result),
        want.map(|text| format!("[{text}]\n")).concat()
    );
    let (_, text) = run(&p, mode, json!({"command": "cat .git/config > /dev/null"})).unwrap();
    assert_eq!(text, "");
}
