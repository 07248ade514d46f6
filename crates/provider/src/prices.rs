//! Prices of well-known models, in dollars for a million tokens: list prices, without batches, priority or discounts.
//!
//! Collected on 2026-11-21 from excerpts and public copies of the vendors' price pages, the older rows from general
//! knowledge; not compared with the current pages or with a bill. Prices change: check them if a budget matters, and
//! override these in the configuration. A model whose price depends on the length of its prompt is omitted: with the
//! lower price, a budget could be exceeded.

use crate::catalog;
use llm_worker::{Cost, Price};

/// A model, or the models whose names continue with a date, and its prices in thousandths of a dollar.
const fn row(
    model: &'static str,
    input: u64,
    output: u64,
    cached_input: u64,
    cache_write: u64,
) -> (&'static str, Price) {
    const fn cost(thousandths: u64) -> Cost {
        Cost::billionths(thousandths * 1_000_000)
    }
    let input = cost(input);
    let output = cost(output);
    (
        model,
        Price {
            input,
            output,
            cached_input: cost(cached_input),
            cache_write: cost(cache_write),
        },
    )
}

/// If no cache-write price is known, the input price applies.
const fn plain(
    model: &'static str,
    input: u64,
    output: u64,
    cached_input: u64,
) -> (&'static str, Price) {
    row(model, input, output, cached_input, input)
}

const ROWS: [(&str, Price); 30] = [
    row("anthropic/claude-fable-5-1", 10_000, 50_000, 250, 12_500),
    row("anthropic/claude-fable-5", 10_000, 50_000, 1_000, 12_500),
    row("anthropic/claude-opus-5-5", 4_000, 20_000, 200, 5_000),
    row("anthropic/claude-opus-5", 5_000, 25_000, 500, 6_250),
    row("anthropic/claude-opus-4-8", 5_000, 25_000, 500, 6_250),
    row("anthropic/claude-opus-4-7", 5_000, 25_000, 500, 6_250),
    row("anthropic/claude-opus-4-6", 5_000, 25_000, 500, 6_250),
    row("anthropic/claude-opus-4-5", 5_000, 25_000, 500, 6_250),
    row("anthropic/claude-opus-4-1", 15_000, 75_000, 1_500, 18_750),
    row("anthropic/claude-sonnet-5-5", 2_000, 10_000, 100, 2_500),
    row("anthropic/claude-sonnet-5", 2_000, 10_000, 200, 2_500),
    row("anthropic/claude-sonnet-4-6", 3_000, 15_000, 300, 3_750),
    row("anthropic/claude-sonnet-4-5", 3_000, 15_000, 300, 3_750),
    row("anthropic/claude-sonnet-4", 3_000, 15_000, 300, 3_750),
    row("anthropic/claude-haiku-4-5", 1_000, 5_000, 100, 1_250),
    plain("openai/gpt-5.4-mini", 750, 4_500, 75),
    plain("openai/gpt-5.4-nano", 200, 1_250, 20),
    plain("openai/gpt-5.2", 1_750, 14_000, 175),
    plain("openai/gpt-5.1", 1_250, 10_000, 125),
    plain("openai/gpt-5", 1_250, 10_000, 125),
    plain("openai/gpt-5-mini", 250, 2_000, 25),
    plain("openai/gpt-4.1", 2_000, 8_000, 500),
    plain("openai/gpt-4.1-mini", 400, 1_600, 100),
    plain("openai/gpt-4o", 2_500, 10_000, 1_250),
    // The first version costs more than its successors, and had no price for cached input.
    plain("openai/gpt-4o-2024-05-13", 5_000, 15_000, 5_000),
    plain("openai/gpt-4o-mini", 150, 600, 75),
    plain("openai/o3", 2_000, 8_000, 500),
    plain("openai/o4-mini", 1_100, 4_400, 275),
    plain("gemini/gemini-2.5-flash", 300, 2_500, 30),
    plain("gemini/gemini-3.5-flash", 1_500, 9_000, 150),
];

/// The models of the table, as `provider/model`.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|(name, _)| *name)
}

/// The price of `provider/model` for a provider of the catalogue; `None` if it is not known.
#[must_use]
pub fn of(model: &str) -> Option<Price> {
    catalog::row(&ROWS, model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_own_price_and_no_other() {
        let dollars = |model: &str| of(model).map(|price| price.input.dollars());
        let table = [
            ("anthropic/claude-sonnet-5", Some(2.0)),
            ("anthropic/claude-sonnet-4-5-20250929", Some(3.0)),
            ("anthropic/claude-opus-5-5", Some(4.0)),
            ("anthropic/claude-haiku-5-5", None),
            ("anthropic/claude-sonnet-5-7", None),
            ("openai/gpt-4.1", Some(2.0)),
            ("openai/gpt-4.1-2025-04-14", Some(2.0)),
            ("openai/gpt-4.1-mini", Some(0.4)),
            ("openai/gpt-4o-2024-05-13", Some(5.0)),
            ("openai/gpt-4o-2024-08-06", Some(2.5)),
            ("openai/gpt-5.6", None),
            ("openrouter/openai/gpt-4.1", None),
            ("gpt-4.1", None),
            ("", None),
        ];
        for (model, price) in table {
            assert_eq!(dollars(model), price, "{model}");
        }
    }

    #[test]
    fn prices_are_plausible_and_their_providers_known() {
        for (model, price) in &ROWS {
            assert!(
                price.cached_input <= price.input && price.input < price.output,
                "{model}"
            );
            assert!(price.cache_write >= price.input, "{model}");
            assert!(
                catalog::split(model)
                    .is_some_and(|(provider, _)| catalog::find(provider).is_some())
            );
        }
        // A model selected by an environment key alone must have a price.
        for provider in catalog::PROVIDERS
            .iter()
            .filter(|provider| provider.name != "openrouter")
        {
            if let Some(model) = provider.default_model {
                assert!(
                    of(&format!("{}/{model}", provider.name)).is_some(),
                    "{model}"
                );
            }
        }
    }
}
