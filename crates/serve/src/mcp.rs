//! The Model Context Protocol, as a server of one pod's tools, in both of its eras: with a session that begins with
//! `initialize`, and with requests that each say which version they are of. Knows not how messages arrive.

use crate::pod_calls::{Called, Fault, NewCall, PodCalls};
use crate::published;
use crate::results;
use crate::rpc::{self, INTERNAL, NO_METHOD, PARAMS, Request, RpcError, is_id};
use client::cmd_id::cmd_id;
use hyper::header::{HeaderMap, HeaderValue};
use protocol::method::OfferedTool;
use protocol::tool::ToolEffect;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The version in which each request says who asks.
pub(crate) const MODERN: &str = "2026-07-28";

/// The versions with a session, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The code for a version that is not spoken.
const UNSUPPORTED_VERSION: i64 = -32022;

/// The code for headers that are not those of the request.
const HEADER_MISMATCH: i64 = -32020;

const VERSION_HEADER: &str = "mcp-protocol-version";

/// Calls that wait for a person and whose client may come back; the oldest is forgotten first.
const MAX_PARKED: usize = 64;

/// Signs of the digest of its call at the end of a key.
const MARK: usize = 16;

/// How long the same call means the parked one.
const PARKED_FOR: Duration = Duration::from_secs(15 * 60);

/// Begins the keys of calls that may be asked for again.
const KEY: &str = "door-";

/// A call that waits for a person.
struct ParkedCall {
    key: String,
    at: Instant,
}

/// A server of the tools of one pod.
pub struct McpServer {
    pod: PodCalls,
    /// By tool and arguments.
    parked: Mutex<BTreeMap<String, ParkedCall>>,
}

/// What stands in `_meta` of a request.
#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
    #[serde(default, rename = "progressToken")]
    progress: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Common {
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

/// Whether a request over HTTP has the headers of its version: what stands between may look at them alone.
pub(crate) fn headers_fit(request: &Request, headers: &HeaderMap) -> Result<(), RpcError> {
    #[derive(Default, Deserialize)]
    struct Named {
        #[serde(default)]
        name: Option<String>,
    }
    let params = request.params.as_ref().map_or("{}", |params| params.get());
    let Common { meta } = read(params)?;
    let version = meta.and_then(|meta| meta.version);
    let is = |name: &str, expected: Option<&str>| {
        let given = headers.get(name).map(HeaderValue::to_str);
        match (given, expected) {
            (Some(Ok(given)), Some(expected)) => given == expected,
            (None, None) => true,
            (Some(_), _) | (None, Some(_)) => false,
        }
    };
    let fit = match version.as_deref() {
        Some(version) => {
            let named = read::<Named>(params).unwrap_or_default().name;
            let named = named.filter(|_| request.method == "tools/call");
            is(VERSION_HEADER, Some(version))
                && is("mcp-method", Some(&request.method))
                && (named.is_none() || is("mcp-name", named.as_deref()))
        }
        // A session of an older version, which begins without it.
        None => {
            is(VERSION_HEADER, None)
                || LEGACY
                    .iter()
                    .any(|version| is(VERSION_HEADER, Some(version)))
        }
    };
    if fit {
        return Ok(());
    }
    let why = "the headers are not those of the request";
    Err(RpcError::new(HEADER_MISMATCH, why))
}

/// Whether the client wants to know how a call goes on.
pub(crate) fn wants_progress(request: &Request) -> bool {
    let params = request.params.as_ref().map_or("{}", |params| params.get());
    let meta = read::<Common>(params).ok().and_then(|common| common.meta);
    let token = meta.and_then(|meta| meta.progress);
    request.method == "tools/call" && token.is_some_and(|token| is_id(&token))
}

/// What a request is answered with, and the notifications about it on the way.
pub(crate) struct Exchange<'a> {
    pub(crate) cancel: &'a CancellationToken,
    /// Takes the lines of notifications; one that is not taken at once is dropped.
    pub(crate) tell: &'a (dyn Fn(String) + Send + Sync),
}

impl McpServer {
    /// A server of this pod's tools.
    #[must_use]
    pub fn new(pod: PodCalls) -> Self {
        let parked = Mutex::default();
        Self { pod, parked }
    }

    /// The pod that it serves.
    #[must_use]
    pub fn pod(&self) -> &PodCalls {
        &self.pod
    }

    /// The line that answers a request.
    pub(crate) async fn answer(&self, request: &Request, exchange: &Exchange<'_>) -> String {
        match self.result(request, exchange).await {
            Ok(result) => rpc::result_line(&request.id, &result),
            Err(error) => rpc::error_line(Some(&request.id), &error),
        }
    }

    async fn result(&self, request: &Request, exchange: &Exchange<'_>) -> Result<Value, RpcError> {
        let params = request.params.as_ref().map_or("{}", |params| params.get());
        let Common { meta } = read(params)?;
        let Meta { version, progress } = meta.unwrap_or_default();
        let method = request.method.as_str();
        let is_modern = match version.as_deref() {
            Some(MODERN) => true,
            Some(version) if !LEGACY.contains(&version) => return Err(unsupported(version)),
            Some(_) | None => method == "server/discover",
        };
        match method {
            "server/discover" => Ok(self.cached(json!({
                "supportedVersions": [MODERN],
                "capabilities": { "tools": {} },
                "instructions": self.instructions(),
            }))),
            "initialize" => self.initialized(params),
            "ping" => Ok(results::complete(Map::new(), is_modern)),
            "tools/list" => {
                let tools = json!({ "tools": self.listed(params).await? });
                Ok(if is_modern { self.cached(tools) } else { tools })
            }
            "tools/call" => {
                let progress = progress.filter(|token| is_id(token));
                self.called(params, progress, is_modern, exchange).await
            }
            _ => Err(RpcError::new(NO_METHOD, "there is no such method")),
        }
    }

    /// A result that a client may keep for itself, for no time.
    fn cached(&self, result: Value) -> Value {
        let mut result = match result {
            Value::Object(result) => result,
            _ => Map::new(),
        };
        result.insert("ttlMs".to_owned(), json!(0));
        result.insert("cacheScope".to_owned(), json!("private"));
        let info = json!({ "io.modelcontextprotocol/serverInfo": info() });
        result.insert("_meta".to_owned(), info);
        results::complete(result, true)
    }

    fn instructions(&self) -> String {
        let name = &self.pod.name;
        format!(
            "Tools of the yoi pod {name}. Its rules judge each call; a call may wait for a person, who answers with `yoi approve {name}`. \
             All calls are recorded: `yoi log {name}`."
        )
    }

    fn initialized(&self, params: &str) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialize {
            protocol_version: String,
        }
        let Initialize { protocol_version } = read(params)?;
        let spoken = LEGACY.iter().find(|version| **version == protocol_version);
        Ok(json!({
            "protocolVersion": spoken.unwrap_or(&LEGACY[0]),
            "capabilities": { "tools": { "listChanged": false } },
            "serverInfo": info(),
            "instructions": self.instructions(),
        }))
    }

    async fn listed(&self, params: &str) -> Result<Vec<Value>, RpcError> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            cursor: Option<String>,
        }
        let List { cursor } = read(params)?;
        if cursor.is_some() {
            let why = "there is no such page: the first one has all tools";
            return Err(RpcError::new(PARAMS, why));
        }
        let tools = self.pod.tools().await.map_err(|why| unavailable(&why))?;
        Ok(tools.iter().map(definition).collect())
    }

    async fn called(
        &self,
        params: &str,
        progress: Option<Box<RawValue>>,
        is_modern: bool,
        exchange: &Exchange<'_>,
    ) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Call {
            name: String,
            #[serde(default)]
            arguments: Option<Map<String, Value>>,
            #[serde(default)]
            request_state: Option<String>,
        }
        let Call {
            name,
            arguments,
            request_state,
        } = read(params)?;
        let told = AtomicU64::new(0);
        let tell = |message: String| {
            let Some(token) = &progress else {
                return;
            };
            let progress = told.fetch_add(1, Ordering::Relaxed) + 1;
            let params =
                json!({ "progressToken": token, "progress": progress, "message": message });
            (exchange.tell)(rpc::notification_line("notifications/progress", &params));
        };
        let arguments = arguments.unwrap_or_default();
        let called = self.call(&name, arguments, request_state, exchange.cancel, &tell);
        match called.await {
            Ok(Called::Finished(finished)) => Ok(results::of_call(&finished, is_modern)),
            Ok(Called::Ended(why)) => Ok(results::failed(&why, is_modern)),
            Ok(Called::Parked { key, .. }) if is_modern => {
                Ok(json!({ "resultType": "input_required", "requestState": key }))
            }
            Ok(Called::Parked { asked, .. }) => {
                let why = format!("{asked}; the same call again brings its result");
                Ok(results::failed(&why, is_modern))
            }
            Err(fault @ Fault::NoTool(_)) => Err(RpcError::new(PARAMS, fault.to_string())),
            Err(Fault::Refused(why)) => Ok(results::failed(&why, is_modern)),
            Err(fault @ Fault::Unavailable(_)) => Err(unavailable(&fault)),
        }
    }

    /// Has the pod make a call. One that waits for a person is the same call when it is asked for again, with its state or,
    /// for a while, with the same arguments.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        state: Option<String>,
        cancel: &CancellationToken,
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Called, Fault> {
        let arguments = results::with_integers(arguments);
        let same = same_call(tool, &arguments);
        // The pod answers by the key alone.
        let digest = blake3::hash(same.as_bytes()).to_hex();
        let mark: String = digest.chars().take(MARK).collect();
        if let Some(state) = &state
            && !(state.starts_with(KEY) && state.ends_with(&mark))
        {
            return Err(Fault::Refused("this state is of another call".to_owned()));
        }
        let parked = self.parked().remove(&same);
        let parked = parked.filter(|parked| parked.at.elapsed() < PARKED_FOR);
        let known = state.or(parked.map(|parked| parked.key));
        let new = NewCall {
            tool: tool.to_owned(),
            arguments,
            key: known
                .clone()
                .unwrap_or_else(|| format!("{KEY}{}-{mark}", cmd_id())),
        };
        let called = self.pod.call(new, cancel, tell).await;
        match (&called, known) {
            (Ok(Called::Parked { key, .. }), _) => self.park(same, key.clone()),
            // It may have run: asked for again, it is the same call.
            (Err(Fault::Unavailable(_)), Some(key)) => self.park(same, key),
            _ => {}
        }
        called
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, ParkedCall>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn park(&self, call: String, key: String) {
        let mut parked = self.parked();
        if parked.len() >= MAX_PARKED {
            let oldest = parked.iter().min_by_key(|(_, parked)| parked.at);
            let oldest = oldest.map(|(call, _)| call.clone());
            oldest.iter().for_each(|call| drop(parked.remove(call)));
        }
        let at = Instant::now();
        parked.insert(call, ParkedCall { key, at });
    }
}

fn info() -> Value {
    json!({ "name": "yoi", "version": env!("CARGO_PKG_VERSION") })
}

/// Reads parameters.
fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Result<T, RpcError> {
    serde_json::from_str(params)
        .map_err(|why| RpcError::new(PARAMS, format!("the parameters do not fit: {why}")))
}

fn unsupported(version: &str) -> RpcError {
    let data = json!({ "supported": [MODERN], "requested": version });
    RpcError {
        data: Some(data),
        ..RpcError::new(UNSUPPORTED_VERSION, "this version is not supported")
    }
}

fn unavailable(fault: &Fault) -> RpcError {
    RpcError::new(INTERNAL, fault.to_string())
}

/// A tool as a client reads it.
fn definition(tool: &OfferedTool) -> Value {
    // A word of a later pod may mean anything.
    let effect = serde_json::from_value(json!(tool.effect)).unwrap_or(ToolEffect::Effectful);
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": published::schema(&tool.schema),
        "annotations": published::annotations(effect),
    })
}

/// What tells a call from others: the tool and the arguments, in one order.
fn same_call(tool: &str, arguments: &Map<String, Value>) -> String {
    let mut arguments = Value::Object(arguments.clone());
    arguments.sort_all_objects();
    format!("{tool} {arguments}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_calls::{DoorWaits, ToolFilter};

    /// A call where there is no pod.
    fn called(arguments: &Value, state: &str) -> Fault {
        let server = McpServer::new(PodCalls {
            dir: "/proc/none".into(),
            name: "p".to_owned(),
            client: "test".to_owned(),
            filter: ToolFilter::default(),
            waits: DoorWaits::default(),
            start: None,
        });
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let cancel = CancellationToken::new();
        let call = server.call("Read", arguments, Some(state.to_owned()), &cancel, &|_| ());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(call).err().unwrap()
    }

    #[test]
    fn a_state_is_of_its_call_alone() {
        let arguments = json!({ "path": "a" });
        let same = same_call("Read", arguments.as_object().unwrap());
        let digest = blake3::hash(same.as_bytes()).to_hex();
        let state = format!("{KEY}1-{}", &digest[..MARK]);
        assert!(matches!(called(&arguments, &state), Fault::Unavailable(_)));
        let other = json!({ "path": "b" });
        assert!(matches!(called(&other, &state), Fault::Refused(_)));
        assert!(matches!(called(&arguments, "s1"), Fault::Refused(_)));
    }
}
