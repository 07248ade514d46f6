//! Texts of Jira Cloud: documents of nodes ("ADF") as Markdown, and Markdown as such documents.

use api_core::reading::{list, number, text};
use api_core::time;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value, json};

/// What is in deeper lists and quotes stands around them.
const MAX_DEPTH: usize = 16;

/// A text as Markdown: it is a document on Jira Cloud, else a text already.
pub(crate) fn shown(of: &Value) -> Option<String> {
    let whole = match of {
        Value::String(text) => text.clone(),
        of => blocks(of),
    };
    (!whole.is_empty()).then_some(whole)
}

/// The blocks in a node, with an empty line between them.
fn blocks(of: &Value) -> String {
    let all = list(of, "/content").iter().map(block);
    let all: Vec<String> = all.filter(|text| !text.is_empty()).collect();
    all.join("\n\n")
}

fn block(of: &Value) -> String {
    let kind = text(of, "/type").unwrap_or_default();
    match kind.as_str() {
        "heading" => {
            let level = number(of, "/attrs/level").unwrap_or(1).clamp(1, 6);
            format!("{} {}", "#".repeat(level as usize), inlines(of))
        }
        "bulletList" | "taskList" | "decisionList" => items(of, |_| "- ".to_owned()),
        "orderedList" => {
            let from = number(of, "/attrs/order").unwrap_or(1);
            items(of, |at| format!("{}. ", from.saturating_add(at)))
        }
        "taskItem" => {
            let is_done = text(of, "/attrs/state").as_deref() == Some("DONE");
            format!("[{}] {}", if is_done { "x" } else { " " }, inlines(of))
        }
        "codeBlock" => {
            let language = text(of, "/attrs/language").unwrap_or_default();
            format!("```{language}\n{}\n```", inlines(of))
        }
        "blockquote" | "panel" => indented(&blocks(of), "> ", "> "),
        "rule" => "---".to_owned(),
        "table" => table(of),
        "mediaSingle" | "mediaGroup" => "[attachment]".to_owned(),
        "paragraph" | "decisionItem" => inlines(of),
        "blockCard" | "embedCard" => inline(of),
        // Of a kind that is not known: what is in it.
        _ if list(of, "/content").is_empty() => inline(of),
        _ => blocks(of),
    }
}

fn items(of: &Value, mark: impl Fn(u64) -> String) -> String {
    let all = list(of, "/content").iter().zip(0..).map(|(item, at)| {
        let text = match list(item, "/content").first() {
            Some(first) if kind_of(first) == "text" => block(item),
            _ => list(item, "/content")
                .iter()
                .fold(String::new(), |text, part| {
                    let between = match kind_of(part).ends_with("List") {
                        _ if text.is_empty() => "",
                        true => "\n",
                        false => "\n\n",
                    };
                    format!("{text}{between}{}", block(part))
                }),
        };
        let mark = mark(at);
        indented(&text, &mark, &" ".repeat(mark.len()))
    });
    all.collect::<Vec<_>>().join("\n")
}

/// The lines of a text, each behind `rest` and the first one behind `first`.
fn indented(text: &str, first: &str, rest: &str) -> String {
    format!("{first}{}", text.replace('\n', &format!("\n{rest}")))
}

fn table(of: &Value) -> String {
    let row = |row: &Value| {
        let cells = list(row, "/content").iter();
        let cells = cells.map(|of| blocks(of).replace('\n', " ").replace('|', "\\|"));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut rows: Vec<String> = list(of, "/content").iter().map(row).collect();
    let columns = list(of, "/content/0/content").len();
    let line = format!("|{}", "---|".repeat(columns));
    rows.insert(rows.len().min(1), line);
    rows.join("\n")
}

fn inlines(of: &Value) -> String {
    list(of, "/content").iter().map(inline).collect()
}

fn inline(of: &Value) -> String {
    let attribute = |name: &str| text(of, &format!("/attrs/{name}"));
    match text(of, "/type").unwrap_or_default().as_str() {
        "text" => marked(of),
        "hardBreak" => "\n".to_owned(),
        "date" => {
            let day = number(of, "/attrs/timestamp").map(time::shown);
            day.map_or_else(String::new, |day| day.chars().take(10).collect())
        }
        _ => ["text", "shortName", "url"]
            .into_iter()
            .find_map(attribute)
            .unwrap_or_else(|| inlines(of)),
    }
}

fn marked(of: &Value) -> String {
    let mut shown = text(of, "/text").unwrap_or_default();
    for mark in list(of, "/marks") {
        shown = match text(mark, "/type").unwrap_or_default().as_str() {
            "code" => format!("`{shown}`"),
            "strong" => format!("**{shown}**"),
            "em" => format!("*{shown}*"),
            "strike" => format!("~~{shown}~~"),
            "link" => match text(mark, "/attrs/href") {
                Some(href) => format!("[{shown}]({href})"),
                None => shown,
            },
            _ => shown,
        };
    }
    shown
}

/// Markdown as a document.
pub(crate) fn document(markdown: &str) -> Value {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writing = Writing::default();
    for event in Parser::new_ext(markdown, options) {
        writing.take(event);
    }
    while writing.open.len() > 1 {
        writing.close();
    }
    let root = writing.open.pop().unwrap_or_default();
    json!({ "type": "doc", "version": 1, "content": root.content })
}

/// A document under construction.
struct Writing {
    /// The nodes that are not yet whole; the first one is the document.
    open: Vec<Node>,
    /// Of texts, outermost first; none where one around it is of the same kind.
    marks: Vec<Option<Value>>,
}

#[derive(Default)]
struct Node {
    /// None of one that is not written itself: what is in it stands in the one around it.
    kind: Option<&'static str>,
    attributes: Map<String, Value>,
    content: Vec<Value>,
}

impl Default for Writing {
    fn default() -> Self {
        let root = Node {
            kind: Some("doc"),
            ..Node::default()
        };
        Self {
            open: vec![root],
            marks: Vec::new(),
        }
    }
}

impl Writing {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => match tag {
                TagEnd::Strong
                | TagEnd::Emphasis
                | TagEnd::Strikethrough
                | TagEnd::Link
                | TagEnd::Image => drop(self.marks.pop()),
                _ => self.close(),
            },
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                let marks = self.marks.iter().flatten().cloned().collect();
                self.text(&text, marks);
            }
            Event::Code(text) => {
                // With code goes only a link.
                let all = self.marks.iter().flatten();
                let links = all.filter(|mark| kind_of(mark) == "link").cloned();
                let marks = links.chain([json!({ "type": "code" })]).collect();
                self.text(&text, marks);
            }
            Event::SoftBreak => self.text(" ", Vec::new()),
            Event::HardBreak => self.inline(json!({ "type": "hardBreak" })),
            Event::Rule => {
                self.open(Some("rule"));
                self.close();
            }
            // Of extensions that are off.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Strong => self.mark(json!({ "type": "strong" })),
            Tag::Emphasis => self.mark(json!({ "type": "em" })),
            Tag::Strikethrough => self.mark(json!({ "type": "strike" })),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let href = json!({ "href": dest_url.as_ref() });
                self.mark(json!({ "type": "link", "attrs": href }));
            }
            Tag::Paragraph | Tag::HtmlBlock => self.open(Some("paragraph")),
            Tag::Heading { level, .. } => {
                self.open(Some("heading"));
                self.attribute("level", (level as u64).into());
            }
            Tag::CodeBlock(kind) => {
                self.open(Some("codeBlock"));
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.attribute("language", language.as_ref().into());
                }
            }
            Tag::BlockQuote(_) => self.open(Some("blockquote")),
            Tag::List(None) => self.open(Some("bulletList")),
            Tag::List(Some(from)) => {
                self.open(Some("orderedList"));
                self.attribute("order", from.into());
            }
            Tag::Item => self.open(Some("listItem")),
            Tag::Table(_) => self.open(Some("table")),
            Tag::TableHead | Tag::TableRow => self.open(Some("tableRow")),
            Tag::TableCell => self.open(Some("tableCell")),
            _ => self.open(None),
        }
    }

    fn mark(&mut self, mark: Value) {
        let mut all = self.marks.iter().flatten();
        let is_new = all.all(|of| kind_of(of) != kind_of(&mark));
        self.marks.push(is_new.then_some(mark));
    }

    fn open(&mut self, kind: Option<&'static str>) {
        let is_flat = |kind: &&str| matches!(*kind, "bulletList" | "orderedList" | "blockquote");
        let is_deep = self.open.len() >= MAX_DEPTH;
        let kind = kind.filter(|kind| !(is_deep && is_flat(kind)));
        self.open.push(Node {
            kind,
            ..Node::default()
        });
    }

    fn attribute(&mut self, name: &str, value: Value) {
        if let Some(node) = self.open.last_mut() {
            node.attributes.insert(name.to_owned(), value);
        }
    }

    /// Ends the innermost node.
    fn close(&mut self) {
        let Some(mut node) = self.open.pop() else {
            return;
        };
        let Some(parent) = self.open.last_mut() else {
            return;
        };
        let Some(kind) = node.kind else {
            node.content.into_iter().for_each(|of| put(parent, of));
            return;
        };
        // Neither may be empty, and a list alone is no item.
        let is_bare = node
            .content
            .first()
            .is_none_or(|of| kind_of(of).ends_with("List"));
        if matches!(kind, "listItem" | "tableCell" | "blockquote") && is_bare {
            node.content
                .insert(0, json!({ "type": "paragraph", "content": [] }));
        }
        if kind == "codeBlock" {
            // Its last line ends with the block.
            let whole: String = node
                .content
                .iter()
                .filter_map(|of| text(of, "/text"))
                .collect();
            let whole = whole.trim_end_matches('\n');
            node.content = Vec::new();
            if !whole.is_empty() {
                node.content.push(json!({ "type": "text", "text": whole }));
            }
        }
        let mut written = json!({ "type": kind });
        if let Some(fields) = written.as_object_mut() {
            if !node.attributes.is_empty() {
                fields.insert("attrs".to_owned(), node.attributes.into());
            }
            if kind != "rule" {
                fields.insert("content".to_owned(), node.content.into());
            }
        }
        put(parent, written);
    }

    fn text(&mut self, text: &str, marks: Vec<Value>) {
        if text.is_empty() {
            return;
        }
        let mut node = json!({ "type": "text", "text": text });
        if let (false, Some(fields)) = (marks.is_empty(), node.as_object_mut()) {
            fields.insert("marks".to_owned(), marks.into());
        }
        self.inline(node);
    }

    fn inline(&mut self, node: Value) {
        if let Some(top) = self.open.last_mut() {
            put(top, node);
        }
    }
}

fn kind_of(node: &Value) -> &str {
    node.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Adds a node where it may stand; else what is in it.
fn put(parent: &mut Node, mut node: Value) {
    let kind = kind_of(&node).to_owned();
    let holds: &[&str] = match parent.kind {
        None => &["text", "hardBreak", "paragraph", "codeBlock"],
        Some("paragraph" | "heading" | "codeBlock") => &["text", "hardBreak"],
        Some("bulletList" | "orderedList") => &["listItem"],
        Some("table") => &["tableRow"],
        Some("tableRow") => &["tableCell"],
        Some("doc") => &[
            "paragraph",
            "codeBlock",
            "bulletList",
            "orderedList",
            "heading",
            "blockquote",
            "rule",
            "table",
        ],
        Some(_) => &["paragraph", "codeBlock", "bulletList", "orderedList"],
    };
    if holds.contains(&kind.as_str()) {
        parent.content.push(node);
        return;
    }
    if matches!(kind.as_str(), "text" | "hardBreak" | "heading") {
        let inlines = match node.get_mut("content").map(Value::take) {
            Some(Value::Array(all)) => all,
            _ => vec![node],
        };
        // To the paragraph before it, which is of the same line.
        let is_heading = kind == "heading";
        let last = parent
            .content
            .last_mut()
            .filter(|of| !is_heading && kind_of(of) == "paragraph");
        match last.and_then(|of| of.get_mut("content")?.as_array_mut()) {
            Some(content) => content.extend(inlines),
            None => {
                let paragraph = json!({ "type": "paragraph", "content": inlines });
                if holds.contains(&"paragraph") {
                    parent.content.push(paragraph);
                }
            }
        }
        return;
    }
    if let Some(Value::Array(parts)) = node.get_mut("content").map(Value::take) {
        parts.into_iter().for_each(|part| put(parent, part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_a_document_and_comes_back() {
        let markdown = "## Steps\n\nSay **yes** or *no*, ~~never~~ `x`, [here](https://x.example).\n\n- one\n- two\n  - inner\n\n\
             3. three\n4. four\n\n```rust\nfn a() {}\n```\n\n> quoted\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |";
        let document = document(markdown);
        assert_eq!(shown(&document).unwrap(), markdown);
        let kinds: Vec<&str> = list(&document, "/content").iter().map(kind_of).collect();
        assert_eq!(
            kinds,
            [
                "heading",
                "paragraph",
                "bulletList",
                "orderedList",
                "codeBlock",
                "blockquote",
                "rule",
                "table",
            ]
        );
        let item = "/content/2/content/1/content/1/content/0/content/0/content/0/text";
        assert_eq!(document.pointer(item), Some(&json!("inner")));
    }

    /// Each node stands where it may, and holds what it must.
    fn check(of: &Value, parent: &str) {
        let kind = kind_of(of);
        let may: &[&str] = match parent {
            "" => &["doc"],
            "doc" => &[
                "paragraph",
                "heading",
                "codeBlock",
                "bulletList",
                "orderedList",
                "blockquote",
                "rule",
                "table",
            ],
            "listItem" | "blockquote" | "tableCell" => {
                &["paragraph", "codeBlock", "bulletList", "orderedList"]
            }
            "bulletList" | "orderedList" => &["listItem"],
            "table" => &["tableRow"],
            "tableRow" => &["tableCell"],
            "paragraph" | "heading" | "codeBlock" => &["text", "hardBreak"],
            _ => &[],
        };
        assert!(may.contains(&kind), "{kind} in {parent}");
        if ["listItem", "tableCell", "blockquote", "bulletList", "table"].contains(&kind) {
            assert!(!list(of, "/content").is_empty(), "{of}");
        }
        if kind == "text" {
            assert!(text(of, "/text").is_some(), "{of}");
        }
        list(of, "/content")
            .iter()
            .for_each(|part| check(part, kind));
    }

    #[test]
    fn odd_markdown_gives_documents_that_jira_takes() {
        for markdown in [
            "",
            "plain",
            "- # heading\n- > quote\n- ---\n- | a |\n  |---|\n  | 1 |",
            "> # h\n> > deeper\n> - a\n>   - b",
            "- \n- - - nested",
            "<b>html</b>\n\n<div>\nblock\n</div>\n\n![image](https://x.example/i.png)",
            "| a |\n|---|\n| `x` **y** |",
            "**open *both** ends*  \nhard",
            "```\n\n```",
            "\u{0}\u{202e} текст 错误",
        ] {
            check(&document(markdown), "");
        }
        // As deep as a text may be, which a machine's stack would not hold.
        for deep in ["- ", "> ", "1. ", "> - ", "*a **b "] {
            let document = document(&format!("{}end", deep.repeat(40_000 / deep.len())));
            check(&document, "");
            assert!(shown(&document).unwrap().contains("end"), "{deep}");
        }
    }

    #[test]
    fn nodes_that_markdown_lacks_are_shown() {
        let of = json!({ "type": "doc", "version": 1, "content": [
            { "type": "paragraph", "content": [
                { "type": "mention", "attrs": { "id": "5b10", "text": "@Mia" } }, { "type": "text", "text": " " },
                { "type": "emoji", "attrs": { "shortName": ":smile:" } }, { "type": "hardBreak" },
                { "type": "inlineCard", "attrs": { "url": "https://x.example" } }, { "type": "text", "text": " " },
                { "type": "date", "attrs": { "timestamp": "1767225600000" } }, { "type": "text", "text": " " },
                { "type": "status", "attrs": { "text": "OPEN", "color": "red" } } ] },
            { "type": "panel", "attrs": { "panelType": "info" }, "content": [{ "type": "paragraph", "content": [{ "type": "text", "text": "note" }] }] },
            { "type": "taskList", "content": [{ "type": "taskItem", "attrs": { "state": "DONE" }, "content": [{ "type": "text", "text": "task" }] }] },
            { "type": "expand", "attrs": { "title": "more" }, "content": [{ "type": "paragraph", "content": [{ "type": "text", "text": "inside" }] }] },
            { "type": "mediaSingle", "content": [{ "type": "media", "attrs": { "id": "1" } }] },
        ] });
        assert_eq!(
            shown(&of).unwrap(),
            "@Mia :smile:\nhttps://x.example 2026-01-01 OPEN\n\n> note\n\n- [x] task\n\ninside\n\n[attachment]"
        );
        assert_eq!(shown(&json!("h1. wiki")).unwrap(), "h1. wiki");
        assert_eq!(shown(&Value::Null), None);
    }
}
