//! `output-validate`: an answer that does not fit goes back with what is wrong.

use crate::rig::{pod, settings};
use builtins::output_validate::ID;
use builtins::policies;
use pod::feature::HostCapability;
use pod::hook::TurnEnd;
use pod::record::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::{PodUnderTest, ScriptedAnswer};

fn validating(keys: Value, answers: &[&str]) -> PodUnderTest {
    let (mut pod, _) = pod(&ID, keys, Vec::new());
    pod.features[0].1.extend([HostCapability::hook::<TurnEnd>(), HostCapability::ANY_PROGRAM]);
    answers.iter().for_each(|answer| pod.script.add(ScriptedAnswer::text(answer)));
    pod
}

fn inputs(pod: &PodUnderTest) -> Vec<String> {
    let queued = |(_, record)| match record {
        Record::InputQueued(queued) => Some(queued.text),
        _ => None,
    };
    pod.records().into_iter().filter_map(queued).collect()
}

#[test]
fn an_answer_is_corrected_until_it_fits() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let answers = ["three", r#"{"n":"3"}"#, "```json\n{\"n\":3}\n```"];
    let pod = validating(json!({ "schema": schema }), &answers);
    let ran = pod.run("how many?");
    assert_eq!((ran.end().answer.as_deref(), ran.end().steps), (Some(answers[2]), 3));
    let told = inputs(&pod);
    assert!(told[1].contains("not one JSON document") && told[2].contains("/n: want integer"), "{told:?}");
    assert!(!format!("{:?}", pod.script.requests()[0]).contains("integer"), "the schema is not in the surface");
}

#[test]
fn settings_that_name_no_form_are_refused() {
    let cases = [
        (json!({}), "set `schema` or `command`"),
        (json!({"schema": {}, "command": ["true"]}), "set `schema` or `command`"),
        (json!({"schema": {"type": "thing"}}), "`schema` is not a JSON Schema"),
        (json!({"schema": {"$ref": "https://example.org/x"}}), "references outside"),
        (json!({"command": [""]}), "`command` must be a program"),
    ];
    for (keys, says) in cases {
        let all = BTreeMap::from([(ID, settings(keys.clone()))]);
        let bad = policies::with_settings(&all, |id| *id == ID, &(Arc::new(|| std::time::UNIX_EPOCH) as builtins::Now));
        let Err(bad) = bad else { panic!("{keys} is taken") };
        assert!(bad.to_string().contains(says), "{keys}: {bad}");
    }
}
