//! The settings of features, as a person wrote them.

use crate::config::Config;
use crate::exit::{Exit, Failure};
use builtins::policies::Settings;
use pod::feature::FeatureId;
use std::collections::BTreeMap;

/// The settings of all features, as they are written.
pub(super) fn written(config: &Config) -> Result<BTreeMap<FeatureId, Settings>, Failure> {
    let mut settings: BTreeMap<FeatureId, Settings> = BTreeMap::new();
    for (id, switches) in &config.features {
        let Ok(id) = id.parse::<FeatureId>() else {
            continue;
        };
        let mut own = Settings::new();
        for (key, setting) in &switches.settings {
            let unfit = |e: serde_json::Error| {
                Failure::new(
                    Exit::Config,
                    format!("{}: features.\"{id}\".{key}: {e}", setting.source),
                )
            };
            own.insert(
                key.clone(),
                serde_json::to_value(&setting.value).map_err(unfit)?,
            );
        }
        settings.insert(id, own);
    }
    Ok(settings)
}
