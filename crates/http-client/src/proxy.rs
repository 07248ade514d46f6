//! HTTP proxies between this program and an endpoint: which endpoints use one, and the way through it. Reads no variables.

use crate::error::{Error, HttpErrorKind};
use crate::url::BaseUrl;
use authority::HostPort;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::http::HeaderValue;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::io;
use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The most bytes of the head of a proxy's answer to CONNECT.
const MAX_HEAD: usize = 16 << 10;

/// The most entries of a list of hosts that are reached directly; more are ignored.
const MAX_DIRECT: usize = 1_000;

/// An HTTP proxy. Neither its texts nor its errors show its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    address: HostPort,
    is_tls: bool,
    login: Option<Login>,
}

#[derive(Clone, PartialEq, Eq)]
struct Login {
    /// The value of `Proxy-Authorization`.
    header: HeaderValue,
    /// The texts from which the password can be read.
    secrets: Vec<String>,
}

/// The text is not the URL of a proxy. The message shows no part of the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the URL of an HTTP proxy: {0}")]
pub struct InvalidProxy(&'static str);

impl Proxy {
    /// Parses `http://[USER:PASSWORD@]HOST[:PORT]`, or `https://` where the proxy itself speaks TLS. The scheme may be
    /// missing; the default port is 80 or 443. User and password may be percent-encoded.
    ///
    /// # Errors
    /// Another scheme, such as `socks5`; no host, or no valid port.
    pub fn parse(text: &str) -> Result<Self, InvalidProxy> {
        let text = text.trim();
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let is_tls = match scheme.map(str::to_ascii_lowercase).as_deref() {
            None | Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(InvalidProxy("it must begin with http:// or https://")),
        };
        let whole = match scheme {
            Some(_) => text.to_owned(),
            None => format!("http://{text}"),
        };
        let url = url::Url::parse(&whole).map_err(|_| InvalidProxy("write http://HOST:PORT"))?;
        let host = url.host_str().unwrap_or_default();
        // A sign in a password that ends the host early would show a part of it in its place.
        let has_more = !matches!(url.path(), "" | "/") || url.query().or(url.fragment()).is_some();
        if host.is_empty() || url.port() == Some(0) || has_more {
            return Err(InvalidProxy("write http://HOST:PORT"));
        }
        let port = url.port().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self {
            address: HostPort::new(host, port),
            is_tls,
            login: Login::of(&url),
        })
    }

    /// The host and port that the grant of the network must include, in place of the endpoint's.
    #[must_use]
    pub fn host_port(&self) -> &HostPort {
        &self.address
    }

    /// The texts that must not be shown: the password as it is and as it is written and sent. Empty without credentials.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.login
            .iter()
            .flat_map(|login| login.secrets.iter().map(String::as_str))
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The value of `Proxy-Authorization`.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.login.as_ref().map(|login| &login.header)
    }

    /// Asks the proxy to connect to `to`; the stream then leads there. The caller limits the time.
    ///
    /// # Errors
    /// `Connect` where the proxy cannot reach `to` now, or ends; `Proxy` where it refuses; `Malformed` where its answer
    /// is not HTTP/1.1.
    pub(crate) async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        to: &HostPort,
    ) -> Result<(), Error> {
        let lost = |error: io::Error| {
            let ended = error.kind() == io::ErrorKind::UnexpectedEof;
            let what = if ended {
                "it closed the connection".to_owned()
            } else {
                error.to_string()
            };
            self.error(HttpErrorKind::Connect(None), &what)
        };
        let mut ask = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
        if let Some(value) = self.authorization() {
            ask.extend_from_slice(b"Proxy-Authorization: ");
            ask.extend_from_slice(value.as_bytes());
            ask.extend_from_slice(b"\r\n");
        }
        ask.extend_from_slice(b"\r\n");
        stream.write_all(&ask).await.map_err(lost)?;
        stream.flush().await.map_err(lost)?;
        let mut head = Vec::new();
        // Byte by byte: what follows the head is the endpoint's.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_HEAD {
                return Err(self.error(HttpErrorKind::Malformed, "its answer is too long"));
            }
            head.push(stream.read_u8().await.map_err(lost)?);
        }
        match status(&head) {
            Some(200..300) => Ok(()),
            Some(407) => Err(self.wants_login()),
            // A proxy answers so for an endpoint that it cannot reach now.
            Some(code @ 500..600) => {
                let what = format!("it cannot connect to {to} (HTTP {code})");
                Err(self.error(HttpErrorKind::Connect(None), &what))
            }
            Some(code) => {
                let what = format!("it refuses to connect to {to} (HTTP {code})");
                Err(self.error(HttpErrorKind::Proxy, &what))
            }
            None => Err(self.error(HttpErrorKind::Malformed, "its answer is not HTTP/1.1")),
        }
    }

    /// The error for an answer with the status 407.
    pub(crate) fn wants_login(&self) -> Error {
        let what = match self.login {
            Some(_) => "it refuses the user and password of its URL (HTTP 407)",
            None => "it wants a user and password (HTTP 407): write http://USER:PASSWORD@HOST:PORT",
        };
        self.error(HttpErrorKind::Proxy, what)
    }

    fn error(&self, kind: HttpErrorKind, what: &str) -> Error {
        Error::new(kind, format!("{self}: {what}"))
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}", self.address)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Login {
    fn of(url: &url::Url) -> Option<Self> {
        let password = url.password().unwrap_or_default();
        if url.username().is_empty() && password.is_empty() {
            return None;
        }
        let plain: Vec<u8> = percent_decode_str(password).collect();
        let mut both: Vec<u8> = percent_decode_str(url.username()).collect();
        both.push(b':');
        both.extend_from_slice(&plain);
        let encoded = STANDARD.encode(&both);
        // Base 64 has no byte that a header cannot have.
        let mut header = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
        header.set_sensitive(true);
        let plain = String::from_utf8_lossy(&plain).into_owned();
        let secrets = [plain, password.to_owned(), encoded];
        Some(Self {
            header,
            secrets: secrets
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect(),
        })
    }
}

/// The status in the head of an answer; `None` if it is not HTTP/1.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let code = rest.split(' ').next()?;
    version.starts_with("HTTP/1.").then(|| code.parse().ok())?
}

/// Whether a list such as `NO_PROXY` names this endpoint: its host or a domain above it, an address, a network such as
/// `10.0.0.0/8`, each alone or with a port behind `:`; `*` names every host. Entries are separated by commas or blanks.
/// An endpoint on this machine is treated like any other, as curl does.
#[must_use]
pub fn is_direct(list: &str, base: &BaseUrl) -> bool {
    let host = base.host().trim_end_matches('.').to_ascii_lowercase();
    list.split([',', ' ', '\t'])
        .filter(|entry| !entry.is_empty())
        .take(MAX_DIRECT)
        .any(|entry| names(&entry.to_ascii_lowercase(), &host, base.port()))
}

fn names(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let (name, at) = match entry.rsplit_once(':') {
        // Without brackets, more colons are those of an address.
        Some((name, at)) if !name.contains(':') || name.ends_with(']') => (name, Some(at)),
        _ => (entry, None),
    };
    if at.is_some_and(|at| at.parse() != Ok(port)) {
        return false;
    }
    let name = name.trim_matches(['[', ']']);
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_in(address.to_canonical(), name);
    }
    let name = name
        .strip_prefix("*.")
        .or_else(|| name.strip_prefix('.'))
        .unwrap_or(name)
        .trim_end_matches('.');
    let is_below = || {
        host.strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    !name.is_empty() && (host == name || is_below())
}

/// Whether an address is this one, or in this network.
fn is_in(address: IpAddr, network: &str) -> bool {
    let (network, bits) = network
        .split_once('/')
        .map_or((network, None), |(network, bits)| (network, Some(bits)));
    let Ok(network) = network.parse::<IpAddr>() else {
        return false;
    };
    let (width, one, other) = match (address, network.to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (32, u128::from(u32::from(one)), u128::from(u32::from(other)))
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (128, u128::from(one), u128::from(other)),
        _ => return false,
    };
    match bits.map(str::parse::<u32>) {
        None => one == other,
        Some(Ok(bits)) if bits <= width => {
            let rest = width - bits;
            one.checked_shr(rest) == other.checked_shr(rest)
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests;
