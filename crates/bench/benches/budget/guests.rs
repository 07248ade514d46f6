//! Guests: a call of one that is there, of one that has to start, beside a program per call; and a start with many.

use crate::Amount;
use crate::table::Table;
use bench::program::Program;
use bench::ratio::{median, ms};
use bench::server::Server;
use serde_json::{Value, json};
use std::path::Path;

/// Calls of a run, and those at its beginning that are not counted: the guest starts, caches warm up.
const CALLS: usize = 60;
const WARM: usize = 10;

/// Guests of one more start.
const MANY: usize = 20;

/// A tool of each kind, without work of its own.
const MANIFEST: &str = r#"
[package]
name = "bench"
version = "1.0.0"

[features.python]
runtime = "guest"
guest = { program = "python3", args = ["-B", "{package}/guest.py"] }
tools = [{ name = "bench_python", about = "Nothing.", effect = "read_only", schema = { type = "object" } }]

[features.lua]
runtime = "lua"
script = "main.lua"
tools = [{ name = "bench_lua", about = "Nothing.", effect = "read_only", schema = { type = "object" } }]

[features.program]
tools = [{ name = "bench_program", about = "Nothing.", effect = "read_only", schema = { type = "object" } }]
run = { bench_program = { program = "true" } }
"#;

const LUA: &str = "yoi.tool('bench_lua', function() return 'done' end)";

const PYTHON: &str = r#"
from yoi_guest import Feature

feature = Feature()


@feature.tool("bench_python")
def nothing():
    return "done"


feature.run()
"#;

/// The kit of guests in Python.
const KIT: &str = include_str!("../../../../docs/plugins/sdk/yoi_guest.py");

pub(crate) fn guests(binary: &Path, amount: Amount, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let files = [
        ("plugin.toml", MANIFEST),
        ("main.lua", LUA),
        ("guest.py", PYTHON),
        ("yoi_guest.py", KIT),
    ];
    program.add_package("bench", &files);
    program.grant_all();
    std::fs::write(program.project().join("small"), "one line\n").unwrap();
    let read = || ("Read", json!({ "path": "small" }));
    let own = |tool: &'static str| (tool, json!({}));
    // The same step with a tool that is compiled in is the floor: request, records, one small file.
    let warm = |name: &str, call: (&'static str, Value)| {
        let steps = (0..amount.rounds.div_ceil(4)).flat_map(|round| {
            let ran = program.calls(&server, &format!("{name}{round}"), CALLS, call.clone());
            ran.steps().split_off(WARM)
        });
        median(&steps.collect::<Vec<_>>())
    };
    let floor = warm("floor", read());
    let python = warm("python", own("bench_python"));
    let lua = warm("lua", own("bench_lua"));
    let started = warm("program", own("bench_program"));
    table.added(
        "warm call of a guest in Python, floor Read",
        (python, floor),
        "ms",
        0.3,
    );
    table.added("  in Lua", (lua, floor), "ms", 0.3);
    table.ratio(
        "  a program per call, floor the guest in Python",
        (started, python),
        "ms",
        None,
    );
    let cold = |name: &str, call: (&'static str, Value)| {
        let steps = (0..amount.rounds).map(|round| {
            let ran = program.calls(&server, &format!("cold-{name}{round}"), 1, call.clone());
            ran.steps().remove(0)
        });
        median(&steps.collect::<Vec<_>>())
    };
    let first = cold("floor", read());
    let of_lua = cold("lua", own("bench_lua"));
    table.added(
        "first call of a tool in Lua, floor Read",
        (of_lua, first),
        "ms",
        6.0,
    );
    many(binary, &server, amount, table);
}

/// A start with granted guests that nobody calls.
fn many(binary: &Path, server: &Server, amount: Amount, table: &mut Table) {
    let plain = Program::new(binary, server);
    let with_guests = Program::new(binary, server);
    let manifest = &MANIFEST[..MANIFEST.find("[features.lua]").unwrap()];
    for number in 0..MANY {
        let own = |text: &str| text.replace("bench", &format!("bench{number}"));
        let files = [
            ("plugin.toml", own(manifest)),
            ("guest.py", own(PYTHON)),
            ("yoi_guest.py", KIT.to_owned()),
        ];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        with_guests.add_package(&format!("bench{number}"), &files);
    }
    with_guests.grant_all();
    let mut least = Vec::new();
    let mut more = Vec::new();
    for round in 0..amount.rounds {
        let name = format!("s{round}");
        least.push(ms(plain.run(server, &name, 0).start));
        more.push(ms(with_guests.run(server, &name, 0).start));
    }
    let what = format!("start with {MANY} granted guests that nobody calls");
    table.added(&what, (median(&more), median(&least)), "ms", 0.5);
}
