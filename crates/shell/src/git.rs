//! `git`: options and settings by which it runs other programs.

use crate::opaque::Why;
use crate::word::Word;

/// Settings that start nothing, by how they begin, in lower case.
const HARMLESS: [&str; 13] = [
    "user.",
    "color.",
    "advice.",
    "column.",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.abbrev",
    "commit.gpgsign=false",
    "init.defaultbranch",
    "push.default",
    "pull.rebase",
    "safe.directory",
];

/// Options of it, before the subcommand, that take a value.
const VALUES: [&str; 6] = ["-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"];

/// Options of subcommands whose value is a command.
const CODE: [&str; 10] = [
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--extcmd",
    "--open-files-in-pager",
    "--ext-diff",
    "--template",
    "--config",
    "--tool",
    "--sign-off-command",
];

/// Whether the call runs something of its own.
pub(crate) fn runs(arguments: &[Word]) -> Option<Why> {
    let code = || Some(Why::Code("git".into()));
    let mut at = 0;
    let subcommand = loop {
        let word = arguments.get(at)?;
        let Some(text) = word.literal() else { return code() };
        at += 1;
        match text {
            "-c" => match arguments.get(at).map(|setting| setting.literal().is_some_and(harmless)) {
                Some(true) => at += 1,
                Some(false) | None => return code(),
            },
            "--exec-path" | "--html-path" | "--man-path" | "--info-path" => {}
            value if VALUES.contains(&value) => at += 1,
            option if option.starts_with("--exec-path=") || option.starts_with("--config-env") => return code(),
            option if option.starts_with('-') => {}
            subcommand => break subcommand,
        }
    };
    let rest = arguments.get(at..).unwrap_or_default();
    let has = |wanted: &str| rest.iter().any(|word| word.literal() == Some(wanted));
    let starts = |wanted: &str| rest.iter().any(|word| word.bare().starts_with(wanted));
    let by_subcommand = match subcommand {
        "filter-branch" | "daemon" | "send-email" | "mergetool" | "instaweb" | "shell" => true,
        "bisect" => has("run"),
        "submodule" => has("foreach"),
        "rebase" => starts("-x"),
        "grep" => starts("-O"),
        "difftool" => starts("-x"),
        "fetch" | "fetch-pack" | "ls-remote" | "clone" | "pull" => starts("-u") || starts("-c"),
        "config" => return sets(rest).then(|| Why::Code("git config".into())),
        _ => false,
    };
    let by_option = rest.iter().any(|word| {
        let name = word.bare().split('=').next().unwrap_or_default();
        word.bare().starts_with("ext::")
            || (name.starts_with("--") && name.len() > 3 && CODE.iter().any(|option| option.starts_with(name)))
    });
    (by_subcommand || by_option).then(code).flatten()
}

fn harmless(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    HARMLESS.iter().any(|known| setting.starts_with(known))
        || matches!(setting.as_str(), "core.pager=cat" | "core.pager=")
}

/// Whether `git config` writes a setting that may start something.
fn sets(rest: &[Word]) -> bool {
    let reads = |word: &Word| {
        let text = word.bare();
        matches!(text, "get" | "list" | "-l" | "--list" | "unset")
            || text.starts_with("--get")
            || text.starts_with("--unset")
    };
    if rest.iter().any(reads) {
        return false;
    }
    let mut plain = rest.iter().filter(|word| !word.bare().starts_with('-') && word.literal() != Some("set"));
    let key = plain.next();
    let known = key.and_then(Word::literal).is_some_and(harmless);
    !known && plain.next().is_some()
}
