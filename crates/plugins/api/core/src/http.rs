//! Requests to a vendor, within what a feature was granted: a token by the name of its secret, answers that are kept by
//! their ETag, waits that a vendor asks for. Only GET is sent again; what may have an effect is sent once.

mod kept;
mod limits;
mod lists;

use crate::ServiceFault;
use authority::text::{Lines, escape_within};
use authority::{Net, REDACTED, Secret};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_client::{
    Bytes, Error, HeaderMap, HeaderValue, HttpClient, HttpErrorKind, HttpRequest, HttpResponse,
    StatusCode, Timeouts, Tls, Upload, Url, header,
};
use kept::Kept;
use limits::Limits;
use llm_worker::ErrorKind;
use pod::feature::{FeatureInstallContext, FeatureInstallError, HostCapability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use http_client::{BaseUrl, Method};
pub use kept::HttpReply;
pub use limits::{LONGEST_WAIT, TRIES};
pub use lists::{List, ValueList, Whole, sent};

/// The most bytes of an answer.
pub const MAX_BODY: usize = 8 << 20;
/// The longest text of a vendor in an error, in bytes.
const MAX_WORDS: usize = 512;

const WAITS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(30),
    between_bytes: Duration::from_secs(15),
    whole: Duration::from_secs(55),
    error_body: Duration::from_secs(5),
    ..Timeouts::USUAL
};

/// What is the same in all requests to a vendor.
#[derive(Debug)]
pub struct Vendor {
    /// In errors, such as `GitHub`.
    pub name: &'static str,
    /// Headers of each request.
    pub headers: &'static [Header],
    /// JSON pointers to a vendor's words in an answer that is an error: those that are there are shown, of lists and objects all
    /// texts.
    pub words: &'static [&'static str],
    /// What a person or a model can do about a status, in place of what is said otherwise.
    pub steps: &'static [Step],
}

/// A header: its name and its value.
#[derive(Debug)]
pub struct Header(pub &'static str, pub &'static str);

/// A status, and the next step after it.
#[derive(Debug)]
pub struct Step(pub u16, pub &'static str);

/// A token, and how it is sent.
pub struct Token {
    pub secret: Secret,
    pub form: TokenForm,
}

/// Where a token is, in settings: `{ secret = "NAME" }`, a secret of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenSetting {
    /// The name of a secret of the configuration.
    pub secret: String,
}

/// How a token is sent.
#[derive(Clone, Debug)]
pub enum TokenForm {
    /// In a header, behind a prefix: `authorization` and `Bearer `.
    Header {
        name: &'static str,
        prefix: &'static str,
    },
    /// As the password of a user.
    Basic { user: String },
}

impl TokenForm {
    /// `Authorization: Bearer TOKEN`.
    pub const BEARER: Self = Self::Header {
        name: "authorization",
        prefix: "Bearer ",
    };
}

/// A way to wait, which tests replace.
pub type HttpPause =
    Arc<dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The way to a vendor.
pub struct Http {
    vendor: &'static Vendor,
    client: HttpClient,
    tls: Tls,
    token: Option<Token>,
    kept: Kept,
    limits: Limits,
    pause: HttpPause,
}

/// An answer as it came.
struct Raw {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// What a feature requests for a base URL: the internet at its host, or exactly its endpoint.
#[must_use]
pub fn reach(base: &BaseUrl, purpose: &'static str) -> HostCapability {
    let purpose = Cow::Borrowed(purpose);
    let at = Cow::from(vec![Cow::from(base.host_port().to_string())]);
    match base.is_public() {
        true => HostCapability::Network { purpose, hosts: at },
        false => HostCapability::Endpoint { purpose, at },
    }
}

/// The part of the network that was granted for it.
///
/// # Errors
/// There is no such grant.
pub fn net(
    ctx: &mut FeatureInstallContext<'_>,
    base: &BaseUrl,
) -> Result<Net, FeatureInstallError> {
    match base.is_public() {
        true => ctx.services().network(),
        false => ctx.services().endpoints(),
    }
}

impl Http {
    /// A way to the API below `base`.
    #[must_use]
    pub fn new(vendor: &'static Vendor, base: BaseUrl, net: Net, token: Option<Token>) -> Self {
        let tls = Tls::default();
        Self {
            vendor,
            client: HttpClient::new(base, net, WAITS).secured(tls.clone()),
            tls,
            token,
            kept: Kept::default(),
            limits: Limits::default(),
            pause: Arc::new(|time| Box::pin(tokio::time::sleep(time))),
        }
    }

    /// Waits in another way.
    #[must_use]
    pub fn pausing(self, pause: HttpPause) -> Self {
        Self { pause, ..self }
    }

    /// Waits for each path by itself, as vendors want it that limit each of their methods.
    #[must_use]
    pub fn limited_by_path(self) -> Self {
        let limits = Limits::by_path();
        Self { limits, ..self }
    }

    /// Whether requests have a token.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The vendor's name.
    #[must_use]
    pub fn vendor(&self) -> &'static str {
        self.vendor.name
    }

    /// Reads what is at a path below the base, which begins with `/`. Repeated when the connection fails, the vendor asks to
    /// wait or has a fault, at most [`TRIES`] times.
    ///
    /// # Errors
    /// The vendor's words and the next step.
    pub async fn get(&self, path: &str) -> Result<HttpReply, ServiceFault> {
        let known = self.kept.find(path);
        let mut headers = self.headers()?;
        if let Some(tag) = known
            .as_ref()
            .and_then(|known| HeaderValue::from_str(&known.tag).ok())
        {
            headers.insert(header::IF_NONE_MATCH, tag);
        }
        let raw = self.repeated(&reading(path, headers)).await?;
        if let (StatusCode::NOT_MODIFIED, Some(known)) = (raw.status, known) {
            return Ok(known.reply);
        }
        let reply = self.read(Method::GET, path, raw)?;
        self.kept.keep(path, &reply);
        Ok(reply)
    }

    /// Sends a question that has no effect by POST, as GraphQL takes them. Repeated like [`Self::get`].
    ///
    /// # Errors
    /// As for [`Self::get`].
    pub async fn ask(&self, path: &str, question: &Value) -> Result<HttpReply, ServiceFault> {
        let mut headers = self.headers()?;
        let request = HttpRequest {
            body: Some(upload(&mut headers, question)),
            method: Method::POST,
            ..reading(path, headers)
        };
        let raw = self.repeated(&request).await?;
        self.read(Method::POST, path, raw)
    }

    /// Sends what may have an effect, once: whatever happens, it is not sent again.
    ///
    /// # Errors
    /// The vendor's words and the next step; whether it was done is not known if the answer is lost, and the error says so.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<HttpReply, ServiceFault> {
        let mut headers = self.headers()?;
        let body = body.map(|body| upload(&mut headers, body));
        self.pause_for_limits(path).await?;
        let request = HttpRequest {
            method: method.clone(),
            path,
            headers,
            body,
            once: true,
        };
        let raw = self.exchange(&request).await.map_err(|error| {
            let doubt = match is_unsent(&error) {
                true => "; nothing was sent",
                false => "; it may have been done all the same: look before you do it again",
            };
            ServiceFault::new(kind(&error), format!("{}{doubt}", error.message))
        })?;
        if let Some(wait) = self.limits.note(path, &raw.headers, raw.status) {
            let text = format!("nothing was done; {}", limits::until(wait));
            return Err(self.refused(&method, path, &raw, Some((ErrorKind::Retry, &text))));
        }
        self.read(method, path, raw)
    }

    /// Reads a text, such as a log, also where it is on another host, which gets no token.
    ///
    /// # Errors
    /// As for [`Self::get`]; `Denied` if the other host is not granted.
    pub async fn text(&self, path: &str) -> Result<String, ServiceFault> {
        let raw = self.repeated(&reading(path, self.headers()?)).await?;
        if !raw.status.is_redirection() {
            let raw = self.success(&Method::GET, path, raw)?;
            return Ok(String::from_utf8_lossy(&raw.body).into_owned());
        }
        let to = raw.headers.get(header::LOCATION);
        let to = to.and_then(|to| Url::parse(to.to_str().ok()?).ok());
        let to = crate::reading::needed(to, self.vendor.name, "a redirect", "location")?;
        let net = self.client.net();
        if !net.names(to.host(), to.port()) {
            let text = format!(
                "{} keeps this at {}, which is not granted; add that host to `network` in the grant of the feature",
                self.vendor.name,
                to.base().host_port()
            );
            return Err(ServiceFault::new(ErrorKind::Denied, text));
        }
        let client = HttpClient::new(to.base(), net.clone(), WAITS).secured(self.tls.clone());
        let request = reading(to.target(), HeaderMap::new());
        let raw = exchange(&client, &request).await.map_err(failed)?;
        let raw = self.success(&Method::GET, "its log", raw)?;
        Ok(String::from_utf8_lossy(&raw.body).into_owned())
    }

    /// The headers of each request. No error has a part of the token.
    fn headers(&self) -> Result<HeaderMap, ServiceFault> {
        let mut headers = HeaderMap::new();
        for Header(name, value) in self.vendor.headers {
            if let Ok(name) = header::HeaderName::from_bytes(name.as_bytes()) {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        let Some(Token { secret, form }) = &self.token else {
            return Ok(headers);
        };
        let denied = |why: String| ServiceFault::new(ErrorKind::Denied, why);
        let words = secret.expose().map_err(|error| denied(error.to_string()))?;
        let (name, text) = match form {
            TokenForm::Header { name, prefix } => (*name, format!("{prefix}{words}")),
            TokenForm::Basic { user } => {
                let both = BASE64_STANDARD.encode(format!("{user}:{words}"));
                (header::AUTHORIZATION.as_str(), format!("Basic {both}"))
            }
        };
        let unfit = || {
            denied(format!(
                "the secret {} cannot be sent in a header",
                secret.id()
            ))
        };
        let name = header::HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
        let mut value = HeaderValue::from_str(&text).map_err(|_| unfit())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    /// Sends what has no effect until it has an answer that counts.
    async fn repeated(&self, request: &HttpRequest<'_>) -> Result<Raw, ServiceFault> {
        let path = request.path;
        let mut attempt = 1;
        loop {
            self.pause_for_limits(path).await?;
            let is_last = attempt >= TRIES;
            match self.exchange(request).await {
                Err(error) if is_last || !is_passing(&error) => return Err(failed(error)),
                Err(_) => (self.pause)(limits::backoff(attempt)).await,
                Ok(raw) => {
                    let limited = self.limits.note(path, &raw.headers, raw.status);
                    let is_fault = matches!(raw.status.as_u16(), 500 | 502..=504);
                    match limited {
                        Some(wait) if is_last || wait > LONGEST_WAIT => {
                            let text = limits::until(wait);
                            let next = Some((ErrorKind::Retry, text.as_str()));
                            return Err(self.refused(&request.method, path, &raw, next));
                        }
                        Some(_) => {}
                        None if is_fault && !is_last => {
                            (self.pause)(limits::backoff(attempt)).await
                        }
                        None => return Ok(raw),
                    }
                }
            }
            attempt += 1;
        }
    }

    /// Waits as long as the vendor asked for before, if that is short.
    async fn pause_for_limits(&self, path: &str) -> Result<(), ServiceFault> {
        match self.limits.left(path) {
            None => Ok(()),
            Some(wait) if wait <= LONGEST_WAIT => {
                (self.pause)(wait).await;
                Ok(())
            }
            Some(wait) => {
                let text = format!(
                    "{} allows no further request now; {}",
                    self.vendor.name,
                    limits::until(wait)
                );
                Err(ServiceFault::new(ErrorKind::Retry, text))
            }
        }
    }

    async fn exchange(&self, request: &HttpRequest<'_>) -> Result<Raw, Error> {
        let raw = exchange(&self.client, request).await?;
        Ok(without_password(raw, &request.headers))
    }

    fn success(&self, method: &Method, path: &str, raw: Raw) -> Result<Raw, ServiceFault> {
        match raw.status.is_success() {
            true => Ok(raw),
            false => Err(self.refused(method, path, &raw, None)),
        }
    }

    fn read(&self, method: Method, path: &str, raw: Raw) -> Result<HttpReply, ServiceFault> {
        let Raw { headers, body, .. } = self.success(&method, path, raw)?;
        let body = match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body).map_err(|error| {
                let text = format!(
                    "{} answered with something that is no JSON: {error}",
                    self.vendor.name
                );
                ServiceFault::new(ErrorKind::Corrupt, text)
            })?,
        };
        // Of what has an effect, nothing goes on.
        let next = next(&headers).filter(|_| method == Method::GET);
        let next = next.map(|url| self.below(&url)).transpose()?;
        Ok(HttpReply {
            body,
            next,
            headers,
        })
    }

    /// The path below the base of the URL at which a list goes on. Its host is not asked, and gets no token: servers behind a
    /// proxy write one of their own.
    fn below(&self, url: &str) -> Result<String, ServiceFault> {
        let base = self.client.base().to_string();
        let own = Url::parse(&format!("{base}/"));
        let rest = own.ok().and_then(|own| {
            let to = own.join(url).ok()?;
            let rest = to.target().strip_prefix(own.target())?;
            Some(format!("/{rest}"))
        });
        rest.ok_or_else(|| {
            let url = escape_within(url, Lines::One, MAX_WORDS);
            let text = format!(
                "{} continues its list at {url}, which is not below {base}; check `base_url`",
                self.vendor.name
            );
            ServiceFault::new(ErrorKind::Unavailable, text)
        })
    }

    /// The error of an answer: what was asked, the vendor's words, the next step.
    fn refused(
        &self,
        method: &Method,
        path: &str,
        raw: &Raw,
        next: Option<(ErrorKind, &str)>,
    ) -> ServiceFault {
        let status = raw.status.as_u16();
        let path = path.split('?').next().unwrap_or_default();
        let mut text = format!("{} answered {status} to {method} {path}", self.vendor.name);
        let words = self.words(&raw.body);
        if !words.is_empty() {
            write!(text, ": {words}").ok();
        }
        let own = self.vendor.steps.iter().find(|step| step.0 == status);
        let (kind, step) = match status {
            401 => (
                ErrorKind::Denied,
                "the token is missing, wrong or expired: renew the secret",
            ),
            403 => (ErrorKind::Denied, "the token may not do this"),
            404 | 410 => (
                ErrorKind::FixInput,
                "check the key, and that the token may see it",
            ),
            408 | 429 => (ErrorKind::Retry, "try later"),
            400..=499 => (ErrorKind::FixInput, "change the arguments"),
            300..=399 => (
                ErrorKind::Unavailable,
                "it redirects, which is not followed: check `base_url`",
            ),
            _ => (ErrorKind::Unavailable, "the vendor has a fault: try later"),
        };
        let step = own.map_or(step, |own| own.1);
        let (kind, step) = next.unwrap_or((kind, step));
        ServiceFault::new(kind, format!("{text}; {step}"))
    }

    /// The vendor's words in an error.
    fn words(&self, body: &[u8]) -> String {
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return escape_within(String::from_utf8_lossy(body).trim(), Lines::One, MAX_WORDS);
        };
        let words = self.vendor.words.iter().filter_map(|at| body.pointer(at));
        let found: Vec<String> = words.flat_map(crate::reading::sentences).collect();
        escape_within(&found.join("; "), Lines::One, MAX_WORDS)
    }
}

/// A GET.
fn reading(path: &str, headers: HeaderMap) -> HttpRequest<'_> {
    HttpRequest {
        method: Method::GET,
        path,
        headers,
        body: None,
        once: false,
    }
}

/// JSON as a body, with its header.
fn upload(headers: &mut HeaderMap, body: &Value) -> Upload {
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Upload::new([Bytes::from(body.to_string())])
}

async fn exchange(client: &HttpClient, request: &HttpRequest<'_>) -> Result<Raw, Error> {
    let door = Arc::clone(client.net().door());
    tokio::select! {
        biased;
        () = door.closed() => Err(Error { kind: HttpErrorKind::Denied, message: "the grant of the network was revoked".to_owned() }),
        raw = whole(client, request) => raw,
    }
}

async fn whole(client: &HttpClient, request: &HttpRequest<'_>) -> Result<Raw, Error> {
    let mut response: HttpResponse<'_> = client.send(request).await?;
    let mut body = Vec::new();
    while let Some(piece) = response.next().await? {
        if body.len() + piece.len() > MAX_BODY {
            let message = format!(
                "{}: the answer is over {} MiB",
                client.base(),
                MAX_BODY >> 20
            );
            return Err(Error {
                kind: HttpErrorKind::TooLarge,
                message,
            });
        }
        body.extend_from_slice(&piece);
    }
    let status = response.status;
    let headers = response.headers.clone();
    response.keep().await;
    Ok(Raw {
        status,
        headers,
        body,
    })
}

/// An answer without the word that was sent as a key: a vendor may repeat it, and the redaction of the token does not
/// find it where it stands in one word with the user.
fn without_password(mut raw: Raw, headers: &HeaderMap) -> Raw {
    let form = headers.get(header::AUTHORIZATION);
    let word = form.and_then(|of| of.to_str().ok()?.split_once(' '));
    let word = word.map(|(_, word)| word).filter(|word| !word.is_empty());
    if let Some(word) = word {
        let body = String::from_utf8_lossy(&raw.body);
        if body.contains(word) {
            raw.body = body.replace(word, REDACTED).into_bytes();
        }
    }
    raw
}

/// The address of the next part in the header `Link`.
fn next(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(header::LINK)?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (address, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = rest
            .split(';')
            .any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then(|| address.to_owned())
    })
}

/// Whether nothing of a request was sent.
fn is_unsent(error: &Error) -> bool {
    match error.kind {
        HttpErrorKind::Connect(_)
        | HttpErrorKind::Tls
        | HttpErrorKind::Proxy
        | HttpErrorKind::Denied
        | HttpErrorKind::Bug => true,
        HttpErrorKind::Timeout
        | HttpErrorKind::Cut
        | HttpErrorKind::Malformed
        | HttpErrorKind::Encoded
        | HttpErrorKind::TooLarge => false,
    }
}

/// Whether the same request may work at once.
fn is_passing(error: &Error) -> bool {
    match error.kind {
        HttpErrorKind::Connect(_) | HttpErrorKind::Cut | HttpErrorKind::Timeout => true,
        HttpErrorKind::Tls
        | HttpErrorKind::Proxy
        | HttpErrorKind::Denied
        | HttpErrorKind::Bug
        | HttpErrorKind::Malformed
        | HttpErrorKind::Encoded
        | HttpErrorKind::TooLarge => false,
    }
}

fn kind(error: &Error) -> ErrorKind {
    match error.kind {
        HttpErrorKind::Proxy | HttpErrorKind::Denied => ErrorKind::Denied,
        HttpErrorKind::TooLarge => ErrorKind::Exhausted,
        HttpErrorKind::Malformed | HttpErrorKind::Encoded => ErrorKind::Corrupt,
        HttpErrorKind::Bug => ErrorKind::Bug,
        HttpErrorKind::Connect(_)
        | HttpErrorKind::Tls
        | HttpErrorKind::Timeout
        | HttpErrorKind::Cut => ErrorKind::Unavailable,
    }
}

fn failed(error: Error) -> ServiceFault {
    ServiceFault::new(kind(&error), error.message)
}

/// A text as a part of a path or of a query.
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").ok();
        }
    }
    // A part of these names alone would be another path.
    match out.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => out,
    }
}

/// A path with a query of those values that are not empty.
#[must_use]
pub fn with_query(path: &str, values: &[(&str, &str)]) -> String {
    let mut out = path.to_owned();
    let mut before = if path.contains('?') { '&' } else { '?' };
    for (name, value) in values.iter().filter(|(_, value)| !value.is_empty()) {
        write!(out, "{before}{name}={}", encoded(value)).ok();
        before = '&';
    }
    out
}
