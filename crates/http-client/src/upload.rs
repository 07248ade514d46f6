//! A request body of shared chunks, with known length and without a contiguous copy.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A request body. Clones share the bytes.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    chunks: VecDeque<Bytes>,
    left: u64,
}

impl Upload {
    /// A body of these chunks.
    pub fn new(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        let chunks: VecDeque<_> = chunks
            .into_iter()
            .filter(|chunk| !chunk.is_empty())
            .collect();
        Self {
            left: chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            chunks,
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
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
