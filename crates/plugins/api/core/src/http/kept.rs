//! Answers that are kept by their ETag, so that the same question costs the vendor and its limits nothing.

use http_client::{HeaderMap, header};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most answers that are kept, and the most bytes of one.
const MAX_KEPT: usize = 64;
const MAX_BYTES: u64 = 256 << 10;

/// An answer that is no error.
#[derive(Clone, Debug)]
pub struct HttpReply {
    pub body: Value,
    /// The path of the next part of a list, from the header `Link`.
    pub next: Option<String>,
    pub headers: HeaderMap,
}

#[derive(Default)]
pub(super) struct Kept(Mutex<VecDeque<KeptReply>>);

#[derive(Clone)]
pub(super) struct KeptReply {
    path: String,
    pub(super) tag: String,
    pub(super) reply: HttpReply,
}

impl Kept {
    pub(super) fn find(&self, path: &str) -> Option<KeptReply> {
        self.all().iter().find(|kept| kept.path == path).cloned()
    }

    /// Keeps an answer that has a tag and is not too large; the oldest one leaves.
    pub(super) fn keep(&self, path: &str, reply: &HttpReply) {
        let text = |name| reply.headers.get(name).and_then(|of| of.to_str().ok());
        let mut all = self.all();
        all.retain(|kept| kept.path != path);
        let size = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        let Some(tag) = text(header::ETAG).filter(|_| size.is_some_and(|size| size <= MAX_BYTES))
        else {
            return;
        };
        if all.len() >= MAX_KEPT {
            all.pop_front();
        }
        all.push_back(KeptReply {
            path: path.to_owned(),
            tag: tag.to_owned(),
            reply: reply.clone(),
        });
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<KeptReply>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
