//! Outputs without the words in them that are for the model alone. Changes nothing else.

use std::borrow::Cow;

/// The end of a note of the sandbox that tells the model how to ask.
const TO_THE_MODEL: &str = "; `escalate` asks the person";

/// The same end for the person who is asked.
const TO_THE_PERSON: &str = "; you can allow it when the model asks, or start with --sandbox off]";

/// The output of a call as people read it: the hint of the sandbox says what a person can do.
#[must_use]
pub fn for_people(output: &str) -> Cow<'_, str> {
    if !output.contains(TO_THE_MODEL) {
        return Cow::Borrowed(output);
    }
    let is_note = |line: &&str| line.starts_with('[') && line.ends_with(']');
    let line = |line: &str| match Some(line)
        .filter(is_note)
        .and_then(|line| line.split_once(TO_THE_MODEL))
    {
        Some((note, _)) => format!("{note}{TO_THE_PERSON}"),
        None => line.to_owned(),
    };
    Cow::Owned(output.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_the_sandbox_says_what_a_person_can_do() {
        let said = for_people("a\n[no network; `escalate` asks the person]\n");
        assert_eq!(
            said,
            "a\n[no network; you can allow it when the model asks, or start with --sandbox off]\n"
        );
        assert_eq!(
            for_people("[no network; `escalate` asks the person, for all or for `hosts`]\n"),
            said[2..]
        );
        for same in [
            "no; `escalate` asks the person]",
            "[x; `escalate` asks the person] b",
            "[no network]",
            "",
        ] {
            assert_eq!(for_people(same), same);
        }
    }
}
