//! `yoi models`: what can answer now, and the line to add for what was found.

use crate::cli::JsonArgs;
use crate::remedy;
use crate::show::{checklist, out};
use authority::Ambient;
use authority::text::escape_line;
use host::compose::model::{
    OFFLINE, Reach, amounts, choose, effort_in_force, efforts, in_the_clear, price, reach,
};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use llm_worker::Effort;
use provider::Timeouts;
use provider::catalog;
use provider::endpoint::{ListError, list_models};
use std::io;
use std::time::Duration;

/// How long a local endpoint has to answer.
const PROBE: Duration = Duration::from_millis(700);

/// How many names of one endpoint are printed.
const SHOWN: usize = 20;

/// Columns of a provider's name.
const NAMES: usize = 12;

/// An endpoint and what it said.
pub(crate) struct EndpointModels {
    pub(crate) provider: String,
    /// Where it is, or why it is not asked.
    pub(crate) state: String,
    /// Its models, as `-m` takes them.
    pub(crate) models: Vec<String>,
    pub(crate) ready: bool,
    /// A request was sent to it.
    pub(crate) asked: bool,
}

/// Asks local and configured endpoints; vendors with a key are listed without asking.
pub(crate) fn run(args: &JsonArgs, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load(env)?;
    let found = find(&config, env)?;
    let choice = choose(&config, env);
    let costs = price(&choice.name, &config);
    let effort = effort_in_force(&choice.name, &config).map(|effort| effort.value);
    let has = efforts(&choice.name, &config);
    if args.json {
        let rows: Vec<_> = found
            .iter()
            .map(|f| serde_json::json!({ "provider": f.provider, "state": f.state, "ready": f.ready, "models": f.models }))
            .collect();
        let price = costs.map(|price| {
            serde_json::json!({
                "input": price.input.dollars(), "output": price.output.dollars(),
                "cached_input": price.cached_input.dollars(), "cache_write": price.cache_write.dollars(),
            })
        });
        out::json(&serde_json::json!({
            "default": choice.name, "why": choice.why, "price": price, "effort": effort,
            "efforts": has, "endpoints": rows,
        }));
        return Ok(Exit::Done);
    }
    out::line(&format!("default: {} ({})", choice.name, choice.why));
    if choice.name != OFFLINE {
        out::line(&format!(
            "  price: {}",
            costs.map_or_else(|| "unknown".to_owned(), amounts)
        ));
    }
    if !has.is_empty() {
        let words: Vec<_> = has.iter().map(|effort| effort.word()).collect();
        let now = effort.map_or("the provider's default", Effort::word);
        out::line(&format!("  effort: {now} (choices: {})", words.join(", ")));
    }
    checklist::item(
        "✓",
        OFFLINE,
        NAMES,
        "a rule-based planner that is built into yoi, not a language model",
    );
    for endpoint in &found {
        let mark = if endpoint.ready { "✓" } else { "-" };
        checklist::item(mark, &endpoint.provider, NAMES, &endpoint.state);
        if let Some(exposed) = in_the_clear(&endpoint.provider, &config) {
            checklist::below("warning:", &exposed);
        }
        for model in endpoint.models.iter().take(SHOWN) {
            checklist::below("", model);
        }
        if endpoint.models.len() > SHOWN {
            checklist::below(
                "",
                &format!("… {} more (--json)", endpoint.models.len() - SHOWN),
            );
        }
    }
    if let Some(model) = found
        .iter()
        .filter(|f| f.ready)
        .find_map(|f| f.models.first())
    {
        out::line(&format!(
            "to set a default, add to the configuration (`yoi config path`): model = \"{}\"",
            escape_line(model)
        ));
    }
    Ok(Exit::Done)
}

/// Every endpoint of the configuration and the catalogue.
pub(crate) fn find(config: &Config, env: &Env) -> Result<Vec<EndpointModels>, Failure> {
    let ambient = ambient::claim();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| {
            Failure::new(
                Exit::Unavailable,
                format!(
                    "the asynchronous runtime cannot start: {}",
                    authority::explain(&e)
                ),
            )
        })?;
    let configured = config.providers.keys().map(String::as_str);
    let known = catalog::PROVIDERS
        .iter()
        .filter(|p| !config.providers.contains_key(p.name));
    let names: Vec<&str> = configured.chain(known.map(|p| p.name)).collect();
    Ok(names
        .into_iter()
        .map(|name| one(&ambient, &runtime, name, config, env))
        .collect())
}

fn one(
    ambient: &Ambient,
    runtime: &tokio::runtime::Runtime,
    name: &str,
    config: &Config,
    env: &Env,
) -> EndpointModels {
    let found = |state: String, models, ready| EndpointModels {
        provider: name.to_owned(),
        state,
        models,
        ready,
        asked: false,
    };
    let known = catalog::find(name).filter(|_| !config.providers.contains_key(name));
    let reached = match reach(ambient, name, config, env) {
        Ok(reached) => reached,
        Err(failure) => {
            let next = failure.help.as_ref().map_or(failure.message, remedy::help);
            return found(next, Vec::new(), false);
        }
    };
    if let Some(known) = known.filter(|known| !known.is_local()) {
        let models = known
            .default_model
            .map(|model| format!("{name}/{model}"))
            .into_iter()
            .collect();
        let key = reached.key_source.as_deref().unwrap_or("a key");
        return found(
            format!("{} (key from {key}; not contacted)", reached.url),
            models,
            true,
        );
    }
    let answered = match probe(ambient, runtime, &reached) {
        Ok(models) => {
            let models = models
                .into_iter()
                .map(|model| format!("{name}/{model}"))
                .collect();
            found(reached.url.to_string(), models, true)
        }
        Err(error) => {
            let text = match error.unconnected {
                Some(io::ErrorKind::ConnectionRefused) => {
                    format!("not running at {}; start it", reached.url)
                }
                Some(io::ErrorKind::NotFound) => {
                    format!("{}: the host name is not known", reached.url)
                }
                _ => error.message,
            };
            found(text, Vec::new(), false)
        }
    };
    EndpointModels {
        asked: true,
        ..answered
    }
}

fn probe(
    ambient: &Ambient,
    runtime: &tokio::runtime::Runtime,
    reach: &Reach,
) -> Result<Vec<String>, ListError> {
    let timeouts = Timeouts {
        connect: PROBE,
        first_byte: PROBE,
        between_bytes: PROBE,
        ..Timeouts::USUAL
    };
    runtime.block_on(list_models(
        reach.api,
        &reach.url,
        reach.transport(ambient, timeouts),
        reach.key.as_ref(),
    ))
}
