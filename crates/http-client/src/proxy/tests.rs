//! Proxies as people write them, and the way through one on loopback, with TLS inside and without.

use super::*;
use crate::{HttpClient, HttpRequest, Method, Timeouts, Tls};
use authority::Net;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// An authority that nobody trusts, and a certificate of it for `api.example.test`, until 2120. The key is of these tests alone.
const AUTHORITY: &[u8] = include_bytes!("../../tests/certs/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../tests/certs/server.pem");
const KEY: &[u8] = include_bytes!("../../tests/certs/server.key");

/// `us%er:p@ss` in base 64.
const LOGIN: &str = "Basic dXMlZXI6cEBzcw==";

fn base(url: &str) -> BaseUrl {
    BaseUrl::parse(url).unwrap()
}

#[test]
fn a_proxy_is_parsed_as_people_write_it() {
    for (text, address, login) in [
        ("http://proxy.corp:3128", "proxy.corp:3128", None),
        ("proxy.corp:3128", "proxy.corp:3128", None),
        ("HTTP://10.0.0.1/", "10.0.0.1:80", None),
        ("https://proxy.corp", "proxy.corp:443", None),
        (" http://[::1]:8080 ", "[::1]:8080", None),
        (
            "http://us%25er:p%40ss@proxy",
            "proxy:80",
            Some("us%er:p@ss"),
        ),
        ("me@proxy:1", "proxy:1", Some("me:")),
        ("http://@proxy:1", "proxy:1", None),
    ] {
        let proxy = Proxy::parse(text).unwrap();
        assert_eq!(proxy.to_string(), format!("the proxy {address}"));
        let sent = proxy.authorization().map(HeaderValue::as_bytes);
        let want = login.map(|login| format!("Basic {}", STANDARD.encode(login)));
        assert_eq!(sent, want.as_deref().map(str::as_bytes), "{text}");
        assert!(!format!("{proxy:?}").contains('@'), "{proxy:?}");
    }
    let proxy = Proxy::parse("http://us%25er:p%40ss@proxy").unwrap();
    let secrets: Vec<_> = proxy.secrets().collect();
    assert_eq!(secrets, ["p@ss", "p%40ss", "dXMlZXI6cEBzcw=="]);
    for bad in [
        "",
        "socks5://u:secret@p:1",
        "http://",
        "p:99999",
        "p:0",
        "http://u:secret@:1",
        "http://u:secret@a b:1",
    ] {
        let why = Proxy::parse(bad).unwrap_err().to_string();
        assert!(!why.contains("secret"), "{why}");
    }
}

#[test]
fn a_list_names_the_hosts_that_are_reached_directly() {
    for (list, url) in [
        ("*", "https://api.example.com"),
        ("other, example.com", "https://api.example.com"),
        ("other example.com", "https://api.example.com"),
        ("EXAMPLE.com", "https://example.COM"),
        (".example.com", "https://example.com."),
        ("example.com.", "https://example.com"),
        ("*.example.com", "https://api.example.com"),
        ("example.com:8443", "https://example.com:8443"),
        ("10.1.2.3", "https://10.1.2.3"),
        ("10.0.0.0/8", "https://10.1.2.3"),
        ("10.0.0.0/8:443", "https://10.1.2.3"),
        ("fd00::/8", "https://[fd12::1]"),
        ("fd12::1", "https://[fd12::1]"),
        ("[fd12::1]:443", "https://[fd12::1]"),
        ("10.1.2.3", "https://[::ffff:10.1.2.3]"),
        ("0.0.0.0/0", "https://10.1.2.3"),
        ("localhost", "http://localhost:1"),
    ] {
        assert!(is_direct(list, &base(url)), "{list} {url}");
    }
    for (list, url) in [
        ("", "https://api.example.com"),
        (",", "https://api.example.com"),
        (".", "https://api.example.com"),
        ("example.com", "https://notexample.com"),
        ("api.example.com", "https://example.com"),
        ("example.com:8443", "https://example.com"),
        ("example.com:x", "https://example.com"),
        ("10.0.0.0/33", "https://10.1.2.3"),
        ("10.0.0.0/16", "https://10.1.2.3"),
        ("10.0.0.0/", "https://10.1.2.3"),
        ("2.3", "https://10.1.2.3"),
        ("fd00::/8", "https://10.1.2.3"),
        // As curl does: loopback is a host like any other.
        ("", "http://127.0.0.1:1"),
        ("", "http://localhost:1"),
    ] {
        assert!(!is_direct(list, &base(url)), "{list} {url}");
    }
}

/// Each row: what a proxy answers to CONNECT before it ends, and how the tunnel fails, with a part of the message.
#[tokio::test]
async fn a_tunnel_that_is_refused_names_the_proxy_and_the_reason() {
    use HttpErrorKind::{Connect, Malformed, Proxy as Refused};
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(MAX_HEAD));
    for (answer, want) in [
        ("HTTP/1.1 200 Connection established\r\n\r\n", Ok(())),
        ("HTTP/1.0 200\r\nvia: x\r\n\r\n", Ok(())),
        (
            "HTTP/1.1 407 No\r\n\r\n",
            Err((Refused, "refuses the user and password")),
        ),
        ("HTTP/1.1 403 No\r\n\r\n", Err((Refused, "HTTP 403"))),
        ("HTTP/1.1 301 No\r\n\r\n", Err((Refused, "HTTP 301"))),
        (
            "HTTP/1.1 503 No\r\n\r\n",
            Err((Connect(None), "cannot connect to a:443")),
        ),
        ("SSH-2.0-x\r\n\r\n", Err((Malformed, "not HTTP/1.1"))),
        ("HTTP/1.1 two\r\n\r\n", Err((Malformed, "not HTTP/1.1"))),
        (long.as_str(), Err((Malformed, "too long"))),
        ("HTTP/1.1 200 OK\r\n", Err((Connect(None), "closed"))),
    ] {
        let proxy = Proxy::parse("http://us%25er:p%40ss@p:1").unwrap();
        let (mut near, mut far) = tokio::io::duplex(64 << 10);
        far.write_all(answer.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        let to = HostPort::new("a", 443);
        let done = proxy.tunnel(&mut near, &to).await;
        assert_eq!(
            head(&mut far).await,
            format!(
                "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nProxy-Authorization: {LOGIN}\r\n\r\n"
            )
        );
        match (done, want) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err((kind, words))) => {
                assert_eq!(error.kind, kind, "{error}");
                let text = error.to_string();
                assert!(
                    text.starts_with("the proxy p:1: ") && text.contains(words),
                    "{text}"
                );
                assert!(!text.contains("p@ss") && !text.contains(LOGIN), "{text}");
            }
            (done, want) => panic!("{answer}: {done:?}, not {want:?}"),
        }
    }
}

/// One connection: the head of what was asked, and the rest of it.
async fn asked(listener: &TcpListener) -> (String, TcpStream) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = head(&mut stream).await;
    (head, stream)
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async fn listener() -> (TcpListener, HostPort) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, HostPort::new("127.0.0.1", port))
}

/// A client of an endpoint behind this proxy. Its grant reaches the proxy alone.
fn client(url: &str, at: &HostPort, tls: Tls) -> HttpClient {
    let proxy = Proxy::parse(&format!("http://us%25er:p%40ss@{at}")).unwrap();
    let net = Net::to(&ambient::claim(), [at.clone()]);
    let timeouts = Timeouts {
        connect: Duration::from_secs(20),
        ..Timeouts::USUAL
    };
    HttpClient::new(base(url), net, timeouts)
        .secured(tls)
        .through(Some(proxy))
}

async fn exchange(client: &HttpClient) -> Result<Vec<u8>, Error> {
    let request = HttpRequest {
        method: Method::GET,
        path: "/x",
        headers: crate::HeaderMap::new(),
        body: None,
        once: false,
    };
    let mut answer = client.send(&request).await?;
    let mut body = Vec::new();
    while let Some(piece) = answer.next().await? {
        body.extend_from_slice(&piece);
    }
    answer.keep().await;
    Ok(body)
}

/// Name and address of an `https` endpoint stay the endpoint's: only the tunnel leads through the proxy, which resolves the
/// name and sees neither request nor credentials of the endpoint.
#[tokio::test]
async fn an_https_endpoint_is_reached_through_a_tunnel_and_a_private_authority() {
    let tls = Tls::with_certificates(AUTHORITY).unwrap();
    let (listener, at) = listener().await;
    let client = client("https://api.example.test/v1", &at, tls);
    let server = async {
        let (connect, mut stream) = asked(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
                PrivateKeyDer::from_pem_slice(KEY).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut heads = Vec::new();
        for _kept in 0..2 {
            heads.push(head(&mut stream).await);
            stream.write_all(OK).await.unwrap();
            stream.flush().await.unwrap();
        }
        (connect, heads)
    };
    let both = async { [exchange(&client).await, exchange(&client).await] };
    let ((connect, heads), bodies) = tokio::join!(server, both);
    for body in bodies {
        assert_eq!(body.unwrap(), b"ok");
    }
    assert_eq!(
        connect,
        format!(
            "CONNECT api.example.test:443 HTTP/1.1\r\nHost: api.example.test:443\r\nProxy-Authorization: {LOGIN}\r\n\r\n"
        )
    );
    for head in heads {
        assert!(head.starts_with("GET /v1/x HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("host: api.example.test\r\n"), "{head}");
        assert!(!head.contains("proxy-authorization"), "{head}");
    }
}

#[tokio::test]
async fn an_http_endpoint_is_asked_of_the_proxy() {
    let (listener, at) = listener().await;
    let client = client("http://api.example.test:8080/v1", &at, Tls::default());
    let server = async {
        let (head, mut stream) = asked(&listener).await;
        stream.write_all(OK).await.unwrap();
        let (_second, mut refused) = {
            stream.shutdown().await.unwrap();
            asked(&listener).await
        };
        refused
            .write_all(b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        head
    };
    let both = async { (exchange(&client).await, exchange(&client).await) };
    let (head, (first, second)) = tokio::join!(server, both);
    assert_eq!(first.unwrap(), b"ok");
    let target = "GET http://api.example.test:8080/v1/x HTTP/1.1\r\n";
    assert!(head.starts_with(target), "{head}");
    assert!(head.contains("host: api.example.test:8080\r\n"), "{head}");
    assert!(
        head.contains(&format!("proxy-authorization: {LOGIN}\r\n")),
        "{head}"
    );
    let error = second.unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Proxy);
    assert!(error.message.contains(&at.to_string()), "{error}");
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_named_and_its_password_is_not() {
    let (gone, at) = listener().await;
    drop(gone);
    let error = exchange(&client("https://api.example.test", &at, Tls::default())).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Connect(None), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("the proxy {at}: ")), "{text}");
    assert!(!text.contains("p@ss") && !text.contains("p%40ss"), "{text}");

    let (_silent, at) = listener().await;
    let proxy = Proxy::parse(&at.to_string()).unwrap();
    let timeouts = Timeouts {
        connect: Duration::from_millis(100),
        ..Timeouts::USUAL
    };
    let net = Net::to(&ambient::claim(), [at.clone()]);
    let client =
        HttpClient::new(base("https://api.example.test"), net, timeouts).through(Some(proxy));
    let text = exchange(&client).await.unwrap_err().to_string();
    let want = format!("no connection through the proxy {at} within 100ms");
    assert!(text.ends_with(&want), "{text}");
}

#[test]
fn certificates_that_cannot_be_used_are_refused_with_the_reason() {
    assert!(Tls::with_certificates(&[AUTHORITY, KEY, CERTIFICATE].concat()).is_ok());
    let broken = String::from_utf8_lossy(AUTHORITY).replace("MIIBZD", "MIIBZE");
    let half = &AUTHORITY[..AUTHORITY.len() / 2];
    for (pem, want) in [
        (&b""[..], "no certificate in PEM form"),
        (KEY, "no certificate in PEM form"),
        (b"\x30\x82\x01\x64", "no certificate in PEM form"),
        (half, "certificate 1 is not valid"),
        (broken.as_bytes(), "certificate 1 is not valid"),
        (
            &[AUTHORITY, broken.as_bytes()].concat(),
            "certificate 2 is not valid",
        ),
    ] {
        let why = Tls::with_certificates(pem).unwrap_err().to_string();
        assert!(why.contains(want), "{why}");
    }
}
