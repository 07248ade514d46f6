//! What the agent sends: lines in order, to one writer that takes them when the client does. Knows no sessions.

use crate::asked::{Asked, Question};
use crate::message::{Id, Outgoing, RpcError};
use crate::update::Update;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Lines that wait for the client. A session waits when there are more; what its pod says meanwhile is read later from the
/// journal.
const WAITING: usize = 64;

/// Nobody reads what is sent.
#[derive(Debug)]
pub(crate) struct Gone;

/// Sends messages; clones send to the same client.
#[derive(Clone)]
pub(crate) struct Out {
    lines: mpsc::Sender<String>,
    asked: Arc<Mutex<Asked>>,
}

/// The lines that are to be written.
pub(crate) struct Waiting(mpsc::Receiver<String>);

impl Out {
    pub(crate) fn new() -> (Self, Waiting) {
        let (lines, waiting) = mpsc::channel(WAITING);
        let asked = Arc::default();
        (Self { lines, asked }, Waiting(waiting))
    }

    async fn send(&self, message: Outgoing<'_>) -> Result<(), Gone> {
        let line = message.line().map_err(|_not_json| Gone)?;
        self.lines.send(line).await.map_err(|_closed| Gone)
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        id: &Id,
        answer: Result<Value, RpcError>,
    ) -> Result<(), Gone> {
        match answer {
            Ok(result) => {
                let id = Some(id);
                let result = &result;
                self.send(Outgoing::Result { id, result }).await
            }
            Err(error) => self.fail(Some(id), &error).await,
        }
    }

    /// Answers with an error.
    pub(crate) async fn fail(&self, id: Option<&Id>, error: &RpcError) -> Result<(), Gone> {
        self.send(Outgoing::Error { id, error }).await
    }

    /// Tells of a session.
    pub(crate) async fn update(&self, session: &str, update: &Update) -> Result<(), Gone> {
        let mut params = json!({ "sessionId": session, "update": update.body });
        if let (Some(seq), Some(fields)) = (update.seq, params.as_object_mut()) {
            fields.insert("_meta".to_owned(), json!({ "yoi": { "seq": seq } }));
        }
        self.tell("session/update", &params).await
    }

    pub(crate) async fn tell(&self, method: &str, params: &Value) -> Result<(), Gone> {
        self.send(Outgoing::Notification { method, params }).await
    }

    /// Asks the client; its answer goes where the question says. Gives the number of the request.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: &Value,
        question: Question,
    ) -> Result<u64, Gone> {
        let id = self.asked(|asked| asked.add(question));
        self.send(Outgoing::Request { id, method, params }).await?;
        Ok(id)
    }

    /// The questions that have no answer.
    pub(crate) fn asked<T>(&self, change: impl FnOnce(&mut Asked) -> T) -> T {
        change(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Waiting {
    /// Writes lines until nobody sends any more.
    ///
    /// # Errors
    /// The client reads no more.
    pub(crate) async fn write(mut self, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
        while let Some(line) = self.0.recv().await {
            to.write_all(line.as_bytes()).await?;
            if self.0.is_empty() {
                to.flush().await?;
            }
        }
        to.flush().await
    }
}
