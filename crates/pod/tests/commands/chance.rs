//! Texts by chance, of fixed seeds: commands of every shape, in which each program has a name of its own, and what comes
//! of these and of the rows when pieces of syntax are put in, taken out, doubled or exchanged.

use super::rows;

/// Quoted in some way.
const QUOTED: &[fn(&str) -> String] = &[
    str::to_owned,
    str::to_owned,
    str::to_owned,
    |name| format!("'{name}'"),
    |name| format!("\"{name}\""),
    |name| format!("\\{name}"),
    |name| format!("$'{name}'"),
    |name| format!("{name}''"),
    |name| format!("\"\"{name}"),
    |name| format!("! {name}"),
    |name| format!("time {name}"),
    |name| format!("time -p {name}"),
    |name| format!("nice {name}"),
    |name| format!("env A=b {name}"),
    |name| format!("x=1 {name}"),
    |name| format!("x+=1 y[2]=3 {name}"),
    |name| format!(">f {name}"),
    |name| format!("2>&1 {name}"),
    |name| format!("command {name}"),
    |name| format!("{name} <<<word"),
    |name| format!("coproc {name}"),
];

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "x", "'x y'", "\"x $y\"", "a#b", "\\#", "'$(no)'", "\\$\\(no\\)", "{a,b}", "$'\\n'", "\"\\\"\"", "~", "*", "-n", "--", "if",
    "}", "\"a'b\"", "'a\"b'", "a\\ b", "$z", "${z:-w}", "\\`no\\`", "=", "[", "]]", "!", "in", "\"#\"", "$((1+1))", "''", "do",
    "done", "esac", "{", "a[1]", "a[b", "x=y", "x=(", "$'\\''", "$'\\\\'", "$\"x\"", "${#z}", "${z%'}'}", "${z//\\//_}", "\"${z:-'}\"",
    "\"${z#\"x\"}\"", "$", "a$", "\"a\nb\"", "'a\nb'", "a\\\nb", "2", "2>&1", "-", "@(a)", "a=$(true)", "%", "^", ";", "\\;", "(", "\\)",
    "\"`true`\"", "$$", "$!", "$?", "${z[@]}", "${z[0]}", "HEAD@{1}", "{}", "a{1..2}b", "é", "=~", "==", "<<E", "\\<\\<E",
];

/// Delimiters, and what stands in the line that is meant to end the document.
#[rustfmt::skip]
const DELIMITERS: &[(&str, &str)] = &[
    ("E", "E"), ("E", "E"), ("'E'", "E"), ("\"E\"", "E"), ("\\E", "E"), ("$'E'", "E"), ("$'E'", "$E"), ("$\"E\"", "E"), ("$\"E\"", "$E"),
    ("$'\\x45'", "E"), ("\"E\\\"\"", "E\""), ("\"\\E\"", "\\E"), ("\"\\E\"", "E"), ("'E'F", "EF"), ("E'F'", "EF"), ("\"E`\"", "E`"),
    ("`E`", "`E`"), ("`'E'`", "`'E'`"), ("`'E'`", "`E`"), ("$(E)", "$(E)"), ("$E", "$E"), ("${E}", "${E}"), ("E\\F", "EF"), ("E\\\nF", "EF"),
    ("''", ""), ("\"\"", ""), ("'E F'", "E F"), ("'E\nF'", "E"), ("E;", "E"), ("E#", "E#"), ("{E,F}", "{E,F}"), ("~", "~"), ("*", "*"),
    ("E", "E "), ("E", " E"), ("E", "\tE"), ("E", "E\\"), ("E)", "E"), ("E|", "E"), ("'$(E)'", "$(E)"), ("\"$E\"", "$E"), ("<(E)", "E"),
];

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "'", "\"", "\\", "\n", " ", ";", "&&", "||", "|", "&", "$(gg)", "`hh`", "(", ")", "{ ", ";}", "#", " # ", "<<E\n", "\nE\n", "<", ">",
    "$'", "$", "=", "if ", ";fi", ";;", "[[ ", " ]]", "!", "\\\n", "<(ii)", "2>&1", "\t", "((", "))", "f()", "${", "}", "<<<", "|&", "\\\\",
    "''", "coproc ", "time ", "$\"", "<<-'E'\n\tE\n", "x=(", "x=(<<E)\n", "[", "]", "x[", "]=", "<<$'E'\n", "<<\"E\"\n", "<<`E`\n", "<<\\E\n",
    "case x in ", " esac", "do ", " done", "then ", "else ", "function g ", "select i in ", "until ", "while ", "for i in ", "@(", "{a,",
    "..", "~", "*", "${x:-", "$[", "$((", "%", ">&", "<>", ">|", "&>", "3<", "{fd}>f ", "\r", "\u{a0}", "!(", "=~ ", "jj\n", "\nkk ", ";ll;",
];

/// Real lines, as one more thing to be changed.
const REAL: &str = include_str!("../../../shell/tests/real.txt");

pub(super) struct Chance {
    state: u64,
    /// Programs that were named in this text.
    named: usize,
    corpus: Vec<String>,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        let real = REAL
            .lines()
            .filter_map(|line| line.split_once(" | "))
            .map(|(_, text)| text.replace('⏎', "\n"));
        Self {
            state: seed,
            named: 0,
            corpus: rows().into_iter().map(|row| row.text).chain(real).collect(),
        }
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap() % bound.max(1)
    }

    pub(super) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A command, or a row, and in most cases something is wrong with it.
    pub(super) fn text(&mut self) -> String {
        self.named = 0;
        let mut text = match self.below(3) {
            0 => {
                let at = self.below(self.corpus.len());
                self.corpus[at].clone()
            }
            _ => {
                let depth = 1 + self.below(3);
                self.command(depth)
            }
        };
        for _ in 0..self.below(4) {
            self.change(&mut text);
        }
        if self.below(4) == 0 {
            text.push('\n');
            text.push_str(&self.name());
        }
        text
    }

    fn change(&mut self, text: &mut String) {
        let ends: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        let from = self.below(ends.len());
        let length = self.below(6);
        let to = (from + length).min(ends.len() - 1);
        let range = ends[from]..ends[to];
        match self.below(6) {
            0 => drop(text.drain(range)),
            1 => {
                let doubled = text[range.clone()].to_owned();
                text.insert_str(range.end, &doubled);
            }
            2 => {
                let moved: String = text.drain(range).collect();
                let places: Vec<usize> = text
                    .char_indices()
                    .map(|(at, _)| at)
                    .chain([text.len()])
                    .collect();
                text.insert_str(self.of(&places), &moved);
            }
            3 => {
                let word = self.of(WORDS);
                text.insert_str(ends[from], word);
            }
            _ => {
                let piece = self.of(PIECES);
                text.insert_str(ends[from], piece);
            }
        }
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("p{}", self.named)
    }

    fn simple(&mut self) -> String {
        let name = self.name();
        let mut text = self.of(QUOTED)(&name);
        for _ in 0..self.below(3) {
            text.push(' ');
            text.push_str(self.of(WORDS));
        }
        text
    }

    fn document(&mut self) -> String {
        let (delimiter, end) = self.of(DELIMITERS);
        let program = self.name();
        let body = self.of(WORDS);
        let next = self.simple();
        let sign = self.of(&["<<", "<<", "<< ", "<<-"]);
        let behind = self.of(&[
            "", "", " | p90", "; p91", " && p92", " >f", " x", " <<E2", ")", " \\\np93", " # x",
        ]);
        let hidden = self.of(&[
            "", "$(p94)\n", "`p95`\n", "p96\n", "\\\n", "x\\\n", "'\n", "\"\n",
        ]);
        format!(
            "{program} {sign}{delimiter}{behind}\n{body}\n{hidden}{end}\n{next}\n{delimiter}\n{}",
            self.simple()
        )
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple();
        }
        let a = self.command(depth - 1);
        let b = self.command(depth - 1);
        let word = self.of(WORDS);
        match self.below(40) {
            0 => format!("{a}; {b}"),
            1 => format!("{a} && {b}"),
            2 => format!("{a} | {b}"),
            3 => format!("({a})"),
            4 => format!("{{ {a}; }}"),
            5 => format!("if {a}; then {b}; fi"),
            6 => format!("for i in {word}; do {a}; done"),
            7 => format!("case {word} in *) {a};; esac"),
            8 => format!("q1 $({a}) {word}"),
            9 => format!("q2 \"x $({a}) y\""),
            10 => format!("q3 <({a})"),
            11 => format!("{a} # {b}\n{b}"),
            12..=15 => self.document(),
            16 => format!("q4 {word} > f; {b}"),
            17 => format!("f() {{ {a}; }}; f"),
            18 => format!("{a} &\n{b}"),
            19 => format!("q5 \\\n{word}; {b}"),
            20 => format!("[[ x == {word} ]] && {a}"),
            21 => format!("q6 `{}`", self.simple()),
            22 => format!("x=$({a}) {b}"),
            23 => format!("q7 <<< \"$({a})\""),
            24 => format!("{a}\n\n{b}\n"),
            25 => format!("x=({word} {word}); {a}"),
            26 => format!("x=({a} {word})\n{b}"),
            27 => format!("while {a}; do {b}; done"),
            28 => format!("until {a}; do {b}; break; done"),
            29 => format!("if {a}; then :; elif {b}; then :; else q8 {word}; fi"),
            30 => format!("case {word} in (a|{word}) {a};; b) {b};& *) :;; esac"),
            31 => format!("q9 \"`{}`\"", self.simple()),
            32 => format!("q10 $(q11 $({a}; {b}))"),
            33 => format!("[[ -n {word} || ! ( a < b ) ]] || {a}"),
            34 => format!("[[ a =~ {word} ]] && {a}"),
            35 => format!("q12 $(\n{a}\n)"),
            36 => format!("function g {{\n{a}\n}}\ng"),
            37 => format!("q13 \"$(q14 <<'E'\n{word}\nE\n)\"; {b}"),
            38 => format!("{{ {a}; }} <<E | {b}\n{word}\nE"),
            _ => self.simple(),
        }
    }
}
