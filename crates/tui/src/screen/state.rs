//! The state of a screen: what the pod tells, folded, and what its person does.

use super::approvals::Asking;
use super::cache::CellCache;
use super::cell::CellKind;
use super::composer::Composer;
use super::composer::vi::ViKeys;
use super::exchange::{ConnectionState, Intent, Reply};
use super::files::FilePaths;
use super::fold::Fold;
use super::full_context::FullContext;
use super::live::LiveLines;
use super::menu::Menu;
use super::panels::Panel;
use super::search::Search;
use super::status::RetryClock;
use crate::asked_command::asked_file;
use crate::slash::ForeignCommand;
use crate::style::{Theme, Tone};
use crate::transcript::{self, outcome};
use client::model::{PodModel, digest};
use protocol::event::{AlertLevel, Event};
use protocol::method::{Attached, CallTool, GetFeatures, RecordPage, Role, StopJob, StopRun};
use protocol::record::{ApprovalRequested, RecordBody, RecordLine, RecordView};
use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Cells that the digest looks at: the newest.
const DIGESTED: usize = 16;

/// Drafts that were sent and have not come back.
const MAX_DRAFTS: usize = 64;

/// Cells that are remembered as opened or closed.
const MAX_TOGGLED: usize = 1024;

/// What one person sees of a pod, and what they are writing. Times are milliseconds since 1970 by the wall clock.
pub struct Screen {
    pub(super) model: PodModel,
    pub(super) fold: Fold,
    pub(super) theme: Theme,
    pub(super) role: Role,
    pub(super) connection: ConnectionState,
    pub(super) outbox: Vec<Intent>,
    pub(super) cache: CellCache,
    pub(super) live: LiveLines,
    /// The first line that is seen, by its cell; none: the end is seen, and stays seen.
    pub(super) place: Option<(u64, usize)>,
    /// How many cells were printed, of a screen that prints them.
    pub(super) printed: Option<u64>,
    /// Width and rows of the transcript, and the cells that were seen, in the newest frame.
    pub(super) view: (usize, usize),
    pub(super) seen: Vec<u64>,
    /// Cells that are not as `all_open` says.
    pub(super) toggled: BTreeSet<u64>,
    pub(super) all_open: bool,
    pub(super) selected: Option<Selected>,
    pub(super) composer: Composer,
    /// None: letters always write.
    pub(super) vi: Option<ViKeys>,
    /// Columns for the composer in the newest frame.
    pub(super) composer_width: usize,
    /// The waiting input that is being edited.
    pub(super) editing: Option<u64>,
    /// How far back in the earlier inputs, and what was written before.
    pub(super) recalled: Option<(usize, String)>,
    pub(super) asking: Asking,
    pub(super) full: FullContext,
    pub(super) panel: Option<Panel>,
    /// The pod has the method `features`.
    pub(super) has_features: bool,
    /// The pod has the methods that stop jobs and runs.
    has_stop: bool,
    pub(super) files: FilePaths,
    pub(super) menu: Menu,
    /// The pod is being started again from here.
    pub(super) starts: bool,
    /// What is asked for then.
    pub(super) kept: Vec<Intent>,
    /// The sandbox of the newest start that could write.
    pub(super) writes_in: Option<String>,
    /// Commands of others, in the order in which they are listed.
    pub(super) foreign: Vec<ForeignCommand>,
    pub(super) search: Option<Search>,
    pub(super) toast: Option<Toast>,
    pub(super) retry: RetryClock,
    drafts: VecDeque<String>,
    /// The draft of the pod, as far as this screen knows.
    draft: String,
    pub(super) loading: bool,
    /// What the model has to do yet.
    pub(super) tasks: Vec<String>,
    /// Other pods that wait for a person.
    pub(super) others: usize,
    has_tools: bool,
    /// A call that may change them runs.
    tasks_change: bool,
    fetched: Option<u64>,
    /// The question whose change was asked for, and how many files had changed then.
    previewed: Option<(u64, u64)>,
    file_changes: u64,
    pub(super) esc_ms: u64,
    pub(super) leave_ms: u64,
    notification: Option<String>,
}

/// The sandbox in which nothing writes.
pub(super) const READ_ONLY: &str = "read-only";

/// Requests that wait for a pod that is being started again.
pub(super) const MAX_KEPT: usize = 16;

/// The feature that keeps the model's list of tasks.
const TASKS: &str = "builtin:task";

/// What keys act on instead of the composer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    Cell(u64),
    Queued(u64),
}

/// A text that is shown for a while.
#[derive(Clone, Debug)]
pub(super) struct Toast {
    pub(super) text: String,
    pub(super) tone: Tone,
    /// When it was seen first.
    pub(super) since: Option<u64>,
}

impl Screen {
    /// The screen behind the first answer to `attach`, for a client with this role.
    #[must_use]
    pub fn begin(attached: &Attached, role: Role, theme: Theme) -> Self {
        Self::begin_after(attached, None, role, theme)
    }

    /// The same for a person who saw the records up to this one before.
    #[must_use]
    pub fn begin_after(attached: &Attached, seen: Option<u64>, role: Role, theme: Theme) -> Self {
        let mut screen = Self::new(PodModel::new(attached), role, theme, ConnectionState::Live);
        if let Some(page) = &attached.page {
            screen.fold.before = Some(page.first);
            if seen.is_some_and(|seen| seen.saturating_add(1) >= page.first) {
                screen.fold.seen();
            }
            for line in &page.records {
                screen.fold_line(line);
                if line.seq().is_ok_and(|seq| Some(seq) <= seen) {
                    screen.fold.seen();
                }
            }
        }
        screen.adopt(&attached.draft.text);
        // That was before this person looked.
        screen.fold.answered = None;
        screen.fold.tell_away(seen.is_some());
        screen.changed();
        screen
    }

    /// The screen of a pod without a record, into which a log can be folded as events.
    #[must_use]
    pub fn before_any_record(pod: &str, theme: Theme) -> Self {
        Self::new(
            PodModel::before_any_record(pod),
            Role::Viewer,
            theme,
            ConnectionState::Recorded,
        )
    }

    fn new(model: PodModel, role: Role, theme: Theme, connection: ConnectionState) -> Self {
        Self {
            model,
            fold: Fold::default(),
            theme,
            role,
            connection,
            outbox: Vec::new(),
            cache: CellCache::default(),
            live: LiveLines::default(),
            place: None,
            printed: None,
            view: (80, 20),
            seen: Vec::new(),
            toggled: BTreeSet::new(),
            all_open: false,
            selected: None,
            composer: Composer::default(),
            vi: None,
            composer_width: 80,
            editing: None,
            recalled: None,
            asking: Asking::default(),
            full: FullContext::default(),
            panel: None,
            has_features: false,
            has_stop: false,
            files: FilePaths::default(),
            menu: Menu::default(),
            starts: false,
            kept: Vec::new(),
            writes_in: None,
            foreign: Vec::new(),
            search: None,
            toast: None,
            retry: RetryClock::default(),
            drafts: VecDeque::new(),
            draft: String::new(),
            loading: false,
            tasks: Vec::new(),
            others: 0,
            has_tools: false,
            tasks_change: false,
            fetched: None,
            previewed: None,
            file_changes: 0,
            esc_ms: 0,
            leave_ms: 0,
            notification: None,
        }
    }

    /// The pod has these methods: what others would show is absent.
    pub fn offers(&mut self, methods: &[String]) {
        let has = |name: &str| methods.iter().any(|method| method == name);
        self.has_features = has(GetFeatures::NAME);
        self.has_stop = has(StopJob::NAME) && has(StopRun::NAME);
        self.has_tools = has(CallTool::NAME);
        self.ask_tasks();
    }

    /// These commands are listed behind the others, with their source, and are sent as inputs.
    pub fn foreign_commands(&mut self, commands: Vec<ForeignCommand>) {
        self.foreign = commands;
    }

    /// Once a list is asked for, it is as new as the newest record.
    fn ask_tasks(&mut self) {
        if self.has_tools && !self.outbox.contains(&Intent::ListTasks) {
            self.outbox.push(Intent::ListTasks);
        }
    }

    /// Whether the configuration of features can be changed from here.
    pub(super) fn may_change_features(&self) -> bool {
        self.role == Role::Driver && self.connection == ConnectionState::Live
    }

    /// Whether jobs and runs can be stopped from here.
    pub(super) fn may_stop(&self) -> bool {
        self.has_stop && self.role == Role::Driver && self.connection == ConnectionState::Live
    }

    /// The person writes with the keys of `vi`.
    pub fn use_vi_keys(&mut self) {
        self.vi = Some(ViKeys::default());
    }

    /// Goes on behind a later answer to `attach`, whose cursor was the newest record of this screen.
    pub fn resume(&mut self, attached: &Attached) {
        self.model.resume(attached);
        self.connection(ConnectionState::Live);
        self.fetched = None;
        self.previewed = None;
        self.full.failed();
        self.fold.no_older = false;
        self.drafts.clear();
        if self.composer.is_empty() {
            self.adopt(&attached.draft.text);
        } else {
            // What was written meanwhile is newer than what the pod has of it.
            self.draft.clone_from(&attached.draft.text);
            self.send_draft();
        }
        self.changed();
    }

    /// Folds an event.
    pub fn event(&mut self, event: &Event) {
        let before = self.model.seen();
        self.model.apply(event);
        match event {
            Event::Record(line) if line.seq().is_ok_and(|seq| seq > before) => {
                if let Some(record) = self.fold_line(line) {
                    match &record.body {
                        RecordBody::FileChanged(_) => self.file_changes += 1,
                        RecordBody::ToolStarted(call) => {
                            self.tasks_change |= call.feature == TASKS;
                        }
                        RecordBody::ToolFinished(_) if std::mem::take(&mut self.tasks_change) => {
                            self.ask_tasks();
                        }
                        _ => {}
                    }
                    self.notify(&record.body);
                }
            }
            Event::Alert(alert) => {
                let text = transcript::alert(alert.from.as_deref(), &alert.text);
                let tone = if alert.level == AlertLevel::Info {
                    Tone::Dim
                } else {
                    Tone::Refused
                };
                self.fold.local("! ", tone, text);
            }
            Event::Draft(draft) => self.foreign_draft(&draft.text),
            Event::Ended(ended) => {
                let why = ended
                    .failure
                    .as_ref()
                    .map(|failure| failure.message.clone());
                self.connection = ConnectionState::Ended(why);
            }
            _ => {}
        }
        self.changed();
    }

    /// The connection is in this state now.
    pub fn connection(&mut self, state: ConnectionState) {
        self.connection = state;
        if self.connection == ConnectionState::Live {
            self.starts = false;
            self.outbox.append(&mut self.kept);
        }
    }

    /// The process of the pod has ended and did not say so; `how` is what is known of its end.
    pub fn died(&mut self, how: &str, now_ms: u64) {
        let pod = &self.model.status().pod;
        let text = format!("{pod} crashed: {how}");
        self.fold.local("! ", Tone::Failed, text);
        self.connection(ConnectionState::Died(now_ms));
    }

    /// Takes what came of an intent.
    pub fn answered(&mut self, reply: Reply) {
        match reply {
            Reply::Failed(why) => {
                // It may be the start that failed: another one is possible, and what waits for it goes on waiting.
                self.starts &= self.connection == ConnectionState::Live;
                self.full.failed();
                self.tell(&why, Tone::Failed);
            }
            Reply::Note(text) => self.tell(&text, Tone::Dim),
            Reply::SendFailed { text, why } => {
                if self.composer.is_empty() {
                    self.composer.set(&text);
                } else {
                    self.fold.remember(&text);
                }
                self.tell(&why, Tone::Failed);
            }
            Reply::ApproveFailed { id, why } => {
                self.asking.failed(id);
                self.tell(&why, Tone::Failed);
            }
            Reply::Approvals(open) => {
                for asked in open.approvals {
                    self.fold
                        .questions
                        .entry(asked.approval)
                        .or_insert_with(|| Rc::new(asked));
                }
            }
            Reply::ApprovalsFailed(why) => {
                self.fetched = None;
                return self.tell(&why, Tone::Failed);
            }
            Reply::Tasks(tasks) => self.tasks = tasks,
            Reply::OthersWait(others) => self.others = others,
            // The connection to this one is being made again.
            Reply::Started(name) if name == self.model.status().pod => {
                self.tell(&format!("{name} runs again"), Tone::Dim);
            }
            Reply::Started(name) => self.outbox.push(Intent::Switch(name)),
            Reply::CallPreview { id, call } => self.asking.preview_call(id, call),
            Reply::RulePreview { id, text } => self.asking.preview(id, text),
            Reply::Page(page) => self.older(&page),
            Reply::PageFailed(why) => {
                self.fold.no_older = true;
                self.loading = false;
                self.tell(&why, Tone::Failed);
            }
            Reply::Edited(text) => self.composer.set(&text),
            Reply::Files(files) => self.files.know(files),
            Reply::FeatureChanged(text) => {
                self.tell(&text, Tone::Dim);
                self.outbox.push(Intent::FetchFeatures);
            }
            Reply::Shown(_)
            | Reply::Features(_)
            | Reply::FeaturePreview { .. }
            | Reply::Pods(_) => {
                if let Some(panel) = &mut self.panel {
                    panel.layer.answered(reply);
                }
            }
            Reply::Status(status) => self.model.apply(&Event::Status(status)),
        }
        self.changed();
    }

    /// Several keys arrived at once, as from a paste that the terminal does not mark: none of them answers a question.
    pub fn several_keys(&mut self) {
        self.no_question_was_seen();
    }

    /// The newest frame is not at the terminal yet: nobody has seen a question of it.
    pub fn not_shown(&mut self) {
        self.no_question_was_seen();
    }

    fn no_question_was_seen(&mut self) {
        self.asking.not_seen();
        self.full.not_seen();
        if let Some(panel) = &mut self.panel {
            panel.layer.not_seen();
        }
    }

    /// A text was pasted.
    pub fn paste(&mut self, text: &str) {
        let small = self
            .asking
            .words
            .as_mut()
            .or(self.search.as_mut().map(|search| &mut search.query));
        if small.is_none() && self.role != Role::Driver {
            return;
        }
        (self.selected, self.recalled) = (None, None);
        if !small.unwrap_or(&mut self.composer).paste(text) {
            self.tell("not pasted: an input has at most 1.4 MiB", Tone::Failed);
        }
        self.no_question_was_seen();
        self.send_draft();
    }

    /// What the driver has to do although no key was pressed: ask after `begin`, `resume`, `event`, `answered`, `paste` and
    /// `frame`.
    pub fn intents(&mut self) -> Vec<Intent> {
        let pod = &self.model.status().pod;
        self.starts |= self.outbox.iter().any(|intent| match intent {
            Intent::Restart { .. } => true,
            Intent::StartPod(name) => name == pod,
            _ => false,
        });
        std::mem::take(&mut self.outbox)
    }

    /// The newest record that the screen shows.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.model.seen()
    }

    /// The title of the terminal's tab.
    #[must_use]
    pub fn title(&self) -> String {
        let status = self.model.status();
        match status.approvals.len() + usize::from(self.full.asks()) {
            _ if matches!(
                self.connection,
                ConnectionState::Ended(_) | ConnectionState::Died(_)
            ) =>
            {
                format!("ended · {} · yoi", status.pod)
            }
            _ if matches!(self.connection, ConnectionState::Lost(_)) => {
                format!("not connected · {} · yoi", status.pod)
            }
            0 if status.turn.is_some() => format!("working · {} · yoi", status.pod),
            0 => format!("{} · yoi", status.pod),
            waiting => format!("{waiting} waiting · {} · yoi", status.pod),
        }
    }

    /// A text for a person who does not look; each is told once.
    pub fn notification(&mut self) -> Option<String> {
        self.notification.take()
    }

    /// The newest record and a hash of what records say up to it: equal on every screen of the pod at this record.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = DefaultHasher::new();
        digest(self.model.status()).hash(&mut hasher);
        let cells = self
            .fold
            .cells
            .iter()
            .rev()
            .filter(|cell| cell.is_recorded_whole());
        cells
            .take(DIGESTED)
            .for_each(|cell| (cell.id, &cell.kind).hash(&mut hasher));
        format!("{}:{:016x}", self.model.seen(), hasher.finish())
    }

    /// How many cells were made into lines so far, for tests of what a frame costs.
    #[must_use]
    pub fn cells_made(&self) -> u64 {
        self.cache.made
    }

    fn fold_line(&mut self, line: &RecordLine) -> Option<RecordView> {
        let seq = line.seq().ok()?;
        let read = line.read();
        if let Ok(RecordBody::HostStarted(host)) = read.as_ref().map(|record| &record.body)
            && host.sandbox != READ_ONLY
        {
            self.writes_in = Some(host.sandbox.clone());
        }
        self.fold.record(seq, read.as_ref());
        if let (Some(gone), Some(printed)) = (self.fold.gone.take(), &mut self.printed)
            && gone < *printed
        {
            *printed -= 1;
        }
        read.ok()
    }

    fn notify(&mut self, body: &RecordBody) {
        let pod = &self.model.status().pod;
        match body {
            RecordBody::ApprovalRequested(asked) => {
                self.notification = Some(format!("{pod} waits for you: {}", asked.tool));
            }
            RecordBody::TurnFinished(finished) if finished.outcome.outcome != "waiting" => {
                let text = outcome(&finished.before_verdict());
                let how = text.lines().next().unwrap_or_default();
                self.notification = Some(match finished.outcome.outcome.as_str() {
                    "context_limit" => format!("{pod} waits for you: {how}"),
                    _ => format!("{pod}: turn {}: {how}", finished.turn),
                });
            }
            _ => {}
        }
    }

    fn older(&mut self, page: &RecordPage) {
        self.loading = false;
        let last = page.records.last().and_then(|line| line.seq().ok());
        if last.is_some_and(|last| self.fold.before.is_some_and(|before| last >= before)) {
            // It came twice.
            return;
        }
        let mut older = Fold::default();
        for line in &page.records {
            if let Ok(seq) = line.seq() {
                older.record(seq, line.read().as_ref());
            }
        }
        if !self.fold.prepend(older, page.first) {
            let pod = self.model.status().pod.clone();
            self.tell(
                &format!("`yoi log {pod}` shows the earlier part"),
                Tone::Dim,
            );
        }
        self.search_on();
    }

    /// Follows what changed: the question that is put, and what is missing for it.
    pub(super) fn changed(&mut self) {
        let queued = &self.model.status().queued;
        // The keys of an input that is gone do nothing.
        self.selected.take_if(|selected| {
            matches!(selected, Selected::Queued(input) if !queued.iter().any(|waiting| waiting.input == *input))
        });
        let mine = self.asking.sent_id();
        if let Some((id, text)) = self.fold.answered.take()
            && mine != Some(id)
        {
            self.tell(&format!("approval {id}: {text}"), Tone::Waiting);
        }
        self.full.follow(self.model.status());
        let waiting = &self.model.status().approvals;
        let first = waiting.first().map(|waiting| waiting.approval);
        let known = first.filter(|id| self.fold.questions.contains_key(id));
        if let Some(words) = self.asking.put(known) {
            self.fold.remember(&words);
        }
        self.ask_preview(known);
        if known.is_none()
            && first.is_some()
            && self.fetched != first
            && self.connection == ConnectionState::Live
        {
            self.fetched = first;
            self.outbox.push(Intent::FetchApprovals);
        }
    }

    /// Asks what the call of the question would change, again when files have changed since.
    fn ask_preview(&mut self, question: Option<u64>) {
        let now = question.map(|id| (id, self.file_changes));
        let names_file = question
            .and_then(|id| self.fold.questions.get(&id))
            .is_some_and(|asked| asked_file(asked).is_some());
        if self.connection != ConnectionState::Live || !names_file || self.previewed == now {
            return;
        }
        self.previewed = now;
        let ask = question.map(|id| Intent::PreviewCall { id });
        self.outbox.extend(ask);
    }

    /// The question that is put, and its place among those that wait.
    pub(super) fn question(&self) -> Option<(Rc<ApprovalRequested>, (usize, usize))> {
        let waiting = &self.model.status().approvals;
        let asked = self.fold.questions.get(&waiting.first()?.approval)?;
        Some((Rc::clone(asked), (1, waiting.len())))
    }

    pub(super) fn tell(&mut self, text: &str, tone: Tone) {
        self.toast = Some(Toast {
            text: text.to_owned(),
            tone,
            since: None,
        });
    }

    pub(super) fn toggle(&mut self, id: u64) {
        if !self.toggled.remove(&id) {
            self.toggled.insert(id);
            if self.toggled.len() > MAX_TOGGLED {
                self.toggled.pop_first();
            }
        }
    }

    pub(super) fn toggle_all(&mut self) {
        self.all_open = !self.all_open;
        self.toggled.clear();
    }

    /// The draft of the pod follows the composer.
    pub(super) fn send_draft(&mut self) {
        let text = self.composer.text();
        if text == self.draft
            || text.len() > protocol::MAX_DRAFT
            || self.connection != ConnectionState::Live
        {
            return;
        }
        self.draft.clone_from(&text);
        self.drafts.push_back(text.clone());
        self.drafts
            .drain(..self.drafts.len().saturating_sub(MAX_DRAFTS));
        self.outbox
            .retain(|intent| !matches!(intent, Intent::SetDraft(_)));
        self.outbox.push(Intent::SetDraft(text));
    }

    /// A draft that came back, or one of another client, which is taken while nothing is being written here.
    fn foreign_draft(&mut self, text: &str) {
        match self.drafts.iter().position(|sent| sent == text) {
            Some(at) => drop(self.drafts.drain(..=at)),
            None if self.drafts.is_empty() => self.adopt(text),
            None => {}
        }
    }

    fn adopt(&mut self, text: &str) {
        // Who cannot write here cannot see it either.
        if self.role != Role::Driver {
            return;
        }
        let is_mine = self.composer.text() == self.draft;
        text.clone_into(&mut self.draft);
        if is_mine && self.editing.is_none() && self.composer.text() != text {
            self.composer.set(text);
        }
    }

    /// The text of the newest answer.
    pub(super) fn newest_answer(&self) -> Option<String> {
        let answers = self.fold.cells.iter().rev();
        answers
            .into_iter()
            .find_map(|cell| matches!(cell.kind, CellKind::Answer(_)).then(|| cell.text()))
    }
}
