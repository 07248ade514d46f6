//! A proxy through which the commands of a pod reach the hosts of a grant, and no other: HTTP `CONNECT` for TLS, and
//! requests with a whole `http://` URL. It ends nothing of TLS and reads none of what it passes on.
//!
//! ```text
//! a command ─▶ head of the request ─▶ names a host of the grant? ─▶ [`Net`]: resolve, check, connect ─▶ both ways
//!                                      └── 403 with the setting that allows it
//! ```
//!
//! Each connection carries one request. All is bounded: connections, the head, its time, and the time without a byte.

mod head;
mod lent;
mod traffic;

pub use lent::Lent;
pub use traffic::{HostRefusal, HostTraffic, NOT_CONNECTED, Traffic};

use super::{HostPattern, HostPort, Net};
use crate::{Error, ErrorKind};
use head::{Head, MAX_HEAD, Way};
use lent::Lendings;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use traffic::Counts;

/// The most connections at once; others wait in the kernel.
const MAX_CONNECTIONS: usize = 64;

/// How long the head of a request may take.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// How long resolving and connecting may take.
const CONNECT_WAIT: Duration = Duration::from_secs(20);

/// After this long without a byte in any direction, a connection is closed.
const IDLE: Duration = Duration::from_secs(120);

/// How long and how much is read after a refusal: what is unread when a socket is closed discards the answer.
const LINGER: Duration = Duration::from_secs(1);
const MAX_LINGER: usize = 64 << 10;

/// The pause after the system refused a connection: it has no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const BUFFER: usize = 16 << 10;

/// A proxy to the hosts of a grant, for all, and to those that are lent to one child. Clones share what is lent and counted.
#[derive(Clone, Debug)]
pub struct HostProxy {
    own: Option<Net>,
    lent: Lendings,
    counts: Arc<Counts>,
}

/// What is answered in place of a host.
struct Answer {
    status: &'static str,
    text: String,
}

impl HostProxy {
    /// A proxy to the hosts of `own`, if all children are to use it, that can lend hosts of `lendable`.
    #[must_use]
    pub fn new(own: Option<Net>, lendable: Net) -> Self {
        Self {
            own,
            lent: Lendings::new(lendable),
            counts: Arc::default(),
        }
    }

    /// Whether all children use it.
    pub(crate) fn is_for_all(&self) -> bool {
        self.own.is_some()
    }

    /// Lets what has the key of the answer reach these hosts as well, until that is dropped.
    pub(crate) fn lend(&self, hosts: &[HostPattern]) -> Result<Lent, Error> {
        self.lent.lend(hosts)
    }

    /// What was passed on and refused until now.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.counts.read()
    }

    /// Serves until it is dropped, with all of its connections.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = open.join_next(), if !open.is_empty() => {}
                accepted = listener.accept(), if open.len() < MAX_CONNECTIONS => match accepted {
                    Ok((client, _)) => drop(open.spawn(self.clone().attend(client))),
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }

    async fn attend(self, mut client: TcpStream) {
        if let Err(answer) = self.pass(&mut client).await {
            // The client may have gone.
            refuse(&mut client, &answer).await.ok();
        }
    }

    /// Serves one request; returns what is answered in its place.
    async fn pass(&self, client: &mut TcpStream) -> Result<(), Answer> {
        let head = match timeout(HEAD_WAIT, read_head(client)).await {
            Ok(Ok(head)) => head,
            Ok(Err(answer)) => return Err(self.refused(None, HostRefusal::Request, answer)),
            Err(_) => {
                let late = Answer::new(
                    "408 Request Timeout",
                    format!("no request within {HEAD_WAIT:?}"),
                );
                return Err(self.refused(None, HostRefusal::Request, late));
            }
        };
        let at = &head.at;
        let named = setting(at);
        let name = Some(named.as_str());
        let denied = |text| Answer::new("403 Forbidden", text);
        if super::is_literal(&at.host) {
            let text = format!(
                "{at}: hosts are reached by name only; network = \"on\" under [sandbox] allows addresses"
            );
            return Err(self.refused(name, HostRefusal::Address, denied(text)));
        }
        // TLS to the port of plain HTTP, and the other way round, is no program of packages.
        let is_usual = at.port
            != if matches!(head.way, Way::Tunnel) {
                80
            } else {
                443
            };
        let lent = self.lent.of(head.key.as_deref());
        let names = |net: &&Net| is_usual && net.names(&at.host, at.port);
        let Some(net) = self.own.iter().chain(&lent).find(names) else {
            if head.key.is_none() && is_usual && self.lent.any(at) {
                // Some programs name themselves only when they are asked to.
                return Err(Answer::new(
                    "407 Proxy Authentication Required",
                    format!("{at}: who asks?"),
                ));
            }
            let text = format!(
                "{at} is not in `hosts`; {}",
                traffic::allowing(&format!("\"{named}\""))
            );
            return Err(self.refused(name, HostRefusal::NotNamed, denied(text)));
        };
        let mut host = match net.connect(&at.host, at.port, CONNECT_WAIT).await {
            Ok(host) => host,
            Err(error) if error.kind() == ErrorKind::Denied => {
                let text = format!(
                    "{at} leads to an address that is not on the public internet; network = \"on\" under [sandbox] allows it"
                );
                return Err(self.refused(name, HostRefusal::Address, denied(text)));
            }
            Err(error) => {
                let text = Answer::new("502 Bad Gateway", error.to_string());
                return Err(self.refused(name, HostRefusal::Unreachable, text));
            }
        };
        let flow = Flow {
            counts: &self.counts,
            host: &named,
            last: Mutex::new(Instant::now()),
        };
        tokio::select! {
            () = net.door().closed() => {}
            // One of them has gone, or was silent for too long.
            _ = flow.carry(client, &mut host, head) => {}
        }
        Ok(())
    }

    fn refused(&self, host: Option<&str>, why: HostRefusal, answer: Answer) -> Answer {
        self.counts.refused(host.unwrap_or(traffic::NO_HOST), why);
        answer
    }
}

impl Answer {
    fn new(status: &'static str, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }
}

/// How a host is written into the setting.
fn setting(at: &HostPort) -> String {
    if [80, 443].contains(&at.port) {
        at.host.clone()
    } else {
        at.to_string()
    }
}

async fn read_head(client: &mut TcpStream) -> Result<Head, Answer> {
    let bad = |text: &str| Answer::new("400 Bad Request", text);
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 1024];
        let read = client
            .read(&mut chunk)
            .await
            .map_err(|_| bad("the connection broke"))?;
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
        match Head::parse(&bytes) {
            Err(why) => return Err(bad(why)),
            Ok(Some(head)) => return Ok(head),
            Ok(None) if read == 0 => return Err(bad("the request ended early")),
            Ok(None) if bytes.len() >= MAX_HEAD => {
                let text = format!("the head of a request has more than {MAX_HEAD} bytes");
                return Err(Answer::new("431 Request Header Fields Too Large", text));
            }
            Ok(None) => {}
        }
    }
}

async fn refuse(client: &mut TcpStream, Answer { status, text }: &Answer) -> io::Result<()> {
    let body = format!("yoi: {text}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nProxy-Authenticate: Basic realm=\"yoi\"\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let write = async {
        client.write_all(head.as_bytes()).await?;
        client.write_all(body.as_bytes()).await?;
        client.shutdown().await?;
        tokio::io::copy(&mut client.take(MAX_LINGER as u64), &mut tokio::io::sink()).await
    };
    timeout(LINGER, write).await?.map(drop)
}

/// What passes between a command and a host.
struct Flow<'a> {
    counts: &'a Counts,
    host: &'a str,
    /// When a byte passed last, in any direction.
    last: Mutex<Instant>,
}

impl Flow<'_> {
    async fn carry(
        &self,
        client: &mut TcpStream,
        host: &mut TcpStream,
        head: Head,
    ) -> io::Result<()> {
        let Head {
            way,
            at: _,
            key: _,
            rest,
        } = head;
        self.counts.connected(self.host);
        let (first, body) = match way {
            Way::Tunnel => {
                client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await?;
                (Vec::new(), None)
            }
            Way::Request { head, body } => (head, Some(body)),
        };
        let body_length = body.map_or(usize::MAX, |body| {
            usize::try_from(body).unwrap_or(usize::MAX)
        });
        let early = rest.get(..rest.len().min(body_length)).unwrap_or_default();
        for bytes in [first.as_slice(), early] {
            timeout(IDLE, host.write_all(bytes)).await??;
            self.passed(true, bytes.len());
        }
        let (from_client, to_client) = client.split();
        let (from_host, to_host) = host.split();
        let left = body.map(|body| body.saturating_sub(early.len() as u64));
        let sent = self.pump(from_client, to_host, left, true);
        tokio::try_join!(sent, self.pump(from_host, to_client, None, false)).map(drop)
    }

    /// Passes on what comes, at most `left` bytes, and then the end. After that many, the other side is left open.
    async fn pump(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        mut left: Option<u64>,
        is_sent: bool,
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        while left != Some(0) {
            let most = left.map_or(BUFFER, |left| {
                usize::try_from(left).unwrap_or(BUFFER).min(BUFFER)
            });
            let read = self
                .unless_idle(from.read(buffer.get_mut(..most).unwrap_or_default()))
                .await?;
            if read == 0 {
                return to.shutdown().await;
            }
            self.passed(is_sent, read);
            let bytes = buffer.get(..read).unwrap_or_default();
            self.unless_idle(to.write_all(bytes)).await?;
            left = left.map(|left| left.saturating_sub(read as u64));
        }
        Ok(())
    }

    async fn unless_idle<T>(&self, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut step = std::pin::pin!(step);
        loop {
            let until = *self.last.lock().unwrap_or_else(PoisonError::into_inner) + IDLE;
            match timeout_at(until, &mut step).await {
                Ok(done) => return done,
                Err(_) if !self.is_idle() => {}
                Err(late) => return Err(late.into()),
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
            >= IDLE
    }

    fn passed(&self, is_sent: bool, bytes: usize) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.counts.passed(self.host, is_sent, bytes as u64);
    }
}

#[cfg(test)]
mod tests;
