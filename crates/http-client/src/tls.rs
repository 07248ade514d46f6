//! TLS, set up on the first use of an `https` URL, because reading the system's root certificates takes milliseconds
//! that a local server does not need. Certificates that the caller adds are parsed at once.

use crate::error::HttpErrorKind;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The system's root certificates, read on first use, and those that were added. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    added: Arc<[CertificateDer<'static>]>,
    config: Arc<OnceCell<Arc<ClientConfig>>>,
}

/// A file of certificates that cannot be used, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCertificates(String);

impl Tls {
    /// Trusts the certificates of a PEM file besides the system's. Other sections of the file are skipped.
    ///
    /// # Errors
    /// Text that is not PEM, no certificate, or one that is no certificate of an authority that can be parsed.
    pub fn with_certificates(pem: &[u8]) -> Result<Self, InvalidCertificates> {
        let mut added = Vec::new();
        let mut check = RootCertStore::empty();
        for found in CertificateDer::pem_slice_iter(pem) {
            let number = added.len() + 1;
            let unfit = |why: String| {
                InvalidCertificates(format!("certificate {number} is not valid: {why}"))
            };
            let certificate = found.map_err(|error| unfit(error.to_string()))?;
            check
                .add(certificate.clone())
                .map_err(|error| unfit(error.to_string()))?;
            added.push(certificate);
        }
        if added.is_empty() {
            let what = "there is no certificate in PEM form (-----BEGIN CERTIFICATE-----)";
            return Err(InvalidCertificates(what.to_owned()));
        }
        Ok(Self {
            added: added.into(),
            config: Arc::default(),
        })
    }

    pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
    ) -> Result<TlsStream<S>, (HttpErrorKind, String)> {
        let config = self
            .config
            .get_or_try_init(|| load(self.added.clone()))
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

async fn load(added: Arc<[CertificateDer<'static>]>) -> Result<Arc<ClientConfig>, String> {
    tokio::task::spawn_blocking(move || config(&added))
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

fn config(added: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let all = found.certs.into_iter().chain(added.iter().cloned());
    let (usable, _) = roots.add_parsable_certificates(all);
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
