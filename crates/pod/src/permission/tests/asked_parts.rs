//! The parts of a command line in a question: those that are judged, where they stand, and which one a rule asks about.

use super::*;
use crate::record::{AskedCommand, CommandPart};

fn asked(
    rules: &[Rule],
    touches: &[Touch],
    arguments: &str,
    now: SandboxState,
) -> Option<AskedCommand> {
    let layers = if rules.is_empty() {
        Vec::new()
    } else {
        vec![Layer::new("user.toml", rules.to_vec()).unwrap()]
    };
    let call = CallFacts {
        tool: "Bash",
        effect: Effectful,
        touches,
        feature: &FEATURE,
    };
    Policy::new(TERMS, layers).asked_command(&call, arguments, &World::new().workspace, now)
}

fn of_command(rules: &[Rule], command: &str, now: SandboxState) -> AskedCommand {
    let arguments = serde_json::json!({ "command": command, "timeout": 5 }).to_string();
    asked(rules, &[Touch::Shell(command.to_owned())], &arguments, now).unwrap()
}

/// The programs where they stand; `!` behind those that a rule asks about.
fn marked(command: &str, parts: &[CommandPart]) -> Vec<String> {
    let at = |[from, to]: [u64; 2]| &command[from as usize..to as usize];
    let asks = |asks| if asks { "!" } else { "" };
    parts
        .iter()
        .map(|part| format!("{}{}", part.at.map_or("?", at), asks(part.asks)))
        .collect()
}

#[test]
fn the_part_that_a_rule_asks_about_is_marked() {
    let rm = Rule {
        program: Some("rm".to_owned()),
        ..Rule::new("Bash", Ask)
    };
    let command = "cd é && nice rm -rf \"$(ls)\" | wc; $x > f";
    let AskedCommand { field, parts, more } =
        of_command(std::slice::from_ref(&rm), command, CONFINED);
    assert_eq!((field.as_str(), more), ("command", 0));
    // What cannot be known may be an `rm`.
    assert_eq!(marked(command, &parts), ["cd", "ls", "rm!", "wc", "$x!"]);
    assert_eq!(parts[2].text, "nice rm -rf \"$(ls)\"");
    // Without a rule about programs no part is judged by itself, and without a sandbox each one asks.
    let none = of_command(&[], command, CONFINED);
    assert_eq!(marked(command, &none.parts), ["cd", "ls", "rm", "wc", "$x"]);
    assert!(
        of_command(&[], "a; b", OFF)
            .parts
            .iter()
            .all(|part| part.asks)
    );
}

#[test]
fn a_question_lists_few_parts_and_always_those_it_is_about() {
    let rm = Rule {
        program: Some("rm".to_owned()),
        ..Rule::new("Bash", Ask)
    };
    let command = format!("{}rm x", "a; ".repeat(40));
    let AskedCommand { parts, more, .. } = of_command(&[rm], &command, CONFINED);
    assert_eq!((parts.len(), more), (32, 9));
    assert_eq!(marked(&command, &parts)[..2], ["rm!", "a"]);
}

#[test]
fn what_is_no_argument_is_not_listed() {
    let shell = Touch::Shell("a; b".to_owned());
    let arguments = r#"{"command":"a; c"}"#;
    assert_eq!(
        asked(&[], std::slice::from_ref(&shell), arguments, OFF),
        None
    );
    assert_eq!(asked(&[], &[], r#"{"command":"a; b"}"#, OFF), None);
    assert_eq!(
        asked(&[], &[shell.clone(), shell], r#"{"command":"a; b"}"#, OFF),
        None
    );
    assert_eq!(
        asked(
            &[],
            &[Touch::Shell("# no".to_owned())],
            r##"{"command":"# no"}"##,
            OFF
        ),
        None
    );
}
