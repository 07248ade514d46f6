//! The summary of a file: its first paragraph, or that of the comment at the head of a program.
//! From the rows of `Read`. A file without such a paragraph has no description.

use crate::lang::Lang;

/// The most characters of a description.
const MAX_CHARS: usize = 600;

pub(crate) fn about(rows: &str, lang: Option<&Lang>) -> Option<String> {
    let lines: Vec<&str> = rows
        .lines()
        .filter_map(|row| Some(row.split_once('\t')?.1.trim_end()))
        .collect();
    let text = match lang.map_or("Markdown", |lang| lang.name) {
        "Markdown" => prose(&lines),
        "Python" => comment(&lines, &[("\"\"\"", "\"\"\""), ("'''", "'''")]),
        "Rust" => comment(&lines, &[("//!", "")]),
        "Shell" | "TOML" | "YAML" => comment(&lines, &[("#", "")]),
        "JSON" => None,
        _curly => comment(&lines, &[("/**", "*/"), ("/*", "*/"), ("//", "")]),
    }?;
    let legal = ["Copyright", "SPDX-", "License"]
        .iter()
        .any(|word| text.starts_with(word));
    (text.contains(char::is_alphabetic) && !legal).then(|| text.chars().take(MAX_CHARS).collect())
}

/// The first paragraph of the comment at the head, by its marks; a mark without an end is one of each line.
fn comment(lines: &[&str], marks: &[(&str, &str)]) -> Option<String> {
    let before =
        |line: &&str| line.is_empty() || line.starts_with("#!") || line.contains("-*- coding");
    let text = lines
        .iter()
        .copied()
        .skip_while(before)
        .collect::<Vec<_>>()
        .join("\n");
    let (open, end) = marks.iter().find(|(open, _)| text.starts_with(open))?;
    if end.is_empty() {
        return paragraph(text.lines().map_while(|line| line.strip_prefix(open)));
    }
    paragraph(text.strip_prefix(open)?.split(end).next()?.lines())
}

fn paragraph<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let bare = lines.map(|line| {
        line.trim()
            .trim_start_matches("* ")
            .trim_matches('*')
            .trim()
    });
    let words: Vec<&str> = bare
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The first paragraph of Markdown that is prose: no heading, list, table, quote, code, badge or HTML.
fn prose(lines: &[&str]) -> Option<String> {
    let mut fenced = false;
    let unfenced = lines.iter().map(|line| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= fence;
        if fence || fenced { "" } else { *line }
    });
    let unfenced: Vec<&str> = unfenced.collect();
    let mut paragraphs = unfenced.split(|line| line.is_empty());
    let text = paragraphs.find(|lines| {
        lines.iter().flat_map(|line| line.split(' ')).count() > 1 && is_prose(lines)
    })?;
    Some(
        text.iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" "),
    )
}

fn is_prose(lines: &[&str]) -> bool {
    let marks = [
        "#", "|", ">", "<", "- ", "* ", "+ ", "[![", "![", "    ", "\t",
    ];
    let first = lines.first().copied().unwrap_or_default();
    let number = first
        .split_once(['.', ')'])
        .is_some_and(|(n, _)| n.parse::<u32>().is_ok());
    // A line of dashes below text makes the text a title.
    let rule = |line: &&str| line.chars().all(|c| "=-*_ ".contains(c));
    !number && !marks.iter().any(|mark| first.starts_with(mark)) && !lines.iter().any(rule)
}
