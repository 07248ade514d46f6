//! One file's values over those of the files before it. Trusts the file; `project` is for those that are not trusted.

use super::file::{File, ModelConfig, ProfileConfig};
use super::{Config, Endpoint, FileRules, Source, Sourced, WrittenRule, set};
use crate::limits::LimitsConfig;

impl Config {
    /// Takes a file's keys; `place` tells where each stands.
    pub(super) fn layer(&mut self, file: File, place: &dyn Fn(&[&str]) -> Source) {
        let File {
            model,
            providers,
            models,
            secrets,
            limits,
            context,
            embeddings,
            permissions,
            features,
            profiles,
            plugins,
            mcp,
            sandbox,
            state,
            terminal,
            ca_file,
            instructions,
        } = file;
        set(&mut self.model, model, || place(&["model"]));
        for (name, provider) in providers {
            let keys = ["base_url", "timeouts", "attempts"];
            let keys = keys
                .into_iter()
                .map(|key| (key, place(&["providers", &name, key])))
                .collect();
            let source = place(&["providers", &name]);
            self.providers.insert(
                name,
                Endpoint {
                    value: provider,
                    source,
                    keys,
                },
            );
        }
        let sourced = |key, name: &str| Sourced::new(key, place(&["secrets", name]));
        self.named_secrets.extend(
            secrets
                .into_iter()
                .map(|(name, key)| (name.clone(), sourced(key, &name))),
        );
        for (
            name,
            ModelConfig {
                price,
                max_output,
                effort,
                thinking,
                images,
                context,
                timeouts,
            },
        ) in models
        {
            let at = |key: &str| place(&["models", &name, key]);
            let known = self.models.entry(name.clone()).or_default();
            set(&mut known.price, price, || at("price"));
            set(&mut known.max_output, max_output, || at("max_output"));
            set(&mut known.effort, effort, || at("effort"));
            set(&mut known.thinking, thinking, || at("thinking"));
            set(&mut known.images, images, || at("images"));
            set(&mut known.context, context, || at("context"));
            set(&mut known.timeouts, timeouts, || at("timeouts"));
        }
        self.layer_limits(limits, place);
        self.protect_tokens.set(context.protect_tokens, || {
            place(&["context", "protect_tokens"])
        });
        self.prune_at
            .set(context.prune_at, || place(&["context", "prune_at"]));
        self.compact_at
            .set(context.compact_at, || place(&["context", "compact_at"]));
        self.add_secrets(permissions.secrets, place);
        let rules = permissions.rules.into_iter().enumerate();
        self.rules.extend(FileRules::of(
            place(&[]),
            rules.map(|(index, rule)| WrittenRule::new(rule, index, place)),
        ));
        for (id, feature) in features {
            let at = |below: &[&str]| {
                let path: Vec<&str> = ["features", &id]
                    .into_iter()
                    .chain(below.iter().copied())
                    .collect();
                place(&path)
            };
            self.features
                .entry(id.clone())
                .or_default()
                .layer(feature, at);
        }
        for (name, ProfileConfig { features }) in profiles {
            let profile = self.profiles.entry(name.clone()).or_default();
            for (id, feature) in features {
                let at = |below: &[&str]| {
                    let path: Vec<&str> = ["profiles", &name, "features", &id]
                        .into_iter()
                        .chain(below.iter().copied())
                        .collect();
                    place(&path)
                };
                profile.entry(id.clone()).or_default().layer(feature, at);
            }
        }
        self.layer_plugins(plugins, place);
        self.mcp_defer.set(mcp.defer, || place(&["mcp", "defer"]));
        self.mcp_always
            .set(mcp.always, || place(&["mcp", "always"]));
        self.sandbox
            .set(sandbox.mode, || place(&["sandbox", "mode"]));
        self.network
            .set(sandbox.network, || place(&["sandbox", "network"]));
        self.hosts
            .set(sandbox.hosts, || place(&["sandbox", "hosts"]));
        self.any_file_system.set(state.any_file_system, || {
            place(&["state", "any_file_system"])
        });
        set(&mut self.embeddings, embeddings, || place(&["embeddings"]));
        self.vi_keys
            .set(terminal.vi_keys, || place(&["terminal", "vi_keys"]));
        set(&mut self.ca_file, ca_file, || place(&["ca_file"]));
        self.instructions
            .set(instructions, || place(&["instructions"]));
    }

    /// The limits of runs and of the pod.
    fn layer_limits(&mut self, limits: LimitsConfig, place: &dyn Fn(&[&str]) -> Source) {
        let at = |key: &str| place(&["limits", key]);
        self.limits
            .set(|row| (row.of_run)(&limits), |row| at(row.key));
        self.tool_concurrency
            .set(limits.tool_concurrency, || at("tool_concurrency"));
        self.pod_limits.set(
            |row| (row.of_pod)(&limits.pod),
            |row| place(&["limits", "pod", row.key]),
        );
    }
}
