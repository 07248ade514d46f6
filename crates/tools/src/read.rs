//! Read: a window of a text file, with line numbers.

use crate::answer::{ContentBuilder, answer, counted, cut, fix, go_on, refused, unreadable};
use crate::change::line_count;
use crate::files::{Files, MAX_FILE};
use crate::lines::{CHECK_EVERY, LineReader};
use crate::scope;
use crate::sniff::{HEAD, binary};
use authority::text::bytes_without_bom;
use llm_worker::attachment;
use llm_worker::tool::Touch;
use llm_worker::{Attachment, ToolContext, ToolEffect, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The tool's name.
pub const NAME: &str = "Read";
/// The description for the model.
pub const ABOUT: &str = "Read a text file. Each line comes as its number, a tab and its text. An image or PDF is shown.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::ReadOnly;

/// The default number of lines shown.
pub const DEFAULT_LIMIT: u64 = 400;

/// The most characters of one line that are shown.
pub const MAX_LINE_CHARS: usize = 2000;

/// Bytes of the content reserved for the hint on how to continue.
const RESERVE: usize = 128;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Args {
    /// File path.
    pub path: String,
    /// First line, from 1.
    #[serde(default = "first")]
    pub offset: u64,
    /// Number of lines.
    #[serde(default = "limit")]
    pub limit: u64,
}

fn first() -> u64 {
    1
}

fn limit() -> u64 {
    DEFAULT_LIMIT
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    vec![Touch::Read(args.path.clone().into())]
}

/// Runs one call.
///
/// # Errors
/// `FixInput` if the file is missing, no text, or shorter than the offset; `Denied` outside of the workspace;
/// `Cancelled`.
pub async fn run(live: Arc<Files>, args: Args, cx: ToolContext) -> ToolResult {
    if args.offset == 0 || args.limit == 0 {
        return Err(fix("offset and limit must be at least 1"));
    }
    let at = scope::inside(&live.workspace, live.remedies, &args.path)?;
    let shown = live.workspace.show(at.path());
    let len = live.existing_file(&at)?;
    let mut file = live
        .workspace
        .open_file(&at)
        .map_err(|error| refused(&error))?;
    let broken = |error: &std::io::Error| unreadable(&shown, error);

    let mut bytes = Vec::new();
    file.by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| broken(&error))?;
    if attachment::media(&bytes).is_some() && binary(&bytes).is_some() {
        return show(&shown, len, file, bytes, &cx);
    }
    if let Some(what) = binary(&bytes) {
        return Err(fix(format!(
            "{shown} is {what}, {len} bytes; Read shows text only"
        )));
    }
    if len <= MAX_FILE {
        while bytes.len() as u64 <= MAX_FILE {
            go_on(&cx.cancel)?;
            let more = file
                .by_ref()
                .take(CHECK_EVERY as u64)
                .read_to_end(&mut bytes);
            if more.map_err(|error| broken(&error))? == 0 {
                // The whole file was read, so the digest that Write and Edit need is known.
                live.seen.note(at.path(), blake3::hash(&bytes));
                let total = line_count(&bytes);
                return page(
                    &shown,
                    Size::Lines(total),
                    bytes.as_slice(),
                    &args,
                    &cx.cancel,
                );
            }
        }
    }
    let rest = BufReader::with_capacity(CHECK_EVERY, file);
    page(
        &shown,
        Size::Bytes(len),
        bytes.as_slice().chain(rest),
        &args,
        &cx.cancel,
    )
}

/// Puts an image or a document beside the result.
fn show(
    shown: &str,
    len: u64,
    rest: impl Read,
    mut bytes: Vec<u8>,
    cx: &ToolContext,
) -> ToolResult {
    let most = attachment::MAX_DOCUMENT.max(attachment::MAX_IMAGE) as u64;
    if len > most {
        return Err(fix(format!(
            "{shown} has {len} bytes; at most {most} can be shown: make it smaller"
        )));
    }
    rest.take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(shown, &error))?;
    go_on(&cx.cancel)?;
    let name = shown.rsplit('/').next().unwrap_or(shown);
    let unfit = attachment::attachment(name, &bytes).err();
    if let Some(why) = unfit {
        return Err(fix(format!("{shown} is {why}")));
    }
    let file = cx.host.attach(name, &bytes).map_err(|error| ToolError {
        message: format!("{shown}: {}", error.message),
        ..error
    })?;
    let about = Attachment {
        name: String::new(),
        ..file
    };
    Ok(answer(
        &format!("{shown}: {}", about.about()),
        String::new(),
    ))
}

/// The size of the file, as far as it is known.
#[derive(Clone, Copy)]
enum Size {
    Lines(u64),
    Bytes(u64),
}

fn page(
    shown: &str,
    size: Size,
    from: impl BufRead,
    args: &Args,
    cancel: &CancellationToken,
) -> ToolResult {
    let broken = |error: std::io::Error| match go_on(cancel) {
        Err(cancelled) => cancelled,
        Ok(()) => unreadable(shown, &error),
    };
    if let Size::Lines(0) = size {
        return Ok(answer(&format!("{shown}: empty file"), String::new()));
    }
    let mut lines = LineReader::new(from, cancel.clone());
    let mut kept = Vec::new();
    for passed in 0..args.offset - 1 {
        if lines.next(&mut kept, 0).map_err(broken)?.is_none() {
            return Err(past_the_end(shown, passed, args.offset));
        }
    }
    let mut body = ContentBuilder::new(RESERVE);
    let mut last = args.offset - 1;
    let mut more = true;
    let mut crlf = 0_u64;
    let mut ended = 0_u64;
    let mut lossy = false;
    while last - (args.offset - 1) < args.limit {
        let Some(line) = lines.next(&mut kept, MAX_LINE_CHARS * 4).map_err(broken)? else {
            break;
        };
        let (text, spoiled) = render(&kept, line.len, last == 0);
        if !body.line(&format!("{:>6}\t{text}", last + 1)) {
            break;
        }
        last += 1;
        crlf += u64::from(line.crlf);
        ended += u64::from(line.ended);
        lossy |= spoiled;
        more = !lines.at_end().map_err(broken)?;
    }
    if body.is_empty() {
        return Err(past_the_end(shown, last, args.offset));
    }
    let first = args.offset;
    let range = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first}-{last}")
    };
    let mut summary = match (size, more) {
        (Size::Lines(total), _) => format!("{shown}: {range} of {total}"),
        (Size::Bytes(_), false) => format!("{shown}: {range} of {last}"),
        (Size::Bytes(len), true) => {
            format!("{shown}: {range}; more lines follow (the file has {len} bytes)")
        }
    };
    match crlf {
        0 => {}
        all if all == ended => summary.push_str(", CRLF line ends"),
        _some => summary.push_str(", mixed line ends"),
    }
    if lossy {
        summary.push_str(", not all UTF-8: � stands for other bytes");
    }
    let next = more.then(|| format!("(more lines follow; go on with offset={})", last + 1));
    Ok(answer(&summary, body.finish(next.as_slice())))
}

fn past_the_end(shown: &str, lines: u64, offset: u64) -> ToolError {
    fix(format!(
        "{shown} has {}; offset {offset} is past its end",
        counted(lines, "line", "lines")
    ))
}

/// A line's text, cut and marked when long, and whether something in it was not UTF-8.
fn render(kept: &[u8], len: u64, first: bool) -> (String, bool) {
    let whole = kept.len() as u64 == len;
    let bytes = if first { bytes_without_bom(kept) } else { kept };
    // The kept part of a longer line may end inside of a character.
    let spoiled =
        std::str::from_utf8(bytes).is_err_and(|error| whole || error.error_len().is_some());
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => (
            format!("{} [cut: the line has {len} bytes]", cut(&text, end)),
            spoiled,
        ),
        None => (text.into_owned(), spoiled),
    }
}
