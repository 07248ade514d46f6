//! Keys for the composer: writing, sending, commands, earlier inputs.

use super::{TWICE_MS, withdraw};
use crate::line::Line;
use crate::screen::composer::MAX_INPUT;
use crate::screen::exchange::{ConnectionState, Intent, Key, Reply};
use crate::screen::key_table::{KeyPlace, action};
use crate::screen::layout::Written;
use crate::screen::panels::Layer;
use crate::screen::processes::Processes;
use crate::screen::state::{MAX_KEPT, Screen};
use crate::screen::writing::edit;
use crate::slash::{self, Slash, TypedText};
use crate::style::Tone;
use protocol::method::Cancel;
use protocol::status::DeliveryMode;

impl Screen {
    pub(super) fn composer_key(&mut self, key: Key, now_ms: u64) {
        let key = match (key, &self.vi) {
            (Key::Char('k'), Some(vi)) if vi.is_normal() => Key::Up,
            (Key::Char('j'), Some(vi)) if vi.is_normal() => Key::Down,
            (key, _) => key,
        };
        if !matches!(key, Key::Up | Key::Down | Key::Ctrl('r')) {
            self.recalled = None;
        }
        match (key, &mut self.vi) {
            (Key::Esc, Some(vi)) if !vi.is_normal() => return vi.normal(&mut self.composer),
            (Key::Char(c), Some(vi)) if vi.is_normal() => return vi.key(c, &mut self.composer),
            (key, _) => self.plain_key(key, now_ms),
        }
        if let Some(vi) = self.vi.as_mut().filter(|vi| vi.is_normal()) {
            // The next input begins as the first one.
            if key == Key::Enter && self.composer.is_empty() {
                vi.insert()
            } else {
                vi.settle(&mut self.composer)
            }
        }
    }

    fn plain_key(&mut self, key: Key, now_ms: u64) {
        if let Some(action) = action(KeyPlace::Composer, key) {
            return self.act(action, now_ms);
        }
        match key {
            Key::Ctrl('d') => self.composer.delete(),
            Key::Home | Key::End if self.composer.is_empty() => {
                let first = self.fold.cells.front().map(|cell| (cell.id, 0));
                self.place = if key == Key::Home { first } else { None };
            }
            Key::Char(c) => self.write(c),
            key => edit(&mut self.composer, key),
        }
    }

    pub(super) fn write(&mut self, c: char) {
        if !self.composer.type_char(c) {
            self.too_long();
        }
    }

    fn too_long(&mut self) {
        self.tell("an input has at most 1.4 MiB", Tone::Failed);
    }

    pub(super) fn enter(&mut self) {
        let text = self.composer.text();
        // What was pasted as one piece is not read as a command: nobody saw how it begins.
        let is_pasted =
            text.starts_with(slash::RUN) && !self.composer.marked().starts_with(slash::RUN);
        let text = if is_pasted {
            slash::typed(&text, false)
        } else {
            text
        };
        match slash::read(&text, &self.foreign) {
            TypedText::Nothing => self.start_again(),
            TypedText::Wrong(why) => self.tell(&why, Tone::Failed),
            // With a space in front it is no command of the pod either.
            TypedText::Input(plain) if plain.starts_with('/') && !text.starts_with('/') => {
                self.send(format!(" {plain}"), DeliveryMode::Queue)
            }
            TypedText::Input(text) => self.send(text, DeliveryMode::Queue),
            TypedText::Run(text) => self.send(text, DeliveryMode::Run),
            TypedText::Slash(Slash::Steer(text)) => self.send(text, DeliveryMode::Steer),
            TypedText::Slash(slash) if self.is_too_early(&slash) => self.not_connected(),
            TypedText::Slash(slash) => {
                self.composer.take();
                self.slash(slash);
            }
        }
    }

    /// Sends an input; a pod that does not run is started for it.
    fn send(&mut self, text: String, mode: DeliveryMode) {
        let edited = self.editing.and_then(|input| {
            self.model
                .status()
                .queued
                .iter()
                .find(|one| one.input == input)
        });
        if edited.is_some_and(|waiting| waiting.run != (mode == DeliveryMode::Run)) {
            let why = "an edit makes no command an input, and no input a command: Esc, then write it anew";
            return self.tell(why, Tone::Failed);
        }
        if serde_json::to_string(&text).map_or(usize::MAX, |json| json.len()) > MAX_INPUT {
            return self.too_long();
        }
        self.start_again();
        if self.connection != ConnectionState::Live && !self.starts {
            return self.not_connected();
        }
        self.composer.take();
        self.place = None;
        let intent = match self.editing.take() {
            Some(input) => Intent::EditInput { input, text },
            None => Intent::Send { text, mode },
        };
        self.ask(intent);
    }

    /// Asks the pod, once it runs again if it is being started.
    fn ask(&mut self, intent: Intent) {
        if self.connection == ConnectionState::Live {
            self.outbox.push(intent);
        } else if self.kept.len() < MAX_KEPT {
            self.kept.push(intent);
            self.tell("this is sent once the pod runs again", Tone::Dim);
        } else {
            self.answered(match intent {
                Intent::Send { text, .. } => Reply::SendFailed {
                    text,
                    why: "too many requests wait for the pod".to_owned(),
                },
                _ => Reply::Failed("too many requests wait for the pod".to_owned()),
            });
        }
    }

    /// Starts a pod that does not run.
    fn start_again(&mut self) {
        let is_gone = matches!(
            self.connection,
            ConnectionState::Ended(_) | ConnectionState::Died(_)
        );
        if is_gone && !self.starts {
            let pod = self.model.status().pod.clone();
            self.tell(&format!("starting {pod} …"), Tone::Dim);
            self.outbox.push(Intent::StartPod(pod));
            self.starts = true;
        }
    }

    /// It needs the pod, which is not there.
    fn is_too_early(&self, slash: &Slash) -> bool {
        let waits = match slash {
            Slash::Undo { .. } | Slash::Model(_) | Slash::Effort(_) | Slash::New => false,
            Slash::Verb(_) => self.starts,
            _ => true,
        };
        self.connection != ConnectionState::Live && !waits
    }

    /// Whether an input that waits is a shell command.
    pub(super) fn is_command(&self, input: u64) -> bool {
        self.model
            .status()
            .queued
            .iter()
            .any(|waiting| waiting.input == input && waiting.run)
    }

    fn slash(&mut self, slash: Slash) {
        match slash {
            Slash::Steer(text) => self.send(text, DeliveryMode::Steer),
            Slash::Agents => self.ask_told("agents", Intent::ListAgents),
            Slash::Approvals => self.answer_question(),
            Slash::Pods => self.open_pods(),
            Slash::Help => self.open_panel(Layer::Keys),
            Slash::Context | Slash::Pins => self.open_panel(Layer::Context),
            Slash::Features => self.open_features(),
            Slash::Status => self.open_panel(Layer::Status(Processes::default())),
            Slash::Search(text) => self.search_begin(&text),
            Slash::Detach => self.outbox.push(Intent::Detach),
            Slash::Editor => self.outbox.push(Intent::OpenEditor(String::new())),
            Slash::Log => self.outbox.push(Intent::OpenConversation),
            Slash::Print => self.outbox.push(Intent::PrintConversation),
            Slash::Copy => match self.newest_answer() {
                Some(text) => self.outbox.push(Intent::Copy(text)),
                None => self.tell("there is no answer yet", Tone::Dim),
            },
            Slash::Diff { turn } => {
                let since = self.fold.changed_from.filter(|_| turn).unwrap_or(0);
                self.ask_told("diff", Intent::ShowDiff { since });
            }
            Slash::Undo { all } => self.undo(all),
            Slash::Model(_) | Slash::Effort(_) => {
                if self.may_restart() {
                    match Intent::restart(&slash) {
                        Some(restart) => self.restart(restart),
                        None => self.ask_told("model", Intent::ListModels),
                    }
                }
            }
            Slash::New => {
                let status = self.model.status();
                let dir = status.host.cwd.clone();
                let model = status.model.clone();
                self.tell("starting a new pod here …", Tone::Dim);
                self.outbox.push(Intent::NewPod { dir, model });
            }
            Slash::Verb(verb) => self.ask(Intent::Do(verb)),
        }
    }

    /// Ends what is being done, the turn at last; twice takes the last input back.
    pub(super) fn escape(&mut self, now_ms: u64) {
        let is_again = now_ms.saturating_sub(self.esc_ms) < TWICE_MS;
        self.esc_ms = now_ms;
        if self.editing.take().is_some() {
            self.composer.take();
        } else if is_again && self.composer.is_empty() {
            self.take_back();
        } else if self.model.status().turn.is_some() && self.connection == ConnectionState::Live {
            self.outbox.push(Intent::verb(Cancel::default()));
            self.tell("cancelling; Esc again takes the last input back", Tone::Dim);
        } else {
            self.place = None;
        }
    }

    /// The input that waits last is withdrawn; without one the newest input is written again.
    fn take_back(&mut self) {
        let last = self
            .model
            .status()
            .queued
            .last()
            .map(|waiting| waiting.input);
        let text = match last {
            Some(input) => self
                .whole(input)
                .map(|text| slash::typed(&text, self.is_command(input))),
            None => self.fold.history.back().cloned(),
        };
        if let Some(text) = text {
            self.composer.set(&text);
            self.outbox.extend(last.map(withdraw));
        }
    }

    /// The row above or below, and beyond the text an earlier or a later input.
    pub(super) fn vertical(&mut self, by: isize) {
        if self.recalled.is_none() {
            let written = Written::new(
                &self.composer,
                &Line::of("› ", Tone::Strong),
                self.composer_width,
            );
            if let Some(caret) = written.vertical(by) {
                return self.composer.move_to(caret);
            }
        }
        let (back, stash) = self
            .recalled
            .clone()
            .unwrap_or_else(|| (0, self.composer.text()));
        let Some(back) = back.checked_add_signed(-by) else {
            return;
        };
        let history = &self.fold.history;
        let text = if back == 0 {
            Some(&stash)
        } else {
            history
                .len()
                .checked_sub(back)
                .and_then(|at| history.get(at))
        };
        if let Some(text) = text.cloned() {
            self.composer.set(&text);
            self.recalled = Some((back, stash));
        }
    }

    /// The newest earlier input that has what was written, then the one before it.
    pub(super) fn recall_like(&mut self) {
        let (back, stash) = self
            .recalled
            .clone()
            .unwrap_or_else(|| (0, self.composer.text()));
        let query = stash.to_lowercase();
        let history = self.fold.history.iter().rev().enumerate().skip(back);
        let found = history
            .into_iter()
            .find(|(_, text)| text.to_lowercase().contains(&query));
        match found.map(|(at, text)| (at, text.clone())) {
            Some((at, text)) => {
                self.composer.set(&text);
                self.recalled = Some((at + 1, stash));
            }
            None => self.tell("no earlier input has this", Tone::Dim),
        }
    }
}
