//! Configuration from `YOI_` variables, over the files. Knows no flag.

use super::file::{KeySource, Mode};
use super::{Config, Endpoint, Source, Sourced};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::host_log;
use crate::limits::LIMITS;
use std::ffi::OsStr;

/// A variable that is no limit.
struct Variable {
    name: &'static str,
    /// Its values, and an example.
    values: [&'static str; 2],
    /// Takes a value; none if it is not one.
    take: fn(&mut Config, &str, Source) -> Option<()>,
}

/// The variables that are read, besides those of limits.
static VARIABLES: &[Variable] = &[
    Variable {
        name: "YOI_MODEL",
        values: ["a model", "offline"],
        take: |config, text, source| {
            config.model = Some(Sourced::new(text.to_owned(), source));
            Some(())
        },
    },
    Variable {
        name: "YOI_TOOL_CONCURRENCY",
        values: ["a whole number from 1 to 32", "8"],
        take: |config, text, source| {
            config.tool_concurrency = Sourced::new(text.parse().ok()?, source);
            Some(())
        },
    },
    Variable {
        name: "YOI_SANDBOX",
        values: ["read-only, workspace-write or off", "workspace-write"],
        take: |config, text, source| {
            config.sandbox = Sourced::new(Mode::named(text)?, source);
            Some(())
        },
    },
    Variable {
        name: "YOI_PLUGIN_DIR",
        values: ["directories", "/opt/yoi/plugins"],
        // Where packages are looked for reads it.
        take: |_, _, _| Some(()),
    },
    Variable {
        name: "YOI_STRICT_PLUGINS",
        values: ["0 or 1", "1"],
        take: |config, text, source| {
            let number = ["0", "1"].iter().position(|number| *number == text)?;
            if number == 1 {
                config.strict_plugins = Sourced::new(true, source);
            }
            Some(())
        },
    },
];

/// The names of all variables that are read.
pub fn names() -> impl Iterator<Item = &'static str> {
    let mut others = VARIABLES.iter().map(|variable| variable.name);
    let limits = LIMITS.iter().map(|limit| limit.variable);
    others.next().into_iter().chain(limits).chain(others)
}

/// How far a name may be from one of them and still be taken for a slip of the hand.
const TYPO: usize = 2;

/// What the children of a run carry, and by which `authority::end_survivors` knows them.
pub const INHERITED: &str = "YOI_CALL";

impl Config {
    pub(super) fn environment(&mut self, env: &Env) -> Result<(), Failure> {
        for (name, value) in env.vars() {
            let name = name.to_string_lossy();
            if !variable(&name, value)? && !self.names_a_key(&name) {
                self.unknown.push(name.into_owned());
            }
        }
        for Variable { name, values, take } in VARIABLES {
            if let Some(text) = env.text(name) {
                let taken = take(self, text, (*name).to_owned());
                taken.ok_or_else(|| bad_variable(name, text, values))?;
            }
        }
        for limit in LIMITS {
            if let Some(text) = env.text(limit.variable) {
                let bad = || bad_variable(limit.variable, text, &limit.form.variable);
                let amount = (limit.number)(text).ok_or_else(bad)?;
                let source = limit.variable.to_owned();
                self.limits.insert(limit, Sourced::new(amount, source));
            }
        }
        Ok(())
    }

    /// One line about variables that nothing reads.
    pub fn warning(&self) -> Option<String> {
        let unknown = (!self.unknown.is_empty()).then(|| self.unknown.join(", "))?;
        Some(format!(
            "warning: unknown variables: {unknown}; known: {}",
            names().collect::<Vec<_>>().join(", ")
        ))
    }

    fn names_a_key(&self, variable: &str) -> bool {
        let key = |endpoint: &Endpoint| matches!(&endpoint.value.key, Some(KeySource::Env(name)) if name == variable);
        self.providers.values().any(key)
    }
}

/// Refuses a variable that is ours and not text, or that was probably meant to be ours. `false` for another one that
/// has our prefix.
fn variable(name: &str, value: &OsStr) -> Result<bool, Failure> {
    if names().any(|known| known == name) {
        return match value.to_str() {
            Some(_) => Ok(true),
            None => Err(Failure::new(Exit::Config, format!("{name} is not UTF-8"))
                .help(format!("unset {name}, or set it to UTF-8 text"))),
        };
    }
    // A distance takes long to find, and there are many variables.
    let near = |known: &&str| {
        known.len().abs_diff(name.chars().count()) <= TYPO
            && strsim::damerau_levenshtein(known, name) <= TYPO
    };
    match names().find(near) {
        Some(meant) => Err(
            Failure::new(Exit::Config, format!("unknown variable {name}"))
                .help(format!("did you mean {meant}?")),
        ),
        None => Ok(name == INHERITED || name == host_log::VARIABLE || !name.starts_with("YOI_")),
    }
}

fn bad_variable(name: &str, value: &str, [expected, example]: &[&str; 2]) -> Failure {
    Failure::new(
        Exit::Config,
        format!("{name}={value}: the value must be {expected}"),
    )
    .help(format!("unset {name}, or use a value such as {example}"))
}
