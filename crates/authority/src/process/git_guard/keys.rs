//! Which keys of git's configuration make it run something, or read what does. No file is read here.
//!
//! Known keys stand in a table; beside it, names that say so themselves count, so that keys of later versions of git and
//! of programs beside it do. A key too many is put back and told; a key too few runs.

use super::config::Entry;

/// What a value must look like to count.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// Any but a truth value, which switches git's own on or off.
    Command,
}

/// Section, name, and when it counts; `*` for every name. A subsection makes no difference.
const KEYS: &[(&str, &str, When)] = &[
    ("core", "attributesfile", When::Always),
    ("core", "editor", When::Always),
    ("core", "fsmonitor", When::Command),
    ("core", "gitproxy", When::Always),
    ("core", "hookspath", When::Always),
    ("core", "pager", When::Always),
    ("core", "virtualfilesystem", When::Always),
    ("sequence", "editor", When::Always),
    ("pager", "*", When::Command),
    ("include", "*", When::Always),
    ("includeif", "*", When::Always),
    ("init", "templatedir", When::Always),
    ("protocol", "*", When::Always),
    ("filter", "clean", When::Always),
    ("filter", "smudge", When::Always),
    ("filter", "process", When::Always),
    ("diff", "external", When::Always),
    ("diff", "textconv", When::Always),
    ("difftool", "path", When::Always),
    ("mergetool", "path", When::Always),
    ("browser", "path", When::Always),
    ("man", "path", When::Always),
    ("man", "viewer", When::Always),
    ("web", "browser", When::Always),
    ("help", "browser", When::Always),
    ("instaweb", "*", When::Always),
    ("interactive", "difffilter", When::Always),
    ("remote", "receivepack", When::Always),
    ("remote", "uploadpack", When::Always),
    ("remote", "vcs", When::Always),
    ("sendemail", "smtpserver", When::Always),
    ("imap", "tunnel", When::Always),
    ("hook", "*", When::Always),
    ("svn", "authorsprog", When::Always),
    ("svn-remote", "authorsprog", When::Always),
    ("lfs", "path", When::Always),
    ("lfs", "clean", When::Always),
    ("lfs", "smudge", When::Always),
    ("lfs", "standalonetransferagent", When::Always),
];

/// What stands in the name of a key whose value is a command.
const TELLING: &[&str] =
    &["askpass", "cmd", "command", "driver", "editor", "exec", "helper", "hook", "pager", "prog", "textconv"];

/// The commands that an alias may stand for, and the options that it may give them: these run nothing of the alias's.
const ALIASED: &[&str] = &[
    "add",
    "blame",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "describe",
    "diff",
    "fetch",
    "log",
    "ls-files",
    "merge",
    "pull",
    "push",
    "reflog",
    "remote",
    "reset",
    "restore",
    "revert",
    "rev-parse",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];
const ALIAS_OPTIONS: &[&str] = &[
    "--abbrev-commit",
    "--all",
    "--amend",
    "--cached",
    "--color",
    "--decorate",
    "--graph",
    "--hard",
    "--name-only",
    "--no-edit",
    "--oneline",
    "--pretty=oneline",
    "--prune",
    "--rebase",
    "--short",
    "--soft",
    "--staged",
    "--stat",
    "-1",
    "-a",
    "-am",
    "-b",
    "-d",
    "-m",
    "-p",
    "-r",
    "-s",
    "-sb",
    "-u",
    "-v",
    "-vv",
];

/// Where children may write beside the project, and nothing is watched.
const SHARED: &[u8] = b"/dev/shm";

/// Whether git, on reading this, would run something or read more configuration.
pub(super) fn runs_code(entry: &Entry) -> bool {
    let (section, subsection) = entry.parts();
    let value = entry.value.as_deref().unwrap_or_default();
    let listed = KEYS.iter().any(|(of, name, when)| {
        let matches = section == of.as_bytes() && (*name == "*" || entry.name == name.as_bytes());
        matches
            && match when {
                When::Always => true,
                When::Command => !is_truth(entry.value.as_deref()),
            }
    });
    let name = String::from_utf8_lossy(&entry.name);
    let telling = !matches!(section, b"advice" | b"alias" | b"color")
        && TELLING.iter().any(|word| name.contains(word))
        && !is_truth(entry.value.as_deref());
    let alias = section == b"alias" && !harmless_alias(value);
    listed || telling || alias || says_command(value) || (section == b"url" && leads_away(subsection))
}

/// `!command`, a transport helper (`ext::sh …`), or a place that children share.
fn says_command(value: &[u8]) -> bool {
    value.starts_with(b"!") || leads_away(value)
}

fn leads_away(text: &[u8]) -> bool {
    let scheme = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
    let helper = scheme > 0 && text.get(scheme..).is_some_and(|rest| rest.starts_with(b"::"));
    helper || text.windows(SHARED.len()).any(|part| part == SHARED)
}

/// What git reads as a truth value: nothing, words and numbers.
fn is_truth(value: Option<&[u8]>) -> bool {
    let Some(value) = value else { return true };
    let value = value.to_ascii_lowercase();
    let number = value.iter().all(u8::is_ascii_digit);
    number || matches!(value.as_slice(), b"true" | b"false" | b"yes" | b"no" | b"on" | b"off")
}

fn harmless_alias(value: &[u8]) -> bool {
    let plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/@^~".contains(&byte))
    };
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let mut words = value.split(' ').filter(|word| !word.is_empty());
    words.next().is_some_and(|command| ALIASED.contains(&command))
        && words.all(|word| plain(word) || ALIAS_OPTIONS.contains(&word))
}
