//! Programs and builtins that run what their arguments or their input say.

use crate::opaque::Why;
use crate::word::Word;
use crate::{git, scripts, variables, wrappers};

/// They do it always, or in more ways than can be told apart.
const ALWAYS: &[&str] = &[
    "eval",
    "source",
    ".",
    "fc",
    "bind",
    "compgen",
    "complete",
    "parallel",
    "watch",
    "ssh",
    "script",
    "su",
    "runuser",
    "at",
    "batch",
    "crontab",
    "tmux",
    "screen",
    "gdb",
    "lldb",
    "expect",
    "systemd-run",
    "unshare",
    "nsenter",
    "chroot",
    "flock",
    "strace",
    "ltrace",
    "vi",
    "vim",
    "nvim",
    "view",
    "ex",
    "ed",
    "emacs",
    "entr",
    "ld.so",
    "setpriv",
    "pkexec",
    "taskset",
    "chrt",
    "perf",
    "valgrind",
    "xterm",
    "let",
];

const SHELLS: &[&str] = &["sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"];

/// Interpreters, by how their names begin, with the letters and words that bring code.
const INTERPRETERS: &[(&str, &str, &[&str])] = &[
    ("python", "c", &[]),
    ("pypy", "c", &[]),
    ("perl", "eEMm", &[]),
    ("ruby", "e", &[]),
    ("node", "epr", &["--eval", "--print", "--require", "--import", "--loader"]),
    ("deno", "", &["eval", "repl"]),
    ("bun", "ep", &["--eval", "--print", "--preload"]),
    ("php", "rBRE", &["--run"]),
    ("lua", "el", &[]),
    ("Rscript", "e", &[]),
    ("osascript", "e", &[]),
    ("tclsh", "", &[]),
    ("guile", "c", &[]),
    ("julia", "eE", &["--eval", "--print"]),
];

/// Options of other programs whose value is a command. One letter counts also inside a cluster's beginning.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "-I",
            "-F",
            "--to-command",
            "--use-compress-program",
            "--checkpoint-action",
            "--rsh-command",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["scp", "sftp"], &["-S", "-o", "-D"]),
    (&["sort"], &["--compress-program"]),
    (&["split"], &["--filter"]),
    (&["rg"], &["--pre", "--hostname-bin"]),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    (&["make", "gmake"], &["--eval", "-E"]),
    (&["cargo"], &["--config"]),
    (&["go"], &["-exec", "-toolexec", "-vettool"]),
    (&["man"], &["-P", "-H", "--pager", "--html"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["gcc", "cc", "g++", "c++"], &["-wrapper"]),
];

/// Builtins that set variables, by the names that they are given.
const SETTERS: &[&str] =
    &["export", "declare", "typeset", "local", "readonly", "read", "mapfile", "readarray", "getopts", "printf"];

/// Builtins that expand subscripts in what they are given.
const SUBSCRIPTS: &[&str] = &["test", "[", "unset", "wait"];

/// What a program runs that its arguments do not show as programs.
pub(crate) fn runs(name: &str, arguments: &[Word]) -> Option<Why> {
    let code = || Why::Code(name.to_owned());
    if ALWAYS.contains(&name) || name.starts_with("ld-linux") {
        return Some(code());
    }
    if SHELLS.contains(&name) {
        return shell(arguments).then(code);
    }
    if let Some((_, letters, words)) = INTERPRETERS.iter().find(|(prefix, ..)| interpreter(name, prefix)) {
        return interprets(arguments, letters, words).then(code);
    }
    match name {
        "git" => return git::runs(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => return scripts::awk(arguments).then(code),
        "sed" | "gsed" => return scripts::sed(arguments).then(code),
        "trap" => return trap(arguments).then(code),
        "alias" | "enable" if !arguments.is_empty() => return Some(Why::Redefines(name.to_owned())),
        "hash" if arguments.iter().any(|word| word.bare().starts_with('-')) => {
            return Some(Why::Redefines(name.to_owned()));
        }
        "shopt" | "set" if options(name, arguments) => return Some(Why::Redefines(name.to_owned())),
        _ => {}
    }
    if SETTERS.contains(&name) {
        return sets(name, arguments);
    }
    if SUBSCRIPTS.contains(&name) && arguments.iter().any(expands) {
        return Some(Why::Hidden("a subscript"));
    }
    let table = OPTIONS.iter().find(|(programs, _)| programs.contains(&name)).map_or(&[][..], |(_, options)| options);
    let old_tar = name.ends_with("tar")
        && arguments.first().is_some_and(|first| !first.bare().starts_with('-') && first.bare().contains(['I', 'F']));
    let assigned_shell = name.ends_with("make") && arguments.iter().any(makes);
    let given = arguments.iter().any(|word| table.iter().any(|option| is_option(word.bare(), option)));
    (old_tar || assigned_shell || given).then(code)
}

/// `python`, `python3`, `python3.12`, but not `pythonize`.
fn interpreter(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | 'j' | 's')))
}

/// An option as it may be written: `--pre`, `--pre=x`, an unfinished `--pr`, `-I`, `-Ix`.
fn is_option(text: &str, option: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    match option.starts_with("--") {
        true => name.len() > 3 && name.starts_with("--") && option.starts_with(name),
        false if option.len() == 2 => text.starts_with(option) && !text.starts_with("--"),
        false => name == option,
    }
}

/// `make SHELL=x`, `make -f -`.
fn makes(word: &Word) -> bool {
    let text = word.bare();
    matches!(text, "-" | "-f-" | "/dev/stdin")
        || wrappers::assignment(word).is_some_and(|set| variables::decides(&set.name))
        || word.literal().is_none() && text.contains("SHELL")
}

/// A shell runs code unless it is given a script, and nothing that comes before that one is unknown.
fn shell(arguments: &[Word]) -> bool {
    for word in arguments {
        match word.literal() {
            Some("--version" | "--help") => return false,
            Some("--norc" | "--noprofile" | "--posix" | "--login") => {}
            Some(option) if option.starts_with('-') && option.len() > 1 => {
                if !option.chars().skip(1).all(|c| "euxvfl".contains(c)) {
                    return true;
                }
            }
            Some(script) => return is_input(script),
            None => return true,
        }
    }
    true
}

/// Names of what is open already.
fn is_input(path: &str) -> bool {
    path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")
}

fn interprets(arguments: &[Word], letters: &str, words: &[&str]) -> bool {
    let mut after_option = false;
    for word in arguments {
        let Some(text) = word.literal() else { return true };
        if words.iter().any(|code| is_option(text, code) || text == *code) {
            return true;
        }
        match text.strip_prefix('-') {
            Some("V" | "-version" | "h" | "-help" | "v") => return false,
            Some("") => return true,
            Some(long) if long.starts_with('-') => after_option = true,
            Some(cluster) => {
                // What follows a module's name is that module's.
                if cluster == "m" && !letters.contains('m') {
                    return false;
                }
                if cluster.chars().any(|c| letters.contains(c)) {
                    return true;
                }
                after_option = true;
            }
            None if is_input(text) => return true,
            None if !after_option => return false,
            None => after_option = false,
        }
    }
    // Nothing to run was named: it reads its input.
    true
}

fn trap(arguments: &[Word]) -> bool {
    match arguments.first() {
        None => false,
        Some(first) => !matches!(first.literal(), Some("" | "-" | "-p" | "-l")),
    }
}

/// Whether `set` or `shopt` changes how the rest is read.
fn options(name: &str, arguments: &[Word]) -> bool {
    const NAMES: [&str; 13] = [
        "pipefail",
        "errexit",
        "nounset",
        "xtrace",
        "noglob",
        "nullglob",
        "globstar",
        "dotglob",
        "nocaseglob",
        "failglob",
        "inherit_errexit",
        "noclobber",
        "verbose",
    ];
    let known = |word: &Word| match word.literal() {
        Some(text) if name == "set" && text.starts_with(['-', '+']) => {
            text.chars().skip(1).all(|c| "-euxfCvo".contains(c))
        }
        Some(text) if text.starts_with('-') => matches!(text, "-s" | "-u" | "-q" | "-p"),
        Some(text) => NAMES.contains(&text),
        None => false,
    };
    let positional = name == "set" && arguments.first().and_then(Word::literal) == Some("--");
    !positional && !arguments.iter().all(known)
}

/// Builtins that set what they name.
fn sets(name: &str, arguments: &[Word]) -> Option<Why> {
    let is_printf = name == "printf";
    if is_printf && !arguments.first().is_some_and(|first| first.bare().starts_with("-v") || first.literal().is_none())
    {
        return None;
    }
    for word in arguments {
        let text = word.bare();
        let option = text.strip_prefix('-').filter(|_| word.literal().is_some());
        if let Some(letters) = option {
            if matches!(name, "declare" | "typeset" | "local") && letters.contains(['i', 'n']) {
                return Some(Why::Hidden("arithmetic and references"));
            }
            if matches!(name, "mapfile" | "readarray") && letters.contains('C') {
                return Some(Why::Code(name.to_owned()));
            }
            if is_printf && letters.strip_prefix('v').is_some_and(variables::decides) {
                return Some(Why::Variable(text.to_owned()));
            }
        }
        if expands(word) {
            return Some(Why::Hidden("a subscript"));
        }
        let set = text.split(['=', '[', '+']).next().unwrap_or_default();
        match wrappers::assignment(word) {
            Some(assignment) if variables::dangerous(&assignment) => return Some(Why::Variable(assignment.name)),
            Some(_) => {}
            None if variables::decides(set) => return Some(Why::Variable(set.to_owned())),
            // The name itself is known only when it runs.
            None if word.literal().is_none() && !is_printf => return Some(Why::Variable(word.raw().to_owned())),
            None => {}
        }
    }
    None
}

/// A literal in which a builtin would find a command.
fn expands(word: &Word) -> bool {
    word.bare().contains('[') && (word.bare().contains("$(") || word.bare().contains('`'))
}
