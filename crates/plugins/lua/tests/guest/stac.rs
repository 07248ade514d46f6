//! The example of a catalogue of satellite images: places on a globe, ranges of time, and questions that it does not answer.

use super::{call, talk_with};
use serde_json::{Value, json};
use std::path::Path;

fn package() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/plugins/stac-lua")
}

/// The answers to these calls: the content, or the message of an error.
fn answers(calls: &[(&str, Value)]) -> Vec<Result<Value, String>> {
    let dir = package();
    let lines: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| call(tool, arguments.clone()))
        .collect();
    let said = talk_with(move |path| std::fs::read(dir.join(path)), &lines);
    assert_eq!(said.lines[0]["result"]["contract"], 1, "{}", said.lines[0]);
    let answer = |line: &Value| match line["error"]["message"].as_str() {
        Some(message) => Err(message.to_owned()),
        None => Ok(serde_json::from_str(line["result"]["content"].as_str().unwrap()).unwrap()),
    };
    said.lines[1..].iter().map(answer).collect()
}

#[track_caller]
fn answer(tool: &str, arguments: Value) -> Value {
    answers(&[(tool, arguments)]).remove(0).unwrap()
}

/// The ids that a search finds, in its order.
#[track_caller]
fn found(arguments: Value) -> Vec<String> {
    let page = answer("search_items", arguments);
    let ids = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[track_caller]
fn refused(tool: &str, arguments: Value, says: &str) {
    let why = answers(&[(tool, arguments.clone())]).remove(0).unwrap_err();
    assert!(why.contains(says), "{arguments}: {why}");
}

/// Every tool of the manifest is one of the script, by the name that stac-mcp 6.5 has for it.
#[test]
fn the_tools_have_the_names_of_stac_mcp() {
    let manifest = std::fs::read_to_string(package().join("plugin.toml")).unwrap();
    let names: Vec<&str> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .collect();
    let tools = [
        "get_root",
        "get_conformance",
        "get_capabilities",
        "search_collections",
        "get_collection",
        "get_item",
        "search_items",
        "estimate_data_size",
        "get_queryables",
        "get_aggregations",
        "get_sensor_registry_info",
    ];
    assert_eq!(names[1..], tools);
    let arguments =
        json!({ "collection_id": "terrain", "item_id": "DEM-FIJI", "collections": ["terrain"] });
    for tool in tools {
        assert!(answer(tool, arguments.clone()).is_object(), "{tool}");
    }
}

#[test]
fn places_on_both_sides_of_the_antimeridian_are_found() {
    for (bbox, ids) in [
        (json!([12, 41, 13, 42]), vec!["S2-ROME"]),
        (json!([177, -20, -178, -15]), vec!["S2-FIJI", "DEM-FIJI"]),
        (json!([-180, -20, -179, -15]), vec!["S2-FIJI", "DEM-FIJI"]),
        (json!([179, -20, 180, -15]), vec!["S2-FIJI", "DEM-FIJI"]),
        (json!([-179, -20, 177, -19.5]), vec![]),
        (
            json!([170, -20, 0, -170, -10, 500]),
            vec!["S2-FIJI", "DEM-FIJI", "DEM-SAMOA"],
        ),
        (
            json!([170, -20, 1400, -170, -10, 2000]),
            vec!["S2-FIJI", "DEM-SAMOA"],
        ),
    ] {
        let mut seen = found(json!({ "bbox": bbox }));
        seen.sort_by_key(|id| !id.starts_with("S2"));
        assert_eq!(seen, ids, "{bbox}");
    }
    for (bbox, says) in [
        (json!([1, 2, 3]), "has 3 numbers"),
        (json!([1, 2, 3, 4, 5]), "has 5 numbers"),
        (json!([1, 2, 3, 1]), "south is above north"),
        (json!([1, 2, 9, 3, 4, 5]), "the lower height above"),
        (json!([1, -91, 3, 4]), "not on the globe"),
        (json!([-181, 2, 3, 4]), "not on the globe"),
    ] {
        refused("search_items", json!({ "bbox": bbox }), says);
    }
}

#[test]
fn extents_are_the_smallest_arc() {
    let extent =
        |id: &str| answer("get_collection", json!({ "collection_id": id }))["extent"].clone();
    // From Lisbon over Rome and Fiji to Chatham: the other way is 166.3 degrees wide and empty.
    assert_eq!(
        extent("sentinel-2-l2a")["spatial"]["bbox"],
        json!([[-9.5, -44.5, -175.8, 42.1]])
    );
    assert_eq!(
        extent("terrain")["spatial"]["bbox"],
        json!([[177, -19, 0, -171.4, -13.4, 1858]])
    );
    let times = json!([["2024-02-29T10:03:00Z", "2024-12-31T22:10:00Z"]]);
    assert_eq!(extent("sentinel-2-l2a")["temporal"]["interval"], times);
}

#[test]
fn dates_are_ranges() {
    let of = |text: &str| found(json!({ "datetime": text, "collections": ["sentinel-2-l2a"] }));
    assert_eq!(of("2024-05"), ["S2-LISBON"]);
    assert_eq!(of("2024-02-29"), ["S2-ROME"]);
    assert_eq!(of("2024-06-01T00:00:00Z"), ["S2-FIJI"]);
    assert_eq!(of("2024-05-31T00:00:00Z/2024-06"), ["S2-FIJI", "S2-LISBON"]);
    assert_eq!(of("2024-06-02/.."), ["S2-CHATHAM"]);
    assert_eq!(of("/2024-04"), ["S2-ROME"]);
    assert_eq!(of("2024").len(), 4);
    assert_eq!(of("2023/2023-12"), [""; 0]);
    for text in [
        "yesterday",
        "2024-13",
        "2024-02-30",
        "2023-02-29",
        "2024-5",
        "24",
        "2024-05-01T24:00:00Z",
        "2024-05-01T12:00:00",
        "2024-05-01 12:00:00Z",
        "2024-05-01T12:00:00+02:00",
        "2024/05/01",
        "2024--01",
        "2024-05T12:00:00Z",
        "",
        "../..",
        "/",
        "2024-06/2024-05",
    ] {
        let why = answers(&[("search_items", json!({ "datetime": text }))]).remove(0);
        assert!(why.is_err(), "{text}: {why:?}");
    }
}

#[test]
fn what_the_catalogue_does_not_know_is_refused() {
    for (arguments, says) in [
        (
            json!({ "collections": ["sentinel-3"] }),
            "no collection `sentinel-3`; there are sentinel-2-l2a, terrain",
        ),
        (json!({ "ids": ["none"] }), "no item `none`"),
        (
            json!({ "query": { "cloud_cover": { "lt": 3 } } }),
            "no property `cloud_cover`; there are datetime, eo:cloud_cover, gsd, platform",
        ),
        (
            json!({ "query": { "gsd": { "like": 3 } } }),
            "no operator `like`; there are eq, gt, gte, lt, lte, neq",
        ),
        (
            json!({ "fields": ["properties.cloud"] }),
            "no property `cloud`",
        ),
        (json!({ "fields": ["geometry"] }), "no field `geometry`"),
        (
            json!({ "assets": ["B99"] }),
            "no asset `B99`; there are B04, B08, heights, thumbnail",
        ),
        (
            json!({ "sortby": ["-properties.cloud"] }),
            "no property `cloud`",
        ),
        (
            json!({ "sortby": ["bbox"] }),
            "items have no order by `bbox`",
        ),
    ] {
        refused("search_items", arguments, says);
    }
    refused(
        "get_collection",
        json!({ "collection_id": "x" }),
        "no collection `x`",
    );
    refused(
        "get_item",
        json!({ "collection_id": "terrain", "item_id": "S2-FIJI" }),
        "`S2-FIJI` is not in terrain",
    );
    // A value of another type is no match, and no error of the script.
    assert_eq!(found(json!({ "query": { "gsd": { "lt": "x" } } })), [""; 0]);
}

#[test]
fn items_have_the_fields_and_assets_that_were_asked_for() {
    let one = |more: Value| {
        let mut arguments = json!({ "collection_id": "sentinel-2-l2a", "item_id": "S2-ROME" });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        answer("get_item", arguments)
    };
    let assets = |item: &Value| {
        item["assets"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(assets(&one(json!({}))), ["B04", "B08", "thumbnail"]);
    assert_eq!(
        assets(&one(json!({ "assets": ["B08", "heights"] }))),
        ["B08"]
    );
    assert_eq!(
        one(json!({ "fields": ["properties.platform"] })),
        json!({ "id": "S2-ROME", "collection": "sentinel-2-l2a", "properties": { "platform": "sentinel-2a" } })
    );
    assert!(one(json!({ "fields": ["-assets"] }))["assets"].is_null());
    let sorted = |by: &str| found(json!({ "sortby": [by] }));
    assert_eq!(
        sorted("+properties.eo:cloud_cover")[..3],
        ["S2-LISBON", "S2-ROME", "S2-FIJI"]
    );
    assert_eq!(
        sorted("-properties.eo:cloud_cover")[..3],
        ["S2-FIJI", "S2-ROME", "S2-LISBON"]
    );
    let page = answer("search_items", json!({ "limit": 2 }));
    assert_eq!(
        (&page["matched"], &page["returned"], &page["has_more"]),
        (&json!(6), &json!(2), &json!(true))
    );
    let size = answer(
        "estimate_data_size",
        json!({ "collections": ["sentinel-2-l2a"], "assets": ["B04", "thumbnail"] }),
    );
    assert_eq!(
        size,
        json!({ "item_count": 4, "estimated_size_bytes": 15_900_000, "assets_without_size": 1 })
    );
}

#[test]
fn what_the_catalogue_lacks_says_so() {
    let arguments = json!({ "collection_id": "terrain", "collections": ["terrain"] });
    for tool in [
        "get_queryables",
        "get_aggregations",
        "get_sensor_registry_info",
    ] {
        assert_eq!(
            answer(tool, arguments.clone())["supported"],
            false,
            "{tool}"
        );
    }
    let can = answer("get_capabilities", json!({}))["capabilities"].clone();
    let is = |name: &str| can[name]["supported"].as_bool().unwrap();
    assert!(
        is("query")
            && is("sort")
            && is("fields")
            && !is("queryables")
            && !is("aggregation")
            && !is("filter")
    );
    let uri = "https://api.stacspec.org/v1.0.0/item-search#sort";
    let checks = answer("get_conformance", json!({ "check": [uri, "x"] }))["checks"].clone();
    assert_eq!(checks, json!({ uri: true, "x": false }));
}
