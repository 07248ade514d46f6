//! Inputs that run a command of a person: their text, and what the model reads of it.

use llm_worker::Item;

/// Begins the text of such an input; the command follows.
const SIGN: char = '!';

/// The text of an input that runs this command.
#[must_use]
pub fn command_text(command: &str) -> String {
    format!("{SIGN} {}", command.trim())
}

/// The command of such a text. None if the text does not begin with the sign, or nothing follows it.
#[must_use]
pub fn command_of(text: &str) -> Option<&str> {
    text.trim()
        .strip_prefix(SIGN)
        .map(str::trim)
        .filter(|command| !command.is_empty())
}

/// What the model reads before a command. It is part of the format of journals: their items are made with it.
const COMMAND_WORDS: &str =
    "I entered this command myself, so the call that follows is mine and not yours:";

/// What the model reads in place of such a text.
#[must_use]
pub fn command_item(text: &str) -> Item {
    let command = command_of(text).unwrap_or(text);
    Item::Command {
        text: format!("{COMMAND_WORDS}\n{command}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{InputQueued, Record};

    #[test]
    fn a_text_and_its_command_go_together() {
        assert_eq!(command_text("  ls -l\n"), "! ls -l");
        for (text, command) in [
            ("! ls", Some("ls")),
            ("!ls", Some("ls")),
            ("! ! true", Some("! true")),
            (
                "!for i in 1 2\ndo echo $i; done ",
                Some("for i in 1 2\ndo echo $i; done"),
            ),
            ("!", None),
            ("! \n", None),
            ("ls", None),
        ] {
            assert_eq!(command_of(text), command, "{text}");
        }
        let text = format!("{COMMAND_WORDS}\nls");
        assert_eq!(command_item("! ls"), Item::Command { text });
    }

    #[test]
    fn a_program_that_would_send_it_to_a_model_does_not_read_it() {
        let queued = |run| {
            Record::from(InputQueued {
                input: 1,
                text: "! ls".to_owned(),
                run,
                ..InputQueued::default()
            })
        };
        assert_eq!((queued(false).format(), queued(true).format()), (1, 2));
    }
}
