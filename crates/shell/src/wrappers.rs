//! Programs that start another one, and how their own arguments end.

use crate::command_line::Assignment;
use crate::names::has;
use crate::word::Word;

/// The calling convention of a program that starts another.
struct Wrapper {
    name: &'static str,
    /// Whether the started program runs as it would without this one.
    plain: bool,
    /// Letters without a value.
    flags: &'static str,
    /// Letters with one, attached or next.
    values: &'static str,
    /// Letters with one only if it is attached.
    attached: &'static str,
    /// Letters after which nothing is started.
    asks: &'static str,
    long_flags: &'static str,
    long_values: &'static str,
    /// Words of its own before the program.
    operands: usize,
    /// Whether `NAME=value` may be before the program.
    assigns: bool,
}

const NONE: Wrapper = Wrapper {
    name: "",
    plain: true,
    flags: "",
    values: "",
    attached: "",
    asks: "",
    long_flags: "",
    long_values: "",
    operands: 0,
    assigns: false,
};

#[rustfmt::skip]
const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "builtin", ..NONE },
    Wrapper { name: "command", flags: "p", asks: "vV", ..NONE },
    Wrapper { name: "exec", flags: "cl", values: "a", ..NONE },
    Wrapper { name: "env", flags: "i0v", values: "u", long_flags: "--ignore-environment --null --debug", long_values: "--unset",
        assigns: true, ..NONE },
    Wrapper { name: "timeout", flags: "v", values: "ks", long_flags: "--foreground --preserve-status --verbose",
        long_values: "--kill-after --signal", operands: 1, ..NONE },
    Wrapper { name: "nice", flags: "0123456789", values: "n", long_values: "--adjustment", ..NONE },
    Wrapper { name: "nohup", ..NONE },
    Wrapper { name: "setsid", flags: "cfw", long_flags: "--ctty --fork --wait", ..NONE },
    Wrapper { name: "stdbuf", values: "ioe", long_values: "--input --output --error", ..NONE },
    Wrapper { name: "ionice", flags: "t", values: "cn", long_flags: "--ignore", long_values: "--class --classdata", ..NONE },
    Wrapper { name: "time", flags: "pv", ..NONE },
    Wrapper { name: "busybox", plain: false, ..NONE },
    Wrapper { name: "toybox", plain: false, ..NONE },
    Wrapper { name: "sudo", plain: false, flags: "AbBEHkKnPS", values: "aCcDghpRrtTuU", asks: "vlV",
        long_flags: "--preserve-env --non-interactive --stdin --background --set-home",
        long_values: "--user --group --host --prompt --chdir --preserve-env", assigns: true, ..NONE },
    Wrapper { name: "doas", plain: false, flags: "n", values: "Cua", ..NONE },
    Wrapper { name: "tini", plain: false, flags: "svwg", values: "pe", ..NONE },
    Wrapper { name: "dumb-init", plain: false, flags: "cv", values: "r", long_flags: "--single-child --verbose",
        long_values: "--rewrite", ..NONE },
    Wrapper { name: "gosu", plain: false, operands: 1, ..NONE },
    Wrapper { name: "su-exec", plain: false, operands: 1, ..NONE },
    Wrapper { name: "xargs", plain: false, flags: "0rtpxo", values: "nPLdEsaI", attached: "ile",
        long_flags: "--null --no-run-if-empty --verbose --interactive --exit --open-tty --replace",
        long_values: "--max-args --max-procs --delimiter --arg-file --max-chars", ..NONE },
];

/// Whether a program of this name only starts the program that its arguments name, such as `nohup`.
#[must_use]
pub fn starts_another(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// The result of reading a wrapper's arguments.
pub(crate) enum Wrapped {
    No,
    Nothing,
    /// It starts the program at this argument.
    From {
        at: usize,
        plain: bool,
        assignments: Vec<Assignment>,
    },
    /// Its arguments are not understood.
    Odd,
}

/// Package managers that start what follows: name, subcommand, words of its own behind that.
const RUNNERS: [(&str, &str, usize); 9] = [
    ("pipx", "run", 0),
    ("uv", "run", 0),
    ("poetry", "run", 0),
    ("pipenv", "run", 0),
    ("pdm", "run", 0),
    ("hatch", "run", 0),
    ("rye", "run", 0),
    ("bundle", "exec", 0),
    ("rustup", "run", 1),
];

pub(crate) fn unwrap(name: &str, arguments: &[Word]) -> Wrapped {
    let first = arguments.first().and_then(Word::literal);
    if let Some((.., own)) = RUNNERS
        .iter()
        .find(|(program, run, _)| *program == name && Some(*run) == first)
    {
        let at = 1 + own;
        let plain = arguments.get(1..=at).is_some_and(|words| {
            words
                .iter()
                .all(|w| w.literal().is_some_and(|t| !t.starts_with('-')))
        });
        return if plain {
            Wrapped::From {
                at,
                plain: false,
                assignments: Vec::new(),
            }
        } else {
            Wrapped::Odd
        };
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) else {
        return Wrapped::No;
    };
    let mut at = match wrapper.options(arguments) {
        Ok(Some(at)) => at,
        Ok(None) => return Wrapped::Nothing,
        Err(Unknown) => return Wrapped::Odd,
    };
    for _ in 0..wrapper.operands {
        match arguments.get(at).map(Word::literal) {
            Some(Some(_)) => at += 1,
            Some(None) => return Wrapped::Odd,
            None => return Wrapped::Nothing,
        }
    }
    let mut assignments = Vec::new();
    while let Some(word) = arguments
        .get(at)
        .filter(|word| wrapper.assigns && word.bare().contains('='))
    {
        // A name of other characters is one for these programs, though not for a shell.
        let Some(assignment) = assignment(word).filter(|_| !word.splits()) else {
            return Wrapped::Odd;
        };
        assignments.push(assignment);
        at += 1;
    }
    if arguments
        .get(at)
        .is_some_and(|word| word.bare().starts_with('-'))
    {
        return Wrapped::Odd;
    }
    match at < arguments.len() {
        true => Wrapped::From {
            at,
            plain: wrapper.plain,
            assignments,
        },
        false => Wrapped::Nothing,
    }
}

/// `NAME=value` as an argument.
pub(crate) fn assignment(word: &Word) -> Option<Assignment> {
    let (name, _) = word.bare().split_once('=')?;
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
    plain.then(|| Assignment {
        name: name.to_owned(),
        value: word.tail(name.len() + 1),
    })
}

struct Unknown;

impl Wrapper {
    /// The index at which the options end. `None`: it starts nothing.
    fn options(&self, arguments: &[Word]) -> Result<Option<usize>, Unknown> {
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let Some(text) = word.literal() else {
                // A name or an assignment may be known only at run time; an option may not.
                return if word
                    .bare()
                    .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '.')
                {
                    Ok(Some(at))
                } else {
                    Err(Unknown)
                };
            };
            if text == "--" {
                return Ok(Some(at + 1));
            }
            let Some(letters) = text.strip_prefix('-') else {
                return Ok(Some(at));
            };
            if letters.is_empty() {
                return Err(Unknown);
            }
            at += 1;
            let values = if letters.starts_with('-') {
                self.long(text)?
            } else {
                self.short(letters)?
            };
            if arguments.iter().skip(at).take(values).any(Word::splits) {
                return Err(Unknown);
            }
            at += values;
            if letters.chars().any(|c| self.asks.contains(c)) && !letters.starts_with('-') {
                return Ok(None);
            }
            if self.name == "xargs"
                && !letters.starts_with('-')
                && !self.replaces_braces(letters, arguments.get(at - 1))
            {
                return Err(Unknown);
            }
        }
        Ok(Some(at))
    }

    /// Whether only `{}` is replaced, wherever the letter is that names the replaced text.
    fn replaces_braces(&self, letters: &str, next: Option<&Word>) -> bool {
        let takes = |c: char| self.values.contains(c) || self.attached.contains(c);
        let Some((flags, rest)) = letters.split_once(takes) else {
            return true;
        };
        let replaced = match letters
            .get(flags.len()..)
            .and_then(|from| from.chars().next())
        {
            Some('I') if rest.is_empty() => next.and_then(Word::literal),
            Some('i') if rest.is_empty() => return true,
            Some('I' | 'i') => Some(rest),
            Some(_) | None => return true,
        };
        replaced == Some("{}")
    }

    /// How many arguments follow as values.
    fn long(&self, text: &str) -> Result<usize, Unknown> {
        match text.split_once('=') {
            Some((name, _)) if has(self.long_values, name) => Ok(0),
            None if has(self.long_flags, text) => Ok(0),
            None if has(self.long_values, text) => Ok(1),
            Some(_) | None => Err(Unknown),
        }
    }

    fn short(&self, letters: &str) -> Result<usize, Unknown> {
        for (i, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return Ok(usize::from(i + letter.len_utf8() == letters.len()));
            }
            if self.attached.contains(letter) {
                return Ok(0);
            }
            if !self.flags.contains(letter) && !self.asks.contains(letter) {
                return Err(Unknown);
            }
        }
        Ok(0)
    }
}
