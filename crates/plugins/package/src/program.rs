//! The program of a tool: fixed words, with values of the arguments in some places. No shell reads them, and no value becomes
//! another word or an option.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// Most words behind the program, and the longest of them in bytes.
const MAX_WORDS: usize = 64;
const MAX_WORD: usize = 4096;
/// The longest word with values, in bytes: what the kernel accepts, its end mark included.
const MAX_FILLED: usize = 128 * 1024 - 1;
/// The placeholder of the package's directory.
const PACKAGE: &str = "package";
/// This program, which reads scripts itself.
const OWN: &str = "/proc/self/exe";

/// A program as the manifest has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramTable {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    network: bool,
}

/// The program that answers the calls of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgram {
    /// A name, looked up in the children's `PATH`; or this program, by its path.
    pub program: String,
    /// Whether it needs the network.
    pub network: bool,
    words: Vec<Vec<Piece>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Package,
    Argument(String),
}

impl ToolProgram {
    /// Checks a program against the properties of its tool's schema.
    pub(crate) fn of(table: ProgramTable, properties: &Map<String, Value>) -> Result<Self, String> {
        let ProgramTable {
            program,
            args,
            network,
        } = table;
        if program.contains(['{', '}']) {
            return Err(
                "`program` takes no placeholders; write `program = \"env\"` and the program into `args`".to_owned()
            );
        }
        if program.is_empty() || program.len() > MAX_WORD || program.contains(['/', '\0']) {
            return Err("`program` is the name of a program, without a path".to_owned());
        }
        if args.len() > MAX_WORDS {
            return Err(format!(
                "{} args; at most {MAX_WORDS} are allowed",
                args.len()
            ));
        }
        let mut words = Vec::new();
        for (at, text) in args.iter().enumerate() {
            let word = word(text).map_err(|why| format!("args[{at}]: {why}"))?;
            for piece in &word {
                if let Piece::Argument(name) = piece
                    && !properties.contains_key(name)
                {
                    return Err(format!("args[{at}]: the schema names no property `{name}`"));
                }
            }
            if begins_with_value(&word)
                && !args
                    .get(..at)
                    .unwrap_or_default()
                    .contains(&"--".to_owned())
            {
                return Err(format!(
                    "args[{at}] begins with a value, which the program could take for an option; write --NAME={text}, or \"--\" before it"
                ));
            }
            words.push(word);
        }
        Ok(Self {
            program,
            network,
            words,
        })
    }

    /// This program with a script of the package, under the hidden command of its runtime.
    pub(crate) fn script(runtime: &str, path: &str) -> Result<Self, String> {
        let fits = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain)
        };
        if path.len() > MAX_WORD || !path.split('/').all(fits) {
            return Err("`script` is the path of a file in the package".to_owned());
        }
        Ok(Self {
            program: OWN.to_owned(),
            network: false,
            words: vec![
                vec![Piece::Text(format!("__{runtime}"))],
                vec![Piece::Package, Piece::Text(format!("/{path}"))],
            ],
        })
    }

    /// The files of the package that its words name, whatever the arguments are.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|word| match word.as_slice() {
            [.., Piece::Package, Piece::Text(path)] => path.strip_prefix('/'),
            _ => None,
        })
    }

    /// The words of a call with these arguments, a JSON object. A word is left out where a property of it is absent or null; lists and
    /// objects are written as JSON.
    ///
    /// # Errors
    /// No JSON object, a value with a NUL byte, or too long.
    pub fn words(&self, arguments: &str, package: &Path) -> Result<Vec<OsString>, String> {
        let arguments = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        let filled = self
            .words
            .iter()
            .map(|word| fill(word, &arguments, package));
        filled.filter_map(Result::transpose).collect()
    }
}

/// As a manifest has it, on one line.
impl fmt::Display for ToolProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = match self.program.as_str() {
            OWN => "yoi".to_owned(),
            program => quoted(program),
        };
        for word in &self.words {
            let text = word.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Package => "{package}".to_owned(),
                Piece::Argument(name) => format!("{{{name}}}"),
            });
            line.push(' ');
            line.push_str(&quoted(&text.collect::<String>()));
        }
        f.write_str(&authority::text::escape_line(&line))
    }
}

/// One word as a shell has it, so that a reader sees where it ends.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./{}-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Whether a value can make a word another option than the manifest has: `{q}`, but also `-{q}`.
fn begins_with_value(word: &[Piece]) -> bool {
    match word {
        [Piece::Argument(_), ..] => true,
        [Piece::Text(text), Piece::Argument(_), ..] => text.bytes().all(|byte| byte == b'-'),
        _ => false,
    }
}

/// A word with its placeholders; `{{` and `}}` are braces.
fn word(text: &str) -> Result<Vec<Piece>, String> {
    if text.len() > MAX_WORD || text.contains('\0') {
        return Err(format!("it has a NUL byte or more than {MAX_WORD} bytes"));
    }
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        plain.push_str(before);
        if let Some(behind) = brace.strip_prefix("{{") {
            plain.push('{');
            rest = behind;
        } else if let Some(behind) = brace.strip_prefix("}}") {
            plain.push('}');
            rest = behind;
        } else if let Some((name, behind)) = brace
            .strip_prefix('{')
            .and_then(|name| name.split_once('}'))
        {
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(if name == PACKAGE {
                Piece::Package
            } else {
                Piece::Argument(name.to_owned())
            });
            rest = behind;
        } else {
            return Err(format!(
                "`{text}` has a brace without its counterpart; write {{{{ or }}}} for a brace"
            ));
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

fn fill(
    word: &[Piece],
    arguments: &BTreeMap<String, &RawValue>,
    package: &Path,
) -> Result<Option<OsString>, String> {
    let mut filled = OsString::new();
    for piece in word {
        match piece {
            Piece::Text(text) => filled.push(text),
            Piece::Package => filled.push(package),
            Piece::Argument(name) => match arguments.get(name).map(|value| value.get()) {
                None | Some("null") => return Ok(None),
                Some(text) if text.starts_with('"') => {
                    let text: String =
                        serde_json::from_str(text).map_err(|error| error.to_string())?;
                    if text.contains('\0') {
                        return Err(format!("`{name}` has a NUL byte"));
                    }
                    filled.push(text);
                }
                Some(value) => filled.push(value),
            },
        }
    }
    match filled.len() {
        0..=MAX_FILLED => Ok(Some(filled)),
        bytes => Err(format!(
            "an argument of the program has {bytes} bytes; at most {MAX_FILLED} are possible"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn program(args: &[&str]) -> Result<ToolProgram, String> {
        let properties = json!({ "q": {}, "n": {}, "list": {} });
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let table = ProgramTable {
            program: "p".to_owned(),
            args,
            network: false,
        };
        ToolProgram::of(table, properties.as_object().unwrap())
    }

    fn words(args: &[&str], arguments: &Value) -> Result<Vec<String>, String> {
        let words = program(args)
            .unwrap()
            .words(&arguments.to_string(), Path::new("/at"))?;
        Ok(words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect())
    }

    #[test]
    fn values_stay_one_word_each() {
        let hostile = "a b; $(rm -rf /) --all '\"\n*";
        let args = [
            "{package}/s.py",
            "--q={q}",
            "-n{n}",
            "a{{b}}",
            "--",
            "{list}",
            "{q}",
        ];
        let given = json!({ "q": hostile, "n": 3, "list": ["x", 1] });
        let expected = [
            "/at/s.py",
            &format!("--q={hostile}"),
            "-n3",
            "a{b}",
            "--",
            "[\"x\",1]",
            hostile,
        ];
        assert_eq!(words(&args, &given).unwrap(), expected);
        let shown = program(&["{package}/s.py", "--q={q}", "a\nb"])
            .unwrap()
            .to_string();
        assert_eq!(shown, "p {package}/s.py --q={q} 'a\\nb'");
        let shown = program(&["-c", "echo hi; ls", "it's", ""])
            .unwrap()
            .to_string();
        assert_eq!(shown, r"p -c 'echo hi; ls' 'it'\''s' ''");
        let fewer = json!({ "q": "-rf", "n": null });
        assert_eq!(
            words(&args, &fewer).unwrap(),
            ["/at/s.py", "--q=-rf", "a{b}", "--", "-rf"]
        );
        assert_eq!(
            words(&["--q={q}"], &json!({ "q": "{n}{package}" })).unwrap(),
            ["--q={n}{package}"]
        );
    }

    // warp#10596: an identifier of 20 digits reached a program as 1.2345678901234567e19.
    #[test]
    fn an_integer_has_all_of_its_digits() {
        let given =
            r#"{"n":12345678901234567890123,"list":[9007199254740993,{"m":18446744073709551616}]}"#;
        let words = program(&["-n{n}", "--list={list}"])
            .unwrap()
            .words(given, Path::new("/at"))
            .unwrap();
        assert_eq!(
            words,
            [
                "-n12345678901234567890123",
                "--list=[9007199254740993,{\"m\":18446744073709551616}]"
            ]
        );
    }

    #[test]
    fn what_cannot_be_a_word_is_refused() {
        assert!(
            words(&["--q={q}"], &json!({ "q": "a\0b" }))
                .unwrap_err()
                .contains("NUL")
        );
        assert!(
            words(&["--q={q}"], &json!({ "q": "x".repeat(200_000) }))
                .unwrap_err()
                .contains("at most")
        );
    }

    #[test]
    fn a_bad_program_is_refused() {
        for (args, says) in [
            (&["{q}"][..], "take for an option"),
            (&["x", "{q}y"], "take for an option"),
            (&["-{q}"], "take for an option"),
            (&["--{q}=x"], "take for an option"),
            (&["--x={none}"], "no property `none`"),
            (&["{q"], "without its counterpart"),
            (&["q}"], "without its counterpart"),
            (&["a\0"], "NUL"),
        ] {
            let why = program(args).unwrap_err();
            assert!(why.contains(says), "{args:?}: {why}");
        }
        assert!(program(&["x"; 65]).unwrap_err().contains("at most 64"));
        assert!(program(&["x"; 64]).is_ok() && program(&[&"x".repeat(4096)]).is_ok());
        assert!(
            program(&[&"x".repeat(4097)])
                .unwrap_err()
                .contains("more than 4096")
        );
        assert!(words(&["a{q}"], &json!({ "q": "x".repeat(MAX_FILLED - 1) })).is_ok());
        assert!(words(&["a{q}"], &json!({ "q": "x".repeat(MAX_FILLED) })).is_err());
        let table = ProgramTable {
            program: "{q}".to_owned(),
            args: Vec::new(),
            network: false,
        };
        assert!(
            ToolProgram::of(table, &Map::new())
                .unwrap_err()
                .contains("no placeholders")
        );
        for name in ["", "/bin/sh", "a/b"] {
            let table = ProgramTable {
                program: name.to_owned(),
                args: Vec::new(),
                network: false,
            };
            assert!(
                ToolProgram::of(table, &Map::new())
                    .unwrap_err()
                    .contains("without a path"),
                "{name}"
            );
        }
    }
}
