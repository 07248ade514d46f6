//! What keys do.

mod composing;

use super::approvals::{KeyResult, TakesAnswer};
use super::composer::vi::ViKeys;
use super::exchange::{ConnectionState, Intent, Key, PodEntry};
use super::feature_panel::FeaturePanel;
use super::key_table::{KeyAction, KeyPlace, action};
use super::panels::{Layer, Panel};
use super::pods::PodList;
use super::processes::Processes;
use super::state::{READ_ONLY, Screen, Selected};
use super::told::ToldPanel;
use super::writing::edit;
use crate::slash;
use crate::style::Tone;
use protocol::method::{MoveInput, Role, Withdraw};
use std::mem::discriminant;

/// A second Esc, and a second Ctrl-C, within this time mean more.
const TWICE_MS: u64 = 1500;

/// Lines of one turn of the wheel.
const WHEEL: isize = 3;

impl Screen {
    /// A key was pressed. Gives what the driver has to do.
    pub fn key(&mut self, key: Key, now_ms: u64) -> Vec<Intent> {
        if !self.scroll_key(key, now_ms) {
            self.other_key(key, now_ms);
        }
        let only_looks = matches!(
            key,
            Key::PageUp
                | Key::PageDown
                | Key::WheelUp
                | Key::WheelDown
                | Key::Up
                | Key::Down
                | Key::F(_)
        );
        if !only_looks {
            self.asking.typed(now_ms);
            self.full.typed(now_ms);
        }
        if self.role == Role::Driver {
            self.follow_path();
            self.send_draft();
        }
        self.intents()
    }

    fn other_key(&mut self, key: Key, now_ms: u64) {
        if let Some(action) = action(KeyPlace::Screen, key) {
            return self.act(action, now_ms);
        }
        match key {
            _ if self.search.is_some() => self.search_key(key),
            _ if self.pods_key(key) => {}
            _ if self.question_key(key, now_ms) => {}
            _ if self.panel.is_some() && self.panel_key(key) => {}
            Key::Esc if self.panel.is_some() => self.panel = None,
            key => self.key_behind(key, now_ms),
        }
    }

    /// A key that nothing has that is open.
    fn key_behind(&mut self, key: Key, now_ms: u64) {
        match action(KeyPlace::Behind, key) {
            Some(KeyAction::DetachIfEmpty) if !self.composer.is_empty() => {}
            Some(action) => return self.act(action, now_ms),
            None => {}
        }
        if self.selected.is_some() && self.selection_key(key, now_ms) {
            return;
        }
        if self.role == Role::Driver {
            self.selected = None;
            self.composer_key(key, now_ms);
        } else if key == Key::Esc {
            self.place = None;
        }
    }

    fn act(&mut self, action: KeyAction, now_ms: u64) {
        match action {
            KeyAction::Detach | KeyAction::DetachIfEmpty => self.outbox.push(Intent::Detach),
            KeyAction::Leave => self.leave(now_ms),
            KeyAction::Keys => self.open_panel(Layer::Keys),
            KeyAction::Features => self.open_features(),
            KeyAction::Status => self.open_status(now_ms),
            KeyAction::Question => self.answer_question(),
            KeyAction::Context => self.open_panel(Layer::Context),
            KeyAction::Search => self.search_begin(""),
            KeyAction::ToggleAll => self.toggle_all(),
            KeyAction::Mouse => self.outbox.push(Intent::TurnMouse),
            KeyAction::ReadOnly => self.turn_read_only(),
            KeyAction::SelectAbove => self.select_next(true),
            KeyAction::SelectBelow => self.select_next(false),
            KeyAction::Open
            | KeyAction::CopyCell
            | KeyAction::Edit
            | KeyAction::CopyQueued
            | KeyAction::Withdraw
            | KeyAction::MoveUp
            | KeyAction::MoveDown
            | KeyAction::SendNow => self.act_on_selected(action),
            KeyAction::OpenConversation => self.outbox.push(Intent::OpenConversation),
            KeyAction::PrintConversation => self.outbox.push(Intent::PrintConversation),
            KeyAction::Send if self.take_chosen() => {}
            KeyAction::Send => self.enter(),
            KeyAction::NewLine => self.write('\n'),
            KeyAction::Complete => self.complete(),
            KeyAction::End if self.unchoose() => {}
            KeyAction::End => self.escape(now_ms),
            KeyAction::Above if self.choose(false) => {}
            KeyAction::Above => self.vertical(-1),
            KeyAction::Below if self.choose(true) => {}
            KeyAction::Below => self.vertical(1),
            KeyAction::RecallLike => self.recall_like(),
            KeyAction::Editor => self.outbox.push(Intent::OpenEditor(self.composer.text())),
        }
    }

    /// Scrolls what is seen: an open panel, or the transcript.
    fn scroll_key(&mut self, key: Key, now_ms: u64) -> bool {
        let page = isize::try_from(self.view.1.saturating_sub(1).max(1)).unwrap_or(1);
        let by = match key {
            // The rest of a question comes before the transcript.
            Key::PageUp | Key::PageDown if self.takes_pages() => return false,
            Key::PageUp => -page,
            Key::PageDown => page,
            Key::WheelUp => -WHEEL,
            Key::WheelDown => WHEEL,
            Key::CtrlHome | Key::CtrlEnd if self.panel.is_none() => {
                let first = self.fold.cells.front().map(|cell| (cell.id, 0));
                self.place = if key == Key::CtrlHome { first } else { None };
                return true;
            }
            _ => return false,
        };
        if let Some(panel) = &mut self.panel {
            panel.scroll = panel.scroll.saturating_add_signed(by);
        } else if self.printed.is_none() {
            self.scroll(by, now_ms);
        }
        true
    }

    fn leave(&mut self, now_ms: u64) {
        let is_again = now_ms.saturating_sub(self.leave_ms) < TWICE_MS && self.composer.is_empty();
        if is_again {
            self.outbox.push(Intent::Detach);
            return;
        }
        if !self.composer.is_empty() {
            self.composer.take();
            self.editing = None;
        }
        self.leave_ms = now_ms;
        self.tell("Ctrl-C again detaches; the pod keeps running", Tone::Dim);
    }

    /// Opens a panel, or closes it where it is open.
    fn open_panel(&mut self, layer: Layer) {
        let open = self.panel.take();
        let is_other = open.is_none_or(|open| discriminant(&open.layer) != discriminant(&layer));
        self.panel = is_other.then_some(Panel { layer, scroll: 0 });
    }

    fn open_status(&mut self, now_ms: u64) {
        self.open_panel(Layer::Status(Processes::default()));
        self.measure_jobs(now_ms);
    }

    /// Opens a panel for what is asked for.
    fn ask_told(&mut self, title: &'static str, ask: Intent) {
        self.panel = None;
        self.open_panel(Layer::Told(title, ToldPanel::default()));
        self.outbox.push(ask);
    }

    /// What `/undo` would undo: the newest turn that changed a file, or everything.
    fn undo(&mut self, all: bool) {
        let to = if all { Some(0) } else { self.fold.changed_from };
        match to {
            Some(to) => self.ask_told("undo", Intent::PreviewUndo { to }),
            None => self.tell(slash::NOTHING_CHANGED, Tone::Dim),
        }
    }

    /// Whether the pod can start again with other options now: between two turns.
    fn may_restart(&mut self) -> bool {
        if self.connection != ConnectionState::Live {
            self.not_connected();
            return false;
        }
        let refused = slash::restart_refused(self.model.status());
        if let Some(why) = refused {
            self.tell(why, Tone::Failed);
        }
        refused.is_none()
    }

    fn restart(&mut self, restart: Intent) {
        self.tell("the pod starts again …", Tone::Dim);
        self.outbox.push(restart);
    }

    /// To the sandbox in which nothing writes, or back to the one before.
    fn turn_read_only(&mut self) {
        if !self.may_restart() {
            return;
        }
        let status = self.model.status();
        let sandbox = status.host.sandbox.clone();
        let pod = status.pod.clone();
        let (to, said) = if sandbox == READ_ONLY {
            let Some(before) = self.writes_in.clone() else {
                let how = format!(
                    "no other sandbox is known of this pod: `yoi stop {pod}`, then `yoi start {pod} --sandbox MODE`"
                );
                return self.tell(&how, Tone::Failed);
            };
            let said = format!("the sandbox is {before} again");
            (before, said)
        } else {
            self.writes_in = Some(sandbox);
            let said = "read-only: the pod changes no file; Shift-Tab ends that".to_owned();
            (READ_ONLY.to_owned(), said)
        };
        self.restart(Intent::Restart {
            options: vec!["--sandbox".to_owned(), to],
            said,
        });
    }

    /// Asks for the memory of the jobs where they are shown, unless that was done just now.
    pub(super) fn measure_jobs(&mut self, now_ms: u64) {
        if let Some(Layer::Status(processes)) = self.panel.as_mut().map(|panel| &mut panel.layer)
            && self.connection == ConnectionState::Live
            && processes.measures(self.model.status(), now_ms)
        {
            self.outbox.push(Intent::FetchStatus);
        }
    }

    /// A key for what is listed in a panel, unless it may belong to a text; `false` if it is for something else.
    fn panel_key(&mut self, key: Key) -> bool {
        if !self.composer.is_empty() || self.editing.is_some() {
            return false;
        }
        let may_stop = self.may_stop();
        let may_change = self.may_change_features();
        let taken = match self.panel.as_mut().map(|panel| &mut panel.layer) {
            Some(Layer::Status(processes)) if may_stop => processes.key(key, self.model.status()),
            Some(Layer::Features(panel)) if may_change => panel.key(key),
            Some(Layer::Told(_, told)) => {
                let taken = told.key(key);
                match taken.as_deref() {
                    // What was undone is shown in its place.
                    Some([Intent::Undo { .. }]) => *told = ToldPanel::default(),
                    Some([_, ..]) => self.panel = None,
                    _ => {}
                }
                taken
            }
            _ => None,
        };
        let is_taken = taken.is_some();
        self.outbox.extend(taken.into_iter().flatten());
        is_taken
    }

    /// Each time anew: a pod that was started again may have others.
    fn open_features(&mut self) {
        if !self.has_features {
            return self.tell("this pod does not tell its features", Tone::Dim);
        }
        self.open_panel(Layer::Features(FeaturePanel::default()));
        if self.panel.is_some() {
            self.outbox.push(Intent::FetchFeatures);
        }
    }

    /// To the question of this pod; from there, or without one, to those of all pods.
    fn answer_question(&mut self) {
        let is_shut = !matches!(&self.panel, Some(panel) if matches!(panel.layer, Layer::Pods(_)));
        if is_shut
            && self.question().is_some()
            && (!self.asking.focus || self.asking.words.is_some())
        {
            self.asking.focus = true;
        } else if is_shut && self.asks_of_context() && !self.full.focus {
            self.full.focus = true;
        } else {
            self.open_pods();
        }
    }

    /// The full context is asked about once no call waits.
    pub(super) fn asks_of_context(&self) -> bool {
        self.full.asks() && self.model.status().approvals.is_empty()
    }

    /// Has the person choose among the pods.
    pub fn list_pods(&mut self) {
        self.open_pods();
    }

    pub(super) fn open_pods(&mut self) {
        (self.asking.focus, self.full.focus) = (false, false);
        self.open_panel(Layer::Pods(PodList::default()));
        if self.panel.is_some() {
            self.outbox.push(Intent::ListPods);
        }
    }

    /// A key for the list of pods, which takes letters; `false` if it is for something else.
    fn pods_key(&mut self, key: Key) -> bool {
        let Some(Layer::Pods(pods)) = self.panel.as_mut().map(|panel| &mut panel.layer) else {
            return false;
        };
        if key != Key::Enter {
            pods.key(key);
            return key != Key::Esc;
        }
        let Some(chosen) = pods.chosen().cloned() else {
            return true;
        };
        self.panel = None;
        match chosen {
            PodEntry { name, .. } if name == self.model.status().pod => {}
            PodEntry {
                name,
                is_live: true,
                ..
            } => self.outbox.push(Intent::Switch(name)),
            PodEntry { name, .. } => {
                self.tell(&format!("starting {name} …"), Tone::Dim);
                self.outbox.push(Intent::StartPod(name));
            }
        }
        true
    }

    /// How the question can be answered now: a letter may be for it only if the letter belongs to no text.
    pub(super) fn takes_answer(&self) -> TakesAnswer {
        let free = self.composer.is_empty()
            && !self.vi.as_ref().is_some_and(ViKeys::is_normal)
            && self.editing.is_none()
            && self.selected.is_none()
            && self.panel.is_none()
            && self.search.is_none();
        match free {
            // As it was shown to who could answer.
            _ if self.connection == ConnectionState::Recorded => TakesAnswer::Letter,
            _ if self.role == Role::Viewer || self.connection != ConnectionState::Live => {
                TakesAnswer::NotHere
            }
            true => TakesAnswer::Letter,
            false => TakesAnswer::BehindF4 {
                is_writing: !self.composer.is_empty(),
            },
        }
    }

    fn takes_pages(&self) -> bool {
        let reads = self.takes_answer() == TakesAnswer::Letter || self.asking.focus;
        reads && self.question().is_some() && self.asking.takes_pages()
    }

    fn question_key(&mut self, key: Key, now_ms: u64) -> bool {
        let takes = self.takes_answer();
        let Some((asked, _)) = self.question() else {
            let is_asked = self.asks_of_context() && takes != TakesAnswer::NotHere;
            return is_asked && self.take(|screen, free| screen.full.key(key, free, now_ms));
        };
        if takes == TakesAnswer::NotHere {
            // Words that are being written stay in their place.
            let waits = self.asking.words.is_some();
            if waits {
                self.tell("not connected: the words wait", Tone::Failed);
            }
            return waits;
        }
        self.take(|screen, free| screen.asking.key(&asked, key, free, now_ms))
    }

    /// Does what a question did with a key; `true` if it was for the question.
    fn take(&mut self, key: impl FnOnce(&mut Self, bool) -> KeyResult) -> bool {
        let free = self.takes_answer() == TakesAnswer::Letter;
        match key(self, free) {
            KeyResult::Ignored => false,
            KeyResult::Taken(intents) => {
                self.outbox.extend(intents);
                true
            }
            KeyResult::Told(text) => {
                self.tell(&text, Tone::Waiting);
                true
            }
        }
    }

    fn search_key(&mut self, key: Key) {
        match key {
            Key::Esc => self.search = None,
            Key::Enter | Key::Up => self.search_next(true),
            Key::Down => self.search_next(false),
            key => {
                let Some(search) = self.search.as_mut() else {
                    return;
                };
                if let Key::Char(c) = key {
                    search.query.type_char(c);
                } else {
                    edit(&mut search.query, key);
                }
                (search.at, search.told) = (None, "");
            }
        }
    }

    /// Selects what stands above or below: parts of the transcript, then the inputs that wait.
    fn select_next(&mut self, up: bool) {
        // What was printed belongs to the terminal.
        let cells = self
            .fold
            .cells
            .iter()
            .filter(|_| self.printed.is_none())
            .map(|cell| Selected::Cell(cell.id));
        let queued = self
            .model
            .status()
            .queued
            .iter()
            .map(|queued| Selected::Queued(queued.input));
        let all: Vec<Selected> = cells.chain(queued).collect();
        let at = self
            .selected
            .and_then(|selected| all.iter().position(|one| *one == selected));
        let next = match (at, up) {
            (None, true) => all.len().checked_sub(1),
            (None, false) => None,
            (Some(at), true) => Some(at.saturating_sub(1)),
            (Some(at), false) => Some(at + 1),
        };
        match next.and_then(|next| all.get(next)) {
            Some(selected) => self.select(*selected),
            None => self.selected = None,
        }
        if self.selected.is_none() {
            self.place = None;
        }
    }

    /// A key for what is selected; `false` if it is for the composer.
    fn selection_key(&mut self, key: Key, now_ms: u64) -> bool {
        if key == Key::Esc {
            self.selected = None;
            return true;
        }
        let place = match self.selected {
            Some(Selected::Cell(_)) => KeyPlace::Cell,
            Some(Selected::Queued(input)) => {
                if self.role != Role::Driver || self.connection != ConnectionState::Live {
                    return false;
                }
                let queued = &self.model.status().queued;
                if !queued.iter().any(|waiting| waiting.input == input) {
                    self.selected = None;
                    return false;
                }
                KeyPlace::Queued
            }
            None => return false,
        };
        let found = action(place, key);
        found
            .into_iter()
            .for_each(|action| self.act(action, now_ms));
        found.is_some()
    }

    fn act_on_selected(&mut self, action: KeyAction) {
        let intent = match self.selected {
            Some(Selected::Cell(id)) => match action {
                KeyAction::Open => {
                    match self.fold.target(id) {
                        Some(target) => self.select(Selected::Cell(target)),
                        None => self.toggle(id),
                    }
                    None
                }
                KeyAction::CopyCell => {
                    let cell = self.fold.cells.iter().find(|cell| cell.id == id);
                    cell.map(|cell| Intent::Copy(cell.text()))
                }
                _ => None,
            },
            Some(Selected::Queued(input)) => self.act_on_queued(action, input),
            None => None,
        };
        self.outbox.extend(intent);
    }

    fn act_on_queued(&mut self, action: KeyAction, input: u64) -> Option<Intent> {
        let queued = &self.model.status().queued;
        let at = queued.iter().position(|waiting| waiting.input == input)?;
        let id = |at: usize| queued.get(at).map(|waiting| waiting.input);
        match action {
            KeyAction::CopyQueued => self.whole(input).map(Intent::Copy),
            KeyAction::Withdraw => Some(withdraw(input)),
            KeyAction::MoveUp => {
                let before = at.checked_sub(1).and_then(id)?;
                Some(moved(input, Some(before)))
            }
            KeyAction::MoveDown => id(at + 1).map(|_| moved(input, id(at + 2))),
            KeyAction::SendNow if self.is_command(input) => {
                let why = "a command has a turn of its own: no running turn takes it";
                self.tell(why, Tone::Failed);
                None
            }
            KeyAction::SendNow => self.whole(input).map(|text| Intent::SendNow {
                input,
                text,
                typed: self.fold.expanded.get(&input).cloned(),
            }),
            KeyAction::Edit => {
                let text = self.whole(input)?;
                if !self.composer.is_empty() {
                    self.fold.remember(&self.composer.text());
                    self.tell("what you wrote is among the earlier inputs (Up)", Tone::Dim);
                }
                self.composer
                    .set(&slash::typed(&text, self.is_command(input)));
                (self.editing, self.selected) = (Some(input), None);
                None
            }
            _ => None,
        }
    }

    /// The whole text of an input that waits.
    fn whole(&mut self, input: u64) -> Option<String> {
        let text = self.fold.waiting.get(&input).cloned();
        let shown = self
            .model
            .status()
            .queued
            .iter()
            .find(|waiting| waiting.input == input);
        let is_whole = |text: &String| text.chars().count() < protocol::MAX_SHOWN;
        let text = text.or_else(|| shown.map(|waiting| waiting.text.clone()).filter(is_whole));
        if text.is_none() {
            self.tell("the whole text of this input is not loaded", Tone::Failed);
        }
        text
    }
}

fn withdraw(input: u64) -> Intent {
    let cmd_id = String::new();
    Intent::verb(Withdraw { input, cmd_id })
}

fn moved(input: u64, before: Option<u64>) -> Intent {
    Intent::verb(MoveInput {
        input,
        before,
        ..MoveInput::default()
    })
}
