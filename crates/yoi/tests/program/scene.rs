//! A home directory with a project, and the program in it.

use super::ROLE;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Scene {
    home: tempfile::TempDir,
    vars: BTreeMap<String, String>,
}

pub(crate) struct Ended {
    code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self {
            home: tempfile::tempdir().unwrap(),
            vars: BTreeMap::new(),
        };
        scene.write("project/.git/HEAD", "");
        scene
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn config(&self, text: &str) {
        self.write(".config/yoi/config.toml", text);
    }

    /// The same home with a variable.
    pub(crate) fn with(&self, name: &str, value: &str) -> Borrowed<'_> {
        Borrowed {
            scene: self,
            vars: self
                .vars
                .clone()
                .into_iter()
                .chain([(name.to_owned(), value.to_owned())])
                .collect(),
        }
    }

    /// A script that calls `Tell` with each of these, and then answers.
    pub(crate) fn script(&self, calls: &[(&str, &str)]) {
        let call = |(what, at): &(&str, &str)| {
            serde_json::json!({ "calls": [{ "name": "Tell", "arguments": { "what": what, "at": at } }] }).to_string()
        };
        let lines: Vec<String> = calls
            .iter()
            .map(call)
            .chain(["{\"text\":\"done\"}".to_owned()])
            .collect();
        self.write("project/answers.jsonl", &lines.join("\n"));
    }

    pub(crate) fn yoi(&self, args: &[&str]) -> Ended {
        run(self.home(), &self.vars, args)
    }
}

/// A scene with more variables.
pub(crate) struct Borrowed<'a> {
    scene: &'a Scene,
    vars: BTreeMap<String, String>,
}

impl Borrowed<'_> {
    pub(crate) fn yoi(&self, args: &[&str]) -> Ended {
        run(self.scene.home(), &self.vars, args)
    }

    /// No file below the home has these bytes, but those named.
    #[track_caller]
    pub(crate) fn nowhere(&self, value: &str, but: &[&str]) {
        let mut todo: Vec<PathBuf> = vec![self.scene.home().to_path_buf()];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    todo.push(path);
                } else if entry.file_type().unwrap().is_file()
                    && !but.iter().any(|name| path.ends_with(name))
                {
                    let bytes = std::fs::read(&path).unwrap();
                    let found = bytes
                        .windows(value.len())
                        .any(|window| window == value.as_bytes());
                    assert!(!found, "{}", path.display());
                }
            }
        }
    }
}

fn run(home: &Path, vars: &BTreeMap<String, String>, args: &[&str]) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(args)
        .current_dir(home.join("project"))
        .env_clear();
    command
        .env(ROLE, "1")
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .envs(vars);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}
