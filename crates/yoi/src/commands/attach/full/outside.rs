//! What the full screen does outside of it: copying, listings, a person's editor, the whole conversation. Each runs in a thread of
//! its own.

use super::files;
use crate::commands::attach::own::{self, printed};
use crate::commands::start::{SELF, directory_of, stopped_in};
use crate::commands::{ls, undo};
use crate::remedy::in_one;
use authority::text::{Lines, strip};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use host::env::Env;
use host::exit::Failure;
use host::pods::Pods;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use tokio::sync::mpsc;
use tui::slash::Slash;
use tui::{Intent, Reply, ShownText};

/// Bytes of a text that terminals take for the clipboard.
const MAX_COPY: usize = 72 << 10;

/// Models that are listed.
const MAX_MODELS: usize = 200;

/// Bytes of a text that an editor gives back.
const MAX_EDITED: u64 = 1 << 20;

/// What came of something that has ended.
pub(super) struct Done {
    pub(super) reply: Reply,
    /// The terminal was its own until now.
    pub(super) had_terminal: bool,
}

pub(super) struct Outside<'a> {
    /// The pod.
    name: &'a str,
    env: &'a Env,
    ended: mpsc::Receiver<Done>,
    sender: mpsc::Sender<Done>,
}

impl<'a> Outside<'a> {
    pub(super) fn new(name: &'a str, env: &'a Env) -> Self {
        let (sender, ended) = mpsc::channel(8);
        Self {
            name,
            env,
            ended,
            sender,
        }
    }

    /// What came of the next one that ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Done {
        match self.ended.recv().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }

    /// Copies a text without what would act where it is pasted: gives the bytes for the terminal, and what to tell the person at once.
    pub(super) fn copy(&self, text: &str) -> (Vec<u8>, Option<Reply>) {
        let text = strip(text, Lines::Many);
        if text.len() > MAX_COPY {
            let why = format!(
                "not copied: the text has more than {} KiB, which terminals do not take",
                MAX_COPY >> 10
            );
            return (Vec::new(), Some(Reply::Failed(why)));
        }
        if self.env.var("TMUX").is_some() {
            self.beside(move || match to_tmux(&text) {
                Ok(()) => Reply::Note(
                    "copied to the buffer of tmux, which passes it to the terminal".to_owned(),
                ),
                Err(why) => Reply::Failed(format!("not copied: tmux: {why}")),
            });
            return (Vec::new(), None);
        }
        let bytes = format!("\x1b]52;c;{}\x07", STANDARD.encode(text)).into_bytes();
        (
            bytes,
            Some(Reply::Note(
                "copied to the clipboard by the terminal (OSC 52)".to_owned(),
            )),
        )
    }

    /// Opens a text in the person's editor, which has the terminal until [`Self::next`].
    pub(super) fn edit(&self, text: String) {
        let editor = self.editor();
        let dir = self.env.temp_dir();
        self.begin(true, move || match edited(&editor, &dir, &text) {
            Ok(text) => Reply::Edited(text),
            Err(why) => Reply::Failed(why),
        });
    }

    /// Opens the whole conversation in the person's editor, which has the terminal until [`Self::next`].
    pub(super) fn open_conversation(&self) {
        let name = self.name.to_owned();
        let editor = self.editor();
        let dir = self.env.temp_dir();
        self.begin(true, move || match conversation_in(&editor, &dir, &name) {
            Ok(false) => Reply::Note("the conversation was in the editor".to_owned()),
            Ok(true) => Reply::Note("what was changed in the editor is not kept".to_owned()),
            Err(why) => Reply::Failed(why),
        });
    }

    /// Prints the whole conversation into the terminal, until [`Self::next`].
    pub(super) fn print_conversation(&self) {
        let name = self.name.to_owned();
        self.begin(true, move || match conversation(&name, Stdio::inherit()) {
            Ok(()) => Reply::Note("the conversation is in the terminal's scrollback".to_owned()),
            Err(why) => Reply::Failed(why),
        });
    }

    fn editor(&self) -> OsString {
        let named = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(|name| self.env.var(name));
        named.map_or_else(|| OsString::from("vi"), OsString::from)
    }

    /// Lists the files below a directory.
    pub(super) fn list_files(&self, dir: String) {
        self.beside(move || Reply::Files(files::below(Path::new(&dir))));
    }

    /// Lists all pods.
    pub(super) fn list_pods(&self) {
        let env = self.env.clone();
        self.beside(move || Reply::Pods(ls::entries(&env).map_err(|failure| in_one(&failure))));
    }

    /// How many other pods wait for a person.
    pub(super) fn look_at_others(&self) {
        let name = self.name.to_owned();
        let env = self.env.clone();
        self.beside(move || {
            let waiting = ls::live_entries(&env).unwrap_or_default().into_iter();
            Reply::OthersWait(waiting.filter(|pod| pod.waits && pod.name != name).count())
        });
    }

    /// What the pod changed in files.
    pub(super) fn show_diff(&self, since: u64) {
        let name = self.name.to_owned();
        self.beside(move || {
            let since = since.to_string();
            let text = printed(None, &["diff", &name, "--to", &since]);
            Reply::Shown(text.map(|text| ShownText {
                is_diff: true,
                ..ShownText::of(&text)
            }))
        });
    }

    /// What an undo would do.
    pub(super) fn preview_undo(&self, to: u64) {
        let name = self.name.to_owned();
        let env = self.env.clone();
        self.beside(move || {
            let lines = Pods::of(&env).and_then(|pods| undo::preview(&pods, &name, to));
            Reply::Shown(lines.map_err(|failure| in_one(&failure)).map(|lines| {
                match lines.is_empty() {
                    true => ShownText::of(&format!("{name}: nothing to undo")),
                    false => ShownText {
                        confirms: Some(Intent::Undo { to }),
                        ..ShownText::of(&lines.join("\n"))
                    },
                }
            }))
        });
    }

    /// The agents that a pod can start as in the directory of this one.
    pub(super) fn list_agents(&self) {
        let name = self.name.to_owned();
        let env = self.env.clone();
        self.beside(move || {
            let pods = Pods::of(&env).map_err(|failure| in_one(&failure));
            let listed = pods.and_then(|pods| {
                let dir = directory_of(&pods.dir(&name));
                let dir = dir.as_deref().and_then(Path::to_str);
                printed(dir, &["agents"])
            });
            Reply::Shown(listed.map(|text| ShownText::of(text.trim_end())))
        });
    }

    /// The models that can answer, and what each choice does.
    pub(super) fn list_models(&self) {
        let name = self.name.to_owned();
        let env = self.env.clone();
        self.beside(move || {
            let listed = Pods::of(&env).and_then(|pods| models(&pods.dir(&name), &env));
            Reply::Shown(listed.map_err(|failure| in_one(&failure)))
        });
    }

    /// Stops the pod in good order and starts it again with these options.
    pub(super) fn restart(&self, options: Vec<String>, said: String) {
        let name = self.name.to_owned();
        self.beside(move || {
            own::restart(&name, &options).map_or_else(Reply::Failed, |()| Reply::Note(said))
        });
    }

    /// Starts a pod with an empty conversation in this directory.
    pub(super) fn new_pod(&self, dir: String, model: String) {
        let env = self.env.clone();
        self.beside(move || {
            own::new_pod(&dir, &model, &env).map_or_else(Reply::Failed, Reply::Started)
        });
    }

    /// Starts a pod again, in its directory.
    pub(super) fn start_pod(&self, name: String) {
        let env = self.env.clone();
        self.beside(move || {
            let dir = Pods::of(&env)
                .ok()
                .and_then(|pods| stopped_in(&pods.dir(&name)));
            let dir = dir.as_deref().and_then(Path::to_str);
            match printed(dir, &["start", "-q", &name]) {
                Ok(_) => Reply::Started(name),
                Err(why) => Reply::Failed(why),
            }
        });
    }

    /// Runs without the terminal.
    fn beside(&self, run: impl FnOnce() -> Reply + Send + 'static) {
        self.begin(false, run);
    }

    fn begin(&self, had_terminal: bool, run: impl FnOnce() -> Reply + Send + 'static) {
        let sender = self.sender.clone();
        let job = move || {
            drop(sender.blocking_send(Done {
                reply: run(),
                had_terminal,
            }))
        };
        if let Err(error) = thread::Builder::new().name("outside".to_owned()).spawn(job) {
            let reply = Reply::Failed(format!("no thread: {}", authority::explain(&error)));
            drop(self.sender.try_send(Done {
                reply,
                had_terminal,
            }));
        }
    }
}

fn to_tmux(text: &str) -> Result<(), String> {
    let fail = |error: io::Error| authority::explain(&error);
    let mut command = Command::new("tmux");
    command
        .args(["load-buffer", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(fail)?;
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = child.wait().map_err(fail)?;
    written.map_err(fail)?;
    if status.success() {
        Ok(())
    } else {
        Err(status.to_string())
    }
}

/// The models, and the change to each.
fn models(dir: &Path, env: &Env) -> Result<ShownText, Failure> {
    let all = own::models(dir, env)?;
    let row = |model: &String| {
        let restart = Intent::restart(&Slash::Model(model.clone()))?;
        Some((model.clone(), restart))
    };
    let text =
        "Enter changes the model: the pod stops and starts again, and its conversation stays"
            .to_owned();
    Ok(ShownText {
        text: match all.len().saturating_sub(MAX_MODELS) {
            0 => text,
            more => format!("{text}\n… {more} more: `yoi models --json`"),
        },
        choices: all.iter().take(MAX_MODELS).filter_map(row).collect(),
        ..ShownText::default()
    })
}

/// Writes the transcript of a pod, by this program.
fn conversation(name: &str, to: Stdio) -> Result<(), String> {
    let mut command = Command::new(SELF);
    command
        .args(["log", name])
        .stdin(Stdio::null())
        .stdout(to)
        .stderr(Stdio::piped());
    let ended = command
        .spawn()
        .and_then(Child::wait_with_output)
        .map_err(|error| authority::explain(&error))?;
    if ended.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&ended.stderr);
    let why = why
        .lines()
        .next()
        .map_or_else(|| ended.status.to_string(), str::to_owned);
    Err(format!("`yoi log {name}`: {why}"))
}

/// Whether the text was changed there.
fn conversation_in(editor: &OsString, dir: &Path, name: &str) -> Result<bool, String> {
    let (path, file) = private(dir)?;
    let done = conversation(name, file.into()).and_then(|()| changed_in(editor, &path));
    drop(fs::remove_file(&path));
    done
}

/// Runs the editor; whether it wrote the file.
fn changed_in(editor: &OsString, path: &Path) -> Result<bool, String> {
    let written = || {
        let meta = fs::metadata(path).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    let before = written();
    in_editor(editor, path)?;
    Ok(written() != before)
}

/// A new file for a person's editor, which nobody else reads.
fn private(dir: &Path) -> Result<(PathBuf, File), String> {
    let path = dir.join(format!("yoi-{}.md", client::cmd_id::cmd_id()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let file = file.map_err(|error| {
        format!(
            "{}: {}",
            authority::escape(&path),
            authority::explain(&error)
        )
    })?;
    Ok((path, file))
}

/// Runs the editor, with options as `git` reads them.
fn in_editor(editor: &OsString, path: &Path) -> Result<(), String> {
    let mut command = Command::new("sh");
    command
        .args(["-c", "$YOI_EDITOR \"$1\"", "sh"])
        .arg(path)
        .env("YOI_EDITOR", editor);
    let why = match command.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => authority::explain(&error),
    };
    Err(format!(
        "the editor {}: {why}",
        authority::escape(Path::new(editor))
    ))
}

fn edited(editor: &OsString, dir: &Path, text: &str) -> Result<String, String> {
    let fail = |error: io::Error| authority::explain(&error);
    let (path, mut file) = private(dir)?;
    let done = (|| {
        file.write_all(text.as_bytes()).map_err(fail)?;
        in_editor(editor, &path)?;
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_EDITED + 1).read_to_end(&mut bytes))
            .map_err(fail)?;
        if bytes.len() as u64 > MAX_EDITED {
            return Err(format!("the text has more than {} KiB", MAX_EDITED >> 10));
        }
        String::from_utf8(bytes).map_err(|_invalid| "the text is not UTF-8".to_owned())
    })();
    match done {
        Ok(text) => {
            drop(fs::remove_file(&path));
            Ok(text)
        }
        // What was written there is nowhere else.
        Err(why) => Err(format!(
            "{why}; the text is in {}",
            authority::escape(&path)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an editor that runs the script made of `before`, and what is in the directory then.
    fn edited_by(script: &str) -> (Result<String, String>, Vec<Vec<u8>>) {
        let dir = tempfile::tempdir().unwrap();
        let editor = dir.path().join("editor");
        let texts = dir.path().join("texts");
        fs::write(&editor, script).unwrap();
        fs::create_dir(&texts).unwrap();
        let done = edited(&format!("sh {}", editor.display()).into(), &texts, "before");
        let kept: Vec<_> = fs::read_dir(&texts)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        if let Err(why) = &done {
            assert!(
                kept.iter()
                    .all(|path| why.ends_with(&format!("; the text is in {}", path.display()))),
                "{why}"
            );
        }
        (
            done,
            kept.iter().map(|path| fs::read(path).unwrap()).collect(),
        )
    }

    #[test]
    fn a_text_that_an_editor_does_not_give_back_is_kept() {
        assert_eq!(
            edited_by("printf after > $1"),
            (Ok("after".to_owned()), Vec::new())
        );
        let (done, kept) = edited_by("printf after > $1; exit 3");
        assert_eq!((done.is_err(), kept), (true, vec![b"after".to_vec()]));
        let (done, kept) = edited_by(r"printf '\377' > $1");
        assert_eq!((done.is_err(), kept), (true, vec![vec![0xff]]));
        let (done, kept) = edited_by("head -c 1048577 /dev/zero > $1");
        assert!(
            done.unwrap_err()
                .starts_with("the text has more than 1024 KiB")
        );
        assert_eq!(kept[0].len(), 1_048_577);
        assert_eq!(
            edited_by("head -c 1048576 /dev/zero > $1")
                .0
                .map(|text| text.len()),
            Ok(1_048_576)
        );
    }

    /// Who only looked was told that changes are not kept.
    #[test]
    fn a_conversation_that_was_only_looked_at_was_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shown");
        for (editor, is_changed) in [("cat", false), ("sed -i s/a/bb/", true)] {
            fs::write(&path, "a").unwrap();
            assert_eq!(
                changed_in(&editor.into(), &path),
                Ok(is_changed),
                "{editor}"
            );
        }
    }

    #[test]
    fn what_is_copied_cannot_act_where_it_is_pasted() {
        let env = Env::default();
        let (bytes, _) = Outside::new("p", &env).copy("a\tb\x1b[201~\u{200b}\u{202e}c\nd\r");
        let wanted = format!("\x1b]52;c;{}\x07", STANDARD.encode("a\tb[201~c\nd"));
        assert_eq!(String::from_utf8(bytes).unwrap(), wanted);
    }
}
