//! The API keys of providers: resolved where a person can answer, handed to the process that hosts a pod, or missing.

use super::key_command;
use crate::config::Config;
use crate::config::file::KeySource;
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use authority::text::without_bom;
use authority::{Ambient, Secret};
use provider::catalog::{self, KeyRule};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// How the file of a key can begin: the directory in which systemd gives credentials to a service.
const CREDENTIALS: &str = "$CREDENTIALS_DIRECTORY";

/// The key of a model's provider, as one process gives it to another. Never written anywhere.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedKey {
    /// The model needs none.
    Unneeded,
    Known {
        id: String,
        value: String,
    },
    /// What is missing, and the next step.
    Missing {
        message: String,
        help: Option<String>,
    },
}

impl ResolvedKey {
    /// Resolves the key that the model of this name needs.
    pub fn resolve(ambient: &Ambient, model: &str, config: &Config, env: &Env) -> Self {
        let Some((provider, _model)) = catalog::split(model) else {
            return Self::Unneeded;
        };
        match of(ambient, provider, config, env, true) {
            Ok(None) => Self::Unneeded,
            Ok(Some(secret)) => match secret.expose() {
                Ok(value) => Self::Known {
                    id: secret.id().to_owned(),
                    value: value.to_owned(),
                },
                Err(revoked) => Self::Missing {
                    message: revoked.to_string(),
                    help: None,
                },
            },
            Err(Failure { message, help, .. }) => Self::Missing {
                message,
                help: help.as_ref().map(env.words.help),
            },
        }
    }

    /// The key, if there is one.
    pub fn secret(&self, ambient: &Ambient) -> Option<Secret> {
        match self {
            Self::Known { id, value } => Some(Secret::new(ambient, id, value.clone())),
            Self::Unneeded | Self::Missing { .. } => None,
        }
    }

    /// What is missing, and the next step.
    pub fn missing(&self) -> Option<String> {
        match self {
            Self::Missing {
                message,
                help: Some(help),
            } => Some(format!("{message}; {help}")),
            Self::Missing {
                message,
                help: None,
            } => Some(message.clone()),
            Self::Unneeded | Self::Known { .. } => None,
        }
    }
}

/// The variables that may hold keys and secrets, as far as the configuration and the catalogue name them.
pub fn variables(config: &Config) -> impl Iterator<Item = String> {
    let catalogue = catalog::PROVIDERS
        .iter()
        .flat_map(|provider| provider.key_variables().iter());
    let keys = config
        .providers
        .values()
        .filter_map(|provider| provider.value.key.as_ref());
    let sources = keys.chain(config.named_secrets.values().map(|secret| &secret.value));
    let named = sources.filter_map(|source| match source {
        KeySource::Env(name) => Some(name.clone()),
        KeySource::File(_) | KeySource::Command(_) => None,
    });
    catalogue.map(|name| (*name).to_owned()).chain(named)
}

/// The key of a provider; none if it needs none. `or_other_model`: whether a person can choose another model instead of setting it.
pub fn of(
    ambient: &Ambient,
    provider: &str,
    config: &Config,
    env: &Env,
    or_other_model: bool,
) -> Result<Option<Secret>, Failure> {
    if let Some(configured) = config.providers.get(provider) {
        let wanted = KeyPurpose {
            what: format!("API key for {provider}"),
            kind: "API key",
            setting: format!("providers.{provider}.key"),
            id: None,
        };
        return configured
            .value
            .key
            .as_ref()
            .map(|key| read(ambient, &wanted, key, env))
            .transpose();
    }
    let Some(known) = catalog::find(provider) else {
        return Ok(None);
    };
    let variable = known
        .key_variables()
        .iter()
        .find(|name| env.var(name).is_some());
    match (known.key, variable) {
        (KeyRule::None, _) => Ok(None),
        (KeyRule::Required(_), Some(variable)) => {
            let key = env
                .text(variable)
                .map(str::trim)
                .filter(|key| !key.is_empty())
                .ok_or_else(|| {
                    Failure::new(
                        Exit::Config,
                        format!("no API key for {provider}: {variable} is empty"),
                    )
                    .help(Help::SetKey {
                        names: (*variable).to_owned(),
                        or_other_model,
                    })
                })?;
            Ok(Some(Secret::new(ambient, variable, key.to_owned())))
        }
        (KeyRule::Required(names), None) => {
            let unset = if names.len() == 1 { "is" } else { "are" };
            let message = format!(
                "no API key for {provider}: {} {unset} not set",
                names.join(" and ")
            );
            let names = names.join(" or ");
            Err(Failure::new(Exit::Config, message).help(Help::SetKey {
                names,
                or_other_model,
            }))
        }
    }
}

/// Where a key is, for people.
pub fn describe(key: &KeySource) -> String {
    match key {
        KeySource::Env(name) => name.clone(),
        KeySource::File(path) => path.display().to_string(),
        KeySource::Command(words) => format!("`{}`", words.join(" ")),
    }
}

/// A key or a secret as messages name it.
pub(super) struct KeyPurpose {
    /// `API key for toy`.
    pub(super) what: String,
    /// `API key`.
    pub(super) kind: &'static str,
    /// Where the configuration says where it is: `providers.toy.key`.
    pub(super) setting: String,
    /// The name that may be printed; the place without one.
    pub(super) id: Option<String>,
}

/// Reads a key or a secret from its place.
pub(super) fn read(
    ambient: &Ambient,
    wanted: &KeyPurpose,
    key: &KeySource,
    env: &Env,
) -> Result<Secret, Failure> {
    let KeyPurpose {
        what,
        kind,
        setting,
        id,
    } = wanted;
    let place = describe(key);
    let other = format!("or change `{setting}`");
    let fail = |why: &str| {
        let help = match key {
            KeySource::Env(name) => format!("export {name}=…, {other}"),
            KeySource::File(_) => format!("write the {kind} into {place}, {other}"),
            KeySource::Command(_) => {
                format!(
                    "test the command in {}, where yoi runs it; use absolute paths for files",
                    key_command::PLACE
                )
            }
        };
        Failure::new(Exit::Config, format!("no {what}: {place} {why}")).help(help)
    };
    let text = match key {
        KeySource::Env(name) => match env.var(name) {
            None => return Err(fail("is not set")),
            Some(_) => match env.text(name).ok_or_else(|| fail("is not UTF-8"))?.trim() {
                text if text.contains(['\n', '\r']) => return Err(fail("has a line break in it")),
                text => text.to_owned(),
            },
        },
        KeySource::File(path) => {
            let path = match (path.strip_prefix("~"), path.strip_prefix(CREDENTIALS)) {
                (Ok(rest), _) => env.home()?.join(rest),
                (Err(_), Ok(rest)) => {
                    let dir = env.var(CREDENTIALS.trim_start_matches('$'));
                    PathBuf::from(dir.ok_or_else(|| fail("is in a directory that is not set"))?)
                        .join(rest)
                }
                (Err(_), Err(_)) => path.clone(),
            };
            fs::read_to_string::<PathBuf>(path).map_err(|e| fail(&authority::explain(&e)))?
        }
        KeySource::Command(words) => {
            let none = |why: String| Failure::new(Exit::Config, format!("no {what}: {why}"));
            let [program, ..] = words.as_slice() else {
                return Err(none(format!("`{setting}.command` is empty"))
                    .help("write { command = [\"PROGRAM\", \"ARGUMENT\"] }"));
            };
            let explained = |failure: Failure, help: Option<&str>| match help {
                Some(help) => failure.help(help),
                None => failure,
            };
            let file =
                key_command::program(program, env).map_err(|e| explained(none(e.what), e.help))?;
            key_command::printed(&file, words, env).map_err(|e| explained(fail(&e.what), e.help))?
        }
    };
    match without_bom(&text).lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(Secret::new(
            ambient,
            id.as_deref().unwrap_or(&place),
            line.to_owned(),
        )),
        Some(_) | None if matches!(key, KeySource::Command(_)) => {
            Err(fail("printed no key").help("use a command that prints the key"))
        }
        Some(_) | None => Err(fail("is empty")),
    }
}
