//! One HTTP/1.1 connection, polled only while a future waits on it. Does not depend on addresses or timeouts.

use crate::upload::Upload;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

pub(crate) struct HttpConnection {
    requests: SendRequest<Upload>,
    /// `None` once it has ended: it owns the queue of requests, and what waits in that queue fails when it is dropped.
    connection: Option<Connection<TokioIo<CountingStream>, Upload>>,
    received: Arc<AtomicU64>,
}

/// A stream that counts received bytes.
struct CountingStream {
    stream: Box<dyn Duplex>,
    received: Arc<AtomicU64>,
}

impl HttpConnection {
    pub(crate) async fn over(stream: impl Duplex + 'static) -> hyper::Result<Self> {
        let received = Arc::new(AtomicU64::new(0));
        let stream = CountingStream {
            stream: Box::new(stream),
            received: received.clone(),
        };
        let (requests, connection) = handshake(TokioIo::new(stream)).await?;
        Ok(Self {
            requests,
            connection: Some(connection),
            received,
        })
    }

    /// The number of bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until another request can be sent; false if the connection has ended.
    pub(crate) async fn is_ready(&mut self) -> bool {
        poll_fn(|cx| {
            self.turn(cx);
            self.requests.poll_ready(cx).map(|ready| ready.is_ok())
        })
        .await
    }

    pub(crate) async fn send(
        &mut self,
        request: hyper::Request<Upload>,
    ) -> hyper::Result<hyper::Response<Incoming>> {
        let mut sent = pin!(self.requests.send_request(request));
        poll_fn(|cx| {
            self.turn(cx);
            sent.as_mut().poll(cx)
        })
        .await
    }

    /// The next piece of a body's data; `None` at its end.
    pub(crate) async fn next(&mut self, body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
        poll_fn(|cx| {
            self.turn(cx);
            loop {
                match Pin::new(&mut *body).poll_frame(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Some(Ok(frame))) => {
                        // Trailers are ignored.
                        if let Ok(data) = frame.into_data() {
                            return Poll::Ready(Some(Ok(data)));
                        }
                    }
                }
            }
        })
        .await
    }

    /// Polls the connection to read and write. Its errors reach the waiting request or body.
    fn turn(&mut self, cx: &mut Context<'_>) {
        if self
            .connection
            .as_mut()
            .is_some_and(|connection| Pin::new(connection).poll(cx).is_ready())
        {
            self.connection = None;
        }
    }
}

impl AsyncRead for CountingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let more = buf.filled().len().saturating_sub(before);
        self.received.fetch_add(more as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for CountingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
