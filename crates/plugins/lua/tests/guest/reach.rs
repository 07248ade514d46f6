//! Files, hosts and secrets: what a script has of them are requests to the host.

use super::{call, talk};
use serde_json::{Value, json};

/// What a tool with this body asks the host, which gives these answers, and what the tool answers.
fn asked(lua: &str, answers: &[Value]) -> (Vec<Value>, Value) {
    let script = format!("yoi.tool('t', function() {lua} end)");
    let answers = answers.iter().zip(1..);
    let answers =
        answers.map(|(result, id)| json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    let lines: Vec<Value> = std::iter::once(call("t", json!({})))
        .chain(answers)
        .collect();
    let mut lines = talk(&script, &lines).lines.split_off(1);
    let answer = lines.pop().unwrap();
    let asked = lines
        .into_iter()
        .map(|line| json!([line["method"], line["params"]]));
    (asked.collect(), answer)
}

#[test]
fn an_exchange_is_one_request_with_the_secret_by_name() {
    let got = json!({ "status": 201, "headers": { "content-type": "application/json" }, "body": "{\"n\":2}" });
    let (asks, answer) = asked(
        "local got = http.post('https://a.org/x?y=1', { b = { 1 } }, {
           headers = { Authorization = 'Bearer ' .. env.get('tracker') }, params = { q = 'a b&', p = 2 } })
         return tostring(got.ok) .. got.status .. got.json.n .. tostring(env.get('other'))",
        &[got],
    );
    assert_eq!(answer["result"]["summary"], "true2012nil", "{answer}");
    let params = json!({
        "method": "POST", "url": "https://a.org/x?y=1&p=2&q=a%20b%26", "body": "{\"b\":[1]}",
        "headers": { "content-type": "application/json" },
        "secret": { "header": "Authorization", "name": "tracker", "prefix": "Bearer " },
    });
    assert_eq!(asks, [json!(["http.request", params])]);
    let failed = json!({ "status": 404, "headers": {}, "body": "none" });
    let lua = "local got = http.get('http://a.org/'); return tostring(got.ok) .. got.body .. tostring(got.json)";
    let (asks, answer) = asked(lua, &[failed]);
    assert_eq!(answer["result"]["summary"], "falsenonenil", "{answer}");
    let params = json!({ "method": "GET", "url": "http://a.org/", "headers": {} });
    assert_eq!(asks, [json!(["http.request", params])]);
}

// The mark of a secret would be sent as it is, and the server would answer that a key is wrong.
#[test]
fn a_secret_elsewhere_than_at_the_end_of_a_header_is_an_error() {
    for options in [
        "headers = { a = env.get('tracker') .. 'x' }",
        "headers = { a = env.get('tracker'), b = env.get('tracker') }",
        "params = { a = env.get('tracker') }",
        "body = env.get('tracker')",
        "body = { env.get('tracker') }",
    ] {
        let lua = format!("return http.request('GET', 'https://a.org/', {{ {options} }}).body");
        let (asks, answer) = asked(&lua, &[]);
        assert_eq!(
            answer["error"]["data"]["kind"], "bug",
            "{options}: {answer}"
        );
        assert_eq!(asks, [json!(null); 0], "{options}");
    }
}

#[test]
fn files_are_read_in_parts_and_listed_and_written() {
    let parts = [
        json!({ "text": "ab", "next": 2 }),
        json!({ "text": "cd", "next": null }),
        json!({ "entries": [{ "name": "x", "kind": "file", "bytes": 4 }], "more": 0 }),
        json!({ "bytes": 4 }),
        json!({ "output": "", "exit": 0 }),
    ];
    let (asks, answer) = asked(
        "local text = fs.read('x'); local entries, more = fs.list('.'); fs.write('y', text, 'out')
         yoi.request('process.run', { program = 'true' })
         return text .. entries[1].name .. more",
        &parts,
    );
    assert_eq!(answer["result"]["summary"], "abcdx0", "{answer}");
    let read = |offset| json!(["fs.read", { "root": "workspace", "path": "x", "offset": offset }]);
    let all = [
        read(0),
        read(2),
        json!(["fs.list", { "root": "workspace", "path": "." }]),
        json!(["fs.write", { "root": "out", "path": "y", "text": "abcd" }]),
        json!(["process.run", { "program": "true" }]),
    ];
    assert_eq!(asks, all);
}
