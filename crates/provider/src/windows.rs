//! Context windows of well-known models: the most tokens that a request and its answer may have together.
//!
//! Collected on 2026-11-23 from stored copies of the vendors' model pages (`platform.claude.com/docs/en/models`,
//! `platform.openai.com/docs/models`, `ai.google.dev/gemini-api/docs/models`), the older rows from general knowledge. Where a
//! larger window has a condition, such as a beta header or a surcharge, the smaller one is listed: a window that is too
//! small costs room, one that is too large costs the request. The configuration overrides these.

use crate::catalog;

const ROWS: [(&str, u64); 37] = [
    ("anthropic/claude-fable-5-1", 1_000_000),
    ("anthropic/claude-fable-5", 1_000_000),
    ("anthropic/claude-opus-5-5", 1_000_000),
    ("anthropic/claude-opus-5", 1_000_000),
    ("anthropic/claude-opus-4-8", 1_000_000),
    ("anthropic/claude-opus-4-7", 1_000_000),
    ("anthropic/claude-opus-4-6", 1_000_000),
    ("anthropic/claude-opus-4-5", 200_000),
    ("anthropic/claude-opus-4-1", 200_000),
    ("anthropic/claude-opus-4", 200_000),
    ("anthropic/claude-sonnet-5-5", 1_000_000),
    ("anthropic/claude-sonnet-5", 1_000_000),
    ("anthropic/claude-sonnet-4-6", 1_000_000),
    ("anthropic/claude-sonnet-4-5", 200_000),
    ("anthropic/claude-sonnet-4", 200_000),
    ("anthropic/claude-haiku-5-5", 1_000_000),
    ("anthropic/claude-haiku-4-5", 200_000),
    ("openai/gpt-5.4-mini", 400_000),
    ("openai/gpt-5.4-nano", 400_000),
    ("openai/gpt-5.2", 400_000),
    ("openai/gpt-5.1", 400_000),
    ("openai/gpt-5", 400_000),
    ("openai/gpt-5-mini", 400_000),
    ("openai/gpt-5-nano", 400_000),
    ("openai/gpt-4.1", 1_047_576),
    ("openai/gpt-4.1-mini", 1_047_576),
    ("openai/gpt-4.1-nano", 1_047_576),
    ("openai/gpt-4o", 128_000),
    ("openai/gpt-4o-mini", 128_000),
    ("openai/gpt-4-turbo", 128_000),
    ("openai/gpt-4", 8_192),
    ("openai/gpt-3.5-turbo", 16_385),
    ("openai/o3", 200_000),
    ("openai/o4-mini", 200_000),
    ("gemini/gemini-2.5-flash", 1_048_576),
    ("gemini/gemini-2.5-pro", 1_048_576),
    ("gemini/gemini-3.5-flash", 1_048_576),
];

/// The window of `provider/model` for a provider of the catalogue; `None` if it is not known.
#[must_use]
pub fn of(model: &str) -> Option<u64> {
    catalog::row(&ROWS, model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_own_window_and_no_other() {
        let table = [
            ("anthropic/claude-sonnet-5", Some(1_000_000)),
            ("anthropic/claude-sonnet-4-5-20250929", Some(200_000)),
            ("anthropic/claude-sonnet-5-7", None),
            ("openai/gpt-4.1-2025-04-14", Some(1_047_576)),
            ("openai/gpt-4o-2024-08-06", Some(128_000)),
            ("openai/gpt-4-32k", None),
            ("openrouter/openai/gpt-4.1", None),
            ("gpt-4.1", None),
        ];
        for (model, window) in table {
            assert_eq!(of(model), window, "{model}");
        }
    }

    #[test]
    fn each_row_is_of_a_known_provider_and_there_once() {
        for (index, (model, window)) in ROWS.iter().enumerate() {
            assert!(
                catalog::split(model)
                    .is_some_and(|(provider, _)| catalog::find(provider).is_some()),
                "{model}"
            );
            assert!((8_192..=1_048_576).contains(window), "{model}");
            assert!(
                ROWS.iter().skip(index + 1).all(|(other, _)| other != model),
                "{model}"
            );
        }
        // A model selected by an environment key alone must have one.
        let vendors = catalog::PROVIDERS
            .iter()
            .filter(|provider| provider.name != "openrouter");
        for (provider, model) in
            vendors.filter_map(|provider| Some((provider.name, provider.default_model?)))
        {
            assert!(of(&format!("{provider}/{model}")).is_some(), "{model}");
        }
    }
}
