//! The index of a project's documents: where it is, and the sources of a project. Searches nothing.

use super::secrets;
use super::stores::key;
use crate::config::file::EmbeddingsConfig;
use crate::config::{Config, Sourced};
use crate::env::{Env, settled};
use crate::exit::{Exit, Failure};
use crate::pods::make_private;
use api_core::http::BaseUrl;
use authority::{Access, Ambient, Net, Secret, SecretNames, Workspace};
use builtins::context::{EmbeddingsApi, RemoteEmbedder};
use knowledge::{Connector, Embedder, Filesystem, FilesystemLimits, StaticModel};
use pod::feature::FeatureId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name of the source that every project has: its files.
const PROJECT: &str = "project";

/// Opens the directory of an index, created where it is missing. It can be deleted at any time. `secrets` are the names of
/// files that no search shows.
///
/// # Errors
/// It cannot be created or opened.
pub fn place(
    ambient: &Ambient,
    dir: &Path,
    secrets: SecretNames,
    access: Access,
) -> Result<Workspace, Failure> {
    make_private(dir)?;
    let place = Workspace::open(ambient, dir, dir, access).map_err(|error| unavailable(&error))?;
    Ok(place.with_secrets(secrets))
}

/// The directory of this project's index, whether it is there or not.
///
/// # Errors
/// There is no cache directory.
pub fn dir(env: &Env, config: &Config) -> Result<PathBuf, Failure> {
    let indexes = settled(&env.cache_dir()?.join("context"));
    Ok(indexes.join(key(&config.project.root)))
}

/// The same, where a pod searches the index, or why there is none: `on` are the features that a person switched on.
pub(crate) fn searched(
    on: &BTreeSet<FeatureId>,
    env: &Env,
    config: &Config,
) -> Option<Result<PathBuf, Failure>> {
    on.contains(&builtins::context::ID)
        .then(|| dir(env, config))
}

/// The sources of this project, for a sync at the time `now`.
///
/// # Errors
/// The project is too wide to be read as one, or cannot be opened.
pub fn sources(
    ambient: &Ambient,
    config: &Config,
    now: SystemTime,
) -> Result<Vec<Box<dyn Connector>>, Failure> {
    let root = &config.project.root;
    if let Some(why) = config.project.too_wide {
        let message = format!("{} is not indexed: {why}", authority::escape(root));
        let help = "work in a directory of one project, with `.git` or yoi.toml in it";
        return Err(Failure::new(Exit::Usage, message).help(help));
    }
    let files = Workspace::open(ambient, root, root, Access::Read);
    let files = files.map_err(|error| unavailable(&error))?;
    let files = files.with_secrets(config.secret_names()?);
    let project = Filesystem::new(PROJECT, files, FilesystemLimits::USUAL, now);
    Ok(vec![Box::new(project)])
}

/// What makes the vectors of documents, if there is something: a model that is read, or a server and its key.
///
/// # Errors
/// The files, the address or the key cannot be used.
pub fn embedder(
    ambient: &Ambient,
    config: &Config,
    env: &Env,
) -> Result<Option<Box<dyn Embedder>>, Failure> {
    let Some(Sourced { value, source }) = &config.embeddings else {
        return Ok(None);
    };
    let (api, base_url, model, key) = match value {
        EmbeddingsConfig::None => return Ok(None),
        EmbeddingsConfig::Static { dir } => {
            let files = Workspace::open(ambient, dir, dir, Access::Read);
            let files = files.map_err(|error| unavailable(&error))?;
            let model = StaticModel::read(&files)
                .map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))?;
            return Ok(Some(Box::new(model)));
        }
        EmbeddingsConfig::Openai {
            base_url,
            model,
            key,
        } => (EmbeddingsApi::OpenAi, base_url, model, key.as_deref()),
        EmbeddingsConfig::Ollama { base_url, model } => {
            (EmbeddingsApi::Ollama, base_url, model, None)
        }
    };
    let base = BaseUrl::parse(base_url).map_err(|why| {
        Failure::new(
            Exit::Config,
            format!("{source}: `embeddings.base_url`: {why}"),
        )
    })?;
    let secret = key.map(|name| {
        let value = secrets::named(ambient, config, env, name)?;
        Ok::<_, Failure>(Secret::new(ambient, name, value))
    });
    let net = Net::to(ambient, [base.host_port()]);
    let embedder = RemoteEmbedder::new(api, model, base, net, secret.transpose()?);
    Ok(Some(Box::new(embedder)))
}

fn unavailable(error: &authority::Error) -> Failure {
    Failure::new(Exit::Unavailable, error.to_string())
}
