//! Connections to the hosts a grant names, and to no other.

use crate::{Ambient, Door, Error, ErrorKind};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How many of a name's addresses are tried.
pub const MAX_ADDRESSES: usize = 8;

/// The least time one address gets while others remain to be tried.
const MIN_SHARE: Duration = Duration::from_millis(250);

/// A host, as it is written in a URL (without brackets), and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// A DNS name or an IP address; compared without regard to ASCII case and to one trailing dot.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl HostPort {
    /// A host and a port.
    pub fn new(host: &str, port: u16) -> Self {
        Self { host: canonical(host), port }
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
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The right to connect to some hosts. Clones share the grant's door.
#[derive(Clone, Debug)]
pub struct Net {
    hosts: Arc<BTreeSet<HostPort>>,
    door: Arc<Door>,
}

impl Net {
    /// Exactly these hosts and ports.
    pub fn to(_: &Ambient, hosts: impl IntoIterator<Item = HostPort>) -> Self {
        let hosts = hosts.into_iter().map(|at| HostPort::new(&at.host, at.port)).collect();
        Self { hosts: Arc::new(hosts), door: Door::new() }
    }

    /// Only those of its hosts for which `keep` holds, under a door of its own that shuts with this one's.
    #[must_use]
    pub fn narrowed(&self, keep: impl Fn(&HostPort) -> bool) -> Self {
        let hosts = self.hosts.iter().filter(|at| keep(at)).cloned().collect();
        Self { hosts: Arc::new(hosts), door: self.door.derive() }
    }

    /// The hosts of the grant.
    pub fn hosts(&self) -> impl Iterator<Item = &HostPort> {
        self.hosts.iter()
    }

    /// The door of this grant.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// Resolves `host` and connects to the first of at most [`MAX_ADDRESSES`] addresses that answers, all within
    /// `timeout`. Nagle's algorithm is off. The stream itself is not under the door once it is handed out: its owner
    /// selects on [`Door::closed`].
    ///
    /// # Errors
    /// `Denied` for a host or port that is not in the grant; `Unavailable` when the name does not resolve, nothing
    /// answers, or the time is over; `Revoked`.
    pub async fn connect(&self, host: &str, port: u16, timeout: Duration) -> Result<TcpStream, Error> {
        let at = HostPort::new(host, port);
        let _pass = self.door.enter().map_err(|_| Error::revoked(&at.to_string()))?;
        if !self.hosts.contains(&at) {
            let known: Vec<_> = self.hosts.iter().map(HostPort::to_string).collect();
            let known = if known.is_empty() { "no host".to_owned() } else { known.join(", ") };
            return Err(Error::new(ErrorKind::Denied, format!("{at}: this grant reaches {known}")));
        }
        tokio::select! {
            () = self.door.closed() => Err(Error::revoked(&at.to_string())),
            done = tokio::time::timeout(timeout, open(&at, timeout)) => done.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Unavailable, format!("{at}: no connection within {timeout:?}; check the network")))
            }),
        }
    }
}

async fn open(at: &HostPort, timeout: Duration) -> Result<TcpStream, Error> {
    let until = Instant::now() + timeout;
    let addresses = resolve(at).await?;
    let mut trouble = None;
    for (tried, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let waiting = u32::try_from(addresses.len() - tried).unwrap_or(1);
        let share = (left / waiting).max(MIN_SHARE);
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(|error| Error::system(&format!("connect to {at}"), error))?;
                return Ok(stream);
            }
            Ok(Err(error)) => trouble = Some(Error::system(&format!("connect to {at} ({address})"), error)),
            Err(_late) => {
                let text = format!("connect to {at} ({address}): no answer within {share:?}");
                trouble = Some(Error::new(ErrorKind::Unavailable, text));
            }
        }
    }
    let nothing = || Error::new(ErrorKind::Unavailable, format!("{at}: the name has no address; check its spelling"));
    Err(trouble.unwrap_or_else(nothing).unavailable())
}

async fn resolve(at: &HostPort) -> Result<Vec<SocketAddr>, Error> {
    let query = (at.host.clone(), at.port);
    let found =
        tokio::task::spawn_blocking(move || query.to_socket_addrs().map(|all| all.take(MAX_ADDRESSES).collect()))
            .await
            .map_err(|error| Error::new(ErrorKind::Bug, format!("{at}: the resolver ended early: {error}")))?;
    found.map_err(|error| Error::system(&format!("resolve {at}"), error).unavailable())
}
