//! Keys of issues and the like, as people and models write them: `gh#12`, `pr#12`, `gitlab#7`, `mr#7`, `jira#PROJ-3` or
//! `PROJ-3`, `CU-abc`. Each provider reads its own forms by these functions.

use crate::{ServiceFault, unfit};
use authority::text::{Lines, escape_within};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 128;

/// The key of a number, such as `gh#12`.
#[must_use]
pub fn numbered(prefix: &str, number: u64) -> String {
    format!("{prefix}#{number}")
}

/// The number in a key such as `gh#12`.
///
/// # Errors
/// It has another form.
pub fn number(key: &str, prefix: &str) -> Result<u64, ServiceFault> {
    let digits = key.trim().strip_prefix(prefix);
    let digits = digits.and_then(|rest| rest.strip_prefix('#'));
    let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number
        .and_then(|digits| digits.parse().ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| other(key, &format!("{prefix}#N, such as {prefix}#12")))
}

/// The key of a project's item, such as `PROJ-3`, which may stand behind a prefix: `jira#PROJ-3`.
///
/// # Errors
/// It has another form.
pub fn of_project(key: &str, prefix: &str) -> Result<String, ServiceFault> {
    let form = || other(key, &format!("PROJ-N or {prefix}#PROJ-N"));
    let bare = key.trim();
    let behind = bare.strip_prefix(prefix);
    let bare = behind
        .and_then(|rest| rest.strip_prefix('#'))
        .unwrap_or(bare);
    let (project, number) = bare.rsplit_once('-').ok_or_else(form)?;
    let is_project = project.starts_with(|first: char| first.is_ascii_alphabetic())
        && project
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match is_project && is_number && bare.len() <= MAX_KEY {
        true => Ok(bare.to_ascii_uppercase()),
        false => Err(form()),
    }
}

/// The id in a key with a sign before it, such as `CU-86abc`: 1 to 64 letters, digits, `_` and `-`.
///
/// # Errors
/// It has another form.
pub fn signed<'a>(key: &'a str, sign: &str) -> Result<&'a str, ServiceFault> {
    let id = key.trim().strip_prefix(sign).filter(|id| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=64).contains(&id.len()) && id.bytes().all(fits)
    });
    id.ok_or_else(|| other(key, &format!("{sign}ID")))
}

fn other(key: &str, form: &str) -> ServiceFault {
    let shown = escape_within(key, Lines::One, MAX_KEY);
    unfit(format!("key `{shown}` is not of the form {form}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read_and_no_other() {
        assert_eq!(number("gh#12", "gh").unwrap(), 12);
        assert_eq!(number(" pr#7 ", "pr").unwrap(), 7);
        for bad in [
            "",
            "12",
            "#12",
            "gh#",
            "gh#0",
            "gh#1x",
            "gh#-1",
            "pr#1",
            "gh#99999999999999999999",
            "gh#1/../2",
        ] {
            assert!(number(bad, "gh").is_err(), "{bad}");
        }
        assert_eq!(of_project("jira#proj-3", "jira").unwrap(), "PROJ-3");
        assert_eq!(of_project("A_1-20", "jira").unwrap(), "A_1-20");
        for bad in [
            "",
            "PROJ",
            "-3",
            "PROJ-",
            "PROJ-x",
            "1A-2",
            "PROJ-1 OR 1=1",
            "gh#1",
            "jira#",
        ] {
            assert!(of_project(bad, "jira").is_err(), "{bad}");
        }
        assert_eq!(signed("CU-86abc", "CU-").unwrap(), "86abc");
        for bad in ["", "CU-", "86abc", "CU-a/b", "CU-a?b"] {
            assert!(signed(bad, "CU-").is_err(), "{bad}");
        }
        let error = number("x", "gh").unwrap_err().message;
        assert_eq!(error, "key `x` is not of the form gh#N, such as gh#12");
    }
}
