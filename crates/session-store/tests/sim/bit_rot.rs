//! A bit flips in what had been durable: nobody is shown less, without being told.

use std::path::Path;
use std::sync::Arc;

use session_store::{OpenError, Options, ReadError, RealDisk, Session};

use crate::dice::Dice;
use crate::oracle::{Batch, Oracle};
use crate::world::log;

/// Flips a bit of a record of which something on the disk says that it was durable: HEAD, or a later record.
pub(crate) fn flip(
    dice: &mut Dice,
    dir: &Path,
    oracle: &Oracle,
    options: Options,
) -> Result<(), String> {
    let Some(last) = oracle.committed.last() else {
        return Ok(());
    };
    let head = dice.chance(128);
    let vouched: Vec<&Batch> = oracle
        .committed
        .iter()
        .filter(|batch| head || batch.round < last.round)
        .collect();
    let Some(batch) = vouched.get(dice.below(vouched.len())) else {
        return Ok(());
    };
    let text = format!("\"{}\"", batch.texts[dice.below(batch.texts.len())]);
    let (path, mut bytes) = log(dir)
        .into_iter()
        .find(|(_, bytes)| {
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        })
        .ok_or("a committed record is in no file")?;
    let text_at = bytes
        .windows(text.len())
        .rposition(|window| window == text.as_bytes())
        .unwrap();
    let from = bytes[..text_at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let to = from
        + bytes[from..]
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap()
        + 1;
    bytes[from + dice.below(to - from)] ^= 1 << dice.below(8);
    // A sealed file cannot be written to.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    if !head {
        std::fs::remove_file(dir.join("HEAD")).ok();
    }
    let options = Options {
        disk: Arc::new(RealDisk),
        ..options
    };
    match Session::resume(dir, options) {
        Err(OpenError::Damaged { .. }) => Ok(()),
        Err(error) => Err(format!("a flipped bit, and it does not open: {error}")),
        Ok((opened, past)) => {
            let read = past.all().find_map(Result::err);
            opened.journal.close();
            match read {
                Some(ReadError::Damaged(_)) => Ok(()),
                other => Err(format!(
                    "a flipped bit in a durable record went unnoticed: {other:?}"
                )),
            }
        }
    }
}
