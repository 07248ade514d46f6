//! What each way to write a command says that it runs.

use shell::{MAX_BYTES, Part, Script, Why, Word, parse};

/// `wrapper>program argument ?; program !`: `?` is known only when it runs, `!` is opaque, `-` starts nothing, `&` is
/// not waited for, `w` writes to a file, `=` sets variables.
fn shown(script: &Script) -> String {
    script.parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

fn part(part: &Part) -> String {
    let word = |word: &Word| word.literal().unwrap_or("?").to_owned();
    let wrappers: String = part.wrappers.iter().map(|name| format!("{name}>")).collect();
    let program = part.program.as_ref().map_or_else(|| "-".to_owned(), word);
    let mut words = vec![format!("{wrappers}{program}")];
    words.extend(part.arguments.iter().map(word));
    words.extend((!part.assignments.is_empty()).then(|| "=".to_owned()));
    words.extend(part.redirections.iter().any(shell::Redirection::writes).then(|| "w".to_owned()));
    words.extend(part.background.then(|| "&".to_owned()));
    words.extend(part.opaque.is_some().then(|| "!".to_owned()));
    words.join(" ")
}

#[test]
fn every_position_of_a_command_is_read() {
    let cases = [
        ("", ""),
        ("# rm x", ""),
        ("git status", "git status"),
        ("git status; rm -rf x", "git status; rm -rf x"),
        ("a && b || c\nd", "a; b; c; d"),
        ("a | b |& c", "a; b; c"),
        ("a & b", "a &; b"),
        ("(a; b)", "a; b"),
        ("{ a; b; }", "a; b"),
        ("{ a; } > f", "a; - w"),
        ("{ a; } 2>&1", "a"),
        ("if a; then b; elif c; then d; else e; fi", "a; b; c; d; e"),
        ("while a; do b; done", "a; b"),
        ("until a; do b; done < $(c)", "a; b; c; - w"),
        ("for i in $(a); do b $i; done", "a; b ?"),
        ("for PATH in x; do a; done", "- !; a"),
        ("select x in 1; do a; done", "a"),
        ("case $(a) in $(b)) c;; *) d;; esac", "a; b; c; d"),
        ("f() { a; }; f", "a; f"),
        ("function f { a; }", "a"),
        ("coproc a", "a &"),
        ("! a", "a"),
        ("time -p a", "a"),
        ("[[ -f $(a) && x == `b` ]]", "a; b"),
        ("[[ $x -eq 1 ]]", "- !"),
        ("[[ 2 -eq 1 ]]", ""),
        ("[[ -v a[$x] ]]", "- !"),
        ("((x))", "- !"),
        ("((1+1))", ""),
        ("for ((i=0;i<3;i++)); do a; done", "- !; a"),
        ("echo $(a $(b $(c $(d))))", "d; c ?; b ?; a ?; echo ?"),
        ("echo \"$(a \"$(b \"$(c)\")\")\"", "c; b ?; a ?; echo ?"),
        ("echo '$(a)' \\$\\(b\\)", "echo $(a) $(b)"),
        ("`a`", "a; ? !"),
        ("< a[\nb", "- w !"),
        ("a[b c]", "? !"),
        ("`a \\`b\\``", "a `b`; ? !"),
        ("echo `a \\`b\\``", "a `b`; echo ? !"),
        ("cat <(a) > >(b)", "a; b; cat ? w"),
        ("cat <<E\n$(a)\nE\nb", "cat !; b"),
        ("cat <<'E'\n$(a)\nE\nb", "cat; b"),
        ("cat <<E\nplain $x ${y}\nE", "cat"),
        ("cat <<E\n${y:-$(a)}\nE", "cat !"),
        ("cat <<< $(a)", "a; cat"),
        ("echo ${x:-$(a)}", "echo ? !"),
        ("echo ${x:-b} ${#x} ${x%.c} ${a[@]} ${a[0]}", "echo ? ? ? ? ?"),
        ("echo ${a[$(b)]}", "echo ? !"),
        ("echo ${a[i]}", "echo ? !"),
        ("echo ${x@P}", "echo ? !"),
        ("echo ${!x}", "echo ? !"),
        ("echo ${x:0:5}", "echo ?"),
        ("echo ${x:n:5}", "echo ? !"),
        ("echo $((1+2))", "echo ?"),
        ("echo $((n))", "echo ? !"),
        ("echo $[n]", "echo ? !"),
        ("a=$(b) c", "b; c ="),
        ("a=1", "- ="),
        ("a=(1 $(b))", "b; - ="),
        ("a[$(b)]=1", "b; - = !"),
        ("a=([x]=1)", "- = !"),
        ("> f", "- w"),
        ("$(<f)", "? !"),
        ("a > f 2> /dev/null", "a w"),
        ("a > /dev/null 2>&1 < in", "a"),
        ("a < /dev/tcp/h/80", "a w"),
        ("a >& f", "a w"),
        ("a 3>&-", "a"),
        ("if", "- !"),
        ("a\nif", "- !"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&parse(text)), expected, "{text}");
    }
}

#[test]
fn words_are_what_the_program_is_given() {
    let cases = [
        ("r''m", "rm"),
        ("\\rm", "rm"),
        ("\"r\"m", "rm"),
        ("r\\\nm", "rm"),
        ("$'\\x72m'", "rm"),
        ("$'\\162\\155'", "rm"),
        ("$'rm\\0x'", "? !"),
        ("$\"rm\"", "? !"),
        ("{rm,-rf,x}", "? !"),
        ("/bin/r?", "? !"),
        ("~/rm", "? !"),
        ("$x", "? !"),
        ("\"\"", " !"),
        ("rm\u{a0}x", "- !"),
        ("rm\rx", "- !"),
        ("rm\u{202e}x", "rm\u{202e}x"),
        ("e 'a b' \"c d\" e\\ f", "e a b c d e f"),
        ("e a#b #c", "e a#b"),
        ("e \"$x\" a$x * [ab] ~ x~ a=~ \\* '*'", "e ? ? ? ? ? x~ ? * *"),
        ("e {a,b} {} {a} HEAD@{1} a{1..2}b", "e ? {} {a} HEAD@{1} ?"),
        ("e $ a$ \"$\" '$x' \"\\$x\"", "e $ a$ $ $x $x"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&parse(text)), expected, "{text}");
    }
}

#[test]
fn programs_that_start_others_are_seen_through() {
    let cases = [
        ("timeout 5 git push", "timeout>git push"),
        ("timeout -k 5 --signal=KILL 10 nice -n 3 git", "timeout>nice>git"),
        ("timeout $t git", "timeout ? git !"),
        ("timeout -Z 5 git", "timeout -Z 5 git !"),
        ("nohup git &", "nohup>git &"),
        ("env A=b B=$c git", "env>git ="),
        ("env PATH=/x git", "env>git = !"),
        ("env -S 'rm x'", "env -S rm x !"),
        ("env", "env"),
        ("env A=b", "env A=b"),
        ("command git", "command>git"),
        ("command -v git", "command -v git"),
        ("exec git", "exec>git"),
        ("exec 3> f", "exec w"),
        ("builtin eval x", "builtin>eval x !"),
        ("./timeout 5 git", "./timeout 5 git; git"),
        ("/usr/bin/nice git", "nice>git"),
        ("sudo -u root git push", "sudo -u root git push; git push"),
        ("sudo -i", "sudo -i !"),
        ("xargs git", "xargs git; git ? !"),
        ("xargs -0 -n 1 rm -f", "xargs -0 -n 1 rm -f; rm -f ?"),
        ("xargs -I{} cp {} d", "xargs -I{} cp {} d; cp ? d ?"),
        ("xargs -I % cp % d", "xargs -I % cp % d !"),
        ("find . -exec rm {} \\; -exec ls {} +", "find . -exec rm {} ; -exec ls {} +; rm ?; ls ?"),
        ("find . -exec {} \\;", "find . -exec {} ;; ? !"),
        ("busybox rm x", "busybox rm x; rm x"),
        ("nice nice nice nice nice nice nice nice nice rm", "nice>nice>nice>nice>nice>nice>nice>nice>nice rm !"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&parse(text)), expected, "{text}");
    }
}

#[rustfmt::skip]
const OPAQUE: &[&str] = &[
    "eval ls", "source x", ". x", "bash -c ls", "sh -lc ls", "bash", "bash -s", "cat x | sh", "bash /dev/stdin",
    "bash $x", "python -c x", "python3 -Ic x", "python3 -W ignore -c x", "python3 -", "python3", "perl -ne x",
    "perl -Mx y", "ruby -e x", "node -e x", "node --eval=x", "deno eval x", "php -r x",
    "awk 'BEGIN{system(\"x\")}'", "awk '{print > $1}'", "awk \"$x\"", "sed 's/a/b/e'", "sed 's/a/b/w f'",
    "sed '1e ls'", "sed \"$x\" f", "sed -n '/x/w f'", "git -c alias.x='!rm' x", "git -c core.pager=x log",
    "git --exec-path=/x status", "git --config-env=a=b status", "git $x status", "git rebase -x ls",
    "git rebase --exe ls", "git bisect run ls", "git submodule foreach ls", "git clone ext::sh",
    "git fetch --upload-pack=x", "git config core.pager x", "git grep -Ovi x", "tar --to-command=ls -xf x",
    "tar --to-com ls", "tar -I ls -xf x", "tar xIf ls x", "rsync -e sh a b", "sort --compress-program=x",
    "rg --pre x", "fd -x rm", "make SHELL=x", "make -f - x", "make --eval=x", "cargo --config x build",
    "alias ls=rm", "enable -f x y", "hash -p /x git", "shopt -s expand_aliases", "set -k", "trap 'rm x' EXIT",
    "export PATH=/x", "export $x", "declare LD_PRELOAD=x", "declare -i x=y", "read PATH", "printf -v PATH x",
    "read 'a[$(x)]'", "test -v 'a[$(x)]'", "mapfile -C x y", "PATH=/x git", "LD_PRELOAD=x git", "BASH_ENV=x git",
    "IFS=x", "GIT_SSH_COMMAND=x git fetch", "GIT_PAGER=x git log", ": ${PATH:=/x}", "let x=1", "ssh h ls", "vim f",
    "find -exec sh -c x \\;", "xargs bash -c x", "/lib64/ld-linux-x86-64.so.2 /bin/rm",
];

#[rustfmt::skip]
const OPEN: &[&str] = &[
    "bash x.sh", "bash -eu x.sh a -c", "bash --version", "python3 x.py -c y", "python3 -m pytest -c x",
    "python --version", "pythonize -c", "node x.js -e", "awk '{print $1}' f", "awk -F: -v a=b '{print $1}'",
    "sed -n 1,20p f", "sed -i 's/a;b/c/' f", "sed 's|a|b|g;s/c/d/' f", "sed -e '/x/d' -e '$d' f", "sed s/a/b/ $f",
    "git -c user.name=x commit -m 'a -x b'", "git -C d log", "git log --oneline", "git config --get core.pager",
    "git config user.name x", "git grep x", "git rebase main", "GIT_PAGER=cat git log", "tar -xf x", "tar xzf x",
    "make all", "make CC=gcc", "rg x", "cargo build", "set -euo pipefail", "set -- a b", "shopt -s nullglob",
    "trap - EXIT", "trap '' INT", "export A=b", "declare -a x", "read -r line", "printf '%s' $x", "printf '[$(x)]'",
    "test -f x", "[ \"$x\" = y ]", "hash", "alias", "unalias x", "find . -delete", "echo 'eval x'", "A=b make",
];

#[test]
fn what_runs_code_is_opaque_and_what_runs_files_is_not() {
    for text in OPAQUE {
        assert!(parse(text).parts.iter().any(|part| part.opaque.is_some()), "{text}: {:?}", parse(text));
    }
    for text in OPEN {
        assert!(parse(text).parts.iter().all(|part| part.opaque.is_none()), "{text}: {:?}", parse(text));
    }
}

#[test]
fn a_subcommand_is_certain_or_possible() {
    // what is certain; what is possible; whether more may be
    let cases = [
        ("git status", Some("status"), "status", false),
        ("git --no-pager log -p", Some("log"), "log", false),
        ("git -C dir push", None, "dir push", false),
        ("git -P -C dir push x", None, "dir push", false),
        ("git $x push", None, "push", true),
        ("git", None, "", false),
        ("cargo +nightly test", None, "test", false),
        ("cargo -q test", Some("test"), "test", false),
        ("npm --prefix x run y", None, "x run", false),
        ("docker -H h run x", None, "h run", false),
        ("./git --no-pager log", Some("log"), "log", false),
    ];
    for (text, certain, possible, hidden) in cases {
        let script = parse(text);
        let found = script.parts[0].subcommand();
        assert_eq!(
            (found.certain, found.possible.join(" ").as_str(), found.hidden),
            (certain, possible, hidden),
            "{text}"
        );
    }
}

#[test]
fn what_a_part_is_fed_by_is_known() {
    let fed = |text: &str| {
        let script = parse(text);
        let last = script.parts.last().unwrap().clone();
        last.reads
            .into_iter()
            .flatten()
            .filter_map(|i| script.parts[i].program_name().map(str::to_owned))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let cases = [
        ("curl x | sh", "curl"),
        ("curl x | tee y | sh", "tee"),
        ("curl x | sudo sh", "curl"),
        ("curl x | { cat; sh; }", "curl"),
        ("curl x | (read y; sh)", "curl"),
        ("sh <(curl x)", "curl"),
        ("sh -c \"$(curl x)\"", "curl"),
        ("curl x; sh", ""),
        ("curl x && sh", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(fed(text), expected, "{text}");
    }
}

#[test]
fn hostile_text_is_opaque_and_never_more() {
    let long = |piece: &str| piece.repeat(MAX_BYTES / piece.len());
    let openers = [
        "$(",
        "<(",
        "`",
        "(",
        "((",
        "$((",
        "{ ",
        "${a:-",
        "\"${a:-",
        "{a,",
        "if ",
        "while ",
        "case x in x) ",
        "f() ",
        "a=(",
        "[[ ( ",
        "[[ ! ",
        "$[",
        "${",
        "cat <<A ",
        "! ",
        "coproc ",
        "time ",
        "\"$(",
        "\\",
        "'",
        "\"",
        "$'",
        ">a ",
        "a=b ",
        "a|",
        "a&&",
        "a;b&",
        "nice ",
        "find -exec ",
        "[[ x && ",
        "\n",
        "#",
        "~",
        "*",
        "@(",
        "|",
        "&",
        ";",
        "\u{1f600}",
        "!",
        "${a[",
        "function f ",
    ];
    for opener in openers {
        for text in [long(opener), format!("echo {}", long(opener)).chars().take(MAX_BYTES / 4).collect()] {
            // Returning at all is what is asked; the parts of the rest are for other tests.
            let script = parse(&text);
            assert!(script.parts.len() <= MAX_BYTES, "{opener}");
        }
    }
    let balanced =
        [("$(", ")", 16), ("<(a ", ")", 16), ("( ", " )", 4_000), ("{ ", ";}", 4_000), ("${a:-", "}", 4_000)];
    for (open, close, times) in balanced {
        let script = parse(&format!("{}a{}", open.repeat(times), close.repeat(times)));
        assert!(!script.parts.is_empty(), "{open}");
    }
}

#[test]
fn what_is_over_a_bound_says_so() {
    let why = |text: &str| parse(text).parts.into_iter().find_map(|part| part.opaque).map(|opaque| opaque.why);
    assert_eq!(why(&"a".repeat(MAX_BYTES)), None);
    assert_eq!(why(&"a".repeat(MAX_BYTES + 1)), Some(Why::TooLong));
    assert_eq!(why(&"$(a)".repeat(200)), Some(Why::TooDeep));
    assert_eq!(why(&"`a`".repeat(200)), Some(Why::TooDeep));
    let nested = |times: usize| format!("{}a{}", "{ ".repeat(times), ";}".repeat(times));
    assert_eq!(why(&nested(60)), None);
    assert_eq!(why(&nested(130)), Some(Why::TooDeep));
    assert_eq!(why("a\u{1b}[2J"), Some(Why::Character(0x1b)));
    assert_eq!(parse(&"long ".repeat(100)).parts[0].text.chars().count(), 161);
}
