//! Permission rules and names of secret files, each with its place. Judges no call.

use super::{Config, Source, Sourced};
use crate::exit::{Exit, Failure};
use authority::SecretNames;
use pod::permission::{Layer, Rule, RuleError};

/// The rules of one file.
#[derive(Clone, Debug)]
pub struct FileRules {
    pub source: Source,
    pub rules: Vec<WrittenRule>,
    /// Of a project's file: they come after the user's own.
    pub tightens: bool,
}

/// A rule as it stands in a file.
#[derive(Clone, Debug)]
pub struct WrittenRule {
    pub rule: Rule,
    /// Which it is in its file, from 0.
    pub index: usize,
    pub source: Source,
    /// Where each of its keys stands.
    keys: Vec<(&'static str, Source)>,
}

impl WrittenRule {
    /// A rule and the place of its keys.
    pub fn new(rule: Rule, index: usize, place: &dyn Fn(&[&str]) -> Source) -> Self {
        let number = index.to_string();
        let at = |key| (key, place(&["permissions", "rules", &number, key]));
        let keys = ["tool", "path", "host", "program", "subcommand", "decision"]
            .map(at)
            .to_vec();
        Self {
            rule,
            index,
            source: place(&["permissions", "rules", &number]),
            keys,
        }
    }

    /// Where one of its keys stands, or else the rule.
    pub fn place(&self, key: &str) -> &Source {
        self.keys
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(&self.source, |(_, source)| source)
    }

    /// Where a key of the rule stands.
    pub fn key(&self) -> String {
        format!("permissions.rules[{}]", self.index)
    }
}

impl FileRules {
    /// A file's rules; nothing of a file that has none.
    pub fn of(source: Source, rules: impl Iterator<Item = WrittenRule>) -> Option<Self> {
        let rules: Vec<WrittenRule> = rules.collect();
        (!rules.is_empty()).then_some(Self {
            source,
            rules,
            tightens: false,
        })
    }
}

impl Config {
    /// Adds what a file says; nothing takes a name away.
    pub(super) fn add_secrets(&mut self, globs: Vec<String>, place: &dyn Fn(&[&str]) -> Source) {
        let at = |index: usize| place(&["permissions", "secrets", &index.to_string()]);
        self.secrets.extend(
            globs
                .into_iter()
                .enumerate()
                .map(|(index, glob)| Sourced::new(glob, at(index))),
        );
    }

    /// The patterns of names that hold secrets.
    pub fn secret_names(&self) -> Result<SecretNames, Failure> {
        let all: Vec<String> = self.secrets.iter().map(|glob| glob.value.clone()).collect();
        SecretNames::with(&all).map_err(|error| {
            let wrong = |glob: &&Sourced<String>| {
                SecretNames::with(std::slice::from_ref(&glob.value)).is_err()
            };
            let source = self
                .secrets
                .iter()
                .find(wrong)
                .or(self.secrets.last())
                .map_or("", |glob| &glob.source);
            Failure::new(
                Exit::Config,
                format!("{source}: permissions.secrets: {error}"),
            )
            .help("write glob patterns, such as secrets = [\"*.key\"]")
        })
    }

    /// The permission rules as the policy takes them.
    pub fn layers(&self) -> Result<Vec<Layer>, Failure> {
        self.rules.iter().map(layer).collect()
    }
}

fn layer(
    FileRules {
        source,
        rules,
        tightens,
    }: &FileRules,
) -> Result<Layer, Failure> {
    let placed = rules
        .iter()
        .map(|written| (written.rule.clone(), written.source.clone()))
        .collect();
    let layer = Layer::placed(source.clone(), placed).map_err(|error| {
        let RuleError {
            source_name,
            index,
            problem,
        } = error;
        let key = problem.split('`').nth(1);
        let message = match rules.get(index) {
            Some(written) => format!(
                "{}: {}: {problem}",
                written.place(key.unwrap_or_default()),
                written.key()
            ),
            None => format!("{source_name}: permissions.rules: {problem}"),
        };
        let example = match key {
            Some("path") => "path = \"docs/**\"",
            Some("host") => "host = \"docs.example.org\"",
            Some("program" | "subcommand") => "program = \"git\" and subcommand = [\"push\"]",
            Some(_) | None => "tool = \"Bash\" and decision = \"deny\"",
        };
        Failure::new(Exit::Config, message).help(format!("write a rule such as {example}"))
    })?;
    Ok(if *tightens { layer.tightening() } else { layer })
}
