//! Opening a directory as a session for writing.

use std::path::Path;
use std::sync::Arc;

use super::head::{self, Head};
use super::survey::{Diagnosis, Survey, survey};
use super::{
    OpenError, Opened, Options, Recovered, SessionRecords, file_system, lock, repair, reserve,
    segment,
};
use crate::blob::Blobs;
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::journal::{Journal, LogEnd, Shared, Writer, WriterParts};
use crate::ops::Ops;

/// The purpose of opening a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// Create a session that must not exist yet.
    Create,
    /// Open for appending.
    Append,
    /// Open for appending and keep the records for folding.
    Resume,
}

/// The longest session id.
const MAX_ID: usize = 64;

pub(super) fn create(dir: &Path, options: &Options) -> Result<Opened, OpenError> {
    let ops = Ops::new(Arc::clone(&options.disk));
    named(&options.session)?;
    if let (false, Some(parent)) = (options.any_file_system, dir.parent()) {
        file_system::accept(&ops, parent)?;
    }
    ops.create_dir(dir)?;
    enter(&ops, dir, options, OpenMode::Create).map(|(opened, _)| opened)
}

pub(super) fn open(
    dir: &Path,
    options: &Options,
    mode: OpenMode,
) -> Result<(Opened, SessionRecords), OpenError> {
    let ops = Ops::new(Arc::clone(&options.disk));
    named(&options.session)?;
    if ops.open(&lock::path(dir), false)?.is_none() && !segment::log(dir).is_dir() {
        return Err(OpenError::NoSuch(dir.to_path_buf()));
    }
    if !options.any_file_system {
        file_system::accept(&ops, dir)?;
    }
    enter(&ops, dir, options, mode)
}

fn named(id: &str) -> Result<(), OpenError> {
    let spelled = id
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if spelled && !id.is_empty() && id.len() <= MAX_ID {
        Ok(())
    } else {
        Err(OpenError::Id(id.to_owned()))
    }
}

fn enter(
    ops: &Ops,
    dir: &Path,
    options: &Options,
    mode: OpenMode,
) -> Result<(Opened, SessionRecords), OpenError> {
    let lock = lock::acquire(ops, dir, (options.clock)())?;
    let head = Head::read(ops, dir)?;
    let mut found = survey(ops, dir, head, mode == OpenMode::Resume)?;
    // Before the damage: a newer program's records may only look damaged to this one.
    if let Some(found) = segment::newer_format(&found.segments) {
        return Err(OpenError::Format {
            dir: dir.to_path_buf(),
            found,
        });
    }
    if let Diagnosis::Damaged(damage) = found.diagnosis {
        return Err(OpenError::Damaged {
            dir: dir.to_path_buf(),
            damage: Box::new(damage),
        });
    }
    if !segment::FORMATS.contains(&found.format) {
        return Err(OpenError::Format {
            dir: dir.to_path_buf(),
            found: found.format,
        });
    }
    if mode == OpenMode::Create && found.good.seq > 0 {
        return Err(OpenError::Exists(dir.to_path_buf()));
    }
    let mut recovered = Recovered {
        existed: found.good.seq > 0,
        session: found
            .session
            .clone()
            .unwrap_or_else(|| options.session.clone()),
        last: found.good.seq,
        last_time: found.last_time,
        epoch: found.epoch + 1,
        class: None,
        cut: 0,
        quarantine: None,
    };
    if let Diagnosis::Cut(class, bad) = &found.diagnosis {
        let copy = repair::cut(ops, dir, &found, (*class, bad), options)?;
        (recovered.class, recovered.cut, recovered.quarantine) =
            (Some(*class), found.behind, Some(copy));
    }
    repair::prove(ops, dir, &found, &options.probe)?;
    let (file, first) = log(ops, dir, &found)?;
    segment::protect(ops, &found.segments);
    segment::sweep(ops, dir);
    let head = ops.open_or_create(&head::path(dir))?;
    // Without space for the reserve the session can still be opened.
    drop(reserve::ensure(ops, dir));
    if found.good.seq == 0 {
        names(ops, dir)?;
    }
    let past = SessionRecords::new(ops, dir, &mut found);
    let format = segment::format(&found.segments);
    let place = LogEnd {
        file,
        format,
        first,
        offset: found.offset,
        chain: found.good,
        sealed: found.sealed,
    };
    let start = WriterParts {
        dir: dir.to_path_buf(),
        place,
        head,
        lock,
    };
    Ok((start_writer(ops, options, start, recovered)?, past))
}

fn start_writer(
    ops: &Ops,
    options: &Options,
    start: WriterParts,
    recovered: Recovered,
) -> Result<Opened, OpenError> {
    let shared = Arc::new(Shared::new(
        recovered.epoch,
        recovered.last,
        Arc::clone(&ops.flushes),
    ));
    let blobs = Blobs::new(ops.clone(), &start.dir, options, Arc::clone(&shared.closed));
    blobs.sweep();
    let writer = Writer::new(
        ops.clone(),
        options,
        recovered.session.clone(),
        start,
        Arc::clone(&shared),
    );
    writer.hint();
    Ok(Opened {
        journal: Journal::start(writer, shared)?,
        blobs,
        recovered,
    })
}

/// Opens the newest segment for writing (unless it is full); creates the first one, empty.
fn log(ops: &Ops, dir: &Path, found: &Survey) -> Result<(DiskFile, u64), DiskFault> {
    ops.create_dir(&segment::log(dir))?;
    let (path, first) = found
        .segments
        .last()
        .map_or_else(|| (segment::path(dir, 1), 1), |s| (s.path.clone(), s.first));
    Ok((ops.open_or_create(&path)?, first))
}

/// Makes the names of the log's directories durable before records are written.
pub(super) fn names(ops: &Ops, dir: &Path) -> Result<(), DiskFault> {
    ops.sync_dir(&segment::log(dir))?;
    ops.sync_dir(dir)?;
    dir.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), |parent| ops.sync_dir(parent))
}
