//! The rules for a note's content: no secrets, no dangling links, limited size. Does not depend on files.

use super::note::NoteName;
use crate::plain;

/// The longest text of a note, in bytes: longer things are documents of the project.
pub const MAX_TEXT: usize = 8 * 1024;
/// Most tags of one note.
pub const MAX_TAGS: usize = 8;

/// Prefixes of keys of known providers, and the length from which on such a word counts as a key.
const KEYS: &[(&str, usize)] = &[
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("sk-", 24),
    ("sk_live_", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("npm_", 30),
    ("eyJ", 60),
];

/// Names whose value is a secret.
const NAMED: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
    "private_key",
];

/// The shortest value behind such a name that counts, in bytes.
const MIN_VALUE: usize = 8;

/// Whether a text may be in a note.
///
/// # Errors
/// The rule it breaks and where; never the secret itself.
pub(super) fn text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("the text is empty; say what is worth keeping".to_owned());
    }
    plain::text("text", text, MAX_TEXT)?;
    secret("text", text)
}

/// Checks that no line looks like it contains a secret.
///
/// # Errors
/// The line and what it looks like.
pub(super) fn secret(what: &str, text: &str) -> Result<(), String> {
    let found = (1..)
        .zip(text.lines())
        .find_map(|(number, line)| Some((number, looks_like(line)?)));
    match found {
        Some((number, like)) => Err(format!(
            "line {number} of the {what} looks like {like}; notes keep no secrets: say where it is kept instead"
        )),
        None => Ok(()),
    }
}

fn looks_like(line: &str) -> Option<&'static str> {
    if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
        return Some("a private key");
    }
    let of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut words = line.split(|c| !of_key(c));
    if words.any(|word| {
        KEYS.iter()
            .any(|(begin, least)| word.starts_with(begin) && word.len() >= *least)
    }) {
        return Some("an access key");
    }
    if line
        .split_once("://")
        .is_some_and(|(_, rest)| has_password(rest))
    {
        return Some("an address with a password");
    }
    let lower = line.to_ascii_lowercase();
    let assigned = NAMED.iter().any(|name| {
        lower
            .match_indices(name)
            .any(|(at, _)| is_value(line.get(at + name.len()..)))
    });
    assigned.then_some("a password or token")
}

/// `user:password@host` behind a scheme.
fn has_password(rest: &str) -> bool {
    let authority = rest.split(['/', ' ', '?', '#']).next().unwrap_or_default();
    let password = authority
        .rsplit_once('@')
        .and_then(|(user, _)| user.split_once(':'));
    password
        .is_some_and(|(_, password)| !password.is_empty() && !password.starts_with(['$', '<', '{']))
}

/// `= value` or `: value` in which letters and digits are mixed, as no word of a sentence is.
fn is_value(behind: Option<&str>) -> bool {
    let behind = behind
        .unwrap_or_default()
        .trim_start_matches(['"', '\'', ' ']);
    let Some(value) = behind.strip_prefix(['=', ':']) else {
        return false;
    };
    let value = value.trim_start_matches([' ', '"', '\'', '`']);
    let value = value
        .split([' ', '"', '\'', '`', ',', ';'])
        .next()
        .unwrap_or_default();
    let mixed =
        value.chars().any(|c| c.is_ascii_digit()) && value.chars().any(|c| c.is_ascii_alphabetic());
    value.len() >= MIN_VALUE && mixed && !value.starts_with(['$', '<', '{'])
}

/// The notes that a text links to, as they are written.
pub(super) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("[[").filter_map(|(at, open)| {
        let rest = text.get(at + open.len()..)?;
        let (name, _) = rest.split_once("]]")?;
        (!name.contains('\n')).then_some(name)
    })
}

/// The first link without a target.
pub(super) fn dangling<'a>(text: &'a str, own: &NoteName, there: &[NoteName]) -> Option<&'a str> {
    links(text).find(|link| {
        own.to_string() != *link && !there.iter().any(|name| name.to_string() == *link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_talk_of_secrets() {
        let run = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        let bad = [
            "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
            format!("use AKIA{} here", &run[..16].to_uppercase()),
            format!("ghp_{run}"),
            format!("key=sk-{run}"),
            format!("PASSWORD={}", &run[..8]),
            format!("the api-key: \"{}\"", &run[..12]),
            "postgres://app:hunter2@db/main".to_owned(),
            format!("first\nsecond token = {run}"),
        ];
        for text in &bad {
            let problem = secret("text", text).unwrap_err();
            assert!(
                !problem.contains(&run[..8]) && !problem.contains("hunter2"),
                "{problem}"
            );
        }
        assert!(secret("text", &bad[7]).unwrap_err().contains("line 2"));
        let good = [
            "the token is in the keyring under `ci`",
            "password: ask Ann",
            "token = $CI_TOKEN1234",
            "the first token: identifiers",
            "secrets: see docs/secrets2.md, never here",
            "sk-learn is used",
            "commit a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6a7b8c9d0",
            "https://example.org/a:b@c",
            "https://user@example.org",
            "PASSWORD=<yours123>",
        ];
        for text in good {
            assert_eq!(secret("text", text), Ok(()), "{text}");
        }
    }

    #[test]
    fn links_are_names_in_double_brackets() {
        let found: Vec<&str> = links("see [[a-b]] and [[c]], not [d] or [[e\n]] or [[f").collect();
        assert_eq!(found, ["a-b", "c"]);
        let name = |name: &str| NoteName::try_from(name.to_owned()).unwrap();
        assert_eq!(
            dangling("[[own]] [[there]] [[gone]]", &name("own"), &[name("there")]),
            Some("gone")
        );
        assert_eq!(
            dangling("[[own]] [[there]]", &name("own"), &[name("there")]),
            None
        );
    }
}
