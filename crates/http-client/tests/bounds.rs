//! What an answer may cost: the bytes of a body, and of an error's.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{HostPort, Net};
use http_client::{BaseUrl, HttpClient, HttpRequest, MAX_ERROR_BODY, MAX_RESPONSE, Timeouts};
use hyper::Method;
use hyper::http::HeaderMap;
use std::io::{Read, Write};
use std::net::TcpListener;

const PIECE: usize = 1 << 20;

/// Answers one request with so many bytes, or with as many as are taken.
fn serve(bytes: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            asked.extend_from_slice(&byte);
        }
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").unwrap();
        let (piece, mut left) = (vec![b'x'; PIECE], bytes);
        while left > 0 {
            let next = piece.len().min(usize::try_from(left).unwrap_or(PIECE));
            if stream.write_all(&piece[..next]).is_err() {
                return;
            }
            left -= next as u64;
        }
    });
    port
}

fn client(port: u16) -> HttpClient {
    let net = Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", port)]);
    HttpClient::new(BaseUrl::parse(&format!("http://127.0.0.1:{port}")).unwrap(), net, Timeouts::USUAL)
}

fn get() -> HttpRequest<'static> {
    HttpRequest { method: Method::GET, path: "/", headers: HeaderMap::new(), body: None }
}

/// How many bytes of the body came, and what ended it early.
async fn read(port: u16) -> (u64, Option<String>) {
    let client = client(port);
    let mut answer = client.send(&get()).await.unwrap();
    let mut seen = 0;
    loop {
        match answer.next().await {
            Ok(Some(piece)) => seen += piece.len() as u64,
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error.to_string())),
        }
    }
}

#[tokio::test]
async fn an_answer_ends_at_its_bound() {
    assert_eq!(read(serve(MAX_RESPONSE)).await, (MAX_RESPONSE, None));
    let (seen, why) = read(serve(MAX_RESPONSE + 1)).await;
    assert!(seen <= MAX_RESPONSE, "{seen}");
    assert!(why.as_deref().is_some_and(|why| why.ends_with("the answer is over 64 MiB")), "{why:?}");
}

#[tokio::test]
async fn of_an_error_only_the_beginning_is_read() {
    for (sent, kept) in [(0, 0), (MAX_ERROR_BODY - 1, MAX_ERROR_BODY - 1), (4 * PIECE, MAX_ERROR_BODY)] {
        let client = client(serve(sent as u64));
        let mut answer = client.send(&get()).await.unwrap();
        assert_eq!(answer.error_body().await.len(), kept);
    }
}
