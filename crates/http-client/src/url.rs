//! Addresses, parsed once: what is judged, connected to and shown is the same value.

use authority::{ErrorKind, HostPort};
use std::fmt;
use url::{ParseError, Position};

/// The most bytes of a URL.
pub const MAX_URL: usize = 8 << 10;

/// The address of an endpoint: `http` or `https`, host, port and path prefix. No credentials, query or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(url::Url);

/// An address on the web: `http` or `https`, host, port, path and query. No credentials; a fragment is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url(url::Url);

/// A URL that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("URL `{url}`: {why}")]
pub struct BadUrl {
    url: String,
    why: &'static str,
}

impl BaseUrl {
    /// Reads a URL such as `http://127.0.0.1:8080/v1`. A trailing `/` is dropped.
    ///
    /// # Errors
    /// Another scheme, no host, a bad port, credentials, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let bad = |why| Err(BadUrl::new(text, why));
        let foreign = |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\');
        match text.split_once("://") {
            None => bad("expected http://… or https://…"),
            Some(_) if text.contains(foreign) => bad("it holds a character that a URL cannot hold"),
            Some((_, rest)) if rest.contains(['?', '#']) => bad("a query or fragment does not belong here"),
            Some((_, rest)) if rest.starts_with('/') => bad("the host is missing"),
            Some(_) => checked(text, url::Url::parse(text)).map(Self),
        }
    }

    /// The same without `suffix` at the end of its path: people paste a whole address where its base is wanted.
    #[must_use]
    pub fn without(mut self, suffix: &str) -> Self {
        if let Some(path) = self.path().strip_suffix(suffix).map(str::to_owned) {
            self.0.set_path(&path);
        }
        self
    }

    /// What [`authority::Net`] must reach.
    #[must_use]
    pub fn host_port(&self) -> HostPort {
        HostPort::new(self.host(), self.port())
    }

    /// The host without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        host(&self.0)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        port(&self.0)
    }

    /// Whether it is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether its host may be anywhere on the internet. Nothing is looked up: a public address, or a name that is not
    /// one of this machine or network (`localhost`, a name without a dot, `.local`, `.localhost`, `.internal`,
    /// `.home.arpa`).
    #[must_use]
    pub fn is_public(&self) -> bool {
        let host = self.host().trim_end_matches('.');
        if let Ok(address) = host.parse() {
            return authority::is_public(address);
        }
        let ends = [".local", ".localhost", ".internal", ".home.arpa"];
        host.contains('.') && !ends.iter().any(|end| host.ends_with(end))
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    pub(crate) fn host_header(&self) -> &str {
        &self.0[Position::BeforeHost..Position::AfterPort]
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Url {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// Another scheme, no host, a bad port, credentials, more than [`MAX_URL`] bytes.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        Self::read(text, url::Url::parse)
    }

    /// What `reference` means on this page, as a link or a redirect has it.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn join(&self, reference: &str) -> Result<Self, BadUrl> {
        Self::read(reference, |reference| self.0.join(reference))
    }

    fn read(text: &str, parse: impl FnOnce(&str) -> Result<url::Url, ParseError>) -> Result<Self, BadUrl> {
        let text = text.trim();
        if text.len() > MAX_URL {
            return Err(BadUrl::new(text, "it is too long"));
        }
        let mut url = checked(text, parse(text))?;
        url.set_fragment(None);
        // What is encoded is longer.
        if url.as_str().len() > MAX_URL { Err(BadUrl::new(text, "it is too long")) } else { Ok(Self(url)) }
    }

    /// The endpoint it is at, without path.
    #[must_use]
    pub fn base(&self) -> BaseUrl {
        let mut base = self.0.clone();
        base.set_query(None);
        base.set_path("");
        BaseUrl(base)
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.0[Position::BeforePath..Position::AfterQuery]
    }

    /// The host without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        host(&self.0)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        port(&self.0)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl BadUrl {
    /// Always that the input is to be fixed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::FixInput
    }

    fn new(url: &str, why: &'static str) -> Self {
        // For a message; a URL may be very long, and what ends its password may stand behind the cut.
        let mut url = redacted(url);
        url.truncate(url.char_indices().nth(200).map_or(url.len(), |(at, _)| at));
        Self { url, why }
    }
}

/// A parsed URL, if it is one that can be reached and holds no credentials.
fn checked(text: &str, parsed: Result<url::Url, ParseError>) -> Result<url::Url, BadUrl> {
    let why = match parsed {
        Err(ParseError::RelativeUrlWithoutBase | ParseError::RelativeUrlWithCannotBeABaseBase) => {
            "expected http://… or https://…"
        }
        Err(ParseError::EmptyHost) => "the host is missing",
        Err(ParseError::InvalidPort) => "the port must be 1 to 65535",
        Err(ParseError::InvalidIpv6Address) => "not an IPv6 address in the brackets",
        Err(ParseError::InvalidIpv4Address) => "not an IPv4 address",
        Err(_) => "the host holds a character that no host has",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "the scheme must be http or https",
        Ok(url) if !url.username().is_empty() || url.password().is_some() => "a user or password does not belong here",
        Ok(url) if url.port() == Some(0) => "the port must be 1 to 65535",
        Ok(url) if host(&url).bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte)) => {
            return Ok(url);
        }
        Ok(_) => "the host holds a character that no host has",
    };
    Err(BadUrl::new(text, why))
}

fn host(url: &url::Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}

fn port(url: &url::Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

/// What stands before an `@` may be a password.
pub(crate) fn redacted(url: &str) -> String {
    let Some((before, after)) = url.rsplit_once('@') else { return url.to_owned() };
    let scheme = before.split_once("://").map(|(scheme, _)| scheme);
    match scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        Some(scheme) => format!("{scheme}://…@{after}"),
        None => format!("…@{after}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let table = [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", "127.0.0.1:8080"),
            ("https://API.openai.com/v1/", "https://api.openai.com/v1", "api.openai.com:443"),
            ("HTTP://localhost", "http://localhost", "localhost:80"),
            ("http://[::1]:11434/v1", "http://[::1]:11434/v1", "[::1]:11434"),
            ("https://x.example:8443", "https://x.example:8443", "x.example:8443"),
        ];
        for (url, shown, reached) in table {
            let parsed = BaseUrl::parse(url).unwrap();
            assert_eq!(
                (parsed.to_string().as_str(), parsed.host_port().to_string().as_str()),
                (shown, reached),
                "{url}"
            );
        }
    }

    #[test]
    fn which_hosts_are_public() {
        let near = "localhost LOCALHOST. a.localhost ollama nas.local x.home.arpa db.internal 127.0.0.1 127.9.9.9 10.1.2.3 \
                    172.16.0.1 192.168.1.9 169.254.1.1 100.64.0.9 0.0.0.0 [::1] [fd00::1] [fe80::1] [::ffff:10.0.0.1]";
        let public = "api.example.com example.com. 8.8.8.8 172.32.0.1 134744072 0x8080808 [2606:4700::1] [::ffff:8.8.8.8] \
                      local.example.com localhost.example.com 10.0.0.1.nip.io notlocal.net";
        for (hosts, is) in [(near, false), (public, true)] {
            for host in hosts.split_whitespace() {
                assert_eq!(BaseUrl::parse(&format!("http://{host}:8080/v1")).unwrap().is_public(), is, "{host}");
            }
        }
    }

    #[test]
    fn a_suffix_is_dropped_from_the_end() {
        for (url, base) in [("http://x/a/b/", "http://x/a"), ("http://x/b/a", "http://x/b/a"), ("http://x", "http://x")]
        {
            assert_eq!(BaseUrl::parse(url).unwrap().without("/b").to_string(), base);
        }
    }

    #[test]
    fn bad_urls_are_refused_and_passwords_not_repeated() {
        let table = [
            "",
            "localhost:8080",
            "ftp://x",
            "http://",
            "http://:80",
            "http://x:0",
            "http://x:99999",
            "http://x:a",
            "http://x/?a=b",
            "http://x/#f",
            "http://[::1",
            "http://[zz]",
            "http://[::1]x",
            "http://a b",
            "http://é/v1",
            "http://x/\r\nevil: 1",
        ];
        for url in table {
            assert_eq!(BaseUrl::parse(url).map_err(|bad| bad.kind()), Err(ErrorKind::FixInput), "{url:?}");
        }
        let long = format!("https://me:{}hunter2@x.example/v1", "p".repeat(300));
        for url in
            ["https://me:hunter2@x.example/v1", "me:hunter2@x.example/v1", "me:hunter2@http://x.example", long.as_str()]
        {
            let text = BaseUrl::parse(url).unwrap_err().to_string();
            assert!(!text.contains("hunter2") && !text.contains("ppp") && text.contains("x.example"), "{text}");
            let text = Url::parse(url).unwrap_err().to_string();
            assert!(!text.contains("hunter2") && !text.contains("ppp"), "{text}");
        }
    }

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
            ("https://é.org/", "https://xn--9ca.org/"),
            ("https://0x7f.1/", "https://127.0.0.1/"),
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
            "https://me:pw@x/",
            "https://me@x/",
            "https://x:0/",
            "https://x:70000/",
            "https://a b/",
            "https://[::1",
            "https://x%00/",
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
            ("\\\\y.org\\e", "https://y.org/e"),
        ];
        for (reference, want) in table {
            let joined = base.join(reference).map(|url| url.to_string()).unwrap_or_default();
            assert_eq!(joined, want, "{reference}");
        }
    }
}
