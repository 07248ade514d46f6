//! Programs that can run others or code, and how they are called when they do not.
//!
//! A row lists *everything* that is accepted: options with and without values, and the allowed operands. A call with
//! anything else is opaque, and so is one with an unexpanded word that may be an option.

mod rows;

use crate::names::{forms, has, versionless};
use crate::variables::decides;
use crate::word::Word;
use rows::ROWS;

/// One program, or one subcommand of git as `git-NAME`.
struct Row {
    /// Its names, without a version: `python` is `python3.12` too.
    names: &'static str,
    /// Letters without a value.
    flags: &'static str,
    /// Letters with a value, attached or next.
    values: &'static str,
    /// Letters whose value can only be attached.
    attached: &'static str,
    /// Whole options without a value.
    words: &'static str,
    /// Whole options with a value, behind `=` or next.
    valued: &'static str,
    /// Whole options after which nothing runs.
    asks: &'static str,
    operands: Operands,
}

/// The allowed operands: words that are no options.
#[derive(Clone, Copy)]
enum Operands {
    Any,
    /// None: a call with any operand is opaque.
    None,
    /// A file that it runs and that is no input; what follows is the file's own.
    CommandLine,
    /// A name; what follows is its own.
    Own,
    /// One of these first, then anything.
    First(&'static str),
    Only(&'static str),
    /// What this allows.
    Allowed(fn(&str) -> bool),
    /// Options too: whatever this allows.
    Every(fn(&str) -> bool),
}

const ROW: Row = Row {
    names: "",
    flags: "",
    values: "",
    attached: "",
    words: "",
    valued: "",
    asks: "--version --help",
    operands: Operands::Any,
};

/// Modules that Python runs like programs; they are judged as these.
const MODULES: &str = "pytest unittest pip venv build mypy black ruff flake8 pylint isort json.tool http.server compileall \
    py_compile zipfile tarfile ensurepip virtualenv coverage tox sphinx mkdocs";

/// The row of a program, with or without the version at its name's end.
fn row(name: &str) -> Option<&'static Row> {
    let find = |name: &str| ROWS.iter().find(|row| has(row.names, name));
    forms(name).find_map(|name| find(name).or_else(|| find(versionless(name))))
}

/// What is tried behind the name of a script of Node, and what stands for a directory.
const SUFFIXES: &str = ".js .cjs .mjs .jsx .ts .cts .mts .tsx .node /index.js /index.ts";

/// Most arguments that are kept beside each of these.
const MAX_REPEATED: usize = 64;

/// The files that a call runs by their names, each with its arguments: a script, a module of Python, a package, a makefile.
/// Of a call that is opaque, some.
pub(crate) fn files(name: &str, arguments: &[Word]) -> Vec<Vec<Word>> {
    let Some(row) = row(name) else {
        return Vec::new();
    };
    let behind = |at: usize| arguments.get(at..).unwrap_or_default().to_vec();
    let mut found = Vec::new();
    let mut at = 0;
    let mut runs = matches!(row.operands, Operands::CommandLine | Operands::Own);
    while let Some((word, text)) = arguments
        .get(at)
        .and_then(|word| Some((word, word.literal()?)))
    {
        at += 1;
        if text == "-m" && (has(row.names, "python") || has(row.names, "coverage")) {
            found.push(behind(at));
            break;
        }
        if text.starts_with('-') && text.len() > 1 {
            let is_next = row.option(text) == Some(true);
            if has(row.names, "make") && text.contains('f') {
                let from = text.find(if text.starts_with("--") { '=' } else { 'f' });
                let attached = || word.tail(from.map_or(text.len(), |at| at + 1));
                found.extend(
                    if is_next {
                        arguments.get(at).cloned()
                    } else {
                        Some(attached())
                    }
                    .map(|file| vec![file]),
                );
            }
            at += usize::from(is_next);
            continue;
        }
        if runs && text == "watch" && has(row.names, "tsx") {
            continue;
        }
        if runs {
            found.push(behind(at - 1));
            if has(row.names, "node") || has(row.names, "bun") {
                let named = |suffix: &str| vec![Word::plain(&format!("{text}{suffix}"))];
                let is_long = arguments.len() > MAX_REPEATED;
                let rest = if is_long {
                    vec![Word::hidden("…")]
                } else {
                    behind(at)
                };
                found.extend(
                    SUFFIXES
                        .split(' ')
                        .map(|suffix| [named(suffix), rest.clone()].concat()),
                );
            }
        }
        runs = !runs && matches!(row.operands, Operands::First(_)) && text == "run";
        if !runs && !matches!(row.operands, Operands::Allowed(_)) {
            break;
        }
    }
    found
}

/// Whether a row says that this call runs nothing else. None: there is no row for it.
pub(crate) fn recognised(name: &str, arguments: &[Word]) -> Option<bool> {
    row(name).map(|row| {
        row.reads(name, arguments).is_some() && lints(name, arguments) && composes(arguments)
    })
}

/// Whether a name is an open descriptor by any path, or code instead of a name.
pub(crate) fn is_input(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let special = path.split('/').any(|part| matches!(part, "dev" | "proc"));
    let stream = matches!(last, "stdin" | "stdout" | "stderr" | "tty" | "console");
    let number = !last.is_empty() && last.chars().all(|c| c.is_ascii_digit());
    let away = path.starts_with('/') || path.contains("..");
    path == "-"
        || path.starts_with("data:")
        || stream
        || (special && (away || number))
        || path.contains("fd/")
}

/// Whether the arguments that `cargo clippy` passes to the compiler are only lint levels.
fn lints(name: &str, arguments: &[Word]) -> bool {
    let is_level = |word: &Word| {
        word.literal().is_some_and(|text| {
            let lint = |text: &str| {
                text.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_:-".contains(c))
            };
            text.strip_prefix('-').map_or(lint(text), |rest| {
                rest.starts_with(['D', 'W', 'A', 'F']) && lint(rest)
            })
        })
    };
    let clippy = name == "cargo"
        && arguments
            .iter()
            .any(|word| word.literal() == Some("clippy"));
    !clippy
        || arguments
            .iter()
            .skip_while(|word| word.literal() != Some("--"))
            .skip(1)
            .all(is_level)
}

/// Whether `compose`, where it is a subcommand, is asked for something else than to run a command.
fn composes(arguments: &[Word]) -> bool {
    const PLAIN: &str = "up down ps logs build pull stop start restart config images top";
    let mut rest = arguments
        .iter()
        .skip_while(|word| word.literal() != Some("compose"))
        .skip(1);
    rest.next()
        .is_none_or(|word| word.literal().is_some_and(|text| has(PLAIN, text)))
}

/// A value of a variable of make, or a target, in which nothing is expanded.
fn make_word(text: &str) -> bool {
    const HARMLESS: &str = "PREFIX DESTDIR V VERBOSE DEBUG RELEASE BUILD MODE PROFILE TEST TESTS ARGS ARCH OS VERSION N J";
    const COMPILERS: &str = "gcc clang cc g++ clang++ c++";
    const VALUES: &str = "0 1 2 y n yes no true false on off debug release all";
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_./+:,=%@-".contains(c));
    plain
        && text.split_once('=').is_none_or(|(name, value)| {
            has(HARMLESS, name)
                || (matches!(name, "CC" | "CXX") && has(COMPILERS, value))
                || (has(VALUES, value) && !decides(name))
        })
}

/// An argument of a compiler that names a file or a common option.
fn compiles(text: &str) -> bool {
    const PLAIN: &str = "-c -S -E -g -v -w -shared -static -pthread -pedantic -pipe -rdynamic -ansi -fPIC -fpic -fPIE -pie -fopenmp \
        -flto -ffast-math -fprofile-arcs -ftest-coverage -fomit-frame-pointer -MMD -MD -MP -MM -M -o -I -L -l -D -U -s";
    const BEGINNINGS: &str = "-O -g -std= -I -L -l -D -U -o -march= -mtune= -m32 -m64 -fsanitize= -fno- -fstack-protector -fvisibility=";
    match text.strip_prefix('-') {
        None => !text.starts_with('@'),
        Some(rest) => {
            has(PLAIN, text)
                || BEGINNINGS
                    .split_whitespace()
                    .any(|beginning| text.starts_with(beginning))
                || (rest.starts_with('W') && !rest.contains(','))
        }
    }
}

/// Whether an address of a repository uses no helper program.
fn plain_remote(text: &str) -> bool {
    !text.contains("::")
}

impl Row {
    fn reads(&self, name: &str, arguments: &[Word]) -> Option<()> {
        let tar = has(self.names, "tar");
        let mut operands = 0;
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            at += 1;
            let Some(text) = word.literal() else {
                // A name known only at run time is fine if any name is allowed.
                let any = matches!(self.operands, Operands::Any)
                    || (matches!(self.operands, Operands::First(_))
                        && operands > 0
                        && !self.runs_files());
                (any && !word.may_be_option()).then_some(())?;
                operands += 1;
                continue;
            };
            if has(self.asks, text) && operands == 0 {
                return Some(());
            }
            if text == "--" {
                return self.behind(name, arguments.get(at..).unwrap_or_default(), operands);
            }
            if text == "-m" && has(self.names, "python") | has(self.names, "coverage") {
                return module(arguments.get(at..).unwrap_or_default());
            }
            let old_style = tar && at == 1 && !text.starts_with('-');
            let option = text.starts_with('-')
                && text.len() > 1
                && !matches!(self.operands, Operands::Every(_));
            if old_style || option {
                let values = if old_style {
                    self.bundled(text)?
                } else {
                    usize::from(self.option(text)?)
                };
                for _ in 0..values {
                    let value = arguments.get(at)?;
                    at += 1;
                    let input = self.runs_files() && value.literal().is_none_or(is_input);
                    let host = tar && value.bare().contains(':');
                    (!value.splits() && !input && !host).then_some(())?;
                }
                continue;
            }
            if self.operand(name, text, operands)? {
                return Some(());
            }
            operands += 1;
        }
        self.complete(operands)
    }

    /// For the leading letters without a dash of old `tar`: the number of values that follow.
    fn bundled(&self, letters: &str) -> Option<usize> {
        let known = letters
            .chars()
            .all(|letter| self.flags.contains(letter) || self.values.contains(letter));
        known.then(|| {
            letters
                .chars()
                .filter(|letter| self.values.contains(*letter))
                .count()
        })
    }

    /// Whether an option is known, and then whether its value comes next.
    fn option(&self, text: &str) -> Option<bool> {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        if has(self.words, text) {
            return Some(false);
        }
        if has(self.valued, name) {
            return value
                .is_none_or(|value| !(self.runs_files() && is_input(value)))
                .then_some(value.is_none());
        }
        let letters = text
            .strip_prefix('-')
            .filter(|letters| !letters.starts_with('-'))?;
        for (i, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let rest = letters.get(i + letter.len_utf8()..).unwrap_or_default();
                return (!(self.runs_files() && is_input(rest)) || rest.is_empty())
                    .then_some(rest.is_empty());
            }
            if self.attached.contains(letter) {
                return Some(false);
            }
            self.flags.contains(letter).then_some(())?;
        }
        Some(false)
    }

    /// Whether the words after it do not matter.
    fn operand(&self, name: &str, text: &str, before: usize) -> Option<bool> {
        let toolchain = name == "cargo" && before == 0 && text.starts_with('+');
        let odd = (text.starts_with('+') && !toolchain) || (self.runs_files() && is_input(text));
        if odd {
            return None;
        }
        match self.operands {
            Operands::Any => Some(false),
            Operands::None => None,
            Operands::CommandLine if text.chars().all(|c| c.is_ascii_digit()) => None,
            Operands::CommandLine => {
                (!matches!(text, "inspect" | "debug" | "eval" | "repl" | "exec")).then_some(true)
            }
            Operands::Own => (!text.starts_with('@') || name == "npx").then_some(true),
            Operands::First(list) => (toolchain || before > 0 || has(list, text)).then_some(false),
            Operands::Only(list) => has(list, text).then_some(false),
            Operands::Allowed(allowed) | Operands::Every(allowed) => allowed(text).then_some(false),
        }
    }

    /// What follows `--`.
    fn behind(&self, name: &str, rest: &[Word], operands: usize) -> Option<()> {
        match self.operands {
            Operands::CommandLine | Operands::Own => {
                let first = rest.first().and_then(Word::literal)?;
                self.operand(name, first, 0).map(drop)
            }
            Operands::Any => Some(()),
            Operands::First(_) => (operands > 0).then_some(()),
            Operands::None | Operands::Only(_) => rest.is_empty().then_some(()),
            Operands::Allowed(allowed) | Operands::Every(allowed) => rest
                .iter()
                .all(|word| word.literal().is_some_and(allowed))
                .then_some(()),
        }
    }

    fn complete(&self, operands: usize) -> Option<()> {
        match self.operands {
            Operands::CommandLine | Operands::Own => None,
            Operands::First(_)
            | Operands::Any
            | Operands::Only(_)
            | Operands::Allowed(_)
            | Operands::Every(_) => Some(()),
            Operands::None => (operands == 0).then_some(()),
        }
    }

    /// Whether it runs the file that it is given by name, which must therefore not be its input.
    fn runs_files(&self) -> bool {
        matches!(self.operands, Operands::CommandLine | Operands::Own)
            || has(self.names, "make")
            || has(self.names, "deno")
    }
}

/// `python -m NAME …`
fn module(rest: &[Word]) -> Option<()> {
    let (name, arguments) = rest.split_first()?;
    let name = name.literal().filter(|name| has(MODULES, name))?;
    recognised(name, arguments).unwrap_or(true).then_some(())
}
