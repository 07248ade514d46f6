//! What a guest has the host do outside of the pod: files, programs, requests of HTTP and services, each through a handle that
//! its feature was granted. Does not depend on lines.

use super::wire::Refused;
use super::within::{Within, granted, read};
use authority::{ChildExit, FileKind, HostPattern, Job, Located, Net, Redactor, Secret, Spawner};
use http_client::{
    Bytes, HeaderMap, HeaderValue, HttpClient, HttpErrorKind, HttpRequest, Method, Timeouts, Tls,
    Upload, Url, header,
};
use llm_worker::ErrorKind;
use llm_worker::tool::Landing;
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureInstallContext, FeatureInstallError,
    HostCapability, JsonCall, JsonService, ServiceHandle,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tools::Files;

/// The most bytes of a file's part, of a program's output and of an answer of HTTP: with its escapes, each fits into a line, or
/// the guest is told that it does not.
const MAX_PART: usize = 768 << 10;

/// The most entries of a directory.
const MAX_ENTRIES: usize = 1000;

/// How long one program may run. The deadline of the guest's own request may end it earlier.
const RUN_TIME: Duration = Duration::from_secs(60);

const WAITS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(30),
    between_bytes: Duration::from_secs(15),
    whole: Duration::from_secs(60),
    ..Timeouts::USUAL
};

/// Numbers the programs of this process that guests had started: the mark of a child says whose it is.
static RUN: AtomicU64 = AtomicU64::new(1);

/// The handles.
#[derive(Default)]
pub(super) struct Reach {
    files: BTreeMap<String, Files>,
    programs: Vec<(BTreeSet<String>, Spawner)>,
    nets: Vec<Net>,
    tls: Tls,
    secrets: BTreeMap<String, BoundSecret>,
    redactor: Redactor,
    services: BTreeMap<String, ServiceHandle<dyn JsonService>>,
    package: PathBuf,
}

/// A secret, and where it may be sent.
struct BoundSecret {
    secret: Secret,
    to: Vec<HostPattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePart {
    root: String,
    path: String,
    #[serde(default)]
    offset: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    root: String,
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewContent {
    root: String,
    path: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    input: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    #[serde(default = "get")]
    method: String,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    secret: Option<SecretHeader>,
}

fn get() -> String {
    "GET".to_owned()
}

/// A header with a secret, which the guest knows by name only.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretHeader {
    header: String,
    name: String,
    #[serde(default)]
    prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    service: String,
    method: String,
    #[serde(default)]
    params: Value,
}

impl Reach {
    /// The handles that a feature requests and was granted.
    pub(super) fn of(
        ctx: &mut FeatureInstallContext<'_>,
        descriptor: &FeatureDescriptor,
        package: PathBuf,
    ) -> Result<Self, FeatureInstallError> {
        let mut reach = Self {
            package,
            ..Self::default()
        };
        // The first request is for the program of the guests themselves.
        let asked = descriptor.requested_capabilities.iter().skip(1);
        let is_granted = |request: &&CapabilityRequest| {
            let granted = ctx.grants().granted();
            granted
                .iter()
                .any(|grant| grant.meet(&request.capability).is_some())
        };
        let asked: Vec<_> = asked.filter(is_granted).cloned().collect();
        let mut network = false;
        let mut endpoints = false;
        let mut programs = BTreeMap::<bool, BTreeSet<String>>::new();
        for CapabilityRequest { capability, .. } in asked {
            match capability {
                HostCapability::ScopedFs { root, .. } => {
                    let files = Files::new(ctx.services().fs(&root)?);
                    reach.files.insert(root.into_owned(), files);
                }
                HostCapability::Process {
                    programs: names,
                    network,
                } => {
                    let names = names.iter().map(|name| name.clone().into_owned());
                    programs.entry(network).or_default().extend(names);
                }
                HostCapability::Network { .. } => network = true,
                HostCapability::Endpoint { .. } => endpoints = true,
                HostCapability::SecretRef { id, .. } => {
                    let secret = ctx.services().secret(&id)?;
                    let to = may_go_to(&id, ctx.grants().granted());
                    reach
                        .secrets
                        .insert(id.into_owned(), BoundSecret { secret, to });
                }
                _ => {}
            }
        }
        for (network, names) in programs {
            let spawner = ctx.services().programs(network)?.with_guarded_path();
            reach.programs.push((names, spawner));
        }
        if network {
            reach.nets.push(ctx.services().network()?);
        }
        if endpoints {
            reach.nets.push(ctx.services().endpoints()?);
        }
        // What a server sends back of a secret is not for the guest.
        let known = Redactor::new(reach.secrets.values().map(|bound| &bound.secret));
        reach.redactor = known.map_err(|error| FeatureInstallError::failed(error.to_string()))?;
        for required in &descriptor.requires {
            // One that is optional may be missing.
            if let Ok(handle) = ctx.services().require_json(&required.service) {
                let name = required.service.name.clone();
                reach.services.insert(name, handle);
            }
        }
        Ok(reach)
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &String> {
        self.secrets.keys()
    }

    pub(super) fn services(&self) -> impl Iterator<Item = &String> {
        self.services.keys()
    }

    fn files(&self, root: &str, path: &str) -> Result<(&Files, Located), Refused> {
        let files = granted(self.files.get(root), &format!("the root `{root}`"))?;
        let at = files.workspace().inside(Path::new(path));
        let at = at.map_err(|error| Refused::of(tools::refused(&error)))?;
        if files.workspace().may_hold_secrets(&at) {
            let text = "this file may hold secrets, which a guest does not get";
            return Err(Refused::new(ErrorKind::Denied, text));
        }
        Ok((files, at))
    }

    /// A part of a file, up to its last whole character.
    pub(super) fn read_file(&self, params: Value) -> Result<Value, Refused> {
        let FilePart { root, path, offset } = read(params)?;
        let (files, at) = self.files(&root, &path)?;
        let open = files.workspace().open_file(&at);
        let mut file = open.map_err(|error| Refused::of(tools::refused(&error)))?;
        let mut bytes = Vec::new();
        let part = file.seek(SeekFrom::Start(offset)).and_then(|_| {
            (&mut file)
                .take(MAX_PART as u64 + 1)
                .read_to_end(&mut bytes)
        });
        part.map_err(|error| Refused::new(ErrorKind::Unavailable, error.to_string()))?;
        let is_more = bytes.len() > MAX_PART;
        bytes.truncate(MAX_PART);
        let whole = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) if is_more && error.error_len().is_none() => error.valid_up_to(),
            Err(_) => {
                let text = "the file is not UTF-8 text";
                return Err(Refused::new(ErrorKind::FixInput, text));
            }
        };
        bytes.truncate(whole);
        let next = is_more.then_some(offset + whole as u64);
        Ok(json!({ "text": String::from_utf8_lossy(&bytes), "next": next }))
    }

    pub(super) fn list(&self, params: Value) -> Result<Value, Refused> {
        let Directory { root, path } = read(params)?;
        let (files, at) = self.files(&root, &path)?;
        let entries = files.workspace().read_dir(&at);
        let mut entries = entries.map_err(|error| Refused::of(tools::refused(&error)))?;
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let shown = entries.iter().take(MAX_ENTRIES).map(|(name, meta)| {
            let kind = match meta.kind {
                FileKind::File => "file",
                FileKind::Dir => "dir",
                FileKind::Symlink => "symlink",
                FileKind::Other => "other",
            };
            json!({ "name": name.to_string_lossy(), "kind": kind, "bytes": meta.len })
        });
        let shown: Vec<_> = shown.collect();
        Ok(json!({ "entries": shown, "more": entries.len().saturating_sub(MAX_ENTRIES) }))
    }

    /// Writes a file that the call names in its arguments, so that permission judged it. The change is in the journal first.
    pub(super) async fn write_file(
        &self,
        params: Value,
        within: Option<&Within>,
    ) -> Result<Value, Refused> {
        let NewContent { root, path, text } = read(params)?;
        let within = granted(
            within.filter(|within| within.may_write),
            "a call with effects",
        )?;
        let (files, at) = self.files(&root, &path)?;
        let refused = |error| Refused::of(tools::refused(&error));
        let place = files.workspace().place(&at).map_err(refused)?;
        let landing = Landing {
            path: at.path().to_owned(),
            dir: place.id(),
            born: place.born(),
            missing: place.missing().is_some(),
        };
        within.cx.host.may_land(&landing).map_err(Refused::of)?;
        let _turn = files.one_at_a_time(&within.cx).await.map_err(Refused::of)?;
        let before = files.before(&at, &within.cx).map_err(Refused::of)?;
        let written = tools::publish(files, &at, before, text.as_bytes(), &within.cx);
        written.await.map_err(Refused::of)?;
        Ok(json!({ "bytes": text.len() }))
    }

    /// Runs a program to its end, in the working directory if the feature may read it.
    pub(super) async fn run(&self, params: Value) -> Result<Value, Refused> {
        let Run {
            program,
            args,
            input,
        } = read(params)?;
        let mut programs = self.programs.iter();
        let found = programs.find(|(names, _)| names.contains(&program));
        let (_, spawner) = granted(found, &format!("the program `{program}`"))?;
        let workspace = self.files.get(HostCapability::WORKSPACE);
        let cwd = workspace.map_or(self.package.as_path(), |files| files.workspace().cwd());
        let job = Job {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            cwd: cwd.to_owned(),
            call: format!("guest-run-{}", RUN.fetch_add(1, Ordering::Relaxed)),
            deadline: RUN_TIME,
            input: input.into_bytes(),
        };
        let mut output = Vec::new();
        let write = |bytes: &[u8]| {
            output.extend_from_slice(bytes);
            match output.len() {
                0..=MAX_PART => Ok(()),
                _ => Err(std::io::Error::other(format!(
                    "it wrote over {MAX_PART} bytes"
                ))),
            }
        };
        // Dropped with the request of the guest, it kills.
        let ended = spawner.run(job, write, &CancellationToken::new()).await;
        let ended = ended.map_err(|error| Refused::of(tools::refused(&error)))?;
        let output = String::from_utf8_lossy(&output);
        match ended.how {
            ChildExit::Exit(status) => Ok(json!({ "output": output, "exit": status })),
            ChildExit::Signal(signal) => Ok(json!({ "output": output, "signal": signal })),
            ChildExit::Deadline | ChildExit::Cancelled => {
                let text = format!("ended at its time limit of {} s", RUN_TIME.as_secs());
                Err(Refused::new(ErrorKind::Exhausted, text))
            }
        }
    }

    /// One exchange with a granted host. Redirects are answers like others.
    pub(super) async fn exchange(&self, params: Value) -> Result<Value, Refused> {
        let asked: Exchange = read(params)?;
        let fix = |text: String| Refused::new(ErrorKind::FixInput, text);
        let url = Url::parse(&asked.url).map_err(|bad| fix(bad.to_string()))?;
        let base = url.base();
        let net = self
            .nets
            .iter()
            .find(|net| net.names(url.host(), url.port()));
        let net = granted(net, &format!("the host {}", base.host_port()))?.clone();
        let method = Method::from_bytes(asked.method.as_bytes()).ok();
        let method = method.filter(|method| *method != Method::CONNECT);
        let method = method.ok_or_else(|| fix("`method` is not one of HTTP".to_owned()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &asked.headers {
            add(&mut headers, name, value).map_err(fix)?;
        }
        if let Some(SecretHeader {
            header,
            name,
            prefix,
        }) = &asked.secret
        {
            let bound = granted(self.secrets.get(name), &format!("the secret `{name}`"))?;
            let mut to = bound.to.iter();
            if !to.any(|host| host.matches(url.host(), url.port())) {
                let host = base.host_port();
                let text = format!(
                    "the secret `{name}` may not go to {host}; `hosts` of its request names where it may"
                );
                return Err(Refused::new(ErrorKind::Denied, text));
            }
            if !base.is_tls() && base.is_public() {
                let text = "a secret goes to a host of the internet only with https";
                return Err(Refused::new(ErrorKind::Denied, text));
            }
            let words = bound.secret.expose();
            let words = words.map_err(|error| Refused::of(tools::refused(&error)))?;
            add(&mut headers, header, &format!("{prefix}{words}")).map_err(fix)?;
        }
        let client = HttpClient::new(base, net.clone(), WAITS).secured(self.tls.clone());
        let body = asked.body.map(|body| Upload::new([Bytes::from(body)]));
        let request = HttpRequest {
            method,
            path: url.target(),
            headers,
            body,
            once: false,
        };
        let done = tokio::select! {
            biased;
            () = net.door().closed() => {
                return Err(Refused::new(ErrorKind::Denied, "the grant of the network was revoked"));
            }
            done = self.answer(&client, &request) => done,
        };
        done.map_err(|error| match error {
            Ok(error) => Refused::new(kind_of(&error), error.message),
            Err(text) => Refused::new(ErrorKind::Exhausted, text),
        })
    }

    async fn answer(
        &self,
        client: &HttpClient,
        request: &HttpRequest<'_>,
    ) -> Result<Value, Result<http_client::Error, String>> {
        let mut got = client.send(request).await.map_err(Ok)?;
        let mut body = Vec::new();
        while let Some(piece) = got.next().await.map_err(Ok)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_PART {
                return Err(Err(format!("the answer has over {MAX_PART} bytes")));
            }
        }
        let clean = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            self.redactor.text(&text).into_owned()
        };
        let headers = got.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), clean(value.as_bytes()).into()));
        let headers: Map<String, Value> = headers.collect();
        Ok(json!({ "status": got.status.as_u16(), "headers": headers, "body": clean(&body) }))
    }

    /// Calls a service that another feature provides.
    pub(super) async fn serve(
        &self,
        params: Value,
        within: Option<&Within>,
    ) -> Result<Value, Refused> {
        let Serve {
            service,
            method,
            params,
        } = read(params)?;
        let handle = self.services.get(&service);
        let handle = granted(handle, &format!("the service `{service}`"))?;
        let mut call = JsonCall::new(method, params);
        call.within = within.map(|within| within.cx.clone());
        let answer = handle.call(|service| service.call(call)).await;
        let answer = answer.map_err(|error| Refused::new(error.kind(), error.to_string()))?;
        answer.map_err(|fault| Refused::new(fault.kind, fault.message))
    }
}

/// Where a secret may be sent: the hosts that its grant names; without any, the one host that the feature may connect to. A
/// feature with more hosts, or any host, says in its manifest which of them a secret is for.
fn may_go_to(id: &str, granted: &[HostCapability]) -> Vec<HostPattern> {
    let mut bound = BTreeSet::new();
    let mut reached = BTreeSet::new();
    for grant in granted {
        match grant {
            HostCapability::SecretRef { id: own, hosts } if own == id => bound.extend(hosts.iter()),
            HostCapability::Network { hosts, .. } | HostCapability::Endpoint { at: hosts, .. } => {
                reached.extend(hosts.iter());
            }
            _ => {}
        }
    }
    if bound.is_empty() && reached.len() == 1 {
        bound = reached;
    }
    let exact = bound.into_iter().filter(|host| !host.contains('*'));
    exact.filter_map(|host| host.parse().ok()).collect()
}

/// Adds a header; those that frame a message are the host's.
fn add(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let own = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::ACCEPT_ENCODING,
    ];
    let bad = || format!("the header `{name}` cannot be sent");
    let key = header::HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
    // The value may be a secret, so it is not quoted.
    let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
    if own.contains(&key) {
        return Err(bad());
    }
    value.set_sensitive(true);
    headers.insert(key, value);
    Ok(())
}

fn kind_of(error: &http_client::Error) -> ErrorKind {
    match error.kind {
        HttpErrorKind::Proxy | HttpErrorKind::Denied => ErrorKind::Denied,
        HttpErrorKind::TooLarge => ErrorKind::Exhausted,
        HttpErrorKind::Bug => ErrorKind::Bug,
        HttpErrorKind::Connect(_)
        | HttpErrorKind::Tls
        | HttpErrorKind::Timeout
        | HttpErrorKind::Cut
        | HttpErrorKind::Malformed
        | HttpErrorKind::Encoded => ErrorKind::Unavailable,
    }
}
