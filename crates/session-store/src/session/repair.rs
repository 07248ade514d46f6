//! The changes that recovery makes to the disk. A crash may follow each step; the next recovery repeats them.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::options::{Options, Probe};
use super::reserve;
use super::survey::Survey;
use super::walk::{Step, Walk};
use crate::damage::TailDamage;
use crate::disk::{DiskFile, Op};
use crate::error::DiskFault;
use crate::frame::{Chain, FrameError};
use crate::ops::Ops;

/// The description stored beside the bytes that were cut.
#[derive(Serialize)]
struct Reason<'a> {
    class: &'a str,
    reason: String,
    segment: String,
    offset: u64,
    bytes: u64,
    /// The first seq that is not in the log any more.
    seq: u64,
    epoch: u32,
    time: u64,
}

/// Copies the bytes behind the last whole batch to `quarantine`, durably, and then cuts them off.
pub(super) fn cut(
    ops: &Ops,
    dir: &Path,
    found: &Survey,
    why: (TailDamage, &FrameError),
    options: &Options,
) -> Result<PathBuf, DiskFault> {
    let Some(path) = found.segments.last().map(|segment| &segment.path) else {
        return Err(DiskFault::new(
            Op::Open,
            dir,
            &io::Error::from(io::ErrorKind::NotFound),
        ));
    };
    let segment = existing(ops, path)?;
    let copy = match quarantine(ops, dir, &segment, found, why, (options.clock)()) {
        // A full disk often causes torn tails: the reserve is freed for the copy.
        Err(fault) if fault.is_full() => {
            reserve::free(ops, dir)?;
            quarantine(ops, dir, &segment, found, why, (options.clock)())?
        }
        other => other?,
    };
    (options.probe)("recovery:quarantined");
    // Not flushed: if a crash restores the old end, the next recovery cuts it again. The next commit's flush makes the
    // cut durable.
    ops.truncate(&segment, found.offset)?;
    (options.probe)("recovery:truncated");
    Ok(copy)
}

fn existing(ops: &Ops, path: &Path) -> Result<DiskFile, DiskFault> {
    let missing = || DiskFault::new(Op::Open, path, &io::Error::from(io::ErrorKind::NotFound));
    ops.open(path, true)?.ok_or_else(missing)
}

/// Copies the bytes to a file named by its content, so that a repeated recovery finds the copy of an interrupted one.
fn quarantine(
    ops: &Ops,
    dir: &Path,
    segment: &DiskFile,
    found: &Survey,
    (class, bad): (TailDamage, &FrameError),
    time: u64,
) -> Result<PathBuf, DiskFault> {
    let place = dir.join("quarantine");
    ops.create_dir(&place)?;
    ops.sync_dir(dir)?;
    let unnamed = place.join("cut.tmp");
    let copy = ops.create_afresh(&unnamed)?;
    let mut hasher = blake3::Hasher::new();
    ops.blocks(
        segment,
        found.offset,
        found.offset + found.behind,
        |block, at| {
            hasher.update(block);
            ops.write_at(&copy, block, at - found.offset)
        },
    )?;
    ops.sync(&copy)?;
    let digest = hasher.finalize().to_hex();
    let seq = found.good.seq + 1;
    let name = format!(
        "{seq:020}-{}",
        digest.as_str().get(..16).unwrap_or_default()
    );
    let reason = Reason {
        class: class.name(),
        reason: bad.to_string(),
        segment: segment
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        offset: found.offset,
        bytes: found.behind,
        seq,
        epoch: found.epoch + 1,
        time,
    };
    let undescribed = place.join("reason.tmp");
    let description = ops.create_afresh(&undescribed)?;
    let text = serde_json::to_string(&reason).unwrap_or_default() + "\n";
    ops.write_at(&description, text.as_bytes(), 0)?;
    ops.sync(&description)?;
    let named = place.join(format!("{name}.bytes"));
    ops.rename(&undescribed, &place.join(format!("{name}.json")))?;
    ops.rename(&unnamed, &named)?;
    ops.sync_dir(&place)?;
    Ok(named)
}

/// Makes every kept record durable before it is shown.
///
/// Records that neither HEAD nor a later record proves durable may exist in the page cache only; and if their writer's
/// flush failed, the kernel counts those pages as clean. So they are written once more, byte for byte, and flushed.
pub(super) fn prove(ops: &Ops, dir: &Path, found: &Survey, probe: &Probe) -> Result<(), DiskFault> {
    let Some(segment) = found
        .segments
        .last()
        .filter(|_| found.proven < found.good.seq)
    else {
        return Ok(());
    };
    let file = existing(ops, &segment.path)?;
    let from = offset_behind(ops, found, found.proven)?;
    ops.blocks(&file, from, found.offset, |block, at| {
        ops.write_at(&file, block, at)
    })?;
    ops.sync(&file)?;
    if found.segments.len() > 1 {
        ops.sync_dir(&super::segment::log(dir))?;
    }
    probe("recovery:proven");
    Ok(())
}

/// The offset in the newest segment at which the records after `seq` begin.
fn offset_behind(ops: &Ops, found: &Survey, seq: u64) -> Result<u64, DiskFault> {
    let newest = found.segments.last().cloned().into_iter().collect();
    let mut walk = match found.from {
        Chain::START => Walk::new(ops, found.segments.clone()),
        from => Walk::behind(ops, newest, from),
    };
    while walk.chain.seq < seq {
        match walk.step()? {
            Step::Frame(_) => {}
            Step::Bad(_) | Step::End => return Ok(0),
        }
    }
    Ok(if walk.in_last() && walk.segment.is_some() {
        walk.offset()
    } else {
        0
    })
}
