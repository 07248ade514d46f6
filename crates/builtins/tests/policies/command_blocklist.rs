//! `command-blocklist`: what it refuses never runs; what it only warns of runs, and is told once each time.

use crate::rig::{play, pod, refused, turn};
use builtins::command_blocklist::ID;
use llm_worker::tool::Touch;
use llm_worker::{ResultStatus, ToolEffect, ToolOutput};
use pod::control::Event;
use pod::feature::HostCapability;
use pod::record::Record;
use serde_json::{Value, json};
use testkit::{FnTool, PodUnderTest};

const CALL: (&str, &str) = ("Bash", "{}");

/// A pod whose one tool says that it ran this command, and did.
fn shell(command: &str, keys: Value, content: &'static str) -> PodUnderTest {
    let ran = move |_, _| async move {
        Ok(ToolOutput {
            summary: "exit 0".into(),
            content: content.into(),
            data: None,
        })
    };
    let bash = FnTool::new("Bash", ToolEffect::Effectful, ran)
        .touching(vec![Touch::Shell(command.to_owned())]);
    let (mut pod, _) = pod(&ID, keys, vec![bash]);
    pod.features[0].1.push(HostCapability::EmitUserAlert);
    pod
}

#[test]
fn what_it_knows_is_refused_with_the_part_and_the_rule() {
    let cases = [
        (
            "ls; r''m -rf /",
            json!({}),
            Some("rule `root`: `r''m -rf /`"),
        ),
        ("rm -rf ./build", json!({}), None),
        ("git push --force", json!({}), None),
        (
            "$x -rf /",
            json!({}),
            Some("rule `unreadable`: `$x -rf /` cannot be checked: the program's name"),
        ),
        ("python3 -c x", json!({}), None),
        (
            "git push --force",
            json!({"patterns": ["git push --force"]}),
            Some("rule `pattern`"),
        ),
    ];
    for (command, keys, said) in cases {
        let ended = turn(&shell(command, keys, "ran"), &[CALL]);
        assert_eq!(
            refused(&ended) == [0],
            said.is_some(),
            "{command}: {ended:?}"
        );
        let words = said.is_none_or(|said| {
            ended[0].1.contains(said) && ended[0].1.contains("builtin:command-blocklist")
        });
        assert!(words, "{command}: {ended:?}");
    }
}

#[test]
fn a_result_says_what_was_not_checked() {
    for (command, says) in [("python3 -c x", true), ("ls", false)] {
        let pod = shell(command, json!({}), "ran");
        play(&pod, &[&[CALL]]).end();
        let content = pod
            .records()
            .into_iter()
            .find_map(|(_, record)| match record {
                Record::ToolFinished(finished) => Some(finished.outcome.content),
                _ => None,
            });
        let content = content.unwrap();
        assert!(content.ends_with("ran"), "{content}");
        assert_eq!(
            content.contains("rule `unchecked`: `python3 -c x` cannot be checked"),
            says,
            "{content}"
        );
    }
}

#[test]
fn a_warning_is_in_the_result_and_an_alert_once_per_call() {
    for (command, content, warns) in [
        ("curl x | sh", "ran", true),
        ("curl x | sh", "", true),
        ("ls", "ran", false),
    ] {
        let pod = shell(command, json!({"warn_only": true}), content);
        let ran = play(&pod, &[&[CALL], &[CALL]]);
        let alerts = ran.events.iter().filter(|event| match event {
            Event::Alert(alert) => {
                alert.from.as_ref() == Some(&ID) && alert.text.contains("rule `download`")
            }
            _ => false,
        });
        assert_eq!(alerts.count(), if warns { 2 } else { 0 }, "{command}");
        let finished = pod
            .records()
            .into_iter()
            .filter_map(|(_, record)| match record {
                Record::ToolFinished(finished) => Some(finished.outcome),
                _ => None,
            });
        for outcome in finished {
            assert_eq!(
                (outcome.status, outcome.summary.as_str()),
                (ResultStatus::Ok, "exit 0")
            );
            assert_eq!(
                outcome.content.matches("rule `download`").count(),
                usize::from(warns),
                "{outcome:?}"
            );
            assert!(outcome.content.ends_with(content), "{outcome:?}");
            assert_eq!(
                outcome.content.contains('\n'),
                warns && !content.is_empty(),
                "{outcome:?}"
            );
        }
        ran.end();
    }
}
