//! The one thread that writes and syncs the log.

use std::path::Path;
use std::sync::mpsc::Receiver;
use super::Message;

pub(crate) struct Start;
pub(crate) struct Writer;
impl Writer {
    pub(crate) fn directory(&self) -> &Path { todo!() }
    pub(super) fn run(self, _messages: &Receiver<Message>) { todo!() }
}
