//! What the process was started with: directories, variables, terminals, features. Read once, here.

use crate::added::AddedFeatures;
use crate::exit::{Exit, Failure};
use crate::words::Words;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// What one process was started with.
#[derive(Clone, Debug, Default)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    /// The working directory, or what `-C` says.
    pub cwd: PathBuf,
    pub stdout_terminal: bool,
    pub stderr_terminal: bool,
    pub stdin_terminal: bool,
    /// What the program has beside the built-in features.
    pub added: AddedFeatures,
    pub words: Words,
}

impl Env {
    /// Reads the process; `directory` is what `-C` says.
    pub fn of_process(
        directory: Option<&Path>,
        added: AddedFeatures,
        words: Words,
    ) -> Result<Self, Failure> {
        let started = std::env::current_dir().map_err(|e| {
            Failure::new(
                Exit::Unavailable,
                format!(
                    "the working directory cannot be read: {}",
                    authority::explain(&e)
                ),
            )
        })?;
        let cwd = directory.map_or_else(|| started.clone(), |dir| started.join(dir));
        let cwd = cwd.canonicalize().map_err(|e| {
            Failure::new(
                Exit::Usage,
                format!(
                    "-C: {}",
                    authority::explain_at(&authority::escape(&cwd), &e)
                ),
            )
            .help("name an existing directory after -C")
        })?;
        if !cwd.is_dir() {
            return Err(Failure::new(
                Exit::Usage,
                format!("-C: {} is not a directory", authority::escape(&cwd)),
            )
            .help("name an existing directory after -C"));
        }
        Ok(Self {
            vars: std::env::vars_os().collect(),
            cwd,
            stdout_terminal: std::io::stdout().is_terminal(),
            stderr_terminal: std::io::stderr().is_terminal(),
            stdin_terminal: std::io::stdin().is_terminal(),
            added,
            words,
        })
    }

    /// These variables alone, in no directory and at no terminal.
    #[must_use]
    pub fn with(vars: &[(&str, &Path)]) -> Self {
        Self {
            vars: vars
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            ..Self::default()
        }
    }

    /// The same environment in another directory.
    pub fn in_dir(&self, dir: &Path) -> Self {
        Self {
            cwd: dir.to_owned(),
            ..self.clone()
        }
    }

    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// The same, if it is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.var(name).and_then(OsStr::to_str)
    }

    /// All variables.
    pub fn vars(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The home directory.
    ///
    /// # Errors
    /// HOME is not an absolute path.
    pub fn home(&self) -> Result<PathBuf, Failure> {
        self.var("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
            .ok_or_else(|| {
                Failure::new(Exit::Config, "HOME is not set to an absolute path")
                    .help("set HOME, or set XDG_STATE_HOME and XDG_CONFIG_HOME")
            })
    }

    /// `TMPDIR`, or `/tmp`.
    pub fn temp_dir(&self) -> PathBuf {
        let named = self
            .var("TMPDIR")
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute());
        named.unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// `$XDG_STATE_HOME/yoi`.
    pub fn state_dir(&self) -> Result<PathBuf, Failure> {
        self.xdg("XDG_STATE_HOME", ".local/state")
    }

    /// `$XDG_CONFIG_HOME/yoi`.
    pub fn config_dir(&self) -> Result<PathBuf, Failure> {
        self.xdg("XDG_CONFIG_HOME", ".config")
    }

    /// `$XDG_CACHE_HOME/yoi`.
    pub fn cache_dir(&self) -> Result<PathBuf, Failure> {
        self.xdg("XDG_CACHE_HOME", ".cache")
    }

    /// Makes a path of a configuration file absolute: `~/` is the home directory, others are below `base`.
    pub fn resolve(&self, path: &mut PathBuf, base: Option<&Path>) -> Result<(), Failure> {
        *path = match path.strip_prefix("~") {
            Ok(rest) => self.home()?.join(rest),
            Err(_) => base.unwrap_or(&self.cwd).join(&path),
        };
        Ok(())
    }

    /// A path for people and reports: below the home or configuration directory by that, not by its place on this
    /// machine.
    pub fn shown(&self, path: &Path) -> String {
        let bases = [
            ("~", "HOME"),
            ("$XDG_CONFIG_HOME", "XDG_CONFIG_HOME"),
            ("$XDG_STATE_HOME", "XDG_STATE_HOME"),
        ];
        let below = |(name, variable): (&str, &str)| {
            let base = self
                .var(variable)
                .map(Path::new)
                .filter(|base| base.is_absolute() && *base != Path::new("/"))?;
            let rest = path.strip_prefix(base).ok()?;
            Some(if rest.as_os_str().is_empty() {
                name.to_owned()
            } else {
                format!("{name}/{}", authority::escape(rest))
            })
        };
        bases
            .into_iter()
            .find_map(below)
            .unwrap_or_else(|| authority::escape(path))
    }

    /// A text in which places below the home directory stand as `~`.
    pub fn homeless(&self, text: &str) -> String {
        let real = self.home().ok().and_then(|home| home.canonicalize().ok());
        let homes = [self.home().ok(), real]
            .into_iter()
            .flatten()
            .filter(|home| home != Path::new("/"));
        homes.fold(text.to_owned(), |text, home| {
            home.to_str()
                .map_or(text.clone(), |home| text.replace(home, "~"))
        })
    }

    /// As the base directory specification says: a relative value is ignored.
    fn xdg(&self, variable: &str, default: &str) -> Result<PathBuf, Failure> {
        let set = self
            .var(variable)
            .map(Path::new)
            .filter(|path| path.is_absolute());
        let base = match set {
            Some(path) => path.to_path_buf(),
            None => self.home()?.join(default),
        };
        Ok(base.join("yoi"))
    }

    /// Whether standard error may be coloured.
    pub fn colour(&self) -> bool {
        if self
            .text("CLICOLOR_FORCE")
            .is_some_and(|force| force != "0")
        {
            return true;
        }
        self.var("NO_COLOR").is_none() && self.stderr_terminal && self.text("TERM") != Some("dumb")
    }
}

/// Where a directory is or would be.
pub fn settled(dir: &Path) -> PathBuf {
    let known = dir
        .ancestors()
        .find_map(|there| Some((there, there.canonicalize().ok()?)));
    known.map_or_else(
        || dir.to_path_buf(),
        |(there, real)| match dir.strip_prefix(there) {
            Ok(rest) => real.join(rest),
            Err(_) => real,
        },
    )
}
