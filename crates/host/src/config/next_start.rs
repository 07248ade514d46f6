//! Which keys two configurations have with different values, of those that count only from the start of a pod. Where a
//! value stands does not matter.

use super::{Config, Endpoint, Sourced, Switches};
use std::collections::{BTreeMap, BTreeSet};

/// Keys that are named.
const MAX_KEYS: usize = 32;

impl Config {
    /// The keys whose values a pod that was started with this configuration takes from `newer` at its next start, sorted
    /// by kind, at most 32. Limits, permission rules and prices are not among them: a live pod takes them at once.
    pub fn next_start(&self, newer: &Self) -> Vec<String> {
        let secrets = |config: &Self| -> Vec<String> {
            config
                .secrets
                .iter()
                .map(|glob| glob.value.clone())
                .collect()
        };
        let single = [
            ("model", !same(self.model.as_ref(), newer.model.as_ref())),
            ("sandbox.mode", self.sandbox.value != newer.sandbox.value),
            ("sandbox.network", self.network.value != newer.network.value),
            ("sandbox.hosts", self.hosts.value != newer.hosts.value),
            ("mcp.defer", self.mcp_defer.value != newer.mcp_defer.value),
            (
                "mcp.always",
                self.mcp_always.value != newer.mcp_always.value,
            ),
            ("permissions.secrets", secrets(self) != secrets(newer)),
            (
                "state.any_file_system",
                self.any_file_system.value != newer.any_file_system.value,
            ),
            (
                "ca_file",
                !same(self.ca_file.as_ref(), newer.ca_file.as_ref()),
            ),
            (
                "instructions",
                self.instructions.value != newer.instructions.value,
            ),
        ];
        let single = single
            .into_iter()
            .filter(|(_, changed)| *changed)
            .map(|(key, _)| key.to_owned());
        let providers = changed(&self.providers, &newer.providers, Endpoint::is_same);
        let named = changed(&self.named_secrets, &newer.named_secrets, same);
        let output = changed(&self.models, &newer.models, |one, other| {
            same(
                one.and_then(|one| one.max_output.as_ref()),
                other.and_then(|other| other.max_output.as_ref()),
            )
        });
        let effort = changed(&self.models, &newer.models, |one, other| {
            same(
                one.and_then(|one| one.effort.as_ref()),
                other.and_then(|other| other.effort.as_ref()),
            )
        });
        let thinking = changed(&self.models, &newer.models, |one, other| {
            same(
                one.and_then(|one| one.thinking.as_ref()),
                other.and_then(|other| other.thinking.as_ref()),
            )
        });
        let images = changed(&self.models, &newer.models, |one, other| {
            same(
                one.and_then(|one| one.images.as_ref()),
                other.and_then(|other| other.images.as_ref()),
            )
        });
        let waits = changed(&self.models, &newer.models, |one, other| {
            same(
                one.and_then(|one| one.timeouts.as_ref()),
                other.and_then(|other| other.timeouts.as_ref()),
            )
        });
        let features = changed(&self.features, &newer.features, Switches::is_same);
        let all = single
            .chain(providers.map(|name| format!("providers.{name}")))
            .chain(named.map(|name| format!("secrets.{name}")))
            .chain(output.map(|name| format!("models.\"{name}\".max_output")))
            .chain(effort.map(|name| format!("models.\"{name}\".effort")))
            .chain(thinking.map(|name| format!("models.\"{name}\".thinking")))
            .chain(images.map(|name| format!("models.\"{name}\".images")))
            .chain(waits.map(|name| format!("models.\"{name}\".timeouts")))
            .chain(features.map(|id| format!("features.\"{id}\"")));
        all.take(MAX_KEYS).collect()
    }
}

/// The names of either whose values are not the same.
fn changed<'a, T>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
    is_same: impl Fn(Option<&T>, Option<&T>) -> bool,
) -> impl Iterator<Item = &'a str> {
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    names
        .into_iter()
        .filter(move |name| !is_same(old.get(*name), new.get(*name)))
}

fn same<T: PartialEq>(one: Option<&Sourced<T>>, other: Option<&Sourced<T>>) -> bool {
    one.map(|one| &one.value) == other.map(|other| &other.value)
}

impl Endpoint {
    fn is_same(one: Option<&Self>, other: Option<&Self>) -> bool {
        one.map(|one| &one.value) == other.map(|other| &other.value)
    }
}

impl Switches {
    /// A feature that is named without a key is as one that is not named.
    fn is_same(one: Option<&Self>, other: Option<&Self>) -> bool {
        let unnamed = Self::default();
        let one = one.unwrap_or(&unnamed);
        let other = other.unwrap_or(&unnamed);
        let tables = |of: &Self| {
            of.grants
                .iter()
                .map(|granted| granted.table.clone())
                .collect::<Vec<_>>()
        };
        let settings = |of: &Self| -> BTreeMap<String, toml::Value> {
            of.settings
                .iter()
                .map(|(key, setting)| (key.clone(), setting.value.clone()))
                .collect()
        };
        same(one.enabled.as_ref(), other.enabled.as_ref())
            && same(one.required.as_ref(), other.required.as_ref())
            && same(one.expected.as_ref(), other.expected.as_ref())
            && tables(one) == tables(other)
            && settings(one) == settings(other)
    }
}
