//! What killed hosts leave: child processes, staged files, locks. Ends and removes it, and gives the words for it.

use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::hosting::messages::PersonMessages;
use crate::hosting::session_location::{ephemeral_left, now};
use crate::pods::Pods;
use authority::{Access, Ambient, Workspace};
use pod::host::sweep;
use pod::session::fold::SessionState;
use pod::session::restore::decode;
use session_store::{Reader, Session};
use std::path::Path;

/// Sessions whose hosts were killed, and how many processes of each were ended.
#[derive(Clone, Debug, Default)]
pub struct Swept(Vec<(String, u32)>);

impl Swept {
    /// Ends what killed hosts left running, and removes what they left beside files.
    pub fn now(env: &Env, messages: &PersonMessages) -> Self {
        let mut swept = Self::default();
        swept.again(env, messages);
        swept
    }

    /// The same once more: another host may have been killed since.
    pub fn again(&mut self, env: &Env, messages: &PersonMessages) {
        let (ended, done) = authority::end_stale(&ambient::claim(), &env.temp_dir());
        if let Some(text) = text(ended.iter().map(|(_, count)| *count).sum()) {
            messages.say(&text);
        }
        if let Err(error) = done {
            messages.warn(&format!(
                "warning: cleaning up after a killed run failed: {error}"
            ));
        }
        clear_killed(env, ended.iter().map(|(session, _)| session.as_str()));
        self.0.extend(ended);
    }

    /// Processes of this session that were ended.
    pub fn of(&self, session: &str) -> u32 {
        self.0
            .iter()
            .filter(|(of, _)| of == session)
            .map(|(_, count)| *count)
            .sum()
    }
}

fn text(ended: u32) -> Option<String> {
    match ended {
        0 => None,
        1 => Some("stopped 1 process of a killed run".to_owned()),
        more => Some(format!("stopped {more} processes of a killed run")),
    }
}

/// Removes what killed runs of a pod, or killed undos, left beside files. To be called under the pod's lock.
pub fn clear(pod: &Path, files: &Workspace) {
    let (Ok(reader), Some(session)) = (Reader::open(pod), session(pod)) else {
        return;
    };
    let mut state = SessionState::default();
    // What does not read any more is not known any more.
    for frame in reader.frames().map_while(Result::ok) {
        let Ok(Ok(_)) = decode(&frame).map(|record| state.apply(&record)) else {
            break;
        };
    }
    for left in &state.changing {
        sweep(files, &session, left);
    }
}

/// [`clear`] for these sessions, whose runs were killed, kept or not. One that goes on by now looks after itself.
fn clear_killed<'a>(env: &Env, killed: impl Iterator<Item = &'a str>) {
    let killed: Vec<&str> = killed.collect();
    if killed.is_empty() {
        return;
    }
    let Ok(files) = everything(&ambient::claim()) else {
        return;
    };
    let is_killed =
        |dir: &Path| session(dir).is_some_and(|session| killed.contains(&session.as_str()));
    let clear = |dir: &Path| {
        if let (true, Ok(_held)) = (is_killed(dir), Session::hold(dir, now())) {
            clear(dir, &files);
        }
    };
    if let Ok(pods) = Pods::of(env) {
        pods.names()
            .unwrap_or_default()
            .iter()
            .for_each(|name| clear(&pods.dir(name)));
    }
    ephemeral_left(env).for_each(|(dir, _held)| clear(&dir));
}

/// The session that is in a directory, as its first record names it.
pub fn session(dir: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct First {
        session: String,
    }
    let first = Reader::open(dir).ok()?.frames().next()?.ok()?;
    serde_json::from_str(&first.line)
        .ok()
        .map(|First { session }| session)
}

/// All files there are, so that a link on the way is seen instead of followed.
pub fn everything(ambient: &Ambient) -> Result<Workspace, Failure> {
    let root = Path::new("/");
    Workspace::open(ambient, root, root, Access::ReadWrite)
        .map_err(|e| Failure::new(Exit::Unavailable, e.to_string()))
}
