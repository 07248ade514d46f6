//! The content of a prompt: what the model reads as text, and files beside it. Opens nothing.

use crate::message::{PARAMS, RpcError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

/// A part of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text {
        text: String,
    },
    Image {
        data: String,
        #[serde(default)]
        uri: Option<String>,
    },
    Audio {},
    ResourceLink {
        name: String,
        uri: String,
    },
    Resource {
        resource: Resource,
    },
}

/// A resource that stands in the prompt itself.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Resource {
    Text { uri: String, text: String },
    Blob { uri: String, blob: String },
}

/// What a prompt says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) files: Vec<PromptFile>,
    /// A person typed all of it: one block of text.
    pub(crate) is_typed: bool,
}

/// An image or a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptFile {
    /// Without its directory; may be empty.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Prompt {
    /// Reads the blocks of a prompt.
    ///
    /// # Errors
    /// One of them is of a kind that was not offered, or no base 64; or there is nothing in them.
    pub(crate) fn read(blocks: Vec<Block>) -> Result<Self, RpcError> {
        let mut prompt = Self {
            is_typed: matches!(blocks.as_slice(), [Block::Text { .. }]),
            ..Self::default()
        };
        let mut resources = String::new();
        for block in blocks {
            match block {
                Block::Text { text } => prompt.text.push_str(&text),
                Block::ResourceLink { name, uri } => {
                    prompt.text.push_str(&format!("[{name}]({})", place(&uri)));
                }
                Block::Resource {
                    resource: Resource::Text { uri, text },
                } => {
                    let end = if text.ends_with('\n') { "" } else { "\n" };
                    let place = place(&uri);
                    resources.push_str(&format!(
                        "\n\n<resource uri=\"{place}\">\n{text}{end}</resource>"
                    ));
                }
                Block::Resource {
                    resource: Resource::Blob { uri, blob },
                } => prompt.add_file(&blob, Some(uri))?,
                Block::Image { data, uri } => prompt.add_file(&data, uri)?,
                Block::Audio {} => {
                    let help = "send text, images, resources or links to them";
                    return Err(RpcError::new(PARAMS, "audio is not supported", help));
                }
            }
        }
        prompt.text.push_str(&resources);
        if prompt.text.trim().is_empty() && prompt.files.is_empty() {
            return Err(RpcError::new(PARAMS, "the prompt is empty", "write a text"));
        }
        Ok(prompt)
    }

    fn add_file(&mut self, data: &str, uri: Option<String>) -> Result<(), RpcError> {
        let bytes = STANDARD.decode(data).map_err(|error| {
            let message = format!("the data of a file in the prompt is not base 64: {error}");
            RpcError::new(PARAMS, message, "send the bytes in base 64")
        })?;
        let path = place(&uri.unwrap_or_default());
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        self.files.push(PromptFile { name, bytes });
        Ok(())
    }
}

/// The path of a file, which tools can open; any other address as it is.
fn place(uri: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) if path.starts_with('/') => {
            percent_decode_str(path).decode_utf8_lossy().into_owned()
        }
        _ => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(blocks: Value) -> Result<Prompt, RpcError> {
        Prompt::read(serde_json::from_value(blocks).unwrap())
    }

    #[test]
    fn links_stand_in_the_text_and_resources_below_it() {
        let prompt = read(json!([
            { "type": "text", "text": "compare " },
            { "type": "resource_link", "name": "a b.rs", "uri": "file:///p/a%20b.rs" },
            { "type": "resource", "resource": { "uri": "file:///p/c.rs", "text": "fn c() {}", "mimeType": null } },
            { "type": "text", "text": " with c.rs" },
            { "type": "image", "mimeType": "image/png", "data": "aGk=", "uri": "file:///p/x.png" },
        ]))
        .unwrap();
        assert_eq!(
            prompt.text,
            "compare [a b.rs](/p/a b.rs) with c.rs\n\n<resource uri=\"/p/c.rs\">\nfn c() {}\n</resource>"
        );
        let file = PromptFile {
            name: "x.png".to_owned(),
            bytes: b"hi".to_vec(),
        };
        assert_eq!(prompt.files, [file]);
        assert!(!prompt.is_typed);
        assert!(
            read(json!([{ "type": "text", "text": "/x" }]))
                .unwrap()
                .is_typed
        );
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        for (blocks, says) in [
            (json!([]), "the prompt is empty"),
            (
                json!([{ "type": "text", "text": " \n" }]),
                "the prompt is empty",
            ),
            (
                json!([{ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" }]),
                "audio is not supported",
            ),
            (
                json!([{ "type": "image", "data": "?", "mimeType": "image/png" }]),
                "not base 64",
            ),
        ] {
            let error = read(blocks).unwrap_err();
            assert_eq!(error.code, PARAMS);
            assert!(error.message.contains(says), "{error:?}");
        }
    }
}
