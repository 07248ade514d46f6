//! `git`: options and settings by which it runs other programs.

use crate::known;
use crate::names::has;
use crate::opaque::OpaqueReason;
use crate::word::Word;

/// Prefixes of settings that start nothing, in lower case.
const HARMLESS: &str = "user. color. advice. column. core.quotepath core.autocrlf core.eol core.abbrev commit.gpgsign=false \
    init.defaultbranch push.default pull.rebase safe.directory";

/// Options of git before the subcommand that take a value.
const VALUES: &str = "-C --git-dir --work-tree --namespace --super-prefix --attr-source";

/// Options of git before the subcommand that only change the output.
const QUIET: &str = "-P -p --no-pager --paginate --no-optional-locks --literal-pathspecs --no-replace-objects --bare \
    --no-lazy-fetch";

/// Subcommands that start nothing, but for what [`CODE`] names. An alias cannot have one of these names.
const PLAIN: &str = "status add commit checkout switch restore branch stash tag reset rm mv clean log show diff reflog blame annotate \
    ls-files ls-tree rev-parse rev-list describe shortlog cherry worktree apply format-patch am count-objects gc \
    check-ignore check-attr merge-base cat-file show-ref show-branch for-each-ref symbolic-ref update-ref hash-object write-tree \
    read-tree name-rev diff-tree diff-index diff-files update-index notes bundle fsck prune repack pack-refs range-diff whatchanged \
    sparse-checkout version mktag stripspace var";

/// Subcommands that start something by themselves.
const STARTERS: &str = "citool daemon difftool filter-branch gui help instaweb maintenance mergetool send-email shell web--browse";

/// Options of these whose value is a command, or that start one, written out or cut short.
const CODE: &str = "--exec --upload-pack --receive-pack --extcmd --open-files-in-pager --ext-diff --template --config --tool \
    --strategy";

/// The reason why the call is opaque, if it may run other programs.
pub(crate) fn runs(arguments: &[Word]) -> Option<OpaqueReason> {
    let code = || Some(OpaqueReason::Code("git".into()));
    let mut at = 0;
    let subcommand = loop {
        let word = arguments.get(at)?;
        let Some(text) = word.literal() else {
            return code();
        };
        at += 1;
        match text {
            "-c" => match arguments
                .get(at)
                .map(|setting| setting.literal().is_some_and(harmless))
            {
                Some(true) => at += 1,
                Some(false) | None => return code(),
            },
            "--version" | "--help" | "-v" | "-h" | "--exec-path" | "--html-path" | "--man-path"
            | "--info-path" => {
                return None;
            }
            value if has(VALUES, value) => match arguments.get(at) {
                Some(value) if !value.splits() => at += 1,
                Some(_) | None => return code(),
            },
            option if has(QUIET, option) => {}
            option
                if option
                    .split_once('=')
                    .is_some_and(|(name, _)| has(VALUES, name)) => {}
            option if option.starts_with('-') => return code(),
            subcommand => break subcommand,
        }
    };
    let rest = arguments.get(at..).unwrap_or_default();
    if subcommand == "config" {
        return sets(rest).then(|| OpaqueReason::Code("git config".into()));
    }
    let plain = match known::recognised(&format!("git-{subcommand}"), rest) {
        Some(recognised) => recognised,
        // Any other subcommand is a program or an alias of that name: its arguments are unknown.
        None if !has(PLAIN, subcommand) => rest.is_empty() && !has(STARTERS, subcommand),
        None => !rest.iter().any(is_code),
    };
    (!plain).then(code).flatten()
}

fn is_code(word: &Word) -> bool {
    let name = word.bare().split('=').next().unwrap_or_default();
    word.bare().contains("::") && word.bare().starts_with("ext::")
        || (name.starts_with("--")
            && name.len() > 2
            && CODE
                .split_whitespace()
                .any(|option| option.starts_with(name)))
}

fn harmless(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    HARMLESS
        .split_whitespace()
        .any(|known| setting.starts_with(known))
        || matches!(setting.as_str(), "core.pager=cat" | "core.pager=")
}

/// Whether `git config` may write a setting that may start something, or write to an unknown place.
fn sets(rest: &[Word]) -> bool {
    const READS: &str = "--get --get-all --get-regexp --list -l --unset --unset-all";
    const FLAGS: &str = "--global --local --system --worktree --show-origin --show-scope --name-only --bool --int --path -z --null \
        --add --replace-all";
    let mut reads = false;
    let mut operands = Vec::new();
    for word in rest {
        let Some(text) = word.literal() else {
            if word.may_be_option() && operands.is_empty() || word.splits() {
                return true;
            }
            operands.push("");
            continue;
        };
        match text {
            option if has(READS, option) => reads |= operands.is_empty(),
            option if has(FLAGS, option) => {}
            option if option.starts_with('-') => return true,
            operand => operands.push(operand),
        }
    }
    let (key, count) = match operands.split_first() {
        Some((&("get" | "list" | "unset"), _)) => return false,
        Some((&"set", rest)) => (rest.first().copied().unwrap_or_default(), rest.len()),
        Some((key, _)) => (*key, operands.len()),
        None => return false,
    };
    !reads && !harmless(key) && count > 1
}
