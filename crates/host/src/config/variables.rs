//! Configuration from `YOI_` variables, over the files. Knows no flag.

use super::file::{KeySource, Mode};
use super::{Config, Endpoint, set};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::host_log;
use std::ffi::OsStr;
use std::str::FromStr;

/// The variables that are read.
pub const VARIABLES: [&str; 9] = [
    "YOI_MODEL",
    "YOI_MAX_STEPS",
    "YOI_MAX_COST",
    "YOI_MAX_TOKENS",
    "YOI_MAX_WALL",
    "YOI_TOOL_CONCURRENCY",
    "YOI_SANDBOX",
    "YOI_PLUGIN_DIR",
    "YOI_STRICT_PLUGINS",
];

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
        set(
            &mut self.model,
            env.text("YOI_MODEL").map(str::to_owned),
            || "YOI_MODEL".to_owned(),
        );
        self.max_steps.set(
            number(env, "YOI_MAX_STEPS", "a whole number, at least 1", "20")?,
            || "YOI_MAX_STEPS".to_owned(),
        );
        set(
            &mut self.max_cost,
            number(env, "YOI_MAX_COST", "an amount of US dollars", "0.50")?,
            || "YOI_MAX_COST".to_owned(),
        );
        set(
            &mut self.max_tokens,
            number(
                env,
                "YOI_MAX_TOKENS",
                "a whole number, at least 1",
                "200000",
            )?,
            || "YOI_MAX_TOKENS".to_owned(),
        );
        set(
            &mut self.max_wall_s,
            number(
                env,
                "YOI_MAX_WALL",
                "a whole number of seconds, at least 1",
                "3600",
            )?,
            || "YOI_MAX_WALL".to_owned(),
        );
        let calls = number(
            env,
            "YOI_TOOL_CONCURRENCY",
            "a whole number from 1 to 32",
            "8",
        )?;
        self.tool_concurrency
            .set(calls, || "YOI_TOOL_CONCURRENCY".to_owned());
        let strict = match env.text("YOI_STRICT_PLUGINS") {
            None | Some("0") => None,
            Some("1") => Some(true),
            Some(text) => return Err(bad_variable("YOI_STRICT_PLUGINS", text, "0 or 1", "1")),
        };
        self.strict_plugins
            .set(strict, || "YOI_STRICT_PLUGINS".to_owned());
        let bad = |text| {
            bad_variable(
                "YOI_SANDBOX",
                text,
                "read-only, workspace-write or off",
                "workspace-write",
            )
        };
        let mode = env
            .text("YOI_SANDBOX")
            .map(|text| Mode::named(text).ok_or_else(|| bad(text)))
            .transpose()?;
        self.sandbox.set(mode, || "YOI_SANDBOX".to_owned());
        Ok(())
    }

    /// One line about variables that nothing reads.
    pub fn warning(&self) -> Option<String> {
        let names = (!self.unknown.is_empty()).then(|| self.unknown.join(", "))?;
        Some(format!(
            "warning: unknown variables: {names}; known: {}",
            VARIABLES.join(", ")
        ))
    }

    fn names_a_key(&self, variable: &str) -> bool {
        let key = |endpoint: &Endpoint| matches!(&endpoint.value.key, Some(KeySource::Env(name)) if name == variable);
        self.providers.values().any(key)
    }
}

fn number<T: FromStr>(
    env: &Env,
    name: &str,
    expected: &str,
    example: &str,
) -> Result<Option<T>, Failure> {
    let Some(text) = env.text(name) else {
        return Ok(None);
    };
    text.parse()
        .map(Some)
        .map_err(|_| bad_variable(name, text, expected, example))
}

/// Refuses a variable that is ours and not text, or that was probably meant to be ours. `false` for another one that
/// has our prefix.
fn variable(name: &str, value: &OsStr) -> Result<bool, Failure> {
    if VARIABLES.contains(&name) {
        return match value.to_str() {
            Some(_) => Ok(true),
            None => Err(Failure::new(Exit::Config, format!("{name} is not UTF-8"))
                .help(format!("unset {name}, or set it to UTF-8 text"))),
        };
    }
    match VARIABLES
        .iter()
        .find(|known| strsim::damerau_levenshtein(known, name) <= TYPO)
    {
        Some(meant) => Err(
            Failure::new(Exit::Config, format!("unknown variable {name}"))
                .help(format!("did you mean {meant}?")),
        ),
        None => Ok(name == INHERITED || name == host_log::VARIABLE || !name.starts_with("YOI_")),
    }
}

fn bad_variable(name: &str, value: &str, expected: &str, example: &str) -> Failure {
    Failure::new(
        Exit::Config,
        format!("{name}={value}: the value must be {expected}"),
    )
    .help(format!("unset {name}, or use a value such as {example}"))
}
