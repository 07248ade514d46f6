//! Commands of a person as declared: a name behind a slash, and the text that becomes an input. Data alone: the host
//! expands the text, and only where a person typed the name.

use super::capability::HostCapability;
use super::contribution::{Contribution, ContributionKind};
use super::text::{self, Lines};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest text of a command, in bytes.
pub const MAX_COMMAND: usize = 32 * 1024;
/// Longest name, description and hint, in bytes.
const MAX_NAME: usize = 64;
const MAX_ABOUT: usize = 1024;
const MAX_HINT: usize = 256;

/// A command as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandDeclaration {
    /// 1 to 64 bytes of `[A-Za-z0-9._:-]`, the first of them a letter or digit.
    pub name: String,
    /// For people; at most 1 KiB.
    pub about: String,
    /// The arguments that it takes, for people; at most 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Whose words they are, for people.
    pub source: String,
    /// The text, at most 32 KiB, or what its feature makes the text of; with `$ARGUMENTS`, and `$1` to `$9`, where what was typed behind the name goes.
    pub text: String,
}

impl CommandDeclaration {
    /// The request to offer it, which every command makes by itself.
    #[must_use]
    pub fn implied(&self) -> HostCapability {
        HostCapability::ContributeCommand {
            name: self.name.clone().into(),
        }
    }

    /// What is wrong with it; a feature with such a command is not installed.
    #[must_use]
    pub fn wrong(&self) -> Option<String> {
        self.problem(&[])
    }

    /// BLAKE3 of its text, in lower-case hex.
    #[must_use]
    pub fn digest(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }
}

impl Contribution for CommandDeclaration {
    const KIND: ContributionKind = ContributionKind::Command;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn requests(&self) -> Vec<HostCapability> {
        vec![self.implied()]
    }

    fn needs(&self) -> Vec<HostCapability> {
        Vec::new()
    }

    fn problem(&self, _requested: &[HostCapability]) -> Option<String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if !self.name.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !self.name.chars().all(fits)
        {
            return Some(format!(
                "the name of a command `{}` is not letters, digits and `-_.:`",
                text::escape_line(&self.name, MAX_NAME)
            ));
        }
        let hint = self.argument_hint.as_deref().unwrap_or("-");
        text::check("the name of a command", &self.name, MAX_NAME, Lines::One)
            .and_then(|()| {
                text::check(
                    "a command's description",
                    &self.about,
                    MAX_ABOUT,
                    Lines::One,
                )
            })
            .and_then(|()| text::check("a command's arguments", hint, MAX_HINT, Lines::One))
            .and_then(|()| text::check("a command's source", &self.source, MAX_ABOUT, Lines::One))
            .and_then(|()| text::check("a command's text", &self.text, MAX_COMMAND, Lines::Many))
            .err()
    }
}
