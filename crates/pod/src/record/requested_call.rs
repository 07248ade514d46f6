//! Inputs that are one call of a tool, which a client asked for: their text for people, and what the model reads of it.

use super::RequestedCall;
use llm_worker::Item;

/// Characters of the arguments that the text of such an input has.
const SHOWN: usize = 200;

/// What people read in place of such a call: the tool and the beginning of its arguments.
#[must_use]
pub fn call_text(RequestedCall { tool, arguments }: &RequestedCall) -> String {
    let mut characters = arguments.chars();
    let shown: String = characters.by_ref().take(SHOWN).collect();
    let more = characters.next().map_or("", |_| "…");
    format!("{tool} {shown}{more}")
}

/// What the model reads before such a call. It is part of the format of journals: their items are made with it.
const CALL_WORDS: &str =
    "A program that I use made the call that follows, so it is mine and not yours:";

/// What the model reads in place of the input. The arguments are in the call behind it.
#[must_use]
pub fn call_item(RequestedCall { tool, .. }: &RequestedCall) -> Item {
    Item::Command {
        text: format!("{CALL_WORDS}\n{tool}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{InputQueued, Record};

    fn call(arguments: String) -> RequestedCall {
        RequestedCall {
            tool: "Read".to_owned(),
            arguments,
        }
    }

    #[test]
    fn people_read_its_beginning_and_the_model_its_tool() {
        let long = format!("{{\"a\":\"{}\"}}", "é".repeat(300));
        for (arguments, text) in [
            ("{}".to_owned(), "Read {}".to_owned()),
            (long, format!("Read {{\"a\":\"{}…", "é".repeat(194))),
        ] {
            assert_eq!(call_text(&call(arguments)), text);
        }
        let text = format!("{CALL_WORDS}\nRead");
        assert_eq!(call_item(&call("{}".to_owned())), Item::Command { text });
    }

    #[test]
    fn a_program_that_would_send_it_to_a_model_does_not_read_it() {
        let queued = |call| {
            Record::from(InputQueued {
                input: 1,
                text: "Read {}".to_owned(),
                call,
                ..InputQueued::default()
            })
        };
        let with = queued(Some(call("{}".to_owned())));
        assert_eq!((queued(None).format(), with.format()), (1, 2));
    }
}
