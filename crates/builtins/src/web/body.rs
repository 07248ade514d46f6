//! The kind of a response's body, by its type and its first bytes, and its text. Does not depend on HTML except for its
//! encoding.

use encoding_rs::{Encoding, UTF_8};

/// The bytes of a page that are searched for a declaration of its encoding.
const META: usize = 1024;

/// The kinds of body that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// A page.
    Html,
    /// Anything else that is text: plain, JSON, XML, source.
    Text,
}

/// The kind that a content type declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclaredKind {
    /// This one.
    Is(PageKind),
    /// No reliable declaration; the first bytes decide.
    Unsaid,
    /// None that is read.
    NotText,
}

/// Types beside `text/…`, `…+json` and `…+xml` that are text.
const TEXTS: &[&str] = &[
    "application/json",
    "application/ld+json",
    "application/x-ndjson",
    "application/xml",
    "application/javascript",
    "application/ecmascript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/x-sh",
    "application/sql",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ContentType {
    /// Lower case, without parameters; empty when there was none.
    pub(super) essence: String,
    charset: Option<String>,
}

impl ContentType {
    /// Reads a header's value; one that is none is like no header.
    pub(super) fn parse(value: Option<&str>) -> Self {
        let mut parts = value.unwrap_or_default().split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| value.trim().trim_matches('"').to_owned())
        });
        Self { essence, charset }
    }

    /// The kind as far as it is known before the body is read.
    pub(super) fn declared(&self) -> DeclaredKind {
        let essence = self.essence.as_str();
        match essence {
            "text/html" | "application/xhtml+xml" => DeclaredKind::Is(PageKind::Html),
            "" | "text/plain" | "application/octet-stream" | "binary/octet-stream" => {
                DeclaredKind::Unsaid
            }
            "image/svg+xml" => DeclaredKind::NotText,
            _ if essence.starts_with("text/") || TEXTS.contains(&essence) => {
                DeclaredKind::Is(PageKind::Text)
            }
            _ if essence.ends_with("+json") || essence.ends_with("+xml") => {
                DeclaredKind::Is(PageKind::Text)
            }
            _ => DeclaredKind::NotText,
        }
    }

    /// The text of a body and its kind; `None` if it is binary, whatever its declared type.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<(PageKind, String)> {
        let declared = self.declared();
        if declared == DeclaredKind::NotText {
            return None;
        }
        let start = bytes.get(..META.min(bytes.len())).unwrap_or_default();
        let said = self
            .charset
            .as_deref()
            .and_then(|label| Encoding::for_label(label.as_bytes()));
        let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
        let utf16 = [said, marked]
            .into_iter()
            .flatten()
            .any(|encoding| !encoding.is_ascii_compatible());
        if start.contains(&0) && !utf16 {
            return None;
        }
        let kind = match declared {
            DeclaredKind::Is(kind) => kind,
            DeclaredKind::Unsaid if self.essence.is_empty() && is_page(start) => PageKind::Html,
            DeclaredKind::Unsaid | DeclaredKind::NotText => PageKind::Text,
        };
        let own = || {
            if kind == PageKind::Html {
                meta(start)
            } else {
                None
            }
        };
        // A mark at the beginning wins inside `decode`.
        let (text, _, _) = said.or_else(own).unwrap_or(UTF_8).decode(bytes);
        Some((kind, text.into_owned()))
    }
}

fn is_page(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The encoding that a page's `<meta>` names.
fn meta(start: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let (_, rest) = start.split_once("charset")?;
    let rest = rest
        .trim_start()
        .strip_prefix('=')?
        .trim_start()
        .trim_start_matches(['"', '\'']);
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c))
        .unwrap_or(rest.len());
    let found = Encoding::for_label(rest.get(..end)?.as_bytes())?;
    // A page that could be read so far is not in a two-byte encoding, whatever it declares.
    Some(if found.is_ascii_compatible() {
        found
    } else {
        UTF_8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let table = [
            (
                Some("text/html; charset=utf-8"),
                DeclaredKind::Is(PageKind::Html),
            ),
            (Some("TEXT/HTML"), DeclaredKind::Is(PageKind::Html)),
            (
                Some("application/xhtml+xml"),
                DeclaredKind::Is(PageKind::Html),
            ),
            (Some("application/json"), DeclaredKind::Is(PageKind::Text)),
            (
                Some("application/vnd.api+json;v=1"),
                DeclaredKind::Is(PageKind::Text),
            ),
            (Some("text/x-rust"), DeclaredKind::Is(PageKind::Text)),
            (Some("text/plain"), DeclaredKind::Unsaid),
            (None, DeclaredKind::Unsaid),
            (Some("application/octet-stream"), DeclaredKind::Unsaid),
            (Some("image/png"), DeclaredKind::NotText),
            (Some("image/svg+xml"), DeclaredKind::NotText),
            (Some("application/pdf"), DeclaredKind::NotText),
            (Some("video/mp4; codecs=x"), DeclaredKind::NotText),
            (Some("nonsense"), DeclaredKind::NotText),
        ];
        for (value, want) in table {
            assert_eq!(ContentType::parse(value).declared(), want, "{value:?}");
        }
    }

    #[test]
    fn encodings() {
        let latin: &[u8] = b"caf\xe9";
        type Row = (
            &'static str,
            &'static [u8],
            Option<(PageKind, &'static str)>,
        );
        let table: [Row; 12] = [
            (
                "text/plain; charset=ISO-8859-1",
                latin,
                Some((PageKind::Text, "café")),
            ),
            (
                "text/plain; Charset=\"latin1\"",
                latin,
                Some((PageKind::Text, "café")),
            ),
            ("text/plain", latin, Some((PageKind::Text, "caf\u{fffd}"))),
            (
                "text/plain; charset=no-such",
                "café".as_bytes(),
                Some((PageKind::Text, "café")),
            ),
            (
                "text/html",
                b"<meta charset='windows-1252'>caf\xe9",
                Some((PageKind::Html, "<meta charset='windows-1252'>café")),
            ),
            (
                "text/html",
                b"<meta charset=utf-16>x",
                Some((PageKind::Html, "<meta charset=utf-16>x")),
            ),
            (
                "text/plain; charset=latin1",
                b"\xef\xbb\xbfcaf\xc3\xa9",
                Some((PageKind::Text, "café")),
            ),
            (
                "text/plain; charset=shift_jis",
                b"\x93\xfa\x96\x7b",
                Some((PageKind::Text, "日本")),
            ),
            (
                "text/plain",
                b"\xff\xfea\0b\0",
                Some((PageKind::Text, "ab")),
            ),
            ("text/plain", b"a\0b", None),
            (
                "",
                b"  <!DOCTYPE html><p>x",
                Some((PageKind::Html, "  <!DOCTYPE html><p>x")),
            ),
            ("image/png", b"text", None),
        ];
        for (value, bytes, want) in table {
            let read = ContentType::parse(Some(value)).read(bytes);
            assert_eq!(
                read.as_ref().map(|(kind, text)| (*kind, text.as_str())),
                want,
                "{value}"
            );
        }
    }
}
