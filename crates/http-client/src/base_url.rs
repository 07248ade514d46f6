//! The address of an endpoint, parsed once.

use authority::{ErrorKind, HostPort};
use std::fmt;

/// `http` or `https`, host, port and path prefix. No credentials, query or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    origin: Origin,
    path: String,
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tls: bool,
    /// Lower case, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A URL that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("URL `{url}`: {why}")]
pub struct BadUrl {
    pub(crate) url: String,
    pub(crate) why: &'static str,
}

impl BadUrl {
    /// Always that the input is to be fixed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::FixInput
    }
}

impl BaseUrl {
    /// Reads a URL such as `http://127.0.0.1:8080/v1`. A trailing `/` is dropped.
    ///
    /// # Errors
    /// Another scheme, no host, a bad port, credentials, a query or a fragment.
    pub fn parse(url: &str) -> Result<Self, BadUrl> {
        let bad = |why| BadUrl::new(url, why);
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("expected http://… or https://…"))?;
        if url.contains(|c: char| c.is_ascii_control() || !c.is_ascii() || matches!(c, ' ' | '"' | '<' | '>' | '\\')) {
            return Err(bad("it holds a character that a URL cannot hold"));
        }
        if rest.contains(['?', '#']) {
            return Err(bad("a query or fragment does not belong here"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let origin = Origin::parse(scheme, authority).map_err(bad)?;
        Ok(Self { origin, path: path.trim_end_matches('/').to_owned() })
    }

    pub(crate) fn at(origin: Origin) -> Self {
        Self { origin, path: String::new() }
    }

    /// The same without `suffix` at the end of its path: people paste a whole address where its base is wanted.
    #[must_use]
    pub fn without(mut self, suffix: &str) -> Self {
        if let Some(path) = self.path.strip_suffix(suffix) {
            self.path.truncate(path.len());
        }
        self
    }

    /// What [`authority::Net`] must reach.
    #[must_use]
    pub fn host_port(&self) -> HostPort {
        HostPort::new(&self.origin.host, self.origin.port)
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

    /// Whether it is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.origin.tls
    }

    /// Whether its host may be anywhere on the internet. Nothing is looked up: a public address, or a name that is not
    /// one of this machine or network (`localhost`, a name without a dot, `.local`, `.localhost`, `.internal`,
    /// `.home.arpa`).
    #[must_use]
    pub fn is_public(&self) -> bool {
        let host = self.origin.host.strip_suffix('.').unwrap_or(&self.origin.host);
        if let Ok(address) = host.parse() {
            return authority::is_public(address);
        }
        let ends = [".local", ".localhost", ".internal", ".home.arpa"];
        // Without a dot and with a digit first it is an address in an old form.
        let near = !host.contains('.') && !host.starts_with(|c: char| c.is_ascii_digit());
        !near && !ends.iter().any(|end| host.ends_with(end))
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn host_header(&self) -> String {
        self.origin.host_header()
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

impl Origin {
    /// Reads `http` or `https` and `host`, `host:port`, `[v6]` or `[v6]:port`.
    pub(crate) fn parse(scheme: &str, authority: &str) -> Result<Self, &'static str> {
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _other => return Err("the scheme must be http or https"),
        };
        if authority.contains('@') {
            return Err("a user or password does not belong here");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(six) => {
                let (host, after) = six.split_once(']').ok_or("the bracket of the address is not closed")?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| "not an IPv6 address in the brackets")?;
                let port = after.strip_prefix(':');
                if port.is_none() && !after.is_empty() {
                    return Err("expected a port after the brackets");
                }
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err("the host is missing");
        }
        if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte)) {
            return Err("the host holds a character that no host has; write other letters as DNS has them (xn--…)");
        }
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or("the port must be 1 to 65535")?,
            None if tls => 443,
            None => 80,
        };
        Ok(Self { tls, host: host.to_ascii_lowercase(), port })
    }

    fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host_header())
    }
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
            let text = crate::Url::parse(url).unwrap_err().to_string();
            assert!(!text.contains("hunter2") && !text.contains("ppp"), "{text}");
        }
    }
}
