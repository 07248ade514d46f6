//! The question that is put to a person, and which keys answer it. A key answers only a question that was seen for a
//! while, with the caret in no text, or when the person chose to answer.

use super::cell::{FILE, argument_lines, texts, value_lines};
use super::composer::Composer;
use super::dead_time::DeadTime;
use super::exchange::{Intent, Key};
use super::status::left;
use crate::asked_command::{AskedField, asked_fields, asked_parts};
use crate::diff::previewed;
use crate::line::Line;
use crate::note::joined;
use crate::style::Tone;
use authority::text::escape_strict;
use protocol::method::{AllowOrDeny, AllowScope, PreviewedCall};
use protocol::record::ApprovalRequested;
use serde_json::Value;
use std::rc::Rc;

/// Lines of what will run that are seen at once, at least.
const MIN_BODY: usize = 2;

/// Columns of a terminal in which a question can be read.
const MIN_WIDTH: usize = 20;

/// Bytes of the words of a denial.
const MAX_WORDS: usize = 2048;

/// What the scope `rule` would write.
#[derive(Clone, Debug)]
enum RuleText {
    Asked,
    Known(String),
    Impossible(String),
}

/// The question that is put now.
#[derive(Clone, Debug, Default)]
pub(super) struct Asking {
    id: Option<u64>,
    time: DeadTime,
    /// The first line that is seen, how many the newest frame showed, and whether a key scrolled since.
    scroll: usize,
    shown: usize,
    scrolled: bool,
    /// All of it was seen.
    read: bool,
    /// The person chose to answer.
    pub(super) focus: bool,
    /// The newest frame said that a letter answers.
    answerable: bool,
    /// Words for the question before this one were being written: what is typed on is for no question.
    interrupted: bool,
    /// The words of a denial that are being written.
    pub(super) words: Option<Composer>,
    rule: Option<RuleText>,
    /// What the call would change in a file.
    call: PreviewedCall,
    /// The answer that was sent.
    sent: Option<u64>,
    /// The lines of the question, and the columns that they are made for.
    body: Option<(usize, Rc<Vec<Line>>)>,
}

/// How a question can be answered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakesAnswer {
    Letter,
    /// A letter may belong to something else, such as an open panel or a text that is being written.
    BehindF4 {
        is_writing: bool,
    },
    /// This client may not answer, or is not connected.
    NotHere,
}

/// What a key did.
pub(super) enum KeyResult {
    Ignored,
    Taken(Vec<Intent>),
    Told(String),
}

impl Asking {
    /// The question that is to be put. Another one than before was not seen yet; gives the words that were being written
    /// for that one.
    pub(super) fn put(&mut self, id: Option<u64>) -> Option<String> {
        if self.id == id {
            return None;
        }
        let words = self
            .words
            .take()
            .map(|words| words.text())
            .filter(|words| !words.is_empty());
        let interrupted = words.is_some() || self.interrupted;
        // Who chose to answer one question may be writing again when the next one comes.
        *self = Self {
            id,
            time: self.time.next(),
            interrupted,
            ..Self::default()
        };
        words
    }

    /// The answer could not be given.
    pub(super) fn failed(&mut self, id: u64) {
        self.sent.take_if(|sent| *sent == id);
    }

    /// What the scope `rule` would write is known.
    pub(super) fn preview(&mut self, id: u64, text: Result<String, String>) {
        if self.id == Some(id) && self.rule.is_some() {
            self.ask_rule(Some(
                text.map_or_else(RuleText::Impossible, RuleText::Known),
            ));
            self.time.not_seen();
            (self.read, self.scroll) = (false, 0);
        }
    }

    /// What the call would change is known, or is another change than before.
    pub(super) fn preview_call(&mut self, id: u64, call: PreviewedCall) {
        if self.id == Some(id) && self.call != call {
            (self.call, self.body) = (call, None);
            self.time.not_seen();
            (self.read, self.scroll) = (false, 0);
        }
    }

    fn ask_rule(&mut self, rule: Option<RuleText>) {
        (self.rule, self.body) = (rule, None);
    }

    /// The question whose answer was sent from here.
    pub(super) fn sent_id(&self) -> Option<u64> {
        self.sent
    }

    /// Whether keys for pages show the rest of the question.
    pub(super) fn takes_pages(&self) -> bool {
        self.focus || !self.read
    }

    /// A key came that did not answer.
    pub(super) fn typed(&mut self, now_ms: u64) {
        self.time.typed(now_ms);
    }

    /// Text arrived as a whole, which nobody typed as an answer: the question counts as not seen yet.
    pub(super) fn not_seen(&mut self) {
        self.time.not_seen();
    }

    /// One step in the question, at most one for each frame: so no line is passed that was never shown.
    fn scroll_by(&mut self, key: Key) {
        let page = self.shown.saturating_sub(1).max(1);
        if !std::mem::replace(&mut self.scrolled, true) {
            self.scroll = match key {
                Key::Down => self.scroll.saturating_add(1),
                Key::PageDown => self.scroll.saturating_add(page),
                Key::Up => self.scroll.saturating_sub(1),
                _ => self.scroll.saturating_sub(page),
            };
        }
    }

    /// A key for the question. `free`: there is no text that the key may belong to.
    pub(super) fn key(
        &mut self,
        asked: &ApprovalRequested,
        key: Key,
        free: bool,
        now_ms: u64,
    ) -> KeyResult {
        if self.words.is_some() {
            return self.word_key(asked, key);
        }
        if self.interrupted && !self.focus {
            return self.interrupted_key(key);
        }
        if !(self.focus || free) {
            return KeyResult::Ignored;
        }
        match key {
            Key::PageDown | Key::Down | Key::PageUp if self.takes_pages() => {
                self.scroll_by(key);
                return KeyResult::Taken(Vec::new());
            }
            Key::Up if self.focus => {
                self.scroll_by(key);
                return KeyResult::Taken(Vec::new());
            }
            Key::Esc if self.rule.is_some() => {
                self.ask_rule(None);
                return KeyResult::Taken(Vec::new());
            }
            Key::Esc if self.focus => {
                self.focus = false;
                return KeyResult::Taken(Vec::new());
            }
            _ => {}
        }
        let Key::Char(letter) = key else {
            return KeyResult::Ignored;
        };
        let scopes = scopes(asked);
        let wanted = match letter {
            'y' if matches!(self.rule, Some(RuleText::Known(_))) => Some(AllowScope::Rule),
            'y' if self.rule.is_none() => Some(AllowScope::Once),
            'p' if scopes > 1 && self.rule.is_none() => Some(AllowScope::Pod),
            'r' if scopes > 2 && self.rule.is_none() => None,
            'n' if self.rule.is_some() => {
                self.ask_rule(None);
                return KeyResult::Taken(Vec::new());
            }
            'n' | 'w' => None,
            _ if self.focus => return KeyResult::Taken(Vec::new()),
            _ => return KeyResult::Ignored,
        };
        if !self.time.is_over(now_ms) {
            // It belongs to what was typed before.
            return if self.focus {
                KeyResult::Taken(Vec::new())
            } else {
                KeyResult::Ignored
            };
        }
        if self.sent == Some(asked.approval) {
            return KeyResult::Told("this answer is on its way".to_owned());
        }
        match (letter, wanted) {
            ('n', None) => self.answer(asked, AllowOrDeny::Deny, AllowScope::Once, None),
            ('w', None) => {
                self.words = Some(Composer::default());
                KeyResult::Taken(Vec::new())
            }
            _ if !self.read => {
                KeyResult::Told("read to the end first: PgDn shows the rest".to_owned())
            }
            ('r', None) => {
                self.ask_rule(Some(RuleText::Asked));
                self.focus = true;
                KeyResult::Taken(vec![Intent::PreviewRule { id: asked.approval }])
            }
            (_, Some(scope)) => self.answer(asked, AllowOrDeny::Allow, scope, None),
            _ => KeyResult::Ignored,
        }
    }

    /// A key that may still be meant for the words of the question before this one.
    fn interrupted_key(&mut self, key: Key) -> KeyResult {
        match key {
            Key::Esc => {
                self.interrupted = false;
                KeyResult::Taken(Vec::new())
            }
            Key::Char(_) | Key::Enter => {
                KeyResult::Told("another question is asked now: press Esc, then go on".to_owned())
            }
            _ => KeyResult::Ignored,
        }
    }

    fn answer(
        &mut self,
        asked: &ApprovalRequested,
        decision: AllowOrDeny,
        scope: AllowScope,
        words: Option<String>,
    ) -> KeyResult {
        self.sent = Some(asked.approval);
        let arguments_digest = asked.arguments_digest.clone();
        KeyResult::Taken(vec![Intent::Approve {
            id: asked.approval,
            decision,
            scope,
            words,
            arguments_digest,
        }])
    }

    fn word_key(&mut self, asked: &ApprovalRequested, key: Key) -> KeyResult {
        match key {
            Key::Esc => self.words = None,
            Key::Enter
                if self
                    .words
                    .as_ref()
                    .is_some_and(|words| words.text().len() > MAX_WORDS) =>
            {
                return KeyResult::Told("the words of a denial have at most 2 KiB".to_owned());
            }
            Key::Enter => {
                let words = self
                    .words
                    .take()
                    .map(|mut words| words.take())
                    .unwrap_or_default();
                let words = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
                return self.answer(asked, AllowOrDeny::Deny, AllowScope::Once, words);
            }
            Key::Char(c) => {
                self.words.get_or_insert_default().type_char(c);
            }
            key => super::writing::edit(self.words.get_or_insert_default(), key),
        }
        KeyResult::Taken(Vec::new())
    }

    /// The question in at most `rows` rows. Where there is no room for it, nobody has seen it.
    pub(super) fn lines(
        &mut self,
        asked: &ApprovalRequested,
        number: (usize, usize),
        takes: TakesAnswer,
        (width, rows): (usize, usize),
        now_ms: u64,
    ) -> Vec<Line> {
        let head = head(asked, number).cut(width);
        let keys = self.keys(asked, takes, width);
        let answerable = self.focus || takes == TakesAnswer::Letter;
        if answerable && !self.answerable {
            // The letters act only from now on.
            self.time.not_seen();
        }
        (self.answerable, self.scrolled) = (answerable, false);
        let room = rows.saturating_sub(1 + keys.len());
        if room < MIN_BODY || width < MIN_WIDTH {
            self.time.not_seen();
            self.read = false;
            return vec![
                Line::of("? a question waits: enlarge the terminal", Tone::Waiting).cut(width),
            ];
        }
        self.time.seen(now_ms);
        let body = match self.body.take() {
            Some((made_for, body)) if made_for == width => body,
            other => {
                if other.is_some() {
                    // Other lines than those that were scrolled.
                    self.scroll = 0;
                }
                Rc::new(self.body(asked, width))
            }
        };
        self.body = Some((width, Rc::clone(&body)));
        let end = asked
            .expires
            .as_ref()
            .map(|expires| end(expires.at_ms, width, now_ms))
            .unwrap_or_default();
        let most = (body.len() + end.len()).saturating_sub(room);
        self.scroll = self.scroll.min(most);
        // The last row says how many follow.
        self.shown = room - usize::from(self.scroll < most);
        self.read |= self.scroll == most;
        let mut lines = vec![head];
        lines.extend(
            body.iter()
                .chain(&end)
                .skip(self.scroll)
                .take(room)
                .cloned(),
        );
        let more = most - self.scroll;
        if more > 0 {
            let note = Line::of(
                &format!(
                    "  … {} (PgDn)",
                    crate::count::count(more as u64 + 1, "more line")
                ),
                Tone::Waiting,
            );
            lines.pop();
            lines.push(note.cut(width));
        }
        lines.extend(keys);
        lines
    }

    /// Everything that will run, and what asks.
    fn body(&self, asked: &ApprovalRequested, width: usize) -> Vec<Line> {
        let (margin, deep) = margins();
        // What would be written comes first: it is what the next answer is about.
        let mut lines = self
            .rule
            .as_ref()
            .map(|rule| rule.lines(width))
            .unwrap_or_default();
        let mut fields = asked_fields(asked, Tone::Code);
        let file = fields
            .iter()
            .find(|field| field.name == FILE)
            .map_or_else(String::new, |file| file.value.clone());
        let change = previewed(&file, &self.call);
        if self.call.whole && change.len() > 1 {
            // The rest is in the change.
            fields.retain(|field| field.name == FILE);
        }
        for AskedField {
            name,
            value,
            marked,
        } in fields
        {
            lines.extend(match marked {
                Some(marked) => value_lines(&name, &marked, width, &margin, &deep),
                None => argument_lines(
                    vec![(name, value)],
                    &file,
                    Tone::Code,
                    width,
                    &margin,
                    &deep,
                ),
            });
        }
        let shown = change.iter();
        lines.extend(shown.flat_map(|line| line.chop(width, &margin, &deep)));
        let mut say = |text: &str, tone| lines.extend(texts(text, tone, width, &margin, &deep));
        asked_parts(asked)
            .iter()
            .for_each(|parts| say(parts, Tone::Dim));
        escape_strict(&asked.question)
            .lines()
            .for_each(|line| say(line, Tone::Plain));
        say(&format!("sandbox: {}", asked.sandbox), Tone::Dim);
        if self.rule.is_none()
            && let Some(rules) = rules(asked)
        {
            say(
                &format!(
                    "p also allows later calls of this pod that match: {}",
                    rules.join("; ")
                ),
                Tone::Dim,
            );
        }
        lines
    }

    fn keys(&self, asked: &ApprovalRequested, takes: TakesAnswer, width: usize) -> Vec<Line> {
        let text = if takes == TakesAnswer::NotHere {
            "this terminal cannot answer now"
        } else if self.words.is_some() {
            "why not, for the model: Enter denies, Esc goes back"
        } else if self.interrupted && !self.focus {
            "another question is asked now: Esc, then go on"
        } else if self.sent == Some(asked.approval) {
            "the answer is on its way"
        } else if let (false, TakesAnswer::BehindF4 { is_writing }) = (self.focus, takes) {
            if is_writing {
                "F4, then y or n: what you write stays"
            } else {
                "F4, then y or n"
            }
        } else {
            match (&self.rule, scopes(asked)) {
                (Some(RuleText::Known(_)), _) => "y allow by these rules · n back",
                (Some(_), _) => "n back",
                (None, 1) => "y allow once · n deny · w deny with words",
                (None, 2) => "y allow once · p in this pod · n deny · w deny with words",
                (None, _) => {
                    "y allow once · p in this pod · r by a rule · n deny · w deny with words"
                }
            }
        };
        joined(
            text.split(" · "),
            Tone::Strong,
            width.saturating_sub(2).max(1),
        )
        .iter()
        .map(indented)
        .collect()
    }
}

impl RuleText {
    fn lines(&self, width: usize) -> Vec<Line> {
        let (margin, deep) = margins();
        let (text, tone) = match self {
            Self::Asked => ("looking up what would be written …", Tone::Dim),
            Self::Known(text) => (text.as_str(), Tone::Plain),
            Self::Impossible(why) => (why.as_str(), Tone::Refused),
        };
        let before = if matches!(self, Self::Impossible(_)) {
            "no rule can be written: "
        } else {
            ""
        };
        format!("{before}{text}")
            .lines()
            .flat_map(|line| texts(line, tone, width, &margin, &deep))
            .collect()
    }
}

/// Before the lines of a question, and before those that go on.
pub(super) fn margins() -> (Line, Line) {
    (Line::of("  ", Tone::Plain), Line::of("    │ ", Tone::Dim))
}

/// When nobody can answer any more.
fn end(at_ms: u64, width: usize, now_ms: u64) -> Vec<Line> {
    let text = match at_ms.saturating_sub(now_ms) {
        0 => "nobody answered in time: the pod denies the call".to_owned(),
        ms => format!("denied in {} if nobody answers", left(ms)),
    };
    let (margin, deep) = margins();
    texts(&text, Tone::Waiting, width, &margin, &deep)
}

pub(super) fn indented(line: &Line) -> Line {
    let mut shown = Line::of("  ", Tone::Plain);
    shown.append(line);
    shown
}

fn head(asked: &ApprovalRequested, (at, of): (usize, usize)) -> Line {
    let place = if of > 1 {
        format!(" ({at} of {of})")
    } else {
        String::new()
    };
    Line::of(
        &format!("? approval {}{place}: ", asked.approval),
        Tone::Waiting,
    )
    .with(&asked.tool, Tone::Strong)
}

/// How many scopes are offered: once, the pod, a rule.
fn scopes(asked: &ApprovalRequested) -> usize {
    match (rules(asked), asked.configurable) {
        (None, _) => 1,
        (_, Some(true)) => 3,
        _ => 2,
    }
}

/// The rules that an answer for more than once is about; none if one of them is not understood.
fn rules(asked: &ApprovalRequested) -> Option<Vec<String>> {
    let rules: Option<Vec<String>> = asked.rules.iter().flatten().map(rule).collect();
    rules.filter(|rules| !rules.is_empty())
}

/// A rule in the form that `--allow` takes.
fn rule(rule: &Value) -> Option<String> {
    let known = ["tool", "path", "host", "program", "subcommand", "decision"];
    if !rule
        .as_object()?
        .keys()
        .all(|key| known.contains(&key.as_str()))
    {
        return None;
    }
    let text = |name: &str| rule.get(name).and_then(Value::as_str).map(str::to_owned);
    let listed = rule
        .get("subcommand")
        .and_then(Value::as_array)
        .map(|listed| {
            let names: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
            format!(" {}", names.join(","))
        });
    let program = text("program").map(|program| format!("{program}{}", listed.unwrap_or_default()));
    let about = program.or_else(|| text("path")).or_else(|| text("host"));
    let tool = text("tool")?;
    Some(about.map_or_else(|| tool.clone(), |about| format!("{tool} {about}")))
}
