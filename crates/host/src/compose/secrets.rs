//! Secrets of the configuration, for features that are granted them: read where a person can answer, handed to the
//! process that hosts a pod, and offered to those features alone.

use super::keys::{self, KeyPurpose};
use super::switches::{Switched, switched};
use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::words::Words;
use authority::{Ambient, MIN_REDACTED, Redactor, Secret};
use pod::feature::{FeatureRegistryBuilder, FeatureRuntimeKind, HostCapability, HostServices};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The secrets that features of a pod are granted, by name, as one process gives them to another. Never written
/// anywhere.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct ResolvedSecrets(BTreeMap<String, ResolvedSecret>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResolvedSecret {
    Known(String),
    /// Why there is none, and the next step.
    Missing(String),
}

impl ResolvedSecrets {
    /// Reads the secrets that enabled features are granted, which may run commands and ask a person. One that is
    /// missing stops nothing: a feature that asks for it is told why.
    pub fn of(ambient: &Ambient, config: &Config, env: &Env) -> Result<Self, Failure> {
        let mut resolved = BTreeMap::new();
        for name in granted(config, env)? {
            let read = named(ambient, config, env, &name);
            let secret = read.map_or_else(
                |failure| ResolvedSecret::missing(failure, env.words),
                ResolvedSecret::Known,
            );
            resolved.insert(name, secret);
        }
        Ok(Self(resolved))
    }

    /// Why secrets are missing.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(|secret| match secret {
            ResolvedSecret::Known(_) => None,
            ResolvedSecret::Missing(why) => Some(why.as_str()),
        })
    }

    /// Offers them, and keeps them out of all texts.
    pub(super) fn offer(
        &self,
        services: HostServices,
        redactor: &Redactor,
        ambient: &Ambient,
    ) -> Result<HostServices, Failure> {
        self.0
            .iter()
            .try_fold(services, |services, (name, secret)| match secret {
                ResolvedSecret::Known(value) => {
                    let secret = Secret::new(ambient, name, value.clone());
                    redactor
                        .add(&secret)
                        .map_err(|why| Failure::new(Exit::Config, why.to_string()))?;
                    Ok(services.secret(secret))
                }
                ResolvedSecret::Missing(why) => Ok(services.no_secret(name, why)),
            })
    }
}

impl ResolvedSecret {
    fn missing(failure: Failure, words: Words) -> Self {
        let Failure { message, help, .. } = failure;
        Self::Missing(help.map_or_else(
            || message.clone(),
            |help| format!("{message}; {}", (words.help)(&help)),
        ))
    }
}

/// One secret of the configuration, for a command that a person gave.
pub fn named(ambient: &Ambient, config: &Config, env: &Env, name: &str) -> Result<String, Failure> {
    let Some(source) = config.named_secrets.get(name) else {
        let message = format!("the configuration has no secret `{name}`");
        return Err(Failure::new(Exit::Config, message).help("add it below [secrets]"));
    };
    let wanted = KeyPurpose {
        what: format!("secret {name}"),
        kind: "secret",
        setting: format!("secrets.{name}"),
        id: Some(name.to_owned()),
    };
    keys::read(ambient, &wanted, &source.value, env).and_then(|secret| redactable(name, &secret))
}

/// The value of a secret that is long enough to be found in texts.
fn redactable(name: &str, secret: &Secret) -> Result<String, Failure> {
    let value = secret
        .expose()
        .map_err(|revoked| Failure::new(Exit::Config, revoked.to_string()))?;
    if value.len() < MIN_REDACTED {
        let message = format!(
            "no secret {name}: it has {} bytes, too few to keep it out of texts",
            value.len()
        );
        return Err(Failure::new(Exit::Config, message)
            .help(format!("use one of at least {MIN_REDACTED} bytes")));
    }
    Ok(value.to_owned())
}

/// The names of the secrets that enabled features are granted, of those that the configuration has.
fn granted(config: &Config, env: &Env) -> Result<BTreeSet<String>, Failure> {
    if config.named_secrets.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Switched {
        policy, modules, ..
    } = switched(config, env)?;
    let builder = FeatureRegistryBuilder::new(policy)
        .runtime(FeatureRuntimeKind::Guest)
        .runtime(FeatureRuntimeKind::McpBridge);
    let plan = builder.with_all(modules).plan();
    let live = plan
        .features
        .iter()
        .filter(|feature| feature.outcome.is_live());
    let granted = live
        .flat_map(|feature| feature.grants.granted())
        .filter_map(|grant| match grant {
            HostCapability::SecretRef { id, .. } => Some(id.to_string()),
            _ => None,
        });
    Ok(granted
        .filter(|name| config.named_secrets.contains_key(name))
        .collect())
}
