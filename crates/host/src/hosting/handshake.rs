//! What `yoi start` and the process that hosts the pod say to each other: one document there, one line back. Both are
//! the same program, so nothing here is kept compatible.

use crate::compose::model::ResolvedModel;
use crate::compose::secrets::ResolvedSecrets;
use crate::exit::{Exit, Failure, Help};
use crate::launch::LaunchMessage;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

/// Bytes of a start: most of it is the prompt, which may be escaped.
const MAX_START: u64 = 160 << 20;

/// Bytes of an answer.
const MAX_REPLY: u64 = 256 << 10;

/// To the host, on its standard input. It holds the key and secrets, so it goes through no file, argument or variable.
#[derive(Serialize, Deserialize)]
pub struct StartMessage {
    pub name: String,
    /// The working directory of the pod.
    pub cwd: PathBuf,
    pub launch: LaunchMessage,
    pub model: ResolvedModel,
    pub secrets: ResolvedSecrets,
    pub prompt: Option<String>,
    pub quiet: bool,
}

/// From the host, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostReply {
    Ready(Ready),
    Failure(Failure),
}

/// A pod that is open: its start is in its journal, and so is the prompt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    pub pid: u32,
    pub session: String,
    pub socket: PathBuf,
    /// What the pod waits for before it can work.
    pub missing: Option<String>,
    /// Why it begins no turn, if that is another reason.
    #[serde(default)]
    pub held: Option<String>,
}

impl StartMessage {
    /// Reads until the other end is closed.
    pub fn read(from: impl Read) -> Result<Self, Failure> {
        let bytes = bounded(from, MAX_START);
        let parsed = bytes.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        parsed.map_err(|error| {
            Failure::new(
                Exit::Usage,
                format!("standard input contains no start message: {error}"),
            )
            .help(Help::StartByCommand)
        })
    }
}

impl HostReply {
    /// The first line; none if the other end was closed without one.
    pub fn read(from: impl Read) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        BufReader::new(from.take(MAX_REPLY)).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            Ok(None)
        } else {
            Ok(Some(serde_json::from_slice(&bytes)?))
        }
    }
}

fn bounded(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        Err(io::Error::other(format!("over {most} bytes")))
    } else {
        Ok(bytes)
    }
}
