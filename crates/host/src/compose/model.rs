//! Which model answers, why, and how it is reached.

use super::keys::{self, ResolvedKey, describe};
use super::outbound::{self, ProxyChoice};
use super::recording;
use crate::config::file::{ApiKind, ProviderConfig, TimeoutsConfig};
use crate::config::parser_text::{explain, in_words};
use crate::config::{Config, Sourced};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::nearest::{did_you_mean, distance, nearest};
use crate::plain_file;
use authority::{Ambient, Net, Secret};
use llm_worker::projection::{Dialect, Neutral, Surface};
use llm_worker::{Effort, MediaType, Model, Price, Thinking};
use offline::Offline;
use pod::record::BudgetKind;
use provider::anthropic::{self, Messages};
use provider::catalog;
use provider::effort;
use provider::endpoint::{EndpointConfig, Transport};
use provider::gemini::{self, Gemini};
use provider::openai_chat::{self, Chat, Flavour};
use provider::openai_responses::{self, Responses};
use provider::recording::Recording;
use provider::retry::{Pacing, RetryPolicy};
use provider::scripted::{ScriptError, Scripted};
use provider::{BaseUrl, Timeouts, Tls};
use provider::{media, prices, windows};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The largest script that is read, in bytes.
const MAX_SCRIPT: u64 = 64 * 1024 * 1024;

/// The name of the embedded planner among models.
pub const OFFLINE: &str = "offline";

/// What stands before the file of a script.
pub const SCRIPTED: &str = "scripted:";

/// What stands before the name of a model whose answers are written down.
pub const RECORD: &str = "record:";

/// What it is, said wherever it answers.
const PLANNER: &str = "a rule-based planner";

/// A model by name, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// As `-m` takes it.
    pub name: String,
    pub why: String,
}

/// A model with the key of its provider, as far as there is one.
#[derive(Clone, Serialize, Deserialize)]
pub struct ResolvedModel {
    pub choice: ModelChoice,
    pub key: ResolvedKey,
}

impl ResolvedModel {
    /// Chooses the model and resolves its key, which may run a command and ask a person.
    pub fn of(ambient: &Ambient, config: &Config, env: &Env) -> Self {
        let choice = choose(config, env);
        let key = ResolvedKey::resolve(ambient, bare(&choice.name), config, env);
        Self { choice, key }
    }
}

/// Flag and configuration, then the first key whose provider this build speaks to, then the embedded model.
pub fn choose(config: &Config, env: &Env) -> ModelChoice {
    if let Some(model) = &config.model {
        let planner = if model.value == OFFLINE {
            format!("{PLANNER}, ")
        } else {
            String::new()
        };
        return ModelChoice {
            name: model.value.clone(),
            why: format!("{planner}from {}", model.source),
        };
    }
    for provider in &catalog::PROVIDERS {
        let variable = provider
            .key_variables()
            .iter()
            .find(|name| env.var(name).is_some());
        if let (Some(variable), Some(model)) = (variable, provider.default_model) {
            return ModelChoice {
                name: format!("{}/{model}", provider.name),
                why: format!("{variable} is set"),
            };
        }
    }
    ModelChoice {
        name: OFFLINE.to_owned(),
        why: format!("{PLANNER}; no language model is configured"),
    }
}

/// Refuses a name that can be no model's, whatever keys there are.
pub fn named(name: &str, config: &Config) -> Result<(), Failure> {
    let name = bare(name);
    if name == OFFLINE || name.starts_with(SCRIPTED) {
        return Ok(());
    }
    let Some((provider, _model)) = catalog::split(name) else {
        return Err(
            Failure::new(Exit::Config, format!("`{name}` is not a model"))
                .help(Help::WriteModel(meant(name, config))),
        );
    };
    if config.providers.contains_key(provider) || catalog::find(provider).is_some() {
        return Ok(());
    }
    let configured = config.providers.keys().map(String::as_str);
    let names: Vec<&str> = catalog::PROVIDERS
        .iter()
        .map(|p| p.name)
        .chain(configured)
        .collect();
    let meant = did_you_mean(provider, &names);
    Err(Failure::new(
        Exit::Config,
        format!("there is no provider called `{provider}`"),
    )
    .help(format!(
        "{meant}define [providers.{provider}] in the configuration, or use a known provider: {}",
        names.join(", ")
    )))
}

/// The model that a word without a provider may mean: one of the provider of this name, or the one with the nearest name.
fn meant(word: &str, config: &Config) -> Option<String> {
    let defaults = catalog::PROVIDERS
        .iter()
        .filter_map(|p| Some(format!("{}/{}", p.name, p.default_model?)));
    let configured = config
        .models
        .keys()
        .cloned()
        .chain(config.model.iter().map(|model| model.value.clone()));
    let known: Vec<String> = configured
        .chain(defaults)
        .chain(provider::prices::names().map(str::to_owned))
        .collect();
    let parts: Vec<_> = known
        .iter()
        .filter_map(|name| catalog::split(name))
        .collect();
    let full = |(provider, model): &(&str, &str)| format!("{provider}/{model}");
    if config.providers.contains_key(word) || catalog::find(word).is_some() {
        let own = parts.iter().find(|(provider, _)| *provider == word);
        return Some(own.map_or_else(|| format!("{word}/MODEL"), full));
    }
    let names: Vec<&str> = [OFFLINE]
        .into_iter()
        .chain(parts.iter().map(|(_, model)| *model))
        .collect();
    let near = nearest(word, &names)
        .filter(|near| near.starts_with(word) || distance(near, word) <= word.len() / 3)?;
    Some(
        parts
            .iter()
            .find(|(_, model)| *model == near)
            .map_or_else(|| near.to_owned(), full),
    )
}

/// Whether it is written like a model's name.
pub fn is_one(name: &str) -> bool {
    let name = bare(name);
    name == OFFLINE || name.starts_with(SCRIPTED) || catalog::split(name).is_some()
}

/// A model's own name.
pub fn bare(name: &str) -> &str {
    name.strip_prefix(RECORD).unwrap_or(name)
}

/// A model that can be asked.
pub struct Built {
    pub model: Arc<dyn Model>,
    /// Where its answers are written down, if they are.
    pub recording: Option<PathBuf>,
    /// What it is reached with, and nobody is to read.
    pub secrets: Vec<Secret>,
}

/// Everything known of an endpoint before a connection.
#[derive(Clone)]
pub struct Reach {
    pub url: BaseUrl,
    pub api: catalog::Api,
    /// The key, if it has one here.
    pub key: Option<Secret>,
    /// Where a key is looked for.
    pub key_source: Option<String>,
    pub proxy: Option<ProxyChoice>,
    pub tls: Tls,
    pub timeouts: Timeouts,
    pub retry: RetryPolicy,
}

impl Reach {
    /// How requests get there, with these waits.
    pub fn transport(&self, ambient: &Ambient, timeouts: Timeouts) -> Transport {
        let proxy = self.proxy.as_ref().map(|choice| choice.proxy.clone());
        let first = proxy
            .as_ref()
            .map_or_else(|| self.url.host_port(), |proxy| proxy.host_port().clone());
        Transport {
            net: Net::to(ambient, [first]),
            proxy,
            tls: self.tls.clone(),
            timeouts,
        }
    }
}

/// Builds the model of this name. Nothing is connected yet, and nothing written.
pub fn build(ambient: &Ambient, name: &str, config: &Config, env: &Env) -> Result<Built, Failure> {
    build_with(ambient, name, config, env, |provider| {
        keys::of(ambient, provider, config, env, true)
    })
}

/// The same with a key of its provider that is known already.
pub fn build_with(
    ambient: &Ambient,
    name: &str,
    config: &Config,
    env: &Env,
    key: impl FnOnce(&str) -> Result<Option<Secret>, Failure>,
) -> Result<Built, Failure> {
    let (model, secrets) = plain(ambient, bare(name), config, env, key)?;
    if bare(name) == name {
        return Ok(Built {
            model,
            recording: None,
            secrets,
        });
    }
    let file = recording::file(bare(name), env)?;
    let model = Arc::new(Recording::new(model, recording::writer(file.clone())));
    Ok(Built {
        model,
        recording: Some(file),
        secrets,
    })
}

/// A model, and what it is reached with.
fn plain(
    ambient: &Ambient,
    name: &str,
    config: &Config,
    env: &Env,
    key: impl FnOnce(&str) -> Result<Option<Secret>, Failure>,
) -> Result<(Arc<dyn Model>, Vec<Secret>), Failure> {
    let thinking = thinking(name, config)?;
    if name == OFFLINE {
        return Ok((Arc::new(Offline), Vec::new()));
    }
    if let Some(file) = name.strip_prefix(SCRIPTED) {
        let script = script(name, &env.cwd.join(file))?;
        return Ok((
            Arc::new(
                script
                    .priced(price(name, config))
                    .windowed(context_window(name, config)),
            ),
            Vec::new(),
        ));
    }
    named(name, config)?;
    let (provider, at_vendor) = catalog::split(name).unwrap_or((name, ""));
    let reach = endpoint(provider, config, env, || key(provider))?;
    let own = config
        .models
        .get(name)
        .and_then(|known| known.timeouts.as_ref());
    let timeouts = own.map_or(reach.timeouts, |own| waits(own.value, reach.timeouts));
    let proxy = reach.proxy.as_ref();
    let variable = proxy.map_or("", |choice| choice.variable).to_owned();
    let of_proxy = proxy.map(|choice| choice.secrets(ambient));
    let secrets = reach
        .key
        .iter()
        .cloned()
        .chain(of_proxy.into_iter().flatten());
    let secrets = secrets.collect();
    let endpoint = EndpointConfig {
        name: name.to_owned(),
        transport: reach.transport(ambient, timeouts),
        base_url: reach.url,
        key: reach.key,
        key_source: reach.key_source,
        retry: reach.retry,
        pacing: Pacing::system(),
        max_output: config
            .models
            .get(name)
            .and_then(|known| Some(known.max_output.as_ref()?.value)),
        thinking,
        media: media(name, config),
        price: price(name, config),
        context_window: context_window(name, config),
        terms: (env.words.model)(variable),
    };
    let model = match reach.api.of_model(at_vendor) {
        catalog::Api::OpenAiChat(flavour) => openai_chat::model(endpoint, flavour),
        catalog::Api::OpenAiResponses => openai_responses::model(endpoint),
        catalog::Api::Anthropic => anthropic::model(endpoint),
        catalog::Api::Gemini => gemini::model(endpoint),
    };
    Ok((model, secrets))
}

/// What a model's tokens cost: as configured, else by the table for a vendor the catalogue knows, and nothing on this
/// machine.
pub fn price(name: &str, config: &Config) -> Option<Price> {
    let name = bare(name);
    if let Some(price) = config
        .models
        .get(name)
        .and_then(|known| known.price.as_ref())
    {
        return price.value.counted();
    }
    if name == OFFLINE {
        return Some(Price::FREE);
    }
    let (provider, _model) = catalog::split(name)?;
    if config.providers.contains_key(provider) {
        return None;
    }
    let local = catalog::find(provider).is_some_and(catalog::Provider::is_local);
    if local {
        Some(Price::FREE)
    } else {
        prices::of(name)
    }
}

/// How many tokens a request and its answer may have together: as configured, else by the table for a vendor the
/// catalogue knows. A server on this machine is started with any.
pub fn context_window(name: &str, config: &Config) -> Option<u64> {
    let name = bare(name);
    if let Some(context) = config
        .models
        .get(name)
        .and_then(|known| known.context.as_ref())
    {
        return Some(context.value);
    }
    let (provider, _model) = catalog::split(name)?;
    if config.providers.contains_key(provider) {
        None
    } else {
        windows::of(name)
    }
}

/// A price as people read it.
pub fn amounts(price: Price) -> String {
    let Price {
        input,
        output,
        cached_input,
        cache_write,
    } = price;
    format!(
        "{input} input, {output} output, {cached_input} cached input, {cache_write} cache writes, per million tokens"
    )
}

/// A limit on what a run or a pod may cost can only be kept where there is a price.
pub fn affordable(
    name: &str,
    price: Option<Price>,
    config: &Config,
    env: &Env,
) -> Result<(), Failure> {
    let limit = [&config.limits, &config.pod_limits]
        .into_iter()
        .find_map(|limits| limits.get(BudgetKind::Cost));
    let Some(limit) = limit.filter(|_| price.is_none()) else {
        return Ok(());
    };
    let name = bare(name);
    let source = &limit.source;
    let file = env.shown(&env.config_dir()?.join("config.toml"));
    let line = "price = { input = 0.5, output = 1.5 }";
    Err(Failure::new(
        Exit::Usage,
        format!("yoi knows no price for {name}, so it cannot limit the cost ({source})"),
    )
    .help(format!(
        "set the prices per million tokens in {file}, such as {line} under [models.\"{name}\"]"
    )))
}

/// Where the provider of this name is, from configuration or the catalogue.
pub fn reach(
    ambient: &Ambient,
    provider: &str,
    config: &Config,
    env: &Env,
) -> Result<Reach, Failure> {
    endpoint(provider, config, env, || {
        keys::of(ambient, provider, config, env, false)
    })
}

fn endpoint(
    provider: &str,
    config: &Config,
    env: &Env,
    key: impl FnOnce() -> Result<Option<Secret>, Failure>,
) -> Result<Reach, Failure> {
    if let Some(configured) = config.providers.get(provider) {
        let source = &configured.source;
        let configured = &configured.value;
        let url = BaseUrl::parse(&configured.base_url).map_err(|e| {
            Failure::new(
                Exit::Config,
                format!("{source}: providers.{provider}.base_url: {e}"),
            )
        })?;
        let api = api_of(configured.api);
        let key = key()?;
        let key_source = configured.key.as_ref().map(describe);
        let (timeouts, retry) = patience(configured);
        return Ok(Reach {
            proxy: outbound::proxy(&url, env)?,
            tls: outbound::tls(&url, config)?,
            url,
            api,
            key,
            key_source,
            timeouts,
            retry,
        });
    }
    let Some(known) = catalog::find(provider) else {
        return Err(Failure::new(
            Exit::Config,
            format!("there is no provider called `{provider}`"),
        ));
    };
    let url =
        BaseUrl::parse(known.base_url).map_err(|e| Failure::new(Exit::Internal, e.to_string()))?;
    let variable = known
        .key_variables()
        .iter()
        .find(|name| env.var(name).is_some());
    let key = key()?;
    let key_source = variable
        .or(known.key_variables().first())
        .map(|name| (*name).to_owned());
    let timeouts = Timeouts::USUAL;
    let retry = RetryPolicy::USUAL;
    Ok(Reach {
        proxy: outbound::proxy(&url, env)?,
        tls: outbound::tls(&url, config)?,
        url,
        api: known.api,
        key,
        key_source,
        timeouts,
        retry,
    })
}

fn api_of(kind: ApiKind) -> catalog::Api {
    match kind {
        ApiKind::OpenaiChat => catalog::Api::OpenAiChat(Flavour::Compatible),
        ApiKind::OpenaiResponses => catalog::Api::OpenAiResponses,
        ApiKind::Anthropic => catalog::Api::Anthropic,
        ApiKind::Gemini => catalog::Api::Gemini,
    }
}

/// The efforts of the model of this name, least first; none if it has none, or is not known.
pub fn efforts(name: &str, config: &Config) -> &'static [Effort] {
    with_api(name, config).map_or(&[], |(api, model)| effort::of(api, model))
}

/// The API of a model, and its name there.
fn with_api<'a>(name: &'a str, config: &Config) -> Option<(catalog::Api, &'a str)> {
    let (provider, at_vendor) = catalog::split(bare(name))?;
    let configured = config.providers.get(provider);
    let api = configured
        .map(|configured| api_of(configured.value.api))
        .or_else(|| Some(catalog::find(provider)?.api))?;
    Some((api.of_model(at_vendor), at_vendor))
}

/// The types of files that the model of this name reads: as configured, else by the list of its API.
fn media(name: &str, config: &Config) -> Vec<MediaType> {
    let images = config
        .models
        .get(bare(name))
        .and_then(|known| known.images.as_ref());
    let listed = with_api(name, config).map_or(&[][..], |(api, model)| media::of(api, model));
    match images.map(|images| images.value) {
        Some(false) => Vec::new(),
        Some(true) if listed.is_empty() => media::IMAGES.to_vec(),
        Some(true) | None => listed.to_vec(),
    }
}

/// The effort of this start, or else of the model's table, and where it stands.
pub fn effort_in_force<'a>(name: &str, config: &'a Config) -> Option<&'a Sourced<Effort>> {
    let known = config.models.get(bare(name));
    config.effort.as_ref().or_else(|| known?.effort.as_ref())
}

/// What is asked of the thinking of the model of this name.
///
/// # Errors
/// It does not have the effort.
fn thinking(name: &str, config: &Config) -> Result<Thinking, Failure> {
    let asked = effort_in_force(name, config);
    let has = efforts(name, config);
    if let Some(Sourced { value, source }) = asked.filter(|asked| !has.contains(&asked.value)) {
        let words: Vec<_> = has.iter().map(|effort| effort.word()).collect();
        let help = match words.as_slice() {
            [] => "leave the effort out: this model has none".to_owned(),
            words => format!("use one of: {}", words.join(", ")),
        };
        let what = format!("{name} has no effort `{}` ({source})", value.word());
        return Err(Failure::new(Exit::Config, what).help(help));
    }
    let shown = config
        .models
        .get(bare(name))
        .and_then(|known| known.thinking.as_ref());
    Ok(Thinking {
        effort: asked.map(|asked| asked.value),
        shown: shown.is_some_and(|shown| shown.value),
    })
}

/// Whom a key would be shown to: said of a provider whose key goes over `http` to a public host. The catalogue's go over
/// `https` or have no key.
pub fn in_the_clear(provider: &str, config: &Config) -> Option<String> {
    let configured = config.providers.get(provider)?;
    let url = BaseUrl::parse(&configured.value.base_url).ok()?;
    let key = configured
        .value
        .key
        .as_ref()
        .filter(|_| !url.is_tls() && url.is_public())?;
    Some(format!(
        "the API key of {provider} ({}) and all messages are sent unencrypted to {}; use https ({})",
        describe(key),
        url.host(),
        configured.source
    ))
}

/// How long and how often, as configured.
pub fn patience(provider: &ProviderConfig) -> (Timeouts, RetryPolicy) {
    let timeouts = waits(provider.timeouts, Timeouts::USUAL);
    let attempts = provider.attempts.unwrap_or(RetryPolicy::USUAL.attempts);
    (
        timeouts,
        RetryPolicy {
            attempts,
            ..RetryPolicy::USUAL
        },
    )
}

/// The waits that are set, the others as before.
pub fn waits(set: TimeoutsConfig, usual: Timeouts) -> Timeouts {
    let wait = |set: Option<f64>, usual: Duration| {
        set.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(usual)
    };
    Timeouts {
        connect: wait(set.connect_s, usual.connect),
        first_byte: wait(set.first_byte_s, usual.first_byte),
        between_bytes: wait(set.between_bytes_s, usual.between_bytes),
        ..usual
    }
}

/// The encoder that recorded requests of this surface were made with, as far as this build has it.
pub fn dialect(id: &str, _surface: &Surface) -> Option<Arc<dyn Dialect>> {
    match id {
        Neutral::ID => Some(Arc::new(Neutral)),
        Messages::ID => Some(Arc::new(Messages)),
        Responses::ID => Some(Arc::new(Responses)),
        Gemini::ID => Some(Arc::new(Gemini)),
        id => Chat::by_id(id),
    }
}

fn script(name: &str, file: &Path) -> Result<Scripted, Failure> {
    let shown = file.display().to_string();
    let fail = |what: String| Failure::new(Exit::Data, format!("{shown}: {what}"));
    let unread = |error: std::io::Error| {
        Failure::new(Exit::Data, authority::explain_at(&shown, &error)).help(Help::ScriptFile)
    };
    let size = fs::metadata(file).map_err(unread)?.len();
    if size > MAX_SCRIPT {
        return Err(fail("larger than 64 MiB".to_owned()));
    }
    let bytes = fs::read(file).map_err(unread)?;
    let text = plain_file::text(&bytes).map_err(|why| fail(why).help("save the file as UTF-8"))?;
    Scripted::parse(name, text).map_err(|ScriptError { line, problem, .. }| {
        let (problem, column) = problem
            .split_once(" at line 1 column ")
            .unwrap_or((&problem, "1"));
        let (what, help) = match problem.starts_with("unknown field") {
            true => explain(problem, "", ""),
            false => (
                in_words(problem, None),
                "write one answer on each line, such as {\"text\": \"done\"}".to_owned(),
            ),
        };
        Failure::new(Exit::Data, format!("{shown}:{line}:{column}: {what}")).help(help)
    })
}
