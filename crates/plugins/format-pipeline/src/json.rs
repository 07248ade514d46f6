//! JSON as it came: fields in their order, digits of numbers as they are written. `serde_json::Value` keeps neither.

use std::borrow::Cow;

/// Deeper values are left as they are.
const MAX_DEPTH: usize = 128;

/// A value of JSON over its text.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The digits as they are written.
    Number(&'a str),
    /// A text without its escapes.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// Fields in their order. A name may stand there twice.
    Object(Fields<'a>),
}

/// The fields of an object.
pub type Fields<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

impl<'a> Json<'a> {
    /// The value of a text that is JSON and nothing else, at most 128 levels deep.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.space();
        (parser.at == text.len()).then_some(value)
    }

    /// Whether it is neither a list nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Object(_))
    }

    /// The value as JSON without spaces.
    pub fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// Appends the value as JSON without spaces.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => quote(text, out),
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    quote(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a text in quotes, with the escapes that both JSON and TOON know.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|b| b < b' ' || b == b'"' || b == b'\\')
    {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = special.chars();
        match chars.next().unwrap_or_default() {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c @ ('"' | '\\') => out.extend(['\\', c]),
            c => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Whether a text has the form of a number of JSON.
pub(crate) fn is_number(text: &str) -> bool {
    number_end(text.as_bytes()) == Some(text.len())
}

/// Where the number at the beginning of a text ends.
fn number_end(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = digits(start);
    if end == start || (bytes.get(start) == Some(&b'0') && end > start + 1) {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if fraction == end + 1 {
            return None;
        }
        end = fraction;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent == end + 1 + sign {
            return None;
        }
        end = exponent;
    }
    Some(end)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Steps over a byte that must be next.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Option<Json<'a>> {
        self.rest().starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        match self.peek()? {
            b'n' => self.word("null", Json::Null),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'"' => self.string().map(Json::Text),
            b'[' => self.list(depth),
            b'{' => self.object(depth),
            _ => {
                let rest = self.rest();
                let end = number_end(rest.as_bytes())?;
                self.at += end;
                rest.get(..end).map(Json::Number)
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Json<'a>> {
        self.take(b'[')?;
        let mut items = Vec::new();
        self.space();
        if self.take(b']').is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take(b',').is_none() {
                self.take(b']')?;
                return Some(Json::List(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json<'a>> {
        self.take(b'{')?;
        let mut fields = Vec::new();
        self.space();
        if self.take(b'}').is_some() {
            return Some(Json::Object(fields));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            self.take(b':')?;
            fields.push((name, self.value(depth + 1)?));
            self.space();
            if self.take(b',').is_none() {
                self.take(b'}')?;
                return Some(Json::Object(fields));
            }
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take(b'"')?;
        let rest = self.rest();
        let mut end = 0;
        let mut is_plain = true;
        loop {
            match *rest.as_bytes().get(end)? {
                b'"' => break,
                b'\\' => (is_plain, end) = (false, end + 2),
                0..b' ' => return None,
                _ => end += 1,
            }
        }
        let quoted = self.text.get(self.at - 1..=self.at + end)?;
        self.at += end + 1;
        if is_plain {
            return rest.get(..end).map(Cow::Borrowed);
        }
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_digits_and_repeated_names() {
        let text = "{\"b\": 123456789012345678901234567890, \"a\":\t[1.50, -0, 1E+9, \"\\u00e9\\n\"], \"b\": {}}";
        assert_eq!(
            Json::parse(text).map(|json| json.compact()).as_deref(),
            Some("{\"b\":123456789012345678901234567890,\"a\":[1.50,-0,1E+9,\"é\\n\"],\"b\":{}}")
        );
    }

    #[test]
    fn refuses_what_is_no_json() {
        for text in [
            "",
            " ",
            "01",
            "1.",
            "-",
            "1e",
            ".5",
            "+1",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "\"\n\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"",
            "\"\\",
            "nul",
            "[1]]",
            "NaN",
        ] {
            assert_eq!(Json::parse(text), None, "{text:?}");
            assert!(
                serde_json::from_str::<serde_json::Value>(text).is_err(),
                "{text:?}"
            );
        }
        assert_eq!(Json::parse(&"[".repeat(5000)), None);
        let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
        assert!(Json::parse(&deep).is_some());
        assert_eq!(Json::parse(&format!("[{deep}]")), None);
    }
}
