//! The settings of plugins, as their manifests declare them and as a person set them.

use host::config::{Config, Switches};
use plugin::DeclaredFeature;
use serde_json::{Map, Value, json};

/// How wide a value and a description may be, in columns.
const WIDTH: usize = 80;

/// A setting that a feature has.
struct Setting<'a> {
    key: &'a str,
    about: &'a str,
    /// What a file says.
    set: Option<Value>,
    /// Where.
    at: Option<String>,
    default: Option<&'a Value>,
    is_required: bool,
}

/// The settings of a feature, a line each.
pub(super) fn lines(feature: &DeclaredFeature, config: &Config) -> Vec<String> {
    let schema = schema(feature);
    let all = settings(&schema, switches(feature, config));
    all.iter().map(Setting::line).collect()
}

/// The same as JSON, by features.
pub(super) fn described(package: &host::plugins::FoundPackage, config: &Config) -> Value {
    let of = |feature: &DeclaredFeature| {
        let schema = schema(feature);
        let all = settings(&schema, switches(feature, config));
        let described = |setting: &Setting<'_>| {
            let value = setting.set.as_ref().or(setting.default);
            let value =
                json!({ "value": value, "at": setting.at, "required": setting.is_required });
            (setting.key.to_owned(), value)
        };
        let all: Map<String, Value> = all.iter().map(described).collect();
        (feature.descriptor.id.to_string(), Value::Object(all))
    };
    let all: Map<String, Value> = package.features().map(of).collect();
    Value::Object(all)
}

fn switches<'a>(feature: &DeclaredFeature, config: &'a Config) -> Option<&'a Switches> {
    config.features.get(&feature.descriptor.id.to_string())
}

fn schema(feature: &DeclaredFeature) -> Value {
    let text = feature.descriptor.settings.as_deref();
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

fn settings<'a>(schema: &'a Value, switches: Option<&Switches>) -> Vec<Setting<'a>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let setting = |(key, property): (&'a String, &'a Value)| {
        let written = switches.and_then(|switches| switches.settings.get(key));
        Setting {
            key,
            about: property
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            set: written.and_then(|written| serde_json::to_value(&written.value).ok()),
            at: written.map(|written| written.source.to_string()),
            default: property.get("default"),
            is_required: required.is_some_and(|all| all.iter().any(|name| name == key)),
        }
    };
    properties.into_iter().flatten().map(setting).collect()
}

impl Setting<'_> {
    fn line(&self) -> String {
        let short = |text: &str| authority::text::first_line(text, WIDTH);
        let key = authority::text::escape_line(self.key);
        let value = match (&self.set, self.default, &self.at) {
            (Some(value), _, Some(at)) => format!("{} ({at})", short(&value.to_string())),
            (Some(value), _, None) => short(&value.to_string()),
            (None, Some(default), _) => format!("{} (default)", short(&default.to_string())),
            (None, None, _) if self.is_required => "must be set".to_owned(),
            (None, None, _) => "not set".to_owned(),
        };
        match self.about {
            "" => format!("setting {key}: {value}"),
            about => format!("setting {key}: {value}; {}", short(about)),
        }
    }
}
