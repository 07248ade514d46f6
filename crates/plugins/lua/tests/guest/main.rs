//! A guest in Lua, line by line: what it answers, asks, prints and refuses.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

mod reach;
mod stac;

use lua::{Process, serve};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Write};
use std::rc::Rc;
use std::time::Duration;

#[derive(Clone, Default)]
struct Written(Rc<RefCell<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

/// What a guest wrote.
struct Said {
    lines: Vec<Value>,
    log: String,
    slept: Duration,
}

/// Has a package with this script, and modules, read these lines behind `initialize`.
fn talk(script: &str, lines: &[Value]) -> Said {
    let script = script.to_owned();
    let read = move |path: &str| match path {
        "main.lua" => Ok(script.clone().into_bytes()),
        "lib/words.lua" => Ok(b"local name = ...; return { name = name, count = 2 }".to_vec()),
        "again.lua" => Ok(b"return require 'again'".to_vec()),
        "compiled.lua" => Ok(b"\x1bLua".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    talk_with(read, lines)
}

/// The same with a package of these files.
fn talk_with(read: impl Fn(&str) -> io::Result<Vec<u8>> + 'static, lines: &[Value]) -> Said {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "contract": 1, "feature": "plugin:p/main", "settings": { "limit": 3 }, "states": ["seen"],
        "secrets": ["tracker"] } });
    let lines = std::iter::once(&hello).chain(lines);
    let input: String = lines.map(|line| format!("{line}\n")).collect();
    let output = Written::default();
    let log = Written::default();
    let slept = Rc::<Cell<Duration>>::default();
    let clock = Rc::clone(&slept);
    let sleep = Rc::clone(&slept);
    let process = Process {
        input: Box::new(Cursor::new(input)),
        output: Box::new(output.clone()),
        log: Box::new(log.clone()),
        read: Box::new(read),
        clock: Box::new(move || clock.get()),
        sleep: Box::new(move |time| sleep.set(sleep.get() + time)),
    };
    serve(process, "main.lua").unwrap();
    let lines = output
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    Said {
        lines,
        log: log.text(),
        slept: slept.get(),
    }
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tool.call", "params": {
        "call": "c1", "tool": tool, "arguments": arguments, "deadline_ms": 2000 } })
}

/// The result of one call of the tool `t`.
#[track_caller]
fn result(script: &str, arguments: Value) -> Value {
    let said = talk(script, &[call("t", arguments)]);
    assert_eq!(
        said.lines[0]["result"],
        json!({ "contract": 1 }),
        "{}",
        said.lines[0]
    );
    said.lines[1].clone()
}

/// The result of a tool with this body.
#[track_caller]
fn body(lua: &str) -> Value {
    result(
        &format!("yoi.tool('t', function(arguments, context) {lua} end)"),
        json!({}),
    )
}

#[track_caller]
fn refused(lua: &str) -> (String, String) {
    let said = body(lua);
    let error = &said["error"];
    let text = |value: &Value| {
        value
            .as_str()
            .unwrap_or_else(|| panic!("{lua}: {said}"))
            .to_owned()
    };
    (text(&error["data"]["kind"]), text(&error["message"]))
}

#[test]
fn a_tool_returns_a_text_a_text_and_a_content_or_a_table() {
    for (lua, summary, content, data) in [
        ("return 'done'", "done", "", json!(null)),
        ("return 'done', 'more'", "done", "more", json!(null)),
        ("return 'done', { 1 }", "done", "[1]", json!(null)),
        ("return 'done', nil, { 1 }", "done", "", json!([1])),
        (
            "return { b = 1, a = 2 }",
            "2 fields",
            r#"{"a":2,"b":1}"#,
            json!({ "a": 2, "b": 1 }),
        ),
        ("return { 'x' }", "1 item", r#"["x"]"#, json!(["x"])),
        (
            "return context.config.limit .. context.call",
            "3c1",
            "",
            json!(null),
        ),
        ("return tostring(yoi.settings.limit)", "3", "", json!(null)),
    ] {
        let mut expected = json!({ "summary": summary, "content": content });
        if !data.is_null() {
            expected["data"] = data;
        }
        assert_eq!(body(lua)["result"], expected, "{lua}");
    }
    for (lua, says) in [
        ("", "returned nil"),
        ("return 1", "returned integer"),
        (
            "return { 1, a = 2 }",
            "the result: a table with 1 items and 1 named fields",
        ),
        (
            "return { a = { 0/0 } }",
            "the result: a[1]: JSON has no NaN",
        ),
        ("return '\\xff'", "the summary: the text is not UTF-8"),
    ] {
        let (kind, message) = refused(lua);
        assert_eq!(kind, "bug");
        assert!(message.contains(says), "{lua}: {message}");
    }
}

const TOOL: &str = r#"
tool = {
  name = "t", version = "1.0.0", description = "Repeats a text.",
  parameters = {
    { name = "text", type = "string", required = true, description = "What." },
    { name = "times", type = "integer", default = 2, enum = { 1, 2, 3 } },
    { name = "marks", type = "array", default = {} },
  },
}
function tool.execute(params, context)
  table.insert(params.marks, "m")
  return params.text:rep(params.times) .. #params.marks
end
"#;

#[test]
fn the_form_of_a_tool_gives_defaults_and_checks_arguments() {
    let said = |arguments| result(TOOL, arguments);
    assert_eq!(said(json!({ "text": "ab" }))["result"]["summary"], "abab1");
    assert_eq!(
        said(json!({ "text": "ab", "times": 3 }))["result"]["summary"],
        "ababab1"
    );
    assert_eq!(
        said(json!({ "text": "ab", "times": null, "marks": [1] }))["result"]["summary"],
        "abab2"
    );
    // A default is new for each call.
    let twice = talk(
        TOOL,
        &[
            call("t", json!({ "text": "a" })),
            call("t", json!({ "text": "a" })),
        ],
    );
    assert_eq!(twice.lines[1], twice.lines[2]);
    for (arguments, says) in [
        (json!({}), "`text` is required"),
        (json!({ "text": 1 }), "`text` is not a text"),
        (
            json!({ "text": "a", "times": 1.5 }),
            "`times` is not an integer",
        ),
        (
            json!({ "text": "a", "times": 4 }),
            "`times` is not one of 1, 2, 3",
        ),
        (json!({ "text": "a", "marks": {} }), "`marks` is not a list"),
    ] {
        let error = &said(arguments)["error"];
        assert_eq!(error["message"], says);
        assert_eq!(error["data"]["kind"], "fix_input");
    }
    let unknown = talk(TOOL, &[call("u", json!({}))]);
    assert_eq!(
        unknown.lines[1]["error"]["message"],
        "the script has no tool `u`"
    );
}

#[test]
fn a_form_that_is_wrong_keeps_the_guest_from_starting() {
    for (from, to, says) in [
        (
            "name = \"t\",",
            "",
            "the table tool of the script: `name` is missing",
        ),
        (
            "description = \"Repeats a text.\",",
            "",
            "`description` is missing",
        ),
        (
            "\"integer\"",
            "\"int\"",
            "tool.parameters[2] of the script: the type `int` is not known",
        ),
        ("type = \"array\", ", "", "`type` is missing"),
        (
            "default = 2",
            "default = 'two'",
            "`default` is not an integer",
        ),
        (
            "default = {}",
            "default = { 1, a = 2 }",
            "`default`: a table with 1 items",
        ),
        (
            "{ name = \"text\"",
            "3, { name = \"text\"",
            "parameters[1] is not a table",
        ),
        ("tool.execute", "other", "the function `execute` is missing"),
        (
            "tool = {",
            "connector = 1; tool = {",
            "`connector` is a integer, not a table",
        ),
        (
            "tool = {",
            "agent = { name = 'a', description = 'b', tools = { 1 } }; tool = {",
            "`tools` is a list of names",
        ),
        (
            "tool = {",
            "connector = { name = 'a', description = 'b' }; tool = {",
            "the function `scan` is missing",
        ),
        ("tool = {", "tool = = {", "main.lua:2: unexpected symbol"),
        ("tool = {", "error('no'); tool = {", "main.lua:2: no"),
    ] {
        let script = TOOL.replacen(from, to, 1);
        assert_ne!(script, TOOL);
        let said = talk(&script, &[]);
        let message = said.lines[0]["error"]["message"]
            .as_str()
            .unwrap_or_default();
        assert!(message.contains(says), "{to}: {}", said.lines[0]);
    }
}

#[test]
fn agents_and_connectors_answer_in_their_forms() {
    let script = r#"
        agent = {
          name = "a", description = "Asks.", tools = { "Read" },
          arguments = { { name = "question", required = true } },
        }
        function agent.resolve(args, config, context)
          return { system = args.question .. config.tone .. context.config.tone, tools = {}, messages = {} }
        end
        connector = { name = "c", version = "1", description = "Reads." }
        function connector.scan(config, cursor) return cursor and { { id = cursor } } or {} end
    "#;
    let ask =
        |method, params| json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
    let said = talk(
        script,
        &[
            ask(
                "agent.resolve",
                json!({ "arguments": { "question": "q" }, "config": { "tone": "!" } }),
            ),
            ask("agent.resolve", json!({ "arguments": {}, "config": {} })),
            ask("connector.scan", json!({ "config": {}, "cursor": "x" })),
            ask("connector.scan", json!({ "config": {}, "cursor": null })),
        ],
    );
    assert_eq!(
        said.lines[1]["result"],
        json!({ "system": "q!!", "tools": [], "messages": [] })
    );
    assert_eq!(said.lines[2]["error"]["message"], "`question` is required");
    assert_eq!(said.lines[3]["result"], json!([{ "id": "x" }]));
    assert_eq!(said.lines[4]["result"], json!([]));
}

#[test]
fn states_are_replaced_again_where_they_changed_meanwhile() {
    let script = "
        local seen = yoi.state('seen')
        yoi.tool('t', function(arguments)
          local all = seen:update(function(old)
            old = old or json.array({})
            table.insert(old, arguments.x)
            return old
          end)
          return tostring(#all)
        end)";
    let answer = |id, result| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let conflict = json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32000, "message": "newer", "data": { "kind": "retry" } } });
    let said = talk(
        script,
        &[
            call("t", json!({ "x": "b" })),
            answer(1, json!({ "revision": 0, "value": null })),
            conflict,
            answer(3, json!({ "revision": 1, "value": ["a"] })),
            answer(4, json!({ "revision": 2 })),
        ],
    );
    let asked = |at: usize| (&said.lines[at]["method"], &said.lines[at]["params"]);
    assert_eq!(asked(1), (&json!("state.get"), &json!({ "name": "seen" })));
    assert_eq!(
        asked(2).1,
        &json!({ "name": "seen", "revision": 0, "value": ["b"] })
    );
    assert_eq!(
        asked(4).1,
        &json!({ "name": "seen", "revision": 1, "value": ["a", "b"] })
    );
    assert_eq!(said.lines[5]["result"]["summary"], "2");
    // No value is null for the host, and a refusal has its kind.
    let denied = json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32000, "message": "no", "data": { "kind": "denied" } } });
    let script = "yoi.tool('t', function() yoi.state('seen'):update(function() end) end)";
    let said = talk(
        script,
        &[
            call("t", json!({})),
            answer(1, json!({ "revision": 7, "value": 1 })),
            denied,
        ],
    );
    assert_eq!(
        said.lines[2]["params"],
        json!({ "name": "seen", "revision": 7, "value": null })
    );
    assert_eq!(
        said.lines[3]["error"],
        json!({ "code": -32000, "message": "no", "data": { "kind": "denied" } })
    );
}

#[test]
fn hooks_answer_and_ask_the_host() {
    let script = "
        yoi.hook('gate', function(view)
          log.warn(view.tool)
          yoi.notify('n', 'k'); yoi.alert('a'); yoi.note('o')
          return yoi.deny('no')
        end)
        yoi.hook('shape', function(view) return yoi.replaced({ list = view.list }) end)
        yoi.hook('watch', function() end)";
    let hook = |method: &str, name: &str, view: Value| json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": { "hook": name, "point": "pre_tool_call", "view": view } });
    let done = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "result": null });
    let said = talk(
        script,
        &[
            hook("hook.ask", "gate", json!({ "tool": "Bash" })),
            done(1),
            done(2),
            done(3),
            done(4),
            hook("hook.ask", "shape", json!({ "list": [] })),
            hook("hook.tell", "watch", json!({})),
            hook("hook.ask", "none", json!({})),
        ],
    );
    let asked: Vec<_> = (1..5)
        .map(|at| (&said.lines[at]["method"], &said.lines[at]["params"]))
        .collect();
    assert_eq!(
        asked[0],
        (&json!("log"), &json!({ "level": "warn", "text": "Bash" }))
    );
    assert_eq!(
        asked[1],
        (&json!("notify"), &json!({ "text": "n", "key": "k" }))
    );
    assert_eq!(asked[2], (&json!("alert"), &json!({ "text": "a" })));
    assert_eq!(asked[3], (&json!("note"), &json!({ "text": "o" })));
    assert_eq!(
        said.lines[5]["result"],
        json!({ "decision": "deny", "reason": "no" })
    );
    assert_eq!(
        said.lines[6]["result"],
        json!({ "change": "replaced", "value": { "list": [] } })
    );
    assert_eq!(said.lines[7]["result"], json!(null));
    assert!(said.lines[7].as_object().unwrap().contains_key("result"));
    assert_eq!(
        said.lines[8]["error"]["message"],
        "the script has no hook `none`"
    );
}

#[test]
fn an_error_has_kind_and_message_and_its_place_is_in_the_log() {
    let script =
        "local function deep() error('broken') end\nyoi.tool('t', function() deep() return 1 end)";
    let said = talk(script, &[call("t", json!({}))]);
    let error =
        json!({ "code": -32000, "message": "main.lua:1: broken", "data": { "kind": "bug" } });
    assert_eq!(said.lines[1]["error"], error);
    assert!(
        said.log.contains("main.lua:1: broken\nstack traceback:"),
        "{}",
        said.log
    );
    assert!(said.log.contains("main.lua:2:"), "{}", said.log);
    for (lua, kind, message) in [
        ("yoi.fail('late', 'retry')", "retry", "late"),
        ("yoi.fail('wrong')", "fix_input", "wrong"),
        ("error({ kind = 'denied', message = 'no' })", "denied", "no"),
        (
            "error({})",
            "bug",
            "the script raised a table without a `message`",
        ),
        ("error()", "bug", "the script raised a nil"),
        (
            "error(setmetatable({}, { __tostring = error, __index = error }))",
            "bug",
            "the script raised a table without a `message`",
        ),
        (
            "json.encode({ 1, a = 1 })",
            "bug",
            "a table with 1 items and 1 named fields is neither a list nor an object",
        ),
        (
            "local ok, e = pcall(json.decode, '{'); error(e)",
            "bug",
            "json.decode: EOF while parsing an object at line 1 column 1",
        ),
        (
            "local ok, e = pcall(yoi.fail, 'x', 'retry'); yoi.fail(e.kind .. tostring(e))",
            "fix_input",
            "retryx",
        ),
    ] {
        assert_eq!(refused(lua), (kind.to_owned(), message.to_owned()), "{lua}");
    }
}

#[test]
fn only_the_libraries_that_were_chosen_are_there() {
    let script = "
        local names = {}
        for name in pairs(_G) do table.insert(names, name) end
        table.sort(names)
        yoi.tool('t', function() return table.concat(names, ' ') end)";
    let said = result(script, json!({}));
    assert_eq!(
        said["result"]["summary"],
        "_G _VERSION assert base64 collectgarbage coroutine crypto env error fs getmetatable http ipairs json load log math next \
         pairs pcall print rawequal rawget rawlen rawset require select setmetatable sleep string table tonumber tostring type \
         utf8 warn xpcall yoi"
    );
    let none = "return tostring(string.dump) .. tostring(os) .. tostring(io) .. tostring(debug) .. tostring(package)";
    assert_eq!(body(none)["result"]["summary"], "nilnilnilnilnil");
}

#[test]
fn only_text_is_loaded_and_only_from_the_package() {
    for (lua, says) in [
        ("return tostring(load('return 1 + 1')())", "2"),
        (
            "return tostring(load('return x', 'n', 'bt', { x = 5 })())",
            "5",
        ),
        (
            "return select(2, load('\\27Lua'))",
            "attempt to load a binary chunk (mode is 't')",
        ),
        (
            "return select(2, load('\\27Lua', 'n', 'b'))",
            "attempt to load a binary chunk (mode is 't')",
        ),
        (
            "local n = 0; return select(2, load(function() n = n + 1; return n == 1 and '\\27' or nil end, 'n', 'b'))",
            "attempt to load a binary chunk (mode is 't')",
        ),
        (
            "local m = require 'lib.words'; return m.name .. m.count .. tostring(m == require 'lib.words')",
            "lib.words2true",
        ),
    ] {
        assert_eq!(body(lua)["result"]["summary"], says, "{lua}");
    }
    for (lua, says) in [
        (
            "require 'none'",
            "none.lua of the package: entity not found",
        ),
        ("require 'again'", "the module again requires itself"),
        ("require 'compiled'", "attempt to load a binary chunk"),
        (
            "require '../main'",
            "a module is named as a file of the package",
        ),
        ("require 'a..b'", "a module is named"),
        ("require '/etc/passwd'", "a module is named"),
        ("require ''", "a module is named"),
        ("require('a\\0b')", "a module is named"),
    ] {
        let (_, message) = refused(lua);
        assert!(message.contains(says), "{lua}: {message}");
    }
}

#[test]
fn modules_of_bytes_and_digests() {
    for (lua, says) in [
        ("return base64.encode('a\\0\\xff')", "YQD/"),
        (
            "return tostring(base64.decode('YQD/') == 'a\\0\\xff')",
            "true",
        ),
        (
            "return crypto.sha256('abc')",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            "return crypto.hmac_sha256('Jefe', 'what do ya want for nothing?')",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "return crypto.blake3('')",
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        ),
        (
            "return json.encode({ a = {} }, { properties = { a = { type = 'array' } } })",
            r#"{"a":[]}"#,
        ),
        (
            "return json.encode(json.decode('{\"a\":[],\"b\":null,\"c\":2.0}'))",
            r#"{"a":[],"c":2}"#,
        ),
    ] {
        assert_eq!(body(lua)["result"]["summary"], says, "{lua}");
    }
    let (_, message) = refused("base64.decode('?')");
    assert!(message.starts_with("base64.decode: "), "{message}");
    let (_, message) = refused("json.decode('[18446744073709551616]')");
    assert!(message.contains("outside of those of Lua"), "{message}");
}

#[test]
fn a_pause_ends_with_the_deadline() {
    let script = "yoi.tool('t', function() sleep(1.5); sleep(1.5); return 'no' end)";
    let said = talk(script, &[call("t", json!({}))]);
    assert_eq!(said.lines[1]["error"]["data"]["kind"], "exhausted");
    assert_eq!(said.slept, Duration::from_secs(2));
    for lua in ["sleep(-1)", "sleep(0/0)", "sleep(1/0)"] {
        assert!(refused(lua).1.starts_with("sleep: "), "{lua}");
    }
}

#[test]
fn what_is_printed_is_in_the_log_alone() {
    let said = talk("print('a', nil, 1.5, {} ~= nil); yoi.tool('t', print)", &[]);
    assert_eq!(said.lines.len(), 1);
    assert_eq!(said.log, "a\tnil\t1.5\ttrue\n");
}

// A line over 1 MiB would end the guest, and a host that reads it would wait.
#[test]
fn what_is_too_large_is_an_error_of_its_call() {
    let (kind, message) = refused("return ('x'):rep(1 << 20)");
    assert_eq!(kind, "exhausted");
    assert!(message.contains("at most 1 MiB"), "{message}");
    let (kind, message) = refused("yoi.note(('x'):rep(1 << 20))");
    assert_eq!(kind, "exhausted");
    assert!(message.contains("at most 1 MiB"), "{message}");
    let (_, message) = refused("error(('x'):rep(1 << 20))");
    assert_eq!(message.len(), 8 << 10);
    let said = result(TOOL, json!({ "text": "a" }));
    assert!(said["error"].is_null());
    let large = format!(r#"{{"text":"a","n":{}}}"#, u64::MAX);
    let said = result(TOOL, serde_json::from_str(&large).unwrap());
    assert_eq!(said["error"]["data"]["kind"], "fix_input");
}

#[test]
fn memory_that_is_used_up_has_a_kind() {
    let (kind, message) = refused("return ('x'):rep(1 << 29)");
    assert_eq!(
        (kind.as_str(), message.as_str()),
        ("exhausted", "not enough memory")
    );
}

#[test]
fn bombs_are_errors_and_the_next_call_works() {
    for lua in [
        "return ('x'):rep(1 << 40)",
        "local s = 'x'; while true do s = s .. s end",
        "local t = {}; while true do t[#t + 1] = {} end",
        "local function f() return 1 + f() end; return f()",
        "local f; f = function() return pcall(f) end; f(); error('deep')",
        "return string.format('%s', setmetatable({}, { __tostring = function() error('lies') end }))",
        "local function f() coroutine.wrap(f)() end; f()",
        "local s = '('; load(s:rep(1000000)); error('read')",
        "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }); return t[1]",
        "return ('x'):rep(1000000):gsub('.', { x = ('y'):rep(1000) })",
        "local t = {}; for i = 1, 60 do t = { t, t } end; return t",
    ] {
        let script = format!(
            "yoi.tool('bomb', function() {lua} end) yoi.tool('t', function() return 'works' end)"
        );
        let said = talk(&script, &[call("bomb", json!({})), call("t", json!({}))]);
        assert!(
            !said.lines[1]["error"].is_null(),
            "{lua}: {}",
            said.lines[1]
        );
        assert_eq!(said.lines[2]["result"]["summary"], "works", "{lua}");
    }
}
