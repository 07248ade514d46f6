//! The real programs that start others run with options by chance: what they start must be listed.
//!
//! `PATH` has them and stubs that write their name down, nothing else; the jail's sandbox is around it.

use super::chance::Chance;
use super::differential::{Seen, compare_in};
use super::jail::Jail;

/// As many take about ten seconds. [`super::differential::VARIABLE`] set: one in a hundred of that number.
const FEW: usize = 1_000;

/// Their letters and long options, known ones and others.
const STARTERS: &[(&str, &str, &[&str])] = &[
    (
        "env",
        "i0vuCS",
        &[
            "--ignore-environment",
            "--unset",
            "--chdir",
            "--split-string",
            "--debug",
        ],
    ),
    ("nice", "n05", &["--adjustment"]),
    (
        "timeout",
        "vks",
        &[
            "--foreground",
            "--preserve-status",
            "--kill-after",
            "--signal",
        ],
    ),
    ("nohup", "x", &["--help"]),
    (
        "xargs",
        "0rtxonPLdEsaIile",
        &[
            "--null",
            "--replace",
            "--max-args",
            "--delimiter",
            "--arg-file",
            "--max-lines",
            "--eof",
        ],
    ),
    ("stdbuf", "ioe", &["--input", "--output"]),
];

const VALUES: &[&str] = &[
    "1", "p1", "{}", "%", "x", "KILL", "0", "a=b", "--", "-", "-n", "$x", "\"$x\"", "+", "';'",
    "p2", "5",
];

#[rustfmt::skip]
const TESTS: &[&str] = &[
    "-print", "-o", "'!'", "'('", "')'", "-name", "-path", "-type", "-O2", "-D", "-newer", "-maxdepth", "-exec p1 {} \\;", "-exec p2 {} +",
    "-exec p3 + p4 \\;", "-execdir p5 \\;", "-ok p6 {} + p1 \\;", "-exec env p1 \\;", "-exec {} \\;", "-exec nice -n", "'*'", "a", "1", "\\;",
];

#[rustfmt::skip]
const EDITS: &[&str] = &[
    "p", "d", "s/a/p1/", "s/a/p1/e", "s/.*/p1/ge", "e", "e p2", "1e p3", "s,a,p2,ge", "$!N", "/x/e p1", "y/ab/cd/", "a p1", "{", "}", "#e p1",
    "s/[/]e/p1/e", "s{a{p1{e", "\\,a,e p5", "b", "=", "s/a/b/m", "1,2",
];

fn starter(chance: &mut Chance, depth: usize) -> String {
    if depth == 0 {
        return chance
            .of(&["p1", "p2", "p3 p4", "'p5'", "{}", "p6 {}"])
            .to_owned();
    }
    match chance.below(8) {
        0 | 1 => (0..=chance.below(3)).fold("find .".to_owned(), |text, _| {
            format!("{text} {}", chance.of(TESTS))
        }),
        2 => {
            let edits: Vec<&str> = (0..=chance.below(3)).map(|_| chance.of(EDITS)).collect();
            let options = chance.of(&[
                "",
                "-n ",
                "-E ",
                "-ne ",
                "--expression=p ",
                "--exp ",
                "-s -e ",
            ]);
            format!(
                "sed {options}'{}' a",
                edits.join(chance.of(&[";", "\n", ""]))
            )
        }
        _ => {
            let (mut text, (name, letters, long)) = (String::new(), chance.of(STARTERS));
            for _ in 0..chance.below(4) {
                text += &option(chance, letters, long);
            }
            let own = if name == "timeout" {
                chance.of(&[" 5", " 1", "", " $x"])
            } else {
                chance.of(&["", " A=b", " a-b=c"])
            };
            let own = if matches!(name, "env" | "timeout") {
                own
            } else {
                ""
            };
            let input = chance.of(&["", "echo p1 p2 | ", "printf 'p3\\np4' | "]);
            format!("{input}{name}{text}{own} {}", starter(chance, depth - 1))
        }
    }
}

fn option(chance: &mut Chance, letters: &str, long: &[&str]) -> String {
    let mut text = if chance.below(2) == 0 {
        let letters: Vec<char> = letters.chars().collect();
        (0..=chance.below(2)).fold(" -".to_owned(), |text, _| {
            format!("{text}{}", chance.of(&letters))
        })
    } else {
        let name = chance.of(long);
        let cut = if chance.below(3) == 0 { 4 } else { name.len() };
        format!(
            " {}{}",
            &name[..cut],
            chance.of(&["", "", "=p1", "={}", "=1"])
        )
    };
    if chance.below(2) == 0 {
        text += chance.of(&[" ", " ", ""]);
        text += chance.of(VALUES);
    }
    text
}

#[test]
fn what_the_real_starters_start_is_among_the_parts() {
    let wanted = super::differential::wanted(FEW * 100) / 100;
    let Some(jail) = Jail::with_starters() else {
        return;
    };
    let mut chance = Chance::new(7);
    let mut left = wanted;
    let seen: Seen = compare_in(&jail, || {
        left = left.checked_sub(1)?;
        let depth = 1 + chance.below(2);
        Some(starter(&mut chance, depth))
    });
    println!("{}", seen.summary());
    seen.check();
    assert!(
        seen.compared > wanted / 10 && seen.started > wanted / 40,
        "too little ran: {}",
        seen.summary()
    );
}
