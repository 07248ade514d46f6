//! One feature in Rust, Python, Node and Lua: the same test passes, and the transcript of its pod is the same, byte by byte but
//! for times and the feature's own name.

use super::scripts::{adapter, declared, example};
use llm_worker::tool::Touch;
use llm_worker::{ToolEffect, ToolOutput};
use pod::feature::FeatureModule;
use pod::hook::PreToolCall;
use pod::record::Record;
use serde_json::json;
use std::fs;
use testkit::{FeatureHost, FeatureUnderTest, FnTool, Ruling, shell_call};

#[allow(unreachable_pub, reason = "a crate of its own for authors")]
#[path = "../../../../docs/template/src/lib.rs"]
mod template;

/// The packages, and the interpreter that each needs.
const PACKAGES: [(&str, Option<&str>); 3] = [
    ("review-first", Some("python3")),
    ("review-first-node", Some("node")),
    ("review-first-lua", None),
];

pub(crate) fn the_same_feature_gives_the_same_transcript_in_each_language() {
    let rust = transcript(template::ReviewFirst);
    assert!(rust.len() > 5, "{rust:?}");
    for (name, interpreter) in PACKAGES {
        if let Some(program) = interpreter.filter(|program| !is_here(program)) {
            eprintln!("left out: there is no {program} in PATH");
            continue;
        }
        let package = example(name);
        let manifest = fs::read_to_string(package.join(plugin::MANIFEST)).unwrap();
        let guest = transcript(adapter(declared(&manifest), &package));
        assert_eq!(guest, rust, "{name}");
    }
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The test of `docs/template`, with what it leaves in the journal and in its state.
fn transcript(feature: impl FeatureModule) -> Vec<String> {
    let id = feature.descriptor().id.to_string();
    let bash = FnTool::new("Bash", ToolEffect::Effectful, |_, _| async {
        Ok(ToolOutput::default())
    });
    let bash = bash.touching(vec![Touch::Shell("git push origin fix".to_owned())]);
    let mut host = FeatureHost::new().tool(bash).install(feature);
    let push = || shell_call("git push origin fix");
    assert!(matches!(
        host.ask::<PreToolCall>(push()),
        Ruling::Deny { .. }
    ));
    let refused = host.call("Bash", json!({ "command": "git push origin fix" }));
    assert!(refused.text().contains("this branch was not reviewed"));
    assert_eq!(
        host.call("Reviewed", json!({ "branch": "fix" })).text(),
        "1 reviewed"
    );
    host.kill();
    assert_eq!(host.ask::<PreToolCall>(push()), Ruling::Allow);
    assert_eq!(
        host.call("Reviewed", json!({ "branch": "" })).text(),
        "2 reviewed"
    );
    let mut lines = kept(&host);
    lines.push(refused.text());
    lines
        .iter()
        .map(|line| line.replace(&id, "FEATURE"))
        .collect()
}

/// What a model and a person read of the pod, and its state. Plans and requests differ by the schemas, in which
/// the languages put different words.
fn kept(host: &FeatureUnderTest) -> Vec<String> {
    let records = host.records().into_iter();
    let lines = records.filter_map(|(seq, mut record)| {
        match &mut record {
            Record::ToolFinished(finished) => finished.ms = 0,
            Record::VerdictGiven(verdict) => verdict.gate.ms = None,
            Record::FeatureState(_) | Record::ItemAdded(_) => {}
            _ => return None,
        }
        Some(format!("{seq} {}", serde_json::to_string(&record).unwrap()))
    });
    lines.collect()
}
