//! Endpoints known without configuration, as data. The configuration can add providers.

use crate::openai_chat::Flavour;

/// One provider of the built-in catalogue; `yoi` uses it to find the endpoint and the key of a model's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The part before the `/` in a model's name.
    pub name: &'static str,
    /// The name for lists and messages.
    pub about: &'static str,
    pub api: Api,
    /// The base URL; of a local server, at its default port.
    pub base_url: &'static str,
    pub key: KeyRule,
    /// A model to use when none is named: present at the vendor, able to call tools. Local servers have none: ask
    /// [`crate::endpoint::list_models`].
    pub default_model: Option<&'static str>,
}

/// The API of a provider, which selects the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Chat completions.
    OpenAiChat(Flavour),
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's own.
    Gemini,
}

impl Api {
    /// The API for a model of this name: OpenAI's models that reason take tools over Responses alone.
    #[must_use]
    pub fn of_model(self, model: &str) -> Self {
        match self {
            Self::OpenAiChat(Flavour::OpenAi) if reasons(model) => Self::OpenAiResponses,
            Self::OpenAiChat(_) | Self::OpenAiResponses | Self::Anthropic | Self::Gemini => self,
        }
    }
}

/// Whether a model of OpenAI reasons, by its name there. Those that do not refuse to be asked for encrypted reasoning.
pub(crate) fn reasons(model: &str) -> bool {
    const PLAIN: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-4"];
    !PLAIN.iter().any(|plain| model.starts_with(plain))
}

/// Whether a provider requires a key, and where the key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// The key is in the first of these variables that is set.
    Required(&'static [&'static str]),
    /// A local server: no key unless it was started with one.
    None,
}

impl Provider {
    /// Whether it runs on this machine; such a provider may be probed without being configured.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.key == KeyRule::None
    }

    /// The variables that may hold its key, in order.
    #[must_use]
    pub fn key_variables(&self) -> &'static [&'static str] {
        match self.key {
            KeyRule::Required(names) => names,
            KeyRule::None => &[],
        }
    }
}

const COMPATIBLE: Api = Api::OpenAiChat(Flavour::Compatible);

/// All known providers, in the order in which a key in the environment selects one.
pub const PROVIDERS: [Provider; 8] = [
    Provider {
        name: "openai",
        about: "OpenAI",
        api: Api::OpenAiChat(Flavour::OpenAi),
        base_url: "https://api.openai.com/v1",
        key: KeyRule::Required(&["OPENAI_API_KEY"]),
        default_model: Some("gpt-4.1"),
    },
    Provider {
        name: "anthropic",
        about: "Anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        key: KeyRule::Required(&["ANTHROPIC_API_KEY"]),
        default_model: Some("claude-sonnet-5"),
    },
    Provider {
        name: "gemini",
        about: "Google Gemini, over its OpenAI-compatible API",
        api: Api::OpenAiChat(Flavour::Gemini),
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        key: KeyRule::Required(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        default_model: Some("gemini-2.5-flash"),
    },
    Provider {
        name: "openrouter",
        about: "OpenRouter",
        api: COMPATIBLE,
        base_url: "https://openrouter.ai/api/v1",
        key: KeyRule::Required(&["OPENROUTER_API_KEY"]),
        default_model: Some("openrouter/auto"),
    },
    local("ollama", "Ollama", "http://127.0.0.1:11434/v1"),
    local(
        "llamacpp",
        "llama.cpp's llama-server",
        "http://127.0.0.1:8080/v1",
    ),
    local("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1"),
    local("vllm", "vLLM", "http://127.0.0.1:8000/v1"),
];

const fn local(name: &'static str, about: &'static str, base_url: &'static str) -> Provider {
    Provider {
        name,
        about,
        api: COMPATIBLE,
        base_url,
        key: KeyRule::None,
        default_model: None,
    }
}

/// The provider of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// Splits a model's name at its first `/`: `openrouter/vendor/model` is `vendor/model` at `openrouter`.
/// `None` when there is no `/` or nothing on one side of it.
#[must_use]
pub fn split(model: &str) -> Option<(&str, &str)> {
    model
        .split_once('/')
        .filter(|(provider, name)| !provider.is_empty() && !name.is_empty())
}

/// The value of this model in a table of `provider/model` names: of the name itself, else of the name without a date.
pub(crate) fn row<T: Copy>(rows: &[(&str, T)], model: &str) -> Option<T> {
    let itself = rows.iter().find(|(name, _)| *name == model);
    let dated = || {
        rows.iter()
            .find(|(name, _)| model.strip_prefix(name).is_some_and(is_date))
    };
    itself.or_else(dated).map(|(_, value)| *value)
}

/// Whether the rest of a name is empty or a date, such as `-20250929` or `-2025-04-14`: any other suffix is another
/// model.
fn is_date(rest: &str) -> bool {
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    rest.is_empty()
        || (rest.starts_with('-')
            && digits == 8
            && rest.bytes().all(|b| b == b'-' || b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_client::BaseUrl;

    #[test]
    fn entries_are_usable() {
        for provider in &PROVIDERS {
            let url = BaseUrl::parse(provider.base_url).unwrap();
            assert_eq!(url.is_tls(), !provider.is_local(), "{}", provider.name);
            assert_eq!(find(provider.name), Some(provider), "names are unique");
            assert!(!provider.name.contains('/'));
            assert_eq!(provider.default_model.is_some(), !provider.is_local());
        }
        assert_eq!(find("nobody"), None);
    }

    #[test]
    fn models_of_openai_that_reason_have_an_api_of_their_own() {
        let chat = Api::OpenAiChat(Flavour::OpenAi);
        for (model, want) in [
            ("gpt-4.1", chat),
            ("gpt-4o-2024-05-13", chat),
            ("gpt-5.1", Api::OpenAiResponses),
            ("o4-mini", Api::OpenAiResponses),
        ] {
            assert_eq!(chat.of_model(model), want, "{model}");
        }
        assert_eq!(COMPATIBLE.of_model("gpt-5.1"), COMPATIBLE);
    }

    #[test]
    fn names_split_at_the_first_slash() {
        assert_eq!(split("openrouter/a/b"), Some(("openrouter", "a/b")));
        for bad in ["offline", "/x", "x/", ""] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
