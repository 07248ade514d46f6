//! Classifying files that may hold secrets, by their names. Permissions are checked elsewhere.

use super::locate::Located;
use super::workspace::Workspace;
use crate::{Error, ErrorKind};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Names at any depth, in the syntax of `.gitignore`; files below a directory of such a name are included.
const NAMES: [&str; 9] = [
    ".env*",
    "!.env.example",
    "*.pem",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "id_*_sk",
    ".netrc",
    "credentials*.json",
];

/// A file that holds a secret only where a line of it sets one.
const NPMRC: &str = ".npmrc";

/// The most bytes of it that are read; a longer file counts as holding a secret.
const MAX_NPMRC: u64 = 64 << 10;

/// The most globs that can be added, and the longest, in bytes.
const MAX_GLOBS: usize = 256;
const MAX_GLOB: usize = 1024;

/// The names of files that may hold secrets, which tools ask about before they read. Letter case is ignored, as on some
/// file systems.
#[derive(Clone, Debug)]
pub struct SecretNames {
    added: Vec<String>,
    /// Built when a path is first asked about: a start asks about none, and building takes longer than most of it.
    set: Arc<OnceLock<Option<Gitignore>>>,
}

impl SecretNames {
    /// The built-in names and these: a glob without `/` matches names at any depth, one with `/` paths below a root.
    ///
    /// # Errors
    /// `FixInput` for an invalid glob, one that would remove names, and for more than 256.
    pub fn with(globs: &[String]) -> Result<Self, Error> {
        let wrong = |text: String| Error::new(ErrorKind::FixInput, text);
        if globs.len() > MAX_GLOBS {
            return Err(wrong(format!(
                "{} globs; at most {MAX_GLOBS} are read",
                globs.len()
            )));
        }
        for glob in globs {
            let shown = crate::escape(Path::new(glob));
            if glob.trim().is_empty() || glob.len() > MAX_GLOB || glob.contains(['\n', '\0']) {
                return Err(wrong(format!(
                    "`{shown}` has {} bytes; expected 1 to {MAX_GLOB} on one line",
                    glob.len()
                )));
            }
            let never = glob.starts_with(['!', '#', '~'])
                || glob.split('/').any(|part| matches!(part, "." | ".."));
            if never {
                let text = format!(
                    "`{shown}` adds nothing: write a name or a path below the project, without `!`, `#` or `~` before it and without `.` and `..` in it"
                );
                return Err(wrong(text));
            }
        }
        let set = OnceLock::new();
        if !globs.is_empty() {
            set.set(Some(
                built(globs).map_err(|error| wrong(error.to_string()))?,
            ))
            .ok();
        }
        Ok(Self {
            added: globs.to_vec(),
            set: Arc::new(set),
        })
    }

    /// Whether a path, relative to a root, is or lies below one of these names. Does not read the disk.
    pub fn matches(&self, relative: &Path) -> bool {
        let set = self.set.get_or_init(|| built(&self.added).ok());
        !relative.has_root()
            && set
                .as_ref()
                .is_none_or(|set| set.matched_path_or_any_parents(relative, false).is_ignore())
    }
}

/// The built-in names and these.
fn built(added: &[String]) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(true)?;
    for glob in NAMES.into_iter().chain(added.iter().map(String::as_str)) {
        builder.add_line(None, glob)?;
    }
    builder.build()
}

impl Workspace {
    /// Whether a file may hold secrets, by its path below its root; for `.npmrc`, by its content.
    pub fn may_hold_secrets(&self, at: &Located) -> bool {
        let npmrc = at
            .relative()
            .file_name()
            .is_some_and(|name| name.eq_ignore_ascii_case(NPMRC));
        self.secret_names().matches(at.relative()) || (npmrc && self.sets_a_token(at))
    }

    fn sets_a_token(&self, at: &Located) -> bool {
        let file = match self.open_file(at) {
            Ok(file) => file,
            // A missing file holds no secret; an unreadable one may.
            Err(error) => return !error.is_not_found(),
        };
        let mut bytes = Vec::new();
        if file.take(MAX_NPMRC + 1).read_to_end(&mut bytes).is_err()
            || bytes.len() as u64 > MAX_NPMRC
        {
            return true;
        }
        String::from_utf8_lossy(&bytes).lines().any(|line| {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let key = key.to_ascii_lowercase();
            let value = value.trim().trim_matches(['"', '\'']);
            // A reference to a variable is no token.
            let variable = value.starts_with("${") && value.find('}') == value.len().checked_sub(1);
            ["_auth", "_password"].iter().any(|name| key.contains(name)) && !variable
        })
    }
}
