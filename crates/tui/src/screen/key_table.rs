//! The keys, each declared once: what it does where, and its words. The panel of keys and the table in `docs/GUIDE.md` are made
//! from this table.

use super::exchange::Key;

/// What has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPlace {
    /// The screen, whatever is open.
    Screen,
    /// The screen, behind panels and questions.
    Behind,
    /// A part of the transcript that is selected.
    Cell,
    /// A waiting input that is selected.
    Queued,
    /// The place to write.
    Composer,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    Detach,
    /// Twice: detach.
    Leave,
    DetachIfEmpty,
    Keys,
    Features,
    Status,
    Question,
    Context,
    Search,
    ToggleAll,
    Mouse,
    ReadOnly,
    SelectAbove,
    SelectBelow,
    Open,
    CopyCell,
    OpenConversation,
    PrintConversation,
    Edit,
    CopyQueued,
    Withdraw,
    MoveUp,
    MoveDown,
    SendNow,
    Send,
    NewLine,
    Complete,
    End,
    Above,
    Below,
    RecallLike,
    Editor,
}

/// Keys that belong together.
pub(super) struct KeyRow {
    /// As people read them; behind two blanks if they belong to the row above.
    pub(super) shown: &'static str,
    pub(super) about: &'static str,
    /// Empty: what is open has these keys.
    keys: &'static [(KeyPlace, Key, KeyAction)],
}

/// A pod need not tell its features, and a person need not write as in `vi`.
pub(super) const FEATURES: &str = "F2";
pub(super) const VI: &str = "Esc, then";

use KeyAction as Do;
use KeyPlace::{Behind, Cell, Composer, Queued, Screen};

/// Every row, in the order of the panel.
pub(super) const KEYS: &[KeyRow] = &[
    KeyRow {
        shown: "Enter",
        about: "send · Alt-Enter, Ctrl-J: new line",
        keys: &[
            (Composer, Key::Enter, Do::Send),
            (Composer, Key::AltEnter, Do::NewLine),
            (Composer, Key::Ctrl('j'), Do::NewLine),
        ],
    },
    KeyRow {
        shown: "Esc",
        about: "end the running turn · twice: take the last input back",
        keys: &[(Composer, Key::Esc, Do::End)],
    },
    KeyRow {
        shown: "Ctrl-D",
        about: "detach when nothing is written (also Ctrl-\\, Ctrl-C twice)",
        keys: &[
            (Behind, Key::Ctrl('d'), Do::DetachIfEmpty),
            (Screen, Key::Ctrl('\\'), Do::Detach),
            (Screen, Key::Ctrl('c'), Do::Leave),
        ],
    },
    KeyRow {
        shown: "PgUp PgDn",
        about: "scroll · Ctrl-Home, Ctrl-End: begin and end",
        keys: &[],
    },
    KeyRow {
        shown: "Alt-Up Alt-Down",
        about: "select a waiting input or a part of the transcript",
        keys: &[
            (Behind, Key::AltUp, Do::SelectAbove),
            (Behind, Key::AltDown, Do::SelectBelow),
        ],
    },
    KeyRow {
        shown: "  Enter, c",
        about: "open or close it, or go to its record · copy it",
        keys: &[
            (Cell, Key::Enter, Do::Open),
            (Cell, Key::Char('c'), Do::CopyCell),
        ],
    },
    KeyRow {
        shown: "  /",
        about: "search the journal, back to its first record",
        keys: &[(Cell, Key::Char('/'), Do::Search)],
    },
    KeyRow {
        shown: "  v [",
        about: "the whole conversation: in your editor · printed into the terminal",
        keys: &[
            (Cell, Key::Char('v'), Do::OpenConversation),
            (Cell, Key::Char('['), Do::PrintConversation),
        ],
    },
    KeyRow {
        shown: "  e x u d s",
        about: "a waiting input: edit, withdraw, up, down, send now",
        keys: &[
            (Queued, Key::Char('e'), Do::Edit),
            (Queued, Key::Enter, Do::Edit),
            (Queued, Key::Char('c'), Do::CopyQueued),
            (Queued, Key::Char('x'), Do::Withdraw),
            (Queued, Key::Delete, Do::Withdraw),
            (Queued, Key::Char('u'), Do::MoveUp),
            (Queued, Key::Char('d'), Do::MoveDown),
            (Queued, Key::Char('s'), Do::SendNow),
        ],
    },
    KeyRow {
        shown: "Ctrl-O",
        about: "open or close all calls",
        keys: &[(Screen, Key::Ctrl('o'), Do::ToggleAll)],
    },
    KeyRow {
        shown: "Ctrl-F",
        about: "search the journal, too · Enter: an older match",
        keys: &[(Screen, Key::Ctrl('f'), Do::Search)],
    },
    KeyRow {
        shown: "Up Ctrl-R",
        about: "earlier inputs · search them",
        keys: &[
            (Composer, Key::Up, Do::Above),
            (Composer, Key::Down, Do::Below),
            (Composer, Key::Ctrl('r'), Do::RecallLike),
        ],
    },
    KeyRow {
        shown: "Ctrl-G",
        about: "write in your editor",
        keys: &[(Composer, Key::Ctrl('g'), Do::Editor)],
    },
    KeyRow {
        shown: "Ctrl-Z Ctrl-Y",
        about: "undo · redo",
        keys: &[],
    },
    KeyRow {
        shown: FEATURES,
        about: "the features of the pod: what each adds and may do · Up Down, then e d g x: change one",
        keys: &[(Screen, Key::F(2), Do::Features)],
    },
    KeyRow {
        shown: "F3 F5",
        about: "the pod, its tasks and jobs · what the next request has",
        keys: &[
            (Screen, Key::F(3), Do::Status),
            (Screen, Key::F(5), Do::Context),
        ],
    },
    KeyRow {
        shown: "  Up Down x",
        about: "in F3: choose a job or a running task, and stop it",
        keys: &[],
    },
    KeyRow {
        shown: "F4",
        about: "answer what waits for you while something is written",
        keys: &[(Screen, Key::F(4), Do::Question)],
    },
    KeyRow {
        shown: "  again",
        about: "all pods: what waits for you there, and the way to them",
        keys: &[],
    },
    KeyRow {
        shown: "F6",
        about: "the mouse: it selects text, or scrolls",
        keys: &[(Screen, Key::F(6), Do::Mouse)],
    },
    KeyRow {
        shown: "Shift-Tab",
        about: "read-only, and back: the pod starts again",
        keys: &[(Composer, Key::BackTab, Do::ReadOnly)],
    },
    KeyRow {
        shown: "y p r n w",
        about: "a question: once, this pod, by a rule, deny, deny with words",
        keys: &[],
    },
    KeyRow {
        shown: "1 2 3",
        about: "a full context: drop the oldest turns, resume, stop the pod",
        keys: &[],
    },
    KeyRow {
        shown: VI,
        about: "h j k l w b e 0 $ move · x dd D cc C cut · p pastes · u undoes · i a I A o write",
        keys: &[],
    },
    KeyRow {
        shown: "!",
        about: "first: run a shell command; the model reads it later",
        keys: &[],
    },
    KeyRow {
        shown: "/ @",
        about: "commands · files of the directory; ↓ ↑ choose, Tab completes",
        keys: &[(Composer, Key::Tab, Do::Complete)],
    },
    KeyRow {
        shown: "F1",
        about: "this list",
        keys: &[(Screen, Key::F(1), Do::Keys)],
    },
];

/// What a key does here; none if it is for something else.
pub(super) fn action(place: KeyPlace, key: Key) -> Option<KeyAction> {
    KEYS.iter()
        .flat_map(|row| row.keys)
        .find(|(at, one, _)| *at == place && *one == key)
        .map(|(_, _, action)| *action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_each_key_with_its_words() {
        let guide = include_str!("../../../../docs/GUIDE.md");
        let rows: Vec<String> = KEYS
            .iter()
            .map(|row| format!("| {} | {} |", row.shown.trim(), row.about))
            .collect();
        let rows = rows.join("\n");
        assert!(guide.contains(&rows), "{rows}");
    }

    #[test]
    fn a_key_has_one_meaning_in_a_place() {
        let all = || KEYS.iter().flat_map(|row| row.keys);
        for (place, key, does) in all() {
            assert_eq!(action(*place, *key), Some(*does));
        }
        let mut places: Vec<String> = all()
            .map(|(at, key, _)| format!("{at:?} {key:?}"))
            .collect();
        places.sort();
        let count = places.len();
        places.dedup();
        assert_eq!(places.len(), count, "{places:?}");
    }
}
