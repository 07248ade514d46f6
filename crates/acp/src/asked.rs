//! The requests of this agent that its client has not answered.

use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// Questions that are remembered; an answer to an older one is passed over. A pod has at most 32 open.
const MAX_ASKED: usize = 1024;

/// Who waits for an answer.
pub(crate) struct Question {
    pub(crate) approval: u64,
    pub(crate) to: mpsc::WeakSender<crate::requests::Command>,
}

/// The questions, by the numbers of their requests.
#[derive(Default)]
pub(crate) struct Asked {
    last: u64,
    open: BTreeMap<u64, Question>,
}

impl Asked {
    /// Remembers a question; gives the number of its request.
    pub(crate) fn add(&mut self, question: Question) -> u64 {
        self.last += 1;
        self.open.insert(self.last, question);
        if self.open.len() > MAX_ASKED {
            self.open.pop_first();
        }
        self.last
    }

    /// Who waits for the answer to this request, once.
    pub(crate) fn take(&mut self, id: u64) -> Option<Question> {
        self.open.remove(&id)
    }
}
