//! Patterns for host names in grants. Nothing is resolved here.

use crate::{Error, ErrorKind};
use std::fmt;
use std::str::FromStr;

/// The longest host name in DNS.
pub(super) const MAX_HOST: usize = 253;

/// The ports of a pattern that names none.
const WEB: [u16; 2] = [80, 443];

/// A pattern for hosts in a grant: `docs.example.org`, `*.example.org` (names below it, not itself) or `*`, each with
/// `:PORT` behind it for another port than 80 and 443, or `:*` for any. Letters are ASCII: other names are written in
/// the form of DNS (`xn--…`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    host: Host,
    port: Port,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Port {
    Web,
    One(u16),
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Any,
    /// With its dot: `.example.org`.
    Below(String),
    Exact(String),
}

impl HostPattern {
    /// Every host at every port.
    pub fn any() -> Self {
        Self {
            host: Host::Any,
            port: Port::Any,
        }
    }

    /// The pattern of one host that is named, at a port at most.
    ///
    /// # Errors
    /// `FixInput` for a wildcard, an address in any form, and what is no name.
    pub fn named(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| Err(Error::new(ErrorKind::FixInput, why));
        if text.contains('*') {
            return bad("each host must be named; no wildcards");
        }
        let Ok(host) = text.parse() else {
            return bad("write the name of a host, with a port at most");
        };
        match &host {
            Self {
                host: Host::Exact(name),
                ..
            } if !is_literal(name) => Ok(host),
            _address => {
                bad("hosts are reached by name, not by address; network = \"on\" allows addresses")
            }
        }
    }

    /// Whether a host and port match.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = super::canonical(host);
        let meant = match &self.host {
            Host::Any => true,
            Host::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            Host::Exact(name) => *name == host,
        };
        meant && self.port.covers(Port::One(port))
    }

    /// Whether a host matches, whatever the port.
    pub fn matches_name(&self, host: &str) -> bool {
        Self {
            host: self.host.clone(),
            port: Port::Any,
        }
        .matches(host, 0)
    }

    /// Whether the pattern names ports.
    pub fn names_port(&self) -> bool {
        self.port != Port::Web
    }

    /// Whether this pattern matches everything that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        let hosts = match (&self.host, &other.host) {
            (Host::Any, _) => true,
            (Host::Below(suffix), Host::Below(other)) => other.ends_with(suffix),
            (Host::Below(suffix), Host::Exact(name)) => {
                name.len() > suffix.len() && name.ends_with(suffix)
            }
            (Host::Exact(name), Host::Exact(other)) => name == other,
            (Host::Below(_), Host::Any) | (Host::Exact(_), Host::Any | Host::Below(_)) => false,
        };
        hosts && self.port.covers(other.port)
    }
}

impl Port {
    fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Web, Self::One(port)) => WEB.contains(&port),
            (own, other) => own == other,
        }
    }
}

impl FromStr for HostPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |why| {
            let shown = crate::text::escape_within(text, crate::text::Lines::One, MAX_HOST);
            Error::new(
                ErrorKind::FixInput,
                format!("host `{shown}`: {why}; write docs.example.org, *.example.org or *"),
            )
        };
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are in brackets when a port follows.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let one = || port.parse().ok().filter(|port| *port > 0).map(Port::One);
                let port = if port == "*" { Some(Port::Any) } else { one() };
                (
                    host,
                    port.ok_or_else(|| bad("the port must be 1 to 65535, or `*`"))?,
                )
            }
            _no_port => (text, Port::Web),
        };
        let name = super::canonical(host);
        let host = match name.strip_prefix('*') {
            Some("") => Host::Any,
            Some(suffix) if suffix.strip_prefix('.').is_some_and(is_name) => {
                Host::Below(suffix.to_owned())
            }
            Some(_) => return Err(bad("`*` must stand for all labels before a dot")),
            None if is_host(&name) => Host::Exact(name),
            None => {
                return Err(bad(
                    "it must be the name of a host, without scheme and path",
                ));
            }
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match &self.host {
            Host::Any => "*".to_owned(),
            Host::Below(suffix) => format!("*{suffix}"),
            Host::Exact(name) if name.contains(':') && self.names_port() => format!("[{name}]"),
            Host::Exact(name) => name.clone(),
        };
        match self.port {
            Port::One(port) => write!(f, "{host}:{port}"),
            Port::Any => write!(f, "{host}:*"),
            Port::Web => f.write_str(&host),
        }
    }
}

/// Whether a resolver takes this host for an address, also in forms such as `127.1` and `0x7f000001`.
pub(super) fn is_literal(host: &str) -> bool {
    let host = super::canonical(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number =
        |text: &str, radix| !text.is_empty() && text.chars().all(|c| char::is_digit(c, radix));
    host.contains(':')
        || is_number(last, 10)
        || last
            .strip_prefix("0x")
            .is_some_and(|hex| hex.is_empty() || is_number(hex, 16))
}

/// Whether it can be the host of a URL: a name, or an address.
pub(super) fn is_host(host: &str) -> bool {
    is_name(host) || host.parse::<std::net::Ipv6Addr>().is_ok()
}

fn is_name(name: &str) -> bool {
    let fits = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    name.len() <= MAX_HOST && name.split('.').all(fits)
}

#[cfg(test)]
mod tests;
