//! A prompt as tokens with their places in it.

/// One word or quoted string of a prompt.
pub(crate) struct Token<'a> {
    /// As written, without quotes and the punctuation around it.
    pub(crate) text: &'a str,
    /// The same in lower case, with plain apostrophes.
    pub(crate) low: String,
    /// The opening quote. Quoted text is never a word of the grammar.
    pub(crate) quote: Option<char>,
    /// Where it begins and ends in the prompt, quotes included, punctuation not.
    pub(crate) span: (usize, usize),
    /// The punctuation or line end that follows; a space when there is none.
    pub(crate) tail: char,
}

impl Token<'_> {
    /// Quoted as text; back-quotes mark names.
    pub(crate) fn is_text(&self) -> bool {
        self.quote.is_some_and(|quote| quote != '`')
    }
}

/// Punctuation after which another clause may begin.
pub(crate) const ENDS: &str = ",.;:!?\n";

/// The words of a prompt and the text that was piped in with it.
pub(crate) fn attached(prompt: &str) -> (&str, Option<&str>) {
    let parts = prompt
        .strip_suffix("\n</stdin>")
        .and_then(|prompt| prompt.split_once("\n\n<stdin>\n"));
    parts.map_or((prompt, None), |(head, text)| (head, Some(text)))
}

/// All tokens of a prompt, or the offset of an unclosed quote.
pub(crate) fn tokens(prompt: &str) -> Result<Vec<Token<'_>>, usize> {
    let mut out: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some((rest, first)) = prompt
        .get(at..)
        .and_then(|rest| Some((rest, rest.chars().next()?)))
    {
        if first.is_whitespace() {
            if let Some(last) = out
                .last_mut()
                .filter(|last| first == '\n' && last.tail == ' ')
            {
                last.tail = '\n';
            }
            at += first.len_utf8();
            continue;
        }
        let (quote, (start, text, end)) = match quoted(rest, first) {
            Some(found) => (Some(first), found.ok_or(at)?),
            None => (None, word(rest)),
        };
        let tail = rest
            .get(end..)
            .and_then(|r| r.chars().next())
            .filter(|c| ENDS.contains(*c))
            .unwrap_or(' ');
        let begin = if quote.is_some() { at } else { at + start };
        let low = text.to_lowercase().replace('’', "'");
        if !text.is_empty() || quote.is_some() {
            out.push(Token {
                text,
                low,
                quote,
                span: (begin, at + end),
                tail,
            });
        }
        at += end.max(first.len_utf8());
        let after = prompt.get(at..).unwrap_or_default();
        at += after.len()
            - after
                .trim_start_matches(|c: char| c != '\n' && (ENDS.contains(c) || ")…".contains(c)))
                .len();
    }
    Ok(out)
}

/// Where a quoted text begins, the text, and what it takes in all; the inner `None` when it is not closed.
fn quoted(rest: &str, open: char) -> Option<Option<(usize, &str, usize)>> {
    let close = match open {
        '\'' | '"' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        _other => return None,
    };
    let start = open.len_utf8();
    let body = rest.get(start..)?;
    // A `'` inside of a word does not close.
    let closes = |(at, _): &(usize, &str)| {
        open != '\''
            || body
                .get(at + 1..)
                .and_then(|r| r.chars().next())
                .is_none_or(|c| !is_word(c))
    };
    Some(
        body.match_indices(close)
            .find(closes)
            .and_then(|(length, _)| {
                let text = body.get(..length)?;
                Some((start, text, start + length + close.len_utf8()))
            }),
    )
}

fn word(rest: &str) -> (usize, &str, usize) {
    let line = rest.lines().next().unwrap_or_default();
    // A call with its arguments is one word.
    let mut open = 0;
    let ends = |c: char| {
        open += i32::from(c == '(') - i32::from(c == ')');
        c.is_whitespace() && open <= 0
    };
    let call = line
        .find(ends)
        .or((open <= 0).then_some(line.len()))
        .filter(|_| !rest.starts_with('('));
    let length = call
        .or(line.find(char::is_whitespace))
        .unwrap_or(line.len());
    let whole = rest.get(..length).unwrap_or_default();
    let closing = |c: char| ENDS.contains(c) || c == '…' || c == ')' && !whole.contains('(');
    let text = if whole.chars().all(|c| c == '.') {
        whole
    } else {
        whole.trim_end_matches(closing)
    };
    let inner = text.trim_start_matches('(');
    (text.len() - inner.len(), inner, text.len())
}

/// One of the words of a list.
pub(crate) fn is(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|w| w == word)
}

/// Letters, digits and underscores, and not a number.
pub(crate) fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word) && text.chars().any(|c| !c.is_ascii_digit())
}

/// Approximately the characters that `\w` matches.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The part of a file's name after its last dot.
pub(crate) fn extension(path: &str) -> Option<&str> {
    let (name, ext) = path.rsplit('/').next()?.rsplit_once('.')?;
    (!ext.is_empty() && ext.chars().all(is_word) && !name.is_empty()).then_some(ext)
}

/// Text as a regex that matches exactly it.
pub(crate) fn regex_escape(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            r"\.+*?()|[]{}^$"
                .contains(c)
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect()
}

/// One word for the shell.
pub(crate) fn shell_quote(text: &str) -> String {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._/-+=".contains(c));
    if plain && !text.is_empty() {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
