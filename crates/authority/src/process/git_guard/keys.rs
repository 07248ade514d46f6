//! The keys of git's configuration that make git run a program, or read configuration that does. Reads no file.
//!
//! A table lists the known keys. Names that suggest a command count, too, to cover later versions of git and related
//! programs. A false positive is reverted and reported; a false negative would run.

use super::config::Entry;

/// Section and name; `*` for every name. A subsection makes no difference.
const KEYS: &str = "core.attributesfile core.editor core.gitproxy core.hookspath core.pager core.virtualfilesystem \
    sequence.editor include.* includeif.* init.templatedir protocol.* filter.clean filter.smudge filter.process \
    diff.external diff.textconv difftool.path mergetool.path browser.path man.path man.viewer web.browser \
    help.browser instaweb.* interactive.difffilter remote.receivepack remote.uploadpack remote.vcs \
    sendemail.smtpserver imap.tunnel hook.* svn.authorsprog svn-remote.authorsprog lfs.path lfs.clean \
    lfs.smudge lfs.standalonetransferagent";

/// Keys that count unless the value is a truth value, which only switches a feature of git on or off.
const COMMANDS: &str = "core.fsmonitor pager.*";

/// Words in the name of a key whose value is a command.
const TELLING: &str = "askpass cmd command driver editor exec helper hook pager prog textconv";

/// The commands and options that an alias may contain: they run no program that the alias names.
const ALIASED: &str = "add blame branch checkout cherry-pick clean commit describe diff fetch log ls-files merge pull push reflog \
    remote reset restore revert rev-parse rm shortlog show stash status switch tag";
const ALIAS_OPTIONS: &str = "--abbrev-commit --all --amend --cached --color --decorate --graph --hard --name-only --no-edit --oneline \
    --pretty=oneline --prune --rebase --short --soft --staged --stat -1 -a -am -b -d -m -p -r -s -sb -u -v -vv";

/// A directory outside of the project that children may write and that is not watched.
const SHARED: &[u8] = b"/dev/shm";

/// Whether git would run a program or read more configuration because of this entry.
pub(super) fn runs_code(entry: &Entry) -> bool {
    let (section, subsection) = entry.parts();
    let value = entry.value.as_deref().unwrap_or_default();
    let command = !is_truth(entry.value.as_deref());
    let is_key = |key: &str| {
        let (of, name) = key.split_once('.').unwrap_or((key, "*"));
        section == of.as_bytes() && (name == "*" || entry.name == name.as_bytes())
    };
    let listed =
        KEYS.split_whitespace().any(is_key) || command && COMMANDS.split_whitespace().any(is_key);
    let name = String::from_utf8_lossy(&entry.name);
    let telling = !matches!(section, b"advice" | b"alias" | b"color")
        && TELLING.split_whitespace().any(|word| name.contains(word))
        && command;
    let alias = section == b"alias" && !harmless_alias(value);
    listed
        || telling
        || alias
        || says_command(value)
        || (section == b"url" && leads_away(subsection))
}

/// `!command`, a transport helper (`ext::sh …`), or a place that children share.
fn says_command(value: &[u8]) -> bool {
    value.starts_with(b"!") || leads_away(value)
}

fn leads_away(text: &[u8]) -> bool {
    let scheme = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        .count();
    let helper = scheme > 0
        && text
            .get(scheme..)
            .is_some_and(|rest| rest.starts_with(b"::"));
    helper || text.windows(SHARED.len()).any(|part| part == SHARED)
}

/// Whether git reads a value as a truth value: no value, certain words, and numbers.
fn is_truth(value: Option<&[u8]>) -> bool {
    let Some(value) = value else { return true };
    let value = value.to_ascii_lowercase();
    let number = value.iter().all(u8::is_ascii_digit);
    number
        || matches!(
            value.as_slice(),
            b"true" | b"false" | b"yes" | b"no" | b"on" | b"off"
        )
}

fn harmless_alias(value: &[u8]) -> bool {
    let plain = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._/@^~".contains(&byte))
    };
    let Ok(value) = std::str::from_utf8(value) else {
        return false;
    };
    let mut words = value.split(' ').filter(|word| !word.is_empty());
    let has = |list: &str, word: &str| list.split_whitespace().any(|listed| listed == word);
    words.next().is_some_and(|command| has(ALIASED, command))
        && words.all(|word| plain(word) || has(ALIAS_OPTIONS, word))
}
