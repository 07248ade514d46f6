//! Scripts in Lua, run by this program: the example keeps the contract of features, and a script that does not end, or answers
//! anything else, costs its own answer; and a runtime that a program brings.

use super::scene::Scene;
use plugin::{Content, DeclarativeFeature, DeclaredFeature, MANIFEST, Manifest, Renames};
use pod::feature::{
    FeatureDescriptor, FeatureInstallContext, FeatureInstallError, FeatureModule,
    FeatureRuntimeKind, HostCapability,
};
use pod::hook::PreToolCall;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use testkit::{Check, CheckOutcome, FeatureHost, Ruling, conformance, shell_call};

/// The adapter under a host that supports features with code alone, as that of the test kit.
struct Adapted(DeclarativeFeature);

impl FeatureModule for Adapted {
    fn descriptor(&self) -> FeatureDescriptor {
        let mut descriptor = self.0.descriptor();
        descriptor.runtime = FeatureRuntimeKind::Builtin;
        descriptor
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        self.0.install(ctx)
    }

    fn body(&self) -> Option<String> {
        self.0.body()
    }
}

pub(crate) fn example(name: &str) -> PathBuf {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugins");
    docs.join(name).canonicalize().unwrap()
}

/// The feature of a package, with the network: the test kit has no sandbox, and nothing else keeps a guest from it.
pub(crate) fn declared(manifest: &str) -> DeclaredFeature {
    let version = env!("CARGO_PKG_VERSION").parse().unwrap();
    let manifest = Manifest::read(manifest, &version, &Renames::new(), &["lua"]).unwrap();
    let mut declared = manifest.features.into_values().next().unwrap().unwrap();
    declared.guest.as_mut().unwrap().network = true;
    for request in &mut declared.descriptor.requested_capabilities {
        if let HostCapability::Process { network, .. } = &mut request.capability {
            *network = true;
        }
    }
    declared
}

pub(crate) fn adapter(declared: DeclaredFeature, package: &Path) -> impl FeatureModule + use<> {
    let digest = Content::default().digest();
    Adapted(DeclarativeFeature::new(
        declared,
        package.to_owned(),
        digest,
        || Ok(()),
    ))
}

pub(crate) fn the_example_in_lua_keeps_the_contract() {
    let package = example("review-first-lua");
    let mut declared = declared(&fs::read_to_string(package.join(MANIFEST)).unwrap());
    // The host compares arguments with a schema of a manifest before it asks the tool; the checks ask the tool alone.
    for tool in &mut declared.descriptor.declared_tools {
        let mut schema: Map<String, Value> = serde_json::from_str(&tool.schema).unwrap();
        schema.remove("additionalProperties");
        tool.schema = serde_json::to_string(&schema).unwrap().into();
    }
    let held = conformance(move || adapter(declared.clone(), &package));
    let findings = held
        .example("Reviewed", json!({ "branch": "fix" }))
        .findings();
    assert_eq!(findings.len(), Check::ALL.len());
    let bad = findings
        .iter()
        .filter(|found| found.held != CheckOutcome::Yes);
    let bad: Vec<String> = bad.map(ToString::to_string).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

const HOSTILE: &str = r#"
[package]
name = "hostile"
version = "1.0.0"

[features.main]
runtime = "lua"
script = "main.lua"
hooks = [{ name = "judge", point = "pre_tool_call", deadline_ms = 1500 }]

[[features.main.tools]]
name = "hostile_works"
about = "Work."
effect = "read_only"
schema = { type = "object", additionalProperties = false }
"#;

/// Its tool works, and its gate allows its tool; of other calls it makes what stands in place of `HOSTILE`.
const SCRIPT: &str = "
yoi.tool('hostile_works', function() return 'it works' end)
yoi.hook('judge', function(view)
  if view.tool == 'hostile_works' then return yoi.allow() end
  HOSTILE
end)
";

/// (what the gate does, what its refusal says).
const GATES: &[(&str, &str)] = &[
    ("while true do end", "did not answer within"),
    (
        "while true do pcall(function() while true do end end) end",
        "did not answer within",
    ),
    (
        "local function spin() while true do coroutine.yield() end end\nwhile true do coroutine.wrap(spin)() end",
        "did not answer within",
    ),
    (
        "local co = coroutine.wrap(function() while true do end end); pcall(co)",
        "did not answer within",
    ),
    (
        "return setmetatable({}, { __gc = function() while true do end end }) and collectgarbage() and yoi.allow()",
        "did not answer within",
    ),
    (
        "return string.find(('a'):rep(100000), ('a-'):rep(40) .. 'b') and yoi.allow()",
        "did not answer within",
    ),
    (
        "while true do pcall(string.rep, 'x', 1 << 27) end",
        "did not answer within",
    ),
    ("sleep(60)", "did not answer within"),
    ("return yoi.deny(('x'):rep(1 << 29))", "not enough memory"),
    (
        "return load(string.char(27) .. 'Lua', 'x', 'b')()",
        "attempt to call a nil value",
    ),
    ("return yoi.allow(), error('late')", "late"),
    (
        "return { 'allow', decision = 'allow' }",
        "neither a list nor an object",
    ),
    (
        "return setmetatable({}, { __index = yoi.allow() })",
        "missing field `decision`",
    ),
    (
        "return setmetatable({}, { __pairs = function() return next, yoi.allow() end })",
        "missing field `decision`",
    ),
    ("return 'allow'", "invalid type"),
    ("return", "invalid type: null"),
];

pub(crate) fn a_script_that_does_not_end_refuses_while_its_tool_works() {
    for (makes, says) in GATES {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("main.lua"),
            SCRIPT.replace("HOSTILE", makes),
        )
        .unwrap();
        let mut host = FeatureHost::new().install(adapter(declared(HOSTILE), dir.path()));
        for _ in 0..2 {
            let began = Instant::now();
            let ruling = host.ask::<PreToolCall>(shell_call("ls"));
            let Ruling::Deny { reason } = ruling else {
                panic!("{makes}: {ruling:?}")
            };
            assert!(reason.contains(says), "{makes}: {reason}");
            // The deadline of the gate and a start of a guest on a busy machine.
            assert!(began.elapsed() < Duration::from_secs(10), "{makes}");
            assert_eq!(
                host.call("hostile_works", json!({})).text(),
                "it works",
                "{makes}"
            );
        }
    }
}

/// A runtime of this program alone, whose scripts are the answers themselves.
pub(crate) fn text(words: &[OsString]) -> ExitCode {
    let said = fs::read_to_string(&words[0]).unwrap();
    for line in std::io::stdin().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let result = match request["method"].as_str() {
            Some("initialize") => json!({ "contract": 1 }),
            _ => json!({ "summary": said.trim(), "content": "" }),
        };
        println!(
            "{}",
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
        );
    }
    ExitCode::SUCCESS
}

const TEXT: &str = r#"
[package]
name = "said"
version = "1.0.0"

[features.main]
runtime = "text"
script = "said.txt"

[[features.main.tools]]
name = "said_text"
about = "Say it."
effect = "read_only"
schema = { type = "object", additionalProperties = false }
"#;

pub(crate) fn a_program_brings_a_runtime_of_its_own() {
    let scene = Scene::new();
    let package = ".config/yoi/plugins/said";
    scene.write(&format!("{package}/plugin.toml"), TEXT);
    scene.write(&format!("{package}/said.txt"), "as it was written\n");
    let listed = scene.yoi(&["grant"]).ends(0).out;
    assert!(
        listed.contains("guests run `yoi __text {package}/said.txt`"),
        "{listed}"
    );
    scene.yoi(&["grant", "plugin:said"]).ends(0);
    let answers = "{\"calls\":[{\"name\":\"said_text\",\"arguments\":{}}]}\n{\"text\":\"done\"}";
    scene.write("project/answers.jsonl", answers);
    scene
        .yoi(&["run", "--pod", "p", "-m", "scripted:answers.jsonl", "go"])
        .ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    assert!(log.contains("as it was written"), "{log}");
    // Another program does not have it.
    scene.write(
        &format!("{package}/plugin.toml"),
        &TEXT.replace("\"text\"", "\"other\""),
    );
    let listed = scene.yoi(&["plugin", "list"]).ends(0).out;
    assert!(
        listed.contains("the runtime `other` is not known; known are program, guest, lua, text"),
        "{listed}"
    );
}
