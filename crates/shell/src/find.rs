//! `find`: the commands that it starts.

use crate::names::has;
use crate::word::Word;

/// Tests and actions without an argument.
const ALONE: &str = "-print -print0 -prune -delete -o -or -a -and -not ! ( ) , -empty -depth -d -daystart -follow -mount -xdev -true -false -ls \
    -quit -readable -writable -executable -nouser -nogroup -noleaf -warn -nowarn -ignore_readdir_race -H -L -P --help --version";

/// Tests and actions with one.
const WITH_ONE: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -atime -ctime \
    -mmin -amin -cmin -newer -anewer -cnewer -newermt -newerct -newerat -perm -user -group -uid -gid -links -inum -samefile -maxdepth \
    -mindepth -printf -fprint -fprint0 -fls -regextype -used -context -fstype";

/// Whether a word known only at run time, or an unknown one, may start a command.
pub(crate) fn unknown(arguments: &[Word]) -> bool {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            None if word.may_be_option() => return true,
            None => {}
            Some(_) if starts(word) => {
                // `commands` finds its end; the words behind it are checked again.
                let from = arguments.len() - rest.len();
                let words = arguments.get(from..).unwrap_or_default();
                let end = ending(words);
                rest = words.get(end..).unwrap_or_default().iter();
            }
            Some(text) if has(WITH_ONE, text) => match rest.next() {
                Some(value) if value.splits() => return true,
                Some(_) | None => {}
            },
            Some(text) if has(ALONE, text) || text.starts_with("-O") => {}
            Some(text) if text.starts_with('-') => return true,
            Some(_) => {}
        }
    }
    false
}

fn ending(words: &[Word]) -> usize {
    let ends = |i: usize, word: &Word| match word.literal() {
        Some(";") => true,
        Some("+") => {
            i.checked_sub(1)
                .and_then(|i| words.get(i))
                .and_then(Word::literal)
                == Some("{}")
        }
        Some(_) | None => false,
    };
    words
        .iter()
        .enumerate()
        .find(|(i, word)| ends(*i, word))
        .map_or(words.len(), |(i, _)| i)
}

pub(crate) fn commands(arguments: &[Word]) -> Vec<Vec<Word>> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(at) = rest.iter().position(starts) {
        let words = rest.get(at + 1..).unwrap_or_default();
        let end = ending(words);
        found.push(words.iter().take(end).map(filled).collect());
        rest = words.get(end..).unwrap_or_default();
    }
    found
}

fn starts(word: &Word) -> bool {
    matches!(
        word.literal(),
        Some("-exec" | "-execdir" | "-ok" | "-okdir")
    )
}

/// `{}` becomes a name that the text does not show.
pub(crate) fn filled(word: &Word) -> Word {
    if word.bare().contains("{}") {
        Word::hidden(word.raw())
    } else {
        word.clone()
    }
}
