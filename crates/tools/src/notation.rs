//! Paths in another notation than the file system's: what was meant by one. Does not depend on files.

use std::path::Path;

/// Around a path in texts.
const PAIRS: &[(&str, &str)] = &[
    ("\"", "\""),
    ("'", "'"),
    ("`", "`"),
    ("\u{201c}", "\u{201d}"),
    ("\u{2018}", "\u{2019}"),
    ("<", ">"),
];

/// Characters without width: marks of byte order, joiners.
const INVISIBLE: &[char] = &['\u{feff}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}'];

/// Names of the home directory, and of the directory of a run.
const HOME: &[&str] = &["~", "$HOME", "${HOME}", "%HOME%", "%USERPROFILE%"];
const CWD: &[&str] = &["~+", "$PWD", "${PWD}", "$(pwd)", "`pwd`"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    Path(String),
    /// Why it cannot be known.
    Unknown(&'static str),
}

/// What another notation means: a URL, quotes, spaces or a link around it, `~` or a variable in it, backslashes, a slash
/// behind it. `None` for a plain path.
pub(crate) fn meant(path: &str, cwd: &Path, home: Option<&Path>) -> Option<Meant> {
    let mut meant = bare(path).to_owned();
    if let Some((scheme, rest)) = meant.split_once("://") {
        if scheme.to_ascii_lowercase().starts_with("http") {
            return Some(Meant::Unknown("it is an address of the web"));
        }
        if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            meant = decoded(rest.strip_prefix("localhost").unwrap_or(rest));
        }
    } else if let Some(rest) = meant
        .get(..5)
        .filter(|start| start.eq_ignore_ascii_case("file:"))
        .and(meant.get(5..))
    {
        meant = decoded(rest);
    } else if ["%2f", "%2e"]
        .iter()
        .any(|coded| meant.to_ascii_lowercase().contains(coded))
    {
        meant = decoded(&meant);
    }
    let is_drive = meant
        .get(1..3)
        .is_some_and(|rest| [":/", ":\\"].contains(&rest));
    if is_drive && meant.starts_with(|c: char| c.is_ascii_alphabetic()) {
        meant.drain(..2);
    }
    if meant.contains('\\') {
        meant = meant.replace("\\ ", " ").replace('\\', "/");
    }
    let home = home.unwrap_or(Path::new("/HOME"));
    let place = |part: &str| {
        if HOME.contains(&part) {
            Some(home)
        } else {
            CWD.contains(&part).then_some(cwd)
        }
    };
    let parts: Vec<&str> = meant.split('/').collect();
    let found = parts
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, part)| Some((at, place(part)?)));
    if let Some((at, dir)) = found {
        meant = parts
            .iter()
            .skip(at + 1)
            .fold(dir.display().to_string(), |path, part| path + "/" + part);
    } else if let Some((user, rest)) = meant
        .strip_prefix('~')
        .and_then(|rest| rest.split_once('/'))
    {
        meant = if user == "root" {
            format!("/{user}/{rest}")
        } else {
            format!("/home/{user}/{rest}")
        };
    }
    if meant.split('/').any(is_expanded) {
        return Some(Meant::Unknown(
            "variables and commands are not expanded in paths",
        ));
    }
    if meant.contains('*') {
        return Some(Meant::Unknown(
            "a path names one file, and Glob finds files by a pattern",
        ));
    }
    let whole = meant.trim_end_matches('/');
    let whole = if whole.is_empty() {
        meant.as_str()
    } else {
        whole
    };
    (whole != path && !whole.is_empty()).then(|| Meant::Path(whole.to_owned()))
}

/// A path without the line behind it, or a sign of the sentence that it ended: `src/a.rs:12:5`, `src/a.rs#L3-L9`.
pub(crate) fn without_place(path: &str) -> &str {
    let place = |c: char| c.is_ascii_digit() || [':', '-', '#', 'L', ',', ';'].contains(&c);
    let rest = path.trim_end_matches(place);
    match path.get(rest.len()..) {
        Some(cut) if cut.starts_with([':', '#', ',', ';']) => rest,
        _ => path,
    }
}

/// Without what stands around it: spaces, characters without width, quotes, the text of a link.
fn bare(path: &str) -> &str {
    let trimmed =
        |text| str::trim_matches(text, |c: char| c.is_whitespace() || INVISIBLE.contains(&c));
    let path = trimmed(path);
    let inner = PAIRS
        .iter()
        .find_map(|(open, close)| path.strip_prefix(open)?.strip_suffix(close));
    let link = || {
        path.strip_prefix('[')?
            .strip_suffix(')')?
            .split_once("](")
            .map(|(_, target)| target)
    };
    inner.or_else(link).map_or(path, trimmed)
}

fn decoded(url: &str) -> String {
    percent_encoding::percent_decode_str(url)
        .decode_utf8_lossy()
        .into_owned()
}

/// Whether a shell would expand it. Names of routes and templates begin with `$`, too, but in small letters.
fn is_expanded(part: &str) -> bool {
    let name = part
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .or_else(|| part.strip_prefix('$'));
    let is_variable =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    name.is_some_and(is_variable)
        || part.contains("$(")
        || (part.starts_with('`') && part.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `Write` made of these, if they were taken as they are, was a file that nobody found again.
    #[test]
    fn what_was_meant() {
        let meant = |path: &str| meant(path, Path::new("/p"), Some(Path::new("/h/ann")));
        let is = |path: &str| Some(Meant::Path(path.to_owned()));
        for (path, wanted) in [
            ("file:/x/y.txt", is("/x/y.txt")),
            ("file:x%20y.txt", is("x y.txt")),
            ("FILE:///x", is("/x")),
            ("a/$HOME/x", is("/h/ann/x")),
            ("sub/~/x", is("/h/ann/x")),
            ("%USERPROFILE%\\x", is("/h/ann/x")),
            ("$(pwd)/x.txt", is("/p/x.txt")),
            ("`pwd`/x.txt", is("/p/x.txt")),
            ("~+/x", is("/p/x")),
            ("~root/x", is(&format!("/{}/x", "root"))),
            ("c:/x.txt", is("/x.txt")),
            ("%2e%2E/x", is("../x")),
            ("d%2Fy.txt", is("d/y.txt")),
            ("\u{201c}x.txt\u{201d}", is("x.txt")),
            ("\u{feff}x.txt", is("x.txt")),
            ("x.txt\u{200b}", is("x.txt")),
            ("<x.txt>", is("x.txt")),
            ("[notes](d/x.txt)", is("d/x.txt")),
        ] {
            assert_eq!(meant(path), wanted, "{path}");
        }
        for path in [
            "$UNDEFINED/x",
            "a/${BUILD_DIR}/x",
            "$(git rev-parse HEAD)/x",
            "*.txt",
            "d/**",
            "https://e.org/x",
        ] {
            assert!(matches!(meant(path), Some(Meant::Unknown(_))), "{path}");
        }
        for path in [
            "x.txt",
            "a/b",
            "$id.tsx",
            "routes/$lang/x",
            "${name}/x",
            "{{cookiecutter.x}}/a",
            "(group)/[id].tsx",
            "[...all]",
            "100%.txt",
            "my%20file",
            "what?.md",
            "a:b",
            "x+y",
            "-",
            "@x",
            "it's",
            "C++/x",
        ] {
            assert_eq!(meant(path), None, "{path}");
        }
        for (path, rest) in [
            ("a.rs:12", "a.rs"),
            ("a.rs:12:5", "a.rs"),
            ("a.rs#L3", "a.rs"),
            ("a.rs#L3-L9", "a.rs"),
            ("a.rs,", "a.rs"),
            ("a.rs", "a.rs"),
            ("a-1", "a-1"),
            ("LL", "LL"),
            ("x2", "x2"),
        ] {
            assert_eq!(without_place(path), rest, "{path}");
        }
    }
}
