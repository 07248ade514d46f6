//! Records to cells. A record that is folded again with others before it gives the same cells again.

use super::cell::{Cell, CellKind, LOCAL, Notice, ShownCall};
use super::status::dollars;
use crate::call::CallState;
use crate::count::count;
use crate::slash::typed;
use crate::style::Tone;
use crate::transcript::{
    Said, answered, answered_by, call_state, full_output, outcome, outcome_tone, said, turn_end,
    way_on,
};
use protocol::record::{
    ApprovalRequested, ApprovalResolved, InputQueued, Item, RecordBody, RecordView, ToolFinished,
    TurnFinished, Who,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

/// Cells that are kept, and about how many bytes they have: the newest.
pub(super) const MAX_CELLS: usize = 4000;
pub(super) const MAX_BYTES: usize = 8 << 20;

/// Inputs that can be called back, and texts of inputs that wait; a pod accepts fewer.
const MAX_INPUTS: usize = 128;

/// Bytes of each of the two.
const MAX_INPUT_BYTES: usize = 8 << 20;

/// Changed files that are counted.
const MAX_CHANGED: usize = 1000;

/// Facts of one call.
const MAX_FACTS: usize = 32;

/// The turn that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnClock {
    pub(super) turn: u64,
    /// Of its first record.
    pub(super) seq: u64,
    pub(super) since_us: u64,
}

/// What happened since a person did something, or looked.
#[derive(Clone, Debug, Default)]
struct SincePerson {
    /// All of it was seen.
    is_whole: bool,
    turns: u64,
    calls: u64,
    changed: BTreeSet<String>,
    refused: u64,
    in_doubt: u64,
    cost: u64,
    failed: Option<String>,
    /// The first record of each.
    first: AwayRecords,
}

/// The records that the lines about an absence lead to.
#[derive(Clone, Copy, Debug, Default)]
struct AwayRecords {
    turn: Option<u64>,
    change: Option<u64>,
    refusal: Option<u64>,
    doubt: Option<u64>,
    failure: Option<u64>,
}

/// The transcript, as far as its records were seen and kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    pub(super) cells: VecDeque<Cell>,
    /// How many were dropped from the front.
    pub(super) dropped: u64,
    bytes: usize,
    locals: u64,
    /// Inputs that wait, whole.
    pub(super) waiting: BTreeMap<u64, String>,
    /// What was typed for those that a command made.
    pub(super) expanded: BTreeMap<u64, String>,
    /// Those that are commands of a person, until their calls.
    commands: BTreeSet<u64>,
    /// Texts of inputs of people, oldest first.
    pub(super) history: VecDeque<String>,
    /// Questions without an answer, whole.
    pub(super) questions: BTreeMap<u64, Rc<ApprovalRequested>>,
    /// The newest question that got its answer, and the words for it.
    pub(super) answered: Option<(u64, String)>,
    pub(super) turn: Option<TurnClock>,
    /// When the request was sent that has no answer yet.
    pub(super) request_us: Option<u64>,
    /// The cursor for the page before the first cell; none if there is no such page.
    pub(super) before: Option<u64>,
    /// Older pages are not asked for any more: there is no room for them, or they were refused.
    pub(super) no_older: bool,
    model: String,
    since: SincePerson,
    /// The first record of the newest turn that changed a file.
    pub(super) changed_from: Option<u64>,
    /// The cell of the newest record of a withdrawal, and the text: "send now" sends it again at once.
    withdrawn: Option<(u64, String)>,
    /// The place of a cell that is gone, counted with those that were dropped, for a screen that prints cells.
    pub(super) gone: Option<u64>,
}

impl Fold {
    /// Folds the next record.
    pub(super) fn record<E>(&mut self, seq: u64, read: Result<&RecordView, E>) {
        self.before.get_or_insert(seq);
        self.since.is_whole |= seq == 1;
        match read {
            Ok(record) => self.fold(record),
            Err(_) => self.notice(
                seq,
                "! ",
                Tone::Refused,
                format!("record {seq} is not shown: it is not understood"),
            ),
        }
        while self.cells.len() > MAX_CELLS || (self.bytes > MAX_BYTES && self.cells.len() > 1) {
            self.dropped += 1;
            let dropped = self.cells.pop_front().map_or(0, |cell| cell.bytes());
            self.bytes = self.bytes.saturating_sub(dropped);
            self.before = self
                .cells
                .iter()
                .map(|cell| cell.id)
                .find(|id| *id < LOCAL)
                .or(self.before);
        }
    }

    /// Puts the cells of older records before these; returns whether there was room.
    pub(super) fn prepend(&mut self, older: Fold, first: u64) -> bool {
        if self.cells.len() + older.cells.len() > MAX_CELLS || self.bytes + older.bytes > MAX_BYTES
        {
            self.no_older = true;
            return false;
        }
        self.before = Some(first);
        for mut cell in older.cells.into_iter().rev() {
            self.join(&mut cell);
            self.bytes += cell.bytes();
            self.cells.push_front(cell);
        }
        self.join_inputs(&older.waiting);
        self.join_questions(older.questions);
        for text in older
            .history
            .into_iter()
            .rev()
            .take(MAX_INPUTS.saturating_sub(self.history.len()))
        {
            self.history.push_front(text);
        }
        true
    }

    /// Inputs whose texts are in older records.
    fn join_inputs(&mut self, texts: &BTreeMap<u64, String>) {
        for cell in &mut self.cells {
            if let CellKind::Input {
                input,
                text,
                is_known,
            } = &mut cell.kind
                && !*is_known
                && let Some(whole) = texts.get(input)
            {
                text.clone_from(whole);
                *is_known = true;
                cell.revision += 1;
                self.bytes += whole.len();
            }
        }
    }

    /// Questions that older records asked: their answers belong to their calls.
    fn join_questions(&mut self, older: BTreeMap<u64, Rc<ApprovalRequested>>) {
        for (id, asked) in older {
            let is_answer = |cell: &Cell| matches!(&cell.kind, CellKind::Notice(notice) if notice.approval == Some(id));
            if let Some(at) = self.cells.iter().position(is_answer) {
                let gone = self.cells.remove(at);
                self.bytes = self
                    .bytes
                    .saturating_sub(gone.as_ref().map_or(0, Cell::bytes));
                if let Some(CellKind::Notice(notice)) = gone.map(|cell| cell.kind) {
                    self.change(0, &asked.call, |facts| facts.facts.push(notice.text));
                }
            } else if let Some(CellKind::Call(facts)) =
                self.call(&asked.call).map(|cell| &cell.kind)
                && facts.state == CallState::Waiting
            {
                self.questions.insert(id, asked);
            }
        }
    }

    /// An older cell gets what later records said about its call.
    fn join(&mut self, cell: &mut Cell) {
        let CellKind::Call(older) = &mut cell.kind else {
            return;
        };
        let is_rest = |cell: &Cell| matches!(&cell.kind, CellKind::Call(rest) if rest.headless && rest.call == older.call);
        let Some(at) = self.cells.iter().position(is_rest) else {
            return;
        };
        if let Some(Cell {
            kind: CellKind::Call(rest),
            ..
        }) = self.cells.get(at)
        {
            let name = older.name.clone();
            let arguments = older.arguments.clone();
            let facts = older.facts.iter().chain(&rest.facts).cloned().collect();
            let started_us = older.started_us.or(rest.started_us);
            let headless = older.headless;
            let is_command = older.is_command;
            **older = ShownCall {
                name,
                arguments,
                facts,
                started_us,
                headless,
                is_command,
                ..(**rest).clone()
            };
        }
        let gone = self.cells.remove(at).map_or(0, |cell| cell.bytes());
        self.bytes = self.bytes.saturating_sub(gone);
    }

    /// Remembers a text among the inputs that can be called back.
    pub(super) fn remember(&mut self, text: &str) {
        self.history.push_back(text.to_owned());
        let mut bytes: usize = self.history.iter().map(String::len).sum();
        while self.history.len() > MAX_INPUTS || bytes > MAX_INPUT_BYTES {
            bytes -= self.history.pop_front().map_or(bytes, |text| text.len());
        }
    }

    /// Adds a cell that no record has.
    pub(super) fn local(&mut self, sign: &'static str, tone: Tone, text: String) {
        self.locals += 1;
        self.notice(LOCAL + self.locals, sign, tone, text);
    }

    /// Adds what happened while nobody was there, if something did: a line for each kind, which leads to its first record.
    /// `was_here`: a client of this person showed the pod before.
    pub(super) fn tell_away(&mut self, was_here: bool) {
        let SincePerson {
            is_whole,
            turns,
            calls,
            changed,
            refused,
            in_doubt,
            cost,
            failed,
            first,
        } = std::mem::take(&mut self.since);
        if turns == 0 && in_doubt == 0 {
            return;
        }
        let begin = if was_here {
            "While you were away"
        } else {
            "Before you came"
        };
        let least = if is_whole { "" } else { ", at least" };
        let mut facts = vec![count(turns, "turn"), count(calls, "call")];
        facts.extend((cost > 0).then(|| dollars(cost)));
        let mut lines = vec![
            (format!("{begin}{least}:"), None),
            (facts.join(" · "), first.turn),
        ];
        if !changed.is_empty() {
            let names: Vec<&str> = changed.iter().take(4).map(String::as_str).collect();
            let more = changed.len().saturating_sub(names.len());
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let files = count(changed.len() as u64, "file");
            lines.push((
                format!("changed {files}: {}{more}", names.join(", ")),
                first.change,
            ));
        }
        lines.extend(
            (refused > 0).then(|| (format!("{} refused", count(refused, "call")), first.refusal)),
        );
        let doubt = || {
            format!(
                "{} in doubt: interrupted, outcome unknown",
                count(in_doubt, "call")
            )
        };
        lines.extend((in_doubt > 0).then(|| (doubt(), first.doubt)));
        lines.extend(failed.map(|why| (format!("the newest turn: {why}"), first.failure)));
        for (text, about) in lines {
            self.local(
                "",
                if about.is_none() {
                    Tone::Heading
                } else {
                    Tone::Plain
                },
                text,
            );
            if let Some(Cell {
                kind: CellKind::Notice(notice),
                ..
            }) = self.cells.back_mut()
            {
                notice.about = about;
            }
        }
    }

    /// The cell of the record that this cell is about.
    pub(super) fn target(&self, id: u64) -> Option<u64> {
        let CellKind::Notice(Notice {
            about: Some(about), ..
        }) = &self.cells.iter().find(|cell| cell.id == id)?.kind
        else {
            return None;
        };
        let before = |cell: &&Cell| cell.id <= *about;
        self.cells
            .iter()
            .rev()
            .filter(|cell| cell.id < LOCAL)
            .find(before)
            .or(self.cells.front())
            .map(|cell| cell.id)
    }

    /// The cells that a call's records change, the newest first.
    fn call(&mut self, call: &str) -> Option<&mut Cell> {
        self.cells
            .iter_mut()
            .rev()
            .find(|cell| matches!(&cell.kind, CellKind::Call(facts) if facts.call == call))
    }

    /// Changes a call; one whose beginning was not seen gets a cell here.
    fn change(&mut self, seq: u64, call: &str, change: impl FnOnce(&mut ShownCall)) {
        if self.call(call).is_none() {
            let facts = ShownCall::headless(call.to_owned());
            self.push(seq, CellKind::Call(Box::new(facts)));
        }
        let mut before = 0;
        let mut after = 0;
        if let Some(cell) = self.call(call) {
            before = cell.bytes();
            cell.revision += 1;
            if let CellKind::Call(facts) = &mut cell.kind {
                change(facts);
                facts.facts.truncate(MAX_FACTS);
            }
            after = cell.bytes();
        }
        self.bytes = (self.bytes + after).saturating_sub(before);
    }

    fn push(&mut self, id: u64, kind: CellKind) {
        let cell = Cell {
            id,
            revision: 0,
            kind,
        };
        self.bytes += cell.bytes();
        self.cells.push_back(cell);
    }

    fn notice(&mut self, id: u64, sign: &'static str, tone: Tone, text: String) {
        self.push(
            id,
            CellKind::Notice(Notice {
                sign,
                tone,
                text,
                approval: None,
                about: None,
            }),
        );
    }

    fn person(&mut self, by: Option<&Who>) {
        if by.is_some() {
            self.seen();
        }
    }

    /// A person has seen what there is by now.
    pub(super) fn seen(&mut self) {
        self.since = SincePerson {
            is_whole: true,
            ..SincePerson::default()
        };
    }

    fn fold(&mut self, record: &RecordView) {
        let seq = record.seq;
        match &record.body {
            RecordBody::SurfaceSet(set) if set.surface.model == self.model => {}
            RecordBody::TurnStarted(started) => {
                self.since.first.turn.get_or_insert(seq);
                self.turn = Some(TurnClock {
                    turn: started.turn,
                    seq,
                    since_us: record.time_us,
                });
            }
            RecordBody::Request(_) => self.request_us = Some(record.time_us),
            RecordBody::Response(response) => {
                self.request_us = None;
                self.since.cost = self.since.cost.saturating_add(response.cost.unwrap_or(0));
            }
            RecordBody::ItemAdded(added) => {
                self.request_us = None;
                self.item(seq, &added.item);
            }
            RecordBody::VerdictGiven(verdict) => {
                if verdict.decision == "again" {
                    self.since.failed = Some("answer not accepted".to_owned());
                }
                self.say(seq, &record.body);
            }
            RecordBody::ApprovalRequested(asked) => self.asked(seq, asked),
            RecordBody::ApprovalResolved(answer) => self.answer(seq, answer),
            RecordBody::ToolStarted(started) => {
                self.since.calls += 1;
                let name = &started.name;
                let arguments = &started.arguments;
                self.change(seq, &started.call, |facts| {
                    facts.state = CallState::Running;
                    facts.started_us = Some(record.time_us);
                    facts.called(name, arguments);
                });
                self.say(seq, &record.body);
            }
            RecordBody::ToolFinished(done) => self.finished(seq, done),
            RecordBody::FileChanged(change) => {
                self.changed_from = self.turn.map(|turn| turn.seq);
                if self.since.changed.len() < MAX_CHANGED {
                    self.since.changed.insert(change.path.clone());
                }
                self.say(seq, &record.body);
                let cell = change
                    .call
                    .as_ref()
                    .and_then(|call| self.call(call))
                    .map_or(seq, |cell| cell.id);
                self.since.first.change.get_or_insert(cell);
            }
            RecordBody::TurnFinished(finished) => self.turn_finished(seq, record.time_us, finished),
            body => self.other(seq, body),
        }
    }

    fn other(&mut self, seq: u64, body: &RecordBody) {
        match body {
            RecordBody::InputQueued(queued) => {
                self.person(queued.by.as_ref());
                self.sent_now(queued);
                let text = queued
                    .command
                    .as_ref()
                    .map_or(&queued.text, |made| &made.typed);
                let typed = typed(text, queued.run.unwrap_or_default());
                if queued.again.is_none() && self.history.back() != Some(&typed) {
                    self.remember(&typed);
                }
                self.waiting.insert(queued.input, queued.text.clone());
                if let Some(made) = &queued.command {
                    self.expanded.insert(queued.input, made.typed.clone());
                }
                if queued.run == Some(true) {
                    self.commands.insert(queued.input);
                }
                let mut bytes: usize = self.waiting.values().map(String::len).sum();
                while self.commands.len() > MAX_INPUTS {
                    self.commands.pop_first();
                }
                while self.waiting.len() > MAX_INPUTS || bytes > MAX_INPUT_BYTES {
                    bytes -= self
                        .waiting
                        .pop_first()
                        .map_or(bytes, |(_, text)| text.len());
                }
                let Self {
                    waiting, expanded, ..
                } = self;
                expanded.retain(|input, _| waiting.contains_key(input));
            }
            RecordBody::InputEdited(edited) => {
                self.person(edited.by.as_ref());
                self.expanded.remove(&edited.input);
                self.waiting
                    .entry(edited.input)
                    .and_modify(|text| text.clone_from(&edited.text));
            }
            RecordBody::InputConsumed(taken) => {
                let text = self.waiting.remove(&taken.input);
                let is_known = text.is_some();
                let text = text.unwrap_or_else(|| format!("(input {})", taken.input));
                self.push(
                    seq,
                    CellKind::Input {
                        input: taken.input,
                        text,
                        is_known,
                    },
                );
            }
            RecordBody::InputWithdrawn(gone) => {
                self.person(gone.by.as_ref());
                if let Some(text) = self.waiting.remove(&gone.input) {
                    self.notice(seq, "> ", Tone::Dim, format!("(withdrawn) {text}"));
                    self.withdrawn = Some((seq, text));
                }
            }
            body => {
                if let RecordBody::SurfaceSet(set) = body {
                    self.model.clone_from(&set.surface.model);
                }
                if let RecordBody::Suspended(held) = body {
                    self.person(held.by.as_ref());
                }
                self.say(seq, body);
            }
        }
    }

    /// Whether the next call is that of the newest input, a command.
    fn is_command(&mut self) -> bool {
        match self.cells.back().map(|cell| &cell.kind) {
            Some(CellKind::Input { input, .. }) => self.commands.remove(input),
            Some(_) | None => false,
        }
    }

    /// An input that was taken out of the queue to be delivered with the next step was not withdrawn for its person.
    fn sent_now(&mut self, queued: &InputQueued) {
        let Some((id, text)) = self.withdrawn.take() else {
            return;
        };
        if queued.mode.as_deref() != Some("steer") || queued.text != text {
            return;
        }
        let Some(at) = self.cells.iter().rposition(|cell| cell.id == id) else {
            return;
        };
        self.gone = Some(self.dropped + at as u64);
        let gone = self.cells.remove(at).map_or(0, |cell| cell.bytes());
        self.bytes = self.bytes.saturating_sub(gone);
    }

    /// What a record says by itself: of a call it is one of the call's facts.
    fn say(&mut self, seq: u64, body: &RecordBody) {
        let Some(Said {
            sign,
            tone,
            call,
            mut text,
        }) = said(body)
        else {
            return;
        };
        match (call, body) {
            (Some(call), _) => self.change(seq, &call, |facts| facts.facts.push(text)),
            // Runs that went well are in the panel of tasks.
            (None, RecordBody::BackgroundTask(_)) if tone == Tone::Dim => {}
            (None, body) => {
                if let RecordBody::Suspended(held) = body {
                    text.push_str(way_on(held));
                }
                self.notice(seq, sign, tone, text);
            }
        }
    }

    fn turn_finished(&mut self, seq: u64, time_us: u64, finished: &TurnFinished) {
        let since = self.turn.take().filter(|turn| turn.turn == finished.turn);
        self.request_us = None;
        self.since.turns += 1;
        let ended = finished.before_verdict();
        let fails = !matches!(ended.outcome.as_str(), "done" | "answered");
        self.since.failed = fails.then(|| outcome(&ended));
        self.since.first.failure = Some(seq);
        // As exact as the time of a call, which would seem longer than its turn otherwise.
        let ms = since
            .map(|turn| time_us.saturating_sub(turn.since_us) / 1000)
            .filter(|ms| *ms >= 1000);
        let text = turn_end(finished, ms.map(Duration::from_millis));
        self.notice(seq, "── ", outcome_tone(finished), text);
    }

    fn item(&mut self, seq: u64, item: &Item) {
        let text = || item.text.clone().filter(|text| !text.trim().is_empty());
        match item.r#type.as_str() {
            "assistant" => text()
                .into_iter()
                .for_each(|text| self.push(seq, CellKind::Answer(text))),
            "reasoning" => text()
                .into_iter()
                .for_each(|text| self.push(seq, CellKind::Reasoning(text))),
            "tool_call" => {
                let id = item.id.clone().unwrap_or_default();
                let name = item.name.clone().unwrap_or_default();
                let mut facts =
                    ShownCall::new(id, name, item.arguments.clone().unwrap_or_default());
                facts.is_command = self.is_command();
                self.push(seq, CellKind::Call(Box::new(facts)));
            }
            _ => {}
        }
    }

    fn asked(&mut self, seq: u64, asked: &ApprovalRequested) {
        self.questions
            .insert(asked.approval, Rc::new(asked.clone()));
        if self.questions.len() > MAX_INPUTS {
            self.questions.pop_first();
        }
        self.change(seq, &asked.call, |facts| {
            facts.ask(&asked.tool, &asked.arguments)
        });
    }

    fn answer(&mut self, seq: u64, answer: &ApprovalResolved) {
        self.person(answer.by.as_ref());
        let text = answered(answer);
        let call = self
            .questions
            .remove(&answer.approval)
            .map(|asked| asked.call.clone());
        self.answered = Some((answer.approval, text.clone()));
        match call {
            Some(call) => self.change(seq, &call, |facts| {
                facts.summary.clone_from(&text);
                facts
                    .facts
                    .push(format!("approval {}: {text}", answer.approval));
            }),
            None => {
                let text = format!("approval {}: {text}", answer.approval);
                let approval = Some(answer.approval);
                self.push(
                    seq,
                    CellKind::Notice(Notice {
                        sign: "? ",
                        tone: Tone::Waiting,
                        text,
                        approval,
                        about: None,
                    }),
                );
            }
        }
    }

    fn finished(&mut self, seq: u64, done: &ToolFinished) {
        let state = call_state(&done.outcome.status);
        self.since.refused += u64::from(state == CallState::Refused);
        self.since.in_doubt += u64::from(done.outcome.status == "interrupted");
        let cell = self.call(&done.call).map_or(seq, |cell| cell.id);
        let first = &mut self.since.first;
        match done.outcome.status.as_str() {
            "refused" => drop(first.refusal.get_or_insert(cell)),
            "interrupted" => drop(first.doubt.get_or_insert(cell)),
            _ => {}
        }
        self.questions.retain(|_, asked| asked.call != done.call);
        let facts_of_end = answered_by(done).into_iter().chain(
            done.output
                .as_ref()
                .map(|output| full_output(&output.handle, output.stored.total())),
        );
        self.change(seq, &done.call, |facts| {
            facts.finish(done);
            facts.facts.extend(facts_of_end);
        });
    }
}
