//! Programs and builtins that run code from their arguments or their input.

use crate::names::{forms, has, versionless};
use crate::opaque::OpaqueReason;
use crate::word::Word;
use crate::{git, known, scripts, variables, wrappers};

/// Programs that always do so, or in too many ways to distinguish.
const ALWAYS: &str = "docker-compose gdbserver eval source . fc bind compgen complete let parallel watch ssh script su runuser at batch crontab tmux screen gdb lldb \
    expect systemd-run unshare nsenter chroot flock strace ltrace vi vim nvim view ex ed emacs entr ld.so setpriv pkexec \
    taskset chrt perf valgrind xterm vimdiff rvim rview gvim nano pico joe kak hx micro helix mg red dbus-run-session \
    dbus-launch start-stop-daemon run-parts capsh choom prlimit setarch linux32 linux64 i386 x86_64 uname26 numactl \
    cpulimit softlimit setlock chpst setuidgid envdir envuidgid runit sg newgrp ksu sudoedit run0 machinectl fakeroot \
    fakechroot proot bwrap firejail catchsegv multitime hyperfine pexec rlwrap unbuffer empty dtach abduco byobu tmate \
    openvt reptyr sshpass ssh-agent mosh autossh rlogin rsh telnet ftp lftp ncftp socat nc ncat netcat dc gnuplot m4 nmap \
    tcpdump openvpn logrotate logsave run-mailcap debugfs ip mount cpio pax xdg-open mail mailx mutt busctl gcore bpftrace \
    systemtap stap rr heaptrack kcov uftrace psql mysql mariadb sqlite3 mongo mongosh isql redis-cli irb pry ipython \
    ipython3 jshell jjs jrunscript groovy scala kotlin ghci ghc runghc runhaskell erl iex swipl sbcl clisp clj clojure R \
    octave maxima gp ginsh slsh pwsh powershell xonsh elvish nu yash es rc posh tcl wish expectk cpan gem easy_install \
    ansible ansible-playbook ansible-console salt puppet knife vagrant virsh lxc lxc-exec systemd-nspawn toolbox distrobox \
    flatpak snap nix-shell nix direnv dotenv chronic ts tsp errno ifne vipe vidir conda mamba micromamba pyenv rbenv \
    nodenv asdf mise volta nvm fnm ant sbt lein bazel buck just task invoke fab scons waf nodemon forever pm2 concurrently \
    cross-env dotenvx env-cmd cargo-watch watchexec reflex air foreman honcho supervisord tex latex pdflatex xelatex \
    lualatex pdftex xetex luatex latexmk dvips ghostscript gs aria2c certbot w3m lynx elinks rpm rpmbuild dpkg dpkg- \
    buildpackage debuild fakeroot-tcp installp apt-key aptitude run-one git-shell gitk git-gui tig lazygit gh hub glab svn \
    hg cvs bzr fossil jj kubectx helm terragrunt aws gcloud az timelimit chronos sem env_parallel xe rush fzf sk dialog \
    whiptail peco ranger nnn mc lf vifm enscript groff troff nroff eqn pic tbl sash scanmem rtorrent service update- \
    alternatives xdotool yelp zathura gimp wireshark tshark ispell aspell crash dmsetup dosbox mosquitto cobc";

/// Builtins that set variables, by the names that they are given.
const SETTERS: &str = "export declare typeset local readonly read mapfile readarray getopts printf";

/// The reason why a program is opaque, if it runs code that its arguments do not show as programs. `bare`: its name is
/// the first word, without quotes.
pub(crate) fn runs(name: &str, bare: bool, arguments: &[Word]) -> Option<OpaqueReason> {
    let code = || OpaqueReason::Code(name.to_owned());
    if forms(name).any(|name| has(ALWAYS, name) || has(ALWAYS, versionless(name)))
        || name.starts_with("ld-linux")
    {
        return Some(code());
    }
    if let Some(recognised) = known::recognised(name, arguments) {
        return (!recognised).then(code);
    }
    match name {
        "git" => git::runs(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => scripts::awk(arguments).then(code),
        "sed" | "gsed" => scripts::sed(arguments).then(code),
        "trap" => trap(arguments).then(code),
        "alias" | "enable" if !arguments.is_empty() => {
            Some(OpaqueReason::Redefines(name.to_owned()))
        }
        "hash"
            if !arguments.iter().all(plain_name)
                && !matches!(arguments, [word] if word.literal() == Some("-r")) =>
        {
            Some(OpaqueReason::Redefines(name.to_owned()))
        }
        "shopt" | "set" if options(name, arguments) => {
            Some(OpaqueReason::Redefines(name.to_owned()))
        }
        "test" | "[" => tests(arguments).then_some(OpaqueReason::Hidden("a subscript")),
        "unset" | "wait" => names(name, arguments),
        setter if has(SETTERS, setter) => sets(name, bare, arguments),
        _ => None,
    }
}

/// The files that a call runs by their names, each with its arguments.
pub(crate) fn files(name: &str, arguments: &[Word]) -> Vec<Vec<Word>> {
    let at = arguments
        .iter()
        .position(|word| word.literal() == Some("-f"));
    match name {
        "source" | "." => vec![arguments.to_vec()],
        "awk" | "gawk" | "mawk" | "nawk" => at
            .and_then(|at| arguments.get(at + 1..))
            .map(<[Word]>::to_vec)
            .into_iter()
            .collect(),
        // `git-push` in git's directory of programs is `git push`.
        _ => match name.strip_prefix("git-") {
            Some(subcommand) => {
                vec![[&[Word::plain("git"), Word::plain(subcommand)], arguments].concat()]
            }
            None => known::files(name, arguments),
        },
    }
}

fn plain_name(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./+".contains(c))
    })
}

/// `unset` and `wait`: a name known only at run time may have a subscript, which is expanded.
fn names(name: &str, arguments: &[Word]) -> Option<OpaqueReason> {
    for word in arguments {
        // `-p` takes a name, so a word known only at run time must not be an option.
        let last = matches!(word.raw(), "$!" | "\"$!\"");
        let job = word.bare().starts_with('%') && !word.may_be_option();
        let process = name == "wait" && (last || job || word.literal() == Some("-n"));
        let option = name == "unset" && matches!(word.literal(), Some("-v" | "-f"));
        if process || option {
            continue;
        }
        match word.literal() {
            Some(variable) if name == "unset" && variables::decides(variable) => {
                return Some(OpaqueReason::Variable(variable.to_owned()));
            }
            Some(_) if plain_name(word) => {}
            Some(_) | None => return Some(OpaqueReason::Hidden("a subscript")),
        }
    }
    None
}

/// `test` expands subscripts of variables that it looks up, and an operator may be known only at run time.
fn tests(arguments: &[Word]) -> bool {
    let asks = |word: &Word| matches!(word.literal(), Some("-v" | "-R"));
    let looked_up = arguments
        .iter()
        .zip(arguments.iter().skip(1))
        .any(|(word, next)| asks(word) && !plain_name(next));
    // Each may be an operator, or several words; one alone, or with a known operator before or behind it, is not.
    let words = match arguments {
        [words @ .., last] if last.literal() == Some("]") => words,
        words => words,
    };
    let words = match words {
        [first, words @ ..] if first.literal() == Some("!") => words,
        words => words,
    };
    let operator = |word: &Word| {
        word.literal()
            .is_some_and(|text| has("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef", text))
    };
    let unary = |word: &Word| {
        word.literal()
            .is_some_and(|text| text.len() == 2 && text.starts_with('-') && !asks(word))
    };
    let splits = words.iter().any(Word::splits);
    let settled = match words {
        [_] => true,
        [first, _] => unary(first),
        [_, middle, _] => operator(middle),
        words => words.iter().all(|word| word.literal().is_some()),
    };
    looked_up || splits || !settled
}

fn trap(arguments: &[Word]) -> bool {
    match arguments.first() {
        None => false,
        Some(first) => !matches!(first.literal(), Some("" | "-" | "-p" | "-l")),
    }
}

/// Whether `set` or `shopt` changes how the rest is read.
fn options(name: &str, arguments: &[Word]) -> bool {
    const NAMES: &str = "pipefail errexit nounset xtrace noglob nullglob globstar dotglob nocaseglob failglob inherit_errexit \
        noclobber verbose";
    let known = |word: &Word| match word.literal() {
        Some(text) if name == "set" && text.starts_with(['-', '+']) => {
            text.chars().skip(1).all(|c| "-euxfCvo".contains(c))
        }
        Some(text) if text.starts_with('-') => matches!(text, "-s" | "-u" | "-q" | "-p"),
        Some(text) => has(NAMES, text),
        None => false,
    };
    let positional = name == "set" && arguments.first().and_then(Word::literal) == Some("--");
    !positional && !arguments.iter().all(known)
}

/// Builtins that set the variables that they name.
fn sets(name: &str, bare: bool, arguments: &[Word]) -> Option<OpaqueReason> {
    if name == "printf" {
        return printf(arguments);
    }
    let declares = matches!(
        name,
        "export" | "declare" | "typeset" | "local" | "readonly"
    );
    let mut arguments = arguments.iter();
    let mut arrays = false;
    while let Some(word) = arguments.next() {
        let text = word.bare();
        if let Some(option) = word
            .literal()
            .filter(|text| text.len() > 1 && text.starts_with(['-', '+']))
        {
            arrays |= option.contains(['a', 'A']);
            let known = match name {
                "read" => "r s e",
                "mapfile" | "readarray" => "t",
                "getopts" => "",
                _ => "a A g l p r u x f F I",
            };
            let values = if name == "read" {
                "d n N p t u a"
            } else {
                "d n O s u"
            };
            let letters = option.get(1..).unwrap_or_default();
            let is = |list: &str, c: char| {
                list.split(' ')
                    .any(|listed| listed.starts_with(c) && !listed.is_empty())
            };
            let last = letters.chars().next_back().unwrap_or(' ');
            let flags = letters.chars().all(|c| is(known, c));
            let valued = !declares
                && is(values, last)
                && letters.chars().rev().skip(1).all(|c| is(known, c));
            if !flags && !valued {
                return Some(OpaqueReason::Hidden("arithmetic and references"));
            }
            if valued && last != 'a' {
                let value = arguments.next()?;
                if value.splits() {
                    return Some(OpaqueReason::Hidden("arithmetic and references"));
                }
            }
            continue;
        }
        match wrappers::assignment(word).filter(|_| declares) {
            Some(set) if variables::dangerous(&set) => {
                return Some(OpaqueReason::Variable(set.name));
            }
            Some(set) if set.value.splits() && !(bare && is_unsplit(word, &set.name)) => {
                return Some(OpaqueReason::Variable(word.raw().to_owned()));
            }
            // The value of an array is parsed again as words, quoted or not.
            Some(set) if arrays && !plain_value(&set.value) => {
                return Some(OpaqueReason::Hidden("an array"));
            }
            // So is the value of a variable that already is an array, if it is in parentheses at run time.
            Some(set)
                if matches!(name, "declare" | "typeset" | "local")
                    && !begins_plainly(&set.value) =>
            {
                return Some(OpaqueReason::Hidden("an array"));
            }
            Some(set) if set.value.bare().starts_with('(') => {
                return Some(OpaqueReason::Hidden("an array"));
            }
            Some(_) => {}
            None if variables::decides(text) => {
                return Some(OpaqueReason::Variable(text.to_owned()));
            }
            None if name == "getopts" && !word.splits() && text.contains(':') => {}
            // The name itself is known only at run time, or has a subscript.
            None if !plain_name(word) => {
                return Some(OpaqueReason::Variable(word.raw().to_owned()));
            }
            None => {}
        }
    }
    None
}

/// Whether bash takes it for an assignment when it reads it, so that what is expanded in it stays one word: the name
/// and the sign are not quoted, and no braces make several of it.
fn is_unsplit(word: &Word, variable: &str) -> bool {
    let value = word
        .raw()
        .strip_prefix(variable)
        .and_then(|rest| rest.strip_prefix('='));
    value.is_some_and(|value| !value.replace("${", "").contains('{'))
}

/// Whether a value cannot begin with a parenthesis.
fn begins_plainly(value: &Word) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/');
    value.bare().starts_with(first) || value.literal().is_some_and(|text| !text.starts_with('('))
}

fn plain_value(value: &Word) -> bool {
    value
        .literal()
        .is_some_and(|text| !text.contains(['$', '`', '[', '(']))
}

/// `printf -v NAME`: only a first word that may be an option matters.
fn printf(arguments: &[Word]) -> Option<OpaqueReason> {
    let first = arguments.first()?;
    match first.literal() {
        None => first
            .may_be_option()
            .then(|| OpaqueReason::Variable(first.raw().to_owned())),
        Some("--") => None,
        Some("-v") => match arguments.get(1) {
            Some(name) if plain_name(name) && !variables::decides(name.bare()) => None,
            Some(name) => Some(OpaqueReason::Variable(name.raw().to_owned())),
            None => None,
        },
        Some(text) if text.starts_with("-v") => Some(OpaqueReason::Variable(text.to_owned())),
        // A width by name, or a count of what was written, sets or reads nothing that runs.
        Some(_) => None,
    }
}
