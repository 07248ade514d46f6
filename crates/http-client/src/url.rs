//! URLs, parsed once: the value that is checked is the one connected to and displayed. Nothing is resolved.

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

/// The error of parsing a URL, with the reason; the text hides credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL `{url}` is not valid: {why}")]
pub struct InvalidUrl {
    url: String,
    why: &'static str,
}

impl BaseUrl {
    /// Parses a URL such as `http://127.0.0.1:8080/v1`. A trailing `/` is dropped.
    ///
    /// # Errors
    /// Another scheme, no host, a bad port, credentials, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let bad = |why| Err(InvalidUrl::new(text, why));
        let foreign = |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\');
        match text.split_once("://") {
            None => bad("it must begin with http:// or https://"),
            Some(_) if text.contains(foreign) => {
                bad("it contains a character that is not allowed in a URL")
            }
            Some((_, rest)) if rest.contains(['?', '#']) => {
                bad("it must not contain a query or fragment")
            }
            Some((_, rest)) if rest.starts_with('/') => bad("the host is missing"),
            Some(_) => checked(text, url::Url::parse(text)).map(Self),
        }
    }

    /// Removes `suffix` from the end of the path, because people paste a full URL where the base is expected.
    #[must_use]
    pub fn without(mut self, suffix: &str) -> Self {
        if let Some(path) = self.path().strip_suffix(suffix).map(str::to_owned) {
            self.0.set_path(&path);
        }
        self
    }

    /// The host and port that the [`authority::Net`] grant must include.
    #[must_use]
    pub fn host_port(&self) -> HostPort {
        HostPort::new(self.host(), self.port())
    }

    /// The host without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        host(&self.0)
    }

    /// The port of the URL, or the default of its scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        port(&self.0)
    }

    /// Whether it is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether its host may be on the internet, without a lookup: a public address, or a name that is not of this
    /// machine or network (`localhost`, a name without a dot, `.local`, `.localhost`, `.internal`, `.home.arpa`).
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
    /// Parses an absolute URL.
    ///
    /// # Errors
    /// Another scheme, no host, a bad port, credentials, more than [`MAX_URL`] bytes.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        Self::read(text, url::Url::parse)
    }

    /// Resolves a link or a redirect's target relative to this URL.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn join(&self, reference: &str) -> Result<Self, InvalidUrl> {
        Self::read(reference, |reference| self.0.join(reference))
    }

    fn read(
        text: &str,
        parse: impl FnOnce(&str) -> Result<url::Url, ParseError>,
    ) -> Result<Self, InvalidUrl> {
        let text = text.trim();
        if text.len() > MAX_URL {
            return Err(InvalidUrl::new(text, "it is too long"));
        }
        let mut url = checked(text, parse(text))?;
        url.set_fragment(None);
        // Encoding can make it longer.
        if url.as_str().len() > MAX_URL {
            Err(InvalidUrl::new(text, "it is too long"))
        } else {
            Ok(Self(url))
        }
    }

    /// The endpoint of this URL, without path.
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

    /// The port of the URL, or the default of its scheme.
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

impl InvalidUrl {
    /// Always `FixInput`.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::FixInput
    }

    fn new(url: &str, why: &'static str) -> Self {
        // Hidden before the URL is cut for the message, because the end of its password may be behind the cut.
        let mut url = redacted(url);
        url.truncate(url.char_indices().nth(200).map_or(url.len(), |(at, _)| at));
        Self { url, why }
    }
}

/// A parsed URL, if it is one that can be reached and holds no credentials.
fn checked(text: &str, parsed: Result<url::Url, ParseError>) -> Result<url::Url, InvalidUrl> {
    let why = match parsed {
        Err(ParseError::RelativeUrlWithoutBase | ParseError::RelativeUrlWithCannotBeABaseBase) => {
            "it must begin with http:// or https://"
        }
        Err(ParseError::EmptyHost) => "the host is missing",
        Err(ParseError::InvalidPort) => "the port must be 1 to 65535",
        Err(ParseError::InvalidIpv6Address) => "the text in the brackets is not an IPv6 address",
        Err(ParseError::InvalidIpv4Address) => "the host is not an IPv4 address",
        Err(_) => "the host contains a character that is not allowed",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "the scheme must be http or https",
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "it must not contain a user name or password"
        }
        Ok(url) if url.port() == Some(0) => "the port must be 1 to 65535",
        Ok(url)
            if host(&url)
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte)) =>
        {
            return Ok(url);
        }
        Ok(_) => "the host contains a character that is not allowed",
    };
    Err(InvalidUrl::new(text, why))
}

fn host(url: &url::Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}

fn port(url: &url::Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

/// Hides the text before an `@`, which may be a password.
pub(crate) fn redacted(url: &str) -> String {
    let Some((before, after)) = url.rsplit_once('@') else {
        return url.to_owned();
    };
    let scheme = before.split_once("://").map(|(scheme, _)| scheme);
    match scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        Some(scheme) => format!("{scheme}://…@{after}"),
        None => format!("…@{after}"),
    }
}

#[cfg(test)]
mod tests;
