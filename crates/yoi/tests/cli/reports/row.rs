//! A row as it is written, and the checks that all kinds of rows share.

use crate::scene::Scene;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;

#[derive(Deserialize)]
pub(super) struct Rows {
    pub(super) row: Vec<Row>,
}

/// One report. The heads of the TOML files say what the keys mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// `owner/name#number`.
    pub(super) report: String,
    pub(super) fault: String,

    #[serde(default)]
    pub(super) setup: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) git: bool,
    #[serde(default)]
    pub(super) deny: String,
    pub(super) plugin: Option<String>,
    pub(super) word: Option<String>,
    pub(super) key: Option<String>,

    #[serde(default)]
    pub(super) api: String,
    #[serde(default)]
    pub(super) calls: Vec<Step>,
    pub(super) deltas: Option<Vec<String>>,
    pub(super) events: Option<Vec<String>>,
    pub(super) stream: Option<String>,
    pub(super) finish: Option<String>,
    pub(super) done: Option<bool>,
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) headers: Vec<String>,
    #[serde(default)]
    pub(super) body: String,
    #[serde(default)]
    pub(super) always: bool,

    pub(super) out: Option<String>,
    #[serde(default)]
    pub(super) code: i32,
    #[serde(default)]
    pub(super) fails: bool,
    pub(super) requests: Option<usize>,
    pub(super) wait: Option<(f64, f64)>,
    #[serde(default)]
    pub(super) says: Vec<String>,
    #[serde(default)]
    pub(super) hides: Vec<String>,
    #[serde(default)]
    pub(super) sent: Vec<String>,
    #[serde(default)]
    pub(super) unsent: Vec<String>,
    #[serde(default)]
    pub(super) results: Vec<OneOrMore>,
    #[serde(default)]
    pub(super) files: BTreeMap<String, OneOrMore>,
    #[serde(default)]
    pub(super) diff: bool,
    pub(super) check: Option<Vec<String>>,
}

/// The calls of one answer of a script, each `NAME JSON`; or of one chunk, a JSON list.
pub(super) type Step = OneOrMore;

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::More(texts) => texts,
        }
    }
}

impl Row {
    /// Whether a provider plays the row; otherwise a script makes its calls.
    pub(super) fn is_played(&self) -> bool {
        self.deltas.is_some()
            || self.events.is_some()
            || self.stream.is_some()
            || self.status.is_some()
            || self.finish.is_some()
    }

    /// A scene with the files of the row.
    pub(super) fn scene(&self) -> Scene {
        let scene = Scene::new();
        if self.git {
            let mut git = std::process::Command::new("git");
            let done = git
                .args(["init", "-q"])
                .current_dir(scene.file(""))
                .env("HOME", scene.path("home"))
                .status();
            assert!(done.unwrap().success(), "git init");
        }
        for (name, content) in &self.setup {
            scene.write(name, bytes(content));
        }
        scene
    }

    /// A text with the directories of the scene in it.
    pub(super) fn placed(scene: &Scene, text: &str) -> String {
        let dir = |name: &str| scene.path(name).display().to_string();
        text.replace("{project}", &dir("project"))
            .replace("{home}", &dir("home"))
    }

    /// Which files are not as they should be.
    pub(super) fn check_files(&self, scene: &Scene, problems: &mut Vec<String>) {
        for (name, expected) in &self.files {
            let path = scene.file(name);
            let Ok(found) = fs::read(&path) else {
                let stands = fs::symlink_metadata(&path).is_ok();
                if stands || !expected.all().iter().any(|one| one == "-") {
                    problems.push(format!(
                        "file {name:?}: {}",
                        if stands { "a directory" } else { "not there" }
                    ));
                }
                continue;
            };
            if !expected
                .all()
                .iter()
                .any(|one| one != "-" && bytes(one) == found)
            {
                problems.push(format!(
                    "file {name:?}: has \"{}\", not {:?}",
                    found.escape_ascii(),
                    expected.all()
                ));
            }
        }
    }

    /// Which of these words a text says although it should not.
    pub(super) fn check_hidden(&self, text: &str, problems: &mut Vec<String>) {
        for words in self.hides.iter().filter(|words| text.contains(*words)) {
            problems.push(format!("it says {words:?} in {text:?}"));
        }
    }
}

/// Whether a text says one of the words between `|`, in any case.
pub(super) fn says(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    words
        .to_lowercase()
        .split('|')
        .any(|one| text.contains(one))
}

/// The bytes of a text with escapes as in C.
pub(super) fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => panic!("no such escape: {other:?} in {text}"),
        });
    }
    bytes
}
