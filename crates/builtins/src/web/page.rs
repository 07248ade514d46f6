//! HTML to Markdown or plain text: the main part of a page as a person would read it. Does not depend on the network.
//!
//! Works on tokens, without a tree: no depth to limit and no nesting to repair. Scripts, navigation and hidden elements
//! are omitted. When a page marks its main part, only that is read, unless there is next to nothing in it.

use super::block::Blocks;
use html5gum::Tokenizer;
use html5gum::emitters::default::{DefaultEmitter, StartTag, Token};
use http_client::Url;

/// Elements omitted with their content: nothing to read.
const NEVER: &[&str] = &[
    "script", "style", "template", "svg", "math", "iframe", "object", "canvas", "noscript",
    "select", "button", "audio", "video", "datalist", "title", "textarea", "map",
];
/// Elements omitted if enough text remains.
const AROUND: &[&str] = &["nav", "aside", "footer", "dialog", "menu"];
/// Elements that have no end.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements that are apart from what surrounds them.
const APART: &str = "p div section article main header figure figcaption dl fieldset form details summary address \
                     hgroup nav aside footer dialog body";

/// The least text of a main part; a shorter one is not used as such.
const LITTLE: usize = 200;

/// The longest address that a link is shown with.
const MAX_LINK: usize = 512;

/// The longest title, in bytes; of a longer one the beginning is shown.
const MAX_TITLE: usize = 512;

/// The most code in one block that is kept back until its end is seen.
const MAX_CODE: usize = 256 << 10;

/// The output format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// With links and the marks of headings, lists, code and tables.
    Markdown,
    /// Words only.
    Text,
}

/// A page's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Its title, in one line.
    pub(super) title: String,
    pub(super) text: String,
    /// Whether the text was cut at its bound.
    pub(super) cut: bool,
}

/// How much of a page is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Main,
    WithoutAround,
    Everything,
}

/// Reads a page whose links are relative to `base`.
pub(super) fn read(html: &str, base: &Url, style: Style) -> Page {
    let mut found = Page::default();
    for part in [Part::Main, Part::WithoutAround, Part::Everything] {
        let page = Reader::new(base, style, part).read(html);
        if page.text.len() >= LITTLE {
            return page;
        }
        if page.text.len() > found.text.len() || found.title.is_empty() {
            found = page;
        }
    }
    found
}

struct Reader<'a> {
    base: &'a Url,
    style: Style,
    part: Part,
    blocks: Blocks,
    title: Option<String>,
    in_title: bool,
    /// The element that is left out, and how many of its name are open.
    skipped: Option<(String, usize)>,
    /// How many elements of the main part are open.
    inside: usize,
    /// The numbers of open lists; `None` for a list without.
    lists: Vec<Option<u32>>,
    link: Option<Link>,
    code: Option<String>,
    row: Row,
}

struct Link {
    url: String,
    begun: bool,
}

#[derive(Default)]
struct Row {
    cells: usize,
    /// Whether the table's first row is over.
    headed: bool,
}

impl<'a> Reader<'a> {
    fn new(base: &'a Url, style: Style, part: Part) -> Self {
        Self {
            base,
            style,
            part,
            blocks: Blocks::default(),
            title: None,
            in_title: false,
            skipped: None,
            inside: 0,
            lists: Vec::new(),
            link: None,
            code: None,
            row: Row::default(),
        }
    }

    fn read(mut self, html: &str) -> Page {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Token::StartTag(tag) => self.start(&String::from_utf8_lossy(&tag.name), &tag),
                Token::EndTag(tag) => self.end(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => self.text(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
            if self.blocks.cut {
                break;
            }
        }
        self.end_code();
        self.end_link();
        let mut title = self
            .title
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if title.len() > MAX_TITLE {
            title.truncate(title.floor_char_boundary(MAX_TITLE));
            title.push('…');
        }
        Page {
            title,
            cut: self.blocks.cut,
            text: self.blocks.finish(),
        }
    }

    fn start(&mut self, name: &str, tag: &StartTag<()>) {
        let void = tag.self_closing || VOID.contains(&name);
        if let Some((skipped, open)) = &mut self.skipped {
            *open += usize::from(skipped == name && !void);
            return;
        }
        if name == "title" && self.title.is_none() {
            self.in_title = true;
            self.title = Some(String::new());
        }
        let around = self.part != Part::Everything && AROUND.contains(&name);
        if !void && (around || NEVER.contains(&name) || hidden(tag)) {
            self.skipped = Some((name.to_owned(), 1));
            return;
        }
        if !void && matches!(name, "main" | "article") {
            self.inside += 1;
        }
        if self.listens() {
            self.open(name, tag);
        }
    }

    fn end(&mut self, name: &str) {
        if name == "title" {
            self.in_title = false;
        }
        if let Some((skipped, open)) = &mut self.skipped {
            *open -= usize::from(skipped == name);
            if *open == 0 {
                self.skipped = None;
            }
            return;
        }
        if self.listens() {
            self.close(name);
        }
        if matches!(name, "main" | "article") {
            self.inside = self.inside.saturating_sub(1);
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title
            && let Some(title) = &mut self.title
        {
            title.push_str(text);
        }
        if self.skipped.is_some() || !self.listens() {
            return;
        }
        if let Some(code) = &mut self.code {
            if code.len() + text.len() <= MAX_CODE {
                code.push_str(text);
            }
            return;
        }
        self.words(text);
    }

    fn listens(&self) -> bool {
        self.part != Part::Main || self.inside > 0
    }

    fn words(&mut self, text: &str) {
        let Some(link) = self
            .link
            .as_mut()
            .filter(|link| !link.begun && !text.trim().is_empty())
        else {
            return self.blocks.words(text);
        };
        link.begun = true;
        let start = text.trim_start();
        if start.len() < text.len() {
            self.blocks.words(" ");
        }
        self.blocks.push("[");
        let (first, rest) = start.split_at(start.find(char::is_whitespace).unwrap_or(start.len()));
        self.blocks.glue(first);
        self.blocks.words(rest);
    }

    fn open(&mut self, name: &str, tag: &StartTag<()>) {
        let marks = self.style == Style::Markdown;
        match name {
            "br" => match &mut self.code {
                Some(code) => code.push('\n'),
                None => self.blocks.line(),
            },
            "hr" => self.rule(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_code();
                self.blocks.block();
                let level = name
                    .as_bytes()
                    .last()
                    .map_or(1, |digit| usize::from(digit - b'0'));
                if marks {
                    self.blocks.mark(format!("{} ", "#".repeat(level)));
                }
            }
            "pre" => {
                self.blocks.block();
                self.code.get_or_insert_default();
            }
            "code" if marks && self.code.is_none() => self.words("`"),
            "blockquote" => {
                self.blocks.block();
                self.blocks.indent(if marks { "> " } else { "  " });
            }
            "ul" | "ol" => self.list(name, tag),
            "li" => self.item(),
            "dt" => self.blocks.block(),
            "dd" => self.blocks.line(),
            "a" => self.begin_link(tag),
            "img" => {
                let alt = attribute(tag, "alt").trim().to_owned();
                if !alt.is_empty() {
                    self.words(&format!("[image: {alt}]"));
                }
            }
            "table" => {
                self.blocks.block();
                self.row = Row::default();
            }
            "tr" => {
                self.blocks.line();
                self.row.cells = 0;
            }
            "td" | "th" => {
                self.row.cells += 1;
                self.words(if marks || self.row.cells > 1 {
                    " | "
                } else {
                    " "
                });
            }
            _ if APART.split(' ').any(|apart| apart == name) => self.blocks.block(),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        let marks = self.style == Style::Markdown;
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.blocks.mark(String::new());
                self.blocks.block();
            }
            "pre" => self.end_code(),
            "code" if marks && self.code.is_none() => self.blocks.glue("`"),
            "blockquote" => {
                self.blocks.outdent();
                self.blocks.block();
            }
            "ul" | "ol" => {
                if self.lists.pop().is_some() && !self.lists.is_empty() {
                    self.blocks.outdent();
                }
                if self.lists.is_empty() {
                    self.blocks.block()
                } else {
                    self.blocks.line()
                }
            }
            "li" => self.blocks.line(),
            "a" => self.end_link(),
            "tr" => self.end_row(),
            "table" => self.blocks.block(),
            _ if APART.split(' ').any(|apart| apart == name) => self.blocks.block(),
            _ => {}
        }
    }

    fn rule(&mut self) {
        self.blocks.block();
        if self.style == Style::Markdown && self.code.is_none() {
            self.blocks.push("---");
            self.blocks.block();
        }
    }

    fn list(&mut self, name: &str, tag: &StartTag<()>) {
        if self.lists.is_empty() {
            self.blocks.block();
        } else {
            self.blocks.line();
            self.blocks.indent("   ");
        }
        let first = attribute(tag, "start").parse().unwrap_or(1);
        self.lists.push((name == "ol").then_some(first));
    }

    fn item(&mut self) {
        self.blocks.line();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            Some(None) | None => "- ".to_owned(),
        };
        self.blocks.mark(mark);
    }

    fn begin_link(&mut self, tag: &StartTag<()>) {
        self.end_link();
        let href = attribute(tag, "href");
        // A place on this page is no address.
        if self.style == Style::Text
            || self.code.is_some()
            || href.is_empty()
            || href.starts_with('#')
        {
            return;
        }
        let Ok(url) = self.base.join(&href) else {
            return;
        };
        let url = url.to_string();
        if url.len() <= MAX_LINK {
            self.link = Some(Link { url, begun: false });
        }
    }

    fn end_link(&mut self) {
        if let Some(link) = self.link.take().filter(|link| link.begun) {
            self.blocks.glue(&format!("]({})", link.url));
        }
    }

    fn end_row(&mut self) {
        let cells = std::mem::take(&mut self.row.cells);
        if cells == 0 || self.style == Style::Text {
            return self.blocks.line();
        }
        self.blocks.words(" |");
        self.blocks.line();
        if !std::mem::replace(&mut self.row.headed, true) {
            self.blocks.push(&format!("|{}", " --- |".repeat(cells)));
            self.blocks.line();
        }
    }

    fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        let code = code.trim_matches('\n');
        if code.trim().is_empty() {
            return;
        }
        // Longer than any run of backquotes inside.
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let marks = self.style == Style::Markdown;
        self.blocks.block();
        if marks {
            self.blocks.verbatim(&fence);
        }
        self.blocks.verbatim(code);
        if marks {
            self.blocks.verbatim(&fence);
        }
        self.blocks.block();
    }
}

/// Whether an element is hidden from readers.
fn hidden(tag: &StartTag<()>) -> bool {
    if tag.attributes.contains_key(b"hidden".as_slice()) || attribute(tag, "aria-hidden") == "true"
    {
        return true;
    }
    let style: String = attribute(tag, "style")
        .to_ascii_lowercase()
        .split_whitespace()
        .collect();
    [
        "display:none",
        "visibility:hidden",
        "opacity:0;",
        "font-size:0;",
        "font-size:0px",
    ]
    .iter()
    .any(|how| style.contains(how))
}

fn attribute(tag: &StartTag<()>, name: &str) -> String {
    tag.attributes
        .get(name.as_bytes())
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
