//! Bounds of configured values; an error names the place of the value. Changes none.

use super::file::TimeoutsConfig;
use super::{Config, Endpoint, ModelSettings, Sourced, hosts};
use crate::compose::model;
use crate::exit::{Exit, Failure};
use crate::limits::LIMITS;
use builtins::notify_person::WEBHOOK;
use provider::BaseUrl;
use std::fmt::Display;

/// Bounds of a context window, in tokens: a smaller one has no room for the tools; above the larger one, digits are
/// probably doubled.
const MIN_CONTEXT: u64 = 1_000;
const MAX_CONTEXT: u64 = 100_000_000;

/// The longest name of a secret, in bytes; as in a grant.
const MAX_SECRET_NAME: usize = 64;

impl Config {
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(Sourced { value, source }) = &self.model {
            let at = if source.starts_with("YOI_") {
                ""
            } else {
                " `model`:"
            };
            model::named(value, self).map_err(|failure| Failure {
                message: format!("{source}:{at} {}", failure.message),
                ..failure
            })?;
        }
        for (limits, of) in [(&self.limits, ""), (&self.pod_limits, "pod.")] {
            for row in LIMITS {
                if let Some(Sourced { value, source }) = limits.get(row.kind) {
                    let name = format!("{of}{}", row.key);
                    let bounds = row.form.bounds;
                    range(&name, value.is_limit(), source, bounds, Some(value))?;
                }
            }
        }
        let at = &self.prune_at;
        range(
            "prune_at",
            (10..=95).contains(&at.value),
            &at.source,
            "10 to 95 percent",
            Some(&at.value),
        )?;
        let at = &self.compact_at;
        range(
            "compact_at",
            (10..=95).contains(&at.value),
            &at.source,
            "10 to 95 percent",
            Some(&at.value),
        )?;
        let at = &self.mcp_defer;
        range(
            "mcp.defer",
            at.value <= 100,
            &at.source,
            "0 to 100 percent",
            Some(&at.value),
        )?;
        for (name, known) in &self.models {
            self.check_model(name, known)?;
        }
        for (name, provider) in &self.providers {
            check_provider(name, provider)?;
        }
        for (name, secret) in &self.named_secrets {
            check_secret(name, &secret.source)?;
        }
        self.secret_names()?;
        self.check_hosts()?;
        let threads = 1..=pod::foreign::MAX_THREADS / 2;
        let calls = &self.tool_concurrency;
        range(
            "tool_concurrency",
            threads.contains(&calls.value),
            &calls.source,
            "1 to 32",
            Some(&calls.value),
        )
    }

    fn check_hosts(&self) -> Result<(), Failure> {
        let Sourced { value, source } = &self.hosts;
        for entry in value {
            hosts::named(entry).map_err(|why| {
                let entry = authority::text::escape_line(entry);
                Failure::new(
                    Exit::Config,
                    format!("{source}: sandbox.hosts: `{entry}`: {why}"),
                )
                .help("write names and presets, such as hosts = [\"crates.io\", \"preset:rust\"]")
            })?;
        }
        Ok(())
    }

    fn check_model(&self, name: &str, known: &ModelSettings) -> Result<(), Failure> {
        let at = format!("models.\"{name}\"");
        let remote = !(name == model::OFFLINE || name.starts_with(model::SCRIPTED));
        let ModelSettings {
            price,
            max_output,
            effort,
            thinking,
            images,
            context,
            timeouts,
        } = known;
        let source = [
            price.as_ref().map(|price| &price.source),
            max_output.as_ref().map(|most| &most.source),
            effort.as_ref().map(|effort| &effort.source),
            thinking.as_ref().map(|shown| &shown.source),
            images.as_ref().map(|seen| &seen.source),
            context.as_ref().map(|most| &most.source),
            timeouts.as_ref().map(|waits| &waits.source),
        ];
        if let Some(source) = source.into_iter().flatten().next() {
            model::named(name, self).map_err(|failure| Failure {
                message: format!("{source}: {at}: {}", failure.message),
                ..failure
            })?;
        }
        if let Some(Sourced { value, source }) = price {
            let ok = value.counted().is_some();
            range(
                &format!("{at}.price"),
                ok,
                source,
                "US dollars for a million tokens, each at least 0",
                None,
            )?;
        }
        if let Some(Sourced { value, source }) = max_output {
            range(
                &format!("{at}.max_output"),
                *value != 0,
                source,
                "at least 1",
                Some(value),
            )?;
            range(
                &format!("{at}.max_output"),
                remote,
                source,
                "left out: this model has no such limit",
                None,
            )?;
        }
        if let Some(Sourced { value, source }) = context {
            let ok = (MIN_CONTEXT..=MAX_CONTEXT).contains(value);
            range(
                &format!("{at}.context"),
                ok,
                source,
                "1000 to 100000000 tokens",
                Some(value),
            )?;
        }
        if let Some(Sourced { value, source }) = timeouts {
            check_timeouts(&at, value, source)?;
        }
        Ok(())
    }
}

fn check_provider(name: &str, endpoint: &Endpoint) -> Result<(), Failure> {
    let value = &endpoint.value;
    let at = format!("providers.{name}");
    BaseUrl::parse(&value.base_url).map_err(|e| {
        Failure::new(
            Exit::Config,
            format!("{}: {at}.base_url: {e}", endpoint.place("base_url")),
        )
        .help("write a URL such as http://127.0.0.1:8080/v1")
    })?;
    let ok = value.attempts.is_none_or(|n| (1..=20).contains(&n));
    let attempts = value.attempts.unwrap_or_default();
    range(
        &format!("{at}.attempts"),
        ok,
        endpoint.place("attempts"),
        "1 to 20",
        Some(&attempts),
    )?;
    check_timeouts(&at, &value.timeouts, endpoint.place("timeouts"))
}

fn check_timeouts(at: &str, waits: &TimeoutsConfig, source: &str) -> Result<(), Failure> {
    let TimeoutsConfig {
        connect_s,
        first_byte_s,
        between_bytes_s,
    } = *waits;
    let waits = [
        ("connect_s", connect_s),
        ("first_byte_s", first_byte_s),
        ("between_bytes_s", between_bytes_s),
    ];
    for (key, seconds) in waits {
        let ok = seconds.is_none_or(|seconds| (0.001..=86_400.0).contains(&seconds));
        range(
            &format!("{at}.timeouts.{key}"),
            ok,
            source,
            "0.001 to 86400 seconds",
            Some(&seconds.unwrap_or_default()),
        )?;
    }
    Ok(())
}

fn check_secret(name: &str, source: &str) -> Result<(), Failure> {
    let fits = (1..=MAX_SECRET_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let bad = |what: String| Failure::new(Exit::Config, format!("{source}: {what}"));
    if !fits {
        return Err(bad(format!(
            "`{}` is not a valid name of a secret",
            authority::text::escape_line(name)
        ))
        .help(format!(
            "use 1 to {MAX_SECRET_NAME} characters of A-Z, a-z, 0-9, _ and -"
        )));
    }
    if name == WEBHOOK {
        return Err(bad(format!(
            "the secret `{name}` is set by `webhook_file` of {}",
            builtins::notify_person::ID
        ))
        .help("use another name"));
    }
    Ok(())
}

/// Refuses a value that is not `ok`; `found` is the value, if the message can show it.
fn range(
    name: &str,
    ok: bool,
    source: &str,
    range: &str,
    found: Option<&dyn Display>,
) -> Result<(), Failure> {
    if ok {
        return Ok(());
    }
    let found = found
        .map(|found| format!(", not {found}"))
        .unwrap_or_default();
    Err(match source.starts_with("YOI_") {
        true => Failure::new(
            Exit::Config,
            format!("{source}: the value must be {range}{found}"),
        )
        .help(format!("set {source} to such a value, or unset it")),
        false => Failure::new(
            Exit::Config,
            format!("{source}: `{name}` must be {range}{found}"),
        )
        .help("change the value, or delete the line to use the default"),
    })
}
