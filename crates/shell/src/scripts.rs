//! Scripts of `awk` and `sed` that only filter text.

use crate::known::is_input;
use crate::word::Word;

/// Whether it may start or write something.
pub(crate) fn awk(arguments: &[Word]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.literal() else {
            return true;
        };
        match text {
            "--version" | "--help" => return false,
            "-F" | "-v" => {
                if arguments.next().is_some_and(Word::splits) {
                    return true;
                }
            }
            // A file of commands, and nothing but files behind it.
            "-f" => {
                let is_file = |word: &Word| {
                    word.literal()
                        .is_some_and(|file| !is_input(file) && !file.starts_with('-'))
                };
                return !arguments.next().is_some_and(is_file)
                    || arguments.any(Word::may_be_option);
            }
            option if option.starts_with("-F") || option.starts_with("-v") => {}
            option if option.starts_with('-') => return true,
            program => {
                return ["system", "|", ">", "getline", "@"]
                    .iter()
                    .any(|risky| program.contains(risky));
            }
        }
    }
    false
}

/// Whether it may start, read or write something by name.
pub(crate) fn sed(arguments: &[Word]) -> bool {
    let mut seen = false;
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.literal() else {
            if seen && !word.may_be_option() {
                continue;
            }
            return true;
        };
        let script = match text {
            "--version" | "--help" => return false,
            "-e" | "--expression" | "-ne" | "-Ee" | "-re" => {
                arguments.next().and_then(Word::literal)
            }
            "-i" | "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-ni" | "-En" | "-nE" | "-Ei"
            | "-ri" | "-rn" | "-nr" => {
                continue;
            }
            "--in-place" | "--quiet" | "--silent" | "--regexp-extended" => continue,
            backup if backup.starts_with("-i.") || backup.starts_with("--in-place=") => continue,
            option if option.starts_with('-') => return true,
            _ if seen => continue,
            script => Some(script),
        };
        if !script
            .is_some_and(|script| plain_sed(script) || script.split([';', '\n']).all(plain_sed))
        {
            return true;
        }
        seen = true;
    }
    false
}

/// One command of sed that neither runs nor writes nor reads anything by name.
fn plain_sed(command: &str) -> bool {
    let mut rest = command.trim();
    for _ in 0..2 {
        rest = address(rest);
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    rest = rest
        .trim_start()
        .strip_prefix('!')
        .unwrap_or(rest)
        .trim_start();
    let mut chars = rest.chars();
    match chars.next() {
        None => true,
        Some('s') => substitutes(chars.as_str()),
        Some('p' | 'd' | 'q' | '=' | 'D' | 'P' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x') => {
            chars.as_str().trim().chars().all(|c| c.is_ascii_digit())
        }
        Some(_) => false,
    }
}

fn address(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('$') {
        return rest;
    }
    if let Some((inside, rest)) = text.strip_prefix('/').and_then(|rest| rest.split_once('/')) {
        return if inside.ends_with('\\') { text } else { rest };
    }
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// Whether the text after the `s` is a plain substitution: two sides, and flags that only select.
fn substitutes(rest: &str) -> bool {
    let mut chars = rest.chars();
    let Some(divider) = chars
        .next()
        .filter(|c| c.is_ascii_punctuation() && *c != '\\')
    else {
        return false;
    };
    let mut seen = 0;
    while seen < 2 {
        match chars.next() {
            Some('\\') => drop(chars.next()),
            Some(c) if c == divider => seen += 1,
            Some(_) => {}
            None => return false,
        }
    }
    chars
        .as_str()
        .trim()
        .chars()
        .all(|c| "gIip0123456789".contains(c))
}
