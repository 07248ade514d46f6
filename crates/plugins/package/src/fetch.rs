//! An archive of a package from the web, and the signature beside it: over https, or over http within this machine.
//! Bounded in bytes, redirects and time. The host says which network it reaches.

use crate::archive::MAX_ARCHIVE;
use authority::Net;
use authority::text::{Lines, escape_within};
use http_client::{
    HeaderMap, HttpClient, HttpRequest, HttpResponse, Method, StatusCode, Timeouts, Tls, Url,
};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Most bytes that are quoted of what a server says.
const MAX_QUOTE: usize = 200;

const WAITS: Timeouts = Timeouts {
    first_byte: Duration::from_secs(60),
    between_bytes: Duration::from_secs(30),
    whole: Duration::from_secs(600),
    ..Timeouts::USUAL
};

/// An address that a package can come from: https, or http of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveUrl(Url);

/// The answer of an address, and how it was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    pub bytes: Vec<u8>,
    /// The addresses that redirects led to, without queries.
    pub redirects: Vec<String>,
}

impl ArchiveUrl {
    /// # Errors
    /// It is no URL, has a user name or password, or is neither https nor of this machine.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Only what stands before a query is told: that may have a key.
        let url = Url::parse(text).map_err(|bad| match text.split_once(['?', '#']) {
            Some((bare, _)) => Url::parse(bare).err().map_or_else(
                || "its query is not valid".to_owned(),
                |bad| bad.to_string(),
            ),
            None => bad.to_string(),
        })?;
        match url.base().is_tls() || is_of_this_machine(&url) {
            true => Ok(Self(url)),
            false => Err(format!(
                "{} is neither https nor an address of this machine",
                url.base()
            )),
        }
    }

    /// Where the signature is: the same with `.minisig` behind its path.
    ///
    /// # Errors
    /// It is too long.
    pub fn signature(&self) -> Result<Self, String> {
        let (path, query) = self.path_and_query();
        Self::parse(&format!("{}{path}.minisig{query}", self.0.base()))
    }

    /// The whole address, to keep or to connect to; its query may have a key.
    #[must_use]
    pub fn whole(&self) -> String {
        self.0.to_string()
    }

    fn path_and_query(&self) -> (&str, &str) {
        let target = self.0.target();
        target.split_at(target.find('?').unwrap_or(target.len()))
    }

    /// Where a redirect leads.
    fn next(&self, target: &str) -> Result<Self, String> {
        let to = self
            .0
            .join(target)
            .map_err(|_bad| format!("{self} redirects to an address that cannot be used"))?;
        let from = self.0.base();
        let to_base = to.base();
        let is_within = !from.is_tls() && is_of_this_machine(&to);
        if !to_base.is_tls() && !is_within {
            return Err(format!("{self} redirects to {to_base}, which is not https"));
        }
        if from.is_public() && !to_base.is_public() {
            return Err(format!(
                "{self} redirects to {to_base}, which is not on the internet"
            ));
        }
        Ok(Self(to))
    }
}

/// Without its query.
impl fmt::Display for ArchiveUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.base(), self.path_and_query().0)
    }
}

fn is_of_this_machine(url: &Url) -> bool {
    let address: Result<IpAddr, _> = url.host().parse();
    address.map_or(url.host() == "localhost", |address| address.is_loopback())
}

/// Fetches what is at an address, at most [`MAX_ARCHIVE`] bytes; `net` gives the network for each address on the way.
///
/// # Errors
/// What is wrong, in words for people.
pub async fn fetch(
    first: &ArchiveUrl,
    net: impl Fn(&ArchiveUrl) -> Result<Net, String>,
) -> Result<Fetched, String> {
    let tls = Tls::default();
    let mut url = first.clone();
    let mut fetched = Fetched::default();
    for _ in 0..=MAX_REDIRECTS {
        let client = HttpClient::new(url.0.base(), net(&url)?, WAITS).secured(tls.clone());
        let request = HttpRequest {
            method: Method::GET,
            path: url.0.target(),
            headers: HeaderMap::new(),
            body: None,
            once: false,
        };
        let response = client.send(&request).await;
        let mut response = response.map_err(|error| error.to_string())?.may_be_gzip();
        if let Some(target) = response.redirect() {
            url = url.next(&target)?;
            fetched.redirects.push(url.to_string());
            continue;
        }
        fetched.bytes = body(&mut response, &url).await?;
        return Ok(fetched);
    }
    Err(format!("{first}: more than {MAX_REDIRECTS} redirects"))
}

async fn body(response: &mut HttpResponse<'_>, url: &ArchiveUrl) -> Result<Vec<u8>, String> {
    if response.status != StatusCode::OK {
        let said = response.error_body().await;
        let said = String::from_utf8_lossy(&said);
        let said = escape_within(said.trim(), Lines::One, MAX_QUOTE);
        return Err(format!(
            "{url}: status {}: {said}",
            response.status.as_u16()
        ));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.next().await.map_err(|error| error.to_string())? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > MAX_ARCHIVE {
            return Err(format!("{url}: over {} MiB", MAX_ARCHIVE >> 20));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_this_machine_are_addresses() {
        for (text, is_fine) in [
            ("https://example.org/a.tgz", true),
            ("http://127.0.0.1:8000/a.tgz", true),
            ("http://[::1]/a.tgz", true),
            ("http://localhost/a.tgz", true),
            ("http://example.org/a.tgz", false),
            ("http://127.0.0.1.example.org/a.tgz", false),
            ("http://10.0.0.1/a.tgz", false),
            ("https://me:secret@example.org/a.tgz", false),
            ("ftp://example.org/a.tgz", false),
            ("/a.tgz", false),
        ] {
            assert_eq!(ArchiveUrl::parse(text).is_ok(), is_fine, "{text}");
        }
    }

    #[test]
    fn a_redirect_stays_encrypted_and_on_the_internet() {
        let next = |from: &str, to: &str| {
            let to = ArchiveUrl::parse(from).unwrap().next(to);
            to.map(|url| url.whole()).map_err(|why| {
                let at = why.find(", which").unwrap_or(why.len());
                why[at..].to_owned()
            })
        };
        let here = "https://example.org/a/b.tgz";
        assert_eq!(
            next(here, "c.tgz?key=1").unwrap(),
            "https://example.org/a/c.tgz?key=1"
        );
        assert_eq!(
            next(here, "https://cdn.example.net/x").unwrap(),
            "https://cdn.example.net/x"
        );
        for (to, why) in [
            ("http://example.org/a", ", which is not https"),
            ("http://127.0.0.1/a", ", which is not https"),
            ("https://10.0.0.1/a", ", which is not on the internet"),
            ("https://localhost/a", ", which is not on the internet"),
        ] {
            assert_eq!(next(here, to).unwrap_err(), why, "{to}");
        }
        let local = "http://127.0.0.1:1/a";
        assert!(next(local, "http://127.0.0.1:2/b").is_ok());
        assert!(next(local, "https://example.org/b").is_ok());
        assert!(next(local, "http://example.org/b").is_err());
    }

    /// A key in a query is in no message.
    #[test]
    fn the_signature_is_beside_the_archive() {
        let signature = |text: &str| ArchiveUrl::parse(text).unwrap().signature().unwrap();
        let plain = signature("https://example.org//a.tgz");
        assert_eq!(plain.whole(), "https://example.org//a.tgz.minisig");
        let with_key = signature("https://example.org/a.tgz?key=1");
        assert_eq!(with_key.whole(), "https://example.org/a.tgz.minisig?key=1");
        assert_eq!(with_key.to_string(), "https://example.org/a.tgz.minisig");
    }
}
