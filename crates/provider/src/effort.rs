//! Which efforts a model has, by its API and its name there, and what each is called.
//!
//! Collected on 2026-11-28 from the vendors' pages on reasoning, effort and thinking, and from the types of their SDKs
//! (openai 6.49, @anthropic-ai/sdk 1.14, @google/genai 2.32). Of a model that is not known the vendor is the judge.

use crate::catalog::{Api, reasons};
use crate::openai_chat::Flavour;
use llm_worker::Effort::{self, High, Low, Max, Medium, Minimal};

/// The efforts of `model`, its name at the vendor, least first; none if it does not think or cannot be told.
#[must_use]
pub fn of(api: Api, model: &str) -> &'static [Effort] {
    match api {
        Api::OpenAiChat(Flavour::OpenAi) | Api::OpenAiResponses if !reasons(model) => &[],
        Api::OpenAiChat(Flavour::OpenAi) | Api::OpenAiResponses => first(&OPENAI, model),
        Api::OpenAiChat(Flavour::Compatible) => &[Effort::None, Minimal, Low, Medium, High],
        Api::OpenAiChat(Flavour::Gemini) | Api::Gemini => first(&GEMINI, of_gemini(model)),
        Api::Anthropic => first(&ANTHROPIC, model),
    }
}

type Rows = [(&'static str, &'static [Effort])];

const THREE: &[Effort] = &[Low, Medium, High];
const WITH_NONE: &[Effort] = &[Effort::None, Low, Medium, High];
const WITH_MAX: &[Effort] = &[Low, Medium, High, Max];
const ALL_BUT_MINIMAL: &[Effort] = &[Effort::None, Low, Medium, High, Max];

/// The row of the first beginning that fits; the last one has the rest.
fn first(rows: &'static Rows, model: &str) -> &'static [Effort] {
    let row = rows.iter().find(|(begin, _)| model.starts_with(begin));
    row.map_or(&[], |(_, efforts)| efforts)
}

const OPENAI: [(&str, &[Effort]); 14] = [
    ("o1-mini", &[]),
    ("o1-preview", &[]),
    ("o1", THREE),
    ("o3", THREE),
    ("o4", THREE),
    ("gpt-5-pro", &[High]),
    ("gpt-5-chat", &[]),
    ("gpt-5-codex", THREE),
    ("gpt-5.1-codex-max", WITH_MAX),
    ("gpt-5.1-codex", THREE),
    ("gpt-5.1", WITH_NONE),
    ("gpt-5.2-pro", &[Medium, High, Max]),
    ("gpt-5.", ALL_BUT_MINIMAL),
    ("", &[Minimal, Low, Medium, High]),
];

/// Models of one line are told apart by what they refuse: an old one `max`, a large one to think not at all.
const ANTHROPIC: [(&str, &[Effort]); 18] = [
    ("claude-fable-", WITH_MAX),
    ("claude-mythos-", WITH_MAX),
    ("claude-opus-5-5", WITH_MAX),
    ("claude-sonnet-5-5", WITH_MAX),
    ("claude-opus-5", ALL_BUT_MINIMAL),
    ("claude-sonnet-5", ALL_BUT_MINIMAL),
    ("claude-haiku-5", ALL_BUT_MINIMAL),
    ("claude-opus-4-6", ALL_BUT_MINIMAL),
    ("claude-opus-4-7", ALL_BUT_MINIMAL),
    ("claude-opus-4-8", ALL_BUT_MINIMAL),
    ("claude-sonnet-4-6", ALL_BUT_MINIMAL),
    ("claude-opus-4", WITH_NONE),
    ("claude-sonnet-4", WITH_NONE),
    ("claude-haiku-4", WITH_NONE),
    ("claude-3-7", WITH_NONE),
    ("claude-3", &[]),
    ("claude-2", &[]),
    ("", WITH_MAX),
];

const GEMINI: [(&str, &[Effort]); 10] = [
    ("gemini-1", &[]),
    ("gemini-2.0", &[]),
    ("gemini-2.5-pro", THREE),
    ("gemini-2.5-flash-image", &[]),
    ("gemini-2.5", WITH_NONE),
    ("gemini-3-pro", &[Low, High]),
    ("gemini-3.1-pro", THREE),
    ("gemma", &[]),
    ("learnlm", &[]),
    ("", &[Minimal, Low, Medium, High]),
];

/// Whether a model of Anthropic's API is told a number of tokens: those of before adaptive thinking, which have no `max`.
pub(crate) fn is_counted(model: &str) -> bool {
    !first(&ANTHROPIC, model).contains(&Max)
}

/// Whether a model of Gemini's own API is told a number of tokens, and not a level.
pub(crate) fn is_budget_of_gemini(model: &str) -> bool {
    of_gemini(model).starts_with("gemini-2.")
}

/// A model's name without what its API puts in front of it.
fn of_gemini(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}

/// Tokens of thinking, where a vendor takes a number of them; 0 is no thinking.
pub(crate) fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::None => 0,
        Minimal | Low => 2_048,
        Medium => 8_192,
        High | Max => 24_576,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::Messages;
    use crate::gemini::Gemini;
    use crate::openai_chat::Chat;
    use crate::openai_responses::Responses;
    use llm_worker::Surface;
    use llm_worker::projection::Dialect;
    use serde_json::{Map, Value, json};

    #[test]
    fn each_model_has_its_own_efforts() {
        let openai = Api::OpenAiChat(Flavour::OpenAi);
        let table: [(Api, &str, &[Effort]); 14] = [
            (openai, "gpt-4.1", &[]),
            (openai, "gpt-5-mini", &[Minimal, Low, Medium, High]),
            (Api::OpenAiResponses, "gpt-5-pro-2025-10-06", &[High]),
            (Api::OpenAiResponses, "gpt-5.1", WITH_NONE),
            (Api::OpenAiResponses, "gpt-5.4-mini", ALL_BUT_MINIMAL),
            (Api::OpenAiResponses, "o4-mini", THREE),
            (Api::Anthropic, "claude-3-5-haiku", &[]),
            (Api::Anthropic, "claude-sonnet-4-5-20250929", WITH_NONE),
            (Api::Anthropic, "claude-sonnet-4-20250514", WITH_NONE),
            (Api::Anthropic, "claude-sonnet-4-6", ALL_BUT_MINIMAL),
            (Api::Anthropic, "claude-sonnet-5-5", WITH_MAX),
            (
                Api::OpenAiChat(Flavour::Gemini),
                "gemini-2.5-flash",
                WITH_NONE,
            ),
            (
                Api::OpenAiChat(Flavour::Gemini),
                "gemini-3-pro-preview",
                &[Low, High],
            ),
            (
                Api::OpenAiChat(Flavour::Gemini),
                "gemini-3.5-flash",
                &[Minimal, Low, Medium, High],
            ),
        ];
        for (api, model, efforts) in table {
            assert_eq!(of(api, model), efforts, "{model}");
        }
    }

    /// The keys of a request's head that say how much to think.
    fn written(
        dialect: &dyn Dialect,
        model: &str,
        effort: Option<Effort>,
        thinking: bool,
    ) -> Value {
        let surface = Surface {
            generation: 1,
            model: format!("x/{model}"),
            system: "s".to_owned(),
            tools: Vec::new(),
            max_output: Some(8_000),
            effort,
            thinking,
            media: Vec::new(),
        };
        let mut out = Vec::new();
        dialect.head(&surface, &mut out);
        dialect.close(0, &mut out);
        let all: Map<String, Value> = serde_json::from_slice(&out).unwrap();
        let config = all.get("generationConfig").and_then(Value::as_object);
        let all = config.cloned().unwrap_or(all);
        let is_one = |key: &str| {
            [
                "thinkingConfig",
                "reasoning_effort",
                "reasoning",
                "thinking",
                "output_config",
            ]
            .contains(&key)
        };
        Value::Object(all.into_iter().filter(|(key, _)| is_one(key)).collect())
    }

    #[test]
    fn each_dialect_has_its_own_words() {
        let chat = Chat(Flavour::OpenAi);
        let compatible = Chat(Flavour::Compatible);
        type Row<'a> = (&'a dyn Dialect, &'a str, Option<Effort>, bool, Value);
        let table: [Row<'_>; 18] = [
            (&chat, "gpt-5", None, true, json!({})),
            (
                &chat,
                "gpt-5",
                Some(Minimal),
                false,
                json!({"reasoning_effort": "minimal"}),
            ),
            (
                &compatible,
                "qwen3",
                Some(Effort::None),
                false,
                json!({"reasoning_effort": "none"}),
            ),
            (&Responses, "gpt-5.4", None, false, json!({})),
            (
                &Responses,
                "gpt-5.4",
                Some(Max),
                false,
                json!({"reasoning": {"effort": "xhigh"}}),
            ),
            (
                &Responses,
                "gpt-5.4",
                None,
                true,
                json!({"reasoning": {"summary": "auto"}}),
            ),
            (
                &Responses,
                "gpt-5.4",
                Some(Low),
                true,
                json!({"reasoning": {"effort": "low", "summary": "auto"}}),
            ),
            (&Responses, "gpt-4.1", None, true, json!({})),
            (&Messages, "claude-opus-5", None, false, json!({})),
            (
                &Messages,
                "claude-opus-5",
                Some(Max),
                true,
                json!({
                    "thinking": {"type": "adaptive", "display": "summarized"},
                    "output_config": {"effort": "max"},
                }),
            ),
            (
                &Messages,
                "claude-opus-5",
                Some(Effort::None),
                true,
                json!({"thinking": {"type": "disabled"}}),
            ),
            (
                &Messages,
                "claude-opus-5",
                None,
                true,
                json!({"thinking": {"type": "adaptive", "display": "summarized"}}),
            ),
            (&Messages, "claude-sonnet-4-5", None, true, json!({})),
            (
                &Gemini,
                "gemini-2.5-flash",
                Some(Effort::None),
                false,
                json!({"thinkingConfig": {"thinkingBudget": 0}}),
            ),
            (
                &Gemini,
                "gemini-3.5-flash",
                Some(Low),
                true,
                json!({"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": true}}),
            ),
            (&Gemini, "gemini-3.5-flash", None, false, json!({})),
            (
                &Gemini,
                "models/gemini-2.5-flash",
                Some(Low),
                false,
                json!({"thinkingConfig": {"thinkingBudget": 2_048}}),
            ),
            // Three quarters of what the answer may have.
            (
                &Messages,
                "claude-sonnet-4-5",
                Some(High),
                false,
                json!({"thinking": {"type": "enabled", "budget_tokens": 6_000}}),
            ),
        ];
        for (dialect, model, effort, thinking, want) in table {
            let found = written(dialect, model, effort, thinking);
            assert_eq!(found, want, "{model} {effort:?} {thinking}");
        }
    }

    #[test]
    fn no_row_hides_another() {
        for rows in [&OPENAI[..], &ANTHROPIC[..], &GEMINI[..]] {
            for (index, (model, efforts)) in rows.iter().enumerate() {
                let before = rows.iter().take(index);
                for (begin, _) in before {
                    assert!(!model.starts_with(begin), "{begin} is before {model}");
                }
                assert!(efforts.is_sorted(), "{model}");
            }
        }
    }
}
