//! Commands behind a slash: what an editor is offered, and what a typed text asks for. The commands of a pod come from its
//! features; those of a client are the verbs of every other client.

use protocol::method::Verb;
use serde_json::{Value, json};
use tui::slash::{COMMANDS, ForeignCommand, Slash, Takes, TypedText, read_plain, unknown_to_pod};

/// What a pod does for a client without a screen.
const VERBS: [&str; 7] = [
    "compact", "more", "pause", "pin", "resume", "steer", "unpin",
];

/// What a text asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Typed {
    /// An input; the pod has its text from a command, if it begins with one.
    Input,
    /// For the running turn.
    Steer(String),
    Verb(Verb),
    /// Neither, and why.
    Wrong(String),
}

/// What a text is that a person typed for this pod, which has these commands.
pub(crate) fn read(text: &str, commands: &[ForeignCommand], pod: &str) -> Typed {
    let known: Vec<String> = commands.iter().map(|known| known.name.clone()).collect();
    let line = text.strip_prefix('/').unwrap_or_default();
    let name = line.split_whitespace().next().unwrap_or_default();
    if unknown_to_pod(text, &known).is_none() {
        return Typed::Input;
    }
    if !VERBS.contains(&name) && COMMANDS.iter().any(|own| own.name == name) {
        return Typed::Wrong(format!(
            "/{name} is for the screen: `yoi attach {pod}` opens it"
        ));
    }
    match read_plain(text, pod) {
        TypedText::Slash(Slash::Verb(verb)) => Typed::Verb(verb),
        TypedText::Slash(Slash::Steer(text)) => Typed::Steer(text),
        TypedText::Wrong(why) => Typed::Wrong(why),
        TypedText::Slash(_) | TypedText::Nothing | TypedText::Input(_) | TypedText::Run(_) => {
            Typed::Input
        }
    }
}

/// The commands that an editor is offered: those of the pod, then verbs.
pub(crate) fn offered(commands: &[ForeignCommand]) -> Value {
    let of_pod = commands.iter().map(|command| {
        json!({
            "name": command.name,
            "description": format!("{} ({})", command.about, command.source),
            "input": { "hint": "arguments" },
        })
    });
    let verbs = COMMANDS.iter().filter(|own| VERBS.contains(&own.name));
    let verbs = verbs.map(|own| {
        let hint = match own.takes {
            Takes::Nothing => None,
            Takes::Word(hint) | Takes::May(hint) | Takes::Needs(hint, _) => Some(hint),
        };
        let mut command = json!({ "name": own.name, "description": own.about });
        if let (Some(hint), Some(fields)) = (hint, command.as_object_mut()) {
            fields.insert("input".to_owned(), json!({ "hint": hint }));
        }
        command
    });
    let all: Vec<Value> = of_pod.chain(verbs).collect();
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::method::Pause;

    #[test]
    fn a_slash_begins_a_command_of_the_pod_or_a_verb() {
        let review = ForeignCommand {
            name: "review".to_owned(),
            about: "reviews".to_owned(),
            source: "user".to_owned(),
        };
        let commands = [review];
        let read = |text: &str| read(text, &commands, "night");
        assert_eq!(read("go on"), Typed::Input);
        assert_eq!(read("/review main"), Typed::Input);
        assert_eq!(read("/etc/hosts is wrong"), Typed::Input);
        assert_eq!(read("! ls"), Typed::Input);
        assert_eq!(read("/pause"), Typed::Verb(Pause::default().into()));
        assert_eq!(read("/steer use less"), Typed::Steer("use less".to_owned()));
        for (text, why) in [
            ("/undo", "`yoi attach night` opens it"),
            ("/detach", "is for the screen"),
            ("/reviews", "no command `/reviews`"),
            ("/pause now", "write nothing after /pause"),
        ] {
            let read = read(text);
            assert!(
                matches!(&read, Typed::Wrong(said) if said.contains(why)),
                "{text}: {read:?}"
            );
        }
        let offered = offered(&commands);
        let names: Vec<&str> = offered["availableCommands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|command| command["name"].as_str().unwrap())
            .collect();
        assert_eq!(names[0], "review");
        assert_eq!(names.len(), 1 + VERBS.len());
    }
}
