//! The JSON value beside a result: kept with it, short or long, bounded, and in no request.

use crate::fixtures::verified;
use llm_worker::tool::data::{MAX_DATA, MAX_LEVELS};
use llm_worker::{ResultStatus, ToolEffect, ToolOutput};
use pod::record::{Record, ToolFinished};
use serde_json::{Value, json};
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// What each value has, and what no request may have.
const MARK: &str = "only-for-programs";

fn levels(levels: usize) -> Value {
    (0..levels).fold(json!(MARK), |inner, _| json!([inner]))
}

#[test]
fn data_is_kept_with_its_result_and_is_in_no_request() {
    let long = "x".repeat(100_000);
    let values = vec![
        json!({ "mark": MARK, "n": [1, 2.5, null, 9_007_199_254_740_993_u64] }),
        json!([MARK, long]),
        levels(MAX_LEVELS),
        Value::Null,
        json!([MARK, "x".repeat(MAX_DATA)]),
        levels(MAX_LEVELS + 1),
    ];
    let answers = (0..values.len()).map(|_| ScriptedAnswer::calls(&[("Get", "{}")]));
    let script = ModelScript::new(answers.chain([ScriptedAnswer::text("done")]));
    let given = values.clone();
    let tool = FnTool::new("Get", ToolEffect::ReadOnly, move |cx, _| {
        let nth = cx.call.number() as usize - 1;
        let data = given.get(nth).cloned();
        async move {
            let summary = "got".to_owned();
            Ok(ToolOutput {
                summary,
                data,
                ..ToolOutput::default()
            })
        }
    });
    let pod = PodUnderTest::new(&ambient::claim(), script, vec![tool]);
    pod.run("go").end();
    let bodies = pod.script.bodies().concat();
    assert!(!String::from_utf8_lossy(&bodies).contains(MARK));
    let results: Vec<ToolFinished> = pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::ToolFinished(finished) => Some(finished),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), values.len());
    let opened = pod.store().unwrap();
    let blobs = opened.blobs.view();
    for (nth, (result, value)) in results.iter().zip(&values).enumerate() {
        assert_eq!(result.outcome.status, ResultStatus::Ok, "{nth}");
        let data = result.data.clone().unwrap_or_default();
        match nth {
            0 | 2 => assert_eq!((data.value.as_ref(), data.output), (Some(value), None)),
            1 => {
                let output = data.output.unwrap();
                assert!(output.handle.starts_with("d-") && data.value.is_none());
                let text = blobs.read(&output.stored.digest, MAX_DATA as u64).unwrap();
                assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), *value);
                assert!(
                    pod.state().outputs.contains(&output),
                    "or its blob would go"
                );
            }
            3 => assert_eq!((&result.data, result.warnings.len()), (&None, 0)),
            _ => {
                assert_eq!(result.data, None, "{nth}");
                let told = result.warnings.concat();
                assert!(
                    told.contains("its data is not kept: it has more than"),
                    "{told}"
                );
            }
        }
    }
    drop(opened);
    let found = verified(&pod);
    assert_eq!((found.wrong, found.blobs), (None, 1));
}
