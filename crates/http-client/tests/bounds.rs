//! What an answer may cost: the bytes of a body, and of an error's, and the time at each point where a server can end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{HostPort, Net};
use http_client::{
    BaseUrl, HttpClient, HttpErrorKind, HttpRequest, MAX_ERROR_BODY, MAX_RESPONSE, Timeouts,
};
use hyper::Method;
use hyper::http::HeaderMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

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
        let piece = vec![b'x'; PIECE];
        let mut left = bytes;
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
    with(port, Timeouts::USUAL)
}

fn with(port: u16, timeouts: Timeouts) -> HttpClient {
    let net = Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", port)]);
    HttpClient::new(
        BaseUrl::parse(&format!("http://127.0.0.1:{port}")).unwrap(),
        net,
        timeouts,
    )
}

fn get() -> HttpRequest<'static> {
    HttpRequest {
        method: Method::GET,
        path: "/",
        headers: HeaderMap::new(),
        body: None,
        once: false,
    }
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
    assert!(
        why.as_deref()
            .is_some_and(|why| why.ends_with("the answer is over 64 MiB")),
        "{why:?}"
    );
}

#[tokio::test]
async fn of_an_error_only_the_beginning_is_read() {
    for (sent, kept) in [
        (0, 0),
        (MAX_ERROR_BODY - 1, MAX_ERROR_BODY - 1),
        (4 * PIECE, MAX_ERROR_BODY),
    ] {
        let client = client(serve(sent as u64));
        let mut answer = client.send(&get()).await.unwrap();
        assert_eq!(answer.error_body().await.len(), kept);
    }
}

/// What a server does with its socket once it has sent its bytes.
#[derive(Clone, Copy, Debug)]
enum Then {
    Close,
    Reset,
    HalfClose,
    Stall,
}

/// Answers each connection with the next row: for each request these bytes, then what follows the last one. After the first
/// answer of a connection it waits for the sender.
async fn server(
    connections: Vec<(&'static [&'static str], Then)>,
) -> (
    u16,
    std::sync::Arc<tokio::sync::Notify>,
    tokio::sync::mpsc::Receiver<()>,
) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let (ended, end) = tokio::sync::mpsc::channel(8);
    let kept = std::sync::Arc::new(tokio::sync::Notify::new());
    let go_on = kept.clone();
    tokio::spawn(async move {
        let mut stalled = Vec::new();
        for (replies, then) in connections {
            let (mut stream, _) = listener.accept().await.unwrap();
            for (nth, reply) in replies.iter().enumerate() {
                if nth == 1 {
                    go_on.notified().await;
                }
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    stream.read_buf(&mut asked).await.unwrap();
                }
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
            if replies.len() == 1 {
                go_on.notified().await;
            }
            match then {
                Then::Close => drop(stream),
                Then::Reset => {
                    #[allow(deprecated, reason = "a linger of zero blocks nothing")]
                    stream.set_linger(Some(Duration::ZERO)).unwrap();
                    drop(stream);
                }
                Then::HalfClose => {
                    stream.shutdown().await.unwrap();
                    stalled.push(stream);
                }
                Then::Stall => stalled.push(stream),
            }
            ended.send(()).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    (port, kept, end)
}

/// A request and the whole of its answer.
async fn exchange(client: &HttpClient) -> Result<String, HttpErrorKind> {
    exchange_of(client, &get()).await
}

async fn exchange_of(
    client: &HttpClient,
    request: &HttpRequest<'_>,
) -> Result<String, HttpErrorKind> {
    let mut answer = client.send(request).await.map_err(|error| error.kind)?;
    let mut text = String::new();
    while let Some(piece) = answer.next().await.map_err(|error| error.kind)? {
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    answer.keep().await;
    Ok(text)
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const HALF_HEAD: &str = "HTTP/1.1 200 OK\r\ncont";
const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const PIECES: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";

/// A server that closed a kept connection after 5 s, as uvicorn and Node do, hung the next request for the whole wait for a
/// first byte: the ended connection kept the queue of requests. Every point at which a server can end or fall silent.
#[tokio::test]
async fn a_server_that_ends_anywhere_costs_at_most_its_own_timeout() {
    use HttpErrorKind::{Cut, Timeout};
    use Then::{Close, HalfClose, Reset, Stall};
    let short = Duration::from_millis(150);
    let long = Duration::from_secs(60);
    let first = |wait| Timeouts {
        first_byte: wait,
        ..Timeouts::USUAL
    };
    let between = |wait| Timeouts {
        between_bytes: wait,
        ..first(long)
    };
    let ok = || Ok("ok".to_owned());
    let mut table = Vec::new();
    // A kept connection: what ended before any byte of the second answer is asked again on another one.
    for then in [Close, Reset, HalfClose] {
        table.push((
            "idle, after an answer",
            vec![(&[WHOLE][..], then), (&[WHOLE], Stall)],
            first(long),
            ok(),
        ));
        table.push((
            "after the request",
            vec![(&[WHOLE, ""], then), (&[WHOLE], Stall)],
            first(long),
            ok(),
        ));
        table.push((
            "in the head",
            vec![(&[WHOLE, HALF_HEAD], then)],
            first(long),
            Err(Cut),
        ));
        table.push((
            "after the head",
            vec![(&[WHOLE, HEAD], then)],
            first(long),
            Err(Cut),
        ));
        table.push((
            "between pieces",
            vec![(&[WHOLE, PIECES], then)],
            between(long),
            Err(Cut),
        ));
    }
    table.push((
        "after the request",
        vec![(&[WHOLE, ""], Stall)],
        first(short),
        Err(Timeout),
    ));
    table.push((
        "in the head",
        vec![(&[WHOLE, HALF_HEAD], Stall)],
        first(short),
        Err(Timeout),
    ));
    table.push((
        "after the head",
        vec![(&[WHOLE, HEAD], Stall)],
        first(short),
        Err(Timeout),
    ));
    table.push((
        "between pieces",
        vec![(&[WHOLE, PIECES], Stall)],
        between(short),
        Err(Timeout),
    ));
    for (point, connections, timeouts, want) in table {
        let then = connections[0].1;
        let (port, kept, mut end) = server(connections).await;
        let client = with(port, timeouts);
        assert_eq!(exchange(&client).await, ok(), "{point}");
        kept.notify_one();
        if point.starts_with("idle") {
            end.recv().await.unwrap();
            // Each looks at the sockets: the end is known before the next request.
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
        }
        let began = std::time::Instant::now();
        let got = exchange(&client).await;
        let waited = began.elapsed();
        println!("{then:?} {point}: {waited:?}");
        assert_eq!(got, want, "{then:?} {point}");
        assert!(
            waited < Duration::from_secs(20),
            "{then:?} {point}: {waited:?}"
        );
    }
}

/// A call was carried out twice: the server had closed the connection after it had read it.
#[tokio::test]
async fn a_request_that_must_not_happen_twice_is_sent_again_only_if_it_was_not_sent() {
    use HttpErrorKind::{Connect, Cut};
    let once = HttpRequest {
        once: true,
        ..get()
    };
    let ok = || Ok("ok".to_owned());
    let idle = (&[WHOLE][..], Then::Close);
    let read = (&[WHOLE, ""][..], Then::Close);
    let answers = (&[WHOLE][..], Then::Stall);
    for (connections, is_idle, want) in [
        (vec![idle, answers], true, ok()),
        (vec![read, answers], false, Err(Cut)),
    ] {
        let (port, kept, mut end) = server(connections).await;
        let client = with(port, Timeouts::USUAL);
        assert_eq!(exchange_of(&client, &once).await, ok());
        kept.notify_one();
        if is_idle {
            end.recv().await.unwrap();
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(exchange_of(&client, &once).await, want, "{is_idle}");
    }
    // Nobody listens any more: a second try would say that nothing was sent.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        for reply in [WHOLE, ""] {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut asked).await.unwrap();
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    let client = with(port, Timeouts::USUAL);
    assert_eq!(exchange_of(&client, &once).await, ok());
    assert_eq!(exchange_of(&client, &once).await, Err(Cut));
    served.await.unwrap();
    let gone = exchange_of(&client, &once).await;
    assert!(matches!(gone, Err(Connect(_))), "{gone:?}");
}

/// A proxy compressed what nobody had asked it to compress, and the bytes were shown as an answer.
#[tokio::test]
async fn a_compressed_body_is_an_error_that_names_the_encoding() {
    for reply in [
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let (port, _kept, _end) = server(vec![(Box::leak(Box::new([reply])), Then::Stall)]).await;
        assert_eq!(
            exchange(&with(port, Timeouts::USUAL)).await,
            Err(HttpErrorKind::Encoded),
            "{reply}"
        );
    }
    let identity = "HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nok";
    let (port, _kept, _end) = server(vec![(Box::leak(Box::new([identity])), Then::Stall)]).await;
    assert_eq!(
        exchange(&with(port, Timeouts::USUAL)).await.as_deref(),
        Ok("ok")
    );
}
