//! The path of a file that is being written behind an `@`. Reads no directory itself.

use super::exchange::{FoundFiles, Intent};
use super::state::Screen;

/// Paths that may be meant.
#[derive(Clone, Debug, Default)]
pub(super) struct FilePaths {
    known: FoundFiles,
    /// An `@` is being written, and the driver was asked.
    asked: bool,
}

impl FilePaths {
    pub(super) fn know(&mut self, files: FoundFiles) {
        self.known = files;
    }

    /// Not every file is known.
    pub(super) fn is_cut(&self) -> bool {
        self.known.is_cut
    }

    /// Those that have what is written: first where the path or the name begins with it, of these the shortest.
    fn having(&self, written: &str) -> Vec<&str> {
        let written = written.to_lowercase();
        let rank = |path: &&String| {
            let lower = path.to_lowercase();
            let name = lower.rsplit('/').next().unwrap_or_default();
            let begins = lower.starts_with(&written) || name.starts_with(&written);
            (begins || lower.contains(&written)).then_some(!begins)
        };
        let ranked = self
            .known
            .paths
            .iter()
            .filter_map(|path| Some((rank(&path)?, path.len(), path.as_str())));
        let mut found: Vec<_> = ranked.collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, path)| path).collect()
    }
}

impl Screen {
    /// Has the files looked up once a path begins to be written.
    pub(super) fn follow_path(&mut self) {
        let writes = self.composer.file_word().is_some();
        let begins = writes && !self.files.asked;
        self.files.asked = writes;
        let cwd = &self.model.status().host.cwd;
        if begins && !cwd.is_empty() {
            self.outbox.push(Intent::ListFiles(cwd.clone()));
        }
    }

    /// The paths that may be meant, and where the `@` stands.
    pub(super) fn paths(&self) -> Option<(usize, Vec<&str>)> {
        self.composer
            .file_word()
            .map(|(start, written)| (start, self.files.having(written)))
    }
}
