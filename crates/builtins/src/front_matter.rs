//! Front matter: the YAML between two lines `---` at the beginning of a Markdown file, as skills, commands and agents have
//! it. Only texts and lists of texts of the top level count. Anchors and aliases are refused, so that a small text stays small.

use saphyr_parser::{Event, Parser};
use std::collections::BTreeMap;

/// Most bytes of front matter.
const MAX: usize = 16 * 1024;
/// Most parts of it, and how deep they are nested.
const MAX_EVENTS: usize = 4096;
const MAX_DEPTH: usize = 16;

/// The fields of a file. A list is written as `[one, two]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter(BTreeMap<String, String>);

/// Why front matter does not count.
enum Unread {
    /// It is not YAML: people write texts with `: ` in them, or `[one] [two]`, without quotes.
    Syntax(String),
    Refused(String),
}

impl FrontMatter {
    /// Reads a file; gives its fields and the text below them. A file without front matter has no fields.
    ///
    /// # Errors
    /// The front matter does not end, is too long, or is no mapping of YAML without anchors.
    pub fn read(text: &str) -> Result<(Self, &str), String> {
        let Some((yaml, body)) = split(text)? else {
            return Ok((Self::default(), text));
        };
        if yaml.len() > MAX {
            return Err(format!(
                "its front matter has {} bytes; at most {MAX} are read",
                yaml.len()
            ));
        }
        let fields = fields(yaml).or_else(|why| match why {
            Unread::Refused(why) => Err(why),
            Unread::Syntax(why) => fields(&quoted(yaml)).map_err(|_| why),
        });
        let fields = fields.map_err(|why| {
            let why: String = why.chars().take(200).collect();
            format!("its front matter {}", authority::text::escape_line(&why))
        })?;
        Ok((Self(fields), body))
    }

    /// All keys, in their order by name; also those whose value [`Self::get`] does not have.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A field, if it is there and not empty.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let text = self.0.get(key)?.trim();
        (!text.is_empty()).then_some(text)
    }
}

/// The YAML and the text below it.
fn split(text: &str) -> Result<Option<(&str, &str)>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Ok(None);
    };
    let mut at = first.len();
    for line in lines {
        if is_fence(line) {
            let yaml = text.get(first.len()..at);
            let body = text.get(at + line.len()..);
            return Ok(yaml.zip(body));
        }
        at += line.len();
    }
    Err("its front matter does not end with a line `---`".to_owned())
}

fn fields(yaml: &str) -> Result<BTreeMap<String, String>, Unread> {
    let refused = |why: &str| Err(Unread::Refused(why.to_owned()));
    let mut fields = BTreeMap::new();
    let mut list = None::<Vec<String>>;
    let mut depth = 0_usize;
    let mut key = None::<String>;
    for (count, event) in Parser::new_from_str(yaml).enumerate() {
        let (event, _) = event.map_err(|error| {
            let at = error.marker().line();
            Unread::Syntax(format!("is not YAML: line {at}: {}", error.info()))
        })?;
        if count > MAX_EVENTS || depth > MAX_DEPTH {
            return refused("has too many parts");
        }
        match event {
            Event::Alias(_) => return refused("has an alias, which is not followed"),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                return refused("has an anchor, which is not followed");
            }
            Event::Scalar(..) | Event::SequenceStart(..) if depth == 0 => {
                return refused("is not a mapping of keys");
            }
            Event::Scalar(text, ..) if depth == 1 => match key.take() {
                None => key = Some(text.into_owned()),
                Some(key) => {
                    fields.entry(key).or_insert_with(|| text.into_owned());
                }
            },
            Event::Scalar(text, ..) => {
                if let Some(list) = list.as_mut().filter(|_| depth == 2) {
                    list.push(text.into_owned());
                }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                depth += 1;
                if depth == 2 {
                    list = matches!(event, Event::SequenceStart(..)).then(Vec::new);
                    // A key that is a list or a mapping is none.
                    key = key.or_else(|| Some(String::new()));
                }
            }
            Event::SequenceEnd | Event::MappingEnd => {
                depth = depth.saturating_sub(1);
                if depth == 1
                    && let Some(key) = key.take()
                {
                    let list = list.take().map(|list| format!("[{}]", list.join(", ")));
                    fields
                        .entry(key)
                        .or_insert_with(|| list.unwrap_or_default());
                }
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
    }
    Ok(fields)
}

/// The same with the values of plain lines `key: value` quoted.
fn quoted(yaml: &str) -> String {
    let line = |line: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match line.split_once(": ") {
            Some((key, value))
                if !key.is_empty()
                    && key.bytes().all(fits)
                    && !value.trim().is_empty()
                    && !value.trim_start().starts_with(['"', '\'', '|', '>']) =>
            {
                format!("{key}: '{}'\n", value.trim().replace('\'', "''"))
            }
            _ => format!("{line}\n"),
        }
    };
    yaml.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, key: &str) -> Result<Option<String>, String> {
        FrontMatter::read(text).map(|(fields, _)| fields.get(key).map(str::to_owned))
    }

    #[test]
    fn fields_and_body_are_read() {
        let text = "---\nname: \"a b\"\ndescription: >\n  one\n  two\nallowed-tools: [Read, Grep]\nmetadata:\n  name: inner\n  list:\n    - x\n---\nbody\n---\n";
        let (fields, body) = FrontMatter::read(text).unwrap();
        assert_eq!(body, "body\n---\n");
        let of = |key| fields.get(key);
        assert_eq!(of("name"), Some("a b"));
        assert_eq!(of("description"), Some("one two"));
        assert_eq!(of("allowed-tools"), Some("[Read, Grep]"));
        assert_eq!(of("metadata"), None);
        assert_eq!(of("list"), None);
        let none = FrontMatter::read("# A title\n---\n").unwrap();
        assert_eq!(none, (FrontMatter::default(), "# A title\n---\n"));
        assert_eq!(
            FrontMatter::read("\u{feff}---\r\na: b\r\n---\r\nx")
                .unwrap()
                .1,
            "x"
        );
    }

    #[test]
    fn what_people_write_without_quotes_is_read() {
        for (line, value) in [
            ("Use when: a file is red", "Use when: a file is red"),
            ("[pr-number] [priority]", "[pr-number] [priority]"),
            ("@someone's: file", "@someone's: file"),
            ("[message]", "[message]"),
            ("*no alias", "*no alias"),
        ] {
            let text = format!("---\nname: a\nhint: {line}\n---\n");
            assert_eq!(get(&text, "hint"), Ok(Some(value.to_owned())), "{line}");
            assert_eq!(get(&text, "name"), Ok(Some("a".to_owned())), "{line}");
        }
    }

    #[test]
    fn what_would_grow_or_never_ends_is_refused() {
        let long = format!("---\na: {}\n---\n", "x".repeat(MAX));
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(40), "]".repeat(40));
        let many = format!("---\na: [{}]\n---\n", "1,".repeat(MAX_EVENTS));
        for (text, why) in [
            ("---\na: b\n", "does not end"),
            ("---\na: &x [1]\nb: *x\n---\n", "an anchor"),
            ("---\n- a\n---\n", "not a mapping"),
            ("---\njust text\n---\n", "not a mapping"),
            ("---\na: \"b\n---\n", "is not YAML"),
            (&long, "at most"),
            (&deep, "too many parts"),
            (&many, "too many parts"),
        ] {
            let found = get(text, "a");
            assert!(
                found.as_ref().is_err_and(|is| is.contains(why)),
                "{why}: {found:?}"
            );
        }
    }
}
