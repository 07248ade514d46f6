//! What Bash makes of a command, its end and its output.

use super::*;
use serde_json::json;

#[test]
fn a_refused_path_is_one_that_the_host_knows_of() {
    // There, outside of the project: all below /opt/x and /srv, but what is gone. Hidden from commands: /opt/hidden.
    let found = |output: &str| {
        let is_there = |path: &Path| {
            let is_below = path.starts_with("/opt/x") || path.starts_with("/srv");
            is_below && !path.ends_with("gone")
        };
        refused_path(output, |path| PathFacts {
            leads_to: Some(path.to_owned()).filter(|path| is_there(path)),
            is_in: path.parent().is_some_and(is_there),
            is_hidden: path.starts_with("/opt/hidden"),
            is_written: path.starts_with("/opt/x/p"),
        })
    };
    for (output, path) in [
        (
            "touch: cannot touch '/opt/x/y': Permission denied",
            Some("/opt/x/y"),
        ),
        ("cat: /opt/x/y: Permission denied", Some("/opt/x/y")),
        (
            "PermissionError: [Errno 13] Permission denied: '/opt/x'",
            Some("/opt/x"),
        ),
        (
            "bash: line 1: /srv/gone: Permission denied",
            Some("/srv/gone"),
        ),
        (
            "ok\nerror: failed to write `/srv/a`: Read-only file system (os error 30)",
            Some("/srv/a"),
        ),
        (
            "cat: /a/b: Permission denied\ncat: /srv/b: Permission denied",
            Some("/srv/b"),
        ),
        // Words alone are no refusal.
        ("cat: /mnt/no/where: Permission denied", None),
        (
            "fatal: not a git repository: /opt/x/.git/worktrees/y",
            Some("/opt/x/.git/worktrees/y"),
        ),
        ("fatal: not a git repository: /opt/x/gone", None),
        (
            "fatal: not a git repository (or any of the parent directories): .git",
            None,
        ),
        ("touch: cannot touch '/etc/x': Permission denied", None),
        ("touch: cannot touch '/opt/x/p/y': Permission denied", None),
        ("bash: line 1: ./run.sh: Permission denied", None),
        (
            "ls: cannot access '/opt/x': No such file or directory",
            None,
        ),
        (
            "ls: cannot access '/opt/hidden/x': No such file or directory",
            Some("/opt/hidden/x"),
        ),
    ] {
        assert_eq!(found(output), path.map(PathBuf::from), "{output}");
    }
}

#[test]
fn the_deadline_is_the_shorter_one_and_leaves_a_margin() {
    let judged = |timeout_s, host| {
        let args = Args {
            command: "true".into(),
            description: None,
            timeout_s,
            escalate: None,
        };
        judge(&args, Duration::from_secs(host))
            .map(|deadline| deadline.as_secs())
            .ok()
    };
    let table = [
        (120, 600, Some(120)),
        (3600, 600, Some(595)),
        (120, 5, Some(5)),
        (0, 600, None),
        (3601, 9999, None),
    ];
    for (timeout_s, host, want) in table {
        assert_eq!(judged(timeout_s, host), want, "{timeout_s} of {host}");
    }
}

#[test]
fn an_escalation_is_a_kind_and_a_bounded_reason() {
    let parse = |raw: &str| llm_worker::tool::parse_arguments::<Args>(NAME, raw);
    let with = |escalate: &str| parse(&format!(r#"{{"command":"x","escalate":{escalate}}}"#));
    let (args, canonical) = with(r#"{"to":"network","reason":"to fetch"}"#).unwrap();
    assert_eq!(
        &*canonical,
        r#"{"command":"x","escalate":{"reason":"to fetch","to":"network"},"timeout_s":120}"#
    );
    let shell = Touch::Shell("x".to_owned());
    assert_eq!(
        touches(&args),
        [
            Touch::Escalate(Escalation::Network, "to fetch".to_owned()),
            shell.clone()
        ]
    );
    let (args, _) = with(r#"{"to":"network","hosts":["a.org","B.net"],"reason":"why"}"#).unwrap();
    let connect = |host: &str| Touch::Connect(host.to_owned(), "why".to_owned());
    assert_eq!(
        touches(&args),
        [connect("a.org"), connect("B.net"), shell.clone()]
    );
    let (args, _) = with(r#"{"to":"unconfined","hosts":["a.org"],"reason":"why"}"#).unwrap();
    assert_eq!(
        touches(&args),
        [
            Touch::Escalate(Escalation::Unconfined, "why".to_owned()),
            shell.clone()
        ]
    );
    assert!(
        judge(&args, Duration::MAX)
            .unwrap_err()
            .message
            .contains("goes with `network`")
    );
    for host in [
        "*",
        "*.org",
        "10.0.0.1",
        "127.1",
        "[::1]",
        "a.org:22",
        "https://a.org",
        "",
        "a b",
        "a.org/x",
    ] {
        let error = with(&json!({ "to": "network", "hosts": [host], "reason": "x" }).to_string())
            .unwrap_err();
        assert!(
            error.to_string().contains("/escalate/hosts: must be names"),
            "{host}: {error}"
        );
    }
    let many = vec!["a.org"; MAX_HOSTS + 1];
    let error =
        with(&json!({ "to": "network", "hosts": many, "reason": "x" }).to_string()).unwrap_err();
    assert!(error.to_string().contains("at most 16"), "{error}");
    let (args, canonical) = with("null").unwrap();
    assert_eq!(
        (&*canonical, touches(&args)),
        (r#"{"command":"x","timeout_s":120}"#, vec![shell])
    );
    let long = "x".repeat(MAX_REASON + 1);
    let bad = [
        (
            r#"{"to":"unconfined"}"#.to_owned(),
            "missing field `reason`",
        ),
        (r#"{"reason":"x"}"#.to_owned(), "missing field `to`"),
        (
            r#"{"to":"root","reason":"x"}"#.to_owned(),
            "expected `network` or `unconfined`",
        ),
        (
            r#"{"to":"network","reason":" "}"#.to_owned(),
            "/escalate/reason: say why",
        ),
        (
            format!(r#"{{"to":"network","reason":"{long}"}}"#),
            "/escalate/reason: has 501 bytes",
        ),
        (
            r#"{"to":"network","reason":"x","scope":"pod"}"#.to_owned(),
            "/escalate/scope: unknown field",
        ),
        ("true".to_owned(), "/escalate: invalid type"),
    ];
    for (escalate, problem) in bad {
        let error = with(&escalate).unwrap_err().to_string();
        assert!(error.contains(problem), "{escalate}: {error}");
    }
    assert!(with(&format!(r#"{{"to":"network","reason":"{}"}}"#, &long[1..])).is_ok());
}

// codex#33452 and others: models that learned another harness send `timeout` in milliseconds, and a `description`.
#[test]
fn arguments_from_habit_are_taken() {
    let table = [
        (
            r#"{"command":"x","timeout":120000}"#,
            r#"{"command":"x","timeout_s":120}"#,
        ),
        (
            r#"{"command":"x","timeout":1500.0}"#,
            r#"{"command":"x","timeout_s":2}"#,
        ),
        (
            r#"{"command":"x","timeout_ms":60000}"#,
            r#"{"command":"x","timeout_s":60}"#,
        ),
        (
            r#"{"command":"x","timeout_s":7.0,"timeout":null}"#,
            r#"{"command":"x","timeout_s":7}"#,
        ),
        (
            r#"{"command":"x","description":"Count"}"#,
            r#"{"command":"x","description":"Count","timeout_s":120}"#,
        ),
    ];
    for (raw, wanted) in table {
        let (_, canonical) = llm_worker::tool::parse_arguments::<Args>(NAME, raw).unwrap();
        assert_eq!(&*canonical, wanted);
        assert_eq!(
            &*llm_worker::tool::parse_arguments::<Args>(NAME, wanted)
                .unwrap()
                .1,
            wanted
        );
    }
    for (raw, problem) in [
        (r#"{"command":"x","timeout":-1}"#, "/timeout: invalid value"),
        (
            r#"{"command":"x","timeout":1000,"timeout_ms":1}"#,
            "duplicate field",
        ),
        (
            r#"{"command":"x","description":1}"#,
            "/description: invalid type",
        ),
        (
            r#"{"command":"x","describe":"x"}"#,
            "/describe: unknown field",
        ),
    ] {
        let error = llm_worker::tool::parse_arguments::<Args>(NAME, raw)
            .unwrap_err()
            .to_string();
        assert!(error.contains(problem), "{raw}: {error}");
    }
    let schema = llm_worker::tool::canonical_schema::<Args>();
    assert!(
        schema.contains("description\":{")
            && !schema.contains("\"timeout\"")
            && !schema.contains("timeout_ms"),
        "{schema}"
    );
}

#[test]
fn a_result_says_what_became_of_an_escalation() {
    let table = [
        (false, None, true, None),
        (
            true,
            Some(Beyond::Network),
            false,
            Some("ran in the sandbox, with the network"),
        ),
        (
            true,
            Some(Beyond::Hosts(vec!["a.org".parse().unwrap()])),
            true,
            Some("ran in the sandbox, with a way to a.org"),
        ),
        (
            true,
            Some(Beyond::Unconfined),
            false,
            Some("ran outside the sandbox"),
        ),
        (
            true,
            None,
            false,
            Some("changed nothing: there is no sandbox"),
        ),
        (
            true,
            None,
            true,
            Some("changed nothing: ran in the sandbox"),
        ),
    ];
    for (wants, beyond, confined, words) in table {
        let note = escalated(wants, beyond.as_ref(), confined);
        assert_eq!(note.is_some(), words.is_some());
        assert!(
            note.unwrap_or_default().contains(words.unwrap_or_default()),
            "{words:?}"
        );
    }
}

#[test]
fn bad_commands_are_refused() {
    for command in ["", " \n", "a\0b", &"x".repeat(MAX_COMMAND + 1)] {
        let args = Args {
            command: command.to_owned(),
            description: None,
            timeout_s: 1,
            escalate: None,
        };
        assert_eq!(
            judge(&args, Duration::from_secs(9)).unwrap_err().kind,
            ErrorKind::FixInput
        );
    }
}

#[test]
fn a_summary_says_how_it_ended() {
    let table = [
        (ChildExit::Exit(0), None, "exit 0 in 1.2 s"),
        (
            ChildExit::Exit(101),
            Some(ErrorKind::FixInput),
            "exit 101 in 1.2 s",
        ),
        (
            ChildExit::Signal(9),
            Some(ErrorKind::FixInput),
            "killed by signal 9 after 1.2 s",
        ),
        (
            ChildExit::Deadline,
            Some(ErrorKind::Exhausted),
            "stopped at its time limit of 120 s",
        ),
        (
            ChildExit::Cancelled,
            Some(ErrorKind::Cancelled),
            "cancelled after 1.2 s",
        ),
    ];
    for (how, kind, text) in table {
        let ended = ChildResult {
            how,
            took: Duration::from_millis(1234),
            leftovers: 0,
            remaining: 0,
            pid: 1,
            beyond: None,
            refused: None,
            traffic: Default::default(),
        };
        let got = match summary(&ended, Duration::from_secs(120)) {
            Ok(output) => (None, output.summary),
            Err(error) => (Some(error.kind), error.message),
        };
        assert_eq!(got, (kind, text.to_owned()));
    }
}

#[test]
fn only_a_command_that_ended_by_itself_left_something_running() {
    let table = [
        (ChildExit::Exit(0), 1),
        (ChildExit::Signal(9), 1),
        (ChildExit::Deadline, 0),
        (ChildExit::Cancelled, 0),
    ];
    for (how, lines) in table {
        let ended = ChildResult {
            how,
            took: Duration::ZERO,
            leftovers: 2,
            remaining: 0,
            pid: 1,
            beyond: None,
            refused: None,
            traffic: Default::default(),
        };
        assert_eq!(notes(&ended, false, &[]).len(), lines, "{how:?}");
        // What may go on is said whatever ended the command.
        assert_eq!(
            notes(
                &ChildResult {
                    remaining: 1,
                    ..ended
                },
                false,
                &[]
            )
            .len(),
            lines + 1,
            "{how:?}"
        );
    }
}
