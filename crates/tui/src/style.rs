//! Meanings of text, and how a terminal of 16 colours shows them. Does not depend on text.

/// What a piece of text means. The digest of a screen depends on their order: new ones come last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    #[default]
    Plain,
    Heading,
    Strong,
    Emphasis,
    Struck,
    Code,
    Link,
    /// Incidental.
    Dim,
    Added,
    Removed,
    Ok,
    Failed,
    Refused,
    /// It waits for a person.
    Waiting,
    /// In code: a word of the language, or a key.
    Keyword,
    /// In code: a text.
    Quoted,
    /// In code.
    Comment,
    /// In code.
    Number,
    /// In a diff: a word that the line before did not have.
    AddedWord,
    /// In a diff: a word that the line behind does not have.
    RemovedWord,
    /// In a diff: a comment of a line that comes.
    AddedComment,
    /// In a diff: a comment of a line that goes.
    RemovedComment,
    /// In a diff: a word of the language in a line that stays.
    DimKeyword,
    /// In a diff: a text or a number in a line that stays.
    DimNumber,
}

/// How meanings look. The caller decides whether there may be colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// No escape sequences: signs say what colours would.
    #[default]
    Plain,
    /// The terminal's own 16 colours, so that dark and light ones are both readable.
    Colour,
}

impl Theme {
    /// With colours or without.
    #[must_use]
    pub fn new(colour: bool) -> Self {
        if colour { Self::Colour } else { Self::Plain }
    }

    /// The parameters of the sequence that begins this look; none where there is nothing to begin.
    pub(crate) fn begin(self, tone: Tone) -> Option<&'static str> {
        if self == Self::Plain {
            return None;
        }
        Some(match tone {
            Tone::Plain => return None,
            Tone::Heading | Tone::Strong => "1",
            Tone::Emphasis => "3",
            Tone::Struck => "9",
            Tone::Code | Tone::Number => "36",
            Tone::Keyword => "35",
            Tone::Link => "4",
            Tone::Dim | Tone::Comment => "2",
            Tone::Added | Tone::Ok | Tone::Quoted => "32",
            Tone::AddedWord => "4;32",
            Tone::Removed => "31",
            Tone::RemovedWord => "4;31",
            Tone::AddedComment => "2;32",
            Tone::RemovedComment => "2;31",
            Tone::DimKeyword => "2;35",
            Tone::DimNumber => "2;36",
            Tone::Failed => "1;31",
            Tone::Refused => "33",
            Tone::Waiting => "1;35",
        })
    }
}
