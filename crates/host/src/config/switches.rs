//! What the files say of features: each key for itself, with the line it stands in. An inner file's key replaces an
//! outer one's.

use super::file::Feature;
use super::{Source, Sourced, set};
use pod::feature::GrantTable;
use std::collections::BTreeMap;

/// `[features."ID"]`, of all files together.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    /// Where the innermost file names it.
    pub at: Source,
    pub enabled: Option<Sourced<bool>>,
    pub required: Option<Sourced<bool>>,
    /// The same by a project's file, which switches nothing on by that.
    pub expected: Option<Sourced<bool>>,
    /// What each file grants, outermost first.
    pub grants: Vec<Granted>,
    pub settings: BTreeMap<String, Sourced<toml::Value>>,
    /// Whether this start switched it on or off, not a file.
    pub attached: bool,
}

/// What one file grants.
#[derive(Clone, Debug)]
pub struct Granted {
    pub table: GrantTable,
    pub at: Source,
    pub keys: BTreeMap<String, Source>,
}

impl Switches {
    /// Takes what one more file says; `place` gives the source of a key below it.
    pub fn layer(&mut self, feature: Feature, place: impl Fn(&[&str]) -> Source) {
        let own = |key: &str| place(&[key]);
        self.at = place(&[]);
        set(&mut self.enabled, feature.enabled, || own("enabled"));
        set(&mut self.required, feature.required, || own("required"));
        if let Some(table) = feature.grant {
            let written = serde_json::to_value(&table).unwrap_or_default();
            let keys = written.as_object().into_iter().flat_map(|keys| keys.keys());
            let keys = keys
                .map(|key| (key.clone(), place(&["grant", key])))
                .collect();
            self.grants.push(Granted {
                table,
                at: own("grant"),
                keys,
            });
        }
        let settings = feature.settings.into_iter();
        self.settings.extend(settings.map(|(key, value)| {
            let source = own(&key);
            (key, Sourced::new(value, source))
        }));
    }

    /// What switches it on, where something does.
    pub fn on_by(&self) -> Option<&Source> {
        let said = [&self.enabled, &self.required].into_iter().flatten();
        said.filter(|on| on.value).map(|on| &on.source).next()
    }

    /// Whether a feature that is off by itself is on.
    pub fn on(&self) -> bool {
        let required = self
            .required
            .as_ref()
            .is_some_and(|required| required.value);
        self.enabled
            .as_ref()
            .map_or(required, |enabled| enabled.value)
    }

    /// Where it is switched off, where it is.
    pub fn off(&self) -> Option<&Source> {
        self.enabled
            .as_ref()
            .filter(|enabled| !enabled.value)
            .map(|enabled| &enabled.source)
    }

    /// Whether a person switched it off in a file of their own, or granted a project that does.
    pub fn is_off_in_files(&self) -> bool {
        self.off().is_some() && !self.attached
    }

    /// Where nothing starts without it, and that it does not.
    pub fn required(&self) -> Option<&Source> {
        let said = [&self.required, &self.expected].into_iter().flatten();
        said.filter(|required| required.value)
            .map(|required| &required.source)
            .next()
    }

    /// Where the first key stands that a problem names in backticks, or else the feature.
    pub fn blamed(&self, problem: &str) -> &Source {
        let mut named = problem.split('`').skip(1).step_by(2);
        let key = named.find(|name| self.settings.contains_key(*name));
        key.map_or(&self.at, |key| self.place(key))
    }

    /// Where one of its keys stands, or else the feature.
    pub fn place(&self, key: &str) -> &Source {
        self.settings
            .get(key)
            .map_or(&self.at, |setting| &setting.source)
    }
}
