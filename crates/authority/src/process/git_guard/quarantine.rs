//! Copies of content that was reverted or removed, so that nothing a command wrote is lost. Does not depend on the
//! reasons.

use super::memory::now;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// The most calls with copies in the directory, and the most bytes of one call. The user empties the directory.
const MAX_CALLS: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// The most copies under one name.
const MAX_COPIES: usize = 32;

/// The directory of one comparison; created with the first file.
#[derive(Debug)]
pub(super) struct Quarantine<'a> {
    base: Option<&'a Path>,
    dir: Option<PathBuf>,
    bytes: usize,
}

impl<'a> Quarantine<'a> {
    pub(super) fn new(base: Option<&'a Path>) -> Self {
        Self {
            base,
            dir: None,
            bytes: 0,
        }
    }

    /// Stores a copy under its path below the root; returns the copy's path, or why there is none.
    pub(super) fn keep(&mut self, below: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_BYTES {
            return Err(format!(
                "a command's changes over {MAX_BYTES} bytes are not kept"
            ));
        }
        let dir = self.dir()?;
        let path = dir.join(
            below
                .components()
                .filter(|part| matches!(part, Component::Normal(_)))
                .collect::<PathBuf>(),
        );
        let failed = |error: io::Error| format!("{}: {error}", crate::escape(&path));
        make(path.parent().unwrap_or(&dir)).map_err(failed)?;
        let (path, mut file) = create(&path).map_err(failed)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        Ok(path)
    }

    fn dir(&mut self) -> Result<PathBuf, String> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let base = self.base.ok_or("there is no place to keep it")?;
        let failed = |error: io::Error| format!("{}: {error}", crate::escape(base));
        make(base).map_err(failed)?;
        if fs::read_dir(base).map_err(failed)?.take(MAX_CALLS).count() >= MAX_CALLS {
            return Err(format!("{} is full; empty it", crate::escape(base)));
        }
        let dir = base.join(format!("{}-{}", now() / 1_000_000, std::process::id()));
        make(&dir).map_err(failed)?;
        Ok(self.dir.insert(dir).clone())
    }
}

/// Creates a file of this name, with a number behind it where that name is taken: what was reverted can be written again.
fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut numbered = path.to_owned();
    for number in 2..=MAX_COPIES {
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&numbered)
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut name = path.as_os_str().to_owned();
                name.push(format!(".{number}"));
                numbered = name.into();
            }
            created => return created.map(|file| (numbered, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
