//! What the full screen does outside of it: copying, and a person's editor. Programs run in threads of their own.

use crate::env::Env;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use tokio::sync::mpsc;
use tui::Reply;

/// Bytes of a text that terminals take for the clipboard.
const MAX_COPY: usize = 72 << 10;

/// Bytes of a text that an editor gives back.
const MAX_EDITED: u64 = 1 << 20;

pub(super) struct Outside<'a> {
    env: &'a Env,
    replies: mpsc::Receiver<Reply>,
    sender: mpsc::Sender<Reply>,
}

impl<'a> Outside<'a> {
    pub(super) fn new(env: &'a Env) -> Self {
        let (sender, replies) = mpsc::channel(8);
        Self { env, replies, sender }
    }

    /// What came of the next program that ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Reply {
        match self.replies.recv().await {
            Some(reply) => reply,
            None => std::future::pending().await,
        }
    }

    /// Copies a text: gives the bytes for the terminal, and what to tell the person at once.
    pub(super) fn copy(&self, text: &str) -> (Vec<u8>, Option<Reply>) {
        if text.len() > MAX_COPY {
            let why = format!("not copied: the text has more than {} KiB, which terminals do not take", MAX_COPY >> 10);
            return (Vec::new(), Some(Reply::Failed(why)));
        }
        if self.env.var("TMUX").is_some() {
            self.begin(text.to_owned(), |text| match to_tmux(&text) {
                Ok(()) => Reply::Note("copied to the buffer of tmux, which passes it to the terminal".to_owned()),
                Err(why) => Reply::Failed(format!("not copied: tmux: {why}")),
            });
            return (Vec::new(), None);
        }
        let bytes = format!("\x1b]52;c;{}\x07", STANDARD.encode(text)).into_bytes();
        (bytes, Some(Reply::Note("copied to the clipboard by the terminal (OSC 52)".to_owned())))
    }

    /// Opens a text in the person's editor, which has the terminal until [`Self::next`].
    pub(super) fn edit(&self, text: String) {
        let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| self.env.var(name));
        let editor = named.map_or_else(|| OsString::from("vi"), OsString::from);
        let dir = self.env.temp_dir();
        self.begin(text, move |text| match edited(&editor, &dir, &text) {
            Ok(text) => Reply::Edited(text),
            Err(why) => Reply::Failed(format!("the editor {}: {why}", authority::escape(Path::new(&editor)))),
        });
    }

    fn begin(&self, text: String, run: impl FnOnce(String) -> Reply + Send + 'static) {
        let sender = self.sender.clone();
        let job = move || drop(sender.blocking_send(run(text)));
        if let Err(error) = thread::Builder::new().name("outside".to_owned()).spawn(job) {
            drop(self.sender.try_send(Reply::Failed(format!("no thread: {}", authority::explain(&error)))));
        }
    }
}

fn to_tmux(text: &str) -> Result<(), String> {
    let fail = |error: io::Error| authority::explain(&error);
    let mut command = Command::new("tmux");
    command.args(["load-buffer", "-w", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(fail)?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = child.wait().map_err(fail)?;
    written.map_err(fail)?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

fn edited(editor: &OsString, dir: &Path, text: &str) -> Result<String, String> {
    let fail = |error: io::Error| authority::explain(&error);
    let path = dir.join(format!("yoi-{}.md", client::cmd_id::cmd_id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(fail)?;
    let done = (|| {
        file.write_all(text.as_bytes()).map_err(fail)?;
        // An editor with options, as `git` reads it.
        let mut command = Command::new("sh");
        command.args(["-c", "$YOI_EDITOR \"$1\"", "sh"]).arg(&path).env("YOI_EDITOR", editor);
        let status = command.status().map_err(fail)?;
        if !status.success() {
            return Err(status.to_string());
        }
        let mut text = String::new();
        File::open(&path).and_then(|file| file.take(MAX_EDITED).read_to_string(&mut text)).map_err(fail)?;
        Ok(text)
    })();
    drop(fs::remove_file(&path));
    done
}
