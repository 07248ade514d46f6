//! The table of tricks, and how layers go together part by part.

use super::{CONFINED, OFF, World, about, layer, rows};
use pod::permission::RuleDecision::{Allow, Ask, Deny};
use pod::permission::{Layer, Policy, Rule};
use testkit::TERMS;

fn allowing() -> Policy {
    let commands = [
        "git status,diff,log",
        "cargo test",
        "ls",
        "echo",
        "cat",
        "grep",
        "find",
        "xargs",
        "./run",
    ];
    Policy::new(
        TERMS,
        vec![layer(
            "user.toml",
            commands.map(|command| about(command, Allow)).to_vec(),
        )],
    )
}

fn denying() -> Policy {
    let denied = ["rm", "git push", "curl"].map(|command| about(command, Deny));
    Policy::new(
        TERMS,
        vec![layer(
            "user.toml",
            denied.into_iter().chain([about("sudo", Ask)]).collect(),
        )],
    )
}

#[test]
fn no_row_is_answered_wrongly() {
    let world = World::new();
    let allowing = allowing();
    let denying = denying();
    let rows = rows();
    assert!(rows.len() >= 150, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        for (policy, now, expected) in [
            (&allowing, OFF, row.allowed),
            (&denying, CONFINED, row.denied),
        ] {
            let decision = world.judge(policy, &row.text, now);
            let runs = decision.decision.allows();
            if runs != (expected == "+") {
                wrong.push(format!(
                    "{:?} expected {expected}: {}",
                    row.text,
                    decision.decision.reason()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

#[test]
fn without_rules_about_programs_nothing_changes() {
    let world = World::new();
    let none = Policy::new(TERMS, Vec::new());
    let all = Policy::new(
        TERMS,
        vec![layer("user.toml", vec![Rule::new("Bash", Allow)])],
    );
    let nothing = Policy::new(
        TERMS,
        vec![layer("user.toml", vec![Rule::new("Bash", Deny)])],
    );
    for row in rows() {
        assert!(world.runs(&none, &row.text, CONFINED), "{}", row.text);
        assert!(!world.runs(&none, &row.text, OFF), "{}", row.text);
        assert!(
            world.runs(&all, &row.text, OFF),
            "a rule that names no program means all: {}",
            row.text
        );
        assert!(!world.runs(&nothing, &row.text, CONFINED), "{}", row.text);
    }
}

#[test]
fn layers_go_together_part_by_part() {
    let world = World::new();
    let bash = |decision| Rule::new("Bash", decision);
    // layers from outside in; with the sandbox off; a command; whether it runs
    let cases: Vec<(Vec<Vec<Rule>>, &str, bool)> = vec![
        // the last match inside of a layer
        (
            vec![vec![about("git", Deny), about("git status", Allow)]],
            "git status",
            true,
        ),
        (
            vec![vec![about("git status", Allow), about("git", Deny)]],
            "git status",
            false,
        ),
        (
            vec![vec![about("git", Deny), about("git status", Allow)]],
            "git status; git log",
            false,
        ),
        (
            vec![vec![bash(Deny), about("git status", Allow)]],
            "git status",
            true,
        ),
        (
            vec![vec![bash(Deny), about("git status", Allow)]],
            "git status; ls",
            false,
        ),
        (vec![vec![about("ls", Allow), bash(Ask)]], "ls", false),
        // an opaque part meets each refusal, and what comes after it that names no program
        (vec![vec![bash(Allow), about("rm", Deny)]], "eval x", false),
        (vec![vec![about("rm", Deny), bash(Allow)]], "eval x", true),
        (vec![vec![bash(Allow), about("rm", Ask)]], "eval x", false),
        // parts may be allowed by different layers
        (
            vec![vec![about("ls", Allow)], vec![about("cat", Allow)]],
            "ls | cat",
            true,
        ),
        (
            vec![vec![about("ls", Allow)], vec![about("cat", Allow)]],
            "ls | cat | wc",
            false,
        ),
        // a refusal from outside stands, for its part
        (
            vec![vec![about("rm", Deny)], vec![about("rm", Allow)]],
            "rm x",
            false,
        ),
        (
            vec![vec![about("rm", Deny)], vec![bash(Allow)]],
            "ls; rm x",
            false,
        ),
        (vec![vec![about("rm", Deny)], vec![bash(Allow)]], "ls", true),
        (
            vec![vec![about("rm", Ask)], vec![about("rm", Allow)]],
            "rm x",
            true,
        ),
        (
            vec![vec![about("rm", Allow)], vec![about("rm", Ask)]],
            "rm x",
            false,
        ),
        // a refusal of a program that starts another holds wherever it starts one
        (
            vec![vec![bash(Allow), about("nice", Deny)]],
            "timeout 5 nice ls",
            false,
        ),
        (
            vec![vec![bash(Allow), about("nice", Deny)]],
            "timeout 5 ls",
            true,
        ),
        // rules about other tools, paths and hosts say nothing
        (
            vec![vec![Rule {
                tool: "Shell".into(),
                ..about("ls", Allow)
            }]],
            "ls",
            false,
        ),
        (
            vec![vec![Rule {
                tool: "*".into(),
                ..about("ls", Allow)
            }]],
            "ls",
            true,
        ),
        (
            vec![vec![
                about("ls", Allow),
                Rule {
                    path: Some("**".into()),
                    ..bash(Deny)
                },
            ]],
            "ls",
            true,
        ),
        // nothing is started at all
        (vec![vec![about("ls", Allow)]], "", false),
        (vec![vec![about("ls", Allow)]], "# ls", false),
    ];
    for (layers, text, runs) in cases {
        let name = |(i, rules)| layer(&format!("layer {i}"), rules);
        let policy = Policy::new(TERMS, layers.into_iter().enumerate().map(name).collect());
        assert_eq!(
            world.runs(&policy, text, OFF),
            runs,
            "{text}: {:?}",
            world.judge(&policy, text, OFF)
        );
    }
}

#[test]
fn rules_about_programs_that_cannot_work_are_refused() {
    let bad: Vec<(Rule, &str)> = vec![
        (about("", Deny), "0 bytes"),
        (
            Rule {
                program: Some("git push".into()),
                ..Rule::new("Bash", Deny)
            },
            "must be one word",
        ),
        (about("r*", Deny), "cannot contain patterns or quotes"),
        (about("'rm'", Deny), "cannot contain patterns or quotes"),
        (about("~/x", Deny), "cannot contain patterns or quotes"),
        (about("/bin/", Deny), "is not the name of a program"),
        (about("./..", Deny), "is not the name of a program"),
        (about(&"x".repeat(257), Deny), "257 bytes"),
        (about("r\u{1}m", Deny), "must be one word"),
        (
            about("git -C", Deny),
            "first argument that is not an option",
        ),
        (
            about("cargo +nightly", Deny),
            "first argument that is not an option",
        ),
        (about("git push,", Deny), "0 bytes"),
        (
            Rule {
                subcommand: Some(Vec::new()),
                ..about("git", Deny)
            },
            "`subcommand` is empty",
        ),
        (
            Rule {
                subcommand: Some(vec!["a".into(); 65]),
                ..about("git", Deny)
            },
            "at most 64",
        ),
        (
            Rule {
                program: None,
                ..about("git push", Deny)
            },
            "needs `program`",
        ),
        (
            Rule {
                path: Some("x".into()),
                ..about("git", Deny)
            },
            "never match",
        ),
        (
            Rule {
                path: Some("x".into()),
                program: None,
                ..about("git push", Deny)
            },
            "never match",
        ),
        (
            Rule {
                host: Some("x.org".into()),
                program: None,
                ..about("git push", Deny)
            },
            "never match",
        ),
        (
            Rule {
                host: Some("x.org".into()),
                ..about("git", Deny)
            },
            "never match",
        ),
    ];
    for (rule, words) in bad {
        let error = Layer::new("user.toml", vec![rule.clone()]).unwrap_err();
        assert_eq!(error.kind(), llm_worker::ErrorKind::FixInput);
        assert!(error.to_string().contains(words), "{rule:?}: {error}");
    }
}
