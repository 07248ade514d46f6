//! The socket in a pod's directory: bound by the process that holds the pod's lock, and removed before it releases it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The socket's name, where clients look for it.
pub use protocol::SOCKET;

/// The name under which it is prepared: it gets its own name once it can be connected to.
const PREPARED: &str = "sock.new";

/// A bound socket. Dropped, its name is removed.
pub(super) struct SocketFile {
    /// Leads to the socket by a short path: the address of a socket has 108 bytes, and a state directory with a long name
    /// has more.
    dir: File,
    inode: u64,
}

impl SocketFile {
    /// Binds the socket of the pod in this directory. Replaces what a killed process left.
    pub(super) fn bind(dir: &Path) -> io::Result<(Self, UnixListener)> {
        let dir = File::open(dir)?;
        let prepared = within(&dir, PREPARED);
        let path = within(&dir, SOCKET);
        match fs::remove_file(&prepared) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&prepared)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(&prepared, Permissions::from_mode(0o600))?;
        let inode = fs::symlink_metadata(&prepared)?.ino();
        fs::rename(&prepared, &path)?;
        Ok((Self { dir, inode }, listener))
    }
}

impl Drop for SocketFile {
    /// The next process may have bound another one.
    fn drop(&mut self) {
        let path = within(&self.dir, SOCKET);
        if fs::symlink_metadata(&path).is_ok_and(|there| there.ino() == self.inode) {
            drop(fs::remove_file(&path));
        }
    }
}

fn within(dir: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name)
}
