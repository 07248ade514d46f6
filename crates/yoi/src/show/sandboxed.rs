//! What would allow a person's commands what the sandbox refused.

use crate::remedy::argument;
use protocol::record::CommandEnd;
use std::path::Path;

/// One line about the first of them.
pub(crate) fn remedy(command: &CommandEnd) -> Option<String> {
    if let Some(path) = &command.path {
        let path = Path::new(path);
        // Git needs the whole repository: what worktrees, submodules and clones share.
        let repository = path
            .ancestors()
            .find(|dir| dir.to_string_lossy().ends_with(".git"));
        let parent = path.parent().filter(|_| !path.is_dir());
        let dir = argument(repository.or(parent).unwrap_or(path));
        let read = if command.may_read {
            String::new()
        } else {
            format!("--add-dir {dir} allows reading, ")
        };
        return Some(format!(
            "the sandbox refused access to {}; {read}--add-write-dir {dir} allows writing",
            authority::escape(path)
        ));
    }
    if let Some(hosts) = &command.hosts {
        return Some(hosts.clone());
    }
    command.no_network.then(|| {
        "the sandbox refused the network; under [sandbox], network = \"hosts\" allows the ones that `hosts` names and \
         network = \"on\" all, or you, when the model asks"
            .to_owned()
    })
}
