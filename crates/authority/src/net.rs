//! Connections to the hosts of a grant and to no other. Does not depend on the data sent over them.
//!
//! There are two kinds of grant. [`Net::to`] names hosts and ports exactly and does not check their addresses: for
//! endpoints that a person configured, which may be on this machine. [`Net::public`] is for hosts that a model or a
//! page may name: every resolved address is checked, and only the public internet is reached. The address that was
//! checked is the one connected to, so a name that changes its address in between gains nothing.

mod address;
mod pattern;
mod proxy;

pub use address::is_public;
pub use pattern::HostPattern;
pub use proxy::{HostProxy, HostRefusal, HostTraffic, Lent, NOT_CONNECTED, Traffic};

use crate::{Ambient, Door, Error, ErrorKind};
use pattern::is_literal;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// The most addresses of a name that are tried. All of them are checked.
pub const MAX_ADDRESSES: usize = 8;

/// The least time one address gets while others remain to be tried.
const MIN_SHARE: Duration = Duration::from_millis(250);

/// A host, as it is written in a URL (without brackets), and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// A DNS name or an IP address; compared without regard to ASCII case and to one trailing dot.
    pub host: String,
    pub port: u16,
}

impl HostPort {
    /// A host and a port.
    pub fn new(host: &str, port: u16) -> Self {
        Self {
            host: canonical(host),
            port,
        }
    }
}

impl FromStr for HostPort {
    type Err = Error;

    /// Reads `127.0.0.1:9000`, `[::1]:9000` or `db.internal:5432`: one host and one port.
    fn from_str(text: &str) -> Result<Self, Error> {
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        let parts = text
            .rsplit_once(':')
            .and_then(|(host, at)| Some((host, port(at)?)));
        let at = parts
            .filter(|(host, _)| !host.contains(':') || host.starts_with('['))
            .map(|(h, p)| Self::new(h, p));
        at.filter(|at| pattern::is_host(&at.host)).ok_or_else(|| {
            let shown =
                crate::text::escape_within(text, crate::text::Lines::One, pattern::MAX_HOST);
            let text =
                format!("endpoint `{shown}`: write a host and a port, such as 127.0.0.1:9000");
            Error::new(ErrorKind::FixInput, text)
        })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn canonical(host: &str) -> String {
    let host = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// A handle that connects to the hosts of one grant. The HTTP client takes one. Clones share the grant's door.
#[derive(Clone, Debug)]
pub struct Net {
    reach: Reach,
    door: Arc<Door>,
    resolver: Resolver,
}

type Find = dyn Fn(&HostPort) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Finds the addresses of a host and a port; called on a thread that may wait.
#[derive(Clone)]
pub struct Resolver(Arc<Find>);

impl Resolver {
    /// One that answers with this.
    pub fn new(
        find: impl Fn(&HostPort) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(find))
    }

    /// That of this machine.
    fn system() -> Self {
        Self::new(|at| {
            (at.host.as_str(), at.port)
                .to_socket_addrs()
                .map(Iterator::collect)
        })
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

#[derive(Clone, Debug)]
enum Reach {
    Exactly(Arc<BTreeSet<HostPort>>),
    Public(Arc<[HostPattern]>),
}

impl Net {
    /// A grant of exactly these hosts and ports, with any address.
    pub fn to(_: &Ambient, hosts: impl IntoIterator<Item = HostPort>) -> Self {
        let hosts = hosts
            .into_iter()
            .map(|at| HostPort::new(&at.host, at.port))
            .collect();
        Self {
            reach: Reach::Exactly(Arc::new(hosts)),
            door: Door::new(),
            resolver: Resolver::system(),
        }
    }

    /// A grant of these hosts of the public internet; other addresses are refused.
    pub fn public(_: &Ambient, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        Self {
            reach: Reach::Public(hosts.into_iter().collect()),
            door: Door::new(),
            resolver: Resolver::system(),
        }
    }

    /// The same with addresses from this resolver. They are checked like others.
    #[must_use]
    pub fn with_resolver(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// The grant narrowed to `hosts`, under a derived door. Of exactly named hosts, those that match a pattern remain;
    /// of public ones, each pattern must be covered.
    ///
    /// # Errors
    /// `Denied` when a pattern covers more than the grant.
    pub fn limited(&self, hosts: &[HostPattern]) -> Result<Self, Error> {
        let reach = match &self.reach {
            Reach::Exactly(all) => {
                let meant =
                    |at: &&HostPort| hosts.iter().any(|host| host.matches(&at.host, at.port));
                Reach::Exactly(Arc::new(all.iter().filter(meant).cloned().collect()))
            }
            Reach::Public(all) => {
                if let Some(more) = hosts
                    .iter()
                    .find(|host| !all.iter().any(|own| own.covers(host)))
                {
                    return Err(self.beyond(&more.to_string()));
                }
                Reach::Public(hosts.into())
            }
        };
        Ok(Self {
            reach,
            door: self.door.derive(),
            resolver: self.resolver.clone(),
        })
    }

    /// Whether the grant includes a host and port. Addresses are checked on connecting.
    pub fn names(&self, host: &str, port: u16) -> bool {
        match &self.reach {
            Reach::Exactly(all) => all.contains(&HostPort::new(host, port)),
            Reach::Public(all) => all.iter().any(|own| own.matches(host, port)),
        }
    }

    /// The hosts of the grant, as text.
    pub fn hosts(&self) -> Vec<String> {
        match &self.reach {
            Reach::Exactly(all) => all.iter().map(HostPort::to_string).collect(),
            Reach::Public(all) => all.iter().map(HostPattern::to_string).collect(),
        }
    }

    fn beyond(&self, what: &str) -> Error {
        let known = self.hosts();
        let known = if known.is_empty() {
            "no host".to_owned()
        } else {
            known.join(", ")
        };
        Error::new(
            ErrorKind::Denied,
            format!("{what}: this grant allows only {known}"),
        )
    }

    /// The door of this grant.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// Resolves `host` and connects to the first of at most [`MAX_ADDRESSES`] addresses that answers, all within
    /// `timeout`. Nagle's algorithm is off. The door does not close a stream that was returned: its owner selects on
    /// [`Door::closed`].
    ///
    /// # Errors
    /// `Denied` for a host or port that is not in the grant, or for a non-public address under a public grant;
    /// `Unavailable` when the name does not resolve, no address answers, or the timeout expires; `Revoked`.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        timeout: Duration,
    ) -> Result<TcpStream, Error> {
        let at = HostPort::new(host, port);
        let _use = self
            .door
            .enter()
            .map_err(|_| Error::revoked(&at.to_string()))?;
        if !self.names(&at.host, port) || !pattern::is_host(&at.host) {
            return Err(self.beyond(&at.to_string()));
        }
        tokio::select! {
            () = self.door.closed() => Err(Error::revoked(&at.to_string())),
            done = tokio::time::timeout(timeout, self.open(&at, timeout)) => done.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Unavailable, format!("{at}: no connection within {timeout:?}; check the network")))
            }),
        }
    }

    async fn open(&self, at: &HostPort, timeout: Duration) -> Result<TcpStream, Error> {
        let until = Instant::now() + timeout;
        let mut addresses = resolve(at, self.resolver.clone()).await?;
        if let Reach::Public(_) = self.reach {
            judged(at, &addresses)?;
        }
        addresses.truncate(MAX_ADDRESSES);
        let mut trouble = None;
        for (tried, address) in addresses.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now());
            let waiting = u32::try_from(addresses.len() - tried).unwrap_or(1);
            let share = (left / waiting).max(MIN_SHARE);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream
                        .set_nodelay(true)
                        .map_err(|error| Error::system(&format!("connect to {at}"), error))?;
                    return Ok(stream);
                }
                Ok(Err(error)) => trouble = Some(Error::system(&reached(at, *address), error)),
                Err(_late) => {
                    let text = format!("{}: no answer within {share:?}", reached(at, *address));
                    trouble = Some(Error::new(ErrorKind::Unavailable, text));
                }
            }
        }
        let nothing = || {
            Error::new(
                ErrorKind::Unavailable,
                format!("{at}: the name has no address; check its spelling"),
            )
        };
        Err(trouble.unwrap_or_else(nothing).unavailable())
    }
}

/// What failed; the caller names the host.
fn reached(at: &HostPort, address: SocketAddr) -> String {
    let address = address.to_string();
    if at.to_string() == address {
        "cannot connect".to_owned()
    } else {
        format!("cannot connect to {address}")
    }
}

/// All addresses must be public: a name that also resolves to an internal address is refused.
fn judged(at: &HostPort, addresses: &[SocketAddr]) -> Result<(), Error> {
    for found in addresses {
        if let Err(why) = address::judge(found.ip()) {
            let text = format!(
                "{at}: its address {} is {why}; only addresses on the public internet are allowed",
                found.ip()
            );
            return Err(Error::new(ErrorKind::Denied, text));
        }
    }
    Ok(())
}

async fn resolve(at: &HostPort, resolver: Resolver) -> Result<Vec<SocketAddr>, Error> {
    let query = at.clone();
    let found = tokio::task::spawn_blocking(move || (resolver.0)(&query))
        .await
        .map_err(|error| {
            Error::new(
                ErrorKind::Bug,
                format!("{at}: the resolver ended early: {error}"),
            )
        })?;
    found.map_err(|error| {
        let is_unknown = error.raw_os_error().is_none();
        let failed = Error::system(&format!("resolve {at}"), error).unavailable();
        match is_unknown {
            true => failed.not_found(),
            false => failed,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_one_host_and_one_port() {
        for (text, shown) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("[::1]:1", "[::1]:1"),
            ("Db.Internal.:65535", "db.internal:65535"),
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "localhost",
            ":1",
            "a:0",
            "a:65536",
            "a:*",
            "*:1",
            "*.a:1",
            "::1:1",
            "http://a:1",
            "a:1/x",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_address_of_an_answer_is_judged() {
        let at = HostPort::new("x.example", 443);
        let sockets = |all: &[&str]| {
            all.iter()
                .map(|ip| SocketAddr::new(ip.parse().unwrap(), 443))
                .collect::<Vec<_>>()
        };
        assert!(judged(&at, &sockets(&["1.1.1.1", "2606:4700::1"])).is_ok());
        let mut many = vec!["1.1.1.1"; 2 * MAX_ADDRESSES];
        many.push("10.0.0.1");
        for answer in [
            &["1.1.1.1", "127.0.0.1"][..],
            &["::1"],
            &["2606:4700::1", "fd00::1"],
            &many,
        ] {
            let error = judged(&at, &sockets(answer)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            assert!(error.to_string().contains("x.example"), "{error}");
        }
    }
}
