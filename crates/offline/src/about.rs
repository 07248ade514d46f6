//! What a file says of itself: the first paragraph of a text, or of the comment at the head of a program. From the rows
//! of `Read`. A file without one has no description: code and imports are none.

use crate::lang::Lang;

/// The most characters of a description.
const MAX_CHARS: usize = 600;

pub(crate) fn about(rows: &str, lang: Option<&Lang>) -> Option<String> {
    let lines = rows.lines().filter_map(|row| Some(row.split_once('\t')?.1.trim_end()));
    let text = match lang.map_or("Markdown", |lang| lang.name) {
        "Markdown" => prose(&lines.collect::<Vec<_>>()),
        "Python" => docstring(lines),
        "Rust" => marked(lines, &["//!"]),
        "Shell" | "TOML" | "YAML" => marked(lines, &["#"]),
        "JSON" => None,
        _curly => block(lines.clone()).or_else(|| marked(lines, &["///", "//"])),
    }?;
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let legal = ["Copyright", "SPDX-", "License"].iter().any(|word| text.starts_with(word));
    (words > 0 && !legal).then(|| text.chars().take(MAX_CHARS).collect())
}

/// The first paragraph of the lines that begin with one of these marks, from the first line of the file on.
fn marked<'a>(lines: impl Iterator<Item = &'a str>, marks: &[&str]) -> Option<String> {
    let bare = |line: &'a str| marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim);
    let head = lines.skip_while(|line| line.is_empty() || line.starts_with("#!") || line.contains("-*- coding"));
    paragraph(head.map_while(bare))
}

/// The first paragraph of the comment `/* … */` at the head.
fn block<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut head = lines.skip_while(|line| line.is_empty() || line.starts_with("#!"));
    let first = head.next()?.strip_prefix("/*")?.trim_start_matches('*');
    enclosed(first, head, "*/")
}

fn docstring<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut head = lines.skip_while(|line| line.is_empty() || line.starts_with('#'));
    let first = head.next()?.trim_start_matches(['r', 'R', 'u', 'U']);
    let mark = ["\"\"\"", "'''"].into_iter().find(|mark| first.starts_with(mark))?;
    enclosed(first.strip_prefix(mark)?, head, mark)
}

fn enclosed<'a>(first: &'a str, rest: impl Iterator<Item = &'a str>, end: &str) -> Option<String> {
    let mut open = true;
    let lines = std::iter::once(first).chain(rest).map_while(|line| {
        let (text, more) = line.split_once(end).map_or((line, true), |(text, _)| (text, false));
        let now = open;
        open &= more;
        now.then(|| text.trim().trim_start_matches('*').trim())
    });
    paragraph(lines)
}

fn paragraph<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<&str> = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The first paragraph of Markdown that is prose: no heading, list, table, quote, code, badge or HTML.
fn prose(lines: &[&str]) -> Option<String> {
    let (mut fenced, mut front) = (false, lines.first() == Some(&"---"));
    let mut open: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().chain([&""]).enumerate() {
        let bare = line.trim_start();
        if front {
            front = at == 0 || *line != "---";
            continue;
        }
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fenced = !fenced;
            open.clear();
            continue;
        }
        let rule = !bare.is_empty() && bare.chars().all(|c| "=-*_ ".contains(c));
        let list = bare.split_once(['.', ')']).is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        let mark = ["#", "|", ">", "<", "- ", "* ", "+ ", "[!"].iter().any(|mark| bare.starts_with(mark));
        let indented = open.is_empty() && (line.starts_with("    ") || line.starts_with('\t'));
        if fenced || rule || (list || mark) && open.is_empty() || indented {
            // A rule below words makes them a title.
            open.clear();
        } else if !bare.is_empty() {
            open.push(bare);
        } else {
            let text = inline(&open.join(" "));
            if text.split_whitespace().count() > 1 {
                return Some(text);
            }
            open.clear();
        }
    }
    None
}

/// Text without the marks of images, links, strong words and tags. Code keeps its back-quotes.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let image = rest.starts_with("![");
        if let Some((words, after)) = link(rest.strip_prefix('!').filter(|_| image).unwrap_or(rest)) {
            if !image {
                out.push_str(&inline(words));
            }
            rest = after;
            continue;
        }
        let tag = rest.strip_prefix('<').filter(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'));
        if let Some((_, after)) = tag.and_then(|tag| tag.split_once('>')) {
            rest = after;
            continue;
        }
        let code = rest.strip_prefix('`').and_then(|code| code.find('`'));
        let taken = code.map_or(c.len_utf8(), |close| close + 2);
        let stars = rest.starts_with("**") || rest.starts_with("__");
        let emphasis = c == '*' && (out.ends_with(|c: char| !c.is_whitespace()) || !rest.starts_with("* "));
        if stars {
            rest = rest.get(2..).unwrap_or_default();
            continue;
        }
        if !emphasis {
            out.push_str(rest.get(..taken).unwrap_or_default());
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of `[words](target)` or `[words][name]`, and what follows.
fn link(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let end = text.char_indices().find_map(|(at, c)| {
        depth = match c {
            '[' => depth + 1,
            ']' => depth.saturating_sub(1),
            _other => depth,
        };
        (depth == 0).then_some(at)
    });
    let (words, after) = (text.get(1..end.filter(|_| text.starts_with('['))?)?, text.get(end? + 1..)?);
    let close = if after.starts_with('(') { ')' } else { ']' };
    let target = after.strip_prefix(['(', '['])?;
    Some((words, target.split_once(close)?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, ext: &str) -> Option<String> {
        let rows: Vec<String> = text.lines().enumerate().map(|(at, line)| format!("{:>6}\t{line}", at + 1)).collect();
        about(&rows.join("\n"), Lang::of(ext))
    }

    #[test]
    fn a_description_is_prose_or_nothing() {
        let table = [
            (
                "# T\n\n[![b](x.svg)](x)\n\n**Foo** is a [tool](http://x) for `a_b*c`.\n",
                "md",
                "Foo is a tool for `a_b*c`.",
            ),
            ("Title\n=====\n\n<p align=x>\n\n- one\n- two\n\nAll *good* here, 2 * 3.\n", "md", "All good here, 2 * 3."),
            (
                "---\ntitle: x y\n---\n\n```sh\nrun it now\n```\n\nTwo lines\nof words.\n\nMore.\n",
                "md",
                "Two lines of words.",
            ),
            ("# Only a title\n", "md", ""),
            ("import json\nimport os\n\n\"\"\"Not a docstring.\"\"\"\n", "py", ""),
            ("#!/usr/bin/env python3\n\"\"\"Adds up.\n\nMore.\n\"\"\"\nimport os\n", "py", "Adds up."),
            ("use std::fs;\n\n/// A thing.\nfn f() {}\n", "rs", ""),
            ("//! Accounts\n//! in text.\n//!\n//! More.\nuse x;\n", "rs", "Accounts in text."),
            ("const a = require('a');\n", "js", ""),
            ("/**\n * Formats notes.\n * @module x\n */\n", "js", "Formats notes. @module x"),
            ("// Copyright 2020 A\n\nint main() {}\n", "c", ""),
            ("{\n  \"name\": \"x\"\n}\n", "json", ""),
        ];
        for (text, ext, want) in table {
            assert_eq!(of(text, ext).unwrap_or_default(), want, "{text}");
        }
    }
}
