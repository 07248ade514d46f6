//! The STAC example: what its tools answer equals values that are computed here from the same catalogue.

use crate::plugins::{SYSTEM_PATH, has_python};
use crate::scene::{Scene, finish};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins/stac");
const ITEMS: &str = include_str!("../../../../docs/plugins/stac/items.json");

/// A scene with the granted example.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.yoi(&["plugin", "add", DIR]).ends(0);
    scene.yoi(&["grant", "plugin:stac"]).ends(0);
    scene
}

/// The answers to calls: whether each is an error, and its text.
fn answers(scene: &Scene, calls: &[(&str, Value)]) -> Vec<(bool, String)> {
    let call = |(name, arguments): &(&str, Value)| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let script: Vec<Value> = calls
        .iter()
        .map(call)
        .chain([json!({ "text": "done" })])
        .collect();
    let model = scene.script("stac.jsonl", &script);
    let mut command = scene.command(&["run", "--pod", "p", "-m", &model, "go"]);
    finish(command.env("PATH", SYSTEM_PATH).spawn().unwrap()).ends(0);
    let finished = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "tool_finished");
    let text = |record: Value| {
        let outcome = &record["outcome"];
        (
            outcome["status"] != "ok",
            outcome["content"].as_str().unwrap_or_default().to_owned(),
        )
    };
    finished.map(text).collect()
}

fn items() -> Vec<Value> {
    let all: Value = serde_json::from_str(ITEMS).unwrap();
    all["features"].as_array().unwrap().clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Whether one condition on a property holds.
fn holds(has: &Value, operator: &str, wanted: &Value) -> bool {
    let order = match (has, wanted) {
        (Value::Number(_), Value::Number(_)) => number(has).partial_cmp(&number(wanted)),
        (Value::String(has), Value::String(wanted)) => Some(has.cmp(wanted)),
        _ => None,
    };
    let Some(order) = order else { return false };
    match operator {
        "eq" => order.is_eq(),
        "neq" => order.is_ne(),
        "lt" => order.is_lt(),
        "lte" => order.is_le(),
        "gt" => order.is_gt(),
        "gte" => order.is_ge(),
        other => panic!("{other}"),
    }
}

fn matches(item: &Value, arguments: &Value) -> bool {
    let in_box = arguments["bbox"].as_array().is_none_or(|wanted| {
        let at = |index: usize| number(&item["bbox"][index]);
        let is_beside = at(2) < number(&wanted[0]) || number(&wanted[2]) < at(0);
        let is_above = at(3) < number(&wanted[1]) || number(&wanted[3]) < at(1);
        !is_beside && !is_above
    });
    let in_time = arguments["datetime"].as_str().is_none_or(|wanted| {
        let (start, end) = wanted.split_once('/').unwrap_or((wanted, wanted));
        let time = item["properties"]["datetime"].as_str().unwrap();
        (start == ".." || time >= start) && (end == ".." || time <= end)
    });
    let in_collections = arguments["collections"]
        .as_array()
        .is_none_or(|wanted| wanted.contains(&item["collection"]));
    let none = Map::new();
    let conditions = arguments["query"].as_object().unwrap_or(&none).iter();
    let mut conditions = conditions
        .flat_map(|(name, all)| all.as_object().unwrap().iter().map(move |one| (name, one)));
    in_box
        && in_time
        && in_collections
        && conditions
            .all(|(name, (operator, wanted))| holds(&item["properties"][name], operator, wanted))
}

/// What `stac_search` should answer: the number that matches, the ids of the page, and the next offset.
fn searched(arguments: &Value) -> (usize, Vec<String>, Option<u64>) {
    let mut found: Vec<Value> = items()
        .into_iter()
        .filter(|item| matches(item, arguments))
        .collect();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found.sort_by_key(|item| {
        (
            std::cmp::Reverse(text(&item["properties"]["datetime"])),
            text(&item["id"]),
        )
    });
    let limit = arguments["limit"].as_u64().unwrap_or(10);
    let offset = arguments["offset"].as_u64().unwrap_or(0);
    let next = offset + limit;
    let page = found
        .iter()
        .skip(offset.try_into().unwrap())
        .take(limit.try_into().unwrap());
    (
        found.len(),
        page.map(|item| text(&item["id"])).collect(),
        (next < found.len() as u64).then_some(next),
    )
}

/// Of each collection: count, min, mean, median, max.
fn covered(arguments: &Value) -> BTreeMap<String, [f64; 5]> {
    let mut covers: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for item in items().iter().filter(|item| matches(item, arguments)) {
        if let Some(cover) = item["properties"]["eo:cloud_cover"].as_f64() {
            covers
                .entry(item["collection"].as_str().unwrap().to_owned())
                .or_default()
                .push(cover);
        }
    }
    let statistics = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        let count = all.len() as f64;
        let middle = all.len() / 2;
        let median = if all.len() % 2 == 1 {
            all[middle]
        } else {
            f64::midpoint(all[middle - 1], all[middle])
        };
        [
            count,
            all[0],
            all.iter().sum::<f64>() / count,
            median,
            all[all.len() - 1],
        ]
    };
    covers
        .into_iter()
        .map(|(name, all)| (name, statistics(all)))
        .collect()
}

fn search_arguments() -> Vec<Value> {
    let boxes = [
        None,
        Some([0.0, 40.0, 20.0, 60.0]),
        Some([-20.0, 35.0, 5.0, 50.0]),
        Some([10.0, 45.0, 10.5, 45.5]),
    ];
    let some_time = items()[7]["properties"]["datetime"]
        .as_str()
        .unwrap()
        .to_owned();
    let times = [
        "2024-03-01T00:00:00Z/2024-08-31T23:59:59Z",
        "../2024-06-01T00:00:00Z",
        "2024-04-01T00:00:00Z/..",
        &some_time,
    ];
    let queries = [
        json!({ "eo:cloud_cover": { "lt": 40 } }),
        json!({ "platform": { "eq": "landsat-9" } }),
        json!({ "eo:cloud_cover": { "gte": 20, "lte": 80.5 }, "gsd": { "neq": 30 } }),
        json!({ "platform": { "gt": "m" }, "eo:cloud_cover": { "gt": 10 } }),
    ];
    let collections = [
        json!(["sentinel-2-l2a"]),
        json!(["landsat-c2-l2"]),
        json!(["landsat-c2-l2", "sentinel-2-l2a"]),
    ];
    let of = |n: usize| {
        let mut arguments = Map::new();
        if let Some(around) = boxes[n % 4] {
            arguments.insert("bbox".to_owned(), json!(around));
        }
        if n % 3 == 1 {
            arguments.insert("datetime".to_owned(), json!(times[n / 3 % 4]));
        }
        if n % 5 > 2 {
            arguments.insert("query".to_owned(), queries[n % 4].clone());
        }
        if n % 7 > 4 {
            arguments.insert("collections".to_owned(), collections[n % 3].clone());
        }
        if n % 2 == 1 {
            arguments.insert("limit".to_owned(), json!(n % 6 + 1));
            arguments.insert("offset".to_owned(), json!(n % 4));
        }
        Value::Object(arguments)
    };
    (0..28).map(of).collect()
}

#[test]
fn forty_answers_equal_values_computed_here() {
    if !has_python() {
        return;
    }
    let scene = scene();
    let searches = search_arguments();
    let covers: Vec<Value> = searches
        .iter()
        .take(24)
        .step_by(3)
        .map(|arguments| {
            let mut arguments = arguments.clone();
            ["query", "limit", "offset"]
                .into_iter()
                .for_each(|key| drop(arguments.as_object_mut().unwrap().remove(key)));
            arguments
        })
        .collect();
    let ids = ["S2-000", "LC-003", "S2-057", "LC-059"];
    let calls = searches
        .iter()
        .map(|arguments| ("stac_search", arguments.clone()));
    let calls = calls.chain(
        covers
            .iter()
            .map(|arguments| ("stac_cloud_cover", arguments.clone())),
    );
    let calls: Vec<_> = calls
        .chain(ids.iter().map(|id| ("stac_item", json!({ "id": id }))))
        .collect();
    assert_eq!(calls.len(), 40);
    let answers = answers(&scene, &calls);
    assert_eq!(answers.len(), 40);
    let answer = |at: usize| -> Value {
        let (is_error, text) = &answers[at];
        assert!(!is_error, "{:?}: {text}", calls[at]);
        serde_json::from_str(text).expect(text)
    };
    let mut found = 0;
    for (at, arguments) in searches.iter().enumerate() {
        let answer = answer(at);
        let ids = answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned());
        let has = (
            answer["matched"].as_u64().unwrap().try_into().unwrap(),
            ids.collect(),
            answer["next"].as_u64(),
        );
        assert_eq!(has, searched(arguments), "{arguments}");
        found += usize::from(has.0 > 0);
    }
    assert!(found > 15, "most searches find something: {found}");
    for (at, arguments) in covers.iter().enumerate() {
        let answer = answer(searches.len() + at);
        let expected = covered(arguments);
        assert_eq!(
            answer.as_object().unwrap().keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        for (collection, values) in &expected {
            for (key, value) in ["count", "min", "mean", "median", "max"].iter().zip(values) {
                let has = number(&answer[collection][key]);
                assert!(
                    (has - value).abs() < 0.0051,
                    "{arguments} {collection} {key}: {has}, not {value}"
                );
            }
        }
    }
    for (at, id) in ids.iter().enumerate() {
        let expected = items().into_iter().find(|item| item["id"] == *id);
        assert_eq!(Some(answer(searches.len() + covers.len() + at)), expected);
    }
}

/// Neighbouring images of one flight have one time: a page of them is the same each time only because their ids decide.
#[test]
fn items_of_one_time_are_in_the_order_of_their_ids() {
    if !has_python() {
        return;
    }
    const TIME: &str = "2024-06-15T10:36:00Z";
    let at_once = json!({ "datetime": TIME });
    let (_, ids, _) = searched(&at_once);
    let stored: Vec<Value> = items()
        .into_iter()
        .filter(|item| item["properties"]["datetime"] == TIME)
        .collect();
    let stored: Vec<&str> = stored
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert!(
        stored.len() > 3 && !stored.is_sorted(),
        "the catalogue has them in another order: {stored:?}"
    );
    assert!(
        !stored.iter().rev().is_sorted() && ids.is_sorted(),
        "{stored:?} {ids:?}"
    );
    let mut asked = vec![
        at_once,
        json!({ "datetime": TIME, "collections": ["sentinel-2-l2a"] }),
        json!({ "datetime": "2024-02-20T10:12:00Z" }),
        json!({ "datetime": "2024-06-01T00:00:00Z/2024-06-30T00:00:00Z", "limit": 50 }),
        json!({ "bbox": [11.5, 46.0, 12.5, 46.5], "limit": 100 }),
        json!({ "query": { "eo:cloud_cover": { "lt": 41 } }, "limit": 100 }),
        json!({ "limit": 100 }),
    ];
    asked.extend((0..4).map(|offset| json!({ "datetime": TIME, "limit": 1, "offset": offset })));
    asked.extend((0..3).map(|offset| json!({ "datetime": TIME, "limit": 2, "offset": offset })));
    equal_values_computed_here(&asked);
}

/// Asks for each of these, and compares all answers.
#[track_caller]
fn equal_values_computed_here(asked: &[Value]) {
    let calls: Vec<_> = asked
        .iter()
        .map(|arguments| ("stac_search", arguments.clone()))
        .collect();
    let answers = answers(&scene(), &calls);
    assert_eq!(answers.len(), asked.len());
    for (arguments, (is_error, text)) in asked.iter().zip(answers) {
        assert!(!is_error, "{arguments}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        let ids = answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned());
        let has = (
            answer["matched"].as_u64().unwrap().try_into().unwrap(),
            ids.collect(),
            answer["next"].as_u64(),
        );
        assert_eq!(has, searched(arguments), "{arguments}");
    }
}

/// Conditions that just hold, or just do not, for some item.
#[test]
fn the_ends_of_conditions_belong_to_them() {
    if !has_python() {
        return;
    }
    let all = items();
    let item = &all[7];
    let time = item["properties"]["datetime"].as_str().unwrap();
    let edge = |index: usize| number(&item["bbox"][index]);
    let cover = all
        .iter()
        .find_map(|item| item["properties"]["eo:cloud_cover"].as_f64())
        .unwrap();
    let asked = [
        json!({ "datetime": time }),
        json!({ "datetime": format!("{time}/..") }),
        json!({ "datetime": format!("../{time}"), "limit": 100 }),
        json!({ "bbox": [edge(0) - 1.0, edge(1), edge(0), edge(3)] }),
        json!({ "bbox": [edge(2), edge(1), edge(2) + 1.0, edge(3)] }),
        json!({ "bbox": [edge(0), edge(1) - 1.0, edge(2), edge(1)] }),
        json!({ "bbox": [edge(0), edge(3), edge(2), edge(3) + 1.0] }),
        json!({ "query": { "eo:cloud_cover": { "lte": cover } } }),
        json!({ "query": { "eo:cloud_cover": { "gte": cover } } }),
        json!({ "query": { "eo:cloud_cover": { "lt": cover } } }),
        json!({ "query": { "eo:cloud_cover": { "gt": cover } } }),
        json!({ "query": { "eo:cloud_cover": { "neq": -1 } }, "limit": 100 }),
        json!({ "limit": all.len() }),
        json!({ "limit": 1, "offset": all.len() - 1 }),
        json!({ "limit": 1, "offset": all.len() - 2 }),
    ];
    equal_values_computed_here(&asked);
}

#[test]
fn a_bad_question_is_answered_with_what_it_should_be() {
    if !has_python() {
        return;
    }
    let calls = [
        ("stac_search", json!({ "datetime": "yesterday" })),
        ("stac_search", json!({ "query": { "gsd": { "like": 3 } } })),
        ("stac_search", json!({ "bbox": [1, 2] })),
        ("stac_item", json!({ "id": "$(id)" })),
        (
            "stac_search",
            json!({ "datetime": "2024-05-01T00:00:00Z and later" }),
        ),
        (
            "stac_search",
            json!({ "bbox": [170, 80, 171, 81], "datetime": "yesterday" }),
        ),
        (
            "stac_cloud_cover",
            json!({ "bbox": [170, 80, 171, 81], "datetime": "yesterday" }),
        ),
        ("stac_search", json!({ "bbox": [3, 1, 2, 4] })),
        (
            "stac_search",
            json!({ "datetime": "2024-05-01T00:00:00Z/2023-05-01T00:00:00Z" }),
        ),
    ];
    let answers = answers(&scene(), &calls);
    assert!(answers.iter().all(|(is_error, _)| *is_error), "{answers:?}");
    for (at, words) in [
        (0, "is not a time"),
        (1, "is not an operator"),
        (3, "there is no item `$(id)`"),
        (4, "is not a time"),
        (5, "is not a time"),
        (6, "is not a time"),
        (7, "west <= east"),
        (8, "ends before it begins"),
    ] {
        assert!(answers[at].1.contains(words), "{answers:?}");
    }
}
