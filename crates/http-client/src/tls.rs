//! TLS, set up on the first use of an `https` URL, because reading the system's root certificates takes milliseconds
//! that a local server does not need.

use crate::error::HttpErrorKind;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The system's root certificates, read on first use. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tls(Arc<OnceCell<Arc<ClientConfig>>>);

impl Tls {
    pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
    ) -> Result<TlsStream<S>, (HttpErrorKind, String)> {
        let config = self
            .0
            .get_or_try_init(load)
            .await
            .map_err(|why| (HttpErrorKind::Tls, why))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            (
                HttpErrorKind::Tls,
                format!("`{host}` is not a valid host name for TLS"),
            )
        })?;
        TlsConnector::from(config.clone())
            .connect(name, stream)
            .await
            .map_err(|error| {
                let of_tls = error
                    .get_ref()
                    .is_some_and(|inner| inner.is::<rustls::Error>());
                (
                    if of_tls {
                        HttpErrorKind::Tls
                    } else {
                        HttpErrorKind::Connect(None)
                    },
                    format!("TLS: {error}"),
                )
            })
    }
}

async fn load() -> Result<Arc<ClientConfig>, String> {
    tokio::task::spawn_blocking(config)
        .await
        .map_err(|error| format!("reading root certificates: {error}"))?
}

/// The wall clock; before 1970 it gives no time, and certificates cannot be checked.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .map(UnixTime::since_unix_epoch)
    }
}

fn config() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why = found
            .errors
            .first()
            .map_or_else(String::new, |error| format!(" ({error})"));
        return Err(format!(
            "no root certificates on this system{why}: install ca-certificates, or name a PEM file in SSL_CERT_FILE"
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(Clock))
        .with_safe_default_protocol_versions();
    let mut config = builder
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
