//! The control channel of a live pod: a Unix socket in its directory. The process that holds the pod's lock serves it,
//! commands ask through it. Requests and answers are JSON, one document a line.
//!
//! Not public: both ends are the same program. The client is checked: a process of another user, or one that a pod
//! started, may only look. A client that is idle, slow or hostile costs its own connection and nothing else; a client
//! that only waits costs no wake-up.

mod answer;
pub(crate) mod client;
mod connection;
mod lines;
pub(crate) mod live_pod;
pub(crate) mod message;
pub(crate) mod server;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The socket in a pod's directory.
pub(crate) const SOCKET: &str = "sock";

/// The name under which it is prepared: it gets its own name once it can be connected to.
const PREPARED: &str = "sock.new";

/// Bytes of a request or an answer. A record has at most 1 MiB, and so have an input and an answer on their way here.
pub(crate) const MAX_LINE: usize = 3 << 19;

/// An open directory, which leads to a socket in it by a short path: the address of a socket has 108 bytes, and a
/// state directory with a long name has more.
struct SocketDir {
    opened: File,
}

impl SocketDir {
    fn open(dir: &Path) -> io::Result<Self> {
        Ok(Self { opened: File::open(dir)? })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.opened.as_raw_fd())).join(name)
    }
}
