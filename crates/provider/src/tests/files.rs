//! Images and documents in the requests of every dialect.

use crate::anthropic::Messages;
use crate::gemini::Gemini;
use crate::openai_chat::{Chat, Flavour};
use crate::openai_responses::Responses;
use llm_worker::attachment::attachment;
use llm_worker::projection::{Dialect, Projection, Surface};
use llm_worker::{CallId, Item, MediaType, ResultStatus, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

const GIF: &[u8] = b"GIF89a\x05\0\x06\0;";
const PDF: &[u8] = b"%PDF-1.7\n";
const GIF_TEXT: &str = "R0lGODlhBQAGADs=";
const PDF_TEXT: &str = "JVBERi0xLjcK";

fn surface(media: &[MediaType]) -> Surface {
    Surface {
        generation: 1,
        model: "fake/m".to_owned(),
        system: "s".to_owned(),
        tools: Vec::new(),
        max_output: None,
        effort: None,
        thinking: false,
        media: media.to_vec(),
    }
}

/// A note and an input with a document, two calls, and their results: the first one has an image.
fn items() -> Vec<Item> {
    let call = |number| CallId::new(number).unwrap();
    let called = |number| Item::ToolCall {
        id: call(number),
        name: "Read".to_owned(),
        arguments: "{}".to_owned(),
    };
    let result = |number, files| Item::ToolResult {
        id: call(number),
        outcome: ToolOutcome {
            attachments: files,
            ..ToolOutcome::of(ResultStatus::Ok, "done")
        },
    };
    vec![
        Item::System {
            source: "host".to_owned(),
            text: "n".to_owned(),
        },
        Item::User {
            text: "look".to_owned(),
            attachments: vec![attachment("a.pdf", PDF).unwrap()],
        },
        Item::user("more"),
        called(1),
        called(2),
        // It arrives last.
        result(2, Vec::new()),
        result(1, vec![attachment("b.gif", GIF).unwrap()]),
        Item::user("well?"),
    ]
}

/// The list of messages of a request, with the bytes of its files.
fn sent(dialect: impl Dialect, media: &[MediaType], key: &str) -> Value {
    let mut projection = Projection::new(&surface(media), Arc::new(dialect));
    items().iter().for_each(|item| projection.push(item));
    let body = projection.body();
    let digest = body.digest.clone();
    let length = body.len;
    let files = body.files().count();
    let read = |file: &llm_worker::Attachment| {
        let bytes = if file.media == MediaType::Pdf {
            PDF
        } else {
            GIF
        };
        assert_eq!(file.bytes, bytes.len() as u64);
        Ok::<_, ()>(bytes.to_vec())
    };
    let body = body.with_files(read).unwrap();
    assert_eq!(
        (body.to_vec().len() as u64, body.files().count()),
        (length, 0)
    );
    assert_eq!(files, media.len());
    let mut measured = Projection::measured(&surface(media), Arc::clone(projection.dialect()));
    items().iter().for_each(|item| measured.push(item));
    let measured = measured.body();
    assert_eq!(
        (measured.digest, measured.len),
        (digest, length),
        "without the bytes"
    );
    serde_json::from_slice::<Value>(&body.to_vec()).unwrap()[key].clone()
}

const BOTH: [MediaType; 2] = [MediaType::Pdf, MediaType::Gif];
const FROM: &str = "<host-note source=\"host\">\nfrom the result of c00000001: b.gif, image/gif, 5×6, 11 bytes\n</host-note>";
const NOTE: &str = "<host-note source=\"host\">\nn\n</host-note>";

#[test]
fn files_are_blocks_of_messages() {
    let sent = sent(Messages, &BOTH, "messages");
    let source =
        |media: &str, data: &str| json!({"type": "base64", "media_type": media, "data": data});
    let text = |text: &str| json!({"type": "text", "text": text});
    let first = json!([
        text(NOTE),
        text("look"),
        {"type": "document", "source": source("application/pdf", PDF_TEXT)},
        text("more"),
    ]);
    assert_eq!(sent[0]["content"], first);
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
    let last = json!([
        result("c00000001"),
        result("c00000002"),
        text(FROM),
        {"type": "image", "source": source("image/gif", GIF_TEXT)},
        {"type": "text", "text": "well?", "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!(sent[2]["content"], last);
}

#[test]
fn files_are_parts_of_chat_messages() {
    let pdf = format!("data:application/pdf;base64,{PDF_TEXT}");
    let gif = format!("data:image/gif;base64,{GIF_TEXT}");
    let text = |text: &str| json!({"type": "text", "text": text});
    for flavour in Flavour::ALL {
        let sent = sent(Chat(flavour), &BOTH, "messages");
        let roles: Vec<_> = sent
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["role"])
            .collect();
        assert_eq!(
            roles,
            ["system", "user", "assistant", "tool", "tool", "user"]
        );
        let first = json!([
            text(&format!("{NOTE}\n\nlook")),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}},
            text("more"),
        ]);
        assert_eq!(sent[1]["content"], first);
        let last = json!([
            text(FROM),
            {"type": "image_url", "image_url": {"url": gif}},
            text("well?"),
        ]);
        assert_eq!(sent[5]["content"], last);
    }
}

#[test]
fn files_are_items_of_responses() {
    let sent = sent(Responses, &BOTH, "input");
    let pdf = format!("data:application/pdf;base64,{PDF_TEXT}");
    let gif = format!("data:image/gif;base64,{GIF_TEXT}");
    let document = json!([{"type": "input_file", "filename": "a.pdf", "file_data": pdf}]);
    assert_eq!(sent[2], json!({"role": "user", "content": document}));
    assert_eq!(sent[7]["type"], "function_call_output");
    assert_eq!(sent[8]["content"], FROM);
    let image = json!([{"type": "input_image", "image_url": gif}]);
    assert_eq!(sent[9], json!({"role": "user", "content": image}));
}

#[test]
fn files_are_inline_data_of_gemini() {
    let sent = sent(Gemini, &BOTH, "contents");
    let data = |media: &str, data: &str| json!({"inlineData": {"mimeType": media, "data": data}});
    let first = json!([{"text": NOTE}, {"text": "look"}, data("application/pdf", PDF_TEXT), {"text": "more"}]);
    assert_eq!(sent[0]["parts"], first);
    assert_eq!(
        sent[2]["parts"].as_array().unwrap().len(),
        2,
        "results alone"
    );
    let last = json!([{"text": FROM}, data("image/gif", GIF_TEXT), {"text": "well?"}]);
    assert_eq!(sent[3], json!({"role": "user", "parts": last}));
}

#[test]
fn a_type_that_the_model_does_not_read_is_a_line() {
    let line = "[a.pdf, application/pdf, 9 bytes: this model cannot see it]";
    let gif = "[b.gif, image/gif, 5×6, 11 bytes: this model cannot see it]";
    let one = sent(Messages, &[MediaType::Gif], "messages").to_string();
    assert!(
        one.contains(&format!("look\\n{line}")) && one.contains(GIF_TEXT),
        "{one}"
    );
    assert!(!one.contains(PDF_TEXT));
    for none in [
        sent(Messages, &[], "messages"),
        sent(Chat(Flavour::OpenAi), &[], "messages"),
        sent(Responses, &[], "input"),
        sent(Gemini, &[], "contents"),
    ] {
        let none = none.to_string();
        assert!(
            none.contains(line) && none.contains(&format!("done\\n{gif}")),
            "{none}"
        );
        assert!(!none.contains(PDF_TEXT) && !none.contains(GIF_TEXT));
    }
}
