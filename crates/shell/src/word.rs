//! Words without their quotes, and whether they contain expansions.

use rable::{Node, NodeKind};
use std::ops::Range;

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    raw: String,
    bare: String,
    literal: bool,
    /// Whether its expansion is split at white space.
    splits: bool,
    /// Whether it may be the names of several files.
    matches: bool,
    /// Whether it certainly begins with a character that starts no option.
    leads: bool,
    /// The bytes of the text where it stands, if that is certain.
    place: Option<Range<usize>>,
}

impl Word {
    /// The value of the word, if the text shows it.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        self.literal.then_some(self.bare.as_str())
    }

    /// The word without its quotes; expansions stay as written: `$HOME/x`, `~`, `*.c`.
    #[must_use]
    pub fn bare(&self) -> &str {
        &self.bare
    }

    /// The source text of the word.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The bytes of the parsed text where the word stands; none if that is not certain.
    #[must_use]
    pub fn place(&self) -> Option<Range<usize>> {
        self.place.clone()
    }

    pub(crate) fn set_place(&mut self, place: Option<Range<usize>>) {
        self.place = place;
    }

    /// A word known only at run time.
    pub(crate) fn hidden(raw: &str) -> Self {
        let (raw, bare, place) = (raw.to_owned(), raw.to_owned(), None);
        Self {
            raw,
            bare,
            literal: false,
            splits: true,
            matches: true,
            leads: false,
            place,
        }
    }

    /// A word of these characters.
    pub(crate) fn plain(text: &str) -> Self {
        let leads = !text.starts_with(['-', '+']);
        let raw = text.to_owned();
        let bare = text.to_owned();
        Self {
            raw,
            bare,
            literal: true,
            splits: false,
            matches: false,
            leads,
            place: None,
        }
    }

    /// Whether it may become several words, or none, which moves the words after it.
    pub(crate) fn splits(&self) -> bool {
        self.splits || self.matches
    }

    /// Whether it may be an option, or expand to one.
    pub(crate) fn may_be_option(&self) -> bool {
        match self.literal() {
            Some(text) => text.starts_with(['-', '+']),
            None => self.splits || !self.leads,
        }
    }

    /// A part of a literal word: what follows `NAME=`, or an option's letter.
    pub(crate) fn tail(&self, from: usize) -> Self {
        let bare = self.bare.get(from..).unwrap_or_default().to_owned();
        let leads = !bare.starts_with(['-', '+']) && self.literal;
        let Self {
            literal,
            splits,
            matches,
            ..
        } = *self;
        Self {
            raw: bare.clone(),
            bare,
            literal,
            splits,
            matches,
            leads,
            place: None,
        }
    }
}

/// Findings about a word's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inside {
    /// It contains a substitution that the parser left as text.
    pub(crate) unparsed: bool,
    /// It contains a backslash in backquotes, where it has another meaning.
    pub(crate) escaped_backquote: bool,
    /// It contains an unquoted character that ends words, in brackets. The parser treats the brackets as a subscript
    /// wherever a command may begin, also behind a redirection, where a shell does not and runs their content.
    pub(crate) torn: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Quote {
    #[default]
    None,
    Single,
    Double,
}

/// Reads a word node: raw text and the parts of it.
pub(crate) fn read(raw: &str, parts: &[Node]) -> (Word, Inside) {
    let quote = Quote::None;
    let inside = Inside::default();
    let mut reader = Reader {
        literal: true,
        quote,
        inside,
        ..Reader::default()
    };
    let mut braces = Braces::default();
    for part in parts {
        match &part.kind {
            NodeKind::WordLiteral { value } => reader.text(value, &mut braces),
            NodeKind::AnsiCQuote { content, decoded } => reader.decoded(content, decoded),
            NodeKind::BraceExpansion { content } => {
                reader.splits = true;
                reader.expanded(content);
            }
            NodeKind::ParamExpansion { param, op, .. } => {
                let number = op.is_none() && matches!(param.as_str(), "?" | "#" | "$" | "!");
                let unquoted = reader.quote != Quote::Double && !number;
                reader.splits |= param == "@" || param.ends_with("[@]") || unquoted;
                reader.expanded("");
            }
            NodeKind::ParamLength { .. } | NodeKind::ProcessSubstitution { .. } => {
                reader.expanded("")
            }
            // Any other part of a word is expanded.
            _ => {
                reader.splits |= reader.quote != Quote::Double;
                reader.expanded("");
            }
        }
    }
    let substituted = parts
        .iter()
        .any(|part| matches!(part.kind, NodeKind::CommandSubstitution { .. }));
    reader.inside.escaped_backquote =
        (substituted || reader.inside.unparsed) && raw.contains('`') && raw.contains('\\');
    // The test command is an unclosed bracket.
    let literal = (reader.literal || raw == "[") && reader.quote == Quote::None && !braces.expand();
    // A word with expansions keeps them as they are written.
    let bare = if parts
        .iter()
        .all(|part| matches!(part.kind, NodeKind::WordLiteral { .. }))
        || reader.literal
    {
        reader.bare
    } else {
        raw.chars().filter(|c| !matches!(c, '"' | '\'')).collect()
    };
    let lead = if literal {
        bare.chars().next()
    } else {
        reader.lead.flatten()
    };
    let leads = lead.map_or(literal, |c| !matches!(c, '-' | '+'));
    let splits = (reader.splits || braces.expand()) && !literal;
    let matches = reader.matches && !literal;
    (
        Word {
            raw: raw.to_owned(),
            bare,
            literal,
            splits,
            matches,
            leads,
            place: None,
        },
        reader.inside,
    )
}

#[derive(Default)]
struct Reader {
    bare: String,
    literal: bool,
    splits: bool,
    matches: bool,
    /// Set where something is expanded first: the character before all of it, if there is one.
    lead: Option<Option<char>>,
    quote: Quote,
    /// How many unquoted brackets are open.
    brackets: u32,
    inside: Inside,
}

/// Whether unquoted braces with a comma or dots are in a word.
#[derive(Default)]
struct Braces {
    open: bool,
    divided: bool,
    dot: bool,
}

impl Braces {
    fn see(&mut self, c: char) {
        self.divided |= self.open && (c == ',' || (c == '.' && self.dot));
        self.dot = c == '.';
        self.open |= c == '{';
    }

    fn expand(&self) -> bool {
        self.open && self.divided
    }
}

impl Reader {
    fn text(&mut self, text: &str, braces: &mut Braces) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (self.quote, c) {
                (Quote::None, '\'') => self.quote = Quote::Single,
                (Quote::Single, '\'') | (Quote::Double, '"') => self.quote = Quote::None,
                (Quote::None, '"') => self.quote = Quote::Double,
                (Quote::Single, c) => self.bare.push(c),
                (Quote::None, '\\') => match chars.next() {
                    Some('\n') => {}
                    Some(next) => self.bare.push(next),
                    None => self.bare.push('\\'),
                },
                (Quote::Double, '\\') => match chars.peek().copied() {
                    Some('\n') => drop(chars.next()),
                    Some(next @ ('$' | '`' | '"' | '\\')) => {
                        chars.next();
                        self.bare.push(next);
                    }
                    Some(_) | None => self.bare.push('\\'),
                },
                (Quote::None | Quote::Double, '`') => {
                    self.unparsed();
                    self.bare.push(c);
                }
                (Quote::None | Quote::Double, '$') => {
                    self.dollar(chars.peek().copied());
                    self.bare.push(c);
                }
                (Quote::Double, c) => self.bare.push(c),
                (Quote::None, c) => {
                    self.unquoted(c, chars.peek().copied(), braces);
                    self.bare.push(c);
                }
            }
        }
    }

    fn unquoted(&mut self, c: char, next: Option<char>, braces: &mut Braces) {
        braces.see(c);
        match c {
            '[' => self.brackets = self.brackets.saturating_add(1),
            ']' => self.brackets = self.brackets.saturating_sub(1),
            c if self.brackets > 0 && (c.is_whitespace() || ";|&()<>".contains(c)) => {
                self.inside.torn = true
            }
            _ => {}
        }
        match c {
            '*' | '?' | '[' => {
                self.matches = true;
                self.not_literal(None);
            }
            '~' if self.bare.is_empty() => self.not_literal(Some('~')),
            '~' if self.bare.ends_with([':', '=']) => self.not_literal(None),
            '<' | '>' if next == Some('(') => self.unparsed(),
            _ => {}
        }
    }

    fn dollar(&mut self, next: Option<char>) {
        match next {
            Some('(' | '[' | '{') => self.unparsed(),
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?$!-'\"".contains(c) => {
                let number = "#?$!".contains(c);
                self.lead.get_or_insert(self.bare.chars().next());
                self.splits |= c == '@' || (self.quote != Quote::Double && !number);
                // In double quotes, quotes after a dollar end or stand for themselves.
                self.literal &= self.quote == Quote::Double && matches!(c, '\'' | '"');
            }
            Some(_) | None => {}
        }
    }

    fn not_literal(&mut self, lead: Option<char>) {
        self.lead.get_or_insert(self.bare.chars().next().or(lead));
        self.literal = false;
    }

    fn unparsed(&mut self) {
        self.splits |= self.quote != Quote::Double;
        self.not_literal(None);
        self.inside.unparsed = true;
    }

    fn decoded(&mut self, content: &str, decoded: &str) {
        // Text that a zero byte ends, and bytes that are no characters, are not interpreted.
        let odd = ["\\0", "\\x0", "\\u0", "\\U0", "\\c"]
            .iter()
            .any(|escape| content.contains(escape));
        if odd || !decoded.is_ascii() || decoded.contains('\0') {
            self.literal = false;
        }
        self.bare.push_str(decoded);
    }

    fn expanded(&mut self, text: &str) {
        self.not_literal(None);
        self.bare.push_str(text);
    }
}
