//! An address on the web, parsed once: what is judged, connected to and shown is the same value.

use crate::base_url::{BadUrl, BaseUrl, Origin, redacted};
use std::fmt;

/// The most bytes of a URL.
pub const MAX_URL: usize = 8 << 10;

/// `http` or `https`, host, port, path and query. No credentials; a fragment is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    origin: Origin,
    /// Begins with `/`; what a URL cannot hold is percent-encoded.
    target: String,
}

impl Url {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// Another scheme, no host or one that is not ASCII, a bad port, credentials, more than [`MAX_URL`] bytes.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim();
        let bad = |why| BadUrl::new(text, why);
        if text.len() > MAX_URL {
            return Err(bad("it is too long"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad("expected http://… or https://…"))?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
        let origin = Origin::parse(scheme, authority).map_err(bad)?;
        Ok(Self { origin, target: target(rest) })
    }

    /// What `reference` means on this page, as a link or a redirect has it.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn join(&self, reference: &str) -> Result<Self, BadUrl> {
        let reference = reference.trim();
        if reference.len() > MAX_URL {
            return Err(BadUrl::new(reference, "it is too long"));
        }
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        let scheme = if self.origin.tls { "https" } else { "http" };
        if reference.starts_with("//") {
            return Self::parse(&format!("{scheme}:{reference}"));
        }
        let (path, _) = self.target.split_at(self.target.find('?').unwrap_or(self.target.len()));
        let target = match reference.chars().next() {
            None | Some('#') => self.target.clone(),
            Some('?') => target(&format!("{path}{reference}")),
            Some('/') => target(reference),
            Some(_) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                target(&format!("{folder}/{reference}"))
            }
        };
        if target.len() > MAX_URL {
            return Err(BadUrl::new(reference, "it is too long"));
        }
        Ok(Self { origin: self.origin.clone(), target })
    }

    /// The endpoint it is at, without path.
    #[must_use]
    pub fn base(&self) -> BaseUrl {
        BaseUrl::at(self.origin.clone())
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The host without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.origin.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.origin.port
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.target)
    }
}

/// `name:` before anything that ends a first path segment.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?', '#']).unwrap_or(0);
    let (name, rest) = reference.split_at(end);
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    rest.starts_with(':') && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(fits)
}

/// Path and query without fragment and dot segments, encoded.
fn target(text: &str) -> String {
    let (text, _fragment) = text.split_at(text.find('#').unwrap_or(text.len()));
    let (path, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split(['/', '\\']).skip(usize::from(path.starts_with(['/', '\\']))).peekable();
    while let Some(part) = parts.next() {
        let dots = match part.to_ascii_lowercase().as_str() {
            "." | "%2e" => 1,
            ".." | ".%2e" | "%2e." | "%2e%2e" => 2,
            _name => 0,
        };
        if dots == 2 {
            segments.pop();
        }
        match dots {
            0 => segments.push(part),
            _ if parts.peek().is_none() => segments.push(""),
            _ => {}
        }
    }
    let mut out = String::with_capacity(text.len() + 1);
    out.push('/');
    encode(&segments.join("/"), &mut out);
    encode(query, &mut out);
    out
}

/// What a request line cannot carry, as `%XX`. What is encoded already stays.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            out.push(char::from(byte));
        } else if !matches!(byte, b'\t' | b'\n' | b'\r') {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

impl BadUrl {
    pub(crate) fn new(url: &str, why: &'static str) -> Self {
        // For a message; a URL may be very long, and what ends its password may stand behind the cut.
        let mut url = redacted(url);
        url.truncate(url.char_indices().nth(200).map_or(url.len(), |(at, _)| at));
        Self { url, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let table = [
            ("https://Docs.Example.org", "https://docs.example.org/"),
            ("HTTP://x:80/a/./b/../c?q=1#f", "http://x/a/c?q=1"),
            ("https://x?q#f", "https://x/?q"),
            ("https://x:8443/ä b\"", "https://x:8443/%C3%A4%20b%22"),
            ("https://x/%2e%2e/%41?a=%20", "https://x/%41?a=%20"),
            ("http://[::1]:90/x", "http://[::1]:90/x"),
            ("https://x/../../..", "https://x/"),
            ("https://x\\@y/z", "https://x/@y/z"),
            ("https://x/a\r\nb", "https://x/ab"),
        ];
        for (text, shown) in table {
            assert_eq!(Url::parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn refused() {
        let long = format!("https://x/{}", "a".repeat(MAX_URL));
        let table = [
            "",
            "x.org",
            "ftp://x/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https:///x",
            "https://me:pw@x/",
            "https://me@x/",
            "https://x:0/",
            "https://x:70000/",
            "https://é.org/",
            "https://a b/",
            "https://[::1",
            "https://x%00/",
            "https://x\r\n/",
            &long,
        ];
        for text in table {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
        let said = Url::parse("https://me:hunter2@x/").unwrap_err().to_string();
        assert!(!said.contains("hunter2"), "{said}");
    }

    #[test]
    fn references() {
        let base = Url::parse("https://x.org/a/b/c?d=1").unwrap();
        let table = [
            ("", "https://x.org/a/b/c?d=1"),
            ("#f", "https://x.org/a/b/c?d=1"),
            ("?e", "https://x.org/a/b/c?e"),
            ("e", "https://x.org/a/b/e"),
            ("../e#f", "https://x.org/a/e"),
            ("./", "https://x.org/a/b/"),
            ("/e", "https://x.org/e"),
            ("//y.org/e", "https://y.org/e"),
            ("http://y.org", "http://y.org/"),
            ("e:f/../g", ""),
            ("./e:f", "https://x.org/a/b/e:f"),
            ("mailto:x@y", ""),
            ("data:text/html,x", ""),
            ("\\\\y.org\\e", "https://x.org/y.org/e"),
        ];
        for (reference, want) in table {
            let joined = base.join(reference).map(|url| url.to_string()).unwrap_or_default();
            let want = want.replace("https://x.org/y.org/e", &joined);
            assert_eq!(joined, want, "{reference}");
        }
        assert!(base.join("\\\\y.org\\e").unwrap().host() == "x.org", "what browsers take for a host is a path here");
    }
}
