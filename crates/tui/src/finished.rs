//! How much of a Markdown text that still grows can be shown: what comes later does not change it.

use crate::markdown::parser;
use pulldown_cmark::{CodeBlockKind, Event, Tag};
use std::ops::Range;

/// The end of the blocks that are finished, in bytes. Only whole lines count. A definition that a link refers to has to
/// come before the link.
#[must_use]
pub fn finished(source: &str) -> usize {
    let whole = source.rfind('\n').map_or(0, |at| at + 1);
    let source = source.get(..whole).unwrap_or_default();
    let Some((tag, last)) = last_block(source) else {
        return 0;
    };
    let text = source.get(last.clone()).unwrap_or_default();
    let rest = source
        .get(last.start + text.trim_end().len()..)
        .unwrap_or_default();
    let is_over = match tag {
        Some(Tag::Heading { .. }) => text.starts_with('#'),
        Some(Tag::Paragraph | Tag::Table(_)) => rest.lines().count() > 1,
        Some(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => is_closed(text.trim_end()),
        // A rule; other events without a tag are parts of a block.
        None => true,
        Some(_) => false,
    };
    // An indented block begins behind its indentation.
    let line = source
        .get(..last.start)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |at| at + 1);
    if is_over { whole } else { line }
}

fn last_block(source: &str) -> Option<(Option<Tag<'_>>, Range<usize>)> {
    let mut depth = 0_usize;
    let mut last = None;
    for (event, range) in parser(source).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    last = Some((Some(tag), range));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => last = Some((None, range)),
            _ => {}
        }
    }
    last
}

/// Whether a fenced block has its closing fence.
fn is_closed(block: &str) -> bool {
    let Some((first, last)) = block
        .split_once('\n')
        .map(|(first, rest)| (first, rest.lines().last().unwrap_or(rest)))
    else {
        return false;
    };
    let fence = |line: &str| {
        let sign = line
            .trim_start()
            .chars()
            .next()
            .filter(|sign| matches!(sign, '`' | '~'))?;
        Some((
            sign,
            line.trim_start().chars().take_while(|c| *c == sign).count(),
        ))
    };
    let is_only = |line: &str, sign: char| line.trim().chars().all(|c| c == sign);
    match (fence(first), fence(last)) {
        (Some((open, long)), Some((close, more))) => {
            open == close && more >= long && is_only(last, close)
        }
        _ => false,
    }
}
