//! Tables, numbers and texts in both directions, and what is refused.

use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;

/// The value of an expression as JSON.
fn of(expression: &str, schema: Option<&Json>) -> Result<Json, String> {
    let lua = Lua::new();
    let list = lua.create_function(|lua, table: Table| super::list(lua, table));
    lua.globals().set("list", list.unwrap()).unwrap();
    let value: Value = lua.load(expression).eval().unwrap();
    to_json(&lua, &value, schema)
}

#[test]
fn tables_become_what_their_keys_say() {
    for (expression, expected) in [
        ("{ 'a', 'b' }", json!(["a", "b"])),
        ("{ [2] = 'b', [1] = 'a' }", json!(["a", "b"])),
        ("{ [1.0] = 'a' }", json!(["a"])),
        ("{ total = 2 }", json!({ "total": 2 })),
        ("{ ['1'] = 'a' }", json!({ "1": "a" })),
        ("{ a = nil }", json!({})),
        ("{ { x = { true } } }", json!([{ "x": [true] }])),
        ("10 / 2", json!(5)),
        ("-0.0", json!(0)),
        ("2^53", json!(9_007_199_254_740_992_i64)),
        ("-2^63", json!(i64::MIN)),
        ("2^63", json!(9.223_372_036_854_776e18)),
        ("1e300", json!(1e300)),
        ("0.1", json!(0.1)),
        ("math.maxinteger", json!(i64::MAX)),
        ("math.mininteger", json!(i64::MIN)),
        ("'ä\\0'", json!("ä\0")),
        ("nil", json!(null)),
        ("list({})", json!([])),
        ("{}", json!({})),
        ("{ list({}), {} }", json!([[], {}])),
    ] {
        assert_eq!(of(expression, None).as_ref(), Ok(&expected), "{expression}");
    }
}

#[test]
fn what_json_does_not_have_is_named_with_its_place() {
    for (expression, says) in [
        (
            "{ 'a', 'b', total = 2 }",
            "a table with 2 items and 1 named fields",
        ),
        (
            "{ 1, nil, 3 }",
            "a list with gaps: 2 items, the last one at 3",
        ),
        ("{ [2] = 1 }", "a list with gaps"),
        ("{ [0] = 1 }", "a key is 0"),
        ("{ [-1] = 1 }", "a key is -1"),
        ("{ [1.5] = 1 }", "a key is a number"),
        ("{ [true] = 1 }", "a key is a boolean"),
        ("{ [{}] = 1 }", "a key is a table"),
        ("{ a = { { b = 0/0 } } }", "a[1].b: JSON has no NaN"),
        ("{ 1, 1/0 }", "[2]: JSON has no inf"),
        ("{ x = -1/0 }", "x: JSON has no -inf"),
        ("{ a = '\\xff' }", "a: the text is not UTF-8"),
        ("{ ['\\xff'] = 1 }", "the text of a key is not UTF-8"),
        ("{ a = print }", "a: a function is not JSON"),
        ("{ a = coroutine.create(print) }", "a: a thread is not JSON"),
        (
            "(function() local t = {}; t[1] = t; return t end)()",
            "in itself",
        ),
        (
            "(function() local t = {}; for _ = 1, 60 do t = { t, t } end; return t end)()",
            "over 2 MiB",
        ),
        (
            "(function() local t, s = {}, ('x'):rep(1 << 20); for at = 1, 8 do t[at] = s end; return t end)()",
            "over 2 MiB",
        ),
    ] {
        let why = of(expression, None).unwrap_err();
        assert!(why.contains(says), "{expression}: {why}");
    }
}

#[test]
fn an_empty_table_is_what_its_schema_says() {
    let schema = json!({
        "type": "object",
        "properties": {
            "list": { "type": ["array", "null"] },
            "all": { "type": "array", "items": { "type": "array" } },
            "pair": { "prefixItems": [{ "type": "object" }, { "type": "array" }] },
            "named": { "additionalProperties": { "type": "array" } },
            "any": { "type": ["array", "object"] },
        },
    });
    let table = "{ list = {}, all = { {}, {} }, pair = { {}, {} }, named = { x = {} }, any = {}, other = {} }";
    let expected = json!({
        "list": [], "all": [[], []], "pair": [{}, []], "named": { "x": [] }, "any": {}, "other": {},
    });
    assert_eq!(of(table, Some(&schema)), Ok(expected));
    // The schema is about empty tables alone.
    let object = json!({ "type": "object" });
    assert_eq!(of("list({})", Some(&object)), Ok(json!({})));
    assert_eq!(of("{ 1 }", Some(&object)), Ok(json!([1])));
}

// The library's own conversion asks metatables, and so the script.
#[test]
fn a_metatable_that_lies_is_not_asked() {
    let lies = "setmetatable({ 'a' }, {
        __len = function() return 99 end,
        __index = function() return 'more' end,
        __pairs = function() error('asked') end,
        __name = 'x', __metatable = 'locked', __tostring = function() error('asked') end,
    })";
    assert_eq!(of(lies, None), Ok(json!(["a"])));
    assert_eq!(
        of("setmetatable({}, { __index = { 1 } })", None),
        Ok(json!({}))
    );
}

#[test]
fn an_integer_that_lua_does_not_have_is_refused() {
    for text in [
        "9223372036854775808",
        "-9223372036854775809",
        r#"{"a":["x",12345678901234567890123]}"#,
        r#"{"\"":18446744073709551615}"#,
    ] {
        assert!(
            exact_integers(text).unwrap_err().contains("outside"),
            "{text}"
        );
    }
    for text in [
        "9223372036854775807",
        "-9223372036854775808",
        r#""12345678901234567890123""#,
        r#"{"12345678901234567890123":1,"\\":"\"12345678901234567890123"}"#,
        "12345678901234567890123e0",
        "1.12345678901234567890123",
    ] {
        assert_eq!(exact_integers(text), Ok(()), "{text}");
    }
}

/// What Lua has, too: no null, and no whole number that is a float.
fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>()
            .prop_filter("finite and no integer", |float| float.is_finite()
                && whole(*float).is_none())
            .prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Json::from),
            btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

#[derive(Clone, Debug)]
enum Key {
    Index(i64),
    Name(u8),
    Float(i8),
    Bool(bool),
}

fn keys() -> impl Strategy<Value = Vec<Key>> {
    let key = prop_oneof![
        8 => (-1_i64..6).prop_map(Key::Index),
        4 => (0_u8..4).prop_map(Key::Name),
        1 => any::<i8>().prop_map(Key::Float),
        1 => any::<bool>().prop_map(Key::Bool),
    ];
    let lists = (0_i64..6).prop_map(|length| (1..=length).map(Key::Index).collect());
    prop_oneof![lists, vec(key, 0..6)]
}

proptest! {
    #[test]
    fn json_comes_back_as_it_was(json in values()) {
        let lua = Lua::new();
        let value = to_lua(&lua, &json).unwrap();
        prop_assert_eq!(to_json(&lua, &value, None), Ok(json));
    }

    #[test]
    fn each_integer_is_exact_and_no_other_one_passes(number in any::<i128>(), small in any::<i64>()) {
        let lua = Lua::new();
        let value = to_lua(&lua, &json!(small)).unwrap();
        prop_assert_eq!(value.as_integer(), Some(small));
        prop_assert_eq!(exact_integers(&number.to_string()).is_ok(), i64::try_from(number).is_ok());
        let text = json!([small, { "a": small }]).to_string();
        prop_assert!(exact_integers(&text).is_ok());
    }

    /// No field is lost: a table is a list of all its values, an object of all its values, or refused.
    #[test]
    fn a_table_is_a_list_or_an_object_or_refused(keys in keys()) {
        let lua = Lua::new();
        let table = lua.create_table().unwrap();
        let mut names = std::collections::BTreeSet::new();
        let mut indices = std::collections::BTreeSet::new();
        let mut is_other = false;
        for key in keys {
            match key {
                Key::Index(index) => {
                    table.raw_set(index, true).unwrap();
                    indices.insert(index);
                }
                Key::Name(name) => {
                    table.raw_set(name.to_string(), true).unwrap();
                    names.insert(name.to_string());
                }
                Key::Float(number) => {
                    table.raw_set(f64::from(number) + 0.5, true).unwrap();
                    is_other = true;
                }
                Key::Bool(value) => {
                    table.raw_set(value, true).unwrap();
                    is_other = true;
                }
            }
        }
        let is_sequence = indices.iter().copied().eq(1..=i64::try_from(indices.len()).unwrap());
        let expected = match (names.is_empty(), indices.is_empty()) {
            _ if is_other => None,
            (_, true) => Some(Json::Object(names.into_iter().map(|name| (name, json!(true))).collect())),
            (true, false) if is_sequence => Some(json!(vec![true; indices.len()])),
            _ => None,
        };
        prop_assert_eq!(to_json(&lua, &Value::Table(table), None).ok(), expected);
    }

    /// Whatever a text of JSON is, Lua has all of it or it is refused.
    #[test]
    fn no_text_of_json_stops_the_check(text in ".*") {
        exact_integers(&text).ok();
    }
}
