//! What would allow a person's commands what the sandbox refused, read from the notes in their output.

use authority::NOT_CONNECTED;
use builtins::{NO_NETWORK, REFUSED_PATH};
use host::remedy::argument;
use std::path::Path;

/// One line about the first of them.
pub(crate) fn remedy(output: &str) -> Option<String> {
    let notes = || {
        output
            .lines()
            .rev()
            .filter_map(|line| line.strip_prefix('['))
    };
    if let Some((path, reach)) =
        notes().find_map(|note| note.strip_prefix(REFUSED_PATH)?.split_once("; "))
    {
        let path = Path::new(path);
        // Git needs the whole repository: what worktrees, submodules and clones share.
        let repository = path
            .ancestors()
            .find(|dir| dir.to_string_lossy().ends_with(".git"));
        let parent = path.parent().filter(|_| !path.is_dir());
        let dir = argument(repository.or(parent).unwrap_or(path));
        let may_be_read = reach.starts_with("commands can read");
        let read = if may_be_read {
            format!("--add-dir {dir} allows reading, ")
        } else {
            String::new()
        };
        return Some(format!(
            "{REFUSED_PATH}{}; {read}--add-write-dir {dir} allows writing",
            authority::escape(path)
        ));
    }
    if let Some(note) = notes().find(|note| note.starts_with(NOT_CONNECTED)) {
        let note = note.trim_end_matches(']');
        return Some(note.split("; `escalate`").next().unwrap_or(note).to_owned());
    }
    notes().any(|note| note.starts_with(NO_NETWORK)).then(|| {
        "the sandbox refused the network; under [sandbox], network = \"hosts\" allows the ones that `hosts` names and \
         network = \"on\" all, or you, when the model asks"
            .to_owned()
    })
}
