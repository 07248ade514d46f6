//! A guest: requests in, answers out, one at a time.

use crate::convert;
use crate::declared::{Agent, Connector, Tool};
use crate::failure::Failure;
use crate::process::{Host, Process};
use crate::script::Script;
use crate::wire::Request;
use mlua::{Function, MultiValue, Value};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// The contract with the host, as `initialize` names it on both sides.
const CONTRACT: u64 = 1;

/// Answers the requests of a host with the script at this path in its package, until the host closes its end.
///
/// # Errors
/// A stream failed, or the host does not keep the contract.
pub fn serve(process: Process, script: &str) -> io::Result<()> {
    let host = Rc::new(Host::new(process));
    let mut guest = None;
    loop {
        let next = host.wire.borrow_mut().next()?;
        let Some(Request { id, method, params }) = next else {
            return Ok(());
        };
        let answer = params.and_then(|params| match (&guest, method.as_str()) {
            (None, "initialize") => {
                guest = Some(Guest::start(&host, script, params)?);
                Ok(json!({ "contract": CONTRACT }))
            }
            (Some(guest), method) => guest.answer(method, params),
            (None, _) => Err(Failure::bug("`initialize` comes first")),
        });
        host.set_deadline(None);
        if let Err(Failure { message, trace, .. }) = &answer
            && !trace.is_empty()
        {
            host.log(&format!("{message}\n{trace}"));
        }
        host.wire.borrow_mut().answer(id, answer)?;
    }
}

/// A script that was loaded, and what it declares.
struct Guest {
    host: Rc<Host>,
    script: Script,
    settings: Json,
    tool: Option<Tool>,
    agent: Option<Agent>,
    connector: Option<Connector>,
}

#[derive(Deserialize)]
struct Hello {
    #[serde(default)]
    settings: Json,
    /// By name.
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Deserialize)]
struct Call {
    call: String,
    tool: String,
    arguments: Map<String, Json>,
    deadline_ms: u64,
}

#[derive(Deserialize)]
struct Asked {
    hook: String,
    view: Json,
}

#[derive(Deserialize)]
struct Resolve {
    arguments: Map<String, Json>,
    #[serde(default)]
    config: Json,
}

#[derive(Deserialize)]
struct Scan {
    #[serde(default)]
    config: Json,
    #[serde(default)]
    cursor: Json,
}

impl Guest {
    fn start(host: &Rc<Host>, path: &str, params: Json) -> Result<Self, Failure> {
        let Hello { settings, secrets } = read(params)?;
        let script = Script::load(host, path, &settings, &secrets)?;
        let tool = Tool::of(&script)?;
        let agent = Agent::of(&script)?;
        let connector = Connector::of(&script)?;
        Ok(Self {
            host: Rc::clone(host),
            script,
            settings,
            tool,
            agent,
            connector,
        })
    }

    fn answer(&self, method: &str, params: Json) -> Result<Json, Failure> {
        match method {
            "tool.call" => self.call(read(params)?),
            "hook.ask" | "hook.tell" => {
                let Asked { hook, view } = read(params)?;
                let function = self.script.hook(&hook)?;
                let function = function
                    .ok_or_else(|| Failure::bug(format!("the script has no hook `{hook}`")))?;
                let said = self.script.call(&function, self.value(&view)?)?;
                self.json(&first(&said), "the answer", None)
            }
            "agent.resolve" => {
                let Resolve { arguments, config } = read(params)?;
                let agent = self.agent.as_ref();
                let agent = agent.ok_or_else(|| Failure::bug("the script has no `agent`"))?;
                let arguments = agent.arguments.checked(arguments)?;
                let values = [
                    Json::Object(arguments),
                    config.clone(),
                    json!({ "config": config }),
                ];
                let said = self.ask(&agent.resolve, &values)?;
                let schema = json!({ "properties": { "tools": { "type": "array" }, "messages": { "type": "array" } } });
                self.json(&first(&said), "the answer", Some(&schema))
            }
            "connector.scan" => {
                let Scan { config, cursor } = read(params)?;
                let connector = self.connector.as_ref();
                let connector =
                    connector.ok_or_else(|| Failure::bug("the script has no `connector`"))?;
                let said = self.ask(&connector.scan, &[config, cursor])?;
                self.json(
                    &first(&said),
                    "the items",
                    Some(&json!({ "type": "array" })),
                )
            }
            _ => Err(Failure::bug(format!("`{method}` is not known"))),
        }
    }

    fn call(&self, call: Call) -> Result<Json, Failure> {
        let Call {
            call,
            tool,
            arguments,
            deadline_ms,
        } = call;
        let deadline = Duration::from_millis(deadline_ms);
        self.host.set_deadline(Some(deadline));
        let own = self.tool.as_ref().filter(|own| own.name == tool);
        let arguments = match own {
            Some(own) => own.parameters.checked(arguments)?,
            None => arguments,
        };
        let registered = match own {
            Some(own) => Some(own.execute.clone()),
            None => self.script.tool(&tool)?,
        };
        let function =
            registered.ok_or_else(|| Failure::bug(format!("the script has no tool `{tool}`")))?;
        let context = json!({ "call": call, "deadline_ms": deadline_ms, "config": self.settings });
        let mut said = self.ask(&function, &[Json::Object(arguments), context])?;
        let mut next = || said.pop_front().unwrap_or(Value::Nil);
        match next() {
            summary @ Value::String(_) => {
                let summary = self.json(&summary, "the summary", None)?;
                let content = match self.json(&next(), "the content", None)? {
                    Json::Null => Json::String(String::new()),
                    text @ Json::String(_) => text,
                    other => Json::String(other.to_string()),
                };
                let mut answer = json!({ "summary": summary, "content": content });
                let data = self.json(&next(), "the data", None)?;
                let fields = answer.as_object_mut().filter(|_| !data.is_null());
                fields.map(|fields| fields.insert("data".to_owned(), data));
                Ok(answer)
            }
            result @ Value::Table(_) => {
                let result = self.json(&result, "the result", None)?;
                let (count, what) = match &result {
                    Json::Array(items) => (items.len(), "item"),
                    other => (other.as_object().map_or(0, Map::len), "field"),
                };
                let ending = if count == 1 { "" } else { "s" };
                let summary = format!("{count} {what}{ending}");
                Ok(json!({ "summary": summary, "content": result.to_string(), "data": result }))
            }
            other => Err(Failure::bug(format!(
                "the tool `{tool}` returned {}; return a text, a text and a content, or a table",
                other.type_name()
            ))),
        }
    }

    fn ask(&self, function: &Function, arguments: &[Json]) -> Result<MultiValue, Failure> {
        let values = arguments.iter().map(|value| self.value(value));
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        self.script.call(function, MultiValue::from_iter(values))
    }

    fn value(&self, json: &Json) -> Result<Value, Failure> {
        Ok(convert::to_lua(&self.script.lua, json)?)
    }

    fn json(&self, value: &Value, what: &str, schema: Option<&Json>) -> Result<Json, Failure> {
        convert::to_json(&self.script.lua, value, schema)
            .map_err(|why| Failure::bug(format!("{what}: {why}")))
    }
}

fn first(said: &MultiValue) -> Value {
    said.front().cloned().unwrap_or(Value::Nil)
}

fn read<T: DeserializeOwned>(params: Json) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|error| Failure::bug(format!("params: {error}")))
}
