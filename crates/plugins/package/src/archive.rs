//! Archives of packages, `.tar.gz` and `.zip`: read whole and checked before a byte of them is written. Bounded in bytes,
//! entries and names. Only regular files are taken: no links, and of their rights only whether they can be executed.

mod zip;

use crate::content::{MAX_BYTES, MAX_DEPTH, MAX_FILES};
use crate::manifest::manifests;
use authority::text::{Lines, escape_within};
use flate2::read::MultiGzDecoder;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::io::{self, Read};
use tar::EntryType;

/// Most bytes of an archive: as many as a response over HTTP may have.
pub const MAX_ARCHIVE: u64 = http_client::MAX_RESPONSE;

/// Most entries of an archive, directories included.
const MAX_ENTRIES: usize = 2 * MAX_FILES;
/// Longest path of an entry, and longest name in it, in bytes.
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 255;
/// Most bytes of an unpacked tar file: those of its files, and heads, long names and padding of its entries.
const MAX_TAR: u64 = MAX_BYTES + (16 << 20);
/// Most bytes of a path in a message.
const MAX_SHOWN: usize = 200;

/// The bits of a mode by which a program runs as another user or group, and of which one lets it be executed.
const OTHER_USER: u32 = 0o6000;
const EXECUTABLE: u32 = 0o111;

const GZIP: &[u8] = b"\x1f\x8b";
const ZIP: &[u8] = b"PK";

/// The files of an archive, by their paths in the package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    files: BTreeMap<String, ArchivedFile>,
    bytes: u64,
    entries: usize,
}

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    pub executable: bool,
    pub bytes: Vec<u8>,
}

/// Why nothing of an archive is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArchive {
    #[error("it is neither a .tar.gz nor a .zip file")]
    Unknown,
    #[error("it has more than {} MiB", MAX_ARCHIVE >> 20)]
    Archive,
    #[error("it is cut off or damaged: {0}")]
    Damaged(String),
    #[error("it has more than {MAX_ENTRIES} entries")]
    Entries,
    #[error("its files have more than {} MiB", MAX_BYTES >> 20)]
    Bytes,
    #[error("its entry `{path}` {why}")]
    Entry { path: String, why: &'static str },
}

impl Archive {
    /// Reads an archive, whatever its name. If all of its files are in one directory, as in a release of a repository, the
    /// package is that directory.
    ///
    /// # Errors
    /// Anything of it is damaged, over a bound or no regular file.
    pub fn read(bytes: &[u8]) -> Result<Self, BadArchive> {
        if bytes.len() as u64 > MAX_ARCHIVE {
            return Err(BadArchive::Archive);
        }
        let read = match bytes {
            _ if bytes.starts_with(GZIP) => of_tar(bytes),
            _ if bytes.starts_with(ZIP) => zip::read(bytes),
            _ => Err(BadArchive::Unknown),
        }?;
        read.paths_are_distinct()?;
        Ok(read.without_top())
    }

    /// Its files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &ArchivedFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    fn count(&mut self) -> Result<(), BadArchive> {
        self.entries += 1;
        match self.entries {
            ..=MAX_ENTRIES => Ok(()),
            _ => Err(BadArchive::Entries),
        }
    }

    /// Adds an entry that says it has `size` bytes; `read` reads them.
    fn add(&mut self, entry: Entry<'_>, read: impl Read) -> Result<(), BadArchive> {
        self.count()?;
        let Entry {
            path: raw,
            kind,
            mode,
            size,
        } = entry;
        let path = clean(raw)?;
        let refused = |why| Err(BadArchive::entry(raw, why));
        match kind {
            Kind::Directory => return Ok(()),
            Kind::Link => return refused("is a link"),
            Kind::Other => return refused("is not a regular file"),
            Kind::File if mode & OTHER_USER != 0 => return refused("would run as another user"),
            Kind::File => {}
        }
        if path.is_empty() {
            return refused("has no name");
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_BYTES {
            return Err(BadArchive::Bytes);
        }
        let mut bytes = Vec::new();
        read.take(size.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| BadArchive::damaged(&error))?;
        if bytes.len() as u64 != size {
            return refused("has not as many bytes as it says");
        }
        let executable = mode & EXECUTABLE != 0;
        if self
            .files
            .insert(path, ArchivedFile { executable, bytes })
            .is_some()
        {
            return refused("is there twice");
        }
        match self.files.len() {
            ..=MAX_FILES => Ok(()),
            _ => Err(BadArchive::Entries),
        }
    }

    /// A file cannot be in a file.
    fn paths_are_distinct(&self) -> Result<(), BadArchive> {
        for path in self.files.keys() {
            let mut above = path.as_str();
            while let Some((parent, _)) = above.rsplit_once('/') {
                if self.files.contains_key(parent) {
                    return Err(BadArchive::entry(path.as_bytes(), "is in a file"));
                }
                above = parent;
            }
        }
        Ok(())
    }

    fn without_top(mut self) -> Self {
        let top = self.files.keys().next().and_then(|path| {
            let (top, _) = path.split_once('/')?;
            Some(format!("{top}/"))
        });
        let is_package = manifests().any(|manifest| self.files.contains_key(manifest));
        if let Some(top) = top.filter(|_| !is_package)
            && self.files.keys().all(|path| path.starts_with(&top))
        {
            let files = std::mem::take(&mut self.files).into_iter();
            self.files = files
                .map(|(path, file)| (path.strip_prefix(&top).unwrap_or(&path).to_owned(), file))
                .collect();
        }
        self
    }
}

/// SHA-256 of an archive, in lower-case hex, as `sha256sum` prints it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What an archive says of one entry.
struct Entry<'a> {
    path: &'a [u8],
    kind: Kind,
    mode: u32,
    size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl BadArchive {
    fn entry(path: &[u8], why: &'static str) -> Self {
        let path = String::from_utf8_lossy(path);
        Self::Entry {
            path: escape_within(&path, Lines::One, MAX_SHOWN),
            why,
        }
    }

    fn damaged(error: &io::Error) -> Self {
        Self::Damaged(escape_within(&error.to_string(), Lines::One, MAX_SHOWN))
    }
}

/// The path in the package: relative, and below it.
fn clean(raw: &[u8]) -> Result<String, BadArchive> {
    let refused = |why| Err(BadArchive::entry(raw, why));
    let Ok(path) = std::str::from_utf8(raw) else {
        return refused("has a name that is not UTF-8");
    };
    if path.len() > MAX_PATH {
        return refused("has a path that is too long");
    }
    if path.starts_with('/') {
        return refused("has an absolute path");
    }
    let named = |part: &&str| !part.is_empty() && *part != ".";
    let parts: Vec<&str> = path.split('/').filter(named).collect();
    if parts.contains(&"..") {
        return refused("leads out of the archive");
    }
    // One directory more than in a package: it may be in one of its own.
    if parts.len() > MAX_DEPTH + 2 {
        return refused("is in too many directories");
    }
    if parts
        .iter()
        .any(|part| part.len() > MAX_NAME || part.contains('\0'))
    {
        return refused("has a name that no file can have");
    }
    Ok(parts.join("/"))
}

fn of_tar(bytes: &[u8]) -> Result<Archive, BadArchive> {
    let mut stream = MultiGzDecoder::new(bytes).take(MAX_TAR);
    // What is behind the last entry has the checksum of all.
    let read = entries(&mut stream).and_then(|read| {
        io::copy(&mut stream, &mut io::sink()).map_err(|error| BadArchive::damaged(&error))?;
        Ok(read)
    });
    match stream.limit() {
        0 => Err(BadArchive::Bytes),
        _ => read,
    }
}

fn entries(stream: impl Read) -> Result<Archive, BadArchive> {
    let damaged = |error: io::Error| BadArchive::damaged(&error);
    let mut all = Archive::default();
    let mut archive = tar::Archive::new(stream);
    for entry in archive.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let kind = match entry.header().entry_type() {
            // What git writes about the whole archive.
            EntryType::XGlobalHeader => {
                all.count()?;
                continue;
            }
            // Old programs write directories like this.
            EntryType::Regular if entry.path_bytes().ends_with(b"/") => Kind::Directory,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Directory => Kind::Directory,
            EntryType::Link | EntryType::Symlink => Kind::Link,
            _ => Kind::Other,
        };
        let path = entry.path_bytes().into_owned();
        let mode = entry.header().mode().map_err(damaged)?;
        let size = entry.size();
        let told = Entry {
            path: &path,
            kind,
            mode,
            size,
        };
        all.add(told, entry)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
