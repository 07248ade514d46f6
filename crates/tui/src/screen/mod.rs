//! The full screen of a pod: a fold of what the pod tells, keys in, frames out. The driver owns the terminal, the
//! connection and the clock. Times are milliseconds since 1970 by the wall clock.

mod exchange;

pub use exchange::{ConnectionState, Frame, Intent, Key, Reply, ScreenSize};

use crate::line::Line;
use crate::style::{Theme, Tone};
use client::model::PodModel;
use protocol::event::Event;
use protocol::method::{Attached, Role};

/// What one person sees of a pod, and what they are writing.
pub struct Screen {
    model: PodModel,
    theme: Theme,
    role: Role,
    connection: ConnectionState,
    outbox: Vec<Intent>,
}

impl Screen {
    /// The screen behind the first answer to `attach`, for a client with this role.
    #[must_use]
    pub fn begin(attached: &Attached, role: Role, theme: Theme) -> Self {
        let connection = ConnectionState::Live;
        Self { model: PodModel::new(attached), theme, role, connection, outbox: Vec::new() }
    }

    /// The screen of a pod without a record, into which a log can be folded as events.
    #[must_use]
    pub fn before_any_record(pod: &str, theme: Theme) -> Self {
        let (role, connection) = (Role::Viewer, ConnectionState::Recorded);
        Self { model: PodModel::before_any_record(pod), theme, role, connection, outbox: Vec::new() }
    }

    /// Goes on behind a later answer to `attach`, whose cursor was the newest record of this screen.
    pub fn resume(&mut self, attached: &Attached) {
        self.model.resume(attached);
        self.connection = ConnectionState::Live;
    }

    /// Folds an event.
    pub fn event(&mut self, event: &Event) {
        self.model.apply(event);
    }

    /// The connection is in this state now.
    pub fn connection(&mut self, state: ConnectionState) {
        self.connection = state;
    }

    /// Takes what came of an intent.
    pub fn answered(&mut self, _reply: Reply) {}

    /// A key was pressed.
    pub fn key(&mut self, key: Key, _now_ms: u64) -> Vec<Intent> {
        if matches!(key, Key::Ctrl('d' | '\\')) {
            self.outbox.push(Intent::Detach);
        }
        self.intents()
    }

    /// A text was pasted.
    pub fn paste(&mut self, _text: &str) {}

    /// What the driver has to do although no key was pressed: ask after `begin`, `resume`, `event`, `answered`, `paste` and
    /// `frame`.
    pub fn intents(&mut self) -> Vec<Intent> {
        std::mem::take(&mut self.outbox)
    }

    /// What the terminal shows now.
    pub fn frame(&mut self, size: ScreenSize, _now_ms: u64) -> Frame {
        let columns = usize::from(size.columns);
        let mut rows = vec![Line::default(); usize::from(size.rows)];
        if let Some(last) = rows.last_mut() {
            *last = Line::of(&self.model.status().pod, Tone::Strong).cut(columns);
        }
        Frame { rows, cursor: None }
    }

    /// Milliseconds until the frame changes by time alone; none if it does not.
    #[must_use]
    pub fn redraw_in(&self, _now_ms: u64) -> Option<u64> {
        None
    }

    /// The title of the terminal's tab.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} · yoi", self.model.status().pod)
    }

    /// A text to notify a person with who does not look; each is told once.
    pub fn notification(&mut self) -> Option<String> {
        None
    }

    /// The newest record and a hash of what records say up to it: equal on every screen of the pod at this record.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{}:{:016x}", self.model.seen(), client::model::digest(self.model.status()))
    }

    /// How colours look, for the driver.
    #[must_use]
    pub fn theme(&self) -> Theme {
        self.theme
    }

    /// What this client may do.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }
}
