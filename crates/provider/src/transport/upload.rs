//! A request body out of shared chunks: no contiguous copy, length known.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) struct Upload {
    chunks: VecDeque<Bytes>,
    left: u64,
}

impl Upload {
    pub(super) fn new(body: Option<&llm_worker::Body>) -> Self {
        let chunks = body.into_iter().flat_map(llm_worker::Body::chunks);
        Self {
            chunks: chunks.filter(|chunk| !chunk.is_empty()).map(|chunk| Bytes::from_owner(chunk.clone())).collect(),
            left: body.map_or(0, |body| body.len),
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.chunks.pop_front();
        self.left -= chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
