//! The URL of the webhook of `builtin:notify-person`, which may be a secret: read from its file, offered to that feature
//! alone, and kept out of everything that is written or shown.

use crate::config::Sourced;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use authority::text::without_bom;
use authority::{Ambient, Redactor, Secret};
use builtins::notify_person::WEBHOOK;
use pod::feature::HostServices;
use provider::BaseUrl;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of the file that are read.
const MAX_FILE: u64 = 64 * 1024;

/// Bytes from which on the path of the URL counts as a secret by itself: services that know a caller by it use longer ones.
const MIN_SECRET_PATH: usize = 20;

/// Adds the secret, if there is such a file.
pub(super) fn offer(
    services: HostServices,
    redactor: &Redactor,
    ambient: &Ambient,
    env: &Env,
    file: Option<&Sourced<PathBuf>>,
) -> Result<HostServices, Failure> {
    let Some(file) = file else {
        return Ok(services);
    };
    let url = url(file, env)?;
    // A text may have the URL without its host. A short path is a word that other texts have, too.
    let path = url
        .splitn(4, '/')
        .nth(3)
        .filter(|path| path.len() >= MIN_SECRET_PATH);
    let whole = Secret::new(ambient, WEBHOOK, url.clone());
    let path = path.map(|path| Secret::new(ambient, WEBHOOK, path.to_owned()));
    for secret in [Some(&whole), path.as_ref()].into_iter().flatten() {
        redactor
            .add(secret)
            .map_err(|why| Failure::new(Exit::Config, why.to_string()))?;
    }
    Ok(services.secret(whole))
}

/// The first line of the file. No error has any of it.
fn url(
    Sourced {
        value: path,
        source,
    }: &Sourced<PathBuf>,
    env: &Env,
) -> Result<String, Failure> {
    let path = match path.strip_prefix("~") {
        Ok(rest) => env.home()?.join(rest),
        Err(_) => path.clone(),
    };
    let fail = |what: &str| {
        Failure::new(
            Exit::Config,
            format!("{source}: {}: {what}", env.shown(&path)),
        )
        .help("write the URL of the webhook into the first line of that file")
    };
    let mut text = String::new();
    let read =
        File::open::<&Path>(&path).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
    read.map_err(|error| fail(&authority::explain(&error)))?;
    let url = without_bom(&text).lines().next().unwrap_or_default().trim();
    let base = url.split(['?', '#']).next().unwrap_or_default();
    match BaseUrl::parse(base) {
        Ok(base) if base.is_tls() => Ok(url.to_owned()),
        Ok(_) | Err(_) => Err(fail("its first line is not an https URL")),
    }
}
