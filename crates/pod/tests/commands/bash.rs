//! The rows are given to bash itself: it parses what they say it parses, and what it starts is among the parts.

use super::rows;
use shell::{Part, RedirectKind};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

#[test]
fn bash_parses_the_rows_that_are_said_to_be_commands() {
    for row in rows() {
        let status = Command::new("bash").args(["-n", "-c", &row.text]).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.success(), row.allowed != ".", "{}", row.text);
    }
}

/// Logs every program that is looked for instead of starting it. Nothing is found: there is no PATH, and builtins that
/// are not needed here are switched off and looked for like programs.
const LOOKED_FOR: &str = r#"
enable -n [ alias bg bind caller cd compgen complete compopt declare dirs disown echo export false fc fg getopts hash help \
  history jobs kill let local logout mapfile popd pushd pwd read readarray readonly shift shopt suspend test times true type \
  typeset ulimit umask unalias unset wait
command_not_found_handle() { printf '%s\0' "$1" >>"$LOG"; }
PATH=/nonexistent
FUNCNEST=20
"#;

/// What bash would start of a text whose parts are all plain, for as far as it gets when everything succeeds.
fn started(text: &str) -> BTreeSet<String> {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    std::fs::create_dir(dir.path().join("work")).unwrap();
    let status = Command::new("bash")
        .args(["--norc", "-c", &format!("{LOOKED_FOR}\n{text}")])
        .env("LOG", &log)
        .env("HOME", dir.path())
        .current_dir(dir.path().join("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.code().is_some(), "{text}: {status}");
    std::fs::read_to_string(&log).unwrap_or_default().split_terminator('\0').map(str::to_owned).collect()
}

/// Whether bash may be let at it: it ends, starts nothing by a path and writes nothing outside of its directory.
fn safe(parts: &[Part], text: &str) -> bool {
    let by_path = |part: &Part| part.program.as_ref().is_some_and(|word| word.bare().contains('/'));
    let far = |part: &Part| {
        part.redirections.iter().any(|redirection| {
            let file = matches!(redirection.kind, RedirectKind::Read | RedirectKind::Write);
            file && redirection.target.literal().is_none_or(|path| path.starts_with('/') && path != "/dev/null")
        })
    };
    let plain = parts.iter().all(|part| part.opaque.is_none());
    plain && !parts.iter().any(|part| by_path(part) || far(part)) && !text.contains("while") && !text.contains("select")
}

fn compare(text: &str) -> usize {
    let parts = shell::parse(text).parts;
    if !safe(&parts, text) {
        return 0;
    }
    let mut known: BTreeSet<&str> = parts.iter().filter_map(|part| part.program.as_ref()?.literal()).collect();
    known.extend(parts.iter().flat_map(|part| &part.wrappers).map(String::as_str));
    let started = started(text);
    let missed: Vec<_> = started.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(missed.is_empty(), "{text:?}: bash starts {missed:?}, the parts are {known:?}");
    started.len()
}

#[test]
fn what_bash_starts_is_among_the_parts() {
    let started: usize = rows().iter().map(|row| compare(&row.text)).sum();
    assert!(started > 100, "only {started}: nothing was compared");
}

/// Commands of every shape, put together by chance of a fixed seed, and in half of them a piece of syntax where nobody
/// would put it.
#[test]
fn what_bash_starts_of_anything_is_among_the_parts() {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut started = 0;
    for _ in 0..200 {
        let mut text = chance.command(3);
        if chance.below(2) == 0 {
            let at = text.char_indices().map(|(at, _)| at).nth(chance.below(text.chars().count())).unwrap();
            text.insert_str(at, chance.of(PIECES));
        }
        started += compare(&text);
    }
    assert!(started > 200, "only {started}: little was compared");
}

const NAMES: &[&str] = &[
    "aa",
    "b'b'",
    "\\cc",
    "\"dd\"",
    "$'\\x65e'",
    "f''f",
    "git",
    "rm",
    "time aa",
    "! bb",
    "nice cc",
    "env dd",
    "x=1 ee",
];

const WORDS: &[&str] = &[
    "x",
    "'x y'",
    "\"x $y\"",
    "a#b",
    "\\#",
    "'$(no)'",
    "\\$\\(no\\)",
    "{a,b}",
    "$'\\n'",
    "\"\\\"\"",
    "~",
    "*",
    "-n",
    "--",
    "if",
    "}",
    "\"a'b\"",
    "'a\"b'",
    "a\\ b",
    "$z",
    "${z:-w}",
    "\\`no\\`",
    "=",
    "[",
    "]]",
    "!",
    "in",
    "\"#\"",
    "$((1+1))",
    "''",
];

const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\n",
    " ",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "$(gg)",
    "`hh`",
    "(",
    ")",
    "{ ",
    ";}",
    "#",
    " # ",
    "<<E\n",
    "\nE\n",
    "<",
    ">",
    "$'",
    "$",
    "=",
    "if ",
    ";fi",
    ";;",
    "[[ ",
    " ]]",
    "!",
    "\\\n",
    "<(ii)",
    "2>&1",
    "\t",
    "((",
    "))",
    "f()",
    "${",
    "}",
    "<<<",
    "|&",
    "\\\\",
    "''",
    "coproc ",
    "time ",
    "$\"",
    "<<-'E'\n\tE\n",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }

    fn of(&mut self, list: &[&'static str]) -> &'static str {
        list[self.below(list.len())]
    }

    fn simple(&mut self) -> String {
        let mut text = self.of(NAMES).to_owned();
        for _ in 0..self.below(3) {
            text.push(' ');
            text.push_str(self.of(WORDS));
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple();
        }
        let (a, b, word) = (self.command(depth - 1), self.command(depth - 1), self.of(WORDS));
        match self.below(24) {
            0 => format!("{a}; {b}"),
            1 => format!("{a} && {b}"),
            2 => format!("{a} | {b}"),
            3 => format!("({a})"),
            4 => format!("{{ {a}; }}"),
            5 => format!("if {a}; then {b}; fi"),
            6 => format!("for i in {word}; do {a}; done"),
            7 => format!("case {word} in *) {a};; esac"),
            8 => format!("aa $({a}) {word}"),
            9 => format!("aa \"x $({a}) y\""),
            10 => format!("aa <({a})"),
            11 => format!("{a} # {b}\n{b}"),
            12 => format!("aa <<E {word}\n{word}\nE\n{b}"),
            13 => format!("aa <<'E'\n$({a})\nE\n{b}"),
            14 => format!("aa {word} > f; {b}"),
            15 => format!("f() {{ {a}; }}; f"),
            16 => format!("{a} &\n{b}"),
            17 => format!("aa \\\n{word}; {b}"),
            18 => format!("[[ x == {word} ]] && {a}"),
            19 => format!("aa `{}`", self.simple()),
            20 => format!("x=$({a}) {b}"),
            21 => format!("aa <<< \"$({a})\""),
            22 => format!("{a}\n\n{b}\n"),
            _ => self.simple(),
        }
    }
}
