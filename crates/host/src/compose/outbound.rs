//! The way from this machine to a provider: the proxy that the environment names, and certificates of the user's own.
//! Other connections, such as those of `Fetch` and of MCP servers, use neither.

use crate::config::{Config, Sourced};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::plain_file::{self, Links};
use authority::{Ambient, Secret};
use provider::{BaseUrl, Proxy, Tls, is_direct};

/// The largest file of certificates, in bytes: several times that of a whole system.
const MAX_CERTIFICATES: u64 = 4 << 20;

/// A proxy, and the variable that names it.
#[derive(Clone, Debug)]
pub struct ProxyChoice {
    pub proxy: Proxy,
    pub variable: &'static str,
}

impl ProxyChoice {
    /// What must not be shown.
    pub fn secrets(&self, ambient: &Ambient) -> Vec<Secret> {
        self.proxy
            .secrets()
            .map(|text| Secret::new(ambient, self.variable, text.to_owned()))
            .collect()
    }
}

/// The proxy for an endpoint, by the variables that curl reads, in its order; `HTTP_PROXY` counts, too. None for a host
/// in `NO_PROXY`.
///
/// # Errors
/// The variable is not the URL of an HTTP proxy. The message shows no part of its value.
pub(super) fn proxy(url: &BaseUrl, env: &Env) -> Result<Option<ProxyChoice>, Failure> {
    let names = if url.is_tls() {
        ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
    };
    let Some(variable) = names.into_iter().find(|name| env.var(name).is_some()) else {
        return Ok(None);
    };
    let direct = env.text("no_proxy").or_else(|| env.text("NO_PROXY"));
    if direct.is_some_and(|list| is_direct(list, url)) {
        return Ok(None);
    }
    let proxy = Proxy::parse(env.text(variable).unwrap_or_default()).map_err(|why| {
        Failure::new(Exit::Config, format!("{variable}: {why}")).help(format!(
            "set {variable} to http://HOST:PORT, unset it, or add {} to NO_PROXY",
            url.host()
        ))
    })?;
    Ok(Some(ProxyChoice { proxy, variable }))
}

/// The certificates for an endpoint: the system's, and those of `ca_file`.
///
/// # Errors
/// The file cannot be read, or holds no usable certificates.
pub(super) fn tls(url: &BaseUrl, config: &Config) -> Result<Tls, Failure> {
    let Some(Sourced { value, source }) = config.ca_file.as_ref().filter(|_| url.is_tls()) else {
        return Ok(Tls::default());
    };
    let fail = |why: String| {
        let path = authority::escape(value);
        Failure::new(Exit::Config, format!("{source}: ca_file: {path}: {why}"))
            .help("name a file with certificates in PEM form, or delete the line")
    };
    let file = plain_file::open(value, Links::Followed).map_err(fail)?;
    let file = file.ok_or_else(|| fail("does not exist".to_owned()))?;
    let pem = plain_file::whole(file, MAX_CERTIFICATES).map_err(fail)?;
    Tls::with_certificates(&pem).map_err(|why| fail(why.to_string()))
}
