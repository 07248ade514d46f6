//! Lines of spans: their width on a terminal, how they break, and their text with escape sequences.

use crate::style::{Theme, Tone};
use authority::text::escape_line;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns that a prefix leaves for text at least; a line with less room goes without its hanging prefix.
const ROOM: usize = 8;

/// Columns from one stop of a tab to the next.
const TAB: usize = 4;

/// A piece of text with one meaning. It has no character that misleads, and no line feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    tone: Tone,
}

impl Span {
    /// Any text; what would act on a terminal or deceive a reader becomes a visible escape.
    #[must_use]
    pub fn new(text: &str, tone: Tone) -> Self {
        Self {
            text: escape_line(text).into_owned(),
            tone,
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

/// What a reader takes for one character.
#[derive(Clone, Copy)]
struct Cluster<'a> {
    text: &'a str,
    width: usize,
    tone: Tone,
}

impl Line {
    /// A line of one span.
    #[must_use]
    pub fn of(text: &str, tone: Tone) -> Self {
        Self::default().with(text, tone)
    }

    /// A line of an output or a file: tabs become spaces.
    #[must_use]
    pub fn of_output(text: &str, tone: Tone) -> Self {
        let mut shown = String::with_capacity(text.len());
        let mut column = 0;
        let mut parts = text
            .strip_suffix('\r')
            .unwrap_or(text)
            .split('\t')
            .peekable();
        while let Some(part) = parts.next() {
            let part = escape_line(part);
            column += columns(&part);
            shown.push_str(&part);
            if parts.peek().is_some() {
                let spaces = TAB - column % TAB;
                shown.push_str(&" ".repeat(spaces));
                column += spaces;
            }
        }
        Self {
            spans: vec![Span { text: shown, tone }],
        }
    }

    /// The line with one more span.
    #[must_use]
    pub fn with(mut self, text: &str, tone: Tone) -> Self {
        self.push(Span::new(text, tone));
        self
    }

    /// Adds a span.
    pub fn push(&mut self, span: Span) {
        match self.spans.last_mut() {
            Some(last) if last.tone == span.tone => last.text.push_str(&span.text),
            _ if span.text.is_empty() => {}
            _ => self.spans.push(span),
        }
    }

    /// Adds the spans of another line.
    pub fn append(&mut self, line: &Line) {
        line.spans.iter().for_each(|span| self.push(span.clone()));
    }

    /// Whether it has no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.iter().all(|span| span.text.is_empty())
    }

    /// Columns on a terminal.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| columns(&span.text)).sum()
    }

    /// The text alone.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Its texts, each with its meaning.
    #[cfg(test)]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&str, Tone)> {
        self.spans
            .iter()
            .map(|span| (span.text.as_str(), span.tone))
    }

    /// The line for a terminal, without a line feed.
    #[must_use]
    pub fn ansi(&self, theme: Theme) -> String {
        let mut out = String::new();
        for Span { text, tone } in &self.spans {
            match theme.begin(*tone) {
                Some(begin) => out.push_str(&format!("\u{1b}[{begin}m{text}\u{1b}[0m")),
                None => out.push_str(text),
            }
        }
        out
    }

    /// The same for a line that begins in the first column. Terminals measure clusters of several characters
    /// differently: the columns of each are erased before it (a terminal that measures less would leave what they
    /// showed), and behind it the cursor is moved to its column.
    #[must_use]
    pub fn placed(&self, theme: Theme) -> String {
        let mut column = 1;
        let mut spans = Vec::new();
        for Span { text, tone } in &self.spans {
            let mut placed = String::with_capacity(text.len());
            for cluster in text.graphemes(true) {
                let width = cluster.width();
                column += width;
                if cluster.chars().nth(1).is_some() && width > 0 {
                    placed.push_str(&format!("\u{1b}[{width}X{cluster}\u{1b}[{column}G"));
                } else {
                    placed.push_str(cluster);
                }
            }
            spans.push(Span {
                text: placed,
                tone: *tone,
            });
        }
        Self { spans }.ansi(theme)
    }

    /// Lines of at most `width` columns, broken between words where that is possible. The first one begins with `first`,
    /// the others with `rest`.
    #[must_use]
    pub fn wrap(&self, width: usize, first: &Line, rest: &Line) -> Vec<Line> {
        if !fits(width, first, rest) {
            return self
                .behind(first)
                .wrap(width, &Line::default(), &Line::default());
        }
        let mut flow = Flow::new(width.max(1), first, rest);
        let mut word: Vec<Cluster<'_>> = Vec::new();
        for cluster in self.clusters(flow.room()) {
            // Scripts without spaces break between any two of their wide characters.
            let is_alone = cluster.text == " " || cluster.width > 1;
            if is_alone {
                flow.word(&std::mem::take(&mut word));
            }
            match cluster {
                Cluster {
                    text: " ", tone, ..
                } => flow.gap.push(tone),
                cluster if is_alone => flow.word(&[cluster]),
                cluster => word.push(cluster),
            }
        }
        flow.word(&word);
        flow.end()
    }

    /// As [`Line::wrap`], but it breaks anywhere and keeps every space: for code.
    #[must_use]
    pub fn chop(&self, width: usize, first: &Line, rest: &Line) -> Vec<Line> {
        if !fits(width, first, rest) {
            return self
                .behind(first)
                .chop(width, &Line::default(), &Line::default());
        }
        let mut flow = Flow::new(width.max(1), first, rest);
        self.clusters(flow.room())
            .for_each(|cluster| flow.put(cluster));
        flow.end()
    }

    fn behind(&self, first: &Line) -> Line {
        let mut whole = first.clone();
        whole.append(self);
        whole
    }

    /// The line in at most `width` columns, with an ellipsis where it was longer.
    #[must_use]
    pub fn cut(&self, width: usize) -> Line {
        let width = width.max(1);
        if self.width() <= width {
            return self.clone();
        }
        let mut cut = Line::default();
        let mut used = 0;
        let mut tone = Tone::Plain;
        for cluster in self.clusters(width) {
            if used + cluster.width >= width {
                break;
            }
            used += cluster.width;
            tone = cluster.tone;
            cut.put(cluster);
        }
        cut.put(Cluster {
            text: "…",
            width: 1,
            tone,
        });
        cut
    }

    /// Its clusters; one that is wider than the room becomes an ellipsis.
    fn clusters(&self, room: usize) -> impl Iterator<Item = Cluster<'_>> {
        self.spans.iter().flat_map(move |Span { text, tone }| {
            text.graphemes(true).map(move |text| {
                let text = if columns(text) > room { "…" } else { text };
                Cluster {
                    text,
                    width: columns(text),
                    tone: *tone,
                }
            })
        })
    }

    /// The same text with other meanings: of each piece, where it ends in the text and its meaning. What a reader takes
    /// for one character has that of its beginning.
    pub(crate) fn toned(&self, pieces: &[(usize, Tone)]) -> Line {
        let text = self.text();
        let mut toned = Line::default();
        let mut pieces = pieces.iter().peekable();
        for (at, text) in text.grapheme_indices(true) {
            while pieces.next_if(|(end, _)| *end <= at).is_some() {}
            let tone = pieces.peek().map_or(Tone::Plain, |(_, tone)| *tone);
            toned.put(Cluster {
                text,
                width: 0,
                tone,
            });
        }
        toned
    }

    /// The same text with other meanings, each by what it is.
    pub(crate) fn retoned(mut self, other: impl Fn(Tone) -> Tone) -> Line {
        self.spans
            .iter_mut()
            .for_each(|span| span.tone = other(span.tone));
        self
    }

    /// The same text with another meaning of these bytes.
    pub(crate) fn marked(&self, bytes: &Range<usize>, mark: Tone) -> Line {
        let mut pieces = Vec::new();
        let mut end = 0;
        for span in &self.spans {
            let begin = end;
            let tone = span.tone;
            end += span.text.len();
            let inside = |at: usize| at.clamp(begin, end);
            pieces.extend([
                (inside(bytes.start), tone),
                (inside(bytes.end), mark),
                (end, tone),
            ]);
        }
        self.toned(&pieces)
    }

    fn put(&mut self, cluster: Cluster<'_>) {
        match self.spans.last_mut() {
            Some(last) if last.tone == cluster.tone => last.text.push_str(cluster.text),
            _ => self.spans.push(Span {
                text: cluster.text.to_owned(),
                tone: cluster.tone,
            }),
        }
    }
}

/// Whether lines with these prefixes have room for a text.
fn fits(width: usize, first: &Line, rest: &Line) -> bool {
    let prefix = first.width().max(rest.width());
    prefix == 0 || prefix + ROOM <= width
}

/// Columns of a text on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.graphemes(true).map(UnicodeWidthStr::width).sum()
    }
}

/// Lines that are being filled.
struct Flow<'a> {
    width: usize,
    rest: &'a Line,
    done: Vec<Line>,
    line: Line,
    /// Columns of the line behind its prefix.
    used: usize,
    prefix: usize,
    /// The tones of the spaces before the next word; they are dropped where the line breaks.
    gap: Vec<Tone>,
}

impl<'a> Flow<'a> {
    fn new(width: usize, first: &Line, rest: &'a Line) -> Self {
        let prefix = first.width();
        Self {
            width,
            rest,
            done: Vec::new(),
            line: first.clone(),
            used: 0,
            prefix,
            gap: Vec::new(),
        }
    }

    /// Columns for text in a line.
    fn room(&self) -> usize {
        self.width - self.prefix.max(self.rest.width()).min(self.width - 1)
    }

    fn feed(&mut self) {
        self.done
            .push(std::mem::replace(&mut self.line, self.rest.clone()));
        self.prefix = self.rest.width();
        self.used = 0;
    }

    fn put(&mut self, cluster: Cluster<'_>) {
        if self.used > 0 && self.prefix + self.used + cluster.width > self.width {
            self.feed();
        }
        self.used += cluster.width;
        self.line.put(cluster);
    }

    fn word(&mut self, word: &[Cluster<'_>]) {
        if word.is_empty() {
            return;
        }
        let gap = std::mem::take(&mut self.gap);
        let wide: usize = word.iter().map(|cluster| cluster.width).sum();
        if self.prefix + self.used + gap.len() + wide <= self.width {
            let spaces = gap.into_iter().map(|tone| Cluster {
                text: " ",
                width: 1,
                tone,
            });
            spaces
                .chain(word.iter().copied())
                .for_each(|cluster| self.put(cluster));
            return;
        }
        if self.used > 0 {
            self.feed();
        }
        // A word that is longer than a line breaks anywhere.
        word.iter().for_each(|cluster| self.put(*cluster));
    }

    fn end(mut self) -> Vec<Line> {
        self.done.push(self.line);
        self.done
    }
}
