//! The examples for authors of packages, against the contract that every feature is held to: what reads a manifest adds nothing
//! that breaks it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

mod guests;

use plugin::{Content, DeclarativeFeature, DeclaredFeature, MANIFEST, Manifest, Renames};
use pod::feature::{
    FeatureDescriptor, FeatureInstallContext, FeatureInstallError, FeatureModule,
    FeatureRuntimeKind,
};
use semver::Version;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::{Check, CheckOutcome, FeatureHost, conformance};

fn package(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs/plugins")
        .join(name)
        .canonicalize()
        .unwrap()
}

/// With the network for each program: those of the test kit run without a sandbox, and nothing else keeps a program from it.
fn read(manifest: &str) -> Vec<DeclaredFeature> {
    let manifest = &manifest
        .replace("\nprogram = ", "\nnetwork = true\nprogram = ")
        .replace("guest = { ", "guest = { network = true, ");
    let version = Version::parse(env!("CARGO_PKG_VERSION")).unwrap();
    let manifest = Manifest::read(manifest, &version, &Renames::new(), &[]).unwrap();
    assert!(!manifest.features.is_empty());
    manifest
        .features
        .into_values()
        .map(Result::unwrap)
        .collect()
}

/// The same with schemas that refuse no field. The host compares arguments with a schema of a manifest before it asks the tool;
/// the checks of arguments ask the tool alone.
fn features(manifest: &str) -> Vec<DeclaredFeature> {
    let mut features = read(manifest);
    for tool in features
        .iter_mut()
        .flat_map(|feature| &mut feature.descriptor.declared_tools)
    {
        let mut schema: Map<String, Value> = serde_json::from_str(&tool.schema).unwrap();
        schema.remove("additionalProperties");
        tool.schema = serde_json::to_string(&schema).unwrap().into();
    }
    features
}

/// The calls in the tests of a package: tools and arguments.
fn examples(package: &Path) -> Vec<(String, Value)> {
    let files = fs::read_dir(package.join("tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let read =
        |path: PathBuf| serde_json::from_slice::<Vec<Value>>(&fs::read(path).unwrap()).unwrap();
    let called = |example: Value| {
        (
            example["tool"].as_str().unwrap().to_owned(),
            example["arguments"].clone(),
        )
    };
    files.flat_map(read).map(called).collect()
}

/// The adapter under a host that supports features with code alone, as that of the test kit. The kind of a feature decides only
/// whether a host takes it.
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

    fn source(&self) -> Cow<'static, str> {
        self.0.source()
    }

    fn body(&self) -> Option<String> {
        self.0.body()
    }
}

/// Every check passes. None is left out because no tool takes the examples.
#[track_caller]
fn keeps_the_contract(declared: &DeclaredFeature, package: &Path, examples: &[(String, Value)]) {
    let of = declared.clone();
    let at = package.to_owned();
    let adapter = move || {
        DeclarativeFeature::new(of.clone(), at.clone(), Content::default().digest(), || {
            Ok(())
        })
    };
    let new = move || Adapted(adapter());
    let conformance = conformance(new);
    let held = examples
        .iter()
        .fold(conformance, |held, (tool, arguments)| {
            held.example(tool, arguments.clone())
        });
    let findings = held.findings();
    assert_eq!(findings.len(), Check::ALL.len());
    // A busy machine may need longer to start an interpreter than a check waits; that says nothing about the adapter.
    let is_slow = |held: &CheckOutcome| matches!(held, CheckOutcome::NotTried(why) if why.contains(" ended within "));
    let (slow, bad): (Vec<_>, Vec<_>) = findings
        .iter()
        .filter(|found| found.held != CheckOutcome::Yes)
        .partition(|found| is_slow(&found.held));
    slow.iter().for_each(|found| eprintln!("left out: {found}"));
    let bad: Vec<String> = bad.into_iter().map(ToString::to_string).collect();
    assert!(
        bad.is_empty(),
        "{}\n{}",
        declared.descriptor.id,
        bad.join("\n")
    );
}

#[track_caller]
fn example_keeps_the_contract(name: &str) {
    let package = package(name);
    let examples = examples(&package);
    let text = fs::read_to_string(package.join(MANIFEST)).unwrap();
    assert!(!examples.is_empty());
    features(&text)
        .iter()
        .for_each(|declared| keeps_the_contract(declared, &package, &examples));
}

#[test]
fn the_example_in_shell_keeps_the_contract() {
    example_keeps_the_contract("hello");
}

#[test]
fn the_example_in_python_keeps_the_contract() {
    if !Path::new("/usr/bin/python3").is_file() {
        eprintln!("left out: there is no /usr/bin/python3");
        return;
    }
    example_keeps_the_contract("stac");
}

/// Programs that take long, fail, leave processes behind or write much: what the examples for authors do not.
const OTHERS: &str = r#"
[package]
name = "others"
version = "1.0.0"

[features.main]
instructions = [{ name = "others", text = "Call each of them." }]

[[features.main.tools]]
name = "others_run"
about = "Run a line of shell."
effect = "effectful"
schema = { type = "object", properties = { line = { type = "string" } }, required = ["line"], additionalProperties = false }

[[features.main.tools]]
name = "others_wait"
about = "Run a line of shell that takes longer than the call may."
effect = "effectful"
deadline_ms = 1000
schema = { type = "object", properties = { line = { type = "string" } }, required = ["line"], additionalProperties = false }

[features.main.run.others_run]
program = "sh"
args = ["-c", "eval \"$2\"", "sh", "--", "{line}"]

[features.main.run.others_wait]
program = "sh"
args = ["-c", "eval \"$2\"", "sh", "--", "{line}"]
"#;

#[test]
fn programs_that_do_not_end_well_keep_the_contract() {
    let lines = [
        ("others_run", "setsid sleep 30 & echo started"),
        ("others_run", "head -c 3000000 /dev/zero | tr '\\0' x"),
        ("others_run", "printf '\\033[2J\\342\\200\\256'; exit 1"),
        ("others_run", "exit 75"),
        ("others_run", "kill -9 $$"),
        ("others_wait", "sleep 30"),
        ("others_wait", "trap '' TERM INT; sleep 30; sleep 30"),
    ];
    let example = |(tool, line): &(&str, &str)| ((*tool).to_owned(), json!({ "line": line }));
    let examples: Vec<_> = lines.iter().map(example).collect();
    let package = tempfile::tempdir().unwrap();
    features(OTHERS)
        .iter()
        .for_each(|declared| keeps_the_contract(declared, package.path(), &examples));
}

/// Through the host, which compares the arguments with the schema as it is written.
#[test]
fn the_host_refuses_what_the_schema_does_not_name() {
    let package = package("hello");
    let text = fs::read_to_string(package.join(MANIFEST)).unwrap();
    let declared = read(&text).remove(0);
    let adapter =
        DeclarativeFeature::new(declared, package, Content::default().digest(), || Ok(()));
    let mut host = FeatureHost::new().permit_all().install(Adapted(adapter));
    let fits = host.call("hello_greet", json!({ "who": "Ada" }));
    assert!(fits.text().contains("Hello, Ada!"), "{}", fits.text());
    let more = host.call(
        "hello_greet",
        json!({ "who": "Ada", "no-such-field": true }),
    );
    assert!(
        more.text().contains("no-such-field") && !more.text().contains("Hello"),
        "{}",
        more.text()
    );
}
