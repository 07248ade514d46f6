//! Markdown as lines. What has no look without colours keeps its sign there.

use crate::highlight::highlight;
use crate::line::{Line, Span};
use crate::style::{Theme, Tone};
use crate::table::{self, Table};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Lists and quotes inside one another that are indented; deeper ones stand at the same place.
const MAX_DEPTH: usize = 12;

/// Columns before a line within a paragraph that are kept.
const MAX_INDENT: usize = 8;

/// Columns of a rule.
const RULE: usize = 24;

/// A Markdown text as lines of at most `width` columns, without an empty line at its ends.
#[must_use]
pub fn markdown(source: &str, width: usize, theme: Theme) -> Vec<Line> {
    let mut page = Page {
        width: width.max(1),
        theme,
        ..Page::default()
    };
    for (event, range) in parser(source).into_offset_iter() {
        let is_break = event == Event::SoftBreak;
        page.event(event);
        if is_break && page.margins.is_empty() {
            let indent = source
                .get(range.end..)
                .unwrap_or_default()
                .bytes()
                .take_while(|byte| *byte == b' ')
                .count();
            page.inline(&" ".repeat(indent.min(MAX_INDENT)), Tone::Plain);
        }
    }
    page.paragraph();
    // The sign of an empty item may be wider than the terminal.
    let Page {
        mut lines, width, ..
    } = page;
    lines
        .iter_mut()
        .filter(|line| line.width() > width)
        .for_each(|line| *line = line.cut(width));
    lines
}

pub(crate) fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(
        source,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS,
    )
}

/// What stands before the lines of a list item or a quote.
#[derive(Default)]
struct Margin {
    /// Before the next line only.
    first: Option<Line>,
    rest: Line,
}

struct Link {
    target: String,
    /// Bytes of the target that are the text so far; none once the text is another one.
    said: Option<usize>,
}

impl Link {
    fn say(&mut self, text: &str) {
        let rest = self.said.and_then(|said| self.target.get(said..));
        self.said = rest
            .filter(|rest| rest.starts_with(text))
            .map(|rest| self.target.len() - rest.len() + text.len());
    }

    fn says_its_target(&self) -> bool {
        self.said == Some(self.target.len())
    }
}

#[derive(Default)]
struct Page {
    width: usize,
    theme: Theme,
    lines: Vec<Line>,
    /// The text since the last line that was printed.
    line: Line,
    tones: Vec<Tone>,
    margins: Vec<Margin>,
    /// The next number of each list around here; none for bullets.
    lists: Vec<Option<u64>>,
    /// The links and images that are open.
    links: Vec<Link>,
    /// The block of code that is open, and what stands behind its fence.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Something was printed that the next block stands apart from.
    apart: bool,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.code(&code),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text)
            }
            Event::InlineHtml(html) => self.text(&html),
            Event::Html(html) => {
                for line in html.lines() {
                    self.line.push(Span::new(line, Tone::Dim));
                    self.paragraph();
                    self.apart = false;
                }
            }
            // Models break lines where they mean it.
            Event::SoftBreak | Event::HardBreak => {
                self.paragraph();
                self.apart = false;
            }
            Event::Rule => {
                self.paragraph();
                self.line
                    .push(Span::new(&"─".repeat(RULE.min(self.width)), Tone::Dim));
                self.paragraph();
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.paragraph();
                self.tones.push(Tone::Heading);
                if self.theme == Theme::Plain {
                    self.inline(&format!("{} ", "#".repeat(level as usize)), Tone::Heading);
                }
            }
            Tag::BlockQuote(_) => self.nest(Margin {
                first: None,
                rest: Line::of("│ ", Tone::Dim),
            }),
            Tag::CodeBlock(kind) => {
                self.paragraph();
                let tag = if let CodeBlockKind::Fenced(tag) = kind {
                    tag.into_string()
                } else {
                    String::new()
                };
                self.code = Some((String::new(), tag));
            }
            Tag::List(first) => {
                // A list in an item stands directly below it.
                let inside = !self.lists.is_empty();
                self.paragraph();
                self.apart &= !inside;
                self.lists.push(first);
            }
            Tag::Item => {
                let sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let sign = format!("{number}. ");
                        *number = number.saturating_add(1);
                        sign
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let rest = Line::of(&" ".repeat(sign.chars().count()), Tone::Plain);
                self.nest(Margin {
                    first: Some(Line::of(&sign, Tone::Plain)),
                    rest,
                });
            }
            Tag::Emphasis => self.mark("*", Tone::Emphasis),
            Tag::Strong => self.mark("**", Tone::Strong),
            Tag::Strikethrough => self.mark("~~", Tone::Struck),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                // An image in a link is no text that says where the link leads.
                self.links
                    .last_mut()
                    .into_iter()
                    .for_each(|around| around.said = None);
                self.links.push(Link {
                    target: dest_url.into_string(),
                    said: Some(0),
                });
                self.tones.push(Tone::Link);
            }
            Tag::Table(alignments) => {
                self.paragraph();
                self.table = Some(Table::new(alignments));
            }
            Tag::Paragraph | Tag::HtmlBlock => {
                self.paragraph();
                // Behind what an item begins with.
                self.apart |= self
                    .margins
                    .last()
                    .is_some_and(|margin| margin.first.is_none());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.tones.pop();
                self.paragraph();
            }
            TagEnd::BlockQuote(_) => self.leave(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.apart |= self.lists.is_empty();
            }
            TagEnd::Item => {
                // Items of one line stand together; those with paragraphs apart.
                let is_loose = self.line.is_empty();
                self.leave();
                self.apart &= is_loose;
            }
            TagEnd::Emphasis => self.unmark("*"),
            TagEnd::Strong => self.unmark("**"),
            TagEnd::Strikethrough => self.unmark("~~"),
            TagEnd::Link | TagEnd::Image => {
                self.tones.pop();
                if let Some(link) = self.links.pop()
                    && !link.says_its_target()
                    && !link.target.is_empty()
                {
                    self.inline(&format!(" ({})", link.target), Tone::Dim);
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                self.table
                    .iter_mut()
                    .for_each(|table| table.cell(cell.clone()));
            }
            TagEnd::TableHead | TagEnd::TableRow => self.table.iter_mut().for_each(Table::end_row),
            TagEnd::Table => self.end_table(),
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.paragraph(),
            _ => {}
        }
    }

    fn tone(&self) -> Tone {
        self.tones.last().copied().unwrap_or_default()
    }

    fn mark(&mut self, sign: &str, tone: Tone) {
        // In a heading it stays what the heading is.
        let tone = if self.tone() == Tone::Heading {
            Tone::Heading
        } else {
            tone
        };
        self.tones.push(tone);
        self.sign(sign);
    }

    fn unmark(&mut self, sign: &str) {
        self.sign(sign);
        self.tones.pop();
    }

    fn sign(&mut self, sign: &str) {
        if self.theme == Theme::Plain {
            self.inline(sign, self.tone());
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((code, _)) = &mut self.code {
            code.push_str(text);
            return;
        }
        self.links
            .last_mut()
            .into_iter()
            .for_each(|link| link.say(text));
        self.inline(text, self.tone());
    }

    fn code(&mut self, code: &str) {
        self.links
            .last_mut()
            .into_iter()
            .for_each(|link| link.say(code));
        let plain = self.theme == Theme::Plain;
        self.inline(
            &if plain {
                format!("`{code}`")
            } else {
                code.to_owned()
            },
            Tone::Code,
        );
    }

    fn inline(&mut self, text: &str, tone: Tone) {
        self.line.append(&Line::of_output(text, tone));
    }

    fn nest(&mut self, margin: Margin) {
        self.paragraph();
        self.margins.push(margin);
    }

    fn leave(&mut self) {
        self.paragraph();
        // An item without a text still has its sign.
        if self
            .margins
            .last()
            .is_some_and(|margin| margin.first.is_some())
        {
            self.print(|first, _| vec![first.clone()]);
        }
        self.margins.pop();
    }

    /// Ends the text that is open.
    fn paragraph(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let width = self.width;
        self.print(|first, rest| line.wrap(width, first, rest));
        self.apart = true;
    }

    fn end_code(&mut self) {
        let Some((code, tag)) = self.code.take() else {
            return;
        };
        let width = self.width;
        self.margins.push(Margin {
            first: None,
            rest: Line::of("  ", Tone::Plain),
        });
        let lines = code.strip_suffix('\n').unwrap_or(&code).split('\n');
        for line in highlight(
            &tag,
            lines
                .map(|line| Line::of_output(line, Tone::Code))
                .collect(),
        ) {
            self.print(|first, rest| line.chop(width, first, rest));
            self.apart = false;
        }
        self.margins.pop();
        self.apart = true;
    }

    fn end_table(&mut self) {
        let Some(rows) = self.table.take() else {
            return;
        };
        let margin: usize = self.margins.iter().map(|margin| margin.rest.width()).sum();
        for line in table::lines(&rows, self.width.saturating_sub(margin).max(1)) {
            let width = self.width;
            self.print(|first, rest| line.wrap(width, first, rest));
            self.apart = false;
        }
        self.apart = true;
    }

    /// Prints lines behind the prefixes of the first one and of the others.
    fn print(&mut self, lines: impl FnOnce(&Line, &Line) -> Vec<Line>) {
        if self.apart && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let mut first = Line::default();
        let mut rest = Line::default();
        for margin in self.margins.iter_mut().take(MAX_DEPTH) {
            first.append(&margin.first.take().unwrap_or_else(|| margin.rest.clone()));
            rest.append(&margin.rest);
        }
        self.lines.extend(lines(&first, &rest));
    }
}
