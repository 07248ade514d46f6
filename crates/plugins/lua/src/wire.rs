//! The lines between the host and this guest: JSON-RPC 2.0, one message in each.

use crate::convert;
use crate::failure::Failure;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::io::{self, BufRead, Read, Write};

/// The longest line in each direction, in bytes, without its end.
const MAX_LINE: usize = 1 << 20;

/// A request of the host.
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) method: String,
    /// Or why they cannot be taken as they are.
    pub(crate) params: Result<Json, Failure>,
}

pub(crate) struct Wire {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
    asked: u64,
}

#[derive(Deserialize)]
struct Asked {
    id: u64,
    method: String,
    #[serde(default)]
    params: Json,
}

#[derive(Deserialize)]
struct Answered {
    id: u64,
    #[serde(default)]
    result: Json,
    error: Option<AnsweredError>,
}

#[derive(Deserialize)]
struct AnsweredError {
    message: String,
    #[serde(default)]
    data: Json,
}

impl Wire {
    pub(crate) fn new(input: Box<dyn BufRead>, output: Box<dyn Write>) -> Self {
        Self {
            input,
            output,
            asked: 0,
        }
    }

    /// The next request; `None` when the host has closed its end.
    ///
    /// # Errors
    /// The stream failed, or a line is no request: the host does not keep the contract.
    pub(crate) fn next(&mut self) -> io::Result<Option<Request>> {
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        let Asked { id, method, params } = serde_json::from_str(&line)?;
        let params = convert::exact_integers(&line)
            .map(|()| params)
            .map_err(|why| Failure::new("fix_input", why));
        Ok(Some(Request { id, method, params }))
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, id: u64, answer: Result<Json, Failure>) -> io::Result<()> {
        let line = |answer: &Result<Json, Failure>| match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(failure) => json!({ "jsonrpc": "2.0", "id": id, "error": failure.answer() }),
        };
        let text = line(&answer).to_string();
        let text = match too_long(&text) {
            Some(failure) => line(&Err(failure)).to_string(),
            None => text,
        };
        self.write(text)
    }

    /// Asks the host for something, and waits for it.
    pub(crate) fn ask(&mut self, method: &str, params: &Json) -> Result<Json, Failure> {
        self.asked += 1;
        let asked =
            json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        let text = asked.to_string();
        too_long(&text).map_or(Ok(()), Err)?;
        let lost = |why: io::Error| Failure::new("unavailable", format!("the host: {why}"));
        self.write(text).map_err(lost)?;
        let line = self.line().map_err(lost)?;
        let line = line.ok_or_else(|| lost(io::ErrorKind::UnexpectedEof.into()))?;
        let answered = serde_json::from_str(&line).ok();
        match answered.filter(|answered: &Answered| answered.id == self.asked) {
            None => Err(Failure::bug("the host answered something else")),
            Some(Answered {
                error: Some(AnsweredError { message, data }),
                ..
            }) => {
                let kind = data.get("kind").and_then(Json::as_str).unwrap_or("bug");
                Err(Failure::new(kind, message))
            }
            Some(Answered { result, .. }) => convert::exact_integers(&line)
                .map(|()| result)
                .map_err(Failure::bug),
        }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let most = MAX_LINE as u64 + 1;
        (&mut self.input).take(most).read_line(&mut line)?;
        match line.pop() {
            Some('\n') => Ok(Some(line)),
            None => Ok(None),
            Some(_) if line.len() >= MAX_LINE => Err(io::Error::other("a line is over 1 MiB")),
            Some(_) => Ok(None),
        }
    }

    fn write(&mut self, mut line: String) -> io::Result<()> {
        line.push('\n');
        self.output.write_all(line.as_bytes())?;
        self.output.flush()
    }
}

fn too_long(line: &str) -> Option<Failure> {
    let long = (line.len() > MAX_LINE).then_some(line.len());
    long.map(|bytes| {
        let text =
            format!("the message to the host would have {bytes} bytes; at most 1 MiB is allowed");
        Failure::new("exhausted", text)
    })
}
