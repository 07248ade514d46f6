//! Embeddings of a server: the API of OpenAI, which many servers have, or Ollama's. A person's command waits for it on its own
//! thread.

use api_core::http::{BaseUrl, Http, Step, Token, TokenForm, Vendor};
use api_core::values::within;
use authority::{Net, Secret};
use knowledge::{Embedder, Error, ErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Texts of one request.
const BATCH: usize = 64;

/// How long a batch is waited for, with what is tried again.
const LIMIT: Duration = Duration::from_secs(180);

static VENDOR: Vendor = Vendor {
    name: "the server of embeddings",
    headers: &[],
    words: &["/error/message", "/error"],
    steps: &[
        Step(401, "check the secret that `key` names"),
        Step(404, "check `base_url` and `model`"),
    ],
};

/// What a server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingsApi {
    /// `POST /embeddings`, as OpenAI has it below `/v1`.
    OpenAi,
    /// `POST /api/embed`.
    Ollama,
}

/// A model of a server. The texts of the index are sent to it.
pub struct RemoteEmbedder {
    name: String,
    api: EmbeddingsApi,
    model: String,
    base: BaseUrl,
    net: Net,
    key: Option<Secret>,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

impl RemoteEmbedder {
    /// Reaches the server over `net`; the key is sent as a bearer token.
    #[must_use]
    pub fn new(
        api: EmbeddingsApi,
        model: &str,
        base: BaseUrl,
        net: Net,
        key: Option<Secret>,
    ) -> Self {
        let kind = match api {
            EmbeddingsApi::OpenAi => "openai",
            EmbeddingsApi::Ollama => "ollama",
        };
        Self {
            name: format!("{kind}:{model} at {}", base.host_port()),
            api,
            model: model.to_owned(),
            base,
            net,
            key,
        }
    }

    fn vectors(&self, body: Value, texts: usize) -> Result<Vec<Vec<f32>>, serde_json::Error> {
        match self.api {
            EmbeddingsApi::OpenAi => {
                let mut answer: OpenAiAnswer = serde_json::from_value(body)?;
                answer.data.sort_by_key(|vector| vector.index);
                let in_order = answer.data.into_iter().zip(0..texts);
                let own = in_order.filter(|(vector, place)| vector.index == *place);
                Ok(own.map(|(vector, _)| vector.embedding).collect())
            }
            EmbeddingsApi::Ollama => {
                let answer: OllamaAnswer = serde_json::from_value(body)?;
                Ok(answer.embeddings)
            }
        }
    }
}

impl Embedder for RemoteEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let token = self.key.clone().map(|secret| Token {
            secret,
            form: TokenForm::BEARER,
        });
        let http = Http::new(&VENDOR, self.base.clone(), self.net.clone(), token);
        let path = match self.api {
            EmbeddingsApi::OpenAi => "/embeddings",
            EmbeddingsApi::Ollama => "/api/embed",
        };
        let question = json!({ "model": self.model, "input": texts });
        let failed = |why: String| Error::new(ErrorKind::Unavailable, why);
        let reply = within(LIMIT, http.ask(path, &question)).map_err(failed)?;
        self.vectors(reply.body, texts.len())
            .map_err(|error| failed(format!("{}: an answer of another form: {error}", self.name)))
    }
}
