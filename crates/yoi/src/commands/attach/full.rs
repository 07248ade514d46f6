//! The full screen of `yoi attach`: the screen of `tui` on a terminal that this takes over. Keys go in, frames come out;
//! the pod is followed in a task of its own, so that nothing here waits for it.

mod feature_changes;
mod files;
mod link;
mod outside;

use self::link::{LastShown, Link, Update};
use self::outside::{Done, Outside};
use crate::commands::attach::last_seen;
use crate::commands::attach::screen::{COMMAND, PAGE, detached, ended, note};
use crate::commands::live::live;
use crate::look::Look;
use crate::remedy::in_one;
use crate::show::out;
use crate::socket::failure;
use crate::terminal::{FullTerminal, HungUp, InlinePainter, Painter, Takes, TerminalInput};
use authority::text::escape_line;
use client::attachment::Attachment;
use client::connection::hello;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::session_location::now;
use host::pods::Pods;
use protocol::event::{Event, PodEnded};
use protocol::method::{Attach, GetFeatures, Role};
use rustix::process::{Signal as Number, getpid, kill_process};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tui::{ConnectionState, Intent, Reply, Screen, ScreenSize};

/// From one frame to the next.
const FRAME: Duration = Duration::from_micros(16_667);
/// From a key to its frame, at most: 16 ms are felt.
const KEY_FRAME: Duration = Duration::from_millis(8);

/// From one look at the other pods to the next. A client that rests wakes for it.
const LOOK: Duration = Duration::from_secs(20);

/// Updates on their way to the screen.
const UPDATES: usize = 256;

/// Without a key for so long, nobody may be at a terminal that tells nothing of the focus.
const QUIET: Duration = Duration::from_secs(30);

/// Requests that wait for the one before them.
const MAX_WAITING: usize = 64;

/// Why there is no full screen any more.
pub(super) enum Left {
    /// With the exit code.
    Detached(Exit),
    /// For another pod; with what the pod before did not accept of what was written.
    Switched { to: String, unsent: Vec<String> },
    /// The terminal cannot be taken over: nothing was shown.
    NoScreen(String),
}

/// How a screen begins.
pub(super) struct Begin<'a> {
    /// Told to a person.
    pub(super) hint: Option<&'a str>,
    pub(super) takes: Takes,
    /// With the list of pods open.
    pub(super) lists_pods: bool,
}

/// Shows the pod until the person leaves.
pub(super) async fn run(
    pods: &Pods,
    name: &str,
    Begin {
        hint,
        takes,
        lists_pods,
    }: Begin<'_>,
    env: &Env,
) -> Result<Left, Failure> {
    let Some(look) = Look::of_stdout() else {
        return Ok(Left::NoScreen("the terminal cannot draw".to_owned()));
    };
    // Says why, if it cannot be attached to.
    let mut asked = live(pods, name, COMMAND).await?;
    let report = asked.ask(&GetFeatures {}).await.ok();
    let owner = asked.owner;
    let attach = Attach {
        limit: Some(PAGE),
        ..Attach::default()
    };
    let begun = Attachment::begin(&pods.dir(name), hello(COMMAND, Role::Driver), attach).await;
    let (attachment, attached) = begun.map_err(|error| failure(error, name, &owner))?;
    let dir = pods.dir(name);
    let session = attachment.welcome().session.clone();
    let seen = last_seen::read(&dir, &session);
    let role = attachment.welcome().role;
    let mut screen = Screen::begin_after(&attached, seen, role, look.theme);
    screen.offers(&attachment.welcome().methods);
    screen.foreign_commands(
        report
            .map(|told| tui::slash::foreign(&told.report))
            .unwrap_or_default(),
    );
    hint.iter().for_each(|hint| screen.hint(hint));
    if lists_pods {
        screen.list_pods();
    }
    match Config::vi_keys(env) {
        Ok(true) => screen.use_vi_keys(),
        Ok(false) => {}
        Err(failure) => screen.hint(&in_one(&failure)),
    }
    let terminal = match FullTerminal::begin(takes) {
        Ok(terminal) => terminal,
        Err(error) => return Ok(Left::NoScreen(authority::explain(&error))),
    };
    let (updates, from_link) = mpsc::channel(UPDATES);
    let (to_link, intents) = mpsc::channel(1);
    let name_of_pod = name.to_owned();
    let shown = LastShown::default();
    let link = Link {
        name: name_of_pod,
        dir: dir.clone(),
        owner,
        env: env.clone(),
        attachment,
        updates,
        intents,
        shown,
    };
    // It ends with the screen, which holds the other ends of its channels.
    drop(tokio::spawn(link.run()));
    let mut full = Full {
        outside: Outside::new(name, env),
        screen,
        terminal,
        painter: match takes {
            Takes::Screen { .. } => Drawing::Whole(Painter::new(look.theme)),
            Takes::RowsBelow => Drawing::Below(InlinePainter::new(look.theme)),
        },
        updates: from_link,
        to_link,
        waiting: VecDeque::new(),
        asked: None,
        is_ended: false,
        has_focus: None,
        last_key: Instant::now(),
        is_away: false,
        is_dirty: true,
        next_frame: Instant::now(),
        title: String::new(),
        next_look: Instant::now(),
    };
    let stop = full.run().await;
    last_seen::write(&dir, &session, full.screen.seen());
    full.leave();
    let farewell = match full.painter {
        Drawing::Whole(_) => full.screen.farewell(look.width()),
        // It stands there.
        Drawing::Below(_) => Vec::new(),
    };
    let unsent = full.unsent();
    let is_ended = full.is_ended;
    drop(full);
    let exit = match stop {
        Stop::Switched(to) => return Ok(Left::Switched { to, unsent }),
        Stop::Detached => Ok(Exit::Done),
        // Nobody reads what would be written.
        Stop::HungUp => return Ok(Left::Detached(Exit::Signal(HANGUP))),
        Stop::Signal(number) => Ok(Exit::Signal(number)),
        Stop::Failed(failure) => Err(failure),
    };
    out::raw(&look.text(&farewell));
    unsent
        .iter()
        .for_each(|text| out::lines(&format!("not sent: {text}")));
    let exit = exit?;
    note(&if is_ended {
        ended(name)
    } else {
        detached(name)
    });
    Ok(Left::Detached(exit))
}

enum Stop {
    Detached,
    Switched(String),
    HungUp,
    Signal(u8),
    Failed(Failure),
}

impl From<HungUp> for Stop {
    fn from(HungUp: HungUp) -> Self {
        Self::HungUp
    }
}

/// How frames become bytes.
enum Drawing {
    Whole(Painter),
    Below(InlinePainter),
}

impl Drawing {
    fn forget(&mut self) {
        match self {
            Self::Whole(painter) => painter.forget(),
            Self::Below(painter) => painter.forget(),
        }
    }

    fn paint(&mut self, screen: &mut Screen, (columns, rows): (u16, u16)) -> Vec<u8> {
        let size = ScreenSize { columns, rows };
        match self {
            Self::Whole(painter) => painter.paint(columns, screen.frame(size, now_ms())),
            Self::Below(painter) => {
                let (printed, frame) = screen.inline_frame(size, now_ms());
                painter.paint(columns, &printed, frame)
            }
        }
    }
}

struct Full<'a> {
    screen: Screen,
    terminal: FullTerminal,
    painter: Drawing,
    updates: mpsc::Receiver<Update>,
    to_link: mpsc::Sender<Intent>,
    outside: Outside<'a>,
    /// What the pod is asked for next.
    waiting: VecDeque<Intent>,
    /// What it is being asked for.
    asked: Option<Intent>,
    /// The pod said that it ends.
    is_ended: bool,
    /// As far as the terminal tells it: `tmux` does not, unless it is set up for it.
    has_focus: Option<bool>,
    last_key: Instant,
    /// The terminal is another program's, such as the editor's.
    is_away: bool,
    is_dirty: bool,
    next_frame: Instant,
    title: String,
    /// When the other pods are looked at again.
    next_look: Instant,
}

impl<'a> Full<'a> {
    async fn run(&mut self) -> Stop {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(failure) => return Stop::Failed(failure),
        };
        loop {
            if let Err(stop) = self.step(&mut signals).await {
                return stop;
            }
        }
    }

    async fn step(&mut self, signals: &mut Signals) -> Result<(), Stop> {
        let intents = self.screen.intents();
        self.obey(intents)?;
        if Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK;
            self.outside.look_at_others();
        }
        self.ask_next();
        self.draw()?;
        let wakes = self.wakes();
        tokio::select! {
            biased;
            typed = self.terminal.exchange(), if !self.is_away => self.typed(typed?)?,
            came = signals.next() => self.signal(came)?,
            () = sleep_until(wakes.unwrap_or_else(Instant::now)), if wakes.is_some() => self.is_dirty = true,
            done = self.outside.next() => self.came_back(done)?,
            update = self.updates.recv() => match update {
                Some(update) => self.update(update)?,
                // Its task panicked, and the terminal was given back.
                None => return Err(Stop::Failed(Failure::new(Exit::Internal, "the connection's task has ended"))),
            },
        }
        Ok(())
    }

    /// When the next frame is due; none as long as nothing changes.
    fn wakes(&self) -> Option<Instant> {
        if self.is_away || !self.terminal.is_ready() {
            None
        } else if self.is_dirty {
            Some(self.next_frame)
        } else {
            let left = self.screen.redraw_in(now_ms());
            let redraw = left.map(|left| Instant::now() + Duration::from_millis(left.max(1)));
            redraw.into_iter().chain([self.next_look]).min()
        }
    }

    /// Draws if something changed, the terminal took the frame before, and it is time.
    fn draw(&mut self) -> Result<(), HungUp> {
        if self.is_away
            || !self.is_dirty
            || !self.terminal.is_ready()
            || Instant::now() < self.next_frame
        {
            return Ok(());
        }
        let bytes = self.painter.paint(&mut self.screen, self.terminal.size());
        self.is_dirty = false;
        let title = escape_line(&self.screen.title()).into_owned();
        if title != self.title {
            self.terminal.send(format!("\x1b]2;{title}\x07").as_bytes());
            self.title = title;
        }
        if let Some(text) = self
            .screen
            .notification()
            .filter(|_| is_unseen(self.has_focus, self.last_key.elapsed()))
        {
            self.terminal.send(notification(&text).as_bytes());
        }
        if !bytes.is_empty() {
            self.terminal.send(&bytes);
            self.next_frame = Instant::now() + FRAME;
        }
        self.terminal.flush()?;
        if !self.terminal.is_ready() {
            // Once it took this frame, the next one says when a question was seen.
            self.screen.not_shown();
            self.is_dirty = true;
        }
        Ok(())
    }

    fn typed(&mut self, typed: Vec<TerminalInput>) -> Result<(), Stop> {
        if typed.len() > 1 {
            self.screen.several_keys();
        }
        self.next_frame = self.next_frame.min(Instant::now() + KEY_FRAME);
        for typed in typed {
            self.is_dirty = true;
            match typed {
                TerminalInput::Key(key) => {
                    self.last_key = Instant::now();
                    let intents = self.screen.key(key, now_ms());
                    self.obey(intents)?;
                }
                TerminalInput::Paste(text) => {
                    self.last_key = Instant::now();
                    self.screen.paste(&text);
                }
                TerminalInput::LongPaste => {
                    self.screen.answered(Reply::Failed(
                        "not pasted: an input has at most 1.4 MiB".to_owned(),
                    ));
                }
                TerminalInput::Focus(has_focus) => self.has_focus = Some(has_focus),
            }
        }
        Ok(())
    }

    /// Gives the terminal back until [`Self::come_back`].
    fn leave(&mut self) {
        if let Drawing::Below(painter) = &mut self.painter
            && self.terminal.is_ready()
        {
            self.terminal.send(&painter.erase());
            self.terminal.flush().ok();
        }
        self.terminal.leave();
    }

    /// Stops this program, as it was asked to, and goes on when it is continued.
    fn suspend(&mut self) -> Result<(), Stop> {
        self.leave();
        let stopped = kill_process(getpid(), Number::STOP);
        self.come_back()?;
        if let Err(error) = stopped {
            self.screen.answered(Reply::Failed(format!(
                "cannot stop: {}",
                authority::explain(&error.into())
            )));
        }
        Ok(())
    }

    fn come_back(&mut self) -> Result<(), Stop> {
        self.terminal.again().map_err(|_gone| HungUp)?;
        self.painter.forget();
        self.title.clear();
        (self.is_away, self.is_dirty) = (false, true);
        Ok(())
    }

    fn signal(&mut self, came: Came) -> Result<(), Stop> {
        match came {
            Came::Resized => {
                if let Drawing::Whole(painter) = &mut self.painter {
                    painter.forget();
                }
                self.is_dirty = true;
            }
            Came::Stopping if !self.is_away => self.suspend()?,
            Came::Continued if !self.is_away && self.terminal.was_set() => self.come_back()?,
            Came::Stopping | Came::Continued => {}
            // At another program's terminal, Ctrl-C is that program's.
            Came::Ending(INTERRUPT) if self.is_away => {}
            Came::Ending(number) => return Err(Stop::Signal(number)),
        }
        Ok(())
    }

    fn update(&mut self, update: Update) -> Result<(), Stop> {
        self.is_dirty = true;
        match update {
            Update::Event(event) => {
                self.screen.event(&event);
                if let Event::Ended(PodEnded { failure }) = *event {
                    self.is_ended = true;
                    let why = failure.map(|failure| failure.message);
                    self.screen.connection(ConnectionState::Ended(why));
                }
            }
            Update::Lost(_) | Update::Died(_) if self.is_ended => {}
            Update::Died(how) => self.screen.died(&how, now_ms()),
            Update::Lost(why) => self.screen.connection(ConnectionState::Lost(why)),
            Update::Resumed(attached) => {
                self.is_ended = false;
                self.screen.resume(&attached);
            }
            Update::Done(reply) => {
                self.asked = None;
                reply
                    .into_iter()
                    .for_each(|reply| self.screen.answered(reply));
            }
            Update::Over(failure) => return Err(Stop::Failed(failure)),
        }
        Ok(())
    }

    fn obey(&mut self, intents: Vec<Intent>) -> Result<(), Stop> {
        for intent in intents {
            match intent {
                Intent::Detach => return Err(Stop::Detached),
                Intent::Switch(to) => return Err(Stop::Switched(to)),
                Intent::ListFiles(dir) => self.outside.list_files(dir),
                Intent::ListPods => self.outside.list_pods(),
                Intent::ShowDiff { since } => self.outside.show_diff(since),
                Intent::PreviewUndo { to } => self.outside.preview_undo(to),
                Intent::ListAgents => self.outside.list_agents(),
                Intent::ListModels => self.outside.list_models(),
                Intent::Restart { options, said } => self.outside.restart(options, said),
                Intent::NewPod { dir, model } => self.outside.new_pod(dir, model),
                Intent::StartPod(name) => self.outside.start_pod(name),
                Intent::Copy(text) => {
                    let (bytes, reply) = self.outside.copy(&text);
                    self.terminal.send(&bytes);
                    self.terminal.flush()?;
                    reply
                        .into_iter()
                        .for_each(|reply| self.screen.answered(reply));
                }
                Intent::TurnMouse => {
                    let said = self.terminal.turn_mouse();
                    self.terminal.flush()?;
                    self.screen.answered(Reply::Note(said.to_owned()));
                }
                Intent::OpenEditor(_) | Intent::OpenConversation | Intent::PrintConversation
                    if self.is_away => {}
                Intent::OpenEditor(text) => self.lend(|outside| outside.edit(text)),
                Intent::OpenConversation => self.lend(Outside::open_conversation),
                Intent::PrintConversation => self.lend(Outside::print_conversation),
                intent => self.queue(intent),
            }
        }
        Ok(())
    }

    /// Gives the terminal to a program until it ends.
    fn lend(&mut self, begin: impl FnOnce(&Outside<'a>)) {
        self.leave();
        self.is_away = true;
        begin(&self.outside);
    }

    /// Of drafts that were not sent, only the newest counts.
    fn queue(&mut self, intent: Intent) {
        if matches!(intent, Intent::SetDraft(_)) {
            self.waiting
                .retain(|waiting| !matches!(waiting, Intent::SetDraft(_)));
        }
        if self.waiting.len() < MAX_WAITING {
            return self.waiting.push_back(intent);
        }
        let why = "too many requests wait for the pod".to_owned();
        self.screen.answered(match intent {
            Intent::Send { text, .. } => Reply::SendFailed { text, why },
            Intent::Approve { id, .. } => Reply::ApproveFailed { id, why },
            _ => Reply::Failed(why),
        });
    }

    fn ask_next(&mut self) {
        if self.asked.is_some() {
            return;
        }
        let Some(intent) = self.waiting.pop_front() else {
            return;
        };
        // There is room: the one before is done.
        if self.to_link.try_send(intent.clone()).is_ok() {
            self.asked = Some(intent);
        }
    }

    /// What was begun outside has ended.
    fn came_back(
        &mut self,
        Done {
            reply,
            had_terminal,
        }: Done,
    ) -> Result<(), Stop> {
        if had_terminal {
            self.come_back()?;
        }
        self.screen.answered(reply);
        self.is_dirty = true;
        Ok(())
    }

    /// What the pod did not accept of what was written here. The screen is not shown any more.
    fn unsent(&mut self) -> Vec<String> {
        // While the connection is lost, the screen keeps the draft to itself.
        self.screen.connection(ConnectionState::Live);
        self.screen.paste("");
        let drafts = self.screen.intents();
        unaccepted(self.asked.iter().chain(&self.waiting).chain(&drafts))
    }
}

/// The texts in requests that were not answered; of drafts, only the newest counts.
fn unaccepted<'a>(requests: impl Iterator<Item = &'a Intent>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut draft = None;
    for request in requests {
        match request {
            Intent::Send { text, .. }
            | Intent::EditInput { text, .. }
            | Intent::SendNow { text, .. } => {
                texts.push(text.clone());
            }
            Intent::SetDraft(text) => draft = Some(text.clone()),
            _ => {}
        }
    }
    texts.extend(draft.filter(|text| !text.is_empty()));
    texts
}

/// Whether a person may not see what the screen shows.
fn is_unseen(has_focus: Option<bool>, since_key: Duration) -> bool {
    has_focus.map_or(since_key >= QUIET, |has_focus| !has_focus)
}

const HANGUP: u8 = 1;
const INTERRUPT: u8 = 2;

/// A signal.
enum Came {
    Resized,
    Stopping,
    Continued,
    Ending(u8),
}

struct Signals {
    resized: Signal,
    stopping: Signal,
    continued: Signal,
    ending: [(u8, Signal); 4],
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |number: u8| signal(SignalKind::from_raw(number.into()));
        let all = || -> std::io::Result<Self> {
            let ending = [
                (HANGUP, listen(HANGUP)?),
                (INTERRUPT, listen(INTERRUPT)?),
                (3, listen(3)?),
                (15, listen(15)?),
            ];
            let [resized, stopping, continued] = [Number::WINCH, Number::TSTP, Number::CONT]
                .map(|number| signal(SignalKind::from_raw(number.as_raw())));
            Ok(Self {
                resized: resized?,
                stopping: stopping?,
                continued: continued?,
                ending,
            })
        };
        all().map_err(|e| {
            Failure::new(
                Exit::Unavailable,
                format!("signals cannot be handled: {}", authority::explain(&e)),
            )
        })
    }

    /// The next one. Cancel-safe.
    async fn next(&mut self) -> Came {
        let [hangup, interrupt, quit, term] = &mut self.ending;
        tokio::select! {
            _ = hangup.1.recv() => Came::Ending(hangup.0),
            _ = interrupt.1.recv() => Came::Ending(interrupt.0),
            _ = quit.1.recv() => Came::Ending(quit.0),
            _ = term.1.recv() => Came::Ending(term.0),
            _ = self.resized.recv() => Came::Resized,
            _ = self.stopping.recv() => Came::Stopping,
            _ = self.continued.recv() => Came::Continued,
        }
    }
}

/// A bell, and the sequences of iTerm2 and of urxvt for a message of the desktop.
fn notification(text: &str) -> String {
    let text = escape_line(text).replace(';', ",");
    format!("\x07\x1b]9;{text}\x07\x1b]777;notify;yoi;{text}\x07")
}

fn now_ms() -> u64 {
    now() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::method::Cancel;
    use protocol::status::DeliveryMode;

    #[test]
    fn texts_that_the_pod_did_not_accept_are_told_with_the_newest_draft() {
        let draft = |text: &str| Intent::SetDraft(text.to_owned());
        let sent = Intent::Send {
            text: "sent".to_owned(),
            mode: DeliveryMode::Queue,
        };
        let edited = Intent::EditInput {
            input: 1,
            text: "edited".to_owned(),
        };
        let all = [
            draft("old"),
            sent.clone(),
            Intent::Do(Cancel::default().into()),
            edited,
            draft("new"),
        ];
        assert_eq!(unaccepted(all.iter()), ["sent", "edited", "new"]);
        assert_eq!(unaccepted([draft("old"), sent, draft("")].iter()), ["sent"]);
    }

    #[test]
    fn without_the_focus_or_word_of_it_a_person_may_not_look() {
        let short = Duration::from_secs(1);
        let long = QUIET;
        assert!(is_unseen(Some(false), short) && is_unseen(None, long));
        assert!(!is_unseen(Some(true), long) && !is_unseen(None, short));
    }
}
