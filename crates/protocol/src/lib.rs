//! The words that a pod, its journal and its clients share: items, bodies of records (each declared once, in [`journal`]), and
//! messages between a pod and its clients: JSON-RPC 2.0, one message a line. Knows no files, sockets, runtime or pod.
//!
//! `docs/PROTOCOL.md` teaches it. `schema/protocol.json` is its JSON Schema, and `schema/frozen/` has that of each
//! version as it was released: a later one only adds optional fields, methods, events and kinds.

#[macro_use]
mod declare;

pub mod answer;
pub mod blob;
pub mod count;
pub mod error;
pub mod event;
pub mod item;
pub mod journal;
pub mod lines;
pub mod message;
pub mod method;
pub mod outcome;
pub mod record;
pub mod schema;
pub mod status;
pub mod tool;

/// The version of the protocol: raised when a client of the one before would misunderstand a pod.
pub const VERSION: u32 = 1;

/// The name of the socket in a pod's directory.
pub const SOCKET: &str = "sock";

/// Bytes of a client's line. A record has at most 1 MiB, and so has an input on its way to the pod, with its escapes.
pub const MAX_LINE: usize = 3 << 19;

/// Bytes of a pod's line: a record, a page of records with a status, or the answer of a model, whose parts are records.
pub const MAX_MESSAGE: usize = 16 << 20;

/// Records of one page, and their bytes.
pub const MAX_PAGE: u32 = 1000;

/// Bytes of the records of one page; one record is always in it.
pub const MAX_PAGE_BYTES: usize = 1 << 20;

/// Bytes of a `cmd_id`.
pub const MAX_CMD_ID: usize = 128;

/// Characters of a client's name, of which the rest is dropped.
pub const MAX_CLIENT: usize = 64;

/// Characters of a waiting input's text in a status.
pub const MAX_SHOWN: usize = 200;

/// Background tasks in a status.
pub const MAX_TASKS: usize = 64;

/// Bytes of a piece of a file: in base 64 it fits a client's line.
pub const MAX_PIECE: usize = 1 << 20;

/// Bytes of a draft.
pub const MAX_DRAFT: usize = 64 << 10;
