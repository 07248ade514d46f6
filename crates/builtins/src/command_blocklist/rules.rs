//! The rules for destructive commands, checked for each part. Does not depend on settings other than patterns.

use shell::{CommandLine, OpaqueReason, Part, RedirectKind, Word, base_name, is_named};
use std::borrow::Cow;

/// The rule for parts that do not even show which program runs.
const UNREADABLE: &str = "unreadable";

/// Deepest code in code that is read: `bash -c "sh -c '…'"`.
const MAX_DEPTH: usize = 4;

/// A part of a command that matches a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlockedCommand {
    pub(super) rule: &'static str,
    /// The part, for people.
    pub(super) text: String,
    /// What the part does, for the message.
    pub(super) why: Cow<'static, str>,
}

/// The first part of a command that matches a rule or a pattern.
pub(super) fn find(text: &str, patterns: &[String]) -> Option<BlockedCommand> {
    within(text, patterns, 0)
}

/// The same, else the first part that cannot be checked.
pub(super) fn check(text: &str, patterns: &[String]) -> Option<BlockedCommand> {
    find(text, patterns).or_else(|| unread(text, 0))
}

/// The rule for parts whose program is known, and not all that it runs. These run.
pub(super) const UNCHECKED: &str = "unchecked";

/// The first part that the text does not show. Code that is handed literally to a shell is text.
fn unread(text: &str, depth: usize) -> Option<BlockedCommand> {
    shell::parse(text).parts.iter().find_map(|part| {
        let opaque = part.opaque.as_ref()?;
        let rule = match opaque {
            OpaqueReason::Code(_) => match code(part) {
                Some(code) if depth < MAX_DEPTH => return unread(&code, depth + 1),
                Some(_) => UNREADABLE,
                None => UNCHECKED,
            },
            OpaqueReason::Redefines(_) | OpaqueReason::Variable(_) | OpaqueReason::Hidden(_) => {
                UNCHECKED
            }
            OpaqueReason::TooLong | OpaqueReason::TooDeep | OpaqueReason::Character(_) => {
                UNREADABLE
            }
            OpaqueReason::Syntax(_) | OpaqueReason::Ambiguous | OpaqueReason::Program => UNREADABLE,
            OpaqueReason::Wrapper(_) => UNREADABLE,
        };
        Some(BlockedCommand {
            rule,
            text: part.text.clone(),
            why: format!("cannot be checked: {opaque}").into(),
        })
    })
}

fn within(text: &str, patterns: &[String], depth: usize) -> Option<BlockedCommand> {
    let script = shell::parse(text);
    if let Some(function) = bomb(&script) {
        let why = "starts copies of itself without end";
        return Some(BlockedCommand {
            rule: "fork-bomb",
            text: format!("{function}()"),
            why: why.into(),
        });
    }
    for (at, part) in script.parts.iter().enumerate() {
        let earlier = script.parts.get(..at).unwrap_or_default();
        if let Some((rule, why)) = judge(&script, earlier, part, patterns) {
            return Some(BlockedCommand {
                rule,
                text: part.text.clone(),
                why: why.into(),
            });
        }
        if let Some(found) = code(part)
            .filter(|_| depth < MAX_DEPTH)
            .and_then(|code| within(&code, patterns, depth + 1))
        {
            return Some(found);
        }
    }
    None
}

fn judge(
    script: &CommandLine,
    earlier: &[Part],
    part: &Part,
    patterns: &[String],
) -> Option<(&'static str, &'static str)> {
    if redirects_to_device(part) {
        return Some(("device", "writes over a device"));
    }
    let name = part.program_name()?;
    let arguments: Vec<&str> = part.arguments.iter().map(Word::bare).collect();
    let last_is_device = || arguments.last().is_some_and(|path| is_disk(path));
    let paths: Vec<&str> = part.arguments.iter().map(expanded).collect();
    if removes_root(name, &paths, earlier) {
        return Some(("root", "removes the system or a home directory"));
    }
    match name {
        "sudo" | "doas" | "su" | "pkexec" | "run0" => {
            return Some(("privilege", "acts as another user"));
        }
        "mke2fs" | "mkswap" | "wipefs" | "blkdiscard" => {
            return Some(("file-system", "creates or wipes a file system"));
        }
        _ if name == "mkfs" || name.starts_with("mkfs.") => {
            return Some(("file-system", "creates or wipes a file system"));
        }
        "dd" if arguments
            .iter()
            .any(|a| a.strip_prefix("of=").is_some_and(is_device)) =>
        {
            return Some(("device", "writes over a device"));
        }
        "tee" if arguments.iter().any(|path| is_disk(path)) => {
            return Some(("device", "writes over a device"));
        }
        "cp" | "mv" | "install" if last_is_device() => {
            return Some(("device", "writes over a device"));
        }
        "shred" if arguments.iter().any(|path| is_disk(path)) => {
            return Some(("device", "writes over a device"));
        }
        _ => {}
    }
    if powers_off(name, &arguments) {
        return Some(("power", "stops or restarts the machine"));
    }
    if runs_download(script, part) {
        return Some(("download", "runs downloaded code without review"));
    }
    patterns
        .iter()
        .any(|pattern| fits(pattern, name, &arguments))
        .then_some(("pattern", "is on the user's own list"))
}

/// A word as far as a shell expands it: a quoted `~` is a file of that name.
fn expanded(word: &Word) -> &str {
    let quoted = |text: &str| text.starts_with(['~', '$']) || text.contains('*');
    word.literal()
        .map_or(word.bare(), |text| if quoted(text) { "" } else { text })
}

/// Whether a part matches the user's pattern: the program, then words that must all be among the arguments.
fn fits(pattern: &str, name: &str, arguments: &[&str]) -> bool {
    let mut words = pattern.split_whitespace();
    words
        .next()
        .is_some_and(|program| is_named(name, base_name(program)))
        && words.all(|word| arguments.contains(&word))
}

/// `rm -r` or `find -delete` of the root, of a directory of the system or of a home.
fn removes_root(name: &str, arguments: &[&str], earlier: &[Part]) -> bool {
    let options = || {
        arguments
            .iter()
            .take_while(|argument| **argument != "--")
            .filter(|a| a.starts_with('-'))
    };
    let letter = |letters: &[char]| options().any(|a| !a.starts_with("--") && a.contains(letters));
    let removes = match name {
        "rm" => {
            letter(&['r', 'R']) || options().any(|a| a.len() > 3 && "--recursive".starts_with(*a))
        }
        "find" => arguments.contains(&"-delete"),
        _ => return false,
    };
    let forced = name == "rm" && arguments.contains(&"--no-preserve-root");
    let at_root = || earlier.iter().any(goes_to_root);
    let target = |argument: &&str| {
        is_root(argument)
            || (matches!(*argument, "." | "./" | "*" | "./*" | ".." | "../*") && at_root())
    };
    removes && (forced || arguments.iter().any(target))
}

/// `cd /`, `cd ~`, `cd`.
fn goes_to_root(part: &Part) -> bool {
    let mut targets = part
        .arguments
        .iter()
        .map(Word::bare)
        .filter(|argument| !argument.starts_with('-'));
    matches!(part.program_name(), Some("cd" | "pushd")) && targets.next().is_none_or(is_root)
}

/// Whether a path, as written, is the root, a directory of the system, a home, or all that is in one of them.
fn is_root(path: &str) -> bool {
    const SYSTEM: [&str; 16] = [
        "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sbin",
        "srv", "sys", "usr", "var",
    ];
    let home = |rest: &str| {
        rest.split('/')
            .all(|part| matches!(part, "" | "." | "*" | ".*"))
    };
    for name in ["$HOME", "${HOME}"] {
        if let Some(rest) = path.strip_prefix(name) {
            return home(rest);
        }
    }
    if let Some(rest) = path.strip_prefix('~') {
        let (user, rest) = rest.split_once('/').unwrap_or((rest, ""));
        return user
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            && home(rest);
    }
    let Some(rest) = path.strip_prefix('/') else {
        return false;
    };
    let mut parts = rest
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | "*" | ".*" | ".."));
    let first = parts.next();
    let second = parts.next();
    let third = parts.next();
    match (first, second, third) {
        (None, ..) => true,
        (Some(first), None, _) => SYSTEM.contains(&first),
        // A home directory.
        (Some("home"), Some(_), None) => true,
        (Some(_), Some(_), _) => false,
    }
}

fn is_device(path: &str) -> bool {
    const HARMLESS: [&str; 9] = [
        "null", "zero", "full", "stdout", "stderr", "stdin", "tty", "random", "urandom",
    ];
    path.strip_prefix("/dev/").is_some_and(|name| {
        !HARMLESS.contains(&name)
            && !["fd/", "shm/", "pts/"]
                .iter()
                .any(|directory| name.starts_with(directory))
    })
}

/// A block device by the names that Linux gives them.
fn is_disk(path: &str) -> bool {
    const DISKS: [&str; 15] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "md", "disk/", "mapper/", "ram",
        "sr", "zram", "nbd",
    ];
    path.strip_prefix("/dev/")
        .is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

fn redirects_to_device(part: &Part) -> bool {
    part.redirections
        .iter()
        .any(|to| to.kind == RedirectKind::Write && is_disk(to.target.bare()))
}

fn powers_off(name: &str, arguments: &[&str]) -> bool {
    let asks = |words: &[&str]| arguments.iter().any(|argument| words.contains(argument));
    match name {
        "shutdown" => !asks(&["-c", "--help", "--show"]),
        "reboot" | "halt" | "poweroff" => !asks(&["--help", "--version"]),
        "init" | "telinit" => asks(&["0", "6"]),
        "systemctl" => asks(&[
            "poweroff",
            "reboot",
            "halt",
            "kexec",
            "rescue",
            "emergency",
            "soft-reboot",
        ]),
        _ => false,
    }
}

/// A function that starts itself twice, where nothing waits for it.
fn bomb(script: &CommandLine) -> Option<&str> {
    let grows = |name: &str, body: &[Part]| {
        let itself = || body.iter().filter(|part| part.program_name() == Some(name));
        itself().count() > 1 && itself().any(|part| part.background || !part.reads.is_empty())
    };
    let found = script.functions.iter().find(|function| {
        grows(
            &function.name,
            script.parts.get(function.body.clone()).unwrap_or_default(),
        )
    });
    found.map(|function| function.name.as_str())
}

/// Whether an interpreter runs downloaded code, from its input or from inside a word.
fn runs_download(script: &CommandLine, part: &Part) -> bool {
    let runs_code = matches!(part.opaque, Some(OpaqueReason::Code(_)));
    let dynamic = part
        .arguments
        .iter()
        .any(|argument| argument.literal().is_none());
    // With `-c` and `-e` the code is an argument, and the piped input is only data.
    let brings = |argument: &Word| {
        let text = argument.bare();
        !text.starts_with('-')
            || (!text.starts_with("--") && text.contains(['c', 'e']))
            || text.starts_with("--e")
    };
    let from_input = !part.arguments.iter().any(brings)
        || part
            .arguments
            .iter()
            .any(|argument| argument.bare() == "-s");
    runs_code && (dynamic || from_input) && fed_by_download(script, part)
}

/// Whether a part reads a download, through any number of pipes.
fn fed_by_download(script: &CommandLine, part: &Part) -> bool {
    // The parts that a part reads from are before it, so one backward pass is enough.
    let mut feeds = vec![false; script.parts.len()];
    mark(&mut feeds, part);
    for at in (0..script.parts.len()).rev() {
        let Some(from) = script
            .parts
            .get(at)
            .filter(|_| feeds.get(at) == Some(&true))
        else {
            continue;
        };
        if matches!(
            from.program_name(),
            Some("curl" | "wget" | "fetch" | "aria2c" | "lwp-request" | "http" | "https")
        ) {
            return true;
        }
        mark(&mut feeds, from);
    }
    false
}

fn mark(feeds: &mut [bool], part: &Part) {
    for range in &part.reads {
        feeds
            .iter_mut()
            .take(range.end)
            .skip(range.start)
            .for_each(|fed| *fed = true);
    }
}

/// Code that a part hands literally to a shell.
fn code(part: &Part) -> Option<String> {
    let words: Option<Vec<&str>> = part.arguments.iter().map(Word::literal).collect();
    let words = words?;
    match part.program_name()? {
        "eval" => Some(words.join(" ")),
        "trap" => words.first().map(|first| (*first).to_owned()),
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" => {
            let at = words.iter().position(|word| {
                word.starts_with('-') && !word.starts_with("--") && word.contains('c')
            })?;
            words.get(at + 1).map(|code| (*code).to_owned())
        }
        _ => None,
    }
}
