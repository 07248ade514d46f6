//! `output-validate`: an answer that does not fit goes back with what is wrong.

use crate::rig::{pod, settings};
use authority::{Confinement, EnvPolicy, SandboxMode, Spawner};
use builtins::output_validate::ID;
use builtins::policies;
use llm_worker::Shortfall;
use llm_worker::effect::Outcome;
use pod::control::{HostMode, NewInput, SubmitError};
use pod::feature::HostCapability;
use pod::hook::{MAX_OUTPUT_SCHEMA, PromptSubmit, TurnEnd};
use pod::record::{HoldCause, Record};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::{LivePod, ModelScript, PodUnderTest, ScriptedAnswer};

/// What an input may ask for.
const NUMBER: &str = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;

fn validating(keys: Value, answers: &[&str]) -> PodUnderTest {
    let (mut pod, _) = pod(&ID, keys, Vec::new());
    let points = [
        HostCapability::hook::<PromptSubmit>(),
        HostCapability::hook::<TurnEnd>(),
    ];
    pod.features[0]
        .1
        .extend(points.into_iter().chain([HostCapability::ANY_PROGRAM]));
    answers
        .iter()
        .for_each(|answer| pod.script.add(ScriptedAnswer::text(answer)));
    pod
}

/// A pod that stays, with the feature as it is without settings.
fn stays(answers: &[&str]) -> PodUnderTest {
    let mut pod = validating(json!({}), answers);
    pod.mode = HostMode::Stay { missing: None };
    pod
}

fn live(pod: PodUnderTest) -> LivePod {
    LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.failure()))
}

fn asking(text: &str, schema: Option<&str>) -> NewInput {
    NewInput {
        text: text.to_owned(),
        output_schema: schema.map(str::to_owned),
        ..NewInput::default()
    }
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
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let answers = ["three", r#"{"n":"3"}"#, "```json\n{\"n\":3}\n```"];
    let pod = validating(json!({ "schema": schema }), &answers);
    let ran = pod.run("how many?");
    assert_eq!(
        (ran.end().answer.as_deref(), ran.end().steps),
        (Some(answers[2]), 3)
    );
    let told = inputs(&pod);
    assert!(
        told[1].contains("not one JSON document") && told[2].contains("/n: want integer"),
        "{told:?}"
    );
    assert!(
        !format!("{:?}", pod.script.requests()[0]).contains("integer"),
        "the schema is not in the surface"
    );
}

// A run whose answer never passed was `done`, with exit code 0.
#[test]
fn an_answer_that_is_never_accepted_is_not_done() {
    let schema = json!({"type": "object", "required": ["n"]});
    let table = [
        (json!({ "schema": schema }), ["{}"; 4], true),
        (
            json!({ "command": ["sh", "-c", "printf '\\033[31mno\\033[m\\n'; exit 3"] }),
            ["x"; 4],
            true,
        ),
        (
            json!({ "schema": schema }),
            ["{}", "{}", "{}", "{\"n\":1}"],
            false,
        ),
        (json!({ "command": ["true"] }), ["x"; 4], false),
    ];
    for (keys, answers, misses) in table {
        let mut pod = validating(keys.clone(), &answers);
        let confinement = Confinement {
            mode: SandboxMode::Off,
            read: Vec::new(),
            write: Vec::new(),
        };
        let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
        pod.spawner =
            Some(Spawner::new(&ambient::claim(), confinement, env, "s-1/1".to_owned()).unwrap());
        let ran = pod.run("how many?");
        let missed = Some(Shortfall::NotAccepted).filter(|_| misses);
        assert_eq!(
            (&ran.end().outcome, ran.end().shortfall),
            (&Outcome::Done, missed),
            "{keys}"
        );
        assert_eq!(pod.state().shortfall, missed, "{keys}");
        let told = inputs(&pod);
        assert!(
            !told.concat().contains('\u{1b}')
                && told.len() == if keys["command"][0] == "true" { 1 } else { 4 },
            "{told:?}"
        );
        // The next input has its own answer.
        if keys["command"].is_null() {
            pod.script.clear();
            pod.script.add(ScriptedAnswer::text("{\"n\":2}"));
            assert_eq!(pod.run("and now?").end().shortfall, None);
        }
    }
}

#[test]
fn settings_of_no_form_are_refused() {
    let cases = [
        (json!({"command": []}), "`command` is empty"),
        (json!({"schema": {}, "command": []}), "`command` is empty"),
        (
            json!({"schema": {}, "command": ["true"]}),
            "set `schema` or `command`, not both",
        ),
        (
            json!({"schema": {"type": "thing"}}),
            "`schema` is not a JSON Schema",
        ),
        (
            json!({"schema": {"$ref": "https://example.org/x"}}),
            "references outside",
        ),
        (json!({"command": [""]}), "`command` must be a program"),
    ];
    for (keys, says) in cases {
        let all = BTreeMap::from([(ID, settings(keys.clone()))]);
        let bad = policies::with_settings(
            &all,
            |id| *id == ID,
            &(Arc::new(|| std::time::UNIX_EPOCH) as builtins::Now),
        );
        let Err(bad) = bad else {
            panic!("{keys} is taken")
        };
        assert!(bad.to_string().contains(says), "{keys}: {bad}");
    }
}

#[test]
fn the_schema_of_an_input_is_for_its_own_answer() {
    let live = live(stays(&["three", "{\"n\":\"3\"}", "{\"n\":3}", "four"]));
    let client = live.client();
    let first = live
        .ask(client.send(asking("how many?", Some(NUMBER))))
        .unwrap();
    let second = live.ask(client.send(asking("and now?", None))).unwrap();
    let first = live.ask(first.end()).unwrap();
    let second = live.ask(second.end()).unwrap();
    assert_eq!(
        (first.answer.as_deref(), first.steps),
        (Some("{\"n\":3}"), 3)
    );
    assert_eq!((second.answer.as_deref(), second.steps), (Some("four"), 1));
    let pod = live.close().pod;
    let told = inputs(&pod);
    assert!(
        told[0].starts_with("how many?\n\n") && told[0].ends_with(NUMBER),
        "{told:?}"
    );
    assert_eq!((told.len(), told[1].as_str()), (4, "and now?"));
    assert!(
        told[2].contains("not one JSON document") && told[3].contains("/n: want integer"),
        "{told:?}"
    );
    let asked = |record: &Record| matches!(record, Record::VerdictGiven(verdict) if verdict.gate.hook.is_some());
    let asked = pod
        .records()
        .iter()
        .filter(|(_, record)| asked(record))
        .count();
    assert_eq!(
        asked, 4,
        "about the first input and its three answers, and nothing else"
    );
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused_with_its_input() {
    let live = live(stays(&[]));
    let client = live.client();
    for (schema, says) in [
        ("{\"type\":\"thing\"}", "not a JSON Schema"),
        ("{\"$ref\":\"x.json\"}", "references outside"),
    ] {
        let refused = live.ask(client.send(asking("x", Some(schema))));
        assert!(
            matches!(&refused, Err(SubmitError::Refused(why)) if why.contains(says)),
            "{refused:?}"
        );
    }
    let long = format!("{{\"description\":\"{}\"}}", "x".repeat(MAX_OUTPUT_SCHEMA));
    let refused = live.ask(client.send(asking("x", Some(&long))));
    assert!(
        matches!(refused, Err(SubmitError::TooLong(_))),
        "{refused:?}"
    );
    assert_eq!(inputs(&live.close().pod), Vec::<String>::new());
}

#[test]
fn an_edited_input_still_asks_for_its_form() {
    let live = live(stays(&["{\"n\":1}"]));
    let client = live.client();
    live.ask(client.pause(None)).unwrap();
    let sent = live.ask(client.send(asking("one", Some(NUMBER)))).unwrap();
    let words = |text: &str| {
        live.settled().queued[0]
            .text
            .strip_prefix(text)
            .map(str::to_owned)
    };
    let asked = words("one").unwrap();
    for text in ["two".to_owned(), format!("two{asked}")] {
        live.ask(client.edit(sent.input, text, None)).unwrap();
        assert_eq!(words("two").as_ref(), Some(&asked), "once");
    }
    live.ask(client.resume(None)).unwrap();
    assert_eq!(
        live.ask(sent.end()).unwrap().answer.as_deref(),
        Some("{\"n\":1}")
    );
    assert_eq!(live.close().failure(), None);
}

/// One input with a schema, as far as the pod gets with it.
fn story(pod: PodUnderTest) -> PodUnderTest {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return over.pod,
    };
    let sent = live.ask(live.client().send(asking("how many?", Some(NUMBER))));
    match sent.ok().and_then(|sent| live.ask(sent.end()).ok()) {
        Some(_) => live.close().pod,
        None => live.wait().pod,
    }
}

#[test]
fn killed_anywhere_only_a_fitting_answer_ends_the_input() {
    let answers = ["three", "{\"n\":3}"];
    let points = story(stays(&answers)).points.numbered();
    let mut corrected = 0;
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let pod = stays(&answers);
        pod.points.kill(&name, nth);
        let mut pod = story(pod);
        pod.revive();
        let before = inputs(&pod).len();
        pod.script = ModelScript::new(["no", "{\"n\":4}"].map(ScriptedAnswer::text));
        let live = live(pod);
        live.settled();
        let over = live.close();
        assert_eq!(over.failure(), None, "{what}");
        let answer = over.state().last_answer.clone();
        let fits = answer
            .as_deref()
            .is_some_and(|answer| ["{\"n\":3}", "{\"n\":4}"].contains(&answer));
        assert!(fits || before == 0, "{what}: {answer:?}");
        corrected += inputs(&over.pod).len() - before;
    }
    assert!(corrected > 10, "{corrected}");
}

#[test]
fn a_command_judges_answers_and_its_failure_pauses() {
    let check = "case $1 in *good*) ;; *) echo say good; exit 3;; esac";
    let cases = [
        (json!(["sh", "-c", check, "sh"]), vec!["bad", "good"], None),
        (
            json!(["sh", "-c", "kill -9 $$"]),
            vec!["good"],
            Some("its command did not end by itself"),
        ),
        (
            json!(["no-such-program"]),
            vec!["good"],
            Some("no-such-program"),
        ),
    ];
    for (command, answers, paused) in cases {
        let mut pod = validating(json!({ "command": command }), &answers);
        let confinement = Confinement {
            mode: SandboxMode::Off,
            read: Vec::new(),
            write: Vec::new(),
        };
        let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
        pod.spawner =
            Some(Spawner::new(&ambient::claim(), confinement, env, "s-1/1".to_owned()).unwrap());
        let ran = pod.run("go");
        assert_eq!(ran.end().answer.as_deref(), Some("good"), "{command}");
        let told = inputs(&pod);
        assert_eq!(told.len(), answers.len(), "{command}: {told:?}");
        match paused {
            None => assert!(told[1].contains("(status 3):\nsay good\n"), "{told:?}"),
            Some(says) => {
                assert!(
                    ran.end()
                        .paused
                        .as_ref()
                        .is_some_and(|why| why.contains(says)),
                    "{command}: {:?}",
                    ran.end()
                );
                assert_eq!(
                    pod.state().held.map(|hold| hold.cause),
                    Some(HoldCause::Gate)
                );
            }
        }
    }
}
