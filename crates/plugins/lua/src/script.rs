//! The state of Lua in which a script runs: its libraries, the files of its package, and what it may ask of the host.

use crate::convert;
use crate::failure::Failure;
use crate::process::Host;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mlua::chunk::ChunkMode;
use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value};
use ring::{digest, hmac};
use serde_json::Value as Json;
use std::rc::Rc;
use std::time::Duration;

/// Most memory of all values of a script, in bytes: with more, Lua raises an error.
const MAX_MEMORY: usize = 256 << 20;

/// The longest file of a script, in bytes.
const MAX_FILE: usize = 4 << 20;

/// The longest pause where a request has no deadline.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// The longest name of a module, in bytes.
const MAX_NAME: usize = 128;

const KIT: &str = include_str!("kit.lua");

/// A script that was loaded.
pub(crate) struct Script {
    pub(crate) lua: Lua,
    /// The kit's tables of what it registered.
    tools: Table,
    hooks: Table,
    xpcall: Function,
    handler: Function,
}

impl Script {
    /// Loads the file with this path in the package, and so runs its first level.
    ///
    /// # Errors
    /// What the script raised.
    pub(crate) fn load(
        host: &Rc<Host>,
        path: &str,
        settings: &Json,
        secrets: &[String],
    ) -> Result<Self, Failure> {
        let libraries =
            StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8 | StdLib::COROUTINE;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        lua.set_memory_limit(MAX_MEMORY)?;
        let globals = lua.globals();
        let xpcall = globals.raw_get("xpcall")?;
        let handler = lua.create_function(|lua, value: Value| {
            let raised = lua.create_table_with_capacity(0, 2)?;
            raised.raw_set("value", value)?;
            raised.raw_set("trace", lua.traceback(None, 1)?)?;
            Ok(raised)
        })?;
        let native = native(&lua, host)?;
        native.raw_set("settings", convert::to_lua(&lua, settings)?)?;
        let names = lua.create_table_from(secrets.iter().map(|name| (name.as_str(), true)))?;
        native.raw_set("secrets", names)?;
        let kit = lua.load(KIT).set_name("=kit").set_mode(ChunkMode::Text);
        let (tools, hooks) = kit.call(native)?;
        let script = Self {
            lua,
            tools,
            hooks,
            xpcall,
            handler,
        };
        let chunk = chunk(&script.lua, host, path)?;
        script.call(&chunk, ())?;
        Ok(script)
    }

    /// Calls a function of the script.
    ///
    /// # Errors
    /// What it raised.
    pub(crate) fn call(
        &self,
        function: &Function,
        arguments: impl IntoLuaMulti,
    ) -> Result<MultiValue, Failure> {
        let mut all = arguments.into_lua_multi(&self.lua)?;
        all.push_front(Value::Function(self.handler.clone()));
        all.push_front(Value::Function(function.clone()));
        let mut said: MultiValue = self.xpcall.call(all)?;
        if matches!(said.pop_front(), Some(Value::Boolean(true))) {
            return Ok(said);
        }
        match said.pop_front().unwrap_or(Value::Nil) {
            Value::Table(raised) => {
                let value: Value = raised.raw_get("value")?;
                let trace: LuaString = raised.raw_get("trace")?;
                let failure = Failure::of_value(&value);
                let trace = trace.to_string_lossy();
                Err(Failure { trace, ..failure })
            }
            // The handler failed, too.
            value => Err(Failure::of_value(&value)),
        }
    }

    /// The global table with this name, such as `tool`.
    pub(crate) fn global(&self, name: &str) -> Result<Option<Table>, Failure> {
        match self.lua.globals().raw_get(name)? {
            Value::Nil => Ok(None),
            Value::Table(table) => Ok(Some(table)),
            other => Err(Failure::bug(format!(
                "`{name}` is a {}, not a table",
                other.type_name()
            ))),
        }
    }

    /// The function that answers a tool or hook which the script registered.
    pub(crate) fn tool(&self, name: &str) -> Result<Option<Function>, Failure> {
        Ok(self.tools.raw_get(name)?)
    }

    pub(crate) fn hook(&self, name: &str) -> Result<Option<Function>, Failure> {
        Ok(self.hooks.raw_get(name)?)
    }
}

/// What the kit is made from.
fn native(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    // The contract wants null where Lua has nothing.
    native.raw_set("null", Value::NULL)?;
    let of = Rc::clone(host);
    let ask = move |lua: &Lua, (method, params): (String, Value)| {
        let params = json_of(lua, &params, None)?;
        let answer = of.wire.borrow_mut().ask(&method, &params);
        Ok(match answer {
            Ok(result) => (true, convert::to_lua(lua, &result)?, None),
            Err(Failure { kind, message, .. }) => {
                let message = lua.create_string(message)?;
                (false, Value::String(message), Some(kind))
            }
        })
    };
    native.raw_set("ask", lua.create_function(ask)?)?;
    let of = Rc::clone(host);
    let print = move |_: &Lua, line: LuaString| {
        of.log(&line.to_string_lossy());
        Ok(())
    };
    native.raw_set("print", lua.create_function(print)?)?;
    let of = Rc::clone(host);
    let sleep = move |_: &Lua, seconds: f64| match Duration::try_from_secs_f64(seconds) {
        Err(why) => Ok(Some(format!("sleep: {why}"))),
        Ok(wanted) => {
            let most = of.left().unwrap_or(MAX_SLEEP);
            (of.sleep)(wanted.min(most));
            Ok((wanted > most).then(|| "sleep: the deadline is before its end".to_owned()))
        }
    };
    native.raw_set("sleep", lua.create_function(sleep)?)?;
    let of = Rc::clone(host);
    let file = move |lua: &Lua, name: LuaString| {
        let path = module(&name.to_string_lossy()).map_err(mlua::Error::runtime)?;
        chunk(lua, &of, &path).map_err(|failure| mlua::Error::runtime(failure.message))
    };
    native.raw_set("module", lua.create_function(file)?)?;
    json(lua, &native)?;
    bytes(lua, &native)?;
    Ok(native)
}

fn json(lua: &Lua, native: &Table) -> mlua::Result<()> {
    let encode = |lua: &Lua, (value, schema): (Value, Value)| {
        let schema = json_of(lua, &schema, None)?;
        json_of(lua, &value, Some(&schema)).map(|json| json.to_string())
    };
    native.raw_set("encode", lua.create_function(encode)?)?;
    let decode = |lua: &Lua, text: LuaString| {
        let invalid =
            |why: &dyn std::fmt::Display| mlua::Error::runtime(format!("json.decode: {why}"));
        let text = text
            .to_str()
            .map_err(|_| invalid(&"the text is not UTF-8"))?;
        let json: Json = serde_json::from_str(&text).map_err(|error| invalid(&error))?;
        convert::exact_integers(&text).map_err(|why| invalid(&why))?;
        convert::to_lua(lua, &json)
    };
    native.raw_set("decode", lua.create_function(decode)?)?;
    native.raw_set(
        "array",
        lua.create_function(|lua, table: Table| convert::list(lua, table))?,
    )
}

fn bytes(lua: &Lua, native: &Table) -> mlua::Result<()> {
    let to = |_: &Lua, bytes: LuaString| Ok(STANDARD.encode(bytes.as_bytes()));
    native.raw_set("to_base64", lua.create_function(to)?)?;
    let from = |lua: &Lua, text: LuaString| {
        let bytes = STANDARD.decode(text.as_bytes());
        let bytes = bytes.map_err(|why| mlua::Error::runtime(format!("base64.decode: {why}")))?;
        lua.create_string(bytes)
    };
    native.raw_set("from_base64", lua.create_function(from)?)?;
    let sha256 = |_: &Lua, bytes: LuaString| {
        Ok(hex(
            digest::digest(&digest::SHA256, &bytes.as_bytes()).as_ref()
        ))
    };
    native.raw_set("sha256", lua.create_function(sha256)?)?;
    let keyed = |_: &Lua, (key, bytes): (LuaString, LuaString)| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key.as_bytes());
        Ok(hex(hmac::sign(&key, &bytes.as_bytes()).as_ref()))
    };
    native.raw_set("hmac_sha256", lua.create_function(keyed)?)?;
    let blake3 =
        |_: &Lua, bytes: LuaString| Ok(blake3::hash(&bytes.as_bytes()).to_hex().to_string());
    native.raw_set("blake3", lua.create_function(blake3)?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn json_of(lua: &Lua, value: &Value, schema: Option<&Json>) -> mlua::Result<Json> {
    convert::to_json(lua, value, schema).map_err(mlua::Error::runtime)
}

/// The path of a module in the package: `a.b` is `a/b.lua`. No name leads out of it.
fn module(name: &str) -> Result<String, String> {
    let fits = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    if name.len() > MAX_NAME || !name.split('.').all(fits) {
        return Err(
            "a module is named as a file of the package, without `.lua` and with `.` for `/`"
                .to_owned(),
        );
    }
    Ok(name.replace('.', "/") + ".lua")
}

/// A file of the package as a function. Only text: what compiled code would do, nobody has checked.
fn chunk(lua: &Lua, host: &Host, path: &str) -> Result<Function, Failure> {
    let text = (host.read)(path);
    let text = text.map_err(|why| Failure::bug(format!("{path} of the package: {why}")))?;
    if text.len() > MAX_FILE {
        return Err(Failure::bug(format!("{path} of the package is over 4 MiB")));
    }
    let chunk = lua.load(text).set_name(format!("@{path}"));
    Ok(chunk.set_mode(ChunkMode::Text).into_function()?)
}
