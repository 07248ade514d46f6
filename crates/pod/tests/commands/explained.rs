//! A decision says which part met which rule, and what would allow it.

use super::{CONFINED, OFF, World, about, layer};
use pod::permission::Policy;
use pod::permission::RuleDecision::{Allow, Ask, Deny};
use testkit::TERMS;

#[test]
fn refusals_name_the_part_the_rule_and_the_remedy() {
    let world = World::new();
    let file = |rules| Policy::new(TERMS, vec![layer("/etc/yoi/config.toml", rules)]);
    let none = Policy::new(TERMS, Vec::new());
    let cases = [
        (
            &none,
            OFF,
            "git status",
            vec![
                "Bash `git status`",
                r#"about: Some("git status")"#,
                "alternative: Sandbox",
            ],
        ),
        (&none, OFF, "git -C d status", vec![r#"about: Some("git")"#]),
        (&none, OFF, "/usr/bin/ls -l", vec![r#"about: Some("ls")"#]),
        (&none, OFF, "./run x.y", vec![r#"about: Some("./run")"#]),
        (&none, OFF, "ls > f", vec!["about: None"]),
        (
            &none,
            OFF,
            "eval x",
            vec!["(opaque: eval runs code that it is given)", "about: None"],
        ),
        (
            &file(vec![about("ls", Allow)]),
            OFF,
            "ls; git diff",
            vec!["`git diff` in `ls; git diff`", r#"about: Some("git diff")"#],
        ),
        (
            &file(vec![about("rm", Deny)]),
            CONFINED,
            "git status; rm -rf x",
            vec![
                "`rm -rf x` in `git status; rm -rf x`",
                "`deny Bash rm`",
                "/etc/yoi/config.toml",
                "ChangeRule",
            ],
        ),
        (
            &file(vec![about("rm", Ask)]),
            CONFINED,
            "rm x",
            vec![
                "`ask Bash rm`",
                r#"about: Some("rm x")"#,
                "alternative: AskingRule",
            ],
        ),
        (
            &file(vec![about("git push,pull", Deny)]),
            CONFINED,
            "git pull",
            vec!["`deny Bash git push,pull`"],
        ),
        (
            &file(vec![about("rm", Deny)]),
            CONFINED,
            "if",
            vec!["(opaque: it cannot be parsed"],
        ),
        (
            &file(vec![about("rm", Deny)]),
            CONFINED,
            "$x\u{1b}[2J",
            vec!["U+001B", "\\u{1b}"],
        ),
    ];
    for (policy, now, text, words) in cases {
        let decision = world.judge(policy, text, now);
        for word in words {
            assert!(
                decision.decision.reason().contains(word),
                "{text}: {word}: {}",
                decision.decision.reason()
            );
        }
        // A line for the reason, and one for the remedy.
        let reason = decision.decision.reason();
        assert!(
            !reason.contains('\u{1b}') && reason.lines().count() <= 2,
            "{decision:?}"
        );
    }
}

/// What a refusal offers is tried: it allows what was refused.
#[test]
fn the_offered_rule_allows_the_part() {
    let world = World::new();
    let none = Policy::new(TERMS, Vec::new());
    for text in [
        "git status",
        "git -C d log",
        "ls -l",
        "/usr/bin/ls",
        "./run x.y",
        "timeout 5 cargo test",
        "git",
    ] {
        let judged = world.judge(&none, text, OFF);
        let reason = judged.decision.reason();
        let offered = reason
            .split("about: Some(\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap();
        let policy = Policy::new(TERMS, vec![layer("--allow", vec![about(offered, Allow)])]);
        assert!(world.runs(&policy, text, OFF), "{text}: {offered}");
    }
}

#[test]
fn long_commands_are_cut_in_what_is_said() {
    let world = World::new();
    let text = format!("ls; rm {}", "x ".repeat(10_000));
    let policy = Policy::new(TERMS, vec![layer("user.toml", vec![about("rm", Deny)])]);
    let judged = world.judge(&policy, &text, CONFINED);
    let reason = judged.decision.reason();
    assert!(
        reason.contains("`rm x x") && reason.len() < 1_000,
        "{reason}"
    );
}
