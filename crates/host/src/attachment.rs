//! `--with ID[=JSON]`: a feature for one start, and its settings.

use crate::bad_value::BadValue;
use crate::exit::Help;
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys that only configuration files have.
const RESERVED: [&str; 3] = ["enabled", "grant", "required"];

/// A feature that a command line attaches, and the words it was written in.
#[derive(Debug)]
pub struct FeatureAttachment {
    pub text: String,
    pub id: String,
    pub settings: BTreeMap<String, toml::Value>,
}

/// The feature that an attachment names.
pub fn id(text: &str) -> &str {
    text.split_once('=').map_or(text, |(id, _)| id)
}

/// The words of an attachment that reads.
pub fn written(text: &str) -> Result<String, BadValue> {
    attachment(text).map(|attachment| attachment.text)
}

/// Reads an attachment as the command line and a recorded start have it.
pub fn attachment(text: &str) -> Result<FeatureAttachment, BadValue> {
    let bad = |what: String| BadValue::new(what, Help::AttachmentExamples);
    let (id, json) = text
        .split_once('=')
        .map_or((text, None), |(id, json)| (id, Some(json)));
    let written = json.map(serde_json::from_str::<Value>).transpose();
    let written =
        written.map_err(|error| bad(format!("the settings of {id} are not JSON: {error}")))?;
    let keys = match written {
        None => serde_json::Map::new(),
        Some(Value::Object(keys)) => keys,
        Some(_) => return Err(bad(format!("the settings of {id} are not a JSON object"))),
    };
    let mut settings = BTreeMap::new();
    for (key, value) in keys {
        if RESERVED.contains(&key.as_str()) {
            return Err(bad(format!("`{key}` is set in configuration files only")));
        }
        let value = toml::Value::try_from(value)
            .map_err(|_| bad(format!("`{key}` has a null in it, which no setting is")))?;
        settings.insert(key, value);
    }
    Ok(FeatureAttachment {
        text: text.to_owned(),
        id: id.to_owned(),
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_a_json_object_behind_the_id() {
        let bare = attachment("builtin:x").unwrap();
        assert_eq!((bare.id.as_str(), bare.settings.len()), ("builtin:x", 0));
        let set = attachment(r#"builtin:x={"a": 4, "b": ["c=d"]}"#).unwrap();
        assert_eq!(set.settings.get("a"), Some(&toml::Value::Integer(4)));
        assert_eq!(
            set.settings.get("b").map(ToString::to_string).as_deref(),
            Some(r#"["c=d"]"#)
        );
        for (text, says) in [
            ("builtin:x=", "not JSON"),
            ("builtin:x=3", "not a JSON object"),
            (r#"builtin:x={"a":null}"#, "`a` has a null"),
            (
                r#"builtin:x={"grant":{}}"#,
                "`grant` is set in configuration files only",
            ),
            (
                r#"builtin:x={"enabled":true}"#,
                "`enabled` is set in configuration files only",
            ),
        ] {
            assert!(
                attachment(text).is_err_and(|bad| bad.message.contains(says)),
                "{text}"
            );
        }
    }
}
