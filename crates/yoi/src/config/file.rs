//! One configuration file, as it is written. Every key is optional; an unknown one is an error.

use pod::permission::Rule;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The keys of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// `provider/name`, `offline` or `scripted:FILE`.
    pub(crate) model: Option<String>,
    /// Model endpoints by name.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, Provider>,
    /// What a run may use.
    #[serde(default)]
    pub(crate) limits: Limits,
    /// What may run.
    #[serde(default)]
    pub(crate) permissions: Permissions,
    /// Features by id.
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Feature>,
    /// How the shell is confined.
    #[serde(default)]
    pub(crate) sandbox: Sandbox,
}

/// `[providers.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// The wire format.
    pub(crate) api: Api,
    /// As in `http://127.0.0.1:8080/v1`.
    pub(crate) base_url: String,
    /// Where the key is; none is sent without one.
    pub(crate) key: Option<Key>,
}

/// A wire format this build speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Api {
    /// Chat completions, streamed.
    OpenaiChat,
}

/// Where a key is. Never the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Key {
    /// In this variable.
    Env(String),
    /// In this file; the first line counts.
    File(PathBuf),
    /// Printed by this program and its arguments.
    Command(Vec<String>),
}

/// `[limits]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Model requests in one run.
    pub(crate) max_steps: Option<u32>,
    /// Calls at once.
    pub(crate) tool_concurrency: Option<usize>,
}

/// `[permissions]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Permissions {
    /// `[[permissions.rules]]`.
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
}

/// `[features."ID"]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Feature {
    /// Whether it is installed.
    pub(crate) enabled: Option<bool>,
    /// Whether nothing starts without it.
    pub(crate) required: Option<bool>,
}

/// `[sandbox]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sandbox {
    /// How far.
    pub(crate) mode: Option<Mode>,
}

/// As written in files and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Nothing is written.
    ReadOnly,
    /// The project is written.
    WorkspaceWrite,
    /// No confinement.
    Off,
}

impl Mode {
    /// As written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Off => "off",
        }
    }
}

/// A file that does not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// From 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
    /// The next step.
    pub(crate) help: Option<String>,
}

/// Reads a file's text.
pub(crate) fn parse(text: &str) -> Result<File, Problem> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
        let what = error.message().lines().next().unwrap_or_default().to_owned();
        Problem { line, help: suggestion(&what), what }
    })
}

/// The known key nearest to an unknown one. The parser's message quotes both: the unknown one first.
fn suggestion(message: &str) -> Option<String> {
    let (kind, quoted) = message.split_once('`')?;
    if kind.trim() == "missing field" {
        return Some("add it".to_owned());
    }
    let mut names = quoted.split('`').step_by(2);
    let unknown = names.next()?;
    let known: Vec<&str> = names.collect();
    let nearest = known.iter().min_by_key(|name| strsim::damerau_levenshtein(name, unknown))?;
    let close = strsim::damerau_levenshtein(nearest, unknown) <= 3.max(unknown.len() / 3);
    Some(if close { format!("did you mean `{nearest}`?") } else { format!("known here: {}", known.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
        let problem = parse("model = \"offline\"\n\n[limits]\nmax_stepps = 3\n").err();
        let problem = problem.expect("max_stepps is not a key");
        assert_eq!((problem.line, problem.help.as_deref()), (4, Some("did you mean `max_steps`?")));
        let problem = parse("[sandbox]\nmode = \"workspace\"\n").expect_err("no such mode");
        assert_eq!((problem.line, problem.help.as_deref()), (2, Some("known here: read-only, workspace-write, off")));
    }

    #[test]
    fn a_plaintext_key_does_not_read() {
        let text = "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://h/v1\"\nkey = \"sk-123\"\n";
        assert_eq!(parse(text).expect_err("keys are never written here").line, 4);
        let text = text.replace("\"sk-123\"", "{ env = \"X_KEY\" }");
        assert_eq!(parse(&text).expect("by name").providers["x"].key, Some(Key::Env("X_KEY".to_owned())));
    }

    #[test]
    fn every_section_reads() {
        let text = r#"
            model = "local/x"
            [providers.local]
            api = "openai-chat"
            base_url = "http://127.0.0.1:8080/v1"
            key = { command = ["pass", "show", "x"] }
            [limits]
            max_steps = 5
            tool_concurrency = 2
            [[permissions.rules]]
            tool = "Write"
            path = "**/.env*"
            decision = "deny"
            [features."builtin:shell"]
            enabled = false
            [sandbox]
            mode = "read-only"
        "#;
        let file = parse(text).expect("it is all known");
        assert_eq!(file.sandbox.mode, Some(Mode::ReadOnly));
        assert_eq!(file.permissions.rules.len(), 1);
        assert_eq!(file.features["builtin:shell"].enabled, Some(false));
    }
}
