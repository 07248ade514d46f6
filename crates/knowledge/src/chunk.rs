//! Documents in chunks: at headings and paragraphs, with the end of the chunk before. Text in, ranges out.

use std::ops::Range;

/// The longest chunk, in bytes: about 700 tokens of English.
pub(crate) const MAX_CHUNK: usize = 2800;

/// The longest end of the chunk before that a chunk begins with, in bytes: about 80 tokens.
pub(crate) const OVERLAP: usize = 320;

/// A section with less than this is in one chunk with the next one, in bytes.
const SHORT: usize = 500;

/// The longest line of headings above a chunk, in bytes.
const MAX_HEADING: usize = 300;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The headings above its beginning, outermost first.
    pub(crate) heading: String,
    /// Its place in the body, the end of the chunk before included.
    pub(crate) range: Range<usize>,
    /// How much of its beginning is the end of the chunk before, in bytes. Without it, the chunks of a document are its body.
    pub(crate) overlap: usize,
}

/// A piece that stays whole: a paragraph, a block of code, or a part of a long one.
struct Piece {
    range: Range<usize>,
    /// The headings above it, where it begins a section.
    section: Option<String>,
}

/// Parts a body. `is_markdown` says whether it has headings and fences.
pub(crate) fn chunks(body: &str, is_markdown: bool) -> Vec<Chunk> {
    let mut done: Vec<Chunk> = Vec::new();
    let mut open = Chunk {
        heading: String::new(),
        range: 0..0,
        overlap: 0,
    };
    let mut heading = String::new();
    for piece in pieces(body, is_markdown) {
        let begins_section = piece.section.is_some();
        if let Some(section) = piece.section {
            heading = section;
        }
        let own = open.range.len() - open.overlap;
        let is_full = open.range.len() + piece.range.len() > MAX_CHUNK;
        if own > 0 && (is_full || begins_section && own >= SHORT) {
            let overlap = match begins_section {
                true => 0,
                false => overlap(body, open.range.end, MAX_CHUNK - piece.range.len()),
            };
            let next = open.range.end - overlap..open.range.end;
            done.push(std::mem::replace(
                &mut open,
                Chunk {
                    heading: heading.clone(),
                    range: next,
                    overlap,
                },
            ));
        } else if own == 0 {
            open.heading.clone_from(&heading);
        }
        open.range.end = piece.range.end;
    }
    if open.range.len() > open.overlap {
        done.push(open);
    }
    done
}

/// How much text before `end` the next chunk repeats: whole lines where there are some, else whole words.
fn overlap(body: &str, end: usize, room: usize) -> usize {
    let least = body.ceil_char_boundary(end.saturating_sub(OVERLAP.min(room)));
    let before = body.get(least..end).unwrap_or_default();
    let is_inside = before.len() > 1 && least > 0;
    let line = before.find('\n').filter(|at| *at < before.len() / 2);
    let begin = match line.or_else(|| before.find(' ')) {
        Some(at) if is_inside && at + 1 < before.len() => at + 1,
        Some(_) | None => 0,
    };
    before.len() - begin
}

/// The pieces of a body, in order and without gaps.
fn pieces(body: &str, is_markdown: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut above: Vec<(usize, &str)> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut was_blank = true;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let bare = line.trim();
        let level = heading_level(line).filter(|_| is_markdown && fence.is_none());
        let mut section = None;
        if let Some(level) = level {
            above.retain(|(outer, _)| *outer < level);
            let name = bare.trim_matches('#').trim();
            let name = name.get(..name.floor_char_boundary(MAX_HEADING));
            above.push((level, name.unwrap_or_default()));
            section = Some(joined(&above));
        }
        let begins = pieces.is_empty()
            || section.is_some()
            || was_blank && !bare.is_empty() && fence.is_none();
        if is_markdown && let Some(mark) = ["```", "~~~"].into_iter().find(|m| bare.starts_with(m))
        {
            fence = match fence {
                Some(open) if open == mark => None,
                Some(open) => Some(open),
                None => Some(mark),
            };
        }
        was_blank = bare.is_empty();
        match pieces.last_mut().filter(|_| !begins) {
            Some(piece) if piece.range.len() + range.len() <= MAX_CHUNK - OVERLAP => {
                piece.range.end = range.end;
            }
            Some(_) | None => add_line(&mut pieces, body, range, section),
        }
    }
    pieces
}

/// Adds a line as a piece, or as several where it is long.
fn add_line(pieces: &mut Vec<Piece>, body: &str, line: Range<usize>, mut section: Option<String>) {
    let mut from = line.start;
    while from < line.end {
        let most = from + (MAX_CHUNK - OVERLAP);
        let mut to = line.end;
        if to > most {
            let cut = body.floor_char_boundary(most);
            let space = body.get(from..cut).and_then(|part| part.rfind(' '));
            to = space.map_or(cut, |space| from + space + 1);
        }
        pieces.push(Piece {
            range: from..to,
            section: section.take(),
        });
        from = to;
    }
}

/// The level of a line that is a Markdown heading, 1 to 6.
fn heading_level(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t'])).then_some(level)
}

fn joined(above: &[(usize, &str)]) -> String {
    let names: Vec<&str> = above.iter().map(|(_, name)| *name).collect();
    let all = names.join(" › ");
    let kept = all.get(..all.floor_char_boundary(MAX_HEADING));
    // Each piece has its own: no room that is not used.
    kept.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks of a body, of which each is checked.
    fn checked(body: &str) -> Vec<Chunk> {
        let all = chunks(body, true);
        let mut whole = String::new();
        for chunk in &all {
            assert!(
                chunk.range.len() <= MAX_CHUNK && chunk.overlap <= OVERLAP,
                "{chunk:?}"
            );
            assert!(chunk.range.len() > chunk.overlap, "{chunk:?}");
            whole.push_str(&body[chunk.range.start + chunk.overlap..chunk.range.end]);
        }
        assert_eq!(whole, body);
        all
    }

    #[test]
    fn chunks_without_their_overlaps_are_the_body() {
        let lines = "a line of prose with some words\n".repeat(400);
        let bodies = [
            String::new(),
            "\n\n \n".to_owned(),
            "one".to_owned(),
            "é".repeat(5000),
            "word ".repeat(5000),
            "x".repeat(100_000),
            lines.clone(),
            format!("# a\n\n{lines}\n## b\n\n{lines}\n```\n\n{lines}\n```\nend"),
            "知識の索引。".repeat(2000),
        ];
        let many: Vec<usize> = bodies.iter().map(|body| checked(body).len()).collect();
        assert_eq!(many[..3], [0, 1, 1]);
        assert!(many[3..].iter().all(|many| *many >= 4), "{many:?}");
    }

    #[test]
    fn a_long_heading_costs_its_sections_little() {
        let body = format!("# {}\n{}", "x".repeat(500_000), "## a\n".repeat(500));
        let sections = pieces(&body, true).into_iter();
        let kept: usize = sections
            .filter_map(|piece| Some(piece.section?.capacity()))
            .sum();
        assert!(kept <= 501 * MAX_HEADING, "{kept} bytes");
    }

    #[test]
    fn a_chunk_begins_with_the_end_of_the_one_before_in_its_section() {
        let paragraph = format!(
            "{}.\n\n",
            "seven words are in this short paragraph ".repeat(10)
        );
        let body = format!("# One\n\n{}# Two\n\n{paragraph}", paragraph.repeat(12));
        let all = checked(&body);
        let headings: Vec<&str> = all.iter().map(|chunk| chunk.heading.as_str()).collect();
        assert_eq!(headings, ["One", "One", "Two"]);
        let overlaps: Vec<bool> = all.iter().map(|chunk| chunk.overlap > 0).collect();
        assert_eq!(overlaps, [false, true, false]);
    }

    #[test]
    fn headings_of_code_are_code_and_short_sections_stay_together() {
        let body = format!(
            "# Top\n\nshort\n\n## Below\n\n```sh\n# no heading\n```\n\n{}\n# Next\n",
            "text ".repeat(200)
        );
        let all = checked(&body);
        let headings: Vec<&str> = all.iter().map(|chunk| chunk.heading.as_str()).collect();
        assert_eq!(headings, ["Top", "Next"]);
        let nested = format!(
            "# Top\n{}\n## Below\n{}",
            "x ".repeat(300),
            "y ".repeat(300)
        );
        let all = checked(&nested);
        assert_eq!(all[1].heading, "Top › Below");
    }
}
