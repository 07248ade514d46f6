//! What each way to write a command says that it runs.

use shell::{CommandLine, MAX_BYTES, OpaqueReason, Part, Word, parse};

/// `wrapper>program argument ?; program !`: `?` is known only when it runs, `!` is opaque, `-` starts nothing, `&` is
/// not waited for, `w` writes to a file, `=` sets variables.
fn shown(script: &CommandLine) -> String {
    script.parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

fn part(part: &Part) -> String {
    let word = |word: &Word| word.literal().unwrap_or("?").to_owned();
    let wrappers: String = part
        .wrappers
        .iter()
        .map(|name| format!("{name}>"))
        .collect();
    let program = part.program.as_ref().map_or_else(|| "-".to_owned(), word);
    let mut words = vec![format!("{wrappers}{program}")];
    words.extend(part.arguments.iter().map(word));
    words.extend((!part.assignments.is_empty()).then(|| "=".to_owned()));
    words.extend(
        part.redirections
            .iter()
            .any(shell::Redirection::writes)
            .then(|| "w".to_owned()),
    );
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
        ("time -- a b", "a b"),
        ("time -p -- a | b -- c", "a; b -- c"),
        ("! time -- timeout 5 a", "timeout>a"),
        ("time -- time a", "time>a !"),
        ("time -- ! a", "! a !"),
        ("time -- { a; }", "- !"),
        ("time --", "- !"),
        ("a | time -- b", "a; time>b"),
        ("a |\ntime b", "a; time>b"),
        ("a | time -o f b", "a; time -o f b !"),
        ("a | time { b; }", "- !"),
        ("a | time ! b", "a; time>! b"),
        ("a | ! b", "- !"),
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
        (
            "echo ${x:-b} ${#x} ${x%.c} ${a[@]} ${a[0]}",
            "echo ? ? ? ? ?",
        ),
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
        (
            "e \"$x\" a$x * [ab] ~ x~ a=~ \\* '*'",
            "e ? ? ? ? ? x~ ? * *",
        ),
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
        (
            "timeout -k 5 --signal=KILL 10 nice -n 3 git",
            "timeout>nice>git",
        ),
        ("timeout $t git", "timeout ? git !"),
        ("timeout -Z 5 git", "timeout -Z 5 git !"),
        ("nohup git &", "nohup>git &"),
        ("env A=b B=\"$c\" git", "env>git ="),
        ("env A=b B=$c git", "env A=b ? git !"),
        ("env a-b=c git", "env a-b=c git !"),
        ("nice -n $x git", "nice -n ? git !"),
        ("uv run git push", "uv run git push; git push"),
        ("env PATH=/x git", "env>git = !"),
        ("env -S 'rm x'", "env -S rm x !"),
        ("env", "env"),
        ("env A=b", "env A=b"),
        ("command git", "command>git"),
        ("command -v git", "command -v git"),
        ("exec git", "exec>git"),
        ("exec -a x git", "exec>git"),
        ("exec -cla x git", "exec>git"),
        ("command -p git", "command>git"),
        ("command -- git", "command>git"),
        ("builtin command git", "builtin>command>git"),
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
        (
            "find . -exec rm {} \\; -exec ls {} +",
            "find . -exec rm {} ; -exec ls {} +; rm ?; ls ?",
        ),
        ("find . -exec {} \\;", "find . -exec {} ;; ? !"),
        ("busybox rm x", "busybox rm x; rm x"),
        (
            "nice nice nice nice nice nice nice nice nice rm",
            "nice>nice>nice>nice>nice>nice>nice>nice>nice rm !",
        ),
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
    "sed s/a/b/ $f", "sed s/a/b/ \"$f\"", "find -exec sh -c x \\;", "xargs bash -c x", "/lib64/ld-linux-x86-64.so.2 /bin/rm",
];

/// What an adversary found, and others of the same classes.
#[rustfmt::skip]
const CLASSES: &[&str] = &[
    // here-documents and arrays
    "cat <<$'E'\nx\nE\nrm x", "cat <<$\"E\"\nx\nE\nrm x", "cat <<\"E\\\"\"\nx\nE\"\nrm x", "cat <<`'E'`\nx\nE\nrm x", "cat <<E'F'\nx\nEF\nrm x",
    "x=(<<E)\nrm x\nE", "cat <<E\nx\\\nE\nE", "cat <<E \\\nx\nE", "$(coproc rm x)",
    // shells and interpreters
    "bash +x -c ls", "bash -O extglob x", "bash /proc/self/fd/0", "bash /dev/fd/0", "bash //dev/stdin", "bash ../../dev/stdin", "bash dev/stdin",
    "bash --rcfile x", "bash --init-file=x -i", "sh -xc ls", "zsh -lc ls", "fish -C ls x", "python3 -m timeit ls", "python3 -mpdb x", "python3 -i x.py",
    "python3 -Bc ls", "python3 -um code", "python3 /dev/fd/0", "pypy3 -c x", "perl -wle x", "perl -d x", "perl -Ilib -mx y", "ruby -ne x f", "ruby -rx y",
    "node -pe x", "node -r x y", "node inspect x", "node --eva=x", "deno run -", "deno run data:x", "bun exec ls", "php -a", "php -d auto_prepend_file=x y",
    "lua -i x", "julia -L x y", "java -XX:OnError=ls X", "java @f", "Rscript -e x", "ghci", "irb", "awk -f - x", "awk -f /dev/stdin x", "gawk -e x f",
    "awk -F $x a b", "sed -f x f", "sed --expr=x f",
    // build tools
    "make --ev=x", "make -f /dev/fd/0", "make -sf- x", "make -f/dev/stdin", "make 'X=$(shell ls)'", "make CC='rm x;'", "make -E x", "make \"$x\"", "make $x", "gmake .SHELLFLAGS=x",
    "cargo --conf x build", "cargo -Zx build", "cargo rustc -- -Clinker=x", "cargo clippy -- -C linker=x", "cargo watch -x test", "cargo $x",
    "go test -exec x", "go test --exec=x", "go env -w GOFLAGS=x", "go tool x", "npm exec rm", "npm x rm", "npm config set script-shell x",
    "npm set script-shell x", "npm run x --script-shell=rm", "npm explore x -- rm", "npx -c rm", "yarn exec rm", "pnpm dlx x", "pnpm exec rm", "pip config set x y",
    "cmake -E env rm", "cmake -P x", "cmake -DCMAKE_C_COMPILER_LAUNCHER=rm .", "ninja -t x", "mvn exec:exec", "gradle -I x", "dotnet exec x",
    "gcc -wrapper rm,x f.c", "gcc -fplugin=x f.c", "gcc @f", "cc -B. f.c", "rustc -Clinker=rm x", "pytest -p x", "pytest --pdb", "tox -x a=b", "coverage run -m timeit x",
    "docker run x rm", "docker exec x rm", "docker compose exec x rm", "kubectl exec x rm", "bundle exec -x rm", "mix run -e x", "rake -e x",
    // options that start something
    "tar cf x --checkpoint=1 --checkpoint-action=exec=rm", "tar xf x --to=rm", "tar xf host:x", "tar czf x *", "tar $x", "tar xfI a rm", "rsync -ae rm a b", "rsync --rs=rm a b",
    "rsync \"$x\" b", "sort --comp=rm x", "sort $x", "split --filt=rm x", "rg --pr=rm x", "rg -z x", "fd -xrm", "man -Pless x", "man --pag=x y", "zip -TT rm x", "zip -rTT rm x",
    "less +!rm f", "wget --use-askpass=rm x", "scp -oProxyCommand=rm a b:", "apt-get -o x=y update",
    "find . -name x $y", "find \"$x\" rm ';'", "find . -unknown x", "find . -name $x",
    // starters
    "chroot / rm", "unshare rm", "nsenter rm", "script -c rm", "expect -c x", "watch rm", "parallel rm", "flock f rm", "setpriv rm", "runuser -u x rm", "su -c rm",
    "systemd-run rm", "at now", "batch", "crontab x", "dbus-run-session rm", "ssh h rm", "gdb x", "strace rm", "perf stat rm", "run-parts d", "start-stop-daemon x",
    "capsh -- -c rm", "choom -n 1 rm", "prlimit rm", "setarch x rm", "linux64 rm", "numactl rm", "fakeroot rm", "bwrap rm", "firejail rm", "socat x EXEC:rm", "nc -e rm x",
    "m4 x", "nmap --script x", "tcpdump -z rm", "sqlite3 x '.shell rm'", "psql -c x", "mysql -e x", "dc", "ed x", "ip netns exec x rm", "logsave f rm", "watchexec rm", "nix-shell --run rm",
    // git
    "git rebase -ix rm", "git rebase -xrm", "git rebase -vx rm", "git grep -nOrm x", "git grep --open=x y", "git bisect $x rm", "git submodule $x", "git submodule foreach rm",
    "git fetch $x", "git fetch \"$x\"", "git pull --upload=x", "git clone -crm x", "git clone -nc a=b x", "git clone x::y", "git push --rece=rm", "git push --exec=rm", "git archive --exec=rm",
    "git remote add x ext::rm", "git ls-remote --upload-pack=rm x", "git config --global core.editor rm", "git config --add alias.x '!rm' list", "git config alias.x '!rm'",
    "git config --rename-section a alias", "git config -e", "git config --edit", "git config core.hooksPath x", "git config $x rm", "git init --templ=x", "git --exec-path=x", "git --conf=x",
    "git merge -s x y", "git cherry-pick --strategy=x y", "git foo rm x", "git difftool -yx rm", "git mergetool", "git -C $x status",
    // builtins
    "printf $x y", "printf \"$x\" 'a[$(x)]'", "printf -v $x y", "printf -vPATH x", "unset PATH", "unset \"$x\"", "unset \"a[$x]\"", "test -v $x", "[ -v \"$x\" ]", "[ $x = y ]", "[ $x ]",
    "[ \"$x\" \"$y\" ]", "test $x", "[[ -v $x ]]", "[[ $x -eq 1 ]]", "wait -p 'a[$(x)]'", "wait $x", "declare -a 'x=($(rm))'", "declare -a x=\"$y\"", "declare -n x=y",
    "declare -gi x", "local -n x", "declare +n x", "typeset -i x", "readonly 'x=($(rm))'", "export \"$x\"", "export $x", "local $x", "read 'a[x$(y)]'", "read $x", "read -a \"$x\"",
    "mapfile -c 1 -C rm x", "readarray \"a[$x]\"", "getopts x 'a[$(y)]'", "RANDOM=$x", "SECONDS='a[$(x)]'", "OPTIND=x", "for RANDOM in $x; do ls; done", "x=1 HOME=/x git log",
    "echo $((x))", "echo $((a[1]))", "((x))", "let x", "echo ${x:y}", "echo ${a[x]}", "a[x]=1", "exec {x[1]}>f", "hash $x", "hash -p x y",
    // variables
    "NPM_CONFIG_SCRIPT_SHELL=x npm t", "RUSTFLAGS=-Clinker=x cargo build", "GOFLAGS=-toolexec=x go build", "PYTEST_ADDOPTS=x pytest", "LESS=x less f", "GIT_CONFIG_COUNT=1 git log",
    "XDG_CONFIG_HOME=/x git log", "CC=rm make", "env 'CARGO_ALIAS_X=y' cargo x", "export MAKEFLAGS=x", "SYSTEMD_PAGER=x systemctl", "POSIXLY_CORRECT=1 ls", "JAVA_TOOL_OPTIONS=x java X",
    // wrappers
    "env -S 'rm x'", "env -vS 'rm x'", "env --split='rm x'", "env --sp=x", "env =x rm", "timeout -k $x 1 ls", "xargs -I % %", "xargs -P$x ls", "xargs -a f -- $x", "nice $x",
];

#[rustfmt::skip]
const OPEN: &[&str] = &[
    "bash x.sh", "bash -eu x.sh a -c", "bash --version", "python3 x.py -c y", "python3 -m pytest -c x",
    "python --version", "pythonize -c", "node x.js -e", "awk '{print $1}' f", "awk -F: -v a=b '{print $1}'",
    "sed -n 1,20p f", "sed -i 's/a;b/c/' f", "sed 's|a|b|g;s/c/d/' f", "sed -e '/x/d' -e '$d' f", "sed s/a/b/ src/\"$f\"",
    "git -c user.name=x commit -m 'a -x b'", "git -C d log", "git log --oneline", "git config --get core.pager",
    "git config user.name x", "git grep x", "git rebase main", "GIT_PAGER=cat git log", "tar -xf x", "tar xzf x",
    "make all", "make CC=gcc", "rg x", "cargo build", "set -euo pipefail", "set -- a b", "shopt -s nullglob",
    "trap - EXIT", "trap '' INT", "export A=b", "declare -a x", "read -r line", "printf '%s' $x", "printf '[$(x)]'",
    "test -f x", "[ \"$x\" = y ]", "hash", "alias", "unalias x", "find . -delete", "echo 'eval x'", "A=b make",
];

#[test]
fn what_runs_code_is_opaque_and_what_runs_files_is_not() {
    for text in OPAQUE.iter().chain(CLASSES) {
        assert!(
            parse(text).parts.iter().any(|part| part.opaque.is_some()),
            "{text}: {:?}",
            parse(text)
        );
    }
    for text in OPEN {
        assert!(
            parse(text).parts.iter().all(|part| part.opaque.is_none()),
            "{text}: {:?}",
            parse(text)
        );
    }
}

/// Of `real.txt`: what people have run is judged as before the second reading and the table of programs.
#[test]
fn real_lines_are_judged_as_before() {
    let lines = include_str!("real.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let mut all = 0_usize;
    let mut differ = Vec::new();
    for (before, text) in lines.filter_map(|line| line.split_once(" | ")) {
        let script = parse(&text.replace('⏎', "\n"));
        let opaque = script.parts.iter().any(|part| part.opaque.is_some());
        let listed = script.parts.iter().filter_map(|part| {
            let program = part.program.as_ref()?.literal().unwrap_or("?").to_owned();
            Some(
                part.wrappers
                    .iter()
                    .cloned()
                    .chain([program])
                    .collect::<Vec<_>>()
                    .join(">"),
            )
        });
        let now = if opaque {
            "!".to_owned()
        } else {
            listed.collect::<Vec<_>>().join(" ")
        };
        all += 1;
        if now != before {
            differ.push(format!("{text}: {before:?} is {now:?}"));
        }
    }
    println!(
        "{} of {all} real lines are judged as before:\n{}",
        all - differ.len(),
        differ.join("\n")
    );
    assert!(
        all >= 500 && differ.len() <= 20,
        "{} of {all}:\n{}",
        differ.len(),
        differ.join("\n")
    );
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
            (
                found.certain,
                found.possible.join(" ").as_str(),
                found.hidden
            ),
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
        for text in [
            long(opener),
            format!("echo {}", long(opener))
                .chars()
                .take(MAX_BYTES / 4)
                .collect(),
        ] {
            // Returning at all is what is asked; the parts of the rest are for other tests.
            let script = parse(&text);
            assert!(script.parts.len() <= MAX_BYTES, "{opener}");
        }
        // A short text is parsed on the stack of who asks, of which three eighths of the usual one are enough.
        let short = opener.repeat(100 / opener.len());
        let asks = std::thread::Builder::new().stack_size(768 * 1024);
        let asked = asks.spawn(move || parse(&short).parts.len()).unwrap();
        assert!(asked.join().unwrap() <= 100, "{opener}");
    }
    let balanced = [
        ("$(", ")", 16),
        ("<(a ", ")", 16),
        ("( ", " )", 4_000),
        ("{ ", ";}", 4_000),
        ("${a:-", "}", 4_000),
    ];
    for (open, close, times) in balanced {
        let script = parse(&format!("{}a{}", open.repeat(times), close.repeat(times)));
        assert!(!script.parts.is_empty(), "{open}");
    }
}

#[test]
fn what_is_over_a_bound_says_so() {
    let why = |text: &str| parse(text).parts.into_iter().find_map(|part| part.opaque);
    assert_eq!(why(&"a".repeat(MAX_BYTES)), None);
    assert_eq!(why(&"a".repeat(MAX_BYTES + 1)), Some(OpaqueReason::TooLong));
    assert_eq!(why(&"$(a)".repeat(200)), Some(OpaqueReason::TooDeep));
    assert_eq!(why(&"`a`".repeat(200)), Some(OpaqueReason::TooDeep));
    let nested = |times: usize| format!("{}a{}", "{ ".repeat(times), ";}".repeat(times));
    assert_eq!(why(&nested(60)), None);
    assert_eq!(why(&nested(130)), Some(OpaqueReason::TooDeep));
    assert_eq!(why("a\u{1b}[2J"), Some(OpaqueReason::Character(0x1b)));
    assert_eq!(
        parse(&"long ".repeat(100)).parts[0].text.chars().count(),
        161
    );
    // What a command runs by name is kept with its arguments, but not their square.
    for line in [
        "make -f a",
        "node node node a",
        "coverage run -m coverage run -m",
    ] {
        let words = |part: &shell::Part| {
            part.also
                .iter()
                .map(|also| also.arguments.len())
                .sum::<usize>()
        };
        let line = format!("{line} {}", "-f a ".repeat(MAX_BYTES / 5 - 10));
        assert!(
            parse(&line).parts.iter().map(words).sum::<usize>() < MAX_BYTES * 10,
            "{}",
            &line[..20]
        );
    }
}
