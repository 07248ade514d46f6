//! An attached client has every record once, in order and byte for byte, whenever it comes.

use crate::rig::{Raw, Scene, answers, held_answers};
use llm_worker::StopReason;
use serde_json::{Value, json};
use testkit::{Latch, ScriptedAnswer};

fn seq(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["q"]
        .as_u64()
        .unwrap()
}

fn give(raw: &mut Raw, text: &str) {
    raw.ask("input", json!({ "text": text, "cmd_id": text }))
        .unwrap();
}

/// Records of more bytes than are kept for all clients, while one client follows: each late one gets what it lacks from
/// the files, in several pieces, or from memory.
// covers: INV-10
#[test]
fn a_client_that_comes_late_has_the_suffix_of_the_journal_at_every_cursor() {
    let scene = Scene::new(answers(16));
    let mut driver = scene.driver();
    driver
        .ask(
            "attach",
            json!({ "without": ["record", "delta", "status"] }),
        )
        .unwrap();
    for n in 0..16 {
        let text = format!("{n}{}", "x".repeat(30_000));
        driver
            .ask("input", json!({ "text": text, "cmd_id": n.to_string() }))
            .unwrap();
    }
    scene.settled();
    let journal: Vec<(u64, String)> = scene
        .journal()
        .into_iter()
        .map(|line| (seq(&line), line))
        .collect();
    let newest = journal.last().unwrap().0;
    for after in 0..newest {
        let mut late = scene.driver();
        let attached = late.ask("attach", json!({ "after": after })).unwrap();
        assert_eq!(
            (attached["status"]["seq"].as_u64(), attached.get("page")),
            (Some(newest), None)
        );
        let wanted = journal
            .iter()
            .filter(|(seq, _)| *seq > after)
            .map(|(_, line)| line);
        assert!(
            wanted.eq(&late.records(newest)),
            "after {after} of {newest}"
        );
    }
    let mut ahead = scene.driver();
    assert_eq!(
        Raw::kind(ahead.ask("attach", json!({ "after": newest + 1 }))),
        "params"
    );
    scene.close();
}

#[test]
fn without_a_cursor_a_client_gets_the_newest_page_and_what_follows_it() {
    let scene = Scene::new(answers(3));
    let mut driver = scene.driver();
    give(&mut driver, "one");
    scene.settled();
    let before = scene.journal();
    let mut late = scene.driver();
    let attached = late.ask("attach", json!({ "limit": 5 })).unwrap();
    let page = attached["page"]["records"].as_array().unwrap().clone();
    assert_eq!(page.len(), 5);
    let lines: Vec<Value> = before
        .iter()
        .rev()
        .take(5)
        .rev()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(page, lines);
    // Pages before it, down to the first record.
    let mut all = page;
    let mut first = attached["page"]["first"].as_u64().unwrap();
    while first > 1 {
        let older = late
            .ask("page", json!({ "before": first, "limit": 4 }))
            .unwrap();
        let mut records = older["records"].as_array().unwrap().clone();
        records.append(&mut all);
        (all, first) = (records, older["first"].as_u64().unwrap());
    }
    assert_eq!(
        all,
        before
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<_>>()
    );
    give(&mut driver, "two");
    scene.settled();
    let journal = scene.journal();
    assert_eq!(
        late.records(seq(journal.last().unwrap())),
        journal[before.len()..]
    );
    scene.close();
}

#[test]
fn deltas_come_before_their_record_and_none_after_it() {
    let latch = Latch::new("more");
    let answer = ScriptedAnswer::new()
        .say("one ")
        .wait_at(&latch)
        .say("two")
        .stop(StopReason::EndTurn);
    let scene = Scene::new(vec![answer]);
    let mut driver = scene.driver();
    driver.ask("attach", json!({})).unwrap();
    give(&mut driver, "go");
    let delta = driver.next("delta");
    assert_eq!(
        (&delta["turn"], &delta["request"], &delta["text"]),
        (&json!(1), &json!(1), &json!("one "))
    );
    latch.open();
    scene.settled();
    let newest = seq(scene.journal().last().unwrap());
    let mut answered = false;
    let mut last = 0;
    while last < newest {
        let event: Value = serde_json::from_str(&driver.event().unwrap()).unwrap();
        answered |= event["params"]["k"] == "response";
        assert!(!(answered && event["method"] == "delta"), "{event}");
        last = event["params"]["q"].as_u64().unwrap_or(last);
    }
    scene.close();
}

#[test]
fn a_client_says_which_events_it_does_not_want() {
    let scene = Scene::new(answers(2));
    let mut driver = scene.driver();
    let mut quiet = scene.driver();
    quiet
        .ask(
            "attach",
            json!({ "without": ["record", "delta", "status", "weather"] }),
        )
        .unwrap();
    give(&mut driver, "one");
    let item = quiet.next("system_item");
    assert_eq!(
        (&item["topic"], item["seq"].as_u64().is_some()),
        (&json!("environment"), true)
    );
    scene.settled();
    driver
        .ask("draft", json!({ "text": "half a", "cmd_id": "d" }))
        .unwrap();
    let draft: Value = serde_json::from_str(&quiet.event().unwrap()).unwrap();
    assert_eq!(
        (&draft["method"], &draft["params"]["text"]),
        (&json!("draft"), &json!("half a"))
    );
    assert_eq!(
        (
            &draft["params"]["revision"],
            &draft["params"]["by"]["client"]
        ),
        (&json!(1), &json!("test"))
    );
    let attached = scene.driver().ask("attach", json!({})).unwrap();
    assert_eq!(attached["draft"]["text"], "half a");
    scene.close();
}

#[test]
fn the_state_is_told_when_it_changed() {
    let latches = [Latch::new("one")];
    let scene = Scene::new(held_answers(&latches));
    let mut driver = scene.driver();
    let attached = driver.ask("attach", json!({})).unwrap();
    assert_eq!(attached["status"]["state"], "idle");
    give(&mut driver, "go");
    while driver.next("status")["state"] != "working" {}
    driver.ask("pause", json!({ "cmd_id": "p" })).unwrap();
    latches[0].open();
    loop {
        let status = driver.next("status");
        if status["held"]["cause"] == "person" && status["state"] == "held" {
            break;
        }
    }
    scene.close();
}

/// Limits and rules are not in the status: clients ask for what they show of them.
#[test]
fn a_reload_is_told_although_no_word_of_the_status_changed() {
    let scene = Scene::new(answers(1));
    let mut driver = scene.driver();
    driver.ask("attach", json!({})).unwrap();
    let mut late = scene.driver();
    for _ in 0..2 {
        scene.host.send_modify(|_| {});
        assert_eq!(driver.next("status")["state"], "idle");
    }
    // One that comes later has the status, and hears of the next reload only.
    late.ask("attach", json!({})).unwrap();
    scene
        .host
        .send_modify(|host| host.reload.refused = Some("no".to_owned()));
    for client in [&mut late, &mut driver] {
        assert_eq!(client.next("status")["host"]["reload"]["refused"], "no");
    }
    scene.close();
}

#[test]
fn clients_that_stay_to_the_end_have_the_last_record() {
    let scene = Scene::new(answers(1));
    let mut clients: Vec<Raw> = (0..5).map(|_| scene.driver()).collect();
    for client in &mut clients {
        client.ask("attach", json!({ "after": 0 })).unwrap();
    }
    give(&mut clients[0], "go");
    scene.settled();
    let over = scene.close();
    let dir = &over.pod.dir;
    let newest = session_store::Reader::open(dir).unwrap().durable();
    for mut client in clients {
        let lines = client.records(newest);
        assert_eq!(seq(lines.last().unwrap()), newest);
        assert_eq!(client.next("ended"), json!({}));
        assert!(client.is_ended());
    }
}
