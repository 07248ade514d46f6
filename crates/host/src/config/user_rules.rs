//! Rules that a person adds to the user's own configuration by answering a question. Only appended: what stands in the file
//! stays as it is, with its comments and its order.

use super::read::{self, MAX_FILE, Text};
use super::{USER_FILE, grants};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::plain_file::{self, Links};
use crate::pods::make_private;
use pod::permission::{Layer, Rule, RuleDecision};
use serde::Serialize;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The mode of a file that did not exist.
const MODE: u32 = 0o600;

/// The user's configuration file, for adding rules.
#[derive(Clone, Debug)]
pub struct UserRules {
    env: Env,
    path: PathBuf,
    /// For people.
    pub shown: String,
}

/// What is added to the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Addition {
    /// As TOML; empty if all of the rules stand there already.
    pub toml: String,
    /// The file with it.
    whole: String,
}

/// A file as TOML writes it that has only rules.
#[derive(Serialize)]
struct OnlyRules<'a> {
    permissions: RuleList<'a>,
}

#[derive(Serialize)]
struct RuleList<'a> {
    rules: &'a [Rule],
}

impl UserRules {
    /// The person's own configuration file.
    pub fn of(env: &Env) -> Result<Self, Failure> {
        let path = env.config_dir()?.join(USER_FILE);
        Ok(Self {
            env: env.clone(),
            shown: env.shown(&path),
            path,
        })
    }

    /// What stands there; empty if there is no file.
    pub(super) fn text(&self) -> Result<String, Failure> {
        Ok(read::written(&self.path, Links::Followed, &self.shown)?.unwrap_or_default())
    }

    /// Keeps other processes from changing the file until what it gives is dropped.
    pub fn lock(&self) -> Result<File, Failure> {
        grants::lock(&self.env)
    }

    /// What adding these rules would write.
    ///
    /// # Errors
    /// The file is not valid, or would not be with these rules at its end, or they would override a rule that denies.
    pub fn addition(&self, rules: &[Rule]) -> Result<Addition, Failure> {
        let old = self.text()?;
        let text = read::parse(&old, self.shown.clone())?;
        let there = &text.file.permissions.rules;
        let new: Vec<Rule> = rules
            .iter()
            .filter(|rule| !stands(there, rule))
            .cloned()
            .collect();
        let new = new.as_slice();
        if let Some((index, _)) = there
            .iter()
            .enumerate()
            .find(|(_, rule)| new.iter().any(|new| new.may_override(rule)))
        {
            return Err(self.unfit(&format!(
                "{}: the new rules could override this rule, which denies, because they would come after it",
                place(&text, index)
            )));
        }
        let toml = as_toml(new);
        let whole = behind(&old, &toml);
        let read_again =
            read::parse(&whole, self.shown.clone()).map(|text| text.file.permissions.rules);
        let expected = [there.as_slice(), new].concat();
        let fits = read_again.is_ok_and(|rules| rules == expected)
            && Layer::new(self.shown.clone(), expected).is_ok()
            && whole.len() as u64 <= MAX_FILE;
        match fits {
            true => Ok(Addition { toml, whole }),
            false => Err(self.unfit(&format!(
                "{}: rules cannot be added at the end of this file",
                self.shown
            ))),
        }
    }

    /// Whether the file has all of these rules.
    pub fn has(&self, rules: &[Rule]) -> bool {
        let text = read::written(&self.path, Links::Followed, &self.shown)
            .ok()
            .flatten()
            .unwrap_or_default();
        let there = read::parse(&text, self.shown.clone())
            .map(|text| text.file.permissions.rules)
            .unwrap_or_default();
        !rules.is_empty() && rules.iter().all(|rule| there.contains(rule))
    }

    /// Adds the rules that do not stand there yet. The caller holds the lock.
    pub fn add(&self, rules: &[Rule]) -> Result<Addition, Failure> {
        let addition = self.addition(rules)?;
        if !addition.toml.is_empty() {
            self.write(&addition.whole)
                .map_err(|why| Failure::new(Exit::Config, format!("{}: {why}", self.shown)))?;
        }
        Ok(addition)
    }

    pub(super) fn write(&self, text: &str) -> Result<(), String> {
        // People keep the file elsewhere, and a link to it here.
        let path = match fs::canonicalize(&self.path) {
            Ok(path) => path,
            Err(_) if self.path.is_symlink() => return Err("this link leads nowhere".to_owned()),
            Err(_) => {
                make_private(self.path.parent().unwrap_or(Path::new("/")))
                    .map_err(|failure| failure.message)?;
                self.path.clone()
            }
        };
        let mode = fs::metadata(&path).map_or(MODE, |meta| meta.permissions().mode() & 0o7777);
        if mode & 0o200 == 0 {
            return Err("the file is read-only".to_owned());
        }
        plain_file::replace(&path, text.as_bytes(), mode)
            .map_err(|error| authority::explain(&error).to_string())
    }

    fn unfit(&self, what: &str) -> Failure {
        let help = format!(
            "allow the call once or in this pod, or edit {} yourself",
            self.shown
        );
        Failure::new(Exit::Config, what).help(help)
    }
}

/// The rules as TOML; nothing for none.
pub fn as_toml(rules: &[Rule]) -> String {
    let all = OnlyRules {
        permissions: RuleList { rules },
    };
    // Texts and lists of texts can always be written.
    if rules.is_empty() {
        String::new()
    } else {
        toml::to_string(&all).unwrap_or_default()
    }
}

fn place(text: &Text, index: usize) -> String {
    text.place(&["permissions", "rules", &index.to_string()])
}

/// A text behind another one, with an empty line between them.
fn behind(old: &str, new: &str) -> String {
    match old {
        _ if new.is_empty() => old.to_owned(),
        "" => new.to_owned(),
        old if old.ends_with('\n') => format!("{old}\n{new}"),
        old => format!("{old}\n\n{new}"),
    }
}

/// Whether a rule is there, and none after it can ask or deny.
fn stands(there: &[Rule], rule: &Rule) -> bool {
    let behind = there
        .iter()
        .rev()
        .take_while(|other| other.decision == RuleDecision::Allow);
    behind.into_iter().any(|other| other == rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(program: &str, decision: RuleDecision) -> Rule {
        Rule {
            program: Some(program.to_owned()),
            ..Rule::new("Bash", decision)
        }
    }

    #[test]
    fn a_rule_stands_unless_a_later_one_may_win() {
        let allow = rule("ls", RuleDecision::Allow);
        let ask = Rule::new("*", RuleDecision::Ask);
        let other = rule("cat", RuleDecision::Allow);
        assert!(stands(&[ask.clone(), allow.clone(), other.clone()], &allow));
        assert!(!stands(&[allow.clone(), ask], &allow));
        assert!(!stands(&[other], &allow));
    }

    #[test]
    fn the_text_is_that_of_a_file() {
        let git = Rule {
            subcommand: Some(vec!["push".to_owned()]),
            ..rule("git", RuleDecision::Allow)
        };
        let text = as_toml(&[
            git,
            Rule {
                path: Some("/p/a b".to_owned()),
                ..Rule::new("Read", RuleDecision::Allow)
            },
        ]);
        let expected = "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"git\"\nsubcommand = [\"push\"]\n\
                        decision = \"allow\"\n\n[[permissions.rules]]\ntool = \"Read\"\npath = \"/p/a b\"\n\
                        decision = \"allow\"\n";
        assert_eq!(text, expected);
        assert_eq!(
            (behind("a = 1", "b"), behind("# c\n", "b"), behind("a", "")),
            ("a = 1\n\nb".into(), "# c\n\nb".into(), "a".into())
        );
    }
}
