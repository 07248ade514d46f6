//! Messages between a pod and its helper: texts as NUL-ended fields of a file in memory, and descriptors with them.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, UCred,
};
use rustix::process::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The most descriptors of one message, and the most bytes beside them.
pub(super) const MAX_FDS: usize = 250;
const MAX_BYTES: usize = 512;
const SPACE: usize = rustix::cmsg_space!(ScmRights(MAX_FDS), ScmCredentials(1));

/// The most bytes of the fields of one message; the kernel gives a program less.
const MAX_FIELDS: u64 = 8 << 20;

/// Sends one message. A peer that has ended is an error, no signal.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_with(socket, bytes, fds, None)
}

/// Sends the number of a child as well: the peer gets the one that it has there.
pub(super) fn send_child(
    socket: impl AsFd,
    bytes: &[u8],
    handle: BorrowedFd<'_>,
    child: Pid,
) -> io::Result<()> {
    let uid = rustix::process::geteuid();
    let gid = rustix::process::getegid();
    send_with(
        socket,
        bytes,
        &[handle],
        Some(UCred {
            pid: child,
            uid,
            gid,
        }),
    )
}

fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    child: Option<UCred>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fits = fds.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(fds));
    if !fits
        || child.is_some_and(|child| !ancillary.push(SendAncillaryMessage::ScmCredentials(child)))
    {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match rustix::net::sendmsg(
            &socket,
            &[IoSlice::new(bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        ) {
            Err(Errno::INTR) => {}
            sent => return Ok(sent.map(drop)?),
        }
    }
}

/// Waits for one message. No bytes: the peer has ended.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    receive_child(socket).map(|(bytes, fds, _)| (bytes, fds))
}

/// Waits for one message, with the number of a child where the socket passes such.
pub(super) fn receive_child(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>, Option<Pid>)> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut bytes = vec![0; MAX_BYTES];
    loop {
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(&socket, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(message) => {
                let mut fds = Vec::new();
                let mut child = None;
                for message in ancillary.drain() {
                    match message {
                        RecvAncillaryMessage::ScmRights(some) => fds.extend(some),
                        RecvAncillaryMessage::ScmCredentials(cred) => child = Some(cred.pid),
                        _other => {}
                    }
                }
                bytes.truncate(message.bytes);
                return Ok((bytes, fds, child));
            }
        }
    }
}

/// A file in memory with these fields.
pub(super) fn write_fields<'a>(fields: impl IntoIterator<Item = &'a OsStr>) -> io::Result<OwnedFd> {
    let mut all = Vec::new();
    for field in fields {
        if field.as_bytes().contains(&0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a NUL byte in an argument, a path or a variable",
            ));
        }
        all.extend_from_slice(field.as_bytes());
        all.push(0);
    }
    let mut file = File::from(rustix::fs::memfd_create("fields", MemfdFlags::CLOEXEC)?);
    file.write_all(&all)?;
    file.rewind()?;
    Ok(file.into())
}

/// The fields of such a file, one after the other.
pub(super) struct Fields(std::vec::IntoIter<OsString>);

impl Fields {
    pub(super) fn read(file: OwnedFd) -> io::Result<Self> {
        let mut all = Vec::new();
        File::from(file).take(MAX_FIELDS).read_to_end(&mut all)?;
        let fields = all.strip_suffix(&[0]).ok_or(io::ErrorKind::InvalidData)?;
        let fields: Vec<_> = fields
            .split(|byte| *byte == 0)
            .map(|field| OsString::from_vec(field.to_vec()))
            .collect();
        Ok(Self(fields.into_iter()))
    }

    pub(super) fn text(&mut self) -> io::Result<OsString> {
        self.0
            .next()
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        let text = self.text()?;
        text.to_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// What a number before them counts.
    pub(super) fn list(&mut self) -> io::Result<Vec<OsString>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }
}
