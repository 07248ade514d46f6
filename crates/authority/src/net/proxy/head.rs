//! The head of a request to a proxy: which host it names, and what that host gets of it. Strict: what another reader could
//! take for something else is refused.

use super::super::HostPort;

/// The most bytes of a head, and its most lines.
pub(super) const MAX_HEAD: usize = 16 << 10;
const MAX_LINES: usize = 64;

/// Lines of a head that are for the proxy alone, beside those that `Connection` names.
const OF_CONNECTION: &[&str] = &[
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// A whole head.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) at: HostPort,
    pub(super) way: Way,
    /// The words by which the client names itself.
    pub(super) key: Option<String>,
    /// What was read behind it.
    pub(super) rest: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Way {
    /// All bytes pass.
    Tunnel,
    /// One request: its head as the host gets it, and the bytes of its body.
    Request { head: Vec<u8>, body: u64 },
}

impl Head {
    /// `None`: there is more to read.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let mut lines = [httparse::EMPTY_HEADER; MAX_LINES];
        let mut request = httparse::Request::new(&mut lines);
        let status = request
            .parse(bytes)
            .map_err(|_| "this is no HTTP request")?;
        let httparse::Status::Complete(end) = status else {
            return Ok(None);
        };
        let method = request.method.unwrap_or_default();
        let target = request.path.unwrap_or_default();
        let rest = bytes.get(end..).unwrap_or_default().to_vec();
        let key = request
            .headers
            .iter()
            .find(|line| line.name.eq_ignore_ascii_case("proxy-authorization"));
        let key = key.map(|line| String::from_utf8_lossy(line.value).into_owned());
        if method == "CONNECT" {
            let at = target
                .parse()
                .map_err(|_| "the target of CONNECT must be a host and a port")?;
            return Ok(Some(Self {
                at,
                way: Way::Tunnel,
                key,
                rest,
            }));
        }
        const NO_URL: &str = "this proxy takes CONNECT and http:// URLs";
        let (scheme, url) = target.split_at_checked("http://".len()).ok_or(NO_URL)?;
        if !scheme.eq_ignore_ascii_case("http://") {
            return Err(NO_URL);
        }
        let (host, path) = url.split_at(url.find(['/', '?']).unwrap_or(url.len()));
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(before, _)| !before.contains(':') || before.ends_with(']'));
        let at = if has_port {
            host.parse()
        } else {
            format!("{host}:80").parse()
        };
        let at: HostPort = at.map_err(|_| "the URL must have a host, without a user")?;
        let (mut head, body) = forwarded(&at, request.headers)?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        head.splice(
            ..0,
            format!("{method} {slash}{path} HTTP/1.1\r\n").into_bytes(),
        );
        Ok(Some(Self {
            at,
            way: Way::Request { head, body },
            key,
            rest,
        }))
    }
}

/// The lines for the host, and the length of the body.
fn forwarded(
    at: &HostPort,
    lines: &[httparse::Header<'_>],
) -> Result<(Vec<u8>, u64), &'static str> {
    let host = if at.port == 80 {
        at.to_string().trim_end_matches(":80").to_owned()
    } else {
        at.to_string()
    };
    let mut head = format!("Host: {host}\r\nConnection: close\r\n").into_bytes();
    let mut body = None;
    let of_connection = lines
        .iter()
        .filter(|line| line.name.eq_ignore_ascii_case("connection"));
    let named: Vec<&str> = of_connection
        .flat_map(|line| {
            std::str::from_utf8(line.value)
                .unwrap_or_default()
                .split(',')
        })
        .map(str::trim)
        .collect();
    for line in lines {
        let is = |name: &&str| line.name.eq_ignore_ascii_case(name);
        if is(&"transfer-encoding") {
            return Err("a request through this proxy must name the length of its body");
        }
        if is(&"content-length") {
            let length = std::str::from_utf8(line.value)
                .ok()
                .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            let length = length
                .and_then(|text| text.parse().ok())
                .filter(|_| body.is_none());
            body = Some(length.ok_or("the length of the body must be one number")?);
        } else if OF_CONNECTION.iter().chain(&named).any(is) {
            continue;
        }
        for part in [line.name.as_bytes(), b": ", line.value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    Ok((head, body.unwrap_or(0)))
}
