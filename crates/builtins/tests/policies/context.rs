//! `context`: the service that other features ask, and long documents in pages.

use api_core::http::BaseUrl;
use authority::{Access, Net, Secret, Workspace};
use builtins::context::{ContextSearch, SERVICE};
use builtins::context::{EmbeddingsApi, RemoteEmbedder};
use knowledge::{
    ContextIndex, Embedder, ErrorKind as IndexErrorKind, Filesystem, FilesystemLimits,
};
use pod::feature::author::*;
use serde_json::{Value, json};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;
use testkit::{FeatureHost, ScriptedServer, ServerAnswer, on};

const ASK: ToolKey<Ask> = ToolKey::new("Ask", ToolEffect::ReadOnly, "Ask the service.");

#[derive(Serialize, Deserialize, JsonSchema)]
struct Ask {
    method: String,
    /// As JSON.
    params: String,
}

/// A feature that passes on what the service answers.
struct Asker;

struct Live(ServiceHandle<dyn JsonService>);

impl FeatureModule for Asker {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("asker"))
            .version("1.0.0")
            .requires(ServiceRequirement::required(SERVICE, "^1"))
            .tool(&ASK)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live(ctx.services().require_json(&SERVICE.id())?));
        ctx.tools().implement(&ASK, &live, ask).map(drop)
    }
}

async fn ask(live: Arc<Live>, asked: Ask, cx: ToolContext) -> ToolResult {
    let params = serde_json::from_str(&asked.params).unwrap();
    let call = JsonCall::new(&asked.method, params).within(cx);
    let answer = live.0.call(|service| service.call(call)).await??;
    Ok(ToolOutput {
        content: answer.to_string(),
        ..ToolOutput::default()
    })
}

/// A host with an index of one long and one short document.
fn host() -> FeatureHost {
    let host = FeatureHost::new();
    let place = host.project().join("root-0");
    let documents = tempfile::tempdir().unwrap();
    let long: String = (1..=30_000)
        .map(|n| format!("line {n} of many\n"))
        .collect();
    fs::write(documents.path().join("long.txt"), long).unwrap();
    fs::write(
        documents.path().join("short.md"),
        "# Short\n\nabout lighthouses",
    )
    .unwrap();
    fs::create_dir_all(&place).unwrap();
    let open = |dir: &Path, access| Workspace::open(&ambient::claim(), dir, dir, access).unwrap();
    let now = SystemTime::now();
    let files = open(documents.path(), Access::Read);
    let files = Filesystem::new("files", files, FilesystemLimits::USUAL, now);
    let index = ContextIndex::below(open(&place, Access::ReadWrite));
    let on = &mut |_| ControlFlow::Continue(());
    index.sync(&files, now, false, on).unwrap();
    host
}

#[test]
fn features_ask_the_service() {
    let mut host = host().with(ContextSearch).install(Asker);
    let mut ask = |method: &str, params: Value| {
        let asked = json!({ "method": method, "params": params.to_string() });
        let called = host.call("Ask", asked);
        serde_json::from_str::<Value>(&called.content).unwrap_or(json!(called.text()))
    };
    let found = ask("search", json!({ "query": "lighthouses" }));
    let hit = &found["hits"][0];
    assert_eq!(
        (&hit["source_id"], &hit["text"]),
        (&json!("short.md"), &json!("# Short\n\nabout lighthouses"))
    );
    let whole = ask("get", json!({ "id": hit["document"] }));
    assert_eq!(whole["text"], hit["text"]);
    assert_eq!(
        (&whole["first"], &whole["last"], &whole["lines"]),
        (&json!(1), &json!(3), &json!(3))
    );
    let sources = ask("sources", json!({}));
    assert_eq!(sources["sources"][0]["documents"], 2);
    for (method, params, problem) in [
        (
            "search",
            json!({ "query": "x", "limit": 51 }),
            "the limit is 1 to 50",
        ),
        ("search", json!({ "words": "x" }), "words"),
        ("get", json!({ "id": "x" }), "no document has this id"),
        ("put", json!({}), "search, get, sources"),
    ] {
        let refused = ask(method, params).to_string();
        assert!(refused.contains(problem), "{refused}");
    }
}

#[test]
fn a_long_document_comes_in_pages() {
    let mut host = host().install(ContextSearch);
    let found = host.call("ContextSearch", json!({ "query": "line 20000" }));
    let id = found.content.split_once("(id ").unwrap().1;
    let id = id.split_once(',').unwrap().0.to_owned();
    let page = host.call("ContextGet", json!({ "id": id }));
    assert!(
        page.content.contains("\nline 20000 of many\n"),
        "{}",
        page.text()
    );
    let document = id.split_once('#').unwrap().0;
    let first = host.call("ContextGet", json!({ "id": document }));
    assert!(first.content.contains("\nline 1 of many\nline 2 of many\n"));
    let last: usize = first.summary.split(' ').nth(4).unwrap().parse().unwrap();
    assert!((500..5000).contains(&last), "{}", first.summary);
    let next = host.call("ContextGet", json!({ "id": document, "from": last + 1 }));
    assert!(
        next.content
            .contains(&format!("instructions]\nline {} of many\n", last + 1))
    );
    let behind = host.call("ContextGet", json!({ "id": document, "from": 30_001 }));
    assert!(
        behind.text().contains("the document has 30000 lines"),
        "{}",
        behind.text()
    );
}

/// The two forms of servers: what is sent, and vectors in the order of the texts.
#[test]
fn a_server_makes_vectors() {
    let secret = Secret::new(
        &ambient::claim(),
        "key",
        "a-secret-of-the-server".to_owned(),
    );
    let remote = |api, server: &ScriptedServer| {
        let base = BaseUrl::parse(&format!("{}/v1", server.url())).unwrap();
        let net = Net::to(&ambient::claim(), [base.host_port()]);
        RemoteEmbedder::new(api, "small", base, net, Some(secret.clone()))
    };
    let answers = json!({ "data": [
        { "index": 1, "embedding": [0.5, 1] }, { "index": 0, "embedding": [1.0, 0.0] },
    ] });
    let server = ScriptedServer::new([
        on("POST", "/v1/embeddings", ServerAnswer::json(200, &answers)),
        on(
            "POST",
            "/v1/embeddings",
            ServerAnswer::json(200, &json!({ "vectors": [] })),
        ),
        on(
            "POST",
            "/v1/embeddings",
            ServerAnswer::json(401, &json!({ "error": { "message": "no" } })),
        ),
    ]);
    let openai = remote(EmbeddingsApi::OpenAi, &server);
    let vectors = openai.embed(&["one", "two"]).unwrap();
    assert_eq!(vectors, [[1.0, 0.0], [0.5, 1.0]]);
    for words in ["another form", "the secret that `key` names"] {
        let failed = openai.embed(&["one"]).unwrap_err();
        assert_eq!(failed.kind(), IndexErrorKind::Unavailable);
        let text = failed.to_string();
        assert!(text.contains(words) && !text.contains("a-secret"), "{text}");
    }
    server.assert_done();
    let first = &server.requests()[0];
    assert_eq!(
        first.json(),
        json!({ "model": "small", "input": ["one", "two"] })
    );
    assert_eq!(
        first.header("authorization"),
        Some("Bearer a-secret-of-the-server")
    );

    let answer = ServerAnswer::json(200, &json!({ "embeddings": [[1, 2]] }));
    let server = ScriptedServer::new([on("POST", "/v1/api/embed", answer)]);
    let ollama = remote(EmbeddingsApi::Ollama, &server);
    assert_eq!(ollama.embed(&["one"]).unwrap(), [[1.0, 2.0]]);
    assert_ne!(ollama.name(), openai.name());
    server.assert_done();
}
