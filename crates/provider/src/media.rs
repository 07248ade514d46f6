//! The types of files that models read, by the vendors' lists of late 2026. A model that is not listed reads text only: the
//! configuration can say otherwise.

use crate::catalog::Api;
use crate::openai_chat::Flavour;
use llm_worker::MediaType;

/// Images and documents.
const ALL: &[MediaType] = &[
    MediaType::Png,
    MediaType::Jpeg,
    MediaType::Webp,
    MediaType::Gif,
    MediaType::Pdf,
];

/// The images of most vendors.
pub const IMAGES: &[MediaType] = &[
    MediaType::Png,
    MediaType::Jpeg,
    MediaType::Webp,
    MediaType::Gif,
];

/// What Gemini takes: no GIF.
const OF_GEMINI: &[MediaType] = &[
    MediaType::Png,
    MediaType::Jpeg,
    MediaType::Webp,
    MediaType::Pdf,
];

/// The same over the compatible API, which takes images only.
const IMAGES_OF_GEMINI: &[MediaType] = &[MediaType::Png, MediaType::Jpeg, MediaType::Webp];

/// The types that a model of this name at its vendor reads over an API.
#[must_use]
pub fn of(api: Api, model: &str) -> &'static [MediaType] {
    match api {
        Api::Anthropic if model.starts_with("claude-") && !is_old(model) => ALL,
        Api::OpenAiChat(Flavour::OpenAi) | Api::OpenAiResponses if sees(model) => ALL,
        Api::Gemini if model.starts_with("gemini-") => OF_GEMINI,
        Api::OpenAiChat(Flavour::Gemini) if model.starts_with("gemini-") => IMAGES_OF_GEMINI,
        Api::Anthropic | Api::OpenAiChat(_) | Api::OpenAiResponses | Api::Gemini => &[],
    }
}

fn is_old(model: &str) -> bool {
    ["claude-2", "claude-1", "claude-instant"]
        .iter()
        .any(|old| model.starts_with(old))
}

/// OpenAI's models that see.
fn sees(model: &str) -> bool {
    const SEE: [&str; 6] = ["gpt-4o", "gpt-4.1", "gpt-4-turbo", "gpt-5", "o1", "o3"];
    const DO_NOT: [&str; 4] = ["o1-mini", "o1-preview", "o3-mini", "gpt-4o-audio"];
    let begins = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    (begins(&SEE) || model.starts_with("o4-")) && !begins(&DO_NOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_reads_goes_by_its_api_and_name() {
        let openai = Api::OpenAiChat(Flavour::OpenAi);
        let table = [
            (Api::Anthropic, "claude-sonnet-5", ALL),
            (Api::Anthropic, "claude-2.1", &[]),
            (Api::Anthropic, "glm-5", &[]),
            (openai, "gpt-4.1", ALL),
            (openai, "gpt-4", &[]),
            (openai, "gpt-3.5-turbo", &[]),
            (Api::OpenAiResponses, "o4-mini", ALL),
            (Api::OpenAiResponses, "o3-mini-2025-01-31", &[]),
            (Api::Gemini, "gemini-2.5-flash", OF_GEMINI),
            (Api::Gemini, "gemma-3", &[]),
            (
                Api::OpenAiChat(Flavour::Gemini),
                "gemini-2.5-pro",
                IMAGES_OF_GEMINI,
            ),
            (Api::OpenAiChat(Flavour::Compatible), "gpt-4.1", &[]),
        ];
        for (api, model, want) in table {
            assert_eq!(of(api, model), want, "{model}");
        }
    }
}
